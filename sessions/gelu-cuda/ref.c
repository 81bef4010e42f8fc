#include <tgmath.h>

// The oracle, in double; sqrt(2/pi) to its digits.
void gelu_ref(real *out, const real *x, int N)
{
    for (int i = 0; i < N; i++) {
        real v = x[i];
        out[i] = (real)0.5 * v * (1 + tanh((real)0.79788456080286535588 * (v + (real)0.044715 * v * v * v)));
    }
}
