/* SPDX-License-Identifier: Apache-2.0 */
/* A receive that is polled for takes a short way. It must get what any receive would have got. */
#include <string.h>

#include "support.h"

#define MATCH 7
#define OTHER 8
#define LAPS scaled(5000, 500)

struct pair {
    struct node nodes[2];
    struct velo_mq_peer *peer; /* Of node 0: node 1. */
};

#define LONG_ITEM 200

/* The number comes first. Match bits stand behind a short item, and apart from a long one. */
static size_t item_bytes = sizeof(int);

static void with_both_lengths(void (*check)(void))
{
    check();
    item_bytes = LONG_ITEM;
    check();
    item_bytes = sizeof(int);
}

static void send_int(const struct pair *pair, int value, uint64_t match)
{
    char item[LONG_ITEM] = {0};

    memcpy(item, &value, sizeof(value));
    CHECK_OK(velo_mq_try_send(pair->peer, item, item_bytes, match));
}

struct receive {
    struct velo_mq_request request;
    union {
        int value;
        char item[LONG_ITEM];
    };
};

static void post(struct pair *pair, struct receive *receive, velo_id_t source, uint64_t match,
                 uint64_t ignore)
{
    memset(receive, 0, sizeof(*receive));
    CHECK_OK(velo_mq_irecv(pair->nodes[1].mq, source, match, ignore, receive->item, item_bytes,
                           &receive->request));
}

/* Over a transport a message needs the other side's progress, too. */
static int poll(struct pair *pair, struct receive *receive)
{
    for (int i = 0; i < 100000; i++) {
        int status = velo_mq_poll(pair->nodes[1].mq, &receive->request);
        if (status != VELO_AGAIN)
            return status;
        (void)velo_mq_progress(pair->nodes[0].mq);
    }
    return VELO_AGAIN;
}

static void check_got(struct pair *pair, struct receive *receive, int value)
{
    CHECK_OK(poll(pair, receive));
    CHECK_EQ(receive->value, value);
    CHECK_EQ(receive->request.len_bytes, item_bytes);
    CHECK_EQ(receive->request.total_bytes, item_bytes);
    CHECK_EQ(receive->request.source, pair->nodes[0].id);
}

/* A ring that was busy is polled from then on, and not rung: only then is it looked at first. */
static void warm(struct pair *pair)
{
    struct receive receive;

    for (int i = 0; i < 300; i++) {
        send_int(pair, i, MATCH);
        if (i % 3 == 0)
            send_int(pair, i, MATCH);
        for (int k = 0; k < 1 + (i % 3 == 0); k++) {
            post(pair, &receive, pair->nodes[0].id, MATCH, 0);
            check_got(pair, &receive, i);
        }
    }
}

static struct pair pair_open(void)
{
    struct pair pair;

    nodes_open(pair.nodes, 2, NULL, false);
    pair.peer = node_connect(&pair.nodes[0], pair.nodes[1].id);
    warm(&pair);
    return pair;
}

TEST(a_polled_receive_gets_its_message_of_any_length)
{
    static const size_t lengths[] = {0,  1,   3,   4,   7,   8,    15,   16,    24,   31,
                                     32, 40,  47,  48,  49,  55,   56,   57,    63,   64,
                                     65, 120, 128, 248, 500, 1024, 4000, 16000, 60000};
    static unsigned char sent[60000], got[60002];
    struct pair pair = pair_open();

    for (size_t i = 0; i < sizeof(sent); i++)
        sent[i] = (unsigned char)(i * 7 + i / 251);
    for (int lap = 0; lap < 20; lap++) {
        for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
            struct velo_mq_request send = {0};
            struct receive receive = {0};
            memset(got, 0xee, sizeof(got));
            CHECK_OK(velo_mq_irecv(pair.nodes[1].mq, pair.nodes[0].id, MATCH, 0, got + 1,
                                   lengths[i], &receive.request));
            CHECK_OK(velo_mq_isend(pair.peer, sent, lengths[i], MATCH, 0, &send));
            CHECK_OK(poll(&pair, &receive));
            CHECK_EQ(receive.request.len_bytes, lengths[i]);
            CHECK_EQ(receive.request.match, MATCH);
            CHECK(memcmp(got + 1, sent, lengths[i]) == 0);
            CHECK_EQ(got[0], 0xee);
            CHECK_EQ(got[1 + lengths[i]], 0xee);
            CHECK_OK(velo_mq_poll(pair.nodes[0].mq, &send));
        }
    }
    nodes_close(pair.nodes, 2);
}

/* The ring comes round many times, and with it its pauses and its credits. */
TEST(polled_receives_get_a_stream_in_order)
{
    struct pair pair = pair_open();
    uint64_t before = node_counters(&pair.nodes[1]).received;
    struct receive receive;
    int sent = 0;

    for (int i = 0; i < (int)LAPS; i++) {
        while (sent < (int)LAPS && sent - i < 100 &&
               velo_mq_try_send(pair.peer, &sent, sizeof(sent), MATCH) == VELO_OK)
            sent++;
        post(&pair, &receive, pair.nodes[0].id, MATCH, 0);
        check_got(&pair, &receive, i);
    }
    CHECK_EQ(node_counters(&pair.nodes[1]).received - before, LAPS);
    CHECK_EQ(node_counters(&pair.nodes[1]).posted, 0);
    nodes_close(pair.nodes, 2);
}

TEST(a_polled_receive_does_not_overtake_one_posted_before)
{
    struct pair pair = pair_open();
    struct receive wild, same, last;
    velo_id_t from = pair.nodes[0].id;

    post(&pair, &wild, VELO_MQ_ANY_SOURCE, 0, UINT64_MAX);
    post(&pair, &last, from, MATCH, 0);
    send_int(&pair, 1, MATCH);
    send_int(&pair, 2, MATCH);
    check_got(&pair, &last, 2);
    check_got(&pair, &wild, 1);

    post(&pair, &same, from, MATCH, 0);
    post(&pair, &last, VELO_MQ_ANY_SOURCE, MATCH, 0);
    send_int(&pair, 3, MATCH);
    send_int(&pair, 4, MATCH);
    check_got(&pair, &last, 4);
    check_got(&pair, &same, 3);
    nodes_close(pair.nodes, 2);
}

/* Some of the others share a list with it. */
static void check_among_many_gets_its_own(void)
{
    enum { OTHERS = 1000 };
    static struct receive others[OTHERS];
    struct pair pair = pair_open();
    struct receive receive;

    for (int i = 0; i < OTHERS; i++)
        post(&pair, &others[i], i % 2 ? VELO_MQ_ANY_SOURCE : pair.nodes[0].id,
             MATCH + 1 + (uint64_t)(i / 2), 0);
    for (int i = 0; i < 100; i++) {
        post(&pair, &receive, pair.nodes[0].id, MATCH, 0);
        send_int(&pair, i, MATCH);
        check_got(&pair, &receive, i);
    }
    for (int i = OTHERS - 1; i >= 0; i--) {
        send_int(&pair, i, MATCH + 1 + (uint64_t)(i / 2));
        check_got(&pair, &others[i / 2 * 2 + (i % 2 == 0)], i);
    }
    nodes_close(pair.nodes, 2);
}

TEST(a_polled_receive_among_many_gets_its_own_message)
{
    with_both_lengths(check_among_many_gets_its_own);
}

TEST(a_message_that_came_before_wins_over_one_still_in_the_ring)
{
    struct pair pair = pair_open();
    struct receive receive;

    send_int(&pair, 1, MATCH);
    nodes_settle(pair.nodes, 2); /* It is kept. */
    send_int(&pair, 2, MATCH);
    for (int i = 1; i <= 2; i++) {
        post(&pair, &receive, pair.nodes[0].id, MATCH, 0);
        check_got(&pair, &receive, i);
    }
    nodes_close(pair.nodes, 2);
}

static void check_messages_for_others_that_stand_before_are_kept(void)
{
    struct pair pair = pair_open();
    struct velo_mq_info info;
    struct receive receive;

    send_int(&pair, 1, OTHER);
    send_int(&pair, 2, OTHER);
    send_int(&pair, 3, MATCH);
    post(&pair, &receive, pair.nodes[0].id, MATCH, 0);
    check_got(&pair, &receive, 3);
    CHECK_OK(velo_mq_try_probe(pair.nodes[1].mq, pair.nodes[0].id, OTHER, 0, &info));
    CHECK_EQ(info.len_bytes, item_bytes);
    for (int i = 1; i <= 2; i++) {
        post(&pair, &receive, VELO_MQ_ANY_SOURCE, OTHER, 0);
        check_got(&pair, &receive, i);
    }
    nodes_close(pair.nodes, 2);
}

TEST(messages_for_others_that_stand_before_are_kept)
{
    with_both_lengths(check_messages_for_others_that_stand_before_are_kept);
}

static void check_with_wildcards_looks_at_no_other_bits(void)
{
    struct pair pair = pair_open();
    struct receive receive;

    post(&pair, &receive, VELO_MQ_ANY_SOURCE, 0x100, 0xff);
    send_int(&pair, 1, 0x207);
    send_int(&pair, 2, 0x107);
    check_got(&pair, &receive, 2);
    CHECK_EQ(receive.request.match, 0x107);
    post(&pair, &receive, pair.nodes[0].id, 0x200, 0xff);
    check_got(&pair, &receive, 1);
    nodes_close(pair.nodes, 2);
}

TEST(a_polled_receive_with_wildcards_looks_at_no_other_bits)
{
    with_both_lengths(check_with_wildcards_looks_at_no_other_bits);
}

/* Only the other source's ring is busy, so its message is looked at first. */
static void check_takes_nothing_from_another_source(void)
{
    struct pair pair = pair_open();
    struct velo_mq_peer *self = node_connect(&pair.nodes[1], pair.nodes[1].id);
    struct receive receive;
    int two[LONG_ITEM / sizeof(int)] = {2};

    send_int(&pair, 1, MATCH);
    post(&pair, &receive, pair.nodes[1].id, MATCH, 0);
    for (int i = 0; i < 50; i++) {
        CHECK_STATUS(velo_mq_poll(pair.nodes[1].mq, &receive.request), VELO_AGAIN);
        (void)velo_mq_progress(pair.nodes[0].mq);
    }
    CHECK_OK(velo_mq_try_send(self, two, item_bytes, MATCH));
    CHECK_OK(poll(&pair, &receive));
    CHECK_EQ(receive.value, 2);
    CHECK_EQ(receive.request.source, pair.nodes[1].id);
    post(&pair, &receive, pair.nodes[0].id, MATCH, 0);
    check_got(&pair, &receive, 1);
    nodes_close(pair.nodes, 2);
}

TEST(a_polled_receive_takes_nothing_from_another_source)
{
    with_both_lengths(check_takes_nothing_from_another_source);
}

TEST(a_polled_receive_of_a_longer_message_says_that_it_was_truncated)
{
    static const size_t lengths[] = {9, 48, 49, 1000, 20000};
    static char sent[20000];
    struct pair pair = pair_open();

    memset(sent, 'x', sizeof(sent));
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        char got[9] = "........";
        struct velo_mq_request send = {0};
        struct receive receive = {0};
        CHECK_OK(
            velo_mq_irecv(pair.nodes[1].mq, pair.nodes[0].id, MATCH, 0, got, 8, &receive.request));
        CHECK_OK(velo_mq_isend(pair.peer, sent, lengths[i], MATCH, 0, &send));
        CHECK_STATUS(poll(&pair, &receive), VELO_ERR_TOO_BIG);
        CHECK_EQ(receive.request.len_bytes, 8);
        CHECK_EQ(receive.request.total_bytes, lengths[i]);
        CHECK(memcmp(got, "xxxxxxxx\0", 9) == 0);
        nodes_finish(pair.nodes, 2, &send);
    }
    nodes_close(pair.nodes, 2);
}

TEST(a_synchronous_send_hears_of_a_polled_receive)
{
    struct pair pair = pair_open();
    struct velo_mq_request send = {0};
    struct receive receive;
    int value = 5;

    post(&pair, &receive, pair.nodes[0].id, MATCH, 0);
    CHECK_OK(velo_mq_isend(pair.peer, &value, sizeof(value), MATCH, VELO_MQ_SYNC, &send));
    CHECK_STATUS(velo_mq_poll(pair.nodes[0].mq, &send), VELO_AGAIN);
    check_got(&pair, &receive, 5);
    nodes_finish(pair.nodes, 2, &send);
    CHECK_OK(send.status);
    nodes_close(pair.nodes, 2);
}

/* A send must not take the message of a receive, even if its match bits are the same. */
TEST(polling_for_a_send_takes_no_message_for_it)
{
    struct pair pair = pair_open();
    struct velo_mq_peer *back = node_connect(&pair.nodes[1], pair.nodes[0].id);
    struct velo_mq_request send = {0};
    struct receive other, same, sync;
    int value = 3;

    post(&pair, &other, pair.nodes[0].id, OTHER, 0);
    CHECK_OK(velo_mq_isend(back, &value, sizeof(value), MATCH, VELO_MQ_SYNC, &send));
    send_int(&pair, 1, MATCH);
    send_int(&pair, 2, OTHER);
    for (int i = 0; i < 50; i++) {
        CHECK_STATUS(velo_mq_poll(pair.nodes[1].mq, &send), VELO_AGAIN);
        (void)velo_mq_progress(pair.nodes[0].mq);
    }
    CHECK_EQ(value, 3);
    check_got(&pair, &other, 2);
    post(&pair, &same, pair.nodes[0].id, MATCH, 0);
    check_got(&pair, &same, 1);
    memset(&sync, 0, sizeof(sync));
    CHECK_OK(velo_mq_irecv(pair.nodes[0].mq, pair.nodes[1].id, MATCH, 0, &sync.value,
                           sizeof(sync.value), &sync.request));
    nodes_finish(pair.nodes, 2, &send);
    CHECK_OK(send.status);
    CHECK_EQ(sync.value, 3);
    nodes_close(pair.nodes, 2);
}

TEST(a_receive_that_was_polled_in_vain_can_be_cancelled)
{
    struct pair pair = pair_open();
    struct receive receive, later;

    post(&pair, &receive, pair.nodes[0].id, MATCH, 0);
    CHECK_STATUS(velo_mq_poll(pair.nodes[1].mq, &receive.request), VELO_AGAIN);
    CHECK_OK(velo_mq_cancel(pair.nodes[1].mq, &receive.request));
    CHECK_STATUS(velo_mq_poll(pair.nodes[1].mq, &receive.request), VELO_ERR_CANCELLED);
    send_int(&pair, 6, MATCH);
    post(&pair, &later, pair.nodes[0].id, MATCH, 0);
    check_got(&pair, &later, 6);
    CHECK_EQ(receive.value, 0);
    nodes_close(pair.nodes, 2);
}

static void note_done(struct velo_mq_request *request) { ++*(int *)request->user; }

TEST(polling_calls_done_once)
{
    struct pair pair = pair_open();
    struct receive receive = {.request.done = note_done};
    int count = 0;

    receive.request.user = &count;
    CHECK_OK(velo_mq_irecv(pair.nodes[1].mq, pair.nodes[0].id, MATCH, 0, &receive.value,
                           sizeof(receive.value), &receive.request));
    send_int(&pair, 1, MATCH);
    check_got(&pair, &receive, 1);
    CHECK_OK(velo_mq_poll(pair.nodes[1].mq, &receive.request));
    CHECK_EQ(count, 1);
    nodes_close(pair.nodes, 2);
}

TEST(polling_refuses_what_makes_no_sense)
{
    struct node node;
    struct velo_mq_request request = {0};

    nodes_open(&node, 1, NULL, false);
    CHECK_FAILS(velo_mq_poll(NULL, &request), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_poll(node.mq, NULL), VELO_ERR_ARG, "NULL");
    nodes_close(&node, 1);
}
