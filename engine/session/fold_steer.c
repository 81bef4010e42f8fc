// The fold of steering: what each command changes, and how undo takes it back.
#include "session/fold.h"

#include <inttypes.h>

enum { STEERING_FLAGS = CF_PINNED | CF_KILLED | CF_QUARANTINED | CF_APPROVED | CF_REJECTED };

struct act {
    struct fold *f;
    const json *args;
    struct candidate *c; // where the command is about one
    struct steer *entry; // NULL while only checking
};

struct command {
    const char *name;
    bool needs_id, undoable;
    unsigned set, clear;        // flags of the candidate
    int (*more)(struct act *a); // checks and, with an entry, does; may be NULL
};

static void remember(struct act *a, struct steer_change change)
{
    vec_push(&a->entry->changes, change);
}

static void change_flags(struct act *a, struct candidate *c, unsigned set, unsigned clear)
{
    unsigned now = (c->flags & ~clear) | set;
    if (now == c->flags)
        return;
    remember(a, (struct steer_change){.kind = CHANGE_FLAGS, .id = c->id, .flags = c->flags & STEERING_FLAGS});
    c->flags = now;
}

// Kill and revive with descendants: everything below along first parents.
static int whole_tree(struct act *a, unsigned set, unsigned clear)
{
    if (!a->entry || !json_bool(a->args, "tree", false))
        return 0;
    struct state *st = a->f->st;
    int64_t root = a->c->id, at = a->c->first_child;
    while (at >= 0 && at != root) {
        struct candidate *c = &st->c.v[at];
        change_flags(a, c, set, clear);
        if (c->first_child >= 0) {
            at = c->first_child;
            continue;
        }
        while (at != root && st->c.v[at].next_sibling < 0)
            at = st->c.v[at].parents[0];
        if (at != root)
            at = st->c.v[at].next_sibling;
    }
    return 0;
}

static int do_kill(struct act *a)
{
    return whole_tree(a, CF_KILLED, 0);
}

static int do_revive(struct act *a)
{
    return whole_tree(a, 0, CF_KILLED);
}

static int do_note(struct act *a)
{
    const char *text = json_str(a->args, "text");
    if (!text)
        return fold_bad(a->f, "note without a text");
    if (!a->entry)
        return 0;
    remember(a, (struct steer_change){.kind = CHANGE_NOTE, .id = a->c->id, .text = a->c->note});
    a->c->note = memory_copy(a->f->st->memory, text);
    return 0;
}

static void tag_set(struct state *st, struct candidate *c, const char *tag, bool on)
{
    tag = memory_intern(st->memory, tag);
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference,clang-analyzer-core.StackAddressEscape): checked
    // when the line was validated, or local to this call
    for (size_t i = 0; i < c->tags.n; i++)
        if (c->tags.v[i] == tag) {
            if (!on)
                vec_remove(&c->tags, i);
            return;
        }
    if (on)
        vec_push(&c->tags, tag);
}

static int tag_change(struct act *a, bool on)
{
    const char *tag = json_str(a->args, "tag");
    if (!tag || !*tag)
        return fold_bad(a->f, "tag without a name");
    if (!a->entry)
        return 0;
    size_t before = a->c->tags.n;
    tag_set(a->f->st, a->c, tag, on);
    if (a->c->tags.n != before)
        remember(a, (struct steer_change){.kind = on ? CHANGE_TAG : CHANGE_UNTAG,
                                          .id = a->c->id,
                                          .text = memory_intern(a->f->st->memory, tag)});
    return 0;
}

static int do_tag(struct act *a)
{
    return tag_change(a, true);
}

static int do_untag(struct act *a)
{
    return tag_change(a, false);
}

static int do_hint(struct act *a)
{
    struct state *st = a->f->st;
    const char *text = json_str(a->args, "text");
    int64_t id = json_int(a->args, "id", -1), island = json_int(a->args, "island", -1);
    if (!text || id >= (int64_t)st->c.n || island >= st->islands)
        return fold_bad(a->f, "hint without a text, or for nothing that exists");
    if (!a->entry)
        return 0;
    struct hint h = {.n = a->f->n, .id = id, .island = (int)island, .text = memory_copy(st->memory, text)};
    vec_push(&st->hints, h);
    remember(a, (struct steer_change){.kind = CHANGE_HINT, .id = h.n, .flags = 1});
    return 0;
}

static struct hint *hint_at(struct state *st, int64_t n)
{
    for (size_t i = 0; i < st->hints.n; i++)
        if (st->hints.v[i].n == n)
            return &st->hints.v[i];
    return NULL;
}

static int do_unhint(struct act *a)
{
    struct hint *h = hint_at(a->f->st, json_int(a->args, "hint", -1));
    if (!h)
        return fold_bad(a->f, "unhint names no hint");
    if (a->entry && !h->gone) {
        remember(a, (struct steer_change){.kind = CHANGE_HINT, .id = h->n, .flags = 0});
        h->gone = true;
    }
    return 0;
}

static int do_move(struct act *a)
{
    int64_t island = json_int(a->args, "island", -1);
    if (island < 0 || island >= a->f->st->islands)
        return fold_bad(a->f, "move to island %" PRId64 " of %d", island, a->f->st->islands);
    if (!a->entry)
        return 0;
    remember(a, (struct steer_change){.kind = CHANGE_ISLAND, .id = a->c->id, .island = a->c->island});
    a->c->island = (int)island;
    return 0;
}

static struct setting *setting_of(struct state *st, const char *kind, const char *key)
{
    kind = memory_intern(st->memory, kind);
    key = memory_intern(st->memory, key);
    for (size_t i = 0; i < st->settings.n; i++)
        if (st->settings.v[i].kind == kind && st->settings.v[i].key == key)
            return &st->settings.v[i];
    vec_push(&st->settings, (struct setting){.kind = kind, .key = key, .value = ""});
    return &st->settings.v[st->settings.n - 1];
}

// weight {of, value} and budget {what, value}; a value is a string or a number.
static int set(struct act *a, const char *kind, const char *name_key)
{
    const char *key = json_str(a->args, name_key);
    const json *value = json_get(a->args, "value");
    if (!key || !(json_string(value) || json_is_number(value)))
        return fold_bad(a->f, "%s without %s or value", kind, name_key);
    if (!a->entry)
        return 0;
    struct str text = {0};
    if (json_string(value))
        str_add(&text, json_string(value));
    else
        json_print(value, &text);
    struct setting *s = setting_of(a->f->st, kind, key);
    remember(a, (struct steer_change){
                    .kind = CHANGE_SETTING, .id = -1, .text = s->value, .what = s->kind, .key = s->key});
    s->value = memory_copy(a->f->st->memory, str_c(&text));
    str_free(&text);
    return 0;
}

static int do_weight(struct act *a)
{
    return set(a, "weight", "of");
}

static int do_budget(struct act *a)
{
    return set(a, "budget", "what");
}

static int set_focus(struct act *a, int64_t id)
{
    if (!a->entry)
        return 0;
    remember(a, (struct steer_change){.kind = CHANGE_FOCUS, .id = a->f->st->focus});
    a->f->st->focus = id;
    return 0;
}

static int do_focus(struct act *a)
{
    return set_focus(a, a->c->id);
}

static int do_unfocus(struct act *a)
{
    return set_focus(a, -1);
}

static void take_back(struct state *st, const struct steer_change *ch)
{
    struct candidate *c = ch->id >= 0 && ch->id < (int64_t)st->c.n ? &st->c.v[ch->id] : NULL;
    switch (ch->kind) {
    case CHANGE_FLAGS:
        // NOLINTNEXTLINE(clang-analyzer-core.NullDereference,clang-analyzer-core.StackAddressEscape): checked
        // when the line was validated, or local to this call
        c->flags = (c->flags & ~(unsigned)STEERING_FLAGS) | ch->flags;
        break;
    case CHANGE_ISLAND:
        // NOLINTNEXTLINE(clang-analyzer-core.NullDereference,clang-analyzer-core.StackAddressEscape): checked
        // when the line was validated, or local to this call
        c->island = ch->island;
        break;
    case CHANGE_NOTE:
        // NOLINTNEXTLINE(clang-analyzer-core.NullDereference,clang-analyzer-core.StackAddressEscape): checked
        // when the line was validated, or local to this call
        c->note = ch->text;
        break;
    case CHANGE_TAG:
        tag_set(st, c, ch->text, false);
        break;
    case CHANGE_UNTAG:
        tag_set(st, c, ch->text, true);
        break;
    case CHANGE_HINT:
        hint_at(st, ch->id)->gone = ch->flags;
        break;
    case CHANGE_SETTING:
        setting_of(st, ch->what, ch->key)->value = ch->text;
        break;
    case CHANGE_FOCUS:
        st->focus = ch->id;
        break;
    }
}

static int do_undo(struct act *a)
{
    struct state *st = a->f->st;
    int64_t line = json_int(a->args, "line", -1);
    struct steer *of = NULL;
    for (size_t i = st->steers.n; !of && i-- > 0;)
        if (st->steers.v[i].n == line)
            of = &st->steers.v[i];
    if (!of || of->undone || !of->undoable)
        return fold_bad(a->f, "undo of line %" PRId64 ", which cannot be undone", line);
    if (!a->entry)
        return 0;
    for (size_t i = of->changes.n; i-- > 0;)
        take_back(st, &of->changes.v[i]);
    of->undone = true;
    return 0;
}

static const struct command commands[] = {
    {"pin", true, true, CF_PINNED, 0, NULL},
    {"unpin", true, true, 0, CF_PINNED, NULL},
    {"kill", true, true, CF_KILLED, 0, do_kill},
    {"revive", true, true, 0, CF_KILLED, do_revive},
    {"approve", true, true, CF_APPROVED, CF_QUARANTINED | CF_REJECTED, NULL},
    {"reject", true, true, CF_REJECTED, CF_QUARANTINED | CF_APPROVED, NULL},
    {"note", true, true, 0, 0, do_note},
    {"tag", true, true, 0, 0, do_tag},
    {"untag", true, true, 0, 0, do_untag},
    {"hint", false, true, 0, 0, do_hint},
    {"unhint", false, true, 0, 0, do_unhint},
    {"move", true, true, 0, 0, do_move},
    {"weight", false, true, 0, 0, do_weight},
    {"budget", false, true, 0, 0, do_budget},
    {"focus", true, true, 0, 0, do_focus},
    {"unfocus", false, true, 0, 0, do_unfocus},
    {"undo", false, false, 0, 0, do_undo},
    {"breed", true, false, 0, 0, NULL},
    {"clone", true, false, 0, 0, NULL},
    {"remeasure", true, false, 0, 0, NULL},
    {"explain", true, false, 0, 0, NULL},
    {"cross", false, false, 0, 0, NULL},
    {"edit", true, false, 0, 0, NULL},
    {"step", false, false, 0, 0, NULL},
    {"pause", false, false, 0, 0, NULL},
    {"resume", false, false, 0, 0, NULL},
    {"stop", false, false, 0, 0, NULL},
};

static void push_entry(struct act *a, const struct command *cmd)
{
    struct fold *f = a->f;
    struct state *st = f->st;
    struct str text = {0};
    json_print(a->args, &text);
    struct steer entry = {.n = f->n,
                          .t = f->t,
                          .who = memory_intern(st->memory, json_str(f->event, "who")),
                          .cmd = cmd->name,
                          .args = memory_copy(st->memory, str_c(&text)),
                          .undoable = cmd->undoable};
    str_free(&text);
    a->entry = &entry;
    if (a->c)
        change_flags(a, a->c, cmd->set, cmd->clear);
    if (cmd->more)
        cmd->more(a); // checked before: cannot fail now
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference,clang-analyzer-core.StackAddressEscape): checked
    // when the line was validated, or local to this call
    vec_push(&st->steers, entry);
}

int fold_steer(struct fold *f)
{
    const char *name = json_str(f->event, "cmd");
    struct act a = {.f = f, .args = json_get(f->event, "args")};
    if (!name || !json_is_object(a.args) || !json_str(f->event, "who"))
        return fold_bad(f, "a steer line without who, cmd or args");
    const struct command *cmd = NULL;
    for (size_t i = 0; !cmd && i < countof(commands); i++)
        if (strcmp(commands[i].name, name) == 0)
            cmd = &commands[i];
    if (!cmd)
        return fold_bad(f, "unknown steering command %s", name);
    if (cmd->needs_id && !(a.c = fold_candidate(f, a.args, "id")))
        return -1;
    if (cmd->more && cmd->more(&a) < 0)
        return -1;
    if (!f->check)
        push_entry(&a, cmd);
    return 0;
}
