// The GPU's runtime behind one table of entry points, filled with dlopen: nothing of CUDA is needed to build,
// and a second vendor is a second row of names (struct vendor in driver.c). Declarations are our own; only
// what the worker calls is here.
#pragma once
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gpu_ctx_ *gpu_ctx;
typedef struct gpu_module_ *gpu_module;
typedef struct gpu_function_ *gpu_function;
typedef struct gpu_stream_ *gpu_stream;
typedef struct gpu_event_ *gpu_event;
typedef struct gpu_graph_ *gpu_graph;
typedef struct gpu_exec_ *gpu_exec;
typedef uint64_t gpu_ptr; // an address on the device

enum { // results that the worker tells apart; all others are words
    GPU_OK = 0,
    GPU_OUT_OF_MEMORY = 2,
    GPU_NO_DEVICE = 100,
    GPU_NOT_FOUND = 500,
    GPU_NOT_READY = 600,
    GPU_ILLEGAL_ADDRESS = 700,
    GPU_LAUNCH_OUT_OF_RESOURCES = 701,
    GPU_LAUNCH_TIMEOUT = 702,
    GPU_ASSERT = 710,
    GPU_HARDWARE_STACK_ERROR = 714,
    GPU_ILLEGAL_INSTRUCTION = 715,
    GPU_MISALIGNED_ADDRESS = 716,
    GPU_INVALID_ADDRESS_SPACE = 717,
    GPU_INVALID_PC = 718,
    GPU_LAUNCH_FAILED = 719,
};
enum { // device attributes
    GPU_ATTR_MAX_THREADS = 1,
    GPU_ATTR_MAX_BLOCK_X = 2, // Y and Z follow
    GPU_ATTR_MAX_GRID_X = 5,  // Y and Z follow
    GPU_ATTR_SHARED_BLOCK = 8,
    GPU_ATTR_WARP = 10,
    GPU_ATTR_CLOCK_KHZ = 13,
    GPU_ATTR_SMS = 16,
    GPU_ATTR_L2_BYTES = 38,
    GPU_ATTR_THREADS_SM = 39,
    GPU_ATTR_MAJOR = 75,
    GPU_ATTR_MINOR = 76,
    GPU_ATTR_SHARED_SM = 81,
    GPU_ATTR_REGS_SM = 82,
    GPU_ATTR_PAGEABLE = 88, // kernels can reach ordinary host memory
    GPU_ATTR_SHARED_OPTIN = 97,
};
enum { // function attributes
    GPU_FUNC_MAX_THREADS = 0,
    GPU_FUNC_STATIC_SHARED = 1,
    GPU_FUNC_LOCAL = 3,
    GPU_FUNC_REGS = 4,
    GPU_FUNC_DYNAMIC_SHARED = 8,
};
enum { GPU_LIMIT_STACK = 0, GPU_LIMIT_PRINTF = 1, GPU_LIMIT_HEAP = 2 };
enum { GPU_EVENT_DEFAULT = 0, GPU_EVENT_NO_TIMING = 2, GPU_EVENT_EXTERNAL = 1 };
enum { GPU_CAPTURE_RELAXED = 2 };
enum { GPU_STREAM_NON_BLOCKING = 1 };

// name, result, parameters. Every entry returns 0 or an error number.
#define GPU_ENTRIES(X)                                                                                       \
    X(init, (unsigned flags))                                                                                \
    X(driver_version, (int *version))                                                                        \
    X(device_count, (int *n))                                                                                \
    X(device_get, (int *device, int ordinal))                                                                \
    X(device_name, (char *name, int len, int device))                                                        \
    X(device_uuid, (unsigned char *uuid, int device))                                                        \
    X(device_attr, (int *value, int attr, int device))                                                       \
    X(device_memory, (size_t * bytes, int device))                                                           \
    X(ctx_retain, (gpu_ctx * ctx, int device))                                                               \
    X(ctx_set, (gpu_ctx ctx))                                                                                \
    X(ctx_limit, (int limit, size_t value))                                                                  \
    X(ctx_sync, (void))                                                                                      \
    X(reset_persisting_l2, (void))                                                                           \
    X(module_load, (gpu_module * module, const void *image))                                                 \
    X(module_unload, (gpu_module module))                                                                    \
    X(module_function, (gpu_function * f, gpu_module module, const char *name))                              \
    X(module_global, (gpu_ptr * p, size_t * bytes, gpu_module module, const char *name))                     \
    X(func_get, (int *value, int attr, gpu_function f))                                                      \
    X(func_set, (gpu_function f, int attr, int value))                                                       \
    X(func_param, (gpu_function f, size_t index, size_t * offset, size_t * size))                            \
    X(occupancy, (int *blocks, gpu_function f, int threads, size_t shared))                                  \
    X(launch, (gpu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, \
               unsigned shared, gpu_stream s, void **params, void **extra))                                  \
    X(mem_alloc, (gpu_ptr * p, size_t bytes))                                                                \
    X(mem_free, (gpu_ptr p))                                                                                 \
    X(mem_info, (size_t * free, size_t * total))                                                             \
    X(host_register, (void *p, size_t bytes, unsigned flags))                                                \
    X(host_unregister, (void *p))                                                                            \
    X(copy_in, (gpu_ptr to, const void *from, size_t bytes))                                                 \
    X(copy_out, (void *to, gpu_ptr from, size_t bytes))                                                      \
    X(copy_async, (gpu_ptr to, gpu_ptr from, size_t bytes, gpu_stream s))                                    \
    X(set8, (gpu_ptr p, unsigned char v, size_t n, gpu_stream s))                                            \
    X(stream_create, (gpu_stream * s, unsigned flags))                                                       \
    X(stream_query, (gpu_stream s))                                                                          \
    X(stream_sync, (gpu_stream s))                                                                           \
    X(capture_begin, (gpu_stream s, int mode))                                                               \
    X(capture_end, (gpu_stream s, gpu_graph * g))                                                            \
    X(graph_instantiate, (gpu_exec * x, gpu_graph g, unsigned long long flags))                              \
    X(graph_upload, (gpu_exec x, gpu_stream s))                                                              \
    X(graph_launch, (gpu_exec x, gpu_stream s))                                                              \
    X(graph_destroy, (gpu_graph g))                                                                          \
    X(exec_destroy, (gpu_exec x))                                                                            \
    X(event_create, (gpu_event * e, unsigned flags))                                                         \
    X(event_record, (gpu_event e, gpu_stream s))                                                             \
    X(event_record_flags, (gpu_event e, gpu_stream s, unsigned flags))                                       \
    X(event_query, (gpu_event e))                                                                            \
    X(event_ms, (float *ms, gpu_event from, gpu_event to))                                                   \
    X(event_destroy, (gpu_event e))                                                                          \
    X(error_name, (int error, const char **name))                                                            \
    X(error_text, (int error, const char **text))

struct gpu {
    void *library;
    const char *vendor; // "NVIDIA"
#define GPU_FIELD(name, params) int(*name) params;
    GPU_ENTRIES(GPU_FIELD)
#undef GPU_FIELD
};

// Loads the library and fills g. $KSMITH_GPU_LIBRARY names another file than the vendor's own (the tests'
// driver stand-in). Returns -1 with a remedy where the driver, an entry point or a device is missing.
int gpu_open(struct gpu *g, struct err *e);
// The name of an error number ("CUDA_ERROR_ILLEGAL_ADDRESS"), never NULL.
const char *gpu_error(const struct gpu *g, int error);
// What an error means to the author of a kernel, in words ("read or wrote an address that it does not own").
const char *gpu_error_words(int error);
// Whether the context is lost after this error: nothing works any more in this process.
bool gpu_error_sticky(int error);
