#include "cuda/nvml.h"

#include "base/mem.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct device_ *device_handle;
struct process { // nvmlProcessInfo_t of the _v3 call
    unsigned pid;
    unsigned long long memory;
    unsigned instance, compute_instance;
};

struct nvml {
    void *library;
    device_handle device;
    int (*init)(void);
    int (*shutdown)(void);
    int (*by_uuid)(const char *uuid, device_handle *d);
    int (*clock)(device_handle d, int type, unsigned *mhz);
    int (*temperature)(device_handle d, int sensor, unsigned *celsius);
    int (*power)(device_handle d, unsigned *milliwatts);
    int (*reasons)(device_handle d, unsigned long long *bits);
    int (*processes)(device_handle d, unsigned *n, struct process *p);
    int (*driver)(char *out, unsigned len);
};

static const struct entry {
    const char *name;
    size_t at;
    bool needed;
} entries[] = {
    {"nvmlInit_v2", offsetof(struct nvml, init), true},
    {"nvmlShutdown", offsetof(struct nvml, shutdown), true},
    {"nvmlDeviceGetHandleByUUID", offsetof(struct nvml, by_uuid), true},
    {"nvmlDeviceGetClockInfo", offsetof(struct nvml, clock), true},
    {"nvmlDeviceGetTemperature", offsetof(struct nvml, temperature), false},
    {"nvmlDeviceGetPowerUsage", offsetof(struct nvml, power), false},
    {"nvmlDeviceGetCurrentClocksThrottleReasons", offsetof(struct nvml, reasons), true},
    {"nvmlDeviceGetComputeRunningProcesses_v3", offsetof(struct nvml, processes), false},
    {"nvmlSystemGetDriverVersion", offsetof(struct nvml, driver), false},
};

struct nvml *nvml_open(const unsigned char u[16])
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return NULL;
    struct nvml *n = xcalloc(1, sizeof *n);
    n->library = library;
    bool complete = true;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        void *f = dlsym(library, entries[i].name);
        complete &= f || !entries[i].needed;
        memcpy((char *)n + entries[i].at, &f, sizeof f);
    }
    char uuid[48];
    snprintf(uuid, sizeof uuid, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
             u[15]);
    if (complete && n->init() == 0) {
        if (n->by_uuid(uuid, &n->device) == 0)
            return n;
        n->shutdown();
    }
    dlclose(library);
    free(n);
    return NULL;
}

void nvml_close(struct nvml *n)
{
    if (!n)
        return;
    n->shutdown();
    dlclose(n->library);
    free(n);
}

void nvml_quick(struct nvml *n, struct nvml_state *s)
{
    memset(s, 0, sizeof *s);
    if (!n)
        return;
    unsigned long long bits = 0;
    s->known = n->clock(n->device, 1, &s->sm_mhz) == 0 && n->reasons(n->device, &bits) == 0;
    s->throttle = bits;
}

void nvml_read(struct nvml *n, struct nvml_state *s)
{
    nvml_quick(n, s);
    if (!n)
        return;
    n->clock(n->device, 2, &s->memory_mhz);
    if (n->temperature)
        n->temperature(n->device, 0, &s->celsius);
    unsigned milliwatts = 0;
    if (n->power && n->power(n->device, &milliwatts) == 0)
        s->watts = milliwatts / 1000;
    struct process p[64];
    unsigned count = 64;
    if (n->processes && n->processes(n->device, &count, p) == 0)
        for (unsigned i = 0; i < count && i < 64; i++)
            s->processes += p[i].pid != (unsigned)getpid();
}

void nvml_reasons(uint64_t throttle, char *out, int len)
{
    static const struct {
        uint64_t bit;
        const char *words;
    } names[] = {{NVML_THROTTLE_POWER_CAP, "power cap"},
                 {NVML_THROTTLE_HW_SLOWDOWN, "hardware slowdown"},
                 {NVML_THROTTLE_THERMAL, "thermal slowdown"},
                 {NVML_THROTTLE_HW_THERMAL, "hardware thermal slowdown"},
                 {NVML_THROTTLE_POWER_BRAKE, "power brake"}};
    int at = 0;
    out[0] = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((throttle & names[i].bit) && at < len)
            at += snprintf(out + at, (size_t)(len - at), "%s%s", at ? ", " : "", names[i].words);
}

void nvml_driver(struct nvml *n, char *out, unsigned len)
{
    out[0] = 0;
    if (n && n->driver && n->driver(out, len) != 0)
        out[0] = 0;
}
