/* SPDX-License-Identifier: Apache-2.0 */
#include "link_in.h"

#include "../core/entry.h"
#include "../core/put.h"

static const struct segment *segment_of(const struct velo_link *link)
{
    return link->carrier->port->segment;
}

static struct seg_ring *ring_of(const struct velo_link *link)
{
    return seg_ring(segment_of(link), link->index);
}

static void refuse_frame(struct velo_link *link)
{
    order_count(&link->carrier->port->shared->rx_errors, 1);
}

/* ---- sending --------------------------------------------------------------------------------- */

static int send_accept(struct velo_link *link)
{
    const struct seg_ring *ring = ring_of(link);
    struct velo_frame_accept accept = {.generation = segment_of(link)->generation,
                                       .depth_slots = link->carrier->port->shape.depth_slots,
                                       .data_bytes = link->carrier->port->shape.data_bytes,
                                       .consumed = ring_line(order_read_credit(&ring->consumed)),
                                       .data_consumed = order_read_credit(&ring->data_consumed)};
    return link_frame(link, VELO_FRAME_ACCEPT, 0, 0, &accept, sizeof accept);
}

/* Send the answer to OPEN, or the reason why the link ends. */
static bool send_owed(struct velo_link *link)
{
    int status = link->owed == VELO_FRAME_ACCEPT
                     ? send_accept(link)
                     : link_frame(link, link->owed, (uint64_t)(int64_t)link->status, 0, NULL, 0);
    if (status == VELO_OK)
        link->owed = 0;
    return status == VELO_OK;
}

/* Tell the sender how much was consumed, or that the ring is not read any more. */
static bool send_credits(struct velo_link *link)
{
    struct seg_ring *ring = ring_of(link);
    uint64_t consumed = ring_line(order_read_credit(&ring->consumed));
    uint64_t data_consumed = order_read_credit(&ring->data_consumed);
    if (consumed != link->consumed_told &&
        link_frame(link, VELO_FRAME_CREDIT, consumed, data_consumed, NULL, 0) == VELO_OK)
        link->consumed_told = consumed;
    bool is_refused =
        entry_state(order_read_entry(&segment_of(link)->entries[link->index])) == ENTRY_REFUSED;
    if (is_refused && !link->is_refused)
        link->is_refused =
            link_frame(link, VELO_FRAME_REFUSE, (uint64_t)VELO_ERR_CORRUPT, 0, NULL, 0) == VELO_OK;
    return consumed == link->consumed_told && is_refused == link->is_refused;
}

bool link_in_push(struct velo_link *link)
{
    if (link->owed && !send_owed(link))
        return false;
    if (link->state == LINK_LEAVING)
        link_hang_up(link);
    return link->state != LINK_OPEN || send_credits(link);
}

/* ---- its end --------------------------------------------------------------------------------- */

void link_in_end(struct velo_link *link, int status)
{
    const struct segment *segment = segment_of(link);
    bool is_open = link->state == LINK_OPEN;
    link_hang_up(link);
    if (!is_open)
        return;
    entry_unclaim(segment, link->index, status == VELO_OK ? ENTRY_ENDED : ENTRY_LOST);
    entry_ring_and_wake(segment, link->index);
}

/* Hang up when the sender has been told why. */
static void leave_link(struct velo_link *link, uint32_t kind, int status)
{
    link->state = LINK_LEAVING;
    link->owed = kind;
    link->status = status;
    link_note_pushed(link, link_in_push(link));
}

void link_in_close(struct velo_link *link)
{
    if (link->state == LINK_OPEN)
        leave_link(link, VELO_FRAME_CLOSE, VELO_ERR_PEER_CLOSED);
    else if (link->state == LINK_OPENING)
        link_hang_up(link);
}

/* ---- taking ---------------------------------------------------------------------------------- */

static uint64_t claim_of(const struct velo_link *link)
{
    return entry_pack(ENTRY_CLAIMED, link->source, link->generation) | ENTRY_CARRIED;
}

static int claim_entry(struct velo_link *link, uint64_t order)
{
    const struct segment *segment = segment_of(link);
    if (!entry_claim(segment, claim_of(link), &link->index)) {
        order_set_flag(&segment->header->reap_request, 1);
        order_ring_summary(&segment->header->summary, 1);
        seg_wake_owner(segment);
        return VELO_ERR_FULL;
    }
    int status = entry_set_up(segment, link->index, order, link->carrier->transport->name);
    if (status)
        entry_unclaim(segment, link->index, ENTRY_GIVEN_UP);
    else
        order_show(&ring_of(link)->tx_by_line, true);
    return status;
}

static int check_open(const struct velo_frame_open *open)
{
    if (open->spec_hash != VELO_SPEC_HASH)
        return VELO_ERR_VERSION;
    bool is_id = VELO_ID_NODE(open->source) < VELO_NODES;
    return open->generation != 0 && is_id ? VELO_OK : VELO_ERR_CORRUPT;
}

static void take_open(struct velo_link *link, const struct velo_frame *frame)
{
    struct velo_frame_open open;
    if (frame->payload_bytes != sizeof open) {
        leave_link(link, VELO_FRAME_REFUSE, VELO_ERR_CORRUPT);
        return;
    }
    memcpy(&open, frame->payload, sizeof open);
    link->source = open.source;
    link->generation = open.generation;
    int status = check_open(&open);
    if (status == VELO_OK)
        status = claim_entry(link, open.order);
    if (status) {
        leave_link(link, VELO_FRAME_REFUSE, status);
        return;
    }
    link->consumed_told = ring_line(order_read_credit(&ring_of(link)->consumed));
    link->state = LINK_OPEN;
    link->owed = VELO_FRAME_ACCEPT;
    entry_open(segment_of(link), link->index, claim_of(link));
    link_note_pushed(link, link_in_push(link));
}

static void take_data(struct velo_link *link, const struct velo_frame *frame)
{
    if (!put_data(&link->carrier->port->shape, ring_of(link), frame->word[0], frame->payload,
                  frame->payload_bytes))
        refuse_frame(link);
}

static void take_slot(struct velo_link *link, const struct velo_frame *frame)
{
    const struct velo_port *port = link->carrier->port;
    struct seg_ring *ring = ring_of(link);
    const uint64_t claimed = VELO_HEADER_SOURCE_MASK | VELO_HEADER_RESERVED_MASK;
    const uint64_t source = (uint64_t)link->source << VELO_HEADER_SOURCE_LSB;
    uint64_t *slot = put_slot_of(&port->shape, ring, frame->word[0]);
    if (!slot || frame->payload_bytes > VELO_INLINE_BYTES) {
        refuse_frame(link);
        return;
    }
    memcpy(slot + 1, frame->payload, frame->payload_bytes);
    if (put_publish(ring, slot, (frame->word[0] & ~claimed) | source))
        entry_ring_and_wake(port->segment, link->index);
}

static void take_leave(struct velo_link *link, const struct velo_frame *frame)
{
    order_show(&ring_of(link)->tx_end, ring_at_line(frame->word[0]));
    link_in_end(link, VELO_OK);
}

void link_in_take(struct velo_link *link, const struct velo_frame *frame)
{
    bool is_open = link->state == LINK_OPEN;
    if (link->state == LINK_LEAVING)
        return;
    if (!is_open && frame->kind == VELO_FRAME_OPEN)
        take_open(link, frame);
    else if (is_open && frame->kind == VELO_FRAME_SLOT)
        take_slot(link, frame);
    else if (is_open && frame->kind == VELO_FRAME_DATA)
        take_data(link, frame);
    else if (is_open && frame->kind == VELO_FRAME_LEAVE)
        take_leave(link, frame);
    else
        refuse_frame(link);
}
