/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two ranks that use velo's components for Open MPI once: messages of each length, of gaps, into
 * remote memory, collectives. A rank whose call of the system fails goes on, or the job ends.
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

int main(int argc, char **argv)
{
    static const int lens[] = {0, 8, 3000, 50000, LONG_BYTES};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 7 + i / 256);
    for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
        exchange(lens[i], (int)i);
        exchange_unexpected(lens[i], (int)i);
    }
    exchange_gaps();
    if (argc > 1 && strcmp(argv[1], "windows") == 0)
        put_and_get();
    collect();
    MPI_Finalize();
    return 0;
}
