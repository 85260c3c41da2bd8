/* SPDX-License-Identifier: Apache-2.0 */
/* Rings that drop: the writer never waits, and a reader learns what it has missed. */
#include <stdatomic.h>
#include <stdlib.h>

#include "pair.h"

TEST(a_reader_that_was_overtaken_learns_how_many_messages_it_missed)
{
    struct velo_bcast *ring = ring_open(8, 0, 0, VELO_BCAST_DROP);
    struct velo_bcast_reader *reader = ring_join();
    uint64_t number;

    for (uint64_t n = 0; n < 8; n++)
        CHECK_OK(velo_bcast_try_send(ring, &n, 8, 0));
    CHECK_OK(velo_bcast_try_recv(reader, &number, 8, NULL));
    CHECK_EQ(number, 0);
    for (uint64_t n = 8; n < 100; n++)
        CHECK_OK(velo_bcast_try_send(ring, &n, 8, 0));
    CHECK_STATUS(velo_bcast_try_recv(reader, &number, 8, NULL), VELO_ERR_MISSED);
    CHECK_EQ(velo_bcast_missed(reader), 98); /* 1 to 98: it goes on with the newest. */
    CHECK_OK(velo_bcast_try_recv(reader, &number, 8, NULL));
    CHECK_EQ(number, 99);
    CHECK_STATUS(velo_bcast_try_recv(reader, &number, 8, NULL), VELO_AGAIN);
    CHECK_EQ(velo_bcast_missed(reader), 98);
    CHECK_OK(velo_bcast_leave(reader));
    CHECK_OK(velo_bcast_close(ring));
}

/* Few long messages overwrite each other's data long before their slots. */
TEST(a_long_message_whose_data_was_overwritten_is_missed)
{
    struct velo_bcast *ring = ring_open(256, 1000, 2048, VELO_BCAST_DROP);
    struct velo_bcast_reader *reader = ring_join();
    char buf[1000];
    struct velo_msg msg;

    for (uint64_t n = 0; n < 5; n++) {
        pattern_fill(buf, sizeof buf, n);
        CHECK_OK(velo_bcast_try_send(ring, buf, sizeof buf, (uint8_t)n));
    }
    CHECK_STATUS(velo_bcast_try_recv(reader, buf, sizeof buf, &msg), VELO_ERR_MISSED);
    CHECK_EQ(velo_bcast_missed(reader), 4);
    CHECK_OK(velo_bcast_try_recv(reader, buf, sizeof buf, &msg));
    CHECK_EQ(msg.tag, 4);
    CHECK(pattern_matches(buf, sizeof buf, 4));
    CHECK_OK(velo_bcast_leave(reader));
    CHECK_OK(velo_bcast_close(ring));
}

/* A reservation announces itself: what it may overwrite is lost from then on. */
TEST(a_reservation_overwrites_the_oldest_message)
{
    struct velo_bcast *ring = ring_open(8, 1000, 2048, VELO_BCAST_DROP);
    struct velo_bcast_reader *reader = ring_join();
    char buf[1000];
    void *place;

    for (uint64_t n = 0; n < 2; n++)
        CHECK_OK(velo_bcast_try_send(ring, buf, sizeof buf, (uint8_t)n));
    CHECK_OK(velo_bcast_try_reserve(ring, 1000, &place));
    CHECK_STATUS(velo_bcast_try_recv(reader, buf, sizeof buf, NULL), VELO_ERR_MISSED);
    CHECK_EQ(velo_bcast_missed(reader), 1);
    CHECK_OK(velo_bcast_commit(ring, 10, 2));
    /* Only 10 bytes were used, but all that was reserved may have been written to. */
    CHECK_OK(velo_bcast_try_recv(reader, buf, sizeof buf, NULL));
    CHECK_OK(velo_bcast_try_recv(reader, buf, sizeof buf, NULL));
    CHECK_OK(velo_bcast_leave(reader));
    CHECK_OK(velo_bcast_close(ring));
}

/* Slots were never overwritten, then one is about to be: nobody takes it for a message. */
TEST(a_slot_that_is_being_overwritten_holds_no_message)
{
    struct velo_bcast *ring = ring_open(8, 0, 0, VELO_BCAST_DROP);
    struct velo_bcast_reader *reader = ring_join();
    uint64_t number = 0;
    void *place;

    for (uint64_t n = 0; n < 8; n++)
        CHECK_OK(velo_bcast_try_send(ring, &n, 8, 0));
    CHECK_OK(velo_bcast_try_reserve(ring, 8, &place));
    CHECK_STATUS(velo_bcast_try_recv(reader, &number, 8, NULL), VELO_ERR_MISSED);
    CHECK_EQ(velo_bcast_missed(reader), 7);
    CHECK_OK(velo_bcast_try_recv(reader, &number, 8, NULL));
    CHECK_EQ(number, 7);
    CHECK_STATUS(velo_bcast_try_recv(reader, &number, 8, NULL), VELO_AGAIN);
    CHECK_OK(velo_bcast_commit(ring, 8, 0));
    CHECK_OK(velo_bcast_try_recv(reader, &number, 8, NULL));
    CHECK_OK(velo_bcast_leave(reader));
    CHECK_OK(velo_bcast_close(ring));
}

enum { LEN_MAX = 3000 };

struct progress {
    atomic_ullong sent;
    atomic_ullong taken[3];
    atomic_ullong missed[3];
};

struct slow {
    struct progress *progress;
    uint32_t index;
};

static void read_what_is_left(void *arg)
{
    const struct slow *self = arg;
    struct velo_bcast_reader *reader = ring_join();
    struct rng rng = {test_seed() + self->index};
    uint64_t taken = 0, first = 0;
    char buf[LEN_MAX];
    struct velo_msg msg;
    int status;

    while ((status = velo_bcast_recv(reader, buf, sizeof buf, &msg, TEST_PATIENCE_NS)) !=
           VELO_ERR_PEER_CLOSED) {
        if (status == VELO_ERR_MISSED)
            continue;
        CHECK_OK(status);
        uint64_t number = numbered_check(&msg, LEN_MAX);
        if (taken == 0)
            first = number - velo_bcast_missed(reader);
        taken++;
        /* Each message was either taken or missed. */
        CHECK_EQ(number - first + 1, taken + velo_bcast_missed(reader));
        if (rng_below(&rng, 100) == 0)
            test_sleep_ns(rng_below(&rng, 100000) * self->index);
        atomic_store(&self->progress->taken[self->index], taken);
    }
    atomic_store(&self->progress->missed[self->index], velo_bcast_missed(reader));
    CHECK_EQ(atomic_load(&self->progress->sent) - first, taken + velo_bcast_missed(reader));
    CHECK_OK(velo_bcast_leave(reader));
}

static void overtake_readers(uint32_t depth_slots, uint32_t data_bytes)
{
    struct progress *progress = test_shared_alloc(sizeof *progress);
    struct velo_bcast *ring = ring_open(depth_slots, LEN_MAX, data_bytes, VELO_BCAST_DROP);
    pid_t readers[3];
    uint64_t n = 0;

    for (uint32_t i = 0; i < 3; i++)
        readers[i] = child_start(read_what_is_left, &(struct slow){progress, i});
    while (velo_bcast_readers(ring) < 3)
        test_sleep_ns(TEST_MS);
    for (int64_t end_ns = test_now_ns() + 500 * TEST_MS; test_now_ns() < end_ns; n++)
        numbered_send(ring, n, LEN_MAX);
    atomic_store(&progress->sent, n);
    CHECK_OK(velo_bcast_close(ring));
    for (uint32_t i = 0; i < 3; i++)
        child_join(readers[i]);
    CHECK(atomic_load(&progress->taken[2]) > 0);
    CHECK(atomic_load(&progress->missed[2]) > 0);
}

TEST(readers_whose_slots_are_overtaken_at_any_time_take_no_mixed_message)
{
    overtake_readers(8, 65536);
}

TEST(readers_whose_data_is_overtaken_at_any_time_take_no_mixed_message)
{
    overtake_readers(256, 8192);
}
