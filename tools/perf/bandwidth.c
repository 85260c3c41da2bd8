/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes per second, streamed one way; and the size that reaches half of the best rate. */
#include "modes.h"
#include "stream.h"

#include <math.h>
#include <stdlib.h>

#define RAW_ROUND_TRIPS 150u
#define RAW_COPIES 15u

static const struct report report = {
    .metric = "bandwidth_bytes_per_s", .limit_name = "peer_copy", .sum = true};

/* The near figures of each point; rank 0 keeps them for N1/2. */
struct figures {
    unsigned batches; /* the room for batches of each point */
    unsigned count[POINTS_MAX];
    double value[];
};

static void bracket(struct rank *rank, size_t size_bytes, struct bracket *out)
{
    size_t copy_bytes = size_bytes < LIMIT_COPY_BYTES_MIN ? LIMIT_COPY_BYTES_MIN : size_bytes;
    double hop_ns = limit_pingpong_half_rtt_ns(&rank->limit, RAW_ROUND_TRIPS, false);
    double copy = limit_copy_bytes_per_s(&rank->limit, copy_bytes, RAW_COPIES);
    if (rank->side == 0) {
        *out = (struct bracket){.hop_ns = hop_ns, .limit = copy};
    }
}

static int compare_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct figures *figures_new(const struct rank *rank)
{
    size_t values = (size_t)rank->plan->points_count * rank->options->batches;
    struct figures *figures = calloc(1, sizeof *figures + values * sizeof figures->value[0]);
    if (!figures) {
        rank_fail(EXIT_FAILED, "out of memory for %zu figures", values);
    }
    figures->batches = rank->options->batches;
    return figures;
}

static void figures_add(struct figures *figures, unsigned point, double value)
{
    size_t first = (size_t)point * figures->batches;
    figures->value[first + figures->count[point]++] = value;
}

/* 0 if the point has none. */
static double figures_median(struct figures *figures, unsigned point)
{
    double *value = &figures->value[(size_t)point * figures->batches];
    unsigned count = figures->count[point];
    qsort(value, count, sizeof value[0], compare_double);
    return count ? value[count / 2] : 0;
}

/* N1/2, interpolated on a logarithmic size axis; points come in ascending order of size. */
static void emit_half_size(const struct rank *rank, struct figures *figures)
{
    double median[POINTS_MAX], best = 0;
    unsigned count = rank->plan->points_count;
    for (unsigned i = 0; i < count; i++) {
        median[i] = figures_median(figures, i);
        best = fmax(best, median[i]);
    }
    for (unsigned i = 1; i < count; i++) {
        double half = best / 2, low = median[i - 1], high = median[i];
        if (low > 0 && low < half && half <= high) {
            double from = log((double)rank->plan->points[i - 1].size_bytes);
            double to = log((double)rank->plan->points[i].size_bytes);
            double n_half = exp(from + (half - low) / (high - low) * (to - from));
            emit_result(rank->options, "n_half_bytes", n_half,
                        &(struct extra){"best_bytes_per_s", best});
            return;
        }
    }
}

void bandwidth_run(struct rank *rank)
{
    static struct stream stream;
    struct figures *near = figures_new(rank);
    const struct plan *plan = rank->plan;
    struct finding *finding = step_finding(rank);
    stream_open(&stream, rank);
    for (unsigned i = 0; i < plan->steps_count; i++) {
        const struct step *step = &plan->steps[i];
        const struct point *point = &plan->points[step->point];
        if (!step_begin(rank, step)) {
            continue;
        }
        bracket(rank, point->size_bytes, &finding->before);
        double msgs_per_s = stream_batch(&stream, rank, point);
        bracket(rank, point->size_bytes, &finding->after);
        if (rank->side == 0) {
            finding->value = msgs_per_s * (double)point->size_bytes;
        }
        double value = step_end(rank, step, &report);
        if (!isnan(value) && finding->before.hop_ns < rank->options->near_ns) {
            figures_add(near, step->point, value);
        }
    }
    stream_close(&stream, rank);
    if (rank->index == 0) {
        emit_half_size(rank, near);
    }
    free(near);
}
