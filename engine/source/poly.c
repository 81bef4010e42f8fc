// Polynomials with integer coefficients over names: what subscripts and bounds are compared as.
#include "source/analysis.h"

void poly_free(struct poly *p)
{
    vec_free(&p->t);
    p->bad = false;
}

void poly_copy(struct poly *to, const struct poly *from)
{
    *to = (struct poly){.bad = from->bad};
    for (size_t i = 0; i < from->t.n; i++)
        vec_push(&to->t, from->t.v[i]);
}

static int order(const struct poly_term *a, const struct poly_term *b)
{
    if (a->n != b->n)
        return b->n - a->n;
    for (int i = 0; i < a->n; i++) {
        int c = strcmp(a->atom[i], b->atom[i]);
        if (c)
            return c;
    }
    return 0;
}

static void add_term(struct poly *p, const struct poly_term *t)
{
    size_t i = 0;
    while (i < p->t.n && order(&p->t.v[i], t) < 0)
        i++;
    if (i < p->t.n && order(&p->t.v[i], t) == 0) {
        p->bad |= __builtin_add_overflow(p->t.v[i].coef, t->coef, &p->t.v[i].coef);
        if (p->t.v[i].coef == 0)
            vec_remove(&p->t, i);
        return;
    }
    if (t->coef == 0)
        return;
    vec_push(&p->t, *t);
    memmove(p->t.v + i + 1, p->t.v + i, (p->t.n - 1 - i) * sizeof *p->t.v);
    p->t.v[i] = *t;
}

void poly_const(struct poly *p, int64_t c)
{
    *p = (struct poly){0};
    add_term(p, &(struct poly_term){.coef = c});
}

void poly_atom(struct poly *p, const char *name)
{
    *p = (struct poly){0};
    add_term(p, &(struct poly_term){.coef = 1, .n = 1, .atom = {name}});
}

void poly_add(struct poly *p, const struct poly *q, int64_t scale)
{
    p->bad |= q->bad;
    for (size_t i = 0; i < q->t.n; i++) {
        struct poly_term t = q->t.v[i];
        p->bad |= __builtin_mul_overflow(t.coef, scale, &t.coef);
        add_term(p, &t);
    }
}

void poly_mul(struct poly *p, const struct poly *q)
{
    struct poly out = {.bad = p->bad || q->bad};
    for (size_t i = 0; i < p->t.n; i++)
        for (size_t k = 0; k < q->t.n; k++) {
            struct poly_term t = p->t.v[i];
            const struct poly_term *u = &q->t.v[k];
            out.bad |= __builtin_mul_overflow(t.coef, u->coef, &t.coef) || t.n + u->n > POLY_MAX_DEGREE;
            for (int x = 0; x < u->n && t.n < POLY_MAX_DEGREE; x++) {
                int at = t.n++;
                while (at > 0 && strcmp(t.atom[at - 1], u->atom[x]) > 0) {
                    t.atom[at] = t.atom[at - 1];
                    at--;
                }
                t.atom[at] = u->atom[x];
            }
            add_term(&out, &t);
        }
    poly_free(p);
    *p = out;
}

bool poly_equal(const struct poly *a, const struct poly *b)
{
    if (a->bad || b->bad || a->t.n != b->t.n)
        return false;
    for (size_t i = 0; i < a->t.n; i++)
        if (order(&a->t.v[i], &b->t.v[i]) != 0 || a->t.v[i].coef != b->t.v[i].coef)
            return false;
    return true;
}

bool poly_is_const(const struct poly *p, int64_t *c)
{
    if (p->bad || p->t.n > 1 || (p->t.n == 1 && p->t.v[0].n > 0))
        return false;
    *c = p->t.n ? p->t.v[0].coef : 0;
    return true;
}

static int power_of(const struct poly_term *t, const char *name)
{
    int n = 0;
    for (int i = 0; i < t->n; i++)
        n += strcmp(t->atom[i], name) == 0;
    return n;
}

bool poly_split(const struct poly *p, const char *name, struct poly *stride, struct poly *rest)
{
    *stride = (struct poly){.bad = p->bad};
    *rest = (struct poly){.bad = p->bad};
    for (size_t i = 0; i < p->t.n; i++) {
        struct poly_term t = p->t.v[i];
        int power = power_of(&t, name);
        if (power > 1)
            return false;
        if (power == 0) {
            add_term(rest, &t);
            continue;
        }
        int k = 0;
        while (strcmp(t.atom[k], name) != 0)
            k++;
        memmove(t.atom + k, t.atom + k + 1, (size_t)(t.n - k - 1) * sizeof *t.atom);
        t.n--;
        add_term(stride, &t);
    }
    return !p->bad;
}

bool poly_uses(const struct poly *p, const char *name)
{
    for (size_t i = 0; i < p->t.n; i++)
        if (power_of(&p->t.v[i], name))
            return true;
    return p->bad;
}

void poly_subst(struct poly *p, const char *name, const struct poly *by)
{
    struct poly stride, rest;
    if (!poly_split(p, name, &stride, &rest)) {
        p->bad = true;
    } else {
        poly_mul(&stride, by);
        poly_add(&rest, &stride, 1);
        poly_free(p);
        poly_copy(p, &rest);
    }
    poly_free(&stride);
    poly_free(&rest);
}

void poly_print(const struct poly *p, struct str *out)
{
    if (p->t.n == 0)
        str_addc(out, '0');
    for (size_t i = 0; i < p->t.n; i++) {
        const struct poly_term *t = &p->t.v[i];
        long long c = t->coef;
        if (i)
            str_add(out, c < 0 ? " - " : " + ");
        else if (c < 0)
            str_addc(out, '-');
        c = c < 0 ? -c : c;
        if (c != 1 || t->n == 0)
            str_addf(out, "%lld%s", c, t->n ? " * " : "");
        for (int k = 0; k < t->n; k++)
            str_addf(out, "%s%s", k ? " * " : "", t->atom[k]);
    }
}
