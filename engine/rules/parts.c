#include "rules/parts.h"

#include <ctype.h>

const struct node *parts_first(const struct node *body)
{
    return body->kind == N_BLOCK ? body->kids : body;
}

const struct node *parts_next(const struct node *body, const struct node *n)
{
    return body->kind == N_BLOCK ? n->next : NULL;
}

bool parts_inner_loop(const struct rule_source *s, const struct loop *l)
{
    (void)s;
    return !node_contains(l->body, N_FOR) && !node_contains(l->body, N_WHILE) &&
           !node_contains(l->body, N_DO);
}

// ---- headers and blocks

void parts_header(const struct rule_source *s, const struct loop *l, struct str *out)
{
    size_t at, len, body_at, body_len;
    node_bytes(&s->t, l->stmt, &at, &len);
    node_bytes(&s->t, l->body, &body_at, &body_len);
    while (body_at > at && strchr(" \t\r\n", s->text[body_at - 1]))
        body_at--;
    str_addn(out, s->text + at, body_at - at);
}

const char *parts_counter_type(const struct loop *l)
{
    const struct ctype *ty = l->type;
    return ty && ctype_is_int(ty) && !ty->is_volatile && !ty->is_static && !ty->is_ref ? ty->base : NULL;
}

void parts_operand(const struct rule_source *s, const struct node *n, struct str *out)
{
    bool plain =
        n->kind == N_IDENT || n->kind == N_NUM || n->kind == N_CALL || n->kind == N_INDEX || n->paren;
    str_add(out, plain ? "" : "(");
    node_text(&s->t, n, out);
    str_add(out, plain ? "" : ")");
}

void parts_runs(const struct rule_source *s, const struct loop *l, struct str *out)
{
    struct str lo = {0};
    parts_operand(s, l->lo, &lo);
    struct subst first = {l->var, lo.s};
    ast_clone(&s->t, l->cond, &first, 1, out);
    str_free(&lo);
}

void parts_at(const struct loop *l, const char *start, const char *u, struct str *out)
{
    if (l->step == 1)
        str_addf(out, "%s + %s", start, u);
    else
        str_addf(out, "%s + %s * %lld", start, u, (long long)l->step);
}

static bool is_signed(const char *type)
{
    static const char *const names[] = {"int",     "long",    "long long", "ptrdiff_t",
                                        "ssize_t", "int32_t", "int64_t"};
    for (size_t i = 0; type && i < countof(names); i++)
        if (str_eq(type, names[i]))
            return true;
    return false;
}

// Can hi - count be formed without wrapping around?
static bool counted(const struct rule_source *s, const struct loop *l)
{
    return l->step == 1 && is_signed(l->type->base) && is_signed(parts_type(s, l->hi_node)) &&
           is_signed(parts_type(s, l->lo));
}

// "i_0 < n && n - i_0 >= U": a whole block is left from start on. The last iteration of it is start + (count
// - 1) * step: below hi, or hi itself where the bound is included.
static void room(const struct loop *l, const char *start, const char *count, const char *hi, struct str *out)
{
    str_addf(out, "%s %s %s && %s - %s ", start, l->inclusive ? "<=" : "<", hi, hi, start);
    if (l->step == 1)
        str_addf(out, ">= %s%s", count, l->inclusive ? " - 1" : "");
    else
        str_addf(out, "%s (%s - 1) * %lld", l->inclusive ? ">=" : ">", count, (long long)l->step);
}

void parts_block(const struct rule_source *s, const struct loop *l, const char *start, const char *count,
                 const char *code, struct str *out)
{
    struct str lo = {0}, hi = {0}, head = {0};
    const char *type = parts_counter_type(l);
    node_text(&s->t, l->lo, &lo);
    parts_operand(s, l->hi_node, &hi);
    if (counted(s, l)) {
        str_addf(&head, "for (%s %s = %s; %s %s %s - (%s - 1); %s += %s) ", type, start, lo.s, start,
                 l->inclusive ? "<=" : "<", hi.s, count, start, count);
    } else {
        str_addf(out, "%s %s = %s;\n", type, start, lo.s);
        str_add(&head, "for (; ");
        room(l, start, count, hi.s, &head);
        if (l->step == 1)
            str_addf(&head, "; %s += %s) ", start, count);
        else
            str_addf(&head, "; %s += %s * %lld) ", start, count, (long long)l->step);
    }
    parts_braces(out, head.s, code);
    str_free(&lo);
    str_free(&hi);
    str_free(&head);
}

void parts_rest_head(const struct rule_source *s, const struct loop *l, const char *start, const char *count,
                     struct str *out)
{
    struct str lo = {0}, hi = {0};
    parts_operand(s, l->lo, &lo);
    parts_operand(s, l->hi_node, &hi);
    str_addf(out, "for (%s%s%s = ", l->declared_inside ? parts_counter_type(l) : "",
             l->declared_inside ? " " : "", l->var);
    if (!counted(s, l))
        str_add(out, start);
    else if (str_eq(lo.s, "0") && !l->inclusive)
        str_addf(out, "%s / %s * %s", hi.s, count, count);
    else
        str_addf(out, "%s + (%s - %s%s) / %s * %s", lo.s, hi.s, lo.s, l->inclusive ? " + 1" : "", count,
                 count);
    str_add(out, "; ");
    node_text(&s->t, l->cond, out);
    str_add(out, "; ");
    node_text(&s->t, l->inc, out);
    str_add(out, ") ");
    str_free(&lo);
    str_free(&hi);
}

void parts_rest(const struct rule_source *s, const struct loop *l, const char *start, const char *count,
                struct str *out)
{
    struct str head = {0}, body = {0};
    parts_rest_head(s, l, start, count, &head);
    parts_body(s, l->body, NULL, &body);
    parts_braces(out, head.s, str_c(&body));
    str_free(&head);
    str_free(&body);
}

void parts_lanes(const char *u, const char *count, bool simd, const char *code, struct str *out)
{
    if (simd)
        str_add(out, "#pragma omp simd\n");
    else
        str_addf(out, "#pragma GCC unroll %d\n", PARTS_UNROLL_MAX);
    char *head = xasprintf("for (int %s = 0; %s < %s; %s++) ", u, u, count, u);
    parts_braces(out, head, code);
    free(head);
}

// ---- loops that rules made

static bool is_knob(const struct rule_source *s, const char *name)
{
    const struct macro *m = ast_macro(&s->t, name);
    if (!m || m->function)
        return false;
    const char *at = s->text + s->ts.t.v[m->token].at;
    char *line = xstrndup(at, strcspn(at, "\n"));
    bool knob = strstr(line, "knob:") != NULL;
    free(line);
    return knob;
}

struct knob_search {
    const struct rule_source *s;
    bool found;
};

static bool search_knob(void *user, struct node *n)
{
    struct knob_search *k = user;
    k->found |= n->kind == N_IDENT && is_knob(k->s, n->name);
    return !k->found;
}

static bool names_knob(const struct rule_source *s, const struct node *n)
{
    struct knob_search k = {s, false};
    if (n)
        node_walk((struct node *)(uintptr_t)n, search_knob, &k);
    return k.found;
}

// Does it begin where an earlier loop over blocks ended?
static bool is_rest(const struct rule_source *s, const struct loop *l)
{
    if (!l->lo || names_knob(s, l->lo))
        return l->lo != NULL;
    for (size_t i = 0; i < s->a.scalars.n && l->lo->kind == N_IDENT; i++) {
        const struct scalar_use *u = &s->a.scalars.v[i];
        if (str_eq(u->name, l->lo->name) && u->kind == ACC_UPDATE && u->stmt && u->stmt->kind == N_FOR)
            return true; // it steps in a for loop's header
    }
    return false;
}

bool parts_made(const struct rule_source *s, const struct loop *l, char why[240])
{
    bool made = names_knob(s, l->hi_node) || names_knob(s, l->inc);
    if (made)
        snprintf(why, 240, "an earlier rewrite made this loop");
    for (const struct loop *up = l; up && !made; up = up->outer)
        if ((made = is_rest(s, up)))
            snprintf(why, 240, "this is what an earlier rewrite left over");
    return made;
}

bool parts_along_memory(const struct rule_source *s, const struct loop *l, char why[240])
{
    bool ok = true;
    for (size_t i = 0; i < s->a.accesses.n && ok; i++) {
        const struct access *x = &s->a.accesses.v[i];
        struct poly stride;
        int64_t by;
        if (!x->loop || !loop_inside(x->loop, l))
            continue;
        ok = !access_stride(x, l, &stride) || poly_is_const(&stride, &by);
        poly_free(&stride);
        if (!ok)
            snprintf(why, 240, "%s is walked across memory: no vector is loaded along %s", x->base, l->var);
    }
    return ok;
}

bool parts_in_macro(const struct rule_source *s, const char *name)
{
    for (size_t i = 0; i < s->t.macros.n; i++) {
        const char *body = s->t.macros.v[i].body;
        size_t n = strlen(name);
        for (const char *at = body; at && (at = strstr(at, name)); at += n) {
            bool left = at == body || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
            if (left && !isalnum((unsigned char)at[n]) && at[n] != '_')
                return true;
        }
    }
    return false;
}

bool parts_header_ok(const struct rule_source *s, const struct loop *l, char why[240])
{
    if (parts_made(s, l, why))
        return false;
    if (parts_in_macro(s, l->var)) {
        snprintf(why, 240, "a macro may use %s", l->var);
        return false;
    }
    if (l->is_while || l->has_break || !l->lo || l->step < 1) {
        snprintf(why, 240, "it is no for loop that counts upwards to its end");
        return false;
    }
    if (!parts_counter_type(l)) {
        snprintf(why, 240, "the type of %s is not a plain integer", l->var);
        return false;
    }
    if (rewrite_has_pragma(s, l->stmt)) {
        snprintf(why, 240, "it has a pragma already");
        return false;
    }
    return true;
}

bool parts_blocks_ok(const struct rule_source *s, const struct loop *l, char why[240])
{
    if (!parts_header_ok(s, l, why))
        return false;
    if (node_contains(l->body, N_PRAGMA)) {
        snprintf(why, 240, "there is a pragma inside it");
        return false;
    }
    return true;
}

bool parts_is_lanes(const struct rule_source *s, const struct node *stmt)
{
    const struct loop *l = stmt->kind == N_FOR ? analysis_loop(&s->a, stmt) : NULL;
    int64_t lo, hi;
    return l && l->step == 1 && parts_inner_loop(s, l) && names_knob(s, l->hi_node) &&
           node_const(&s->t, l->lo, &lo) && lo == 0 && node_const(&s->t, l->hi_node, &hi);
}

struct start_check {
    const struct rule_source *s;
    const struct loop *l;
    bool changes;
};

static bool check_start(void *user, struct node *n)
{
    struct start_check *c = user;
    if (n->kind == N_IDENT)
        c->changes |= scalar_written(&c->s->a, n->name, c->l->body) || str_eq(n->name, c->l->var) ||
                      (!analysis_var(&c->s->a, n->name) && !ast_macro(&c->s->t, n->name));
    else
        c->changes |= n->kind != N_NUM && n->kind != N_BINARY && n->kind != N_CAST && n->kind != N_CHAR &&
                      n->kind != N_SIZEOF && !(n->kind == N_UNARY && (n->op == OP_SUB || n->op == OP_ADD));
    return !c->changes;
}

bool parts_start_fixed(const struct rule_source *s, const struct loop *l)
{
    struct start_check c = {s, l, false};
    node_walk(l->lo, check_start, &c);
    return !c.changes;
}

bool parts_in_simd(const struct rule_source *s, const struct node *stmt)
{
    for (const struct node *n = stmt; n; n = n->up) {
        const struct node *before = NULL;
        for (const struct node *k = n->up ? n->up->kids : NULL; k && k != n; k = k->next) {
            struct str text = {0};
            if (k->kind == N_PRAGMA)
                node_text(&s->t, k, &text);
            before = text.len && strstr(text.s, "simd") ? k : k->kind == N_PRAGMA ? before : NULL;
            str_free(&text);
        }
        if (before)
            return true;
    }
    return false;
}

// ---- texts of statements

// Takes the indentation of the statement's first line off its other lines.
static void dedent(const char *text, const char *indent, struct str *out)
{
    size_t n = strlen(indent);
    while (*text) {
        size_t len = strcspn(text, "\n");
        str_addn(out, text, len);
        text += len;
        if (*text != '\n')
            continue;
        str_addc(out, '\n');
        text++;
        if (strncmp(text, indent, n) == 0)
            text += n;
    }
}

void parts_clone(const struct rule_source *s, const struct node *n, const struct subst *subst, size_t ns,
                 struct str *out)
{
    struct str text = {0};
    char *indent = rewrite_indent(s, n);
    ast_clone(&s->t, n, subst, ns, &text);
    dedent(str_c(&text), indent, out);
    free(indent);
    str_free(&text);
}

// The first swap, in source order, that begins at or after byte `from` and ends by `end`.
static const struct swap *next_swap(const struct rule_source *s, const swaps *w, size_t from, size_t end)
{
    const struct swap *best = NULL;
    size_t best_at = 0;
    for (size_t i = 0; w && i < w->n; i++) {
        size_t at, len;
        node_bytes(&s->t, w->v[i].node, &at, &len);
        if (at >= from && at + len <= end && (!best || at < best_at)) {
            best = &w->v[i];
            best_at = at;
        }
    }
    return best;
}

void parts_swap(const struct rule_source *s, const struct node *n, const swaps *w, struct str *out)
{
    struct str text = {0};
    size_t at, len;
    node_bytes(&s->t, n, &at, &len);
    size_t end = at + len;
    for (const struct swap *p; (p = next_swap(s, w, at, end));) {
        size_t p_at, p_len;
        node_bytes(&s->t, p->node, &p_at, &p_len);
        str_addn(&text, s->text + at, p_at - at);
        str_add(&text, p->text);
        at = p_at + p_len;
    }
    str_addn(&text, s->text + at, end - at);
    char *indent = rewrite_indent(s, n);
    dedent(str_c(&text), indent, out);
    free(indent);
    str_free(&text);
}

void parts_body(const struct rule_source *s, const struct node *body, const swaps *w, struct str *out)
{
    for (const struct node *n = parts_first(body); n; n = parts_next(body, n)) {
        parts_swap(s, n, w, out);
        str_addc(out, '\n');
    }
}

void parts_braces(struct str *out, const char *before, const char *code)
{
    str_addf(out, "%s{\n", before);
    rewrite_lines(out, "    ", code);
    str_add(out, "}\n");
}

void parts_place(const struct rule_source *s, const struct node *stmt, const char *code, struct str *out)
{
    char *indent = rewrite_indent(s, stmt), *deeper = xasprintf("%s    ", indent);
    struct str block = {0};
    str_add(&block, "{\n");
    rewrite_lines(&block, deeper, code);
    str_addf(&block, "%s}", indent);
    rewrite_replace(s, stmt, block.s, out);
    str_free(&block);
    free(indent);
    free(deeper);
}

void parts_replace_two(const struct rule_source *s, const struct node *from, const struct node *to,
                       const char *code, struct str *out)
{
    char *indent = rewrite_indent(s, from);
    struct str lines = {0};
    size_t at, end_at, len;
    node_bytes(&s->t, from, &at, &len);
    node_bytes(&s->t, to, &end_at, &len);
    rewrite_lines(&lines, indent, code);
    // The first line is indented already, the last one's newline is there.
    size_t skip = strncmp(lines.s, indent, strlen(indent)) == 0 ? strlen(indent) : 0;
    str_addn(out, s->text, at);
    str_addn(out, lines.s + skip, lines.len - skip - 1);
    str_addn(out, s->text + end_at + len, s->len - end_at - len);
    str_free(&lines);
    free(indent);
}

void parts_replace(const struct rule_source *s, const struct node *stmt, const char *code, struct str *out)
{
    if (stmt->up && stmt->up->kind == N_BLOCK && token_op(&s->ts, stmt->up->first, OP_LBRACE))
        parts_replace_two(s, stmt, stmt, code, out);
    else
        parts_place(s, stmt, code, out);
}

// ---- types

bool parts_is_float(const char *type)
{
    return str_eq(type, "float") || str_eq(type, "double");
}

static const char *number_type(const char *spelling)
{
    bool hex = strncmp(spelling, "0x", 2) == 0 || strncmp(spelling, "0X", 2) == 0;
    size_t n = strlen(spelling);
    if (strpbrk(spelling, hex ? ".pP" : ".eE"))
        return n && strchr("fF", spelling[n - 1]) ? "float" : strpbrk(spelling, "lL") ? NULL : "double";
    return strpbrk(spelling, "uUlL") ? NULL : "int";
}

static const char *wider(const char *a, const char *b)
{
    if (!a || !b)
        return NULL;
    if (str_eq(a, "double") || str_eq(b, "double"))
        return "double";
    if (str_eq(a, "float") || str_eq(b, "float"))
        return "float";
    return str_eq(a, b) ? a : NULL;
}

// The result type of a function of math.h that call_is_pure() knows.
static const char *call_type(const struct rule_source *s, const struct node *n)
{
    if (n->a->kind != N_IDENT || !call_is_pure(&s->a, n->a->name) || str_eq(n->a->name, "abs"))
        return NULL;
    static const char *const end_in_f[] = {"erf"};
    for (size_t i = 0; i < countof(end_in_f); i++)
        if (str_eq(n->a->name, end_in_f[i]))
            return "double";
    if (str_ends(n->a->name, "l") && !str_eq(n->a->name, "ceil"))
        return NULL;
    return str_ends(n->a->name, "f") ? "float" : "double";
}

static const char *binary_type(const struct rule_source *s, const struct node *n)
{
    switch (n->op) {
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_DIV:
    case OP_MOD:
        return wider(parts_type(s, n->a), parts_type(s, n->b));
    case OP_LT:
    case OP_GT:
    case OP_LE:
    case OP_GE:
    case OP_EQ:
    case OP_NE:
    case OP_LAND:
    case OP_LOR:
        return "int";
    default:
        return NULL;
    }
}

// float, double and int only: smaller integers are promoted, and other names may be anything.
static const char *value_type(const char *base)
{
    static const char *const small[] = {"char",      "signed char",    "unsigned char",     "short",
                                        "short int", "unsigned short", "unsigned short int"};
    for (size_t i = 0; base && i < countof(small); i++)
        if (str_eq(base, small[i]))
            return "int";
    return base;
}

const char *parts_type(const struct rule_source *s, const struct node *n)
{
    switch (n->kind) {
    case N_NUM:
        return number_type(n->name);
    case N_IDENT: {
        const struct macro *m = ast_macro(&s->t, n->name);
        int64_t c;
        if (m)
            return node_const(&s->t, n, &c) ? "int" : NULL;
        const struct var_info *v = analysis_var(&s->a, n->name);
        return v && v->type && !v->shadowed && !v->type->ptr && !v->type->rank && !v->type->is_volatile
                   ? value_type(v->type->base)
                   : NULL;
    }
    case N_INDEX: {
        const struct access *x = parts_access(s, n);
        return x && x->affine ? value_type(x->elem) : NULL;
    }
    case N_CAST:
        return n->type && !n->type->ptr && !n->type->rank ? value_type(n->type->base) : NULL;
    case N_UNARY:
        return n->op == OP_NOT ? "int" : n->op == OP_SUB || n->op == OP_ADD ? parts_type(s, n->a) : NULL;
    case N_BINARY:
        return binary_type(s, n);
    case N_COND:
        return wider(parts_type(s, n->b), parts_type(s, n->c));
    case N_CALL:
        return call_type(s, n);
    default:
        return NULL;
    }
}

const struct access *parts_access(const struct rule_source *s, const struct node *n)
{
    for (size_t i = 0; i < s->a.accesses.n; i++)
        if (s->a.accesses.v[i].node == n)
            return &s->a.accesses.v[i];
    return NULL;
}

// ---- sites

char *parts_name(const struct rule_source *s, const char *name, const char *suffix)
{
    char *want = xasprintf("%s%s", name, suffix), *got = rewrite_name(s, want);
    free(want);
    return got;
}

json *parts_choice(const char *name, const char *const *values)
{
    json *list = json_array(), *all = json_object();
    for (; *values; values++)
        json_push(list, json_new_str(*values));
    json_put(all, name, list);
    return all;
}

const struct loop *parts_loop(const struct rule_source *s, const char *rule, const char *where, struct err *e)
{
    struct node *n = rewrite_find(s, where, e);
    const struct loop *l = n ? analysis_loop(&s->a, n) : NULL;
    if (n && !l)
        err_set(e, ERR_FAIL, "", "%s: %s is no counted loop", rule, where);
    return l;
}
