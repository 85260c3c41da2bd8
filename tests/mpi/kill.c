/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank 1 dies while the others wait for it: the job must end, with an error.
 *
 *   kill ring        in the middle of large transfers from, to and around it
 *   kill ring-any    the same, received from MPI_ANY_SOURCE
 *   kill named       who waits for a message of it has never sent it anything
 *   kill any         the same from MPI_ANY_SOURCE; nothing else comes
 *   kill collective  in an allreduce
 *   kill turn        the first, but nobody dies: one says "turns" when it has begun
 *   kill stay        nobody dies, and nobody ends
 *   kill             nobody dies
 */
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define LEN (8 << 20)
#define ROUNDS_MAX 100000

static int rank, ranks;

static void die(int signum)
{
    (void)signum;
    (void)kill(getpid(), SIGKILL);
}

static void turn_ring(bool any)
{
    char *out = calloc(1, LEN), *in = calloc(1, LEN);
    if (out == NULL || in == NULL)
        MPI_Abort(MPI_COMM_WORLD, 3);
    int source = any ? MPI_ANY_SOURCE : (rank + ranks - 1) % ranks;
    for (int i = 0; i < ROUNDS_MAX; i++) {
        if (i == 1 && rank == 0) {
            (void)printf("turns\n");
            (void)fflush(stdout);
        }
        MPI_Sendrecv(out, LEN, MPI_BYTE, (rank + 1) % ranks, 0, in, LEN, MPI_BYTE, source, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void receive(int source)
{
    int value = 0;
    if (rank == 1)
        for (;;)
            pause();
    MPI_Recv(&value, 1, MPI_INT, source, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void add_up(void)
{
    double in = 1, out;
    for (int i = 0; i < ROUNDS_MAX; i++) {
        MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        (void)usleep(100);
    }
}

int main(int argc, char **argv)
{
    const char *part = argc == 2 ? argv[1] : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (strcmp(part, "stay") == 0)
        for (;;)
            pause();
    if (rank == 1 && part[0] != '\0' && strcmp(part, "turn") != 0) {
        struct itimerval soon = {.it_value = {.tv_usec = 300000}};
        (void)signal(SIGALRM, die);
        (void)setitimer(ITIMER_REAL, &soon, NULL);
    }
    if (strncmp(part, "ring", 4) == 0 || strcmp(part, "turn") == 0)
        turn_ring(strcmp(part, "ring-any") == 0);
    else if (strcmp(part, "named") == 0)
        receive(1);
    else if (strcmp(part, "any") == 0)
        receive(MPI_ANY_SOURCE);
    else if (strcmp(part, "collective") == 0)
        add_up();
    else
        MPI_Barrier(MPI_COMM_WORLD);
    if (part[0] != '\0')
        (void)printf("nobody died\n");
    MPI_Finalize();
    return 0;
}
