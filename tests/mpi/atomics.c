/* SPDX-License-Identifier: Apache-2.0 */
/* Accumulates and their kin: every operation on every type that they have. */
#include "mpi_test.h"

#include <complex.h>
#include <stdlib.h>
#include <string.h>

/* The longest type. */
#define VALUE_BYTES 8

struct kind {
    MPI_Datatype type;
    size_t len_bytes;
    bool is_integer;
    bool is_complex;
    char there[VALUE_BYTES], operand[VALUE_BYTES];
};

#define KIND(mpi, c, is_integer_, is_complex_, there_, operand_)                                   \
    kind.type = (mpi);                                                                             \
    kind.len_bytes = sizeof(c);                                                                    \
    kind.is_integer = (is_integer_);                                                               \
    kind.is_complex = (is_complex_);                                                               \
    memcpy(kind.there, &(c){there_}, sizeof(c));                                                   \
    memcpy(kind.operand, &(c){operand_}, sizeof(c));                                               \
    return kind

enum { KINDS = 7 };

/* Values that tell signed from unsigned, and integers from floats. */
static struct kind kind_of(int index)
{
    struct kind kind = {0};
    switch (index) {
    case 0:
        KIND(MPI_INT32_T, int32_t, true, false, -5, 12);
    case 1:
        KIND(MPI_UINT32_T, uint32_t, true, false, UINT32_MAX - 4, 12);
    case 2:
        KIND(MPI_INT64_T, int64_t, true, false, -5, INT64_C(12) << 32);
    case 3:
        KIND(MPI_UINT64_T, uint64_t, true, false, UINT64_MAX - 4, UINT64_C(12) << 32);
    case 4:
        KIND(MPI_FLOAT, float, false, false, -1.5F, -2.25F);
    case 5:
        KIND(MPI_DOUBLE, double, false, false, -1.5, -2.25);
    default:
        KIND(MPI_C_FLOAT_COMPLEX, float complex, false, true, 1.5F + 2.0F * I, -2.25F + 0.5F * I);
    }
}

static bool has(const struct kind *kind, MPI_Op op)
{
    if (op == MPI_REPLACE || op == MPI_NO_OP || op == MPI_SUM || op == MPI_PROD)
        return true;
    return op == MPI_MIN || op == MPI_MAX ? !kind->is_complex : kind->is_integer;
}

/* The value afterwards, by the rules of all other reductions. */
static void expect(const struct kind *kind, MPI_Op op, char *expected)
{
    memcpy(expected, op == MPI_REPLACE ? kind->operand : kind->there, kind->len_bytes);
    if (op != MPI_REPLACE && op != MPI_NO_OP)
        MPI_Reduce_local(kind->operand, expected, 1, kind->type, op);
}

enum call { ACCUMULATE, GET_ACCUMULATE, FETCH_AND_OP, CALLS };

static void call(enum call which, const struct kind *kind, MPI_Op op, char *old, MPI_Win window)
{
    const char *operand = kind->operand;
    MPI_Datatype type = kind->type;
    if (which == ACCUMULATE)
        MPI_Accumulate(operand, 1, type, 1, 1, 1, type, op, window);
    else if (which == GET_ACCUMULATE)
        MPI_Get_accumulate(operand, 1, type, old, 1, type, 1, 1, 1, type, op, window);
    else
        MPI_Fetch_and_op(operand, old, type, 1, 1, op, window);
}

static void check(enum call which, const struct kind *kind, MPI_Op op)
{
    char *memory = must_alloc(3 * VALUE_BYTES), old[VALUE_BYTES] = {0}, expected[VALUE_BYTES];
    size_t len_bytes = kind->len_bytes;
    MPI_Win window;
    if (which == ACCUMULATE && op == MPI_NO_OP)
        return;
    memset(memory, 0x77, 3 * VALUE_BYTES);
    memcpy(memory + len_bytes, kind->there, len_bytes);
    MPI_Win_create(memory, 3 * VALUE_BYTES, (int)len_bytes, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    if (rank == 0)
        call(which, kind, op, old, window);
    MPI_Win_fence(0, window);
    expect(kind, op, expected);
    CHECK(rank == 0 || memcmp(memory + len_bytes, expected, len_bytes) == 0);
    CHECK(rank == 1 || which == ACCUMULATE || memcmp(old, kind->there, len_bytes) == 0);
    for (size_t i = 0; i < 3 * VALUE_BYTES; i++)
        CHECK(i / len_bytes == 1 || memory[i] == 0x77);
    MPI_Win_free(&window);
    free(memory);
}

/* Of one call: with which operations it is done. */
static void check_all(enum call which)
{
    const MPI_Op ops[] = {MPI_SUM,  MPI_PROD, MPI_MIN, MPI_MAX,  MPI_BAND,    MPI_BOR,
                          MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR, MPI_REPLACE, MPI_NO_OP};
    for (int i = 0; i < KINDS; i++) {
        struct kind kind = kind_of(i);
        for (size_t o = 0; o < ARRAY_LEN(ops); o++)
            if (has(&kind, ops[o]))
                check(which, &kind, ops[o]);
    }
}

TEST(accumulate_has_every_operation, 2) { check_all(ACCUMULATE); }
TEST(get_accumulate_has_every_operation, 2) { check_all(GET_ACCUMULATE); }
TEST(fetch_and_op_has_every_operation, 2) { check_all(FETCH_AND_OP); }

TEST(accumulate_reaches_words_that_are_not_aligned, 2)
{
    char *memory = must_alloc(24);
    const int64_t add = INT64_C(3) << 40, before = 5;
    int64_t old = 0, now;
    MPI_Win window;
    for (int at = 1; at < 8; at++) {
        memset(memory, 0, 24);
        memcpy(memory + at, &before, sizeof before);
        MPI_Win_create(memory, 24, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
        MPI_Win_fence(0, window);
        if (rank == 0)
            MPI_Fetch_and_op(&add, &old, MPI_INT64_T, 1, at, MPI_SUM, window);
        MPI_Win_fence(0, window);
        memcpy(&now, memory + at, sizeof now);
        CHECK_EQ(now, rank == 1 ? before + add : before);
        CHECK_EQ(old, rank == 0 ? before : 0);
        MPI_Win_free(&window);
    }
    free(memory);
}

TEST(compare_and_swap_swaps_only_what_is_as_compared, 2)
{
    for (int i = 0; i < 4; i++) {
        struct kind kind = kind_of(i);
        char memory[VALUE_BYTES], old[2][VALUE_BYTES] = {{0}};
        MPI_Win window;
        memcpy(memory, kind.there, VALUE_BYTES);
        MPI_Win_create(memory, VALUE_BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
        if (rank == 0) {
            MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
            MPI_Compare_and_swap(kind.operand, kind.operand, old[0], kind.type, 1, 0, window);
            MPI_Win_flush(1, window);
            MPI_Compare_and_swap(kind.operand, kind.there, old[1], kind.type, 1, 0, window);
            MPI_Win_unlock(1, window);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK(rank == 1 || memcmp(old[0], kind.there, kind.len_bytes) == 0);
        CHECK(rank == 1 || memcmp(old[1], kind.there, kind.len_bytes) == 0);
        CHECK(memcmp(memory, rank == 1 ? kind.operand : kind.there, kind.len_bytes) == 0);
        MPI_Win_free(&window);
    }
}

/* Words of four types, which everybody updates at once. */
struct words {
    int32_t sum;
    uint32_t bits;
    uint64_t max;
    double doubles;
};

TEST(operations_of_everybody_at_once_lose_nothing, 4)
{
    enum { ROUNDS = 100, FRACTIONS = 4 };
    struct words mine = {0}, old;
    const int32_t one = 1;
    const double fraction = 1.0 / FRACTIONS;
    const uint32_t bit = UINT32_C(1) << rank;
    MPI_Win window;
    MPI_Win_create(&mine, sizeof mine, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_lock_all(0, window);
    for (int i = 1; i <= ROUNDS; i++) {
        const uint64_t value = (uint64_t)(i * ranks + rank) << 56;
        MPI_Fetch_and_op(&one, &old.sum, MPI_INT32_T, 0, offsetof(struct words, sum), MPI_SUM,
                         window);
        MPI_Fetch_and_op(&bit, &old.bits, MPI_UINT32_T, 0, offsetof(struct words, bits), MPI_BXOR,
                         window);
        MPI_Accumulate(&value, 1, MPI_UINT64_T, 0, offsetof(struct words, max), 1, MPI_UINT64_T,
                       MPI_MAX, window);
        MPI_Accumulate(&fraction, 1, MPI_DOUBLE, 0, offsetof(struct words, doubles), 1, MPI_DOUBLE,
                       MPI_SUM, window);
        MPI_Win_flush(0, window);
        /* Nobody else turns this rank's bit. */
        CHECK_EQ((old.bits & bit) != 0, i % 2 == 0);
    }
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        CHECK_EQ(mine.sum, ranks * ROUNDS);
        CHECK_EQ(mine.bits, 0);
        CHECK_EQ(mine.max >> 56, 255);
        CHECK_EQ(mine.doubles, ranks * ROUNDS / FRACTIONS);
    }
    MPI_Win_free(&window);
}
