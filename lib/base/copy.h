/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file copy.h
 * @brief Copies between a user's buffer and lines that two cores share.
 *
 * memcpy() is made for memory that one core uses. Here every line written must be taken from the
 * other core and every line read must be fetched from it, and hardware prefetch that runs past the
 * end of a message steals lines that the other side is about to use. So a sender writes its lines
 * strictly upwards (prefetch then asks early for the lines of its next message), and a receiver
 * reads them downwards (prefetch then runs into messages it is done with). That is so for short
 * messages; long ones are memcpy()'s again. docs/PERFORMANCE.md has figures.
 */
#ifndef VELO_BASE_COPY_H
#define VELO_BASE_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <velo/spec.h>

#include "compiler.h"

/** Copy less than a line with few branches: two moves of one width, which overlap. All is read
 * before anything is written. */
hot_inline void copy_small(void *to, const void *from, size_t len_bytes)
{
    char *d = to;
    const char *s = from;
    char head[32];
    char tail[32];
#define COPY_PAIR(width)                                                                           \
    do {                                                                                           \
        memcpy(head, s, width);                                                                    \
        memcpy(tail, s + len_bytes - (width), width);                                              \
        memcpy(d, head, width);                                                                    \
        memcpy(d + len_bytes - (width), tail, width);                                              \
    } while (0)
    if (len_bytes >= 16) {
        if (len_bytes >= 32)
            COPY_PAIR(32);
        else
            COPY_PAIR(16);
    } else if (len_bytes >= 8) {
        COPY_PAIR(8);
    } else if (len_bytes >= 4) {
        COPY_PAIR(4);
    } else if (len_bytes > 0) {
        char mid = s[len_bytes / 2];
        COPY_PAIR(1);
        d[len_bytes / 2] = mid;
    }
#undef COPY_PAIR
}

/** Copy into a ring; `to` is aligned to a line. */
void copy_to_ring(void *to, const void *from, size_t len_bytes);
/** Copy out of a ring; `from` is aligned to a line. */
void copy_from_ring(void *to, const void *from, size_t len_bytes);

/** Copy a payload of any length into a ring; `to` is aligned to a line from a line's length on. */
hot_inline void copy_in(void *to, const void *from, size_t len_bytes)
{
    if (len_bytes < VELO_LINE_BYTES)
        copy_small(to, from, len_bytes);
    else
        copy_to_ring(to, from, len_bytes);
}

/** Copy a payload of any length out of a ring, aligned as above, or out of a pool. */
hot_inline void copy_out(void *to, const void *from, size_t len_bytes)
{
    if (len_bytes < VELO_LINE_BYTES)
        copy_small(to, from, len_bytes);
    else
        copy_from_ring(to, from, len_bytes);
}

#endif
