/* SPDX-License-Identifier: Apache-2.0 */
/* One-sided communication. */
#include "mpi_test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define WINDOW_BYTES (2 << 20)

static MPI_Win make_window(bool allocated, void **base)
{
    MPI_Win window;
    if (allocated) {
        MPI_Win_allocate(WINDOW_BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, base, &window);
    } else {
        *base = must_alloc(WINDOW_BYTES);
        MPI_Win_create(*base, WINDOW_BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    }
    memset(*base, 0, WINDOW_BYTES);
    MPI_Barrier(MPI_COMM_WORLD);
    return window;
}

static void end_window(MPI_Win *window, bool allocated, void *base)
{
    MPI_Win_free(window);
    if (!allocated)
        free(base);
}

static void put_and_get(bool allocated)
{
    void *base;
    MPI_Win window = make_window(allocated, &base);
    int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
    for (size_t i = 0; i < edge_count; i++) {
        int len_bytes = edge_lengths[i];
        char *buf = must_alloc((size_t)len_bytes), *back = must_alloc((size_t)len_bytes);
        fill(buf, (size_t)len_bytes, (unsigned)rank);
        MPI_Win_fence(0, window);
        MPI_Put(buf, len_bytes, MPI_BYTE, to, 3, len_bytes, MPI_BYTE, window);
        MPI_Win_fence(0, window);
        CHECK(filled((char *)base + 3, (size_t)len_bytes, (unsigned)from));
        MPI_Get(back, len_bytes, MPI_BYTE, to, 3, len_bytes, MPI_BYTE, window);
        MPI_Win_fence(0, window);
        CHECK(filled(back, (size_t)len_bytes, (unsigned)rank));
        free(buf);
        free(back);
    }
    end_window(&window, allocated, base);
}

TEST(put_and_get_reach_created_windows, 4) { put_and_get(false); }
TEST(put_and_get_reach_allocated_windows, 4) { put_and_get(true); }

static void count_up(bool allocated)
{
    enum { ROUNDS = 200 };
    void *base;
    MPI_Win window = make_window(allocated, &base);
    uint64_t one = 1, old, last = 0;
    MPI_Win_lock_all(0, window);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Fetch_and_op(&one, &old, MPI_UINT64_T, 0, 8, MPI_SUM, window);
        MPI_Win_flush(0, window);
        CHECK(i == 0 || old > last);
        last = old;
        /* A counter that is raised by compare and swap. */
        uint64_t seen = 0, next, result;
        for (;;) {
            next = seen + 1;
            MPI_Compare_and_swap(&next, &seen, &result, MPI_UINT64_T, 0, 16, window);
            MPI_Win_flush(0, window);
            if (result == seen)
                break;
            seen = result;
        }
        MPI_Accumulate(&one, 1, MPI_UINT64_T, 0, 24, 1, MPI_UINT64_T, MPI_SUM, window);
    }
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
        for (size_t at = 1; at <= 3; at++)
            CHECK_EQ(((uint64_t *)base)[at], (uint64_t)ranks * ROUNDS);
        MPI_Win_unlock(0, window);
    }
    end_window(&window, allocated, base);
}

TEST(atomics_on_created_windows_lose_nothing, 4) { count_up(false); }
TEST(atomics_on_allocated_windows_lose_nothing, 4) { count_up(true); }

TEST(accumulate_adds_what_everybody_sends, 4)
{
    enum { N = 20000 };
    void *base;
    MPI_Win window = make_window(false, &base);
    double *ones = must_alloc(N * sizeof *ones);
    for (int i = 0; i < N; i++)
        ones[i] = i % 7 + rank;
    MPI_Win_fence(0, window);
    for (int to = 0; to < ranks; to++)
        MPI_Accumulate(ones, N, MPI_DOUBLE, to, 0, N, MPI_DOUBLE, MPI_SUM, window);
    MPI_Win_fence(0, window);
    for (int i = 0; i < N; i++)
        CHECK_EQ(((double *)base)[i], ranks * (i % 7) + ranks * (ranks - 1) / 2);
    end_window(&window, false, base);
    free(ones);
}

TEST(an_exclusive_lock_excludes, 4)
{
    void *base;
    MPI_Win window = make_window(false, &base);
    for (int i = 0; i < 50; i++) {
        int value;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window);
        MPI_Get(&value, 1, MPI_INT, 1, 0, 1, MPI_INT, window);
        MPI_Win_flush(1, window);
        value++;
        MPI_Put(&value, 1, MPI_INT, 1, 0, 1, MPI_INT, window);
        MPI_Win_unlock(1, window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
        CHECK_EQ(*(int *)base, 50 * ranks);
        MPI_Win_unlock(1, window);
    }
    end_window(&window, false, base);
}

static uint64_t word_of(int from, int to) { return 100 * (uint64_t)from + (uint64_t)to; }

TEST(each_rank_puts_into_each_other, 7)
{
    enum { RANKS = 7 };
    uint64_t *base, own[RANKS];
    MPI_Win window;
    CHECK(ranks == RANKS);
    MPI_Win_allocate(sizeof own, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
    for (int i = 0; i < RANKS; i++)
        base[i] = own[i] = word_of(rank, i);
    MPI_Win_fence(0, window);
    for (int to = 0; to < RANKS; to++)
        MPI_Put(&own[to], 1, MPI_UINT64_T, to, rank, 1, MPI_UINT64_T, window);
    MPI_Win_fence(0, window);
    for (int from = 0; from < RANKS; from++)
        CHECK_EQ(base[from], word_of(from, rank));
    MPI_Win_free(&window);
}

/* ctest looks for the sentence that says why. */
TEST(a_get_to_where_no_memory_is_ends_the_job, 2)
{
    void *base, *nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MPI_Win window = make_window(false, &base);
    CHECK(nowhere != MAP_FAILED);
    MPI_Win_lock_all(0, window);
    MPI_Get(nowhere, 8, MPI_BYTE, 1 - rank, 0, 8, MPI_BYTE, window);
    MPI_Win_unlock_all(window);
}

/* ---- dynamic windows ------------------------------------------------------------------------- */

/* Attached memory: a region that stays, among others that come and go on both sides of it. */
enum { REGIONS = 32, REGION_BYTES = 16384, STAYS = REGIONS / 2 };

/* Offsets in the region that stays. */
enum { AT_SUM = 6000, AT_SWAP = 6008, AT_REPLACED = 6016, AT_PUTS = 7000 };

static char *region(char *pool, int index) { return pool + (size_t)index * REGION_BYTES; }

static void update_neighbour(int to, MPI_Aint base, MPI_Win window)
{
    const uint64_t one = 1, two = 2;
    uint64_t old;
    MPI_Fetch_and_op(&one, &old, MPI_UINT64_T, to, base + AT_SUM, MPI_SUM, window);
    MPI_Win_flush(to, window);
    MPI_Compare_and_swap(&one, &one, &old, MPI_UINT64_T, to, base + AT_SWAP, window);
    MPI_Win_flush(to, window);
    CHECK_EQ(old, 1);
    MPI_Get_accumulate(&two, 1, MPI_UINT64_T, &old, 1, MPI_UINT64_T, to, base + AT_REPLACED, 1,
                       MPI_UINT64_T, MPI_REPLACE, window);
    MPI_Win_flush(to, window);
    CHECK_EQ(old, 2);
    MPI_Put(&one, 1, MPI_UINT64_T, to, base + AT_PUTS + 8 * rank, 1, MPI_UINT64_T, window);
    MPI_Win_flush(to, window);
    MPI_Get(&old, 1, MPI_UINT64_T, to, base + AT_PUTS + 8 * rank, 1, MPI_UINT64_T, window);
    MPI_Win_flush(to, window);
    CHECK_EQ(old, 1);
}

/* osc/rdma leaves the table of a window's regions where all ranks of a node read it, and moves what
 * stands in it while they do, unless they take turns. */
static void come_and_go(bool is_exclusive, bool in_turns)
{
    enum { ROUNDS = 300 };
    char *pool = aligned_alloc(4096, (size_t)REGIONS * REGION_BYTES), *own;
    MPI_Aint bases[8], base;
    MPI_Win window;
    CHECK(pool != NULL && ranks <= (int)ARRAY_LEN(bases));
    memset(pool, 0, (size_t)REGIONS * REGION_BYTES);
    own = region(pool, STAYS);
    memcpy(own + AT_SWAP, &(uint64_t){1}, 8);
    memcpy(own + AT_REPLACED, &(uint64_t){2}, 8);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_attach(window, own, REGION_BYTES / 2);
    MPI_Get_address(own, &base);
    MPI_Allgather(&base, 1, MPI_AINT, bases, 1, MPI_AINT, MPI_COMM_WORLD);
    if (!is_exclusive)
        MPI_Win_lock_all(0, window);
    for (int i = 0; i < ROUNDS; i++) {
        int other = (i * 7 + rank) % (REGIONS - 1), to = (rank + 1) % ranks;
        char *comes = region(pool, other < STAYS ? other : other + 1);
        MPI_Win_attach(window, comes, REGION_BYTES / 2);
        if (in_turns)
            MPI_Barrier(MPI_COMM_WORLD);
        if (is_exclusive)
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, window);
        update_neighbour(to, bases[to], window);
        if (is_exclusive)
            MPI_Win_unlock(to, window);
        if (in_turns)
            MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_detach(window, comes);
    }
    if (!is_exclusive)
        MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(*(uint64_t *)(void *)(own + AT_SUM), ROUNDS);
    for (int i = 0; i < REGIONS; i++)
        for (int at = 0; at < REGION_BYTES && i != STAYS; at++)
            CHECK_EQ(region(pool, i)[at], 0);
    MPI_Win_detach(window, own);
    MPI_Win_free(&window);
    free(pool);
}

TEST(memory_that_stays_attached_is_reached_while_other_memory_comes_and_goes, 4)
{
    come_and_go(false, false);
}

TEST(memory_that_stays_attached_is_reached_under_exclusive_locks, 4) { come_and_go(true, false); }

TEST(memory_that_stays_attached_is_reached_between_changes, 4)
{
    come_and_go(false, true);
    come_and_go(true, true);
}
