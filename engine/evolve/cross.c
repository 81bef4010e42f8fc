#include "evolve/cross.h"

#include "base/task.h"
#include "evolve/genes.h"
#include "source/annot.h"
#include "source/merge.h"

// ---- flags: an edit sets the whole line, so what is replayed is the union

static void words_of(const char *line, strings *out)
{
    while (*line) {
        size_t n = strcspn(line, " ");
        if (n)
            vec_push(out, xstrndup(line, n));
        line += n + (line[n] == ' ');
    }
}

static void words_free(strings *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->v[i]);
    vec_free(l);
}

// The flags of the text with those of the other's edit that no alternative of theirs excludes. NULL where
// nothing is added.
static char *joined_flags(const char *path, const char *text, size_t len, const char *line)
{
    struct annots a;
    err_list errors = {0};
    strings other = {0};
    struct str all = {0};
    bool more = false;
    annot_read(&a, text, len, path, &errors);
    vec_free(&errors);
    for (size_t i = 0; i < a.flags.n; i++)
        str_addf(&all, "%s%s", i ? " " : "", a.flags.v[i]);
    words_of(line, &other);
    for (size_t i = 0; i < other.n; i++) {
        bool skip = false;
        for (size_t k = 0; k < a.flags.n && !skip; k++)
            skip = str_eq(a.flags.v[k], other.v[i]) || genes_exclude(a.flags.v[k], other.v[i]);
        if (!skip)
            str_addf(&all, "%s%s", all.len ? " " : "", other.v[i]);
        more |= !skip;
    }
    words_free(&other);
    annot_free(&a);
    char *result = more ? xstrdup(str_c(&all)) : NULL;
    str_free(&all);
    return result;
}

// ---- replaying

static bool has_edit(const struct edits *l, const struct edit *x)
{
    for (size_t i = 0; l && i < l->v.n; i++)
        if (edit_same(&l->v.v[i], x))
            return true;
    return false;
}

// Is the edit overruled by a later one of its own list? Only the last value of a knob and the last flags
// count.
static bool overruled(const struct edits *l, size_t i)
{
    const struct edit *x = &l->v.v[i];
    if (!str_eq(x->rule, "knob") && !str_eq(x->rule, "flags"))
        return false;
    for (size_t k = i + 1; k < l->v.n; k++)
        if (str_eq(l->v.v[k].rule, x->rule) && str_eq(l->v.v[k].where, x->where))
            return true;
    return false;
}

// One edit of the other parent on the child so far: 1 taken, 0 without effect, -1 refused.
static int take(const struct moves_env *env, const struct edit *x, struct crossing *c)
{
    struct edits one = {0};
    struct str next = {0};
    struct err e = {0};
    if (str_eq(x->rule, "flags")) {
        char *flags =
            joined_flags(env->path, str_c(&c->text), c->text.len, json_str_or(x->params, "flags", ""));
        if (!flags)
            return 0;
        json *params = json_object();
        json_put_str(params, "flags", flags);
        edits_add(&one, "flags", "", params);
        json_free(params);
        free(flags);
    } else {
        edits_add(&one, x->rule, x->where, x->params);
    }
    int r = moves_apply(env, &one, str_c(&c->text), c->text.len, &next, &e);
    bool same = r == 0 && str_eq(str_c(&next), str_c(&c->text));
    if (r == 0 && !same) {
        edits_copy(&c->edits, &one);
        str_free(&c->text);
        c->text = next;
    } else {
        str_free(&next);
    }
    edits_free(&one);
    return r < 0 ? -1 : !same;
}

// `from`'s edits on `to`. false where none of them can be taken or the child is one of the two.
static bool replay(const struct moves_env *env, const struct cross_parent *to,
                   const struct cross_parent *from, struct crossing *c)
{
    if (!from->edits)
        return false;
    str_clear(&c->text);
    edits_free(&c->edits);
    c->edits = (struct edits){0};
    c->took = c->refused = 0;
    str_add(&c->text, to->text);
    if (to->edits)
        edits_copy(&c->edits, to->edits);
    struct str what = {0};
    for (size_t i = 0; i < from->edits->v.n; i++) {
        const struct edit *x = &from->edits->v.v[i];
        if (has_edit(to->edits, x) || overruled(from->edits, i))
            continue;
        int r = take(env, x, c);
        c->took += r > 0;
        c->refused += r < 0;
        if (r > 0)
            str_addf(&what, "%s%s", what.len ? ", " : "", str_eq(x->rule, "knob") ? x->where : x->rule);
    }
    bool good = c->took && !str_eq(str_c(&c->text), from->text) && !str_eq(str_c(&c->text), to->text);
    if (good) {
        str_clear(&c->words);
        str_addf(&c->words, "cross %lld with %lld: %s of %lld on %lld", (long long)to->id,
                 (long long)from->id, str_c(&what), (long long)from->id, (long long)to->id);
        if (c->refused)
            str_addf(&c->words, " (%zu refused)", c->refused);
    }
    str_free(&what);
    return good;
}

// ---- merging

static int merge(const struct cross_parent *a, const struct cross_parent *b, const struct cross_parent *base,
                 struct crossing *c, struct err *e)
{
    const struct cross_parent *all[] = {base, a, b};
    struct merge_side s[3];
    struct merge_result m = {0};
    for (int i = 0; i < 3; i++)
        s[i] = (struct merge_side){all[i]->text, strlen(all[i]->text), ""};
    int r = merge_texts(&s[0], &s[1], &s[2], &m, e);
    if (r == 0 && m.conflicts.n)
        r = err_set(e, ERR_FAIL, "Cross them by hand: e in the workbench's question.",
                    "%lld and %lld cannot be crossed: no edit of one applies to the other, and their texts "
                    "conflict at %zu places against ancestor %lld",
                    (long long)a->id, (long long)b->id, m.conflicts.n, (long long)base->id);
    else if (r == 0 && (str_eq(str_c(&m.text), a->text) || str_eq(str_c(&m.text), b->text)))
        r = err_set(e, ERR_FAIL, "",
                    "crossing %lld with %lld gives nothing new: one has all that the other has",
                    (long long)a->id, (long long)b->id);
    if (r == 0) {
        c->how = CROSS_MERGE;
        str_clear(&c->text);
        str_clear(&c->words);
        edits_free(&c->edits);
        c->edits = (struct edits){0};
        c->took = c->refused = 0;
        str_addn(&c->text, m.text.s, m.text.len);
        str_addf(&c->words, "cross %lld with %lld: texts merged at %lld", (long long)a->id, (long long)b->id,
                 (long long)base->id);
    }
    merge_result_free(&m);
    return r;
}

int cross_make(const struct moves_env *env, const struct cross_parent *a, const struct cross_parent *b,
               const struct cross_parent *ancestor, struct crossing *out, struct err *e)
{
    *out = (struct crossing){.how = CROSS_ON_FIRST};
    if (a->id == b->id)
        return err_set(e, ERR_USAGE, "", "a candidate cannot be crossed with itself");
    if (replay(env, a, b, out))
        return 0;
    out->how = CROSS_ON_SECOND;
    if (replay(env, b, a, out))
        return 0;
    return merge(a, b, ancestor, out, e);
}

void crossing_free(struct crossing *c)
{
    str_free(&c->text);
    str_free(&c->words);
    edits_free(&c->edits);
    *c = (struct crossing){0};
}
