/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file recombine.h
 * @brief Lines that a host split on their way to the node, put together again.
 *
 * VELO paper, section 3, "Multi-threading support through statelessness": the hardware tags the
 * parts of a split line, and the receiver's software moves them out of its ring into a buffer of
 * their own, so that other messages go on meanwhile. A part lies in a slot as the line's words were
 * (spec/velo.toml, slot_fragment and fragment_tag).
 *
 * What the rules are, as any part may be lost (a watchdog drops it) and any sender may be hostile:
 *   * A line's parts come in ascending order and without a gap; the first one begins a line.
 *   * Of each sending context at most RECOMBINE_LINES lines are open. One more drops the oldest. A
 *     sender cannot forge another's context, so it drops lines of its own only.
 *   * A part continues the newest open line of its sender that it fits to. A last part has to make
 * a line whose check (recombine_checked) is right; it may be one of the older ones. Otherwise it is
 * refused. So a line comes out as it was stored, or not at all. Memory: 80 bytes an open line.
 */
#ifndef VELO_NIC_RECOMBINE_H
#define VELO_NIC_RECOMBINE_H

#include <stdint.h>

#include <velo/spec.h>

/** Open lines of one sending context. */
#define RECOMBINE_LINES 4u

struct recombine_line;

/** All open lines of a port. Zero: none. */
struct recombine {
    struct recombine_line *newest;
    uint64_t refused; /**< Parts that were refused. */
    uint64_t dropped; /**< Lines that were begun and will not be whole. */
};

enum recombine_result { RECOMBINE_OPEN, RECOMBINE_WHOLE, RECOMBINE_REFUSED };

/** The header word of a line with the check of the line in it. */
static inline uint64_t recombine_checked(const uint64_t *line, uint32_t words)
{
    const uint64_t plain = ~(VELO_HEADER_SOURCE_MASK | VELO_HEADER_SEQ_MASK);
    uint64_t check = line[0] & plain;
    for (uint32_t i = 1; i < words; i++) {
        check = (check ^ line[i]) * UINT64_C(0x9E3779B97F4A7C15);
        check ^= check >> 32;
    }
    check *= UINT64_C(0x9E3779B97F4A7C15);
    return (line[0] & plain) | (check >> 32) << VELO_HEADER_SOURCE_LSB;
}

/** Take a part in.
 * @param slot  eight words, as the node wrote them
 * @param line  of RECOMBINE_WHOLE: the line as a slot that came whole; may be `slot`
 */
enum recombine_result recombine_take(struct recombine *all, const uint64_t *slot, uint64_t *line);

/** Forget all open lines. */
void recombine_close(struct recombine *all);

#endif
