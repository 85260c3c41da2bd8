/* SPDX-License-Identifier: Apache-2.0 */
/* A peer that says anything: it is refused and counted, and harms nobody else. */
#include <stdlib.h>
#include <string.h>

#include "support.h"

#define MESSAGES (int)scaled(200000, 50000)
#define LONG_BYTES 100000u
#define VICTIM_BYTES 50000u

/* The layout of lib/mq/wire.h, written down once more: what an attacker knows. */
enum { EAGER = 1, SYNC, RTS, CTS, DATA, FIN, EAGER_APART = EAGER | 0x80 };
enum { COOKIE = 0x08, SPACE_MASK = 0x30, SPACE_MOST = (VELO_MQ_SPACES - 1) << 4 };

struct attack {
    struct node good[2];
    struct velo_port *port;
    struct velo_conn *conn;
    struct velo_mq_request send, recv;
    unsigned char out[LONG_BYTES], in[LONG_BYTES];
};

static struct attack *attack_open(void)
{
    struct attack *attack = calloc(1, sizeof(*attack));
    struct velo_mq_attr attr = {.size_bytes = sizeof(struct velo_mq_attr),
                                .unexpected_bytes = 1 << 20,
                                .eager_bytes = 1024};

    CHECK(attack != NULL);
    nodes_open(attack->good, 2, &attr, false);
    attack->port = port_open(7);
    attack->conn = port_connect(attack->port, attack->good[1].id);
    pattern_fill(attack->out, LONG_BYTES, 1);
    return attack;
}

static void attack_close(struct attack *attack)
{
    CHECK_OK(velo_port_close(attack->port));
    nodes_close(attack->good, 2);
    free(attack);
}

static void say(struct attack *attack, int kind, const void *words, size_t len_bytes)
{
    while (velo_try_send(attack->conn, words, len_bytes, (uint8_t)kind) == VELO_AGAIN)
        (void)velo_mq_progress(attack->good[1].mq);
    nodes_settle(&attack->good[1], 1);
}

static void is_refused(struct attack *attack, int kind, const void *words, size_t len_bytes)
{
    uint64_t errors = node_counters(&attack->good[1]).errors;
    int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;

    say(attack, kind, words, len_bytes);
    while (node_counters(&attack->good[1]).errors == errors && test_now_ns() < end_ns)
        (void)velo_mq_progress(attack->good[1].mq);
    CHECK_EQ(node_counters(&attack->good[1]).errors, errors + 1);
}

/* Its ring is busy, so a receive that is polled for looks at it first. */
TEST(what_is_too_short_is_refused_by_a_polled_receive_too)
{
    struct attack *attack = attack_open();
    struct velo_mq *mq = attack->good[1].mq;
    uint64_t word = 7, got = 0;

    for (int i = 0; i < 300; i++) {
        CHECK_OK(velo_mq_irecv(mq, VELO_MQ_ANY_SOURCE, word, 0, &got, sizeof(got), &attack->recv));
        if (i % 10 == 9) {
            uint64_t errors = node_counters(&attack->good[1]).errors;
            CHECK_OK(velo_try_send(attack->conn, &word, (size_t)(i / 10 % 8), EAGER));
            CHECK_STATUS(velo_mq_poll(mq, &attack->recv), VELO_AGAIN);
            nodes_settle(&attack->good[1], 1);
            CHECK_EQ(node_counters(&attack->good[1]).errors, errors + 1);
        }
        CHECK_OK(velo_try_send(attack->conn, &word, sizeof(word), EAGER));
        while (velo_mq_poll(mq, &attack->recv) == VELO_AGAIN)
            continue;
        CHECK_OK(attack->recv.status);
        CHECK_EQ(attack->recv.len_bytes, 0);
        CHECK_EQ(got, 0);
    }
    attack_close(attack);
}

TEST(what_is_too_short_or_of_no_kind_is_refused)
{
    static const size_t least[] = {0, 8, 16, 32, 24, 16, 16};
    struct attack *attack = attack_open();
    uint64_t zeros[8] = {0};

    for (int kind = 0; kind < 256; kind++) {
        int bare = kind & ~(COOKIE | SPACE_MASK);
        if ((kind >= EAGER && kind <= FIN) ||
            (bare >= EAGER && bare <= RTS && (kind & SPACE_MASK) <= SPACE_MOST)) {
            size_t least_bytes = least[bare] + (kind & COOKIE ? 8 : 0);
            for (size_t len_bytes = 0; len_bytes < least_bytes; len_bytes++)
                is_refused(attack, kind, zeros, len_bytes);
        } else if (bare == EAGER_APART) { /* A message in its line has no match bits apart. */
            is_refused(attack, kind, zeros, 0);
            is_refused(attack, kind, zeros, VELO_INLINE_BYTES);
        } else {
            is_refused(attack, kind, zeros, 0);
            is_refused(attack, kind, zeros, sizeof(zeros));
        }
    }
    attack_close(attack);
}

/* The good peers are in the middle of a long message, whose ids anybody can guess. */
static void start_transfer(struct attack *attack)
{
    struct velo_mq_peer *peer = node_connect(&attack->good[0], attack->good[1].id);

    CHECK_OK(velo_mq_irecv(attack->good[1].mq, attack->good[0].id, 1, 0, attack->in, LONG_BYTES,
                           &attack->recv));
    CHECK_OK(velo_mq_isend(peer, attack->out, LONG_BYTES, 1, 0, &attack->send));
    while (attack->recv.len_bytes < LONG_BYTES / 4) {
        (void)velo_mq_progress(attack->good[1].mq);
        (void)velo_mq_progress(attack->good[0].mq);
    }
}

static void finish_transfer(struct attack *attack)
{
    nodes_finish(attack->good, 2, &attack->recv);
    nodes_finish(attack->good, 2, &attack->send);
    CHECK_OK(attack->recv.status);
    CHECK_OK(attack->send.status);
    CHECK(pattern_matches(attack->in, LONG_BYTES, 1));
}

TEST(the_ids_of_others_are_refused)
{
    struct attack *attack = attack_open();
    uint64_t offset;

    start_transfer(attack);
    nodes_settle(&attack->good[1], 1); /* Take in what is under way. */
    offset = attack->recv.len_bytes;
    CHECK(offset < LONG_BYTES);
    for (uint64_t generation = 0; generation < 3; generation++) {
        for (uint64_t index = 0; index < 70; index++) {
            uint64_t id = generation << 32 | index;
            uint64_t data[] = {0, id, offset}, fin[] = {id, (uint64_t)VELO_ERR_PEER_DEAD},
                     cts[] = {id, id, 50000};
            is_refused(attack, DATA, data, sizeof(data));
            is_refused(attack, FIN, fin, sizeof(fin));
            is_refused(attack, CTS, cts, sizeof(cts));
        }
    }
    finish_transfer(attack);
    attack_close(attack);
}

/* The next message to the attacker, without its payload. */
static void hear(struct attack *attack, int kind, uint64_t *words, size_t len_bytes)
{
    unsigned char buf[16384];
    struct velo_msg msg;

    for (;;) {
        nodes_settle(&attack->good[1], 1);
        CHECK_OK(velo_recv(attack->port, buf, sizeof(buf), &msg, TEST_PATIENCE_NS));
        if (msg.tag == kind)
            break;
    }
    CHECK(msg.len_bytes >= len_bytes);
    memcpy(words, buf + msg.len_bytes - len_bytes, len_bytes);
}

TEST(an_announced_message_cannot_overrun_its_receive)
{
    struct attack *attack = attack_open();
    uint64_t rts[5] = {77, VICTIM_BYTES, 0, 0, 2}, cts[3];
    uint64_t *data = calloc(2000, 8);
    uint64_t *trailer = data + 15000 / 8;

    CHECK_OK(velo_mq_irecv(attack->good[1].mq, VELO_MQ_ANY_SOURCE, 2, 0, attack->in, VICTIM_BYTES,
                           &attack->recv));
    memset(attack->in + VICTIM_BYTES, 0x5a, LONG_BYTES - VICTIM_BYTES);
    say(attack, RTS, rts, sizeof(rts));
    hear(attack, CTS, cts, sizeof(cts));
    CHECK(cts[0] == 77 && cts[2] == VICTIM_BYTES);
    for (uint64_t at = 0; at < 45000; at += 15000) {
        trailer[0] = cts[1];
        trailer[1] = at + 8; /* Not where the next byte belongs. */
        is_refused(attack, DATA, data, 15016);
        trailer[1] = at - 8;
        is_refused(attack, DATA, data, 15016);
        trailer[1] = at;
        say(attack, DATA, data, 15016);
    }
    trailer[1] = 45000;
    is_refused(attack, DATA, data, 15016); /* Ten thousand bytes too many. */
    CHECK_STATUS(attack->recv.status, VELO_AGAIN);
    CHECK_EQ(attack->recv.len_bytes, 45000);
    for (size_t i = VICTIM_BYTES; i < LONG_BYTES; i++)
        CHECK_EQ(attack->in[i], 0x5a);
    rts[0] = cts[1];
    rts[1] = (uint64_t)(int64_t)VELO_ERR_PEER_CLOSED;
    say(attack, FIN, rts, 16); /* That is allowed: the sender gives up. */
    CHECK_STATUS(attack->recv.status, VELO_ERR_PEER_CLOSED);
    free(data);
    attack_close(attack);
}

TEST(a_send_gives_away_no_more_than_its_message)
{
    struct attack *attack = attack_open();
    struct velo_mq_peer *peer = node_connect(&attack->good[1], velo_port_id(attack->port));
    uint64_t rts[5], cts[3], fin[2];

    CHECK_OK(velo_mq_isend(peer, attack->out, VICTIM_BYTES, 3, 0, &attack->send));
    hear(attack, RTS, rts, sizeof(rts));
    cts[0] = rts[0];
    cts[1] = 5;
    cts[2] = VICTIM_BYTES + 1;
    is_refused(attack, CTS, cts, sizeof(cts));
    cts[2] = UINT64_MAX;
    is_refused(attack, CTS, cts, sizeof(cts));
    cts[2] = 1; /* Has been sent already. */
    is_refused(attack, CTS, cts, sizeof(cts));
    fin[0] = rts[0];
    fin[1] = 1; /* No status. */
    is_refused(attack, FIN, fin, sizeof(fin));
    fin[1] = (uint64_t)INT64_MIN;
    is_refused(attack, FIN, fin, sizeof(fin));
    CHECK_STATUS(attack->send.status, VELO_AGAIN);
    fin[1] = 0;
    say(attack, FIN, fin, sizeof(fin));
    CHECK_OK(attack->send.status);
    is_refused(attack, FIN, fin, sizeof(fin)); /* Once. */
    CHECK_OK(velo_mq_isend(peer, attack->out, VICTIM_BYTES, 3, 0, &attack->send));
    is_refused(attack, FIN, fin, sizeof(fin)); /* That was the one before. */
    CHECK_STATUS(attack->send.status, VELO_AGAIN);
    attack_close(attack);
}

static uint64_t random_word(struct rng *rng)
{
    switch (rng_below(rng, 5)) {
    case 0:
        return rng_below(rng, 4);
    case 1:
        return (uint64_t)(1 + rng_below(rng, 3)) << 32 | rng_below(rng, 4); /* An id. */
    case 2:
        return rng_below(rng, LONG_BYTES * 2);
    case 3:
        return UINT64_MAX - rng_below(rng, 20);
    default:
        return rng_next(rng);
    }
}

/* Anything at all, some of it nearly right, while good peers go about their business. */
TEST(random_messages_harm_nobody)
{
    struct rng rng = {test_seed()};
    struct attack *attack = attack_open();
    struct velo_mq_peer *peer = node_connect(&attack->good[1], velo_port_id(attack->port));
    struct velo_mq_request mine[4] = {0}, theirs[4] = {0};
    unsigned char *buf = calloc(4, LONG_BYTES);
    unsigned char said[2048] = {0};
    uint64_t words[8];

    start_transfer(attack);
    for (int i = 0; i < 4; i++) { /* Requests of the attacker's own to be attacked. */
        CHECK_OK(
            velo_mq_isend(peer, attack->out, i % 2 ? LONG_BYTES : 20, 9, VELO_MQ_SYNC, &mine[i]));
    }
    for (int n = 0; n < MESSAGES; n++) {
        size_t words_len = rng_below(&rng, 6), len_bytes;
        int which = (int)rng_below(&rng, 4);
        for (size_t i = 0; i < words_len; i++)
            words[i] = random_word(&rng);
        len_bytes = rng_below(&rng, 2) ? 0 : rng_below(&rng, sizeof(said) - sizeof(words));
        memcpy(said + len_bytes, words, words_len * 8);
        len_bytes += words_len * 8;
        int kind = (int)rng_below(&rng, 9);
        (void)velo_try_send(attack->conn, said, len_bytes,
                            (uint8_t)(kind == 8 ? EAGER_APART : kind));
        if (theirs[which].status != VELO_AGAIN)
            CHECK_OK(velo_mq_irecv(attack->good[1].mq, velo_port_id(attack->port),
                                   rng_below(&rng, 4), rng_below(&rng, 2) ? UINT64_MAX : 0,
                                   buf + (size_t)which * LONG_BYTES, LONG_BYTES, &theirs[which]));
        (void)velo_mq_progress(attack->good[1].mq);
        if (rng_below(&rng, 4) == 0)
            (void)velo_try_recv(attack->port, said, 0, NULL);
        if (rng_below(&rng, 50) == 0) {
            unsigned char drained[16384];
            while (velo_try_recv(attack->port, drained, sizeof(drained), NULL) == VELO_OK)
                ;
        }
    }
    CHECK(node_counters(&attack->good[1]).errors > (uint64_t)MESSAGES / 200);
    CHECK(node_counters(&attack->good[1]).unexpected_peak_bytes <= 1 << 20);
    finish_transfer(attack);
    attack_close(attack);
    free(buf);
}
