/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The raw limits by themselves. In this mode limit_name tells which limit a sample is of; its
 * limit_before and limit_after are the reference of its kind, measured around it: the plain
 * one-line ping-pong for times, the 8-byte stream for rates, the copy itself for copies out of the
 * peer's cache.
 */
#include "modes.h"

#include <math.h>
#include <stdio.h>

#define RAW_ROUND_TRIPS 1000u
#define RAW_MSGS 50000u
#define RAW_COPIES 31u

static double hop(struct rank *rank)
{
    return limit_pingpong_half_rtt_ns(&rank->limit, RAW_ROUND_TRIPS, false);
}

static double stream8(struct rank *rank)
{
    double plain = limit_stream_msgs_per_s(&rank->limit, RAW_MSGS, 1, false);
    double paused = limit_stream_msgs_per_s(&rank->limit, RAW_MSGS, 1, true);
    return fmax(plain, paused);
}

/* The class of side 0's last measurement; a move of the cores drops the measurement. */
static void report(struct rank *rank, struct sample *sample, double hop_before, double hop_after)
{
    double near_ns = rank->options->near_ns;
    if (rank->index != 0) {
        return;
    }
    if ((hop_before < near_ns) != (hop_after < near_ns)) {
        rank->shared->dropped++;
        return;
    }
    sample->near = hop_before < near_ns;
    sample->senders = 1;
    emit_sample(rank->options, sample);
}

static void times(struct rank *rank, unsigned batch)
{
    struct sample sample = {.metric = "half_rtt_ns", .size_bytes = 8, .batch = batch};
    double before = hop(rank);
    sample.limit_name = "pingpong";
    sample.value = hop(rank);
    double after = sample.limit_after = hop(rank);
    sample.limit_before = before;
    report(rank, &sample, before, after);

    before = after;
    sample.limit_name = "pingpong_pause";
    sample.value = limit_pingpong_half_rtt_ns(&rank->limit, RAW_ROUND_TRIPS, true);
    sample.limit_before = before;
    after = sample.limit_after = hop(rank);
    report(rank, &sample, before, after);

    for (unsigned variant = 0; variant < 2 * LIMIT_RINGS; variant++) {
        char name[32];
        bool pause = variant % 2 == 0;
        unsigned ring = variant / 2;
        snprintf(name, sizeof name, "ring%u%s", limit_ring_slots[ring], pause ? "_pause" : "");
        before = after;
        sample.limit_name = name;
        sample.value = limit_ring_half_rtt_ns(&rank->limit, ring, RAW_ROUND_TRIPS, pause);
        sample.limit_before = before;
        after = sample.limit_after = hop(rank);
        report(rank, &sample, before, after);
    }
}

static void rates(struct rank *rank, unsigned batch)
{
    static const struct {
        const char *name;
        unsigned words;
        bool pause;
    } variants[] = {{"stream8", 1, false},
                    {"stream8_pause", 1, true},
                    {"stream56", 7, false},
                    {"stream56_pause", 7, true}};
    struct sample sample = {.metric = "rate_msgs_per_s", .batch = batch};
    double hop_before = hop(rank), before = stream8(rank);
    for (unsigned i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        sample.limit_name = variants[i].name;
        sample.size_bytes = variants[i].words * sizeof(uint64_t);
        sample.value =
            limit_stream_msgs_per_s(&rank->limit, RAW_MSGS, variants[i].words, variants[i].pause);
        sample.limit_before = before;
        before = sample.limit_after = stream8(rank);
        double hop_after = hop(rank);
        report(rank, &sample, hop_before, hop_after);
        hop_before = hop_after;
    }
}

static void copies(struct rank *rank, unsigned batch)
{
    static const size_t sizes[] = {4096, 16384, 65536, LIMIT_COPY_BYTES_MAX};
    struct sample sample = {
        .metric = "bandwidth_bytes_per_s", .limit_name = "peer_copy", .batch = batch};
    double hop_before = hop(rank);
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        sample.size_bytes = sizes[i];
        sample.limit_before = limit_copy_bytes_per_s(&rank->limit, sizes[i], RAW_COPIES);
        sample.value = limit_copy_bytes_per_s(&rank->limit, sizes[i], RAW_COPIES);
        sample.limit_after = limit_copy_bytes_per_s(&rank->limit, sizes[i], RAW_COPIES);
        double hop_after = hop(rank);
        report(rank, &sample, hop_before, hop_after);
        hop_before = hop_after;
    }
}

/* The most that a batch copies each way, in messages of one size. */
#define PIPE_BATCH_BYTES (16u << 20)
#define PIPE_ROUND_TRIPS_MAX 200u

static void pipelined_copies(struct rank *rank, unsigned batch)
{
    static const size_t sizes[] = {16u << 10, 64u << 10, 1u << 20, 4u << 20};
    static const char *const names[] = {"pipelined_copy", "pipelined_copy_own"};
    struct sample sample = {.metric = "half_rtt_ns", .batch = batch};
    double before = hop(rank);
    for (unsigned i = 0; i < 2 * sizeof sizes / sizeof sizes[0]; i++) {
        unsigned fit = (unsigned)(PIPE_BATCH_BYTES / sizes[i / 2]);
        unsigned round_trips = fit < PIPE_ROUND_TRIPS_MAX ? fit : PIPE_ROUND_TRIPS_MAX;
        sample.limit_name = names[i % 2];
        sample.size_bytes = sizes[i / 2];
        sample.limit_before = before;
        sample.value =
            limit_pipe_half_rtt_ns(&rank->limit, sample.size_bytes, round_trips, i % 2 == 1);
        double after = sample.limit_after = hop(rank);
        report(rank, &sample, before, after);
        before = after;
    }
}

/* Ways of the bare messages, named in the records. */
static const struct {
    const char *name;
    enum limit_message_way way;
} ways[] = {{"message", LIMIT_MESSAGE_PAUSE},
            {"message_own", LIMIT_MESSAGE_PAUSE | LIMIT_MESSAGE_RECEIVER_OWNS},
            {"message_own_spin", LIMIT_MESSAGE_RECEIVER_OWNS},
            {"message_own_tx",
             LIMIT_MESSAGE_PAUSE | LIMIT_MESSAGE_RECEIVER_OWNS | LIMIT_MESSAGE_SENDER_ASKS},
            {"message_own_rx",
             LIMIT_MESSAGE_PAUSE | LIMIT_MESSAGE_RECEIVER_OWNS | LIMIT_MESSAGE_RECEIVER_ASKS},
            {"message_rx", LIMIT_MESSAGE_PAUSE | LIMIT_MESSAGE_RECEIVER_ASKS}};
#define WAYS (sizeof ways / sizeof ways[0])
#define MESSAGE_ROUND_TRIPS 500u
#define MESSAGE_MSGS 20000u

static void message_times(struct rank *rank, unsigned batch)
{
    static const size_t sizes[] = {8, 64, 1024, 4096};
    struct sample sample = {.metric = "half_rtt_ns", .batch = batch};
    double before = hop(rank);
    for (unsigned i = 0; i < WAYS * sizeof sizes / sizeof sizes[0]; i++) {
        sample.limit_name = ways[i % WAYS].name;
        sample.size_bytes = sizes[i / WAYS];
        sample.limit_before = before;
        sample.value = limit_message_half_rtt_ns(&rank->limit, sample.size_bytes,
                                                 MESSAGE_ROUND_TRIPS, ways[i % WAYS].way);
        double after = sample.limit_after = hop(rank);
        report(rank, &sample, before, after);
        before = after;
    }
}

static void message_rates(struct rank *rank, unsigned batch)
{
    static const size_t sizes[] = {24, 56, 256};
    struct sample sample = {.metric = "rate_msgs_per_s", .batch = batch};
    double hop_before = hop(rank), before = stream8(rank);
    for (unsigned i = 0; i < WAYS * sizeof sizes / sizeof sizes[0]; i++) {
        sample.limit_name = ways[i % WAYS].name;
        sample.size_bytes = sizes[i / WAYS];
        sample.limit_before = before;
        sample.value = limit_message_msgs_per_s(&rank->limit, sample.size_bytes, MESSAGE_MSGS,
                                                ways[i % WAYS].way);
        before = sample.limit_after = stream8(rank);
        double hop_after = hop(rank);
        report(rank, &sample, hop_before, hop_after);
        hop_before = hop_after;
    }
}

void limit_run(struct rank *rank)
{
    for (unsigned i = 0; i < rank->plan->steps_count; i++) {
        const struct step *step = &rank->plan->steps[i];
        if (!step_begin(rank, step)) {
            continue;
        }
        times(rank, step->batch);
        rates(rank, step->batch);
        copies(rank, step->batch);
        pipelined_copies(rank, step->batch);
        message_times(rank, step->batch);
        message_rates(rank, step->batch);
        rank_barrier(rank);
        if (rank->index == 0) {
            rank->shared->spent_ns[step->point] += now_ns() - rank->step_begin_ns;
            atomic_fetch_add(&rank->shared->progress, 1);
        }
    }
}
