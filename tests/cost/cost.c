/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls that are to stay cheap, so that cost.py can count their instructions. It counts what is
 * called from functions whose names begin with `measure_`. A port is connected to itself: nothing
 * depends on when another process runs.
 */
#include <stdlib.h>

#include <velo/mq.h>
#include <velo/rma.h>
#include <velo/velo.h>

#define CALLS 1000
#define MATCH 7

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

MEASURE measure_in_place(struct velo_port *port, struct velo_conn *conn)
{
    void *buf;
    struct velo_msg msg;
    check(velo_try_reserve(conn, 8, &buf));
    check(velo_commit(conn, 8, 1));
    check(velo_try_peek(port, &msg));
    check(velo_release(port));
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

MEASURE measure_memory(struct velo_rma_peer *peer, struct velo_rma_place place)
{
    uint64_t word = 1;
    check(velo_rma_put(peer, &word, sizeof word, place, 0, 0));
    check(velo_rma_get(peer, &word, sizeof word, place, 0, 0));
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
    check(velo_disconnect(conn));
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
    queues(port, self);
    memory(port, self);
    check(velo_port_close(port));
    return 0;
}
