/* SPDX-License-Identifier: Apache-2.0 */
#include "stream.h"

#include <string.h>

#define BATCH_BYTES (8u << 20)
#define BATCH_MSGS_MIN 200u
#define BATCH_MSGS_MAX 50000u
/* Of each flow, before and after a batch: enough to go round the ring's data region. */
#define FRESH_MSGS 64u

/* Enough messages to be worth timing, few enough that the cores stay where they are. */
static unsigned batch_msgs(const struct options *options, size_t size_bytes)
{
    if (options->iters) {
        return options->iters;
    }
    size_t msgs = BATCH_BYTES / (size_bytes ? size_bytes : 1);
    msgs = msgs < BATCH_MSGS_MAX ? msgs : BATCH_MSGS_MAX;
    return (unsigned)(msgs > BATCH_MSGS_MIN ? msgs : BATCH_MSGS_MIN);
}

/* --- the timed loops, with the usual sizes as constants --------------------------------------- */

/* The usual case, velo_send(), with all its data in registers: each store of ours waits in the
 * queue in which those of the message wait for their line. */
always_inline void send_plain(struct flow_tx *tx, size_t size_bytes, unsigned msgs)
{
    struct flow_tx flow = *tx;
    for (unsigned i = 0; i < msgs; i++) {
        flow_tx_prepare(&flow, size_bytes);
        int status = velo_send(flow.conn, flow.buf, size_bytes, flow.tag, VELO_FOREVER);
        if (__builtin_expect(status != VELO_OK, 0)) {
            endpoint_fail_call("sending", status);
        }
    }
    *tx = flow;
}

always_inline void send_sized(struct flow_tx *tx, size_t size_bytes, unsigned msgs)
{
    if (!tx->in_place) {
        send_plain(tx, size_bytes, msgs);
        return;
    }
    for (unsigned i = 0; i < msgs; i++) {
        flow_tx_prepare(tx, size_bytes);
        flow_tx_post(tx, size_bytes);
    }
}

static void send_msgs(struct flow_tx *tx, size_t size_bytes, unsigned msgs)
{
    switch (size_bytes) {
    case 8:
        send_sized(tx, 8, msgs);
        return;
    case 24:
        send_sized(tx, 24, msgs);
        return;
    case 56:
        send_sized(tx, 56, msgs);
        return;
    default:
        send_sized(tx, size_bytes, msgs);
    }
}

/* The usual case, one flow and velo_recv(), with all its data in registers: at six nanoseconds a
 * message we may add only few instructions. */
always_inline void receive_plain(struct endpoint *end, size_t size_bytes, unsigned msgs)
{
    struct flow_rx rx = end->rx[0];
    struct velo_port *port = end->port;
    unsigned char *buf = end->buf;
    size_t cap_bytes = end->cap_bytes;
    velo_id_t peer = end->peer;
    for (unsigned i = 0; i < msgs; i++) {
        struct velo_msg msg;
        int status = velo_recv(port, buf, cap_bytes, &msg, RECV_TIMEOUT_NS);
        if (__builtin_expect(status != VELO_OK, 0)) {
            end->rx[0] = rx;
            endpoint_fail_recv(end, status);
        }
        if (!flow_rx_accept(&rx, &msg, peer, size_bytes, 0, 1)) {
            end->rx[0] = rx;
            endpoint_fail_msg(end, &msg, 0, size_bytes);
        }
    }
    end->rx[0] = rx;
}

/* Any number of flows, and any way to receive. Returns the flow of the last message. */
static unsigned receive_any(struct endpoint *end, size_t size_bytes, unsigned msgs)
{
    unsigned flow = 0;
    for (unsigned i = 0; i < msgs; i++) {
        struct velo_msg msg;
        endpoint_take(end, &msg);
        flow = endpoint_verify(end, size_bytes, &msg);
    }
    return flow;
}

static unsigned receive_msgs(struct endpoint *end, size_t size_bytes, unsigned msgs)
{
    if (end->flows > 1 || end->poll || end->in_place) {
        return receive_any(end, size_bytes, msgs);
    }
    switch (size_bytes) {
    case 8:
        receive_plain(end, 8, msgs);
        return 0;
    case 24:
        receive_plain(end, 24, msgs);
        return 0;
    case 56:
        receive_plain(end, 56, msgs);
        return 0;
    default:
        receive_plain(end, size_bytes, msgs);
        return 0;
    }
}

/* --- a batch --------------------------------------------------------------------------------- */

/* Each barrier here meets one in receive_batch(). */
static void send_batch(struct rank *rank, struct flow_tx *tx, size_t size_bytes)
{
    unsigned msgs = batch_msgs(rank->options, size_bytes);
    rank_barrier(rank);
    flow_tx_send_fresh(tx, size_bytes, FRESH_MSGS);
    flow_tx_rebase(tx, size_bytes);
    rank_barrier(rank);
    send_msgs(tx, size_bytes, msgs);
    rank_barrier(rank);
    flow_tx_send_fresh(tx, size_bytes, FRESH_MSGS);
    rank_barrier(rank);
}

static double receive_batch(struct rank *rank, struct endpoint *end, size_t size_bytes)
{
    unsigned threads = rank->options->threads;
    unsigned msgs = batch_msgs(rank->options, size_bytes) * threads;
    rank_barrier(rank);
    endpoint_recv_fresh(end, size_bytes, FRESH_MSGS * threads);
    endpoint_rebase(end);
    rank_barrier(rank);
    uint64_t begin_ns = now_ns();
    unsigned flow = receive_msgs(end, size_bytes, msgs);
    uint64_t time_ns = now_ns() - begin_ns;
    endpoint_check_last(end, size_bytes, flow);
    rank_barrier(rank);
    endpoint_recv_fresh(end, size_bytes, FRESH_MSGS * threads);
    rank_barrier(rank);
    return msgs * 1e9 / (double)time_ns;
}

static void *helper_main(void *arg)
{
    struct stream_helper *helper = arg;
    struct rank *rank = &helper->rank;
    const struct plan *plan = rank->plan;
    /* The cores of the sending ranks: every second one, so that a receiver keeps its own. */
    rank_pin(rank->options, rank->index + 2 * helper->flow);
    for (unsigned i = 0; i < plan->steps_count; i++) {
        const struct step *step = &plan->steps[i];
        if (step_begin(rank, step)) {
            send_batch(rank, &helper->stream->end.tx[helper->flow],
                       plan->points[step->point].size_bytes);
            step_end(rank, step, NULL);
        }
    }
    return NULL;
}

static void helpers_start(struct stream *stream, struct rank *rank)
{
    for (unsigned flow = 1; flow < rank->options->threads; flow++) {
        struct stream_helper *helper = &stream->helper[flow];
        *helper = (struct stream_helper){.rank = *rank, .stream = stream, .flow = flow};
        int error = pthread_create(&helper->thread, NULL, helper_main, helper);
        if (error) {
            rank_fail(EXIT_FAILED, "cannot start sending thread %u: %s", flow, strerror(error));
        }
    }
}

void stream_open(struct stream *stream, struct rank *rank)
{
    unsigned peer = rank->index ^ 1;
    endpoint_open(&stream->end, rank, 0, peer);
    if (rank->side == 1) {
        for (unsigned flow = 0; flow < rank->options->threads; flow++) {
            endpoint_connect(&stream->end, rank, 0, peer, flow);
        }
        helpers_start(stream, rank);
    }
}

double stream_batch(struct stream *stream, struct rank *rank, const struct point *point)
{
    if (rank->side == 1) {
        send_batch(rank, &stream->end.tx[0], point->size_bytes);
        return 0;
    }
    return receive_batch(rank, &stream->end, point->size_bytes);
}

void stream_close(struct stream *stream, struct rank *rank)
{
    for (unsigned flow = 1; rank->side == 1 && flow < rank->options->threads; flow++) {
        pthread_join(stream->helper[flow].thread, NULL);
    }
    endpoint_close(&stream->end);
}
