/* SPDX-License-Identifier: Apache-2.0 */
#include "liveness.h"

#include "../base/compiler.h"
#include "../base/order.h"
#include "doorbell.h"
#include "lives.h"
#include "lock.h"
#include "wait.h"

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

static int owner_status(const struct segment *segment, bool (*lives)(const struct segment *))
{
    int status = state_status(order_read_entry(&segment->header->state));
    if (status || lives(segment))
        return status;
    /* An owner that closes sets the state before it gives up its locks. */
    status = state_status(order_read_entry(&segment->header->state));
    return status ? status : VELO_ERR_PEER_DEAD;
}

static bool has_lock(const struct segment *segment) { return lock_held(segment->fd, LOCK_OWNER); }

static bool has_life(const struct segment *segment)
{
    return segment->lives_fd >= 0 ? life_goes_on(segment, segment->generation) : has_lock(segment);
}

int seg_owner_status(const struct segment *segment) { return owner_status(segment, has_life); }

int seg_open_owner_status(const struct segment *segment) { return owner_status(segment, has_lock); }

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

void seg_mark_dead(const struct segment *segment)
{
    if (order_claim_entry(&segment->header->state, SEG_OPEN, SEG_DEAD))
        tell_senders(segment);
}

int seg_check_owner(const struct segment *segment)
{
    int status = seg_owner_status(segment);
    if (unlikely(status == VELO_ERR_PEER_DEAD))
        seg_mark_dead(segment);
    return status;
}
