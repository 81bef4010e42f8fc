// Clocks, temperature, throttling and other processes of a GPU, through libnvidia-ml where it is installed.
// Only reads: no setting of the device is ever changed.
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct nvml;

struct nvml_state {
    bool known;
    unsigned sm_mhz, memory_mhz, celsius, watts, processes; // processes: others that compute on this GPU
    uint64_t throttle;                                      // bits as NVML defines them
};
enum { // reasons that spoil a sample: the clock was taken from us, not chosen by the load
    NVML_THROTTLE_IDLE = 0x1,
    NVML_THROTTLE_POWER_CAP = 0x4,
    NVML_THROTTLE_HW_SLOWDOWN = 0x8,
    NVML_THROTTLE_THERMAL = 0x20,
    NVML_THROTTLE_HW_THERMAL = 0x40,
    NVML_THROTTLE_POWER_BRAKE = 0x80,
    NVML_THROTTLE_SPOILS = NVML_THROTTLE_HW_SLOWDOWN | NVML_THROTTLE_THERMAL | NVML_THROTTLE_HW_THERMAL |
                           NVML_THROTTLE_POWER_BRAKE,
};

// NULL where the library or the device is missing; uuid are the 16 bytes of the device.
struct nvml *nvml_open(const unsigned char uuid[16]);
void nvml_close(struct nvml *n);
// Cheap: the SM clock and the throttle reasons only. n may be NULL: known is false then.
void nvml_quick(struct nvml *n, struct nvml_state *s);
void nvml_read(struct nvml *n, struct nvml_state *s); // all of it
// "thermal slowdown, power brake", or "" in out.
void nvml_reasons(uint64_t throttle, char *out, int len);
// The driver's version ("580.159.04"), or "".
void nvml_driver(struct nvml *n, char *out, unsigned len);
