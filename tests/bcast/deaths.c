/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that die or stop while they wait, or at once. tests/kill/bcast.c strikes everywhere. */
#include <signal.h>
#include <string.h>

#include "pair.h"

static void join_and_idle(void *arg)
{
    (void)arg;
    (void)ring_join();
    test_sleep_ns(TEST_PATIENCE_NS);
}

TEST(a_dead_reader_does_not_hold_the_writer_up)
{
    struct velo_bcast *ring = ring_open(8, 0, 0, 0);
    struct velo_bcast_reader *reader = ring_join();
    pid_t dead = child_start(join_and_idle, NULL);

    while (velo_bcast_readers(ring) < 2)
        test_sleep_ns(TEST_MS);
    for (uint64_t n = 0; n < 8; n++)
        numbered_send(ring, n, 60);
    for (uint64_t n = 0; n < 8; n++)
        numbered_expect(reader, n, 60);
    CHECK_STATUS(velo_bcast_send(ring, "x", 1, 0, 5 * TEST_MS), VELO_TIMEOUT);
    child_kill(dead);
    numbered_send(ring, 8, 60);
    numbered_expect(reader, 8, 60);
    CHECK_EQ(velo_bcast_readers(ring), 1);
    CHECK_OK(velo_bcast_leave(reader));
    CHECK_OK(velo_bcast_close(ring));
}

TEST(a_writer_that_only_tries_is_rid_of_a_dead_reader_too)
{
    struct velo_bcast *ring = ring_open(8, 0, 0, 0);
    pid_t dead = child_start(join_and_idle, NULL);

    while (velo_bcast_readers(ring) < 1)
        test_sleep_ns(TEST_MS);
    while (velo_bcast_try_send(ring, "x", 1, 0) == VELO_OK)
        ;
    child_kill(dead);
    CHECK_OK(SOON(velo_bcast_try_send(ring, "x", 1, 0)));
    CHECK_OK(velo_bcast_close(ring));
}

TEST(the_places_of_dead_readers_are_taken_again)
{
    struct velo_bcast_attr attr = VELO_BCAST_ATTR_INIT;
    struct velo_bcast *ring;
    struct velo_bcast_reader *reader;

    attr.readers_max = 1;
    CHECK_OK(velo_bcast_open(&attr, &ring));
    for (int i = 0; i < 20; i++) {
        pid_t dead = child_start(join_and_idle, NULL);

        while (velo_bcast_readers(ring) < 1)
            test_sleep_ns(100 * TEST_US);
        CHECK_STATUS(velo_bcast_join(NULL, &reader, 0), VELO_ERR_FULL);
        child_kill(dead);
        CHECK_OK(velo_bcast_join(NULL, &reader, 0));
        numbered_send(ring, 1, 60);
        numbered_expect(reader, 1, 60);
        CHECK_OK(velo_bcast_leave(reader));
    }
    CHECK_OK(velo_bcast_close(ring));
}

static void send_and_idle(void *arg)
{
    struct velo_bcast *ring = ring_open(8, 0, 0, *(uint32_t *)arg);

    while (velo_bcast_readers(ring) < 1)
        test_sleep_ns(TEST_MS);
    for (uint64_t n = 0; n < 3; n++)
        numbered_send(ring, n, 60);
    test_sleep_ns(TEST_PATIENCE_NS);
}

TEST(readers_of_a_dead_writer_take_what_it_sent_and_get_an_error)
{
    /* In a domain in which nothing lives, any program that opens its first port would take the dead
     * ring away. */
    struct velo_port *living = port_open(1);

    for (uint32_t flags = 0; flags <= VELO_BCAST_DROP; flags++) {
        pid_t writer = child_start(send_and_idle, &flags);
        struct velo_bcast_reader *reader = ring_join();
        struct velo_bcast_reader *late;

        numbered_expect(reader, 0, 60);
        test_sleep_ns(20 * TEST_MS);
        child_kill(writer);
        CHECK_STATUS(velo_bcast_status(reader), VELO_ERR_PEER_DEAD);
        CHECK_STATUS(velo_bcast_join(NULL, &late, 0), VELO_ERR_PEER_DEAD);
        numbered_expect(reader, 1, 60);
        numbered_expect(reader, 2, 60);
        CHECK_STATUS(velo_bcast_recv(reader, NULL, 0, NULL, VELO_FOREVER), VELO_ERR_PEER_DEAD);
        CHECK_STATUS(SOON(velo_bcast_try_recv(reader, NULL, 0, NULL)), VELO_ERR_PEER_DEAD);
        /* Another writer takes the name; the old ring stays dead. */
        struct velo_bcast *ring = ring_open(8, 0, 0, 0);
        CHECK_STATUS(velo_bcast_recv(reader, NULL, 0, NULL, VELO_FOREVER), VELO_ERR_PEER_DEAD);
        CHECK_OK(velo_bcast_leave(reader));
        CHECK_OK(velo_bcast_close(ring));
    }
    CHECK_OK(velo_port_close(living));
}

TEST(a_stopped_reader_of_a_dropping_ring_holds_nobody_up)
{
    struct velo_bcast *ring = ring_open(8, 0, 0, VELO_BCAST_DROP);
    struct velo_bcast_reader *reader = ring_join();
    pid_t stopped = child_start(join_and_idle, NULL);

    while (velo_bcast_readers(ring) < 2)
        test_sleep_ns(TEST_MS);
    kill(stopped, SIGSTOP);
    for (uint64_t n = 0; n < 1000; n++) {
        numbered_send(ring, n, 60);
        numbered_expect(reader, n, 60);
    }
    CHECK_EQ(velo_bcast_missed(reader), 0);
    child_kill(stopped);
    CHECK_OK(velo_bcast_leave(reader));
    CHECK_OK(velo_bcast_close(ring));
}

struct inherited {
    struct velo_bcast *ring;
    struct velo_bcast_reader *reader;
};

static void close_what_is_the_parents(void *arg)
{
    const struct inherited *of_parent = arg;

    CHECK_OK(velo_bcast_leave(of_parent->reader));
    CHECK_OK(velo_bcast_close(of_parent->ring));
}

TEST(a_child_that_closes_the_ring_of_its_parent_closes_nothing)
{
    struct inherited inherited = {.ring = ring_open(8, 0, 0, 0), .reader = ring_join()};

    numbered_send(inherited.ring, 0, 60);
    child_join(child_start(close_what_is_the_parents, &inherited));
    numbered_expect(inherited.reader, 0, 60);
    CHECK_EQ(velo_bcast_readers(inherited.ring), 1);
    numbered_send(inherited.ring, 1, 60);
    numbered_expect(inherited.reader, 1, 60);
    CHECK_OK(velo_bcast_leave(ring_join()));
    CHECK_OK(velo_bcast_leave(inherited.reader));
    CHECK_OK(velo_bcast_close(inherited.ring));
}
