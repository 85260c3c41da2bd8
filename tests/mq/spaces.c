/* SPDX-License-Identifier: Apache-2.0 */
/* Matching spaces, cookies, and receives that stand before all others. */
#include <stdlib.h>
#include <string.h>

#include "support.h"

#define MATCH UINT64_C(0x1122334455667788)
#define COOKIE UINT64_C(0xfedcba9876543210)

static const size_t lengths[] = {0,  1,  8,    39,   40,    41,     48,
                                 56, 57, 1000, 8192, 16384, 100000, 1 << 20};

static void send_in(struct node *nodes, struct velo_mq_peer *peer, uint32_t space, uint64_t word,
                    uint32_t flags)
{
    struct velo_mq_request request = {0};

    CHECK_OK(velo_mq_isend_in(peer, space, &word, sizeof(word), MATCH, flags, COOKIE, &request));
    nodes_finish(nodes, 2, &request);
    CHECK_OK(request.status);
}

static void check_cookie(const struct velo_mq_request *request, bool has_cookie, uint64_t cookie)
{
    uint64_t got = 0;

    CHECK_STATUS(velo_mq_cookie(request, &got), has_cookie ? VELO_OK : VELO_AGAIN);
    CHECK_EQ(got, has_cookie ? cookie : 0);
}

/* Posted first or found among those that came; with and without wildcards. */
static void own_space_only(bool is_posted_first, uint64_t ignore)
{
    struct node nodes[2];
    struct velo_mq_request recv[VELO_MQ_SPACES] = {0};
    uint64_t got[VELO_MQ_SPACES] = {0};

    nodes_open(nodes, 2, NULL, false);
    struct velo_mq_peer *peer = node_connect(&nodes[0], nodes[1].id);
    for (int round = 0; round < 2; round++) {
        if (is_posted_first == (round == 0)) {
            for (uint32_t s = 0; s < VELO_MQ_SPACES; s++)
                CHECK_OK(velo_mq_irecv_in(nodes[1].mq, s, VELO_MQ_ANY_SOURCE, MATCH, ignore,
                                          &got[s], sizeof(got[s]), 0, &recv[s]));
        } else {
            for (uint32_t s = VELO_MQ_SPACES; s-- > 0;)
                send_in(nodes, peer, s, 100 + s, 0);
            nodes_settle(nodes, 2);
        }
    }
    for (uint32_t s = 0; s < VELO_MQ_SPACES; s++) {
        CHECK_OK(recv[s].status);
        CHECK_EQ(got[s], 100 + s);
    }
    nodes_close(nodes, 2);
}

TEST(a_receive_takes_messages_of_its_own_space_only)
{
    own_space_only(true, 0);
    own_space_only(true, UINT64_MAX);
    own_space_only(false, 0);
    own_space_only(false, UINT64_MAX);
}

TEST(a_message_waits_for_a_receive_of_its_space)
{
    struct node nodes[2];
    struct velo_mq_request recv = {0}, other = {0};
    uint64_t got = 0;

    nodes_open(nodes, 2, NULL, false);
    struct velo_mq_peer *peer = node_connect(&nodes[0], nodes[1].id);
    CHECK_OK(velo_mq_irecv(nodes[1].mq, VELO_MQ_ANY_SOURCE, MATCH, 0, &got, sizeof(got), &other));
    send_in(nodes, peer, 1, 7, 0);
    nodes_settle(nodes, 2);
    CHECK_STATUS(velo_mq_poll(nodes[1].mq, &other), VELO_AGAIN);
    CHECK_EQ(node_counters(&nodes[1]).unexpected, 1);
    CHECK_OK(velo_mq_irecv_in(nodes[1].mq, 1, VELO_MQ_ANY_SOURCE, MATCH, 0, &got, sizeof(got), 0,
                              &recv));
    CHECK_OK(recv.status);
    CHECK_EQ(got, 7);
    CHECK_OK(velo_mq_cancel(nodes[1].mq, &other));
    nodes_close(nodes, 2);
}

static void cookie_arrives(struct node *nodes, struct velo_mq_peer *peer, size_t len_bytes,
                           uint32_t flags, bool is_posted_first)
{
    unsigned char *out = malloc(len_bytes + 1), *in = calloc(1, len_bytes + 1);
    struct velo_mq_request send = {0}, recv = {0};
    uint64_t cookie = COOKIE + len_bytes;

    CHECK(out != NULL && in != NULL);
    pattern_fill(out, len_bytes, 3);
    if (!is_posted_first) {
        CHECK_OK(velo_mq_isend_in(peer, 2, out, len_bytes, MATCH, flags, cookie, &send));
        nodes_settle(nodes, 2);
    }
    CHECK_OK(velo_mq_irecv_in(nodes[1].mq, 2, nodes[0].id, MATCH, 0, in, len_bytes, 0, &recv));
    if (is_posted_first)
        CHECK_OK(velo_mq_isend_in(peer, 2, out, len_bytes, MATCH, flags, cookie, &send));
    nodes_finish(nodes, 2, &recv);
    nodes_finish(nodes, 2, &send);
    CHECK_OK(recv.status);
    CHECK_OK(send.status);
    CHECK_EQ(recv.len_bytes, len_bytes);
    CHECK_EQ(recv.match, MATCH);
    CHECK(memcmp(out, in, len_bytes) == 0);
    check_cookie(&recv, (flags & VELO_MQ_COOKIE) != 0, cookie);
    free(out);
    free(in);
}

TEST(a_cookie_arrives_with_a_message_of_any_length)
{
    struct node nodes[2];

    nodes_open(nodes, 2, NULL, true);
    struct velo_mq_peer *peer = node_connect(&nodes[0], nodes[1].id);
    for (size_t i = 0; i < scaled(ARRAY_LEN(lengths), ARRAY_LEN(lengths) - 2); i++) {
        for (uint32_t flags = 0; flags <= (VELO_MQ_COOKIE | VELO_MQ_SYNC); flags++) {
            cookie_arrives(nodes, peer, lengths[i], flags, true);
            cookie_arrives(nodes, peer, lengths[i], flags, false);
        }
    }
    nodes_close(nodes, 2);
}

/* More than a ring holds: the sends wait, and keep what belongs to them. */
TEST(sends_that_wait_for_room_keep_their_cookies)
{
    enum { MESSAGES = 2000 };
    static struct velo_mq_request send[MESSAGES];
    struct node nodes[2];

    nodes_open(nodes, 2, NULL, false);
    struct velo_mq_peer *peer = node_connect(&nodes[0], nodes[1].id);
    for (uint64_t i = 0; i < MESSAGES; i++)
        CHECK_OK(velo_mq_isend_in(peer, (uint32_t)(i % 3), &i, 0, i, i % 2 ? VELO_MQ_COOKIE : 0, ~i,
                                  &send[i]));
    CHECK_STATUS(send[MESSAGES - 1].status, VELO_AGAIN);
    for (uint64_t i = 0; i < MESSAGES; i++) {
        struct velo_mq_request recv = {0};
        CHECK_OK(velo_mq_irecv_in(nodes[1].mq, (uint32_t)(i % 3), nodes[0].id, 0, UINT64_MAX, NULL,
                                  0, 0, &recv));
        nodes_finish(nodes, 2, &recv);
        CHECK_EQ(recv.match, i);
        check_cookie(&recv, i % 2 == 1, ~i);
    }
    nodes_settle(nodes, 2);
    CHECK_OK(send[MESSAGES - 1].status);
    nodes_close(nodes, 2);
}

TEST(a_short_message_with_cookie_needs_no_request)
{
    struct node nodes[2];
    struct velo_mq_request recv = {0};
    uint64_t word = 9, got = 0;

    nodes_open(nodes, 2, NULL, false);
    struct velo_mq_peer *peer = node_connect(&nodes[0], nodes[1].id);
    CHECK_OK(velo_mq_try_send_in(peer, 1, &word, sizeof(word), MATCH, VELO_MQ_COOKIE, COOKIE));
    CHECK_OK(velo_mq_irecv_in(nodes[1].mq, 1, nodes[0].id, MATCH, 0, &got, sizeof(got), 0, &recv));
    nodes_finish(nodes, 2, &recv);
    CHECK_EQ(got, 9);
    check_cookie(&recv, true, COOKIE);
    CHECK_STATUS(velo_mq_try_send_in(peer, 1, &word, 1 << 20, MATCH, 0, 0), VELO_AGAIN);
    nodes_close(nodes, 2);
}

TEST(a_probe_sees_the_cookie_and_can_take_the_message)
{
    struct node nodes[2];
    struct velo_mq_message *message = NULL;
    struct velo_mq_request recv = {0};
    struct velo_mq_found found;
    uint64_t got = 0;

    nodes_open(nodes, 2, NULL, false);
    struct velo_mq_peer *peer = node_connect(&nodes[0], nodes[1].id);
    send_in(nodes, peer, 1, 5, VELO_MQ_COOKIE);
    nodes_settle(nodes, 2);
    for (uint32_t s = 0; s < VELO_MQ_SPACES; s += 2)
        CHECK_STATUS(velo_mq_try_probe_in(nodes[1].mq, s, nodes[0].id, MATCH, 0, NULL, &found),
                     VELO_AGAIN);
    CHECK_OK(velo_mq_try_probe_in(nodes[1].mq, 1, nodes[0].id, 0, UINT64_MAX, NULL, &found));
    CHECK_EQ(found.info.match, MATCH);
    CHECK_EQ(found.info.len_bytes, sizeof(got));
    CHECK_EQ(found.flags, VELO_MQ_COOKIE);
    CHECK_EQ(found.cookie, COOKIE);
    CHECK_OK(velo_mq_try_probe_in(nodes[1].mq, 1, nodes[0].id, MATCH, 0, &message, &found));
    CHECK_STATUS(velo_mq_try_probe_in(nodes[1].mq, 1, nodes[0].id, MATCH, 0, NULL, &found),
                 VELO_AGAIN);
    CHECK_OK(velo_mq_mrecv(nodes[1].mq, message, &got, sizeof(got), &recv));
    CHECK_EQ(got, 5);
    check_cookie(&recv, true, COOKIE);
    nodes_close(nodes, 2);
}

static void first_stands_before(uint64_t ignore_first, uint64_t ignore_other)
{
    struct node nodes[2];
    struct velo_mq_request recv[3] = {0};
    uint64_t got[3] = {0};

    nodes_open(nodes, 2, NULL, false);
    struct velo_mq_peer *peer = node_connect(&nodes[0], nodes[1].id);
    for (int i = 0; i < 2; i++)
        CHECK_OK(velo_mq_irecv_in(nodes[1].mq, 1, nodes[0].id, MATCH, ignore_other, &got[i],
                                  sizeof(got[i]), 0, &recv[i]));
    CHECK_OK(velo_mq_irecv_in(nodes[1].mq, 1, nodes[0].id, MATCH, ignore_first, &got[2],
                              sizeof(got[2]), VELO_MQ_FIRST, &recv[2]));
    for (uint64_t i = 1; i <= 3; i++)
        send_in(nodes, peer, 1, i, 0);
    nodes_settle(nodes, 2);
    CHECK_EQ(got[2], 1);
    CHECK_EQ(got[0], 2);
    CHECK_EQ(got[1], 3);
    nodes_close(nodes, 2);
}

TEST(a_receive_can_stand_before_those_posted_earlier)
{
    first_stands_before(0, 0);
    first_stands_before(0, 1);
    first_stands_before(1, 0);
    first_stands_before(1, 1);
}

TEST(the_calls_with_spaces_refuse_what_makes_no_sense)
{
    struct node node;
    struct velo_mq_request request = {0};
    struct velo_mq_found found;
    uint64_t word = 0;

    nodes_open(&node, 1, NULL, false);
    struct velo_mq_peer *peer = node_connect(&node, node.id);
    CHECK_FAILS(velo_mq_try_send_in(peer, VELO_MQ_SPACES, &word, 8, 0, 0, 0), VELO_ERR_ARG,
                "space");
    CHECK_FAILS(velo_mq_try_send_in(peer, 0, &word, 8, 0, VELO_MQ_SYNC, 0), VELO_ERR_ARG, "flags");
    CHECK_FAILS(velo_mq_try_send_in(peer, 0, NULL, 8, 0, 0, 0), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_isend_in(peer, VELO_MQ_SPACES, &word, 8, 0, 0, 0, &request), VELO_ERR_ARG,
                "space");
    CHECK_FAILS(velo_mq_isend_in(peer, 0, &word, 8, 0, VELO_MQ_FIRST, 0, &request), VELO_ERR_ARG,
                "flags");
    CHECK_FAILS(velo_mq_isend_in(NULL, 0, &word, 8, 0, 0, 0, &request), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_irecv_in(node.mq, VELO_MQ_SPACES, 0, 0, 0, &word, 8, 0, &request),
                VELO_ERR_ARG, "space");
    CHECK_FAILS(velo_mq_irecv_in(node.mq, 0, 0, 0, 0, &word, 8, VELO_MQ_COOKIE, &request),
                VELO_ERR_ARG, "flags");
    CHECK_FAILS(velo_mq_irecv_in(NULL, 0, 0, 0, 0, &word, 8, 0, &request), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_try_probe_in(node.mq, VELO_MQ_SPACES, 0, 0, 0, NULL, &found), VELO_ERR_ARG,
                "space");
    CHECK_FAILS(velo_mq_try_probe_in(node.mq, 0, 0, 0, 0, NULL, NULL), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_cookie(NULL, &word), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_cookie(&request, NULL), VELO_ERR_ARG, "NULL");
    nodes_close(&node, 1);
}

TEST(a_peer_tells_its_generation)
{
    struct node nodes[2];

    nodes_open(nodes, 2, NULL, false);
    CHECK_EQ(velo_mq_peer_generation(node_connect(&nodes[0], nodes[1].id)),
             velo_port_generation(nodes[1].port));
    nodes_close(nodes, 2);
}
