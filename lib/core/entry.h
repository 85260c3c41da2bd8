/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file entry.h
 * @brief A sender's place in a receiver's segment: its word in the connection table, its ring, its
 * doorbell.
 *
 * The process that sends claims the entry; the sender's generation in it is that of a life which
 * goes on (shm/lives.h). If the sender is on another node, the receiver's process claims the entry
 * for it (net/link_in.c), and the entry is marked by ENTRY_CARRIED.
 */
#ifndef VELO_CORE_ENTRY_H
#define VELO_CORE_ENTRY_H

#include "../base/hook.h"
#include "../base/order.h"
#include "../shm/segment.h"

/** Claim a free entry for a sender, one generation of a port: `claim` is an entry. False: all are
 * taken. */
bool entry_claim(const struct segment *segment, uint64_t claim, uint32_t *index);
/** Give memory to the ring of a claimed entry, and make it ready for its first message. See
 *  tx_order of seg_ring for the order. `transport` is shown to people: the transport that fills the
 *  ring; "": the sender itself does. VELO_ERR_NO_SPACE, VELO_ERR_SYSTEM. */
int entry_set_up(const struct segment *segment, uint32_t index, uint64_t order,
                 const char *transport);
/** From here on the receiver reads the ring of a claim. */
void entry_open(const struct segment *segment, uint32_t index, uint64_t claim);
/** Leave a claimed entry to the receiver, in a state that says why. */
void entry_unclaim(const struct segment *segment, uint32_t index, enum entry_state state);

/** Ring the doorbell: the receiver looks at the entry and its ring. */
static inline void entry_ring(const struct segment *segment, uint32_t index)
{
    struct seg_header *header = segment->header;
    order_ring(&header->bells[index / 64], UINT64_C(1) << index % 64);
    VELO_HOOK(HOOK_RING_BIT);
    order_ring_summary(&header->summary, UINT32_C(1) << index / SEG_CONNS_PER_SUMMARY_BIT);
    VELO_HOOK(HOOK_RING_SUMMARY);
}

/** The same, and wake the receiver if it sleeps. */
static inline void entry_ring_and_wake(const struct segment *segment, uint32_t index)
{
    entry_ring(segment, index);
    if (order_read_sleeping(&segment->header->sleeping))
        seg_wake_owner(segment);
    VELO_HOOK(HOOK_RING_WAKE);
}

#endif
