/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The updates of HPCC's RandomAccess: a stream of 64-bit words, each the last one times x in
 * GF(2)[x] modulo x^64 + x^2 + x + 1. A word is XORed into the table at the index that its low bits
 * say; 4 updates for each word of the table, of which every rank makes an equal share. A rank keeps
 * at most RANDOM_ACCESS_LOOK_AHEAD updates that it has made and not yet sent.
 */
#ifndef VELO_BENCH_RANDOM_ACCESS_H
#define VELO_BENCH_RANDOM_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#define RANDOM_ACCESS_POLYNOMIAL 7u
#define RANDOM_ACCESS_LOOK_AHEAD 1024u
#define RANDOM_ACCESS_UPDATES_PER_WORD 4u
#define RANDOM_ACCESS_LOG2_MIN 10u
#define RANDOM_ACCESS_LOG2_MAX 30u

static inline uint64_t random_access_next(uint64_t word)
{
    return (word << 1) ^ ((int64_t)word < 0 ? RANDOM_ACCESS_POLYNOMIAL : 0);
}

static inline uint64_t random_access_multiply(uint64_t a, uint64_t b)
{
    uint64_t product = 0;
    for (; b; b >>= 1, a = random_access_next(a)) {
        product ^= b & 1 ? a : 0;
    }
    return product;
}

/* Word number `n` of the stream: x to the power n. */
static inline uint64_t random_access_at(uint64_t n)
{
    uint64_t word = 1, power = 2;
    for (; n; n >>= 1, power = random_access_multiply(power, power)) {
        word = n & 1 ? random_access_multiply(word, power) : word;
    }
    return word;
}

/* One rank's part of table and stream. */
struct random_access {
    uint64_t *table;    /* words_own words; word i holds the global index of i at first */
    uint64_t words_all; /* a power of two, as ranks is */
    uint64_t words_own;
    uint64_t updates_own;
    unsigned rank;
    unsigned ranks;
    unsigned own_log2;
};

static inline void random_access_init(struct random_access *ra, uint64_t *table, unsigned log2,
                                      unsigned rank, unsigned ranks)
{
    unsigned ranks_log2 = (unsigned)__builtin_ctz(ranks);
    *ra = (struct random_access){
        .table = table,
        .words_all = UINT64_C(1) << log2,
        .words_own = UINT64_C(1) << (log2 - ranks_log2),
        .updates_own = (RANDOM_ACCESS_UPDATES_PER_WORD << (log2 - ranks_log2)),
        .rank = rank,
        .ranks = ranks,
        .own_log2 = log2 - ranks_log2,
    };
}

static inline void random_access_reset(const struct random_access *ra)
{
    for (uint64_t i = 0; i < ra->words_own; i++) {
        ra->table[i] = ra->rank * ra->words_own + i;
    }
}

static inline unsigned random_access_owner(const struct random_access *ra, uint64_t word)
{
    return (unsigned)((word & (ra->words_all - 1)) >> ra->own_log2);
}

static inline void random_access_apply(const struct random_access *ra, uint64_t word)
{
    ra->table[word & (ra->words_own - 1)] ^= word;
}

/*
 * Undo every update to the own part, made anew here and received from nobody; then each word must
 * hold its index again. Returns how many do not.
 */
static inline uint64_t random_access_check(const struct random_access *ra)
{
    uint64_t errors = 0, word = random_access_at(0);
    for (uint64_t n = ra->updates_own * ra->ranks; n; n--) {
        if (random_access_owner(ra, word) == ra->rank) {
            random_access_apply(ra, word);
        }
        word = random_access_next(word);
    }
    for (uint64_t i = 0; i < ra->words_own; i++) {
        errors += ra->table[i] != ra->rank * ra->words_own + i;
    }
    return errors;
}

#endif
