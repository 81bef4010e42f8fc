#include "cuda/nvrtc.h"

#include "base/io.h"
#include "base/json.h"
#include "base/mem.h"

#include <dlfcn.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct program_ *program;
static struct nvrtc {
    void *library;
    int (*version)(int *major, int *minor);
    int (*create)(program *p, const char *source, const char *name, int n, const char *const *headers,
                  const char *const *names);
    int (*destroy)(program *p);
    int (*compile)(program p, int n, const char *const *options);
    int (*cubin_size)(program p, size_t *n);
    int (*cubin)(program p, char *out);
    int (*ptx_size)(program p, size_t *n);
    int (*ptx)(program p, char *out);
    int (*log_size)(program p, size_t *n);
    int (*log)(program p, char *out);
    int (*add_name)(program p, const char *expression);
    int (*lowered)(program p, const char *expression, const char **out);
    const char *(*error)(int rc);
} rt;

static const struct entry {
    const char *name;
    void *at;
} entries[] = {
    {"nvrtcVersion", &rt.version},
    {"nvrtcCreateProgram", &rt.create},
    {"nvrtcDestroyProgram", &rt.destroy},
    {"nvrtcCompileProgram", &rt.compile},
    {"nvrtcGetCUBINSize", &rt.cubin_size},
    {"nvrtcGetCUBIN", &rt.cubin},
    {"nvrtcGetPTXSize", &rt.ptx_size},
    {"nvrtcGetPTX", &rt.ptx},
    {"nvrtcGetProgramLogSize", &rt.log_size},
    {"nvrtcGetProgramLog", &rt.log},
    {"nvrtcAddNameExpression", &rt.add_name},
    {"nvrtcGetLoweredName", &rt.lowered},
    {"nvrtcGetErrorString", &rt.error},
};

// What the standard headers give a kernel. NVRTC has none of its own, and the real ones need the host's.
#define STDINT                                                                                         \
    "#pragma once\n"                                                                                   \
    "typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;\n"  \
    "typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t;\n" \
    "typedef unsigned long uint64_t; typedef long intptr_t; typedef unsigned long uintptr_t;\n"
#define STDDEF "#pragma once\n#ifndef NULL\n#define NULL 0\n#endif\n"
#define MATH                                                                                      \
    "#pragma once\n"                                                                              \
    "#ifndef INFINITY\n#define INFINITY (__int_as_float(0x7f800000))\n#endif\n"                   \
    "#ifndef NAN\n#define NAN (__int_as_float(0x7fffffff))\n#endif\n"                             \
    "#ifndef HUGE_VALF\n#define HUGE_VALF INFINITY\n#endif\n"                                     \
    "#ifndef M_PI\n#define M_PI 3.14159265358979323846\n#define M_SQRT2 1.41421356237309504880\n" \
    "#define M_SQRT1_2 0.70710678118654752440\n#define M_2_SQRTPI 1.12837916709551257390\n"       \
    "#define M_LOG2E 1.4426950408889634074\n#define M_LN2 0.69314718055994530942\n#endif\n"
#define FLOAT                                                                                             \
    "#pragma once\n#ifndef FLT_MAX\n#define FLT_MAX 3.402823466e+38f\n#define FLT_MIN 1.175494351e-38f\n" \
    "#define FLT_EPSILON 1.192092896e-07f\n#define DBL_MAX 1.7976931348623157e+308\n"                     \
    "#define DBL_MIN 2.2250738585072014e-308\n#define DBL_EPSILON 2.2204460492503131e-16\n#endif\n"
#define LIMITS                                                                                              \
    "#pragma once\n#ifndef INT_MAX\n#define CHAR_BIT 8\n#define INT_MAX 2147483647\n"                       \
    "#define INT_MIN (-INT_MAX - 1)\n#define UINT_MAX 4294967295u\n#define LONG_MAX 9223372036854775807L\n" \
    "#define LONG_MIN (-LONG_MAX - 1)\n#define ULONG_MAX 18446744073709551615ul\n"                          \
    "#define LLONG_MAX 9223372036854775807LL\n#define SHRT_MAX 32767\n#define UCHAR_MAX 255\n#endif\n"
#define ASSERT                                                                                       \
    "#pragma once\n#undef assert\n#ifdef NDEBUG\n#define assert(e) ((void)0)\n#else\n"               \
    "extern \"C\" __device__ void __assertfail(const char *, const char *, unsigned, const char *, " \
    "unsigned long);\n"                                                                              \
    "#define assert(e) ((e) ? (void)0 : __assertfail(#e, __FILE__, __LINE__, __func__, 1))\n#endif\n"

static const char *const header_names[] = {"stdint.h", "cstdint",  "inttypes.h", "stddef.h", "cstddef",
                                           "math.h",   "cmath",    "float.h",    "cfloat",   "limits.h",
                                           "climits",  "assert.h", "cassert",    "stdio.h",  "cstdio",
                                           "stdlib.h", "cstdlib",  "string.h",   "cstring",  "stdbool.h"};
static const char *const header_texts[] = {
    STDINT, STDINT, STDINT, STDDEF, STDDEF, MATH,   MATH,   FLOAT,  FLOAT,  LIMITS,
    LIMITS, ASSERT, ASSERT, STDDEF, STDDEF, STDDEF, STDDEF, STDDEF, STDDEF, "#pragma once\n"};

static const char *const sonames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
static const char *const roots[] = {"/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda", "/usr"};
static const char *const libdirs[] = {"lib64",
                                      "lib",
                                      "targets/x86_64-linux/lib",
                                      "lib/x86_64-linux-gnu",
                                      "targets/sbsa-linux/lib",
                                      "lib/aarch64-linux-gnu"};

// The absolute file of the library, looked for where CUDA_HOME and the usual folders say, then by its name
// alone.
static bool find_library(char out[PATH_MAX])
{
    const char *forced = getenv("KSMITH_NVRTC"), *home = getenv("CUDA_HOME"), *path = getenv("CUDA_PATH");
    if (forced && *forced)
        return snprintf(out, PATH_MAX, "%s", forced) < PATH_MAX && io_exists(out);
    const char *all[2 + countof(roots)] = {home, path};
    memcpy(all + 2, roots, sizeof roots);
    for (size_t r = 0; r < countof(all); r++)
        for (size_t l = 0; all[r] && *all[r] && l < countof(libdirs); l++)
            for (size_t s = 0; s < countof(sonames); s++)
                if (snprintf(out, PATH_MAX, "%s/%s/%s", all[r], libdirs[l], sonames[s]) < PATH_MAX &&
                    io_exists(out))
                    return true;
    for (size_t s = 0; s < countof(sonames); s++) {
        void *h = dlopen(sonames[s], RTLD_LAZY | RTLD_LOCAL);
        if (!h)
            continue;
        Dl_info info;
        void *f = dlsym(h, "nvrtcVersion");
        bool ok = f && dladdr(f, &info) && info.dli_fname &&
                  snprintf(out, PATH_MAX, "%s", info.dli_fname) < PATH_MAX;
        dlclose(h);
        if (ok)
            return true;
    }
    return false;
}

int nvrtc_find(struct str *path, struct str *includes, struct err *e)
{
    char file[PATH_MAX], real[PATH_MAX];
    if (!find_library(file))
        return err_set(e, ERR_FAIL, "install CUDA's NVRTC, or set CUDA_HOME to where it is",
                       "libnvrtc was not found (CUDA_HOME, /usr/local/cuda, the loader's folders)");
    str_add(path, file);
    // The headers lie beside the library's folder, at most three levels up (targets/x86_64-linux/lib).
    if (!realpath(file, real))
        memcpy(real, file, sizeof real);
    for (int up = 0; up < 3; up++) {
        char *dir = dirname(real), test[PATH_MAX];
        if (dir != real)
            memmove(real, dir, strlen(dir) + 1);
        snprintf(test, sizeof test, "%.4000s/include/cuda_fp16.h", real);
        if (!io_exists(test))
            continue;
        str_addf(includes, "-I%s/include\n", real);
        snprintf(test, sizeof test, "%.4000s/include/cccl", real);
        if (io_is_dir(test))
            str_addf(includes, "-I%s\n", test);
        break;
    }
    return 0;
}

static bool load(struct str *why)
{
    struct str path = {0}, includes = {0};
    struct err e = {0};
    if (nvrtc_find(&path, &includes, &e) != 0) {
        str_addf(why, "%s: %s", e.msg, e.hint);
    } else if (!(rt.library = dlopen(path.s, RTLD_NOW | RTLD_LOCAL))) {
        str_addf(why, "cannot load NVRTC: %s", dlerror());
    } else {
        for (size_t i = 0; i < countof(entries); i++) {
            void *f = dlsym(rt.library, entries[i].name);
            if (!f) {
                str_addf(why, "%s has no %s", path.s, entries[i].name);
                rt.library = NULL;
                break;
            }
            memcpy(entries[i].at, &f, sizeof f);
        }
    }
    str_free(&path);
    str_free(&includes);
    return rt.library != NULL;
}

struct answer {
    int rc;
    struct str log, cubin, ptx;
    json *names;
};

static void take(int (*size)(program, size_t *), int (*get)(program, char *), program p, struct str *out)
{
    size_t n = 0;
    if (size(p, &n) != 0 || n == 0)
        return;
    str_reserve(out, n + 1);
    if (get(p, out->s) == 0) {
        out->len = n;
        out->s[n] = 0;
    }
}

static void add_names(program p, const json *names)
{
    for (json *x = json_first(names); x; x = json_next(x))
        rt.add_name(p, json_string(x));
}

static void compile(const json *request, struct answer *a)
{
    const char *source = json_str_or(request, "source", ""),
               *file = json_str_or(request, "file", "kernel.cu");
    program p = NULL;
    int rc = rt.create(&p, source, file, (int)countof(header_names), header_texts, header_names);
    if (rc != 0) {
        a->rc = -1;
        str_addf(&a->log, "NVRTC: %s", rt.error(rc));
        return;
    }
    const json *names = json_get(request, "names");
    add_names(p, names);
    VEC(const char *) options = {0};
    for (json *x = json_first(json_get(request, "options")); x; x = json_next(x))
        vec_push(&options, json_string(x));
    rc = rt.compile(p, (int)options.n, options.v);
    vec_free(&options);
    a->rc = rc == 0 ? 0 : 1;
    take(rt.log_size, rt.log, p, &a->log);
    while (a->log.len && a->log.s[a->log.len - 1] == 0)
        a->log.len--;
    if (rc != 0 && a->log.len == 0)
        str_addf(&a->log, "NVRTC: %s", rt.error(rc));
    if (rc == 0) {
        take(rt.cubin_size, rt.cubin, p, &a->cubin);
        take(rt.ptx_size, rt.ptx, p, &a->ptx);
        for (json *x = json_first(names); x; x = json_next(x)) {
            const char *lowered = NULL;
            if (rt.lowered(p, json_string(x), &lowered) == 0)
                json_put_str(a->names, json_string(x), lowered);
        }
    }
    rt.destroy(&p);
}

static int reply(struct answer *a)
{
    json *j = json_object();
    json_put_int(j, "rc", a->rc);
    json_put_strn(j, "log", str_c(&a->log), a->log.len < 262144 ? a->log.len : 262144);
    json_put_int(j, "cubin", (int64_t)a->cubin.len);
    json_put_int(j, "ptx", (int64_t)a->ptx.len);
    json_put(j, "names", a->names);
    struct str line = {0};
    json_print(j, &line);
    str_addc(&line, '\n');
    int rc = io_write_all(1, line.s, line.len);
    if (rc == 0 && a->cubin.len)
        rc = io_write_all(1, a->cubin.s, a->cubin.len);
    if (rc == 0 && a->ptx.len)
        rc = io_write_all(1, a->ptx.s, a->ptx.len);
    json_free(j);
    str_free(&line);
    str_free(&a->log);
    str_free(&a->cubin);
    str_free(&a->ptx);
    return rc;
}

void nvrtc_main(void)
{
    struct str why = {0}, line = {0};
    bool loaded = load(&why);
    char chunk[65536];
    ssize_t n;
    while ((n = read(0, chunk, sizeof chunk)) > 0 || (n < 0 && errno == EINTR)) {
        if (n < 0)
            continue;
        str_addn(&line, chunk, (size_t)n);
        char *end = memchr(line.s + line.len - n, '\n', (size_t)n);
        if (!end)
            continue;
        struct answer a = {.names = json_object()};
        struct err e = {0};
        json *request = json_parse(line.s, (size_t)(end - line.s), &e);
        if (!loaded || !request) {
            a.rc = -1;
            str_add(&a.log, loaded ? e.msg : str_c(&why));
        } else {
            compile(request, &a);
        }
        json_free(request);
        if (reply(&a) != 0)
            break;
        str_splice(&line, 0, (size_t)(end - line.s) + 1, NULL, 0);
    }
    _exit(0);
}
