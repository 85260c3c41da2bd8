/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transport between machines: each port has one reliable-datagram endpoint of libfabric. This
 * file is what the library sees; ofi.h says what the others do.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../../lib/base/fd.h"
#include "ofi.h"

/* A look takes in so many packets. */
#define PACKETS_PER_LOOK 16
/* What the fabric did not take is offered again after this time: libfabric says that it may be when
 * something completes, and nothing may be under way. */
#define OWING_NS 1000000
/* The longest wait of a port that closes for its peers to take its last packets. */
#define LEAVE_NS NS_PER_S

void refuse(struct endpoint *endpoint) { endpoint->calls->count_refused(endpoint->attr.owner, 1); }

/* ---- what the fabric says -------------------------------------------------------------------- */

static void post(struct endpoint *endpoint, struct packet *packet)
{
    if (fabric_receive(&endpoint->fabric, packet))
        return;
    packet->next = endpoint->unposted;
    endpoint->unposted = packet;
}

static void post_again(struct endpoint *endpoint)
{
    struct packet *packet = endpoint->unposted;
    endpoint->unposted = NULL;
    while (packet) {
        struct packet *next = packet->next;
        post(endpoint, packet);
        packet = next;
    }
}

static void sent(struct packet *packet, bool is_failed)
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
        sent(packet, outcome->is_failed);
        return;
    }
    if (!packet || outcome->is_failed)
        refuse(endpoint); /* It was longer than a packet is. */
    else
        packet_take(endpoint, packet->data, outcome->len_bytes, outcome->from);
    if (packet)
        post(endpoint, packet);
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
        sent(packet, false);
        any = true;
    }
    return any;
}

/* ---- time ------------------------------------------------------------------------------------ */

static void set_timer(struct endpoint *endpoint)
{
    bool is_alone = endpoint->over_len == 0;
    for (uint32_t i = 0; i < endpoint->conns_len && is_alone; i++)
        is_alone = !endpoint->conns[i] && endpoint->former_conns[i].ticks == 0;
    int64_t period_ns = is_alone             ? 0
                        : endpoint->is_owing ? OWING_NS
                                             : endpoint->settings.patience.tick_ns;
    timer_set(&endpoint->timer, period_ns);
}

static void push_owed(struct endpoint *endpoint)
{
    if (!endpoint->is_owing)
        return;
    endpoint->is_owing = false;
    for (uint32_t i = 0; i < endpoint->conns_len; i++) {
        struct conn *conn = endpoint->conns[i];
        if (conn && conn->owed)
            (void)greeting_push(conn);
        else if (conn && conn->owes_ack)
            packet_acknowledge(conn);
    }
    for (uint32_t i = 0; i < endpoint->conns_len; i++)
        if (endpoint->conns[i] && endpoint->conns[i]->lines.owed_gone)
            lines_push(&endpoint->conns[i]->lines);
}

/* Reads that the fabric did not take: those of others may have made room. */
static void push_fetches(struct endpoint *endpoint)
{
    for (uint32_t i = 0; i < endpoint->conns_len; i++)
        if (endpoint->conns[i] && endpoint->conns[i]->fetches)
            fetches_push(endpoint->conns[i]);
}

/* Is there a line that found no room, and now has it? */
static bool has_room(const struct conn *conn)
{
    return conn && conn->lines.full > 0 && packet_has_room(conn);
}

static void tell_room(struct endpoint *endpoint)
{
    for (uint32_t i = 0; i < endpoint->conns_len; i++)
        if (has_room(endpoint->conns[i]))
            lines_tell_room(&endpoint->conns[i]->lines);
}

static bool is_room_untold(const struct endpoint *endpoint)
{
    uint32_t i = 0;
    while (i < endpoint->conns_len && !has_room(endpoint->conns[i]))
        i++;
    return i < endpoint->conns_len;
}

static bool ofi_progress(void *self)
{
    struct endpoint *endpoint = self;
    bool any = take_outcomes(endpoint);
    any |= endpoint->looped && take_looped(endpoint);
    endpoint->now_ns = timer_now_ns();
    if (timer_has_ticked(&endpoint->timer, endpoint->now_ns, endpoint->settings.patience.tick_ns))
        conns_tick(endpoint);
    push_owed(endpoint);
    push_fetches(endpoint);
    if (endpoint->unposted)
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
    timer_read(&endpoint->timer);
    set_timer(endpoint);
    return !endpoint->looped && !is_room_untold(endpoint) && fabric_may_wait(&endpoint->fabric);
}

static int ofi_descriptor(void *self) { return ((struct endpoint *)self)->epoll; }

/* ---- lines ----------------------------------------------------------------------------------- */

/* A new connection to a peer, or a line of one that there is. */
static int reach(struct endpoint *endpoint, velo_id_t peer, struct conn **out)
{
    struct velo_port_shown shown;
    struct conn *conn = conn_find(endpoint, peer, CONN_OPEN);
    /* On this machine one knows at once that a peer has begun anew. */
    bool is_here =
        conn && endpoint->calls->find_name(endpoint->attr.owner, peer, &shown) == VELO_OK;
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
        return endpoint->calls->fail(VELO_ERR_NO_MEMORY,
                                     "no memory for a connection, or too many are open");
    int status = greeting_call(conn);
    if (status)
        conn_end(conn, status);
    *out = conn;
    return status;
}

static int ofi_dial(void *self, velo_id_t peer, struct velo_link *link, void **out)
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

static int ofi_send(void *self, const struct velo_frame *frame) { return line_send(self, frame); }

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
        .from = *from, .to = to, .len_bytes = len_bytes, .outcome = outcome};
    return fetch_begin(conn_of_lines(((struct line *)self)->lines), &wanted);
}

static void ofi_forget(void *self, const int *outcome) { fetch_forget(self, outcome); }

static void ofi_hang_up(void *self) { line_hang_up(self); }

static size_t ofi_own_name(void *self, char *name) { return names_own(self, name); }

static int ofi_learn(void *self, velo_id_t peer, const void *name, size_t len_bytes)
{
    return names_learn(self, peer, name, len_bytes);
}

/* ---- endpoints ------------------------------------------------------------------------------- */

/* Sleep until there is something to do. */
static void wait_until(struct endpoint *endpoint, int64_t end_ns)
{
    int64_t left_ns = end_ns - timer_now_ns();
    struct pollfd file = {.fd = endpoint->epoll, .events = POLLIN};
    if (left_ns > 0 && ofi_arm(endpoint))
        (void)poll(&file, 1, (int)(left_ns / NS_PER_MS) + 1);
}

/* Let out what was sent, and say that the port closes. */
static void leave(struct endpoint *endpoint)
{
    int64_t end_ns = timer_now_ns() + LEAVE_NS;
    bool is_left = false;
    while (!is_left && timer_now_ns() < end_ns) {
        is_left = true;
        (void)ofi_progress(endpoint);
        for (uint32_t i = 0; i < endpoint->conns_len; i++) {
            struct conn *conn = endpoint->conns[i];
            if (!conn || conn->state != CONN_OPEN || conn->is_self)
                continue;
            if (!conn->is_leaving)
                packet_leave(conn);
            is_left &= conn->is_leaving && !conn->filling && conn->acked == conn->sent;
        }
        if (!is_left)
            wait_until(endpoint, end_ns);
    }
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

static void finish(struct endpoint *endpoint, uint32_t index, int64_t end_ns)
{
    uint32_t asked = endpoint->conns[index]->acked;
    const struct conn *conn;
    while ((conn = endpoint->conns[index]) && conn->state == CONN_OPEN && !conn->is_self &&
           !is_taken(endpoint->conns[index], &asked) && timer_now_ns() < end_ns) {
        if (!ofi_progress(endpoint))
            wait_until(endpoint, end_ns);
    }
}

/* The process may end. What lies in the kernel's buffers is not enough: the kernel drops it if the
 * process ends before it has read what its peer has sent meanwhile. One peer after the other. */
static void ofi_finish(void *self)
{
    struct endpoint *endpoint = self;
    int64_t end_ns = timer_now_ns() + LEAVE_NS;
    for (uint32_t i = 0; i < endpoint->conns_len; i++)
        if (endpoint->conns[i])
            finish(endpoint, i, end_ns);
}

static void ofi_close(void *self)
{
    struct endpoint *endpoint = self;
    port_remove(&endpoint->port);
    if (endpoint->fabric.cq)
        leave(endpoint);
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
    if (endpoint->epoll >= 0)
        close(endpoint->epoll);
    timer_close(&endpoint->timer);
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
        return endpoint->calls->fail(VELO_ERR_NO_MEMORY, "out of memory");
    int status =
        fabric_allocate(endpoint, (size_t)RX_PACKETS * WIRE_PACKET_BYTES, &endpoint->rx_memory);
    if (status)
        return status;
    for (uint32_t i = 0; i < RX_PACKETS; i++) {
        endpoint->rx[i] = (struct packet){
            .use = PACKET_RX,
            .desc = endpoint->rx_memory.mr ? fi_mr_desc(endpoint->rx_memory.mr) : NULL,
            .data = endpoint->rx_memory.base + (size_t)i * WIRE_PACKET_BYTES};
        post(endpoint, &endpoint->rx[i]);
    }
    return VELO_OK;
}

static int open_files(struct endpoint *endpoint)
{
    struct epoll_event event = {.events = EPOLLIN};
    endpoint->epoll = fd_above_standard(epoll_create1(EPOLL_CLOEXEC));
    if (endpoint->epoll < 0 || !timer_open(&endpoint->timer) ||
        epoll_ctl(endpoint->epoll, EPOLL_CTL_ADD, endpoint->timer.fd, &event) != 0 ||
        epoll_ctl(endpoint->epoll, EPOLL_CTL_ADD, endpoint->fabric.cq_fd, &event) != 0)
        return endpoint->calls->fail(
            VELO_ERR_SYSTEM, "transport ofi: no descriptor to wait for: %s", strerror(errno));
    return VELO_OK;
}

static int ofi_open(const struct velo_endpoint_attr *attr, const struct velo_transport_calls *calls,
                    void **out)
{
    struct endpoint *endpoint = calloc(1, sizeof *endpoint);
    if (!endpoint)
        return calls->fail(VELO_ERR_NO_MEMORY, "out of memory");
    endpoint->calls = calls;
    endpoint->attr = *attr;
    endpoint->epoll = endpoint->timer.fd = -1;
    int status = settings_read(&endpoint->settings, calls);
    if (status == VELO_OK)
        status = fabric_open(endpoint);
    if (status == VELO_OK)
        status = open_files(endpoint);
    if (status == VELO_OK)
        status = open_packets(endpoint);
    if (status) {
        ofi_close(endpoint);
        return status;
    }
    names_add(endpoint);
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
    .send = ofi_send,
    .hang_up = ofi_hang_up,
    .progress = ofi_progress,
    .descriptor = ofi_descriptor,
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
