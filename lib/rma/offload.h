/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file offload.h
 * @brief What a node's RMA unit does for ours.
 *
 * Natively there is none, and everything here is empty. Built with VELO_DEVICE (transports/nic),
 * the node carries out what its pages cover, without the owner's library: what would have to be
 * asked for is offered here first. What the node refuses is asked for after all, so that it is the
 * owner who says why.
 */
#ifndef VELO_RMA_OFFLOAD_H
#define VELO_RMA_OFFLOAD_H

#include "unit.h"

/** As status: the node carries it out. */
#define OFFLOADED 2

#ifdef VELO_DEVICE

static inline bool offload_took(int status) { return status == OFFLOADED; }
/** Is the node doing something for us at a peer? */
static inline bool offload_is_busy(const struct velo_rma_peer *peer) { return peer->offloaded > 0; }
/** Begin an operation, the first that waits. OFFLOADED, VELO_AGAIN, MUST_ASK, or why its peer can
 *  do nothing any more. */
int offload_begin(struct velo_rma_peer *peer, struct op *op);
/** Can the node do anything for a unit? */
bool offload_is_possible(struct velo_rma *rma);
/** Go on with what is half posted, and end what is done; the number of operations that ended. */
int offload_progress(struct velo_rma *rma);
/** Have all operations on a peer end now, with this status. */
void offload_fail(struct velo_rma_peer *peer, int status);
/** The next message, or VELO_AGAIN: nothing came in time, or the node has done something. */
int offload_peek(struct velo_rma *rma, struct velo_msg *msg, int64_t timeout_ns);
/** Before a key is published: let the node reach the memory, if it can. */
void offload_register(struct velo_rma *rma, struct velo_rma_mem *mem, struct table_entry *entry);
/** After it was taken back: the node reaches it no more on return. */
void offload_deregister(struct velo_rma *rma, struct velo_rma_mem *mem);
void offload_close(struct velo_rma *rma);

#else

static inline bool offload_took(int status)
{
    (void)status;
    return false;
}
static inline bool offload_is_busy(const struct velo_rma_peer *peer)
{
    (void)peer;
    return false;
}
static inline int offload_begin(struct velo_rma_peer *peer, struct op *op)
{
    (void)peer;
    (void)op;
    return MUST_ASK;
}
static inline bool offload_is_possible(struct velo_rma *rma)
{
    (void)rma;
    return false;
}
static inline int offload_progress(struct velo_rma *rma)
{
    (void)rma;
    return 0;
}
static inline void offload_fail(struct velo_rma_peer *peer, int status)
{
    (void)peer;
    (void)status;
}
hot_inline int offload_peek(struct velo_rma *rma, struct velo_msg *msg, int64_t timeout_ns)
{
    return timeout_ns ? velo_peek(rma->port, msg, timeout_ns) : velo_try_peek(rma->port, msg);
}
hot_inline void offload_register(struct velo_rma *rma, struct velo_rma_mem *mem,
                                 struct table_entry *entry)
{
    (void)rma;
    (void)mem;
    (void)entry;
}
hot_inline void offload_deregister(struct velo_rma *rma, struct velo_rma_mem *mem)
{
    (void)rma;
    (void)mem;
}
static inline void offload_close(struct velo_rma *rma) { (void)rma; }

#endif

#endif
