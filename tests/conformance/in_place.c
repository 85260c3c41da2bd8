/* SPDX-License-Identifier: Apache-2.0 */
/* Building and reading messages in place: reserve and commit, peek and release. */
#include <stdlib.h>
#include <string.h>

#include "test.h"

static const size_t LENS[] = {0, 1, 8, 55, 56, 57, 64, 1000, 4096};

TEST(a_message_built_in_place_is_delivered)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));

    for (size_t i = 0; i < ARRAY_LEN(LENS); i++) {
        void *place = NULL;

        CHECK_OK(i % 2 ? velo_reserve(conn, LENS[i], &place, VELO_FOREVER)
                       : velo_try_reserve(conn, LENS[i], &place));
        CHECK(place != NULL);
        CHECK_EQ((uintptr_t)place % 8, 0);
        pattern_fill(place, LENS[i], i);
        CHECK_OK(velo_commit(conn, LENS[i], pattern_tag(i)));
        message_expect(port, LENS[i], i, velo_port_id(port));
    }
    CHECK_OK(velo_port_close(port));
}

TEST(a_word_sent_with_a_payload_follows_it)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    const size_t longest = velo_conn_max_bytes(conn) - sizeof(uint64_t);
    char *payload = malloc(longest + 1);
    struct velo_msg msg;

    CHECK(payload != NULL);
    for (size_t len = 0; len <= longest; len += len < 130 ? 1 : 997) {
        const uint64_t word = 0x0123456789abcdef * (len + 1);
        uint64_t found;

        pattern_fill(payload, len, len);
        struct iovec pieces[] = {{payload, len / 3},
                                 {NULL, 0},
                                 {payload + len / 3, len - len / 3},
                                 {(void *)&word, sizeof word}};
        CHECK_OK(len % 2 ? velo_try_sendv(conn, pieces, 4, pattern_tag(len))
                         : velo_sendv(conn, pieces, 4, pattern_tag(len), VELO_FOREVER));
        CHECK_OK(SOON(velo_try_peek(port, &msg)));
        CHECK_EQ(msg.len_bytes, len + sizeof word);
        CHECK_EQ(msg.tag, pattern_tag(len));
        CHECK(memcmp(msg.data, payload, len) == 0);
        memcpy(&found, (const char *)msg.data + len, sizeof found);
        CHECK_EQ(found, word);
        CHECK_OK(velo_release(port));
    }
    struct iovec too_big[] = {{payload, longest}, {payload, sizeof(uint64_t) + 1}};
    struct iovec beyond[] = {{payload, SIZE_MAX - 1}, {payload, 3}};
    CHECK_STATUS(velo_try_sendv(conn, too_big, 2, 0), VELO_ERR_TOO_BIG);
    CHECK_STATUS(velo_try_sendv(conn, beyond, 1, 0), VELO_ERR_TOO_BIG);
    CHECK_STATUS(velo_try_sendv(conn, beyond, 2, 0), VELO_ERR_ARG);
    free(payload);
    CHECK_OK(velo_port_close(port));
}

TEST(less_can_be_committed_than_was_reserved)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    void *place;

    for (size_t i = 0; i < ARRAY_LEN(LENS); i++) {
        for (size_t j = 0; j <= i; j++) {
            CHECK_OK(velo_reserve(conn, LENS[i], &place, VELO_FOREVER));
            memset(place, 0xff, LENS[i]);
            pattern_fill(place, LENS[j], j);
            CHECK_OK(velo_commit(conn, LENS[j], pattern_tag(j)));
            message_expect(port, LENS[j], j, velo_port_id(port));
        }
    }
    CHECK_OK(velo_port_close(port));
}

TEST(nothing_is_seen_of_a_reservation_before_its_commit)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    struct velo_conn *other = port_connect(port, velo_port_id(port));
    struct velo_msg msg;
    void *place;

    for (size_t i = 0; i < ARRAY_LEN(LENS); i++) {
        CHECK_OK(velo_reserve(conn, LENS[i], &place, VELO_FOREVER));
        memset(place, 0xff, LENS[i]);
        CHECK_STATUS(velo_try_peek(port, &msg), VELO_AGAIN);
        CHECK_STATUS(velo_recv(port, NULL, 0, &msg, TEST_MS), VELO_TIMEOUT);
        message_send(other, 8, i); /* Another connection is not held up. */
        message_expect(port, 8, i, velo_port_id(port));
        CHECK_STATUS(velo_try_peek(port, &msg), VELO_AGAIN);
        pattern_fill(place, LENS[i], i);
        CHECK_OK(velo_commit(conn, LENS[i], pattern_tag(i)));
        message_expect(port, LENS[i], i, velo_port_id(port));
    }
    CHECK_OK(velo_port_close(port));
}

TEST(only_one_reservation_is_open_at_a_time)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    void *place, *second;

    for (size_t i = 0; i < ARRAY_LEN(LENS); i++) {
        CHECK_STATUS(velo_commit(conn, 0, 0), VELO_ERR_STATE);
        CHECK_OK(velo_reserve(conn, LENS[i], &place, VELO_FOREVER));
        CHECK_STATUS(velo_reserve(conn, LENS[i], &second, VELO_FOREVER), VELO_ERR_STATE);
        CHECK_STATUS(velo_try_reserve(conn, 0, &second), VELO_ERR_STATE);
        CHECK_STATUS(velo_try_sendv(conn, &(struct iovec){"x", 1}, 1, 0), VELO_ERR_STATE);
        CHECK_STATUS(velo_send(conn, "x", 1, 0, VELO_FOREVER), VELO_ERR_STATE);
        CHECK_STATUS(velo_try_send(conn, "x", 1, 0), VELO_ERR_STATE);
        pattern_fill(place, LENS[i], i);
        CHECK_OK(velo_commit(conn, LENS[i], pattern_tag(i)));
        CHECK_STATUS(velo_commit(conn, LENS[i], 0), VELO_ERR_STATE);
        message_expect(port, LENS[i], i, velo_port_id(port));
    }
    CHECK_OK(velo_port_close(port));
}

TEST(a_commit_that_is_too_long_leaves_the_reservation_open)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    struct velo_msg msg;
    void *place;

    for (size_t i = 0; i < ARRAY_LEN(LENS); i++) {
        CHECK_OK(velo_reserve(conn, LENS[i], &place, VELO_FOREVER));
        pattern_fill(place, LENS[i], i);
        CHECK_STATUS(velo_commit(conn, LENS[i] + 1, 0), VELO_ERR_TOO_BIG);
        CHECK_STATUS(velo_commit(conn, LENS[i] + 65536, 0), VELO_ERR_TOO_BIG);
        CHECK_STATUS(velo_commit(conn, SIZE_MAX, 0), VELO_ERR_TOO_BIG);
        CHECK_STATUS(velo_try_peek(port, &msg), VELO_AGAIN);
        CHECK_OK(velo_commit(conn, LENS[i], pattern_tag(i)));
        message_expect(port, LENS[i], i, velo_port_id(port));
    }
    CHECK_OK(velo_port_close(port));
}

TEST(a_peek_shows_the_message_and_does_not_consume_it)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    struct velo_port_counters counters;
    struct velo_msg msg;

    for (size_t i = 0; i < ARRAY_LEN(LENS); i++) {
        CHECK_STATUS(velo_try_peek(port, &msg), VELO_AGAIN);
        message_send(conn, LENS[i], i);
        CHECK_OK(i % 2 ? SOON(velo_try_peek(port, &msg)) : velo_peek(port, &msg, TEST_PATIENCE_NS));
        message_check(&msg, LENS[i], i, velo_port_id(port));
        CHECK_OK(velo_port_counters(port, &counters, sizeof counters));
        CHECK_EQ(counters.rx_msgs, i);
        CHECK_OK(velo_release(port));
        CHECK_OK(velo_port_counters(port, &counters, sizeof counters));
        CHECK_EQ(counters.rx_msgs, i + 1);
    }
    CHECK_OK(velo_port_close(port));
}

TEST(one_message_is_held_at_a_time)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    unsigned char buf[64];
    struct velo_msg held, msg;

    CHECK_STATUS(velo_release(port), VELO_ERR_STATE);
    message_send(conn, 64, 1);
    message_send(conn, 64, 2);
    CHECK_OK(SOON(velo_try_peek(port, &held)));
    CHECK_STATUS(velo_try_peek(port, &msg), VELO_ERR_STATE);
    CHECK_STATUS(velo_peek(port, &msg, 0), VELO_ERR_STATE);
    CHECK_STATUS(velo_try_recv(port, buf, sizeof(buf), &msg), VELO_ERR_STATE);
    CHECK_STATUS(velo_recv(port, buf, sizeof(buf), &msg, VELO_FOREVER), VELO_ERR_STATE);
    message_check(&held, 64, 1, velo_port_id(port));
    CHECK_OK(velo_release(port));
    CHECK_STATUS(velo_release(port), VELO_ERR_STATE);
    message_expect(port, 64, 2, velo_port_id(port));
    CHECK_STATUS(velo_release(port), VELO_ERR_STATE);
    CHECK_OK(velo_port_close(port));
}

TEST(a_held_message_does_not_change_while_its_sender_fills_the_ring)
{
    static const size_t lens[] = {8, 56, 57, 4096};
    struct velo_port *port = port_open_sized(VELO_VPID_ANY, 8, 16384, 0);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    unsigned char buf[4096];

    for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
        for (uint64_t round = 0; round < 40; round++) { /* Several laps of the ring. */
            uint64_t seed = 1000 * i + round, filler = 1 << 20;
            struct velo_msg msg;

            message_send(conn, lens[i], seed);
            CHECK_OK(SOON(velo_try_peek(port, &msg)));
            for (;; filler++) {
                pattern_fill(buf, lens[i], filler);
                if (velo_try_send(conn, buf, lens[i], pattern_tag(filler)) != VELO_OK)
                    break;
            }
            message_check(&msg, lens[i], seed, velo_port_id(port));
            CHECK_OK(velo_release(port));
            for (uint64_t next = 1 << 20; next < filler; next++)
                message_expect(port, lens[i], next, velo_port_id(port));
        }
    }
    CHECK_OK(velo_port_close(port));
}

TEST(a_port_closes_with_a_message_held_and_a_reservation_open)
{
    struct velo_port *receiver = port_open(VELO_VPID_ANY);
    struct velo_port *sender = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(sender, velo_port_id(receiver));
    struct velo_msg msg;
    void *place;

    message_send(conn, 100, 1);
    CHECK_OK(SOON(velo_try_peek(receiver, &msg)));
    CHECK_OK(velo_reserve(conn, 100, &place, VELO_FOREVER));
    CHECK_OK(velo_port_close(sender));
    message_check(&msg, 100, 1, VELO_ID(0, 1)); /* Held until released, whoever leaves. */
    CHECK_OK(velo_port_close(receiver));
}

TEST(a_message_of_a_sender_that_left_is_still_held)
{
    struct velo_port *receiver = port_open_sized(VELO_VPID_ANY, 0, 0, 1);
    struct velo_port *sender = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(sender, velo_port_id(receiver)), *next = NULL;
    struct velo_msg msg;

    message_send(conn, 1000, 1);
    CHECK_OK(SOON(velo_try_peek(receiver, &msg)));
    CHECK_OK(velo_disconnect(conn));
    /* Its place in the table, and so its memory, is not given to another while it is read. */
    CHECK_STATUS(velo_connect(sender, velo_port_id(receiver), &next, 0), VELO_ERR_FULL);
    message_check(&msg, 1000, 1, velo_port_id(sender));
    CHECK_OK(velo_release(receiver));
    CHECK_OK(velo_port_close(sender));
    CHECK_OK(velo_port_close(receiver));
}
