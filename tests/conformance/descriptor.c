/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptor of a port, for programs with an event loop of their own. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#include "test.h"

static int fd_of(struct velo_port *port)
{
    int fd = -1;

    if (is_simulated())
        test_skip("a node's host port has no descriptor");
    CHECK_OK(velo_port_fd(port, &fd));
    CHECK(fd > 0);
    return fd;
}

static bool is_readable(int fd, int64_t timeout_ns)
{
    struct pollfd file = {.fd = fd, .events = POLLIN};
    int ready;

    do
        ready = poll(&file, 1, (int)(timeout_ns / TEST_MS));
    while (ready < 0 && errno == EINTR);
    CHECK(ready >= 0);
    return ready > 0;
}

/* Receive until nothing is there, and arm. A descriptor that is ready without reason does not
 * matter.
 */
static uint64_t take_all(struct velo_port *port, uint64_t next)
{
    char buf[64];
    struct velo_msg msg;
    int status;

    do {
        while ((status = velo_try_recv(port, buf, sizeof(buf), &msg)) == VELO_OK) {
            message_check(&msg, 40, next, msg.source);
            next++;
        }
        CHECK_STATUS(status, VELO_AGAIN);
        status = velo_port_arm(port);
    } while (status == VELO_AGAIN);
    CHECK_OK(status);
    return next;
}

TEST(a_descriptor_tells_of_a_message_that_comes_after_it_was_armed)
{
    struct velo_port *port = port_open(0), *sender = port_open(1);
    struct velo_conn *conn = port_connect(sender, VELO_ID(0, 0));
    int fd = fd_of(port);
    uint64_t next = take_all(port, 0);

    CHECK_EQ(fd_of(port), fd);
    for (uint64_t i = 0; i < 100; i++) {
        message_send(conn, 40, i);
        while (next == i) {
            CHECK(is_readable(fd, TEST_PATIENCE_NS));
            next = take_all(port, next);
        }
        CHECK_EQ(next, i + 1);
    }
    CHECK_OK(velo_port_close(sender));
    CHECK_OK(velo_port_close(port));
}

TEST(a_port_with_a_message_cannot_be_armed)
{
    struct velo_port *port = port_open(0);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 0));
    struct velo_msg msg;

    CHECK_STATUS(velo_port_arm(NULL), VELO_ERR_ARG);
    CHECK_STATUS(velo_port_arm(port), VELO_ERR_STATE); /* Nobody has its descriptor. */
    CHECK_STATUS(velo_port_fd(NULL, &(int){0}), VELO_ERR_ARG);
    CHECK_STATUS(velo_port_fd(port, NULL), VELO_ERR_ARG);
    (void)fd_of(port);
    message_send(conn, 40, 0);
    CHECK_OK(velo_peek(port, &msg, TEST_PATIENCE_NS));
    CHECK_STATUS(velo_port_arm(port), VELO_ERR_STATE);
    CHECK_OK(velo_release(port));
    message_send(conn, 40, 1);
    CHECK_OK(velo_peek(port, &msg, TEST_PATIENCE_NS)); /* It has come... */
    CHECK_OK(velo_defer(port));
    CHECK_OK(velo_resume(port)); /* ...and waits again. */
    CHECK_STATUS(velo_port_arm(port), VELO_AGAIN);
    CHECK_EQ(take_all(port, 1), 2);
    CHECK_OK(velo_port_close(port));
}

TEST(an_interrupt_ends_the_wait_for_a_descriptor)
{
    struct velo_port *port = port_open(0);
    int fd = fd_of(port);

    (void)take_all(port, 0);
    velo_port_interrupt(port);
    CHECK(is_readable(fd, TEST_PATIENCE_NS));
    CHECK_STATUS(velo_port_arm(port), VELO_ERR_INTERRUPTED);
    (void)take_all(port, 0);
    CHECK_OK(velo_port_close(port));
}

/* A signal handler may interrupt. The kernel takes only so many calls to wake one port. */
TEST(interrupts_keep_errno)
{
    struct velo_port *port = port_open(0);
    int fd = fd_of(port);

    (void)take_all(port, 0);
    for (int i = 0; i < 2000; i++) {
        errno = ENOTTY;
        velo_port_interrupt(port);
        CHECK_EQ(errno, ENOTTY);
    }
    CHECK(is_readable(fd, TEST_PATIENCE_NS));
    CHECK_STATUS(velo_port_arm(port), VELO_ERR_INTERRUPTED);
    (void)take_all(port, 0);
    CHECK_OK(velo_port_close(port));
}

TEST(a_descriptor_tells_of_a_sender_that_has_left)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *port, *sender = port_open(1);
    struct velo_conn *conn;
    uint64_t next;
    int status, fd;

    attr.flags = VELO_PORT_DEPARTURES;
    attr.vpid = 0;
    CHECK_OK(velo_port_open(&attr, &port));
    conn = port_connect(sender, VELO_ID(0, 0));
    fd = fd_of(port);
    message_send(conn, 40, 0);
    for (next = take_all(port, 0); next < 1; next = take_all(port, next))
        CHECK(is_readable(fd, TEST_PATIENCE_NS));
    CHECK_OK(velo_disconnect(conn));
    do {
        while ((status = velo_port_arm(port)) == VELO_OK)
            CHECK(is_readable(fd, TEST_PATIENCE_NS));
        CHECK_STATUS(status, VELO_AGAIN);
        status = velo_try_recv(port, NULL, 0, NULL);
    } while (status == VELO_AGAIN);
    CHECK_STATUS(status, VELO_ERR_PEER_CLOSED);
    CHECK_OK(velo_port_close(sender));
    CHECK_OK(velo_port_close(port));
}

#define STREAM scaled(30000, 100)

/* In bursts, so that the receiver sleeps, and is just falling asleep, again and again. */
static void *stream(void *arg)
{
    struct velo_conn *conn = port_connect(arg, VELO_ID(0, 0));
    struct rng rng = {test_seed()};
    uint64_t sent = 0;

    while (sent < STREAM) {
        for (uint32_t burst = 1 + rng_below(&rng, 5); burst > 0 && sent < STREAM; burst--)
            message_send(conn, 40, sent++);
        for (uint32_t pause = rng_below(&rng, 3000); pause > 0; pause--)
            __asm__ volatile("" ::: "memory");
    }
    CHECK_OK(velo_disconnect(conn));
    return NULL;
}

TEST(no_message_is_slept_through)
{
    struct velo_port *port = port_open(0), *sender = port_open(1);
    int fd = fd_of(port);
    pthread_t thread;
    uint64_t next;

    CHECK(pthread_create(&thread, NULL, stream, sender) == 0);
    while ((next = take_all(port, 0)) == 0)
        CHECK(is_readable(fd, TEST_PATIENCE_NS));
    while (next < STREAM) {
        CHECK(is_readable(fd, TEST_PATIENCE_NS));
        next = take_all(port, next);
    }
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_OK(velo_port_close(sender));
    CHECK_OK(velo_port_close(port));
}

#define STANDARD_FILES 3

/* Another thread of the library may hold the number for a moment, by a descriptor that neither
 * reads nor writes: transports/ofi/standard_files.h. */
static bool is_let_go(int file)
{
    int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;
    int flags;

    while ((flags = fcntl(file, F_GETFL)) >= 0 && (flags & O_PATH) && test_now_ns() < end_ns)
        (void)sched_yield();
    return flags == -1 && errno == EBADF;
}

/* What a service without standard files does; something in it still prints to them. */
static void open_all_without_standard_files(void *arg)
{
    int told = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STANDARD_FILES), fd;

    (void)arg;
    for (int file = 0; file < STANDARD_FILES; file++)
        (void)close(file);
    /* All files of the library are opened afresh: the parent had no port. */
    struct velo_port *port = port_open(0), *peer = port_open(1);
    struct velo_conn *conn = port_connect(peer, VELO_ID(0, 0));
    int status = velo_port_fd(port, &fd);
    bool are_closed = true;

    for (int file = 0; file < STANDARD_FILES; file++)
        are_closed &= is_let_go(file);
    (void)dup2(told, STDERR_FILENO);
    CHECK(are_closed);
    CHECK(status == VELO_OK || is_simulated());
    message_send(conn, 40, 0);
    message_expect(port, 40, 0, VELO_ID(0, 1));
    CHECK_OK(velo_port_close(peer));
    CHECK_OK(velo_port_close(port));
}

TEST(no_descriptor_of_a_port_is_a_standard_one)
{
    child_join(child_start(open_all_without_standard_files, NULL));
}

/* ---- senders that could miss the descriptor -------------------------------------------------- */

struct ringing {
    atomic_int state; /* See below. */
    int namespaces;   /* That the sender leaves before it opens its port. */
    bool has_no_descriptor;
    uint64_t msgs;
};

enum { CONNECTED = -1, NOT_PERMITTED = -2 };

/* No descriptor is left, and none comes back. */
static void use_up_descriptors(void)
{
    struct rlimit limit;
    int last = dup(STDOUT_FILENO);

    CHECK(last >= 0);
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = (rlim_t)last + 1;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    while (dup(STDOUT_FILENO) >= 0)
        ;
    CHECK_EQ(errno, EMFILE);
}

/* Ask again and again, with one free descriptor more each time, beginning with none. */
static int fd_of_once_there_is_room(struct velo_port *port)
{
    struct rlimit limit, before;
    int fd = -1, status, tries = 0;

    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    use_up_descriptors();
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    while ((status = velo_port_fd(port, &fd)) == VELO_ERR_SYSTEM) {
        CHECK(++tries < 10);
        limit.rlim_cur++;
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    }
    CHECK_OK(status);
    CHECK(tries > 1);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    return fd;
}

/* Sends one message each time it is told how many there should be. */
static void send_when_told(void *arg)
{
    struct ringing *ringing = arg;

    if (ringing->namespaces && !test_unshare(ringing->namespaces)) {
        atomic_store(&ringing->state, NOT_PERMITTED);
        return;
    }
    struct velo_port *port = port_open(1);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 0));
    message_send(conn, 40, 0);
    if (ringing->has_no_descriptor)
        use_up_descriptors();
    atomic_store(&ringing->state, CONNECTED);
    for (uint64_t i = 1; i < ringing->msgs; i++) {
        while ((uint64_t)atomic_load(&ringing->state) != i)
            test_sleep_ns(TEST_MS);
        message_send(conn, 40, i);
    }
    CHECK_OK(velo_port_close(port));
}

static void is_rung_at(int namespaces, bool has_no_descriptor,
                       int (*descriptor_of)(struct velo_port *))
{
    enum { MSGS = 5 };
    struct ringing *ringing = test_shared_alloc(sizeof *ringing);
    uint64_t next = 0;

    *ringing = (struct ringing){
        .namespaces = namespaces, .has_no_descriptor = has_no_descriptor, .msgs = MSGS};
    /* Before there is a port: a child has the sockets of its parent. */
    pid_t child = child_start(send_when_told, ringing);
    struct velo_port *port = port_open(0);
    int fd = descriptor_of(port);

    while (atomic_load(&ringing->state) == 0)
        next = take_all(port, next);
    if (atomic_load(&ringing->state) == NOT_PERMITTED) {
        CHECK_OK(velo_port_close(port));
        test_skip("this user may not make a network namespace");
    }
    while (next < 1)
        next = take_all(port, next);
    for (int i = 1; i < MSGS; i++) {
        CHECK_EQ(take_all(port, next), i);
        atomic_store(&ringing->state, i);
        while (next == (uint64_t)i) {
            CHECK(is_readable(fd, TEST_PATIENCE_NS));
            next = take_all(port, next);
        }
    }
    child_join(child);
    CHECK_OK(velo_port_close(port));
}

static void is_rung(int namespaces, bool has_no_descriptor)
{
    is_rung_at(namespaces, has_no_descriptor, fd_of);
}

TEST(a_descriptor_tells_of_a_message_whose_sender_has_no_descriptor_left) { is_rung(0, true); }

/* As between containers that have a directory in common, and nothing else. */
TEST(a_descriptor_tells_of_a_message_from_another_network_namespace)
{
    test_needs_shared_memory();
    is_rung(CLONE_NEWNET, false);
}

TEST(a_descriptor_tells_of_a_message_from_another_network_without_a_descriptor_left)
{
    test_needs_shared_memory();
    is_rung(CLONE_NEWNET, true);
}

/* All senders can wake a port whose descriptor was refused at first, or it is refused again. */
TEST(a_descriptor_that_was_refused_tells_of_a_message_from_another_network)
{
    test_needs_shared_memory();
    is_rung_at(CLONE_NEWNET, false, fd_of_once_there_is_room);
}
