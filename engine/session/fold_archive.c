// The fold of acceptances, the archive and migration.
#include "session/fold.h"

#include <inttypes.h>
#include <math.h>

static bool commit_ok(const struct state *st, const json *c)
{
    unsigned char id[20];
    int64_t who = json_int(c, "id", -1);
    if (who < 0 || who >= (int64_t)st->c.n || !fold_hex(json_str(c, "commit"), id) ||
        !json_str(c, "message") || !json_str(c, "author") || !json_str(c, "mail") ||
        !json_is_number(json_get(c, "time")))
        return false;
    for (const json *p = json_first(json_get(c, "parents")); p; p = json_next(p))
        if (!fold_hex(json_string(p), id))
            return false;
    return true;
}

static void take_commit(struct state *st, const json *j, bool main)
{
    struct state_memory *m = st->memory;
    const json *parents = json_get(j, "parents");
    struct commit c = {.id = json_int(j, "id", -1),
                       .hex = memory_copy(m, json_str(j, "commit")),
                       .nparents = (int)json_count(parents),
                       .message = memory_copy(m, json_str(j, "message")),
                       .author = memory_intern(m, json_str(j, "author")),
                       .mail = memory_intern(m, json_str(j, "mail")),
                       .time = json_int(j, "time", 0),
                       .stone = json_bool(j, "stone", false),
                       .main = main};
    if (c.nparents)
        c.parents = memory_alloc(m, (size_t)c.nparents * sizeof *c.parents);
    int i = 0;
    for (const json *p = json_first(parents); p; p = json_next(p))
        // NOLINTNEXTLINE(clang-analyzer-core.NullDereference,clang-analyzer-core.StackAddressEscape): checked
        // when the line was validated, or local to this call
        c.parents[i++] = memory_intern(m, json_string(p));
    vec_push(&st->commits, c);
    if (!main) {
        st->c.v[c.id].commit = c.hex;
        st->c.v[c.id].flags |= c.stone ? CF_STONE : 0;
    }
}

static void count_accept(struct state *st, const struct candidate *c, double gain)
{
    stats_list *lists[] = {&st->ops, &st->proposers, &st->models};
    const char *names[] = {c->op, c->proposer, c->model};
    for (size_t k = 0; k < countof(lists); k++)
        for (size_t i = 0; i < lists[k]->n; i++)
            if (lists[k]->v[i].name == names[k]) {
                lists[k]->v[i].accepted++;
                lists[k]->v[i].log_gain += gain > 0 ? log(gain) : 0;
            }
}

int fold_accept(struct fold *f)
{
    struct state *st = f->st;
    struct candidate *c = fold_candidate(f, f->event, "id");
    if (!c)
        return -1;
    if (c->flags & CF_ACCEPTED)
        return fold_bad(f, "%" PRId64 " is accepted twice", c->id);
    const json *commits = json_get(f->event, "commits"), *main = json_get(f->event, "main"), *last = NULL;
    for (const json *x = json_first(commits); x; x = json_next(x)) {
        if (!commit_ok(st, x))
            return fold_bad(f, "acceptance of %" PRId64 " has a malformed commit", c->id);
        last = x;
    }
    if (!last || json_int(last, "id", -1) != c->id || (main && !commit_ok(st, main)))
        return fold_bad(f, "acceptance of %" PRId64 " does not end in its commit", c->id);
    if (json_int(f->event, "over", -1) >= (int64_t)st->c.n)
        return fold_bad(f, "acceptance of %" PRId64 " names no incumbent", c->id);
    if (f->check)
        return 0;
    for (const json *x = json_first(commits); x; x = json_next(x))
        take_commit(st, x, false);
    if (main)
        take_commit(st, main, true);
    c->flags |= CF_ACCEPTED;
    c->flags &= ~(unsigned)CF_STONE;
    c->accepted_line = f->n;
    vec_push(&st->accepted, c->id);
    if (json_bool(f->event, "champion", false)) {
        c->flags |= CF_CHAMPION;
        vec_push(&st->champions, c->id);
    }
    if (c->id > 0)
        count_accept(st, c, json_num(f->event, "gain", 0));
    return 0;
}

static bool holds_cell(const struct state *st, int64_t id)
{
    for (size_t i = 0; i < st->cells.n; i++)
        if (st->cells.v[i].id == id)
            return true;
    return false;
}

static void left_cell(struct state *st, int64_t id)
{
    if (holds_cell(st, id))
        return;
    st->c.v[id].flags &= ~(unsigned)CF_ARCHIVED;
    st->c.v[id].flags |= CF_EVICTED;
}

static void take_cell(struct state *st, struct candidate *c, int island, const int bins[STATE_CELL])
{
    struct cell *cell = NULL;
    for (size_t i = 0; !cell && i < st->cells.n; i++)
        if (st->cells.v[i].island == island && memcmp(st->cells.v[i].bins, bins, sizeof cell->bins) == 0)
            cell = &st->cells.v[i];
    if (!cell) {
        vec_push(&st->cells, (struct cell){.island = island, .id = -1});
        cell = &st->cells.v[st->cells.n - 1];
        memcpy(cell->bins, bins, sizeof cell->bins);
    }
    int64_t old = cell->id;
    cell->id = c->id;
    if (old >= 0 && old != c->id)
        left_cell(st, old);
    c->flags |= CF_ARCHIVED;
    c->flags &= ~(unsigned)CF_EVICTED;
}

static int island_of(struct fold *f, const char *key, int *island)
{
    int64_t i = json_int(f->event, key, 0);
    if (i < 0 || i >= f->st->islands)
        return fold_bad(f, "island %" PRId64 " of %d", i, f->st->islands);
    *island = (int)i;
    return 0;
}

static int place(struct fold *f, const char *island_key)
{
    struct candidate *c = fold_candidate(f, f->event, "id");
    int island = 0, bins[STATE_CELL];
    if (!c || island_of(f, island_key, &island) < 0 || fold_cell(f, bins) < 0)
        return -1;
    if (!f->check)
        take_cell(f->st, c, island, bins);
    return 0;
}

int fold_archive(struct fold *f)
{
    return place(f, "island");
}

int fold_migrate(struct fold *f)
{
    return place(f, "to");
}

int fold_evict(struct fold *f)
{
    struct candidate *c = fold_candidate(f, f->event, "id");
    int island = 0;
    if (!c || island_of(f, "island", &island) < 0)
        return -1;
    if (f->check)
        return 0;
    struct state *st = f->st;
    for (size_t i = st->cells.n; i-- > 0;)
        if (st->cells.v[i].id == c->id && st->cells.v[i].island == island)
            vec_remove(&st->cells, i);
    left_cell(st, c->id);
    return 0;
}
