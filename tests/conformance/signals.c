/* SPDX-License-Identifier: Apache-2.0 */
/* A wait ends when a signal handler ran, or when one asked for it. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include "test.h"

static struct velo_port
    *volatile target; /* Of velo_port_interrupt(); NULL: the handler does nothing. */
static volatile sig_atomic_t handled;

static void on_alarm(int number)
{
    (void)number;
    handled = 1;
    if (target)
        velo_port_interrupt(target);
}

static void set_alarm(int64_t delay_ns, int64_t interval_ns, int flags)
{
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = flags};
    struct itimerval timer = {.it_value = {.tv_usec = (suseconds_t)(delay_ns / 1000)},
                              .it_interval = {.tv_usec = (suseconds_t)(interval_ns / 1000)}};

    handled = 0;
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    CHECK_EQ(setitimer(ITIMER_REAL, &timer, NULL), 0);
}

/* SIGALRM in so long, once. */
static void alarm_in(int64_t delay_ns, int flags) { set_alarm(delay_ns, 0, flags); }

/* SIGALRM again and again: one that comes between two sleeps is not noticed. */
static void alarm_every(int64_t delay_ns, int flags) { set_alarm(delay_ns, delay_ns, flags); }

static void alarm_off(void) { set_alarm(0, 0, 0); }

static void native_only(void)
{
    if (is_simulated())
        test_skip("signals do not come in virtual time");
}

TEST(a_receiver_that_sleeps_is_ended_by_a_signal_handler)
{
    native_only();
    struct velo_port *port = port_open(0);
    struct velo_msg msg;
    char byte;

    for (int i = 0; i < 4; i++) {
        alarm_every(20 * TEST_MS, i % 2 ? SA_RESTART : 0);
        CHECK_STATUS(i / 2 ? velo_recv(port, &byte, 1, &msg, TEST_PATIENCE_NS)
                           : velo_peek(port, &msg, VELO_FOREVER),
                     VELO_ERR_INTERRUPTED);
        CHECK(handled);
        alarm_off();
        /* Once. */
        CHECK_STATUS(velo_recv(port, &byte, 1, &msg, TEST_MS), VELO_TIMEOUT);
    }
    CHECK_OK(velo_port_close(port));
}

TEST(a_message_that_came_is_not_lost_to_a_signal)
{
    native_only();
    struct velo_port *port = port_open(0);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 0));

    for (uint64_t i = 0; i < 200; i++) {
        int status;
        char buf[64];

        alarm_in((int64_t)(1 + i % 7) * 50 * TEST_US, 0);
        status = velo_recv(port, buf, sizeof(buf), NULL, TEST_MS);
        CHECK(status == VELO_ERR_INTERRUPTED || status == VELO_TIMEOUT);
        message_send(conn, 8, i);
        while ((status = velo_recv(port, buf, sizeof(buf), NULL, TEST_PATIENCE_NS)) != VELO_OK)
            CHECK_STATUS(status, VELO_ERR_INTERRUPTED);
        CHECK(pattern_matches(buf, 8, i));
    }
    CHECK_OK(velo_port_close(port));
}

TEST(a_sender_that_sleeps_for_room_is_ended_by_a_signal_handler)
{
    native_only();
    struct velo_port *port = port_open_sized(0, 8, 0, 0);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 0));

    for (int i = 0; i < 8; i++)
        message_send(conn, VELO_INLINE_BYTES, (uint64_t)i);
    alarm_every(20 * TEST_MS, 0);
    CHECK_STATUS(velo_send(conn, "x", 1, 0, VELO_FOREVER), VELO_ERR_INTERRUPTED);
    alarm_off();
    for (int i = 0; i < 8; i++)
        message_expect(port, VELO_INLINE_BYTES, (uint64_t)i, VELO_ID(0, 0));
    CHECK_STATUS(velo_try_recv(port, NULL, 0, NULL), VELO_AGAIN); /* Nothing of it was sent. */
    message_send(conn, 8, 9);
    message_expect(port, 8, 9, VELO_ID(0, 0));
    CHECK_OK(velo_port_close(port));
}

TEST(a_connect_that_waits_is_ended_by_a_signal_handler)
{
    native_only();
    struct velo_port *port = port_open(0);
    struct velo_conn *conn;

    alarm_every(20 * TEST_MS + 300 * TEST_US, 0);
    CHECK_STATUS(velo_connect(port, VELO_ID(0, 9), &conn, VELO_FOREVER), VELO_ERR_INTERRUPTED);
    alarm_off();
    CHECK_OK(velo_port_close(port));
}

/* However early the handler runs: before the wait, while it spins, while it falls asleep. */
TEST(a_handler_that_interrupts_the_port_ends_the_wait_whenever_it_runs)
{
    native_only();
    struct velo_port *port = port_open(0);
    struct velo_msg msg;

    target = port;
    for (int64_t delay_us = 0; delay_us < 300; delay_us++) {
        alarm_in((1 + delay_us) * TEST_US, SA_RESTART);
        CHECK_STATUS(velo_peek(port, &msg, TEST_PATIENCE_NS), VELO_ERR_INTERRUPTED);
        CHECK(handled);
    }
    target = NULL;
    CHECK_OK(velo_port_close(port));
}

static void *interrupt_soon(void *port)
{
    test_sleep_ns(5 * TEST_MS);
    velo_port_interrupt(port);
    return NULL;
}

TEST(another_thread_can_end_a_wait_too)
{
    struct velo_port *port = port_open(0);
    struct velo_msg msg;
    pthread_t thread;

    CHECK_EQ(pthread_create(&thread, NULL, interrupt_soon, port), 0);
    CHECK_STATUS(velo_peek(port, &msg, TEST_PATIENCE_NS), VELO_ERR_INTERRUPTED);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    velo_port_interrupt(port); /* Calls that do not wait take no notice. */
    CHECK_STATUS(velo_try_recv(port, NULL, 0, &msg), VELO_AGAIN);
    CHECK_STATUS(velo_try_peek(port, &msg), VELO_AGAIN);
    CHECK_STATUS(velo_peek(port, &msg, TEST_PATIENCE_NS), VELO_ERR_INTERRUPTED);
    CHECK_OK(velo_port_close(port));
}

static void *interrupt_conn_soon(void *conn)
{
    test_sleep_ns(20 * TEST_MS);
    velo_conn_interrupt(conn);
    return NULL;
}

/* The receiver lives, and takes nothing. Each interrupt ends one wait: the one that is under way,
 * or the next. */
TEST(a_wait_for_room_can_be_interrupted_from_another_thread)
{
    struct velo_port *port = port_open_sized(VELO_VPID_ANY, 8, 16384, 0);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    pthread_t thread;
    void *room;
    char byte;

    velo_conn_interrupt(conn); /* Calls that find room take no notice. */
    for (int i = 0; i < 2; i++)
        CHECK_OK(velo_send(conn, "x", 1, 0, VELO_FOREVER));
    while (velo_try_send(conn, "x", 1, 0) == VELO_OK)
        ;
    CHECK_STATUS(velo_send(conn, "x", 1, 0, 0), VELO_TIMEOUT); /* Nor do those that do not wait. */
    CHECK_STATUS(velo_send(conn, "x", 1, 0, VELO_FOREVER), VELO_ERR_INTERRUPTED);
    CHECK_EQ(pthread_create(&thread, NULL, interrupt_conn_soon, conn), 0);
    CHECK_STATUS(velo_reserve(conn, 1, &room, VELO_FOREVER), VELO_ERR_INTERRUPTED);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    velo_port_interrupt(port); /* That is for who receives. */
    CHECK_STATUS(velo_sendv(conn, &(struct iovec){"x", 1}, 1, 0, 5 * TEST_MS), VELO_TIMEOUT);
    while (velo_try_recv(port, &byte, 1, NULL) == VELO_OK)
        ;
    CHECK_STATUS(velo_recv(port, &byte, 1, NULL, VELO_FOREVER), VELO_ERR_INTERRUPTED);
    CHECK_OK(velo_send(conn, "x", 1, 0, TEST_PATIENCE_NS));
    CHECK_OK(velo_port_close(port));
}

static struct velo_conn *volatile target_conn;

static void interrupt_the_conn(int number)
{
    (void)number;
    handled = 1;
    velo_conn_interrupt(target_conn);
}

/* It interrupts a sleep twice: as a handler that has run, and by what it calls. That is one end. */
TEST(a_handler_that_interrupts_the_connection_ends_one_wait_for_room)
{
    native_only();
    struct velo_port *port = port_open_sized(VELO_VPID_ANY, 8, 16384, 0);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    struct sigaction action = {.sa_handler = interrupt_the_conn};
    struct itimerval timer = {.it_value = {.tv_usec = 30000}};

    target_conn = conn;
    while (velo_try_send(conn, "x", 1, 0) == VELO_OK)
        ;
    for (int i = 0; i < 3; i++) {
        handled = 0;
        CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
        CHECK_EQ(setitimer(ITIMER_REAL, &timer, NULL), 0);
        CHECK_STATUS(velo_send(conn, "x", 1, 0, TEST_PATIENCE_NS), VELO_ERR_INTERRUPTED);
        CHECK(handled);
        CHECK_STATUS(velo_send(conn, "x", 1, 0, TEST_MS), VELO_TIMEOUT);
    }
    CHECK_OK(velo_port_close(port));
}

static struct velo_port *volatile own; /* Used by handlers only. */
static struct velo_conn *volatile to_own;
static volatile sig_atomic_t passed, failed;

static void pass_one_on(int number)
{
    uint64_t sent = (uint64_t)passed, got = 0;
    struct velo_msg msg;

    (void)number;
    if (velo_try_send(to_own, &sent, sizeof(sent), 7) != VELO_OK ||
        velo_try_recv(own, &got, sizeof(got), &msg) != VELO_OK || got != sent ||
        msg.source != velo_port_id(own) || velo_strerror(VELO_AGAIN) == NULL)
        failed = 1;
    passed = passed + 1;
}

/* Whatever the thread is just doing: sending, receiving, connecting, or asleep. */
TEST(a_handler_may_send_and_receive_on_a_port_of_its_own)
{
    struct velo_port *port;
    struct sigaction action = {.sa_handler = pass_one_on, .sa_flags = SA_RESTART};
    struct itimerval timer = {{0, 500}, {0, 500}};

    native_only();
    test_needs_shared_memory(); /* Over a network a handler may not send. */
    port = port_open(VELO_VPID_ANY);
    own = port_open(VELO_VPID_ANY);
    to_own = port_connect(own, velo_port_id(own));
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    CHECK_EQ(setitimer(ITIMER_REAL, &timer, NULL), 0);
    for (uint64_t i = 0; passed < 200; i++) {
        struct velo_conn *conn;
        char byte;
        int status;

        do
            status = velo_connect(port, velo_port_id(port), &conn, TEST_PATIENCE_NS);
        while (status == VELO_ERR_INTERRUPTED);
        CHECK_OK(status);
        message_send(conn, 8, i);
        message_expect(port, 8, i, velo_port_id(port));
        (void)velo_recv(port, &byte, 1, NULL, TEST_MS);
        CHECK_OK(velo_disconnect(conn));
    }
    alarm_off();
    CHECK_EQ(failed, 0);
    CHECK_OK(velo_port_close(own));
    CHECK_OK(velo_port_close(port));
}

/* ---- handlers that interrupt a call on another port ------------------------------------------ */

enum { HANDLED_MIN = 3000, SENDS_MAX = 64 };

static struct {
    struct velo_port *port; /* That only the handler uses. */
    struct velo_conn *conn;
    uint64_t sent;
    uint32_t runs;
    int status; /* The first that was not as it should be. */
} by_handler;

static void expect_in_handler(int status, int or_status)
{
    if (status != VELO_OK && status != or_status && by_handler.status == VELO_OK)
        by_handler.status = status;
}

static void send_by_handler(int number)
{
    int error = errno;

    (void)number;
    by_handler.runs++;
    int status = velo_try_send(by_handler.conn, &by_handler.sent, sizeof by_handler.sent, 0);
    expect_in_handler(status, VELO_AGAIN);
    by_handler.sent += status == VELO_OK;
    expect_in_handler(velo_try_recv(by_handler.port, NULL, 0, NULL), VELO_AGAIN);
    errno = error;
}

static void connect_by_handler(int number)
{
    struct velo_conn *conn = NULL;
    int error = errno;

    send_by_handler(number);
    int status = velo_connect(by_handler.port, VELO_ID(0, 0), &conn, 0);
    /* The table of the peer is full until it looks at what has left. */
    expect_in_handler(status, VELO_ERR_FULL);
    expect_in_handler(velo_disconnect(conn), VELO_OK);
    errno = error;
}

static void (*handler)(int);

/* The next signal comes a while after the handler has ended: it may take longer than that. */
static void arm_timer(void)
{
    const struct itimerval once = {.it_value = {.tv_usec = 100}};
    CHECK_EQ(setitimer(ITIMER_REAL, &once, NULL), 0);
}

static void handle(int number)
{
    int error = errno;

    handler(number);
    if (by_handler.runs < HANDLED_MIN)
        arm_timer();
    errno = error;
}

/* Calls of one port, while a handler makes the same of another. Both need what the process has
 * once: its locks, and, over a network, that of what is held back. */
static void use_beside_handler(void (*calls)(int), bool connects)
{
    struct velo_port *port = port_open(0), *sender = port_open(1);
    struct velo_conn *conn = port_connect(sender, VELO_ID(0, 0));
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    uint64_t sent = 0, received[3] = {0};
    bool is_over = false;

    by_handler.port = port_open(2);
    by_handler.conn = port_connect(by_handler.port, VELO_ID(0, 0));
    by_handler.sent = by_handler.runs = 0;
    by_handler.status = VELO_OK;
    handler = calls;
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    arm_timer();
    for (int64_t end_ns = test_now_ns() + 6 * TEST_PATIENCE_NS;
         !is_over || received[1] < sent || received[2] < by_handler.sent;) {
        CHECK(test_now_ns() < end_ns);
        struct velo_msg msg;
        uint64_t number;
        /* Mostly sends: what is sent is held back for a moment, by a list of all ports. */
        for (int i = 0; !is_over && i < SENDS_MAX; i++)
            sent += velo_try_send(conn, &sent, sizeof sent, 0) == VELO_OK;
        struct velo_conn *other = NULL;
        if (!is_over && connects && velo_connect(sender, VELO_ID(0, 0), &other, 0) == VELO_OK)
            CHECK_OK(velo_disconnect(other));
        while (velo_try_recv(port, &number, sizeof number, &msg) == VELO_OK) {
            CHECK(msg.source == 1 || msg.source == 2);
            CHECK_EQ(number, received[msg.source]);
            received[msg.source]++;
        }
        is_over = by_handler.runs >= HANDLED_MIN;
    }
    CHECK_OK(by_handler.status);
    CHECK(received[2] > 0);
    CHECK_OK(velo_port_close(by_handler.port));
    CHECK_OK(velo_port_close(sender));
    CHECK_OK(velo_port_close(port));
}

TEST(a_handler_sends_and_receives_while_its_thread_is_inside_a_call_for_another_port)
{
    native_only();
    if (test_is_by_node())
        test_skip("a node's host port takes each line as it is written");
    use_beside_handler(send_by_handler, false);
}

TEST(a_handler_that_connects_finds_no_lock_of_its_own_thread)
{
    native_only();
    test_needs_shared_memory();
#ifdef __SANITIZE_THREAD__
    test_skip("no handler may allocate memory under ThreadSanitizer");
#endif
    use_beside_handler(connect_by_handler, true);
}
