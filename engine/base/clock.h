// Time: durations from the monotonic clock in nanoseconds, moments from the wall clock.
#pragma once
#include <stdint.h>

int64_t clock_ns(void);  // monotonic
double clock_wall(void); // seconds since 1970, to the microsecond
double clock_cpu(void);  // CPU seconds this process has used
void clock_sleep_ms(int ms);
