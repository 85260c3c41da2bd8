/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file wire.h
 * @brief What travels between two cards: lines of one VELO message each.
 *
 * The kind is the message's tag. The hardware names the sending node and context. Word 1 of each
 * line, behind the header word:
 *
 *     bits 15:0    the generation of the receiving context; 0, only in HELLO: any
 *     bits 31:16   that of the sending one
 *     bits 47:32   the place of this line in the sequence of its connection, from 0
 *     bits 63:48   lines of the receiver that the sender has taken; of a greeting WIRE_VERSION
 *
 * Then up to 48 bytes. Lines of a connection that have a place in the sequence: FRAME and MORE,
 * which carry a frame: an envelope, as many words as the frame's kind has, its payload; ALIVE and
 * BYE, which carry nothing. ACK carries nothing and has no place: it says how many lines were
 * taken. Greetings have no place either, and no connection:
 *
 *     kind      word 2           word 3     word 4           word 5
 *     HELLO     VELO_SPEC_HASH   from, to   hash of domain   generation, window, call
 *     REPLY     generation, window, call    -                -
 *     REFUSE    status, call     -          -                -
 *     REDIRECT  address, generation of context, call         -
 *
 * `call` numbers the HELLO; its answers have it, too. `window` is the number of lines that the
 * sender of the greeting has room for.
 */
#ifndef VELO_CARD_WIRE_H
#define VELO_CARD_WIRE_H

#include <stdint.h>

#include <velo/spec.h>

#include "../common/envelope.h"

/** Raised with every incompatible change of this file. */
#define WIRE_VERSION 1u

/** Tags of transport nic are below, so a line of that is never taken for one of these. */
enum wire_kind {
    WIRE_FRAME = 64, /* A frame begins. */
    WIRE_MORE,       /* The frame goes on. */
    WIRE_ALIVE,      /* The sender lives. */
    WIRE_BYE,        /* The sender's port closes. */
    WIRE_ACK,
    WIRE_HELLO, /* I want a connection. */
    WIRE_REPLY, /* Here it is. */
    WIRE_REFUSE,
    WIRE_REDIRECT, /* The port of that domain has another context. */
};

#define WIRE_LINE_WORDS (VELO_LINE_BYTES / 8u)
/** Bytes of a frame in one line. */
#define WIRE_BYTES 48u
/** Lines of the longest frame: no more than what the smallest window always has room for in the
 *  end. */
#define WIRE_FRAME_LINES 8u
#define WIRE_FRAME_BYTES (WIRE_FRAME_LINES * WIRE_BYTES)
/** Payload of the longest frame; a multiple of 8. */
#define WIRE_PAYLOAD_BYTES (WIRE_FRAME_BYTES - 16u)

/** Words 2 and on of a greeting. */
#define WIRE_HELLO_WORDS 4u
#define WIRE_ANSWER_WORDS 1u

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "lines are little-endian");
_Static_assert(WIRE_PAYLOAD_BYTES >= VELO_FRAME_BYTES_MIN, "a slot fits");

/** A port's context as the hardware names it: node and context. */
static inline uint16_t wire_address(uint32_t node, uint32_t context)
{
    return (uint16_t)(node << 8 | context);
}

static inline uint32_t wire_node(uint16_t address) { return address >> 8; }
static inline uint32_t wire_context(uint16_t address) { return address & 0xFF; }

static inline uint64_t wire_word(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    return (a & 0xFFFF) | (b & 0xFFFF) << 16 | (c & 0xFFFF) << 32 | (d & 0xFFFF) << 48;
}

static inline uint16_t wire_part(uint64_t word, unsigned part)
{
    return (uint16_t)(word >> 16 * part);
}

#endif
