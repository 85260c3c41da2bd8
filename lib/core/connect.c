/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting and disconnecting. */
#include <stdlib.h>

#include "../base/cancel.h"
#include "../base/error.h"
#include "../base/fork.h"
#include "../base/handlers.h"
#include "../shm/wait.h"
#include "entry.h"
#include "port.h"

#define CONNECT_NAP_NS 1000000
/* The longest wait for a receiver to search its full table for dead senders. */
#define TABLE_WAIT_NS (NS_PER_S / 2)

/* A fenced connection reads this as its doorbell word: it takes the slow way each time. */
static const uint32_t always_ring = BELL_RING;

static uint64_t claim_of(const struct velo_conn *conn)
{
    return entry_pack(ENTRY_CLAIMED, conn->port->id, conn->port->segment->generation);
}

/* Claim an entry. If none is free, first have the receiver look for dead senders: a later try finds
 * their entries. */
static int claim_or_wait(struct velo_conn *conn, int64_t table_ns)
{
    const struct segment *segment = conn->segment;
    int64_t end_ns = wait_now_ns() + table_ns;
    while (!entry_claim(segment, claim_of(conn), &conn->index)) {
        order_set_flag(&conn->header->reap_request, 1);
        order_ring_summary(&conn->header->summary, 1);
        seg_wake_owner(segment);
        if (wait_now_ns() >= end_ns)
            return velo_fail(
                VELO_ERR_FULL,
                "all %u connections of the peer are taken; open its port with a larger "
                "conns_max",
                segment->shape.conns_max);
        if (wait_nap(CONNECT_NAP_NS))
            return VELO_ERR_INTERRUPTED;
    }
    return VELO_OK;
}

/* The sender fills a ring of its own, which the network takes to the receiver's. */
static int join_net(struct velo_conn *conn)
{
    struct ring_tx *tx = &conn->tx;
    const struct seg_ring *theirs = tx->shared;
    struct seg_ring *ours = aligned_alloc(SEG_ALIGN, conn->segment->shape.ring_bytes);
    if (!ours)
        return velo_fail(VELO_ERR_NO_MEMORY, "no memory for a ring");
    memset(ours, 0, sizeof *ours);
    ours->consumed = tx->tail;
    ours->data_consumed = tx->data_tail;
    tx->data = (char *)ours + (tx->data - (const char *)theirs);
    tx->slots = ours->slots;
    tx->shared = ours;
    int status = conn->port->net->join(conn);
    if (status)
        free(ours);
    return status;
}

static int set_up_ring(struct velo_conn *conn)
{
    const struct segment *segment = conn->segment;
    int status = entry_set_up(segment, conn->index, conn->order, "");
    if (status)
        return status;
    struct seg_ring *ring = seg_ring(segment, conn->index);

    conn->bell = conn->fenced ? &always_ring : &ring->bell;
    bool is_by_line = conn->port->by_line;
    order_show(&ring->tx_by_line, is_by_line);
    ring_tx_start(&conn->tx, ring, &segment->shape, conn->port->id, is_by_line);
    (void)ring_tx_refresh(&conn->tx, conn->tx.tail);
    if (conn->port->net->carries_all)
        status = join_net(conn);
    if (status)
        return status;

    entry_open(segment, conn->index, claim_of(conn));
    return VELO_OK;
}

static int open_peer(struct velo_port *port, velo_id_t peer, int64_t end_ns,
                     struct segment **segment)
{
    for (;;) {
        int status = seg_open(&port->domain, peer, segment);
        if (status == VELO_OK && port->net->carries_all &&
            !port->net->takes_messages((*segment)->header)) {
            seg_file_drop(*segment);
            seg_put(*segment);
            status = velo_fail(VELO_ERR_NO_PEER, "the peer is still opening its port");
        }
        if (!status_is_absent(status) || wait_now_ns() >= end_ns)
            return status;
        if (wait_nap(CONNECT_NAP_NS))
            return velo_fail(VELO_ERR_INTERRUPTED,
                             "a signal handler ran before the peer was there");
    }
}

static int connect_segment(struct velo_conn *conn, int64_t table_ns)
{
    conn->header = conn->segment->header;
    conn->fenced = conn->port->fenced || (conn->header->flags & SEG_NEEDS_FENCE);
    int status = life_show(conn->segment, conn->port->segment);
    if (status == VELO_OK)
        status = claim_or_wait(conn, table_ns);
    if (status)
        return status;
    status = set_up_ring(conn);
    if (status)
        entry_unclaim(conn->segment, conn->index, ENTRY_GIVEN_UP);
    return status;
}

/* To a peer that shares memory with us. */
static int connect_shared(struct velo_conn *conn, velo_id_t peer, int64_t timeout_ns,
                          int64_t table_ns)
{
    int64_t end_ns = timeout_ns == NET_TRY ? 0 : wait_end_ns(wait_now_ns(), timeout_ns);
    int status = open_peer(conn->port, peer, end_ns, &conn->segment);
    if (status)
        return status;
    status = connect_segment(conn, table_ns);
    seg_file_drop(conn->segment);
    if (status)
        seg_put(conn->segment);
    return status;
}

static int connect_over_net(struct velo_conn *conn, velo_id_t peer, int64_t timeout_ns)
{
    if (!port_enter_net(conn->port))
        return inside_refuse();
    int status = conn->port->net->connect(conn, peer, timeout_ns);
    port_leave_net(conn->port);
    return status;
}

static struct velo_conn *conn_new(void)
{
    HANDLERS_LATER();
    struct velo_conn *conn =
        aligned_alloc(SEG_ALIGN, sizeof *conn / SEG_ALIGN * SEG_ALIGN + SEG_ALIGN);
    if (conn)
        memset(conn, 0, sizeof *conn);
    return conn;
}

static void conn_free(struct velo_conn *conn)
{
    HANDLERS_LATER();
    free(conn);
}

/* Wait `timeout_ns` for the peer, and `table_ns` for its table. */
static int connect_to(struct velo_port *port, velo_id_t peer, int64_t timeout_ns, int64_t table_ns,
                      uint64_t order, struct velo_conn **out)
{
    CANCEL_LATER();
    if (!port || !out)
        return velo_fail(VELO_ERR_ARG, "port or conn is NULL");
    if (VELO_ID_NODE(peer) >= VELO_NODES)
        return velo_fail(VELO_ERR_ARG, "peer is %#x, which is no id; make one with VELO_ID()",
                         peer);
    *out = NULL;
    if (!fork_is_ours(port->process))
        return fork_refuse("port");
    struct velo_conn *conn = conn_new();
    if (!conn)
        return velo_fail(VELO_ERR_NO_MEMORY, "out of memory");
    conn->port = port;
    conn->order = order;
    int status = port_net_reaches(port, peer) ? connect_over_net(conn, peer, timeout_ns)
                                              : connect_shared(conn, peer, timeout_ns, table_ns);
    if (status) {
        conn_free(conn);
        return status;
    }
    pthread_mutex_lock(&port->conns_lock);
    conn->next = port->conns;
    port->conns = conn;
    pthread_mutex_unlock(&port->conns_lock);
    *out = conn;
    return VELO_OK;
}

static int check_timeout(int64_t timeout_ns)
{
    return timeout_ns >= VELO_FOREVER
               ? VELO_OK
               : velo_fail(VELO_ERR_ARG, "timeout_ns is %lld; give 0 or more, or VELO_FOREVER",
                           (long long)timeout_ns);
}

static int64_t table_wait_ns(int64_t timeout_ns)
{
    return timeout_ns >= 0 && timeout_ns < TABLE_WAIT_NS ? timeout_ns : TABLE_WAIT_NS;
}

int velo_connect(struct velo_port *port, velo_id_t peer, struct velo_conn **out, int64_t timeout_ns)
{
    int status = check_timeout(timeout_ns);
    return status ? status : connect_to(port, peer, timeout_ns, table_wait_ns(timeout_ns), 0, out);
}

int velo_try_connect(struct velo_port *port, velo_id_t peer, struct velo_conn **out)
{
    int status = connect_to(port, peer, NET_TRY, 0, 0, out);
    return status == VELO_TIMEOUT ? VELO_AGAIN : status;
}

int port_connect_in_order(struct velo_port *port, velo_id_t peer, struct velo_conn **conn,
                          int64_t timeout_ns)
{
    int status = check_timeout(timeout_ns);
    return status ? status
                  : connect_to(port, peer, timeout_ns, table_wait_ns(timeout_ns), ++port->orders,
                               conn);
}

int port_connect_present(struct velo_port *port, velo_id_t peer, struct velo_conn **conn)
{
    return connect_to(port, peer, 0, TABLE_WAIT_NS, 0, conn);
}

/* Take the connection off its port's list and keep what it has counted. */
static void unlist(struct velo_conn *conn)
{
    struct velo_port *port = conn->port;
    const struct seg_ring *ring = conn->tx.shared;
    pthread_mutex_lock(&port->conns_lock);
    port->closed.tx_msgs += ring_tx_msgs(&conn->tx);
    port->closed.tx_bytes += ring_tx_bytes(&conn->tx);
    port->closed.tx_again += order_counter(&ring->tx_again);
    port->closed.tx_sleeps += order_counter(&ring->tx_sleeps);
    struct velo_conn **link = &port->conns;
    while (*link != conn)
        link = &(*link)->next;
    *link = conn->next;
    pthread_mutex_unlock(&port->conns_lock);
}

int velo_disconnect(struct velo_conn *conn)
{
    CANCEL_LATER();
    if (!conn || !fork_is_ours(conn->port->process))
        return VELO_OK;
    GUARD_UNUSED(conn, "connection");
    if (conn->carry && !port_enter_net(conn->port))
        return inside_refuse();
    unlist(conn);
    order_show(&seg_ring(conn->segment, conn->index)->tx_end, conn->tx.tail);
    if (conn->carry)
        conn->port->net->disconnect(conn);
    else
        entry_unclaim(conn->segment, conn->index, ENTRY_ENDED);
    if (conn->carry)
        port_leave_net(conn->port);
    if (conn->tx.shared != seg_ring(conn->segment, conn->index))
        free(conn->tx.shared);
    seg_put(conn->segment);
    conn_free(conn);
    return VELO_OK;
}

size_t velo_conn_max_bytes(const struct velo_conn *conn)
{
    return ring_max_bytes((uint32_t)conn->tx.data_mask + 1);
}

uint32_t velo_conn_generation(const struct velo_conn *conn) { return conn->segment->generation; }
