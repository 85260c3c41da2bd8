/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One-way streaming, for message rate and bandwidth. Side 0 of a pair receives and measures; side 1
 * sends with `threads` threads, each on a connection of its own. The window is unlimited: only a
 * full ring holds a sender back.
 */
#ifndef VELO_BENCH_STREAM_H
#define VELO_BENCH_STREAM_H

#include "endpoint.h"
#include "harness.h"

#include <pthread.h>

struct stream;

/* A further sending thread; it walks through the same plan as the main one. */
struct stream_helper {
    struct rank rank;
    struct stream *stream;
    unsigned flow;
    pthread_t thread;
};

struct stream {
    struct endpoint end;
    struct stream_helper helper[THREADS_MAX];
};

void stream_open(struct stream *stream, struct rank *rank);

/* One batch; all ranks call it. Returns messages per second, on side 0. */
double stream_batch(struct stream *stream, struct rank *rank, const struct point *point);

void stream_close(struct stream *stream, struct rank *rank);

#endif
