/* SPDX-License-Identifier: Apache-2.0 */
/* Half round trips between two ranks, by message size: MPI_Send and MPI_Recv, back and forth. */
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

static void batch(struct session *session, struct pingpong *pingpong, size_t size_bytes)
{
    struct batch out = {
        .metric = "half_rtt_ns", .limit_name = "pingpong", .size_bytes = size_bytes, .pairs = 1};
    verify(session, pingpong, size_bytes);
    session_bracket(session, &out.before);
    out.value = pingpong_half_rtt_ns(pingpong, size_bytes, round_trips_of(size_bytes));
    session_bracket(session, &out.after);
    session_report(session, &out);
}

static void run(struct session *session)
{
    const struct options *options = &session->options;
    struct pingpong pingpong;
    size_t largest = 0;
    for (unsigned i = 0; i < options->sizes_count; i++) {
        largest = options->sizes_bytes[i] > largest ? options->sizes_bytes[i] : largest;
    }
    pingpong_init(&pingpong, session, largest);
    while (session_next(session)) {
        for (unsigned i = 0; i < options->sizes_count; i++) {
            batch(session, &pingpong, options->sizes_bytes[i]);
        }
    }
    pingpong_free(&pingpong);
}

const struct mode latency_mode = {
    .name = "latency",
    .text = "half round trip by size",
    .batches = 30,
    .ranks_multiple = 2,
    .sizes = "0,1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192,16384,32768,65536,131072,262144,"
             "524288,1048576,2097152,4194304",
    .run = run,
};
