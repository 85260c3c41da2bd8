/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two ranks that use velo's components for Open MPI once. Scene windows: messages of each length,
 * of gaps, into remote memory, a few collectives. Scene collectives: each that shared memory has. A
 * rank whose call of the system fails goes on, or the job ends.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONG_BYTES = 1 << 20, BLOCKS = 2000, BLOCK = 100, STRIDE = 120, WRONG = 4 };

static unsigned char data[LONG_BYTES], got[LONG_BYTES];
static int rank;

static void expect(int is_right, const char *what)
{
    if (is_right)
        return;
    (void)fprintf(stderr, "wrong: rank %d: %s\n", rank, what);
    (void)MPI_Abort(MPI_COMM_WORLD, WRONG);
}

static void exchange(int len, int tag)
{
    MPI_Request requests[2];
    memset(got, 0, sizeof got);
    MPI_Irecv(got, len, MPI_BYTE, !rank, tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(data, len, MPI_BYTE, !rank, tag, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    expect(memcmp(got, data, (size_t)len) == 0, "a message's bytes");
}

/* The receive is posted late: the message is kept, or its sender waits. */
static void exchange_unexpected(int len, int tag)
{
    MPI_Request request;
    MPI_Status status;
    memset(got, 0, sizeof got);
    MPI_Isend(data, len, MPI_BYTE, !rank, tag, MPI_COMM_WORLD, &request);
    MPI_Probe(!rank, tag, MPI_COMM_WORLD, &status);
    MPI_Recv(got, len, MPI_BYTE, !rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(memcmp(got, data, (size_t)len) == 0, "an unexpected message's bytes");
}

static void exchange_gaps(void)
{
    MPI_Datatype type;
    MPI_Type_create_hvector(BLOCKS, BLOCK, STRIDE, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    memset(got, 0, sizeof got);
    MPI_Sendrecv(data, 1, type, !rank, 9, got, 1, type, !rank, 9, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (size_t i = 0; i < BLOCKS; i++)
        expect(memcmp(got + i * STRIDE, data + i * STRIDE, BLOCK) == 0, "a block's bytes");
    MPI_Type_free(&type);
}

static void put_and_get(void)
{
    MPI_Win window;
    unsigned char *memory;
    MPI_Win_allocate(LONG_BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, (void *)&memory, &window);
    memset(memory, 0, LONG_BYTES);
    MPI_Win_fence(0, window);
    MPI_Put(data, LONG_BYTES, MPI_BYTE, !rank, 0, LONG_BYTES, MPI_BYTE, window);
    MPI_Win_fence(0, window);
    expect(memcmp(memory, data, LONG_BYTES) == 0, "the bytes of a put");
    memset(got, 0, sizeof got);
    MPI_Get(got, LONG_BYTES, MPI_BYTE, !rank, 0, LONG_BYTES, MPI_BYTE, window);
    MPI_Win_fence(0, window);
    expect(memcmp(got, data, LONG_BYTES) == 0, "the bytes of a get");
    MPI_Win_free(&window);
}

static void collect(void)
{
    int sum = 0, mine = rank + 1;
    for (int i = 0; i < 20; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        expect(sum == 3, "a sum");
    }
    memset(got, 0, sizeof got);
    if (rank == 0)
        memcpy(got, data, sizeof got);
    MPI_Bcast(got, LONG_BYTES, MPI_BYTE, 0, MPI_COMM_WORLD);
    expect(memcmp(got, data, LONG_BYTES) == 0, "the bytes of a broadcast");
}

static void add(void *from, void *to, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < 2 * *count; i += 2)
        ((int *)to)[i] += ((int *)from)[i];
}

/* Numbers of gaps, which are unpacked before they are added. */
static void collect_gaps(MPI_Comm comm)
{
    enum { COUNT = 100 };
    int mine[2 * COUNT], sums[2 * COUNT] = {0};
    MPI_Datatype type;
    MPI_Op sum;
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &type);
    MPI_Type_commit(&type);
    MPI_Op_create(add, 1, &sum);
    for (int i = 0; i < 2 * COUNT; i++)
        mine[i] = (rank + 1) * i;
    for (int root = 0; root < 2; root++) {
        MPI_Reduce(mine, sums, COUNT, type, sum, root, comm);
        for (int i = 0; i < 2 * COUNT; i += 2)
            expect(rank != root || sums[i] == 3 * i, "the numbers of a reduction");
    }
    MPI_Bcast(mine, COUNT, type, 0, comm);
    for (int i = 0; i < 2 * COUNT; i += 2)
        expect(mine[i] == i, "the numbers of a broadcast");
    MPI_Op_free(&sum);
    MPI_Type_free(&type);
}

/* Blocks that fit into a line, into a bank, and into two. */
static void collect_blocks(MPI_Comm comm)
{
    static const int lens[] = {8, 1000, 4096};
    for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
        size_t len = (size_t)lens[i];
        MPI_Allgather(data + rank * lens[i], lens[i], MPI_BYTE, got, lens[i], MPI_BYTE, comm);
        expect(memcmp(got, data, 2 * len) == 0, "the bytes of an allgather");
        MPI_Alltoall(data, lens[i], MPI_BYTE, got, lens[i], MPI_BYTE, comm);
        expect(memcmp(got, data + (size_t)rank * len, len) == 0 &&
                   memcmp(got + len, data + (size_t)rank * len, len) == 0,
               "the bytes of an alltoall");
    }
}

static void collect_over(MPI_Comm comm)
{
    collect_blocks(comm);
    collect_gaps(comm);
}

/* A communicator more has memory of its own. */
static void collect_all(void)
{
    MPI_Comm other;
    collect_over(MPI_COMM_WORLD);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    collect_over(other);
    MPI_Comm_free(&other);
}

static void send_all(void)
{
    static const int lens[] = {0, 8, 3000, 50000, LONG_BYTES};
    for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
        exchange(lens[i], (int)i);
        exchange_unexpected(lens[i], (int)i);
    }
    exchange_gaps();
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 7 + i / 256);
    if (argc > 1 && strcmp(argv[1], "windows") == 0) {
        send_all();
        put_and_get();
    } else {
        collect_all();
    }
    collect();
    MPI_Finalize();
    return 0;
}
