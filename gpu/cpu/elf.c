#include "cpu/elf.h"

#include "base/hash.h"
#include "base/io.h"
#include "base/vec.h"

enum { MAX_FILE = 128 << 20 };

static const void *at(const struct elf *f, uint64_t offset, uint64_t n)
{
    return offset <= f->data.len && n <= f->data.len - offset ? f->data.s + offset : NULL;
}

int elf_open(const char *path, struct elf *f, struct err *e)
{
    *f = (struct elf){0};
    if (io_read_file(path, MAX_FILE, &f->data, e) < 0)
        return -1;
    f->head = at(f, 0, sizeof *f->head);
    if (!f->head || memcmp(f->head->e_ident, ELFMAG, SELFMAG) != 0 ||
        f->head->e_ident[EI_CLASS] != ELFCLASS64 || f->head->e_type != ET_DYN || f->head->e_shoff % 8 ||
        !at(f, f->head->e_shoff, sizeof(Elf64_Shdr) * (uint64_t)f->head->e_shnum)) {
        elf_close(f);
        return err_set(e, ERR_FAIL, "", "%s is no 64-bit shared object", path);
    }
    f->sections = f->head->e_shnum;
    return 0;
}

void elf_close(struct elf *f)
{
    str_free(&f->data);
    *f = (struct elf){0};
}

const Elf64_Shdr *elf_section(const struct elf *f, size_t i)
{
    return i < f->sections ? at(f, f->head->e_shoff + i * sizeof(Elf64_Shdr), sizeof(Elf64_Shdr)) : NULL;
}

const void *elf_bytes(const struct elf *f, const Elf64_Shdr *s, size_t *n)
{
    const void *p = s && s->sh_type != SHT_NOBITS ? at(f, s->sh_offset, s->sh_size) : NULL;
    *n = p ? s->sh_size : 0;
    return p;
}

// A NUL-terminated string inside a table.
static const char *string_in(const struct elf *f, const Elf64_Shdr *table, uint64_t offset)
{
    size_t n;
    const char *s = elf_bytes(f, table, &n);
    return s && offset < n && memchr(s + offset, 0, n - offset) ? s + offset : "";
}

const char *elf_section_name(const struct elf *f, const Elf64_Shdr *s)
{
    return string_in(f, elf_section(f, f->head->e_shstrndx), s->sh_name);
}

const Elf64_Phdr *elf_segment(const struct elf *f, size_t i)
{
    if (i >= f->head->e_phnum || f->head->e_phoff % 8)
        return NULL;
    return at(f, f->head->e_phoff + i * sizeof(Elf64_Phdr), sizeof(Elf64_Phdr));
}

static const Elf64_Shdr *of_type(const struct elf *f, uint32_t type)
{
    for (size_t i = 0; i < f->sections; i++)
        if (elf_section(f, i)->sh_type == type)
            return elf_section(f, i);
    return NULL;
}

bool elf_dynamic(const struct elf *f, size_t i, Elf64_Dyn *d)
{
    size_t n;
    const char *p = elf_bytes(f, of_type(f, SHT_DYNAMIC), &n);
    if (!p || i >= n / sizeof *d)
        return false;
    memcpy(d, p + i * sizeof *d, sizeof *d);
    return d->d_tag != DT_NULL;
}

const char *elf_dynamic_string(const struct elf *f, uint64_t offset)
{
    const Elf64_Shdr *table = of_type(f, SHT_DYNAMIC);
    return table ? string_in(f, elf_section(f, table->sh_link), offset) : "";
}

bool elf_symbol(const struct elf *f, size_t i, Elf64_Sym *sym, const char **name)
{
    size_t n;
    const Elf64_Shdr *table = of_type(f, SHT_DYNSYM);
    const char *p = elf_bytes(f, table, &n);
    if (!p || i >= n / sizeof *sym)
        return false;
    memcpy(sym, p + i * sizeof *sym, sizeof *sym);
    *name = string_in(f, elf_section(f, table->sh_link), sym->st_name);
    return true;
}

void elf_identity(const struct elf *f, char hex[65])
{
    // .dynamic and the hash table follow from the rest; notes and comments name the build.
    static const uint32_t derived[] = {SHT_NOTE, SHT_DYNAMIC, SHT_GNU_HASH, SHT_HASH};
    struct sha256 h;
    sha256_init(&h);
    for (size_t i = 0; i < f->sections; i++) {
        const Elf64_Shdr *s = elf_section(f, i);
        bool skip = !(s->sh_flags & SHF_ALLOC);
        for (size_t k = 0; k < countof(derived); k++)
            skip |= s->sh_type == derived[k];
        if (skip)
            continue;
        const char *name = elf_section_name(f, s);
        uint64_t what[3] = {s->sh_type, s->sh_flags, s->sh_size};
        size_t n;
        const void *p = elf_bytes(f, s, &n);
        sha256_add(&h, name, strlen(name) + 1);
        sha256_add(&h, what, sizeof what);
        if (p)
            sha256_add(&h, p, n);
    }
    sha256_end_hex(&h, hex);
}
