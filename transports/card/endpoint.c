/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transport between machines that have cards: each port has one context of its node. This file is
 * what the library sees; card.h says what the others do.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../../lib/base/fd.h"
#include "../common/hash.h"
#include "card.h"

/* What the node did not take is offered again after this time: neither a card nor the simulated
 * cluster tells when it has taken stores. */
#define OWING_NS 1000000
/* The longest wait of a port that closes for its peers to take its last lines. */
#define LEAVE_NS NS_PER_S

void refuse(struct endpoint *endpoint) { endpoint->calls->count_refused(endpoint->attr.owner, 1); }

/* ---- progress -------------------------------------------------------------------------------- */

/* The timer also says HELLO again. */
static int64_t period_ns(const struct endpoint *endpoint)
{
    if (endpoint->is_owing)
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
    timer_set(&endpoint->timer, period_ns(endpoint));
}

static void push(struct endpoint *endpoint)
{
    endpoint->is_owing = false;
    for (struct conn *conn = endpoint->conns; conn; conn = conn->next) {
        if (!greeting_push(conn) || conn->state != CONN_OPEN)
            continue;
        if (conn->out_len)
            (void)frame_push(conn);
        if (conn->owes_ack)
            frame_acknowledge(conn);
        if (conn->lines.owed_gone)
            lines_push(&conn->lines);
        if (conn->lines.full && frame_has_room(conn))
            lines_tell_room(&conn->lines);
    }
    fetches_push(endpoint);
}

static bool take(struct endpoint *endpoint)
{
    bool any = fetches_take(endpoint);
    return store_take(endpoint) || any;
}

static bool card_progress(void *self)
{
    struct endpoint *endpoint = self;
    bool any = take(endpoint);
    if (!any) {
        host_io->poll();
        any = take(endpoint);
    }
    endpoint->now_ns = timer_now_ns();
    if (timer_has_ticked(&endpoint->timer, endpoint->now_ns, endpoint->patience.tick_ns))
        conns_tick(endpoint);
    push(endpoint);
    conns_sweep(endpoint);
    return any;
}

static bool card_arm(void *self)
{
    struct endpoint *endpoint = self;
    set_timer(endpoint);
    timer_read(&endpoint->timer);
    return host_io->arm(&endpoint->context);
}

static int card_descriptor(void *self) { return ((struct endpoint *)self)->epoll; }

/* ---- lines ----------------------------------------------------------------------------------- */

/* To the own port the sequence is one for both sides, and nobody greets. */
static void open_to_self(struct conn *conn)
{
    conn->is_self = true;
    conn->address = conn->endpoint->address;
    conn->context_generation = conn->endpoint->generation;
    conn->generation = conn->endpoint->attr.generation;
    conn->window_out = conn->window_in;
    conn->state = CONN_OPEN;
}

static int call(struct endpoint *endpoint, velo_id_t peer, struct conn **out)
{
    struct conn *conn;
    int status = conn_new(endpoint, peer, 0, &conn);
    if (status)
        return status;
    if (peer == endpoint->attr.id) {
        open_to_self(conn);
    } else {
        status = names_resolve(conn);
        if (status == VELO_OK && !host_io->may_send(&endpoint->context, conn->address))
            status = endpoint->calls->fail(
                VELO_ERR_ACCESS, "no grant to send to context %u of node %u; see /sys/class/velo",
                wire_context(conn->address), wire_node(conn->address));
        if (status == VELO_OK)
            greeting_call(conn);
        else
            conn_end(conn, status, true);
    }
    *out = conn;
    return status;
}

/* A new connection to a peer, or the one that there is. */
static int reach(struct endpoint *endpoint, velo_id_t peer, struct conn **out)
{
    struct velo_port_shown shown;
    struct conn *conn = conn_find(endpoint, peer);
    /* On this machine one knows at once that a peer has begun anew. */
    if (conn && conn->is_here && !conn->is_self && conn->state == CONN_OPEN) {
        int status = endpoint->calls->find_name(endpoint->attr.owner, peer, &shown);
        if (status == VELO_OK && shown.generation != conn->generation) {
            conn_end(conn, VELO_ERR_PEER_DEAD, true);
            conn = NULL;
        }
    }
    *out = conn;
    return conn ? VELO_OK : call(endpoint, peer, out);
}

static int card_dial(void *self, velo_id_t peer, struct velo_link *link, void **out)
{
    struct endpoint *endpoint = self;
    struct conn *conn;
    struct line *line = NULL;
    int status = reach(endpoint, peer, &conn);
    if (status == VELO_OK)
        status = line_dial(&conn->lines, link, &line);
    *out = line;
    return status;
}

static int card_send(void *self, const struct velo_frame *frame) { return line_send(self, frame); }

static void card_hang_up(void *self) { line_hang_up(self); }

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
    if (!conn->is_leaving && conn->lines.owed_gone == 0)
        conn->is_leaving = frame_mark(conn, WIRE_BYE);
    return conn->is_leaving && conn->acked == conn->sent;
}

static void leave(struct endpoint *endpoint)
{
    int64_t end_ns = timer_now_ns() + LEAVE_NS;
    bool is_left = false;
    while (!is_left && timer_now_ns() < end_ns) {
        is_left = true;
        (void)card_progress(endpoint);
        for (struct conn *conn = endpoint->conns; conn; conn = conn->next)
            is_left &= has_left(conn);
        struct pollfd file = {.fd = endpoint->epoll, .events = POLLIN};
        int64_t left_ns = end_ns - timer_now_ns();
        if (!is_left && left_ns > 0 && card_arm(endpoint))
            (void)poll(&file, 1, (int)(left_ns / NS_PER_MS) + 1);
    }
}

static void card_close(void *self)
{
    struct endpoint *endpoint = self;
    port_remove(&endpoint->port);
    if (endpoint->is_open)
        leave(endpoint);
    while (endpoint->conns)
        conn_end(endpoint->conns, VELO_ERR_PEER_DEAD, true);
    conns_sweep(endpoint);
    if (endpoint->is_open)
        host_io->context_close(&endpoint->context);
    fetches_free(endpoint);
    recombine_close(&endpoint->split);
    if (endpoint->epoll >= 0)
        close(endpoint->epoll);
    timer_close(&endpoint->timer);
    free(endpoint);
}

static int open_context(struct endpoint *endpoint)
{
    const struct velo_endpoint_attr *attr = &endpoint->attr;
    endpoint->is_beside = attr_is_beside(attr);
    endpoint->domain_hash = hash_text(attr->domain);
    int status =
        host_io->context_open(attr->node, attr->id, endpoint->is_beside, &endpoint->context);
    if (status)
        return status;
    const struct host_context *context = &endpoint->context;
    endpoint->is_open = true;
    endpoint->address = wire_address(context->node, context->number);
    endpoint->generation = (uint16_t)(context->opened % UINT16_MAX + 1);
    endpoint->slots = context->ring_slots / PARTS * (PARTS - 2);
    return VELO_OK;
}

static int open_files(struct endpoint *endpoint)
{
    struct epoll_event event = {.events = EPOLLIN};
    int file = host_io->descriptor(&endpoint->context);
    endpoint->epoll = fd_above_standard(epoll_create1(EPOLL_CLOEXEC));
    if (endpoint->epoll >= 0 && timer_open(&endpoint->timer) &&
        epoll_ctl(endpoint->epoll, EPOLL_CTL_ADD, endpoint->timer.fd, &event) == 0 &&
        (file < 0 || epoll_ctl(endpoint->epoll, EPOLL_CTL_ADD, file, &event) == 0))
        return VELO_OK;
    return endpoint->calls->fail(VELO_ERR_SYSTEM, "transport card: no descriptor to wait for: %s",
                                 strerror(errno));
}

static int card_open(const struct velo_endpoint_attr *attr,
                     const struct velo_transport_calls *calls, void **out)
{
    struct endpoint *endpoint = calloc(1, sizeof *endpoint);
    if (!endpoint)
        return calls->fail(VELO_ERR_NO_MEMORY, "out of memory");
    host_fail = calls->fail;
    endpoint->calls = calls;
    endpoint->attr = *attr;
    endpoint->epoll = endpoint->timer.fd = -1;
    int status = patience_read(&endpoint->patience, "VELO_CARD_TIMEOUT_MS", calls);
    if (status == VELO_OK)
        status = open_context(endpoint);
    if (status == VELO_OK)
        status = open_files(endpoint);
    if (status) {
        card_close(endpoint);
        return status;
    }
    names_add(endpoint);
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
    .send = card_send,
    .hang_up = card_hang_up,
    .progress = card_progress,
    .descriptor = card_descriptor,
    .own_name = card_own_name,
    .learn = card_learn,
    .arm = card_arm,
    .expose = card_expose,
    .conceal = card_conceal,
    .fetch = card_fetch,
    .forget = card_forget,
};
