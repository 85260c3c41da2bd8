/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that die, stand still, or come again. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "test.h"

#define PEER VELO_ID(0, 1)

/* A peer: takes one message and answers it, again and again. */
static void answer(void *arg)
{
    struct velo_port *port = port_open(1);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 0));
    uint64_t word;
    (void)arg;
    for (;;) {
        CHECK_OK(velo_recv(port, &word, sizeof word, NULL, VELO_FOREVER));
        CHECK_OK(velo_send(conn, &word, sizeof word, 1, VELO_FOREVER));
    }
}

static void ask(struct velo_port *port, struct velo_conn *conn, uint64_t word)
{
    uint64_t answered = ~word;
    CHECK_OK(velo_send(conn, &word, sizeof word, 1, TEST_PATIENCE_NS));
    CHECK_OK(velo_recv(port, &answered, sizeof answered, NULL, TEST_PATIENCE_NS));
    CHECK_EQ(answered, word);
}

static struct velo_port *open_telling(void)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *port;
    attr.vpid = 0;
    attr.flags = VELO_PORT_DEPARTURES;
    CHECK_OK(velo_port_open(&attr, &port));
    return port;
}

static void expect_death(struct velo_port *port, struct velo_conn *conn)
{
    struct velo_msg msg;
    uint64_t word = 0;
    int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;
    int status = VELO_OK;
    CHECK_STATUS(velo_recv(port, &word, sizeof word, &msg, TEST_PATIENCE_NS), VELO_ERR_PEER_DEAD);
    CHECK_EQ(msg.source, PEER);
    while ((status = velo_try_send(conn, &word, sizeof word, 1)) >= VELO_AGAIN &&
           test_now_ns() < end_ns)
        ;
    CHECK_EQ(status, VELO_ERR_PEER_DEAD);
    CHECK_OK(velo_disconnect(conn));
}

TEST(a_killed_peer_is_lost_on_both_ways_and_its_successor_is_reached)
{
    struct velo_port *port = open_telling();
    for (uint64_t round = 0; round < 2; round++) {
        pid_t peer = child_start(answer, NULL);
        struct velo_conn *conn = port_connect(port, PEER);
        ask(port, conn, round);
        child_kill(peer);
        expect_death(port, conn);
    }
    CHECK_OK(velo_port_close(port));
    CHECK_OK(velo_port_close(port_open(1))); /* Takes the dead one's file away. */
}

/* The peer stands still: what it is sent stays bounded, it is lost when its time is over, and
 * closing does not wait for it. */
TEST(a_silent_peer_pushes_back_and_is_lost)
{
    struct velo_port *port = open_telling();
    pid_t peer = child_start(answer, NULL);
    struct velo_conn *conn = port_connect(port, PEER);
    uint64_t word = 0, sent = 0;
    char page[4096] = {0};
    ask(port, conn, 1);
    CHECK_EQ(kill(peer, SIGSTOP), 0);
    while (velo_try_send(conn, page, sizeof page, 1) == VELO_OK)
        CHECK(++sent <= 256); /* No more than its ring, which has credits for 64 KiB. */
    CHECK(sent <= 16);
    CHECK_STATUS(velo_try_send(conn, page, sizeof page, 1), VELO_AGAIN);
    expect_death(port, conn);
    (void)word;
    CHECK_OK(velo_port_close(port));
    child_kill(peer);
    CHECK_OK(velo_port_close(port_open(1)));
}

/* It has answered once: so it is there, and the caller is told that. */
TEST(a_peer_that_stands_still_is_said_to_be_there)
{
    CHECK_EQ(setenv("VELO_OFI_TIMEOUT_MS", "60000", 1), 0);
    struct velo_port *port = port_open(0);
    pid_t peer = child_start(answer, NULL);
    struct velo_conn *conn = port_connect(port, PEER), *second;
    ask(port, conn, 1);
    CHECK_EQ(kill(peer, SIGSTOP), 0);
    CHECK_FAILS(velo_connect(port, PEER, &second, 0), VELO_TIMEOUT, "its process did not answer");
    CHECK_EQ(kill(peer, SIGCONT), 0);
    ask(port, conn, 2);
    child_kill(peer);
    CHECK_OK(velo_port_close(port));
    CHECK_OK(velo_port_close(port_open(1)));
}

/* As answer(), with a ring that holds more than a network takes for a process that stands still. */
enum { DEEP_BYTES = 16 << 20, LONG_BYTES = 60000 };

static void answer_once_deep(void *arg)
{
    struct velo_port *port = port_open_sized(1, 1024, DEEP_BYTES, 0);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 0));
    uint64_t word;
    (void)arg;
    CHECK_OK(velo_recv(port, &word, sizeof word, NULL, VELO_FOREVER));
    CHECK_OK(velo_send(conn, &word, sizeof word, 1, VELO_FOREVER));
    for (;;)
        pause();
}

/* The network has not taken all that was sent, and takes the peer for alive for a minute. The first
 * linger is longer than the transport by itself waits for its packets to leave; the second one is
 * the default. */
TEST(closing_lingers_as_long_as_it_was_asked_to_for_a_peer_that_stands_still)
{
    static const int64_t lingers_ns[] = {2500 * TEST_MS, 0};
    static char bytes[LONG_BYTES];
    CHECK_EQ(setenv("VELO_OFI_TIMEOUT_MS", "60000", 1), 0);
    for (size_t i = 0; i < ARRAY_LEN(lingers_ns); i++) {
        pid_t peer = child_start(answer_once_deep, NULL);
        struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
        struct velo_port *port;
        size_t sent_bytes = 0;
        attr.vpid = 0;
        attr.linger_ns = lingers_ns[i];
        CHECK_OK(velo_port_open(&attr, &port));
        struct velo_conn *conn = port_connect(port, PEER);
        ask(port, conn, 1);
        CHECK_EQ(kill(peer, SIGSTOP), 0);
        while (velo_try_send(conn, bytes, sizeof bytes, 1) == VELO_OK)
            sent_bytes += sizeof bytes;
        CHECK(sent_bytes > DEEP_BYTES / 2);
        int64_t start_ns = test_now_ns();
        CHECK_OK(velo_port_close(port));
        CHECK(test_now_ns() - start_ns >= lingers_ns[i]);
        CHECK(test_now_ns() - start_ns < 30000 * TEST_MS); /* Not as long as the network waits. */
        child_kill(peer);
        CHECK_OK(velo_port_close(port_open(1)));
    }
}

/* A port that is connected and idle says now and then that it lives, and does nothing else. */
TEST(an_idle_port_sleeps)
{
    struct velo_port *port = port_open(0);
    pid_t peer = child_start(answer, NULL);
    struct velo_conn *conn = port_connect(port, PEER);
    struct rusage before, after;
    uint64_t word;
    ask(port, conn, 1);
    CHECK_EQ(getrusage(RUSAGE_SELF, &before), 0);
    CHECK_STATUS(velo_recv(port, &word, sizeof word, NULL, 2000 * TEST_MS), VELO_TIMEOUT);
    CHECK_EQ(getrusage(RUSAGE_SELF, &after), 0);
    /* Times that a thread went to sleep, in twenty times the time between two signs of life. */
    CHECK(after.ru_nvcsw - before.ru_nvcsw < 400);
    ask(port, conn, 2); /* The peer has not been given up. */
    CHECK_OK(velo_port_close(port));
    child_kill(peer);
    CHECK_OK(velo_port_close(port_open(1)));
}

/* A process that was stopped for longer than the time, and goes on, has not lost its peers if they
 * lived with it in one process: nobody was silent. */
static void talk_to_self(void *arg)
{
    struct velo_port *port = port_open(2), *other = port_open(3);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 3));
    volatile uint64_t *stage = arg;
    message_send(conn, 8, 1);
    message_expect(other, 8, 1, VELO_ID(0, 2));
    *stage = 1;
    while (*stage == 1)
        test_sleep_ns(TEST_MS);
    message_send(conn, 8, 2);
    message_expect(other, 8, 2, VELO_ID(0, 2));
    CHECK_OK(velo_port_close(port));
    CHECK_OK(velo_port_close(other));
}

TEST(a_process_that_stood_still_does_not_take_others_for_dead)
{
    volatile uint64_t *stage = test_shared_alloc(sizeof *stage);
    pid_t child = child_start(talk_to_self, (void *)(uintptr_t)stage);
    while (*stage == 0)
        test_sleep_ns(TEST_MS);
    CHECK_EQ(kill(child, SIGSTOP), 0);
    test_sleep_ns(1500 * TEST_MS);
    CHECK_EQ(kill(child, SIGCONT), 0);
    *stage = 2;
    child_join(child);
}
