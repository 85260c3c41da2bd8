/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages, tagged and not, in each form of the calls and at each size. All of it is done between
 * two endpoints of one process; both ways of a message are tried: the receive is there first, and
 * the message is there first.
 */
#include <stdlib.h>
#include <string.h>

#include "side.h"

#define LEN_MAX (8u << 20)
#define TAG UINT64_C(0xfedcba9876543210)
#define DATA UINT64_C(0x8123456789abcdef)
#define SENT (FI_MSG | FI_SEND)
#define GOT (FI_MSG | FI_RECV)
#define TSENT (FI_TAGGED | FI_SEND)
#define TGOT (FI_TAGGED | FI_RECV)

static const struct side_attr plain = {0};
static const struct side_attr all = {.caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV};

/* Edges of what libraries carry at once: a line, a cell, a slot, a page, an eager limit. */
static const size_t lens[] = {0,     1,     8,     55,    56,    57,      63,
                              64,    65,    255,   256,   1023,  4095,    4096,
                              4097,  8191,  8192,  8193,  16383, 16384,   16385,
                              32768, 32769, 65535, 65536, 65537, 1 << 20, LEN_MAX};

enum form { PLAIN, VECTOR, MESSAGE, INJECT, WITH_DATA, INJECT_DATA };

static unsigned char *from, *into;
static struct fi_context2 sent, got;

static void buffers_open(void)
{
    from = malloc(LEN_MAX + 64);
    into = malloc(LEN_MAX + 64);
    CHECK(from && into);
}

static void buffers_close(void)
{
    free(from);
    free(into);
}

/* Cut into as many pieces as one may; returns how many. */
static size_t cut(struct iovec *iov, size_t limit, unsigned char *buf, size_t len)
{
    size_t pieces = limit < 4 ? limit : 4, at = 0;

    for (size_t i = 0; i < pieces; i++) {
        size_t piece = i + 1 < pieces ? len * (i + 1) / 10 : len - at;
        iov[i] = (struct iovec){buf + at, piece};
        at += piece;
    }
    return pieces;
}

static ssize_t post_send(struct side *side, enum form form, bool tagged, size_t len, fi_addr_t to)
{
    struct iovec iov[4];
    size_t pieces = cut(iov, side->info->tx_attr->iov_limit, from, len);
    struct fi_msg msg = {iov, NULL, pieces, to, &sent, DATA};
    struct fi_msg_tagged tmsg = {iov, NULL, pieces, to, TAG, 0, &sent, DATA};

    switch (form) {
    case PLAIN:
        return tagged ? fi_tsend(side->ep, from, len, NULL, to, TAG, &sent)
                      : fi_send(side->ep, from, len, NULL, to, &sent);
    case VECTOR:
        return tagged ? fi_tsendv(side->ep, iov, NULL, pieces, to, TAG, &sent)
                      : fi_sendv(side->ep, iov, NULL, pieces, to, &sent);
    case MESSAGE:
        return tagged ? fi_tsendmsg(side->ep, &tmsg, FI_REMOTE_CQ_DATA | FI_COMPLETION)
                      : fi_sendmsg(side->ep, &msg, FI_REMOTE_CQ_DATA | FI_COMPLETION);
    case INJECT:
        return tagged ? fi_tinject(side->ep, from, len, to, TAG)
                      : fi_inject(side->ep, from, len, to);
    case WITH_DATA:
        return tagged ? fi_tsenddata(side->ep, from, len, NULL, DATA, to, TAG, &sent)
                      : fi_senddata(side->ep, from, len, NULL, DATA, to, &sent);
    case INJECT_DATA:
        return tagged ? fi_tinjectdata(side->ep, from, len, DATA, to, TAG)
                      : fi_injectdata(side->ep, from, len, DATA, to);
    }
    return -FI_EINVAL;
}

static ssize_t post_recv(struct side *side, enum form form, bool tagged, size_t len)
{
    struct iovec iov[4];
    size_t pieces = cut(iov, side->info->rx_attr->iov_limit, into, len);
    struct fi_msg msg = {iov, NULL, pieces, FI_ADDR_UNSPEC, &got, 0};
    struct fi_msg_tagged tmsg = {iov, NULL, pieces, FI_ADDR_UNSPEC, TAG, 0, &got, 0};

    switch (form) {
    case VECTOR:
        return tagged ? fi_trecvv(side->ep, iov, NULL, pieces, FI_ADDR_UNSPEC, TAG, 0, &got)
                      : fi_recvv(side->ep, iov, NULL, pieces, FI_ADDR_UNSPEC, &got);
    case MESSAGE:
        return tagged ? fi_trecvmsg(side->ep, &tmsg, FI_COMPLETION)
                      : fi_recvmsg(side->ep, &msg, FI_COMPLETION);
    default:
        return tagged ? fi_trecv(side->ep, into, len, NULL, FI_ADDR_UNSPEC, TAG, 0, &got)
                      : fi_recv(side->ep, into, len, NULL, FI_ADDR_UNSPEC, &got);
    }
}

static void check_arrived(struct pair *pair, enum form form, bool tagged, size_t len, uint64_t seed)
{
    bool has_data = form == MESSAGE || form == WITH_DATA || form == INJECT_DATA;
    struct completion completion = next_ok(&pair->b, &got, tagged ? TGOT : GOT);

    CHECK_EQ(completion.entry.len, len);
    CHECK(pattern_matches(into, len, seed));
    for (size_t i = len; i < len + 8; i++)
        CHECK_EQ(into[i], 0x55);
    CHECK_EQ((completion.entry.flags & FI_REMOTE_CQ_DATA) != 0, has_data);
    if (has_data)
        CHECK(completion.entry.data == DATA);
    if (tagged)
        CHECK(completion.entry.tag == TAG);
}

static void carry(struct pair *pair, enum form send, enum form receive, bool tagged, size_t len,
                  bool is_expected)
{
    static uint64_t seed = 100;
    bool injects = send == INJECT || send == INJECT_DATA;

    seed++;
    pattern_fill(from, len, seed);
    memset(into, 0x55, len + 8);
    if (is_expected)
        POST(post_recv(&pair->b, receive, tagged, len));
    POST(post_send(&pair->a, send, tagged, len, pair->to_b));
    if (injects)
        memset(from, 0xaa, len);
    if (!is_expected) {
        for (int i = 0; i < 20; i++)
            sides_progress();
        POST(post_recv(&pair->b, receive, tagged, len));
    }
    check_arrived(pair, send, tagged, len, seed);
    if (!injects)
        next_ok(&pair->a, &sent, tagged ? TSENT : SENT);
    CHECK_EQ(kept(&pair->a), 0);
    CHECK_EQ(kept(&pair->b), 0);
}

static void carries_every_size(enum form send, enum form receive, bool tagged)
{
    struct pair pair;
    size_t inject_max;

    pair_open(&pair, &plain);
    buffers_open();
    inject_max = pair.a.info->tx_attr->inject_size;
    if (send == INJECT || send == INJECT_DATA) {
        size_t sizes[] = {0, 1, 8, inject_max / 2, inject_max > 0 ? inject_max - 1 : 0, inject_max};
        for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
            carry(&pair, send, receive, tagged, sizes[i], true);
            carry(&pair, send, receive, tagged, sizes[i], false);
        }
    } else {
        size_t edges[] = {inject_max - 1, inject_max, inject_max + 1};
        for (size_t i = 0; i < ARRAY_LEN(edges) && inject_max > 0; i++)
            carry(&pair, send, receive, tagged, edges[i], i % 2);
        for (size_t i = 0; i < ARRAY_LEN(lens) && lens[i] <= longest(); i++) {
            carry(&pair, send, receive, tagged, lens[i], true);
            carry(&pair, send, receive, tagged, lens[i], false);
        }
    }
    nothing_more(&pair.a);
    nothing_more(&pair.b);
    buffers_close();
    pair_close(&pair);
}

TEST(messages_of_every_size_arrive_by_send) { carries_every_size(PLAIN, PLAIN, false); }
TEST(messages_of_every_size_arrive_by_sendv) { carries_every_size(VECTOR, PLAIN, false); }
TEST(messages_of_every_size_arrive_by_sendmsg) { carries_every_size(MESSAGE, PLAIN, false); }
TEST(messages_of_every_size_arrive_by_inject) { carries_every_size(INJECT, PLAIN, false); }
TEST(messages_of_every_size_arrive_by_senddata) { carries_every_size(WITH_DATA, PLAIN, false); }
TEST(messages_of_every_size_arrive_by_injectdata) { carries_every_size(INJECT_DATA, PLAIN, false); }
TEST(messages_of_every_size_arrive_in_recvv) { carries_every_size(PLAIN, VECTOR, false); }
TEST(messages_of_every_size_arrive_in_recvmsg) { carries_every_size(VECTOR, MESSAGE, false); }
TEST(tagged_messages_of_every_size_arrive_by_tsend) { carries_every_size(PLAIN, PLAIN, true); }
TEST(tagged_messages_of_every_size_arrive_by_tsendv) { carries_every_size(VECTOR, PLAIN, true); }
TEST(tagged_messages_of_every_size_arrive_by_tsendmsg) { carries_every_size(MESSAGE, PLAIN, true); }
TEST(tagged_messages_of_every_size_arrive_by_tinject) { carries_every_size(INJECT, PLAIN, true); }
TEST(tagged_messages_of_every_size_arrive_by_tsenddata)
{
    carries_every_size(WITH_DATA, PLAIN, true);
}
TEST(tagged_messages_of_every_size_arrive_by_tinjectdata)
{
    carries_every_size(INJECT_DATA, PLAIN, true);
}
TEST(tagged_messages_of_every_size_arrive_in_trecvv) { carries_every_size(PLAIN, VECTOR, true); }
TEST(tagged_messages_of_every_size_arrive_in_trecvmsg)
{
    carries_every_size(VECTOR, MESSAGE, true);
}

TEST(pieces_beyond_the_limit_are_refused)
{
    struct pair pair;
    struct iovec iov[256];
    char byte = 0;
    size_t too_many;

    pair_open(&pair, &plain);
    too_many = pair.a.info->tx_attr->iov_limit + 1;
    if (too_many > ARRAY_LEN(iov))
        test_skip("any number of pieces is allowed");
    for (size_t i = 0; i < too_many; i++)
        iov[i] = (struct iovec){&byte, 1};
    if (!is_velo())
        test_skip("others abort");
    CHECK(fi_sendv(pair.a.ep, iov, NULL, too_many, pair.to_b, &sent) < 0);
    CHECK(fi_tsendv(pair.a.ep, iov, NULL, too_many, pair.to_b, 0, &sent) < 0);
    CHECK(fi_recvv(pair.a.ep, iov, NULL, too_many, FI_ADDR_UNSPEC, &got) < 0);
    nothing_more(&pair.a);
    pair_close(&pair);
}

TEST(an_inject_beyond_the_limit_is_refused)
{
    struct pair pair;
    size_t len;

    if (!is_velo())
        test_skip("others abort or accept");
    pair_open(&pair, &plain);
    buffers_open();
    len = pair.a.info->tx_attr->inject_size + 1;
    CHECK(fi_inject(pair.a.ep, from, len, pair.to_b) < 0);
    CHECK(fi_tinject(pair.a.ep, from, len, pair.to_b, 0) < 0);
    nothing_more(&pair.b);
    buffers_close();
    pair_close(&pair);
}

TEST(a_message_beyond_the_limit_is_refused)
{
    struct pair pair;
    size_t len;

    if (!is_velo())
        test_skip("others abort or accept");
    pair_open(&pair, &plain);
    len = pair.a.info->ep_attr->max_msg_size;
    if (len == SIZE_MAX)
        test_skip("no message is too large");
    CHECK(fi_send(pair.a.ep, &sent, len + 1, NULL, pair.to_b, &sent) < 0);
    CHECK(fi_tsend(pair.a.ep, &sent, len + 1, NULL, pair.to_b, 0, &sent) < 0);
    pair_close(&pair);
}

TEST(a_send_with_the_flag_of_inject_copies_the_message)
{
    struct pair pair;
    struct iovec iov;
    struct fi_msg msg = {&iov, NULL, 1, 0, &sent, 0};

    pair_open(&pair, &plain);
    buffers_open();
    iov = (struct iovec){from, 8};
    msg.addr = pair.to_b;
    pattern_fill(from, 8, 1);
    POST(fi_sendmsg(pair.a.ep, &msg, FI_INJECT | FI_COMPLETION));
    memset(from, 0, 8);
    POST(fi_recv(pair.b.ep, into, 8, NULL, FI_ADDR_UNSPEC, &got));
    next_ok(&pair.b, &got, GOT);
    CHECK(pattern_matches(into, 8, 1));
    next_ok(&pair.a, &sent, SENT);
    buffers_close();
    pair_close(&pair);
}

/* In a job of so many the rings are too small for it. */
TEST(an_inject_that_fits_no_ring_goes_from_a_copy)
{
    struct pair pair;
    const struct side_attr crowd = {.av_count = 100};

    if (!is_velo() || longest() < 16384)
        test_skip("others have other limits");
    pair_open(&pair, &crowd);
    buffers_open();
    size_t len = pair.a.info->tx_attr->inject_size;
    for (uint64_t i = 1; i <= 3; i++) {
        pattern_fill(from, len, i);
        POST(fi_tinjectdata(pair.a.ep, from, len, i, pair.to_b, i));
        memset(from, 0, len);
        CHECK_REFUSED(fi_tinject(pair.a.ep, from, len, pair.to_b, i),
                      FI_EAGAIN); /* One at a time. */
        POST(fi_trecv(pair.b.ep, into, len, NULL, FI_ADDR_UNSPEC, i, 0, &got));
        CHECK_EQ(next_ok(&pair.b, &got, TGOT).entry.data, i);
        CHECK(pattern_matches(into, len, i));
    }
    nothing_more(&pair.a);
    nothing_more(&pair.b);
    buffers_close();
    pair_close(&pair);
}

/* Its room is there; with smaller rings it would be announced, and its send would last until then.
 */
TEST(a_message_of_16_kib_waits_for_no_receive)
{
    struct pair pair;
    const size_t len = 16384;

    if (!is_velo() || longest() < len)
        test_skip("velo promises that, where messages are so long");
    pair_open(&pair, &plain);
    buffers_open();
    pattern_fill(from, len, 1);
    POST(fi_tsenddata(pair.a.ep, from, len, NULL, 0, pair.to_b, 1, &sent));
    next_ok(&pair.a, &sent, TSENT);
    POST(fi_trecv(pair.b.ep, into, len, NULL, FI_ADDR_UNSPEC, 1, 0, &got));
    next_ok(&pair.b, &got, TGOT);
    CHECK(pattern_matches(into, len, 1));
    buffers_close();
    pair_close(&pair);
}

/* Lengths of a stream that goes through all ways of carrying. */
static size_t len_of(unsigned i)
{
    static const size_t some[] = {8, 0, 100, 1, 5000, 64, 20000, 3, 70000, 40};

    return some[i % ARRAY_LEN(some)];
}

static void keeps_order(bool tagged, bool is_expected)
{
    enum { COUNT = 300 };
    static struct fi_context2 sends[COUNT], receives[COUNT];
    struct pair pair;
    unsigned char *outs[COUNT], *ins[COUNT];
    struct completion completion;

    pair_open(&pair, &plain);
    for (unsigned i = 0; i < COUNT; i++) {
        outs[i] = malloc(70000);
        ins[i] = malloc(70000);
        CHECK(outs[i] && ins[i]);
        pattern_fill(outs[i], len_of(i), i);
    }
    for (int round = 0; round < 2; round++) {
        for (unsigned i = 0; i < COUNT && (round == 0) == is_expected; i++)
            POST(tagged
                     ? fi_trecv(pair.b.ep, ins[i], 70000, NULL, FI_ADDR_UNSPEC, 7, 0, &receives[i])
                     : fi_recv(pair.b.ep, ins[i], 70000, NULL, FI_ADDR_UNSPEC, &receives[i]));
        for (unsigned i = 0; i < COUNT && (round == 1) == is_expected; i++)
            POST(tagged ? fi_tsend(pair.a.ep, outs[i], len_of(i), NULL, pair.to_b, 7, &sends[i])
                        : fi_send(pair.a.ep, outs[i], len_of(i), NULL, pair.to_b, &sends[i]));
    }
    /* Matched in order; completed in any. */
    for (unsigned i = 0; i < COUNT; i++) {
        completion = next(&pair.b);
        CHECK_EQ(completion.error, 0);
        ptrdiff_t index = (struct fi_context2 *)completion.entry.op_context - receives;
        CHECK(index >= 0 && index < COUNT);
        CHECK_EQ(completion.entry.len, len_of((unsigned)index));
        CHECK(pattern_matches(ins[index], len_of((unsigned)index), (uint64_t)index));
    }
    for (unsigned i = 0; i < COUNT; i++)
        CHECK_EQ(next(&pair.a).error, 0);
    nothing_more(&pair.b);
    nothing_more(&pair.a);
    for (unsigned i = 0; i < COUNT; i++) {
        free(outs[i]);
        free(ins[i]);
    }
    pair_close(&pair);
}

TEST(messages_match_receives_in_the_order_of_both) { keeps_order(false, true); }
TEST(messages_that_wait_match_in_their_order) { keeps_order(false, false); }
TEST(tagged_messages_match_receives_in_the_order_of_both) { keeps_order(true, true); }
TEST(tagged_messages_that_wait_match_in_their_order) { keeps_order(true, false); }

TEST(a_message_to_oneself_arrives)
{
    struct pair pair;
    static const size_t some[] = {0, 8, 5000, 300000};

    pair_open(&pair, &plain);
    buffers_open();
    for (unsigned i = 0; i < 2 * ARRAY_LEN(some); i++) {
        size_t len = some[i / 2];
        bool tagged = i % 2;

        pattern_fill(from, len, i);
        POST(post_recv(&pair.a, PLAIN, tagged, len));
        POST(post_send(&pair.a, PLAIN, tagged, len, pair.a_to_a));
        UNTIL(kept(&pair.a) == 2);
        for (int j = 0; j < 2; j++) {
            struct completion completion = next(&pair.a);
            CHECK_EQ(completion.error, 0);
            if (completion.entry.op_context == &got)
                CHECK_EQ(completion.entry.len, len);
            else
                CHECK(completion.entry.op_context == &sent);
        }
        CHECK(pattern_matches(into, len, i));
    }
    nothing_more(&pair.a);
    buffers_close();
    pair_close(&pair);
}

TEST(an_unexpected_message_to_oneself_arrives)
{
    struct pair pair;
    static const size_t some[] = {8, 300000};

    pair_open(&pair, &plain);
    buffers_open();
    for (unsigned i = 0; i < 4; i++) {
        size_t len = some[i / 2];

        pattern_fill(from, len, i);
        POST(post_send(&pair.a, PLAIN, i % 2, len, pair.a_to_a));
        for (int j = 0; j < 20; j++)
            sides_progress();
        POST(post_recv(&pair.a, PLAIN, i % 2, len));
        UNTIL(kept(&pair.a) == 2);
        CHECK_EQ(next(&pair.a).error + next(&pair.a).error, 0);
        CHECK(pattern_matches(into, len, i));
    }
    buffers_close();
    pair_close(&pair);
}

/* --- matching
 * -----------------------------------------------------------------------------------*/

static struct fi_context2 contexts[16];
static char texts[16][64];

static void tsend(struct pair *pair, const char *text, uint64_t tag)
{
    POST(fi_tsend(pair->a.ep, text, strlen(text) + 1, NULL, pair->to_b, tag, &sent));
    next_ok(&pair->a, &sent, TSENT);
}

static void trecv(struct side *side, int i, uint64_t tag, uint64_t ignore)
{
    memset(texts[i], 0, sizeof(texts[i]));
    POST(fi_trecv(side->ep, texts[i], sizeof(texts[i]), NULL, FI_ADDR_UNSPEC, tag, ignore,
                  &contexts[i]));
}

static void expect(struct side *side, int i, const char *text, uint64_t tag)
{
    struct completion completion = next_ok(side, &contexts[i], TGOT);

    CHECK_EQ(completion.entry.len, strlen(text) + 1);
    CHECK(completion.entry.tag == tag);
    CHECK_EQ(strcmp(texts[i], text), 0);
}

TEST(a_tag_matches_all_its_64_bits)
{
    struct pair pair;

    pair_open(&pair, &plain);
    for (int bit = 0; bit < 64; bit++) {
        trecv(&pair.b, 0, 1ULL << bit, 0);
        tsend(&pair, "wrong", bit ? 0 : 2);
        tsend(&pair, "right", 1ULL << bit);
        expect(&pair.b, 0, "right", 1ULL << bit);
        trecv(&pair.b, 1, bit ? 0 : 2, 0);
        expect(&pair.b, 1, "wrong", bit ? 0 : 2);
    }
    nothing_more(&pair.b);
    pair_close(&pair);
}

TEST(ignored_bits_match_anything)
{
    struct pair pair;

    pair_open(&pair, &plain);
    trecv(&pair.b, 0, 0xab00, 0x00ff);
    tsend(&pair, "not this", 0xac12);
    tsend(&pair, "this", 0xab12);
    expect(&pair.b, 0, "this", 0xab12);
    trecv(&pair.b, 1, 0, ~(uint64_t)0);
    expect(&pair.b, 1, "not this", 0xac12);
    trecv(&pair.b, 2, 0xffff0000ffff0000, 0xffff0000ffff0000);
    tsend(&pair, "ignored bits of the receive's tag count for nothing", 0);
    expect(&pair.b, 2, "ignored bits of the receive's tag count for nothing", 0);
    pair_close(&pair);
}

TEST(the_first_receive_that_fits_is_matched)
{
    struct pair pair;

    pair_open(&pair, &plain);
    trecv(&pair.b, 0, 5, 0);
    trecv(&pair.b, 1, 0, ~(uint64_t)0);
    trecv(&pair.b, 2, 6, 0);
    trecv(&pair.b, 3, 6, 0);
    tsend(&pair, "first six", 6);
    expect(&pair.b, 1, "first six", 6);
    tsend(&pair, "second six", 6);
    expect(&pair.b, 2, "second six", 6);
    tsend(&pair, "five", 5);
    expect(&pair.b, 0, "five", 5);
    tsend(&pair, "third six", 6);
    expect(&pair.b, 3, "third six", 6);
    pair_close(&pair);
}

TEST(the_first_message_that_fits_is_matched)
{
    struct pair pair;

    pair_open(&pair, &plain);
    tsend(&pair, "one", 1);
    tsend(&pair, "two", 2);
    tsend(&pair, "another one", 1);
    tsend(&pair, "three", 3);
    sides_settle();
    trecv(&pair.b, 0, 2, 0);
    expect(&pair.b, 0, "two", 2);
    trecv(&pair.b, 1, 0, ~(uint64_t)0);
    expect(&pair.b, 1, "one", 1);
    trecv(&pair.b, 2, 3, 0);
    expect(&pair.b, 2, "three", 3);
    trecv(&pair.b, 3, 0, ~(uint64_t)0);
    expect(&pair.b, 3, "another one", 1);
    pair_close(&pair);
}

TEST(tagged_and_plain_messages_never_mix)
{
    struct pair pair;
    char text[64];

    pair_open(&pair, &plain);
    trecv(&pair.b, 0, 0, ~(uint64_t)0);
    POST(fi_recv(pair.b.ep, text, sizeof(text), NULL, FI_ADDR_UNSPEC, &got));
    POST(fi_send(pair.a.ep, "plain", 6, NULL, pair.to_b, &sent));
    next_ok(&pair.a, &sent, SENT);
    next_ok(&pair.b, &got, GOT);
    CHECK_EQ(strcmp(text, "plain"), 0);
    nothing_more(&pair.b);
    POST(fi_send(pair.a.ep, "later", 6, NULL, pair.to_b, &sent));
    next_ok(&pair.a, &sent, SENT);
    nothing_more(&pair.b);
    tsend(&pair, "tagged", 0);
    expect(&pair.b, 0, "tagged", 0);
    POST(fi_recv(pair.b.ep, text, sizeof(text), NULL, FI_ADDR_UNSPEC, &got));
    next_ok(&pair.b, &got, GOT);
    CHECK_EQ(strcmp(text, "later"), 0);
    pair_close(&pair);
}

TEST(a_directed_receive_takes_messages_of_its_source_alone)
{
    struct pair pair;
    struct side third;
    fi_addr_t third_to_b, b_to_third;
    char first[64], second[64];

    pair_open(&pair, &all);
    side_open(&third, &all);
    third_to_b = side_learn(&third, &pair.b);
    b_to_third = side_learn(&pair.b, &third);
    for (int early = 0; early < 2; early++) {
        if (early)
            POST(fi_recv(pair.b.ep, first, sizeof(first), NULL, pair.to_a, &got));
        POST(fi_send(third.ep, "of third", 9, NULL, third_to_b, &sent));
        next_ok(&third, &sent, SENT);
        nothing_more(&pair.b);
        POST(fi_send(pair.a.ep, "of a", 5, NULL, pair.to_b, &sent));
        next_ok(&pair.a, &sent, SENT);
        if (!early)
            POST(fi_recv(pair.b.ep, first, sizeof(first), NULL, pair.to_a, &got));
        struct completion completion = next_ok(&pair.b, &got, GOT);
        CHECK_EQ(strcmp(first, "of a"), 0);
        CHECK_EQ(completion.source, pair.to_a);
        POST(fi_recv(pair.b.ep, second, sizeof(second), NULL, b_to_third, &got));
        completion = next_ok(&pair.b, &got, GOT);
        CHECK_EQ(strcmp(second, "of third"), 0);
        CHECK_EQ(completion.source, b_to_third);
    }
    side_close(&third);
    pair_close(&pair);
}

TEST(a_directed_tagged_receive_takes_messages_of_its_source_alone)
{
    struct pair pair;
    struct side third;
    fi_addr_t third_to_b, b_to_third;

    pair_open(&pair, &all);
    side_open(&third, &all);
    third_to_b = side_learn(&third, &pair.b);
    b_to_third = side_learn(&pair.b, &third);
    POST(fi_trecv(pair.b.ep, texts[0], 64, NULL, pair.to_a, 5, 0, &contexts[0]));
    POST(fi_trecv(pair.b.ep, texts[1], 64, NULL, b_to_third, 0, ~(uint64_t)0, &contexts[1]));
    POST(fi_tsend(third.ep, "one", 4, NULL, third_to_b, 5, &sent));
    next_ok(&third, &sent, TSENT);
    expect(&pair.b, 1, "one", 5);
    POST(fi_tsend(third.ep, "two", 4, NULL, third_to_b, 5, &sent));
    next_ok(&third, &sent, TSENT);
    nothing_more(&pair.b);
    tsend(&pair, "mine", 5);
    expect(&pair.b, 0, "mine", 5);
    trecv(&pair.b, 2, 5, 0);
    expect(&pair.b, 2, "two", 5);
    side_close(&third);
    pair_close(&pair);
}

TEST(the_source_of_each_message_is_told)
{
    struct pair pair;
    struct side third;
    fi_addr_t third_to_b, b_to_third;

    pair_open(&pair, &all);
    side_open(&third, &all);
    third_to_b = side_learn(&third, &pair.b);
    b_to_third = side_learn(&pair.b, &third);
    CHECK(b_to_third != pair.to_a);
    for (int i = 0; i < 10; i++) {
        struct side *source = i % 3 ? &third : &pair.a;

        trecv(&pair.b, 0, 0, ~(uint64_t)0);
        POST(fi_tsend(source->ep, "hello", 6, NULL, i % 3 ? third_to_b : pair.to_b, 1, &sent));
        next_ok(source, &sent, TSENT);
        CHECK_EQ(next_ok(&pair.b, &contexts[0], TGOT).source, i % 3 ? b_to_third : pair.to_a);
    }
    side_close(&third);
    pair_close(&pair);
}

/* --- peeking
 * ------------------------------------------------------------------------------------*/

static ssize_t peek(struct side *side, uint64_t tag, uint64_t ignore, uint64_t flags, void *context)
{
    struct fi_msg_tagged msg = {
        .addr = FI_ADDR_UNSPEC, .tag = tag, .ignore = ignore, .context = context};

    return fi_trecvmsg(side->ep, &msg, FI_PEEK | FI_COMPLETION | flags);
}

/* Peek until it is there. */
static struct completion found(struct side *side, uint64_t tag, uint64_t ignore, uint64_t flags)
{
    struct completion completion;

    for (int i = 0;; i++) {
        CHECK(i < 10000);
        ssize_t status = peek(side, tag, ignore, flags, &contexts[15]);
        if (status == -FI_ENOMSG)
            continue;
        CHECK_FI(status);
        completion = next(side);
        CHECK(completion.entry.op_context == &contexts[15]);
        if (completion.error == FI_ENOMSG)
            continue;
        CHECK_EQ(completion.error, 0);
        return completion;
    }
}

static void not_found(struct side *side, uint64_t tag)
{
    ssize_t status = peek(side, tag, 0, 0, &contexts[14]);

    if (status == -FI_ENOMSG)
        return;
    CHECK_FI(status);
    next_error(side, &contexts[14], FI_ENOMSG);
}

TEST(a_peek_at_nothing_finds_nothing)
{
    struct pair pair;

    pair_open(&pair, &plain);
    not_found(&pair.b, 1);
    tsend(&pair, "something else", 2);
    sides_settle();
    not_found(&pair.b, 1);
    trecv(&pair.b, 0, 2, 0);
    expect(&pair.b, 0, "something else", 2);
    pair_close(&pair);
}

TEST(a_peek_tells_of_a_message_and_leaves_it)
{
    struct pair pair;
    struct completion completion;

    pair_open(&pair, &plain);
    POST(fi_tsenddata(pair.a.ep, "peeked", 7, NULL, DATA, pair.to_b, 77, &sent));
    next_ok(&pair.a, &sent, TSENT);
    for (int i = 0; i < 3; i++) {
        completion = found(&pair.b, 0, ~(uint64_t)0, 0);
        CHECK_EQ(completion.entry.len, 7);
        CHECK_EQ(completion.entry.tag, 77);
        CHECK(completion.entry.data == DATA);
    }
    trecv(&pair.b, 0, 77, 0);
    expect(&pair.b, 0, "peeked", 77);
    not_found(&pair.b, 77);
    pair_close(&pair);
}

TEST(a_peek_tells_of_a_large_message)
{
    struct pair pair;

    pair_open(&pair, &plain);
    buffers_open();
    pattern_fill(from, 1 << 20, 9);
    POST(post_send(&pair.a, PLAIN, true, 1 << 20, pair.to_b));
    CHECK_EQ(found(&pair.b, TAG, 0, 0).entry.len, 1 << 20);
    POST(post_recv(&pair.b, PLAIN, true, 1 << 20));
    next_ok(&pair.b, &got, TGOT);
    CHECK(pattern_matches(into, 1 << 20, 9));
    next_ok(&pair.a, &sent, TSENT);
    buffers_close();
    pair_close(&pair);
}

/* Take the message that context 15 has claimed. */
static void take_claimed(struct side *side, void *buf, size_t len, uint64_t tag, uint64_t flags)
{
    struct iovec iov = {buf, len};
    struct fi_msg_tagged msg = {.msg_iov = &iov,
                                .iov_count = len ? 1 : 0,
                                .addr = FI_ADDR_UNSPEC,
                                .tag = tag,
                                .context = &contexts[15]};

    CHECK_FI(fi_trecvmsg(side->ep, &msg, FI_CLAIM | FI_COMPLETION | flags));
}

TEST(a_claimed_message_is_for_its_claimer_alone)
{
    struct pair pair;

    pair_open(&pair, &plain);
    tsend(&pair, "claimed", 3);
    CHECK_EQ(found(&pair.b, 3, 0, FI_CLAIM).entry.len, 8);
    not_found(&pair.b, 3);
    trecv(&pair.b, 0, 3, 0);
    nothing_more(&pair.b);
    take_claimed(&pair.b, texts[1], 64, 3, 0);
    CHECK_EQ(next_ok(&pair.b, &contexts[15], TGOT).entry.len, 8);
    CHECK_EQ(strcmp(texts[1], "claimed"), 0);
    tsend(&pair, "next", 3);
    expect(&pair.b, 0, "next", 3);
    pair_close(&pair);
}

TEST(a_large_message_is_claimed)
{
    struct pair pair;

    pair_open(&pair, &plain);
    buffers_open();
    pattern_fill(from, 1 << 20, 9);
    POST(post_send(&pair.a, PLAIN, true, 1 << 20, pair.to_b));
    CHECK_EQ(found(&pair.b, TAG, 0, FI_CLAIM).entry.len, 1 << 20);
    take_claimed(&pair.b, into, 1 << 20, TAG, 0);
    next_ok(&pair.b, &contexts[15], TGOT);
    CHECK(pattern_matches(into, 1 << 20, 9));
    next_ok(&pair.a, &sent, TSENT);
    buffers_close();
    pair_close(&pair);
}

TEST(a_claimed_message_is_discarded)
{
    struct pair pair;

    pair_open(&pair, &plain);
    tsend(&pair, "unwanted", 3);
    found(&pair.b, 3, 0, FI_CLAIM);
    take_claimed(&pair.b, NULL, 0, 3, FI_DISCARD);
    next_ok(&pair.b, &contexts[15], TGOT);
    not_found(&pair.b, 3);
    tsend(&pair, "wanted", 3);
    trecv(&pair.b, 0, 3, 0);
    expect(&pair.b, 0, "wanted", 3);
    pair_close(&pair);
}

TEST(a_peek_with_discard_removes_the_message)
{
    struct pair pair;

    pair_open(&pair, &plain);
    buffers_open();
    tsend(&pair, "unwanted", 3);
    found(&pair.b, 3, 0, FI_DISCARD);
    not_found(&pair.b, 3);
    POST(post_send(&pair.a, PLAIN, true, 1 << 20, pair.to_b));
    found(&pair.b, TAG, 0, FI_DISCARD);
    next_ok(&pair.a, &sent, TSENT);
    tsend(&pair, "wanted", 3);
    trecv(&pair.b, 0, 0, ~(uint64_t)0);
    expect(&pair.b, 0, "wanted", 3);
    buffers_close();
    pair_close(&pair);
}

/* --- truncation, cancelling
 * ---------------------------------------------------------------------*/

static void cuts(bool tagged, size_t len, bool is_expected)
{
    struct pair pair;
    struct completion completion;
    size_t room = len / 2;

    pair_open(&pair, &plain);
    buffers_open();
    pattern_fill(from, len, 1);
    memset(into, 0x55, len);
    if (is_expected)
        POST(post_recv(&pair.b, PLAIN, tagged, room));
    POST(post_send(&pair.a, PLAIN, tagged, len, pair.to_b));
    if (!is_expected) {
        for (int i = 0; i < 20; i++)
            sides_progress();
        POST(post_recv(&pair.b, PLAIN, tagged, room));
    }
    completion = next_error(&pair.b, &got, FI_ETRUNC);
    CHECK_EQ(completion.olen, len - room);
    CHECK_EQ(completion.entry.flags & (tagged ? TGOT : GOT), tagged ? TGOT : GOT);
    if (tagged)
        CHECK(completion.entry.tag == TAG);
    for (size_t i = room; i < len; i++)
        CHECK_EQ(into[i], 0x55);
    (void)next(&pair.a); /* Its send may be told a success or not. */
    pattern_fill(from, 100, 2);
    POST(post_recv(&pair.b, PLAIN, tagged, 100));
    POST(post_send(&pair.a, PLAIN, tagged, 100, pair.to_b));
    next_ok(&pair.b, &got, tagged ? TGOT : GOT);
    CHECK(pattern_matches(into, 100, 2));
    next_ok(&pair.a, &sent, tagged ? TSENT : SENT);
    buffers_close();
    pair_close(&pair);
}

static void cuts_all(bool tagged)
{
    static const size_t some[] = {2, 100, 6000, 1 << 20};

    for (size_t i = 0; i < ARRAY_LEN(some); i++) {
        cuts(tagged, some[i], true);
        cuts(tagged, some[i], false);
    }
}

TEST(a_message_without_room_is_cut_and_the_rest_is_told) { cuts_all(false); }
TEST(a_tagged_message_without_room_is_cut_and_the_rest_is_told) { cuts_all(true); }

static void cancels(bool tagged)
{
    struct pair pair;
    struct completion completion;
    static struct fi_context2 kept_context;
    char text[64] = "untouched", second[64];

    pair_open(&pair, &plain);
    if (tagged) {
        POST(fi_trecv(pair.b.ep, text, sizeof(text), NULL, FI_ADDR_UNSPEC, 1, 0, &got));
        POST(
            fi_trecv(pair.b.ep, second, sizeof(second), NULL, FI_ADDR_UNSPEC, 1, 0, &kept_context));
    } else {
        POST(fi_recv(pair.b.ep, text, sizeof(text), NULL, FI_ADDR_UNSPEC, &got));
        POST(fi_recv(pair.b.ep, second, sizeof(second), NULL, FI_ADDR_UNSPEC, &kept_context));
    }
    CHECK_FI(fi_cancel(&pair.b.ep->fid, &got));
    completion = next_error(&pair.b, &got, FI_ECANCELED);
    CHECK_EQ(completion.entry.flags & FI_RECV, FI_RECV);
    if (tagged)
        POST(fi_tsend(pair.a.ep, "second", 7, NULL, pair.to_b, 1, &sent));
    else
        POST(fi_send(pair.a.ep, "second", 7, NULL, pair.to_b, &sent));
    next_ok(&pair.b, &kept_context, FI_RECV);
    CHECK_EQ(strcmp(second, "second"), 0);
    CHECK_EQ(strcmp(text, "untouched"), 0);
    next_ok(&pair.a, &sent, FI_SEND);
    nothing_more(&pair.b);
    pair_close(&pair);
}

TEST(a_receive_is_cancelled) { cancels(false); }
TEST(a_tagged_receive_is_cancelled) { cancels(true); }

TEST(what_is_not_posted_is_not_cancelled)
{
    struct pair pair;

    pair_open(&pair, &plain);
    (void)fi_cancel(&pair.b.ep->fid, &contexts[3]);
    nothing_more(&pair.b);
    trecv(&pair.b, 0, 1, 0);
    tsend(&pair, "matched", 1);
    sides_settle();
    (void)fi_cancel(&pair.b.ep->fid, &contexts[0]);
    expect(&pair.b, 0, "matched", 1);
    nothing_more(&pair.b);
    pair_close(&pair);
}

TEST(a_thousand_receives_are_cancelled_in_any_order)
{
    enum { COUNT = 1000 };
    static struct fi_context2 many[COUNT];
    struct pair pair;
    char byte;

    pair_open(&pair, &plain);
    for (int i = 0; i < COUNT; i++)
        POST(fi_trecv(pair.b.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, (uint64_t)i, 0, &many[i]));
    for (int i = 0; i < COUNT; i++) {
        int which = (i * 387) % COUNT;
        CHECK_FI(fi_cancel(&pair.b.ep->fid, &many[which]));
        next_error(&pair.b, &many[which], FI_ECANCELED);
    }
    nothing_more(&pair.b);
    pair_close(&pair);
}

/* --- delivery
 * -----------------------------------------------------------------------------------*/

static void waits_for_delivery(bool tagged, size_t len)
{
    struct pair pair;
    struct iovec iov;
    struct fi_msg msg = {&iov, NULL, 1, 0, &sent, 0};
    struct fi_msg_tagged tmsg = {&iov, NULL, 1, 0, TAG, 0, &sent, 0};

    pair_open(&pair, &plain);
    buffers_open();
    iov = (struct iovec){from, len};
    msg.addr = tmsg.addr = pair.to_b;
    pattern_fill(from, len, 3);
    POST(tagged ? fi_tsendmsg(pair.a.ep, &tmsg, FI_DELIVERY_COMPLETE | FI_COMPLETION)
                : fi_sendmsg(pair.a.ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION));
    nothing_more(&pair.a);
    POST(post_recv(&pair.b, PLAIN, tagged, len));
    next_ok(&pair.b, &got, tagged ? TGOT : GOT);
    CHECK(pattern_matches(into, len, 3));
    next_ok(&pair.a, &sent, tagged ? TSENT : SENT);
    nothing_more(&pair.a);
    buffers_close();
    pair_close(&pair);
}

TEST(a_send_that_waits_for_delivery_is_not_done_before_the_match)
{
    waits_for_delivery(false, 8);
    waits_for_delivery(false, 0);
    waits_for_delivery(false, 5000);
    waits_for_delivery(false, 1 << 20);
}

TEST(a_tagged_send_that_waits_for_delivery_is_not_done_before_the_match)
{
    waits_for_delivery(true, 8);
    waits_for_delivery(true, 0);
    waits_for_delivery(true, 5000);
    waits_for_delivery(true, 1 << 20);
}

TEST(delivery_is_waited_for_by_default_where_the_endpoint_says_so)
{
    struct side_attr attr = {.tx_flags = FI_DELIVERY_COMPLETE};
    struct pair pair;

    pair_open(&pair, &attr);
    buffers_open();
    pattern_fill(from, 8, 3);
    POST(post_send(&pair.a, PLAIN, true, 8, pair.to_b));
    nothing_more(&pair.a);
    POST(post_recv(&pair.b, PLAIN, true, 8));
    next_ok(&pair.b, &got, TGOT);
    next_ok(&pair.a, &sent, TSENT);
    buffers_close();
    pair_close(&pair);
}

TEST(sends_that_wait_for_delivery_and_others_are_all_told_once)
{
    enum { COUNT = 200 };
    static struct fi_context2 many[COUNT];
    static bool seen[COUNT];
    struct pair pair;
    struct iovec iov = {"x", 2};

    pair_open(&pair, &plain);
    for (int i = 0; i < COUNT; i++) {
        struct fi_msg_tagged msg = {&iov, NULL, 1, pair.to_b, 0, 0, &many[i], 0};

        POST(fi_tsendmsg(pair.a.ep, &msg,
                         FI_COMPLETION | (i % 2 ? FI_DELIVERY_COMPLETE : FI_INJECT_COMPLETE)));
    }
    for (int i = 0; i < COUNT; i++) {
        trecv(&pair.b, 0, 0, 0);
        expect(&pair.b, 0, "x", 0);
    }
    for (int i = 0; i < COUNT; i++) {
        struct completion completion = next(&pair.a);
        ptrdiff_t index = (struct fi_context2 *)completion.entry.op_context - many;

        CHECK(index >= 0 && index < COUNT && !seen[index]);
        seen[index] = true;
    }
    nothing_more(&pair.a);
    pair_close(&pair);
}

TEST(a_receive_from_somebody_is_refused_until_the_endpoint_is_enabled)
{
    struct side side;
    struct side_attr attr = {.caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV};
    struct iovec iov[2];
    char room[2];
    struct fi_msg_tagged look = {.msg_iov = iov, .iov_count = 1, .addr = 0};

    if (!is_velo())
        test_skip("others crash");
    side_open_domain(&side, &attr);
    CHECK_FI(fi_endpoint(side.domain, side.info, &side.ep, NULL));
    iov[0] = (struct iovec){room, 1};
    iov[1] = (struct iovec){room + 1, 1};
    CHECK_REFUSED(fi_recv(side.ep, room, 1, NULL, 0, NULL), FI_EOPBADSTATE);
    CHECK_REFUSED(fi_trecv(side.ep, room, 1, NULL, 0, 1, 0, NULL), FI_EOPBADSTATE);
    CHECK_REFUSED(fi_recvv(side.ep, iov, NULL, 2, 0, NULL), FI_EOPBADSTATE);
    CHECK_REFUSED(fi_trecvmsg(side.ep, &look, FI_PEEK), FI_EOPBADSTATE);
    CHECK_FI(fi_close(&side.ep->fid));
    side.ep = NULL;
    side_open_endpoint(&side);
    side_close(&side);
}
