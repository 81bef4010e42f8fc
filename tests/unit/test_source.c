// The parser: trees of ordinary kernels, and text that wants to break it.
#include "t.h"

#include "base/draw.h"
#include "base/io.h"
#include "source/edits.h"

#include <dirent.h>

static const char kernel[] =
    "void k(float *C, const float *A, const float *B, int M, int N, int K)\n{\n"
    "    for (int i = 0; i < M; i++)\n        for (int j = 0; j < N; j++) {\n"
    "            float sum = 0;\n            for (int k = 0; k < K; ++k)\n"
    "                sum += A[i * K + k] * B[k * N + j];\n            C[i * N + j] = sum;\n        }\n}\n";

static void open_text(struct rule_source *s, const char *text)
{
    struct err e = {0};
    CHECK(rule_source_open(s, text, strlen(text), "k.c", "k", NULL, &e) == 0);
}

static void loops_of_a_matrix_product(void)
{
    struct rule_source s;
    open_text(&s, kernel);
    CHECK_INT(s.t.opaque, 0);
    CHECK_INT(s.a.loops.n, 3);
    CHECK_STR(s.a.loops.v[2]->var, "k");
    char *where = site_of(&s.a, s.a.loops.v[2]->stmt);
    CHECK_STR(where, "for i / for j / for k");
    CHECK(site_find(&s.a, where) == s.a.loops.v[2]->stmt);
    free(where);
    struct reduction r;
    CHECK(stmt_reduction(&s.a, s.a.loops.v[2]->body, &r));
    CHECK_STR(r.var, "sum");
    CHECK(r.op == RED_ADD && r.is_float);
    rule_source_close(&s);
}

static enum tri independent(const char *body)
{
    struct rule_source s;
    struct str text = {0};
    reductions red = {0};
    str_addf(&text, "void k(float *y, const float *x, int n)\n{\n%s\n}\n", body);
    open_text(&s, str_c(&text));
    s.a.no_alias = true;
    enum tri v = s.a.loops.n ? loop_independent(&s.a, s.a.loops.v[0], &red).v : TRI_UNKNOWN;
    vec_free(&red);
    rule_source_close(&s);
    str_free(&text);
    return v;
}

static void what_loops_carry(void)
{
    CHECK(independent("for (int i = 0; i < n; i++) y[i] = x[i];") == TRI_YES);
    CHECK(independent("for (int i = 0; i < n; i++) y[0] += x[i];") == TRI_YES); // a reduction into memory
    CHECK(independent("for (int i = 1; i < n; i++) y[i] = y[i - 1] + x[i];") != TRI_YES);
    CHECK(independent("float s = 0; for (int i = 0; i < n; i++) { s = s * 2 + x[i]; y[i] = s; }") != TRI_YES);
    CHECK(independent("for (int i = 0; i < n; i++) y[(int)x[i]] = 1;") != TRI_YES);
    CHECK(
        independent("for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) y[i * n + j] = x[j * n + i];") ==
        TRI_YES);
    CHECK(independent("for (int i = 0; i < n; i++) for (int j = 0; j < 2 * n; j++) y[i * n + j] = x[j];") !=
          TRI_YES);
    CHECK(independent("for (int i = 0; i < n; i++) { if (x[i] < 0) break; y[i] = 1; }") != TRI_YES);
    CHECK(independent("for (int i = 0; i < n; i++) y[i] = other(x[i]);") != TRI_YES);
}

static void deep(const char *open, const char *middle, const char *close, int n)
{
    struct str text = {0};
    struct rule_source s;
    str_add(&text, "void k(float *y, int n)\n{\n");
    for (int i = 0; i < n; i++)
        str_add(&text, open);
    str_add(&text, middle);
    for (int i = 0; i < n; i++)
        str_add(&text, close);
    str_add(&text, ";\n}\n");
    if (rule_source_open(&s, str_c(&text), text.len, "k.c", "k", NULL, NULL) == 0)
        rule_source_close(&s);
    str_free(&text);
}

static void nesting_does_not_exhaust_the_stack(void)
{
    deep("(", "1", ")", 100000);
    deep("{", ";", "}", 100000);
    deep("if (n) ", ";", "", 50000);
    deep("1+", "1", "", 100000);
    deep("y=", "0", "", 100000);
    deep("-", "1", "", 100000);
    deep("y", "", "[0]", 50000);
    deep("n,", "n", "", 50000);
    CHECK(1);
}

static void edits_replay_to_the_same_text(void)
{
    struct edits list = {0};
    struct edits_env env = {rule_table, rule_table_n, "k.c", "k", NULL};
    struct str once = {0}, twice = {0};
    struct err e = {0};
    edits_add(&list, "interchange", "for i / for j", NULL);
    json *flags = json_object();
    json_put_str(flags, "flags", "-O3");
    edits_add(&list, "flags", "", flags);
    json_free(flags);
    // Without a task pointers may overlap: the rule must refuse.
    CHECK(edits_replay(&list, kernel, strlen(kernel), &env, &once, NULL, NULL, &e) < 0);
    CHECK(strstr(e.msg, "overlap") != NULL);
    edit_refusals refused = {0};
    CHECK(edits_replay(&list, kernel, strlen(kernel), &env, &once, NULL, &refused, &e) == 0);
    CHECK_INT(refused.n, 1);
    CHECK(strstr(str_c(&once), "// flags: -O3") != NULL);
    json *j = edits_json(&list);
    struct edits back = {0};
    CHECK(edits_from_json(&back, j, &e) == 0 && edit_same(&back.v.v[1], &list.v.v[1]));
    json_free(j);
    vec_free(&refused);
    edits_free(&back);
    edits_free(&list);
    str_free(&once);
    str_free(&twice);
}

struct covering {
    struct rule_source *s;
    size_t nodes, bad;
    bool sites;
};

// Children stand in order inside their parent; statements of a block leave no token out.
static bool check_node(void *user, struct node *n)
{
    struct covering *c = user;
    struct node *parts[] = {n->a, n->b, n->c, n->d};
    c->nodes++;
    bool ok = n->end > n->first && !str_eq(node_kind_name(n->kind), "?");
    for (size_t i = 0; i < countof(parts); i++)
        ok = ok &&
             (!parts[i] || (parts[i]->up == n && parts[i]->first >= n->first && parts[i]->end <= n->end));
    bool braces = n->kind == N_BLOCK && token_op(&c->s->ts, n->first, OP_LBRACE);
    uint32_t at = n->first + braces;
    for (struct node *k = n->kids; k; k = k->next) {
        ok = ok && k->up == n && k->first >= at && k->end <= n->end && (n->kind != N_BLOCK || k->first == at);
        at = k->end;
    }
    ok = ok && (n->kind != N_BLOCK || at == n->end - braces);
    if (c->sites && n->up && n->kind <= N_OPAQUE) {
        char *where = site_of(&c->s->a, n);
        ok = ok && site_find(&c->s->a, where) == n;
        free(where);
    }
    if (!ok && c->bad < 2)
        printf("# %s of line %d\n", node_kind_name(n->kind), node_line(&c->s->t, n));
    c->bad += !ok;
    return true;
}

static void check_function(const char *text, size_t len, const char *path, const char *name, size_t *nodes)
{
    struct rule_source s;
    struct err e = {0};
    if (rule_source_open(&s, text, len, path, name, NULL, &e) < 0) {
        CHECK(strstr(e.msg, "parameters") || strstr(e.msg, "times")); // said, and nothing worse
        return;
    }
    struct covering c = {.s = &s, .sites = s.f.close - s.f.open < 250};
    node_walk(s.t.root, check_node, &c);
    *nodes += c.nodes;
    struct str same = {0}, whole = {0};
    ast_clone(&s.t, s.t.root, NULL, 0, &same);
    node_text(&s.t, s.t.root, &whole);
    CHECK_STR(str_c(&same), str_c(&whole));
    for (size_t r = 0; r < rule_table_n; r++) {
        rule_sites sites = {0};
        rule_table[r]->sites(&s, &sites);
        rule_sites_free(&sites);
    }
    if (c.bad || s.t.root->first != s.f.open || s.t.root->end != s.f.close + 1) {
        CHECK(!"covered");
        printf("# %s %s: %zu nodes\n", path, name, c.bad);
    }
    str_free(&same);
    str_free(&whole);
    rule_source_close(&s);
}

static void trees_of_this_repository(void)
{
    static const char *const folders[] = {"engine/base",   "engine/source", "engine/rules", "engine/session",
                                          "engine/evolve", "engine/models", "engine/cmd",   "gpu",
                                          "gpu/cpu",       "tui",           "tests/unit"};
    size_t nodes = 0, files = 0;
    for (size_t i = 0; i < countof(folders); i++) {
        DIR *d = opendir(folders[i]);
        for (struct dirent *x; d && (x = readdir(d));) {
            struct str text = {0};
            char *path = io_join(folders[i], x->d_name);
            if (str_ends(x->d_name, ".c") && io_read_file(path, 1 << 20, &text, NULL) == 0) {
                struct tokens ts;
                func_names names = {0};
                tokens_read(&ts, str_c(&text), text.len);
                func_list(&ts, &names);
                for (size_t k = 0; k < names.n; k++)
                    check_function(text.s, text.len, path, names.v[k], &nodes);
                files++;
                func_names_free(&names);
                tokens_free(&ts);
            }
            str_free(&text);
            free(path);
        }
        if (d)
            closedir(d);
    }
    printf("# %zu files, %zu nodes\n", files, nodes);
    CHECK(files > 60 && nodes > 100000);
}

// A kernel with pieces cut out, doubled and put elsewhere: no crash, and trees that cover what there is.
static void broken_kernels(void)
{
    static const char *const bits[] = {
        "(",     ")", "{",  "}",  ";", "for", "#else\n", "#if 0\n",        "#endif\n",
        "(int)", "=", "\"", "do", "[", "<<<", "case 1:", "#define sum(\n", "#define K k++\n"};
    size_t nodes = 0;
    for (uint64_t k = 0; k < 4000; k++) {
        struct str text = {0};
        struct draw d = {5, k};
        str_add(&text, kernel);
        for (uint64_t i = 0; i <= k % 4; i++) {
            size_t at = 70 + (size_t)draw_below(d, "at", i, text.len - 80),
                   n = (size_t)draw_below(d, "n", i, 9);
            const char *bit = bits[draw_below(d, "bit", i, countof(bits))];
            str_splice(&text, at, n < text.len - at ? n : 0, bit, strlen(bit));
        }
        struct rule_source s;
        if (rule_source_open(&s, str_c(&text), text.len, "k.c", "k", NULL, NULL) == 0) {
            struct covering c = {.s = &s, .sites = true};
            node_walk(s.t.root, check_node, &c);
            nodes += c.nodes;
            if (c.bad) {
                CHECK(!"covered");
                printf("# case %llu:\n%s\n", (unsigned long long)k, str_c(&text));
                k = 4000;
            }
            for (size_t r = 0; r < rule_table_n; r++) {
                rule_sites sites = {0};
                rule_table[r]->sites(&s, &sites);
                rule_sites_free(&sites);
            }
            rule_source_close(&s);
        }
        str_free(&text);
    }
    CHECK(nodes > 10000);
}

static void casts_in_a_row(void)
{
    deep("(int)(", "n +", ")", 90); // would take 2^90 steps where each cast is tried twice
    CHECK(1);
}

int main(void)
{
    T(loops_of_a_matrix_product);
    T(what_loops_carry);
    T(nesting_does_not_exhaust_the_stack);
    T(edits_replay_to_the_same_text);
    T(casts_in_a_row);
    T(trees_of_this_repository);
    T(broken_kernels);
    T_END;
}
