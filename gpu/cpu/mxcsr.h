// The floating-point mode of this thread: a library linked with fast-math options turns flush-to-zero on for
// the whole process when it is loaded, and a kernel can do it by hand.
#pragma once
#include <stdint.h>

static inline uint32_t mxcsr_get(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_stmxcsr();
#elif defined(__aarch64__)
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    return (uint32_t)fpcr;
#else
    return 0;
#endif
}

static inline void mxcsr_set_default(void)
{
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(0x1f80);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0));
#endif
}

// The bits that change results: rounding, flush-to-zero, denormals-are-zero; not the sticky exception flags.
static inline uint32_t mxcsr_mode(uint32_t x)
{
#if defined(__x86_64__)
    return x & 0xffc0;
#else
    return x;
#endif
}
