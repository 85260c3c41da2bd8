/* SPDX-License-Identifier: Apache-2.0 */
/* What holds between collectives: order, reuse of memory, other work, other communicators. */
#include "comms.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- one after the other --------------------------------------------------------------------- */

#define BLOCK_NUMBERS 1000
#define MIX_ROUNDS 1500

static void mix_one(MPI_Comm comm, uint32_t round)
{
    static uint32_t data[BLOCK_NUMBERS * 12], all[BLOCK_NUMBERS * 12];
    int own, size;
    MPI_Comm_rank(comm, &own);
    MPI_Comm_size(comm, &size);
    uint32_t chance = mixed(round, 1000, 0);
    int root = (int)(chance / 8 % (uint32_t)size), count = 1 + (int)(chance / 128 % 20);
    if (chance / 4096 % 4 == 0)
        count *= 50;
    for (int i = 0; i < count * size; i++)
        data[i] = mixed(round, (uint32_t)own, (uint32_t)i);
    uint32_t sum = 0;
    for (int i = 0; i < size; i++)
        sum += mixed(round, (uint32_t)i, (uint32_t)count - 1);
    switch (chance % 8) {
    case 0:
        MPI_Barrier(comm);
        break;
    case 1:
    case 2:
        MPI_Bcast(data, count, MPI_UINT32_T, root, comm);
        CHECK_EQ(data[count - 1], mixed(round, (uint32_t)root, (uint32_t)count - 1));
        break;
    case 3:
    case 4:
        MPI_Reduce(data, all, count, MPI_UINT32_T, MPI_SUM, root, comm);
        if (own == root)
            CHECK_EQ(all[count - 1], sum);
        break;
    case 5:
        MPI_Allreduce(data, all, count, MPI_UINT32_T, MPI_SUM, comm);
        CHECK_EQ(all[count - 1], sum);
        break;
    case 6:
        MPI_Allgather(data, count, MPI_UINT32_T, all, count, MPI_UINT32_T, comm);
        for (int i = 0; i < size; i++)
            CHECK_EQ(all[i * count], mixed(round, (uint32_t)i, 0));
        break;
    default:
        MPI_Alltoall(data, count, MPI_UINT32_T, all, count, MPI_UINT32_T, comm);
        for (int i = 0; i < size; i++)
            CHECK_EQ(all[i * count], mixed(round, (uint32_t)i, (uint32_t)(own * count)));
    }
}

static void mix(void)
{
    MPI_Comm comms[3] = {MPI_COMM_WORLD};
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comms[2]);
    for (uint32_t round = 0; round < MIX_ROUNDS; round++) {
        linger(round, 300);
        mix_one(comms[mixed(round, 2000, 0) % 3], round);
    }
    MPI_Comm_free(&comms[1]);
    MPI_Comm_free(&comms[2]);
}

TEST(any_mix_of_collectives_with_delays_is_right, 8) { mix(); }
TEST(any_mix_of_collectives_of_three_ranks_is_right, 3) { mix(); }

/* A rank that only sends may be far ahead of those that read. */
static void run_ahead(int numbers)
{
    static uint32_t data[1024];
    for (uint32_t round = 0; round < 300; round++) {
        int root = round < 150 ? 0 : ranks - 1;
        for (int i = 0; i < numbers; i++)
            data[i] = mixed(round, (uint32_t)rank, (uint32_t)i);
        /* One that has met the others goes on at once; or one that has met nobody yet. */
        if (round % 50 == 25) {
            (void)usleep(rank == root ? 1000 : 0);
            MPI_Barrier(MPI_COMM_WORLD);
        }
        if (rank != root && (round % 50 == 7 || round % 50 == 26))
            (void)usleep(3000);
        MPI_Bcast(data, numbers, MPI_UINT32_T, root, MPI_COMM_WORLD);
        for (int i = 0; i < numbers; i++)
            CHECK_EQ(data[i], mixed(round, (uint32_t)root, (uint32_t)i));
    }
}

/* And one whose contributions only the root reads. */
static void run_ahead_of_root(int numbers)
{
    static uint32_t data[1024], sums[1024];
    for (uint32_t round = 0; round < 300; round++) {
        for (int i = 0; i < numbers; i++)
            data[i] = mixed(round, (uint32_t)rank, (uint32_t)i);
        if (rank == 1 && round % 50 == 7)
            (void)usleep(3000);
        MPI_Reduce(data, sums, numbers, MPI_UINT32_T, MPI_SUM, 1, MPI_COMM_WORLD);
        for (int i = 0; i < numbers && rank == 1; i++) {
            uint32_t sum = 0;
            for (int from = 0; from < ranks; from++)
                sum += mixed(round, (uint32_t)from, (uint32_t)i);
            CHECK_EQ(sums[i], sum);
        }
    }
}

TEST(who_runs_ahead_overwrites_nothing, 6)
{
    run_ahead(2);
    run_ahead(1000);
    run_ahead_of_root(2);
    run_ahead_of_root(1000);
}

TEST(nobody_leaves_a_barrier_before_all_have_come, 8)
{
    int *arrived;
    MPI_Win win;
    MPI_Win_allocate_shared(rank == 0 ? 8 * 64 : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &arrived,
                            &win);
    MPI_Aint len_bytes;
    int unit;
    MPI_Win_shared_query(win, 0, &len_bytes, &unit, &arrived);
    for (int round = 1; round <= 500; round++) {
        linger((uint32_t)round, 500);
        __atomic_store_n(&arrived[rank * 16], round, __ATOMIC_SEQ_CST);
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < ranks; i++)
            CHECK(__atomic_load_n(&arrived[i * 16], __ATOMIC_SEQ_CST) >= round);
    }
    MPI_Win_free(&win);
}

/* ---- other work ------------------------------------------------------------------------------ */

/* The message goes piece by piece: its sender must do something for each, and is in a barrier. */
TEST(a_rank_in_a_barrier_serves_the_others, 2)
{
    enum { LEN = 8 << 20 };
    uint8_t *data = must_alloc(LEN);
    MPI_Request request;
    for (unsigned round = 0; round < 20; round++) {
        if (rank == 0) {
            fill(data, LEN, round);
            MPI_Isend(data, LEN, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
        } else {
            (void)usleep(2000);
            MPI_Recv(data, LEN, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(filled(data, LEN, round));
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    free(data);
}

#define THREADS 3

static void *add_in_thread(void *argument)
{
    MPI_Comm comm = *(MPI_Comm *)argument;
    for (int round = 0; round < 300; round++) {
        int value = rank + round, sum = 0, own = -1;
        MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
        CHECK_EQ(sum, ranks * (ranks - 1) / 2 + ranks * round);
        own = rank == round % ranks ? round : -1;
        MPI_Bcast(&own, 1, MPI_INT, round % ranks, comm);
        CHECK_EQ(own, round);
    }
    return NULL;
}

TEST(threads_have_collectives_of_their_own, 3)
{
    pthread_t threads[THREADS];
    MPI_Comm comms[THREADS];
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, add_in_thread, &comms[i]), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&comms[i]);
}

/* ---- communicators --------------------------------------------------------------------------- */

static void use(MPI_Comm comm, uint32_t round)
{
    uint32_t numbers[20], sums[20];
    for (uint32_t i = 0; i < 20; i++)
        numbers[i] = mixed(round, (uint32_t)rank, i);
    MPI_Barrier(comm);
    MPI_Allreduce(numbers, sums, 20, MPI_UINT32_T, MPI_SUM, comm);
    uint32_t sum = 0;
    for (int i = 0; i < ranks; i++)
        sum += mixed(round, (uint32_t)i, 19);
    CHECK_EQ(sums[19], sum);
}

static int open_files(void)
{
    int found = 0;
    for (int fd = 0; fd < 1024; fd++)
        found += lseek(fd, 0, SEEK_CUR) != -1;
    return found;
}

TEST(hundreds_of_communicators_come_and_go, 4)
{
    enum { ALIVE = 50 };
    MPI_Comm comms[ALIVE];
    use(MPI_COMM_WORLD, 0);
    int before = mapped_memories(), files = open_files();
    CHECK(before > 0);
    for (uint32_t round = 0; round < 300; round++) {
        MPI_Comm *comm = &comms[round % ALIVE];
        if (round >= ALIVE)
            MPI_Comm_free(comm);
        MPI_Comm_dup(MPI_COMM_WORLD, comm);
        use(*comm, round);
        int alive = round < ALIVE ? (int)round + 1 : ALIVE;
        CHECK_EQ(mapped_memories(), before + alive);
    }
    for (int i = 0; i < ALIVE; i++)
        MPI_Comm_free(&comms[i]);
    CHECK_EQ(mapped_memories(), before);
    CHECK_EQ(open_files(), files);
}

/* As few as a program may use of each: those keep to the functions from before. */
TEST(a_communicator_that_is_hardly_used_gets_no_memory, 4)
{
    for (uint32_t round = 0; round < 30; round++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_SELF, &comm);
        MPI_Comm_free(&comm);
        MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comm);
        int before = mapped_memories();
        use(comm, round);
        CHECK_EQ(mapped_memories(), before);
        MPI_Comm_free(&comm);
    }
}

/* ctest starts it so that some rank has no component, or other settings. */
TEST(ranks_that_cannot_share_fall_back_together, 4)
{
    mix();
    CHECK_EQ(mapped_memories(), 0);
}

TEST(an_intercommunicator_has_its_own_collectives, 4)
{
    MPI_Comm half, both;
    int other = rank % 2 == 0 ? 1 : 0;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, other, 0, &both);
    for (int round = 0; round < 50; round++) {
        int value = rank + round, sum = 0;
        MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, both);
        CHECK_EQ(sum, 2 * other + 2 + 2 * round);
        MPI_Barrier(both);
    }
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

TEST(a_broadcast_that_does_not_fit_is_an_error, 2)
{
    char text[8] = "1234567";
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Barrier(comm);
    int rc = MPI_Bcast(text, rank == 0 ? 8 : 4, MPI_CHAR, 0, comm), class = MPI_SUCCESS;
    if (rc != MPI_SUCCESS)
        MPI_Error_class(rc, &class);
    CHECK_EQ(class, rank == 0 ? MPI_SUCCESS : MPI_ERR_TRUNCATE);
    MPI_Comm_free(&comm);
}
