// The text of a tiled product. Warps are 4 by 8 threads; a thread's sums come in groups of four rows and four
// columns, so that its reads of shared memory are 16 bytes and free of conflicts.
#include "rules/cuda_matmul.h"

struct writer {
    const struct rule_source *s;
    const struct mm *m;
    char *tile[2], *at0[2], *own[2], *k0, *sums, *tid, *threads;
};

static const char *var(const struct writer *w, int f)
{
    return w->m->p.axis[w->m->f[f].axis].var;
}

static void bound(const struct writer *w, int f, struct str *out)
{
    const struct node *b = w->m->p.axis[w->m->f[f].axis].bound;
    bool plain = b->kind == N_IDENT || b->kind == N_NUM || b->paren;
    str_add(out, plain ? "" : "(");
    node_text(&w->s->t, b, out);
    str_add(out, plain ? "" : ")");
}

static bool is_one(const struct poly *p)
{
    int64_t c;
    return poly_is_const(p, &c) && c == 1;
}

static void term(const struct poly *p, const char *x, bool wide, struct str *out)
{
    if (is_one(p)) {
        str_add(out, x);
        return;
    }
    str_addf(out, wide ? "(size_t)(" : "(");
    poly_print(p, out);
    str_addf(out, ") * (%s)", x);
}

// A[stride * i + kstride * k + rest]
static void element(const struct mm_factor *f, const char *i, const char *k, struct str *out)
{
    int64_t c;
    str_addf(out, "%s[", f->base);
    term(&f->stride, i, f->wide, out);
    str_add(out, " + ");
    term(&f->kstride, k, f->wide, out);
    if (!poly_is_const(&f->rest, &c) || c != 0) {
        str_add(out, " + ");
        poly_print(&f->rest, out);
    }
    str_addc(out, ']');
}

// The factor's value with its access replaced.
static void converted(const struct writer *w, const struct mm_factor *f, const char *access, struct str *out)
{
    swaps x = {0};
    vec_push(&x, ((struct swap){f->access, access}));
    parts_swap(w->s, f->value, &x, out);
    vec_free(&x);
}

static void guarded(const struct writer *w, int f, const char *i, const char *k, struct str *out)
{
    struct str at = {0};
    const struct mm_factor *x = &w->m->f[f];
    element(x, i, k, &at);
    str_addf(out, "%s < ", i);
    bound(w, f, out);
    str_addf(out, " && %s < ", k);
    node_text(&w->s->t, w->m->k->hi_node, out);
    str_add(out, " ? ");
    converted(w, x, at.s, out);
    str_add(out, " : 0");
    str_free(&at);
}

// Can four neighbours be read at once, along k or along the tile's rows?
static bool vectors(const struct writer *w, int f)
{
    const struct mm_factor *x = &w->m->f[f];
    return x->value == x->access && str_eq(x->type, "float") && str_eq(w->m->type, "float") &&
           (is_one(&x->stride) || is_one(&x->kstride));
}

// "const bool vec = ...": the block's part of the array begins on 16 bytes and its rows do.
static void alignment(const struct writer *w, int f, struct str *out)
{
    const struct mm_factor *x = &w->m->f[f];
    struct str at = {0};
    element(x, is_one(&x->stride) ? w->at0[f] : "0", "0", &at);
    str_addf(out, "const bool %s_16 = (size_t)&%s %% 16 == 0 && (", w->tile[f], at.s);
    poly_print(is_one(&x->stride) ? &x->kstride : &x->stride, out);
    str_add(out, ") % 4 == 0;\n");
    str_free(&at);
}

static void load_scalar(const struct writer *w, int f, const char *size, const char *bk, struct str *out)
{
    const struct mm_factor *x = &w->m->f[f];
    struct str in = {0}, value = {0}, inner = {0};
    bool along_k = is_one(&x->kstride);
    guarded(w, f, "i_", "k_", &value);
    str_addf(&in, "const int at_ = e_ + %s;\n", w->tid);
    str_addf(&in,
             along_k ? "const int r_ = at_ / %s, c_ = at_ %% %s;\n"
                     : "const int c_ = at_ / %s, r_ = at_ %% %s;\n",
             along_k ? bk : size, along_k ? bk : size);
    str_addf(&in, "const int i_ = %s + r_, k_ = %s + c_;\n", w->at0[f], w->k0);
    str_addf(&in, "if (at_ < %s * %s)\n    %s[c_][r_] = %s;\n", size, bk, w->tile[f], value.s);
    str_addf(&inner, "for (int e_ = 0; e_ < %s * %s; e_ += %s) ", size, bk, w->threads);
    str_add(out, "#pragma unroll\n");
    parts_braces(out, inner.s, in.s);
    str_free(&in);
    str_free(&value);
    str_free(&inner);
}

static void load_vector(const struct writer *w, int f, const char *size, const char *bk, struct str *out)
{
    const struct mm_factor *x = &w->m->f[f];
    struct str in = {0}, at = {0}, head = {0}, edge = {0}, value = {0};
    bool along_k = !is_one(&x->stride);
    element(x, "i_", "k_", &at);
    str_addf(&in, "const int at_ = (e_ + %s) * 4;\n", w->tid);
    str_addf(&in,
             along_k ? "const int r_ = at_ / %s, c_ = at_ %% %s;\n"
                     : "const int c_ = at_ / %s, r_ = at_ %% %s;\n",
             along_k ? bk : size, along_k ? bk : size);
    str_addf(&in, "const int i_ = %s + r_, k_ = %s + c_;\nif (at_ >= %s * %s)\n    break;\n", w->at0[f],
             w->k0, size, bk);
    str_addf(&in, "float4 v4_ = make_float4(0, 0, 0, 0);\nif (%s_16 && i_ + %s < ", w->tile[f],
             along_k ? "0" : "3");
    bound(w, f, &in);
    str_addf(&in, " && k_ + %s < ", along_k ? "3" : "0");
    node_text(&w->s->t, w->m->k->hi_node, &in);
    str_addf(&in, ") {\n    v4_ = *(const float4 *)&%s;\n} else {\n", at.s);
    for (int u = 0; u < 4; u++) {
        char i[16], k[16];
        snprintf(i, sizeof i, along_k ? "i_" : "i_ + %d", u);
        snprintf(k, sizeof k, along_k ? "k_ + %d" : "k_", u);
        str_clear(&value);
        guarded(w, f, i, k, &value);
        str_addf(&in, "    v4_.%c = %s;\n", "xyzw"[u], value.s);
    }
    str_add(&in, "}\n");
    if (along_k)
        for (int u = 0; u < 4; u++)
            str_addf(&in, "%s[c_ + %d][r_] = v4_.%c;\n", w->tile[f], u, "xyzw"[u]);
    else
        str_addf(&in, "*(float4 *)&%s[c_][r_] = v4_;\n", w->tile[f]);
    str_addf(&head, "for (int e_ = 0; e_ < %s * %s / 4; e_ += %s) ", size, bk, w->threads);
    str_add(out, "#pragma unroll\n");
    parts_braces(out, head.s, in.s);
    str_free(&in);
    str_free(&at);
    str_free(&head);
    str_free(&edge);
    str_free(&value);
}

static void steps(const struct writer *w, struct str *out)
{
    char *const *n = w->m->names;
    struct str in = {0}, head = {0};
    str_addf(&in, "%s a_[%s], b_[%s];\n", w->m->type, n[MM_TM], n[MM_TN]);
    for (int f = 0; f < 2; f++) {
        const char *t = n[f ? MM_TN : MM_TM], *b = n[f ? MM_BN : MM_BM];
        str_addf(&in,
                 "#pragma unroll\nfor (int u_ = 0; u_ < %s; u_++)\n    %c_[u_] = %s[kk_][u_ / 4 * (4 * %s / "
                 "%s) + %s + u_ %% 4];\n",
                 t, "ab"[f], w -> tile[f], b, t, w -> own[f]);
    }
    str_addf(&in,
             "#pragma unroll\nfor (int u_ = 0; u_ < %s; u_++)\n    #pragma unroll\n    for (int v_ = 0; v_ < "
             "%s; v_++)\n"
             "        %s[u_][v_] += a_[u_] * b_[v_];\n",
             n[MM_TM], n[MM_TN], w->sums);
    str_addf(&head, "for (int kk_ = 0; kk_ < %s; kk_++) ", n[MM_BK]);
    str_add(out, "#pragma unroll\n");
    parts_braces(out, head.s, in.s);
    str_free(&in);
    str_free(&head);
}

static void main_loop(const struct writer *w, struct str *out)
{
    char *const *n = w->m->names;
    struct str in = {0}, head = {0};
    for (int f = 0; f < 2; f++) {
        const char *size = n[f ? MM_BN : MM_BM];
        vectors(w, f) ? load_vector(w, f, size, n[MM_BK], &in) : load_scalar(w, f, size, n[MM_BK], &in);
    }
    str_add(&in, "__syncthreads();\n");
    steps(w, &in);
    str_add(&in, "__syncthreads();\n");
    str_addf(&head, "for (int %s = 0; %s < ", w->k0, w->k0);
    node_text(&w->s->t, w->m->k->hi_node, &head);
    str_addf(&head, "; %s += %s) ", w->k0, n[MM_BK]);
    parts_braces(out, head.s, in.s);
    str_free(&in);
    str_free(&head);
}

// What becomes of each sum: the source's statements, with i, j and the sum's name given their values.
static void epilogue(const struct writer *w, struct str *out)
{
    char *const *n = w->m->names;
    struct str in = {0}, act = {0}, test = {0}, inner = {0};
    for (int f = 0; f < 2; f++) {
        const char *t = n[f ? MM_TN : MM_TM], *b = n[f ? MM_BN : MM_BM], *u = f ? "v_" : "u_";
        str_addf(&in, "const %s %s = %s + %s / 4 * (4 * %s / %s) + %s + %s %% 4;\n",
                 w->m->p.axis[w->m->f[f].axis].type, var(w, f), w->at0[f], u, b, t, w->own[f], u);
        str_addf(&test, f ? " && %s < " : "if (%s < ", var(w, f));
        bound(w, f, &test);
    }
    str_add(&test, ") ");
    for (const struct node *x = w->m->p.body; x; x = x->next) {
        if (x == w->m->k->stmt) {
            str_addf(&act, "%s += %s[u_][v_];\n", w->m->acc, w->sums);
            continue;
        }
        parts_swap(w->s, x, NULL, &act);
        str_addc(&act, '\n');
    }
    parts_braces(&in, test.s, act.s);
    str_clear(&test);
    str_addf(&test, "for (int v_ = 0; v_ < %s; v_++) ", n[MM_TN]);
    str_add(&inner, "#pragma unroll\n");
    parts_braces(&inner, test.s, in.s);
    str_clear(&test);
    str_addf(&test, "for (int u_ = 0; u_ < %s; u_++) ", n[MM_TM]);
    str_add(out, "#pragma unroll\n");
    parts_braces(out, test.s, inner.s);
    str_free(&in);
    str_free(&act);
    str_free(&test);
    str_free(&inner);
}

// Where the thread is: warps side by side, and within a warp 4 rows of 8.
static void places(const struct writer *w, struct str *out)
{
    char *const *n = w->m->names;
    str_addf(out, "const int %s = threadIdx.x, lane_ = %s %% 32, warp_ = %s / 32, wide_ = %s / %s / 8;\n",
             w->tid, w->tid, w->tid, n[MM_BN], n[MM_TN]);
    str_addf(
        out,
        "const int %s = (warp_ / wide_ * 4 + lane_ / 8) * 4, %s = (warp_ %% wide_ * 8 + lane_ %% 8) * 4;\n",
        w->own[0], w->own[1]);
    str_addf(out, "const int %s = blockIdx.y * %s, %s = blockIdx.x * %s;\n", w->at0[0], n[MM_BM], w->at0[1],
             n[MM_BN]);
}

void mm_write(const struct rule_source *s, const struct mm *m, struct str *out)
{
    struct writer w = {.s = s, .m = m};
    char *const *n = m->names;
    for (int f = 0; f < 2; f++) {
        w.tile[f] = parts_name(s, m->f[f].base, f && str_eq(m->f[0].base, m->f[1].base) ? "_s2" : "_s");
        w.at0[f] = parts_name(s, m->p.axis[m->f[f].axis].var, "_0");
        w.own[f] = parts_name(s, m->p.axis[m->f[f].axis].var, "_t");
    }
    w.k0 = parts_name(s, m->k->var, "_0");
    w.sums = parts_name(s, m->acc, "_t");
    w.tid = rewrite_name(s, "tid");
    w.threads = xasprintf("(%s / %s) * (%s / %s)", n[MM_BM], n[MM_TM], n[MM_BN], n[MM_TN]);
    str_addf(out, "__shared__ __align__(16) %s %s[%s][%s + 4], %s[%s][%s + 4];\n", m->type, w.tile[0],
             n[MM_BK], n[MM_BM], w.tile[1], n[MM_BK], n[MM_BN]);
    places(&w, out);
    for (int f = 0; f < 2; f++)
        if (vectors(&w, f))
            alignment(&w, f, out);
    str_addf(out, "%s %s[%s][%s] = {};\n", m->type, w.sums, n[MM_TM], n[MM_TN]);
    main_loop(&w, out);
    epilogue(&w, out);
    char *all[] = {w.tile[0], w.tile[1], w.at0[0], w.at0[1], w.own[0],
                   w.own[1],  w.k0,      w.sums,   w.tid,    w.threads};
    for (size_t i = 0; i < countof(all); i++)
        free(all[i]);
}
