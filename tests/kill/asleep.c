/* SPDX-License-Identifier: Apache-2.0 */
/* A message that comes just as its receiver falls asleep on the port's descriptor. */
#include <poll.h>

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
