/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One port of a rank with its connections, sending and receiving messages that are checked.
 *
 * A flow is all messages that one thread sends on one connection. Message `seq` of flow f carries
 * the tag (seq * flows + f) mod 256, so a receiver knows the flow, and sees loss or reorder even of
 * messages without payload. Flow, order, length, tag, source and payload (pattern.h) of EVERY
 * message are checked, and rank_fail(EXIT_VERIFY) ends the run on the first that is wrong.
 */
#ifndef VELO_BENCH_ENDPOINT_H
#define VELO_BENCH_ENDPOINT_H

#include "clock.h"
#include "harness.h"
#include "pattern.h"

#include <velo/velo.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A message that takes longer is lost. */
#define RECV_TIMEOUT_NS (INT64_C(20) * 1000000000)

#define always_inline static inline __attribute__((always_inline))

/* Sending side of a flow. Private to one thread. */
struct flow_tx {
    struct velo_conn *conn;
    unsigned char *buf;
    uint64_t key;
    uint64_t seq; /* of the next message to prepare */
    unsigned flow;
    unsigned flows; /* a power of two */
    uint8_t tag;    /* of the message in buf */
    bool in_place;
};

/* Receiving side of a flow. */
struct flow_rx {
    uint64_t key;
    uint64_t seq;
    uint64_t base;
};

struct endpoint {
    struct velo_port *port;
    velo_id_t peer; /* the port whose messages come in */
    unsigned char *buf;
    size_t cap_bytes;
    unsigned flows;
    int64_t timeout_ns;
    bool poll;
    bool in_place;
    unsigned char *expected; /* scratch for comparing every byte */
    struct flow_rx rx[THREADS_MAX];
    struct flow_tx tx[THREADS_MAX];
};

/* Open port (node, rank's index), to receive from rank `from`. */
void endpoint_open(struct endpoint *endpoint, const struct rank *rank, unsigned node,
                   unsigned from);

/* Connect flow `flow` to rank `to`. */
void endpoint_connect(struct endpoint *endpoint, const struct rank *rank, unsigned node,
                      unsigned to, unsigned flow);

/* Open `count` more connections to rank `to`, send one message on each, and receive as many. */
void endpoint_add_idle(struct endpoint *endpoint, const struct rank *rank, unsigned node,
                       unsigned to, unsigned count);

void endpoint_close(struct endpoint *endpoint);

/* Give the flow's long messages fresh words; both sides must do it at the same message. */
void flow_tx_rebase(struct flow_tx *flow, size_t size_bytes);
void endpoint_rebase(struct endpoint *endpoint);

/* Messages with every word fresh, compared in full. */
void flow_tx_send_fresh(struct flow_tx *flow, size_t size_bytes, unsigned msgs);
void endpoint_recv_fresh(struct endpoint *endpoint, size_t size_bytes, unsigned msgs);

/* Be ready to compare every byte of each long message of flow 0, cheaply. Needs a rebase before. */
void endpoint_expect(struct endpoint *endpoint, size_t size_bytes);
void endpoint_compare(struct endpoint *endpoint, size_t size_bytes, const struct velo_msg *msg);

/* Compare every byte of the last message, of flow `flow`; not in timed parts. */
void endpoint_check_last(const struct endpoint *endpoint, size_t size_bytes, unsigned flow);

/* The longest message that a connection with these options takes, or a negative status. */
long endpoint_probe_max_bytes(const struct options *options);

/* Cold ends of the functions below. */
_Noreturn void endpoint_fail_call(const char *call, int status);
_Noreturn void endpoint_fail_recv(const struct endpoint *endpoint, int status);
_Noreturn void endpoint_fail_msg(const struct endpoint *endpoint, const struct velo_msg *msg,
                                 unsigned flow, size_t size_bytes);
int flow_tx_post_in_place(struct flow_tx *flow, size_t size_bytes);

/*
 * --- the timed part ------------------------------------------------------------------------------
 *
 * Preparing and verifying are separate steps, so that a round trip does them while its message
 * travels. Inlined with a constant size they cost about a nanosecond. The bare references do the
 * same to one word, and are measured in the same way.
 */

/* Build the flow's next message in its buffer. */
always_inline void flow_tx_prepare(struct flow_tx *flow, size_t size_bytes)
{
    if (size_bytes <= PATTERN_FULL_BYTES) {
        pattern_fill(flow->buf, size_bytes, flow->key, flow->seq);
    } else {
        pattern_stamp(flow->buf, size_bytes, flow->key, flow->seq);
    }
    flow->tag = (uint8_t)(flow->seq * flow->flows + flow->flow);
    flow->seq++;
}

/* Send the message that was prepared. */
always_inline void flow_tx_post(struct flow_tx *flow, size_t size_bytes)
{
    int status = flow->in_place
                     ? flow_tx_post_in_place(flow, size_bytes)
                     : velo_send(flow->conn, flow->buf, size_bytes, flow->tag, VELO_FOREVER);
    if (__builtin_expect(status != VELO_OK, 0)) {
        endpoint_fail_call("sending", status);
    }
}

always_inline int endpoint_poll(struct endpoint *endpoint, struct velo_msg *msg)
{
    for (;;) {
        int status = endpoint->in_place
                         ? velo_try_peek(endpoint->port, msg)
                         : velo_try_recv(endpoint->port, endpoint->buf, endpoint->cap_bytes, msg);
        if (status != VELO_AGAIN) {
            return status;
        }
        cpu_pause();
    }
}

/* Read a byte of each line: without that no payload would move to a receiver in place. */
always_inline void endpoint_touch(const struct velo_msg *msg)
{
    const unsigned char *data = msg->data;
    for (size_t at = 0; at < msg->len_bytes; at += LINE_BYTES) {
        (void)*(const volatile unsigned char *)(data + at);
    }
}

/* Receive the next message of any flow. */
always_inline void endpoint_take(struct endpoint *endpoint, struct velo_msg *msg)
{
    int status;
    if (endpoint->poll) {
        status = endpoint_poll(endpoint, msg);
    } else if (endpoint->in_place) {
        status = velo_peek(endpoint->port, msg, endpoint->timeout_ns);
    } else {
        status = velo_recv(endpoint->port, endpoint->buf, endpoint->cap_bytes, msg,
                           endpoint->timeout_ns);
    }
    if (__builtin_expect(status != VELO_OK, 0)) {
        endpoint_fail_recv(endpoint, status);
    }
    if (endpoint->in_place) {
        endpoint_touch(msg);
    }
}

/* Is the message the next one of flow `flow`? If so, the flow moves on. */
always_inline bool flow_rx_accept(struct flow_rx *rx, const struct velo_msg *msg, velo_id_t source,
                                  size_t size_bytes, unsigned flow, unsigned flows)
{
    bool right = msg->tag == (uint8_t)(rx->seq * flows + flow) && msg->len_bytes == size_bytes &&
                 msg->source == source &&
                 (size_bytes <= PATTERN_FULL_BYTES
                      ? pattern_is_short(msg->data, size_bytes, rx->key, rx->seq)
                      : pattern_is_stamped(msg->data, size_bytes, rx->key, rx->seq));
    rx->seq += right;
    return __builtin_expect(right, 1);
}

/* Check the message that was taken; release it if it is in place. Returns its flow. */
always_inline unsigned endpoint_verify(struct endpoint *endpoint, size_t size_bytes,
                                       const struct velo_msg *msg)
{
    unsigned flow = msg->tag & (endpoint->flows - 1);
    if (!flow_rx_accept(&endpoint->rx[flow], msg, endpoint->peer, size_bytes, flow,
                        endpoint->flows)) {
        endpoint_fail_msg(endpoint, msg, flow, size_bytes);
    }
    if (endpoint->in_place) {
        velo_release(endpoint->port);
    }
    return flow;
}

#endif
