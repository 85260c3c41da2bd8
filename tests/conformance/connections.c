/* SPDX-License-Identifier: Apache-2.0 */
/* Connections: who reaches whom, when, and what becomes of messages when one ends. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

TEST(a_port_sends_to_itself)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));

    for (size_t len = 0; len < 200; len++) {
        message_send(conn, len, len);
        message_expect(port, len, len, velo_port_id(port));
    }
    CHECK_OK(velo_port_close(port));
}

TEST(two_ports_in_one_process_talk_both_ways)
{
    struct velo_port *a = port_open(VELO_VPID_ANY);
    struct velo_port *b = port_open(VELO_VPID_ANY);
    struct velo_conn *to_b = port_connect(a, velo_port_id(b));
    struct velo_conn *to_a = port_connect(b, velo_port_id(a));

    for (uint64_t i = 0; i < 1000; i++) {
        message_send(to_b, i % 100, i);
        message_expect(b, i % 100, i, velo_port_id(a));
        message_send(to_a, i % 300, ~i);
        message_expect(a, i % 300, ~i, velo_port_id(b));
    }
    CHECK_OK(velo_port_close(a));
    CHECK_OK(velo_port_close(b));
}

static void open_late_and_expect_one(void *arg)
{
    (void)arg;
    test_sleep_ns(50 * TEST_MS);
    struct velo_port *port = port_open(9);
    message_expect(port, 32, 9, VELO_ID(0, 0));
    CHECK_OK(velo_port_close(port));
}

TEST(connect_waits_for_the_peer_to_open)
{
    struct velo_port *port = port_open(0);
    pid_t peer = child_start(open_late_and_expect_one, NULL);
    struct velo_conn *conn = NULL;

    CHECK_STATUS(velo_connect(port, VELO_ID(0, 9), &conn, 0), VELO_ERR_NO_PEER);
    CHECK_OK(velo_connect(port, VELO_ID(0, 9), &conn, VELO_FOREVER));
    message_send(conn, 32, 9);
    child_join(peer);
    CHECK_OK(velo_port_close(port));
}

TEST(connect_waits_as_long_as_it_was_told)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = NULL;
    int64_t start_ns = test_now_ns();

    CHECK_STATUS(velo_connect(port, VELO_ID(0, 200), &conn, 30 * TEST_MS), VELO_ERR_NO_PEER);
    CHECK(test_now_ns() - start_ns >= 30 * TEST_MS);
    CHECK_OK(velo_port_close(port));
}

/* Natively the peer's memory is there or not; over a network it has to answer. */
TEST(a_try_to_connect_never_waits_and_succeeds_in_the_end)
{
    struct velo_port *port = port_open(0), *peer = port_open(9);
    struct velo_conn *conn = NULL;
    int status;

    CHECK_STATUS(velo_try_connect(port, VELO_ID(0, 200), &conn), VELO_ERR_NO_PEER);
    CHECK_FAILS(velo_try_connect(NULL, VELO_ID(0, 9), &conn), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_try_connect(port, VELO_ID(0, 9), NULL), VELO_ERR_ARG, "NULL");
    CHECK_STATUS(velo_connect(port, VELO_ID(0, 9), &conn, INT64_MIN), VELO_ERR_ARG);
    for (uint64_t round = 0; round < 3; round++) {
        int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;

        while ((status = velo_try_connect(port, VELO_ID(0, 9), &conn)) == VELO_AGAIN &&
               test_now_ns() < end_ns)
            test_sleep_ns(TEST_US);
        CHECK_OK(status);
        message_send(conn, 32, round);
        message_expect(peer, 32, round, VELO_ID(0, 0));
        if (round == 1)
            CHECK_OK(velo_disconnect(conn));
    }
    (void)velo_try_connect(port, VELO_ID(0, 9), &conn); /* Perhaps it is under way. */
    CHECK_OK(velo_port_close(port));
    CHECK_OK(velo_port_close(peer));
}

TEST(several_connections_to_one_peer_each_keep_their_order)
{
    enum { CONNS = 5, MSGS = 2000 };
    struct velo_port *receiver = port_open(VELO_VPID_ANY);
    struct velo_port *sender = port_open(VELO_VPID_ANY);
    struct velo_conn *conns[CONNS];
    struct rng rng = {test_seed()};
    uint32_t sent[CONNS] = {0}, received[CONNS] = {0};
    uint32_t total = 0;

    for (size_t i = 0; i < CONNS; i++)
        conns[i] = port_connect(sender, velo_port_id(receiver));
    while (total < CONNS * MSGS) {
        uint32_t which = rng_below(&rng, CONNS);
        uint32_t body[2] = {which, sent[which]};
        struct velo_msg msg;

        if (sent[which] < MSGS && velo_try_send(conns[which], body, sizeof(body), 0) == VELO_OK)
            sent[which]++;
        if (rng_below(&rng, 2) == 0 &&
            velo_try_recv(receiver, body, sizeof(body), &msg) == VELO_OK) {
            CHECK(body[0] < CONNS);
            CHECK_EQ(body[1], received[body[0]]);
            received[body[0]]++;
            total++;
        }
    }
    CHECK_OK(velo_port_close(sender));
    CHECK_OK(velo_port_close(receiver));
}

TEST(disconnect_still_delivers_what_was_sent)
{
    struct velo_port *receiver = port_open(VELO_VPID_ANY);
    struct velo_port *sender = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(sender, velo_port_id(receiver));
    struct velo_msg msg;

    for (uint64_t i = 0; i < 20; i++)
        message_send(conn, i * 100, i);
    CHECK_OK(velo_disconnect(conn));
    for (uint64_t i = 0; i < 20; i++)
        message_expect(receiver, i * 100, i, velo_port_id(sender));
    CHECK_STATUS(velo_try_peek(receiver, &msg), VELO_AGAIN);
    CHECK_OK(velo_port_close(sender));
    CHECK_OK(velo_port_close(receiver));
}

TEST(disconnect_drops_an_open_reservation_and_nothing_else)
{
    struct velo_port *receiver = port_open(VELO_VPID_ANY);
    struct velo_port *sender = port_open(VELO_VPID_ANY);
    static const size_t lens[] = {8, 56, 57, 4096};

    for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
        struct velo_conn *conn = port_connect(sender, velo_port_id(receiver));
        struct velo_msg msg;
        void *buf;

        message_send(conn, lens[i], i);
        CHECK_OK(velo_reserve(conn, lens[i], &buf, VELO_FOREVER));
        memset(buf, 0xff, lens[i]);
        CHECK_OK(velo_disconnect(conn));
        message_expect(receiver, lens[i], i, velo_port_id(sender));
        CHECK_STATUS(velo_try_peek(receiver, &msg), VELO_AGAIN);
    }
    CHECK_OK(velo_port_close(sender));
    CHECK_OK(velo_port_close(receiver));
}

TEST(closing_the_sending_port_still_delivers_what_was_sent)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *receiver = port_open(VELO_VPID_ANY);
    struct velo_port *sender;
    struct velo_msg msg;

    /* By a simulated card, messages take longer than the default. */
    attr.linger_ns = TEST_PATIENCE_NS;
    CHECK_OK(velo_port_open(&attr, &sender));

    struct velo_conn *conn = port_connect(sender, velo_port_id(receiver));
    velo_id_t source = velo_port_id(sender);

    for (uint64_t i = 0; i < 20; i++)
        message_send(conn, i * 100, i);
    CHECK_OK(velo_port_close(sender));
    for (uint64_t i = 0; i < 20; i++)
        message_expect(receiver, i * 100, i, source);
    CHECK_STATUS(velo_try_peek(receiver, &msg), VELO_AGAIN);
    CHECK_OK(velo_port_close(receiver));
}

/* Send to port 0 and exit without closing anything. */
static void send_and_exit(void *arg)
{
    struct velo_port *port = port_open(1);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 0));

    (void)arg;
    for (uint64_t i = 0; i < 20; i++)
        message_send(conn, i * 100, i);
    exit(0); /* _exit() would leave out the handler that sends what a transport holds back. */
}

TEST(a_process_that_ends_still_delivers_what_it_sent)
{
    struct velo_port *receiver = port_open(0);
    struct velo_msg msg;

    child_join(child_start(send_and_exit, NULL));
    for (uint64_t i = 0; i < 20; i++)
        message_expect(receiver, i * 100, i, VELO_ID(0, 1));
    CHECK_STATUS(velo_try_peek(receiver, &msg), VELO_AGAIN);
    CHECK_OK(velo_port_close(receiver));
    CHECK_OK(velo_port_close(port_open(1))); /* Takes away what the process left. */
}

TEST(the_longest_message_is_a_quarter_of_the_data_bytes)
{
    static const struct {
        uint32_t data_bytes;
        size_t max_bytes;
    } cases[] = {{0, 16384},      {16384, 4096},    {32768, 8192},
                 {65536, 16384},  {131072, 32768},  {262144, 65535},
                 {524288, 65535}, {1 << 20, 65535}, {16 << 20, 65535}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct velo_port *port = port_open_sized(VELO_VPID_ANY, 0, cases[i].data_bytes, 0);
        struct velo_conn *conn = port_connect(port, velo_port_id(port));

        CHECK_EQ(velo_conn_max_bytes(conn), cases[i].max_bytes);
        CHECK_OK(velo_port_close(port));
    }
}

TEST(the_receiver_decides_about_the_size_of_the_ring)
{
    struct velo_port *small = port_open_sized(VELO_VPID_ANY, 8, 16384, 0);
    struct velo_port *large = port_open_sized(VELO_VPID_ANY, 1024, 1 << 20, 0);
    struct velo_conn *to_small = port_connect(large, velo_port_id(small));
    struct velo_conn *to_large = port_connect(small, velo_port_id(large));

    CHECK_EQ(velo_conn_max_bytes(to_small), 4096);
    CHECK_EQ(velo_conn_max_bytes(to_large), 65535);
    message_send(to_large, 65535, 1);
    message_expect(large, 65535, 1, velo_port_id(small));
    CHECK_OK(velo_port_close(small));
    CHECK_OK(velo_port_close(large));
}

TEST(a_full_connection_table_refuses_and_a_freed_place_is_taken_again)
{
    enum { CONNS = 4 };
    struct velo_port *receiver = port_open_sized(VELO_VPID_ANY, 0, 0, CONNS);
    struct velo_port *sender = port_open(VELO_VPID_ANY);
    struct velo_conn *conns[CONNS], *extra = NULL;
    struct velo_msg msg;
    int status;

    for (size_t i = 0; i < CONNS; i++)
        conns[i] = port_connect(sender, velo_port_id(receiver));
    CHECK_STATUS(velo_connect(sender, velo_port_id(receiver), &extra, 0), VELO_ERR_FULL);
    CHECK_OK(velo_disconnect(conns[2]));

    /* The receiver takes the place back while it polls; a few polls are enough. */
    status = VELO_ERR_FULL;
    for (int i = 0; i < 10000 && status == VELO_ERR_FULL; i++) {
        CHECK_STATUS(velo_try_peek(receiver, &msg), VELO_AGAIN);
        status = velo_connect(sender, velo_port_id(receiver), &extra, 0);
    }
    CHECK_OK(status);
    message_send(extra, 8, 1);
    message_expect(receiver, 8, 1, velo_port_id(sender));
    CHECK_OK(velo_port_close(sender));
    CHECK_OK(velo_port_close(receiver));
}

/* The receiver stands still, so its table stays full. Its process may have to answer. */
TEST(connecting_to_a_full_table_waits_no_longer_than_it_may)
{
    static const int64_t timeouts_ns[] = {0, 50 * TEST_MS};
    struct velo_port *receiver = port_open_sized(VELO_VPID_ANY, 0, 0, 1);
    struct velo_port *sender = port_open(VELO_VPID_ANY);
    struct velo_conn *extra = NULL;

    (void)port_connect(sender, velo_port_id(receiver));
    for (size_t i = 0; i < ARRAY_LEN(timeouts_ns); i++) {
        int64_t best_ns = INT64_MAX;

        for (int round = 0; round < 5; round++) { /* Others may need the cores. */
            int64_t start_ns = test_now_ns();
            CHECK_STATUS(velo_connect(sender, velo_port_id(receiver), &extra, timeouts_ns[i]),
                         VELO_ERR_FULL);
            int64_t took_ns = test_now_ns() - start_ns;
            best_ns = took_ns < best_ns ? took_ns : best_ns;
        }
        CHECK(best_ns < timeouts_ns[i] + 200 * TEST_MS);
    }
    CHECK_OK(velo_port_close(sender));
    CHECK_OK(velo_port_close(receiver));
}

TEST(connecting_again_and_again_uses_nothing_up)
{
    struct velo_port *receiver = port_open_sized(VELO_VPID_ANY, 8, 16384, 2);
    struct velo_port *sender = port_open(VELO_VPID_ANY);

    for (uint64_t i = 0; i < test_rounds(5000); i++) {
        struct velo_conn *conn = port_connect(sender, velo_port_id(receiver));

        message_send(conn, i % 4097, i);
        if (i % 2 == 0)
            CHECK_OK(velo_disconnect(conn));
        message_expect(receiver, i % 4097, i, velo_port_id(sender));
        if (i % 2 != 0)
            CHECK_OK(velo_disconnect(conn));

        struct velo_msg msg; /* Polled empty, so that the receiver may take the place back. */
        for (int poll = 0; poll < 4; poll++)
            CHECK_STATUS(velo_try_peek(receiver, &msg), VELO_AGAIN);
    }
    CHECK_OK(velo_port_close(sender));
    CHECK_OK(velo_port_close(receiver));
}

TEST(the_number_of_connections_is_counted)
{
    struct velo_port *receiver = port_open(VELO_VPID_ANY);
    struct velo_port *sender = port_open(VELO_VPID_ANY);
    struct velo_conn *conns[10];
    struct velo_port_counters counters;
    struct velo_msg msg;

    for (size_t i = 0; i < 10; i++)
        conns[i] = port_connect(sender, velo_port_id(receiver));
    CHECK_STATUS(velo_recv(receiver, NULL, 0, &msg, TEST_MS), VELO_TIMEOUT);
    CHECK_OK(velo_port_counters(receiver, &counters, sizeof counters));
    CHECK_EQ(counters.rx_conns, 10);
    for (size_t i = 0; i < 7; i++)
        CHECK_OK(velo_disconnect(conns[i]));
    for (int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS; counters.rx_conns != 3;) {
        CHECK_STATUS(velo_recv(receiver, NULL, 0, &msg, TEST_MS), VELO_TIMEOUT);
        CHECK_OK(velo_port_counters(receiver, &counters, sizeof counters));
        CHECK(test_now_ns() < end_ns);
    }
    CHECK_EQ(counters.rx_reclaimed, 0); /* They left in good order. */
    CHECK_OK(velo_port_close(sender));
    CHECK_OK(velo_port_close(receiver));
}

enum way_to_send { TRY_SEND, SEND, TRY_RESERVE, RESERVE, WAYS_TO_SEND };

static int send_one_way(struct velo_conn *conn, enum way_to_send way)
{
    void *place;
    int status;

    if (way == TRY_SEND)
        return velo_try_send(conn, "x", 1, 0);
    if (way == SEND)
        return velo_send(conn, "x", 1, 0, VELO_FOREVER);
    status = way == RESERVE ? velo_reserve(conn, 1, &place, VELO_FOREVER)
                            : velo_try_reserve(conn, 1, &place);
    return status == VELO_OK ? velo_commit(conn, 1, 0) : status;
}

/* Send until the connection reports an error. */
static int send_until_error(struct velo_conn *conn, enum way_to_send way)
{
    int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;
    int status;

    do {
        status = send_one_way(conn, way);
        CHECK(test_now_ns() < end_ns);
    } while (status == VELO_OK || status == VELO_AGAIN);
    return status;
}

TEST(a_peer_that_closed_is_reported_to_its_senders)
{
    for (enum way_to_send way = 0; way < WAYS_TO_SEND; way++) {
        struct velo_port *receiver = port_open(VELO_VPID_ANY);
        struct velo_port *sender = port_open(VELO_VPID_ANY);
        velo_id_t peer = velo_port_id(receiver);
        struct velo_conn *conn = port_connect(sender, peer);

        message_send(conn, 8, 1);
        CHECK_OK(velo_port_close(receiver));
        CHECK_STATUS(send_until_error(conn, way), VELO_ERR_PEER_CLOSED);
        CHECK_STATUS(send_one_way(conn, way), VELO_ERR_PEER_CLOSED); /* It stays that way. */
        CHECK_OK(velo_disconnect(conn));
        int status = velo_connect(sender, peer, &conn, 0);
        /* Over a network there may be nobody left who says so. */
        CHECK(status == VELO_ERR_NO_PEER || (status == VELO_TIMEOUT && test_is_carried()));
        CHECK_OK(velo_port_close(sender));
    }
}

/* Receive one message and close at once. */
static void receive_one_and_close(void *arg)
{
    (void)arg;
    struct velo_port *port = port_open(1);
    message_expect(port, 8, 1, VELO_ID(0, 0));
    CHECK_OK(velo_port_close(port));
}

/* A message that was received was sent well, however soon its receiver leaves: else no program
 * could tell a peer to end without being told of an error now and then. */
TEST(sending_the_last_message_before_a_peer_closes_is_no_error)
{
    struct velo_port *port = port_open(0);

    for (int i = 0; i < 300; i++) {
        pid_t peer = child_start(receive_one_and_close, NULL);
        struct velo_conn *conn = port_connect(port, VELO_ID(0, 1));

        message_send(conn, 8, 1);
        child_join(peer);
        CHECK_OK(velo_disconnect(conn));
    }
    CHECK_OK(velo_port_close(port));
}

TEST(an_old_connection_never_reaches_a_port_opened_anew)
{
    struct velo_port *receiver = port_open(100);
    struct velo_port *sender = port_open(VELO_VPID_ANY);
    struct velo_conn *old = port_connect(sender, VELO_ID(0, 100)), *new;
    struct velo_msg msg;

    CHECK_OK(velo_port_close(receiver));
    receiver = port_open(100);
    CHECK_STATUS(send_until_error(old, TRY_SEND), VELO_ERR_PEER_CLOSED);
    CHECK_STATUS(velo_recv(receiver, NULL, 0, &msg, TEST_MS), VELO_TIMEOUT);
    new = port_connect(sender, VELO_ID(0, 100));
    message_send(new, 8, 2);
    message_expect(receiver, 8, 2, velo_port_id(sender));
    CHECK_OK(velo_port_close(sender));
    CHECK_OK(velo_port_close(receiver));
}

TEST(a_port_closes_while_others_are_connected_both_ways)
{
    for (int i = 0; i < 50; i++) {
        struct velo_port *a = port_open(VELO_VPID_ANY);
        struct velo_port *b = port_open(VELO_VPID_ANY);
        struct velo_conn *to_b = port_connect(a, velo_port_id(b));
        struct velo_conn *to_a = port_connect(b, velo_port_id(a));

        message_send(to_b, 1000, 1);
        message_send(to_a, 1000, 2);
        CHECK_OK(velo_port_close(a));
        message_expect(b, 1000, 1, VELO_ID(0, 0));
        CHECK_OK(velo_port_close(b));
    }
}

/* A child of a process with open ports opens its own under another id and sends to its parent. */
static void open_own_port_and_send(void *arg)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);

    (void)arg;
    CHECK_EQ(velo_port_id(port), VELO_ID(0, 1));
    message_send(port_connect(port, VELO_ID(0, 0)), 100, 5);
    CHECK_OK(velo_port_close(port));
}

TEST(a_forked_child_opens_its_own_port)
{
    struct velo_port *port = port_open(0);
    struct velo_conn *loop = port_connect(port, VELO_ID(0, 0));
    pid_t child = child_start(open_own_port_and_send, NULL);

    message_expect(port, 100, 5, VELO_ID(0, 1));
    child_join(child);
    message_send(loop, 8, 6); /* The child's end took nothing from the parent. */
    message_expect(port, 8, 6, VELO_ID(0, 0));
    CHECK_OK(velo_port_close(port));
}

TEST(a_child_forked_the_moment_a_port_is_open_opens_its_own)
{
    int rounds = (int)scaled(100, 3);

    for (int i = 0; i < rounds; i++) {
        struct velo_port *port = port_open(0);
        pid_t child = child_start(open_own_port_and_send, NULL);

        message_expect(port, 100, 5, VELO_ID(0, 1));
        child_join(child);
        CHECK_OK(velo_port_close(port));
    }
}
