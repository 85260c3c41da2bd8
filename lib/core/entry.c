/* SPDX-License-Identifier: Apache-2.0 */
#include "entry.h"

#include <stdio.h>
#include <string.h>

/* The lock is taken first, so that a claimed entry without a lock is a dead one. The lock excludes
 * other processes; seg_acquire() excludes other threads of this process. */
int entry_claim(const struct segment *segment, velo_id_t sender, uint32_t generation,
                uint32_t *index)
{
    uint64_t mine = entry_pack(ENTRY_CLAIMED, sender, generation);
    int status = VELO_AGAIN;
    seg_acquire();
    for (uint32_t i = 0; i < segment->shape.conns_max && status == VELO_AGAIN; i++) {
        uint64_t entry = order_read_entry(&segment->entries[i]);
        if (entry_state(entry) != ENTRY_FREE)
            continue;
        status = seg_lock_entry(segment, i);
        if (status)
            continue;
        VELO_HOOK(HOOK_CONNECT_LOCKED);
        if (order_claim_entry(&segment->entries[i], entry, mine)) {
            *index = i;
        } else {
            seg_unlock_entry(segment, i);
            status = VELO_AGAIN;
        }
    }
    seg_release();
    VELO_HOOK(HOOK_CONNECT_CLAIMED);
    return status;
}

/* Both steps are under one seg_acquire(). Else another thread of this process could claim the entry
 * in between, and this one would drop its lock. */
void entry_unclaim(const struct segment *segment, uint32_t index, enum entry_state state)
{
    seg_acquire();
    uint64_t entry = order_read_entry(&segment->entries[index]);
    order_publish_entry(&segment->entries[index],
                        entry_pack(state, entry_source(entry), entry_generation(entry)));
    VELO_HOOK(HOOK_DISCONNECT_ENTRY);
    entry_ring(segment, index);
    VELO_HOOK(HOOK_DISCONNECT_RING);
    seg_unlock_entry(segment, index);
    seg_release();
    VELO_HOOK(HOOK_DISCONNECT_UNLOCKED);
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

void entry_open(const struct segment *segment, uint32_t index, velo_id_t sender,
                uint32_t generation)
{
    order_publish_entry(&segment->entries[index], entry_pack(ENTRY_READY, sender, generation));
    VELO_HOOK(HOOK_CONNECT_READY);
    entry_ring(segment, index); /* The first message wakes the receiver. */
}
