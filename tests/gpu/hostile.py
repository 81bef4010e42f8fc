"""Kernels that hang, crash, cheat or ask for too much, and the verdict that each must get. Every row is the body of
    __global__ void k(float *y, const float *x, int n)      y[i] = 3 * x[i] + sqrtf(fabsf(x[i]))
or a whole source where it begins with //, #, or __."""

TASK = """[task]
name = scale
backend = cuda
kernel = k.cu:k
[args]
y = out f32[n]
x = in f32[n] normal(1,1)
n = dim i32
[shapes]
small = n=13 test
odd = n=257 test
page = n=4099 test
bench = n=1000000 bench
[reference]
c = ref.c:ref
[check]
deterministic = yes
[metric]
bytes = 8*n
"""
REF = """void ref(real *y, const real *x, int n)
{
    for (int i = 0; i < n; i++)
        y[i] = 3 * x[i] + sqrt(fabs(x[i]));
}
"""
RIGHT = "y[i] = 3 * x[i] + sqrtf(fabsf(x[i]));"
INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
LAUNCH = "// launch: k<<<ceildiv(n, 256), 256>>>(y, x, n)\n"


def kernel(body, launch=LAUNCH, before="", signature="float *y, const float *x, int n"):
    return "%s%s__global__ void k(%s)\n{\n    %s\n    %s\n}\n" % (before, launch, signature, INDEX, body)


HONEST = kernel("if (i < n) " + RIGHT)
WORK = "if (i < n) " + RIGHT
# name, source, statuses, words that the reason holds ("" any)
ROWS = [
    ("endless", kernel("while (n > 0) __nanosleep(100);" + WORK), "timeout", "did not end"),
    ("endless in one thread", kernel(WORK + " if (i == 5) while (*(volatile const float *)x != 1e30f);"), "timeout", ""),
    ("endless in the race only", kernel(WORK + " if (n > 900000 && i == 5) while (*(volatile const float *)x != 1e30f);"),
     "timeout", ""),
    ("illegal address", kernel(WORK + " y[(1ll << 40) + i] = 1;"), "crash", "outside its buffers"),
    ("null pointer", kernel(WORK + " if (i == 0) *(float *)(n - n + 0ll) = 1;"), "crash", ""),
    ("misaligned", kernel(WORK + " if (i == 0) *(volatile long long *)((char *)y + 4 - ((long long)y & 4)) = 1;"),
     "crash", "misaligned"),
    ("vectors without a promise", kernel("if (4 * i + 3 < n) { float4 v = ((const float4 *)x)[i]; v.x = 3 * v.x + sqrtf(fabsf(v.x));"
                                         " v.y = 3 * v.y + sqrtf(fabsf(v.y)); v.z = 3 * v.z + sqrtf(fabsf(v.z));"
                                         " v.w = 3 * v.w + sqrtf(fabsf(v.w)); ((float4 *)y)[i] = v; }"
                                         " if (i < n % 4) { i += n / 4 * 4; " + RIGHT + " }"), "crash", "misaligned"),
    ("trap", kernel(WORK + " if (i == 3) __trap();"), "crash", "stopped itself"),
    ("assert", kernel(WORK + " assert(n < 0);", before="#include <assert.h>\n"), "crash", "assert"),
    ("printf flood", kernel(WORK + ' for (int k = 0; k < 1000; k++) printf("%d\\n", i);', before="#include <stdio.h>\n"),
     "rejected", "prints"),
    ("device malloc", kernel(WORK + " float *p = (float *)malloc(1 << 20); if (p) y[0] = p[5];"), "rejected", "allocates"),
    ("huge stack", kernel("float big[1 << 16]; for (int k = 0; k < (1 << 16); k++) big[k] = x[(i + k) % n]; if (i < n) {"
                          " float s = big[(i * 7) % 65536]; " + RIGHT + " if (s == 1e30f) y[i] = s; }"),
     "rejected launch_error crash timeout ok", ""),
    ("endless recursion", "__device__ __noinline__ float deep(float v, int n) { volatile float a[64]; a[n & 63] = v;"
     " return n < 0 ? v : deep(v + a[n & 63], n + 1) + a[0]; }\n" + kernel(WORK + " if (i == 0 && deep(x[0], n) == 1e30f) y[0] = 1;"),
     "crash timeout compile_error", ""),
    ("scratch for ever", kernel(WORK, before="// scratch: t f32[n * 1000000]\n"), "rejected", "scratch"),
    ("too many threads", kernel(WORK, launch="// launch: k<<<ceildiv(n, 2048), 2048>>>(y, x, n)\n"), "rejected", "2048 threads"),
    ("too much shared memory", kernel(WORK, launch="// launch: k<<<ceildiv(n, 256), 256, 300000>>>(y, x, n)\n"), "rejected",
     "300000"),
    ("too many registers", LAUNCH.replace("256", "1024") + "__global__ void __launch_bounds__(128) k(float *y, const float *x, int n)\n{ "
     + INDEX + WORK + " }\n", "rejected launch_error", "1024"),
    ("arguments missing", kernel(WORK, launch="// launch: k<<<ceildiv(n, 256), 256>>>(y, x)\n"), "launch_error", "argument"),
    ("argument of another size", kernel(WORK, signature="float *y, const float *x, long n"), "launch_error", "8 bytes"),
    ("no blocks", kernel(WORK, launch="// launch: k<<<n / 100000000, 256>>>(y, x, n)\n"), "wrong", "unwritten"),
    ("no such kernel", kernel(WORK, launch="// launch: other<<<ceildiv(n, 256), 256>>>(y, x, n)\n"), "rejected", "no such kernel"),
    ("launches of its own", kernel(WORK + " if (i < 0) k<<<1, 1>>>(y, x, n);"), "compile_error rejected", ""),
    ("reads a file", '#include "/etc/passwd"\n' + HONEST, "compile_error", ""),
    ("writes after the end", kernel(WORK + " if (i == n - 1) y[n + 20] = 1;"), "wrong", "after its end"),
    ("writes before the start", kernel(WORK + " if (i == 0) y[-3] = 1;"), "wrong", "before its start"),
    ("writes far away", kernel(WORK + " if (i == 0) for (int k = 1; k < 64; k++) y[k << 20] = 1;"), "wrong crash rejected", ""),
    ("changes its input", kernel("if (i < n) { " + RIGHT + " ((float *)x)[i] = 0; }"), "wrong", "changed its input"),
    ("skips the tail", kernel("if (i < n / 4 * 4) " + RIGHT), "wrong", "unwritten"),
    ("does nothing", kernel("if (i < 0) " + RIGHT), "wrong", "unwritten"),
    ("zeros", kernel("if (i < n) y[i] = 0;"), "wrong", ""),
    ("copies the input", kernel("if (i < n) y[i] = x[i];"), "wrong", ""),
    ("NaN", kernel("if (i < n) y[i] = 0.0f / (n - n);"), "wrong", "NaN"),
    ("sizes hard-wired", kernel("if (i < n && (n == 13 || n == 257 || n == 4099 || n == 1000000)) " + RIGHT), "wrong", "hard-wired"),
    ("half of the work in the race", kernel("if (i < n && (n < 900000 || i % 2 == 0)) " + RIGHT), "wrong", "unwritten"),
    ("half precision inside", "#include <cuda_fp16.h>\n" + kernel("if (i < n) { __half v = __float2half(x[i]);"
     " y[i] = __half2float(__float2half(3.0f) * v + hsqrt(__habs(v))); }"), "wrong flagged", ""),
    ("keeps answers", "__device__ float kept[1 << 20];\n" + kernel("if (i < n) { if (kept[i] == 0) kept[i] = 3 * x[i] +"
     " sqrtf(fabsf(x[i])); y[i] = kept[i]; }"), "rejected", "state"),
    ("works only once", "__device__ int calls;\n" + kernel("if (i < n && calls == 0) { " + RIGHT + " } if (i == n - 1) calls = 1;"),
     "wrong", ""),
    ("believes what is there", kernel("if (i < n && !(y[i] > -1e30f && y[i] < 1e30f && y[i] != 0)) " + RIGHT), "wrong", ""),
    ("another result each time", kernel("if (i < n) y[i] = 3 * x[i] + sqrtf(fabsf(x[i])) * (1 + 1e-7f * (clock64() & 1));"), "wrong",
     "other bits"),
]
