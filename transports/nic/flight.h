/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file flight.h
 * @brief RMA operations that the node carries out, and their descriptors.
 */
#ifndef VELO_NIC_FLIGHT_H
#define VELO_NIC_FLIGHT_H

#include "../../lib/rma/unit.h"
#include "windows.h"

/** Operations under way at once; each is told by its number in a descriptor's cookie. */
#define FLIGHTS_MAX 64u

/** An operation that the node carries out. */
struct flight {
    struct op *op; /* NULL: none. */
    struct velo_rma_peer *peer;
    uint64_t remote;      /* Registered address of the registration's first byte. */
    struct cursor sent;   /* It is posted up to here. */
    uint32_t descriptors; /* Under way. */
    uint32_t windows;     /* In use, one bit each. */
    int status;
    bool is_posted;   /* All of it is posted. */
    bool is_again;    /* It was refused, and is posted once more with new windows. */
    bool is_noted;    /* The other side has a gated slot for it... */
    uint64_t note_at; /* ...at this position. */
    /* The operation was noted and has failed: its number is not used again before its slot is
     * consumed. */
    const struct velo_rma_peer *lingers;
};

/** The operations that a unit has given to the node. */
struct offload {
    bool updates; /* May the node do them? */
    struct flight flights[FLIGHTS_MAX];
    struct flight *posting; /* This one is half posted. */
    uint32_t next;
    uint32_t descriptors; /* Under way. */
    struct windows windows;
};

/** Post as much of an operation as may be posted now. If its local memory finds no pages, its
 * status is MUST_ASK, and it counts as posted. */
void flight_post(struct velo_rma *rma, struct flight *flight);
/** Windows that flights use, one bit each. */
uint32_t flight_windows(const struct offload *offload);
/** The number of an operation, as its descriptors' cookies have it. */
uint8_t flight_cookie(const struct velo_rma *rma, const struct flight *flight);

#endif
