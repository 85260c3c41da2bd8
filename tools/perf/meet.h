/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two velo-perf that were started apart, also in two containers, measure together: one listens, the
 * other connects and says what is measured. They share a file beside the ports' segments, which
 * holds what processes of one run have in anonymous memory. Each starts one of the two ranks.
 */
#ifndef VELO_BENCH_MEET_H
#define VELO_BENCH_MEET_H

#include "limit.h"
#include "options.h"

#include <stdbool.h>
#include <stddef.h>

struct meeting;
struct shared;

/* Create the file, and wait until somebody connects; his options replace ours, but for the CPUs.
 * Ends the program with a sentence if it cannot. */
struct meeting *meeting_listen(struct options *options, size_t shared_bytes);
/* Join the one who listens. */
struct meeting *meeting_connect(const struct options *options, size_t shared_bytes,
                                size_t message_bytes_max);

/* The longest message, as the connecting side has found it. */
size_t meeting_message_bytes_max(const struct meeting *meeting);
struct shared *meeting_shared(struct meeting *meeting);
struct limit_area *meeting_area(struct meeting *meeting);
/* Which of the two ranks is ours: 0 measures and connects, 1 listens. */
unsigned meeting_rank(const struct meeting *meeting);
/* Has the other process ended, or was it killed? */
bool meeting_is_alone(const struct meeting *meeting);
/* The listening side removes the file. */
void meeting_end(struct meeting *meeting);

#endif
