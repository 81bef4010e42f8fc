// A stand-in for the GPU's driver, for tests on machines without one (KSMITH_GPU_LIBRARY names it): memory is
// ordinary memory and no kernel runs, so that every result counts as right. Kernels whose name holds one of
// the words below do what a bad kernel does to a driver. Only tests load this.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long ptr;
static int sticky;  // the error that every call gives from now on
static int endless; // a kernel runs for ever

#define API __attribute__((visibility("default"))) int
#define CHECKED \
    if (sticky) \
        return sticky;

API cuInit(unsigned f)
{
    return f != 0;
}
API cuDriverGetVersion(int *v)
{
    return *v = 13000, 0;
}
API cuDeviceGetCount(int *n)
{
    return *n = 1, 0;
}
API cuDeviceGet(int *d, int i)
{
    return *d = i, i ? 101 : 0;
}
API cuDeviceGetName(char *s, int n, int d)
{
    return (void)d, snprintf(s, (size_t)n, "Stand-in GPU"), 0;
}
API cuDeviceGetUuid(unsigned char *u, int d)
{
    return (void)d, memset(u, 7, 16), 0;
}
API cuDeviceTotalMem_v2(size_t *n, int d)
{
    return (void)d, *n = (size_t)8 << 30, 0;
}
API cuDeviceGetAttribute(int *v, int attr, int d)
{
    static const struct {
        int attr, value;
    } all[] = {{1, 1024},     {2, 1024},  {3, 1024},  {4, 64},       {5, 2147483647},
               {6, 65535},    {7, 65535}, {8, 49152}, {13, 1980000}, {16, 4},
               {38, 1 << 20}, {75, 9},    {76, 0},    {82, 65536},   {97, 232448}};
    *v = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].attr == attr)
            *v = all[i].value;
    return (void)d, 0;
}
API cuDevicePrimaryCtxRetain(void **c, int d)
{
    return (void)d, *c = (void *)1, 0;
}
API cuCtxSetCurrent(void *c)
{
    return (void)c, 0;
}
API cuCtxSetLimit(int l, size_t v)
{
    return (void)l, (void)v, 0;
}
API cuCtxSynchronize(void)
{
    return sticky;
}
API cuCtxResetPersistingL2Cache(void)
{
    return sticky;
}
API cuModuleLoadData(void **m, const void *image)
{
    CHECKED return *m = (void *)(uintptr_t)image, 0;
}
API cuModuleUnload(void *m)
{
    return (void)m, sticky;
}
API cuModuleGetFunction(void **f, void *m, const char *name)
{
    CHECKED(void) m;
    *f = strdup(name); // the handle is the name; a test's process is short
    return *f == NULL;
}
API cuModuleGetGlobal_v2(ptr *p, size_t *n, void *m, const char *name)
{
    return (void)p, (void)n, (void)m, (void)name, 500;
}
API cuFuncGetAttribute(int *v, int attr, void *f)
{
    CHECKED *v = attr == 0 ? (strstr(f, "narrow") ? 128 : 1024) : 0;
    return 0;
}
API cuFuncSetAttribute(void *f, int attr, int v)
{
    return (void)f, (void)attr, (void)v, sticky;
}
API cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, void *f, int t, size_t s)
{
    return (void)f, (void)t, (void)s, *n = 1, 0;
}
API cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *s, void **params, void **extra)
{
    (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)s, (void)params,
        (void)extra;
    CHECKED
    if (strstr(f, "hang"))
        endless = 1;
    if (strstr(f, "illegal"))
        sticky = 700;
    if (strstr(f, "die"))
        abort();
    return strstr(f, "toomuch") ? 701 : 0;
}
API cuMemAlloc_v2(ptr *p, size_t n)
{
    CHECKED
    if (n > (size_t)4 << 30)
        return 2;
    void *q = NULL;
    if (posix_memalign(&q, 512, n ? n : 1) != 0)
        return 2;
    return *p = (ptr)(uintptr_t)q, 0;
}
API cuMemFree_v2(ptr p)
{
    return free((void *)(uintptr_t)p), sticky;
}
API cuMemGetInfo_v2(size_t *f, size_t *t)
{
    return *f = *t = (size_t)256 << 20, sticky;
}
API cuMemHostRegister_v2(void *p, size_t n, unsigned f)
{
    return (void)p, (void)n, (void)f, 0;
}
API cuMemHostUnregister(void *p)
{
    return (void)p, 0;
}
API cuMemcpyHtoD_v2(ptr to, const void *from, size_t n)
{
    CHECKED return memcpy((void *)(uintptr_t)to, from, n), 0;
}
API cuMemcpyDtoH_v2(void *to, ptr from, size_t n)
{
    CHECKED return memcpy(to, (void *)(uintptr_t)from, n), 0;
}
API cuMemcpyDtoDAsync_v2(ptr to, ptr from, size_t n, void *s)
{
    return (void)to, (void)from, (void)n, (void)s, sticky;
}
API cuMemsetD8Async(ptr p, unsigned char v, size_t n, void *s)
{
    CHECKED return (void)s, memset((void *)(uintptr_t)p, v, n), 0;
}
API cuStreamCreate(void **s, unsigned f)
{
    return (void)f, *s = (void *)2, sticky;
}
API cuStreamQuery(void *s)
{
    return (void)s, endless ? 600 : sticky;
}
API cuStreamSynchronize(void *s)
{
    return (void)s, sticky;
}
API cuStreamBeginCapture_v2(void *s, int m)
{
    return (void)s, (void)m, sticky;
}
API cuStreamEndCapture(void *s, void **g)
{
    return (void)s, *g = (void *)3, sticky;
}
API cuGraphInstantiateWithFlags(void **x, void *g, unsigned long long f)
{
    return (void)g, (void)f, *x = (void *)4, sticky;
}
API cuGraphUpload(void *x, void *s)
{
    return (void)x, (void)s, sticky;
}
API cuGraphLaunch(void *x, void *s)
{
    return (void)x, (void)s, sticky;
}
API cuGraphDestroy(void *g)
{
    return (void)g, sticky;
}
API cuGraphExecDestroy(void *x)
{
    return (void)x, sticky;
}
API cuEventCreate(void **e, unsigned f)
{
    return (void)f, *e = (void *)5, sticky;
}
API cuEventRecord(void *e, void *s)
{
    return (void)e, (void)s, sticky;
}
API cuEventRecordWithFlags(void *e, void *s, unsigned f)
{
    return (void)e, (void)s, (void)f, sticky;
}
API cuEventQuery(void *e)
{
    return (void)e, endless ? 600 : sticky;
}
API cuEventElapsedTime(float *ms, void *a, void *b)
{
    return (void)a, (void)b, *ms = 1.5f, sticky;
}
API cuEventDestroy_v2(void *e)
{
    return (void)e, 0;
}
API cuGetErrorName(int e, const char **s)
{
    return *s = e == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR", 0;
}
API cuGetErrorString(int e, const char **s)
{
    return (void)e, *s = "an error", 0;
}
