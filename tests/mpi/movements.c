/* SPDX-License-Identifier: Apache-2.0 */
/* Broadcast, allgather and alltoall of data of any layout, to and from data of another one. */
#include "comms.h"

#include <stdlib.h>
#include <string.h>

/* Elements of three 32-bit numbers, laid out in memory in several ways. */
#define NUMBERS 3
#define RANKS_MAX 12
#define COUNT_MAX 700 /* 8,400 bytes. */
#define STRIDE_MAX 40
#define BUFFER_BYTES ((size_t)RANKS_MAX * COUNT_MAX * STRIDE_MAX + 64)
#define MARGIN 32

enum { DENSE, HOLES, TURNED, BEFORE, PIECES, LAYOUTS };

static const struct layout {
    int at[NUMBERS]; /* Where the numbers lie, in the order in which they are sent. */
    int lower, stride;
} layouts[LAYOUTS] = {
    [DENSE] = {{0, 4, 8}, 0, 12},    [HOLES] = {{0, 8, 16}, 0, 24},  [TURNED] = {{16, 8, 0}, 0, 20},
    [BEFORE] = {{-8, 0, 8}, -8, 40}, [PIECES] = {{0, 4, 12}, 0, 16},
};
static MPI_Datatype types[LAYOUTS];

static void make_types(void)
{
    for (int i = 0; i < LAYOUTS; i++) {
        const struct layout *layout = &layouts[i];
        MPI_Aint at[NUMBERS];
        MPI_Datatype numbers;
        for (int j = 0; j < NUMBERS; j++)
            at[j] = layout->at[j];
        MPI_Type_create_hindexed_block(NUMBERS, 1, at, MPI_UINT32_T, &numbers);
        MPI_Type_create_resized(numbers, layout->lower, layout->stride, &types[i]);
        MPI_Type_commit(&types[i]);
        MPI_Type_free(&numbers);
    }
}

static void free_types(void)
{
    for (int i = 0; i < LAYOUTS; i++)
        MPI_Type_free(&types[i]);
}

static uint8_t *in, *out, *wanted;
static uint32_t round_number;

static uint8_t *base(uint8_t *buffer) { return buffer + MARGIN; }

/* Put elements of a rank, from number `first` of what it sends, at element `to` of a buffer. */
static void put(uint8_t *buffer, int layout, int to, int count, int from, int first)
{
    for (int i = 0; i < count; i++)
        for (int j = 0; j < NUMBERS; j++) {
            uint32_t number =
                mixed(round_number, (uint32_t)from, (uint32_t)((first + i) * NUMBERS + j));
            long at = (long)(to + i) * layouts[layout].stride + layouts[layout].at[j];
            memcpy(base(buffer) + at, &number, sizeof number);
        }
}

static size_t used_bytes(int elements) { return (size_t)elements * STRIDE_MAX + 64; }

static void begin(int elements)
{
    round_number++;
    memset(in, 0x33, used_bytes(elements));
    memset(out, 0x44, used_bytes(elements));
    memset(wanted, 0x44, used_bytes(elements));
}

static void check_out(int elements) { CHECK(memcmp(out, wanted, used_bytes(elements)) == 0); }

static void check_bcast(MPI_Comm comm, int own, int size, int from, int to, int count)
{
    begin(count);
    int root = (int)(round_number % (uint32_t)size);
    int layout = own == root ? from : to;
    put(wanted, layout, 0, count, root, 0);
    if (own == root)
        put(out, layout, 0, count, root, 0);
    MPI_Bcast(base(out), count, types[layout], root, comm);
    check_out(count);
}

static void check_allgather(MPI_Comm comm, int own, int size, int from, int to, int count)
{
    begin(count * size);
    for (int i = 0; i < size; i++)
        put(wanted, to, i * count, count, i, 0);
    put(in, from, 0, count, own, 0);
    MPI_Allgather(base(in), count, types[from], base(out), count, types[to], comm);
    check_out(count * size);
    begin(count * size);
    for (int i = 0; i < size; i++)
        put(wanted, to, i * count, count, i, 0);
    put(out, to, own * count, count, own, 0);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, base(out), count, types[to], comm);
    check_out(count * size);
}

static void check_alltoall(MPI_Comm comm, int own, int size, int from, int to, int count)
{
    begin(count * size);
    for (int i = 0; i < size; i++)
        put(wanted, to, i * count, count, i, own * count);
    put(in, from, 0, count * size, own, 0);
    MPI_Alltoall(base(in), count, types[from], base(out), count, types[to], comm);
    check_out(count * size);
    begin(count * size);
    for (int i = 0; i < size; i++)
        put(wanted, to, i * count, count, i, own * count);
    put(out, to, 0, count * size, own, 0);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, base(out), count, types[to], comm);
    check_out(count * size);
}

static void check_layouts(MPI_Comm comm, int own, int size, int from, int to)
{
    /* 56 bytes in one line, 4096 bytes in all: below, at and above what has a way of its own. */
    static const int counts[] = {0, 1, 4, 5, 42, 341, 342, 700};
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        check_bcast(comm, own, size, from, to, counts[i]);
        check_allgather(comm, own, size, from, to, counts[i]);
        check_alltoall(comm, own, size, from, to, counts[i]);
    }
}

static void check_comm(MPI_Comm comm, int own, int size)
{
    in = must_alloc(BUFFER_BYTES);
    out = must_alloc(BUFFER_BYTES);
    wanted = must_alloc(BUFFER_BYTES);
    int before = mapped_memories();
    round_number = (uint32_t)size * 100000;
    for (int i = 0; i < LAYOUTS; i++)
        check_layouts(comm, own, size, i, (i + size) % LAYOUTS);
    CHECK_EQ(mapped_memories(), before + (size > 1));
    free(in);
    free(out);
    free(wanted);
}

TEST(data_of_any_layout_move_between_eight_ranks, 8)
{
    make_types();
    each_comm(check_comm);
    free_types();
}

/* An alltoall's blocks do not all fit then, and groups are uneven. */
TEST(data_of_any_layout_move_between_twelve_ranks, 12)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    make_types();
    check_comm(comm, rank, ranks);
    MPI_Comm_free(&comm);
    free_types();
}

static void check_bytes(MPI_Comm comm, int own, int size, int len)
{
    uint8_t *data = must_alloc((size_t)len), *all = must_alloc((size_t)len * (size_t)size);
    int root = len % size;
    fill(data, (size_t)len, (unsigned)own);
    MPI_Bcast(data, len, MPI_BYTE, root, comm);
    CHECK(filled(data, (size_t)len, (unsigned)root));
    fill(data, (size_t)len, (unsigned)own);
    MPI_Allgather(data, len, MPI_BYTE, all, len, MPI_BYTE, comm);
    for (int i = 0; i < size; i++)
        CHECK(filled(all + (size_t)i * (size_t)len, (size_t)len, (unsigned)i));
    free(data);
    free(all);
}

static void check_lengths(MPI_Comm comm, int own, int size)
{
    for (size_t i = 0; i < edge_count && edge_lengths[i] <= 20000; i++)
        check_bytes(comm, own, size, edge_lengths[i]);
}

TEST(bytes_of_every_length_move, 4) { each_comm(check_lengths); }
