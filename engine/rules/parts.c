// Parts of statements: texts with replacements, placing, types.
#include "rules/parts.h"

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
    if (str_eq(a, "int") && str_starts(b, "long"))
        return b;
    if (str_eq(b, "int") && str_starts(a, "long"))
        return a;
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
