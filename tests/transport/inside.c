/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A signal handler that runs while its thread is inside a network's call: transport loop's calls of
 * the system are this file's, and one of them raises the signal. A thread enters the network once.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test.h"

#define SHOWN __attribute__((visibility("default")))

/* ---- the transport's calls ------------------------------------------------------------------- */

static _Thread_local struct {
    bool is_armed;  /* The next call raises the signal. */
    unsigned depth; /* Calls that this thread is in. */
    bool is_twice;  /* It was in two. */
} inside;

static void go_in(void)
{
    int error = errno;
    inside.is_twice |= inside.depth++ > 0;
    if (inside.is_armed) {
        inside.is_armed = false;
        CHECK_EQ(raise(SIGUSR1), 0);
    }
    errno = error;
}

static long come_out(long result)
{
    inside.depth--;
    return result;
}

SHOWN int epoll_wait(int epfd, struct epoll_event *events, int maxevents, int timeout)
{
    go_in();
    return (int)come_out(
        syscall(SYS_epoll_pwait, epfd, events, maxevents, timeout, NULL, (size_t)0));
}

SHOWN int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
    go_in();
    return (int)come_out(syscall(SYS_epoll_ctl, epfd, op, fd, event));
}

SHOWN ssize_t send(int fd, const void *buf, size_t n, int flags)
{
    go_in();
    return come_out(syscall(SYS_sendto, fd, buf, n, flags, NULL, 0));
}

/* ---- the handler ----------------------------------------------------------------------------- */

enum { BY_HANDLER = 77 };

static struct {
    struct velo_port *port; /* That only the handler uses. */
    struct velo_conn *conn;
    int runs, send, recv, look, arm, connect, disconnect, open, close;
} handler;

static void use_network(int number)
{
    struct velo_conn *conn;
    struct velo_port *port;
    (void)number;
    handler.runs++;
    handler.send = velo_try_send(handler.conn, NULL, 0, BY_HANDLER);
    handler.recv = velo_try_recv(handler.port, NULL, 0, NULL);
    handler.look = velo_conn_status(handler.conn);
    handler.arm = velo_port_arm(handler.port);
    handler.connect = velo_connect(handler.port, VELO_ID(0, 1), &conn, 0);
    handler.disconnect = velo_disconnect(handler.conn);
    handler.open = velo_port_open(NULL, &port);
    handler.close = velo_port_close(handler.port);
}

/* ---- what it interrupts ---------------------------------------------------------------------- */

static struct velo_port *port;
static struct velo_conn *conn;

static void try_recv(void) { CHECK_STATUS(velo_try_recv(port, NULL, 0, NULL), VELO_AGAIN); }
static void wait_a_while(void)
{
    int status = velo_recv(port, NULL, 0, NULL, 5 * TEST_MS);
    CHECK(status == VELO_TIMEOUT || status == VELO_ERR_INTERRUPTED);
}
static void try_send(void) { CHECK_OK(velo_try_send(conn, NULL, 0, 1)); }
static void connect_and_disconnect(void)
{
    struct velo_conn *another;
    CHECK_OK(velo_connect(port, VELO_ID(0, 1), &another, TEST_PATIENCE_NS));
    CHECK_OK(velo_disconnect(another));
}
static void open_and_close(void)
{
    struct velo_port *another = port_open(VELO_VPID_ANY);
    CHECK_OK(velo_port_close(another));
}

static void (*const calls[])(void) = {try_recv, wait_a_while, try_send, connect_and_disconnect,
                                      open_and_close};

TEST(a_handler_inside_the_network_does_not_enter_it_again)
{
    struct sigaction action = {.sa_handler = use_network};
    struct velo_port *peer = port_open(1);
    struct velo_msg msg;
    int fd;
    port = port_open(0);
    conn = port_connect(port, VELO_ID(0, 1));
    handler.port = port_open(2);
    handler.conn = port_connect(handler.port, VELO_ID(0, 1));
    CHECK_OK(velo_port_fd(handler.port, &fd));
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        handler.runs = 0;
        inside.is_armed = true;
        calls[i]();
        CHECK_EQ(handler.runs, 1);
        CHECK(!inside.is_twice);
        CHECK_OK(handler.send);
        CHECK_STATUS(handler.recv, VELO_AGAIN);
        CHECK_OK(handler.look);
        CHECK_STATUS(handler.arm, VELO_AGAIN);
        CHECK_STATUS(handler.connect, VELO_ERR_STATE);
        CHECK_STATUS(handler.disconnect, VELO_ERR_STATE);
        CHECK_STATUS(handler.open, VELO_ERR_STATE);
        CHECK_STATUS(handler.close, VELO_ERR_STATE);
        do /* Of the interrupted call another one may come first. */
            CHECK_OK(velo_recv(peer, NULL, 0, &msg, TEST_PATIENCE_NS));
        while (msg.tag != BY_HANDLER);
    }
    CHECK_OK(velo_port_close(handler.port));
    CHECK_OK(velo_port_close(port));
    CHECK_OK(velo_port_close(peer));
}
