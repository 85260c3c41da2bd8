/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file wire.h
 * @brief The library's lines: VELO messages that carry pieces of connection rings.
 *
 * The kind is the message's tag. Word 0 of the payload names the connection, by its place in the
 * receiver's table, and the generation of the receiver's context that is meant: a message that is
 * still on its way when a port closes must not reach the next port. The hardware names the sender.
 *
 *     kind     word 0                                  then
 *     SLOT     header of the slot, with the connection payload that stands in the slot, at most 48
 *              for `source`, and the generation for    bytes; of a long message its position
 *              `reserved`
 *     MORE     the same                                word 7 of that slot; comes before it
 *     DATA     position in the data region, the        at most 48 bytes that go there
 *              generation, the connection
 *     LEAVE    as DATA, without a position             -: its sender will send no more
 *     CREDIT   as DATA, without a position             slots consumed, data bytes consumed
 *     GATED    as SLOT                                 32 bytes of the slot; then the gate, that is
 *              the cookie of the notification by which the node confirms the slot
 *
 * The header word of a line carries a check of it in the fields `source` and `seq`, which the
 * hardware overrules in a line that it takes whole: only the receiver of a split line sees it
 * (recombine.h).
 *
 * A slot that came GATED is published when its notification is there. If it comes once more as
 * SLOT, there will be no notification, and it is published then.
 */
#ifndef VELO_NIC_WIRE_H
#define VELO_NIC_WIRE_H

#include <stdint.h>

#include <velo/spec.h>

enum line_kind { LINE_SLOT, LINE_MORE, LINE_DATA, LINE_LEAVE, LINE_CREDIT, LINE_GATED };

/** Payload of one message after its first word. */
#define WIRE_BYTES_MAX (VELO_LINE_BYTES - VELO_LINE_HEADER_BYTES - 8u)

/** Payload of a slot that comes gated. */
#define WIRE_GATED_BYTES 32u

#define WIRE_INDEX_BITS 12u
/** Generations are counted modulo 64: `reserved` has no room for more. */
#define WIRE_GENERATION_BITS VELO_HEADER_RESERVED_BITS
#define WIRE_GENERATION_MASK ((1u << WIRE_GENERATION_BITS) - 1u)

static inline uint64_t wire_slot(uint64_t header, uint32_t generation, uint32_t index)
{
    return (header & ~(VELO_HEADER_SOURCE_MASK | VELO_HEADER_RESERVED_MASK)) |
           (uint64_t)generation << VELO_HEADER_RESERVED_LSB |
           (uint64_t)index << VELO_HEADER_SOURCE_LSB;
}

/** The header as the receiver's ring has it. */
static inline uint64_t wire_slot_header(uint64_t word, uint32_t source)
{
    return (word & ~(VELO_HEADER_SOURCE_MASK | VELO_HEADER_RESERVED_MASK)) |
           (uint64_t)source << VELO_HEADER_SOURCE_LSB;
}

static inline uint32_t wire_slot_generation(uint64_t word) { return velo_header_reserved(word); }

static inline uint32_t wire_slot_index(uint64_t word)
{
    return (uint32_t)((word & VELO_HEADER_SOURCE_MASK) >> VELO_HEADER_SOURCE_LSB);
}

static inline uint64_t wire_data(uint64_t position, uint32_t generation, uint32_t index)
{
    return (position << WIRE_GENERATION_BITS | generation) << WIRE_INDEX_BITS | index;
}

static inline uint32_t wire_data_generation(uint64_t word)
{
    return (uint32_t)(word >> WIRE_INDEX_BITS) & WIRE_GENERATION_MASK;
}

static inline uint32_t wire_data_index(uint64_t word)
{
    return (uint32_t)(word & ((1u << WIRE_INDEX_BITS) - 1));
}

static inline uint64_t wire_data_position(uint64_t word)
{
    return word >> (WIRE_INDEX_BITS + WIRE_GENERATION_BITS);
}

#endif
