/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that nobody has asked for: bounded memory, pushed-back senders, nothing lost. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "support.h"

#define BOUND 65536u
#define FLOOD 2000
#define FLOOD_BYTES 100u
#define LONG_BYTES 300000u

/* Node 0 sends more than fits; every message says its number. */
struct flood {
    struct velo_mq_request request;
    int words[FLOOD_BYTES / sizeof(int)];
};

static struct flood *flood_start(struct velo_mq_peer *peer, uint64_t match)
{
    struct flood *flood = calloc(FLOOD, sizeof(*flood));

    CHECK(flood != NULL);
    for (int i = 0; i < FLOOD; i++) {
        flood[i].words[0] = i;
        CHECK_OK(velo_mq_isend(peer, flood[i].words, FLOOD_BYTES, match, 0, &flood[i].request));
    }
    return flood;
}

/* Take all of it, and check that it is all there, in order. */
static void flood_end(struct node *nodes, int count, struct node *to, struct flood *flood,
                      uint64_t match)
{
    for (int i = 0; i < FLOOD; i++) {
        struct velo_mq_request recv = {0};
        int words[FLOOD_BYTES / sizeof(int)] = {-1};
        CHECK_OK(velo_mq_irecv(to->mq, VELO_MQ_ANY_SOURCE, match, i % 2 ? 0 : VELO_MQ_IGNORE_RANK,
                               words, sizeof(words), &recv));
        nodes_finish(nodes, count, &recv);
        CHECK_OK(recv.status);
        CHECK_EQ(words[0], i);
        nodes_finish(nodes, count, &flood[i].request);
    }
    CHECK_EQ(node_counters(to).unexpected_bytes, 0);
    free(flood);
}

TEST(a_flood_takes_no_more_memory_than_the_bound_and_loses_nothing)
{
    struct node nodes[3];
    struct velo_mq_attr attr = {.size_bytes = sizeof(struct velo_mq_attr),
                                .unexpected_bytes = BOUND};
    struct velo_mq_peer *peer, *other;
    struct velo_mq_counters counters;
    struct flood *flood;

    nodes_open(nodes, 3, &attr, false);
    peer = node_connect(&nodes[0], nodes[2].id);
    other = node_connect(&nodes[1], nodes[2].id);
    flood = flood_start(peer, 1);
    nodes_settle(nodes, 3);
    counters = node_counters(&nodes[2]);
    CHECK(counters.deferred > 0);
    CHECK(counters.unexpected_peak_bytes <= BOUND);
    CHECK(counters.unexpected_peak_bytes > BOUND / 4);
    CHECK_EQ(flood[FLOOD - 1].request.status, VELO_AGAIN);
    for (int i = 0; i < 1000; i++) { /* The others go on. */
        struct velo_mq_request recv = {0};
        int got = -1;
        CHECK_OK(velo_mq_irecv(nodes[2].mq, nodes[1].id, 2, 0, &got, sizeof(got), &recv));
        CHECK_OK(velo_mq_try_send(other, &i, sizeof(i), 2));
        nodes_finish(nodes, 3, &recv);
        CHECK_EQ(got, i);
    }
    flood_end(nodes, 3, &nodes[2], flood, 1);
    CHECK(node_counters(&nodes[2]).unexpected_peak_bytes <= BOUND);
    nodes_close(nodes, 3);
}

TEST(memory_that_is_free_again_takes_what_was_pushed_back)
{
    struct node nodes[2];
    struct velo_mq_attr attr = {.size_bytes = sizeof(struct velo_mq_attr),
                                .unexpected_bytes = BOUND};
    struct velo_mq_peer *peer;
    struct flood *flood;
    uint64_t kept;

    nodes_open(nodes, 2, &attr, false);
    peer = node_connect(&nodes[0], nodes[1].id);
    flood = flood_start(peer, 1);
    nodes_settle(nodes, 2);
    kept = node_counters(&nodes[1]).unexpected;
    for (int i = 0; i < 10; i++) {
        struct velo_mq_request recv = {0};
        int words[FLOOD_BYTES / sizeof(int)];
        CHECK_OK(velo_mq_irecv(nodes[1].mq, nodes[0].id, 1, 0, words, sizeof(words), &recv));
        CHECK_OK(recv.status);
        CHECK_EQ(words[0], i);
    }
    nodes_settle(nodes, 2);
    CHECK_EQ(node_counters(&nodes[1]).unexpected, kept + 10);
    nodes_close(nodes, 2);
    free(flood);
}

TEST(a_flood_leaves_room_for_what_others_send_before_it_is_asked_for)
{
    struct node nodes[3];
    struct velo_mq_attr attr = {.size_bytes = sizeof(struct velo_mq_attr),
                                .unexpected_bytes = BOUND};
    struct velo_mq_peer *peer, *other;
    struct velo_mq_request recv = {0};
    struct flood *flood;
    int value = 1, got = 0;

    nodes_open(nodes, 3, &attr, false);
    peer = node_connect(&nodes[0], nodes[2].id);
    other = node_connect(&nodes[1], nodes[2].id);
    flood = flood_start(peer, 1);
    nodes_settle(nodes, 3);
    CHECK_OK(velo_mq_irecv(nodes[2].mq, nodes[1].id, 3, 0, &got, sizeof(got), &recv));
    CHECK_OK(velo_mq_try_send(other, &value, sizeof(value), 2)); /* Stands before it. */
    CHECK_OK(velo_mq_try_send(other, &value, sizeof(value), 3));
    nodes_finish(nodes, 3, &recv);
    CHECK_EQ(got, 1);
    CHECK_OK(velo_mq_irecv(nodes[2].mq, nodes[1].id, 2, 0, &got, sizeof(got), &recv));
    CHECK_OK(recv.status);
    flood_end(nodes, 3, &nodes[2], flood, 1);
    nodes_close(nodes, 3);
}

TEST(a_long_message_is_not_held_up_by_a_flood_either_way)
{
    struct node nodes[2];
    struct velo_mq_attr attr = {.size_bytes = sizeof(struct velo_mq_attr),
                                .unexpected_bytes = BOUND};
    struct velo_mq_peer *peer, *back;
    struct velo_mq_request send = {0}, recv = {0}, sync = {0}, recv_sync = {0};
    unsigned char *out = malloc(LONG_BYTES), *in = calloc(1, LONG_BYTES);
    struct flood *flood;
    char byte = 0;

    nodes_open(nodes, 2, &attr, false);
    peer = node_connect(&nodes[0], nodes[1].id);
    back = node_connect(&nodes[1], nodes[0].id);
    flood = flood_start(peer, 1);
    nodes_settle(nodes, 2);
    CHECK(node_counters(&nodes[1]).deferred > 0);
    /* CTS and FIN come back from the node whose messages are pushed back. */
    pattern_fill(out, LONG_BYTES, 9);
    CHECK_OK(velo_mq_irecv(nodes[0].mq, nodes[1].id, 5, 0, in, LONG_BYTES, &recv));
    CHECK_OK(velo_mq_irecv(nodes[0].mq, nodes[1].id, 6, 0, &byte, 1, &recv_sync));
    CHECK_OK(velo_mq_isend(back, out, LONG_BYTES, 5, 0, &send));
    CHECK_OK(velo_mq_isend(back, &byte, 1, 6, VELO_MQ_SYNC, &sync));
    nodes_finish(nodes, 2, &send);
    nodes_finish(nodes, 2, &sync);
    nodes_finish(nodes, 2, &recv);
    CHECK(pattern_matches(in, LONG_BYTES, 9));
    flood_end(nodes, 2, &nodes[1], flood, 1);
    nodes_close(nodes, 2);
    free(out);
    free(in);
}

/* A bound so small that nothing is kept but what somebody waits for. */
static void open_without_memory(struct node *nodes, struct velo_mq_peer **peer)
{
    struct velo_mq_attr attr = {.size_bytes = sizeof(struct velo_mq_attr),
                                .unexpected_bytes = 1,
                                .unexpected_limit_bytes = 1 << 20};

    nodes_open(nodes, 2, &attr, false);
    *peer = node_connect(&nodes[0], nodes[1].id);
}

TEST(a_receive_posted_later_gets_the_message_that_was_pushed_back)
{
    static const size_t lengths[] = {0, 8, 48, 49, 5000, LONG_BYTES};
    unsigned char *out = malloc(LONG_BYTES), *in = malloc(LONG_BYTES);
    struct node nodes[2];
    struct velo_mq_peer *peer;

    open_without_memory(nodes, &peer);
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        for (int way = 0; way < 4; way++) {
            struct velo_mq_request send = {0}, recv = {0};
            pattern_fill(out, lengths[i], i);
            CHECK_OK(velo_mq_isend(peer, out, lengths[i], 4, way & 1, &send));
            nodes_settle(nodes, 2);
            CHECK_OK(
                velo_mq_irecv(nodes[1].mq, nodes[0].id, 4, way & 2 ? 1 : 0, in, LONG_BYTES, &recv));
            nodes_finish(nodes, 2, &recv);
            nodes_finish(nodes, 2, &send);
            CHECK_OK(recv.status);
            CHECK_EQ(recv.len_bytes, lengths[i]);
            CHECK(pattern_matches(in, lengths[i], i));
        }
    }
    CHECK(node_counters(&nodes[1]).deferred >= 4 * ARRAY_LEN(lengths));
    CHECK_EQ(node_counters(&nodes[1]).unexpected, 0);
    nodes_close(nodes, 2);
    free(out);
    free(in);
}

TEST(a_message_that_was_pushed_back_can_be_probed)
{
    struct node nodes[2];
    struct velo_mq_peer *peer;
    struct velo_mq_info info;
    struct velo_mq_message *message;
    struct velo_mq_request send = {0}, recv = {0};
    unsigned char *out = malloc(LONG_BYTES), *in = malloc(LONG_BYTES);
    int value = 7, got = 0;

    open_without_memory(nodes, &peer);
    CHECK_OK(velo_mq_try_send(peer, &value, sizeof(value), 4));
    nodes_settle(nodes, 2);
    CHECK_EQ(node_counters(&nodes[1]).deferred, 1);
    CHECK_STATUS(velo_mq_try_probe(nodes[1].mq, nodes[0].id, 5, 0, &info), VELO_AGAIN);
    CHECK_OK(velo_mq_try_probe(nodes[1].mq, nodes[0].id, 5, 1, &info));
    CHECK_EQ(info.len_bytes, sizeof(value));
    CHECK(info.match == 4 && info.source == nodes[0].id);
    CHECK_OK(velo_mq_irecv(nodes[1].mq, nodes[0].id, 4, 0, &got, sizeof(got), &recv));
    nodes_finish(nodes, 2, &recv);
    CHECK_EQ(got, 7);

    pattern_fill(out, LONG_BYTES, 3);
    CHECK_OK(velo_mq_isend(peer, out, LONG_BYTES, 4, 0, &send));
    nodes_settle(nodes, 2);
    CHECK_OK(velo_mq_try_mprobe(nodes[1].mq, VELO_MQ_ANY_SOURCE, 0, UINT64_MAX, &message, &info));
    CHECK_EQ(info.len_bytes, LONG_BYTES);
    CHECK_STATUS(velo_mq_try_probe(nodes[1].mq, VELO_MQ_ANY_SOURCE, 0, UINT64_MAX, NULL),
                 VELO_AGAIN);
    CHECK_OK(velo_mq_mrecv(nodes[1].mq, message, in, LONG_BYTES, &recv));
    nodes_finish(nodes, 2, &recv);
    nodes_finish(nodes, 2, &send);
    CHECK(pattern_matches(in, LONG_BYTES, 3));
    nodes_close(nodes, 2);
    free(out);
    free(in);
}

TEST(memory_that_was_given_back_serves_messages_of_another_length)
{
    struct node nodes[2];
    struct velo_mq_attr attr = {.size_bytes = sizeof(struct velo_mq_attr),
                                .unexpected_bytes = BOUND};
    struct velo_mq_peer *peer;
    static unsigned char out[8000], in[8000];

    nodes_open(nodes, 2, &attr, false);
    peer = node_connect(&nodes[0], nodes[1].id);
    for (size_t len_bytes = 1; len_bytes <= sizeof(out); len_bytes = len_bytes * 3 / 2 + 1) {
        struct velo_mq_request send[20] = {0}, recv[20] = {0};
        for (int i = 0; i < 20; i++)
            CHECK_OK(velo_mq_isend(peer, out, len_bytes, 1, 0, &send[i]));
        nodes_settle(nodes, 2);
        for (int i = 0; i < 20; i++) {
            CHECK_OK(velo_mq_irecv(nodes[1].mq, nodes[0].id, 1, 0, in, sizeof(in), &recv[i]));
            nodes_finish(nodes, 2, &recv[i]);
            CHECK_EQ(recv[i].len_bytes, len_bytes);
        }
    }
    CHECK(node_counters(&nodes[1]).unexpected_peak_bytes <= BOUND);
    CHECK_EQ(node_counters(&nodes[1]).unexpected_bytes, 0);
    nodes_close(nodes, 2);
}

/* ---- what stands behind what was pushed back --------------------------------------------------
 */

enum { AHEAD = 2000, AHEAD_BYTES = 400 };

/* Messages of tag 1 that do not fit, then one of tag 2. */
struct ahead {
    struct velo_mq_request requests[AHEAD + 1];
    char bytes[AHEAD_BYTES];
};

static struct ahead *send_ahead(struct velo_mq_peer *peer)
{
    struct ahead *ahead = calloc(1, sizeof(*ahead));

    for (int i = 0; i <= AHEAD; i++)
        CHECK_OK(velo_mq_isend(peer, ahead->bytes, AHEAD_BYTES, i < AHEAD ? 1 : 2, 0,
                               &ahead->requests[i]));
    return ahead;
}

static void receive_ahead(struct node *nodes, int count)
{
    char buf[AHEAD_BYTES];

    for (int i = 0; i < count; i++) {
        struct velo_mq_request recv = {0};
        CHECK_OK(velo_mq_irecv(nodes[1].mq, nodes[0].id, 1, 0, buf, sizeof(buf), &recv));
        nodes_finish(nodes, 2, &recv);
        CHECK_OK(recv.status);
    }
}

/* Probe for the one of tag 2 until there is an outcome. */
static int probe_ahead(struct node *nodes)
{
    int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;
    int status;

    while ((status = velo_mq_try_probe(nodes[1].mq, nodes[0].id, 2, 0, NULL)) == VELO_AGAIN) {
        CHECK(test_now_ns() < end_ns);
        (void)velo_mq_progress(nodes[0].mq);
        (void)velo_mq_progress(nodes[1].mq);
    }
    return status;
}

/* MPI's rule of progress: a message that was sent, and is asked for, arrives. */
TEST(a_message_behind_more_than_the_bound_is_received_when_it_is_asked_for)
{
    struct velo_mq_attr attr = {.size_bytes = sizeof(struct velo_mq_attr),
                                .unexpected_bytes = BOUND,
                                .unexpected_limit_bytes = 1 << 20};

    for (int when = 0; when < 2; when++) { /* The receive is posted before, or after. */
        struct node nodes[2];
        struct velo_mq_request recv = {0};
        struct ahead *ahead = NULL;
        char buf[AHEAD_BYTES];

        nodes_open(nodes, 2, &attr, false);
        struct velo_mq_peer *peer = node_connect(&nodes[0], nodes[1].id);
        if (when == 1) {
            ahead = send_ahead(peer);
            nodes_settle(nodes, 2);
            CHECK(node_counters(&nodes[1]).deferred > 0);
            CHECK(node_counters(&nodes[1]).unexpected_peak_bytes <= BOUND);
        }
        CHECK_OK(velo_mq_irecv(nodes[1].mq, nodes[0].id, 2, 0, buf, sizeof(buf), &recv));
        if (when == 0)
            ahead = send_ahead(peer);
        nodes_finish(nodes, 2, &recv);
        CHECK_OK(recv.status);
        CHECK(node_counters(&nodes[1]).unexpected_peak_bytes > BOUND);
        CHECK(node_counters(&nodes[1]).unexpected_peak_bytes <= 1 << 20);
        receive_ahead(nodes, AHEAD);
        nodes_close(nodes, 2);
        free(ahead);
    }
}

TEST(a_message_behind_more_than_the_bound_is_found_by_a_probe)
{
    struct velo_mq_attr attr = {.size_bytes = sizeof(struct velo_mq_attr),
                                .unexpected_bytes = BOUND,
                                .unexpected_limit_bytes = 1 << 20};
    struct node nodes[2];
    struct velo_mq_request recv = {0};
    char buf[AHEAD_BYTES];

    nodes_open(nodes, 2, &attr, false);
    struct ahead *ahead = send_ahead(node_connect(&nodes[0], nodes[1].id));
    nodes_settle(nodes, 2);
    CHECK_OK(probe_ahead(nodes));
    CHECK_OK(velo_mq_irecv(nodes[1].mq, nodes[0].id, 2, 0, buf, sizeof(buf), &recv));
    CHECK_OK(recv.status);
    receive_ahead(nodes, AHEAD);
    nodes_close(nodes, 2);
    free(ahead);
}

TEST(what_waits_behind_more_than_the_limit_ends_with_an_error_that_says_so)
{
    struct velo_mq_attr attr = {.size_bytes = sizeof(struct velo_mq_attr),
                                .unexpected_bytes = BOUND,
                                .unexpected_limit_bytes = 4 * BOUND};
    struct node nodes[2];
    struct velo_mq_request recv = {0}, later = {0}, other = {0};
    char buf[AHEAD_BYTES];

    nodes_open(nodes, 2, &attr, false);
    struct ahead *ahead = send_ahead(node_connect(&nodes[0], nodes[1].id));
    nodes_settle(nodes, 2);
    CHECK_STATUS(probe_ahead(nodes), VELO_ERR_NO_MEMORY);
    CHECK_OK(velo_mq_irecv(nodes[1].mq, 77, 2, 0, buf, sizeof(buf), &other));
    CHECK_OK(velo_mq_irecv(nodes[1].mq, nodes[0].id, 2, 0, buf, sizeof(buf), &recv));
    CHECK_OK(velo_mq_irecv(nodes[1].mq, nodes[0].id, 3, 0, buf, sizeof(buf), &later));
    nodes_finish(nodes, 2, &recv);
    CHECK_STATUS(recv.status, VELO_ERR_NO_MEMORY);
    CHECK(strstr(velo_last_error(), "VELO_MQ_UNEXPECTED_LIMIT_BYTES") != NULL);
    nodes_finish(nodes, 2, &later); /* It waits for the same. */
    CHECK_STATUS(later.status, VELO_ERR_NO_MEMORY);
    CHECK_STATUS(other.status, VELO_AGAIN); /* It waits for somebody else. */
    CHECK(node_counters(&nodes[1]).unexpected_peak_bytes <= 4 * BOUND);
    CHECK_OK(velo_mq_cancel(nodes[1].mq, &other));
    receive_ahead(nodes, AHEAD); /* Nothing is lost by that. */
    CHECK_OK(velo_mq_irecv(nodes[1].mq, nodes[0].id, 2, 0, buf, sizeof(buf), &recv));
    nodes_finish(nodes, 2, &recv);
    CHECK_OK(recv.status);
    nodes_close(nodes, 2);
    free(ahead);
}

/* ---- the system has no memory ---------------------------------------------------------------- */

/* From here on malloc() fails. Where a peer is known, there is memory to note it. */
static void take_all_memory(void)
{
    struct rlimit limit = {1 << 20, 1 << 20}; /* Less than is in use: no new mapping at all. */

    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    for (size_t len_bytes = 1 << 20; len_bytes >= sizeof(void *); len_bytes /= 2)
        while (malloc(len_bytes) != NULL)
            ;
}

static void receive_without_memory(void *arg)
{
    struct node nodes[2];
    struct velo_mq_request send[2] = {0}, recv = {0}, later = {0};
    bool is_known = *(const bool *)arg;
    int value = 7, got = 0;

    nodes_open(nodes, 2, NULL, false);
    struct velo_mq_peer *peer = node_connect(&nodes[0], nodes[1].id);
    if (is_known) {
        CHECK_OK(velo_mq_try_send(peer, &value, sizeof(value), 9));
        nodes_settle(nodes, 2);
        CHECK_EQ(node_counters(&nodes[1]).unexpected, 1);
    }
    take_all_memory();
    CHECK_OK(velo_mq_irecv(nodes[1].mq, nodes[0].id, 2, 0, &got, sizeof(got), &recv));
    CHECK_OK(velo_mq_isend(peer, &value, sizeof(value), 1, 0, &send[0]));
    CHECK_OK(velo_mq_isend(peer, &value, sizeof(value), 2, 0, &send[1]));
    nodes_finish(nodes, 2, &recv);
    CHECK_STATUS(recv.status, VELO_ERR_NO_MEMORY);
    CHECK(strstr(velo_last_error(), "no memory to keep a message of 4 bytes") != NULL);
    CHECK_OK(velo_mq_irecv(nodes[1].mq, VELO_MQ_ANY_SOURCE, 2, 0, &got, sizeof(got), &later));
    nodes_finish(nodes, 2, &later);
    CHECK_STATUS(later.status, VELO_ERR_NO_MEMORY);
    CHECK_STATUS(velo_mq_try_probe(nodes[1].mq, nodes[0].id, 2, 0, NULL), VELO_ERR_NO_MEMORY);
    for (uint64_t match = 1; match <= 2; match++) { /* Nothing is lost by that. */
        CHECK_OK(velo_mq_irecv(nodes[1].mq, nodes[0].id, match, 0, &got, sizeof(got), &recv));
        nodes_finish(nodes, 2, &recv);
        CHECK_OK(recv.status);
        CHECK_EQ(got, 7);
    }
    nodes_close(nodes, 2);
}

TEST(what_waits_behind_a_message_that_there_is_no_memory_for_ends_with_an_error)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    test_skip("a sanitizer needs address space of its own");
#endif
    for (int known = 0; known < 2; known++) {
        bool is_known = known != 0;
        child_join(child_start(receive_without_memory, &is_known));
    }
}

/* Its receive ends with an error, too: the sender waits for an answer that cannot be sent. */
static void answer_without_memory(void *arg)
{
    struct node nodes[2];
    struct velo_mq_request send = {0}, recv = {0};
    int value = 7, got = 0;

    (void)arg;
    nodes_open(nodes, 2, NULL, false);
    struct velo_mq_peer *peer = node_connect(&nodes[0], nodes[1].id);
    CHECK_OK(velo_mq_isend(peer, &value, sizeof(value), 1, VELO_MQ_SYNC, &send));
    CHECK_OK(velo_mq_irecv(nodes[1].mq, VELO_MQ_ANY_SOURCE, 1, 0, &got, sizeof(got), &recv));
    take_all_memory();
    nodes_finish(nodes, 2, &recv);
    CHECK_STATUS(recv.status, VELO_ERR_NO_MEMORY);
    CHECK_EQ(got, 7);
    node_close(&nodes[1]);
    nodes_finish(nodes, 1, &send);
    CHECK_STATUS(send.status, VELO_ERR_PEER_CLOSED);
    node_close(&nodes[0]);
}

TEST(a_synchronous_message_that_cannot_be_answered_ends_its_receive_with_an_error)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    test_skip("a sanitizer needs address space of its own");
#endif
    child_join(child_start(answer_without_memory, NULL));
}

TEST(memory_of_messages_is_counted_by_what_they_take)
{
    struct node nodes[2];
    struct velo_mq_attr attr = {.size_bytes = sizeof(struct velo_mq_attr),
                                .unexpected_bytes = 1 << 20};
    static char buf[8000];

    nodes_open(nodes, 2, &attr, false);
    struct velo_mq_peer *peer = node_connect(&nodes[0], nodes[1].id);
    for (size_t len_bytes = 1; len_bytes <= sizeof(buf); len_bytes += 97) {
        struct velo_mq_request recv = {0};
        CHECK_OK(velo_mq_try_send(peer, buf, len_bytes, 1));
        nodes_settle(nodes, 2);
        uint64_t used_bytes = node_counters(&nodes[1]).unexpected_bytes;
        CHECK(used_bytes > len_bytes);
        CHECK(used_bytes < 128 + (len_bytes + 128) * 9 / 8); /* Not the next power of two. */
        CHECK_OK(velo_mq_irecv(nodes[1].mq, nodes[0].id, 1, 0, buf, sizeof(buf), &recv));
        CHECK_OK(recv.status);
    }
    nodes_close(nodes, 2);
}
