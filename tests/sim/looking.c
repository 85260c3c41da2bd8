/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that asks MPI whether something has come, and goes on: asking costs what polls cost,
 * whoever asks in vain is not kept until something comes. Two ranks; exit code 1 and a line if not.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>

#define LOOKS 100
#define LATE_S 1.0
/* A look is a poll, 30 ns, and what MPI makes of it; far less than until the message comes. */
#define LOOK_MAX_S 1e-6

static MPI_Request request = MPI_REQUEST_NULL;
static int found, indices[1], index_found;
static MPI_Message message;

static void look_test(void) { MPI_Test(&request, &found, MPI_STATUS_IGNORE); }
static void look_testall(void) { MPI_Testall(1, &request, &found, MPI_STATUSES_IGNORE); }

static void look_testany(void)
{
    MPI_Testany(1, &request, &index_found, &found, MPI_STATUS_IGNORE);
}

static void look_testsome(void) { MPI_Testsome(1, &request, &found, indices, MPI_STATUSES_IGNORE); }

static void look_status(void) { MPI_Request_get_status(request, &found, MPI_STATUS_IGNORE); }
static void look_probe(void) { MPI_Iprobe(1, 0, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE); }

static void look_mprobe(void)
{
    MPI_Improbe(1, 0, MPI_COMM_WORLD, &found, &message, MPI_STATUS_IGNORE);
}

static void look_from_fortran(void) { PMPI_Test(&request, &found, MPI_STATUS_IGNORE); }

static const struct look {
    const char *name;
    void (*look)(void);
    bool posts; /* A receive, before; else it is received after. */
} looks[] = {
    {"MPI_Test", look_test, true},
    {"MPI_Testall", look_testall, true},
    {"MPI_Testany", look_testany, true},
    {"MPI_Testsome", look_testsome, true},
    {"MPI_Request_get_status", look_status, true},
    {"MPI_Iprobe", look_probe, false},
    {"MPI_Improbe", look_mprobe, false},
    {"PMPI_Test", look_from_fortran, true},
};

/* Rank 1 sleeps, then sends; rank 0 looks, and its clock shows how long that took. */
static bool run(const struct look *look)
{
    double begin = MPI_Wtime();
    if (look->posts)
        MPI_Irecv(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
    for (int i = 0; i < LOOKS; i++) {
        look->look();
        if (found)
            break;
    }
    double took = MPI_Wtime() - begin;
    if (found || took > LOOKS * LOOK_MAX_S)
        (void)printf("%s: %d looks took %g s\n", look->name, LOOKS, took);
    if (look->posts)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    else
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    double came = MPI_Wtime() - begin;
    if (came < LATE_S)
        (void)printf("%s: the message came after %g s\n", look->name, came);
    return !found && took <= LOOKS * LOOK_MAX_S && came >= LATE_S;
}

static void send_late(void)
{
    double until = MPI_Wtime() + LATE_S;
    while (MPI_Wtime() < until)
        (void)thrd_sleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    bool is_right = true;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            is_right = run(&looks[i]) && is_right;
        else
            send_late();
    }
    MPI_Finalize();
    return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
