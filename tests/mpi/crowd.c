/* SPDX-License-Identifier: Apache-2.0 */
/* More ranks than cores. */
#include "mpi_test.h"

#include <stdlib.h>

TEST(eight_ranks_exchange_large_blocks, 8)
{
    enum { BLOCK = 200001 };
    char *out = must_alloc((size_t)BLOCK * 8), *in = must_alloc((size_t)BLOCK * 8);
    for (unsigned round = 0; round < 3; round++) {
        for (int to = 0; to < ranks; to++)
            fill(out + (size_t)to * BLOCK, BLOCK, (unsigned)(rank * 8 + to) + round);
        MPI_Alltoall(out, BLOCK, MPI_BYTE, in, BLOCK, MPI_BYTE, MPI_COMM_WORLD);
        for (int from = 0; from < ranks; from++)
            CHECK(filled(in + (size_t)from * BLOCK, BLOCK, (unsigned)(from * 8 + rank) + round));
    }
    free(out);
    free(in);
}

TEST(eight_ranks_add_up_small_values, 8)
{
    for (int round = 0; round < 500; round++) {
        long value = rank + round, sum;
        MPI_Allreduce(&value, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        CHECK_EQ(sum, 28 + 8L * round);
    }
}

TEST(a_ring_of_eight_ranks_keeps_turning, 8)
{
    int token = 0;
    for (int round = 0; round < 200; round++) {
        if (rank == 0) {
            token++;
            MPI_Send(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(&token, 1, MPI_INT, 7, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK_EQ(token, 8 * (round + 1));
        } else {
            MPI_Recv(&token, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            token++;
            MPI_Send(&token, 1, MPI_INT, (rank + 1) % 8, 0, MPI_COMM_WORLD);
        }
    }
}
