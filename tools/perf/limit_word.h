/* SPDX-License-Identifier: Apache-2.0 */
/* How the two sides of a bare measurement tell each other something: one word that is polled. */
#ifndef VELO_BENCH_LIMIT_WORD_H
#define VELO_BENCH_LIMIT_WORD_H

#include "clock.h"
#include "limit.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Only ranks that outnumber the cores ever come this far. */
#define SPINS_BEFORE_YIELD (1u << 16)

/* Acquire pairs with the release in publish(): what was written before it can be read now. */
static inline __attribute__((always_inline)) void await(const _Atomic uint64_t *word,
                                                        uint64_t value, bool pause)
{
    for (unsigned spins = 1; atomic_load_explicit(word, memory_order_acquire) != value; spins++) {
        if (pause) {
            cpu_pause();
        }
        if (spins % SPINS_BEFORE_YIELD == 0) {
            sched_yield();
        }
    }
}

/* The same for a word that only grows. */
static inline void await_at_least(const _Atomic uint64_t *word, uint64_t value)
{
    for (unsigned spins = 1; atomic_load_explicit(word, memory_order_acquire) < value; spins++) {
        cpu_pause();
        if (spins % SPINS_BEFORE_YIELD == 0) {
            sched_yield();
        }
    }
}

static inline void publish(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
}

/* Store a word of each line again. Its writer waits longer for a line that its reader has only
 * read. */
static inline void own_lines(unsigned char *lines, size_t len_bytes)
{
    for (size_t at = 0; at < len_bytes; at += LINE_BYTES) {
        _Atomic uint64_t *word = (_Atomic uint64_t *)(lines + at);
        /* Relaxed: nobody else writes to the line until it is given back. */
        atomic_store_explicit(word, atomic_load_explicit(word, memory_order_relaxed),
                              memory_order_relaxed);
    }
}

#endif
