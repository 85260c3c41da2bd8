/* SPDX-License-Identifier: Apache-2.0 */
/* Messages: length, content, tag, source and order arrive as they were sent. */
#include <stdlib.h>
#include <string.h>

#include "test.h"

#define MAX_BYTES 65535

TEST(a_message_of_zero_bytes_is_delivered)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    struct velo_msg msg;

    CHECK_OK(velo_send(conn, NULL, 0, 0, VELO_FOREVER));
    CHECK_OK(velo_try_send(conn, NULL, 0, 255));
    CHECK_OK(velo_recv(port, NULL, 0, &msg, TEST_PATIENCE_NS));
    CHECK_EQ(msg.len_bytes, 0);
    CHECK_EQ(msg.tag, 0);
    CHECK_EQ(msg.source, velo_port_id(port));
    CHECK_OK(velo_recv(port, NULL, 0, &msg, TEST_PATIENCE_NS));
    CHECK_EQ(msg.len_bytes, 0);
    CHECK_EQ(msg.tag, 255);
    CHECK_STATUS(velo_try_recv(port, NULL, 0, &msg), VELO_AGAIN);
    CHECK_OK(velo_port_close(port));
}

/* Echo every message, with its tag, from a process of its own until a message has the tag 255. */
static void echo(void *arg)
{
    struct velo_port *port = port_open(1);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 0));
    struct velo_msg msg;
    unsigned char *buf = malloc(MAX_BYTES);

    (void)arg;
    do {
        CHECK_OK(velo_recv(port, buf, MAX_BYTES, &msg, TEST_PATIENCE_NS));
        CHECK_EQ(msg.source, VELO_ID(0, 0));
        CHECK_OK(velo_send(conn, buf, msg.len_bytes, msg.tag, VELO_FOREVER));
    } while (msg.tag != 255);
    CHECK_OK(velo_port_close(port));
    free(buf);
}

TEST(every_length_makes_the_round_trip_intact)
{
    struct velo_port *port = port_open_sized(0, 0, 1 << 18, 0);
    pid_t peer = child_start(echo, NULL);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 1));
    unsigned char *out = malloc(MAX_BYTES), *in = malloc(MAX_BYTES + 64);
    size_t max_bytes = velo_conn_max_bytes(conn);
    struct velo_msg msg;

    CHECK(max_bytes >= 4096);
    for (size_t step = 0; step <= 4096 + 3; step++) {
        size_t len = step <= 4096 ? step : max_bytes - (step - 4097);
        uint8_t tag = (uint8_t)(step % 255);

        pattern_fill(out, len, step);
        memset(in, 0xa5, MAX_BYTES + 64);
        CHECK_OK(velo_send(conn, out, len, tag, VELO_FOREVER));
        CHECK_OK(velo_recv(port, in, MAX_BYTES, &msg, TEST_PATIENCE_NS));
        CHECK_EQ(msg.len_bytes, len);
        CHECK_EQ(msg.tag, tag);
        CHECK_EQ(msg.source, VELO_ID(0, 1));
        CHECK(pattern_matches(in, len, step));
        for (size_t i = len; i < len + 64; i++) /* Nothing is written behind the message. */
            CHECK_EQ(in[i], 0xa5);
    }
    CHECK_OK(velo_send(conn, NULL, 0, 255, VELO_FOREVER));
    child_join(peer);
    CHECK_OK(velo_port_close(port));
    free(out);
    free(in);
}

TEST(the_longest_message_of_every_ring_is_delivered)
{
    for (uint32_t data_bytes = 16384; data_bytes <= 1 << 20; data_bytes *= 2) {
        struct velo_port *port = port_open_sized(VELO_VPID_ANY, 8, data_bytes, 0);
        struct velo_conn *conn = port_connect(port, velo_port_id(port));
        size_t max_bytes = velo_conn_max_bytes(conn);

        for (uint64_t i = 0; i < test_rounds(100); i++) {
            message_send(conn, max_bytes - i % 3, i);
            message_expect(port, max_bytes - i % 3, i, velo_port_id(port));
        }
        CHECK_OK(velo_port_close(port));
    }
}

TEST(a_message_that_is_too_long_is_refused_and_not_sent)
{
    struct velo_port *port = port_open_sized(VELO_VPID_ANY, 0, 16384, 0);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    size_t max_bytes = velo_conn_max_bytes(conn);
    static unsigned char buf[1 << 17];
    static const size_t extra[] = {1, 2, 64, 65536 - 4096, 65536, 65537};
    struct velo_msg msg;
    void *place;

    for (size_t i = 0; i < ARRAY_LEN(extra); i++) {
        size_t len = max_bytes + extra[i];

        CHECK_STATUS(velo_send(conn, buf, len, 0, VELO_FOREVER), VELO_ERR_TOO_BIG);
        CHECK_STATUS(velo_try_send(conn, buf, len, 0), VELO_ERR_TOO_BIG);
        CHECK_STATUS(velo_reserve(conn, len, &place, VELO_FOREVER), VELO_ERR_TOO_BIG);
        CHECK_STATUS(velo_try_reserve(conn, len, &place), VELO_ERR_TOO_BIG);
    }
    CHECK_STATUS(velo_try_send(conn, buf, SIZE_MAX, 0), VELO_ERR_TOO_BIG);
    CHECK_STATUS(velo_try_peek(port, &msg), VELO_AGAIN);
    message_send(conn, max_bytes, 1);
    message_expect(port, max_bytes, 1, velo_port_id(port));
    CHECK_OK(velo_port_close(port));
}

TEST(every_tag_is_delivered)
{
    static const size_t lens[] = {0, 8, 56, 57, 1000};
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    unsigned char buf[1000] = {0};
    struct velo_msg msg;

    for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
        for (int tag = 0; tag < 256; tag++) {
            CHECK_OK(velo_send(conn, buf, lens[i], (uint8_t)tag, VELO_FOREVER));
            CHECK_OK(velo_recv(port, buf, sizeof(buf), &msg, TEST_PATIENCE_NS));
            CHECK_EQ(msg.tag, tag);
            CHECK_EQ(msg.len_bytes, lens[i]);
        }
    }
    CHECK_OK(velo_port_close(port));
}

TEST(every_message_names_the_port_that_sent_it)
{
    static const int vpids[] = {0, 1, 2, 127, 128, 254, 255};
    struct velo_port *receiver = port_open(100);
    struct velo_port *ports[ARRAY_LEN(vpids)];

    for (size_t i = 0; i < ARRAY_LEN(vpids); i++) {
        struct velo_port_attr attr = VELO_PORT_ATTR_INIT;

        attr.node = 255 - (int)i;
        attr.vpid = vpids[i];
        CHECK_OK(velo_port_open(&attr, &ports[i]));
        message_send(port_connect(ports[i], velo_port_id(receiver)), i * 40, i);
        message_expect(receiver, i * 40, i, VELO_ID(255 - (int)i, vpids[i]));
    }
    for (size_t i = 0; i < ARRAY_LEN(vpids); i++)
        CHECK_OK(velo_port_close(ports[i]));
    CHECK_OK(velo_port_close(receiver));
}

TEST(buffers_need_no_alignment)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    unsigned char out[512], in[512];
    struct velo_msg msg;

    for (size_t offset = 0; offset < 64; offset++) {
        for (size_t len = 0; len < 130; len++) {
            size_t in_offset = 63 - offset;

            pattern_fill(out + offset, len, len);
            memset(in, 0xa5, sizeof(in));
            CHECK_OK(velo_send(conn, out + offset, len, 1, VELO_FOREVER));
            CHECK_OK(velo_recv(port, in + in_offset, len, &msg, TEST_PATIENCE_NS));
            CHECK(pattern_matches(in + in_offset, len, len));
            CHECK(in_offset == 0 || in[in_offset - 1] == 0xa5);
            CHECK_EQ(in[in_offset + len], 0xa5);
        }
    }
    CHECK_OK(velo_port_close(port));
}

TEST(the_buffer_is_free_for_reuse_when_send_returns)
{
    static const size_t lens[] = {1, 56, 57, 4096, 16384};
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    unsigned char buf[16384];

    for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
        pattern_fill(buf, lens[i], i);
        CHECK_OK(velo_try_send(conn, buf, lens[i], pattern_tag(i)));
        memset(buf, 0xee, sizeof(buf));
        message_expect(port, lens[i], i, velo_port_id(port));
    }
    CHECK_OK(velo_port_close(port));
}

TEST(messages_of_one_connection_arrive_in_order)
{
    struct velo_port *port = port_open_sized(VELO_VPID_ANY, 64, 16384, 0);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    struct rng rng = {test_seed()};
    uint64_t sent = 0, received = 0, body[8];
    struct velo_msg msg;

    while (received < 100000) { /* More than the 16 bits of the sequence number in a slot. */
        for (uint32_t n = rng_below(&rng, 80); n > 0; n--) {
            body[0] = sent;
            if (velo_try_send(conn, body, sent % 3 == 0 ? 64 : 8, 0) == VELO_OK)
                sent++;
        }
        for (uint32_t n = rng_below(&rng, 80); n > 0; n--) {
            if (velo_try_recv(port, body, sizeof(body), &msg) == VELO_OK)
                CHECK_EQ(body[0], received++);
        }
    }
    CHECK_OK(velo_port_close(port));
}

TEST(a_buffer_that_is_too_small_leaves_the_message)
{
    static const size_t lens[] = {1, 8, 56, 57, 4096};
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    unsigned char buf[4096];
    struct velo_msg msg;

    for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
        message_send(conn, lens[i], i);
        message_send(conn, 3, 99);
        for (size_t cap = 0; cap < lens[i]; cap = cap * 2 + 1) {
            memset(&msg, 0, sizeof(msg));
            memset(buf, 0xa5, sizeof(buf));
            CHECK_STATUS(SOON(velo_try_recv(port, cap ? buf : NULL, cap, &msg)), VELO_ERR_TOO_BIG);
            CHECK_EQ(msg.len_bytes, lens[i]);
            CHECK_EQ(msg.tag, pattern_tag(i));
            CHECK_EQ(msg.source, velo_port_id(port));
            CHECK_STATUS(velo_recv(port, buf, cap, &msg, TEST_MS), VELO_ERR_TOO_BIG);
            CHECK_EQ(msg.len_bytes, lens[i]);
            CHECK_STATUS(velo_try_recv(port, buf, cap, NULL), VELO_ERR_TOO_BIG);
            for (size_t at = 0; at < sizeof(buf); at++)
                CHECK_EQ(buf[at], 0xa5);
        }
        CHECK_OK(velo_try_recv(port, buf, lens[i], &msg)); /* It just fits. */
        message_check(&msg, lens[i], i, velo_port_id(port));
        message_expect(port, 3, 99, velo_port_id(port));
    }
    CHECK_OK(velo_port_close(port));
}

TEST(the_description_of_a_message_is_optional)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    unsigned char buf[64];

    message_send(conn, 64, 1);
    CHECK_OK(SOON(velo_try_recv(port, buf, sizeof(buf), NULL)));
    CHECK(pattern_matches(buf, 64, 1));
    message_send(conn, 8, 2);
    CHECK_OK(velo_recv(port, buf, sizeof(buf), NULL, TEST_PATIENCE_NS));
    CHECK(pattern_matches(buf, 8, 2));
    CHECK_OK(velo_port_close(port));
}
