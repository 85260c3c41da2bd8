/* SPDX-License-Identifier: Apache-2.0 */
/* Flow control: a full ring pushes back, and nothing is lost by it. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

/* A slot takes one message, or so many short ones at most. */
#define SHORT_PER_SLOT 4u

/* Send messages of one length until the ring is full; the seeds count up from *seed. */
static uint32_t fill_ring(struct velo_conn *conn, size_t len_bytes, uint64_t *seed)
{
    static unsigned char buf[65536];
    uint32_t sent = 0;
    int status;

    for (;; sent++, (*seed)++) {
        pattern_fill(buf, len_bytes, *seed);
        status = velo_try_send(conn, buf, len_bytes, pattern_tag(*seed));
        if (status != VELO_OK)
            break;
    }
    CHECK_STATUS(status, VELO_AGAIN);
    return sent;
}

TEST(a_full_ring_says_again_and_loses_nothing)
{
    static const size_t lens[] = {0, 8, 56, 57, 512, 4000, 4096};
    struct velo_port *port = port_open_sized(VELO_VPID_ANY, 64, 16384, 0);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    struct velo_conn *other = port_connect(port, velo_port_id(port));
    velo_id_t self = velo_port_id(port);
    struct velo_msg msg;

    for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
        for (int round = 0; round < 50; round++) {
            uint64_t first = 1000 * i, next = first;
            uint32_t sent = fill_ring(conn, lens[i], &next);
            bool has_slots; /* Only the room for long messages is used up. */
            void *place;

            CHECK(sent >= 3);
            CHECK(sent <= 64 * SHORT_PER_SLOT);
            if (lens[i] <= VELO_INLINE_BYTES)
                CHECK(sent >= 32);
            has_slots = velo_try_send(conn, "", 1, 0) == VELO_OK;
            CHECK(!has_slots || lens[i] > VELO_INLINE_BYTES);
            if (!has_slots)
                CHECK_STATUS(velo_try_sendv(conn, NULL, 0, 0), VELO_AGAIN);
            CHECK_STATUS(velo_try_reserve(conn, lens[i], &place), VELO_AGAIN);
            for (uint64_t seed = first; seed < next; seed++)
                message_expect(port, lens[i], seed, self);
            if (has_slots)
                CHECK_OK(SOON(velo_try_recv(port, &(char){0}, 1, &msg)));
            CHECK_STATUS(velo_try_peek(port, &msg), VELO_AGAIN);
            /* It takes the way of the credits, behind them: no credit comes after it. */
            message_send(other, 8, next);
            message_expect(port, 8, next, self);
        }
    }
    CHECK_OK(velo_port_close(port));
}

TEST(short_messages_share_a_slot_unless_each_is_to_have_a_line)
{
    for (int by_line = 0; by_line < 2; by_line++) {
        CHECK_EQ(setenv("VELO_MESSAGE_LINES", by_line ? "1" : "0", 1), 0);
        struct velo_port *port = port_open_sized(VELO_VPID_ANY, 64, 16384, 0);
        struct velo_conn *conn = port_connect(port, velo_port_id(port));
        uint64_t next = 0;
        uint32_t sent = fill_ring(conn, 8, &next);

        CHECK(sent == 64 || (!by_line && sent == 64 * SHORT_PER_SLOT));
        for (uint64_t seed = 0; seed < next; seed++)
            message_expect(port, 8, seed, velo_port_id(port));
        for (uint64_t i = 0; i < test_rounds(10000);
             i++) { /* Of all lengths, one behind the other. */
            size_t len_bytes = test_mix(i) % (VELO_INLINE_BYTES + 4);
            message_send(conn, len_bytes, i);
            message_send(conn, len_bytes / 3, i + 1);
            message_expect(port, len_bytes, i, velo_port_id(port));
            message_expect(port, len_bytes / 3, i + 1, velo_port_id(port));
        }
        CHECK_OK(velo_port_close(port));
    }
}

TEST(a_full_ring_has_room_again_once_messages_are_received)
{
    struct velo_port *port = port_open_sized(VELO_VPID_ANY, 32, 16384, 0);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    velo_id_t self = velo_port_id(port);
    uint64_t sent = 0, received = 0;

    fill_ring(conn, 8, &sent);
    for (uint32_t round = 0; round < test_rounds(1000); round++) {
        /* After a whole ring of receives at the latest, the sender must have been told. */
        for (int i = 0; i < 32 && received < sent; i++, received++)
            message_expect(port, 8, received, self);
        message_send(conn, 8, sent++); /* Waits until it has. */
        fill_ring(conn, 8, &sent);
    }
    for (; received < sent; received++)
        message_expect(port, 8, received, self);
    CHECK_OK(velo_port_close(port));
}

TEST(one_full_ring_does_not_stop_another_connection)
{
    struct velo_port *port = port_open_sized(VELO_VPID_ANY, 8, 16384, 0);
    struct velo_conn *full = port_connect(port, velo_port_id(port));
    struct velo_conn *other = port_connect(port, velo_port_id(port));
    uint64_t sent = 0;

    fill_ring(full, 8, &sent);
    CHECK_OK(velo_try_send(other, "y", 1, 77));
    for (uint64_t i = 0; i <= sent; i++)
        CHECK_OK(SOON(velo_try_recv(port, &(uint64_t){0}, 8, NULL)));
    CHECK_OK(velo_port_close(port));
}

struct blocked_sender {
    struct velo_conn *conn;
    size_t len_bytes;
    uint64_t seed;
    bool in_place;
    atomic_int done;
};

static void *send_one(void *arg)
{
    struct blocked_sender *sender = arg;
    void *place;

    if (sender->in_place) {
        CHECK_OK(velo_reserve(sender->conn, sender->len_bytes, &place, VELO_FOREVER));
        pattern_fill(place, sender->len_bytes, sender->seed);
        CHECK_OK(velo_commit(sender->conn, sender->len_bytes, pattern_tag(sender->seed)));
    } else {
        message_send(sender->conn, sender->len_bytes, sender->seed);
    }
    atomic_store(&sender->done, 1);
    return NULL;
}

static void check_that_send_waits(size_t len_bytes, bool in_place)
{
    struct velo_port *port = port_open_sized(VELO_VPID_ANY, 8, 16384, 0);
    velo_id_t self = velo_port_id(port);
    struct velo_conn *conn = port_connect(port, self);
    uint64_t sent = 0;
    pthread_t thread;

    fill_ring(conn, len_bytes, &sent);
    struct blocked_sender sender = {conn, len_bytes, sent, in_place, 0};
    CHECK_EQ(pthread_create(&thread, NULL, send_one, &sender), 0);
    test_sleep_ns(30 * TEST_MS);
    CHECK_EQ(atomic_load(&sender.done), 0);

    for (uint64_t seed = 0; seed <= sent; seed++)
        message_expect(port, len_bytes, seed, self);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(atomic_load(&sender.done), 1);
    CHECK_OK(velo_port_close(port));
}

TEST(a_blocking_send_waits_for_room_and_then_delivers)
{
    check_that_send_waits(8, false);
    check_that_send_waits(4096, false);
}

TEST(a_blocking_reserve_waits_for_room_and_then_delivers)
{
    check_that_send_waits(8, true);
    check_that_send_waits(4096, true);
}

struct stream {
    uint32_t msgs;
    uint32_t len_max;
    int64_t pause_max_ns; /* Now and then the side pauses for up to this long. */
};

static size_t stream_len(const struct stream *stream, uint64_t seed)
{
    return (size_t)(test_mix(seed ^ 0x1234) % (stream->len_max + 1));
}

static void maybe_pause(const struct stream *stream, struct rng *rng)
{
    if (stream->pause_max_ns > 0 && rng_below(rng, 8) == 0)
        test_sleep_ns(rng_below(rng, (uint32_t)stream->pause_max_ns));
}

static void send_stream(void *arg)
{
    const struct stream *stream = arg;
    struct velo_port *port = port_open(1);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 0));
    struct rng rng = {test_seed()};

    for (uint64_t seed = 0; seed < stream->msgs; seed++) {
        size_t len = stream_len(stream, seed);
        void *place;

        if (seed % 3 == 0) {
            CHECK_OK(velo_reserve(conn, len, &place, VELO_FOREVER));
            pattern_fill(place, len, seed);
            CHECK_OK(velo_commit(conn, len, pattern_tag(seed)));
        } else {
            message_send(conn, len, seed);
        }
        maybe_pause(stream, &rng);
    }
    CHECK_OK(velo_port_close(port));
}

static void receive_stream(struct velo_port *port, const struct stream *stream)
{
    struct rng rng = {~test_seed()};
    pid_t sender = child_start(send_stream, (void *)stream);

    for (uint64_t seed = 0; seed < stream->msgs; seed++) {
        message_expect(port, stream_len(stream, seed), seed, VELO_ID(0, 1));
        maybe_pause(stream, &rng);
    }
    child_join(sender);
}

TEST(a_tiny_ring_passes_a_long_stream)
{
    struct velo_port *port = port_open_sized(0, 8, 16384, 1);
    struct stream stream = {test_rounds(100000), 120, 0};

    receive_stream(port, &stream);
    CHECK_OK(velo_port_close(port));
}

TEST(rings_wrap_around_under_messages_of_every_size)
{
    struct velo_port *port = port_open_sized(0, 64, 16384, 1);
    struct stream short_and_long = {test_rounds(200000), 300, 0};
    struct stream up_to_the_longest = {test_rounds(50000), 4096, 0};

    receive_stream(port, &short_and_long);
    receive_stream(port, &up_to_the_longest);
    CHECK_OK(velo_port_close(port));
}

TEST(a_sender_asleep_for_room_is_woken_however_the_two_meet)
{
    struct velo_port *port = port_open_sized(0, 8, 16384, 1);
    struct stream short_msgs = {test_rounds(10000), 56, 200 * TEST_US};
    struct stream long_msgs = {test_rounds(5000), 4096, 200 * TEST_US};

    receive_stream(port, &short_msgs);
    receive_stream(port, &long_msgs);
    CHECK_OK(velo_port_close(port));
}

/* One thread plays both sides, so a failure replays exactly from its seed. */
TEST(a_random_walk_through_ring_states_replayed_from_a_seed_loses_nothing)
{
    static const uint32_t depths[] = {8, 16, 256};
    static unsigned char buf[65536];

    for (size_t shape = 0; shape < ARRAY_LEN(depths); shape++) {
        struct velo_port *port = port_open_sized(VELO_VPID_ANY, depths[shape], 16384, 0);
        struct velo_conn *conn = port_connect(port, velo_port_id(port));
        struct rng rng = {test_seed() + shape};
        uint64_t sent = 0, received = 0;

        while (received < test_rounds(150000)) {
            /* Phases of mostly sending and mostly receiving visit both full and empty rings. */
            uint32_t sends = rng_below(&rng, 2 * depths[shape]);
            uint32_t receives = rng_below(&rng, 2 * depths[shape]);
            uint32_t len_max = rng_below(&rng, 2) ? 80 : 4096;
            struct velo_msg msg;

            for (uint32_t i = 0; i < sends; i++) {
                size_t len = rng_below(&rng, len_max + 1);
                int status;

                if (rng_below(&rng, 2)) {
                    void *place;
                    size_t less = rng_below(&rng, (uint32_t)len + 1);

                    status = velo_try_reserve(conn, len, &place);
                    if (status == VELO_OK) {
                        memset(place, 0xff, len);
                        pattern_fill(place, less, sent);
                        status = velo_commit(conn, less, pattern_tag(sent));
                    }
                } else {
                    pattern_fill(buf, len, sent);
                    status = velo_try_send(conn, buf, len, pattern_tag(sent));
                }
                if (status == VELO_AGAIN)
                    break;
                CHECK_OK(status);
                sent++;
            }
            for (uint32_t i = 0; i < receives && received < sent; i++) {
                if (rng_below(&rng, 2)) {
                    CHECK_OK(SOON(velo_try_peek(port, &msg)));
                    CHECK(pattern_matches(msg.data, msg.len_bytes, received));
                    CHECK_OK(velo_release(port));
                } else {
                    CHECK_OK(SOON(velo_try_recv(port, buf, sizeof(buf), &msg)));
                    CHECK(pattern_matches(buf, msg.len_bytes, received));
                }
                CHECK_EQ(msg.tag, pattern_tag(received));
                received++;
            }
        }
        CHECK_OK(velo_port_close(port));
    }
}
