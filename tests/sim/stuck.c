/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank 1 waits for a message that nobody sends. What rank 0 does meanwhile is the argument:
 * "leaves" (it ends MPI), "waits" (for rank 1), or "dies".
 */
#include <mpi.h>
#include <signal.h>
#include <string.h>

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    int rank, got;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0 && strcmp(how, "dies") == 0)
        (void)raise(SIGKILL);
    if (rank == 1 || strcmp(how, "waits") == 0)
        MPI_Recv(&got, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
