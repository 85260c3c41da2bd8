/* SPDX-License-Identifier: Apache-2.0 */
/*
 * velo-perf: measure velo against what the machine can physically do. See --help; `velo perf` is
 * the front end that people use.
 */
#include "modes.h"
#include "options.h"
#include "plan.h"

#include <velo/velo.h>

#include <stdio.h>
#include <stdlib.h>

static void run_rank(struct rank *rank)
{
    switch (rank->options->mode) {
    case MODE_LIMIT:
        limit_run(rank);
        return;
    case MODE_LATENCY:
        latency_run(rank);
        return;
    case MODE_RATE:
        rate_run(rank);
        return;
    case MODE_BANDWIDTH:
        bandwidth_run(rank);
        return;
    case MODE_RING:
        ring_run(rank);
        return;
    case MODE_GUPS:
        gups_run(rank);
        return;
    }
}

static size_t longest_message_bytes(const struct options *options)
{
    if (options->mode == MODE_LIMIT) {
        return LIMIT_COPY_BYTES_MAX;
    }
    long max_bytes = endpoint_probe_max_bytes(options);
    if (max_bytes < 0) {
        fprintf(stderr, "velo-perf: cannot open a port: %s\n", velo_last_error());
        emit_error(velo_last_error());
        exit(max_bytes == VELO_ERR_ARG ? EXIT_USAGE : EXIT_FAILED);
    }
    return (size_t)max_bytes;
}

/* The lines that a run is sure to emit; a limit batch has a sample for each limit. */
static unsigned planned_samples(const struct options *options, const struct plan *plan)
{
    return plan->steps_count * (options->mode == MODE_LIMIT ? LIMIT_MODE_SAMPLES : 1);
}

int main(int argc, char **argv)
{
    static struct options options;
    static struct plan plan;
    unsigned dropped = 0;
    options_parse(&options, argc, argv);
    if (options.is_listening) {
        struct meeting *meeting = meeting_listen(&options, sizeof(struct shared));
        plan_build(&plan, &options, meeting_message_bytes_max(meeting));
        return harness_run(&options, &plan, run_rank, meeting, &dropped);
    }
    size_t message_bytes_max = longest_message_bytes(&options);
    struct meeting *meeting = NULL;
    if (options.is_connecting) {
        meeting = meeting_connect(&options, sizeof(struct shared), message_bytes_max);
    }
    plan_build(&plan, &options, message_bytes_max);
    emit_meta(&options);
    emit_plan(planned_samples(&options, &plan));
    int exit_code = harness_run(&options, &plan, run_rank, meeting, &dropped);
    if (exit_code == EXIT_OK) {
        emit_end(dropped);
    }
    return exit_code;
}
