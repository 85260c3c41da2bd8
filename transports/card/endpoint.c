/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transport between machines that have cards: each port has one context of its node. This file is
 * what the library sees; card.h says what the others do.
 */
#include <stdlib.h>

#include "../common/hash.h"
#include "card.h"

extern struct velo_transport velo_transport;

/* ---- what the node has for us ------------------------------------------------------------------ */

static void take_line(struct endpoint *endpoint, const uint64_t *line)
{
    uint32_t words = 1 + velo_header_len(line[0]) / 8;
    uint16_t from = velo_header_source(line[0]);
    uint16_t to_generation = wire_part(line[1], 0), from_generation = wire_part(line[1], 1);
    enum wire_kind kind = (enum wire_kind)velo_header_tag(line[0]);
    if (words < 2 || velo_header_len(line[0]) % 8 != 0 || kind < WIRE_FRAME ||
        kind > WIRE_REDIRECT || from_generation == 0) {
        endpoint_refuse(&endpoint->base);
        return;
    }
    /* Lines for an earlier owner of the context are not for us. */
    if (to_generation != endpoint->place.context_generation &&
        !(kind == WIRE_HELLO && to_generation == 0))
        return;
    if (kind >= WIRE_HELLO) {
        greeting_take(endpoint, from, kind, line, words);
        return;
    }
    struct conn *conn = conn_at(endpoint, from);
    if (conn && conn->state == CONN_OPEN && conn->context_generation == from_generation)
        frame_take(conn, kind, line, words);
    else if (!conn_was_at(endpoint, from, from_generation))
        endpoint_refuse(&endpoint->base);
}

/* ---- progress -------------------------------------------------------------------------------- */

/* What the node did not take is offered again: neither a card nor the simulated cluster tells when
 * it has taken stores. The timer also says HELLO again. */
static int64_t period_ns(const struct endpoint *endpoint)
{
    if (endpoint->base.is_owing)
        return OWING_NS;
    bool is_alone = !endpoint->over;
    int64_t period_ns = endpoint->patience.tick_ns;
    for (const struct conn *conn = endpoint->conns; conn; conn = conn->next) {
        is_alone = false;
        if (conn->state == CONN_CALLING && conn->pause_ns < period_ns)
            period_ns = conn->pause_ns;
    }
    for (uint32_t i = 0; i < FORMER_MAX && is_alone; i++)
        is_alone = endpoint->former_conns[i].ticks == 0;
    return is_alone ? 0 : period_ns;
}

static void set_timer(struct endpoint *endpoint)
{
    timer_set(&endpoint->base.timer, period_ns(endpoint));
}

static void push_conns(struct endpoint *endpoint)
{
    endpoint->base.is_owing = false;
    for (struct conn *conn = endpoint->conns; conn; conn = conn->next) {
        if (!greeting_push(conn) || conn->state != CONN_OPEN)
            continue;
        if (conn->out_len)
            (void)frame_push(conn);
        if (conn->owes_ack)
            frame_acknowledge(conn);
        if (conn->circuits.owed_gone)
            circuits_push(&conn->circuits);
        if (conn->circuits.full && frame_has_room(conn))
            circuits_tell_room(&conn->circuits);
    }
    fetches_push(endpoint);
}

static bool take_all(struct endpoint *endpoint)
{
    bool any = fetches_take(endpoint);
    return store_take(endpoint, take_line) || any;
}

static bool card_progress(void *self)
{
    struct endpoint *endpoint = self;
    bool any = take_all(endpoint);
    if (!any) {
        host_io->poll();
        any = take_all(endpoint);
    }
    endpoint->base.now_ns = timer_now_ns();
    if (timer_has_ticked(&endpoint->base.timer, endpoint->base.now_ns, endpoint->patience.tick_ns))
        silence_tick(endpoint);
    push_conns(endpoint);
    conns_sweep(endpoint);
    return any;
}

static bool card_arm(void *self)
{
    struct endpoint *endpoint = self;
    set_timer(endpoint);
    timer_read(&endpoint->base.timer);
    return host_io->arm(&endpoint->context);
}

/* ---- circuits ----------------------------------------------------------------------------------- */

/* To the own port the sequence is one for both sides, and nobody greets. */
static void open_to_self(struct conn *conn)
{
    conn->is_self = true;
    conn->address = conn->endpoint->place.address;
    conn->context_generation = conn->endpoint->place.context_generation;
    conn->generation = conn->endpoint->base.attr.generation;
    conn->window_out = conn->window_in;
    conn->state = CONN_OPEN;
}

static int call_peer(struct endpoint *endpoint, velo_id_t peer, struct conn **out)
{
    struct conn *conn;
    int status = conn_new(endpoint, peer, 0, &conn);
    if (status)
        return status;
    if (peer == endpoint->base.attr.id) {
        open_to_self(conn);
    } else {
        status = names_resolve(conn);
        if (status == VELO_OK)
            status = host_check_grant(&endpoint->context, conn->address);
        if (status == VELO_OK)
            greeting_call(conn);
        else
            conn_end(conn, status, true);
    }
    *out = conn;
    return status;
}

/* A new connection to a peer, or the one that there is. */
static int reach_peer(struct endpoint *endpoint, velo_id_t peer, struct conn **out)
{
    struct velo_port_shown shown;
    struct conn *conn = conn_find(endpoint, peer);
    /* On this machine one knows at once that a peer has begun anew. */
    if (conn && conn->is_here && !conn->is_self && conn->state == CONN_OPEN) {
        int status = endpoint->base.calls->find_name(endpoint->base.attr.owner, peer, &shown);
        if (status == VELO_OK && shown.generation != conn->generation) {
            conn_end(conn, VELO_ERR_PEER_DEAD, true);
            conn = NULL;
        }
    }
    *out = conn;
    return conn ? VELO_OK : call_peer(endpoint, peer, out);
}

static int card_dial(void *self, velo_id_t peer, struct velo_link *link, void **out)
{
    struct conn *conn;
    int status = reach_peer(self, peer, &conn);
    return status ? status : circuit_dial(&conn->circuits, link, out);
}

static size_t card_own_name(void *self, char *name) { return names_own(self, name); }

static int card_learn(void *self, velo_id_t peer, const void *name, size_t len_bytes)
{
    return names_learn(self, peer, name, len_bytes);
}

static struct velo_exposed *card_expose(void *self, const void *memory, size_t len_bytes)
{
    return fetch_expose(self, memory, len_bytes);
}

static void card_conceal(void *self, struct velo_exposed *exposed) { fetch_conceal(self, exposed); }

static int card_fetch(void *self, void *to, size_t len_bytes, const struct velo_exposed *from,
                      int *outcome)
{
    return fetch_begin(self, to, len_bytes, from, outcome);
}

static void card_forget(void *self, const int *outcome) { fetch_forget(self, outcome); }

/* ---- endpoints ------------------------------------------------------------------------------- */

/* BYE is the last line: the peer sends nothing behind its answer. True: the peer has taken all. */
static bool has_left(struct conn *conn)
{
    if (conn->state != CONN_OPEN || conn->is_self)
        return true;
    if (!conn->is_leaving && conn->circuits.owed_gone == 0)
        conn->is_leaving = frame_mark(conn, WIRE_BYE);
    return conn->is_leaving && conn->acked == conn->sent;
}

/* Each connection is told, also if another one has not left. */
static bool have_left(struct endpoint_base *base)
{
    bool have_left = true;
    for (struct conn *conn = ((struct endpoint *)base)->conns; conn; conn = conn->next)
        have_left &= has_left(conn);
    return have_left;
}

static void card_close(void *self)
{
    struct endpoint *endpoint = self;
    port_remove(&endpoint->base.port);
    if (endpoint->is_open)
        endpoint_leave(&endpoint->base, &velo_transport, have_left);
    while (endpoint->conns)
        conn_end(endpoint->conns, VELO_ERR_PEER_DEAD, true);
    conns_sweep(endpoint);
    if (endpoint->is_open)
        host_io->context_close(&endpoint->context);
    fetches_free(endpoint);
    recombine_close(&endpoint->split);
    endpoint_close_files(&endpoint->base);
    free(endpoint);
}

static int open_context(struct endpoint *endpoint)
{
    const struct velo_endpoint_attr *attr = &endpoint->base.attr;
    endpoint->is_beside = attr_is_beside(attr);
    endpoint->domain_hash = hash_text(attr->domain);
    int status =
        host_io->context_open(attr->node, attr->id, endpoint->is_beside, &endpoint->context);
    if (status)
        return status;
    const struct host_context *context = &endpoint->context;
    endpoint->is_open = true;
    endpoint->place.address = wire_address(context->node, context->number);
    endpoint->place.context_generation = (uint16_t)(context->opened % UINT16_MAX + 1);
    endpoint->slots = context->ring_slots / PARTS * (PARTS - 2);
    return VELO_OK;
}

static int card_open(const struct velo_endpoint_attr *attr,
                     const struct velo_transport_calls *calls, void **out)
{
    struct endpoint *endpoint = endpoint_new(sizeof *endpoint, attr, calls, &frame_circuits);
    if (!endpoint)
        return VELO_ERR_NO_MEMORY;
    host_fail = calls->fail;
    int status = patience_read(&endpoint->patience, "VELO_CARD_TIMEOUT_MS", calls);
    if (status == VELO_OK)
        status = open_context(endpoint);
    if (status == VELO_OK)
        status = endpoint_open_files(&endpoint->base, host_io->descriptor(&endpoint->context),
                                     velo_transport.name);
    if (status) {
        card_close(endpoint);
        return status;
    }
    /* The back gives up the contexts by itself. */
    endpoint_show(&endpoint->base, &endpoint->place, sizeof endpoint->place, NULL);
    *out = endpoint;
    return VELO_OK;
}

struct velo_transport velo_transport __attribute__((visibility("default"))) = {
    .version = VELO_TRANSPORT_VERSION,
    .payload_bytes_max = WIRE_PAYLOAD_BYTES,
    .name = "card",
    .uses_node = true,
    .open = card_open,
    .close = card_close,
    .dial = card_dial,
    .send = circuit_send,
    .hang_up = circuit_hang_up,
    .progress = card_progress,
    .descriptor = endpoint_descriptor,
    .own_name = card_own_name,
    .learn = card_learn,
    .arm = card_arm,
    .expose = card_expose,
    .conceal = card_conceal,
    .fetch = card_fetch,
    .forget = card_forget,
};
