/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lost wake-ups. Each sleep here lasts until it is woken: the engine's time slices are
 * switched off, so a wake-up lost at any of these meetings is a hang.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "futex_forever.h"
#include "test.h"

static void nap(struct rng *rng)
{
    uint32_t kind = rng_below(rng, 4);

    if (kind == 0) {
        test_sleep_ns(rng_below(rng, 100000));
    } else if (kind == 1) { /* Shorter than the kernel's timers can. */
        for (int64_t end_ns = test_now_ns() + rng_below(rng, 20000); test_now_ns() < end_ns;)
            ;
    }
}

struct side {
    struct velo_port *port;
    velo_id_t peer;
    uint64_t seed;
    uint32_t rounds;
    bool first;
};

/* Ball play: each side sleeps until the other has thrown. */
static void *play(void *arg)
{
    const struct side *self = arg;
    struct velo_conn *conn = port_connect(self->port, self->peer);
    struct rng rng = {self->seed};
    char buf[8];

    for (uint32_t round = 0; round < self->rounds; round++) {
        if (self->first) {
            nap(&rng);
            CHECK_OK(velo_send(conn, buf, sizeof(buf), 0, VELO_FOREVER));
        }
        CHECK_OK(velo_recv(self->port, buf, sizeof(buf), NULL, VELO_FOREVER));
        if (!self->first) {
            nap(&rng);
            CHECK_OK(velo_send(conn, buf, sizeof(buf), 0, VELO_FOREVER));
        }
    }
    return NULL;
}

static void play_with_spin(const char *spin_ns, uint32_t rounds)
{
    pthread_t other;

    setenv("VELO_SPIN_NS", spin_ns, 1);
    struct velo_port *a = port_open(VELO_VPID_ANY), *b = port_open(VELO_VPID_ANY);
    struct side first = {a, velo_port_id(b), test_seed(), rounds, true};
    struct side second = {b, velo_port_id(a), ~test_seed(), rounds, false};

    futex_forever = true;
    CHECK_EQ(pthread_create(&other, NULL, play, &second), 0);
    play(&first);
    CHECK_EQ(pthread_join(other, NULL), 0);
    futex_forever = false;
    CHECK_OK(velo_port_close(a));
    CHECK_OK(velo_port_close(b));
    unsetenv("VELO_SPIN_NS");
}

TEST(no_wake_up_of_a_receiver_is_lost_when_it_sleeps_at_once) { play_with_spin("0", 40000); }

/* A receiver that gives up spinning just when the message comes. */
TEST(no_wake_up_of_a_receiver_is_lost_when_it_spins_first)
{
    play_with_spin("2000", 40000);
    play_with_spin("20000", 20000);
}

enum { BURST_MAX = 40, BURSTS = 20000 };

/* The next burst is sent when all of the last one has come. */
static void *throw_bursts(void *arg)
{
    const struct side *self = arg;
    struct velo_conn *conn = port_connect(self->port, self->peer);
    struct velo_msg msgs[BURST_MAX];
    struct rng rng = {self->seed};

    for (int i = 0; i < BURST_MAX; i++)
        msgs[i] = (struct velo_msg){.data = "burst", .len_bytes = 5};
    for (uint32_t round = 0; round < self->rounds; round++) {
        uint32_t count = 1 + rng_below(&rng, BURST_MAX);

        nap(&rng);
        msgs[count - 1].tag = 1; /* The last one. */
        CHECK_EQ(velo_send_many(conn, msgs, (int)count, VELO_FOREVER), count);
        msgs[count - 1].tag = 0;
        CHECK_OK(velo_recv(self->port, NULL, 0, NULL, VELO_FOREVER));
    }
    return NULL;
}

/* Rings of this size take half of the longest burst: the sender sleeps for room, too. */
TEST(no_wake_up_is_lost_for_a_burst)
{
    pthread_t other;

    for (int spin = 0; spin < 2; spin++) {
        setenv("VELO_SPIN_NS", spin ? "2000" : "0", 1);
        struct velo_port *a = port_open_sized(VELO_VPID_ANY, 8, 16384, 0);
        struct velo_port *b = port_open_sized(VELO_VPID_ANY, 8, 16384, 0);
        struct side thrower = {b, velo_port_id(a), test_seed(), BURSTS, true};
        struct velo_conn *conn = port_connect(a, velo_port_id(b));
        struct velo_msg msgs[BURST_MAX];
        char buf[BURST_MAX * 8];

        futex_forever = true;
        CHECK_EQ(pthread_create(&other, NULL, throw_bursts, &thrower), 0);
        for (uint32_t round = 0; round < BURSTS; round++) {
            int count;

            do {
                count = velo_recv_many(a, msgs, BURST_MAX, buf, sizeof(buf), VELO_FOREVER);
                CHECK(count > 0);
            } while (msgs[count - 1].tag != 1);
            CHECK_OK(velo_send(conn, NULL, 0, 0, VELO_FOREVER));
        }
        CHECK_EQ(pthread_join(other, NULL), 0);
        futex_forever = false;
        CHECK_OK(velo_port_close(a));
        CHECK_OK(velo_port_close(b));
        unsetenv("VELO_SPIN_NS");
    }
}

/* The receiver spins for SPIN_NS. Most messages come soon enough for it to go on believing in that;
 * one in four comes at the moment when it gives up, tells its senders to ring, and looks a last
 * time. */
enum { SPIN_NS = 20000, GIVE_UP_MIN_NS = 15000, GIVE_UP_MAX_NS = 120000, SOON_NS = 8000 };

static void *throw_as_it_gives_up(void *arg)
{
    const struct side *self = arg;
    struct velo_conn *conn = port_connect(self->port, self->peer);
    struct rng rng = {self->seed};
    char buf[8];

    for (uint32_t round = 0; round < self->rounds; round++) {
        CHECK_OK(velo_recv(self->port, buf, sizeof(buf), NULL, VELO_FOREVER));
        int64_t delay_ns =
            round % 4 ? SOON_NS : GIVE_UP_MIN_NS + rng_below(&rng, GIVE_UP_MAX_NS - GIVE_UP_MIN_NS);
        for (int64_t end_ns = test_now_ns() + delay_ns; test_now_ns() < end_ns;)
            ;
        CHECK_OK(velo_send(conn, buf, sizeof(buf), 0, VELO_FOREVER));
    }
    return NULL;
}

TEST(no_wake_up_of_a_receiver_is_lost_just_when_it_stops_to_spin)
{
    enum { GIVE_UPS = 150000 };
    char buf[8] = {0};
    pthread_t other;

    struct velo_port_counters counters;
    char spin_ns[16];

    snprintf(spin_ns, sizeof(spin_ns), "%d", SPIN_NS);
    setenv("VELO_SPIN_NS", spin_ns, 1);
    struct velo_port *a = port_open(VELO_VPID_ANY), *b = port_open(VELO_VPID_ANY);
    struct side thrower = {b, velo_port_id(a), test_seed(), GIVE_UPS, false};
    struct velo_conn *conn = port_connect(a, velo_port_id(b));

    futex_forever = true;
    CHECK_EQ(pthread_create(&other, NULL, throw_as_it_gives_up, &thrower), 0);
    for (uint32_t round = 0; round < GIVE_UPS; round++) {
        CHECK_OK(velo_send(conn, buf, sizeof(buf), 0, VELO_FOREVER));
        CHECK_OK(velo_recv(a, buf, sizeof(buf), NULL, VELO_FOREVER));
    }
    CHECK_EQ(pthread_join(other, NULL), 0);
    futex_forever = false;
    CHECK_OK(velo_port_counters(a, &counters, sizeof counters));
    printf("gave up %llu times, rung %llu times\n", (unsigned long long)counters.rx_sleeps,
           (unsigned long long)counters.rx_doorbells);
    CHECK(counters.rx_sleeps >= 1);
    CHECK_OK(velo_port_close(a));
    CHECK_OK(velo_port_close(b));
    unsetenv("VELO_SPIN_NS");
}

enum { CROWD = 4, CROWD_MSGS = 20000 };

static void *throw_in(void *arg)
{
    const struct side *self = arg;
    struct velo_conn *conn = port_connect(self->port, self->peer);
    struct rng rng = {self->seed};

    for (uint32_t round = 0; round < self->rounds; round++) {
        nap(&rng);
        CHECK_OK(velo_send(conn, &round, sizeof(round), 0, VELO_FOREVER));
    }
    return NULL;
}

/* Several senders at once, on rings so small that the senders sleep for room as well. */
TEST(no_wake_up_is_lost_among_several_senders_and_full_rings)
{
    struct velo_port *port = port_open_sized(VELO_VPID_ANY, 8, 16384, 0);
    struct side sides[CROWD];
    pthread_t threads[CROWD];
    struct rng rng = {test_seed()};
    uint32_t round;

    futex_forever = true;
    for (uint32_t i = 0; i < CROWD; i++) {
        sides[i] = (struct side){port, velo_port_id(port), test_seed() + i, CROWD_MSGS, false};
        CHECK_EQ(pthread_create(&threads[i], NULL, throw_in, &sides[i]), 0);
    }
    for (uint32_t i = 0; i < CROWD * CROWD_MSGS; i++) {
        CHECK_OK(velo_recv(port, &round, sizeof(round), NULL, VELO_FOREVER));
        if (rng_below(&rng, 512) == 0)
            test_sleep_ns(rng_below(&rng, 300000)); /* The rings fill up meanwhile. */
    }
    for (uint32_t i = 0; i < CROWD; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    futex_forever = false;
    CHECK_OK(velo_port_close(port));
}

static void *stream(void *arg)
{
    const struct side *self = arg;
    struct velo_conn *conn = port_connect(self->port, self->peer);
    static char buf[4096];

    for (uint32_t round = 0; round < self->rounds; round++)
        CHECK_OK(velo_send(conn, buf, round % 5 == 0 ? sizeof(buf) : 8, 0, VELO_FOREVER));
    return NULL;
}

/* A sender that is always ahead sleeps for room again and again. */
TEST(no_wake_up_of_a_sender_is_lost)
{
    struct velo_port *port = port_open_sized(VELO_VPID_ANY, 8, 16384, 0);
    struct side side = {port, velo_port_id(port), 0, 30000, false};
    struct velo_port_counters counters;
    struct rng rng = {test_seed()};
    static char buf[4096];
    pthread_t sender;

    futex_forever = true;
    CHECK_EQ(pthread_create(&sender, NULL, stream, &side), 0);
    for (uint32_t i = 0; i < side.rounds; i++) {
        CHECK_OK(velo_recv(port, buf, sizeof(buf), NULL, VELO_FOREVER));
        if (i % 256 == 0)
            test_sleep_ns(2 * TEST_MS);
        else if (rng_below(&rng, 8) == 0) /* About as long as a sender spins. */
            for (int64_t end_ns = test_now_ns() + rng_below(&rng, 100000); test_now_ns() < end_ns;)
                ;
    }
    CHECK_EQ(pthread_join(sender, NULL), 0);
    futex_forever = false;
    CHECK_OK(velo_port_counters(port, &counters, sizeof counters));
    CHECK(counters.tx_sleeps >= 10);
    CHECK_OK(velo_port_close(port));
}
