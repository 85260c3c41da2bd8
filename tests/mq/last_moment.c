/* SPDX-License-Identifier: Apache-2.0 */
/* A peer that sends its last message and closes right before its end is seen. */
#include <dlfcn.h>
#include <time.h>

#include "support.h"

#define MATCH 11
/* Longer than the queues wait between two looks at their peers. */
#define UNTIL_LOOK_NS (150 * TEST_MS)
/* They look once in a few thousand rounds. */
#define ROUNDS_MAX 100000000
/* Many more rounds than are enough while others send without end. */
#define FLOOD_MAX 4000000

/* Called when the library reads the clock the next time: it does so right before it looks at its
 * peers, after it has looked for messages. */
static void (*at_clock)(void);

INTERPOSED int clock_gettime(clockid_t clock_id, struct timespec *tp)
{
    static int (*next)(clockid_t clock_id, struct timespec *tp);
    void (*call)(void) = at_clock;

    if (!next)
        next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    at_clock = NULL;
    if (call)
        call();
    return next(clock_id, tp);
}

/* Node 0 stays, node 1 closes. */
static struct node nodes[2];

static void send_and_close(void)
{
    int value = 6;

    CHECK_OK(velo_mq_try_send(node_connect(&nodes[1], nodes[0].id), &value, sizeof value, MATCH));
    node_close(&nodes[1]);
}

TEST(a_message_that_comes_just_before_the_end_is_seen_is_taken)
{
    struct velo_mq_request recv = {0};
    int got = 0;

    nodes_open(nodes, 2, NULL, false);
    (void)node_connect(&nodes[0], nodes[1].id);
    nodes_settle(nodes, 2);
    CHECK_OK(velo_mq_irecv(nodes[0].mq, nodes[1].id, MATCH, 0, &got, sizeof got, &recv));
    test_sleep_ns(UNTIL_LOOK_NS);
    at_clock = send_and_close;
    for (int i = 0; i < ROUNDS_MAX && recv.status == VELO_AGAIN; i++)
        (void)velo_mq_progress(nodes[0].mq);
    CHECK_OK(recv.status);
    CHECK_EQ(got, 6);
    node_close(&nodes[0]);
}

/* Node 2 floods node 0: whenever that looks, there is a message. */
TEST(what_waits_for_a_peer_that_left_ends_while_others_send_without_end)
{
    struct velo_mq_request send = {0}, recv = {0}, flood = {0};
    struct velo_mq_peer *flooded;
    struct node third;
    int value = 6, got = 0, last = 0;

    nodes_open(nodes, 2, NULL, false);
    node_open(&third, 2, 0, 0, NULL, false);
    flooded = node_connect(&third, nodes[0].id);
    CHECK_OK(velo_mq_isend(node_connect(&nodes[0], nodes[1].id), &value, sizeof value, MATCH,
                           VELO_MQ_SYNC, &send));
    CHECK_OK(velo_mq_irecv(nodes[0].mq, nodes[1].id, MATCH, 0, &got, sizeof got, &recv));
    CHECK_OK(velo_mq_irecv(nodes[0].mq, third.id, MATCH, 0, &last, sizeof last, &flood));
    node_close(&nodes[1]);
    test_sleep_ns(UNTIL_LOOK_NS);
    (void)velo_mq_wait(nodes[0].mq, &send, 0); /* It looks at the peers. */
    for (int i = 0; i < FLOOD_MAX && (send.status == VELO_AGAIN || recv.status == VELO_AGAIN);
         i++) {
        int status = velo_mq_try_send(flooded, &value, sizeof value, MATCH);
        int events = velo_mq_progress(nodes[0].mq);

        CHECK(status == VELO_OK || (status == VELO_AGAIN && test_is_carried()));
        CHECK(events > 0 || test_is_carried());
        if (flood.status == VELO_OK)
            CHECK_OK(velo_mq_irecv(nodes[0].mq, third.id, MATCH, 0, &last, sizeof last, &flood));
    }
    CHECK_STATUS(send.status, VELO_ERR_PEER_CLOSED);
    CHECK_STATUS(recv.status, VELO_ERR_PEER_CLOSED);
    node_close(&third);
    node_close(&nodes[0]);
}
