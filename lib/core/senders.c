/* SPDX-License-Identifier: Apache-2.0 */
#include "senders.h"

#include <stdlib.h>

#include "../base/cancel.h"
#include "../base/error.h"
#include "../shm/wait.h"
#include "descriptor.h"

/* A polled ring is stale when others have brought this many messages since its last one. */
#define STALE_MESSAGES 256

int rx_open(struct velo_port *port)
{
    const struct seg_shape *shape = &port->shape;
    static const uint64_t empty_slot[SLOT_WORDS];
    port->none.cell = empty_slot;
    port->none.expect = VELO_HEADER_VALID_MASK;
    port->current = &port->none;
    port->active = calloc(shape->conns_max, sizeof(struct ring_rx *));
    port->rings = calloc(shape->conns_max, sizeof *port->rings);
    if (!port->active || !port->rings)
        return velo_fail(VELO_ERR_NO_MEMORY, "no memory for %u connections", shape->conns_max);
    return VELO_OK;
}

void rx_close(struct velo_port *port)
{
    /* Senders that wait for room find the segment closed. */
    for (uint32_t i = 0; port->segment && i < port->shape.conns_max; i++)
        if (port->rings[i].shared)
            wait_wake((const uint32_t *)&port->rings[i].shared->consumed);
    free(port->active);
    free(port->rings);
}

/* ---- connections come and go ----------------------------------------------------------------- */

static void activate(struct velo_port *port, struct ring_rx *rx)
{
    if (rx->mode == RX_POLLED) {
        port->polled_count--;
        order_set_bell(&rx->shared->bell, BELL_RING);
    } else if (rx->mode != RX_DRAINING) {
        port->active[port->active_count++] = rx;
    }
    rx->mode = RX_DRAINING;
    rx->drain_start = port->messages;
}

/* Drop the active ring under the cursor. */
static void deactivate(struct velo_port *port, struct ring_rx *rx, enum rx_mode mode)
{
    if (rx->mode == RX_POLLED)
        port->polled_count--;
    rx->mode = mode;
    port->active[port->cursor] = port->active[--port->active_count];
    if (port->cursor >= port->active_count)
        port->cursor = 0;
}

/* Drop an active ring, wherever it is. */
static void take_out(struct velo_port *port, struct ring_rx *rx, enum rx_mode mode)
{
    for (uint32_t i = 0; i < port->active_count; i++) {
        if (port->active[i] == rx) {
            port->cursor = i;
            deactivate(port, rx, mode);
            return;
        }
    }
}

/* Does the sender of this ring have an earlier one that must be read first? */
static bool is_behind(const struct velo_port *port, const struct ring_rx *rx)
{
    for (uint32_t i = 0; rx->order != 0 && i < port->shape.conns_max; i++) {
        uint64_t entry = order_read_entry(&port->segment->entries[i]);
        enum entry_state state = entry_state(entry);
        bool is_in_use = state == ENTRY_READY || state == ENTRY_ENDED || state == ENTRY_REFUSED;
        if (i == rx->index || !is_in_use || entry_generation(entry) != rx->from.generation)
            continue;
        uint64_t order = order_counter(&seg_ring(port->segment, i)->tx_order);
        if (order != 0 && order < rx->order)
            return true;
    }
    return false;
}

static bool is_from(const struct ring_rx *rx, velo_id_t source, uint32_t generation)
{
    return rx->mode != RX_ABSENT && rx->from.id == source && rx->from.generation == generation;
}

/* What the other connections of a source carry. */
static void *user_of(const struct velo_port *port, const struct ring_rx *rx)
{
    for (uint32_t i = 0; port->has_users && i < port->shape.conns_max; i++)
        if (i != rx->index && is_from(&port->rings[i], rx->from.id, rx->from.generation))
            return port->rings[i].from.user;
    return NULL;
}

int velo_source_set_user(struct velo_port *port, const struct velo_msg *msg, void *user)
{
    GUARD(port, "port");
    if (!port || !msg)
        return velo_fail(VELO_ERR_ARG, "port or msg is NULL");
    int status = VELO_ERR_NO_PEER;
    for (uint32_t i = 0; i < port->shape.conns_max; i++) {
        struct ring_rx *rx = &port->rings[i];
        if (!is_from(rx, msg->source, msg->generation))
            continue;
        rx->from.user = user;
        port->has_users = true;
        status = VELO_OK;
    }
    return status ? velo_fail(status, "port %u.%u has no connection to this port any more",
                              VELO_ID_NODE(msg->source), VELO_ID_VPID(msg->source))
                  : VELO_OK;
}

static void admit(struct velo_port *port, uint32_t index, uint64_t entry)
{
    struct ring_rx *rx = &port->rings[index];
    rx->shared = seg_ring(port->segment, index);
    rx->index = index;
    rx->from.id = entry_source(entry);
    rx->from.generation = entry_generation(entry);
    rx->from.user = user_of(port, rx);
    rx->cell_mask = ring_at_line(port->shape.depth_slots) - 1;
    rx->is_by_line = order_counter(&rx->shared->tx_by_line) != 0;
    rx->order = order_counter(&rx->shared->tx_order);
    rx->ending = false;
    rx->departure = VELO_OK;
    rx->mode = RX_PARKED;
    ring_rx_start(rx, rx->head);
    order_count(&port->shared->rx_conns, 1);
    if (is_behind(port, rx)) {
        rx->mode = RX_BEHIND;
        port->behind_count++;
    }
}

/* A ring of this sender is gone: it may be the turn of its next ring. */
static void bring_forward(struct velo_port *port, uint32_t generation)
{
    for (uint32_t i = 0; port->behind_count > 0 && i < port->shape.conns_max; i++) {
        struct ring_rx *rx = &port->rings[i];
        if (rx->mode == RX_BEHIND && rx->from.generation == generation && !is_behind(port, rx)) {
            port->behind_count--;
            activate(port, rx);
        }
    }
}

static void free_entry(struct velo_port *port, uint32_t index)
{
    order_publish_entry(&port->segment->entries[index], entry_pack(ENTRY_FREE, 0, 0));
}

/* The ring is empty and its sender gone: make it ready for the next sender, from this position on.
 */
static void retire(struct velo_port *port, struct ring_rx *rx)
{
    seg_ring_release(port->segment, rx->index);
    order_set_bell(&rx->shared->bell, BELL_RING);
    rx->head = ring_line_up(rx->head);
    order_publish_credit(&rx->shared->data_consumed, rx->data_head);
    order_publish_credit(&rx->shared->consumed, rx->head);
    rx->published = rx->head;
    rx->data_published = rx->data_head;
    rx->ending = false;
    order_count(&port->shared->rx_conns, UINT64_MAX);
    free_entry(port, rx->index);
    bring_forward(port, rx->from.generation);
}

/* Tell the caller of a ring's end, if it asked for that. True: the ring is kept until then. */
static bool tell_departure(struct velo_port *port, struct ring_rx *rx)
{
    if (!port->tells_departures)
        return false;
    struct ring_rx **link = &port->departed;
    while (*link)
        link = &(*link)->next_departed;
    rx->next_departed = NULL;
    *link = rx;
    /* No sender set this bit: it makes the next poll look closely. */
    order_ring_summary(&port->shared->summary, 1);
    return true;
}

static bool is_still_to_be_told(const struct velo_port *port, const struct ring_rx *rx)
{
    const struct ring_rx *departed = port->departed;
    while (departed && departed != rx)
        departed = departed->next_departed;
    return departed == rx;
}

static void retire_refused(struct velo_port *port, struct ring_rx *rx)
{
    if (is_still_to_be_told(port, rx)) {
        rx->mode = RX_DEPARTED;
        return;
    }
    rx->mode = RX_ABSENT;
    retire(port, rx);
}

void rx_forget_departed(struct velo_port *port)
{
    struct ring_rx *rx = port->departed;
    port->departed = rx->next_departed;
    if (rx->mode != RX_DEPARTED)
        return; /* The ring was refused, and its sender has not left yet. */
    rx->mode = RX_ABSENT;
    retire(port, rx);
}

/* Never read this ring again. Its sender learns that when it rings or waits, unless the sender
 * itself has found the damage. If the sender has left, or when it leaves later, the entry is freed.
 */
void rx_refuse(struct velo_port *port, struct ring_rx *rx)
{
    uint64_t *entry = &port->segment->entries[rx->index];
    order_count(&port->shared->rx_errors, 1);
    port->deferred_count -= rx->mode == RX_DEFERRED;
    port->behind_count -= rx->mode == RX_BEHIND;
    take_out(port, rx, RX_REFUSED);
    rx->mode = RX_REFUSED;
    order_set_bell(&rx->shared->bell, BELL_RING);
    uint64_t now = order_read_entry(entry);
    VELO_HOOK(HOOK_REFUSING);
    rx->departure = VELO_ERR_CORRUPT;
    (void)tell_departure(port, rx);
    if (entry_state(now) == ENTRY_READY && !rx->ending) {
        if (order_claim_entry(entry, now, entry_in_state(now, ENTRY_REFUSED))) {
            wait_wake((const uint32_t *)&rx->shared->consumed);
            return;
        }
        now = order_read_entry(entry); /* Its sender has left, or found the damage just now. */
    }
    if (rx->ending || entry_state(now) != ENTRY_REFUSED)
        retire_refused(port, rx);
}

void rx_refuse_from(struct velo_port *port, velo_id_t source, uint32_t generation)
{
    for (uint32_t i = 0; i < port->shape.conns_max; i++) {
        struct ring_rx *rx = &port->rings[i];
        if (is_from(rx, source, generation) && rx->mode != RX_REFUSED && rx->mode != RX_DEPARTED)
            rx_refuse(port, rx);
    }
}

bool rx_may_be_late(const struct velo_port *port, velo_id_t source, uint32_t generation,
                    int departure)
{
    for (uint32_t i = 0; departure == VELO_ERR_PEER_CLOSED && i < port->shape.conns_max; i++) {
        const struct ring_rx *rx = &port->rings[i];
        bool is_read = rx->mode >= RX_PARKED && rx->mode <= RX_POLLED;
        if (is_read && is_from(rx, source, generation))
            return true;
    }
    return false;
}

/* A sender is dead, or says that it left. */
static void end(struct velo_port *port, uint32_t index, uint64_t entry)
{
    struct ring_rx *rx = &port->rings[index];
    if (entry_state(entry) != ENTRY_ENDED && entry_state(entry) != ENTRY_GIVEN_UP)
        order_count(&port->shared->rx_reclaimed, 1);
    if (rx->mode == RX_ABSENT) {
        if (entry_state(entry) != ENTRY_READY && entry_state(entry) != ENTRY_ENDED &&
            entry_state(entry) != ENTRY_LOST) {
            free_entry(port, index); /* It has never sent; the ring may have no memory. */
            return;
        }
        admit(port, index, entry);
    }
    if (rx->mode == RX_REFUSED) {
        retire_refused(port, rx);
        return;
    }
    if (rx->mode == RX_DEPARTED)
        return;
    rx->ending = true;
    rx->departure = entry_state(entry) == ENTRY_ENDED ? VELO_ERR_PEER_CLOSED : VELO_ERR_PEER_DEAD;
    if (rx->mode != RX_DEFERRED && rx->mode != RX_BEHIND)
        activate(port, rx);
}

/* Has the sender left, and its network is about to tell? That frees the entry, even if the sender
 * has died since. */
static bool is_leave_under_way(const struct velo_port *port, uint32_t index, uint64_t entry)
{
    return port->net->carries_all && entry_state(entry) == ENTRY_READY &&
           order_flag(&seg_ring(port->segment, index)->tx_left);
}

/* Does its owner still have a claimed entry? */
static bool is_sender_alive(const struct velo_port *port, uint64_t entry)
{
    return entry & ENTRY_CARRIED || life_goes_on(port->segment, entry_generation(entry));
}

static bool is_at_end(enum entry_state state) { return state >= ENTRY_ENDED; }

/* Look for senders that died without a word. */
void rx_reap(struct velo_port *port)
{
    CANCEL_LATER();
    if (!port->net->is_settled(port))
        return;
    order_set_flag(&port->shared->reap_request, 0);
    for (uint32_t i = 0; i < port->shape.conns_max; i++) {
        uint64_t entry = order_read_entry(&port->segment->entries[i]);
        enum entry_state state = entry_state(entry);
        if (state == ENTRY_FREE || port->rings[i].ending)
            continue;
        /* A sender that leaves changes the entry, or says that it has left, before its life ends.
         */
        if (is_at_end(state) || (!is_sender_alive(port, entry) &&
                                 order_read_entry(&port->segment->entries[i]) == entry &&
                                 !is_leave_under_way(port, i, entry)))
            end(port, i, entry);
    }
}

/* ---- doorbells ------------------------------------------------------------------------------- */

static void rung(struct velo_port *port, uint32_t index)
{
    struct ring_rx *rx = &port->rings[index];
    uint64_t entry = order_read_entry(&port->segment->entries[index]);
    order_count(&port->shared->rx_doorbells, 1);
    enum entry_state state = entry_state(entry);
    if (is_at_end(state) && !rx->ending) {
        end(port, index, entry);
        return;
    }
    if (state == ENTRY_READY && rx->mode == RX_ABSENT)
        admit(port, index, entry);
    else if (state == ENTRY_READY && rx->mode == RX_REFUSED)
        /* Another process freed the entry, and this sender claimed it: it must not wait in vain. */
        (void)order_claim_entry(&port->segment->entries[index], entry,
                                entry_in_state(entry, ENTRY_REFUSED));
    else if (state == ENTRY_REFUSED && rx->mode >= RX_BEHIND && rx->mode <= RX_DEFERRED)
        rx_refuse(port, rx); /* Its sender has found damage. */
    if (rx->mode == RX_PARKED)
        activate(port, rx);
}

_Static_assert(offsetof(struct seg_header, reap_request) ==
                   offsetof(struct seg_header, sleeping) + 4,
               "one look tells of both");

static cold_path void look_closely(struct velo_port *port)
{
    if (order_flag(&port->shared->sleeping) == SEG_ARMED)
        descriptor_wake(port);
    if (order_flag(&port->shared->reap_request))
        rx_reap(port);
}

void rx_take_bells(struct velo_port *port)
{
    const uint32_t words_per_bit = SEG_CONNS_PER_SUMMARY_BIT / 64;
    uint32_t summary = order_take_summary(&port->shared->summary);
    while (summary) {
        uint32_t first = (uint32_t)__builtin_ctz(summary) * words_per_bit;
        summary &= summary - 1;
        for (uint32_t word = first; word < first + words_per_bit; word++) {
            uint64_t bits = order_take(&port->shared->bells[word]);
            for (; bits; bits &= bits - 1) {
                uint32_t index = word * 64 + (uint32_t)__builtin_ctzll(bits);
                if (index < port->shape.conns_max)
                    rung(port, index);
            }
        }
    }
    if (order_either_flag(&port->shared->sleeping))
        look_closely(port);
}

/* To be called after order_set_bell(BELL_RING): a sender that has not seen it has published all its
 * messages, and the next poll finds them. */
static void bells_barrier(const struct velo_port *port)
{
    if (port->fenced)
        order_full_fence();
    else
        wait_barrier_all();
}

/* Ask the senders of polled rings to ring again: all of them, or those that have been silent while
 * others sent. The rings stay active, so that messages from before are still found. */
void rx_park(struct velo_port *port, bool all)
{
    bool any = false;
    for (uint32_t i = 0; i < port->active_count; i++) {
        struct ring_rx *rx = port->active[i];
        if (rx->mode == RX_POLLED && (all || port->messages - rx->last_message >= STALE_MESSAGES)) {
            activate(port, rx);
            any = true;
        }
    }
    if (any)
        bells_barrier(port);
}

void rx_defer(struct velo_port *port, struct ring_rx *rx)
{
    if (rx->mode == RX_POLLED) {
        activate(port, rx); /* It may be parked after it is resumed: then its sender must ring. */
        bells_barrier(port);
    }
    take_out(port, rx, RX_DEFERRED);
    port->deferred_count++;
}

void rx_resume(struct velo_port *port)
{
    for (uint32_t i = 0; port->deferred_count > 0 && i < port->shape.conns_max; i++) {
        if (port->rings[i].mode == RX_DEFERRED) {
            port->deferred_count--;
            activate(port, &port->rings[i]);
        }
    }
}

/* Did the sender disconnect, after more messages than were found? Then another process has emptied
 * slots. */
static bool is_short(const struct ring_rx *rx)
{
    return rx->departure == VELO_ERR_PEER_CLOSED && rx->head != order_counter(&rx->shared->tx_end);
}

/* A draining ring is empty: poll it from now on, let it ring again, or let it go. */
void rx_settle(struct velo_port *port, struct ring_rx *rx)
{
    if (ring_rx_is_corrupt(rx)) {
        rx_refuse(port, rx);
        return;
    }
    if (rx->ending) {
        if (is_short(rx)) {
            order_count(&port->shared->rx_errors, 1);
            rx->departure = VELO_ERR_CORRUPT;
        }
        deactivate(port, rx, RX_DEPARTED);
        if (!tell_departure(port, rx)) {
            rx->mode = RX_ABSENT;
            retire(port, rx);
        }
        return;
    }
    bool busy = rx->last_message > rx->drain_start && port->promote;
    if (busy && port->polled_count == POLLED_MAX)
        rx_park(port, false);
    if (busy && port->polled_count < POLLED_MAX) {
        rx->mode = RX_POLLED;
        port->polled_count++;
        order_set_bell(&rx->shared->bell, BELL_POLLED);
    } else {
        deactivate(port, rx, RX_PARKED);
    }
}
