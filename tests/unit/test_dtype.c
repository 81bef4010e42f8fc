#include "base/dtype.h"
#include "t.h"

#include <stdint.h>

static void names_and_sizes(void)
{
    enum dtype t;
    for (int i = 0; i < DT_COUNT; i++) {
        CHECK_INT(dtype_parse(dtype_info((enum dtype)i)->name, &t), 0);
        CHECK_INT(t, i);
        CHECK(dtype_info((enum dtype)i)->c_names[0] != NULL);
    }
    CHECK_INT(dtype_parse("f33", &t), -1);
    CHECK_INT(dtype_parse("", &t), -1);
}

// Every bit pattern of a small float comes back as it was; NaN as some NaN.
static void round_trips(enum dtype t)
{
    size_t size = dtype_info(t)->size;
    int bad = 0;
    for (uint32_t bits = 0; bits < (size == 2 ? 65536u : 256u); bits++) {
        uint32_t in = bits, out = 0;
        double x = dtype_load(t, &in);
        dtype_store(t, &out, x);
        if (isnan(x) ? !isnan(dtype_load(t, &out)) : out != bits)
            bad++;
    }
    CHECK_INT(bad, 0);
}
static void f16_round_trips(void)
{
    round_trips(DT_F16);
}
static void bf16_round_trips(void)
{
    round_trips(DT_BF16);
}
static void f8_round_trips(void)
{
    round_trips(DT_F8E4M3);
    round_trips(DT_F8E5M2);
}

static uint32_t stored(enum dtype t, double x)
{
    uint32_t bits = 0;
    dtype_store(t, &bits, x);
    return bits;
}

// Between two neighbours: below the middle down, above it up, in the middle to the even one.
static void rounds_to_nearest_even(enum dtype t, uint32_t last)
{
    int bad = 0;
    for (uint32_t bits = 0; bits < last; bits++) {
        uint32_t next = bits + 1;
        double a = dtype_load(t, &bits), b = dtype_load(t, &next), middle = a + (b - a) / 2;
        bad += stored(t, middle) != (bits & 1 ? next : bits);
        bad += stored(t, nextafter(middle, a)) != bits;
        bad += stored(t, nextafter(middle, b)) != next;
        bad += dtype_load(t, &bits) >= b;
    }
    CHECK_INT(bad, 0);
}
static void f16_rounds_to_nearest_even(void)
{
    rounds_to_nearest_even(DT_F16, 0x7bff);
}
static void bf16_rounds_to_nearest_even(void)
{
    rounds_to_nearest_even(DT_BF16, 0x7f7f);
}
static void f8_rounds_to_nearest_even(void)
{
    rounds_to_nearest_even(DT_F8E4M3, 0x7e);
    rounds_to_nearest_even(DT_F8E5M2, 0x7b);
}

// The compiler's own half is another implementation to agree with.
static void f16_agrees_with_the_compiler(void)
{
#ifdef __FLT16_MAX__
    int bad = 0;
    for (uint32_t i = 0; i < 200000; i++) {
        float x = (float)ldexp((double)(i * 2654435761u) / 4294967296.0 + 0.5, (int)(i % 44) - 27);
        __extension__ _Float16 h = (_Float16)x;
        uint16_t want;
        memcpy(&want, &h, sizeof want);
        bad += stored(DT_F16, x) != want;
    }
    CHECK_INT(bad, 0);
#endif
}

static void limits(void)
{
    CHECK_INT(stored(DT_F16, 65519.99), 0x7bff);
    CHECK_INT(stored(DT_F16, 65520), 0x7c00); // too large becomes infinity
    CHECK_INT(stored(DT_F16, -1e300), 0xfc00);
    CHECK_INT(stored(DT_F16, -0.0), 0x8000);
    CHECK_INT(stored(DT_F16, 1e-320), 0);
    CHECK_INT(stored(DT_BF16, 1.0), 0x3f80);
    CHECK_INT(stored(DT_BF16, INFINITY), 0x7f80);
    CHECK_INT(stored(DT_F8E4M3, 448), 0x7e);
    CHECK_INT(stored(DT_F8E4M3, 464), 0x7e); // the middle to a 480 that is NaN's place: even is 448
    CHECK_INT(stored(DT_F8E4M3, 465), 0x7f); // no infinity: NaN
    CHECK_INT(stored(DT_F8E5M2, 61440), 0x7c);
    CHECK_INT(stored(DT_F8E5M2, 57344), 0x7b);
    for (int i = 0; i < DT_COUNT; i++) {
        const struct dtype_info *d = dtype_info((enum dtype)i);
        unsigned char one[8] = {0}, up[8] = {0};
        dtype_store((enum dtype)i, up, d->max);
        double got = dtype_load((enum dtype)i, up);
        CHECK(got == d->max || i == DT_I64); // 2^63 itself is out of reach
        if (!d->is_float)
            continue;
        dtype_store((enum dtype)i, one, 1 + d->eps);
        CHECK(dtype_load((enum dtype)i, one) == 1 + d->eps);
        dtype_store((enum dtype)i, one, 1 + d->eps / 2);
        CHECK(dtype_load((enum dtype)i, one) == 1);
    }
}

static void integers_round_and_stay_in_range(void)
{
    static const struct {
        enum dtype t;
        double in, out;
    } rows[] = {{DT_I8, 200, 127},
                {DT_I8, -200, -128},
                {DT_I8, 2.5, 2},
                {DT_U8, -3, 0},
                {DT_U8, 255.4, 255},
                {DT_U8, 1e9, 255},
                {DT_I16, -32768.4, -32768},
                {DT_I32, 1e18, 2147483647},
                {DT_I32, -7.5, -8},
                {DT_U32, 4294967295.0, 4294967295.0},
                {DT_U32, -1, 0},
                {DT_I64, 1e300, 0x1p63},
                {DT_I64, -1e300, -0x1p63},
                {DT_I64, -12345678901.0, -12345678901.0},
                {DT_BOOL, 0.1, 1},
                {DT_BOOL, 0, 0},
                {DT_I32, NAN, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unsigned char v[8] = {0};
        dtype_store(rows[i].t, v, rows[i].in);
        CHECK_NEAR(dtype_load(rows[i].t, v), rows[i].out, 0);
    }
}

static void arrays_are_many_single_ones(void)
{
    for (int t = 0; t < DT_COUNT; t++) {
        double in[37], out[37];
        unsigned char many[37 * 8] = {0}, one[8];
        size_t size = dtype_info((enum dtype)t)->size;
        for (int i = 0; i < 37; i++)
            in[i] = (i - 18) * 0.75;
        dtype_store_n((enum dtype)t, many, in, 37);
        dtype_load_n((enum dtype)t, many, out, 37);
        for (size_t i = 0; i < 37; i++) {
            dtype_store((enum dtype)t, one, in[i]);
            CHECK(memcmp(one, many + i * size, size) == 0);
            CHECK_NEAR(out[i], dtype_load((enum dtype)t, one), 0);
        }
    }
}

int main(void)
{
    T(names_and_sizes);
    T(f16_round_trips);
    T(bf16_round_trips);
    T(f8_round_trips);
    T(f16_rounds_to_nearest_even);
    T(bf16_rounds_to_nearest_even);
    T(f8_rounds_to_nearest_even);
    T(f16_agrees_with_the_compiler);
    T(limits);
    T(integers_round_and_stay_in_range);
    T(arrays_are_many_single_ones);
    T_END;
}
