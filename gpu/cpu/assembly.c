#include "cpu/assembly.h"

#include "base/mem.h"
#include "base/vec.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct targets { // addresses that jumps go to, ascending once sorted
    VEC(uint64_t) v;
};

static size_t line_length(const char *s)
{
    return strcspn(s, "\n");
}

// "    1118:\tvaddps ..." -> the instruction; NULL where the line is none.
static const char *instruction(const char *line, uint64_t *address)
{
    char *end;
    if (*line != ' ')
        return NULL;
    *address = strtoull(line, &end, 16);
    if (end == line || end[0] != ':' || end[1] != '\t')
        return NULL;
    return end + 2;
}

// "1130 <k+0x20>" where an operand names a place in the code.
static bool place(const char *operand, size_t n, uint64_t *address, const char **name, size_t *len)
{
    char *end;
    if (!n || !isxdigit((unsigned char)*operand))
        return false;
    *address = strtoull(operand, &end, 16);
    const char *open = end, *close = memchr(operand, '>', n);
    if (open[0] != ' ' || open[1] != '<' || !close || open > close)
        return false;
    *name = open + 2;
    *len = (size_t)(close - *name);
    return true;
}

static const char *operands(const char *insn, size_t n)
{
    size_t k = strcspn(insn, " \t\n");
    k += strspn(insn + k, " \t");
    return insn + (k < n ? k : n);
}

// Start-up code that every shared object has, and padding.
static bool is_startup(const char *name, size_t n)
{
    static const char *const names[] = {"deregister_tm_clones", "register_tm_clones", "__do_global_dtors_aux",
                                        "frame_dummy", "_start"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == n && memcmp(names[i], name, n) == 0)
            return true;
    return false;
}

static bool is_padding(const char *insn)
{
    static const char *const words[] = {"data16 ", "cs ", "xchg   %ax,%ax"};
    while (str_starts(insn, words[0]) || str_starts(insn, words[1]))
        insn += str_starts(insn, words[0]) ? strlen(words[0]) : strlen(words[1]);
    return str_starts(insn, "nop") || str_starts(insn, words[2]);
}

static int by_address(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// The number of a label, from 1; 0 where nothing jumps there.
static size_t label_of(const struct targets *t, uint64_t address)
{
    size_t low = 0, high = t->v.n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (t->v.v[mid] < address)
            low = mid + 1;
        else
            high = mid;
    }
    return low < t->v.n && t->v.v[low] == address ? low + 1 : 0;
}

static void find_targets(const char *body, struct targets *t)
{
    uint64_t at, to, first = UINT64_MAX, last = 0;
    const char *name;
    size_t len, kept = 0;
    for (const char *line = body; *line && *line != '\n'; line += line_length(line), line += *line == '\n') {
        const char *insn = instruction(line, &at);
        if (!insn)
            continue;
        first = at < first ? at : first;
        last = at;
        if (*insn != 'j')
            continue;
        size_t n = line_length(insn);
        const char *o = operands(insn, n);
        if (place(o, n - (size_t)(o - insn), &to, &name, &len))
            vec_push(&t->v, to);
    }
    if (t->v.n)
        qsort(t->v.v, t->v.n, sizeof *t->v.v, by_address);
    for (size_t i = 0; i < t->v.n; i++) // a jump to another function keeps that one's name
        if (t->v.v[i] >= first && t->v.v[i] <= last && (!kept || t->v.v[kept - 1] != t->v.v[i]))
            t->v.v[kept++] = t->v.v[i];
    t->v.n = kept;
}

// Operands with what differs from build to build taken out: "0xe8d(%rip),%xmm1   # 2004 <table>" says
// "table(%rip),%xmm1", or const where the place has no name of its own.
static void put_operands(const char *s, size_t n, struct str *out)
{
    const char *hash = memchr(s, '#', n), *rip = memmem(s, n, "(%rip)", 6);
    size_t used = hash ? (size_t)(hash - s) : n;
    while (used && (s[used - 1] == ' ' || s[used - 1] == '\t'))
        used--;
    if (!rip || !hash || rip >= hash) {
        str_addn(out, s, used);
        return;
    }
    const char *start = rip, *open = memchr(hash, '<', n - (size_t)(hash - s)),
               *close = open ? memchr(open, '>', n - (size_t)(open - s)) : NULL;
    while (start > s && (isalnum((unsigned char)start[-1]) || start[-1] == '-'))
        start--;
    str_addn(out, s, (size_t)(start - s));
    if (close && !memchr(open, '+', (size_t)(close - open)) && !memchr(open, '-', (size_t)(close - open)))
        str_addn(out, open + 1, (size_t)(close - open - 1));
    else
        str_add(out, "const");
    str_addn(out, rip, used - (size_t)(rip - s));
}

static void put_instruction(const struct targets *t, const char *insn, struct str *out)
{
    size_t n = line_length(insn), word = strcspn(insn, " \t\n"), len;
    const char *o = operands(insn, n), *name;
    uint64_t to;
    str_add(out, "    ");
    str_addn(out, insn, word);
    if (o < insn + n) {
        for (size_t k = word; k < 12; k++)
            str_addc(out, ' ');
        str_addc(out, ' ');
        if (!place(o, n - (size_t)(o - insn), &to, &name, &len))
            put_operands(o, n - (size_t)(o - insn), out);
        else if (label_of(t, to))
            str_addf(out, "L%zu", label_of(t, to));
        else
            str_addn(out, name, len);
    }
    str_addc(out, '\n');
}

// body is the line after a function's head; returns the line after its end.
static const char *put_function(const char *name, size_t n, const char *body, struct str *out)
{
    struct targets t = {0};
    uint64_t at;
    bool wanted = !is_startup(name, n);
    const char *line = body;
    find_targets(body, &t);
    if (wanted)
        str_addf(out, "%s%.*s:\n", out->len ? "\n" : "", (int)n, name);
    for (; *line && *line != '\n'; line += line_length(line), line += *line == '\n') {
        const char *insn = instruction(line, &at);
        if (!wanted || !insn)
            continue;
        if (label_of(&t, at))
            str_addf(out, "L%zu:\n", label_of(&t, at));
        if (!is_padding(insn))
            put_instruction(&t, insn, out);
    }
    vec_free(&t.v);
    return line;
}

void assembly_x86(const char *listing, struct str *out)
{
    static const char section[] = "Disassembly of section ";
    bool text = true;
    for (const char *line = listing; *line; line += *line == '\n') {
        const char *end = line + line_length(line), *open = memchr(line, '<', (size_t)(end - line));
        if (str_starts(line, section))
            text = str_starts(line + strlen(section), ".text");
        if (text && isxdigit((unsigned char)*line) && open && end - open > 2 && end[-1] == ':' &&
            end[-2] == '>' && *end == '\n')
            end = put_function(open + 1, (size_t)(end - open) - 3, end + 1, out);
        line = end;
    }
}

void assembly_sass(const char *listing, struct str *out)
{
    for (const char *line = listing; *line; line += *line == '\n') {
        const char *end = line + line_length(line), *p = line;
        size_t from = out->len;
        bool directive = p[strspn(p, " \t")] == '.' && end > line && end[-1] != ':';
        while (p < end && !directive) {
            const char *close = p[0] == '/' && p[1] == '*' ? strstr(p, "*/") : NULL;
            if (close && close < end) { // an address or the bytes of an instruction
                p = close + 2;
                continue;
            }
            str_addc(out, *p == '\t' ? ' ' : *p);
            p++;
        }
        while (out->len > from && out->s[out->len - 1] == ' ')
            str_splice(out, out->len - 1, 1, "", 0);
        if (out->len > from)
            str_addc(out, '\n');
        line = end;
    }
}
