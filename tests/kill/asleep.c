/* SPDX-License-Identifier: Apache-2.0 */
/* A message that comes just as its receiver falls asleep on the port's descriptor. */
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/hook.h"
#include "test.h"

static struct velo_conn *hook_conn;

static void send_at_arm(unsigned point)
{
    if (point != HOOK_ARM || !hook_conn)
        return;
    CHECK_OK(velo_try_send(hook_conn, "x", 1, 0));
    hook_conn = NULL;
}

TEST(a_port_is_not_armed_over_a_message_that_comes_meanwhile)
{
    struct velo_port *port = port_open(0);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 0));
    char byte;
    int fd;

    CHECK_OK(velo_port_fd(port, &fd));
    velo_test_hook = send_at_arm;
    for (int round = 0; round < 50; round++) {
        /* A wait has ended: the port is awake, and nothing is left. */
        CHECK_STATUS(velo_recv(port, &byte, 1, NULL, TEST_MS), VELO_TIMEOUT);
        hook_conn = conn;
        /* Armed, or told at once: either way the message is not forgotten. */
        if (velo_port_arm(port) == VELO_OK)
            CHECK_EQ(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 1000), 1);
        CHECK(!hook_conn);
        CHECK_OK(velo_try_recv(port, &byte, 1, NULL));
        /* A ring that is polled without doorbells must ring again once the port is armed. */
        for (int i = 0; i < 100; i++) {
            CHECK_OK(velo_try_send(conn, "y", 1, 0));
            CHECK_OK(velo_recv(port, &byte, 1, NULL, TEST_PATIENCE_NS));
        }
    }
    velo_test_hook = NULL;
    CHECK_OK(velo_port_close(port));
}

static struct velo_port *hook_port;

static void interrupt_at_last_look(unsigned point)
{
    if (point != HOOK_LAST_LOOK || !hook_port)
        return;
    velo_port_interrupt(hook_port);
    hook_port = NULL;
}

TEST(an_interrupt_while_a_port_is_armed_is_not_forgotten)
{
    struct velo_port *port = port_open(0);
    char byte;
    int fd;

    CHECK_OK(velo_port_fd(port, &fd));
    velo_test_hook = interrupt_at_last_look;
    for (int round = 0; round < 50; round++) {
        /* A wait has ended: the port is awake, and no sender rings it. */
        CHECK_STATUS(velo_recv(port, &byte, 1, NULL, TEST_US), VELO_TIMEOUT);
        hook_port = port;
        CHECK_STATUS(velo_port_arm(port), VELO_ERR_INTERRUPTED);
        CHECK(!hook_port);
        hook_port = port;
        CHECK_STATUS(velo_recv(port, &byte, 1, NULL, TEST_PATIENCE_NS), VELO_ERR_INTERRUPTED);
    }
    velo_test_hook = NULL;
    CHECK_OK(velo_port_close(port));
}

static unsigned rings;

/* Counts what a sender, or the port, sends to a port's doorbell. */
ssize_t sendto(int fd, const void *buf, size_t n, int flags, const struct sockaddr *addr,
               socklen_t addr_len)
{
    rings++;
    return syscall(SYS_sendto, fd, buf, n, flags, addr, addr_len);
}

static void arm(struct velo_port *port)
{
    char byte;

    while (velo_port_arm(port) == VELO_AGAIN)
        CHECK_STATUS(velo_try_recv(port, &byte, 1, NULL), VELO_AGAIN);
}

static bool is_readable(int fd)
{
    return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0) == 1;
}

TEST(an_armed_port_is_rung_once_for_all_that_comes_while_it_is_awake)
{
    setenv("VELO_SPIN_NS", "0", 1); /* Each message rings: no ring is polled. */
    struct velo_port *port = port_open(0);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 0));
    char byte;
    int fd;

    CHECK_OK(velo_port_fd(port, &fd));
    for (int round = 0; round < 20; round++) {
        arm(port);
        CHECK(!is_readable(fd));
        rings = 0;
        for (int i = 0; i < 100; i++) {
            CHECK_OK(velo_try_send(conn, "x", 1, 0));
            CHECK(is_readable(fd));
            CHECK_OK(velo_try_recv(port, &byte, 1, NULL));
            CHECK_STATUS(velo_try_recv(port, &byte, 1, NULL), VELO_AGAIN);
        }
        CHECK_EQ(rings, 1);
    }
    unsetenv("VELO_SPIN_NS");
    CHECK_OK(velo_port_close(port));
}

static void take_before_ring(unsigned point)
{
    char byte;

    if (point != HOOK_RING_SUMMARY || !hook_port)
        return;
    CHECK_OK(velo_try_recv(hook_port, &byte, 1, NULL));
    hook_port = NULL;
}

/* One thread waits for the descriptor, and another takes what came before its sender looked whom to
 * wake: the first must not wait for ever. */
TEST(who_takes_what_an_armed_port_got_wakes_who_waits_for_its_descriptor)
{
    struct velo_port *port = port_open(0);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 0));
    int fd;

    CHECK_OK(velo_port_fd(port, &fd));
    velo_test_hook = take_before_ring;
    for (int round = 0; round < 20; round++) {
        arm(port);
        hook_port = port;
        CHECK_OK(velo_try_send(conn, "x", 1, 0));
        CHECK(!hook_port);
        CHECK(is_readable(fd));
    }
    velo_test_hook = NULL;
    CHECK_OK(velo_port_close(port));
}
