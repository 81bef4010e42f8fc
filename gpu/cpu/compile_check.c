// What a binary may contain, seen before it is loaded: loading runs code, so this comes first.
#include "cpu/compile_parts.h"

#include "cpu/elf.h"

#include <dlfcn.h>
#include <stdio.h>

// Functions of the C library that compute or move memory and nothing else. The mathematical ones stand
// without the suffixes f and l.
static const char *const math[] = {
    "acos",      "acosh",    "asin",    "asinh",     "atan",      "atan2",   "atanh",        "cbrt",
    "ceil",      "copysign", "cos",     "cosh",      "erf",       "erfc",    "exp",          "exp10",
    "exp2",      "expm1",    "fabs",    "fdim",      "floor",     "fma",     "fmax",         "fmin",
    "fmod",      "frexp",    "hypot",   "ilogb",     "j0",        "j1",      "ldexp",        "lgamma",
    "llrint",    "llround",  "log",     "log10",     "log1p",     "log2",    "logb",         "lrint",
    "lround",    "modf",     "nan",     "nearbyint", "nextafter", "pow",     "remainder",    "remquo",
    "rint",      "round",    "scalbln", "scalbn",    "sin",       "sincos",  "sinh",         "sqrt",
    "tan",       "tanh",     "tgamma",  "trunc",     "cabs",      "carg",    "cexp",         "clog",
    "cpow",      "csqrt",    "csin",    "ccos",      "ctan",      "conj",    "cimag",        "creal",
    "roundeven", "y0",       "y1",      "__finite",  "__isinf",   "__isnan", "__fpclassify", "__signbit",
};
static const char *const plain[] = {
    "memcpy",
    "memmove",
    "memset",
    "memcmp",
    "memchr",
    "__memcpy_chk",
    "__memmove_chk",
    "__memset_chk",
    "__chk_fail",
    "malloc",
    "calloc",
    "realloc",
    "free",
    "aligned_alloc",
    "posix_memalign",
    "memalign",
    "abs",
    "labs",
    "llabs",
    "div",
    "ldiv",
    "qsort",
    "bsearch",
    "strlen",
    "abort",
    "__stack_chk_fail",
    "__assert_fail",
    "__errno_location",
    "__cxa_finalize",
    "__gmon_start__",
    "_ITM_registerTMCloneTable",
    "_ITM_deregisterTMCloneTable",
    "__tls_get_addr",
    "__stack_chk_guard",
};
static const char *const thread_prefixes[] = {"GOMP_", "omp_", "__kmpc_", "pthread_"};
static const char *const libraries[] = {"libc.so.6",
                                        "libm.so.6",
                                        "libmvec.so.1",
                                        "libpthread.so.0",
                                        "libgcc_s.so.1",
                                        "ld-linux-x86-64.so.2",
                                        "ld-linux-aarch64.so.1"};
static const char *const thread_libraries[] = {"libgomp.so.1", "libomp.so.5", "libomp.so"};

static bool in(const char *const *list, size_t n, const char *name, size_t len)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(list[i]) == len && memcmp(list[i], name, len) == 0)
            return true;
    return false;
}

static bool is_math(const char *name)
{
    size_t n = strlen(name);
    if (str_starts(name, "_ZGV")) // the vector functions of libmvec
        return true;
    if (str_starts(name, "__") && str_ends(name, "_finite")) // how -ffast-math called libm before glibc 2.31
        return true;
    return in(math, countof(math), name, n) ||
           (n > 1 && (name[n - 1] == 'f' || name[n - 1] == 'l') && in(math, countof(math), name, n - 1));
}
static bool is_thread(const char *name)
{
    for (size_t i = 0; i < countof(thread_prefixes); i++)
        if (str_starts(name, thread_prefixes[i]))
            return true;
    return false;
}

static int reject(struct str *reason, const char *why, const char *what)
{
    str_clear(reason);
    str_addf(reason, "%s%.80s", why, what);
    return 1;
}

static int check_segments(const struct elf *f, struct str *reason)
{
    bool stack = false;
    const Elf64_Phdr *p;
    for (size_t i = 0; (p = elf_segment(f, i)); i++) {
        if (p->p_type == PT_GNU_STACK) {
            stack = true;
            if (p->p_flags & PF_X)
                return reject(reason, "needs an executable stack", "");
        }
        if (p->p_type == PT_LOAD && (p->p_flags & PF_W) && (p->p_flags & PF_X))
            return reject(reason, "has machine code that it can write", "");
        if (p->p_type == PT_INTERP)
            return reject(reason, "is a program, not a library", "");
    }
    return stack ? 0 : reject(reason, "needs an executable stack", "");
}

static int check_dynamic(const struct elf *f, bool threads, struct binary_facts *facts, struct str *reason)
{
    static const struct {
        Elf64_Sxword tag;
        const char *why;
    } bad[] = {
        {DT_INIT, "runs code at load time"},
        {DT_INIT_ARRAY, "runs code at load time"},
        {DT_PREINIT_ARRAY, "runs code at load time"},
        {DT_FINI, "runs code at unload time"},
        {DT_FINI_ARRAY, "runs code at unload time"},
        {DT_TEXTREL, "changes its machine code at load time"},
        {DT_RPATH, "names a library folder"},
        {DT_RUNPATH, "names a library folder"},
        {DT_FILTER, "stands in for a library"},
        {DT_AUXILIARY, "stands in for a library"},
        {DT_AUDIT, "watches the loader"},
        {DT_DEPAUDIT, "watches the loader"},
    };
    Elf64_Dyn d;
    for (size_t i = 0; elf_dynamic(f, i, &d); i++) {
        for (size_t k = 0; k < countof(bad); k++)
            if (d.d_tag == bad[k].tag)
                return reject(reason, bad[k].why, "");
        if (d.d_tag == DT_FLAGS && (d.d_un.d_val & DF_TEXTREL))
            return reject(reason, "changes its machine code at load time", "");
        if (d.d_tag != DT_NEEDED)
            continue;
        const char *name = elf_dynamic_string(f, d.d_un.d_ptr);
        bool of_threads = in(thread_libraries, countof(thread_libraries), name, strlen(name));
        facts->uses_threads |= of_threads;
        if (!in(libraries, countof(libraries), name, strlen(name)) && !(of_threads && threads))
            return reject(reason, "needs the library ", name);
    }
    return 0;
}

// Relocations that call code to find an address (ifunc), also where no symbol names it.
static bool has_irelative(const struct elf *f)
{
    for (size_t i = 0; i < f->sections; i++) {
        const Elf64_Shdr *s = elf_section(f, i);
        size_t n;
        const char *p = s->sh_type == SHT_RELA ? elf_bytes(f, s, &n) : NULL;
        for (size_t k = 0; p && k + sizeof(Elf64_Rela) <= n; k += sizeof(Elf64_Rela)) {
            Elf64_Rela r;
            memcpy(&r, p + k, sizeof r);
            uint64_t type = ELF64_R_TYPE(r.r_info);
            if (f->head->e_machine == EM_X86_64 ? type == R_X86_64_IRELATIVE : type == R_AARCH64_IRELATIVE)
                return true;
        }
    }
    return false;
}

static int check_undefined(const char *name, bool threads, struct binary_facts *facts, struct str *reason)
{
    size_t used = strlen(facts->calls);
    if (used + strlen(name) + 2 < sizeof facts->calls)
        snprintf(facts->calls + used, sizeof facts->calls - used, "%s%s", used ? " " : "", name);
    if (in(plain, countof(plain), name, strlen(name)) || is_math(name))
        return 0;
    if (is_thread(name)) {
        facts->uses_threads = true;
        if (threads)
            return 0;
    }
    char *call = xasprintf("%.80s()", name);
    int r = reject(reason, "calls ", call);
    free(call);
    return r;
}

static int check_symbols(const struct elf *f, bool threads, const char *func, struct binary_facts *facts,
                         struct str *reason)
{
    bool found = false;
    Elf64_Sym s;
    const char *name;
    for (size_t i = 1; elf_symbol(f, i, &s, &name); i++) {
        unsigned type = ELF64_ST_TYPE(s.st_info);
        if (type == STT_GNU_IFUNC)
            return reject(reason, "runs code at load time (ifunc)", "");
        if (s.st_shndx == SHN_UNDEF) {
            if (check_undefined(name, threads, facts, reason) != 0)
                return 1;
        } else if (str_eq(name, func)) {
            found = type == STT_FUNC;
        } else if (type == STT_FUNC && dlsym(RTLD_DEFAULT, name)) {
            return reject(reason, "defines a function of the C library: ", name);
        }
    }
    return found ? 0 : reject(reason, "does not define the function ", func);
}

static void count_sections(const struct elf *f, struct binary_facts *facts)
{
    for (size_t i = 0; i < f->sections; i++) {
        const Elf64_Shdr *s = elf_section(f, i);
        const char *name = elf_section_name(f, s);
        if (!(s->sh_flags & SHF_ALLOC))
            continue;
        bool of_loader =
            s->sh_type == SHT_DYNAMIC || str_starts(name, ".got") || str_starts(name, ".data.rel.ro");
        if (s->sh_flags & SHF_EXECINSTR)
            facts->text_bytes += s->sh_size;
        else if ((s->sh_flags & SHF_WRITE) && !of_loader)
            facts->state_bytes += s->sh_size;
        else if (str_starts(name, ".rodata"))
            facts->rodata_bytes += s->sh_size;
    }
}

int compiler_check_binary(const struct compiler *c, const struct binary *b, const char *func,
                          struct binary_facts *facts, struct str *reason, struct err *e)
{
    *facts = (struct binary_facts){0};
    bool threads = compiler_task(c)->allow_threads || compiler_task(c)->threads > 1;
    struct elf f = {0};
    if (elf_open(b->path, &f, e) < 0)
        return -1;
    int r = check_segments(&f, reason);
    if (r == 0)
        r = check_dynamic(&f, threads, facts, reason);
    if (r == 0 && has_irelative(&f))
        r = reject(reason, "runs code at load time (ifunc)", "");
    if (r == 0)
        r = check_symbols(&f, threads, func, facts, reason);
    count_sections(&f, facts);
    elf_close(&f);
    return r;
}
