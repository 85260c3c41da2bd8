/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls that are to stay cheap, so that cost.py can count their instructions. It counts what is
 * called from functions whose names begin with `measure_`. A port is connected to itself: nothing
 * depends on when another process runs.
 */
#include <stdlib.h>

#include <velo/bcast.h>
#include <velo/mq.h>
#include <velo/rma.h>
#include <velo/velo.h>

#include <rma2.h>
#include <velo2.h>

#define CALLS 1000
#define MATCH 7
#define BURST 16

#define MEASURE __attribute__((noinline)) static void

static void check(int status)
{
    if (status != VELO_OK)
        abort();
}

MEASURE measure_message(struct velo_port *port, struct velo_conn *conn)
{
    char buf[64] = {0};
    struct velo_msg msg;
    check(velo_send(conn, buf, 8, 1, VELO_FOREVER));
    check(velo_try_send(conn, buf, 32, 1));
    check(velo_try_recv(port, buf, sizeof buf, &msg));
    check(velo_recv(port, buf, sizeof buf, &msg, VELO_FOREVER));
}

/* Of sixteen messages: one is a sixteenth. */
MEASURE measure_burst(struct velo_port *port, struct velo_conn *conn)
{
    char bytes[8] = {0}, buf[BURST * sizeof bytes];
    struct velo_msg msgs[BURST];
    for (int i = 0; i < BURST; i++)
        msgs[i] = (struct velo_msg){.data = bytes, .len_bytes = sizeof bytes, .tag = 1};
    if (velo_send_many(conn, msgs, BURST, VELO_FOREVER) != BURST ||
        velo_recv_many(port, msgs, BURST, buf, sizeof buf, VELO_FOREVER) != BURST)
        abort();
}

MEASURE measure_in_place(struct velo_port *port, struct velo_conn *conn)
{
    void *buf;
    struct velo_msg msg;
    check(velo_try_reserve(conn, 8, &buf));
    check(velo_commit(conn, 8, 1));
    check(velo_try_peek(port, &msg));
    check(velo_release(port));
}

MEASURE measure_broadcast(struct velo_bcast *ring, struct velo_bcast_reader *reader)
{
    char buf[64] = {0};
    struct velo_msg msg;
    check(velo_bcast_send(ring, buf, 8, 1, VELO_FOREVER));
    check(velo_bcast_try_send(ring, buf, 32, 1));
    check(velo_bcast_try_recv(reader, buf, sizeof buf, &msg));
    check(velo_bcast_recv(reader, buf, sizeof buf, &msg, VELO_FOREVER));
}

MEASURE measure_broadcast_in_place(struct velo_bcast *ring, struct velo_bcast_reader *reader)
{
    void *buf;
    struct velo_msg msg;
    check(velo_bcast_try_reserve(ring, 8, &buf));
    check(velo_bcast_commit(ring, 8, 1));
    check(velo_bcast_try_peek(reader, &msg));
    check(velo_bcast_release(reader));
}

static void find_nothing(struct velo_port *port)
{
    char buf[64];
    struct velo_msg msg;
    if (velo_try_recv(port, buf, sizeof buf, &msg) != VELO_AGAIN)
        abort();
}

MEASURE measure_nothing_there(struct velo_port *port) { find_nothing(port); }

MEASURE measure_expected(struct velo_mq *mq, struct velo_mq_peer *peer, velo_id_t self)
{
    char buf[64] = {0};
    struct velo_mq_request receive = {0}, send = {0};
    check(velo_mq_irecv(mq, self, MATCH, 0, buf, sizeof buf, &receive));
    check(velo_mq_isend(peer, buf, 8, MATCH, 0, &send));
    while (receive.status == VELO_AGAIN)
        (void)velo_mq_progress(mq);
    check(receive.status);
    check(send.status);
}

MEASURE measure_wait(struct velo_mq *mq, struct velo_mq_peer *peer, velo_id_t self)
{
    char buf[64] = {0};
    struct velo_mq_request receive = {0};
    check(velo_mq_try_send(peer, buf, 8, MATCH));
    check(velo_mq_irecv(mq, self, MATCH, 0, buf, sizeof buf, &receive));
    check(velo_mq_wait(mq, &receive, VELO_FOREVER));
}

MEASURE measure_poll(struct velo_mq *mq, struct velo_mq_peer *peer, velo_id_t self)
{
    char buf[64] = {0};
    struct velo_mq_request receive = {0};
    check(velo_mq_irecv(mq, self, MATCH, 0, buf, sizeof buf, &receive));
    check(velo_mq_try_send(peer, buf, 8, MATCH));
    check(velo_mq_poll(mq, &receive));
}

/* As a provider of libfabric has it: the message brings a cookie. */
MEASURE measure_spin(struct velo_mq *mq, struct velo_mq_peer *peer, velo_id_t self)
{
    char buf[64] = {0};
    struct velo_mq_request receive = {0};
    check(velo_mq_irecv(mq, self, MATCH, 0, buf, sizeof buf, &receive));
    check(velo_mq_try_send_in(peer, 0, buf, 8, MATCH, VELO_MQ_COOKIE, 1));
    if (velo_mq_spin(mq, &receive) != 1)
        check(VELO_AGAIN);
}

MEASURE measure_memory(struct velo_rma_peer *peer, struct velo_rma_place place)
{
    uint64_t word = 1;
    check(velo_rma_put(peer, &word, sizeof word, place, 0, 0));
    check(velo_rma_get(peer, &word, sizeof word, place, 0, 0));
}

/* The same through EXTOLL's interface. */
MEASURE measure_velo2(velo2_port_t *port, velo2_connection_t *con)
{
    char buf[64] = {0};
    uint32_t len, source;
    uint8_t tag, mtt;
    check((int)velo2_send(con, buf, 8, 1, 0));
    check((int)velo2_send(con, buf, 32, 1, 0));
    check((int)velo2_probe_recv(port, buf, sizeof buf, &len, &source, &tag, &mtt));
    check((int)velo2_recv(port, buf, sizeof buf, &len, &source, &tag, 0));
}

MEASURE measure_rma2(RMA2_Port port, RMA2_Handle handle, RMA2_Region *region)
{
    check(rma2_post_put_bt(port, handle, region, 0, 8, region->nla + 8, 0, 0));
    check(rma2_post_get_bt(port, handle, region, 0, 8, region->nla + 8, 0, 0));
}

static void extoll(void)
{
    static char memory[4096] __attribute__((aligned(4096)));
    velo2_port_t port;
    velo2_connection_t con;
    RMA2_Port rma;
    RMA2_Handle handle;
    RMA2_Region *region;
    check(setenv("VELO2_QUEUE_SLOTS", "256", 1)); /* Larger rings look at a clock now and then. */
    check((int)velo2_open(&port));
    check((int)velo2_connect(&port, &con, velo2_get_nodeid(&port), velo2_get_vpid(&port)));
    for (int i = 0; i < CALLS; i++) {
        measure_velo2(&port, &con);
        (void)velo2_probe_recv(&port, NULL, 0, NULL, NULL, NULL, NULL);
    }
    check((int)velo2_close(&port));
    check(rma2_open(&rma));
    check(rma2_register(rma, memory, sizeof memory, &region));
    check(rma2_connect(rma, rma2_get_nodeid(rma), rma2_get_vpid(rma), RMA2_CONN_DEFAULT, &handle));
    for (int i = 0; i < CALLS; i++)
        measure_rma2(rma, handle, region);
    check(rma2_close(rma));
}

static void messages(struct velo_port *port, velo_id_t self)
{
    struct velo_conn *conn;
    check(velo_connect(port, self, &conn, 0));
    for (int i = 0; i < CALLS; i++) {
        measure_message(port, conn);
        measure_nothing_there(port); /* An empty ring is polled from then on, or to be rung. */
    }
    for (int i = 0; i < CALLS; i++) {
        measure_in_place(port, conn);
        find_nothing(port);
    }
    for (int i = 0; i < CALLS; i++) {
        measure_burst(port, conn);
        find_nothing(port);
    }
    check(velo_disconnect(conn));
}

static void broadcasts(void)
{
    struct velo_bcast *ring;
    struct velo_bcast_reader *reader;
    check(velo_bcast_open(NULL, &ring));
    check(velo_bcast_join(NULL, &reader, 0));
    for (int i = 0; i < CALLS; i++) {
        measure_broadcast(ring, reader);
        measure_broadcast_in_place(ring, reader);
    }
    check(velo_bcast_leave(reader));
    check(velo_bcast_close(ring));
}

static void queues(struct velo_port *port, velo_id_t self)
{
    struct velo_mq *mq;
    struct velo_mq_peer *peer;
    check(velo_mq_open(port, NULL, NULL, &mq));
    check(velo_mq_connect(mq, self, &peer, 0));
    for (int i = 0; i < CALLS; i++)
        measure_expected(mq, peer, self);
    for (int i = 0; i < CALLS; i++)
        measure_wait(mq, peer, self);
    for (int i = 0; i < CALLS; i++) {
        measure_poll(mq, peer, self);
        (void)velo_mq_progress(mq); /* An empty ring is polled from then on, or to be rung. */
    }
    for (int i = 0; i < CALLS; i++) {
        measure_spin(mq, peer, self);
        (void)velo_mq_progress(mq);
    }
    check(velo_mq_close(mq));
}

static void memory(struct velo_port *port, velo_id_t self)
{
    struct velo_rma *rma;
    struct velo_rma_peer *peer;
    struct velo_rma_mem *mem;
    check(velo_rma_open(port, NULL, &rma));
    check(velo_rma_mem_alloc(rma, 4096, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY, &mem));
    check(velo_rma_connect(rma, self, &peer, 0));
    struct velo_rma_place place = {.key = velo_rma_mem_key(mem)};
    for (int i = 0; i < CALLS; i++)
        measure_memory(peer, place);
    check(velo_rma_disconnect(peer));
    check(velo_rma_mem_deregister(mem, VELO_FOREVER));
    check(velo_rma_close(rma));
}

int main(void)
{
    struct velo_port *port;
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    attr.vpid = 1;
    check(velo_port_open(&attr, &port));
    velo_id_t self = velo_port_id(port);
    messages(port, self);
    broadcasts();
    queues(port, self);
    memory(port, self);
    extoll();
    check(velo_port_close(port));
    return 0;
}
