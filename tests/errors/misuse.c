/* SPDX-License-Identifier: Apache-2.0 */
/* A debug build ends with a sentence when two use at a time what is for one. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/port.h"
#include "test.h"

/* The library's own mark stands for the call that is interrupted: no signal comes at a given
 * instruction. */
static void send_inside_a_send(void *arg)
{
    struct velo_conn *conn;

    (void)arg;
    CHECK_OK(velo_connect(port_open(1), VELO_ID(0, 1), &conn, 0));
    conn->in_use = 1;
    (void)velo_send(conn, "x", 1, 0, VELO_FOREVER);
}

static void *receive_for_ever(void *port)
{
    (void)velo_recv(port, NULL, 0, NULL, VELO_FOREVER);
    return NULL;
}

static void close_under_a_receiver(void *arg)
{
    struct velo_port *port = port_open(1);
    pthread_t thread;

    (void)arg;
    CHECK_EQ(pthread_create(&thread, NULL, receive_for_ever, port), 0);
    while (order_flag(&port->in_use) == 0)
        test_sleep_ns(TEST_MS);
    (void)velo_port_close(port);
}

static void check_aborts(void (*body)(void *arg))
{
#ifdef VELO_GUARDS
    int status = child_wait(child_start(body, NULL));

    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK_OK(velo_port_close(port_open(1))); /* Takes away what it left. */
#else
    (void)body;
    test_skip("only debug and sanitizer builds look");
#endif
}

TEST(a_handler_that_sends_on_the_connection_it_interrupts_ends_a_debug_build)
{
    check_aborts(send_inside_a_send);
}

TEST(closing_a_port_that_is_received_from_ends_a_debug_build)
{
    check_aborts(close_under_a_receiver);
}
