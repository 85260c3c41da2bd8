/* SPDX-License-Identifier: Apache-2.0 */
/* Readers that come and go, and the writer that closes. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "futex_forever.h"
#include "pair.h"

TEST(a_reader_starts_with_the_first_message_sent_after_it_joined)
{
    for (uint32_t flags = 0; flags <= VELO_BCAST_DROP; flags++) {
        struct velo_bcast *ring = ring_open(8, 0, 0, flags);

        for (uint64_t n = 0; n < 21; n++) /* Without readers there is always room. */
            CHECK_OK(velo_bcast_try_send(ring, &n, 8, 0));
        struct velo_bcast_reader *reader = ring_join();
        CHECK_STATUS(velo_bcast_try_recv(reader, NULL, 0, NULL), VELO_AGAIN);
        numbered_send(ring, 21, 60);
        numbered_expect(reader, 21, 60);
        CHECK_OK(velo_bcast_leave(reader));
        CHECK_OK(velo_bcast_close(ring));
    }
}

TEST(a_writer_does_not_wait_for_readers_that_left)
{
    struct velo_bcast *ring = ring_open(8, 0, 0, 0);
    struct velo_bcast_reader *reader = ring_join(), *other = ring_join();

    for (uint64_t n = 0; n < 8; n++)
        numbered_send(ring, n, 60);
    for (uint64_t n = 0; n < 8; n++)
        numbered_expect(other, n, 60);
    CHECK_STATUS(velo_bcast_try_send(ring, "x", 1, 0), VELO_AGAIN);
    CHECK_OK(velo_bcast_leave(reader));
    numbered_send(ring, 8, 60);
    numbered_expect(other, 8, 60);
    CHECK_OK(velo_bcast_leave(other));
    CHECK_OK(velo_bcast_close(ring));
}

TEST(messages_sent_before_the_close_are_still_taken)
{
    for (uint32_t flags = 0; flags <= VELO_BCAST_DROP; flags++) {
        struct velo_bcast *ring = ring_open(8, 0, 0, flags);
        struct velo_bcast_reader *reader = ring_join();

        for (uint64_t n = 0; n < 3; n++)
            numbered_send(ring, n, 60);
        CHECK_OK(velo_bcast_status(reader));
        CHECK_OK(velo_bcast_close(ring));
        CHECK_STATUS(velo_bcast_status(reader), VELO_ERR_PEER_CLOSED);
        for (uint64_t n = 0; n < 3; n++)
            numbered_expect(reader, n, 60);
        CHECK_STATUS(velo_bcast_try_recv(reader, NULL, 0, NULL), VELO_ERR_PEER_CLOSED);
        CHECK_STATUS(velo_bcast_recv(reader, NULL, 0, NULL, VELO_FOREVER), VELO_ERR_PEER_CLOSED);
        CHECK_OK(velo_bcast_leave(reader));
    }
}

static void *close_later(void *arg)
{
    test_sleep_ns(100 * TEST_MS);
    CHECK_OK(velo_bcast_close(arg));
    return NULL;
}

TEST(a_close_ends_the_sleep_of_a_reader)
{
    struct velo_bcast *ring = ring_open(8, 0, 0, 0);
    struct velo_bcast_reader *reader = ring_join();
    pthread_t closer;

    futex_forever = true;
    CHECK_EQ(pthread_create(&closer, NULL, close_later, ring), 0);
    CHECK_STATUS(velo_bcast_recv(reader, NULL, 0, NULL, TEST_PATIENCE_NS), VELO_ERR_PEER_CLOSED);
    CHECK_EQ(pthread_join(closer, NULL), 0);
    futex_forever = false;
    CHECK_OK(velo_bcast_leave(reader));
}

static void *open_later(void *arg)
{
    (void)arg;
    test_sleep_ns(50 * TEST_MS);
    return ring_open(0, 0, 0, 0);
}

TEST(join_waits_for_the_ring_to_be_opened)
{
    struct velo_bcast_reader *reader;
    void *ring;
    pthread_t opener;

    CHECK_STATUS(velo_bcast_join(NULL, &reader, 10 * TEST_MS), VELO_ERR_NO_PEER);
    CHECK_EQ(pthread_create(&opener, NULL, open_later, NULL), 0);
    CHECK_OK(velo_bcast_join(NULL, &reader, TEST_PATIENCE_NS));
    CHECK_EQ(pthread_join(opener, &ring), 0);
    CHECK_OK(velo_bcast_leave(reader));
    CHECK_OK(velo_bcast_close(ring));
}

TEST(rings_and_ports_have_ids_of_their_own)
{
    struct velo_port *port = port_open(0);
    struct velo_bcast *ring = ring_open(0, 0, 0, 0);
    struct velo_bcast_reader *reader = ring_join();

    CHECK_EQ(velo_bcast_id(ring), velo_port_id(port));
    numbered_send(ring, 1, 60);
    numbered_expect(reader, 1, 60);
    CHECK_OK(velo_bcast_leave(reader));
    CHECK_OK(velo_bcast_close(ring));
    CHECK_OK(velo_port_close(port));
}

/* The writer streams all the time; readers join, take some messages, and leave. */
static atomic_bool is_over;

static void *stream(void *arg)
{
    struct velo_bcast *ring = arg;
    uint64_t n = 0;

    for (; !atomic_load(&is_over); n++)
        numbered_send(ring, n, 500);
    return NULL;
}

static void *come_and_go(void *arg)
{
    struct rng rng = {test_seed() + (uint64_t)(uintptr_t)arg};
    char buf[500];
    struct velo_msg msg;

    for (int times = 0; times < 400; times++) {
        struct velo_bcast_reader *reader = ring_join();
        uint64_t next = 0;
        for (uint32_t i = 0, count = rng_below(&rng, 60); i < count; i++) {
            CHECK_OK(velo_bcast_recv(reader, buf, sizeof buf, &msg, TEST_PATIENCE_NS));
            uint64_t number = numbered_check(&msg, 500);
            CHECK(i == 0 || number == next);
            next = number + 1;
        }
        CHECK_OK(velo_bcast_leave(reader));
    }
    return NULL;
}

TEST(readers_that_come_and_go_miss_nothing_in_between)
{
    struct velo_bcast *ring = ring_open(8, 500, 2048, 0);
    pthread_t writer, readers[3];

    atomic_store(&is_over, false);
    CHECK_EQ(pthread_create(&writer, NULL, stream, ring), 0);
    for (uintptr_t i = 0; i < 3; i++)
        CHECK_EQ(pthread_create(&readers[i], NULL, come_and_go, (void *)i), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_join(readers[i], NULL), 0);
    atomic_store(&is_over, true);
    CHECK_EQ(pthread_join(writer, NULL), 0);
    CHECK_EQ(velo_bcast_readers(ring), 0);
    CHECK_OK(velo_bcast_close(ring));
}
