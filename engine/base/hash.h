// Hashes: SHA-256 for identities that must not collide (sources, binaries, fingerprints), CRC-32 for torn
// journal lines, a 64-bit mixer for tables and draws.
#pragma once
#include <stddef.h>
#include <stdint.h>

struct sha256 {
    uint32_t h[8];
    uint64_t bytes;
    unsigned char block[64];
};
void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *data, size_t n);
void sha256_end(struct sha256 *s, unsigned char out[32]);
// The digest as 64 lower-case hex digits and a NUL.
void sha256_hex(const void *data, size_t n, char out[65]);
void sha256_end_hex(struct sha256 *s, char out[65]);

uint32_t crc32_of(const void *data, size_t n); // IEEE polynomial, as in gzip
uint64_t hash_mix(uint64_t x);                 // splitmix64's finalizer (Steele et al., 2014)
uint64_t hash_bytes(const void *data, size_t n, uint64_t seed); // not for hostile input
