/* SPDX-License-Identifier: Apache-2.0 */
/* Round trips between ranks 0 and 1; other ranks do nothing. */
#ifndef VELO_BENCH_MPI_PINGPONG_H
#define VELO_BENCH_MPI_PINGPONG_H

#include "session.h"

struct pingpong {
    unsigned rank;
    unsigned char *out;
    unsigned char *in;
};

void pingpong_init(struct pingpong *pingpong, const struct session *session, size_t size_bytes);
void pingpong_free(struct pingpong *pingpong);

/* Tag 0 is theirs. */
void pingpong_run(struct pingpong *pingpong, size_t size_bytes, unsigned round_trips);

/* The same timed, after a few round trips to warm up. */
double pingpong_half_rtt_ns(struct pingpong *pingpong, size_t size_bytes, unsigned round_trips);

#endif
