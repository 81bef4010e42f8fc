#include "cpu/probe.h"

#include "base/io.h"
#include "base/json.h"
#include "cpu/lease.h"
#include "cpu/probe_parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static void print(json *o)
{
    struct str s = {0};
    json_print(o, &s);
    puts(str_c(&s));
    fflush(stdout); // children that fork later must not print it again
    str_free(&s);
    json_free(o);
}

void probe_say(struct probe *p, const char *name, bool holds, const char *remedy, const char *fmt, ...)
{
    char detail[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(detail, sizeof detail, fmt, ap);
    va_end(ap);
    json *o = json_object();
    json_put_str(o, "name", name);
    json_put_bool(o, "holds", holds);
    json_put_str(o, "detail", detail);
    json_put_str(o, "remedy", holds ? "" : remedy);
    p->broken += !holds;
    print(o);
}

void probe_fact(struct probe *p, const char *name, const char *fmt, ...)
{
    (void)p;
    char detail[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(detail, sizeof detail, fmt, ap);
    va_end(ap);
    json *o = json_object();
    json_put_str(o, "name", name);
    json_put_bool(o, "fact", true);
    json_put_str(o, "detail", detail);
    print(o);
}

static void file_fact(struct probe *p, const char *name, const char *path)
{
    struct str s = {0};
    if (io_read_file(path, 4096, &s, NULL) == 0)
        probe_fact(p, name, "%s", str_trim(s.s));
    str_free(&s);
}

static void on_path(struct probe *p, const char *name, const char *without)
{
    const char *path = getenv("PATH");
    for (const char *x = path ? path : "/usr/bin:/bin"; *x;) {
        size_t n = strcspn(x, ":");
        char *full = xasprintf("%.*s/%s", (int)n, x, name);
        bool here = n && access(full, X_OK) == 0;
        if (here)
            probe_fact(p, name, "%s", full);
        free(full);
        if (here)
            return;
        x += n + (x[n] == ':');
    }
    probe_fact(p, name, "missing: %s", without);
}

static void machine(struct probe *p)
{
    int cpus[64];
    p->cpus = io_cpus(cpus, 64);
    if (p->cpus > 1)
        probe_fact(p, "cores", "%d usable: the judge on one, the kernel on another", p->cpus);
    else
        probe_fact(p, "cores", "1 usable: timing is unprotected, the kernel's own process holds the clock");
    struct lease *l;
    if (lease_open(&l, "cpu", NULL) == 0) {
        probe_say(p, "one timing at a time", !lease_warning(l),
                  "Remove the folder, or set KSMITH_LEASE to one that all users of this machine share.", "%s",
                  lease_warning(l) ? lease_warning(l) : lease_path(l));
        lease_close(l);
    }
    on_path(p, "gcc", "set CC, or install gcc");
    on_path(p, "clang", "not needed");
    on_path(p, "objdump", "the archive has no features; install binutils");
    file_fact(p, "clock source", "/sys/devices/system/clocksource/clocksource0/current_clocksource");
    file_fact(p, "governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    file_fact(p, "transparent huge pages", "/sys/kernel/mm/transparent_hugepage/enabled");
    file_fact(p, "load", "/proc/loadavg");
}

int probe_main(void)
{
    struct probe p = {0};
    sandbox_support(&p.have);
    static const char remedy[] =
        "Candidates of models and agents are refused here unless --trust is given; a kernel "
        "of Linux 5.13 or later with both built in has it.";
    if (p.have.landlock)
        probe_say(&p, "Landlock", true, "", "ABI %d", p.have.landlock);
    else
        probe_say(&p, "Landlock", false, remedy, "not in this kernel");
    probe_say(&p, "seccomp", p.have.seccomp, remedy, "%s",
              p.have.seccomp ? "filters with traps" : p.have.why);
    probe_fact(&p, "user", "%s",
               geteuid() == 0 ? "root: the limit on processes does not hold, the time limit does"
                              : "not root");
    machine(&p);
    probe_compiler(&p);
    probe_kernel(&p);
    return p.broken != 0;
}
