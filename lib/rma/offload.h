/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file offload.h
 * @brief Operations on remote memory that hardware carries out: the table of a device.
 *
 * A network in place of memory may have such a table (core/net.h). An operation that would need the
 * owner's library is offered to the device first.
 *
 * Threads: as the public calls that lead here.
 */
#ifndef VELO_RMA_OFFLOAD_H
#define VELO_RMA_OFFLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include <velo/rma.h>
#include <velo/velo.h>

struct op;

/** As status of rma_offload.begin: the device carries the operation out. */
#define OFFLOADED 2

/** What a device does for remote memory. If it refuses an operation, the owner is asked after all,
 * so that the owner gives the reason. */
struct rma_offload {
    /** Can the device do anything for a unit? */
    bool (*is_possible)(struct velo_rma *rma);
    /** Begin an operation, the first that waits. OFFLOADED, VELO_AGAIN, MUST_ASK, or the reason why
     * nothing is possible with the peer any more. When it ends, call rma_ask_offloaded(). */
    int (*begin)(struct velo_rma_peer *peer, struct op *op);
    /** Go on with operations that are half posted, and end those that are done. Returns the number
     *  of operations that ended. */
    int (*progress)(struct velo_rma *rma);
    /** Have all operations on a peer end now, with this status. */
    void (*fail)(struct velo_rma_peer *peer, int status);
    /** The next message, as velo_try_peek() or, with a limit, velo_peek(); VELO_AGAIN: nothing came
     *  in time, or the device has done something. */
    int (*peek)(struct velo_rma *rma, struct velo_msg *msg, int64_t timeout_ns);
    /** Before a key is published: let the device reach the memory, if it can. True: withdraw() has
     * to follow. */
    bool (*enter)(struct velo_rma_mem *mem);
    /** After the key was taken back: on return the device reaches the memory no more. */
    void (*withdraw)(struct velo_rma_mem *mem);
    /** The unit closes. */
    void (*close)(struct velo_rma *rma);
};

#endif
