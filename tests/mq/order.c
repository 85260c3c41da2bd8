/* SPDX-License-Identifier: Apache-2.0 */
/* Order of one sender's messages, and fairness between long and short ones. */
#include <stdlib.h>
#include <string.h>

#include "support.h"

#define COUNT (int)scaled(1500, 150)
#define LONG_MAX_BYTES 30000u
#define MUCH scaled((size_t)1 << 20, (size_t)64 << 10)

struct item {
    struct velo_mq_request request;
    unsigned char buf[LONG_MAX_BYTES];
};

static struct item *items_alloc(void)
{
    struct item *items = calloc((size_t)COUNT, sizeof(*items));

    CHECK(items != NULL);
    return items;
}

static size_t length_of(struct rng *rng)
{
    static const uint32_t bounds[] = {1, 49, 100, 5000, LONG_MAX_BYTES + 1 - sizeof(int)};

    return sizeof(int) + rng_below(rng, bounds[rng_below(rng, ARRAY_LEN(bounds))]);
}

static int number_in(const struct item *item)
{
    int number;

    memcpy(&number, item->buf, sizeof(number));
    return number;
}

TEST(messages_of_one_sender_are_matched_in_the_order_they_were_sent)
{
    struct rng rng = {test_seed()};
    struct item *sends = items_alloc(), *receives = items_alloc();
    struct node nodes[2];
    struct velo_mq_peer *peer;
    int sent = 0, posted = 0;

    for (int i = 0; i < 2; i++)
        node_open(&nodes[i], i, 16, 32768, NULL, false); /* Small, so that many must wait. */
    peer = node_connect(&nodes[0], nodes[1].id);
    while (sent < COUNT || posted < COUNT) {
        uint32_t what = rng_below(&rng, 8);
        if (what < 3 && sent < COUNT) {
            struct item *item = &sends[sent];
            memcpy(item->buf, &sent, sizeof(sent));
            sent++;
            CHECK_OK(velo_mq_isend(peer, item->buf, length_of(&rng), 7,
                                   rng_below(&rng, 8) ? 0 : VELO_MQ_SYNC, &item->request));
        } else if (what < 6 && posted < COUNT) {
            struct item *item = &receives[posted++];
            CHECK_OK(velo_mq_irecv(nodes[1].mq, VELO_MQ_ANY_SOURCE, 7, rng_below(&rng, 3) ? 0 : 8,
                                   item->buf, LONG_MAX_BYTES, &item->request));
        } else {
            (void)velo_mq_progress(nodes[what % 2].mq);
        }
    }
    for (int i = 0; i < COUNT; i++) {
        nodes_finish(nodes, 2, &receives[i].request);
        nodes_finish(nodes, 2, &sends[i].request);
        CHECK_OK(receives[i].request.status);
        CHECK_OK(sends[i].request.status);
        CHECK_EQ(number_in(&receives[i]), i);
        CHECK_EQ(receives[i].request.len_bytes, sends[i].request.len_bytes);
    }
    CHECK_EQ(node_counters(&nodes[0]).sent, COUNT);
    CHECK_EQ(node_counters(&nodes[1]).received, COUNT);
    nodes_close(nodes, 2);
    free(sends);
    free(receives);
}

TEST(no_message_overtakes_one_that_waits_for_room)
{
    struct item *sends = items_alloc();
    struct node nodes[2];
    struct velo_mq_peer *peer;
    int number = 0, waiting = 0;

    for (int i = 0; i < 2; i++)
        node_open(&nodes[i], i, 8, 0, NULL, false);
    peer = node_connect(&nodes[0], nodes[1].id);
    for (; number < COUNT; number++) {
        memcpy(sends[number].buf, &number, sizeof(number));
        CHECK_OK(
            velo_mq_isend(peer, sends[number].buf, sizeof(number), 1, 0, &sends[number].request));
        waiting += sends[number].request.status == VELO_AGAIN;
    }
    CHECK(waiting > 0 && waiting <= COUNT - 8);
    (void)velo_mq_progress(nodes[1].mq); /* Now there is room, but others wait for it. */
    nodes_settle(&nodes[1], 1);
    CHECK_STATUS(velo_mq_try_send(peer, &number, sizeof(number), 1), VELO_AGAIN);
    /* Over a transport the library's thread may be at it, and have lost the processor. */
    CHECK_OK(SOON((nodes_settle(nodes, 2), velo_mq_try_send(peer, &number, sizeof(number), 1))));
    for (int i = 0; i <= COUNT; i++) {
        struct velo_mq_request recv = {0};
        int got = -1;
        CHECK_OK(velo_mq_irecv(nodes[1].mq, VELO_MQ_ANY_SOURCE, 1, 0, &got, sizeof(got), &recv));
        nodes_finish(nodes, 2, &recv);
        CHECK_EQ(got, i);
    }
    nodes_close(nodes, 2);
    free(sends);
}

static int done_count;
static int done_status;

static void count_done(struct velo_mq_request *request)
{
    CHECK(request->user == &done_count);
    CHECK(request->status != VELO_AGAIN);
    done_count++;
    done_status = request->status;
}

TEST(done_is_called_once_for_each_request)
{
    const size_t lengths[] = {0, 8, 100, 20000, MUCH};
    unsigned char *out = calloc(1, MUCH), *in = calloc(1, MUCH);
    struct node nodes[2];
    struct velo_mq_peer *peer;

    nodes_open(nodes, 2, NULL, false);
    peer = node_connect(&nodes[0], nodes[1].id);
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        for (uint32_t flags = 0; flags <= VELO_MQ_SYNC; flags++) {
            struct velo_mq_request send = {.done = count_done, .user = &done_count};
            struct velo_mq_request recv = send;
            done_count = 0;
            CHECK_OK(velo_mq_isend(peer, out, lengths[i], 1, flags, &send));
            CHECK_OK(velo_mq_irecv(nodes[1].mq, VELO_MQ_ANY_SOURCE, 1, 0, in, MUCH, &recv));
            nodes_finish(nodes, 2, &send);
            nodes_finish(nodes, 2, &recv);
            CHECK_EQ(done_count, 2);
            CHECK_OK(done_status);
        }
    }
    nodes_close(nodes, 2);
    free(out);
    free(in);
}

/* Answers each message it gets with the next receive, until enough have come. */
struct echo {
    struct velo_mq *mq;
    int left;
    int value;
};

static void receive_again(struct velo_mq_request *request)
{
    struct echo *echo = request->user;

    CHECK_OK(request->status);
    if (--echo->left > 0)
        CHECK_OK(velo_mq_irecv(echo->mq, VELO_MQ_ANY_SOURCE, 2, 0, &echo->value,
                               sizeof(echo->value), request));
}

TEST(done_may_start_the_request_again)
{
    struct node nodes[2];
    struct velo_mq_peer *peer;
    struct echo echo = {.left = 200};
    struct velo_mq_request recv = {.done = receive_again, .user = &echo};

    nodes_open(nodes, 2, NULL, false);
    echo.mq = nodes[1].mq;
    peer = node_connect(&nodes[0], nodes[1].id);
    for (int i = 0; i < 100; i++) /* Half of them unexpected. */
        CHECK_OK(velo_mq_try_send(peer, &i, sizeof(i), 2));
    nodes_settle(nodes, 2);
    CHECK_OK(velo_mq_irecv(echo.mq, VELO_MQ_ANY_SOURCE, 2, 0, &echo.value, sizeof(int), &recv));
    CHECK_EQ(echo.left, 100);
    for (int i = 100; i < 200; i++)
        CHECK_OK(velo_mq_try_send(peer, &i, sizeof(i), 2));
    nodes_settle(nodes, 2);
    CHECK_EQ(echo.left, 0);
    CHECK_EQ(echo.value, 199);
    CHECK_OK(recv.status);
    nodes_close(nodes, 2);
}

TEST(a_short_message_does_not_wait_for_a_long_one)
{
    size_t len_bytes = 8 * MUCH;
    unsigned char *out = calloc(1, len_bytes), *in = calloc(1, len_bytes);
    struct node nodes[2];
    struct velo_mq_peer *peer;
    struct velo_mq_request send = {0}, recv = {0}, recv_short = {0};
    int value = 5, got = 0;

    nodes_open(nodes, 2, NULL, false);
    peer = node_connect(&nodes[0], nodes[1].id);
    CHECK_OK(velo_mq_irecv(nodes[1].mq, VELO_MQ_ANY_SOURCE, 1, 0, in, len_bytes, &recv));
    CHECK_OK(velo_mq_irecv(nodes[1].mq, VELO_MQ_ANY_SOURCE, 2, 0, &got, sizeof(got), &recv_short));
    CHECK_OK(velo_mq_isend(peer, out, len_bytes, 1, 0, &send));
    while (recv.len_bytes < MUCH) {
        (void)velo_mq_progress(nodes[1].mq);
        (void)velo_mq_progress(nodes[0].mq);
    }
    CHECK_OK(velo_mq_try_send(peer, &value, sizeof(value), 2));
    nodes_finish(nodes, 2, &recv_short);
    CHECK_EQ(got, 5);
    CHECK(recv.len_bytes < 2 * MUCH);
    nodes_finish(nodes, 2, &recv);
    nodes_close(nodes, 2);
    free(out);
    free(in);
}

TEST(long_messages_to_one_peer_share_the_way)
{
    enum { STREAMS = 3 };
    size_t len_bytes = 4 * MUCH;
    unsigned char *out = calloc(1, len_bytes), *in = calloc(STREAMS, len_bytes);
    struct node nodes[2];
    struct velo_mq_peer *peer;
    struct velo_mq_request send[STREAMS] = {0}, recv[STREAMS] = {0};

    nodes_open(nodes, 2, NULL, false);
    peer = node_connect(&nodes[0], nodes[1].id);
    for (uint64_t i = 0; i < STREAMS; i++) {
        CHECK_OK(velo_mq_irecv(nodes[1].mq, VELO_MQ_ANY_SOURCE, i, 0, in + i * len_bytes, len_bytes,
                               &recv[i]));
        CHECK_OK(velo_mq_isend(peer, out, len_bytes, i, 0, &send[i]));
    }
    nodes_finish(nodes, 2, &recv[0]);
    /* By a card more is under way. */
    size_t least_bytes = test_is_by_card() ? len_bytes / 2 : len_bytes - MUCH;
    for (int i = 1; i < STREAMS; i++) {
        CHECK(recv[i].len_bytes > least_bytes);
        nodes_finish(nodes, 2, &recv[i]);
    }
    nodes_close(nodes, 2);
    free(out);
    free(in);
}

TEST(one_call_of_progress_sends_no_more_than_a_few_pieces)
{
    size_t len_bytes = 4 * MUCH;
    unsigned char *out = calloc(1, len_bytes), *in = calloc(1, len_bytes);
    struct node nodes[2];
    struct velo_mq_peer *peer;
    struct velo_mq_request send = {0}, recv = {0};
    struct velo_mq_attr attr = {.size_bytes = sizeof attr, .path = VELO_MQ_PATH_COPY};

    for (int i = 0; i < 2; i++)
        node_open(&nodes[i], i, 1024, (uint32_t)(16 * MUCH), &attr,
                  false); /* All of it would fit. */
    peer = node_connect(&nodes[0], nodes[1].id);
    CHECK_OK(velo_mq_irecv(nodes[1].mq, VELO_MQ_ANY_SOURCE, 1, 0, in, len_bytes, &recv));
    CHECK_OK(velo_mq_isend(peer, out, len_bytes, 1, 0, &send));
    /* Over a transport each of these steps may take a moment. */
    int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;
    do {
        nodes_settle(&nodes[1], 1);
        CHECK(test_now_ns() < end_ns);
    } while (velo_mq_progress(nodes[0].mq) == 0);
    do {
        nodes_settle(&nodes[1], 1);
        CHECK(test_now_ns() < end_ns);
    } while (recv.len_bytes == 0);
    CHECK(recv.len_bytes < 128u << 10);
    nodes_finish(nodes, 2, &recv);
    nodes_close(nodes, 2);
    free(out);
    free(in);
}
