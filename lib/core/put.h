/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file put.h
 * @brief Putting what came over a network into the receiver's ring, for its process.
 *
 * A network has a sender's slots and data with their positions. They are checked here: nobody but
 * the sender says where they belong. The receive side checks what is in a slot, as natively.
 */
#ifndef VELO_CORE_PUT_H
#define VELO_CORE_PUT_H

#include "ring.h"

/** The slot that a header word is meant for; NULL: its sender has no credit for it. */
static inline uint64_t *put_slot_of(const struct seg_shape *shape, struct seg_ring *ring,
                                    uint64_t header)
{
    uint64_t consumed = ring_line(order_counter(&ring->consumed));
    uint16_t ahead = (uint16_t)(velo_header_seq(header) - (uint16_t)consumed);
    if (ahead >= shape->depth_slots)
        return NULL;
    return ring->slots + ((consumed + ahead) & (shape->depth_slots - 1)) * SLOT_WORDS;
}

/** Publish a slot whose payload is there. True: the doorbell has to be rung. */
static inline bool put_publish(const struct seg_ring *ring, uint64_t *slot, uint64_t header)
{
    order_publish_header(slot, header);
    order_full_fence(); /* As a fenced sender does: publish before the doorbell is read. */
    return order_read_bell(&ring->bell) == BELL_RING;
}

/** Copy bytes of a long message to their position. False: they do not lie in the data region. */
static inline bool put_data(const struct seg_shape *shape, struct seg_ring *ring, uint64_t position,
                            const void *bytes, size_t len_bytes)
{
    uint64_t at = position & (shape->data_bytes - 1);
    if (at + len_bytes > shape->data_bytes)
        return false;
    memcpy((char *)(ring->slots + (size_t)shape->depth_slots * SLOT_WORDS) + at, bytes, len_bytes);
    return true;
}

#endif
