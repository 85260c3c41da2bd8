/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transport between machines: each port has one reliable-datagram endpoint of libfabric. This
 * file is what the library sees; ofi.h says what the others do.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "ofi.h"

/* A look takes in so many packets. */
#define PACKETS_PER_LOOK 16
/* The longest wait of a process that ends for its peers to take what was sent. */
#define FINISH_NS NS_PER_S

extern struct velo_transport velo_transport;

/* ---- what the fabric says -------------------------------------------------------------------- */

/* False: not now. */
static bool receive_into(struct endpoint *endpoint, struct packet *packet)
{
    if (backoff_lasts(&endpoint->backoff))
        return false;
    enum fabric_sent sent = fabric_receive(&endpoint->fabric, packet);
    backoff_note(&endpoint->backoff, sent == FABRIC_REFUSED);
    return sent == FABRIC_HAS;
}

static void post_packet(struct endpoint *endpoint, struct packet *packet)
{
    if (receive_into(endpoint, packet))
        return;
    packet->next = endpoint->unposted;
    endpoint->unposted = packet;
}

/* Where the fabric does not take one it takes none of the others, either. */
static void post_again(struct endpoint *endpoint)
{
    while (endpoint->unposted) {
        struct packet *next = endpoint->unposted->next;
        if (!receive_into(endpoint, endpoint->unposted))
            return;
        endpoint->unposted = next;
    }
}

static void note_sent(struct packet *packet, bool is_failed)
{
    struct conn *conn = packet->conn;
    if (packet->use == PACKET_TX) {
        packet->next = conn->free;
        conn->free = packet;
        conn->at_fabric--;
    } else if (packet->use == PACKET_READ) {
        conn->at_fabric--;
        fetch_came(packet, is_failed);
    } else if (packet->use == PACKET_ACK) {
        conn->is_ack_sent = false;
    } else {
        conn->is_greeting_sent = false;
    }
    if (is_failed)
        conn_end(conn, conn->state == CONN_OPEN ? VELO_ERR_PEER_DEAD : VELO_ERR_NO_PEER);
}

static void take_outcome(struct endpoint *endpoint, const struct outcome *outcome)
{
    struct packet *packet = outcome->packet;
    if (packet && packet->use != PACKET_RX) {
        note_sent(packet, outcome->is_failed);
        return;
    }
    if (!packet || outcome->is_failed)
        endpoint_refuse(&endpoint->base); /* It was longer than a packet is. */
    else
        packet_take(endpoint, packet->data, outcome->len_bytes, outcome->from);
    if (packet)
        post_packet(endpoint, packet);
}

/* Those that are there: to ask the fabric once more costs a system call. */
static bool take_outcomes(struct endpoint *endpoint)
{
    struct outcome outcomes[OUTCOMES_MAX];
    int len = fabric_poll(&endpoint->fabric, outcomes);
    for (int i = 0; i < len; i++)
        take_outcome(endpoint, &outcomes[i]);
    return len > 0;
}

static bool take_looped(struct endpoint *endpoint)
{
    bool any = false;
    for (int packets = 0; packets < PACKETS_PER_LOOK && endpoint->looped; packets++) {
        struct packet *packet = endpoint->looped;
        endpoint->looped = packet->next;
        packet_take(endpoint, packet->data, packet->len_bytes, FI_ADDR_UNSPEC);
        note_sent(packet, false);
        any = true;
    }
    return any;
}

/* ---- time ------------------------------------------------------------------------------------ */

/* What the fabric did not take is offered again: libfabric says that it may be when something
 * completes, and nothing may be under way. */
static void set_timer(struct endpoint *endpoint)
{
    bool is_owing = endpoint->base.is_owing || endpoint->unposted;
    bool is_alone = endpoint->over_len == 0 && !endpoint->unposted;
    for (uint32_t i = 0; i < endpoint->conns_len && is_alone; i++)
        is_alone = !endpoint->conns[i] && endpoint->former_conns[i].ticks == 0;
    int64_t period_ns = is_alone || endpoint->is_broken ? 0
                        : is_owing                      ? OWING_NS
                                                        : endpoint->settings.patience.tick_ns;
    timer_set(&endpoint->base.timer, period_ns);
}

static void push_owed(struct endpoint *endpoint)
{
    if (!endpoint->base.is_owing)
        return;
    endpoint->base.is_owing = false;
    for (uint32_t i = 0; i < endpoint->conns_len; i++) {
        struct conn *conn = endpoint->conns[i];
        if (conn && conn->owed)
            (void)greeting_push(conn);
        else if (conn && conn->owes_ack)
            packet_acknowledge(conn);
    }
    for (uint32_t i = 0; i < endpoint->conns_len; i++)
        if (endpoint->conns[i] && endpoint->conns[i]->circuits.owed_gone)
            circuits_push(&endpoint->conns[i]->circuits);
}

/* Reads that the fabric did not take: those of others may have made room. */
static void push_fetches(struct endpoint *endpoint)
{
    for (uint32_t i = 0; i < endpoint->conns_len; i++)
        if (endpoint->conns[i] && endpoint->conns[i]->fetches)
            fetches_push(endpoint->conns[i]);
}

/* Is there a circuit that found no room, and now has it? */
static bool has_room(const struct conn *conn)
{
    return conn && conn->circuits.full > 0 && packet_has_room(conn);
}

static void tell_room(struct endpoint *endpoint)
{
    for (uint32_t i = 0; i < endpoint->conns_len; i++)
        if (has_room(endpoint->conns[i]))
            circuits_tell_room(&endpoint->conns[i]->circuits);
}

static bool is_room_untold(const struct endpoint *endpoint)
{
    uint32_t i = 0;
    while (i < endpoint->conns_len && !has_room(endpoint->conns[i]))
        i++;
    return i < endpoint->conns_len;
}

/* The fabric has failed for good: what it says of packets is not known any more. Peers that it
 * still reaches are told. */
static void end_conns(struct endpoint *endpoint)
{
    endpoint->is_broken = true;
    (void)epoll_ctl(endpoint->base.epoll, EPOLL_CTL_DEL, endpoint->fabric.cq_fd, NULL);
    for (uint32_t i = 0; i < endpoint->conns_len; i++) {
        struct conn *conn = endpoint->conns[i];
        if (!conn || conn->is_self)
            continue;
        if (conn->state == CONN_OPEN)
            packet_leave(conn);
        conn_end(conn, VELO_ERR_SYSTEM);
    }
}

static bool ofi_progress(void *self)
{
    struct endpoint *endpoint = self;
    bool any = take_outcomes(endpoint);
    if (endpoint->fabric.error && !endpoint->is_broken)
        end_conns(endpoint);
    any |= endpoint->looped && take_looped(endpoint);
    endpoint->base.now_ns = timer_now_ns();
    if (timer_has_ticked(&endpoint->base.timer, endpoint->base.now_ns,
                         endpoint->settings.patience.tick_ns))
        silence_tick(endpoint);
    push_owed(endpoint);
    push_fetches(endpoint);
    if (endpoint->unposted && !endpoint->is_broken)
        post_again(endpoint);
    packets_flush(endpoint, false);
    tell_room(endpoint);
    if (endpoint->over)
        conns_sweep(endpoint);
    return any;
}

static bool ofi_sent(void *self) { return packets_hold(self); }

static bool ofi_arm(void *self)
{
    struct endpoint *endpoint = self;
    packets_flush(endpoint, true);
    timer_read(&endpoint->base.timer);
    set_timer(endpoint);
    return !endpoint->looped && !is_room_untold(endpoint) &&
           (endpoint->is_broken || fabric_may_wait(&endpoint->fabric));
}

/* ---- circuits ----------------------------------------------------------------------------------- */

/* A new connection to a peer, or a circuit of one that there is. */
static int reach_peer(struct endpoint *endpoint, velo_id_t peer, struct conn **out)
{
    struct velo_port_shown shown;
    struct conn *conn = conn_find(endpoint, peer, CONN_OPEN);
    /* On this machine one knows at once that a peer has begun anew. */
    bool is_here =
        conn && endpoint->base.calls->find_name(endpoint->base.attr.owner, peer, &shown) == VELO_OK;
    if (is_here && shown.generation != conn->generation) {
        conn_end(conn, VELO_ERR_PEER_DEAD);
        conn = NULL;
    }
    if (!conn)
        conn = conn_find(endpoint, peer, CONN_CALLING);
    *out = conn;
    if (conn)
        return VELO_OK;
    conn = conn_new(endpoint, peer, CONN_CALLING);
    if (!conn)
        return endpoint->base.calls->fail(VELO_ERR_NO_MEMORY,
                                          "no memory for a connection, or too many are open");
    int status = greeting_call(conn);
    if (status)
        conn_end(conn, status);
    *out = conn;
    return status;
}

static int ofi_dial(void *self, velo_id_t peer, struct velo_link *link, void **out)
{
    struct conn *conn;
    int status = reach_peer(self, peer, &conn);
    return status ? status : circuit_dial(&conn->circuits, link, out);
}

static struct velo_exposed *ofi_expose(void *self, const void *memory, size_t len_bytes)
{
    return fetch_expose(self, memory, len_bytes);
}

static void ofi_conceal(void *self, struct velo_exposed *exposed)
{
    (void)self;
    fetch_conceal(exposed);
}

static int ofi_fetch(void *self, void *to, size_t len_bytes, const struct velo_exposed *from,
                     int *outcome)
{
    const struct fetch wanted = {
        .base = {.len_bytes = len_bytes, .outcome = outcome}, .from = *from, .to = to};
    return fetch_begin((struct conn *)((struct circuit *)self)->circuits, &wanted);
}

static void ofi_forget(void *self, const int *outcome) { fetch_forget(self, outcome); }

static size_t ofi_own_name(void *self, char *name) { return names_own(self, name); }

static int ofi_learn(void *self, velo_id_t peer, const void *name, size_t len_bytes)
{
    return names_learn(self, peer, name, len_bytes);
}

/* ---- endpoints ------------------------------------------------------------------------------- */

/* Let out what was sent, and say that the port closes. */
static bool have_left(struct endpoint_base *base)
{
    struct endpoint *endpoint = (struct endpoint *)base;
    bool have_left = true;
    for (uint32_t i = 0; i < endpoint->conns_len; i++) {
        struct conn *conn = endpoint->conns[i];
        if (!conn || conn->state != CONN_OPEN || conn->is_self)
            continue;
        if (!conn->is_leaving)
            packet_leave(conn);
        have_left &= conn->is_leaving && !conn->filling && conn->acked == conn->sent;
    }
    return have_left;
}

/* Has the peer taken all that was sent? Else it is asked; `asked`: what was sent by then. */
static bool is_taken(struct conn *conn, uint32_t *asked)
{
    if (!packet_flush(conn) || conn->acked == conn->sent)
        return !conn->filling;
    if (*asked != conn->sent && packet_ask(conn))
        *asked = conn->sent;
    return false;
}

static void finish_conn(struct endpoint *endpoint, uint32_t index, int64_t end_ns)
{
    uint32_t asked = endpoint->conns[index]->acked;
    const struct conn *conn;
    while ((conn = endpoint->conns[index]) && conn->state == CONN_OPEN && !conn->is_self &&
           !is_taken(endpoint->conns[index], &asked) && timer_now_ns() < end_ns) {
        if (!ofi_progress(endpoint))
            endpoint_wait(&endpoint->base, &velo_transport, end_ns);
    }
}

/* The process may end. What lies in the kernel's buffers is not enough: the kernel drops it if the
 * process ends before it has read what its peer has sent meanwhile. One peer after the other. */
static void ofi_finish(void *self)
{
    struct endpoint *endpoint = self;
    int64_t end_ns = timer_now_ns() + FINISH_NS;
    for (uint32_t i = 0; i < endpoint->conns_len; i++)
        if (endpoint->conns[i])
            finish_conn(endpoint, i, end_ns);
}

static void ofi_close(void *self)
{
    struct endpoint *endpoint = self;
    port_remove(&endpoint->base.port);
    /* Else there is nobody to tell, and the fabric may be half open. */
    if (endpoint->conns_len > 0)
        endpoint_leave(&endpoint->base, &velo_transport, have_left);
    for (uint32_t i = 0; i < endpoint->conns_len; i++)
        if (endpoint->conns[i])
            conn_end(endpoint->conns[i], VELO_ERR_PEER_DEAD);
    /* The fabric gives packets back only when its endpoint is closed. */
    if (endpoint->fabric.ep)
        (void)fi_close(&endpoint->fabric.ep->fid);
    endpoint->fabric.ep = NULL;
    while (endpoint->over) {
        struct conn *conn = endpoint->over;
        endpoint->over = conn->next_listed;
        conn_free(conn);
    }
    fabric_free(&endpoint->rx_memory);
    fabric_close(&endpoint->fabric);
    endpoint_close_files(&endpoint->base);
    free(endpoint->rx);
    free(endpoint->conns);
    free(endpoint->former_conns);
    explicit_bzero(&endpoint->settings, sizeof endpoint->settings);
    free(endpoint);
}

static int open_packets(struct endpoint *endpoint)
{
    endpoint->rx = calloc(RX_PACKETS, sizeof *endpoint->rx);
    if (!endpoint->rx)
        return endpoint->base.calls->fail(VELO_ERR_NO_MEMORY, "out of memory");
    int status =
        fabric_allocate(endpoint, (size_t)RX_PACKETS * WIRE_PACKET_BYTES, &endpoint->rx_memory);
    if (status)
        return status;
    for (uint32_t i = 0; i < RX_PACKETS; i++) {
        endpoint->rx[i] = (struct packet){
            .use = PACKET_RX,
            .desc = endpoint->rx_memory.mr ? fi_mr_desc(endpoint->rx_memory.mr) : NULL,
            .data = endpoint->rx_memory.base + (size_t)i * WIRE_PACKET_BYTES};
        post_packet(endpoint, &endpoint->rx[i]);
    }
    return VELO_OK;
}

static int ofi_open(const struct velo_endpoint_attr *attr, const struct velo_transport_calls *calls,
                    void **out)
{
    struct endpoint *endpoint = endpoint_new(sizeof *endpoint, attr, calls, &packet_circuits);
    if (!endpoint)
        return VELO_ERR_NO_MEMORY;
    int status = settings_read(&endpoint->settings, calls);
    if (status == VELO_OK)
        status = fabric_open(endpoint);
    if (status == VELO_OK)
        status = endpoint_open_files(&endpoint->base, endpoint->fabric.cq_fd, velo_transport.name);
    if (status == VELO_OK)
        status = open_packets(endpoint);
    if (status) {
        ofi_close(endpoint);
        return status;
    }
    endpoint_show(&endpoint->base, endpoint->fabric.name, endpoint->fabric.name_bytes,
                  names_forget_sockets);
    *out = endpoint;
    return VELO_OK;
}

struct velo_transport velo_transport __attribute__((visibility("default"))) = {
    .version = VELO_TRANSPORT_VERSION,
    .payload_bytes_max = WIRE_PAYLOAD_BYTES,
    .name = "ofi",
    .no_access = "has another secret: give both processes one VELO_OFI_SECRET, or one "
                 "VELO_OFI_SECRET_FILE",
    .open = ofi_open,
    .close = ofi_close,
    .dial = ofi_dial,
    .send = circuit_send,
    .hang_up = circuit_hang_up,
    .progress = ofi_progress,
    .descriptor = endpoint_descriptor,
    .own_name = ofi_own_name,
    .learn = ofi_learn,
    .sent = ofi_sent,
    .arm = ofi_arm,
    .finish = ofi_finish,
    .expose = ofi_expose,
    .conceal = ofi_conceal,
    .fetch = ofi_fetch,
    .forget = ofi_forget,
};
