/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The content of a payload: by it a receiver tells a lost, doubled, reordered, torn or cut message
 * from the right one.
 *
 * Word k of message `seq` of a flow is pattern_word(key, seq, k): every word changes with the
 * message, and the low byte does too, so that even a one-byte message names its place in the order.
 * A message of no bytes is placed by its tag (endpoint.h).
 *
 * Filling kilobytes would take longer than sending them, so a message longer than
 * PATTERN_FULL_BYTES is, inside the timed part, the words of an earlier message `base` with the
 * first, a middle and the last eight bytes of message `seq` stamped over them. Outside the timed
 * part base equals seq, which makes every word of the message its own.
 */
#ifndef VELO_BENCH_PATTERN_H
#define VELO_BENCH_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PATTERN_FULL_BYTES 64u /* Up to here every word is fresh and compared, always. */
#define WORD_BYTES sizeof(uint64_t)

/* Always inlined: with a constant length the loops below unroll to a few instructions. */
#define pattern_inline static inline __attribute__((always_inline))

pattern_inline uint64_t pattern_word(uint64_t key, uint64_t seq, uint64_t k)
{
    return (key + seq) * 0x9E3779B97F4A7C15u + k * 0xD1B54A32D192ED03u;
}

/* Where the middle stamp of a message above PATTERN_FULL_BYTES goes. */
pattern_inline size_t pattern_middle(size_t len_bytes)
{
    return (len_bytes / 2) & ~(WORD_BYTES - 1);
}

/* The last n < 8 bytes at p, exactly: in place they may be the last of the receiver's memory. */
pattern_inline uint64_t pattern_load_tail(const unsigned char *p, size_t n)
{
    uint64_t word = 0;
    unsigned char *to = (unsigned char *)&word;
    if (n & 4) {
        memcpy(to, p, 4);
        to += 4, p += 4;
    }
    if (n & 2) {
        memcpy(to, p, 2);
        to += 2, p += 2;
    }
    if (n & 1) {
        *to = *p;
    }
    return word;
}

pattern_inline void pattern_store_tail(unsigned char *p, size_t n, uint64_t word)
{
    const unsigned char *from = (const unsigned char *)&word;
    if (n & 4) {
        memcpy(p, from, 4);
        from += 4, p += 4;
    }
    if (n & 2) {
        memcpy(p, from, 2);
        from += 2, p += 2;
    }
    if (n & 1) {
        *p = *from;
    }
}

/* Write every word of message seq. */
pattern_inline void pattern_fill(unsigned char *buf, size_t len_bytes, uint64_t key, uint64_t seq)
{
    size_t words = len_bytes / WORD_BYTES;
    for (size_t k = 0; k < words; k++) {
        uint64_t word = pattern_word(key, seq, k);
        memcpy(buf + k * WORD_BYTES, &word, WORD_BYTES);
    }
    pattern_store_tail(buf + words * WORD_BYTES, len_bytes % WORD_BYTES,
                       pattern_word(key, seq, words));
}

/* Turn a long message that holds `base` into message seq. */
pattern_inline void pattern_stamp(unsigned char *buf, size_t len_bytes, uint64_t key, uint64_t seq)
{
    uint64_t first = pattern_word(key, seq, 0);
    uint64_t middle = pattern_word(key, seq, 1);
    uint64_t last = pattern_word(key, seq, 2);
    memcpy(buf, &first, WORD_BYTES);
    memcpy(buf + pattern_middle(len_bytes), &middle, WORD_BYTES);
    memcpy(buf + len_bytes - WORD_BYTES, &last, WORD_BYTES);
}

pattern_inline bool pattern_word_is(const unsigned char *p, uint64_t expected)
{
    uint64_t word;
    memcpy(&word, p, WORD_BYTES);
    return word == expected;
}

/* Is a short message message seq, in every byte? */
pattern_inline bool pattern_is_short(const unsigned char *buf, size_t len_bytes, uint64_t key,
                                     uint64_t seq)
{
    size_t words = len_bytes / WORD_BYTES;
    size_t rest = len_bytes % WORD_BYTES;
    bool same = true;
    for (size_t k = 0; k < words; k++) {
        same &= pattern_word_is(buf + k * WORD_BYTES, pattern_word(key, seq, k));
    }
    if (rest) {
        uint64_t mask = (UINT64_C(1) << (8 * rest)) - 1; /* little-endian, as the wire is */
        uint64_t tail = pattern_load_tail(buf + words * WORD_BYTES, rest);
        same &= tail == (pattern_word(key, seq, words) & mask);
    }
    return same;
}

/* Does a long message carry the three stamps of message seq? */
pattern_inline bool pattern_is_stamped(const unsigned char *buf, size_t len_bytes, uint64_t key,
                                       uint64_t seq)
{
    bool same = pattern_word_is(buf, pattern_word(key, seq, 0));
    same &= pattern_word_is(buf + pattern_middle(len_bytes), pattern_word(key, seq, 1));
    same &= pattern_word_is(buf + len_bytes - WORD_BYTES, pattern_word(key, seq, 2));
    return same;
}

#endif
