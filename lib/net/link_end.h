/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file link_end.h
 * @brief Shared by link.c, link_out.c and link_in.c: a link, which is the library's end of a line.
 *
 * All of it with the carrier's lock held.
 */
#ifndef VELO_NET_LINK_END_H
#define VELO_NET_LINK_END_H

#include "../shm/outgoing.h"
#include "link.h"

enum link_state {
    LINK_OPENING, /* OPEN was sent, or is to come. */
    LINK_OPEN,
    LINK_LEAVING, /* It is over once all is sent: published slots, or the reason for its end. */
    LINK_OVER,    /* Nothing more is sent or taken. */
};

struct velo_link {
    struct velo_link *next;
    struct carrier *carrier;
    void *line; /* NULL: hung up. */
    enum link_state state;
    bool is_outgoing;
    uint32_t owed; /* enum velo_frame_kind: this frame has to go before all else; 0: none. */
    int status;    /* The reason why it is over. */

    /* Outgoing. */
    bool is_kept;            /* A connection has it: it is not freed before the connection ends. */
    uint64_t order;          /* See tx_order of struct seg_ring. */
    struct segment *segment; /* Its ring, in memory of this process. */
    struct seg_outgoing *shown;
    uint64_t ready;     /* Slots before this position are published... */
    uint64_t sent;      /* ...and before this one, sent. */
    uint64_t data_sent; /* Bytes of the next slot's message. */

    /* Incoming. */
    uint32_t index; /* Of the sender's entry. */
    uint32_t generation;
    velo_id_t source;
    uint64_t consumed_told; /* The sender knows that slots before this position are consumed. */
    bool is_refused;
};

/** The link of a connection that was made over one. */
static inline struct velo_link *link_of(const struct velo_conn *conn) { return conn->net_own; }

/** VELO_AGAIN: there is no room. */
int link_frame(struct velo_link *link, uint32_t kind, uint64_t word0, uint64_t word1,
               const void *payload, size_t payload_bytes);
struct velo_link *link_new(struct carrier *carrier, void *line);
void link_hang_up(struct velo_link *link);
/** Send all that waits, now or when there is room. */
void link_push_soon(struct velo_link *link);

/* The sender's end: link_out.c. */

/** As link_push(). */
bool link_out_push(struct velo_link *link);
void link_out_take(struct velo_link *link, const struct velo_frame *frame);
/** The peer is gone, or refuses the connection. */
void link_out_end(struct velo_link *link, int status);

/* The receiver's end: link_in.c. */

bool link_in_push(struct velo_link *link);
void link_in_take(struct velo_link *link, const struct velo_frame *frame);
/** The sender sends no more. Messages that it has sent stay. */
void link_in_end(struct velo_link *link, int status);
/** Its port closes. */
void link_in_close(struct velo_link *link);

#endif
