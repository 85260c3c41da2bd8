/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file link.h
 * @brief A link, which is the library's end of a transport's circuit, on both sides, and the frames
 *        that the two exchange.
 *
 * The sender (link_out.c) fills a ring in its own memory, as it would fill one in its peer's
 * segment. Frames carry its slots and data. The receiver's process (link_in.c) puts them into a
 * ring of its own segment, whose entry it has claimed for the sender. Credits come back the same
 * way. So neither side's hot path knows of transports.
 *
 * Frames are checked: a slot's position must be one for which the sender had a credit, data must
 * lie in the data region, credits must be for slots that were sent. The receive side checks the
 * content of a slot, as natively.
 *
 * All functions with the carrier's lock held.
 */
#ifndef VELO_NET_LINK_H
#define VELO_NET_LINK_H

#include "../shm/outgoing.h"
#include "carrier.h"

enum link_state {
    LINK_OPENING, /* OPEN was sent, or is to come. */
    LINK_OPEN,
    LINK_LEAVING, /* It is over once all is sent: published slots, or the reason for its end. */
    LINK_OVER,    /* Nothing more is sent or taken. */
};

struct velo_link {
    struct velo_link *next;
    struct carrier *carrier;
    void *circuit; /* NULL: hung up. */
    enum link_state state;
    bool is_outgoing;
    uint32_t owed; /* enum velo_frame_kind: this frame has to go before all else; 0: none. */
    int status;    /* The reason why it is over. */

    /* Outgoing. */
    bool is_kept;            /* A connection has it: it is not freed before the connection ends. */
    bool is_asked;           /* No connection has it yet, but a try has asked `source` by it. */
    uint64_t order;          /* See tx_order of struct seg_ring. */
    struct segment *segment; /* Its ring, in memory of this process. */
    struct seg_outgoing *shown;
    int room_fd;        /* Rung once for a thread that waits for room; -1: none does. */
    bool is_awaited;    /* It is still to be rung. */
    uint64_t ready;     /* Slots before this position are published... */
    uint64_t sent;      /* ...and before this one, sent. */
    uint64_t data_sent; /* Bytes of the next slot's message. */

    /* Incoming. */
    uint32_t index; /* Of the sender's entry. */
    uint32_t generation;
    velo_id_t source;       /* Of an outgoing one that `is_asked`: the peer. */
    uint64_t consumed_told; /* The sender knows that slots before this position are consumed. */
    bool is_refused;
};

/** The link of a connection that was made over one. */
static inline struct velo_link *link_of(const struct velo_conn *conn) { return conn->net_own; }

/** VELO_AGAIN: there is no room. */
int link_frame(struct velo_link *link, uint32_t kind, uint64_t word0, uint64_t word1,
               const void *payload, size_t payload_bytes);
struct velo_link *link_new(struct carrier *carrier, void *circuit);
void link_hang_up(struct velo_link *link);
/** Take a link off its carrier, and free it. */
void link_free(struct velo_link *link);
/** What had to be sent was sent, or else found no room: then the carrier sends it later. */
static inline void link_note_pushed(struct velo_link *link, bool is_pushed)
{
    if (!is_pushed)
        order_set_flag(&link->carrier->pending, 1);
}

#endif
