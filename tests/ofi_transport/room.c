/* SPDX-License-Identifier: Apache-2.0 */
/* A sender without room: when it looks at the transport, which lets go what is held back. */
#include <unistd.h>

#include "calls.h"
#include "test.h"

#define DEPTH_SLOTS 64
#define ROUNDS 20

static void poll_both(struct velo_port *port, struct velo_port *peer)
{
    uint64_t word;
    for (int i = 0; i < 50; i++) {
        CHECK_STATUS(velo_recv(peer, &word, sizeof word, NULL, 0), VELO_TIMEOUT);
        CHECK_STATUS(velo_recv(port, &word, sizeof word, NULL, 0), VELO_TIMEOUT);
        usleep(100);
    }
}

/* In the middle of a burst, what is held back waits for the rest of it. */
TEST(a_sender_takes_the_credits_that_are_there_without_a_look)
{
    struct velo_port *port = port_open(0);
    struct velo_port *peer = port_open_sized(1, DEPTH_SLOTS, 0, 0);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 1));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint64_t before = calls_epoll;
        message_send(conn, 8, 0);
        if (round > 0) /* It finds the room that it knows of used up. */
            CHECK_EQ(calls_epoll, before);
        for (uint64_t i = 1; i < DEPTH_SLOTS; i++)
            message_send(conn, 8, i);
        for (uint64_t i = 0; i < DEPTH_SLOTS; i++)
            message_expect(peer, 8, i, VELO_ID(0, 0));
        poll_both(port, peer); /* By then the credits have come. */
    }
    CHECK(calls_epoll > 0);
    CHECK_OK(velo_port_close(peer));
    CHECK_OK(velo_port_close(port));
}
