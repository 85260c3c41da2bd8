/* SPDX-License-Identifier: Apache-2.0 */
/* Deferring: a receiver leaves a message with its sender, and goes on with the others. */
#include "test.h"

/* Hold the next message, which must be the one made from a seed, and defer it. */
static void expect_and_defer(struct velo_port *port, size_t len_bytes, uint64_t seed,
                             velo_id_t source)
{
    struct velo_msg msg;
    CHECK_OK(velo_peek(port, &msg, TEST_PATIENCE_NS));
    message_check(&msg, len_bytes, seed, source);
    CHECK_OK(velo_defer(port));
}

/* Polls that find nothing decide which connections are polled. They do not sleep: that would have
 * every connection ring. */
static void poll_in_vain(struct velo_port *port)
{
    struct velo_msg msg;
    for (int i = 0; i < 100; i++)
        CHECK_STATUS(velo_try_peek(port, &msg), VELO_AGAIN);
}

static void expect_nothing(struct velo_port *port)
{
    struct velo_msg msg;
    poll_in_vain(port);
    CHECK_STATUS(velo_peek(port, &msg, TEST_MS), VELO_TIMEOUT);
}

TEST(only_a_held_message_can_be_deferred)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);

    CHECK_STATUS(velo_defer(NULL), VELO_ERR_ARG);
    CHECK_STATUS(velo_resume(NULL), VELO_ERR_ARG);
    CHECK_STATUS(velo_defer(port), VELO_ERR_STATE);
    CHECK_OK(velo_resume(port));
    CHECK_OK(velo_port_close(port));
}

TEST(a_deferred_message_comes_again_after_resume_with_all_that_follow_it)
{
    static const size_t lens[] = {0, 8, 56, 57, 4096};
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    struct velo_port_counters counters;

    for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
        message_send(conn, lens[i], i);
        expect_and_defer(port, lens[i], i, velo_port_id(port));
        message_send(conn, 8, i + 100);
        expect_nothing(port);
        CHECK_OK(velo_resume(port));
        expect_and_defer(port, lens[i], i, velo_port_id(port)); /* As often as one likes. */
        CHECK_OK(velo_port_counters(port, &counters, sizeof counters));
        CHECK_EQ(counters.rx_msgs, 2 * i);
        CHECK_OK(velo_resume(port));
        message_expect(port, lens[i], i, velo_port_id(port));
        message_expect(port, 8, i + 100, velo_port_id(port));
    }
    CHECK_OK(velo_port_close(port));
}

TEST(other_connections_go_on_and_a_deferred_one_pushes_back)
{
    struct velo_port *port = port_open_sized(VELO_VPID_ANY, 8, 16384, 0);
    struct velo_conn *slow = port_connect(port, velo_port_id(port));
    struct velo_conn *quick = port_connect(port, velo_port_id(port));
    uint64_t sent = 0;

    message_send(slow, 8, sent++);
    expect_and_defer(port, 8, 0, velo_port_id(port));
    for (uint64_t i = 0; i < 1000; i++) {
        message_send(quick, i % 300, i + 1000);
        message_expect(port, i % 300, i + 1000, velo_port_id(port));
    }
    for (;; sent++) {
        unsigned char buf[8];
        pattern_fill(buf, sizeof buf, sent);
        if (velo_try_send(slow, buf, sizeof buf, pattern_tag(sent)) != VELO_OK)
            break;
        CHECK(sent < 8 * 4); /* A slot takes up to four. */
    }
    CHECK_OK(velo_resume(port));
    for (uint64_t i = 0; i < sent; i++)
        message_expect(port, 8, i, velo_port_id(port));
    CHECK_OK(velo_port_close(port));
}

TEST(resume_while_a_message_is_held_does_not_disturb_it)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *first = port_connect(port, velo_port_id(port));
    struct velo_conn *second = port_connect(port, velo_port_id(port));
    struct velo_msg msg;

    message_send(first, 8, 1);
    expect_and_defer(port, 8, 1, velo_port_id(port));
    message_send(second, 8, 2);
    CHECK_OK(SOON(velo_try_peek(port, &msg)));
    CHECK_OK(velo_resume(port));
    message_check(&msg, 8, 2, velo_port_id(port));
    CHECK_OK(velo_release(port));
    message_expect(port, 8, 1, velo_port_id(port));
    CHECK_OK(velo_port_close(port));
}

TEST(a_sender_that_leaves_while_deferred_loses_nothing_and_its_place_becomes_free)
{
    struct velo_port *receiver = port_open_sized(VELO_VPID_ANY, 0, 0, 1);
    struct velo_port *sender = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(sender, velo_port_id(receiver)), *next = NULL;

    message_send(conn, 100, 1);
    expect_and_defer(receiver, 100, 1, velo_port_id(sender));
    message_send(conn, 100, 2);
    CHECK_OK(velo_disconnect(conn));
    expect_nothing(receiver);
    CHECK_STATUS(velo_connect(sender, velo_port_id(receiver), &next, 0), VELO_ERR_FULL);
    CHECK_OK(velo_resume(receiver));
    message_expect(receiver, 100, 1, velo_port_id(sender));
    message_expect(receiver, 100, 2, velo_port_id(sender));
    expect_nothing(receiver);
    next = port_connect(sender, velo_port_id(receiver));
    message_send(next, 100, 3);
    message_expect(receiver, 100, 3, velo_port_id(sender));
    CHECK_OK(velo_port_close(sender));
    CHECK_OK(velo_port_close(receiver));
}

enum { STREAM_MSGS = 30000 };

static void send_a_stream(void *arg)
{
    struct velo_port *port = port_open(1);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 0));

    (void)arg;
    for (uint64_t i = 0; i < STREAM_MSGS; i++)
        message_send(conn, i % 90, i);
    CHECK_OK(velo_port_close(port));
}

/* Each deferral of a busy ring makes its sender ring; no ring must be lost on the way back. */
TEST(a_stream_that_is_deferred_again_and_again_arrives_whole)
{
    struct velo_port *port = port_open_sized(0, 16, 16384, 0);
    pid_t child = child_start(send_a_stream, NULL);
    struct rng rng = {test_seed()};

    for (uint64_t i = 0; i < STREAM_MSGS; i++) {
        if (rng_below(&rng, 16) == 0) {
            expect_and_defer(port, i % 90, i, VELO_ID(0, 1));
            if (rng_below(&rng, 4) == 0)
                expect_nothing(port);
            CHECK_OK(velo_resume(port));
        }
        message_expect(port, i % 90, i, VELO_ID(0, 1));
    }
    child_join(child);
    CHECK_OK(velo_port_close(port));
}

/* While one that was polled is deferred, others take its place: back again, it must ring. */
TEST(a_connection_that_is_resumed_among_many_busy_ones_is_still_heard)
{
    enum { OTHERS = 16 };
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *deferred = port_connect(port, velo_port_id(port)), *others[OTHERS];

    for (uint64_t i = 0; i < 10; i++) {
        message_send(deferred, 8, i);
        message_expect(port, 8, i, velo_port_id(port));
        poll_in_vain(port);
    }
    message_send(deferred, 8, 10);
    expect_and_defer(port, 8, 10, velo_port_id(port));
    for (int i = 0; i < OTHERS; i++)
        others[i] = port_connect(port, velo_port_id(port));
    for (uint64_t i = 0; i < (uint64_t)10 * OTHERS; i++) {
        message_send(others[i % OTHERS], 8, i);
        message_expect(port, 8, i, velo_port_id(port));
        poll_in_vain(port);
    }
    CHECK_OK(velo_resume(port));
    message_expect(port, 8, 10, velo_port_id(port));
    poll_in_vain(port);
    message_send(deferred, 8, 11);
    message_expect(port, 8, 11, velo_port_id(port));
    CHECK_OK(velo_port_close(port));
}

static void stay_until_killed(void *arg)
{
    uint64_t *ready = arg;
    struct velo_port *port = port_open(1);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 0));

    message_send(conn, 8, 1);
    message_send(conn, 8, 2);
    __atomic_store_n(ready, 1, __ATOMIC_RELEASE);
    for (;;)
        test_sleep_ns(TEST_MS);
}

TEST(what_a_sender_sent_before_it_died_while_deferred_is_delivered)
{
    uint64_t *ready = test_shared_alloc(sizeof *ready);
    struct velo_port *port = port_open_sized(0, 0, 0, 1);
    pid_t child = child_start(stay_until_killed, ready);
    struct velo_conn *conn = NULL;

    expect_and_defer(port, 8, 1, VELO_ID(0, 1));
    while (!__atomic_load_n(ready, __ATOMIC_ACQUIRE))
        test_sleep_ns(TEST_MS);
    child_kill(child);
    expect_nothing(port);
    CHECK_OK(velo_resume(port));
    message_expect(port, 8, 1, VELO_ID(0, 1));
    message_expect(port, 8, 2, VELO_ID(0, 1));
    expect_nothing(port);
    for (int64_t start_ns = test_now_ns(); !conn;) { /* Its place is found to be free. */
        struct velo_msg msg;
        int status = velo_connect(port, velo_port_id(port), &conn, 0);
        CHECK(status == VELO_OK || status == VELO_ERR_FULL);
        CHECK_STATUS(velo_try_peek(port, &msg), VELO_AGAIN);
        CHECK(test_now_ns() - start_ns < TEST_PATIENCE_NS);
    }
    message_send(conn, 8, 3);
    message_expect(port, 8, 3, VELO_ID(0, 0));
    CHECK_OK(velo_port_close(port));
    port = port_open(1); /* Takes the dead one's file away. */
    CHECK_OK(velo_port_close(port));
}

static void open_port_1_until_killed(void *arg)
{
    (void)arg;
    (void)port_open(1);
    for (;;)
        test_sleep_ns(TEST_MS);
}

TEST(the_status_of_a_connection_tells_whether_its_peer_lives)
{
    struct velo_port *port = port_open(0), *peer = port_open(2);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 2));

    CHECK_FAILS(velo_conn_status(NULL), VELO_ERR_ARG, "conn");
    CHECK_OK(velo_conn_status(conn));
    CHECK_OK(velo_port_close(peer));
    CHECK_STATUS(velo_conn_status(conn), VELO_ERR_PEER_CLOSED);

    pid_t child = child_start(open_port_1_until_killed, NULL);
    conn = port_connect(port, VELO_ID(0, 1));
    CHECK_OK(velo_conn_status(conn));
    child_kill(child);
    CHECK_FAILS(velo_conn_status(conn), VELO_ERR_PEER_DEAD, "has ended");
    CHECK_OK(velo_port_close(port));
    port = port_open(1); /* Takes the dead one's file away. */
    CHECK_OK(velo_port_close(port));
}

static void open_deep_port_1_until_killed(void *arg)
{
    (void)arg;
    (void)port_open_sized(1, 16384, 0, 0);
    for (;;)
        test_sleep_ns(TEST_MS);
}

TEST(once_a_death_is_known_every_send_says_so)
{
    pid_t child = child_start(open_port_1_until_killed, NULL);
    struct velo_port *ports[2] = {port_open(0), port_open(2)};
    struct velo_conn *conns[4];
    const struct velo_msg burst[3] = {{.data = NULL}};
    void *place;

    for (int i = 0; i < 4; i++)
        conns[i] = port_connect(ports[i / 2], VELO_ID(0, 1));
    CHECK_OK(velo_send(conns[1], "x", 1, 0, VELO_FOREVER));
    CHECK_OK(velo_try_reserve(conns[0], 8, &place));
    child_kill(child);
    CHECK_STATUS(velo_conn_status(conns[0]), VELO_ERR_PEER_DEAD);
    (void)velo_commit(conns[0], 8, 0); /* Reserved before. */
    CHECK_STATUS(velo_try_send(conns[0], "x", 1, 0), VELO_ERR_PEER_DEAD);
    CHECK_STATUS(velo_try_send(conns[1], "x", 1, 0), VELO_ERR_PEER_DEAD);
    CHECK_STATUS(velo_send(conns[2], "x", 1, 0, VELO_FOREVER), VELO_ERR_PEER_DEAD);
    CHECK_STATUS(velo_try_reserve(conns[2], 1, &place), VELO_ERR_PEER_DEAD);
    /* Though there is room for all of them. */
    CHECK_STATUS(velo_send_many(conns[3], burst, 3, VELO_FOREVER), VELO_ERR_PEER_DEAD);
    CHECK_OK(velo_port_close(ports[0]));
    CHECK_OK(velo_port_close(ports[1]));
    CHECK_OK(velo_port_close(port_open(1)));
}

TEST(a_death_is_noticed_after_some_hundred_messages_however_deep_the_ring)
{
    pid_t child = child_start(open_deep_port_1_until_killed, NULL);
    struct velo_port *port = port_open(0);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 1));
    int sent = 0, status;

    child_kill(child);
    test_sleep_ns(2 * TEST_MS);
    while ((status = velo_try_send(conn, "x", 1, 0)) == VELO_OK)
        sent++;
    CHECK_STATUS(status, VELO_ERR_PEER_DEAD);
    CHECK(sent <= 256);
    CHECK_OK(velo_port_close(port));
    CHECK_OK(velo_port_close(port_open(1)));
}
