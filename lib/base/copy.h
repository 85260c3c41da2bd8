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
 * messages. Long ones are copied by string moves where the processor says that it has fast ones,
 * else by memcpy(). The choice is each process's own: it changes no byte of a message, so peers
 * need not agree. docs/performance/lessons.md has figures.
 */
#ifndef VELO_BASE_COPY_H
#define VELO_BASE_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <velo/spec.h>

#include "compiler.h"
#include "order.h"

typedef uint64_t copy_16 __attribute__((vector_size(16), aligned(1), may_alias));

/** Copy less than a line out of a ring with few branches: two moves of one width, which overlap.
 * All is read before anything is written. */
hot_inline void copy_small(void *to, const void *from, size_t len_bytes)
{
    char *d = to;
    const char *s = from;
#define COPY_PAIR(type)                                                                            \
    do {                                                                                           \
        type head;                                                                                 \
        type tail;                                                                                 \
        memcpy(&head, s, sizeof head);                                                             \
        memcpy(&tail, s + len_bytes - sizeof tail, sizeof tail);                                   \
        memcpy(d, &head, sizeof head);                                                             \
        memcpy(d + len_bytes - sizeof tail, &tail, sizeof tail);                                   \
    } while (0)
    if (len_bytes >= 16) {
        const copy_16 *last = (const copy_16 *)(s + len_bytes) - 1;
        copy_16 *to_last = (copy_16 *)(d + len_bytes) - 1;
        copy_16 a = *(const copy_16 *)s;
        copy_16 z = *last;
        if (len_bytes >= 32) {
            copy_16 b = ((const copy_16 *)s)[1];
            copy_16 y = last[-1];
            ((copy_16 *)d)[1] = b;
            to_last[-1] = y;
        }
        *(copy_16 *)d = a;
        *to_last = z;
    } else if (len_bytes >= 8) {
        COPY_PAIR(uint64_t);
    } else if (len_bytes >= 4) {
        COPY_PAIR(uint32_t);
    } else if (len_bytes > 0) {
        char mid = s[len_bytes / 2];
        COPY_PAIR(char);
        d[len_bytes / 2] = mid;
    }
#undef COPY_PAIR
}

/** Two words of a buffer, read one by one. A program that has just written them one by one would
 * wait for a load of both until its stores are in the cache: a core hands a store on to a load
 * only if it covers all of the load. */
hot_inline copy_16 copy_load_words(const char *from)
{
    uint64_t low;
    uint64_t high;
    memcpy(&low, from, sizeof low);
    memcpy(&high, from + sizeof low, sizeof high);
    copy_16 both = {low, 0};
    compiler_keep_vector(both); /* Else the compiler makes one load of the two. */
    both[1] = high;
    return both;
}

/** Copy less than a line from a user's buffer into a ring. Few stores: they wait in the core's
 * queue until their line has come, and a full queue stops the core. */
hot_inline void copy_small_in(void *to, const void *from, size_t len_bytes)
{
    char *d = to;
    const char *s = from;
    if (len_bytes == 8) {
        memcpy(d, s, 8);
    } else if (len_bytes >= 16) {
        copy_16 first = copy_load_words(s);
        copy_16 last = copy_load_words(s + len_bytes - 16);
        if (len_bytes >= 32) {
            *(copy_16 *)(d + 16) = copy_load_words(s + 16);
            if (len_bytes > 48)
                *(copy_16 *)(d + len_bytes - 32) = copy_load_words(s + len_bytes - 32);
        }
        *(copy_16 *)d = first;
        *(copy_16 *)(d + len_bytes - 16) = last;
    } else if (len_bytes > 8) {
        memcpy(d, s, 8);
        memcpy(d + len_bytes - 8, s + len_bytes - 8, 8);
    } else if (len_bytes >= 4) {
        memcpy(d, s, 4);
        memcpy(d + len_bytes - 4, s + len_bytes - 4, 4);
    } else if (len_bytes > 0) {
        d[0] = s[0];
        d[len_bytes / 2] = s[len_bytes / 2];
        d[len_bytes - 1] = s[len_bytes - 1];
    }
}

/** The way of long copies. */
enum copy_by {
    COPY_BY_LINES,  /**< As short ones. */
    COPY_BY_STRING, /**< The processor's string moves. */
    COPY_BY_LIBC,   /**< memcpy(). */
};

/** The copies of this process. */
struct copy_choice {
    enum copy_by by;
    uint32_t long_bytes; /**< Copies from this length on are long. */
    const char *reason;  /**< A bit of the processor, or the variable by which the user chose. */
};

/** The largest value of $VELO_COPY_BYTES. */
#define COPY_LONG_BYTES_MAX (1u << 30)

/** Choose by the processor, $VELO_COPY (auto, lines, string, libc) and $VELO_COPY_BYTES, for this
 * process. Before the first call long copies are memcpy()'s. `chosen` may be NULL. Any thread, also
 * while others copy. VELO_ERR_ARG: a variable makes no sense. */
int copy_configure(struct copy_choice *chosen);
const char *copy_name(enum copy_by by);

/** The choice: the length from which copies are long, above it the way of those, and whether they
 * go into lines that the receiver has only read, and does not own (COPY_INTO_READ). */
extern uint64_t copy_chosen;
#define COPY_BY_LSB 32u
#define COPY_INTO_READ (UINT64_C(1) << 40)

/** Is a copy of this length a long one? */
hot_inline bool copy_is_long(size_t len_bytes)
{
    return len_bytes >= (uint32_t)order_setting(&copy_chosen);
}

/** Is it worth its time to own the lines of a payload, so that the next one is copied into them
 * faster? */
hot_inline bool copy_wants_owned(size_t len_bytes)
{
    return !(order_setting(&copy_chosen) & COPY_INTO_READ) || !copy_is_long(len_bytes);
}

/** Copy into a ring; `to` is aligned to a line. */
void copy_to_ring(void *to, const void *from, size_t len_bytes);
/** Copy out of a ring; `from` is aligned to a line. */
void copy_from_ring(void *to, const void *from, size_t len_bytes);

/** Copy a payload of any length into a ring; `to` is aligned to a line from a line's length on. */
hot_inline void copy_in(void *to, const void *from, size_t len_bytes)
{
    if (len_bytes < VELO_LINE_BYTES)
        copy_small_in(to, from, len_bytes);
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
