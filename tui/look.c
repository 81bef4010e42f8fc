#include "tui/look.h"

#include "cmd/show_text.h"

#include <stdio.h>

bool look_counts(const struct candidate *c)
{
    return (c->status == ST_OK || c->id == 0) && c->speedup.value > 0 &&
           !(c->flags & (CF_KILLED | CF_QUARANTINED | CF_REJECTED));
}

struct look look_of(const struct state *st, const struct candidate *c)
{
    const struct candidate *champion = state_champion(st);
    if (c->flags & (CF_KILLED | CF_REJECTED))
        return (struct look){GLYPH_KILLED, SLOT_KILLED};
    if (c->flags & CF_QUARANTINED)
        return (struct look){GLYPH_QUARANTINED, SLOT_QUARANTINED};
    if (champion && champion->id == c->id)
        return (struct look){GLYPH_CHAMPION, SLOT_CHAMPION};
    if (c->flags & CF_ACCEPTED)
        return (struct look){GLYPH_ACCEPTED, SLOT_ACCEPTED};
    if (c->flags & CF_ARCHIVED)
        return (struct look){GLYPH_ARCHIVED, SLOT_ARCHIVED};
    if (c->status == ST_PENDING)
        return (struct look){GLYPH_PENDING, SLOT_PENDING};
    if (c->status == ST_OK)
        return (struct look){GLYPH_OK, SLOT_TEXT};
    return (struct look){GLYPH_FAILED, SLOT_FAILED};
}

void look_speed(const struct state *st, const struct candidate *c, char *out, size_t n)
{
    double v = c->speedup.value;
    if (look_counts(c))
        snprintf(out, n, "%.*fx", v < 10 ? 2 : v < 100 ? 1 : 0, v);
    else
        snprintf(out, n, "%s", show_word(st, c));
}

void look_age(double s, char *out, size_t n)
{
    if (s < 60)
        snprintf(out, n, "now");
    else if (s < 3600)
        snprintf(out, n, "%.0fm", s / 60);
    else if (s < 172800)
        snprintf(out, n, "%.0fh", s / 3600);
    else
        snprintf(out, n, "%.0fd", s / 86400);
}
