#include "cuda/plan.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

static int fail(struct str *why, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int fail(struct str *why, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    str_addv(why, fmt, ap);
    va_end(ap);
    return -1;
}

static bool word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

// ---- names

struct scope {
    const struct plan *p;
    const struct task *t;
    const int64_t *dims;
    int depth;
};

static bool lookup(void *user, const char *name, int64_t *value)
{
    struct scope *s = user;
    for (size_t i = 0; i < s->t->dims.n; i++)
        if (s->dims && str_eq(s->t->dims.v[i], name))
            return *value = s->dims[i], true;
    for (size_t i = 0; i < s->t->args.n; i++)
        if (s->t->args.v[i].dir == ARG_VAL && str_eq(s->t->args.v[i].name, name))
            return *value = (int64_t)s->t->args.v[i].value, true;
    for (size_t i = 0; i < s->p->constants.n; i++) {
        const struct plan_constant *c = &s->p->constants.v[i];
        struct expr *x = NULL;
        if (!str_eq(c->name, name) || c->twice || s->depth > 16 || expr_parse(c->text, &x, NULL, NULL) < 0)
            continue;
        s->depth++;
        int r = expr_eval(x, lookup, s, value, NULL);
        s->depth--;
        expr_free(x);
        return r == 0;
    }
    return false;
}

static int eval(const struct plan *p, const struct task *t, const int64_t *dims, const struct expr *x,
                int64_t otherwise, int64_t *out, struct str *why)
{
    struct scope s = {p, t, dims, 0};
    struct err e = {0};
    *out = otherwise;
    if (x && expr_eval(x, lookup, &s, out, &e) < 0)
        return fail(why, "%s: %s", expr_text(x), e.msg);
    return 0;
}

static void add_constant(struct plan *p, const char *name, size_t n, const char *text, size_t len)
{
    while (len && isspace((unsigned char)text[len - 1]))
        len--;
    if (!n || !len)
        return;
    struct plan_constant c = {xstrndup(name, n), xstrndup(text, len), false};
    for (size_t i = 0; i < p->constants.n; i++) {
        struct plan_constant *old = &p->constants.v[i];
        if (str_eq(old->name, c.name)) {
            old->twice |= !str_eq(old->text, c.text);
            free(c.name);
            free(c.text);
            return;
        }
    }
    vec_push(&p->constants, c);
}

static size_t upto_comment(const char *s, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++)
        if (s[i] == '/' && (s[i + 1] == '/' || s[i + 1] == '*'))
            return i;
    return n;
}

// #define NAME text, and const(expr) int NAME = text; on one line.
static void read_constant(struct plan *p, const char *line, size_t n)
{
    n = upto_comment(line, n);
    const char *end = line + n, *at = line;
    while (at < end && isspace((unsigned char)*at))
        at++;
    if (at < end && *at == '#') {
        do
            at++;
        while (at < end && isspace((unsigned char)*at));
        if (end - at < 8 || strncmp(at, "define", 6) != 0)
            return;
        at += 6;
        while (at < end && isspace((unsigned char)*at))
            at++;
        const char *name = at;
        while (at < end && word(*at))
            at++;
        size_t len = (size_t)(at - name);
        if (at < end && *at == '(') // takes parameters
            return;
        while (at < end && isspace((unsigned char)*at))
            at++;
        add_constant(p, name, len, at, (size_t)(end - at));
        return;
    }
    const char *eq = memchr(at, '=', (size_t)(end - at)), *semi = memchr(at, ';', (size_t)(end - at));
    bool constant = memmem(at, (size_t)(end - at), "const", 5) && memmem(at, (size_t)(end - at), "int", 3);
    if (!constant || !eq || !semi || semi < eq)
        return;
    const char *name_end = eq;
    while (name_end > at && isspace((unsigned char)name_end[-1]))
        name_end--;
    const char *name = name_end;
    while (name > at && word(name[-1]))
        name--;
    eq++;
    while (eq < semi && isspace((unsigned char)*eq))
        eq++;
    add_constant(p, name, (size_t)(name_end - name), eq, (size_t)(semi - eq));
}

// ---- launches

// The end of an item of a list: the next comma outside of brackets, or `end`.
static const char *item_end(const char *at, const char *end)
{
    int depth = 0;
    for (; at < end; at++) {
        depth += *at == '(' || *at == '[' || *at == '{';
        depth -= *at == ')' || *at == ']' || *at == '}';
        if (*at == ',' && depth == 0)
            return at;
    }
    return end;
}

static char *trimmed(const char *at, const char *end)
{
    while (at < end && isspace((unsigned char)*at))
        at++;
    while (end > at && isspace((unsigned char)end[-1]))
        end--;
    return xstrndup(at, (size_t)(end - at));
}

static int parse_expr(const char *text, struct expr **out, struct str *why)
{
    struct err e = {0};
    return expr_parse(text, out, NULL, &e) < 0 ? fail(why, "%s: %s", text, e.msg) : 0;
}

// "N", "dim3(a, b)" or "(a, b, c)".
static int parse_dim3(const char *text, struct expr *out[3], struct str *why)
{
    size_t n = strlen(text);
    const char *at = text, *end = text + n;
    bool dim3 = str_starts(text, "dim3");
    if (dim3)
        at += 4;
    while (at < end && isspace((unsigned char)*at))
        at++;
    bool list = dim3 || (*at == '(' && item_end(at + 1, end - 1) < end - 1 && end[-1] == ')');
    if (!list)
        return parse_expr(text, &out[0], why);
    if (at == end || *at != '(' || end[-1] != ')')
        return fail(why, "%s: write dim3(x, y, z)", text);
    at++;
    end--;
    for (int i = 0; at < end; i++) {
        const char *stop = item_end(at, end);
        char *one = trimmed(at, stop);
        int r = i < 3 ? parse_expr(one, &out[i], why) : fail(why, "%s has more than three sizes", text);
        free(one);
        if (r < 0)
            return -1;
        at = stop + (stop < end);
    }
    return 0;
}

static int parse_arg(struct plan *p, const struct task *t, const char *text, struct plan_arg *a,
                     struct str *why)
{
    int buffer = 0;
    for (size_t i = 0; i < t->args.n; i++) {
        bool value = t->args.v[i].dir == ARG_DIM || t->args.v[i].dir == ARG_VAL;
        if (str_eq(t->args.v[i].name, text)) {
            *a = (struct plan_arg){.kind = value ? PLAN_ARG : PLAN_BUFFER, .index = value ? (int)i : buffer};
            return 0;
        }
        buffer += !value;
    }
    for (size_t i = 0; i < p->scratch.n; i++)
        if (str_eq(p->scratch.v[i].name, text)) {
            *a = (struct plan_arg){.kind = PLAN_SCRATCH, .index = (int)i};
            return 0;
        }
    char *end;
    double x = strtod(text, &end);
    if (end != text && strpbrk(text, ".eE") && (*end == 0 || str_eq(end, "f") || str_eq(end, "F"))) {
        *a = (struct plan_arg){.kind = PLAN_FLOAT, .value = x, .twice = *end == 0};
        return 0;
    }
    *a = (struct plan_arg){.kind = PLAN_INT};
    return parse_expr(text, &a->expr, why);
}

static int parse_config(struct plan_launch *l, const char *at, const char *end, struct str *why)
{
    int i = 0, r = 0;
    for (; at < end && r == 0; i++) {
        const char *stop = item_end(at, end);
        char *one = trimmed(at, stop);
        if (i < 2)
            r = parse_dim3(one, i ? l->block : l->grid, why);
        else if (i == 2)
            r = parse_expr(one, &l->shared, why);
        else
            r = str_eq(one, "0") ? 0 : fail(why, "a stream of its own (%s) is not for a candidate", one);
        free(one);
        at = stop + (stop < end);
    }
    return r == 0 && i < 2 ? fail(why, "a launch needs blocks and threads: k<<<blocks, threads>>>(...)") : r;
}

static int parse_launch(struct plan *p, const struct task *t, const char *text, struct str *why)
{
    const char *open = strstr(text, "<<<"), *close = open ? strstr(open, ">>>") : NULL,
               *args = close ? strchr(close, '(') : NULL, *end = args ? strrchr(args, ')') : NULL;
    if (!end)
        return fail(why, "'%.120s' is no launch: write name<<<blocks, threads, shared>>>(arguments)", text);
    if (p->launches.n == PLAN_MOST)
        return fail(why, "more than %d launches", PLAN_MOST);
    vec_push(&p->launches, (struct plan_launch){.name = trimmed(text, open)});
    struct plan_launch *l = &p->launches.v[p->launches.n - 1];
    if (parse_config(l, open + 3, close, why) < 0)
        return -1;
    for (const char *at = args + 1; at < end;) {
        const char *stop = item_end(at, end);
        char *one = trimmed(at, stop);
        struct plan_arg a = {0};
        int r = *one ? parse_arg(p, t, one, &a, why) : fail(why, "an empty argument in '%.120s'", text);
        free(one);
        vec_push(&l->args, a);
        if (r < 0)
            return -1;
        at = stop + (stop < end);
    }
    return 0;
}

// "tmp f32[T,H]"
static int parse_scratch(struct plan *p, const char *text, struct str *why)
{
    const char *at = text, *open = strchr(text, '['), *end = open ? strchr(open, ']') : NULL;
    while (word(*at))
        at++;
    char *type = end ? trimmed(at, open) : NULL;
    struct plan_scratch s = {0};
    if (!end || at == text || p->scratch.n == PLAN_MOST || dtype_parse(type, &s.type) < 0) {
        free(type);
        return fail(why, "'%.120s' is no scratch buffer: write name type[size], such as tmp f32[N]", text);
    }
    free(type);
    s.name = trimmed(text, at);
    int r = 0;
    for (at = open + 1; at < end && s.rank < TASK_MAX_RANK && r == 0; s.rank++) {
        const char *stop = item_end(at, end);
        char *one = trimmed(at, stop);
        r = parse_expr(one, &s.dim[s.rank], why);
        free(one);
        at = stop + (stop < end);
    }
    vec_push(&p->scratch, s);
    return r;
}

// The text behind `// key:` on a line, malloc'ed, or NULL.
static char *comment(const char *line, size_t n, const char *key)
{
    const char *at = memmem(line, n, "//", 2), *end = line + n;
    if (!at)
        return NULL;
    for (at += 2; at < end && isspace((unsigned char)*at);)
        at++;
    size_t len = strlen(key);
    if ((size_t)(end - at) <= len || strncmp(at, key, len) != 0 || at[len] != ':')
        return NULL;
    return trimmed(at + len + 1, end);
}

static int read_lines(struct plan *p, const struct task *t, const char *source, bool launches,
                      struct str *why)
{
    int r = 0;
    for (const char *at = source; *at && r == 0;) {
        size_t n = strcspn(at, "\n");
        char *text = comment(at, n, launches ? "launch" : "scratch");
        if (text)
            r = launches ? parse_launch(p, t, text, why) : parse_scratch(p, text, why);
        else if (!launches)
            read_constant(p, at, n);
        free(text);
        at += n + (at[n] == '\n');
    }
    return r;
}

int plan_read(struct plan *p, const struct task *t, const char *source, struct str *why)
{
    *p = (struct plan){0};
    for (size_t i = 0; i < t->define.n; i++) {
        const char *eq = strchr(t->define.v[i], '=');
        size_t n = eq ? (size_t)(eq - t->define.v[i]) : strlen(t->define.v[i]);
        add_constant(p, t->define.v[i], n, eq ? eq + 1 : "1", eq ? strlen(eq + 1) : 1);
    }
    if (read_lines(p, t, source, false, why) < 0 || read_lines(p, t, source, true, why) < 0)
        return -1;
    for (size_t i = 0; i < t->launches.n && (i > 0 || p->launches.n == 0); i++)
        if (parse_launch(p, t, t->launches.v[i], why) < 0)
            return -1;
    if (p->launches.n == 0)
        return fail(why,
                    "nothing says how it is launched: add a line such as // launch: "
                    "%s<<<ceildiv(N, 256), 256>>>(...)",
                    t->kernel_func);
    return 0;
}

static void free_exprs(struct expr **x, int n)
{
    for (int i = 0; i < n; i++)
        expr_free(x[i]);
}

void plan_free(struct plan *p)
{
    for (size_t i = 0; i < p->launches.n; i++) {
        struct plan_launch *l = &p->launches.v[i];
        free(l->name);
        free_exprs(l->grid, 3);
        free_exprs(l->block, 3);
        expr_free(l->shared);
        for (size_t k = 0; k < l->args.n; k++)
            expr_free(l->args.v[k].expr);
        vec_free(&l->args);
    }
    for (size_t i = 0; i < p->scratch.n; i++) {
        free(p->scratch.v[i].name);
        free_exprs(p->scratch.v[i].dim, TASK_MAX_RANK);
    }
    for (size_t i = 0; i < p->constants.n; i++) {
        free(p->constants.v[i].name);
        free(p->constants.v[i].text);
    }
    vec_free(&p->launches);
    vec_free(&p->scratch);
    vec_free(&p->constants);
}

int plan_int(const struct plan *p, const struct task *t, const struct plan_arg *a, const int64_t *dims,
             int64_t *out)
{
    struct str why = {0};
    int r = eval(p, t, dims, a->expr, 0, out, &why);
    str_free(&why);
    return r;
}

static int eval_launch(const struct plan *p, const struct task *t, const int64_t *dims,
                       const struct plan_launch *l, struct launch_at *out, struct str *why)
{
    static const char axis[] = "xyz";
    for (int i = 0; i < 3; i++) {
        int64_t g, b;
        if (eval(p, t, dims, l->grid[i], 1, &g, why) < 0 || eval(p, t, dims, l->block[i], 1, &b, why) < 0)
            return -1;
        if (g < 0 || g > INT32_MAX || b < 1 || b > INT32_MAX)
            return fail(why, "%s would be launched with %lld blocks of %lld threads in %c", l->name,
                        (long long)g, (long long)b, axis[i]);
        out->grid[i] = (unsigned)g;
        out->block[i] = (unsigned)b;
    }
    int64_t shared;
    if (eval(p, t, dims, l->shared, 0, &shared, why) < 0)
        return -1;
    if (shared < 0 || shared > INT32_MAX)
        return fail(why, "%s would be launched with %lld bytes of shared memory", l->name, (long long)shared);
    out->shared = (size_t)shared;
    return 0;
}

int plan_eval(const struct plan *p, const struct task *t, const int64_t *dims, struct plan_at *out,
              struct str *why)
{
    *out = (struct plan_at){.n = (int)p->launches.n, .nscratch = (int)p->scratch.n};
    for (int i = 0; i < out->n; i++)
        if (eval_launch(p, t, dims, &p->launches.v[i], &out->launch[i], why) < 0)
            return -1;
    for (int i = 0; i < out->nscratch; i++) {
        const struct plan_scratch *s = &p->scratch.v[i];
        out->scratch[i] = 1;
        for (int k = 0; k < s->rank; k++) {
            int64_t n;
            if (eval(p, t, dims, s->dim[k], 1, &n, why) < 0)
                return -1;
            if (n < 0 || __builtin_mul_overflow(out->scratch[i], n, &out->scratch[i]) ||
                out->scratch[i] > (int64_t)1 << 36)
                return fail(why, "the scratch buffer %s is too large", s->name);
        }
    }
    return 0;
}

int plan_fits(const struct launch_at *l, const char *name, const struct kernel_report *r,
              const struct launch_limits *m, struct str *why)
{
    static const char axis[] = "xyz";
    long long threads = (long long)l->block[0] * l->block[1] * l->block[2];
    if (threads > m->max_threads)
        return fail(why, "%s asks for %lld threads a block (%u x %u x %u); this GPU has %d", name, threads,
                    l->block[0], l->block[1], l->block[2], m->max_threads);
    for (int i = 0; i < 3; i++) {
        if (l->block[i] > (unsigned)m->max_block[i])
            return fail(why, "%s asks for %u threads in %c; this GPU has %d", name, l->block[i], axis[i],
                        m->max_block[i]);
        if (l->grid[i] > (unsigned)m->max_grid[i])
            return fail(why, "%s asks for %u blocks in %c; this GPU has %d", name, l->grid[i], axis[i],
                        m->max_grid[i]);
    }
    size_t fixed = r ? (size_t)r->shared_bytes : 0, total = l->shared + fixed;
    if (total > (size_t)m->shared_optin)
        return fail(why, "%s needs %zu bytes of shared memory (%zu dynamic, %zu static); a block has %d",
                    name, total, l->shared, fixed, m->shared_optin);
    // Registers are given to warps in steps of 8 a thread.
    if (!r)
        return 0;
    long long regs = (r->registers + 7) / 8 * 8 * ((threads + 31) / 32 * 32);
    if (regs > m->regs_block)
        return fail(why,
                    "%s needs %lld registers a block (%d x %lld threads); a block has %d: fewer threads, or "
                    "__launch_bounds__(%lld)",
                    name, regs, r->registers, threads, m->regs_block, threads);
    return 0;
}
