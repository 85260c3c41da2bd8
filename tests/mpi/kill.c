/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 1 dies in the middle of large transfers from, to and around it. Must end with an error. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

#define LEN (8 << 20)
#define ROUNDS_MAX 100000

static void die(int signum)
{
    (void)signum;
    (void)kill(getpid(), SIGKILL);
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char *out = calloc(1, LEN), *in = calloc(1, LEN);
    if (out == NULL || in == NULL)
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (rank == 1) {
        struct itimerval soon = {.it_value = {.tv_usec = 300000}};
        (void)signal(SIGALRM, die);
        (void)setitimer(ITIMER_REAL, &soon, NULL);
    }
    for (int i = 0; i < ROUNDS_MAX; i++)
        MPI_Sendrecv(out, LEN, MPI_BYTE, (rank + 1) % ranks, 0, in, LEN, MPI_BYTE,
                     (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    (void)printf("nobody died\n");
    MPI_Finalize();
    return 0;
}
