/* SPDX-License-Identifier: Apache-2.0 */
/* Time, chance and payloads. Needs no test runner. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "test.h"

int64_t test_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

void test_sleep_ns(int64_t duration_ns)
{
    struct timespec rest = {duration_ns / 1000000000, duration_ns % 1000000000};

    while (nanosleep(&rest, &rest) != 0 && errno == EINTR)
        ;
}

/* The finalizer of splitmix64: every bit of the result depends on every bit of the seed. */
uint64_t test_mix(uint64_t seed)
{
    seed = (seed ^ (seed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    seed = (seed ^ (seed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return seed ^ (seed >> 31);
}

uint64_t rng_next(struct rng *rng)
{
    rng->state += UINT64_C(0x9e3779b97f4a7c15);
    return test_mix(rng->state);
}

uint32_t rng_below(struct rng *rng, uint32_t bound)
{
    return (uint32_t)(((rng_next(rng) >> 32) * bound) >> 32);
}

static uint64_t pattern_word(uint64_t seed, size_t index)
{
    uint64_t word = (seed + index + 1) * UINT64_C(0x9e3779b97f4a7c15);

    return (word ^ (word >> 32)) * UINT64_C(0xd6e8feb86659fd93);
}

void pattern_fill(void *buf, size_t len_bytes, uint64_t seed)
{
    unsigned char *out = buf;
    uint64_t start = test_mix(seed);

    for (size_t i = 0; i * 8 < len_bytes; i++) {
        uint64_t word = pattern_word(start, i);
        size_t rest_bytes = len_bytes - i * 8;

        memcpy(out + i * 8, &word, rest_bytes < 8 ? rest_bytes : 8);
    }
}

bool pattern_matches(const void *buf, size_t len_bytes, uint64_t seed)
{
    const unsigned char *in = buf;
    uint64_t start = test_mix(seed);

    for (size_t i = 0; i * 8 < len_bytes; i++) {
        uint64_t word = pattern_word(start, i);
        size_t rest_bytes = len_bytes - i * 8;

        if (memcmp(in + i * 8, &word, rest_bytes < 8 ? rest_bytes : 8) != 0)
            return false;
    }
    return true;
}

uint8_t pattern_tag(uint64_t seed) { return (uint8_t)(test_mix(seed) >> 56); }
