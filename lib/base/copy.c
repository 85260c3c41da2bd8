/* SPDX-License-Identifier: Apache-2.0 */
#include "copy.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>

#include "error.h"
#include "order.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* From this length on string moves are faster than the loop by lines, in both directions, where the
 * processor has fast ones: they take a whole line without fetching it first. Near cores would gain
 * a little by a larger value, far ones much by a smaller one. docs/performance/lessons.md has
 * figures. */
#define STRING_BYTES 5120u
/* The same for memcpy(), which takes what the C library thinks best. */
#define LIBC_BYTES 6144u

/* One line is two moves where the core has 32-byte vectors. A sanitizer's start-up does not work
 * with the dispatch at load time. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__) &&      \
    defined(__GNUC__) && !defined(__clang__)
#define for_each_core __attribute__((target_clones("avx2", "default")))
#else
#define for_each_core
#endif

typedef char half_line __attribute__((vector_size(VELO_LINE_BYTES / 2), aligned(1), may_alias));

/* ---- the choice ------------------------------------------------------------------------------ */

uint64_t copy_chosen = (uint64_t)COPY_BY_LIBC << COPY_BY_LSB | LIBC_BYTES;

static const char *const names[] = {"lines", "string", "libc"};

const char *copy_name(enum copy_by by) { return names[by]; }

/* The processor's own word on its string moves; NULL: they are slow, or there are none. */
static const char *string_moves(void)
{
#if defined(__x86_64__)
    unsigned eax, ebx, ecx, edx;
    if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) {
        if (edx & (1u << 4))
            return "fsrm";
        if (ebx & (1u << 9))
            return "erms";
    }
#endif
    return NULL;
}

/* On AMD's family 19h (Zen 4) a copy into lines that their receiver has only read takes twice as
 * long as into lines that it owns, or longer; the two families before it are taken for alike. On
 * Zen 5 and on an Intel Xeon (Emerald Rapids) a receiver that owns the lines of a long message
 * loses more time than the next copy into them gains. docs/performance/lessons.md has figures. */
static bool moves_into_read_lines(void)
{
#if defined(__x86_64__)
    unsigned eax, ebx, ecx, edx;
    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx)) {
        unsigned family = (eax >> 8 & 0xf) + (eax >> 20 & 0xff);
        return family < 0x17 || family > 0x19;
    }
#endif
    return false;
}

static struct copy_choice choose_by_processor(void)
{
    const char *bit = string_moves();
    if (bit)
        return (struct copy_choice){COPY_BY_STRING, STRING_BYTES, bit};
    return (struct copy_choice){COPY_BY_LIBC, LIBC_BYTES, "no fast string moves"};
}

static int read_by(const char *text, struct copy_choice *wanted)
{
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcasecmp(text, names[i]) != 0)
            continue;
        *wanted = (struct copy_choice){(enum copy_by)i, LIBC_BYTES, "VELO_COPY"};
        if (wanted->by == COPY_BY_STRING)
            wanted->long_bytes = STRING_BYTES;
#if !defined(__x86_64__)
        if (wanted->by == COPY_BY_STRING)
            return velo_fail(VELO_ERR_ARG, "VELO_COPY is \"%s\"; this processor has none", text);
#endif
        return VELO_OK;
    }
    return velo_fail(VELO_ERR_ARG, "VELO_COPY is \"%s\"; give auto, lines, string or libc", text);
}

static int read_long_bytes(const char *text, struct copy_choice *wanted)
{
    char *end;
    errno = 0;
    unsigned long bytes = strtoul(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || bytes < VELO_LINE_BYTES ||
        bytes > COPY_LONG_BYTES_MAX)
        return velo_fail(VELO_ERR_ARG, "VELO_COPY_BYTES is \"%s\"; give a number from %u to %u",
                         text, (unsigned)VELO_LINE_BYTES, COPY_LONG_BYTES_MAX);
    wanted->long_bytes = (uint32_t)bytes;
    wanted->reason = "VELO_COPY_BYTES";
    return VELO_OK;
}

static bool is_given(const char *text) { return text && *text; }

int copy_configure(struct copy_choice *chosen)
{
    const char *by = getenv("VELO_COPY");
    const char *bytes = getenv("VELO_COPY_BYTES");
    struct copy_choice wanted = choose_by_processor();
    int status = VELO_OK;
    if (is_given(by) && strcasecmp(by, "auto") != 0)
        status = read_by(by, &wanted);
    if (status == VELO_OK && is_given(bytes))
        status = read_long_bytes(bytes, &wanted);
    if (wanted.by == COPY_BY_LINES)
        wanted.long_bytes = UINT32_MAX;
    if (status)
        return status;
    bool into_read = wanted.by == COPY_BY_STRING && moves_into_read_lines();
    order_set(&copy_chosen, (into_read ? COPY_INTO_READ : 0) | (uint64_t)wanted.by << COPY_BY_LSB |
                                wanted.long_bytes);
    if (chosen)
        *chosen = wanted;
    return VELO_OK;
}

/* ---- copies ---------------------------------------------------------------------------------- */

static void copy_long(void *to, const void *from, size_t len_bytes)
{
    if (ORDER_HAS_STRING_MOVES &&
        (uint8_t)(order_setting(&copy_chosen) >> COPY_BY_LSB) == COPY_BY_STRING)
        order_move_string(to, from, len_bytes);
    else
        memcpy(to, from, len_bytes); /* A sanitizer sees what this touches. */
}

for_each_core void copy_to_ring(void *to, const void *from, size_t len_bytes)
{
    if (copy_is_long(len_bytes)) {
        copy_long(to, from, len_bytes);
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
    if (copy_is_long(len_bytes)) {
        copy_long(to, from, len_bytes);
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
