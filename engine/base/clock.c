#include "base/clock.h"

#include <errno.h>
#include <time.h>

static struct timespec get(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return t;
}

int64_t clock_ns(void)
{
    struct timespec t = get(CLOCK_MONOTONIC);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

double clock_wall(void)
{
    struct timespec t = get(CLOCK_REALTIME);
    long us = t.tv_nsec / 1000;
    return (double)t.tv_sec + (double)us * 1e-6;
}

double clock_cpu(void)
{
    struct timespec t = get(CLOCK_PROCESS_CPUTIME_ID);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void clock_sleep_ms(int ms)
{
    struct timespec t = {ms / 1000, (ms % 1000) * 1000000L};
    while (nanosleep(&t, &t) < 0 && errno == EINTR)
        ;
}
