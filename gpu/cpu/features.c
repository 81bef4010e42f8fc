#include "cpu/features.h"

#include "base/io.h"
#include "base/log.h"
#include "base/proc.h"
#include "cpu/loops.h"
#include "cpu/sandbox.h"

#include <ctype.h>

enum { LISTING_BYTES = 8 << 20, WALL_MS = 10000, MAX_INSNS = 200000, MAX_ARGS = 5 };

// One instruction of the listing, in AT&T order: the destination comes last.
struct insn {
    char op[24];
    char arg[MAX_ARGS][40];
    int args;
};
struct function {
    VEC(struct insn) insns;
    VEC(struct flow_insn) flow;
};

// --- reading the listing

// "    1118:\tvfmadd213ps (%rdx,%rcx,1),%zmm7,%zmm1" -> op and arguments; commas inside parentheses do not
// count.
static bool read_insn(const char *line, struct insn *out, struct flow_insn *flow)
{
    char *end;
    uint64_t address = strtoull(line, &end, 16);
    if (end == line || *end != ':')
        return false;
    *out = (struct insn){0};
    *flow = (struct flow_insn){.address = address};
    const char *p = end + 1 + strspn(end + 1, " \t");
    static const char *const prefixes[] = {"data16", "cs", "lock", "rep", "repz", "repnz", "notrack", "bnd"};
    for (size_t i = 0; i < countof(prefixes); i++) {
        size_t n = strlen(prefixes[i]);
        if (strncmp(p, prefixes[i], n) == 0 && p[n] == ' ') {
            p += n + 1;
            i = (size_t)-1; // there may be more of them
        }
    }
    size_t n = strcspn(p, " \t");
    snprintf(out->op, sizeof out->op, "%.*s", (int)n, p);
    p += n + strspn(p + n, " \t");
    int depth = 0;
    size_t k = 0;
    for (; *p && *p != '#' && *p != '<' && out->args < MAX_ARGS; p++) {
        depth += (*p == '(') - (*p == ')');
        if (*p == ',' && depth == 0) {
            out->args++;
            k = 0;
        } else if (k + 1 < sizeof out->arg[0] && !isspace((unsigned char)*p) && out->args < MAX_ARGS) {
            out->arg[out->args][k++] = *p;
        }
    }
    out->args += k > 0;
    return out->op[0] != 0 && out->op[0] != '(';
}

static void set_flow(const struct insn *x, struct flow_insn *f)
{
    if (x->op[0] == 'j') {
        f->flow = str_starts(x->op, "jmp") ? FLOW_JUMP : FLOW_BRANCH;
        f->target = x->args ? strtoull(x->arg[0], NULL, 16) : 0;
    } else if (str_starts(x->op, "ret") || str_eq(x->op, "hlt") || str_starts(x->op, "ud2")) {
        f->flow = FLOW_RETURN;
    }
}

// --- what an instruction does

static bool in_memory(const char *arg)
{
    return strchr(arg, '(') || (arg[0] != '%' && arg[0] != '$');
}
// 0..31 of a vector register and its width in bytes, or -1.
static int vector_register(const char *arg, int *bytes)
{
    if (arg[0] != '%' || !strchr("xyz", arg[1]) || strncmp(arg + 2, "mm", 2) != 0)
        return -1;
    *bytes = arg[1] == 'x' ? 16 : arg[1] == 'y' ? 32 : 64;
    return (int)strtol(arg + 4, NULL, 10);
}
static const char *stem(const char *op)
{
    return op[0] == 'v' ? op + 1 : op;
}
static bool starts_any(const char *s, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_starts(s, list[i]))
            return true;
    return false;
}
static bool is_fma(const char *op)
{
    static const char *const names[] = {"fmadd", "fmsub", "fnmadd", "fnmsub", "dpbf16", "pdpbusd", "pdpwssd"};
    return starts_any(stem(op), names, countof(names));
}
static bool is_arithmetic(const struct insn *x)
{
    static const char *const floats[] = {"add", "sub",   "mul",  "div",    "sqrt",   "max",   "min",
                                         "rcp", "rsqrt", "hadd", "scalef", "getexp", "range", "rndscale"};
    static const char *const integers[] = {"padd", "psub", "pmul", "pmadd", "pmax",
                                           "pmin", "pabs", "psad", "pavg"};
    const char *s = stem(x->op);
    size_t n = strlen(s);
    bool suffix = n > 2 && (s[n - 2] == 'p' || s[n - 2] == 's') &&
                  (s[n - 1] == 's' || s[n - 1] == 'd' || s[n - 1] == 'h');
    int bytes;
    bool vector = x->args > 0 && vector_register(x->arg[x->args - 1], &bytes) >= 0;
    return vector && (is_fma(x->op) || (suffix && starts_any(s, floats, countof(floats))) ||
                      starts_any(s, integers, countof(integers)));
}
// Bytes that an instruction works on at once: 4 for scalars.
static int width(const struct insn *x)
{
    const char *s = stem(x->op);
    size_t n = strlen(s);
    int bytes = 4, widest = 4;
    for (int i = 0; i < x->args; i++)
        if (vector_register(x->arg[i], &bytes) >= 0 && bytes > widest)
            widest = bytes;
    bool scalar = n > 2 && s[n - 2] == 's' && (s[n - 1] == 's' || s[n - 1] == 'd' || s[n - 1] == 'h');
    return scalar || str_starts(s, "movd") || str_starts(s, "movq") ? 4 : widest;
}
static bool is_gather(const char *op)
{
    return strstr(op, "gather") != NULL;
}
static bool is_move(const char *op)
{
    static const char *const names[] = {"mov", "push",    "lea",   "broadcast", "pbroadcast",
                                        "cvt", "extract", "pextr", "set"};
    return starts_any(stem(op), names, countof(names));
}
static bool only_reads(const char *op)
{
    static const char *const names[] = {"cmp",      "test", "comis", "ucomis", "ptest",
                                        "prefetch", "nop",  "j",     "call",   "bt"};
    return starts_any(stem(op), names, countof(names));
}

// --- from instructions to features

static void count(const struct function *f, struct features *out)
{
    for (size_t i = 0; i < f->insns.n; i++) {
        const struct insn *x = &f->insns.v[i];
        const char *last = x->args ? x->arg[x->args - 1] : "";
        bool jumps = f->flow.v[i].flow != FLOW_NEXT, call = str_starts(x->op, "call");
        out->instructions++;
        out->fma += is_fma(x->op);
        out->gathers += is_gather(x->op);
        out->calls += call;
        if (jumps || call || only_reads(x->op) || str_starts(x->op, "lea"))
            continue;
        bool stores = x->args > 0 && in_memory(last);
        out->stores += stores;
        for (int k = 0; k + 1 < x->args; k++)
            out->loads += strchr(x->arg[k], '(') != NULL;
        out->spills += stores && f->flow.v[i].depth > 0 && strstr(last, "(%rsp") && is_move(x->op) &&
                       x->arg[0][0] == '%';
    }
}

// The loop with most work among its own instructions (-1: all that is in no loop), and that work. Deeper
// counts more, since it runs more often.
static int hot_loop(const struct function *f, double *most)
{
    double *work = xcalloc(f->insns.n + 1, sizeof *work); // by loop + 1
    for (size_t i = 0; i < f->insns.n; i++) {
        const struct flow_insn *at = &f->flow.v[i];
        double weight = (double)(1 << 2 * (at->depth < 6 ? at->depth : 6));
        work[at->loop + 1] += weight * (0.25 + (is_arithmetic(&f->insns.v[i]) ? width(&f->insns.v[i]) : 0));
    }
    size_t best = 0;
    for (size_t k = 1; k <= f->insns.n; k++)
        if (work[k] > 0 && (best == 0 || work[k] > work[best])) // a loop, where there is any
            best = k;
    *most = work[best];
    free(work);
    return (int)best - 1;
}

// Registers that are added to and never set anew within the loop: independent chains.
static int accumulators(const struct function *f, int loop)
{
    bool added[32] = {0}, set[32] = {0};
    for (size_t i = 0; i < f->insns.n; i++) {
        const struct insn *x = &f->insns.v[i];
        int bytes, r = x->args ? vector_register(x->arg[x->args - 1], &bytes) : -1;
        if (f->flow.v[i].loop != loop || r < 0 || r > 31 || only_reads(x->op))
            continue;
        bool reads = x->args == 2 && !is_move(x->op); // two operands: the second is read and written
        for (int k = 0; k + 1 < x->args; k++)
            reads |= vector_register(x->arg[k], &bytes) == r;
        bool sum = is_arithmetic(x) && (is_fma(x->op) ? strstr(x->op, "231") || strstr(x->op, "pdp") : reads);
        if (sum)
            added[r] = true;
        else if (!reads || str_starts(stem(x->op), "xor") || str_starts(stem(x->op), "pxor"))
            set[r] = true;
    }
    int n = 0;
    for (int r = 0; r < 32; r++)
        n += added[r] && !set[r];
    return n;
}

static int widest_of(const struct function *f, int loop)
{
    int arithmetic = 0, any = 0;
    for (size_t i = 0; i < f->insns.n; i++) {
        int w = f->flow.v[i].loop == loop ? width(&f->insns.v[i]) : 0;
        any = w > any ? w : any;
        if (w > arithmetic && is_arithmetic(&f->insns.v[i]))
            arithmetic = w;
    }
    return arithmetic ? arithmetic : any; // a transpose only moves
}

static int bin(int value, const int *edges, int n)
{
    int b = 0;
    while (b < n && value >= edges[b])
        b++;
    return b;
}

// Adds one function's counts, and takes its hot loop where it is hotter than that of the functions before.
static void take_function(struct function *f, struct features *out, double *hottest)
{
    static const int vec_edges[] = {16, 32, 64}, acc_edges[] = {2, 4, 8, 16}, block_edges[] = {2, 3, 4};
    if (!f->insns.n)
        return;
    int depth = loops_find(f->flow.v, f->flow.n);
    count(f, out);
    out->code_bytes += (int)(f->flow.v[f->flow.n - 1].address - f->flow.v[0].address) + 1;
    out->depth = depth > out->depth ? depth : out->depth;
    out->block = bin(out->depth, block_edges, 3);
    double work;
    int loop = hot_loop(f, &work);
    if (work > *hottest) {
        *hottest = work;
        out->vec = bin(widest_of(f, loop), vec_edges, 3);
        out->accumulators = loop < 0 ? 0 : accumulators(f, loop);
        out->acc = bin(out->accumulators, acc_edges, 4);
        out->hot_instructions = 0;
        for (size_t k = 0; k < f->flow.n; k++)
            out->hot_instructions += f->flow.v[k].loop == loop;
    }
    f->insns.n = f->flow.n = 0;
}

static void read_listing(char *text, struct features *out)
{
    struct function f = {0};
    double hottest = -1;
    bool in_text = false;
    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        if (str_starts(line, "Disassembly of section "))
            in_text = strstr(line, " .text") != NULL; // not .plt
        size_t n = strlen(line);
        bool head = n > 2 && line[n - 1] == ':' && line[n - 2] == '>' && isxdigit((unsigned char)line[0]);
        if (head)
            take_function(&f, out, &hottest);
        struct insn x;
        struct flow_insn flow;
        if (!in_text || head || f.insns.n >= MAX_INSNS || !read_insn(line, &x, &flow))
            continue;
        set_flow(&x, &flow);
        vec_push(&f.insns, x);
        vec_push(&f.flow, flow);
    }
    take_function(&f, out, &hottest);
    vec_free(&f.insns);
    vec_free(&f.flow);
}

static int disassemble(const char *path, struct str *out, struct proc_end *end, struct err *e)
{
    const char *argv[] = {"objdump", "-d", "--no-show-raw-insn", path, NULL};
    const char *const readable[] = {"/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", path, NULL};
    const char *const writable[] = {"/dev/null", NULL};
    struct sandbox cage = {.kind = SANDBOX_COMPILER,
                           .read_only = readable,
                           .read_write = writable,
                           .memory_bytes = 1ull << 30,
                           .file_bytes = 1 << 20,
                           .cpu_seconds = 10,
                           .processes = 8};
    struct proc_spec spec = {
        .argv = argv, .bare_env = true, .in = -1, .before_exec = sandbox_enter, .user = &cage};
    if (sandbox_prepare(&cage, e) < 0)
        return -1;
    int r = proc_run(&spec, out, LISTING_BYTES, WALL_MS, end, e);
    sandbox_done(&cage);
    return r;
}

int features_listing(const char *path, struct str *listing, struct err *e)
{
    struct proc_end end = {0};
    if (disassemble(path, listing, &end, e) < 0)
        return -1;
    if (end.status != 0 || end.timed_out || end.truncated)
        return err_set(e, ERR_FAIL, "", "objdump failed: %.300s",
                       end.truncated ? "too much code" : str_c(listing));
    return 0;
}

int features_of(const char *path, const char *func, struct features *out, struct err *e)
{
    *out = (struct features){0};
    static bool said;
    struct err why = {0};
    struct str listing = {0};
    struct proc_end end = {0};
    bool x86 = false;
#ifdef __x86_64__
    x86 = true;
#endif
    int r = x86 ? disassemble(path, &listing, &end, &why) : -1;
    if (r < 0 && !said)
        log_line("features of binaries are not known: %s", x86 ? why.msg : "this architecture is not read");
    said |= r < 0;
    if (r == 0 && end.status != 0) {
        r = err_set(e, ERR_FAIL, "", "objdump failed on %s: %.200s", path, str_c(&listing));
    } else if (r == 0) {
        // The whole file counts: static parts of the kernel and the bodies of parallel loops are functions
        // too.
        char *head = xasprintf("<%s>:", func);
        out->known = strstr(str_c(&listing), head) != NULL;
        free(head);
        if (out->known)
            read_listing(listing.s, out);
    } else {
        r = 0;
    }
    str_free(&listing);
    return r;
}
