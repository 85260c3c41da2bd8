/* SPDX-License-Identifier: Apache-2.0 */
/* The sender's end of a line: connecting, sending what is published, taking credits. */
#include "../base/error.h"
#include "../shm/wait.h"
#include "link_end.h"

#define CONNECT_NAP_NS 100000
#define DIAL_NAP_NS 1000000
/* Wait at least this long for the answer, even with a shorter timeout. The matched queues connect
 * back without one, and take a peer for gone that does not answer: on a network that loses the
 * first words, or with a peer that waits for its turn at a core, half a second is not enough. */
#define ANSWER_NS (10 * NS_PER_S)

static struct seg_ring *ring_of(const struct velo_link *link) { return seg_ring(link->segment, 0); }

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
        (const char *)(ring_of(link)->slots + (size_t)shape->depth_slots * SLOT_WORDS);
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
        ring_of(link)->slots + (link->sent & (shape->depth_slots - 1)) * SLOT_WORDS;
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

/* Send the slots that were published. */
static void link_send(struct velo_conn *conn)
{
    struct velo_link *link = link_of(conn);
    pthread_mutex_lock(&link->carrier->lock);
    link->ready = ring_line(conn->tx.tail);
    outgoing_count(link->shown, ring_of(link));
    link_push_soon(link);
    /* A program that only sends makes no other look. */
    if (link->carrier->transport->sent && !order_flag(&link->carrier->pending))
        carrier_sent(link->carrier);
    else
        (void)link->carrier->transport->progress(link->carrier->endpoint);
    pthread_mutex_unlock(&link->carrier->lock);
}

void link_look(struct velo_conn *conn)
{
    struct velo_link *link = link_of(conn);
    struct carrier *carrier = link->carrier;
    pthread_mutex_lock(&carrier->lock);
    while (link->state == LINK_OPEN && carrier->transport->progress(carrier->endpoint))
        ;
    pthread_mutex_unlock(&carrier->lock);
}

/* ---- taking ---------------------------------------------------------------------------------- */

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
        wait_wake((const uint32_t *)&ring_of(link)->consumed);
    }
    link_hang_up(link);
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
    struct seg_ring *ring = ring_of(link);
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
    struct seg_ring *ring = link->segment ? ring_of(link) : NULL;
    /* An older credit that comes late says nothing new. */
    if (!ring || link->sent - frame->word[0] > link->sent - ring_line(ring->consumed) ||
        frame->word[1] - ring->data_consumed > link->segment->shape.data_bytes)
        return;
    order_publish_credit(&ring->data_consumed, frame->word[1]);
    order_publish_credit(&ring->consumed, ring_at_line(frame->word[0]));
    order_full_fence();
    if (order_read_waiting(&ring->waiting))
        wait_wake((const uint32_t *)&ring->consumed);
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

/* ---- connecting ------------------------------------------------------------------------------ */

static int dial(struct carrier *carrier, velo_id_t peer, uint64_t order, struct velo_link **out)
{
    pthread_mutex_lock(&carrier->lock);
    struct velo_link *link = link_new(carrier, NULL);
    int status = link ? carrier->transport->dial(carrier->endpoint, peer, link, &link->line)
                      : velo_fail(VELO_ERR_NO_MEMORY, "out of memory");
    if (link && status == VELO_OK) {
        link->is_outgoing = link->is_kept = true;
        link->order = order;
        link->owed = VELO_FRAME_OPEN;
        link_push_soon(link);
    } else if (link) {
        link_free(link);
    }
    pthread_mutex_unlock(&carrier->lock);
    *out = link;
    return status;
}

static enum link_state look(struct velo_link *link)
{
    pthread_mutex_lock(&link->carrier->lock);
    enum link_state state = link->state;
    pthread_mutex_unlock(&link->carrier->lock);
    return state;
}

static void drop(struct velo_link *link)
{
    pthread_mutex_t *lock = &link->carrier->lock;
    pthread_mutex_lock(lock);
    link_free(link);
    pthread_mutex_unlock(lock);
}

#define PORT "port %u.%u"
#define PORT_OF(id) VELO_ID_NODE(id), VELO_ID_VPID(id)

static int explain_end(const struct velo_link *link, velo_id_t peer)
{
    const struct velo_transport *transport = link->carrier->transport;
    if (link->status == VELO_ERR_ACCESS && transport->no_access)
        return velo_fail(link->status, PORT " %s", PORT_OF(peer), transport->no_access);
    if (link->status == VELO_ERR_NO_PEER)
        return velo_fail(link->status,
                         "nobody answers as " PORT
                         " over transport %s: is its program running, and "
                         "where it is said to be?",
                         PORT_OF(peer), transport->name);
    return velo_fail(link->status, PORT ", or %s, refused the connection: %s", PORT_OF(peer),
                     transport->name, velo_strerror(link->status));
}

/* In both cases the peer may answer later: the caller may try again, as with one that is not there
 * yet. */
static int explain_silence(const struct velo_link *link, velo_id_t peer)
{
    const char *name = link->carrier->transport->name;
    if (link->owed)
        return velo_fail(VELO_ERR_NO_PEER,
                         PORT " has not been reached over transport %s in the time given: is its "
                              "program running, and does the network let it through?",
                         PORT_OF(peer), name);
    return velo_fail(VELO_ERR_NO_PEER,
                     PORT " is there over transport %s, but its process did not answer in the time "
                          "given: it stands still, or waits for a core",
                     PORT_OF(peer), name);
}

/* Wait until the peer has answered. */
static int wait_for_answer(struct velo_link *link, velo_id_t peer, int64_t end_ns)
{
    struct velo_port *port = link->carrier->port;
    for (;;) {
        (void)carriers_progress(port);
        enum link_state state = look(link);
        if (state == LINK_OPEN)
            return VELO_OK;
        if (state == LINK_OVER)
            return explain_end(link, peer);
        if (wait_now_ns() >= end_ns)
            return explain_silence(link, peer);
        if (wait_nap(CONNECT_NAP_NS))
            return velo_fail(VELO_ERR_INTERRUPTED, "a signal handler ran before the peer answered");
    }
}

/* Show the connection; link_send() shows its counters. */
static int show(struct velo_link *link, velo_id_t peer)
{
    return outgoing_add(link->carrier->port->segment, peer, link->carrier->transport->name,
                        &link->shown);
}

static void fill_conn(struct velo_conn *conn, struct velo_link *link)
{
    static const uint32_t always_ring = BELL_RING;
    struct segment *segment = link->segment;
    struct seg_ring *ring = ring_of(link);
    segment->refs++; /* No other thread knows of it. */
    conn->segment = segment;
    conn->header = segment->header;
    conn->index = 0;
    conn->fenced = true;
    conn->bell = &always_ring;
    conn->stands_in = true;
    conn->net_own = link;
    conn->carry = link_send;
    ring_tx_start(&conn->tx, ring, &segment->shape, conn->port->id, true);
    (void)ring_tx_refresh(&conn->tx, conn->tx.tail);
}

int link_connect(struct velo_conn *conn, velo_id_t peer, int64_t timeout_ns)
{
    struct carrier *carrier = carrier_to(conn->port, peer);
    int64_t end_ns = wait_end_ns(wait_now_ns(), timeout_ns);
    for (;;) {
        struct velo_link *link;
        int64_t answer_ns = wait_now_ns() + ANSWER_NS;
        int status = dial(carrier, peer, conn->order, &link);
        if (status == VELO_OK) {
            status = wait_for_answer(link, peer, end_ns > answer_ns ? end_ns : answer_ns);
            if (status == VELO_OK)
                status = show(link, peer);
            if (status == VELO_OK) {
                fill_conn(conn, link);
                return VELO_OK;
            }
            drop(link);
        }
        if (!status_is_absent(status) || wait_now_ns() >= end_ns)
            return status;
        if (wait_nap(DIAL_NAP_NS))
            return velo_fail(VELO_ERR_INTERRUPTED,
                             "a signal handler ran before the peer was there");
    }
}

void link_disconnect(struct velo_conn *conn)
{
    struct velo_link *link = link_of(conn);
    struct carrier *carrier = link->carrier;
    pthread_mutex_lock(&carrier->lock);
    link->ready = ring_line(conn->tx.tail);
    link->is_kept = false;
    if (link->state == LINK_OPEN) {
        link->state = LINK_LEAVING;
        link_push_soon(link);
    }
    links_sweep(carrier);
    pthread_mutex_unlock(&carrier->lock);
}
