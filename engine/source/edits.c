#include "source/edits.h"

#include "source/annot.h"

void edits_free(struct edits *l)
{
    for (size_t i = 0; i < l->v.n; i++) {
        free(l->v.v[i].rule);
        free(l->v.v[i].where);
        json_free(l->v.v[i].params);
    }
    vec_free(&l->v);
}

void edits_add(struct edits *l, const char *rule, const char *where, const json *params)
{
    struct edit x = {xstrdup(rule), xstrdup(where), params ? json_copy(params) : NULL};
    vec_push(&l->v, x);
}

void edits_copy(struct edits *to, const struct edits *from)
{
    for (size_t i = 0; i < from->v.n; i++)
        edits_add(to, from->v.v[i].rule, from->v.v[i].where, from->v.v[i].params);
}

bool edit_same(const struct edit *a, const struct edit *b)
{
    struct str x = {0}, y = {0};
    if (a->params)
        json_print(a->params, &x);
    if (b->params)
        json_print(b->params, &y);
    bool same = str_eq(a->rule, b->rule) && str_eq(a->where, b->where) && str_eq(str_c(&x), str_c(&y));
    str_free(&x);
    str_free(&y);
    return same;
}

json *edits_json(const struct edits *l)
{
    json *a = json_array();
    for (size_t i = 0; i < l->v.n; i++) {
        json *o = json_object();
        json_put_str(o, "rule", l->v.v[i].rule);
        json_put_str(o, "at", l->v.v[i].where);
        if (l->v.v[i].params)
            json_put(o, "with", json_copy(l->v.v[i].params));
        json_push(a, o);
    }
    return a;
}

int edits_from_json(struct edits *l, const json *j, struct err *e)
{
    if (!json_is_array(j))
        return err_set(e, ERR_FAIL, "", "an edit list that is no array");
    for (const json *x = json_first(j); x; x = json_next(x)) {
        if (!json_str(x, "rule") || !json_str(x, "at"))
            return err_set(e, ERR_FAIL, "", "an edit without rule or place");
        edits_add(l, json_str(x, "rule"), json_str(x, "at"), json_get(x, "with"));
    }
    return 0;
}

void edits_words(const struct edits *l, struct str *out)
{
    for (size_t i = 0; i < l->v.n; i++) {
        const struct edit *x = &l->v.v[i];
        str_add(out, x->rule);
        if (*x->where)
            str_addf(out, str_eq(x->rule, "knob") ? " %s" : " at %s", x->where);
        for (const json *p = json_first(x->params); p; p = json_next(p))
            str_addf(out, " %s=%s", json_key(p), json_string(p) ? json_string(p) : "?");
        str_addc(out, '\n');
    }
}

// The flags line replaced, made or taken away.
static int set_flags(const struct edits_env *env, const char *flags, const char *text, size_t len,
                     struct str *out, struct err *e)
{
    struct annots a;
    err_list errors = {0};
    annot_read(&a, text, len, env->path, &errors);
    vec_free(&errors);
    size_t at = 0;
    // From the last to the first, so that offsets hold; the first line takes the new flags.
    struct str s = {0};
    str_addn(&s, text, len);
    for (size_t i = a.flag_lines.n; i-- > 0;) {
        const struct annot_text *l = &a.flag_lines.v[i];
        if (i == 0 && *flags) {
            char *line = xasprintf("// flags: %s", flags);
            str_splice(&s, l->at, l->len, line, strlen(line));
            free(line);
        } else {
            size_t from = l->at, to = l->at + l->len;
            while (from && (s.s[from - 1] == ' ' || s.s[from - 1] == '\t'))
                from--;
            if (to < s.len && s.s[to] == '\n' && (from == 0 || s.s[from - 1] == '\n'))
                to++;
            str_splice(&s, from, to - from, "", 0);
        }
    }
    int r = 0;
    if (a.flag_lines.n == 0 && *flags) {
        struct tokens ts;
        struct func f;
        tokens_read(&ts, text, len);
        r = func_find(&f, &ts, env->path, env->func, func_is_cxx(env->path), e);
        if (r == 0) {
            at = ts.t.v[f.open].at + 1;
            char *line = xasprintf("\n    // flags: %s", flags);
            str_splice(&s, at, 0, line, strlen(line));
            free(line);
            func_free(&f);
        }
        tokens_free(&ts);
    }
    annot_free(&a);
    if (r == 0)
        str_addn(out, str_c(&s), s.len);
    str_free(&s);
    return r;
}

static int apply_rule(const struct edits_env *env, const struct edit *x, const char *text, size_t len,
                      struct str *out, struct err *e)
{
    for (size_t i = 0; i < env->n; i++) {
        struct rule_source s;
        if (!str_eq(env->rules[i]->name, x->rule))
            continue;
        char in[128];
        const char *where = rule_where_split(x->where, env->func, in);
        if (rule_source_open(&s, text, len, env->path, in, env->task, e) < 0)
            return -1;
        int r = rule_fits(env->rules[i], &s)
                    ? env->rules[i]->apply(&s, where, x->params, out, e)
                    : err_set(e, ERR_FAIL, "", "%s is %s", x->rule,
                              s.f.is_global ? "for C, this is a CUDA kernel" : "for CUDA kernels, this is C");
        rule_source_close(&s);
        return r;
    }
    return err_set(e, ERR_FAIL, "", "there is no rule %s", x->rule);
}

static int apply_one(const struct edits_env *env, const struct edit *x, const char *text, size_t len,
                     struct str *out, struct err *e)
{
    if (str_eq(x->rule, "knob"))
        return annot_set_knob(text, len, x->where, json_str_or(x->params, "value", ""), out, e);
    if (str_eq(x->rule, "flags"))
        return set_flags(env, json_str_or(x->params, "flags", ""), text, len, out, e);
    return apply_rule(env, x, text, len, out, e);
}

// Brackets balance and the function is still there with its signature.
static int still_whole(const struct edits_env *env, const char *before, size_t blen, const struct str *after,
                       struct err *e)
{
    struct tokens a, b;
    struct func f = {0}, g = {0};
    struct str x = {0}, y = {0};
    bool cxx = func_is_cxx(env->path);
    tokens_read(&a, before, blen);
    tokens_read(&b, str_c(after), after->len);
    int r = !b.balanced ? err_set(e, ERR_FAIL, "", "the brackets no longer balance") : 0;
    bool old = func_find(&f, &a, env->path, env->func, cxx, NULL) == 0;
    bool new = r == 0 && func_find(&g, &b, env->path, env->func, cxx, e) == 0;
    if (r == 0 && !new)
        r = -1;
    if (old && new) {
        func_signature(&f, &x);
        func_signature(&g, &y);
        if (!str_eq(str_c(&x), str_c(&y)))
            r = err_set(e, ERR_FAIL, "", "the signature would change");
    }
    if (old)
        func_free(&f);
    if (new)
        func_free(&g);
    str_free(&x);
    str_free(&y);
    tokens_free(&a);
    tokens_free(&b);
    return r;
}

int edits_replay(const struct edits *l, const char *base, size_t len, const struct edits_env *env,
                 struct str *out, struct edits *done, edit_refusals *refused, struct err *e)
{
    struct str now = {0};
    int r = 0;
    str_addn(&now, base, len);
    for (size_t i = 0; i < l->v.n && r == 0; i++) {
        struct str next = {0};
        struct err why = {0};
        int one = apply_one(env, &l->v.v[i], str_c(&now), now.len, &next, &why);
        if (one == 0)
            one = still_whole(env, str_c(&now), now.len, &next, &why);
        if (one == 0) {
            str_free(&now);
            now = next;
            if (done)
                edits_add(done, l->v.v[i].rule, l->v.v[i].where, l->v.v[i].params);
            continue;
        }
        str_free(&next);
        if (refused) {
            struct edit_refusal x = {.index = i};
            snprintf(x.why, sizeof x.why, "%.319s", why.msg);
            vec_push(refused, x);
        } else {
            r = -1;
            if (e)
                *e = why;
        }
    }
    if (r == 0)
        str_addn(out, str_c(&now), now.len);
    str_free(&now);
    return r;
}

void edits_cross(const struct edits *a, const struct edits *b, struct edits *out)
{
    edits_copy(out, a);
    for (size_t i = 0; i < b->v.n; i++) {
        bool has = false;
        for (size_t k = 0; k < a->v.n; k++)
            has |= edit_same(&a->v.v[k], &b->v.v[i]);
        if (!has)
            edits_add(out, b->v.v[i].rule, b->v.v[i].where, b->v.v[i].params);
    }
}

void edits_minimise(const struct edits *l, edits_keep *keep, void *user, size_t budget, struct edits *out)
{
    // One edit at a time, until a whole round drops nothing.
    edits_copy(out, l);
    for (bool dropped = true; dropped && budget;) {
        dropped = false;
        for (size_t i = out->v.n; i-- > 0 && budget;) {
            struct edits less = {0};
            for (size_t k = 0; k < out->v.n; k++)
                if (k != i)
                    edits_add(&less, out->v.v[k].rule, out->v.v[k].where, out->v.v[k].params);
            budget--;
            if (keep(user, &less)) {
                edits_free(out);
                *out = less;
                dropped = true;
            } else {
                edits_free(&less);
            }
        }
    }
}
