/* SPDX-License-Identifier: Apache-2.0 */
/* What a peer had sent before it closed comes whole, whenever its end is noticed. */
#include <string.h>

#include "support.h"

/* All pieces fit into the ring. */
#define LONG_BYTES ((size_t)128 << 10)
#define RING_BYTES ((size_t)512 << 10)
#define WORDS (LONG_BYTES / sizeof(int))
#define SENDS 8
#define MATCH 11
/* Longer than the queues wait between two looks at their peers. */
#define UNTIL_LOOK_NS (150 * TEST_MS)

/* Node 0 stays, node 1 closes. */
static struct node nodes[2];

static void open_both(const struct velo_mq_attr *attr)
{
    for (int i = 0; i < 2; i++)
        node_open(&nodes[i], i, 0, RING_BYTES, attr, false);
    (void)node_connect(&nodes[0], nodes[1].id);
    (void)node_connect(&nodes[1], nodes[0].id);
    nodes_settle(nodes, 2);
}

/* Only the node that closes makes progress until its request is done. */
static void finish_alone(const struct velo_mq_request *request)
{
    int64_t deadline_ns = test_now_ns() + TEST_PATIENCE_NS;

    while (request->status == VELO_AGAIN) {
        (void)velo_mq_progress(nodes[1].mq);
        CHECK(test_now_ns() < deadline_ns);
    }
    CHECK_OK(request->status);
}

/* Each wait looks at the peers before all messages have been taken. */
static void finish_impatiently(struct velo_mq_request *request)
{
    int64_t deadline_ns = test_now_ns() + TEST_PATIENCE_NS;

    while (request->status == VELO_AGAIN) {
        (void)velo_mq_wait(nodes[0].mq, request, 0);
        CHECK(test_now_ns() < deadline_ns);
    }
}

static int sent[WORDS], got[WORDS];

/* A receive waits for pieces that are all in the ring of node 0, and node 1 is gone. */
static void send_pieces_and_close(struct velo_mq_request *recv)
{
    static const struct velo_mq_attr copy = {.size_bytes = sizeof(struct velo_mq_attr),
                                             .path = VELO_MQ_PATH_COPY};
    struct velo_mq_request send = {0};

    for (size_t i = 0; i < WORDS; i++)
        sent[i] = (int)i;
    open_both(&copy);
    CHECK_OK(velo_mq_irecv(nodes[0].mq, nodes[1].id, MATCH, 0, got, sizeof got, recv));
    CHECK_OK(
        velo_mq_isend(node_connect(&nodes[1], nodes[0].id), sent, sizeof sent, MATCH, 0, &send));
    /* The receiver answers, and takes no piece. */
    while (velo_mq_progress(nodes[0].mq) == 0)
        continue;
    finish_alone(&send);
    CHECK_STATUS(recv->status, VELO_AGAIN);
    node_close(&nodes[1]);
}

static void check_pieces(const struct velo_mq_request *recv)
{
    CHECK_OK(recv->status);
    CHECK_EQ(recv->len_bytes, sizeof got);
    CHECK(memcmp(sent, got, sizeof got) == 0);
}

TEST(all_pieces_that_were_sent_before_the_peer_closed_are_taken)
{
    struct velo_mq_request recv = {0};

    send_pieces_and_close(&recv);
    test_sleep_ns(UNTIL_LOOK_NS);
    finish_impatiently(&recv);
    check_pieces(&recv);
    node_close(&nodes[0]);
}

TEST(all_pieces_are_taken_before_another_port_takes_the_place)
{
    struct velo_mq_request recv = {0};

    send_pieces_and_close(&recv);
    node_open(&nodes[1], 1, 0, 0, NULL, false);
    (void)node_connect(&nodes[0], nodes[1].id);
    check_pieces(&recv);
    nodes_close(nodes, 2);
}

TEST(all_answers_that_were_sent_before_the_peer_closed_are_taken)
{
    struct velo_mq_request sends[SENDS] = {0}, recvs[SENDS] = {0};
    int value = 6, values[SENDS] = {0};

    open_both(NULL);
    for (int i = 0; i < SENDS; i++) {
        CHECK_OK(velo_mq_irecv(nodes[1].mq, nodes[0].id, MATCH, 0, &values[i], sizeof values[i],
                               &recvs[i]));
        CHECK_OK(velo_mq_isend(node_connect(&nodes[0], nodes[1].id), &value, sizeof value, MATCH,
                               VELO_MQ_SYNC, &sends[i]));
    }
    for (int i = 0; i < SENDS; i++)
        finish_alone(&recvs[i]);
    node_close(&nodes[1]);
    test_sleep_ns(UNTIL_LOOK_NS);
    finish_impatiently(&sends[SENDS - 1]);
    for (int i = 0; i < SENDS; i++)
        CHECK_OK(sends[i].status);
    node_close(&nodes[0]);
}
