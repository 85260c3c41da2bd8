/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Started with ports that have room for one connection (mtl_velo_conns 1, btl_velo_conns 1):
 * rank 2 takes that of rank 0, so rank 1 cannot answer rank 0, which waits for that.
 */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, len_bytes = argc > 1 ? atoi(argv[1]) : 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *data = calloc(1, (size_t)len_bytes);
    if (rank == 2)
        MPI_Send(data, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Recv(data, 1, MPI_CHAR, 2, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Ssend(data, len_bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    }
    if (rank == 1) /* The sender must hear of it by itself. */
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 1)
        MPI_Recv(data, len_bytes, MPI_CHAR, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank > 0) /* They make progress, and wait for what does not come. */
        MPI_Recv(data, 1, MPI_CHAR, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    free(data);
    MPI_Finalize();
    return 0;
}
