/* SPDX-License-Identifier: Apache-2.0 */
#include "copy.h"

#include <velo/spec.h>

/* From this length on memcpy() is faster in both directions, and steadier: the C library moves long
 * pieces by the means that this processor is best at. docs/PERFORMANCE.md has figures. */
#define LONG_BYTES 6144u

/* One line is two moves where the core has 32-byte vectors. A sanitizer's start-up does not work
 * with the dispatch at load time. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__) &&      \
    defined(__GNUC__) && !defined(__clang__)
#define for_each_core __attribute__((target_clones("avx2", "default")))
#else
#define for_each_core
#endif

typedef char half_line __attribute__((vector_size(VELO_LINE_BYTES / 2), aligned(1), may_alias));

for_each_core void copy_to_ring(void *to, const void *from, size_t len_bytes)
{
    if (len_bytes >= LONG_BYTES) {
        memcpy(to, from, len_bytes);
        return;
    }
    char *d = to;
    const char *s = from;
    const char *end = s + (len_bytes & ~(size_t)(VELO_LINE_BYTES - 1));
    for (; s < end; s += VELO_LINE_BYTES, d += VELO_LINE_BYTES) {
        half_line low = ((const half_line *)s)[0];
        half_line high = ((const half_line *)s)[1];
        ((half_line *)d)[0] = low;
        ((half_line *)d)[1] = high;
    }
    copy_small(d, s, len_bytes % VELO_LINE_BYTES);
}

for_each_core void copy_from_ring(void *to, const void *from, size_t len_bytes)
{
    if (len_bytes >= LONG_BYTES) {
        memcpy(to, from, len_bytes);
        return;
    }
    size_t whole = len_bytes & ~(size_t)(VELO_LINE_BYTES - 1);
    char *d = (char *)to + whole;
    const char *s = (const char *)from + whole;
    copy_small(d, s, len_bytes % VELO_LINE_BYTES);
    while (s > (const char *)from) {
        s -= VELO_LINE_BYTES;
        d -= VELO_LINE_BYTES;
        half_line low = ((const half_line *)s)[0];
        half_line high = ((const half_line *)s)[1];
        ((half_line *)d)[0] = low;
        ((half_line *)d)[1] = high;
    }
}
