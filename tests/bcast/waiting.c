/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting: time limits, sleep and wake-up. Clocks are checked from below only. */
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include "futex_forever.h"
#include "pair.h"

TEST(a_wait_for_a_message_ends_at_its_time_limit_and_not_before)
{
    static const int64_t timeouts_ns[] = {0, 1, 1000, 100 * TEST_US, 5 * TEST_MS, 140 * TEST_MS};
    struct velo_bcast *ring = ring_open(0, 0, 0, 0);
    struct velo_bcast_reader *reader = ring_join();
    struct velo_msg msg;

    for (size_t i = 0; i < ARRAY_LEN(timeouts_ns); i++) {
        int64_t start_ns = test_now_ns();

        CHECK_STATUS(velo_bcast_recv(reader, NULL, 0, NULL, timeouts_ns[i]), VELO_TIMEOUT);
        CHECK(test_now_ns() - start_ns >= timeouts_ns[i]);
        start_ns = test_now_ns();
        CHECK_STATUS(velo_bcast_peek(reader, &msg, timeouts_ns[i]), VELO_TIMEOUT);
        CHECK(test_now_ns() - start_ns >= timeouts_ns[i]);
    }
    CHECK_OK(velo_bcast_leave(reader));
    CHECK_OK(velo_bcast_close(ring));
}

TEST(a_wait_for_room_ends_at_its_time_limit_and_not_before)
{
    static const int64_t timeouts_ns[] = {0, 1, 1000, 100 * TEST_US, 5 * TEST_MS, 140 * TEST_MS};
    struct velo_bcast *ring = ring_open(8, 0, 0, 0);
    struct velo_bcast_reader *reader = ring_join();
    void *place;

    for (uint64_t n = 0; n < 8; n++)
        numbered_send(ring, n, 60);
    CHECK_STATUS(velo_bcast_try_send(ring, "x", 1, 0), VELO_AGAIN);
    for (size_t i = 0; i < ARRAY_LEN(timeouts_ns); i++) {
        int64_t start_ns = test_now_ns();

        CHECK_STATUS(velo_bcast_send(ring, "x", 1, 0, timeouts_ns[i]), VELO_TIMEOUT);
        CHECK(test_now_ns() - start_ns >= timeouts_ns[i]);
        start_ns = test_now_ns();
        CHECK_STATUS(velo_bcast_reserve(ring, 1, &place, timeouts_ns[i]), VELO_TIMEOUT);
        CHECK(test_now_ns() - start_ns >= timeouts_ns[i]);
    }
    for (uint64_t n = 0; n < 8; n++)
        numbered_expect(reader, n, 60);
    numbered_send(ring, 8, 60);
    numbered_expect(reader, 8, 60);
    CHECK_OK(velo_bcast_leave(reader));
    CHECK_OK(velo_bcast_close(ring));
}

static void nothing_to_do(int signal) { (void)signal; }

static void *disturb(void *arg)
{
    test_sleep_ns(50 * TEST_MS);
    pthread_kill(*(pthread_t *)arg, SIGUSR1);
    return NULL;
}

TEST(a_signal_handler_ends_the_sleep_of_reader_and_writer)
{
    struct velo_bcast *ring = ring_open(8, 0, 0, 0);
    struct velo_bcast_reader *reader = ring_join();
    struct sigaction action = {.sa_handler = nothing_to_do, .sa_flags = SA_RESTART};
    pthread_t self = pthread_self(), other;

    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    CHECK_EQ(pthread_create(&other, NULL, disturb, &self), 0);
    CHECK_STATUS(velo_bcast_recv(reader, NULL, 0, NULL, TEST_PATIENCE_NS), VELO_ERR_INTERRUPTED);
    CHECK_EQ(pthread_join(other, NULL), 0);
    for (uint64_t n = 0; n < 8; n++)
        numbered_send(ring, n, 60);
    CHECK_EQ(pthread_create(&other, NULL, disturb, &self), 0);
    CHECK_STATUS(velo_bcast_send(ring, "x", 1, 0, TEST_PATIENCE_NS), VELO_ERR_INTERRUPTED);
    CHECK_EQ(pthread_join(other, NULL), 0);
    CHECK_OK(velo_bcast_leave(reader));
    CHECK_OK(velo_bcast_close(ring));
}

static struct velo_bcast *the_ring;
static struct velo_bcast_reader *the_reader;

static void interrupt_both(void)
{
    velo_bcast_interrupt(the_ring);
    velo_bcast_reader_interrupt(the_reader);
}

static void *interrupt_soon(void *arg)
{
    (void)arg;
    test_sleep_ns(20 * TEST_MS);
    interrupt_both();
    return NULL;
}

static void interrupt_in_handler(int signal)
{
    (void)signal;
    interrupt_both();
}

/* Each interrupt ends one wait of the writer and one of this reader: the one that is under way, or
 * else the next. */
TEST(waits_of_reader_and_writer_can_be_interrupted_from_another_thread)
{
    struct velo_bcast_reader *other;
    struct velo_msg msg;
    pthread_t thread;
    void *room;

    the_ring = ring_open(8, 0, 0, 0);
    the_reader = ring_join();
    other = ring_join();
    velo_bcast_interrupt(the_ring); /* Calls that find room take no notice. */
    for (uint64_t n = 0; n < 8; n++)
        CHECK_OK(velo_bcast_send(the_ring, &n, 8, pattern_tag(n), VELO_FOREVER));
    CHECK_STATUS(velo_bcast_send(the_ring, "x", 1, 0, 0), VELO_TIMEOUT); /* Nor do tries. */
    CHECK_STATUS(velo_bcast_try_send(the_ring, "x", 1, 0), VELO_AGAIN);
    CHECK_STATUS(velo_bcast_send(the_ring, "x", 1, 0, VELO_FOREVER), VELO_ERR_INTERRUPTED);
    CHECK_EQ(pthread_create(&thread, NULL, interrupt_soon, NULL), 0);
    CHECK_STATUS(velo_bcast_reserve(the_ring, 1, &room, VELO_FOREVER), VELO_ERR_INTERRUPTED);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_STATUS(velo_bcast_reserve(the_ring, 1, &room, TEST_MS), VELO_TIMEOUT);
    for (uint64_t n = 0; n < 8; n++) { /* That for the reader waits until it does. */
        numbered_expect(the_reader, n, 8);
        numbered_expect(other, n, 8);
    }
    CHECK_STATUS(velo_bcast_recv(the_reader, NULL, 0, NULL, 0), VELO_TIMEOUT);
    CHECK_STATUS(velo_bcast_recv(the_reader, NULL, 0, NULL, VELO_FOREVER), VELO_ERR_INTERRUPTED);
    CHECK_STATUS(velo_bcast_recv(other, NULL, 0, NULL, TEST_MS), VELO_TIMEOUT);
    CHECK_EQ(pthread_create(&thread, NULL, interrupt_soon, NULL), 0);
    CHECK_STATUS(velo_bcast_peek(the_reader, &msg, VELO_FOREVER), VELO_ERR_INTERRUPTED);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_STATUS(velo_bcast_recv(the_reader, NULL, 0, NULL, TEST_MS), VELO_TIMEOUT);
    numbered_send(the_ring, 8, 8);
    numbered_expect(the_reader, 8, 8);
    CHECK_OK(velo_bcast_leave(other));
    CHECK_OK(velo_bcast_leave(the_reader));
    CHECK_OK(velo_bcast_close(the_ring));
}

TEST(waits_of_reader_and_writer_can_be_interrupted_from_a_handler)
{
    struct sigaction action = {.sa_handler = interrupt_in_handler, .sa_flags = SA_RESTART};
    pthread_t self = pthread_self(), other;

    the_ring = ring_open(8, 0, 0, 0);
    the_reader = ring_join();
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    CHECK_EQ(pthread_create(&other, NULL, disturb, &self), 0);
    CHECK_STATUS(velo_bcast_recv(the_reader, NULL, 0, NULL, VELO_FOREVER), VELO_ERR_INTERRUPTED);
    CHECK_EQ(pthread_join(other, NULL), 0);
    CHECK_STATUS(velo_bcast_recv(the_reader, NULL, 0, NULL, TEST_MS), VELO_TIMEOUT);
    for (uint64_t n = 0; n < 8; n++)
        numbered_send(the_ring, n, 8);
    CHECK_STATUS(velo_bcast_send(the_ring, "x", 1, 0, VELO_FOREVER), VELO_ERR_INTERRUPTED);
    CHECK_EQ(pthread_create(&other, NULL, disturb, &self), 0);
    CHECK_STATUS(velo_bcast_send(the_ring, "x", 1, 0, VELO_FOREVER), VELO_ERR_INTERRUPTED);
    CHECK_EQ(pthread_join(other, NULL), 0);
    CHECK_STATUS(velo_bcast_send(the_ring, "x", 1, 0, TEST_MS), VELO_TIMEOUT);
    CHECK_OK(velo_bcast_leave(the_reader));
    CHECK_OK(velo_bcast_close(the_ring));
}

/* Writer and readers answer each other by two rings, each after a random time, so that a message
 * meets its reader spinning, about to sleep, or asleep. Sleeps never end by themselves. */
enum { SLEEPERS = 3, ROUNDS = 1500 };

static void pause_a_little(struct rng *rng)
{
    uint32_t pause_ns = rng_below(rng, 100000);

    if (rng_below(rng, 2)) {
        test_sleep_ns(pause_ns);
    } else { /* Finer than the kernel's timers. */
        for (int64_t end_ns = test_now_ns() + pause_ns / 4; test_now_ns() < end_ns;)
            ;
    }
}

static void sleep_and_read(void *arg)
{
    struct velo_bcast_reader *reader = ring_join();
    struct rng rng = {test_seed() + 100 + *(uint32_t *)arg};
    uint64_t number;

    futex_forever = true;
    for (uint64_t n = 0; n < ROUNDS; n++) {
        if (rng_below(&rng, 8) == 0)
            pause_a_little(&rng);
        CHECK_OK(velo_bcast_recv(reader, &number, 8, NULL, VELO_FOREVER));
        CHECK_EQ(number, n);
    }
    CHECK_OK(velo_bcast_leave(reader));
}

static void read_and_sleep(uint32_t depth_slots)
{
    struct velo_bcast *ring = ring_open(depth_slots, 0, 0, 0);
    struct rng rng = {test_seed()};
    pid_t readers[SLEEPERS];

    for (uint32_t i = 0; i < SLEEPERS; i++)
        readers[i] = child_start(sleep_and_read, &i);
    while (velo_bcast_readers(ring) < SLEEPERS)
        test_sleep_ns(TEST_MS);
    futex_forever = true;
    for (uint64_t n = 0; n < ROUNDS; n++) {
        if (rng_below(&rng, depth_slots > 8 ? 2 : 16) == 0)
            pause_a_little(&rng);
        CHECK_OK(velo_bcast_send(ring, &n, 8, 0, VELO_FOREVER));
    }
    for (uint32_t i = 0; i < SLEEPERS; i++)
        child_join(readers[i]);
    futex_forever = false;
    CHECK_OK(velo_bcast_close(ring));
}

TEST(no_wake_up_of_a_reader_is_lost) { read_and_sleep(256); }

TEST(no_wake_up_of_the_writer_is_lost) { read_and_sleep(8); }

static void wait_and_report(void *arg)
{
    struct velo_bcast_reader *reader = ring_join();
    struct rusage before, after;

    CHECK_EQ(getrusage(RUSAGE_SELF, &before), 0);
    int64_t start_ns = test_now_ns();
    CHECK_OK(velo_bcast_recv(reader, NULL, 0, NULL, TEST_PATIENCE_NS));
    int64_t waited_ns = test_now_ns() - start_ns;
    CHECK_EQ(getrusage(RUSAGE_SELF, &after), 0);
    int64_t used_ns = (after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec -
                       before.ru_stime.tv_sec) *
                          1000 * TEST_MS +
                      (after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec -
                       before.ru_stime.tv_usec) *
                          TEST_US;
    (void)arg;
    CHECK(used_ns * 100 < waited_ns);
    CHECK_OK(velo_bcast_leave(reader));
}

/* Each reader spins for at most 50 us in a second, and looks ten times whether the writer lives. */
TEST(readers_that_wait_use_less_than_a_hundredth_of_a_core)
{
    struct velo_bcast *ring = ring_open(0, 0, 0, 0);
    pid_t readers[8];

    for (size_t i = 0; i < ARRAY_LEN(readers); i++)
        readers[i] = child_start(wait_and_report, NULL);
    while (velo_bcast_readers(ring) < (int)ARRAY_LEN(readers))
        test_sleep_ns(TEST_MS);
    test_sleep_ns(1000 * TEST_MS);
    CHECK_OK(velo_bcast_try_send(ring, NULL, 0, 0));
    for (size_t i = 0; i < ARRAY_LEN(readers); i++)
        child_join(readers[i]);
    CHECK_OK(velo_bcast_close(ring));
}
