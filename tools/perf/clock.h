/* SPDX-License-Identifier: Apache-2.0 */
/* Time and waiting, for the measuring programs. */
#ifndef VELO_BENCH_CLOCK_H
#define VELO_BENCH_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Tell the core that we spin: it polls less eagerly, and the line travels sooner. */
static inline void cpu_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

#endif
