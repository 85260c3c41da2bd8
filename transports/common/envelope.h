/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file envelope.h
 * @brief A frame on the network: an envelope, as many words as its kind has, and its payload,
 *        padded to 8 bytes. Little-endian.
 */
#ifndef VELO_TRANSPORT_ENVELOPE_H
#define VELO_TRANSPORT_ENVELOPE_H

#include <stdint.h>

#include "../../lib/net/transport.h"

struct wire_envelope {
    uint16_t line; /* Its number at the side that dialed... */
    uint16_t use;  /* ...and how often that number was used before. */
    uint16_t payload_bytes;
    uint8_t kind; /* enum velo_frame_kind, or WIRE_GONE. */
    uint8_t from_dialer;
};

/** A kind of frame that the library does not see: the sender has hung up. */
#define WIRE_GONE 0xFFu

_Static_assert(sizeof(struct wire_envelope) == 8, "no padding");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "frames are little-endian");

static inline uint32_t wire_frame_bytes(uint32_t kind, uint32_t payload_bytes)
{
    return (uint32_t)sizeof(struct wire_envelope) + 8 * velo_frame_words(kind) +
           (payload_bytes + 7) / 8 * 8;
}

#endif
