/* SPDX-License-Identifier: Apache-2.0 */
/* Each part of velo's own library, used once by two processes. */
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <velo/bcast.h>
#include <velo/mq.h>
#include <velo/rma.h>
#include <velo/velo.h>

#include "play.h"

enum { BYTES = 20000, BURST = 100 };

/* close_all() closes these, in this order. */
static struct velo_mq *mq;
static struct velo_rma *rma;
static struct velo_port *port;
static struct velo_bcast *ring;
static struct velo_bcast_reader *reader;

void close_all(void)
{
    if (mq)
        (void)velo_mq_close(mq);
    if (rma)
        (void)velo_rma_close(rma);
    if (port)
        (void)velo_port_close(port);
    if (ring)
        (void)velo_bcast_close(ring);
    if (reader)
        (void)velo_bcast_leave(reader);
}

static void check(int status, const char *call)
{
    if (status < VELO_OK)
        give_up(call, velo_strerror(status), velo_last_error());
}

#define DO(call) check(call, #call)

static void port_begin(int role)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    attr.vpid = role;
    attr.depth_slots = 16;
    attr.data_bytes = 1 << 17;
    DO(velo_port_open(&attr, &port));
}

static struct velo_conn *conn_begin(int role)
{
    struct velo_conn *conn;
    DO(velo_connect(port, VELO_ID(0, !role), &conn, patience_ns));
    return conn;
}

static void receive(size_t len_bytes, uint8_t tag)
{
    static unsigned char to[BYTES];
    struct velo_msg msg;
    DO(velo_recv(port, to, sizeof to, &msg, patience_ns));
    expect(msg.len_bytes == len_bytes && msg.tag == tag, "a message's length or tag");
    for (size_t i = 0; i < len_bytes; i++)
        expect(to[i] == data[i], "a message's bytes");
}

static void messages(int role)
{
    port_begin(role);
    struct velo_conn *conn = conn_begin(role);
    for (int round = 0; round < 2; round++) {
        if (role == 0) { /* More than there is room for. */
            for (int i = 0; i < BURST; i++)
                DO(velo_send(conn, data, 8, (uint8_t)i, patience_ns));
            DO(velo_send(conn, data, BYTES, BURST, patience_ns));
            receive(1, 1);
        } else {
            for (int i = 0; i < BURST; i++)
                receive(8, (uint8_t)i);
            receive(BYTES, BURST);
            DO(velo_send(conn, data, 1, 1, patience_ns));
        }
        DO(velo_conn_status(conn));
    }
    /* Messages of two connections have no order: what was sent by the first is received first. */
    if (role == 0)
        DO(velo_send(conn, data, 1, 3, patience_ns));
    else
        receive(1, 3);
    DO(velo_disconnect(conn));
    conn = conn_begin(role);
    DO(velo_send(conn, data, 16, 2, patience_ns));
    receive(16, 2);
}

/* The next message, in an event loop. */
static void receive_armed(void)
{
    struct pollfd wait = {.events = POLLIN};
    struct velo_msg msg;
    int status;
    int64_t end_ns = now_ns() + patience_ns;
    DO(velo_port_fd(port, &wait.fd));
    while ((status = velo_try_peek(port, &msg)) == VELO_AGAIN) {
        expect_before(end_ns, "poll");
        status = velo_port_arm(port);
        if (status == VELO_OK)
            check(poll(&wait, 1, (int)(patience_ns / NS_PER_MS)) == 1 ? VELO_OK : VELO_TIMEOUT,
                  "poll");
        else if (status != VELO_AGAIN)
            break;
    }
    DO(status);
    DO(velo_release(port));
}

static void events(int role)
{
    port_begin(role);
    struct velo_conn *conn = conn_begin(role);
    for (int i = 0; i < 3; i++) {
        if (role == 0)
            DO(velo_send(conn, data, 8, 0, patience_ns));
        receive_armed();
        if (role == 1)
            DO(velo_send(conn, data, 8, 0, patience_ns));
    }
}

static void remote(int role)
{
    static unsigned char local[DATA_BYTES];
    struct velo_rma_peer *peer;
    struct velo_rma_mem *given, *own;
    struct velo_rma_place place;
    struct velo_rma_notification note;
    port_begin(role);
    DO(velo_rma_open(port, NULL, &rma));
    DO(velo_rma_mem_register(rma, local, sizeof local, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY,
                             &own));
    DO(velo_rma_mem_alloc(rma, 4096, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY, &given));
    DO(velo_rma_mem_publish(own, 1));
    struct velo_conn *conn = conn_begin(role);
    DO(velo_send(conn, data, 1, 1, patience_ns)); /* It is published. */
    receive(1, 1);
    DO(velo_rma_connect(rma, VELO_ID(0, !role), &peer, patience_ns));
    DO(velo_rma_mem_lookup(peer, 1, VELO_RMA_RIGHT_ALL, &place));
    if (role == 0) {
        uint64_t old;
        DO(velo_rma_put(peer, data, sizeof data, place, VELO_RMA_NOTIFY_COMPLETER, 7));
        DO(velo_rma_flush(peer, patience_ns));
        DO(velo_rma_fetch_compare_add(peer, &old, place, 0, 1, VELO_RMA_ADD_ALWAYS, 0));
        DO(velo_rma_flush(peer, patience_ns));
        memset(local, 0, sizeof local);
        DO(velo_rma_get(peer, local, sizeof local, place, 0, 0));
        DO(velo_rma_flush(peer, patience_ns));
        expect(memcmp(local + 8, data + 8, sizeof local - 8) == 0, "the bytes of a get");
        DO(velo_send(conn, data, 1, 2, patience_ns));
    } else {
        DO(velo_rma_poll(rma, &note, 1, patience_ns));
        DO(note.status);
        expect(note.cookie == 7, "a notification's cookie");
        struct velo_msg msg;
        int64_t left_ns = patience_ns;
        int status;
        while ((status = velo_try_peek(port, &msg)) == VELO_AGAIN && left_ns > 0) {
            int polled = velo_rma_poll(rma, &note, 1, NS_PER_MS); /* Carries out the update. */
            if (polled != VELO_TIMEOUT)
                DO(polled);
            left_ns -= NS_PER_MS;
        }
        DO(status);
        DO(velo_release(port));
        expect(memcmp(local + 8, data + 8, sizeof local - 8) == 0, "the bytes of a put");
    }
    DO(velo_rma_mem_deregister(own, patience_ns));
}

static void matched(int role)
{
    static unsigned char to[DATA_BYTES];
    struct velo_mq_request shorter = {0}, longer = {0};
    struct velo_mq_peer *peer;
    port_begin(role);
    DO(velo_rma_open(port, NULL, &rma));
    DO(velo_mq_open(port, rma, NULL, &mq));
    if (role == 0) {
        DO(velo_mq_connect(mq, VELO_ID(0, 1), &peer, patience_ns));
        DO(velo_mq_isend(peer, data, sizeof data, 8, 0, &longer));
        DO(velo_mq_isend(peer, data, 6, 7, 0, &shorter));
    } else {
        DO(velo_mq_irecv(mq, VELO_MQ_ANY_SOURCE, 7, 0, to, 6, &shorter));
        DO(velo_mq_wait(mq, &shorter, patience_ns));
        DO(velo_mq_irecv(mq, VELO_MQ_ANY_SOURCE, 8, 0, to, sizeof to, &longer));
    }
    DO(velo_mq_wait(mq, &longer, patience_ns));
    DO(velo_mq_wait(mq, &shorter, patience_ns));
    expect(role == 0 || memcmp(to, data, sizeof to) == 0, "a long message's bytes");
}

static void broadcast(int role)
{
    struct velo_bcast_attr attr = VELO_BCAST_ATTR_INIT;
    struct velo_msg msg;
    attr.vpid = 5;
    attr.msg_bytes_max = BYTES;
    port_begin(role);
    struct velo_conn *conn = conn_begin(role);
    if (role == 0) {
        DO(velo_bcast_open(&attr, &ring));
        DO(velo_send(conn, data, 1, 1, patience_ns));
        receive(1, 1); /* The reader has joined. */
        for (int i = 0; i < BURST; i++)
            DO(velo_bcast_send(ring, data, BYTES, 0, patience_ns));
        receive(1, 2);
    } else {
        receive(1, 1);
        DO(velo_bcast_join(&attr, &reader, patience_ns));
        DO(velo_send(conn, data, 1, 1, patience_ns));
        for (int i = 0; i < BURST; i++) {
            DO(velo_bcast_peek(reader, &msg, patience_ns));
            expect(msg.len_bytes == BYTES && memcmp(msg.data, data, BYTES) == 0, "a broadcast");
            DO(velo_bcast_release(reader));
        }
        DO(velo_send(conn, data, 1, 2, patience_ns));
    }
}

static void leave_a_dead_port(int role)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        port_begin(role);
        _exit(0);
    }
    expect(child > 0 && waitpid(child, &status, 0) == child, "a process cannot be started");
}

/* A port whose owner has died is opened anew. The other process connects when it has heard from the
 * new one: a message to the old one would be lost with it. */
static void reopened(int role)
{
    if (role == 0)
        leave_a_dead_port(role);
    port_begin(role);
    if (role == 0) {
        DO(velo_send(conn_begin(role), data, 8, 1, patience_ns));
        receive(8, 2);
    } else {
        receive(8, 1);
        DO(velo_send(conn_begin(role), data, 8, 2, patience_ns));
    }
}

const struct scene scenes[] = {
    {"messages", messages},   {"events", events},     {"remote", remote}, {"matched", matched},
    {"broadcast", broadcast}, {"reopened", reopened}, {NULL, NULL}};
