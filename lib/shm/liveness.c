/* SPDX-License-Identifier: Apache-2.0 */
#include "liveness.h"

#include "../base/compiler.h"
#include "../base/order.h"
#include "doorbell.h"
#include "lock.h"
#include "memory.h"
#include "wait.h"

int seg_lock_entry(const struct segment *segment, uint32_t index)
{
    enum lock_outcome lock = lock_take(segment->fd, LOCK_ENTRY(index));
    if (lock == LOCK_REFUSED)
        return seg_system_failed("lock", segment->path);
    return lock == LOCK_TAKEN ? VELO_OK : VELO_AGAIN;
}

int seg_lock_dead_entry(const struct segment *segment, uint32_t index)
{
    enum lock_holder holder = lock_look(segment->fd, LOCK_ENTRY(index));
    if (holder == LOCK_UNKNOWN)
        return seg_system_failed("look at the locks of", segment->path);
    return holder == LOCK_FREE ? seg_lock_entry(segment, index) : VELO_AGAIN;
}

void seg_unlock_entry(const struct segment *segment, uint32_t index)
{
    lock_drop(segment->fd, LOCK_ENTRY(index));
}

bool seg_sender_alive(const struct segment *segment, uint32_t index)
{
    return lock_held(segment->fd, LOCK_ENTRY(index));
}

void seg_wake_owner(const struct segment *segment)
{
    uint32_t sleeping = order_read_sleeping(&segment->header->sleeping);
    if (sleeping == SEG_SLEEPS_ON_FILES || sleeping == SEG_ARMED)
        doorbell_ring(segment->path, segment->generation);
    else if (sleeping)
        wait_wake(&segment->header->summary);
}

static int state_status(uint64_t state)
{
    return state == SEG_OPEN     ? VELO_OK
           : state == SEG_CLOSED ? VELO_ERR_PEER_CLOSED
                                 : VELO_ERR_PEER_DEAD;
}

int seg_owner_status(const struct segment *segment)
{
    int status = state_status(order_read_entry(&segment->header->state));
    if (status || lock_held(segment->fd, LOCK_OWNER))
        return status;
    /* An owner that closes sets the state before it gives up its lock. */
    status = state_status(order_read_entry(&segment->header->state));
    return status ? status : VELO_ERR_PEER_DEAD;
}

/* Nobody owns the segment any more. A sender reads its doorbell word after each message: that word
 * now makes it look at the state. A sender that sleeps for room is woken. */
static void tell_senders(const struct segment *segment)
{
    if (segment->header->flags & SEG_HAS_NO_RINGS)
        return;
    for (uint32_t i = 0; i < segment->shape.conns_max; i++) {
        if (entry_state(order_read_entry(&segment->entries[i])) != ENTRY_READY)
            continue;
        struct seg_ring *ring = seg_ring(segment, i);
        order_set_bell(&ring->bell, BELL_RING);
        wait_wake((const uint32_t *)&ring->consumed);
    }
}

int seg_check_owner(const struct segment *segment)
{
    int status = seg_owner_status(segment);
    if (unlikely(status == VELO_ERR_PEER_DEAD) &&
        order_claim_entry(&segment->header->state, SEG_OPEN, SEG_DEAD))
        tell_senders(segment);
    return status;
}
