/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file envelope.h
 * @brief A frame on the network: an envelope, as many words as its kind has, and its payload,
 *        padded to 8 bytes. Little-endian.
 */
#ifndef VELO_TRANSPORT_ENVELOPE_H
#define VELO_TRANSPORT_ENVELOPE_H

#include <stdint.h>
#include <string.h>

#include "../../lib/net/transport.h"

struct wire_envelope {
    uint16_t circuit; /* Its number at the side that dialed... */
    uint16_t use;     /* ...and how often that number was used before. */
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

/** The length of the frame that begins with an envelope; 0: it is none, or its payload is too long.
 */
static inline uint32_t wire_length(const struct wire_envelope *envelope, uint32_t payload_bytes_max)
{
    bool is_known = (envelope->kind >= VELO_FRAME_OPEN && envelope->kind <= VELO_FRAME_CLOSE) ||
                    envelope->kind == WIRE_GONE;
    bool is_frame =
        is_known && envelope->payload_bytes <= payload_bytes_max && envelope->from_dialer <= 1;
    return is_frame ? wire_frame_bytes(envelope->kind, envelope->payload_bytes) : 0;
}

/** Read a frame, all of which lies behind its envelope. Its payload stays there. */
static inline struct velo_frame wire_frame(const struct wire_envelope *envelope)
{
    const char *words = (const char *)(envelope + 1);
    uint32_t words_bytes = 8 * velo_frame_words(envelope->kind);
    struct velo_frame frame = {.kind = envelope->kind,
                               .payload_bytes = envelope->payload_bytes,
                               .payload = words + words_bytes};
    memcpy(frame.word, words, words_bytes);
    return frame;
}

#endif
