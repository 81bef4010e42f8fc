#include "cpu/fingerprint.h"

#include "base/hash.h"
#include "base/io.h"
#include "cpu/compile.h"

#include <gnu/libc-version.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

// The first line of a file of the kernel, trimmed; "" where it is missing.
static void first_line(const char *path, struct str *out)
{
    struct str s = {0};
    if (io_read_file(path, 1 << 20, &s, NULL) == 0) {
        s.s[strcspn(str_c(&s), "\n")] = 0;
        str_add(out, str_trim(s.s));
    }
    str_free(&s);
}

// The value of a key of /proc/cpuinfo, of the first processor.
static void cpu_value(const char *cpuinfo, const char *key, struct str *out)
{
    size_t n = strlen(key);
    for (const char *line = cpuinfo; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *colon = strncmp(line, key, n) == 0 ? line + n + strspn(line + n, " \t") : NULL;
        if (!colon || *colon != ':')
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        str_addn(out, colon, strcspn(colon, "\n"));
        return;
    }
}

static void put_file(json *o, const char *name, const char *path)
{
    struct str s = {0};
    first_line(path, &s);
    if (s.len)
        json_put_str(o, name, str_c(&s));
    str_free(&s);
}

// "always [madvise] never" -> "madvise"
static void put_choice(json *o, const char *name, const char *path)
{
    struct str s = {0};
    first_line(path, &s);
    const char *open = strchr(str_c(&s), '['), *close = open ? strchr(open, ']') : NULL;
    if (close)
        json_put_strn(o, name, open + 1, (size_t)(close - open - 1));
    str_free(&s);
}

static void put_cpu(json *o, struct fingerprint *f)
{
    static const struct {
        const char *name, *key;
    } values[] = {{"cpu", "model name"},
                  {"family", "cpu family"},
                  {"model", "model"},
                  {"stepping", "stepping"},
                  {"microcode", "microcode"},
                  {"flags", "flags"},
                  {"implementer", "CPU implementer"},
                  {"part", "CPU part"},
                  {"features", "Features"}};
    struct str cpuinfo = {0};
    (void)io_read_file("/proc/cpuinfo", 8 << 20, &cpuinfo, NULL);
    for (size_t i = 0; i < countof(values); i++) {
        struct str s = {0};
        cpu_value(str_c(&cpuinfo), values[i].key, &s);
        bool list = s.len > 200; // flags: what they are matters, not to read them
        char hex[65];
        sha256_hex(str_c(&s), s.len, hex);
        hex[16] = 0;
        if (s.len)
            json_put_str(o, values[i].name, list ? hex : str_c(&s));
        str_free(&s);
    }
    snprintf(f->device, sizeof f->device, "%s", json_str_or(o, "cpu", "unknown CPU"));
    str_free(&cpuinfo);
}

static void put_compiler(json *o, const struct compiler *c)
{
    if (!c)
        return;
    json_put_str(o, "compiler", compiler_version(c));
    // A rebuilt compiler of the same version is another one: size and time of the file tell.
    char *real = realpath(compiler_path(c), NULL);
    struct stat st;
    if (real && stat(real, &st) == 0) {
        char *what = xasprintf("%s %lld %lld", real, (long long)st.st_size, (long long)st.st_mtim.tv_sec),
             hex[65];
        sha256_hex(what, strlen(what), hex);
        hex[16] = 0;
        json_put_str(o, "compiler_file", hex);
        free(what);
    }
    free(real);
}

json *fingerprint_read(const struct compiler *c, struct fingerprint *f)
{
    *f = (struct fingerprint){0};
    json *o = json_object();
    struct utsname u;
    put_cpu(o, f);
    put_compiler(o, c);
    if (uname(&u) == 0) {
        json_put_str(o, "kernel", u.release);
        json_put_str(o, "machine", u.machine);
    }
    json_put_str(o, "libc", gnu_get_libc_version());
    put_file(o, "governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    put_file(o, "boost", "/sys/devices/system/cpu/cpufreq/boost");
    put_file(o, "smt", "/sys/devices/system/cpu/smt/control");
    put_choice(o, "thp", "/sys/kernel/mm/transparent_hugepage/enabled");
    put_choice(o, "thp_shmem", "/sys/kernel/mm/transparent_hugepage/shmem_enabled");
    put_file(o, "aslr", "/proc/sys/kernel/randomize_va_space");
    put_file(o, "clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource");
    json_put_int(o, "cpus", sysconf(_SC_NPROCESSORS_ONLN));
    struct str s = {0};
    char hex[65];
    json_print(o, &s);
    sha256_hex(str_c(&s), s.len, hex);
    snprintf(f->id, sizeof f->id, "%.16s", hex);
    str_free(&s);
    return o;
}
