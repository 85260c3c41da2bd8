/* SPDX-License-Identifier: Apache-2.0 */
/* Progress that waits a moment for a message. It must take what any progress would have taken, for
 * the request that is named and for all others. */
#include <string.h>

#include "support.h"

#define MATCH 7
#define OTHER 8
#define IGNORED (UINT64_C(1) << 60)
#define COOKIE UINT64_C(0xfeedbeefcafe0123)
#define LAPS ((int)scaled(3000, 300))
#define SIZE_MAX_BYTES 4000

struct pair {
    struct node nodes[2];
    struct velo_mq_peer *peer; /* Of node 0: node 1. */
};

static struct pair pair_open(void)
{
    struct pair pair;

    nodes_open(pair.nodes, 2, NULL, false);
    pair.peer = node_connect(&pair.nodes[0], pair.nodes[1].id);
    return pair;
}

/* Over a transport a message needs the other side's progress, too. */
static void spin_until_done(struct pair *pair, struct velo_mq_request *named,
                            const struct velo_mq_request *awaited)
{
    for (int i = 0; i < 100000 && awaited->status == VELO_AGAIN; i++) {
        (void)velo_mq_spin(pair->nodes[1].mq, named);
        (void)velo_mq_progress(pair->nodes[0].mq);
    }
    CHECK_OK(awaited->status);
}

struct receive {
    struct velo_mq_request request;
    unsigned char data[SIZE_MAX_BYTES];
};

static void post(struct pair *pair, struct receive *receive, uint64_t match, uint64_t ignore)
{
    memset(&receive->request, 0, sizeof receive->request);
    memset(receive->data, 0xee, sizeof receive->data);
    CHECK_OK(velo_mq_irecv(pair->nodes[1].mq, VELO_MQ_ANY_SOURCE, match, ignore, receive->data,
                           sizeof receive->data, &receive->request));
}

static void send_bytes(struct pair *pair, size_t len_bytes, uint64_t match, int seed,
                       bool has_cookie)
{
    unsigned char data[SIZE_MAX_BYTES];

    for (size_t i = 0; i < len_bytes; i++)
        data[i] = (unsigned char)((size_t)seed + i);
    CHECK_OK(has_cookie ? velo_mq_try_send_in(pair->peer, 0, data, len_bytes, match, VELO_MQ_COOKIE,
                                              COOKIE + (uint64_t)seed)
                        : velo_mq_try_send(pair->peer, data, len_bytes, match));
}

static void check_got(const struct receive *receive, size_t len_bytes, uint64_t match, int seed,
                      bool has_cookie)
{
    uint64_t cookie = 0;

    CHECK_OK(receive->request.status);
    CHECK_EQ(receive->request.len_bytes, len_bytes);
    CHECK_EQ(receive->request.total_bytes, len_bytes);
    CHECK_EQ(receive->request.match, match);
    for (size_t i = 0; i < len_bytes; i++)
        CHECK_EQ(receive->data[i], (unsigned char)((size_t)seed + i));
    CHECK_EQ(receive->data[len_bytes], 0xee);
    CHECK_STATUS(velo_mq_cookie(&receive->request, &cookie), has_cookie ? VELO_OK : VELO_AGAIN);
    CHECK_EQ(cookie, has_cookie ? COOKIE + (uint64_t)seed : 0);
}

TEST(a_receive_that_is_spun_for_gets_messages_of_any_length_with_and_without_cookie)
{
    static const size_t lengths[] = {0,  1,  7,  8,  9,  15, 16, 24,  31,  32,   39,  40,
                                     41, 47, 48, 55, 56, 57, 64, 120, 248, 1000, 3999};
    static struct receive receive;
    struct pair pair = pair_open();

    for (int lap = 0; lap < LAPS / 10; lap++) {
        for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
            bool has_cookie = (lap + (int)i) % 2 != 0, is_late = lap % 4 == 3;
            if (is_late) /* It is there before its receive. */
                send_bytes(&pair, lengths[i], MATCH, lap, has_cookie);
            post(&pair, &receive, MATCH, lap % 3 ? IGNORED : 0);
            if (!is_late)
                send_bytes(&pair, lengths[i], MATCH, lap, has_cookie);
            spin_until_done(&pair, lap % 5 ? &receive.request : NULL, &receive.request);
            check_got(&receive, lengths[i], MATCH, lap, has_cookie);
        }
    }
    nodes_close(pair.nodes, 2);
}

/* The request that is named is no promise. */
TEST(spinning_for_one_receive_takes_the_messages_of_others_for_these)
{
    static struct receive first, second;
    struct pair pair = pair_open();

    for (int lap = 0; lap < LAPS; lap++) {
        bool has_cookie = lap % 2;
        post(&pair, &first, MATCH, 0);
        post(&pair, &second, OTHER, 0);
        send_bytes(&pair, 8, MATCH, lap, has_cookie);
        spin_until_done(&pair, &second.request, &first.request);
        check_got(&first, 8, MATCH, lap, has_cookie);
        CHECK_STATUS(second.request.status, VELO_AGAIN);
        /* It is the only one now; a message for nobody must not be taken for it. */
        send_bytes(&pair, 8, MATCH, lap + 1, has_cookie);
        for (int i = 0; i < 3; i++)
            (void)velo_mq_spin(pair.nodes[1].mq, &second.request);
        CHECK_STATUS(second.request.status, VELO_AGAIN);
        send_bytes(&pair, 8, OTHER, lap + 2, has_cookie);
        spin_until_done(&pair, &second.request, &second.request);
        check_got(&second, 8, OTHER, lap + 2, has_cookie);
        post(&pair, &first, MATCH, 0);
        spin_until_done(&pair, NULL, &first.request);
        check_got(&first, 8, MATCH, lap + 1, has_cookie);
    }
    nodes_close(pair.nodes, 2);
}

TEST(receives_with_the_same_bits_are_spun_for_in_their_order)
{
    enum { WINDOW = 16 };
    static struct receive receives[WINDOW];
    struct pair pair = pair_open();

    for (int lap = 0; lap < LAPS / 10; lap++) {
        for (int i = 0; i < WINDOW; i++)
            post(&pair, &receives[i], MATCH, IGNORED);
        for (int i = 0; i < WINDOW; i++)
            send_bytes(&pair, 8, MATCH, lap + i, i % 2);
        spin_until_done(&pair, &receives[WINDOW - 1].request, &receives[WINDOW - 1].request);
        for (int i = 0; i < WINDOW; i++)
            check_got(&receives[i], 8, MATCH, lap + i, i % 2);
    }
    nodes_close(pair.nodes, 2);
}

/* A short message with cookie that is longer than its buffer. */
TEST(a_receive_that_is_spun_for_says_that_its_message_was_truncated)
{
    struct pair pair = pair_open();
    struct velo_mq_request request;
    char got[5];
    uint64_t cookie = 0;

    for (int lap = 0; lap < LAPS / 10; lap++) {
        memset(got, '.', sizeof got);
        memset(&request, 0, sizeof request);
        CHECK_OK(velo_mq_irecv(pair.nodes[1].mq, pair.nodes[0].id, MATCH, 0, got, 4, &request));
        send_bytes(&pair, 8, MATCH, 'a', lap % 2);
        for (int i = 0; i < 100000 && request.status == VELO_AGAIN; i++) {
            (void)velo_mq_spin(pair.nodes[1].mq, &request);
            (void)velo_mq_progress(pair.nodes[0].mq);
        }
        CHECK_STATUS(request.status, VELO_ERR_TOO_BIG);
        CHECK_EQ(request.total_bytes, 8);
        CHECK(memcmp(got, "abcd.", 5) == 0);
        CHECK_STATUS(velo_mq_cookie(&request, &cookie), lap % 2 ? VELO_OK : VELO_AGAIN);
    }
    nodes_close(pair.nodes, 2);
}

/* What has no message is not waited for: a send, one that is done, and none at all. */
TEST(spinning_in_vain_ends)
{
    struct pair pair = pair_open();
    struct velo_mq_request send = {0};
    static struct receive receive;
    int value = 3;

    nodes_settle(pair.nodes, 2);
    CHECK_EQ(velo_mq_spin(pair.nodes[1].mq, NULL), 0);
    CHECK_OK(velo_mq_isend(pair.peer, &value, sizeof value, MATCH, VELO_MQ_SYNC, &send));
    (void)velo_mq_spin(pair.nodes[0].mq, &send);
    CHECK_STATUS(send.status, VELO_AGAIN);
    post(&pair, &receive, MATCH, 0);
    nodes_finish(pair.nodes, 2, &send);
    CHECK_OK(send.status);
    spin_until_done(&pair, &receive.request, &receive.request);
    nodes_settle(pair.nodes, 2);
    CHECK_EQ(velo_mq_spin(pair.nodes[1].mq, &receive.request), 0);
    post(&pair, &receive, MATCH, 0);
    CHECK_EQ(velo_mq_spin(pair.nodes[1].mq, &receive.request), 0);
    CHECK_OK(velo_mq_cancel(pair.nodes[1].mq, &receive.request));
    CHECK_EQ(velo_mq_spin(pair.nodes[1].mq, &receive.request), 0);
    nodes_close(pair.nodes, 2);
}
