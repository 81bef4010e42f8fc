#include "cuda/driver.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

// A vendor: its library and the names of its entry points, in the order of GPU_ENTRIES.
struct vendor {
    const char *name, *library, *remedy;
    const char *entries[64];
};

static const struct vendor vendors[] = {
    {"NVIDIA",
     "libcuda.so.1",
     "install NVIDIA's driver, or use backend = cpu",
     {"cuInit",
      "cuDriverGetVersion",
      "cuDeviceGetCount",
      "cuDeviceGet",
      "cuDeviceGetName",
      "cuDeviceGetUuid",
      "cuDeviceGetAttribute",
      "cuDeviceTotalMem_v2",
      "cuDevicePrimaryCtxRetain",
      "cuCtxSetCurrent",
      "cuCtxSetLimit",
      "cuCtxSynchronize",
      "cuCtxResetPersistingL2Cache",
      "cuModuleLoadData",
      "cuModuleUnload",
      "cuModuleGetFunction",
      "cuModuleGetGlobal_v2",
      "cuFuncGetAttribute",
      "cuFuncSetAttribute",
      "cuFuncGetParamInfo",
      "cuOccupancyMaxActiveBlocksPerMultiprocessor",
      "cuLaunchKernel",
      "cuMemAlloc_v2",
      "cuMemFree_v2",
      "cuMemGetInfo_v2",
      "cuMemHostRegister_v2",
      "cuMemHostUnregister",
      "cuMemcpyHtoD_v2",
      "cuMemcpyDtoH_v2",
      "cuMemcpyDtoDAsync_v2",
      "cuMemsetD8Async",
      "cuStreamCreate",
      "cuStreamQuery",
      "cuStreamSynchronize",
      "cuStreamBeginCapture_v2",
      "cuStreamEndCapture",
      "cuGraphInstantiateWithFlags",
      "cuGraphUpload",
      "cuGraphLaunch",
      "cuGraphDestroy",
      "cuGraphExecDestroy",
      "cuEventCreate",
      "cuEventRecord",
      "cuEventRecordWithFlags",
      "cuEventQuery",
      "cuEventElapsedTime",
      "cuEventDestroy_v2",
      "cuGetErrorName",
      "cuGetErrorString"}},
};

// Where each entry goes in struct gpu.
static const size_t slots[] = {
#define SLOT(name, params) offsetof(struct gpu, name),
    GPU_ENTRIES(SLOT)
#undef SLOT
};

// An older driver may lack it; the caller asks whether it is there.
static bool optional(const char *entry)
{
    return strcmp(entry, "cuFuncGetParamInfo") == 0;
}

static int fill(struct gpu *g, const struct vendor *v, void *library, struct err *e)
{
    memset(g, 0, sizeof *g);
    g->library = library;
    g->vendor = v->name;
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        void *entry = dlsym(library, v->entries[i]);
        if (!entry && !optional(v->entries[i]))
            return err_set(e, ERR_FAIL, "update the driver", "%s has no %s", v->library, v->entries[i]);
        memcpy((char *)g + slots[i], &entry, sizeof entry);
    }
    return 0;
}

int gpu_open(struct gpu *g, struct err *e)
{
    const struct vendor *v = &vendors[0];
    const char *other = getenv("KSMITH_GPU_LIBRARY");
    void *library = dlopen(other && *other ? other : v->library, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return err_set(e, ERR_FAIL, v->remedy, "no GPU driver: %s", dlerror());
    if (fill(g, v, library, e) != 0)
        return -1;
    int error = g->init(0);
    if (error)
        return err_set(e, ERR_FAIL, "see whether nvidia-smi works", "the GPU driver does not start: %s",
                       gpu_error(g, error));
    int n = 0;
    if (g->device_count(&n) != 0 || n < 1)
        return err_set(e, ERR_FAIL, "see whether nvidia-smi shows a device, and CUDA_VISIBLE_DEVICES",
                       "the driver shows no GPU");
    return 0;
}

const char *gpu_error(const struct gpu *g, int error)
{
    const char *name = NULL;
    if (g->error_name)
        g->error_name(error, &name);
    return name ? name : "an unknown error";
}

static const struct words {
    int error;
    bool sticky;
    const char *words;
} words[] = {
    {GPU_OUT_OF_MEMORY, false, "needs more memory than the GPU has free"},
    {GPU_NOT_FOUND, false, "has no kernel of that name"},
    {GPU_ILLEGAL_ADDRESS, true, "read or wrote an address outside its buffers"},
    {GPU_LAUNCH_OUT_OF_RESOURCES, false, "needs more registers or shared memory than a block can have"},
    {GPU_LAUNCH_TIMEOUT, true, "ran too long for the driver"},
    {GPU_ASSERT, true, "failed an assert() of its own"},
    {GPU_HARDWARE_STACK_ERROR, true, "overflowed its stack"},
    {GPU_ILLEGAL_INSTRUCTION, true, "ran an instruction that the GPU does not have"},
    {GPU_MISALIGNED_ADDRESS, true,
     "read or wrote a misaligned address (a vector access to a buffer whose alignment the task does not "
     "promise?)"},
    {GPU_INVALID_ADDRESS_SPACE, true, "used an address in the wrong memory space"},
    {GPU_INVALID_PC, true, "jumped to an invalid address"},
    {GPU_LAUNCH_FAILED, true, "stopped itself (a trap) or failed in a way the GPU does not explain"},
};

static const struct words *find(int error)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].error == error)
            return &words[i];
    return NULL;
}

const char *gpu_error_words(int error)
{
    const struct words *w = find(error);
    return w ? w->words : "failed";
}

bool gpu_error_sticky(int error)
{
    const struct words *w = find(error);
    return w ? w->sticky : error >= GPU_ILLEGAL_ADDRESS && error < 800;
}
