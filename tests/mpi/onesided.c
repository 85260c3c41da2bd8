/* SPDX-License-Identifier: Apache-2.0 */
/* One-sided communication. */
#include "mpi_test.h"

#include <stdlib.h>
#include <string.h>

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
