/* SPDX-License-Identifier: Apache-2.0 */
/* Half round trips: one message out, one back, in each pair. */
#include "modes.h"

#define RAW_ROUND_TRIPS 150u
#define FRESH_ROUND_TRIPS 8u
#define RING_BEST 0u /* 64 slots: see `velo-perf limit` */

static const struct report report = {
    .metric = "half_rtt_ns", .limit_name = "pingpong", .sum = false, .ring = true};

static void bracket(struct rank *rank, struct bracket *out)
{
    double hop_ns = limit_pingpong_half_rtt_ns(&rank->limit, RAW_ROUND_TRIPS, false);
    double ring_ns = limit_ring_half_rtt_ns(&rank->limit, RING_BEST, RAW_ROUND_TRIPS, false);
    double pause_ns = limit_ring_half_rtt_ns(&rank->limit, RING_BEST, RAW_ROUND_TRIPS, true);
    if (rank->side == 0) {
        *out = (struct bracket){hop_ns, ring_ns, pause_ns, hop_ns};
    }
}

/* One port a point of the senders list, so that all of them are measured in one run. */
static void open_all(struct rank *rank, struct endpoint *ends)
{
    const struct options *options = rank->options;
    unsigned peer = rank->index ^ 1;
    for (unsigned i = 0; i < options->senders_count; i++) {
        endpoint_open(&ends[i], rank, i, peer);
        endpoint_add_idle(&ends[i], rank, i, peer, options->senders[i] - 1);
        /* The active sender comes last: worst for a receiver that looks at each in turn. */
        endpoint_connect(&ends[i], rank, i, peer, 0);
    }
}

/* Nothing else is done between taking a message and sending the next one: the one is checked, and
 * the other built, while a message travels. */
static void round_trips(struct rank *rank, struct endpoint *end, size_t size_bytes, unsigned count)
{
    struct flow_tx *tx = &end->tx[0];
    struct velo_msg msg;
    unsigned unsent = count;
    flow_tx_prepare(tx, size_bytes);
    if (rank->side == 0) {
        flow_tx_post(tx, size_bytes);
        if (--unsent) {
            flow_tx_prepare(tx, size_bytes);
        }
    }
    for (unsigned i = 0; i < count; i++) {
        endpoint_take(end, &msg);
        if (unsent) {
            flow_tx_post(tx, size_bytes);
        }
        endpoint_compare(end, size_bytes, &msg);
        endpoint_verify(end, size_bytes, &msg);
        if (unsent && --unsent) {
            flow_tx_prepare(tx, size_bytes);
        }
    }
}

static void fresh_round_trips(struct rank *rank, struct endpoint *end, size_t size_bytes)
{
    for (unsigned i = 0; i < FRESH_ROUND_TRIPS; i++) {
        if (rank->side == 0) {
            flow_tx_send_fresh(&end->tx[0], size_bytes, 1);
            endpoint_recv_fresh(end, size_bytes, 1);
        } else {
            endpoint_recv_fresh(end, size_bytes, 1);
            flow_tx_send_fresh(&end->tx[0], size_bytes, 1);
        }
    }
}

static double timed(struct rank *rank, struct endpoint *end, size_t size_bytes)
{
    unsigned count = rank->options->iters;
    fresh_round_trips(rank, end, size_bytes);
    flow_tx_rebase(&end->tx[0], size_bytes);
    endpoint_rebase(end);
    endpoint_expect(end, size_bytes);
    round_trips(rank, end, size_bytes, 1); /* The other side is ready too. */
    uint64_t begin_ns = now_ns();
    round_trips(rank, end, size_bytes, count);
    double half_rtt_ns = (double)(now_ns() - begin_ns) / 2.0 / count;
    fresh_round_trips(rank, end, size_bytes);
    return half_rtt_ns;
}

void latency_run(struct rank *rank)
{
    struct endpoint ends[SENDERS_LIST_MAX];
    struct finding *finding = step_finding(rank);
    open_all(rank, ends);
    for (unsigned i = 0; i < rank->plan->steps_count; i++) {
        const struct step *step = &rank->plan->steps[i];
        const struct point *point = &rank->plan->points[step->point];
        if (!step_begin(rank, step)) {
            continue;
        }
        bracket(rank, &finding->before);
        double half_rtt_ns = timed(rank, &ends[point->senders_index], point->size_bytes);
        bracket(rank, &finding->after);
        if (rank->side == 0) {
            finding->value = half_rtt_ns;
        }
        step_end(rank, step, &report);
    }
    rank_barrier(rank); /* No rank closes a port while another still sends to it. */
    for (unsigned i = 0; i < rank->options->senders_count; i++) {
        endpoint_close(&ends[i]);
    }
}
