/* SPDX-License-Identifier: Apache-2.0 */
/* A peer that is killed, or leaves, ends what is under way with it: soon, and nothing else. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

#define LONG_BYTES ((size_t)(test_is_by_card() ? 1 : 8) << 20)
#define SOON_NS ((test_is_by_card() ? 5000 : 1000) * TEST_MS)
#define MATCH 11

/* The part of the child before it holds still and is killed. */
enum part {
    PART_SENDS,
    PART_RECEIVES,
    PART_OFFERS,  /* By RMA. */
    PART_FETCHES, /* By RMA. */
    PART_SENDS_SHORT,
    PART_FLOODS,
    PART_HOLDS_STILL,
    PART_CLOSES,
    PART_ANNOUNCES,
    PART_ANNOUNCES_SYNC
};

struct child {
    enum part part;
    int *stage; /* Shared: 1 the parent is connected, 2 the child holds still. */
    pid_t pid;
};

static void wait_stage(const int *stage, int value)
{
    while (__atomic_load_n(stage, __ATOMIC_ACQUIRE) < value)
        test_sleep_ns(TEST_MS);
}

static void set_stage(int *stage, int value) { __atomic_store_n(stage, value, __ATOMIC_RELEASE); }

static bool is_rma(enum part part) { return part == PART_OFFERS || part == PART_FETCHES; }

static const struct velo_mq_attr *attr_of(enum part part)
{
    static const struct velo_mq_attr get = {.size_bytes = sizeof(struct velo_mq_attr),
                                            .path = VELO_MQ_PATH_GET};
    static const struct velo_mq_attr small = {.size_bytes = sizeof(struct velo_mq_attr),
                                              .unexpected_bytes = 40000};

    if (part == PART_FLOODS)
        return &small;
    return is_rma(part) ? &get : NULL;
}

static void child_body(void *arg)
{
    struct child *child = arg;
    struct velo_mq_request request = {0};
    struct node node;
    struct velo_mq_peer *peer;
    char *buf = calloc(1, LONG_BYTES);

    node_open(&node, 1, 0, 0, attr_of(child->part), is_rma(child->part));
    peer = node_connect(&node, VELO_ID(0, 0));
    wait_stage(child->stage, 1);
    switch (child->part) {
    case PART_SENDS:
        CHECK_OK(velo_mq_isend(peer, buf, LONG_BYTES, MATCH, 0, &request));
        while (velo_mq_progress(node.mq) == 0) /* Until it was asked for, and a bit of it is out. */
            ;
        break;
    case PART_OFFERS:
        CHECK_OK(velo_mq_isend(peer, buf, LONG_BYTES, MATCH, 0, &request));
        break;
    case PART_RECEIVES:
    case PART_FETCHES:
        CHECK_OK(velo_mq_irecv(node.mq, VELO_ID(0, 0), MATCH, 0, buf, LONG_BYTES, &request));
        while (request.len_bytes < LONG_BYTES / 8)
            (void)velo_mq_progress(node.mq);
        break;
    case PART_SENDS_SHORT:
        for (int i = 0; i < 5; i++)
            CHECK_OK(velo_mq_try_send(peer, &i, sizeof(i), MATCH));
        break;
    case PART_FLOODS:
        for (uint64_t i = 0; i < 250; i++)
            CHECK_OK(velo_mq_try_send(peer, buf, 50, MATCH + i));
        break;
    case PART_HOLDS_STILL:
        break;
    case PART_CLOSES:
        node_close(&node);
        break;
    case PART_ANNOUNCES:
        memset(buf, 'A', LONG_BYTES);
        CHECK_OK(velo_mq_isend(peer, buf, LONG_BYTES, MATCH, 0, &request));
        break;
    case PART_ANNOUNCES_SYNC:
        CHECK_OK(velo_mq_isend(peer, "A", 1, MATCH, VELO_MQ_SYNC, &request));
        break;
    }
    set_stage(child->stage, 2);
    for (;;)
        pause();
}

/* Node 0 in this process, a child that will come to grief as node 1. */
static struct velo_mq_peer *begin(struct node *node, struct child *child, enum part part)
{
    struct velo_mq_peer *peer;

    *child = (struct child){.part = part, .stage = test_shared_alloc(sizeof(int))};
    node_open(node, 0, 0, 0, attr_of(part), is_rma(part));
    child->pid = child_start(child_body, child);
    peer = node_connect(node, VELO_ID(0, 1));
    set_stage(child->stage, 1);
    return peer;
}

/* Make progress until the child holds still, then kill it. */
static void strike(struct node *node, struct child *child)
{
    while (__atomic_load_n(child->stage, __ATOMIC_ACQUIRE) < 2)
        (void)velo_mq_progress(node->mq);
    child_kill(child->pid);
}

/* Take away the segments that the killed child has left. */
static void bury(void)
{
    struct node node;

    node_open(&node, 1, 0, 0, NULL, true);
    node_close(&node);
}

static void ends_soon(struct node *node, struct velo_mq_request *request, int status)
{
    int64_t start_ns = test_now_ns();

    CHECK_STATUS(velo_mq_wait(node->mq, request, TEST_PATIENCE_NS), status);
    CHECK(test_now_ns() - start_ns < SOON_NS);
}

TEST(a_receive_ends_when_its_sender_is_killed_half_way)
{
    struct node node;
    struct child child;
    struct velo_mq_request recv = {0};
    char *buf = malloc(LONG_BYTES);

    begin(&node, &child, PART_SENDS);
    CHECK_OK(velo_mq_irecv(node.mq, VELO_MQ_ANY_SOURCE, MATCH, 0, buf, LONG_BYTES, &recv));
    strike(&node, &child);
    ends_soon(&node, &recv, VELO_ERR_PEER_DEAD);
    CHECK(recv.len_bytes < LONG_BYTES);
    node_close(&node);
    bury();
    free(buf);
}

TEST(a_receive_ends_when_its_sender_is_killed_while_it_fetches)
{
    struct node node;
    struct child child;
    struct velo_mq_request recv = {0};

    test_needs_shared_memory(); /* It is fetched from. */
    char *buf = malloc(LONG_BYTES);
    begin(&node, &child, PART_OFFERS);
    CHECK_OK(velo_mq_irecv(node.mq, VELO_MQ_ANY_SOURCE, MATCH, 0, buf, LONG_BYTES, &recv));
    wait_stage(child.stage, 2);
    while (recv.len_bytes == 0)
        (void)velo_mq_progress(node.mq);
    strike(&node, &child);
    ends_soon(&node, &recv, VELO_ERR_PEER_DEAD);
    CHECK(recv.len_bytes < LONG_BYTES);
    node_close(&node);
    bury();
    free(buf);
}

TEST(a_send_ends_when_its_receiver_is_killed_while_it_fetches)
{
    struct node node;
    struct child child;
    struct velo_mq_request send = {0};
    char *buf = calloc(1, LONG_BYTES);
    struct velo_mq_peer *peer = begin(&node, &child, PART_FETCHES);

    CHECK_OK(velo_mq_isend(peer, buf, LONG_BYTES, MATCH, 0, &send));
    strike(&node, &child);
    ends_soon(&node, &send, VELO_ERR_PEER_DEAD);
    node_close(&node);
    bury();
    free(buf);
}

TEST(a_send_ends_when_its_receiver_is_killed_half_way)
{
    struct node node;
    struct child child;
    struct velo_mq_request send = {0}, behind = {0};
    char *buf = calloc(1, LONG_BYTES);
    struct velo_mq_peer *peer = begin(&node, &child, PART_RECEIVES);

    CHECK_OK(velo_mq_isend(peer, buf, LONG_BYTES, MATCH, 0, &send));
    CHECK_OK(velo_mq_isend(peer, buf, LONG_BYTES, MATCH, 0, &behind));
    strike(&node, &child);
    ends_soon(&node, &send, VELO_ERR_PEER_DEAD);
    ends_soon(&node, &behind, VELO_ERR_PEER_DEAD);
    CHECK_STATUS(velo_mq_try_send(peer, buf, 8, MATCH), VELO_ERR_PEER_DEAD);
    CHECK_OK(velo_mq_isend(peer, buf, 8, MATCH, 0, &send));
    CHECK_STATUS(send.status, VELO_ERR_PEER_DEAD);
    node_close(&node);
    bury();
    free(buf);
}

TEST(a_synchronous_send_ends_when_its_receiver_is_killed)
{
    struct node node;
    struct child child;
    struct velo_mq_request send = {0};
    char byte = 0;
    struct velo_mq_peer *peer = begin(&node, &child, PART_HOLDS_STILL);

    CHECK_OK(velo_mq_isend(peer, &byte, 1, MATCH, VELO_MQ_SYNC, &send));
    strike(&node, &child);
    ends_soon(&node, &send, VELO_ERR_PEER_DEAD);
    node_close(&node);
    bury();
}

TEST(sends_that_wait_for_room_end_when_their_receiver_is_killed)
{
    static struct velo_mq_request sends[1000];
    struct node node;
    struct child child;
    char byte = 0;
    struct velo_mq_peer *peer = begin(&node, &child, PART_HOLDS_STILL);

    for (size_t i = 0; i < ARRAY_LEN(sends); i++)
        CHECK_OK(velo_mq_isend(peer, &byte, 1, MATCH, 0, &sends[i]));
    CHECK_STATUS(sends[999].status, VELO_AGAIN);
    strike(&node, &child);
    ends_soon(&node, &sends[999], VELO_ERR_PEER_DEAD);
    node_close(&node);
    bury();
}

TEST(what_was_sent_is_received_before_its_sender_is_mourned)
{
    struct node node;
    struct child child;
    struct velo_mq_request recv[6] = {0}, any = {0};
    int got[7] = {0};

    begin(&node, &child, PART_SENDS_SHORT);
    wait_stage(child.stage, 2);
    child_kill(child.pid);
    test_sleep_ns(200 * TEST_MS); /* Past the next look at who lives. */
    for (unsigned i = 0; i < 6; i++)
        CHECK_OK(
            velo_mq_irecv(node.mq, VELO_ID(0, 1), MATCH, i % 2, &got[i], sizeof(int), &recv[i]));
    CHECK_OK(velo_mq_irecv(node.mq, VELO_MQ_ANY_SOURCE, MATCH, 0, &got[6], sizeof(int), &any));
    for (int i = 0; i < 5; i++) {
        ends_soon(&node, &recv[i], VELO_OK);
        CHECK_EQ(got[i], i);
    }
    ends_soon(&node, &recv[5], VELO_ERR_PEER_DEAD);
    CHECK_STATUS(any.status, VELO_AGAIN); /* Others may still send it. */
    CHECK_OK(velo_mq_cancel(node.mq, &any));
    node_close(&node);
    bury();
}

TEST(what_was_pushed_back_is_received_before_its_sender_is_mourned)
{
    struct node node;
    struct child child;
    struct velo_mq_request last = {0}, never = {0};
    char buf[50];

    test_needs_shared_memory(); /* Over a transport a killed sender loses messages. */
    begin(&node, &child, PART_FLOODS);
    strike(&node, &child);
    while (node_counters(&node).deferred == 0)
        (void)velo_mq_progress(node.mq);
    CHECK_OK(velo_mq_irecv(node.mq, VELO_ID(0, 1), MATCH - 1, 0, buf, sizeof(buf), &never));
    CHECK_OK(velo_mq_irecv(node.mq, VELO_ID(0, 1), MATCH + 249, 0, buf, sizeof(buf), &last));
    ends_soon(&node, &last, VELO_OK);
    ends_soon(&node, &never, VELO_ERR_PEER_DEAD);
    node_close(&node);
    bury();
}

TEST(polling_alone_notices_a_death_too)
{
    struct node node;
    struct child child;
    struct velo_mq_request recv = {0};
    int64_t start_ns;
    int got;

    begin(&node, &child, PART_HOLDS_STILL);
    CHECK_OK(velo_mq_irecv(node.mq, VELO_ID(0, 1), MATCH, 0, &got, sizeof(got), &recv));
    strike(&node, &child);
    start_ns = test_now_ns();
    while (recv.status == VELO_AGAIN) {
        (void)velo_mq_progress(node.mq);
        CHECK(test_now_ns() - start_ns < SOON_NS);
    }
    CHECK_STATUS(recv.status, VELO_ERR_PEER_DEAD);
    node_close(&node);
    bury();
}

/* A port that only receives has no connection of its own by which to notice a death. */
TEST(a_receive_ends_when_a_peer_is_killed_that_nothing_was_sent_to)
{
    struct node node;
    struct child child = {.part = PART_HOLDS_STILL, .stage = test_shared_alloc(sizeof(int))};
    struct velo_mq_request recv = {0}, wild = {0}, any = {0};
    int got;

    test_needs_shared_memory(); /* Over a transport a port cannot see who lives. */
    node_open(&node, 0, 0, 0, NULL, false);
    child.pid = child_start(child_body, &child);
    set_stage(child.stage, 1);
    CHECK_OK(velo_mq_irecv(node.mq, VELO_ID(0, 1), MATCH, 0, &got, sizeof(got), &recv));
    CHECK_OK(velo_mq_irecv(node.mq, VELO_ID(0, 1), MATCH, 1, &got, sizeof(got), &wild));
    CHECK_OK(velo_mq_irecv(node.mq, VELO_MQ_ANY_SOURCE, MATCH, 0, &got, sizeof(got), &any));
    strike(&node, &child);
    ends_soon(&node, &recv, VELO_ERR_PEER_DEAD);
    ends_soon(&node, &wild, VELO_ERR_PEER_DEAD);
    CHECK_STATUS(any.status, VELO_AGAIN); /* Others may send that. */

    child = (struct child){.part = PART_SENDS_SHORT, .stage = test_shared_alloc(sizeof(int))};
    child.pid = child_start(child_body, &child);
    set_stage(child.stage, 1);
    ends_soon(&node, &any, VELO_OK);
    CHECK_OK(velo_mq_irecv(node.mq, VELO_ID(0, 1), MATCH, 0, &got, sizeof(got), &recv));
    ends_soon(&node, &recv, VELO_OK);
    strike(&node, &child);
    node_close(&node);
    bury();
}

TEST(a_receive_waits_for_a_peer_that_is_not_there_yet)
{
    struct node node;
    struct child child = {.part = PART_SENDS_SHORT, .stage = test_shared_alloc(sizeof(int))};
    struct velo_mq_request recv = {0};
    int got;

    node_open(&node, 0, 0, 0, NULL, false);
    CHECK_OK(velo_mq_irecv(node.mq, VELO_ID(0, 1), MATCH, 0, &got, sizeof(got), &recv));
    CHECK_STATUS(velo_mq_wait(node.mq, &recv, 300 * TEST_MS), VELO_TIMEOUT);
    child.pid = child_start(child_body, &child);
    set_stage(child.stage, 1);
    ends_soon(&node, &recv, VELO_OK);
    strike(&node, &child);
    node_close(&node);
    bury();
}

TEST(idling_notices_a_death_too)
{
    struct node node;
    struct child child;
    struct velo_mq_request recv = {0};
    int got;

    begin(&node, &child, PART_HOLDS_STILL);
    CHECK_OK(velo_mq_irecv(node.mq, VELO_ID(0, 1), MATCH, 0, &got, sizeof(got), &recv));
    strike(&node, &child);
    CHECK_OK(velo_mq_idle(node.mq, SOON_NS));
    while (recv.status == VELO_AGAIN)
        CHECK_OK(velo_mq_idle(node.mq, SOON_NS));
    CHECK_STATUS(recv.status, VELO_ERR_PEER_DEAD);
    node_close(&node);
    bury();
}

TEST(a_peer_that_closes_ends_what_waits_for_it)
{
    struct node node;
    struct child child;
    struct velo_mq_request recv = {0};
    int got;

    begin(&node, &child, PART_CLOSES);
    CHECK_OK(velo_mq_irecv(node.mq, VELO_ID(0, 1), MATCH, 0, &got, sizeof(got), &recv));
    wait_stage(child.stage, 2);
    ends_soon(&node, &recv, VELO_ERR_PEER_CLOSED);
    child_kill(child.pid);
    node_close(&node);
}

/* Segments of this test that are mapped though their ports are closed. */
static int count_left(void)
{
    char line[4096];
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps);
    while (fgets(line, sizeof line, maps))
        count += strstr(line, test_domain()) && strstr(line, "(deleted)");
    (void)fclose(maps);
    return count;
}

TEST(what_is_kept_of_peers_that_have_left_does_not_grow_with_those_that_come)
{
    struct node node, other;
    struct velo_mq_peer *peers[6];
    int value = 6;

    node_open(&node, 0, 0, 0, NULL, true);
    for (int i = 0; i < 6; i++) {
        struct velo_mq_request recv = {0};
        int got = 0;
        node_open(&other, 1 + i, 0, 0, NULL, true);
        peers[i] = node_connect(&node, other.id);
        CHECK_OK(velo_mq_irecv(node.mq, other.id, MATCH, 0, &got, sizeof(got), &recv));
        CHECK_OK(velo_mq_try_send(node_connect(&other, node.id), &value, sizeof(value), MATCH));
        while (recv.status == VELO_AGAIN) {
            (void)velo_mq_progress(other.mq);
            (void)velo_mq_progress(node.mq);
        }
        CHECK_OK(recv.status);
        CHECK_EQ(got, 6);
        node_close(&other);
        CHECK(count_left() <= 1);
    }
    /* A peer that its user still holds says what has become of it. */
    CHECK_STATUS(velo_mq_try_send(peers[0], &value, sizeof(value), MATCH), VELO_ERR_PEER_CLOSED);
    CHECK_OK(velo_mq_disconnect(peers[0]));
    node_close(&node);
}

TEST(a_peer_that_died_can_be_replaced)
{
    struct node node, other;
    struct child child;
    struct velo_mq_request send = {0}, recv = {0};
    struct velo_mq_peer *peer = begin(&node, &child, PART_HOLDS_STILL), *again;
    int value = 6, got = 0;

    CHECK_OK(velo_mq_isend(peer, &value, sizeof(value), MATCH, VELO_MQ_SYNC, &send));
    strike(&node, &child);
    ends_soon(&node, &send, VELO_ERR_PEER_DEAD);
    node_open(&other, 1, 0, 0, NULL, false);
    again = node_connect(&node, other.id);
    CHECK(again != peer);
    CHECK(node_connect(&node, other.id) == again);
    CHECK_STATUS(velo_mq_try_send(peer, &value, sizeof(value), MATCH), VELO_ERR_PEER_DEAD);
    CHECK_OK(velo_mq_disconnect(peer));
    CHECK_OK(velo_mq_irecv(other.mq, node.id, MATCH, 0, &got, sizeof(got), &recv));
    CHECK_OK(velo_mq_isend(again, &value, sizeof(value), MATCH, VELO_MQ_SYNC, &send));
    while (send.status == VELO_AGAIN) {
        (void)velo_mq_progress(other.mq);
        (void)velo_mq_progress(node.mq);
    }
    CHECK_OK(send.status);
    CHECK_EQ(got, 6);
    node_close(&node);
    node_close(&other);
}

/* ---- another generation under the same id
 * ---------------------------------------------------------- */

/* Both make progress until the receive, of the first, is done. */
static void finish(struct node *one, struct node *other, const struct velo_mq_request *request)
{
    int64_t end_ns = test_now_ns() + (test_is_by_card() ? 6 : 1) * TEST_PATIENCE_NS;

    while (request->status == VELO_AGAIN) {
        CHECK(test_now_ns() < end_ns);
        (void)velo_mq_progress(one->mq);
        (void)velo_mq_progress(other->mq);
    }
}

/* The announcement of a dead sender is answered to nobody: not to the sender that has its id now,
 * whose first request might have the same name. */
TEST(a_long_message_of_a_dead_sender_gets_nothing_of_the_next_one)
{
    for (int is_connected = 0; is_connected < 2; is_connected++) {
        struct node node, other;
        struct child child = {.part = PART_ANNOUNCES, .stage = test_shared_alloc(sizeof(int))};
        struct velo_mq_request first = {0}, second = {0}, send = {0};
        char *in = calloc(1, LONG_BYTES), *out = malloc(LONG_BYTES);

        node_open(&node, 0, 0, 0, NULL, false);
        child.pid = child_start(child_body, &child);
        if (is_connected)
            (void)node_connect(&node, VELO_ID(0, 1));
        set_stage(child.stage, 1);
        strike(&node, &child);
        while (node_counters(&node).unexpected < 1)
            (void)velo_mq_progress(node.mq);

        node_open(&other, 1, 0, 0, NULL, false);
        memset(out, 'B', LONG_BYTES);
        CHECK_OK(
            velo_mq_isend(node_connect(&other, node.id), out, LONG_BYTES, MATCH + 1, 0, &send));
        CHECK_OK(velo_mq_irecv(node.mq, other.id, MATCH, 0, in, LONG_BYTES, &first));
        finish(&node, &other, &first);
        CHECK_STATUS(first.status, VELO_ERR_PEER_DEAD);
        CHECK(memchr(in, 'B', LONG_BYTES) == NULL);
        CHECK_STATUS(send.status, VELO_AGAIN);
        /* Until something of the next one is here, a receive from its id waits for the dead one. */
        while (node_counters(&node).unexpected < 2)
            (void)velo_mq_progress(node.mq);
        CHECK_OK(velo_mq_irecv(node.mq, other.id, MATCH + 1, 0, in, LONG_BYTES, &second));
        finish(&node, &other, &second);
        CHECK_OK(second.status);
        CHECK(memcmp(in, out, LONG_BYTES) == 0);
        finish(&node, &other, &send);
        CHECK_OK(send.status);
        node_close(&other);
        node_close(&node);
        free(in);
        free(out);
    }
}

TEST(a_synchronous_send_is_not_ended_by_the_match_of_a_dead_one_of_its_id)
{
    struct node node, other;
    struct child child = {.part = PART_ANNOUNCES_SYNC, .stage = test_shared_alloc(sizeof(int))};
    struct velo_mq_request first = {0}, second = {0}, send = {0};
    char byte = 0;

    node_open(&node, 0, 0, 0, NULL, false);
    child.pid = child_start(child_body, &child);
    set_stage(child.stage, 1);
    strike(&node, &child);
    while (node_counters(&node).unexpected < 1)
        (void)velo_mq_progress(node.mq);

    node_open(&other, 1, 0, 0, NULL, false);
    CHECK_OK(velo_mq_isend(node_connect(&other, node.id), "B", 1, MATCH + 1, VELO_MQ_SYNC, &send));
    CHECK_OK(velo_mq_irecv(node.mq, other.id, MATCH, 0, &byte, 1, &first));
    finish(&node, &other, &first);
    CHECK_OK(first.status);
    CHECK_EQ(byte, 'A');
    for (int i = 0; i < 1000; i++) {
        (void)velo_mq_progress(node.mq);
        (void)velo_mq_progress(other.mq);
    }
    CHECK_STATUS(send.status, VELO_AGAIN);
    CHECK_OK(velo_mq_irecv(node.mq, other.id, MATCH + 1, 0, &byte, 1, &second));
    finish(&node, &other, &send);
    CHECK_OK(send.status);
    CHECK_EQ(byte, 'B');
    node_close(&other);
    node_close(&node);
}

/* The port lives on: only the ids of requests tell the queues apart. */
TEST(queues_that_are_opened_again_on_a_port_take_no_answers_for_those_before)
{
    struct node node, other;
    struct velo_mq_request first = {0}, second = {0}, send = {0};
    char *in = calloc(1, LONG_BYTES), *out = malloc(LONG_BYTES);

    node_open(&node, 0, 0, 0, NULL, false);
    node_open(&other, 1, 0, 0, NULL, false);
    memset(out, 'A', LONG_BYTES);
    CHECK_OK(velo_mq_isend(node_connect(&other, node.id), out, LONG_BYTES, MATCH, 0, &send));
    CHECK_OK(velo_mq_close(other.mq));
    CHECK_STATUS(send.status, VELO_ERR_CANCELLED);
    CHECK_OK(velo_mq_open(other.port, NULL, NULL, &other.mq));
    memset(out, 'B', LONG_BYTES);
    CHECK_OK(velo_mq_isend(node_connect(&other, node.id), out, LONG_BYTES, MATCH + 1, 0, &send));
    CHECK_OK(velo_mq_irecv(node.mq, other.id, MATCH, 0, in, LONG_BYTES, &first));
    finish(&node, &other, &first);
    CHECK_STATUS(first.status, VELO_ERR_PEER_CLOSED);
    CHECK(memchr(in, 'B', LONG_BYTES) == NULL);
    CHECK_OK(velo_mq_irecv(node.mq, other.id, MATCH + 1, 0, in, LONG_BYTES, &second));
    finish(&node, &other, &second);
    CHECK_OK(second.status);
    CHECK(memcmp(in, out, LONG_BYTES) == 0);
    node_close(&other);
    node_close(&node);
    free(in);
    free(out);
}

/* ---- a peer that comes back ------------------------------------------------------------------ */

/* Messages 0 to 4 of two tags, each over a connection of its own, to a node that pushes back. */
static void send_and_come_back(struct node *from, struct node *to, size_t first_bytes,
                               size_t next_bytes)
{
    static char payload[3000];

    for (int i = 0; i < 5; i++) {
        struct velo_mq_peer *peer = node_connect(from, to->id);
        payload[0] = (char)i;
        CHECK_OK(velo_mq_try_send(peer, payload, i == 0 ? first_bytes : next_bytes,
                                  MATCH + (uint64_t)i % 2));
        CHECK_OK(velo_mq_disconnect(peer));
        if (i % 2)
            (void)velo_mq_progress(to->mq);
    }
}

TEST(messages_keep_their_order_when_their_sender_disconnects_and_connects_again)
{
    static const size_t lengths[][2] = {{3000, 3000}, {3000, 8}, {8, 3000}, {8, 8}};
    static const uint64_t bounds[] = {1, 4000, 1 << 20};

    for (size_t which = 0; which < ARRAY_LEN(lengths) * ARRAY_LEN(bounds); which++) {
        struct velo_mq_attr attr = {.size_bytes = sizeof(struct velo_mq_attr),
                                    .unexpected_bytes = bounds[which % ARRAY_LEN(bounds)],
                                    .unexpected_limit_bytes = 1 << 20};
        const size_t *len_bytes = lengths[which / ARRAY_LEN(bounds)];
        struct node node, other;
        char buf[3000];

        node_open(&node, 0, 0, 0, &attr, false);
        node_open(&other, 1, 0, 0, NULL, false);
        send_and_come_back(&other, &node, len_bytes[0], len_bytes[1]);
        for (int i = 0; i < 100; i++)
            (void)velo_mq_progress(node.mq);
        for (int i = 0; i < 5; i++) {
            struct velo_mq_request recv = {0};
            int wanted = i < 3 ? i * 2 : (i - 3) * 2 + 1; /* One tag, then the other. */
            CHECK_OK(velo_mq_irecv(node.mq, other.id, MATCH + (uint64_t)wanted % 2, 0, buf,
                                   sizeof(buf), &recv));
            finish(&node, &other, &recv);
            CHECK_OK(recv.status);
            CHECK_EQ(buf[0], wanted);
        }
        node_close(&other);
        node_close(&node);
    }
}

/* Nobody can connect to a sender whose connections are all taken; so nobody can answer it. */
TEST(a_sender_that_cannot_be_answered_hears_of_it)
{
    static const size_t lengths[] = {1, 100000};
    test_needs_shared_memory();
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        struct node nodes[2], other;
        struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
        char *out = calloc(1, lengths[i]), *in = calloc(1, lengths[i]);
        struct velo_mq_request send = {0}, recv = {0};
        struct velo_conn *taken;
        CHECK(out != NULL && in != NULL);
        attr.domain = test_domain();
        attr.vpid = 0;
        attr.conns_max = 1;
        CHECK_OK(velo_port_open(&attr, &nodes[0].port));
        CHECK_OK(velo_mq_open(nodes[0].port, NULL, NULL, &nodes[0].mq));
        nodes[0].id = velo_port_id(nodes[0].port);
        nodes[0].rma = NULL;
        node_open(&nodes[1], 1, 0, 0, NULL, false);
        attr.vpid = 2;
        CHECK_OK(velo_port_open(&attr, &other.port));
        CHECK_OK(velo_connect(other.port, nodes[0].id, &taken, 0));
        struct velo_mq_peer *peer = node_connect(&nodes[0], nodes[1].id);
        CHECK_OK(velo_mq_irecv(nodes[1].mq, nodes[0].id, 1, 0, in, lengths[i], &recv));
        CHECK_OK(velo_mq_isend(peer, out, lengths[i], 1, VELO_MQ_SYNC, &send));
        CHECK_STATUS(velo_mq_wait(nodes[1].mq, &recv, TEST_PATIENCE_NS), VELO_ERR_FULL);
        nodes_settle(&nodes[1], 1);
        CHECK_STATUS(velo_mq_wait(nodes[0].mq, &send, TEST_PATIENCE_NS), VELO_ERR_CORRUPT);
        CHECK_OK(velo_port_close(other.port));
        nodes_close(nodes, 2);
        free(out);
        free(in);
    }
}

/* ---- forks ----------------------------------------------------------------------------------- */

struct inherited {
    struct node *node;
    struct velo_mq_peer *peer;
};

static void close_what_is_the_parents(void *arg)
{
    const struct inherited *of_parent = arg;
    struct velo_mq_peer *peer;

    CHECK_STATUS(velo_mq_connect(of_parent->node->mq, of_parent->node->id, &peer, 0),
                 VELO_ERR_STATE);
    CHECK(strstr(velo_last_error(), "parent") != NULL);
    CHECK_OK(velo_mq_disconnect(of_parent->peer));
    CHECK_OK(velo_mq_close(of_parent->node->mq));
    CHECK_OK(velo_rma_close(of_parent->node->rma));
    CHECK_OK(velo_port_close(of_parent->node->port));
}

TEST(a_child_that_closes_the_queues_of_its_parent_closes_nothing)
{
    struct node nodes[2];
    struct velo_mq_request recv = {0};
    uint64_t word = 0;

    nodes_open(nodes, 2, NULL, true);
    struct velo_mq_peer *peer = node_connect(&nodes[0], nodes[1].id);
    CHECK_OK(velo_mq_try_send(peer, &(uint64_t){7}, sizeof word, MATCH));
    child_join(child_start(close_what_is_the_parents, &(struct inherited){&nodes[0], peer}));
    for (uint64_t sent = 7; sent < 9; sent++) {
        if (sent > 7)
            CHECK_OK(velo_mq_try_send(peer, &sent, sizeof sent, MATCH));
        CHECK_OK(velo_mq_irecv(nodes[1].mq, nodes[0].id, MATCH, 0, &word, sizeof word, &recv));
        nodes_finish(nodes, 2, &recv);
        CHECK_OK(recv.status);
        CHECK_EQ(word, sent);
    }
    nodes_close(nodes, 2);
}
