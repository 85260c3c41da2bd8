/* SPDX-License-Identifier: Apache-2.0 */
/* Bursts: many messages by one call, sent and received as if by many. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

enum { BURST = 48, BURST_BYTES_MAX = 300 };

/* Messages of mixed lengths, each made from its seed, and the room that they need. */
struct burst {
    struct velo_msg msgs[BURST];
    unsigned char bytes[BURST][BURST_BYTES_MAX];
};

static size_t mixed_len(uint64_t seed)
{
    uint64_t mix = test_mix(seed);
    return mix % 4 ? mix / 4 % (VELO_INLINE_BYTES + 1) : mix / 4 % (BURST_BYTES_MAX + 1);
}

static void burst_fill(struct burst *burst, uint64_t first)
{
    memset(burst->msgs, 0xff, sizeof(burst->msgs)); /* What does not count is not looked at. */
    for (int i = 0; i < BURST; i++) {
        uint64_t seed = first + (uint64_t)i;
        size_t len = mixed_len(seed);

        pattern_fill(burst->bytes[i], len, seed);
        burst->msgs[i].data = len ? burst->bytes[i] : NULL;
        burst->msgs[i].len_bytes = len;
        burst->msgs[i].tag = pattern_tag(seed);
    }
}

/* Receive some messages by one call, and check them and where their payloads stand. */
static int receive_some(struct velo_port *port, int most, size_t cap_bytes, uint64_t seed,
                        velo_id_t source)
{
    static _Alignas(8) unsigned char buf[BURST * (BURST_BYTES_MAX + 8) + 64];
    struct velo_msg msgs[BURST];
    size_t at = 0;

    CHECK(cap_bytes + 64 <= sizeof(buf));
    memset(buf, 0xa5, sizeof(buf));
    int count = velo_recv_many(port, msgs, most, buf, cap_bytes, TEST_PATIENCE_NS);
    CHECK(count >= 1 && count <= most);
    for (int i = 0; i < count; i++, seed++) {
        CHECK_EQ((const unsigned char *)msgs[i].data - buf, at);
        message_check(&msgs[i], mixed_len(seed), seed, source);
        at += (msgs[i].len_bytes + 7) / 8 * 8;
    }
    CHECK(at <= (cap_bytes + 7) / 8 * 8);
    for (size_t i = cap_bytes; i < sizeof(buf); i++) /* Nothing is written behind the buffer. */
        CHECK_EQ(buf[i], 0xa5);
    return count;
}

TEST(a_burst_arrives_message_by_message_in_order)
{
    static struct burst burst;
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    struct velo_port_counters counters;
    uint64_t seed = 0, bytes = 0;

    for (uint32_t round = 0; round < test_rounds(200); round++) {
        burst_fill(&burst, seed);
        CHECK_EQ(velo_send_many(conn, burst.msgs, BURST, VELO_FOREVER), BURST);
        for (int i = 0; i < BURST; i++, seed++) {
            message_expect(port, mixed_len(seed), seed, velo_port_id(port));
            bytes += mixed_len(seed);
        }
    }
    CHECK_EQ(velo_send_many(conn, NULL, 0, VELO_FOREVER), 0);
    CHECK_EQ(velo_send_many(conn, burst.msgs, 0, 0), 0);
    CHECK_STATUS(velo_try_recv(port, NULL, 0, NULL), VELO_AGAIN);
    CHECK_OK(velo_port_counters(port, &counters, sizeof counters));
    CHECK_EQ(counters.tx_msgs, seed);
    CHECK_EQ(counters.tx_bytes, bytes);
    CHECK_EQ(counters.rx_msgs, seed);
    CHECK_EQ(counters.rx_bytes, bytes);
    CHECK_OK(velo_port_close(port));
}

TEST(many_messages_are_received_by_one_call_as_far_as_there_is_room)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    uint64_t sent = 0, received = 0;

    for (uint32_t round = 0; round < test_rounds(300); round++) {
        int most = 1 + (int)(test_mix(round) % BURST);
        /* Each fits, but not always all of them. */
        size_t cap_bytes = BURST_BYTES_MAX + test_mix(~round) % 3000;

        while (sent < received + BURST) {
            message_send(conn, mixed_len(sent), sent);
            sent++;
        }
        received += (uint64_t)receive_some(port, most, cap_bytes, received, velo_port_id(port));
    }
    while (received < sent)
        received += (uint64_t)receive_some(port, BURST, BURST * BURST_BYTES_MAX, received,
                                           velo_port_id(port));
    CHECK_STATUS(velo_recv_many(port, &(struct velo_msg){0}, 1, NULL, 0, 0), VELO_TIMEOUT);
    CHECK_OK(velo_port_close(port));
}

/* In memory all is there at once, and one call takes as many as it may, from every connection. */
TEST(one_call_takes_all_that_is_there)
{
    enum { MSGS = 48, CONNS = 3 };
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conns[CONNS];
    struct velo_msg msgs[64];
    char buf[64 * 8];
    bool is_memory = !test_is_carried() && !test_is_by_node();

    for (int i = 0; i < CONNS; i++)
        conns[i] = port_connect(port, velo_port_id(port));
    for (size_t round = 0; round < scaled(1000, 10); round++) {
        uint64_t next[CONNS] = {0}, got;
        int received = 0;

        for (uint64_t i = 0; i < MSGS; i++) {
            uint64_t number = i / CONNS;
            CHECK_OK(velo_send(conns[i % CONNS], &number, 8, (uint8_t)(i % CONNS), VELO_FOREVER));
        }
        while (received < MSGS) {
            int most = round % 2 ? 5 : 64;
            int there = MSGS - received < most ? MSGS - received : most;
            int count = velo_recv_many(port, msgs, most, buf, sizeof(buf), TEST_PATIENCE_NS);
            CHECK(is_memory ? count == there : count >= 1);
            for (int i = 0; i < count; i++) { /* In order, of each of the three. */
                CHECK_EQ(msgs[i].len_bytes, 8);
                memcpy(&got, msgs[i].data, 8);
                CHECK(msgs[i].tag < CONNS);
                CHECK_EQ(got, next[msgs[i].tag]++);
            }
            received += count;
        }
    }
    CHECK_OK(velo_port_close(port));
}

TEST(a_message_that_does_not_fit_stays_for_the_next_call)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    struct velo_msg msgs[4];
    char buf[64];

    message_send(conn, 40, 1);
    message_send(conn, 40, 2);
    message_send(conn, 1000, 3);
    message_send(conn, 0, 4);
    CHECK_EQ(velo_recv_many(port, msgs, 4, buf, sizeof(buf), TEST_PATIENCE_NS), 1);
    message_check(&msgs[0], 40, 1, velo_port_id(port));
    CHECK_EQ(velo_recv_many(port, msgs, 4, buf, sizeof(buf), TEST_PATIENCE_NS), 1);
    message_check(&msgs[0], 40, 2, velo_port_id(port));
    for (int i = 0; i < 2; i++) {
        CHECK_STATUS(velo_recv_many(port, msgs, 4, buf, sizeof(buf), TEST_PATIENCE_NS),
                     VELO_ERR_TOO_BIG);
        CHECK_EQ(msgs[0].len_bytes, 1000);
        CHECK_EQ(msgs[0].source, velo_port_id(port));
        CHECK_EQ(msgs[0].tag, pattern_tag(3));
    }
    message_expect(port, 1000, 3, velo_port_id(port));
    CHECK_EQ(velo_recv_many(port, msgs, 4, NULL, 0, TEST_PATIENCE_NS), 1);
    message_check(&msgs[0], 0, 4, velo_port_id(port));
    CHECK_OK(velo_port_close(port));
}

TEST(a_bad_message_stops_the_burst_there_and_loses_nothing)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    static struct burst burst;

    for (int kind = 0; kind < 2; kind++) {
        for (int bad = 0; bad < BURST; bad += 9) {
            burst_fill(&burst, 0);
            struct velo_msg good = burst.msgs[bad];

            burst.msgs[bad].data = kind ? burst.bytes[bad] : NULL;
            burst.msgs[bad].len_bytes = kind ? velo_conn_max_bytes(conn) + 1 : 8;
            if (bad > 0)
                CHECK_EQ(velo_send_many(conn, burst.msgs, BURST, VELO_FOREVER), bad);
            CHECK_STATUS(velo_send_many(conn, burst.msgs + bad, BURST - bad, VELO_FOREVER),
                         kind ? VELO_ERR_TOO_BIG : VELO_ERR_ARG);
            for (uint64_t seed = 0; seed < (uint64_t)bad; seed++)
                message_expect(port, mixed_len(seed), seed, velo_port_id(port));
            CHECK_STATUS(velo_recv(port, NULL, 0, NULL, TEST_MS), VELO_TIMEOUT);
            burst.msgs[bad] = good;
            CHECK_EQ(velo_send_many(conn, burst.msgs + bad, BURST - bad, VELO_FOREVER),
                     BURST - bad);
            for (uint64_t seed = (uint64_t)bad; seed < BURST; seed++)
                message_expect(port, mixed_len(seed), seed, velo_port_id(port));
        }
    }
    CHECK_OK(velo_port_close(port));
}

TEST(a_burst_into_a_full_ring_tells_how_far_it_came)
{
    struct velo_port *port = port_open_sized(VELO_VPID_ANY, 8, 16384, 0);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    static struct burst burst;
    uint64_t received = 0;
    int sent = 0, stops = 0;

    burst_fill(&burst, 0);
    while (sent < BURST) {
        int count = velo_send_many(conn, burst.msgs + sent, BURST - sent, 0);
        if (count > 0) {
            sent += count;
            continue;
        }
        CHECK_STATUS(count, VELO_TIMEOUT);
        stops++;
        if (received < (uint64_t)sent) { /* Otherwise the credits are still on their way. */
            message_expect(port, mixed_len(received), received, velo_port_id(port));
            received++;
        }
    }
    CHECK(stops > 0);
    for (; received < BURST; received++)
        message_expect(port, mixed_len(received), received, velo_port_id(port));
    CHECK_OK(velo_port_close(port));
}

enum { LONG_BURSTS = 60 };

/* Bursts that are larger than the ring, taken by calls of all sizes. */
static void take_bursts(void *arg)
{
    struct velo_port *port = port_open_sized(1, 8, 16384, 0);
    uint64_t received = 0;

    (void)arg;
    while (received < (uint64_t)BURST * test_rounds(LONG_BURSTS)) {
        if (test_mix(received) % 16 == 0)
            test_sleep_ns(TEST_MS); /* The sender sleeps for room meanwhile. */
        int most = 1 + (int)(test_mix(received) % BURST);
        received +=
            (uint64_t)receive_some(port, most, BURST * BURST_BYTES_MAX, received, VELO_ID(0, 0));
    }
    CHECK_OK(velo_port_close(port));
}

TEST(a_burst_that_is_larger_than_the_ring_waits_for_room)
{
    struct velo_port *port = port_open(0);
    pid_t child = child_start(take_bursts, NULL);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 1));
    static struct burst burst;

    for (uint64_t round = 0; round < test_rounds(LONG_BURSTS); round++) {
        if (round % 4 == 0)
            test_sleep_ns(2 * TEST_MS); /* The receiver falls asleep meanwhile. */
        burst_fill(&burst, round * BURST);
        CHECK_EQ(velo_send_many(conn, burst.msgs, BURST, VELO_FOREVER), BURST);
    }
    child_join(child);
    CHECK_OK(velo_port_close(port));
}

struct slow_taker {
    struct velo_port *port;
    atomic_int hurry;
};

static void *take_slowly(void *arg)
{
    struct slow_taker *taker = arg;
    struct velo_msg msg;
    char byte;

    do {
        if (!atomic_load(&taker->hurry))
            test_sleep_ns(2 * TEST_MS);
        CHECK_OK(velo_recv(taker->port, &byte, 1, &msg, TEST_PATIENCE_NS));
    } while (msg.tag != 255);
    return NULL;
}

/* There is room again each few ms, so no wait is long; but all together are. */
TEST(the_time_limit_is_that_of_the_whole_burst)
{
    enum { MSGS = 20000 };
    static struct velo_msg msgs[MSGS];
    struct velo_port *port = port_open_sized(VELO_VPID_ANY, 8, 16384, 0);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    struct slow_taker taker = {.port = port};
    pthread_t thread;

    for (int i = 0; i < MSGS; i++)
        msgs[i] = (struct velo_msg){.data = "x", .len_bytes = 1};
    CHECK_EQ(pthread_create(&thread, NULL, take_slowly, &taker), 0);
    int64_t start_ns = test_now_ns();
    int sent = velo_send_many(conn, msgs, MSGS, 100 * TEST_MS);
    CHECK(test_now_ns() - start_ns >= 100 * TEST_MS);
    CHECK(sent > 0 && sent < MSGS);
    atomic_store(&taker.hurry, 1);
    CHECK_OK(velo_send(conn, "x", 1, 255, TEST_PATIENCE_NS));
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_OK(velo_port_close(port));
}

static void *interrupt_conn_soon(void *conn)
{
    test_sleep_ns(20 * TEST_MS);
    velo_conn_interrupt(conn);
    return NULL;
}

/* The receiver lives, and takes nothing. */
TEST(a_burst_that_is_interrupted_tells_what_it_sent_and_the_next_wait_tells_why)
{
    struct velo_port *port = port_open_sized(VELO_VPID_ANY, 8, 16384, 0);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    static struct burst burst;
    pthread_t thread;

    burst_fill(&burst, 0);
    CHECK_EQ(pthread_create(&thread, NULL, interrupt_conn_soon, conn), 0);
    int sent = velo_send_many(conn, burst.msgs, BURST, VELO_FOREVER);
    CHECK(sent > 0 && sent < BURST);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_STATUS(velo_send_many(conn, burst.msgs + sent, BURST - sent, VELO_FOREVER),
                 VELO_ERR_INTERRUPTED);
    CHECK_STATUS(velo_send_many(conn, burst.msgs + sent, BURST - sent, TEST_MS), VELO_TIMEOUT);
    for (uint64_t seed = 0; seed < (uint64_t)sent; seed++)
        message_expect(port, mixed_len(seed), seed, velo_port_id(port));
    CHECK_STATUS(velo_recv(port, NULL, 0, NULL, TEST_MS), VELO_TIMEOUT);
    CHECK_OK(velo_port_close(port));
}

static void *interrupt_port_soon(void *port)
{
    test_sleep_ns(20 * TEST_MS);
    velo_port_interrupt(port);
    return NULL;
}

TEST(a_wait_for_many_messages_can_be_interrupted)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    struct velo_msg msgs[2];
    pthread_t thread;
    char buf[16];

    CHECK_EQ(pthread_create(&thread, NULL, interrupt_port_soon, port), 0);
    CHECK_STATUS(velo_recv_many(port, msgs, 2, buf, sizeof(buf), VELO_FOREVER),
                 VELO_ERR_INTERRUPTED);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    message_send(conn, 8, 1);
    CHECK_STATUS(velo_recv(port, NULL, 0, NULL, TEST_PATIENCE_NS), VELO_ERR_TOO_BIG);
    velo_port_interrupt(port); /* A call that need not wait takes no notice: the next one does. */
    CHECK_EQ(velo_recv_many(port, msgs, 2, buf, sizeof(buf), VELO_FOREVER), 1);
    message_check(&msgs[0], 8, 1, velo_port_id(port));
    CHECK_STATUS(velo_recv_many(port, msgs, 2, buf, sizeof(buf), VELO_FOREVER),
                 VELO_ERR_INTERRUPTED);
    CHECK_OK(velo_port_close(port));
}

TEST(a_departure_stays_behind_the_messages_for_the_next_call)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *port, *sender = port_open(1);
    struct velo_msg msgs[8];
    char buf[8 * 8];
    uint64_t seed = 0;

    attr.vpid = 0;
    attr.flags = VELO_PORT_DEPARTURES;
    CHECK_OK(velo_port_open(&attr, &port));
    struct velo_conn *conn = port_connect(sender, VELO_ID(0, 0));
    for (uint64_t i = 0; i < 20; i++)
        message_send(conn, 8, i);
    CHECK_OK(velo_port_close(sender));
    while (seed < 20) {
        int count = velo_recv_many(port, msgs, 8, buf, sizeof(buf), TEST_PATIENCE_NS);
        CHECK(count >= 1);
        for (int i = 0; i < count; i++)
            message_check(&msgs[i], 8, seed++, VELO_ID(0, 1));
    }
    CHECK_STATUS(velo_recv_many(port, msgs, 8, buf, sizeof(buf), TEST_PATIENCE_NS),
                 VELO_ERR_PEER_CLOSED);
    CHECK_EQ(msgs[0].source, VELO_ID(0, 1));
    CHECK(msgs[0].data == NULL);
    CHECK_STATUS(velo_recv_many(port, msgs, 8, buf, sizeof(buf), TEST_MS), VELO_TIMEOUT);
    CHECK_OK(velo_port_close(port));
}

TEST(what_is_held_or_reserved_is_in_the_way)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    struct velo_msg msg, x = {.data = "x", .len_bytes = 1};
    void *room;
    char byte;

    CHECK_OK(velo_reserve(conn, 1, &room, VELO_FOREVER));
    CHECK_STATUS(velo_send_many(conn, &x, 1, VELO_FOREVER), VELO_ERR_STATE);
    CHECK_OK(velo_commit(conn, 0, 0));
    CHECK_OK(velo_peek(port, &msg, TEST_PATIENCE_NS));
    CHECK_STATUS(velo_recv_many(port, &msg, 1, &byte, 1, VELO_FOREVER), VELO_ERR_STATE);
    CHECK_OK(velo_release(port));
    CHECK_OK(velo_port_close(port));
}

/* The peer takes a first message, and ends by itself. */
static void take_one(void *arg)
{
    struct velo_port *port = port_open(1);
    char buf[64];

    CHECK_OK(velo_recv(port, buf, sizeof(buf), NULL, TEST_PATIENCE_NS));
    if (arg)
        CHECK_OK(velo_port_close(port));
}

static void ends_with(void *arg, int expected)
{
    struct velo_port *port = port_open_sized(0, 8, 16384, 0);
    pid_t child = child_start(take_one, arg);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 1));
    struct velo_msg msgs[BURST];
    int status;

    for (int i = 0; i < BURST; i++)
        msgs[i] = (struct velo_msg){.data = "x", .len_bytes = 1};
    /* Over a network the peer may have taken it and died before the call looks at it last. */
    status = velo_send_many(conn, msgs, 1, VELO_FOREVER);
    CHECK(status == 1 || (status == VELO_ERR_PEER_DEAD && status == expected));
    child_join(child);
    do /* The ring has room still, until the end is known. */
        status = velo_send_many(conn, msgs, BURST, VELO_FOREVER);
    while (status > 0);
    CHECK_STATUS(status, expected);
    CHECK_STATUS(velo_send_many(conn, msgs, 1, 0), expected);
    CHECK_OK(velo_port_close(port));
    CHECK_OK(velo_port_close(port_open(1))); /* Takes away what a dead one has left. */
}

TEST(a_burst_ends_when_its_peer_has_closed) { ends_with("", VELO_ERR_PEER_CLOSED); }

TEST(a_burst_ends_when_its_peer_has_died) { ends_with(NULL, VELO_ERR_PEER_DEAD); }
