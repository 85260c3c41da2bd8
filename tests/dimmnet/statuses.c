/* SPDX-License-Identifier: Apache-2.0 */
/* The status ring: many senders, waiting, a ring that is full. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "world.h"

enum { SENDERS = 3, SENT_EACH = 4000, PATIENCE_NS = 20000 };

static void send_word(struct velo_dimmnet *context, uint32_t word, uint64_t value, uint8_t tag)
{
    struct velo_dimmnet_target target = {
        .pid = PID_B, .memory = VELO_DIMMNET_LLCM, .word = word, .tag = tag, .status = 1};

    CHECK_OK(velo_dimmnet_send(context, &target, &value, 1));
}

TEST(statuses_of_one_sender_come_in_order)
{
    struct world world;

    world_open(&world);
    for (unsigned i = 0; i < 2000; i++) {
        send_word(world.a, 0, i, (uint8_t)i);
        if (i % 300 == 299)
            for (unsigned taken = i - 299; taken <= i; taken++)
                expect_tag(world.b, (uint8_t)taken);
    }
    world_close(&world);
}

/* Sender n: process 0 or 1 of board 1, or 1 of board 2. */
static void send_many(void *arg)
{
    unsigned n = *(unsigned *)arg;
    struct velo_dimmnet *context = context_open(n == 2 ? 2 : 1, n == 2 ? 1 : (int)n);

    for (unsigned i = 0; i < SENT_EACH; i++)
        send_word(context, n, i, (uint8_t)i);
    CHECK_OK(velo_dimmnet_close(context));
}

static struct velo_dimmnet_board *patient_board(unsigned lid, uint32_t patience_ns)
{
    struct velo_dimmnet_board_attr attr = VELO_DIMMNET_BOARD_ATTR_INIT;
    struct velo_dimmnet_board *board;

    attr.lid = lid;
    attr.patience_ns = patience_ns;
    CHECK_OK(velo_dimmnet_board_open(&attr, &board));
    CHECK_OK(velo_dimmnet_board_pid(board, PID_B, 2, 0));
    return board;
}

TEST(no_status_of_many_senders_is_lost_or_doubled)
{
    struct velo_dimmnet_board *board_a = patient_board(1, 10000000);
    struct velo_dimmnet_board *board_b = patient_board(2, 10000000);
    struct velo_dimmnet *b = context_open(2, 0);
    unsigned numbers[SENDERS] = {0, 1, 2};
    unsigned next[SENDERS] = {0};
    unsigned taken = 0;
    pid_t children[SENDERS];
    struct velo_dimmnet_status status;

    for (unsigned n = 0; n < SENDERS; n++)
        children[n] = child_start(send_many, &numbers[n]);
    while (taken + counted(board_b).dropped_status < SENDERS * SENT_EACH) {
        int got = velo_dimmnet_wait(b, &status, TEST_MS);
        if (got == VELO_TIMEOUT)
            continue;
        CHECK_OK(got);
        unsigned n = status.lid == 2 ? 2 : status.wid;
        CHECK(counted(board_b).dropped_status > 0 || status.tag == (uint8_t)next[n]);
        next[n]++;
        taken++;
    }
    for (unsigned n = 0; n < SENDERS; n++) {
        child_join(children[n]);
        CHECK_EQ(velo_dimmnet_llcm(b)[n], SENT_EACH - 1);
    }
    CHECK_EQ(counted(board_b).received, SENDERS * SENT_EACH);
    CHECK_OK(velo_dimmnet_close(b));
    CHECK_OK(velo_dimmnet_board_close(board_a));
    CHECK_OK(velo_dimmnet_board_close(board_b));
}

TEST(a_full_ring_drops_the_newest_status_and_counts_it)
{
    struct velo_dimmnet_board *board = patient_board(2, PATIENCE_NS);
    struct velo_dimmnet *a = context_open(2, 1);
    struct velo_dimmnet *b = context_open(2, 0);

    for (unsigned i = 0; i < VELO_DIMMNET_STATUS_ENTRIES + 3; i++)
        send_word(a, 0, i, (uint8_t)i);
    while (counted(board).dropped_status < 3) /* A board takes its time. */
        test_sleep_ns(TEST_US);
    CHECK_EQ(counted(board).dropped_status, 3);
    CHECK_EQ(velo_dimmnet_llcm(b)[0], VELO_DIMMNET_STATUS_ENTRIES + 2);
    for (unsigned i = 0; i < VELO_DIMMNET_STATUS_ENTRIES; i++)
        expect_tag(b, (uint8_t)i);
    expect_none(b);
    send_word(a, 0, 0, 77);
    expect_tag(b, 77);
    CHECK_OK(velo_dimmnet_close(a));
    CHECK_OK(velo_dimmnet_close(b));
    CHECK_OK(velo_dimmnet_board_close(board));
}

static void *take_after_a_while(void *arg)
{
    struct velo_dimmnet *context = arg;

    test_sleep_ns(TEST_MS);
    for (unsigned i = 0; i < VELO_DIMMNET_STATUS_ENTRIES; i++)
        expect_tag(context, (uint8_t)i);
    return NULL;
}

TEST(a_sender_waits_for_room_in_a_full_ring)
{
    pthread_t reader;

    /* Ten milliseconds are all the patience there is, so once in a while it is not enough. */
    for (int tries = 0;; tries++) {
        struct velo_dimmnet_board *board = patient_board(2, 10000000);
        struct velo_dimmnet *a = context_open(2, 1);
        struct velo_dimmnet *b = context_open(2, 0);

        for (unsigned i = 0; i < VELO_DIMMNET_STATUS_ENTRIES; i++)
            send_word(a, 0, i, (uint8_t)i);
        CHECK_EQ(pthread_create(&reader, NULL, take_after_a_while, b), 0);
        send_word(a, 0, 0, 200);
        CHECK_EQ(pthread_join(reader, NULL), 0);
        bool is_dropped = counted(board).dropped_status > 0;
        if (!is_dropped)
            expect_tag(b, 200);
        expect_none(b);
        CHECK_OK(velo_dimmnet_close(a));
        CHECK_OK(velo_dimmnet_close(b));
        CHECK_OK(velo_dimmnet_board_close(board));
        if (!is_dropped)
            return;
        CHECK(tries < 100);
    }
}

TEST(what_came_before_a_context_was_opened_is_there)
{
    struct world world;

    world_open(&world);
    CHECK_OK(velo_dimmnet_close(world.b));
    send_word(world.a, 9, 123, 45);
    world.b = context_open(2, 0);
    expect_tag(world.b, 45);
    CHECK_EQ(velo_dimmnet_llcm(world.b)[9], 123);
    expect_none(world.b);
    world_close(&world);
}

TEST(a_process_enabled_anew_begins_without_statuses)
{
    struct world world;
    struct velo_dimmnet_process process;

    world_open(&world);
    CHECK_OK(velo_dimmnet_close(world.b));
    for (unsigned i = 0; i < VELO_DIMMNET_STATUS_ENTRIES + 3; i++)
        send_word(world.a, 9, 123, 45);
    while (counted(world.board_b).dropped_status < 3)
        test_sleep_ns(TEST_US);
    CHECK_OK(velo_dimmnet_board_process(world.board_b, 0, &process));
    process.is_enabled = 0;
    CHECK_OK(velo_dimmnet_board_set_process(world.board_b, 0, &process));
    process.is_enabled = 1;
    CHECK_OK(velo_dimmnet_board_set_process(world.board_b, 0, &process));
    world.b = context_open(2, 0);
    expect_none(world.b);
    for (unsigned i = 0; i < VELO_DIMMNET_STATUS_ENTRIES; i++)
        send_word(world.a, 9, 123, 46);
    for (unsigned i = 0; i < VELO_DIMMNET_STATUS_ENTRIES; i++)
        expect_tag(world.b, 46);
    world_close(&world);
}

/* ---- waiting --------------------------------------------------------------------------------- */

TEST(a_wait_ends_when_its_time_is_over)
{
    struct world world;

    world_open(&world);
    CHECK_STATUS(velo_dimmnet_wait(world.b, NULL, 0), VELO_TIMEOUT);
    int64_t start_ns = test_now_ns();
    CHECK_STATUS(velo_dimmnet_wait(world.b, NULL, 2 * TEST_MS), VELO_TIMEOUT);
    CHECK(test_now_ns() - start_ns >= 2 * TEST_MS);
    world_close(&world);
}

static void answer_all(void *arg)
{
    struct velo_dimmnet *b = context_open(2, 0);
    struct velo_dimmnet_target target = {
        .pid = PID_A, .memory = VELO_DIMMNET_LLCM, .tag = 3, .status = 1};

    (void)arg;
    for (uint64_t i = 0; i < 1500; i++) {
        CHECK_OK(velo_dimmnet_wait(b, NULL, TEST_PATIENCE_NS));
        CHECK_OK(velo_dimmnet_send(b, &target, &i, 1));
    }
    CHECK_OK(velo_dimmnet_close(b));
}

TEST(two_processes_that_sleep_wake_each_other)
{
    struct world world;

    world_open(&world);
    CHECK_OK(velo_dimmnet_close(world.b));
    world.b = NULL;
    pid_t child = child_start(answer_all, NULL);
    for (uint64_t i = 0; i < 1500; i++) {
        send_word(world.a, 0, i, 1);
        expect_tag(world.a, 3);
        CHECK_EQ(velo_dimmnet_llcm(world.a)[0], i);
    }
    child_join(child);
    world_close(&world);
}

static void do_nothing(int signal) { (void)signal; }

static atomic_bool is_interrupted;

static void *interrupt(void *arg)
{
    pthread_t *waiting = arg;

    test_sleep_ns(5 * TEST_MS);
    while (!atomic_load(&is_interrupted)) {
        CHECK_EQ(pthread_kill(*waiting, SIGUSR1), 0);
        test_sleep_ns(TEST_MS);
    }
    return NULL;
}

TEST(a_signal_ends_a_wait)
{
    struct world world;
    struct sigaction action = {.sa_handler = do_nothing, .sa_flags = SA_RESTART};
    pthread_t waiting = pthread_self();
    pthread_t other;

    world_open(&world);
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    CHECK_EQ(pthread_create(&other, NULL, interrupt, &waiting), 0);
    CHECK_STATUS(velo_dimmnet_wait(world.b, NULL, TEST_PATIENCE_NS), VELO_ERR_INTERRUPTED);
    atomic_store(&is_interrupted, true);
    CHECK_EQ(pthread_join(other, NULL), 0);
    world_close(&world);
}
