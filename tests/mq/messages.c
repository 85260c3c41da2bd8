/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of every length on every path: what is sent is what is received. */
#include <stdlib.h>
#include <string.h>

#include "support.h"

#define EAGER 8192u
#define PIECE 8128u
#define FIRST 4032u
#define MIB ((size_t)1 << 20)
#define GUARD 0xa5

static const size_t lengths[] = {
    0,
    1,
    7,
    8,
    47,
    48,
    49,
    55,
    56,
    57,
    63,
    64,
    65,
    127,
    1000,
    FIRST - 1,
    FIRST,
    FIRST + 1,
    EAGER - 1,
    EAGER,
    EAGER + 1,
    PIECE - 1,
    PIECE,
    PIECE + 1,
    16368,
    16384,
    FIRST + PIECE,
    FIRST + PIECE + 1,
    65535,
    65536,
    100000,
    MIB + 3,
    8 * MIB,
};

/* Simulated, all but the last two, which are of many pieces. */
#define LENGTHS scaled(ARRAY_LEN(lengths), ARRAY_LEN(lengths) - 2)

/* A buffer with guard bytes behind it. */
static unsigned char *buffer(size_t len_bytes)
{
    unsigned char *buf = malloc(len_bytes + 1);

    CHECK(buf != NULL);
    memset(buf, GUARD, len_bytes + 1);
    return buf;
}

struct transfer {
    size_t len_bytes;
    size_t cap_bytes;
    uint32_t flags;
    bool is_posted_first;
};

/* Send one message from node 0 to the last node and check everything about it. */
static void transfer(struct node *nodes, int count, struct velo_mq_peer *peer,
                     const struct transfer *t)
{
    struct velo_mq_request send = {0}, recv = {0};
    struct node *to = &nodes[count - 1];
    unsigned char *out = buffer(t->len_bytes), *in = buffer(t->cap_bytes);
    uint64_t match = VELO_MQ_MATCH(3, 0, t->len_bytes);
    size_t expected = t->len_bytes < t->cap_bytes ? t->len_bytes : t->cap_bytes;

    pattern_fill(out, t->len_bytes, t->len_bytes);
    if (t->is_posted_first)
        CHECK_OK(velo_mq_irecv(to->mq, VELO_MQ_ANY_SOURCE, match, 0, in, t->cap_bytes, &recv));
    CHECK_OK(velo_mq_isend(peer, out, t->len_bytes, match, t->flags, &send));
    if (!t->is_posted_first) {
        nodes_settle(nodes, count);
        if (t->flags == VELO_MQ_SYNC)
            CHECK_EQ(send.status, VELO_AGAIN);
        CHECK_OK(velo_mq_irecv(to->mq, nodes[0].id, match, 0, in, t->cap_bytes, &recv));
    }
    nodes_finish(nodes, count, &recv);
    nodes_finish(nodes, count, &send);
    CHECK_OK(send.status);
    CHECK_EQ(send.len_bytes, t->len_bytes);
    CHECK_STATUS(recv.status, t->len_bytes > t->cap_bytes ? VELO_ERR_TOO_BIG : VELO_OK);
    CHECK_EQ(recv.len_bytes, expected);
    CHECK_EQ(recv.total_bytes, t->len_bytes);
    CHECK_EQ(recv.source, nodes[0].id);
    CHECK(recv.match == match);
    CHECK(memcmp(in, out, expected) == 0);
    CHECK_EQ(in[t->cap_bytes], GUARD);
    free(out);
    free(in);
}

static void all_lengths(struct node *nodes, int count)
{
    struct velo_mq_peer *peer = node_connect(&nodes[0], nodes[count - 1].id);

    for (size_t i = 0; i < LENGTHS; i++) {
        for (int way = 0; way < 4; way++) {
            struct transfer t = {.len_bytes = lengths[i],
                                 .cap_bytes = lengths[i],
                                 .flags = way & 1 ? VELO_MQ_SYNC : 0,
                                 .is_posted_first = way & 2};
            transfer(nodes, count, peer, &t);
        }
    }
}

TEST(every_length_arrives_as_it_was_sent_piece_by_piece)
{
    struct node nodes[2];
    struct velo_mq_attr attr = {
        .size_bytes = sizeof(struct velo_mq_attr), .eager_bytes = EAGER, .path = VELO_MQ_PATH_COPY};
    struct velo_mq_counters counters;

    nodes_open(nodes, 2, &attr, false);
    all_lengths(nodes, 2);
    counters = node_counters(&nodes[1]);
    CHECK_EQ(counters.received, 4 * LENGTHS);
    CHECK_EQ(counters.eager + counters.copied, counters.received);
    CHECK(counters.copied > 0);
    CHECK_EQ(counters.errors, 0);
    CHECK_EQ(counters.unexpected_bytes, 0);
    nodes_close(nodes, 2);
}

TEST(every_length_arrives_as_it_was_sent_by_rma_get)
{
    struct node nodes[2];
    struct velo_mq_attr attr = {
        .size_bytes = sizeof(struct velo_mq_attr), .eager_bytes = EAGER, .path = VELO_MQ_PATH_GET};
    struct velo_mq_counters counters;

    test_needs_shared_memory();
    nodes_open(nodes, 2, &attr, true);
    all_lengths(nodes, 2);
    counters = node_counters(&nodes[1]);
    CHECK_EQ(counters.copied, 0);
    CHECK(counters.fetched > 0);
    CHECK_EQ(counters.errors, 0);
    CHECK_EQ(counters.unexpected_bytes, 0);
    nodes_close(nodes, 2);
}

TEST(get_bytes_says_from_where_on_messages_are_fetched)
{
    struct node nodes[2];
    struct velo_mq_attr attr = {.size_bytes = sizeof(struct velo_mq_attr), .get_bytes = 100000};
    struct velo_mq_peer *peer;

    test_needs_shared_memory();
    nodes_open(nodes, 2, &attr, true);
    peer = node_connect(&nodes[0], nodes[1].id);
    for (int i = 0; i < 2; i++) {
        struct transfer t = {.len_bytes = 99999 + (size_t)i, .cap_bytes = 200000};
        transfer(nodes, 2, peer, &t);
        CHECK_EQ(node_counters(&nodes[1]).copied, 1);
        CHECK_EQ(node_counters(&nodes[1]).fetched, i);
    }
    nodes_close(nodes, 2);
}

/* The user chooses no way here: the receiver tries both, then goes on with one, and tries the other
 * one again now and then. */
TEST(both_ways_of_long_messages_are_tried)
{
    struct node nodes[2];
    struct velo_mq_counters counters;
    struct velo_mq_peer *peer;

    test_needs_shared_memory();
    if (test_is_by_node())
        test_skip("the node fetches, or nobody");
    nodes_open(nodes, 2, NULL, true);
    peer = node_connect(&nodes[0], nodes[1].id);
    for (uint64_t i = 0; i < 100; i++) {
        struct transfer t = {.len_bytes = MIB, .cap_bytes = MIB};
        transfer(nodes, 2, peer, &t);
        counters = node_counters(&nodes[1]);
        CHECK_EQ(counters.fetched + counters.copied, i + 1);
        if (i == 3)
            CHECK(counters.fetched == 2 && counters.copied == 2);
    }
    /* Two trials at the beginning, and one of the slower way in 64. */
    CHECK(counters.fetched >= 3 && counters.copied >= 3);
    nodes_close(nodes, 2);
}

TEST(a_receiver_without_rma_has_what_is_offered_sent_to_it)
{
    struct node nodes[2];
    struct velo_mq_attr attr = {.size_bytes = sizeof(struct velo_mq_attr),
                                .path = VELO_MQ_PATH_GET};

    node_open(&nodes[0], 0, 0, 0, &attr, true);
    node_open(&nodes[1], 1, 0, 0, &attr, false);
    all_lengths(nodes, 2);
    CHECK_EQ(node_counters(&nodes[1]).fetched, 0);
    CHECK(node_counters(&nodes[1]).copied > 0);
    nodes_close(nodes, 2);
}

TEST(a_peer_that_was_replaced_is_fetched_from_anew)
{
    struct node nodes[2];
    struct velo_mq_attr attr = {.size_bytes = sizeof(struct velo_mq_attr),
                                .path = VELO_MQ_PATH_GET};
    struct transfer t = {.len_bytes = 100000, .cap_bytes = 100000};

    test_needs_shared_memory();
    nodes_open(nodes, 2, &attr, true);
    for (int i = 0; i < 2; i++) {
        struct velo_mq_peer *back = node_connect(&nodes[1], nodes[0].id);
        transfer(nodes, 2, node_connect(&nodes[0], nodes[1].id), &t);
        CHECK_EQ(node_counters(&nodes[1]).fetched, i + 1);
        node_close(&nodes[0]);
        CHECK_OK(velo_mq_disconnect(back));
        node_open(&nodes[0], 0, 0, 0, &attr, true);
    }
    nodes_close(nodes, 2);
}

TEST(every_length_arrives_as_it_was_sent_to_oneself)
{
    struct node node;

    nodes_open(&node, 1, NULL, false);
    all_lengths(&node, 1);
    nodes_close(&node, 1);
}

TEST(every_length_arrives_through_the_smallest_rings)
{
    struct node nodes[2];
    struct velo_mq_attr attr = VELO_MQ_ATTR_INIT;

    for (int i = 0; i < 2; i++)
        node_open(&nodes[i], i, 8, 16384, &attr, false);
    all_lengths(nodes, 2);
    nodes_close(nodes, 2);
}

TEST(every_length_arrives_with_the_least_eager_bytes)
{
    struct node nodes[2];
    struct velo_mq_attr attr = {.size_bytes = sizeof(struct velo_mq_attr), .eager_bytes = 1};

    nodes_open(nodes, 2, &attr, false);
    all_lengths(nodes, 2);
    CHECK_EQ(node_counters(&nodes[1]).eager, 4 * 2); /* Lengths 0 and 1. */
    nodes_close(nodes, 2);
}

static void all_truncations(int path)
{
    static const size_t caps[] = {0, 1, 47, 100, FIRST - 1, FIRST, FIRST + 1, 20000};
    struct node nodes[2];
    struct velo_mq_attr attr = {.size_bytes = sizeof(struct velo_mq_attr), .path = path};
    struct velo_mq_peer *peer;

    nodes_open(nodes, 2, &attr, path == VELO_MQ_PATH_GET);
    peer = node_connect(&nodes[0], nodes[1].id);
    for (size_t i = 0; i < LENGTHS; i++) {
        for (size_t k = 0; k < ARRAY_LEN(caps); k++) {
            for (int way = 0; way < 4; way++) {
                struct transfer t = {.len_bytes = lengths[i],
                                     .cap_bytes = caps[k],
                                     .flags = way & 1 ? VELO_MQ_SYNC : 0,
                                     .is_posted_first = way & 2};
                if (lengths[i] <= MIB)
                    transfer(nodes, 2, peer, &t);
            }
        }
    }
    nodes_close(nodes, 2);
}

TEST(a_message_that_is_too_long_fills_the_buffer_and_says_its_length)
{
    all_truncations(VELO_MQ_PATH_COPY);
}

TEST(a_message_fetched_by_rma_is_truncated_the_same_way) { all_truncations(VELO_MQ_PATH_GET); }

TEST(a_message_sent_without_a_request_arrives)
{
    struct node nodes[2];
    struct velo_mq_peer *peer;
    struct velo_mq_request recv = {0};
    unsigned char out[EAGER], in[EAGER];

    nodes_open(nodes, 2, NULL, false);
    peer = node_connect(&nodes[0], nodes[1].id);
    for (size_t len_bytes = 0; len_bytes <= EAGER; len_bytes += len_bytes < 100 ? 1 : 997) {
        pattern_fill(out, len_bytes, len_bytes);
        CHECK_OK(velo_mq_irecv(nodes[1].mq, nodes[0].id, 5, 0, in, sizeof(in), &recv));
        CHECK_OK(velo_mq_try_send(peer, len_bytes ? out : NULL, len_bytes, 5));
        nodes_finish(nodes, 2, &recv);
        CHECK_EQ(recv.len_bytes, len_bytes);
        CHECK(pattern_matches(in, len_bytes, len_bytes));
    }
    nodes_close(nodes, 2);
}
