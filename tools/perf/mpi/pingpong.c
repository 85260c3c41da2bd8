/* SPDX-License-Identifier: Apache-2.0 */
#include "pingpong.h"

#include "clock.h"

#include <stdlib.h>

#define WARM_ROUND_TRIPS 4u

void pingpong_init(struct pingpong *pingpong, const struct session *session, size_t size_bytes)
{
    *pingpong = (struct pingpong){
        .rank = session->rank, .out = session_buffer(size_bytes), .in = session_buffer(size_bytes)};
}

void pingpong_free(struct pingpong *pingpong)
{
    free(pingpong->out);
    free(pingpong->in);
}

void pingpong_run(struct pingpong *pingpong, size_t size_bytes, unsigned round_trips)
{
    int count = (int)size_bytes;
    for (unsigned i = 0; i < round_trips; i++) {
        if (pingpong->rank == 0) {
            MPI_Send(pingpong->out, count, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(pingpong->in, count, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (pingpong->rank == 1) {
            MPI_Recv(pingpong->in, count, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(pingpong->out, count, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
    }
}

double pingpong_half_rtt_ns(struct pingpong *pingpong, size_t size_bytes, unsigned round_trips)
{
    pingpong_run(pingpong, size_bytes, WARM_ROUND_TRIPS);
    uint64_t begin_ns = now_ns();
    pingpong_run(pingpong, size_bytes, round_trips);
    return (double)(now_ns() - begin_ns) / 2.0 / round_trips;
}
