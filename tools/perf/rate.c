/* SPDX-License-Identifier: Apache-2.0 */
/* Messages per second, streamed one way. */
#include "modes.h"
#include "stream.h"

#include <math.h>

#define RAW_ROUND_TRIPS 150u
#define RAW_MSGS 20000u

static const struct report report = {
    .metric = "rate_msgs_per_s", .limit_name = "stream", .sum = true};

/* PAUSE helps or harms a streaming receiver, depending on the distance of the cores: the better
 * result counts. */
static void bracket(struct rank *rank, struct bracket *out)
{
    double hop_ns = limit_pingpong_half_rtt_ns(&rank->limit, RAW_ROUND_TRIPS, false);
    double plain = limit_stream_msgs_per_s(&rank->limit, RAW_MSGS, 1, false);
    double paused = limit_stream_msgs_per_s(&rank->limit, RAW_MSGS, 1, true);
    if (rank->side == 0) {
        *out = (struct bracket){.hop_ns = hop_ns, .limit = fmax(plain, paused)};
    }
}

void rate_run(struct rank *rank)
{
    static struct stream stream;
    struct finding *finding = step_finding(rank);
    stream_open(&stream, rank);
    for (unsigned i = 0; i < rank->plan->steps_count; i++) {
        const struct step *step = &rank->plan->steps[i];
        if (!step_begin(rank, step)) {
            continue;
        }
        bracket(rank, &finding->before);
        double msgs_per_s = stream_batch(&stream, rank, &rank->plan->points[step->point]);
        bracket(rank, &finding->after);
        if (rank->side == 0) {
            finding->value = msgs_per_s;
        }
        step_end(rank, step, &report);
    }
    stream_close(&stream, rank);
}
