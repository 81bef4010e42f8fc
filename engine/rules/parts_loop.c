// Parts of loops: headers, blocks of iterations, what earlier rewrites made.
#include "rules/parts.h"

#include "base/task.h"

#include <ctype.h>

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
    // Where the range is empty the counter ends elsewhere: that must not be seen.
    return l->step == 1 && is_signed(l->type->base) && is_signed(parts_type(s, l->hi_node)) &&
           is_signed(parts_type(s, l->lo)) &&
           (l->declared_inside || scalar_live_out(&s->a, l->var, l->stmt).v == TRI_NO);
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

// The value of p where names are the task's dims; false where one is not, or it overflows.
static bool value_at(const struct task *task, const struct task_shape *shape, const struct poly *p,
                     int64_t *value)
{
    int64_t sum = 0;
    for (size_t i = 0; i < p->t.n; i++) {
        int64_t term = p->t.v[i].coef;
        for (int k = 0; k < p->t.v[i].n; k++) {
            size_t d = 0;
            while (d < task->dims.n && !str_eq(task->dims.v[d], p->t.v[i].atom[k]))
                d++;
            if (d == task->dims.n || __builtin_mul_overflow(term, shape->dims[d], &term))
                return false;
        }
        if (__builtin_add_overflow(sum, term, &sum))
            return false;
    }
    *value = sum;
    return !p->bad;
}

bool parts_short(const struct rule_source *s, const struct loop *l, int64_t least, char why[240])
{
    int64_t most = -1, n;
    struct poly trip;
    bool known = loop_trip_poly(l, &trip);
    for (size_t i = 0; s->task && i < s->task->shapes.n && known; i++) {
        if (!s->task->shapes.v[i].bench)
            continue;
        known = value_at(s->task, &s->task->shapes.v[i], &trip, &n);
        most = known && n > most ? n : most;
    }
    poly_free(&trip);
    bool few = known && most >= 0 && most < least;
    if (few)
        snprintf(why, 240, "it runs at most %lld times in the shapes that are timed", (long long)most);
    return few;
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

// Does the macro's text name anything? Numbers have letters only inside.
static bool has_names(const char *body)
{
    for (const char *at = body; *at; at++)
        if ((isalpha((unsigned char)*at) || *at == '_') &&
            (at == body || !(isalnum((unsigned char)at[-1]) || at[-1] == '.')))
            return true;
    return false;
}

struct clean { // what no rule can see through
    const struct rule_source *s;
    char *why;
    bool bad;
};

static bool check_clean(void *user, struct node *n)
{
    struct clean *c = user;
    if (n->kind != N_IDENT)
        return true;
    const struct macro *m = ast_macro(&c->s->t, n->name);
    const struct var_info *v = analysis_var(&c->s->a, n->name);
    int64_t value;
    if (m && !m->function && !node_const(&c->s->t, n, &value) && (m->opaque || has_names(m->body)))
        snprintf(c->why, 240, "the macro %s may hide something", n->name);
    else if (!m && v && v->type && v->type->is_volatile)
        snprintf(c->why, 240, "%s is volatile", n->name);
    else
        return true;
    c->bad = true;
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
    const struct var_info *counter = analysis_var(&s->a, l->var);
    if (counter && counter->shadowed) {
        snprintf(why, 240, "%s is declared twice", l->var);
        return false;
    }
    struct clean c = {s, why, false};
    node_walk(l->stmt, check_clean, &c);
    return !c.bad;
}

bool parts_only_math(const struct rule_source *s, const struct loop *l, char why[240])
{
    for (size_t i = 0; i < s->a.calls.n; i++)
        if (s->a.calls.v[i].loop && loop_inside(s->a.calls.v[i].loop, l) && !s->a.calls.v[i].pure) {
            snprintf(why, 240, "it calls %s, which may do anything",
                     *s->a.calls.v[i].name ? s->a.calls.v[i].name : "a function");
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
