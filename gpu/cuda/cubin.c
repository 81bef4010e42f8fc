#include "cuda/cubin.h"

#include "base/hash.h"
#include "base/str.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

struct view {
    const unsigned char *p;
    size_t n;
    const Elf64_Shdr *sections;
    size_t count;
    const char *names;
    size_t names_n;
};

static bool inside(const struct view *v, uint64_t at, uint64_t n)
{
    return at <= v->n && n <= v->n - at;
}

// The NUL-terminated string at offset `at` of a table, or "" where it would leave the table.
static const char *string_at(const char *table, size_t n, size_t at)
{
    return at < n && memchr(table + at, 0, n - at) ? table + at : "";
}

static int open_view(struct view *v, const void *image, size_t n, struct err *e)
{
    memset(v, 0, sizeof *v);
    v->p = image;
    v->n = n;
    Elf64_Ehdr h;
    if (n < sizeof h)
        return err_set(e, ERR_FAIL, "", "the cubin is too short");
    memcpy(&h, image, sizeof h);
    if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64 ||
        h.e_shentsize != sizeof(Elf64_Shdr) || h.e_shoff % 8 != 0 ||
        !inside(v, h.e_shoff, (uint64_t)h.e_shnum * sizeof(Elf64_Shdr)) || h.e_shstrndx >= h.e_shnum)
        return err_set(e, ERR_FAIL, "", "the cubin is no ELF file that we can read");
    v->sections = (const void *)(v->p + h.e_shoff);
    v->count = h.e_shnum;
    const Elf64_Shdr *s = &v->sections[h.e_shstrndx];
    if (!inside(v, s->sh_offset, s->sh_size))
        return err_set(e, ERR_FAIL, "", "the cubin's name table is cut off");
    v->names = (const char *)v->p + s->sh_offset;
    v->names_n = s->sh_size;
    return 0;
}

static void read_symbols(const struct view *v, const Elf64_Shdr *s, struct cubin *out)
{
    if (s->sh_link >= v->count || !inside(v, s->sh_offset, s->sh_size) || s->sh_offset % 8 != 0)
        return;
    const Elf64_Shdr *st = &v->sections[s->sh_link];
    if (!inside(v, st->sh_offset, st->sh_size))
        return;
    const char *strings = (const char *)v->p + st->sh_offset;
    const Elf64_Sym *sym = (const void *)(v->p + s->sh_offset);
    for (size_t i = 1; i < s->sh_size / sizeof *sym; i++) {
        const char *name = string_at(strings, st->sh_size, sym[i].st_name);
        bool function = ELF64_ST_TYPE(sym[i].st_info) == STT_FUNC;
        if (!*name)
            continue;
        if (sym[i].st_shndx == SHN_UNDEF)
            vec_push(&out->needs, xstrdup(name));
        else if (function && (sym[i].st_other & 0x10)) // STO_CUDA_ENTRY
            vec_push(&out->kernels, xstrdup(name));
    }
}

int cubin_read(const void *image, size_t n, struct cubin *out, struct err *e)
{
    memset(out, 0, sizeof *out);
    struct view v;
    if (open_view(&v, image, n, e) != 0)
        return -1;
    struct sha256 h;
    sha256_init(&h);
    for (size_t i = 0; i < v.count; i++) {
        const Elf64_Shdr *s = &v.sections[i];
        const char *name = string_at(v.names, v.names_n, s->sh_name);
        if (s->sh_type == SHT_SYMTAB)
            read_symbols(&v, s, out);
        bool text = str_starts(name, ".text.");
        bool data = str_starts(name, ".nv.constant") || str_starts(name, ".nv.global");
        if (!text && !data && !str_starts(name, ".nv.shared"))
            continue;
        if (str_starts(name, ".nv.global"))
            out->state_bytes += s->sh_size;
        sha256_add(&h, text ? "t" : data ? "d" : "s", 1);
        sha256_add(&h, &s->sh_size, sizeof s->sh_size);
        if (text)
            sha256_add(&h, &s->sh_info, sizeof s->sh_info); // registers stand in its upper byte
        if (s->sh_type == SHT_NOBITS || !inside(&v, s->sh_offset, s->sh_size))
            continue;
        sha256_add(&h, v.p + s->sh_offset, s->sh_size);
        out->code_bytes += text ? s->sh_size : 0;
    }
    sha256_end_hex(&h, out->code_id);
    if (out->kernels.n == 0) {
        cubin_free(out);
        return err_set(e, ERR_USAGE, "declare it __global__", "the file defines no kernel");
    }
    return 0;
}

void cubin_free(struct cubin *c)
{
    for (size_t i = 0; i < c->kernels.n; i++)
        free(c->kernels.v[i]);
    for (size_t i = 0; i < c->needs.n; i++)
        free(c->needs.v[i]);
    vec_free(&c->kernels);
    vec_free(&c->needs);
}

// Whether a mangled name's own (last) name is `name`: _Z5saxpyPf, _ZN3abc5saxpyEPf, _Z5saxpyILi4EEvPf.
static bool mangles(const char *symbol, const char *name)
{
    if (!str_starts(symbol, "_Z"))
        return false;
    const char *p = symbol + 2;
    bool nested = *p == 'N';
    p += nested;
    if (*p == 'L') // internal linkage
        p++;
    for (;;) {
        char *end;
        unsigned long n = strtoul(p, &end, 10);
        if (end == p || n == 0 || strlen(end) < n)
            return false;
        bool same = strlen(name) == n && strncmp(end, name, n) == 0;
        p = end + n;
        if (!nested || *p < '0' || *p > '9')
            return same;
    }
}

const char *cubin_kernel(const struct cubin *c, const char *name, int *matches)
{
    const char *found = NULL;
    *matches = 0;
    for (size_t i = 0; i < c->kernels.n; i++) {
        if (strcmp(c->kernels.v[i], name) == 0) {
            *matches = 1;
            return c->kernels.v[i];
        }
        if (mangles(c->kernels.v[i], name)) {
            found = c->kernels.v[i];
            ++*matches;
        }
    }
    return *matches == 1 ? found : NULL;
}
