/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for messages: time limits, sleep and wake-up. Clocks are checked from below only. */
#include <pthread.h>
#include <stdatomic.h>

#include "test.h"

TEST(a_wait_without_messages_ends_at_its_time_limit_and_not_before)
{
    static const int64_t timeouts_ns[] = {0, 1, 1000, 100 * TEST_US, 5 * TEST_MS, 40 * TEST_MS};
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_msg msg;
    char buf[8];

    for (size_t i = 0; i < ARRAY_LEN(timeouts_ns); i++) {
        int64_t start_ns = test_now_ns();

        CHECK_STATUS(velo_recv(port, buf, sizeof(buf), &msg, timeouts_ns[i]), VELO_TIMEOUT);
        CHECK(test_now_ns() - start_ns >= timeouts_ns[i]);
        start_ns = test_now_ns();
        CHECK_STATUS(velo_peek(port, &msg, timeouts_ns[i]), VELO_TIMEOUT);
        CHECK(test_now_ns() - start_ns >= timeouts_ns[i]);
    }
    CHECK_OK(velo_port_close(port));
}

/* The receiver lives, but takes nothing. */
TEST(a_wait_for_room_ends_at_its_time_limit_and_not_before)
{
    static const int64_t timeouts_ns[] = {0, 1, 1000, 100 * TEST_US, 5 * TEST_MS, 140 * TEST_MS};
    struct velo_port *port = port_open_sized(VELO_VPID_ANY, 8, 16384, 0);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    uint64_t sent = 0;
    void *place;

    while (velo_try_send(conn, &sent, sizeof(sent), 0) == VELO_OK)
        sent++;
    CHECK(sent >= 8);
    for (size_t i = 0; i < ARRAY_LEN(timeouts_ns); i++) {
        int64_t limit_ns = timeouts_ns[i], start_ns = test_now_ns();

        CHECK_STATUS(velo_send(conn, "x", 1, 0, limit_ns), VELO_TIMEOUT);
        CHECK(test_now_ns() - start_ns >= limit_ns);
        start_ns = test_now_ns();
        CHECK_STATUS(velo_sendv(conn, &(struct iovec){"x", 1}, 1, 0, limit_ns), VELO_TIMEOUT);
        CHECK(test_now_ns() - start_ns >= limit_ns);
        start_ns = test_now_ns();
        CHECK_STATUS(velo_reserve(conn, 1, &place, limit_ns), VELO_TIMEOUT);
        CHECK(test_now_ns() - start_ns >= limit_ns);
    }
    CHECK_STATUS(velo_send(conn, "x", 1, 0, -2), VELO_ERR_ARG);
    CHECK_STATUS(velo_reserve(conn, 1, &place, -2), VELO_ERR_ARG);
    for (uint64_t i = 0, got; i < sent; i++) {
        CHECK_OK(velo_recv(port, &got, sizeof(got), NULL, TEST_PATIENCE_NS));
        CHECK_EQ(got, i);
    }
    CHECK_STATUS(velo_recv(port, &sent, sizeof(sent), NULL, TEST_MS), VELO_TIMEOUT);
    CHECK_OK(velo_send(conn, &sent, sizeof(sent), 0, TEST_PATIENCE_NS));
    CHECK_OK(velo_port_close(port));
}

TEST(a_message_that_is_there_needs_no_time)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    struct velo_msg msg;
    char buf[8];

    message_send(conn, 8, 1);
    message_send(conn, 8, 2);
    /* Wait until it is there, without taking it. */
    CHECK_STATUS(velo_recv(port, NULL, 0, &msg, TEST_PATIENCE_NS), VELO_ERR_TOO_BIG);
    CHECK_OK(velo_recv(port, buf, sizeof(buf), &msg, 0));
    message_check(&msg, 8, 1, velo_port_id(port));
    CHECK_STATUS(velo_recv(port, NULL, 0, &msg, TEST_PATIENCE_NS), VELO_ERR_TOO_BIG);
    CHECK_OK(velo_peek(port, &msg, 0));
    message_check(&msg, 8, 2, velo_port_id(port));
    CHECK_OK(velo_release(port));
    CHECK_OK(velo_port_close(port));
}

TEST(the_longest_finite_timeout_does_not_overflow)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    struct velo_conn *second = NULL;
    struct velo_msg msg;

    message_send(conn, 8, 1);
    CHECK_OK(velo_peek(port, &msg, INT64_MAX));
    CHECK_OK(velo_release(port));
    CHECK_OK(velo_connect(port, velo_port_id(port), &second, INT64_MAX));
    CHECK_OK(velo_port_close(port));
}

static void send_after_a_pause(void *arg)
{
    struct velo_port *port = port_open(1);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 0));

    (void)arg;
    for (uint64_t i = 0; i < 3; i++) {
        test_sleep_ns(100 * TEST_MS);
        message_send(conn, 100, i);
    }
    CHECK_OK(velo_port_close(port));
}

TEST(a_receiver_that_waits_forever_sleeps_and_is_woken)
{
    struct velo_port *port = port_open(0);
    pid_t sender = child_start(send_after_a_pause, NULL);
    struct velo_port_counters counters;
    struct velo_msg msg;
    char buf[100];

    CHECK_OK(velo_recv(port, buf, sizeof(buf), &msg, VELO_FOREVER));
    message_check(&msg, 100, 0, VELO_ID(0, 1));
    CHECK_OK(velo_peek(port, &msg, VELO_FOREVER));
    message_check(&msg, 100, 1, VELO_ID(0, 1));
    CHECK_OK(velo_release(port));
    message_expect(port, 100, 2, VELO_ID(0, 1));
    CHECK_OK(velo_port_counters(port, &counters, sizeof counters));
    CHECK(counters.rx_sleeps >= 1);
    child_join(sender);
    CHECK_OK(velo_port_close(port));
}

/* Two processes wake each other in turn. Each first waits for a random time, so that a message
 * meets its receiver spinning, about to sleep, asleep, or not even waiting. */
enum { WAKE_ROUNDS = 4000, WAKE_PAUSE_MAX_NS = 150000 };

static void play(struct velo_port *port, velo_id_t peer, uint64_t first, uint64_t seed)
{
    struct velo_conn *conn = port_connect(port, peer);
    struct rng rng = {seed};

    for (uint64_t round = 0; round < WAKE_ROUNDS; round++) {
        if (round % 2 == first) {
            uint32_t pause_ns = rng_below(&rng, WAKE_PAUSE_MAX_NS);

            if (rng_below(&rng, 2)) {
                test_sleep_ns(pause_ns);
            } else { /* Finer than the kernel's timers. */
                for (int64_t end_ns = test_now_ns() + pause_ns / 4; test_now_ns() < end_ns;)
                    ;
            }
            message_send(conn, round % 70, round);
        } else {
            message_expect(port, round % 70, round, peer);
        }
    }
}

static void play_second(void *arg)
{
    struct velo_port *port = port_open(1);

    (void)arg;
    play(port, VELO_ID(0, 0), 1, test_seed() + 1);
    CHECK_OK(velo_port_close(port));
}

TEST(no_wake_up_is_lost_however_sender_and_sleeper_meet)
{
    struct velo_port *port = port_open(0);
    pid_t second = child_start(play_second, NULL);

    play(port, VELO_ID(0, 1), 0, test_seed());
    child_join(second);
    CHECK_OK(velo_port_close(port));
}

/* Several senders, each on a connection of its own, aim at the moment the receiver falls asleep. */
enum { CROWD = 4, CROWD_MSGS = 1500 };

struct crowd_sender {
    struct velo_port *port;
    velo_id_t peer;
    uint32_t index;
};

static void *send_now_and_then(void *arg)
{
    const struct crowd_sender *self = arg;
    struct velo_conn *conn = port_connect(self->port, self->peer);
    struct rng rng = {test_seed() + self->index};

    for (uint32_t i = 0; i < CROWD_MSGS; i++) {
        uint32_t body[2] = {self->index, i};

        if (rng_below(&rng, 4) == 0)
            test_sleep_ns(rng_below(&rng, WAKE_PAUSE_MAX_NS));
        CHECK_OK(velo_send(conn, body, sizeof(body), 0, VELO_FOREVER));
    }
    CHECK_OK(velo_disconnect(conn));
    return NULL;
}

TEST(a_sleeper_misses_none_of_several_senders)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct crowd_sender senders[CROWD];
    pthread_t threads[CROWD];
    uint32_t received[CROWD] = {0};

    for (uint32_t i = 0; i < CROWD; i++) {
        senders[i] = (struct crowd_sender){port, velo_port_id(port), i};
        CHECK_EQ(pthread_create(&threads[i], NULL, send_now_and_then, &senders[i]), 0);
    }
    for (uint32_t i = 0; i < CROWD * CROWD_MSGS; i++) {
        uint32_t body[2];

        CHECK_OK(velo_recv(port, body, sizeof(body), NULL, TEST_PATIENCE_NS));
        CHECK(body[0] < CROWD);
        CHECK_EQ(body[1], received[body[0]]++);
    }
    for (uint32_t i = 0; i < CROWD; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_OK(velo_port_close(port));
}

/* A time limit that runs out just when a message comes: the message is had now or by the next call.
 */
static void *send_at_random_times(void *arg)
{
    struct velo_conn *conn = arg;
    struct rng rng = {test_seed()};

    for (uint64_t i = 0; i < 3000; i++) {
        test_sleep_ns(rng_below(&rng, 100000));
        message_send(conn, 8, i);
    }
    return NULL;
}

TEST(a_time_limit_that_races_with_a_message_loses_nothing)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    struct rng rng = {~test_seed()};
    int64_t last_ns = test_now_ns();
    uint64_t received = 0;
    pthread_t sender;

    CHECK_EQ(pthread_create(&sender, NULL, send_at_random_times, conn), 0);
    while (received < 3000) {
        struct velo_msg msg;
        char buf[8];
        int status = velo_recv(port, buf, sizeof(buf), &msg, rng_below(&rng, 150000));

        if (status == VELO_OK) {
            message_check(&msg, 8, received++, velo_port_id(port));
            last_ns = test_now_ns();
        } else {
            CHECK_STATUS(status, VELO_TIMEOUT);
            CHECK(test_now_ns() - last_ns < TEST_PATIENCE_NS);
        }
    }
    CHECK_EQ(pthread_join(sender, NULL), 0);
    CHECK_OK(velo_port_close(port));
}

/* A connection made while the receiver already sleeps must be able to wake it. */
static void connect_and_send_once(void *arg)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);

    (void)arg;
    test_sleep_ns(2 * TEST_MS);
    message_send(port_connect(port, VELO_ID(0, 0)), 8, 1);
    CHECK_OK(velo_port_close(port));
}

TEST(a_sleeper_is_woken_by_a_sender_that_connected_meanwhile)
{
    struct velo_port *port = port_open(0);

    for (int i = 0; i < 100; i++) {
        pid_t sender = child_start(connect_and_send_once, NULL);

        message_expect(port, 8, 1, VELO_ID(0, 1));
        child_join(sender);
    }
    CHECK_OK(velo_port_close(port));
}
