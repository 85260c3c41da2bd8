/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of a ring that pushes back: lengths, order, in place, one copy for all. */
#include <stdlib.h>
#include <string.h>

#include "pair.h"

TEST(a_message_reaches_every_reader)
{
    struct velo_bcast *ring = ring_open(0, 0, 0, 0);
    struct velo_bcast_reader *readers[VELO_BCAST_READERS_MAX];

    for (size_t i = 0; i < ARRAY_LEN(readers); i++)
        readers[i] = ring_join();
    CHECK_EQ(velo_bcast_readers(ring), VELO_BCAST_READERS_MAX);
    for (uint64_t n = 0; n < 20; n++)
        numbered_send(ring, n, 4096);
    for (size_t i = 0; i < ARRAY_LEN(readers); i++)
        for (uint64_t n = 0; n < 20; n++)
            numbered_expect(readers[i], n, 4096);
    for (size_t i = 0; i < ARRAY_LEN(readers); i++) {
        CHECK_STATUS(velo_bcast_try_recv(readers[i], NULL, 0, NULL), VELO_AGAIN);
        CHECK_EQ(velo_bcast_missed(readers[i]), 0);
        CHECK_OK(velo_bcast_leave(readers[i]));
    }
    CHECK_EQ(velo_bcast_readers(ring), 0);
    CHECK_OK(velo_bcast_close(ring));
}

TEST(messages_of_every_length_arrive_intact_over_many_laps)
{
    struct velo_bcast *ring = ring_open(8, 1000, 2048, 0);
    struct velo_bcast_reader *reader = ring_join();
    char buf[1000], got[1000];
    struct velo_msg msg;

    for (size_t lap = 0; lap < 3; lap++) {
        for (size_t len = 0; len <= sizeof buf; len++) {
            pattern_fill(buf, len, len + lap);
            CHECK_OK(velo_bcast_try_send(ring, buf, len, (uint8_t)len));
            memset(got, 0, sizeof got);
            CHECK_OK(velo_bcast_try_recv(reader, got, sizeof got, &msg));
            CHECK_EQ(msg.len_bytes, len);
            CHECK_EQ(msg.tag, (uint8_t)len);
            CHECK(pattern_matches(got, len, len + lap));
        }
    }
    CHECK_OK(velo_bcast_leave(reader));
    CHECK_OK(velo_bcast_close(ring));
}

TEST(the_longest_messages_take_turns_in_the_smallest_region)
{
    struct velo_bcast *ring = ring_open(8, 512, 1024, 0);
    struct velo_bcast_reader *reader = ring_join();
    char buf[512], got[512];

    for (size_t i = 0; i < 500; i++) {
        size_t len = i % 3 ? sizeof buf : 65 + i % 400;

        pattern_fill(buf, len, i);
        CHECK_OK(velo_bcast_try_send(ring, buf, len, 0));
        CHECK_OK(velo_bcast_try_recv(reader, got, sizeof got, NULL));
        CHECK(pattern_matches(got, len, i));
    }
    CHECK_OK(velo_bcast_leave(reader));
    CHECK_OK(velo_bcast_close(ring));
}

TEST(a_message_of_ten_megabytes_is_read_in_place)
{
    const size_t len = 10000000;
    struct velo_bcast *ring = ring_open(0, (uint32_t)len, 0, 0);
    struct velo_bcast_reader *readers[2] = {ring_join(), ring_join()};
    struct velo_msg msg[2];
    void *place;

    for (uint64_t n = 0; n < 8; n++) {
        CHECK_OK(velo_bcast_try_reserve(ring, len, &place));
        pattern_fill(place, len, n);
        CHECK_OK(velo_bcast_commit(ring, len, 1));
        for (int i = 0; i < 2; i++) {
            CHECK_OK(velo_bcast_try_peek(readers[i], &msg[i]));
            CHECK_EQ(msg[i].len_bytes, len);
            CHECK(pattern_matches(msg[i].data, len, n));
        }
        for (int i = 0; i < 2; i++)
            CHECK_OK(velo_bcast_release(readers[i]));
    }
    for (int i = 0; i < 2; i++)
        CHECK_OK(velo_bcast_leave(readers[i]));
    CHECK_OK(velo_bcast_close(ring));
}

TEST(a_message_that_is_held_is_not_overwritten)
{
    struct velo_bcast *ring = ring_open(8, 0, 0, 0);
    struct velo_bcast_reader *reader = ring_join();
    struct velo_msg msg;
    uint64_t sent = 0;

    CHECK_OK(velo_bcast_try_send(ring, "first", 6, 7));
    CHECK_OK(velo_bcast_peek(reader, &msg, TEST_PATIENCE_NS));
    while (velo_bcast_try_send(ring, "other", 6, 0) == VELO_OK)
        sent++;
    CHECK_EQ(sent, 7);
    CHECK(memcmp(msg.data, "first", 6) == 0);
    CHECK_EQ(msg.tag, 7);
    CHECK_OK(velo_bcast_release(reader));
    CHECK_OK(velo_bcast_try_send(ring, "other", 6, 0));
    CHECK_OK(velo_bcast_leave(reader));
    CHECK_OK(velo_bcast_close(ring));
}

TEST(a_message_that_does_not_fit_the_buffer_stays)
{
    for (uint32_t flags = 0; flags <= VELO_BCAST_DROP; flags++) {
        struct velo_bcast *ring = ring_open(0, 0, 0, flags);
        struct velo_bcast_reader *reader = ring_join();
        struct velo_msg msg;
        char buf[100];

        CHECK_OK(velo_bcast_try_send(ring, memset(buf, 3, sizeof buf), sizeof buf, 9));
        CHECK_STATUS(velo_bcast_try_recv(reader, buf, 99, &msg), VELO_ERR_TOO_BIG);
        CHECK_EQ(msg.len_bytes, 100);
        CHECK_EQ(msg.tag, 9);
        CHECK_OK(velo_bcast_try_recv(reader, buf, 100, &msg));
        CHECK_OK(velo_bcast_leave(reader));
        CHECK_OK(velo_bcast_close(ring));
    }
}

enum { READERS = 4, MSGS = 20000, LEN_MAX = 3000 };

static void read_all(void *arg)
{
    struct velo_bcast_reader *reader = ring_join();
    struct rng rng = {test_seed() + *(uint32_t *)arg};
    struct velo_msg msg;

    numbered_expect(reader, 0, LEN_MAX);
    for (uint64_t n = 1; n < MSGS; n++) {
        if (rng_below(&rng, 3000) == 0)
            test_sleep_ns(rng_below(&rng, 2000000));
        if (n % 2) {
            CHECK_OK(velo_bcast_peek(reader, &msg, TEST_PATIENCE_NS));
            CHECK_EQ(numbered_check(&msg, LEN_MAX), n);
            CHECK_OK(velo_bcast_release(reader));
        } else {
            numbered_expect(reader, n, LEN_MAX);
        }
    }
    CHECK_STATUS(velo_bcast_recv(reader, NULL, 0, NULL, TEST_PATIENCE_NS), VELO_ERR_PEER_CLOSED);
    CHECK_OK(velo_bcast_leave(reader));
}

/* Every reader at its own pace; the ring is short, so the writer waits for each of them. */
TEST(readers_in_other_processes_get_every_message_in_order)
{
    struct velo_bcast *ring = ring_open(16, LEN_MAX, 8192, 0);
    pid_t readers[READERS];

    for (uint32_t i = 0; i < READERS; i++)
        readers[i] = child_start(read_all, &i);
    while (velo_bcast_readers(ring) < READERS)
        test_sleep_ns(TEST_MS);
    for (uint64_t n = 0; n < MSGS; n++)
        numbered_send(ring, n, LEN_MAX);
    CHECK_OK(velo_bcast_close(ring));
    for (uint32_t i = 0; i < READERS; i++)
        child_join(readers[i]);
}
