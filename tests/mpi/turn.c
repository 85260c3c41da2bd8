/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank whose threads share a core with others takes all that came while others had it in one
 * look, not a message a turn: two ranks, told that they are in a crowd (MCA parameter
 * mtl_velo_sleep or btl_velo_sleep).
 */
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#define MESSAGES 20
#define NEVER MESSAGES /* A tag. */

enum { BEGUN, READY, SENT };

static MPI_Win window;

/* A flag by which the ranks tell each other something without MPI, which would look for messages.
 */
static atomic_int *make_flag(int rank)
{
    MPI_Aint size_bytes;
    int unit_bytes;
    atomic_int *flag;
    MPI_Win_allocate_shared(rank == 0 ? (MPI_Aint)sizeof *flag : 0, 1, MPI_INFO_NULL,
                            MPI_COMM_WORLD, &flag, &window);
    MPI_Win_shared_query(window, 0, &size_bytes, &unit_bytes, &flag);
    if (rank == 0)
        atomic_store(flag, BEGUN);
    return flag;
}

/* Several looks in a row that find nothing. */
static void *look(void *unused)
{
    int is_there;
    (void)unused;
    for (int i = 0; i < 4; i++)
        MPI_Iprobe(0, NEVER, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
    return NULL;
}

static void wait_for(atomic_int *flag, int value)
{
    while (atomic_load(flag) != value)
        (void)sched_yield();
}

static void send_all(void)
{
    for (int i = 0; i < MESSAGES; i++)
        MPI_Send(&i, 1, MPI_INT, 1, i, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int level, rank, has_last = 1;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    atomic_int *flag = make_flag(rank);
    int values[MESSAGES];
    MPI_Request requests[MESSAGES];
    for (int i = 0; rank == 1 && i < MESSAGES; i++)
        MPI_Irecv(&values[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, &requests[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        wait_for(flag, READY);
        send_all();
        atomic_store(flag, SENT);
    } else {
        pthread_t other;
        (void)look(NULL);
        if (pthread_create(&other, NULL, look, NULL) != 0 || pthread_join(other, NULL) != 0)
            MPI_Abort(MPI_COMM_WORLD, 1);
        atomic_store(flag, READY);
        wait_for(flag, SENT);
        /* Open MPI looks once in it. */
        MPI_Test(&requests[MESSAGES - 1], &has_last, MPI_STATUS_IGNORE);
        if (!has_last)
            (void)fprintf(stderr, "turn: one look did not take all %d messages\n", MESSAGES);
        MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Win_free(&window);
    MPI_Finalize();
    return !has_last;
}
