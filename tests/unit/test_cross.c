// Crossing: what the child is made of, and that it is made of nothing else.
#include "t.h"

#include "base/draw.h"
#include "base/task.h"
#include "evolve/cross.h"
#include "source/annot.h"

static const char kernel[] = "void k(float *y, const float *x, int n)\n"
                             "{\n"
                             "    float s = 0;\n"
                             "    for (int i = 0; i < n; i++)\n"
                             "        s += x[i];\n"
                             "    for (int j = 0; j < n; j++)\n"
                             "        y[j] = x[j] * s;\n"
                             "    for (int p = 0; p < n; p++)\n"
                             "        for (int q = 0; q < n; q++)\n"
                             "            y[q * n + p] = x[p * n + q];\n"
                             "}\n";
static struct task task;
static struct moves_env env = {&task, "k.c"};

struct made {
    struct edits edits;
    struct str text;
};

static void made_free(struct made *m)
{
    edits_free(&m->edits);
    str_free(&m->text);
    *m = (struct made){0};
}

static void start(struct made *m)
{
    *m = (struct made){0};
    str_add(&m->text, kernel);
}

// One edit; false where it refuses.
static bool edit(struct made *m, const struct edits *one)
{
    struct str next = {0};
    if (moves_apply(&env, one, str_c(&m->text), m->text.len, &next, NULL) < 0) {
        str_free(&next);
        return false;
    }
    str_free(&m->text);
    m->text = next;
    edits_copy(&m->edits, one);
    return true;
}

static void take(struct made *m, const char *rule, const char *where, const char *key, const char *value)
{
    struct edits one = {0};
    json *params = key ? json_object() : NULL;
    if (key)
        json_put_str(params, key, value);
    edits_add(&one, rule, where, params);
    CHECK(edit(m, &one));
    json_free(params);
    edits_free(&one);
}

static struct cross_parent side(int64_t id, const struct made *m, bool listed)
{
    return (struct cross_parent){id, str_c(&m->text), listed ? &m->edits : NULL};
}

static int cross(const struct made *a, const struct made *b, bool listed, struct crossing *c, struct err *e)
{
    struct made base;
    start(&base);
    struct cross_parent pa = side(1, a, listed), pb = side(2, b, listed), pz = side(0, &base, true);
    int r = cross_make(&env, &pa, &pb, &pz, c, e);
    made_free(&base);
    return r;
}

static void edits_of_both(void)
{
    struct made a, b;
    struct crossing c;
    struct err e = {0};
    start(&a);
    start(&b);
    take(&a, "simd", "for i", NULL, NULL);
    take(&a, "flags", "", "flags", "-fopenmp-simd -O2");
    take(&b, "simd", "for j", NULL, NULL);
    take(&b, "flags", "", "flags", "-fopenmp-simd -O3 -funroll-loops");
    CHECK_INT(cross(&a, &b, true, &c, &e), 0);
    CHECK_STR(e.msg, "");
    CHECK_INT(c.how, CROSS_ON_FIRST);
    CHECK_INT(c.took, 2);
    CHECK(strstr(str_c(&c.text), "reduction(+:s)") &&
          strstr(str_c(&c.text), "#pragma omp simd\n    for (int j"));
    // Alternatives exclude each other: the first parent keeps its own.
    CHECK(strstr(str_c(&c.text), "// flags: -fopenmp-simd -O2 -funroll-loops\n") != NULL);
    CHECK(strstr(str_c(&c.words), "cross 1 with 2: simd, flags of 2 on 1") != NULL);
    CHECK_INT(c.edits.v.n, 4);
    crossing_free(&c);
    made_free(&a);
    made_free(&b);
}

static void one_in_the_other(void)
{
    struct made a, b;
    struct crossing c;
    struct err e = {0};
    start(&a);
    start(&b);
    take(&a, "simd", "for i", NULL, NULL);
    take(&b, "simd", "for i", NULL, NULL);
    take(&b, "simd", "for j", NULL, NULL);
    CHECK_INT(cross(&a, &b, true, &c, &e), -1);
    CHECK(strstr(e.msg, "nothing new") != NULL);
    crossing_free(&c);
    struct cross_parent same = side(3, &a, true);
    CHECK_INT(cross_make(&env, &same, &same, &same, &c, &e), -1);
    CHECK(strstr(e.msg, "itself") != NULL);
    crossing_free(&c);
    made_free(&a);
    made_free(&b);
}

static void texts_without_lists(void)
{
    struct made a, b;
    struct crossing c;
    struct err e = {0};
    start(&a);
    start(&b);
    take(&a, "simd", "for i", NULL, NULL);
    str_clear(&b.text);
    str_add(&b.text, kernel);
    char *at = strstr(b.text.s, "x[p * n + q]");
    str_splice(&b.text, (size_t)(at - b.text.s), 12, "x[q + p * n]", 12);
    // Neither has a list: merged. The second has none: the first's edits go onto it.
    CHECK_INT(cross(&a, &b, false, &c, &e), 0);
    CHECK_INT(c.how, CROSS_MERGE);
    CHECK_INT(c.edits.v.n, 0);
    CHECK(strstr(str_c(&c.text), "x[q + p * n]") && strstr(str_c(&c.text), "#pragma omp simd"));
    crossing_free(&c);
    struct made base;
    start(&base);
    struct cross_parent pa = side(1, &a, true), pb = side(2, &b, false), pz = side(0, &base, true);
    CHECK_INT(cross_make(&env, &pa, &pb, &pz, &c, &e), 0);
    CHECK_INT(c.how, CROSS_ON_SECOND);
    CHECK_INT(c.edits.v.n, 1);
    CHECK(strstr(str_c(&c.text), "x[q + p * n]") && strstr(str_c(&c.text), "#pragma omp simd"));
    crossing_free(&c);
    // Both changed the same line by hand.
    at = strstr(a.text.s, "x[p * n + q]");
    str_splice(&a.text, (size_t)(at - a.text.s), 12, "x[(p * n) + q]", 14);
    CHECK_INT(cross(&a, &b, false, &c, &e), -1);
    CHECK(strstr(e.msg, "conflict at 1 places") != NULL);
    crossing_free(&c);
    made_free(&a);
    made_free(&b);
    made_free(&base);
}

static void walk(struct made *m, struct draw d, uint64_t which)
{
    start(m);
    uint64_t steps = 1 + draw_below(d, "steps", which, 4);
    for (uint64_t k = 0; k < steps; k++) {
        moves all = {0};
        struct err e = {0};
        CHECK_INT(moves_list(&env, str_c(&m->text), m->text.len, &all, &e), 0);
        if (all.n)
            edit(m, &all.v[draw_below(d, "pick", 16 * which + k, all.n)].edit);
        moves_free(&all);
    }
}

static bool in_list(const struct edits *l, const struct edit *x)
{
    for (size_t i = 0; i < l->v.n; i++)
        if (edit_same(&l->v.v[i], x))
            return true;
    return false;
}

static bool word_in(const struct edits *l, const char *word, size_t n)
{
    for (size_t i = 0; i < l->v.n; i++)
        for (const char *f = json_str_or(l->v.v[i].params, "flags", ""); *f;
             f += strcspn(f, " "), f += *f == ' ')
            if (strcspn(f, " ") == n && strncmp(f, word, n) == 0)
                return true;
    return false;
}

// Each edit of the child is one of a parent's; a flags edit may only put their flags together.
static bool from_parents(const struct edits *child, const struct edits *a, const struct edits *b)
{
    for (size_t i = 0; i < child->v.n; i++) {
        const struct edit *x = &child->v.v[i];
        if (in_list(a, x) || in_list(b, x))
            continue;
        if (!str_eq(x->rule, "flags"))
            return false;
        for (const char *f = json_str_or(x->params, "flags", ""); *f; f += strcspn(f, " "), f += *f == ' ')
            if (!word_in(a, f, strcspn(f, " ")) && !word_in(b, f, strcspn(f, " ")) &&
                strncmp(f, "-fopenmp-simd", strcspn(f, " ")) != 0) // what rule simd brings
                return false;
    }
    return true;
}

static bool line_in(const char *text, const char *line, size_t n)
{
    for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n')
        if (strcspn(at, "\n") == n && strncmp(at, line, n) == 0)
            return true;
    return false;
}

// Of a replay: the list gives the text again. Of a merge: each line stands in a parent.
static bool explained(const struct crossing *c, const struct made *a, const struct made *b)
{
    if (c->how != CROSS_MERGE) {
        struct str again = {0};
        int r = moves_apply(&env, &c->edits, kernel, strlen(kernel), &again, NULL);
        bool same = r == 0 && str_eq(str_c(&again), str_c(&c->text));
        str_free(&again);
        return same && from_parents(&c->edits, &a->edits, &b->edits);
    }
    for (const char *at = str_c(&c->text); *at; at += strcspn(at, "\n"), at += *at == '\n')
        if (!line_in(str_c(&a->text), at, strcspn(at, "\n")) &&
            !line_in(str_c(&b->text), at, strcspn(at, "\n")))
            return false;
    return true;
}

static void nothing_of_its_own(void)
{
    struct draw d = {20261201, 0};
    int made_n = 0, how[3] = {0};
    for (d.iteration = 0; d.iteration < 150; d.iteration++) {
        struct made a, b;
        struct crossing c;
        struct err e = {0};
        walk(&a, d, 0);
        walk(&b, d, 1);
        if (cross(&a, &b, true, &c, &e) == 0) {
            made_n++;
            how[c.how]++;
            bool good = explained(&c, &a, &b) && !str_eq(str_c(&c.text), str_c(&a.text)) &&
                        !str_eq(str_c(&c.text), str_c(&b.text));
            CHECK(good);
            if (!good)
                printf("# %s\n# how %d\n%s\n", str_c(&c.words), c.how, str_c(&c.text));
        } else {
            CHECK(e.msg[0] != 0);
        }
        crossing_free(&c);
        made_free(&a);
        made_free(&b);
    }
    printf("# %d children: %d on the first, %d on the second, %d merged\n", made_n, how[0], how[1], how[2]);
    CHECK(made_n > 75 && how[0] > 20);
}

int main(void)
{
    task.kernel_func = xstrdup("k");
    T(edits_of_both);
    T(one_in_the_other);
    T(texts_without_lists);
    T(nothing_of_its_own);
    free(task.kernel_func);
    T_END;
}
