/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shapes of communication, for models of the hardware to be compared by.
 *
 *   velo-sim-shapes farm TASKS BYTES        rank 0 gives tasks to whoever has done one
 *   velo-sim-shapes barriers COUNT
 *   velo-sim-shapes halo STEPS BYTES        to both neighbours in a ring of ranks, and back
 *   velo-sim-shapes alltoall STEPS BYTES
 *   velo-sim-shapes allreduce STEPS BYTES
 *   velo-sim-shapes flood MESSAGES BYTES    all to rank 0, which begins to receive late
 *   velo-sim-shapes pingpong ROUNDS BYTES   between the first two ranks
 *
 * All bytes that arrive are checked. Rank 0 prints what the shape took it, by MPI_Wtime().
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX (1 << 20)

static int rank, ranks;
static unsigned char *out, *in;

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static void fill(unsigned char *bytes, int count, int from, int step)
{
    for (int i = 0; i < count; i++)
        bytes[i] = (unsigned char)(from * 31 + step * 7 + i);
}

static void check(const unsigned char *bytes, int count, int from, int step)
{
    for (int i = 0; i < count; i++)
        if (bytes[i] != (unsigned char)(from * 31 + step * 7 + i))
            fail("a message came with other bytes");
}

enum tag { TAG_TASK, TAG_DONE, TAG_END };

static void give_tasks(int tasks, int bytes)
{
    int given = 0, done = 0;
    for (int to = 1; to < ranks && given < tasks; to++, given++) {
        fill(out, bytes, 0, given);
        MPI_Send(out, bytes, MPI_BYTE, to, TAG_TASK, MPI_COMM_WORLD);
    }
    while (done < given) {
        MPI_Status status;
        MPI_Recv(in, bytes, MPI_BYTE, MPI_ANY_SOURCE, TAG_DONE, MPI_COMM_WORLD, &status);
        check(in, bytes, status.MPI_SOURCE, 0);
        done++;
        if (given < tasks) {
            fill(out, bytes, 0, given++);
            MPI_Send(out, bytes, MPI_BYTE, status.MPI_SOURCE, TAG_TASK, MPI_COMM_WORLD);
        }
    }
    for (int to = 1; to < ranks; to++)
        MPI_Send(NULL, 0, MPI_BYTE, to, TAG_END, MPI_COMM_WORLD);
}

static void do_tasks(int bytes)
{
    for (;;) {
        MPI_Status status;
        MPI_Recv(in, bytes, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        if (status.MPI_TAG == TAG_END)
            return;
        fill(out, bytes, rank, 0);
        MPI_Send(out, bytes, MPI_BYTE, 0, TAG_DONE, MPI_COMM_WORLD);
    }
}

static void farm(int tasks, int bytes)
{
    if (rank == 0)
        give_tasks(tasks, bytes);
    else
        do_tasks(bytes);
}

static void halo(int steps, int bytes)
{
    int up = (rank + 1) % ranks, down = (rank + ranks - 1) % ranks;
    for (int step = 0; step < steps; step++) {
        MPI_Request requests[4];
        fill(out, bytes, rank, step);
        MPI_Irecv(in, bytes, MPI_BYTE, down, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(in + bytes, bytes, MPI_BYTE, up, 1, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(out, bytes, MPI_BYTE, up, 0, MPI_COMM_WORLD, &requests[2]);
        MPI_Isend(out, bytes, MPI_BYTE, down, 1, MPI_COMM_WORLD, &requests[3]);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        check(in, bytes, down, step);
        check(in + bytes, bytes, up, step);
    }
}

static void alltoall(int steps, int bytes)
{
    for (int step = 0; step < steps; step++) {
        for (int to = 0; to < ranks; to++)
            fill(out + to * bytes, bytes, rank, step + to);
        MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
        for (int from = 0; from < ranks; from++)
            check(in + from * bytes, bytes, from, step + rank);
    }
}

static void allreduce(int steps, int bytes)
{
    int words = bytes / (int)sizeof(int);
    int *mine = (int *)(void *)out, *sum = (int *)(void *)in;
    for (int step = 0; step < steps; step++) {
        for (int i = 0; i < words; i++)
            mine[i] = rank + i + step;
        MPI_Allreduce(mine, sum, words, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < words; i++)
            if (sum[i] != ranks * (i + step) + ranks * (ranks - 1) / 2)
                fail("a sum is wrong");
    }
}

static void flood(int messages, int bytes)
{
    if (rank == 0) {
        double begin = MPI_Wtime();
        while (MPI_Wtime() - begin < 1e-4)
            ;
        for (int i = 0; i < messages * (ranks - 1); i++) {
            MPI_Status status;
            MPI_Recv(in, bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            check(in, bytes, status.MPI_SOURCE, status.MPI_TAG);
        }
        return;
    }
    for (int i = 0; i < messages; i++) {
        fill(out, bytes, rank, i % 100);
        MPI_Send(out, bytes, MPI_BYTE, 0, i % 100, MPI_COMM_WORLD);
    }
}

static void pingpong(int rounds, int bytes)
{
    if (rank > 1)
        return;
    for (int round = 0; round < rounds; round++) {
        fill(out, bytes, rank, round);
        if (rank == 0)
            MPI_Send(out, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(in, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check(in, bytes, 1 - rank, round);
        if (rank == 1)
            MPI_Send(out, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
}

static void barriers(int count)
{
    for (int i = 0; i < count; i++)
        MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char *shape = argc > 1 ? argv[1] : "";
    int count = argc > 2 ? atoi(argv[2]) : 0, bytes = argc > 3 ? atoi(argv[3]) : 0;
    if (count < 1 || bytes < 0 || bytes > BYTES_MAX)
        fail("velo-sim-shapes SHAPE COUNT [BYTES]");
    out = malloc((size_t)BYTES_MAX * (size_t)ranks);
    in = malloc((size_t)BYTES_MAX * (size_t)(ranks + 2));
    if (!out || !in)
        fail("no memory");
    double begin = MPI_Wtime();
    if (strcmp(shape, "farm") == 0)
        farm(count, bytes);
    else if (strcmp(shape, "barriers") == 0)
        barriers(count);
    else if (strcmp(shape, "halo") == 0)
        halo(count, bytes);
    else if (strcmp(shape, "alltoall") == 0)
        alltoall(count, bytes);
    else if (strcmp(shape, "allreduce") == 0)
        allreduce(count, bytes);
    else if (strcmp(shape, "flood") == 0)
        flood(count, bytes);
    else if (strcmp(shape, "pingpong") == 0)
        pingpong(count, bytes);
    else
        fail("there is no such shape");
    if (rank == 0)
        printf("%s took %.3f us\n", shape, (MPI_Wtime() - begin) * 1e6);
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
