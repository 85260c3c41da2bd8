/* SPDX-License-Identifier: Apache-2.0 */
/* A receiver that asks for it learns which senders are gone, and why, behind their last message. */
#include <signal.h>
#include <string.h>

#include "test.h"

static struct velo_port *open_telling(int vpid, uint32_t conns_max)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *port;

    attr.vpid = vpid;
    attr.conns_max = conns_max;
    attr.flags = VELO_PORT_DEPARTURES;
    CHECK_OK(velo_port_open(&attr, &port));
    return port;
}

/* The next thing is the end of this sender. */
static void departure_expect(struct velo_port *port, int status, velo_id_t source,
                             uint32_t generation)
{
    struct velo_msg msg;
    char buf[64];

    memset(&msg, 0xff, sizeof(msg));
    CHECK_STATUS(velo_recv(port, buf, sizeof(buf), &msg, TEST_PATIENCE_NS), status);
    CHECK_EQ(msg.source, source);
    CHECK_EQ(msg.generation, generation);
    CHECK_EQ(msg.len_bytes, 0);
    CHECK(msg.data == NULL);
}

TEST(the_end_of_a_connection_is_told_once_behind_its_last_message)
{
    struct velo_port *port = open_telling(0, 0), *sender = port_open(1);
    uint32_t generation = velo_port_generation(sender);
    char byte;

    for (int round = 0; round < 3; round++) {
        struct velo_conn *conn = port_connect(sender, VELO_ID(0, 0));

        CHECK_EQ(velo_conn_generation(conn), velo_port_generation(port));
        for (uint64_t i = 0; i < 20; i++)
            message_send(conn, 30, i);
        if (round < 2)
            CHECK_OK(velo_disconnect(conn));
        else
            CHECK_OK(velo_port_close(sender));
        for (uint64_t i = 0; i < 20; i++)
            message_expect(port, 30, i, VELO_ID(0, 1));
        departure_expect(port, VELO_ERR_PEER_CLOSED, VELO_ID(0, 1), generation);
        CHECK_STATUS(velo_recv(port, &byte, 1, NULL, TEST_MS), VELO_TIMEOUT);
        CHECK_STATUS(velo_try_recv(port, &byte, 1, NULL), VELO_AGAIN);
    }
    CHECK_OK(velo_port_close(port));
}

TEST(a_port_that_did_not_ask_is_told_nothing)
{
    struct velo_port *port = port_open(0), *sender = port_open(1);
    struct velo_conn *conn = port_connect(sender, VELO_ID(0, 0));

    message_send(conn, 8, 1);
    CHECK_OK(velo_port_close(sender));
    message_expect(port, 8, 1, VELO_ID(0, 1));
    CHECK_STATUS(velo_recv(port, NULL, 0, NULL, TEST_MS), VELO_TIMEOUT);
    CHECK_OK(velo_port_close(port));
}

struct victim {
    uint32_t *generation;
};

static void send_and_hold_still(void *arg)
{
    const struct victim *victim = arg;
    struct velo_port *port = port_open(1);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 0));

    message_send(conn, 8, 5);
    __atomic_store_n(victim->generation, velo_port_generation(port), __ATOMIC_RELEASE);
    for (;;)
        test_sleep_ns(TEST_MS);
}

TEST(a_killed_sender_is_told_apart_from_one_that_left_and_from_its_next_generation)
{
    struct velo_port *port = open_telling(0, 0);
    uint32_t generations[2];

    for (int round = 0; round < 2; round++) {
        struct victim victim = {test_shared_alloc(sizeof(uint32_t))};
        pid_t child = child_start(send_and_hold_still, &victim);

        while ((generations[round] = __atomic_load_n(victim.generation, __ATOMIC_ACQUIRE)) == 0)
            test_sleep_ns(TEST_MS);
        child_kill(child);
        message_expect(port, 8, 5, VELO_ID(0, 1));
        departure_expect(port, VELO_ERR_PEER_DEAD, VELO_ID(0, 1), generations[round]);
    }
    CHECK(generations[0] != generations[1]);
    CHECK_OK(velo_port_close(port));
    CHECK_OK(velo_port_close(port_open(1)));
}

TEST(departures_are_told_though_other_messages_never_end)
{
    struct velo_port *port = open_telling(0, 0), *busy = port_open(1), *leaver = port_open(2);
    struct velo_conn *stream = port_connect(busy, VELO_ID(0, 0));
    uint32_t generation = velo_port_generation(leaver);
    struct velo_msg msg;
    char buf[64];
    int status = VELO_OK;

    (void)port_connect(leaver, VELO_ID(0, 0));
    CHECK_OK(velo_port_close(leaver));
    for (int i = 0; i < 1000 && status == VELO_OK; i++) {
        CHECK_OK(velo_send(stream, "x", 1, 0, VELO_FOREVER));
        CHECK_OK(velo_send(stream, "x", 1, 0, VELO_FOREVER));
        status = SOON(velo_try_recv(port, buf, sizeof(buf), &msg));
        if (status == VELO_OK)
            status = SOON(velo_try_recv(port, buf, sizeof(buf), &msg));
    }
    CHECK_STATUS(status, VELO_ERR_PEER_CLOSED);
    CHECK(msg.source == VELO_ID(0, 2) && msg.generation == generation);
    CHECK_OK(velo_port_close(busy));
    CHECK_OK(velo_port_close(port));
}

TEST(departures_are_told_to_calls_in_place_and_leave_nothing_to_release)
{
    struct velo_port *port = open_telling(0, 1), *sender = port_open(1);
    struct velo_msg msg;

    for (int way = 0; way < 2; way++) {
        struct velo_conn *conn = port_connect(sender, VELO_ID(0, 0));

        CHECK_OK(velo_disconnect(conn));
        CHECK_STATUS(way == 0 ? velo_peek(port, &msg, TEST_PATIENCE_NS)
                              : SOON(velo_try_peek(port, &msg)),
                     VELO_ERR_PEER_CLOSED);
        CHECK_EQ(msg.source, VELO_ID(0, 1));
        CHECK_STATUS(velo_release(port), VELO_ERR_STATE);
    } /* The one place in the table is free again each time. */
    CHECK_OK(velo_port_close(sender));
    CHECK_OK(velo_port_close(port));
}

TEST(a_departure_that_another_call_has_found_is_told_in_place)
{
    struct velo_port *port = open_telling(0, 0), *sender = port_open(1);
    struct velo_conn *conn = port_connect(sender, VELO_ID(0, 0));
    struct velo_msg msg;
    int fd, status;

    if (velo_port_fd(port, &fd) == VELO_OK) { /* A node's host port has none. */
        message_send(conn, 8, 1);
        message_expect(port, 8, 1, VELO_ID(0, 1));
        CHECK_OK(velo_disconnect(conn));
        while ((status = velo_port_arm(port)) == VELO_OK) /* It finds it, but does not tell. */
            test_sleep_ns(TEST_MS);
        CHECK_STATUS(status, VELO_AGAIN);
        CHECK_STATUS(SOON(velo_try_peek(port, &msg)), VELO_ERR_PEER_CLOSED);
        CHECK_EQ(msg.source, VELO_ID(0, 1));
    }
    CHECK_OK(velo_port_close(sender));
    CHECK_OK(velo_port_close(port));
}

TEST(many_departures_at_once_are_all_told)
{
    enum { SENDERS = 40 };
    struct velo_port *port = open_telling(200, 0);
    bool told[SENDERS] = {false};

    for (int i = 0; i < SENDERS; i++) {
        struct velo_port *sender = port_open(i);

        (void)port_connect(sender, VELO_ID(0, 200));
        CHECK_OK(velo_port_close(sender));
    }
    for (int i = 0; i < SENDERS; i++) {
        struct velo_msg msg;

        CHECK_STATUS(velo_recv(port, NULL, 0, &msg, TEST_PATIENCE_NS), VELO_ERR_PEER_CLOSED);
        CHECK(msg.source < SENDERS && !told[msg.source]);
        told[msg.source] = true;
    }
    CHECK_OK(velo_port_close(port));
}

static void expect_user(struct velo_port *port, uint64_t seed, struct velo_msg *msg,
                        const void *user)
{
    char buf[64];

    CHECK_OK(velo_recv(port, buf, sizeof(buf), msg, TEST_PATIENCE_NS));
    message_check(msg, 8, seed, VELO_ID(0, 1));
    CHECK(msg->user == user);
}

/* All connections of a port carry the pointer, those of its next generation none. */
TEST(a_receiver_finds_its_own_state_of_a_sender_in_the_message)
{
    struct velo_port *port = open_telling(0, 0), *other = port_open(2);
    struct velo_msg msg = {0}, gone = {0};
    int state = 0, others_state = 0;

    CHECK_FAILS(velo_source_set_user(NULL, &msg, NULL), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_source_set_user(port, NULL, NULL), VELO_ERR_ARG, "NULL");
    message_send(port_connect(other, VELO_ID(0, 0)), 8, 1);
    CHECK_OK(velo_peek(port, &msg, TEST_PATIENCE_NS));
    CHECK(msg.user == NULL);
    CHECK_OK(velo_source_set_user(port, &msg, &others_state));
    CHECK_OK(velo_release(port));
    for (int round = 0; round < 2; round++) {
        struct velo_port *sender = port_open(1);
        struct velo_conn *first = port_connect(sender, VELO_ID(0, 0));

        message_send(first, 8, 1);
        expect_user(port, 1, &msg, NULL);
        CHECK_OK(velo_source_set_user(port, &msg, &state));
        message_send(first, 8, 2);
        expect_user(port, 2, &msg, &state);
        struct velo_conn *second = port_connect(sender, VELO_ID(0, 0));
        message_send(second, 8, 3);
        expect_user(port, 3, &msg, &state);
        CHECK_OK(velo_disconnect(first));
        CHECK_STATUS(velo_recv(port, NULL, 0, &gone, TEST_PATIENCE_NS), VELO_ERR_PEER_CLOSED);
        CHECK(gone.user == &state);
        message_send(second, 8, 4);
        expect_user(port, 4, &msg, &state);
        CHECK_OK(velo_port_close(sender));
        CHECK_STATUS(velo_recv(port, NULL, 0, &gone, TEST_PATIENCE_NS), VELO_ERR_PEER_CLOSED);
        CHECK(gone.user == &state);
        CHECK_FAILS(velo_source_set_user(port, &msg, &state), VELO_ERR_NO_PEER, "0.1");
    }
    CHECK_OK(velo_port_close(other));
    CHECK_STATUS(velo_recv(port, NULL, 0, &gone, TEST_PATIENCE_NS), VELO_ERR_PEER_CLOSED);
    CHECK(gone.user == &others_state);
    CHECK_OK(velo_port_close(port));
}
