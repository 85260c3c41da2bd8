/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets: frames for one peer are collected in the packet being filled. When it leaves:
 *
 *  - at once, if nothing was sent to the peer for BURST_NS, or if a message of the peer has come
 * since: this may be the answer that it waits for;
 *  - else when the program next polls or waits, when the packet is full, or HOLD_NS after its first
 *    frame, if the program then sends more; the library's thread sees to it if the program does
 *    nothing of that (VELO_HOLD_NS).
 *
 * Small credits wait for a packet to travel with, as long as the program polls, for LAZY_NS. A peer
 * is sent no more than WIRE_WINDOW packets that it has not taken.
 */
#include <string.h>

#include "ofi.h"

#define BURST_NS 10000
#define HOLD_NS 20000
#define LAZY_NS 50000
/* A packet with less room than this leaves. */
#define ROOM_BYTES 128u

/* ---- filling --------------------------------------------------------------------------------- */

static void list_conn(struct conn *conn)
{
    if (conn->is_listed)
        return;
    conn->is_listed = true;
    conn->next_listed = conn->endpoint->filled;
    conn->endpoint->filled = conn;
}

static bool begin_packet(struct conn *conn)
{
    if (conn->filling && !packet_flush(conn))
        return false;
    struct packet *packet = conn->free;
    if (!packet)
        return false;
    conn->free = packet->next;
    packet->len_bytes = sizeof(struct wire_header);
    conn->filling = packet;
    conn->filling_ns = timer_now_ns();
    list_conn(conn);
    return true;
}

static void append_frame(const struct circuit *circuit, const struct velo_frame *frame)
{
    struct packet *packet = ((struct conn *)circuit->circuits)->filling;
    packet->len_bytes += circuit_put_frame(circuit, frame, packet->data + packet->len_bytes);
}

/* ---- credits --------------------------------------------------------------------------------- */

static void drop_credit(struct ofi_circuit *circuit)
{
    struct ofi_circuit **at = &((struct conn *)circuit->circuit.circuits)->credits;
    while (circuit->owes_credit && *at != circuit)
        at = &(*at)->next_credit;
    if (circuit->owes_credit)
        *at = circuit->next_credit;
    circuit->owes_credit = false;
}

/* Into the packet being filled, if there is one with enough room. */
static void put_credits(struct conn *conn)
{
    const uint32_t len_bytes = wire_frame_bytes(VELO_FRAME_CREDIT, 0);
    while (conn->credits && conn->filling &&
           conn->filling->len_bytes + len_bytes <= WIRE_PACKET_BYTES) {
        struct ofi_circuit *circuit = conn->credits;
        const struct velo_frame frame = {.kind = VELO_FRAME_CREDIT,
                                         .word = {circuit->credit[0], circuit->credit[1]}};
        append_frame(&circuit->circuit, &frame);
        memcpy(circuit->credit_told, circuit->credit, sizeof circuit->credit_told);
        drop_credit(circuit);
    }
}

/* A packet for all credits that wait. */
static bool push_credits(struct conn *conn)
{
    bool are_alone = !conn->filling;
    bool is_asked = conn->is_asked;
    if (conn->credits && are_alone && !begin_packet(conn))
        return false;
    put_credits(conn);
    bool has_left = packet_flush(conn);
    conn->is_asked |= is_asked && are_alone; /* Credits are no answer. */
    return has_left;
}

static int add_credit(struct ofi_circuit *circuit, const struct velo_frame *frame)
{
    struct conn *conn = (struct conn *)circuit->circuit.circuits;
    memcpy(circuit->credit, frame->word, sizeof circuit->credit);
    if (!circuit->owes_credit) {
        if (!conn->credits)
            conn->credits_ns = timer_now_ns();
        circuit->owes_credit = true;
        circuit->next_credit = conn->credits;
        conn->credits = circuit;
        list_conn(conn);
    }
    if (frame->word[0] - circuit->credit_told[0] >= circuit->urgent[0] ||
        frame->word[1] - circuit->credit_told[1] >= circuit->urgent[1])
        (void)push_credits(conn);
    return VELO_OK;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void note_accept(struct ofi_circuit *circuit, const struct velo_frame *frame)
{
    struct velo_frame_accept accept;
    memcpy(&accept, frame->payload, sizeof accept);
    circuit->urgent[0] = accept.depth_slots / 2;
    circuit->urgent[1] = accept.data_bytes / 4;
    circuit->credit_told[0] = accept.consumed;
    circuit->credit_told[1] = accept.data_consumed;
}

static bool make_room(struct conn *conn, uint32_t len_bytes)
{
    return (conn->filling && conn->filling->len_bytes + len_bytes <= WIRE_PACKET_BYTES) ||
           begin_packet(conn);
}

bool packet_has_room(const struct conn *conn)
{
    return conn->state == CONN_OPEN && !conn->filling && conn->free;
}

int packet_add(struct circuit *circuit, const struct velo_frame *frame)
{
    struct conn *conn = (struct conn *)circuit->circuits;
    if (conn->state != CONN_OPEN)
        return conn->state == CONN_OVER ? VELO_OK : VELO_AGAIN;
    if (frame->kind == VELO_FRAME_CREDIT)
        return add_credit((struct ofi_circuit *)circuit, frame);
    if (!make_room(conn, wire_frame_bytes(frame->kind, frame->payload_bytes)))
        return VELO_AGAIN;
    append_frame(circuit, frame);
    if (frame->kind == VELO_FRAME_ACCEPT &&
        frame->payload_bytes == sizeof(struct velo_frame_accept))
        note_accept((struct ofi_circuit *)circuit, frame);
    if (conn->filling->len_bytes > WIRE_PACKET_BYTES - ROOM_BYTES)
        (void)packet_flush(conn);
    return VELO_OK;
}

static bool is_open(const struct circuits *circuits)
{
    return ((const struct conn *)circuits)->state == CONN_OPEN;
}

static void forget_credit(struct circuit *circuit) { drop_credit((struct ofi_circuit *)circuit); }

const struct circuits_use packet_circuits = {.circuit_bytes = sizeof(struct ofi_circuit),
                                             .is_open = is_open,
                                             .send = packet_add,
                                             .forget = forget_credit};

/* ---- sending --------------------------------------------------------------------------------- */

/* To the own port. */
static void loop_back(struct conn *conn, struct packet *packet)
{
    struct packet **at = &conn->endpoint->looped;
    while (*at)
        at = &(*at)->next;
    packet->next = NULL;
    *at = packet;
}

static void put_header(struct conn *conn, struct packet *packet, enum wire_kind kind)
{
    *(struct wire_header *)packet->data = (struct wire_header){.magic = WIRE_MAGIC,
                                                               .kind = (uint16_t)kind,
                                                               .index = conn->peer_index,
                                                               .sequence = conn->sent,
                                                               .taken = conn->taken,
                                                               .token = conn->token_out};
}

/* The peer is told how many of its packets were taken, and that this side lives. */
static void note_told(struct conn *conn)
{
    conn->taken_told = conn->taken;
    conn->owes_ack = false;
    conn->was_busy = true;
}

bool packet_flush(struct conn *conn)
{
    struct packet *packet = conn->filling;
    if (!packet)
        return true;
    if (conn->sent - conn->acked >= WIRE_WINDOW)
        return false;
    put_credits(conn); /* Also if it is too long to be injected then: theirs would cost more. */
    put_header(conn, packet, conn->is_leaving ? WIRE_BYE : WIRE_FRAMES);
    enum fabric_sent sent = conn->is_self ? FABRIC_HAS : offer_packet(conn, packet);
    if (sent == FABRIC_BUSY)
        return false;
    if (conn->is_self)
        loop_back(conn, packet);
    conn->at_fabric += sent == FABRIC_HAS;
    if (sent == FABRIC_DONE) {
        packet->next = conn->free;
        conn->free = packet;
    }
    conn->filling = NULL;
    conn->is_asked = false;
    conn->sent++;
    note_told(conn);
    conn->sent_ns = timer_now_ns();
    return true;
}

void packet_leave(struct conn *conn)
{
    conn->is_leaving = conn->filling || begin_packet(conn);
    if (conn->is_leaving)
        (void)packet_flush(conn);
}

void packets_flush(struct endpoint *endpoint, bool credits_too)
{
    struct conn **at = &endpoint->filled;
    while (*at) {
        struct conn *conn = *at;
        bool are_due =
            conn->credits && (credits_too || endpoint->base.now_ns - conn->credits_ns >= LAZY_NS);
        (void)(are_due ? push_credits(conn) : packet_flush(conn));
        conn->is_listed = conn->filling || conn->credits;
        if (conn->is_listed)
            at = &conn->next_listed;
        else
            *at = conn->next_listed;
    }
}

bool packets_hold(struct endpoint *endpoint)
{
    bool is_held = false;
    int64_t now_ns = 0;
    for (struct conn *conn = endpoint->filled; conn; conn = conn->next_listed) {
        if (!conn->filling)
            continue;
        if (now_ns == 0)
            now_ns = timer_now_ns();
        /* What does not leave now leaves when the peer has taken what it has. */
        if (conn->is_asked || now_ns - conn->sent_ns > BURST_NS ||
            now_ns - conn->filling_ns > HOLD_NS)
            (void)packet_flush(conn);
        else
            is_held = true;
    }
    return is_held;
}

/* A packet without frames. False: it did not leave. */
static bool send_sign(struct conn *conn, enum wire_kind kind)
{
    if (conn->is_self || conn->is_ack_sent)
        return false;
    put_header(conn, &conn->ack, kind);
    enum fabric_sent sent = offer_packet(conn, &conn->ack);
    if (sent == FABRIC_BUSY)
        return false;
    conn->is_ack_sent = sent == FABRIC_HAS;
    note_told(conn);
    return true;
}

void packet_acknowledge(struct conn *conn)
{
    conn->owes_ack = true;
    (void)send_sign(conn, WIRE_ACK);
}

bool packet_ask(struct conn *conn) { return send_sign(conn, WIRE_ASK); }

/* ---- taking ---------------------------------------------------------------------------------- */

/* False: there is something that is no frame. */
static bool take_frames(struct conn *conn, const char *data, size_t len_bytes)
{
    size_t at = 0;
    while (at < len_bytes && conn->state == CONN_OPEN) {
        const struct wire_envelope *envelope = (const struct wire_envelope *)(data + at);
        bool has_envelope = len_bytes - at >= sizeof *envelope;
        uint32_t frame_bytes = has_envelope ? wire_length(envelope, WIRE_PAYLOAD_BYTES) : 0;
        if (frame_bytes == 0 || frame_bytes > len_bytes - at)
            return false;
        const struct velo_frame frame = wire_frame(envelope);
        conn->is_asked |= frame.kind == VELO_FRAME_SLOT;
        /* The sender is the port that has proved to have the secret. */
        if (!circuits_take(&conn->circuits, conn->generation, envelope, &frame))
            endpoint_refuse(&conn->endpoint->base);
        at += frame_bytes;
    }
    return true;
}

/* The connection of a packet; NULL: it has no right to be on one. */
static struct conn *conn_of(struct endpoint *endpoint, const struct wire_header *header,
                            fi_addr_t from)
{
    struct conn *conn = header->index < endpoint->conns_len ? endpoint->conns[header->index] : NULL;
    if (conn && conn->state == CONN_OPEN && header->token == conn->token_in &&
        (conn->is_self || from == conn->address))
        return conn;
    const struct former_conn *former =
        header->index < endpoint->conns_len ? &endpoint->former_conns[header->index] : NULL;
    if (!former || former->ticks == 0 || former->token != header->token)
        endpoint_refuse(&endpoint->base);
    return NULL;
}

static void take_sequence(struct conn *conn, const struct wire_header *header, const char *data,
                          size_t len_bytes)
{
    if (header->sequence != conn->taken) {
        conn_end(conn, VELO_ERR_PEER_DEAD); /* Packets were lost with a connection of the fabric. */
        return;
    }
    conn->taken++;
    if (!take_frames(conn, data, len_bytes)) {
        endpoint_refuse(&conn->endpoint->base);
        conn_end(conn, VELO_ERR_CORRUPT);
    }
    if (conn->state != CONN_OPEN)
        return;
    if (header->kind == WIRE_BYE) {
        packet_acknowledge(conn);
        conn_end(conn, VELO_ERR_PEER_DEAD);
    } else if (conn->is_self) {
        conn->acked = conn->taken;
    } else if (conn->taken - conn->taken_told >= WIRE_WINDOW / 4) {
        packet_acknowledge(conn);
    }
}

void packet_take(struct endpoint *endpoint, const char *data, size_t len_bytes, fi_addr_t from)
{
    const struct wire_header *header = (const struct wire_header *)data;
    if (len_bytes < sizeof *header || header->magic != WIRE_MAGIC || header->kind < WIRE_HELLO ||
        header->kind > WIRE_ASK) {
        endpoint_refuse(&endpoint->base);
        return;
    }
    if (header->kind < WIRE_FRAMES) {
        greeting_take(endpoint, data, len_bytes, from);
        return;
    }
    struct conn *conn = conn_of(endpoint, header, from);
    if (!conn)
        return;
    if (!conn->is_self && header->taken - conn->acked > conn->sent - conn->acked) {
        endpoint_refuse(&endpoint->base);
        return;
    }
    conn->hearing.was_heard = true;
    if (!conn->is_self)
        conn->acked = header->taken;
    if (header->kind == WIRE_ASK)
        packet_acknowledge(conn);
    else if (header->kind != WIRE_ACK)
        take_sequence(conn, header, data + sizeof *header, len_bytes - sizeof *header);
}
