/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that die, stand still, or come again; peers of another machine, as far as names go. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
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

TEST(a_killed_peer_is_lost_on_both_ways_and_its_successor_is_reached)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *port;
    attr.vpid = 0;
    attr.flags = VELO_PORT_DEPARTURES;
    CHECK_OK(velo_port_open(&attr, &port));
    for (uint64_t round = 0; round < 2; round++) {
        pid_t peer = child_start(answer, NULL);
        struct velo_conn *conn = port_connect(port, PEER);
        struct velo_msg msg;
        uint64_t word = 0;
        int status = VELO_OK;
        ask(port, conn, round);
        child_kill(peer);
        CHECK_STATUS(velo_recv(port, &word, sizeof word, &msg, TEST_PATIENCE_NS),
                     VELO_ERR_PEER_DEAD);
        CHECK_EQ(msg.source, PEER);
        int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;
        while ((status = velo_try_send(conn, &word, sizeof word, 1)) >= VELO_AGAIN &&
               test_now_ns() < end_ns)
            ;
        CHECK_EQ(status, VELO_ERR_PEER_DEAD);
        CHECK_OK(velo_disconnect(conn));
    }
    CHECK_OK(velo_port_close(port));
    CHECK_OK(velo_port_close(port_open(1))); /* Takes the dead one's file away. */
}

/* ---- another machine ------------------------------------------------------------------------- */

#define FAR VELO_ID(65, 3)
#define NAME_BYTES 32

struct names {
    size_t near_bytes, far_bytes;
    char near[NAME_BYTES], far[NAME_BYTES];
    volatile int stage;
};

/* A process that only sleeps would hold up the simulated cluster. */
static void expect_stage(const struct names *names, struct velo_port *port, int stage)
{
    struct velo_msg msg;
    while (names->stage < stage)
        (void)velo_try_peek(port, &msg);
}

static struct velo_port *open_far(void)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *port;
    attr.node = (int)VELO_ID_NODE(FAR);
    attr.vpid = (int)VELO_ID_VPID(FAR);
    CHECK_OK(velo_port_open(&attr, &port));
    return port;
}

/* Its segments are in a directory of its own, so this machine knows nothing of it. */
static void be_far(void *arg)
{
    struct names *names = arg;
    char dir[] = "/tmp/velo-far-XXXXXX";
    CHECK(mkdtemp(dir) != NULL);
    CHECK_EQ(setenv("VELO_SHM_DIR", dir, 1), 0);
    struct velo_port *port = open_far();
    names->far_bytes = NAME_BYTES;
    CHECK_OK(velo_port_name(port, names->far, &names->far_bytes));
    names->stage = 1;
    expect_stage(names, port, 2);
    CHECK_OK(velo_peer_name(port, VELO_ID(0, 0), names->near, names->near_bytes));
    names->stage = 3;
    for (uint64_t i = 0; i < 5; i++)
        message_expect(port, 300 * i, i, VELO_ID(0, 0));
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 0));
    message_send(conn, 8, 9);
    CHECK_OK(velo_port_close(port));
    CHECK_EQ(rmdir(dir), 0);
}

/* No id says on which node the card is: only names do. */
TEST(ports_of_two_machines_meet_by_their_names_alone)
{
    struct names *names = test_shared_alloc(sizeof *names);
    pid_t far = child_start(be_far, names);
    struct velo_port *port = port_open(0);
    struct velo_conn *conn;
    expect_stage(names, port, 1);
    CHECK_FAILS(velo_connect(port, FAR, &conn, 50 * TEST_MS), VELO_ERR_NO_PEER, "");
    CHECK_OK(velo_peer_name(port, FAR, names->far, names->far_bytes));
    names->near_bytes = NAME_BYTES;
    CHECK_OK(velo_port_name(port, names->near, &names->near_bytes));
    names->stage = 2;
    expect_stage(names, port, 3);
    CHECK_OK(velo_connect(port, FAR, &conn, TEST_PATIENCE_NS));
    for (uint64_t i = 0; i < 5; i++)
        message_send(conn, 300 * i, i);
    message_expect(port, 8, 9, FAR);
    child_join(far);
    CHECK_OK(velo_port_close(port));
}

/* A name that is none, and one whose port has gone. */
TEST(a_name_of_a_port_that_is_gone_reaches_nobody)
{
    struct velo_port *port = port_open(0), *other = port_open(1);
    struct velo_conn *conn;
    char name[NAME_BYTES] = {0};
    size_t len_bytes = sizeof name;
    CHECK_FAILS(velo_peer_name(port, FAR, name, sizeof name), VELO_ERR_ARG, "card");
    CHECK_OK(velo_port_name(other, name, &len_bytes));
    CHECK_OK(velo_port_close(other));
    other = port_open(1); /* The same context, another generation. */
    CHECK_OK(velo_peer_name(port, PEER, name, len_bytes));
    CHECK_STATUS(velo_connect(port, PEER, &conn, 50 * TEST_MS), VELO_TIMEOUT);
    CHECK_OK(velo_port_close(other));
    CHECK_OK(velo_port_close(port));
}
