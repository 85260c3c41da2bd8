/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One-sided operations on memory that lies at no place of its own: on the stack, and in allocations
 * of a few bytes to some pages. How long the node takes for them depends on where that is.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX 20000
#define ROUNDS 24
#define KEPT 7

static _Noreturn void fail(const char *what, int len_bytes)
{
    (void)fprintf(stderr, "%d bytes: %s\n", len_bytes, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

static unsigned char *allocate(int len_bytes)
{
    unsigned char *bytes = malloc((size_t)len_bytes);
    if (!bytes)
        fail("no memory", len_bytes);
    return bytes;
}

static void fill(unsigned char *bytes, int len_bytes, int seed)
{
    for (int i = 0; i < len_bytes; i++)
        bytes[i] = (unsigned char)(i * 7 + seed);
}

static void put_and_get(MPI_Win window, unsigned char *bytes, int len_bytes, int peer, int seed)
{
    fill(bytes, len_bytes, seed);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, peer, 0, window);
    MPI_Put(bytes, len_bytes, MPI_BYTE, peer, 0, len_bytes, MPI_BYTE, window);
    MPI_Win_flush(peer, window);
    memset(bytes, 0, (size_t)len_bytes);
    MPI_Get(bytes, len_bytes, MPI_BYTE, peer, 0, len_bytes, MPI_BYTE, window);
    MPI_Win_unlock(peer, window);
    unsigned char *wanted = allocate(len_bytes);
    fill(wanted, len_bytes, seed);
    if (memcmp(bytes, wanted, (size_t)len_bytes) != 0)
        fail("they came back changed", len_bytes);
    free(wanted);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank;
    int ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    unsigned char *exposed = allocate(BYTES_MAX);
    MPI_Win window;
    MPI_Win_create(exposed, BYTES_MAX, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    int peer = (rank + 1) % ranks;
    unsigned char *kept[KEPT] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        unsigned char on_stack[3000];
        put_and_get(window, on_stack, 1 + round * 113, peer, rank + round);
        unsigned char **allocated = &kept[round % KEPT];
        free(*allocated);
        int len_bytes = 40 + round * round * 30;
        *allocated = allocate(len_bytes);
        put_and_get(window, *allocated, len_bytes, peer, rank + round);
    }
    MPI_Win_free(&window);
    for (int i = 0; i < KEPT; i++)
        free(kept[i]);
    free(exposed);
    MPI_Finalize();
    return 0;
}
