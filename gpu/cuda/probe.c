#include "cuda/probe.h"

#include "base/proc.h"
#include "cpu/probe_parts.h"
#include "cuda/compile_server.h"
#include "cuda/driver.h"
#include "cuda/nvml.h"
#include "cuda/nvrtc.h"

#include <stdio.h>
#include <unistd.h>

static bool on_path(const char *name, char out[4096])
{
    const char *path = getenv("PATH");
    for (const char *x = path ? path : "/usr/bin:/bin"; *x;) {
        size_t n = strcspn(x, ":");
        snprintf(out, 4096, "%.*s/%s", (int)n, x, name);
        if (n && access(out, X_OK) == 0)
            return true;
        x += n + (x[n] == ':');
    }
    return false;
}

static void compiler(struct probe *p)
{
    struct err e = {0};
    struct compile_server *s = NULL;
    if (compile_server_open(NULL, &s, &e) < 0) {
        probe_fact(p, "NVRTC", "%s: %s", e.msg, e.hint);
        return;
    }
    probe_fact(p, "NVRTC", "%s", compile_server_library(s));
    struct str cubin = {0}, ptx = {0};
    const char *options[] = {"--gpu-architecture=sm_90"};
    json *a = compile_server_ask(s, "__global__ void k(int *p) { *p = 1; }\n", "k.cu", options, 1, NULL, 0,
                                 &cubin, &ptx, &e);
    probe_fact(p, "compiles in the sandbox", "%s", a && json_int(a, "rc", -1) == 0 ? "yes" : e.msg);
    json_free(a);
    // A source that tries to read what it must not.
    a = compile_server_ask(s, "#include \"/etc/passwd\"\n__global__ void k() {}\n", "k.cu", options, 1, NULL,
                           0, &cubin, &ptx, &e);
    bool leaked = a && strstr(json_str_or(a, "log", ""), "root:");
    probe_say(p, "NVRTC reads no file of yours", a && !leaked && json_int(a, "rc", 0) != 0,
              "A kernel of Linux 5.13 or later with Landlock keeps compilers from other files.",
              "#include \"/etc/passwd\" %s", leaked ? "was read" : "was refused");
    json_free(a);
    str_free(&cubin);
    str_free(&ptx);
    compile_server_close(s);
}

static void gpu(struct probe *p)
{
    struct gpu g;
    struct err e = {0};
    char name[128] = "", version[64];
    unsigned char uuid[16];
    int device = 0, pageable = 0;
    if (gpu_open(&g, &e) < 0) {
        probe_fact(p, "GPU", "%s: %s", e.msg, e.hint);
        return;
    }
    g.device_get(&device, 0);
    g.device_name(name, sizeof name, device);
    g.device_uuid(uuid, device);
    g.device_attr(&pageable, GPU_ATTR_PAGEABLE, device);
    struct nvml *n = nvml_open(uuid);
    struct nvml_state s;
    nvml_driver(n, version, sizeof version);
    nvml_read(n, &s);
    probe_fact(p, "GPU", "%s, driver %s", name, *version ? version : "unknown");
    if (s.known)
        probe_fact(p, "GPU now", "%u MHz, %u C, %u W, %u other processes", s.sm_mhz, s.celsius, s.watts,
                   s.processes);
    else
        probe_fact(p, "GPU now", "unknown: libnvidia-ml is missing, so clocks and throttling are not seen");
    probe_say(p, "kernels cannot reach host memory", !pageable,
              "The driver's HMM is on: load nvidia-uvm with uvm_disable_hmm=1.", "%s",
              pageable ? "HMM is on" : "HMM is off");
    nvml_close(n);
}

int cuda_probe(void)
{
    struct probe p = {0};
    static const char *const tools[] = {"ncu", "compute-sanitizer"};
    gpu(&p);
    compiler(&p);
    for (size_t i = 0; i < countof(tools); i++) {
        char path[4096];
        probe_fact(&p, tools[i], "%s", on_path(tools[i], path) ? path : "missing: not needed");
    }
    return p.broken != 0;
}
