/* SPDX-License-Identifier: Apache-2.0 */
/* The measurements of velo-perf: each function runs in every rank. */
#ifndef VELO_BENCH_MODES_H
#define VELO_BENCH_MODES_H

#include "clock.h"
#include "emit.h"
#include "endpoint.h"
#include "harness.h"

/* Samples of one batch of limit_run(): 2 ping-pongs, 6 rings, 4 streams, 4 copies, 8 pipelined
 * copies, 24 + 18 bare messages. */
#define LIMIT_MODE_SAMPLES 66u

void limit_run(struct rank *rank);
void latency_run(struct rank *rank);
void rate_run(struct rank *rank);
void bandwidth_run(struct rank *rank);
void ring_run(struct rank *rank);
void gups_run(struct rank *rank);

#endif
