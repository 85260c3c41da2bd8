/* SPDX-License-Identifier: Apache-2.0 */
#include "entry.h"

#include <stdio.h>
#include <string.h>

bool entry_claim(const struct segment *segment, uint64_t claim, uint32_t *index)
{
    bool is_claimed = false;
    for (uint32_t i = 0; i < segment->shape.conns_max && !is_claimed; i++) {
        uint64_t entry = order_read_entry(&segment->entries[i]);
        is_claimed = entry_state(entry) == ENTRY_FREE &&
                     order_claim_entry(&segment->entries[i], entry, claim);
        *index = i;
    }
    VELO_HOOK(HOOK_CONNECT_CLAIMED);
    return is_claimed;
}

void entry_unclaim(const struct segment *segment, uint32_t index, enum entry_state state)
{
    uint64_t entry = order_read_entry(&segment->entries[index]);
    order_publish_entry(&segment->entries[index], entry_in_state(entry, state));
    VELO_HOOK(HOOK_DISCONNECT_ENTRY);
    entry_ring(segment, index);
    VELO_HOOK(HOOK_DISCONNECT_RING);
}

int entry_set_up(const struct segment *segment, uint32_t index, uint64_t order,
                 const char *transport)
{
    int status = seg_ring_allocate(segment, index);
    VELO_HOOK(HOOK_CONNECT_ALLOCATED);
    if (status)
        return status;
    struct seg_ring *ring = seg_ring(segment, index);
    order_set_bell(&ring->bell, BELL_RING);
    order_set_waiting(&ring->waiting, 0);
    order_set_flag(&ring->tx_left, 0);
    memset(&ring->tx_msgs, 0, sizeof *ring - offsetof(struct seg_ring, tx_msgs));
    order_show(&ring->tx_order, order);
    (void)snprintf(ring->transport, sizeof ring->transport, "%s", transport);
    return VELO_OK;
}

void entry_open(const struct segment *segment, uint32_t index, uint64_t claim)
{
    order_publish_entry(&segment->entries[index], entry_in_state(claim, ENTRY_READY));
    VELO_HOOK(HOOK_CONNECT_READY);
    entry_ring(segment, index); /* The first message wakes the receiver. */
}
