/* SPDX-License-Identifier: Apache-2.0 */
/* Ping-pong and rate over velo2.h, beside the same loops over velo.h. */
#include <stdio.h>
#include <string.h>

#include <velo/velo.h>

#include <velo2.h>

#include "../clock.h"
#include "pair.h"

static const unsigned sizes_bytes[] = {8, 56, 120};

/* A way to send one message to the other process, and to receive one from it. */
struct ends {
    velo2_port_t port;
    velo2_connection_t con;
    struct velo_port *bare_port;
    struct velo_conn *bare_conn;
};

/* Both loops are made of this, with another pair of calls each. */
#define DEFINE_LOOPS(name, SEND, RECEIVE)                                                          \
    static void send_##name(struct ends *ends, const void *buf, unsigned len)                      \
    {                                                                                              \
        pair_check(SEND, #SEND);                                                                   \
    }                                                                                              \
    static void receive_##name(struct ends *ends, void *buf, unsigned len, uint64_t number)        \
    {                                                                                              \
        uint64_t got;                                                                              \
        uint32_t got_len = 0;                                                                      \
        pair_check(RECEIVE, #RECEIVE);                                                             \
        memcpy(&got, buf, sizeof got);                                                             \
        pair_check(got_len == len && got == number, "a message is not what was sent; " #name);     \
    }                                                                                              \
    static double pingpong_##name(const struct pair *pair, struct ends *ends, unsigned len)        \
    {                                                                                              \
        unsigned char buf[VELO2_MTU] = {0}, got[VELO2_MTU];                                        \
        uint64_t begin_ns = now_ns();                                                              \
        for (uint64_t i = 0; i < pair->options.repeats; i++) {                                     \
            memcpy(buf, &i, sizeof i);                                                             \
            if (pair->self)                                                                        \
                receive_##name(ends, got, len, i);                                                 \
            send_##name(ends, buf, len);                                                           \
            if (!pair->self)                                                                       \
                receive_##name(ends, got, len, i);                                                 \
        }                                                                                          \
        return (double)(now_ns() - begin_ns) / 2 / pair->options.repeats;                          \
    }                                                                                              \
    static double stream_##name(const struct pair *pair, struct ends *ends, unsigned len)          \
    {                                                                                              \
        unsigned char buf[VELO2_MTU] = {0};                                                        \
        uint64_t begin_ns = now_ns();                                                              \
        for (uint64_t i = 0; i < pair->options.repeats; i++) {                                     \
            if (pair->self) {                                                                      \
                receive_##name(ends, buf, len, i);                                                 \
            } else {                                                                               \
                memcpy(buf, &i, sizeof i);                                                         \
                send_##name(ends, buf, len);                                                       \
            }                                                                                      \
        }                                                                                          \
        const uint64_t all = 0; /* All have arrived. */                                            \
        memcpy(buf, &all, sizeof all);                                                             \
        if (pair->self)                                                                            \
            send_##name(ends, buf, sizeof all);                                                    \
        else                                                                                       \
            receive_##name(ends, buf, sizeof all, all);                                            \
        return (double)(now_ns() - begin_ns) / pair->options.repeats;                              \
    }

static bool bare_receive(struct velo_port *port, void *buf, size_t cap, uint32_t *len)
{
    struct velo_msg msg;
    bool is_good = velo_recv(port, buf, cap, &msg, VELO_FOREVER) == VELO_OK;
    *len = (uint32_t)msg.len_bytes;
    return is_good;
}

DEFINE_LOOPS(velo2, velo2_send(&ends->con, buf, len, 1, 0) == VELO2_RET_SUCCESS,
             velo2_recv(&ends->port, buf, VELO2_MTU, &got_len, NULL, NULL, 0) == VELO2_RET_SUCCESS)
DEFINE_LOOPS(velo, velo_send(ends->bare_conn, buf, len, 1, VELO_FOREVER) == VELO_OK,
             bare_receive(ends->bare_port, buf, VELO2_MTU, &got_len))

/* Both ways have rings of one shape. */
static void connect(struct pair *pair, struct ends *ends)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    uint64_t vpid;
    pair_check(velo2_open(&ends->port) == VELO2_RET_SUCCESS, "velo2_open");
    vpid = velo2_get_vpid(&ends->port);
    pair->shared[2 + pair->self] = vpid;
    attr.node = (int)velo2_get_nodeid(&ends->port);
    attr.vpid = 254 + pair->self;
    attr.depth_slots = 1024;
    attr.data_bytes = 128 << 10;
    pair_check(velo_port_open(&attr, &ends->bare_port) == VELO_OK, "velo_port_open");
    pair_meet(pair);
    const uint32_t node = velo2_get_nodeid(&ends->port);
    pair_check(velo2_connect(&ends->port, &ends->con, node,
                             (velo2_vpid_t)pair->shared[3 - pair->self]) == VELO2_RET_SUCCESS,
               "velo2_connect");
    pair_check(velo_connect(ends->bare_port, VELO_ID(node, 255 - pair->self), &ends->bare_conn,
                            VELO_FOREVER) == VELO_OK,
               "velo_connect");
}

typedef double loop(const struct pair *, struct ends *, unsigned);

static void measure(struct pair *pair, struct ends *ends, const char *mode, loop *ours, loop *bare,
                    unsigned len)
{
    static struct pair_times times;
    (void)ours(pair, ends, len); /* Warm. */
    (void)bare(pair, ends, len);
    for (unsigned i = 0; i < pair->options.batches; i++) {
        for (unsigned turn = 0; turn < 2; turn++) {
            pair_meet(pair);
            if ((turn + i) % 2 == 0)
                times.ours[i] = ours(pair, ends, len);
            else
                times.bare[i] = bare(pair, ends, len);
        }
    }
    if (!pair->self)
        pair_print(pair, mode, len, "velo2", "velo", &times);
}

int main(int argc, char **argv)
{
    struct pair pair = pair_begin(
        argc, argv,
        "Measure velo2.h between two processes, beside velo.h in the same ones, in turns: half "
        "round trips, and a stream of messages.\vOutput is one JSON object a line; times are of "
        "one message.",
        2000);
    struct ends ends;
    connect(&pair, &ends);
    for (size_t i = 0; i < sizeof sizes_bytes / sizeof sizes_bytes[0]; i++) {
        measure(&pair, &ends, "pingpong", pingpong_velo2, pingpong_velo, sizes_bytes[i]);
        measure(&pair, &ends, "rate", stream_velo2, stream_velo, sizes_bytes[i]);
    }
    pair_meet(&pair);
    pair_check(velo2_close(&ends.port) == VELO2_RET_SUCCESS, "velo2_close");
    pair_check(velo_port_close(ends.bare_port) == VELO_OK, "velo_port_close");
    pair_end(&pair);
}
