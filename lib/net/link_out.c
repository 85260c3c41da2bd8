/* SPDX-License-Identifier: Apache-2.0 */
#include "link_out.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "../base/error.h"
#include "../base/fd.h"

/* ---- sending --------------------------------------------------------------------------------- */

static int send_open(struct velo_link *link)
{
    const struct velo_port *port = link->carrier->port;
    struct velo_frame_open open = {.spec_hash = VELO_SPEC_HASH,
                                   .source = port->id,
                                   .generation = port->segment->generation,
                                   .order = link->order};
    int status = link_frame(link, VELO_FRAME_OPEN, 0, 0, &open, sizeof open);
    if (status == VELO_OK)
        link->owed = 0;
    return status;
}

/* Send the bytes of a long message. VELO_AGAIN: not all of them are sent yet. */
static int send_data(struct velo_link *link, const struct seg_shape *shape, const uint64_t *slot)
{
    const char *data =
        (const char *)(link_out_ring(link)->slots + (size_t)shape->depth_slots * SLOT_WORDS);
    size_t len_bytes = ring_len(slot[0]);
    size_t most = link->carrier->transport->payload_bytes_max;
    while (link->data_sent < len_bytes) {
        uint64_t at = slot[1] + link->data_sent;
        size_t piece = len_bytes - link->data_sent < most ? len_bytes - link->data_sent : most;
        int status =
            link_frame(link, VELO_FRAME_DATA, at, 0, data + (at & (shape->data_bytes - 1)), piece);
        if (status)
            return status;
        link->data_sent += piece;
    }
    return VELO_OK;
}

static int send_slot(struct velo_link *link)
{
    const struct seg_shape *shape = &link->segment->shape;
    const uint64_t *slot =
        link_out_ring(link)->slots + (link->sent & (shape->depth_slots - 1)) * SLOT_WORDS;
    bool is_external = slot[0] & VELO_HEADER_EXTERNAL_MASK;
    int status = is_external ? send_data(link, shape, slot) : VELO_OK;
    if (status == VELO_OK)
        status = link_frame(link, VELO_FRAME_SLOT, slot[0], 0, slot + 1,
                            is_external ? sizeof slot[1] : ring_len(slot[0]));
    if (status == VELO_OK) {
        link->sent++;
        link->data_sent = 0;
    }
    return status;
}

bool link_out_push(struct velo_link *link)
{
    int status = link->owed ? send_open(link) : VELO_OK;
    if (link->state == LINK_OPENING)
        return status == VELO_OK;
    while (status == VELO_OK && link->sent != link->ready)
        status = send_slot(link);
    if (status == VELO_OK && link->state == LINK_LEAVING) {
        status = link_frame(link, VELO_FRAME_LEAVE, link->sent, 0, NULL, 0);
        if (status == VELO_OK)
            link_hang_up(link);
    }
    return status == VELO_OK || link->state == LINK_OVER;
}

void link_out_carry(struct velo_conn *conn)
{
    struct velo_link *link = link_of(conn);
    pthread_mutex_lock(&link->carrier->lock);
    link->ready = ring_line(conn->tx.tail);
    outgoing_count(link->shown, link_out_ring(link));
    link_note_pushed(link, link_out_push(link));
    /* A program that only sends calls nothing else that would send what the transport holds back.
     */
    if (link->carrier->transport->sent && !order_flag(&link->carrier->pending))
        carrier_sent(link->carrier);
    else
        (void)link->carrier->transport->progress(link->carrier->endpoint);
    pthread_mutex_unlock(&link->carrier->lock);
}

void link_out_look(struct velo_conn *conn)
{
    struct velo_link *link = link_of(conn);
    struct carrier *carrier = link->carrier;
    pthread_mutex_lock(&carrier->lock);
    while (link->state == LINK_OPEN && carrier->transport->progress(carrier->endpoint))
        ;
    pthread_mutex_unlock(&carrier->lock);
}

/* ---- taking ---------------------------------------------------------------------------------- */

/* Another thread than the one that waits may have taken in what ends the wait. */
static void ring_room(struct velo_link *link)
{
    const uint64_t one = 1;
    if (link->is_awaited)
        (void)!write(link->room_fd, &one, sizeof one);
    link->is_awaited = false;
}

/* A thread that takes in credits, or ends the link, holds the lock, too. So it has done that before
 * this call, which sees it, or does it later, and rings. */
bool link_out_await_room(struct velo_link *link, const uint32_t *credits, uint32_t seen)
{
    if (link->state != LINK_OPEN || order_flag(credits) != seen)
        return false;
    link->room_fd = fd_above_standard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    link->is_awaited = link->room_fd >= 0;
    return true;
}

void link_out_leave_room(struct velo_link *link)
{
    link->is_awaited = false;
    if (link->room_fd >= 0)
        (void)close(link->room_fd);
    link->room_fd = -1;
}

/* The sender sees the end in the state of the stand-in for its peer's segment. */
void link_out_end(struct velo_link *link, int status)
{
    link->status = status;
    if (link->segment) {
        uint64_t *entry = &link->segment->entries[0];
        if (status == VELO_ERR_CORRUPT)
            order_publish_entry(entry, entry_pack(ENTRY_REFUSED, 0, 0));
        else
            order_publish_entry(&link->segment->header->state,
                                status == VELO_ERR_PEER_CLOSED ? SEG_CLOSED : SEG_DEAD);
    }
    link_hang_up(link);
    ring_room(link);
}

static int make_ring(struct velo_link *link, const struct velo_frame_accept *accept)
{
    struct seg_shape shape;
    int status = seg_shape_init(&shape, accept->depth_slots, accept->data_bytes, 1);
    if (status)
        return velo_fail(VELO_ERR_CORRUPT, "the peer's ring has a size that no port has");
    status = seg_create_private(&shape, accept->generation, link->carrier->transport->name,
                                &link->segment);
    if (status)
        return status;
    struct seg_ring *ring = link_out_ring(link);
    ring->bell = BELL_RING;
    ring->consumed = ring_at_line(accept->consumed);
    ring->data_consumed = accept->data_consumed;
    link->ready = link->sent = accept->consumed;
    return VELO_OK;
}

static void take_accept(struct velo_link *link, const struct velo_frame *frame)
{
    struct velo_frame_accept accept;
    int status = VELO_ERR_CORRUPT;
    if (link->state != LINK_OPENING)
        return;
    if (frame->payload_bytes == sizeof accept) {
        memcpy(&accept, frame->payload, sizeof accept);
        status = make_ring(link, &accept);
    }
    if (status)
        link_out_end(link, status);
    else
        link->state = LINK_OPEN;
}

static void take_credit(struct velo_link *link, const struct velo_frame *frame)
{
    struct seg_ring *ring = link->segment ? link_out_ring(link) : NULL;
    /* An older credit that comes late says nothing new. */
    if (!ring || link->sent - frame->word[0] > link->sent - ring_line(ring->consumed) ||
        frame->word[1] - ring->data_consumed > link->segment->shape.data_bytes)
        return;
    order_publish_credit(&ring->data_consumed, frame->word[1]);
    order_publish_credit(&ring->consumed, ring_at_line(frame->word[0]));
    ring_room(link);
}

static int status_in(uint64_t word)
{
    int status = (int)(int64_t)word;
    return status < 0 && status >= VELO_ERR_CANCELLED ? status : VELO_ERR_CORRUPT;
}

void link_out_take(struct velo_link *link, const struct velo_frame *frame)
{
    switch (frame->kind) {
    case VELO_FRAME_ACCEPT:
        take_accept(link, frame);
        break;
    case VELO_FRAME_CREDIT:
        take_credit(link, frame);
        break;
    case VELO_FRAME_REFUSE:
    case VELO_FRAME_CLOSE:
        link_out_end(link, status_in(frame->word[0]));
        break;
    default:
        link_out_end(link, VELO_ERR_CORRUPT);
    }
}
