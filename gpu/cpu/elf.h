// A small reader of 64-bit shared objects, for what compile.c has to know of them. The bytes come from a
// linker that hostile source may have steered: every offset is checked, and what does not fit is left out.
#pragma once
#include "base/err.h"
#include "base/str.h"

#include <elf.h>
#include <stdbool.h>

struct elf {
    struct str data;
    const Elf64_Ehdr *head;
    size_t sections;
};

int elf_open(const char *path, struct elf *f, struct err *e);
void elf_close(struct elf *f);
// NULL beyond the last.
const Elf64_Shdr *elf_section(const struct elf *f, size_t i);
const char *elf_section_name(const struct elf *f, const Elf64_Shdr *s);
// The bytes of a section; NULL and 0 for one without bytes.
const void *elf_bytes(const struct elf *f, const Elf64_Shdr *s, size_t *n);
const Elf64_Phdr *elf_segment(const struct elf *f, size_t i);
// Entry i of the dynamic section; false at its end.
bool elf_dynamic(const struct elf *f, size_t i, Elf64_Dyn *d);
// A string of the dynamic string table; "" where the offset is wrong.
const char *elf_dynamic_string(const struct elf *f, uint64_t offset);
// Entry i of the dynamic symbol table, with its name; false at its end.
bool elf_symbol(const struct elf *f, size_t i, Elf64_Sym *sym, const char **name);
// SHA-256 over the code, data, symbols and relocations that are loaded; file names and notes have no part in
// it.
void elf_identity(const struct elf *f, char hex[65]);
