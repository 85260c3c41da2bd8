/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of two processes that share a folder and nothing else, such as two in containers: messages
 * both ways, remote memory of both kinds, updates, notifications. Each starts by itself: peer 0,
 * peer 1.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <velo/rma.h>

#define ROUNDS 10000u
#define COUNTS 1000u
#define BYTES 65536u
static const int64_t patience_ns = INT64_C(20000000000);

/* What each tells the other of its memory. */
struct offer {
    velo_rma_key_t allocated;
    velo_rma_key_t registered;
};

static void check(int status, const char *call)
{
    if (status != VELO_OK) {
        fprintf(stderr, "%s: %s\n%s\n", call, velo_strerror(status), velo_last_error());
        exit(1);
    }
}

static void expect(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "not so: %s\n", what);
        exit(1);
    }
}

static void receive(struct velo_port *port, void *buf, size_t len_bytes, velo_id_t source)
{
    struct velo_msg msg;
    check(velo_recv(port, buf, len_bytes, &msg, patience_ns), "velo_recv");
    expect(msg.len_bytes == len_bytes && msg.source == source, "the message is the peer's");
}

static void ping_pong(struct velo_port *port, struct velo_conn *conn, velo_id_t peer, unsigned self)
{
    for (uint64_t round = 0, got; round < ROUNDS; round++) {
        if (self == 0)
            check(velo_send(conn, &round, sizeof round, 0, patience_ns), "velo_send");
        receive(port, &got, sizeof got, peer);
        expect(got == round, "messages come in order");
        if (self == 1)
            check(velo_send(conn, &round, sizeof round, 0, patience_ns), "velo_send");
    }
}

static void use_memory(struct velo_rma_peer *peer, const struct offer *theirs, unsigned self)
{
    static unsigned char data[BYTES], back[BYTES];
    uint64_t old;
    memset(data, (int)self + 1, sizeof data);
    const velo_rma_key_t keys[] = {theirs->allocated, theirs->registered};
    for (int i = 0; i < 2; i++) {
        struct velo_rma_place place = velo_rma_place(keys[i], sizeof(uint64_t));
        check(velo_rma_put(peer, data, sizeof data, place, 0, 0), "velo_rma_put");
        check(velo_rma_flush(peer, patience_ns), "velo_rma_flush");
        check(velo_rma_get(peer, back, sizeof back, place, 0, 0), "velo_rma_get");
        check(velo_rma_flush(peer, patience_ns), "velo_rma_flush");
        expect(memcmp(data, back, sizeof data) == 0, "what was put can be got");
    }
    for (unsigned i = 0; i < COUNTS; i++) {
        check(velo_rma_fetch_compare_add(peer, &old, velo_rma_place(theirs->allocated, 0), 0, 1,
                                         VELO_RMA_ADD_ALWAYS, 0),
              "velo_rma_fetch_compare_add");
        check(velo_rma_flush(peer, patience_ns), "velo_rma_flush");
    }
    check(velo_rma_notify(peer, VELO_RMA_NOTIFY_COMPLETER, self), "velo_rma_notify");
    check(velo_rma_flush(peer, patience_ns), "velo_rma_flush");
}

int main(int argc, char **argv)
{
    static uint64_t own[1 + BYTES / sizeof(uint64_t)];
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *port;
    struct velo_conn *conn;
    struct velo_rma *rma;
    struct velo_rma_peer *reach;
    struct velo_rma_mem *allocated, *registered;
    struct velo_rma_notification done;
    struct offer ours, theirs;
    expect(argc == 2, "peer 0 or peer 1");
    unsigned self = (unsigned)atoi(argv[1]);
    velo_id_t peer = VELO_ID(0, 1 - self);

    attr.vpid = (int)self;
    check(velo_port_open(&attr, &port), "velo_port_open");
    check(velo_rma_open(port, NULL, &rma), "velo_rma_open");
    check(velo_connect(port, peer, &conn, patience_ns), "velo_connect");
    ping_pong(port, conn, peer, self);

    check(velo_rma_mem_alloc(rma, sizeof own, VELO_RMA_RIGHT_ALL, peer, &allocated), "alloc");
    check(velo_rma_mem_register(rma, own, sizeof own, VELO_RMA_RIGHT_ALL, peer, &registered),
          "velo_rma_mem_register");
    ours = (struct offer){velo_rma_mem_key(allocated), velo_rma_mem_key(registered)};
    check(velo_rma_connect(rma, peer, &reach, patience_ns), "velo_rma_connect");
    check(velo_send(conn, &ours, sizeof ours, 0, patience_ns), "velo_send");
    receive(port, &theirs, sizeof theirs, peer);
    use_memory(reach, &theirs, self);

    expect(velo_rma_poll(rma, &done, 1, patience_ns) == 1 && done.cookie == 1 - self,
           "the peer has told us that it is done");
    const uint64_t *counted = velo_rma_mem_addr(allocated);
    expect(*counted == COUNTS, "each update is there");
    expect(((unsigned char *)own)[sizeof own - 1] == 2 - self, "what the peer has put is there");

    /* Neither closes while the other still uses its memory. */
    check(velo_send(conn, &self, sizeof self, 0, patience_ns), "velo_send");
    receive(port, &self, sizeof self, peer);
    check(velo_rma_close(rma), "velo_rma_close");
    check(velo_port_close(port), "velo_port_close");
    printf("%s: %u messages each way, 4 x %u bytes, %u updates\n", argv[1], ROUNDS, BYTES, COUNTS);
    return 0;
}
