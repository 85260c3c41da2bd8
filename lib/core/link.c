/* SPDX-License-Identifier: Apache-2.0 */
#include "link.h"

#include <stdlib.h>

#include "../base/error.h"
#include "../shm/wait.h"
#include "entry.h"

#define CONNECT_NAP_NS 100000
#define DIAL_NAP_NS 1000000

enum link_state {
    LINK_OPENING, /* OPEN was sent, or is to come. */
    LINK_OPEN,
    LINK_LEAVING, /* Outgoing: its connection is gone, not all is sent. */
    LINK_OVER,    /* Nothing more is sent or taken. */
};

struct velo_link {
    struct velo_link *next;
    struct carrier *carrier;
    void *line; /* NULL: hung up. */
    enum link_state state;
    bool is_outgoing;

    /* Outgoing. */
    bool is_kept;            /* A connection has it: not freed before that ends. */
    int status;              /* Why it is over. */
    struct segment *segment; /* Its ring, in memory of this process. */
    uint64_t ready;          /* Slots before this position are published... */
    uint64_t sent;           /* ...and before this one, sent. */
    uint64_t data_sent;      /* Bytes of the next slot's message. */

    /* Incoming. */
    uint32_t index; /* Of the sender's entry. */
    uint32_t generation;
    velo_id_t source;
    uint64_t told; /* Slots that the sender knows are consumed. */
    bool is_refused;
};

static int send_frame(struct velo_link *link, uint32_t kind, uint64_t word0, uint64_t word1,
                      const void *payload, size_t payload_bytes)
{
    struct velo_frame frame = {.kind = kind,
                               .payload_bytes = (uint32_t)payload_bytes,
                               .word = {word0, word1},
                               .payload = payload};
    if (!link->line)
        return VELO_OK; /* It goes where its line went. */
    return link->carrier->transport->send(link->line, &frame);
}

static void hang_up(struct velo_link *link)
{
    if (link->line)
        link->carrier->transport->hang_up(link->line);
    link->line = NULL;
    link->state = LINK_OVER;
}

static struct velo_link *new_link(struct carrier *carrier, void *line)
{
    struct velo_link *link = calloc(1, sizeof *link);
    if (!link)
        return NULL;
    link->carrier = carrier;
    link->line = line;
    link->next = carrier->links;
    carrier->links = link;
    return link;
}

void link_free(struct velo_link *link)
{
    struct velo_link **at = &link->carrier->links;
    while (*at != link)
        at = &(*at)->next;
    *at = link->next;
    hang_up(link);
    if (link->segment)
        seg_put(link->segment);
    free(link);
}

struct velo_link *link_next(const struct velo_link *link) { return link->next; }

void links_sweep(struct carrier *carrier)
{
    struct velo_link *next;
    for (struct velo_link *link = carrier->links; link; link = next) {
        next = link->next;
        if (link->state == LINK_OVER && !link->is_kept)
            link_free(link);
    }
}

/* ---- outgoing -------------------------------------------------------------------------------- */

static struct seg_ring *ring_of_sender(const struct velo_link *link)
{
    return seg_ring(link->segment, 0);
}

/* The bytes of a long message. VELO_AGAIN: not all of them yet. */
static int send_data(struct velo_link *link, const struct seg_shape *shape, const uint64_t *slot)
{
    const char *data =
        (const char *)(ring_of_sender(link)->slots + (size_t)shape->depth_slots * SLOT_WORDS);
    size_t len_bytes = ring_len(slot[0]);
    size_t most = link->carrier->transport->payload_bytes_max;
    while (link->data_sent < len_bytes) {
        uint64_t at = slot[1] + link->data_sent;
        size_t piece = len_bytes - link->data_sent < most ? len_bytes - link->data_sent : most;
        int status =
            send_frame(link, VELO_FRAME_DATA, at, 0, data + (at & (shape->data_bytes - 1)), piece);
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
        ring_of_sender(link)->slots + (link->sent & (shape->depth_slots - 1)) * SLOT_WORDS;
    bool is_external = slot[0] & VELO_HEADER_EXTERNAL_MASK;
    int status = is_external ? send_data(link, shape, slot) : VELO_OK;
    if (status == VELO_OK)
        status = send_frame(link, VELO_FRAME_SLOT, slot[0], 0, slot + 1,
                            is_external ? sizeof slot[1] : ring_len(slot[0]));
    if (status == VELO_OK) {
        link->sent++;
        link->data_sent = 0;
    }
    return status;
}

/* Sets the carrier's flag if not all of it found room; progress() takes it back. */
static void push_outgoing(struct velo_link *link)
{
    int status = VELO_OK;
    while (status == VELO_OK && link->sent != link->ready)
        status = send_slot(link);
    if (status == VELO_OK && link->state == LINK_LEAVING &&
        send_frame(link, VELO_FRAME_LEAVE, link->sent, 0, NULL, 0) == VELO_OK)
        hang_up(link);
    if (link->line && (link->sent != link->ready || link->state == LINK_LEAVING))
        order_set_flag(&link->carrier->pending, 1);
}

void link_send(struct velo_conn *conn)
{
    struct velo_link *link = conn->link;
    pthread_mutex_lock(&link->carrier->lock);
    link->ready = conn->tx.tail;
    if (link->state == LINK_OPEN)
        push_outgoing(link);
    /* A program that only sends looks at nothing else. */
    (void)link->carrier->transport->progress(link->carrier->endpoint);
    pthread_mutex_unlock(&link->carrier->lock);
}

void link_look(struct velo_conn *conn)
{
    struct carrier *carrier = conn->link->carrier;
    pthread_mutex_lock(&carrier->lock);
    while (conn->link->state == LINK_OPEN && carrier->transport->progress(carrier->endpoint))
        ;
    pthread_mutex_unlock(&carrier->lock);
}

/* The peer is gone: the sender sees it in the state of what looks like its peer's segment. */
static void end_outgoing(struct velo_link *link, int status)
{
    link->status = status;
    if (link->segment) {
        uint64_t *entry = &link->segment->entries[0];
        if (status == VELO_ERR_CORRUPT)
            order_publish_entry(entry, entry_pack(ENTRY_REFUSED, 0, 0));
        else
            order_publish_entry(&link->segment->header->state,
                                status == VELO_ERR_PEER_CLOSED ? SEG_CLOSED : SEG_DEAD);
        wait_wake((const uint32_t *)&ring_of_sender(link)->consumed);
    }
    hang_up(link);
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
    struct seg_ring *ring = ring_of_sender(link);
    ring->bell = BELL_RING;
    ring->consumed = accept->consumed;
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
        end_outgoing(link, status);
    else
        link->state = LINK_OPEN;
}

static void take_credit(struct velo_link *link, const struct velo_frame *frame)
{
    struct seg_ring *ring = link->segment ? ring_of_sender(link) : NULL;
    /* An older one that comes late says nothing new. */
    if (!ring || link->sent - frame->word[0] > link->sent - ring->consumed ||
        frame->word[1] - ring->data_consumed > link->segment->shape.data_bytes)
        return;
    order_publish_credit(&ring->data_consumed, frame->word[1]);
    order_publish_credit(&ring->consumed, frame->word[0]);
    order_full_fence();
    if (order_read_waiting(&ring->waiting))
        wait_wake((const uint32_t *)&ring->consumed);
}

static int status_in(uint64_t word)
{
    int status = (int)(int64_t)word;
    return status < 0 && status >= VELO_ERR_CANCELLED ? status : VELO_ERR_CORRUPT;
}

static void take_from_receiver(struct velo_link *link, const struct velo_frame *frame)
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
        end_outgoing(link, status_in(frame->word[0]));
        break;
    default:
        end_outgoing(link, VELO_ERR_CORRUPT);
    }
}

/* ---- connecting ------------------------------------------------------------------------------ */

static int dial(struct carrier *carrier, velo_id_t peer, uint64_t order, struct velo_link **out)
{
    struct velo_frame_open open = {.spec_hash = VELO_SPEC_HASH,
                                   .source = carrier->port->id,
                                   .generation = carrier->port->segment->generation,
                                   .order = order};
    pthread_mutex_lock(&carrier->lock);
    struct velo_link *link = new_link(carrier, NULL);
    int status = link ? carrier->transport->dial(carrier->endpoint, peer, link, &link->line)
                      : velo_fail(VELO_ERR_NO_MEMORY, "out of memory");
    if (status == VELO_OK) {
        link->is_outgoing = link->is_kept = true;
        status = send_frame(link, VELO_FRAME_OPEN, 0, 0, &open, sizeof open);
    }
    if (link && status)
        link_free(link);
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

/* Until the peer has answered. */
static int wait_for_answer(struct velo_link *link, int64_t end_ns)
{
    struct velo_port *port = link->carrier->port;
    for (;;) {
        (void)carriers_progress(port);
        enum link_state state = look(link);
        if (state == LINK_OPEN)
            return VELO_OK;
        if (state == LINK_OVER)
            return velo_fail(link->status, "the peer, or %s, refused the connection: %s",
                             link->carrier->transport->name, velo_strerror(link->status));
        if (end_ns >= 0 && wait_now_ns() >= end_ns)
            return velo_fail(VELO_ERR_NO_PEER, "the peer is there, but did not answer in time");
        if (wait_nap(CONNECT_NAP_NS))
            return velo_fail(VELO_ERR_INTERRUPTED, "a signal handler ran before the peer answered");
    }
}

static void fill_conn(struct velo_conn *conn, struct velo_link *link)
{
    static const uint32_t always_ring = BELL_RING;
    struct segment *segment = link->segment;
    struct seg_ring *ring = ring_of_sender(link);
    segment->refs++; /* Nobody else knows of it. */
    conn->segment = segment;
    conn->header = segment->header;
    conn->index = 0;
    conn->fenced = true;
    conn->bell = &always_ring;
    conn->link = link;
    ring_tx_start(&conn->tx, ring, &segment->shape, conn->port->id);
    (void)ring_tx_refresh(&conn->tx, conn->tx.tail);
}

/* Its answer takes a moment, however short the time given. */
#define ANSWER_NS (NS_PER_S / 2)

int link_connect(struct velo_conn *conn, struct carrier *carrier, velo_id_t peer,
                 int64_t timeout_ns)
{
    int64_t start_ns = wait_now_ns();
    int64_t end_ns = timeout_ns < 0 ? -1 : start_ns + timeout_ns;
    for (;;) {
        struct velo_link *link;
        int64_t answer_ns = wait_now_ns() + ANSWER_NS;
        int status = dial(carrier, peer, conn->order, &link);
        if (status == VELO_OK) {
            status = wait_for_answer(link, end_ns < 0 || end_ns > answer_ns ? end_ns : answer_ns);
            if (status == VELO_OK) {
                fill_conn(conn, link);
                return VELO_OK;
            }
            drop(link);
        }
        if (!status_is_absent(status) || (end_ns >= 0 && wait_now_ns() >= end_ns))
            return status;
        if (wait_nap(DIAL_NAP_NS))
            return velo_fail(VELO_ERR_INTERRUPTED,
                             "a signal handler ran before the peer was there");
    }
}

void link_disconnect(struct velo_conn *conn)
{
    struct velo_link *link = conn->link;
    struct carrier *carrier = link->carrier;
    pthread_mutex_lock(&carrier->lock);
    link->ready = conn->tx.tail;
    link->is_kept = false;
    if (link->state == LINK_OPEN) {
        link->state = LINK_LEAVING;
        push_outgoing(link);
    }
    links_sweep(carrier);
    pthread_mutex_unlock(&carrier->lock);
}

/* ---- incoming -------------------------------------------------------------------------------- */

static struct seg_ring *ring_of_receiver(const struct velo_link *link)
{
    return seg_ring(link->carrier->port->segment, link->index);
}

static void refuse_frame(struct velo_link *link)
{
    order_count(&link->carrier->port->shared->rx_errors, 1);
}

/* It sends no more; what it has sent stays. */
static void end_incoming(struct velo_link *link, int status)
{
    const struct segment *segment = link->carrier->port->segment;
    bool is_open = link->state == LINK_OPEN;
    hang_up(link);
    if (!is_open)
        return;
    if (status == VELO_OK) {
        entry_unclaim(segment, link->index, ENTRY_ENDED);
    } else {
        /* As if its process had died: its lock is free, whoever looks finds that out. */
        seg_acquire();
        seg_unlock_entry(segment, link->index);
        seg_release();
        order_set_flag(&segment->header->reap_request, 1);
    }
    entry_ring_and_wake(segment, link->index);
}

static void refuse_open(struct velo_link *link, int status)
{
    (void)send_frame(link, VELO_FRAME_REFUSE, (uint64_t)(int64_t)status, 0, NULL, 0);
    hang_up(link);
}

static int claim(struct velo_link *link, uint64_t order)
{
    const struct segment *segment = link->carrier->port->segment;
    if (!entry_claim(segment, link->source, link->generation, &link->index)) {
        order_set_flag(&segment->header->reap_request, 1);
        order_ring_summary(&segment->header->summary, 1);
        seg_wake_owner(segment);
        return VELO_ERR_FULL;
    }
    int status = entry_set_up(segment, link->index, order);
    if (status)
        entry_unclaim(segment, link->index, ENTRY_GIVEN_UP);
    return status;
}

static void take_open(struct velo_link *link, const struct velo_frame *frame)
{
    struct velo_frame_open open;
    struct velo_port *port = link->carrier->port;
    if (link->state != LINK_OPENING || frame->payload_bytes != sizeof open) {
        refuse_open(link, VELO_ERR_CORRUPT);
        return;
    }
    memcpy(&open, frame->payload, sizeof open);
    link->source = open.source;
    link->generation = open.generation;
    int status = open.spec_hash != VELO_SPEC_HASH ? VELO_ERR_VERSION
                 : open.generation == 0 || VELO_ID_NODE(open.source) >= VELO_NODES
                     ? VELO_ERR_CORRUPT
                     : VELO_OK;
    if (status == VELO_OK)
        status = claim(link, open.order);
    if (status) {
        refuse_open(link, status);
        return;
    }
    struct seg_ring *ring = ring_of_receiver(link);
    struct velo_frame_accept accept = {.generation = port->segment->generation,
                                       .depth_slots = port->shape.depth_slots,
                                       .data_bytes = port->shape.data_bytes,
                                       .consumed = order_read_credit(&ring->consumed),
                                       .data_consumed = order_read_credit(&ring->data_consumed)};
    link->told = accept.consumed;
    link->state = LINK_OPEN;
    entry_open(port->segment, link->index, link->source, link->generation);
    (void)send_frame(link, VELO_FRAME_ACCEPT, 0, 0, &accept, sizeof accept);
}

static void take_data(struct velo_link *link, const struct velo_frame *frame)
{
    const struct seg_shape *shape = &link->carrier->port->shape;
    uint64_t at = frame->word[0] & (shape->data_bytes - 1);
    if (at + frame->payload_bytes > shape->data_bytes) {
        refuse_frame(link);
        return;
    }
    char *data = (char *)(ring_of_receiver(link)->slots + (size_t)shape->depth_slots * SLOT_WORDS);
    memcpy(data + at, frame->payload, frame->payload_bytes);
}

static void take_slot(struct velo_link *link, const struct velo_frame *frame)
{
    const struct velo_port *port = link->carrier->port;
    struct seg_ring *ring = ring_of_receiver(link);
    uint64_t consumed = order_counter(&ring->consumed);
    uint16_t ahead = (uint16_t)(velo_header_seq(frame->word[0]) - (uint16_t)consumed);
    if (ahead >= port->shape.depth_slots || frame->payload_bytes > VELO_INLINE_BYTES) {
        refuse_frame(link); /* It has no credit for that. */
        return;
    }
    uint64_t *slot =
        ring->slots + ((consumed + ahead) & (port->shape.depth_slots - 1)) * SLOT_WORDS;
    const uint64_t claimed = VELO_HEADER_SOURCE_MASK | VELO_HEADER_RESERVED_MASK;
    memcpy(slot + 1, frame->payload, frame->payload_bytes);
    order_publish_header(slot, (frame->word[0] & ~claimed) | (uint64_t)link->source
                                                                 << VELO_HEADER_SOURCE_LSB);
    order_full_fence(); /* As a fenced sender: publish before the bell is read. */
    if (order_read_bell(&ring->bell) == BELL_RING)
        entry_ring_and_wake(port->segment, link->index);
}

static void take_leave(struct velo_link *link, const struct velo_frame *frame)
{
    order_show(&ring_of_receiver(link)->tx_end, frame->word[0]);
    end_incoming(link, VELO_OK);
}

static void take_from_sender(struct velo_link *link, const struct velo_frame *frame)
{
    bool is_open = link->state == LINK_OPEN;
    if (frame->kind == VELO_FRAME_OPEN)
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

/* Tell the sender what was consumed, or that its ring is not read any more. */
static bool push_incoming(struct velo_link *link)
{
    const struct segment *segment = link->carrier->port->segment;
    struct seg_ring *ring = ring_of_receiver(link);
    uint64_t consumed = order_read_credit(&ring->consumed);
    uint64_t data_consumed = order_read_credit(&ring->data_consumed);
    if (consumed != link->told &&
        send_frame(link, VELO_FRAME_CREDIT, consumed, data_consumed, NULL, 0) == VELO_OK)
        link->told = consumed;
    bool is_refused =
        entry_state(order_read_entry(&segment->entries[link->index])) == ENTRY_REFUSED;
    if (is_refused && !link->is_refused)
        link->is_refused =
            send_frame(link, VELO_FRAME_REFUSE, (uint64_t)VELO_ERR_CORRUPT, 0, NULL, 0) == VELO_OK;
    return consumed == link->told && is_refused == link->is_refused;
}

/* ---- both ------------------------------------------------------------------------------------ */

bool link_push(struct velo_link *link)
{
    if (link->state == LINK_OPENING || link->state == LINK_OVER)
        return true;
    if (!link->is_outgoing)
        return push_incoming(link);
    push_outgoing(link);
    return link->state == LINK_OVER || (link->state == LINK_OPEN && link->sent == link->ready);
}

bool link_is_done(const struct velo_link *link) { return link->state != LINK_LEAVING; }

void link_close(struct velo_link *link)
{
    if (!link->is_outgoing && link->state == LINK_OPEN)
        (void)send_frame(link, VELO_FRAME_CLOSE, (uint64_t)VELO_ERR_PEER_CLOSED, 0, NULL, 0);
    hang_up(link);
}

static struct velo_link *rang(void *owner, void *line) { return new_link(owner, line); }

static void came(struct velo_link *link, const struct velo_frame *frame)
{
    if (link->state == LINK_OVER)
        return;
    if (link->is_outgoing)
        take_from_receiver(link, frame);
    else
        take_from_sender(link, frame);
}

static void lost(struct velo_link *link, int status)
{
    if (link->state == LINK_OVER)
        hang_up(link);
    else if (link->is_outgoing)
        end_outgoing(link, status);
    else
        end_incoming(link, status);
}

const struct velo_transport_calls link_calls = {rang, came, lost, velo_fail};
