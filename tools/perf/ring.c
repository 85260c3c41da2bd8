/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes in a ring, more of them than cores, pass tokens on. This shows the cost of a waiting
 * rank for the others. The reference is the same ring on bare futexes, which never spin.
 */
#include "modes.h"

#define RAW_ROUND_TRIPS 150u

static const struct report report = {
    .metric = "rate_msgs_per_s", .limit_name = "futex_ring", .sum = false};

/* The near class is that of the first two ranks; the others sleep in the next barrier meanwhile. */
static void bracket(struct rank *rank, struct bracket *out)
{
    double hop_ns = 0;
    rank_barrier(rank);
    if (rank->pair == 0) {
        hop_ns = limit_pingpong_half_rtt_ns(&rank->limit, RAW_ROUND_TRIPS, false);
    }
    rank_barrier(rank);
    double hops =
        limit_futex_ring_hops_per_s(&rank->futex, rank->options->iters, rank->options->tokens);
    rank_barrier(rank);
    if (rank->index == 0) {
        *out = (struct bracket){.hop_ns = hop_ns, .limit = hops};
    }
}

/* Every rank passes each token on `laps` times; rank 0 starts them and keeps them in the end. */
static double pass_tokens(struct rank *rank, struct endpoint *end, size_t size_bytes)
{
    unsigned tokens = rank->options->tokens;
    unsigned total = rank->options->iters * tokens;
    struct flow_tx *tx = &end->tx[0];
    uint64_t begin_ns = now_ns();
    if (rank->index == 0) {
        flow_tx_send_fresh(tx, size_bytes, tokens);
    }
    for (unsigned i = 0; i < total; i++) {
        endpoint_recv_fresh(end, size_bytes, 1);
        if (rank->index != 0 || i < total - tokens) {
            flow_tx_send_fresh(tx, size_bytes, 1);
        }
    }
    return (double)total * rank->options->procs * 1e9 / (double)(now_ns() - begin_ns);
}

void ring_run(struct rank *rank)
{
    static struct endpoint end;
    const struct options *options = rank->options;
    struct finding *finding = step_finding(rank);
    unsigned procs = options->procs;
    endpoint_open(&end, rank, 0, (rank->index + procs - 1) % procs);
    endpoint_connect(&end, rank, 0, (rank->index + 1) % procs, 0);
    for (unsigned i = 0; i < rank->plan->steps_count; i++) {
        const struct step *step = &rank->plan->steps[i];
        if (!step_begin(rank, step)) {
            continue;
        }
        bracket(rank, &finding->before);
        double hops_per_s = pass_tokens(rank, &end, rank->plan->points[step->point].size_bytes);
        rank_barrier(rank);
        bracket(rank, &finding->after);
        if (rank->index == 0) {
            finding->value = hops_per_s;
        }
        step_end(rank, step, &report);
    }
    rank_barrier(rank); /* No rank closes a port while another still sends to it. */
    endpoint_close(&end);
}
