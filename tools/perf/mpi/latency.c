/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Half round trips between two ranks, by message size: MPI_Send and MPI_Recv, back and forth.
 *
 * As in NetPIPE and OSU's tests nobody writes to the buffers meanwhile, so a receiver that reads
 * its sender's memory finds it in its own cache from the second message on. In mode `written` each
 * rank writes to its message before it sends it, as programs do; that is not timed.
 */
#include "clock.h"
#include "pattern.h"
#include "pingpong.h"

#define ROUND_TRIPS 200u
/* A long batch would outlive the class of its cores: so fewer round trips of long messages. */
#define BATCH_BYTES_MAX (64u << 20)
#define ROUND_TRIPS_MIN 4u

static unsigned round_trips_of(size_t size_bytes)
{
    size_t fit = size_bytes ? BATCH_BYTES_MAX / size_bytes : ROUND_TRIPS;
    return (unsigned)(fit > ROUND_TRIPS       ? ROUND_TRIPS
                      : fit < ROUND_TRIPS_MIN ? ROUND_TRIPS_MIN
                                              : fit);
}

/* Every byte of a message and of its answer is checked; not in the timed part. */
static void verify(struct session *session, struct pingpong *pingpong, size_t size_bytes)
{
    static uint64_t seq;
    unsigned char *sent = pingpong->out, *got = pingpong->in;
    seq++;
    pattern_fill(sent, size_bytes, session->rank, seq);
    memset(got, 0, size_bytes);
    pingpong_run(pingpong, size_bytes, 1);
    pattern_fill(sent, size_bytes, 1 - session->rank, seq);
    if (memcmp(sent, got, size_bytes) != 0) {
        rank_fail(EXIT_VERIFY, "a message of %zu bytes arrived damaged", size_bytes);
    }
}

/* The round trips begin together, so that neither rank waits for the other's writing. */
static double written_half_rtt_ns(struct pingpong *pingpong, size_t size_bytes,
                                  unsigned round_trips)
{
    uint64_t time_ns = 0;
    for (unsigned i = 0; i < round_trips; i++) {
        for (size_t at = 0; at < size_bytes; at += LINE_BYTES) {
            pingpong->out[at]++;
        }
        MPI_Barrier(MPI_COMM_WORLD);
        uint64_t begin_ns = now_ns();
        pingpong_run(pingpong, size_bytes, 1);
        time_ns += now_ns() - begin_ns;
    }
    return (double)time_ns / 2.0 / round_trips;
}

/* The time of half a round trip, of so many. */
typedef double measure(struct pingpong *pingpong, size_t size_bytes, unsigned round_trips);

static void batch(struct session *session, struct pingpong *pingpong, size_t size_bytes,
                  measure *half_rtt_ns)
{
    struct batch out = {
        .metric = "half_rtt_ns", .limit_name = "pingpong", .size_bytes = size_bytes, .pairs = 1};
    verify(session, pingpong, size_bytes);
    session_bracket(session, &out.before);
    out.value = half_rtt_ns(pingpong, size_bytes, round_trips_of(size_bytes));
    session_bracket(session, &out.after);
    session_report(session, &out);
}

static void run(struct session *session, measure *half_rtt_ns)
{
    const struct options *options = &session->options;
    struct pingpong pingpong;
    size_t largest_bytes = session_largest_bytes(session);
    pingpong_init(&pingpong, session, largest_bytes);
    while (session_next(session)) {
        for (unsigned i = 0; i < options->sizes_count; i++) {
            batch(session, &pingpong, options->sizes_bytes[i], half_rtt_ns);
        }
    }
    pingpong_free(&pingpong);
}

static void run_latency(struct session *session) { run(session, pingpong_half_rtt_ns); }

static void run_written(struct session *session) { run(session, written_half_rtt_ns); }

const struct mode latency_mode = {
    .name = "latency",
    .text = "half round trip by size",
    .batches = 30,
    .ranks_multiple = 2,
    .sizes = "0,1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192,16384,32768,65536,131072,262144,"
             "524288,1048576,2097152,4194304",
    .run = run_latency,
};

const struct mode written_mode = {
    .name = "written",
    .text = "the same, of messages that are written to before",
    .batches = 30,
    .ranks_multiple = 2,
    .sizes = "8192,16384,32768,65536,131072,262144,524288,1048576",
    .run = run_written,
};
