/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that are killed at random and come back under the same id, again and again. Whatever
 * was under way with one generation ends; nothing of it reaches the next, and nothing waits for
 * ever.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <velo/mq.h>
#include <velo/rma.h>

#include "test.h"

enum { HOME = 0, RESTARTED = 1, LONG_WORDS = 25000, AREA_WORDS = 8192, WINDOW = 4 };

static int rounds(void)
{
    const char *text = getenv("VELO_KILL_ROUNDS");

    return text && *text ? atoi(text) : 150;
}

/* Memory that the two processes of a round share. */
struct round {
    uint64_t seed;
    velo_rma_key_t key;
    int started; /* The child is connected. */
    int damage;  /* The child has seen what must not be. */
};

static struct velo_mq *open_queues(int vpid, struct velo_port **port)
{
    struct velo_mq_attr attr = {.size_bytes = sizeof(struct velo_mq_attr),
                                .eager_bytes = 2000,
                                .unexpected_bytes = 1 << 20};
    struct velo_mq *mq;

    *port = port_open(vpid);
    CHECK_OK(velo_mq_open(*port, NULL, &attr, &mq));
    return mq;
}

static void tell_started(struct round *round)
{
    __atomic_store_n(&round->started, 1, __ATOMIC_RELEASE);
}

/* Let a child run for a random while once it has started, then kill it. `turn` is ours meanwhile.
 */
static void run_and_kill(pid_t child, struct round *round, struct rng *rng, void (*turn)(void *arg),
                         void *arg)
{
    int64_t left_ns = 0;

    for (int64_t end_ns = 0; end_ns == 0 || left_ns > 0;) {
        turn(arg);
        if (end_ns == 0 && __atomic_load_n(&round->started, __ATOMIC_ACQUIRE))
            end_ns = test_now_ns() + rng_below(rng, 2000000);
        left_ns = end_ns - test_now_ns();
    }
    child_kill(child);
    CHECK_EQ(round->damage, 0);
}

/* ---- matched queues: senders that come back -------------------------------------------------- */

/* Messages of one word, repeated: the generation that sent them. Their match bits count them. */
static void send_for_ever(void *arg)
{
    struct round *round = arg;
    struct rng rng = {round->seed};
    struct velo_port *port;
    struct velo_mq *mq = open_queues(RESTARTED, &port);
    struct velo_mq_request sends[WINDOW] = {0};
    struct velo_mq_peer *peer;
    uint64_t *words = malloc(LONG_WORDS * sizeof(*words));

    for (size_t i = 0; i < LONG_WORDS; i++)
        words[i] = velo_port_generation(port);
    CHECK_OK(velo_mq_connect(mq, HOME, &peer, TEST_PATIENCE_NS));
    tell_started(round);
    for (uint64_t n = 0;; n++) {
        struct velo_mq_request *send = &sends[n % WINDOW];
        size_t len = rng_below(&rng, 3) ? 1 + rng_below(&rng, 200) : LONG_WORDS;

        if (n >= WINDOW)
            CHECK_OK(velo_mq_wait(mq, send, TEST_PATIENCE_NS));
        CHECK_OK(velo_mq_isend(peer, words, len * sizeof(*words), n,
                               rng_below(&rng, 4) ? 0 : VELO_MQ_SYNC, send));
    }
}

struct sink {
    struct velo_mq *mq;
    struct velo_mq_request recvs[WINDOW];
    uint64_t words[WINDOW][LONG_WORDS];
    unsigned next;   /* Of the receives: they are posted, and matched, in turn. */
    unsigned posted; /* From there on. */
    /* Messages are kept, and asked for when another generation has the id and has sent, too. */
    const struct round *asks_in; /* NULL: not now. */
    uint64_t generation;         /* Of the last message, */
    uint64_t match;              /* and its number. */
    unsigned received, broken_off;
};

static void sink_post(struct sink *sink, unsigned which)
{
    struct velo_mq_request *recv = &sink->recvs[which];

    memset(recv, 0, sizeof(*recv));
    CHECK_OK(velo_mq_irecv(sink->mq, RESTARTED, 0, UINT64_MAX, sink->words[which],
                           sizeof(sink->words[which]), recv));
}

static void sink_check(struct sink *sink, const struct velo_mq_request *recv, const uint64_t *words)
{
    /* Once its name is gone, or another's, a port may as well have been closed. */
    if (recv->status == VELO_ERR_PEER_DEAD || recv->status == VELO_ERR_PEER_CLOSED) {
        sink->broken_off++;
        return;
    }
    CHECK_OK(recv->status);
    for (size_t i = 1; i < recv->len_bytes / sizeof(*words); i++)
        CHECK_EQ(words[i], words[0]);
    if (words[0] == sink->generation)
        CHECK(recv->match > sink->match);
    sink->generation = words[0];
    sink->match = recv->match;
    sink->received++;
}

static void sink_turn(void *arg)
{
    struct sink *sink = arg;

    (void)velo_mq_progress(sink->mq);
    while (sink->posted > 0 && sink->recvs[sink->next].status != VELO_AGAIN) {
        sink_check(sink, &sink->recvs[sink->next], sink->words[sink->next]);
        sink->next = (sink->next + 1) % WINDOW;
        sink->posted--;
    }
    if (!sink->asks_in || !__atomic_load_n(&sink->asks_in->started, __ATOMIC_ACQUIRE))
        return;
    for (; sink->posted < WINDOW; sink->posted++)
        sink_post(sink, (sink->next + sink->posted) % WINDOW);
}

TEST(what_a_killed_sender_began_is_not_finished_by_the_one_that_has_its_id_next)
{
    struct velo_port *port;
    struct sink *sink = calloc(1, sizeof(*sink));
    const struct round *last = NULL;
    struct rng rng = {test_seed()};

    sink->mq = open_queues(HOME, &port);
    for (int i = 0; i < rounds(); i++) {
        struct round *round = test_shared_alloc(sizeof(*round));

        round->seed = rng_next(&rng);
        sink->asks_in = i % 2 ? round : NULL;
        last = i % 2 ? round : last;
        run_and_kill(child_start(send_for_ever, round), round, &rng, sink_turn, sink);
    }
    sink->asks_in = last;
    CHECK(sink->received > 0);
    for (int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS; sink->broken_off == 0;) {
        CHECK(test_now_ns() < end_ns);
        sink_turn(sink);
    }
    printf("%u messages received, %u receives broken off\n", sink->received, sink->broken_off);
    CHECK_OK(velo_mq_close(sink->mq));
    CHECK_OK(velo_port_close(port));
    CHECK_OK(velo_port_close(port_open(RESTARTED)));
    free(sink);
}

/* ---- matched queues: receivers that come back ------------------------------------------------ */

static void receive_for_ever(void *arg)
{
    struct round *round = arg;
    struct velo_port *port;
    struct velo_mq *mq = open_queues(RESTARTED, &port);
    uint64_t *words = malloc(LONG_WORDS * sizeof(*words));

    tell_started(round);
    for (;;) {
        struct velo_mq_request recv = {0};

        CHECK_OK(velo_mq_irecv(mq, HOME, 0, UINT64_MAX, words, LONG_WORDS * sizeof(*words), &recv));
        CHECK_OK(velo_mq_wait(mq, &recv, VELO_FOREVER));
        for (size_t i = 0; i < recv.len_bytes / sizeof(*words); i++)
            round->damage += words[i] != recv.match;
    }
}

struct source {
    struct velo_mq *mq;
    struct velo_mq_peer *peer;
    struct velo_mq_request sends[WINDOW];
    uint64_t words[WINDOW][LONG_WORDS];
    uint64_t count;
    unsigned ended_well, broken_off;
};

/* Send on; connect anew to whatever has the id once a send is broken off. */
static void source_turn(void *arg)
{
    struct source *source = arg;
    unsigned which = (unsigned)(source->count % WINDOW);
    struct velo_mq_request *send = &source->sends[which];

    (void)velo_mq_progress(source->mq);
    if (send->status == VELO_AGAIN)
        return;
    if (send->status) {
        CHECK_STATUS(send->status, VELO_ERR_PEER_DEAD);
        source->broken_off++;
        CHECK_OK(velo_mq_disconnect(source->peer));
        source->peer = NULL;
        memset(source->sends, 0, sizeof(source->sends));
    }
    if (!source->peer && velo_mq_connect(source->mq, RESTARTED, &source->peer, 0) != VELO_OK)
        return;
    source->ended_well++;
    source->count++;
    for (size_t i = 0; i < LONG_WORDS; i++)
        source->words[which][i] = source->count;
    CHECK_OK(velo_mq_isend(source->peer, source->words[which],
                           source->count % 3 ? 800 : sizeof(source->words[which]), source->count,
                           source->count % 4 ? 0 : VELO_MQ_SYNC, send));
}

TEST(what_was_sent_to_a_killed_receiver_does_not_reach_the_one_that_has_its_id_next)
{
    struct velo_port *port;
    struct source *source = calloc(1, sizeof(*source));
    struct rng rng = {test_seed()};

    source->mq = open_queues(HOME, &port);
    for (int i = 0; i < rounds(); i++) {
        struct round *round = test_shared_alloc(sizeof(*round));

        run_and_kill(child_start(receive_for_ever, round), round, &rng, source_turn, source);
    }
    CHECK(source->ended_well > 0 && source->broken_off > 0);
    printf("%u sends ended well, %u were broken off\n", source->ended_well, source->broken_off);
    CHECK_OK(velo_mq_close(source->mq));
    CHECK_OK(velo_port_close(port));
    CHECK_OK(velo_port_close(port_open(RESTARTED)));
    free(source);
}

/* ---- remote memory --------------------------------------------------------------------------- */

static void put_for_ever(void *arg)
{
    struct round *round = arg;
    struct velo_port *port = port_open(RESTARTED);
    uint64_t *words = malloc(AREA_WORDS * sizeof(*words));
    struct velo_rma_peer *peer;
    struct velo_rma *rma;

    CHECK_OK(velo_rma_open(port, NULL, &rma));
    CHECK_OK(velo_rma_connect(rma, HOME, &peer, TEST_PATIENCE_NS));
    for (size_t i = 0; i < AREA_WORDS; i++)
        words[i] = velo_port_generation(port);
    tell_started(round);
    for (uint64_t old;;) {
        (void)velo_rma_put(peer, words, AREA_WORDS * sizeof(*words), velo_rma_place(round->key, 0),
                           0, 0);
        (void)velo_rma_fetch_compare_add(peer, &old,
                                         velo_rma_place(round->key, AREA_WORDS * sizeof(*words)), 0,
                                         1, VELO_RMA_ADD_ALWAYS, 0);
        (void)velo_rma_flush(peer, TEST_PATIENCE_NS);
    }
}

static void rma_turn(void *rma) { (void)velo_rma_progress(rma); }

/* The memory is taken back right after each death: the next requester may already be there, in the
 * dead one's place, when the owner looks at what it left. */
TEST(memory_is_taken_back_from_requesters_that_are_killed_and_come_back)
{
    static uint64_t own[AREA_WORDS + 1];
    struct velo_port *port = port_open(HOME);
    struct rng rng = {test_seed()};
    struct velo_rma *rma;

    CHECK_OK(velo_rma_open(port, NULL, &rma));
    for (int i = 0; i < rounds(); i++) {
        struct round *round = test_shared_alloc(sizeof(*round));
        struct velo_rma_mem *mem;

        if (i % 2)
            CHECK_OK(
                velo_rma_mem_alloc(rma, sizeof(own), VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY, &mem));
        else
            CHECK_OK(velo_rma_mem_register(rma, own, sizeof(own), VELO_RMA_RIGHT_ALL,
                                           VELO_RMA_PEER_ANY, &mem));
        round->key = velo_rma_mem_key(mem);
        run_and_kill(child_start(put_for_ever, round), round, &rng, rma_turn, rma);
        CHECK_OK(velo_rma_mem_deregister(mem, VELO_FOREVER));
        if (i % 2)
            continue;
        memset(own, 0x55, sizeof(own));
        (void)velo_rma_progress(rma);
        for (size_t at = 0; at < AREA_WORDS + 1; at++)
            CHECK_EQ(own[at], INT64_C(0x5555555555555555));
    }
    CHECK_OK(velo_rma_close(rma));
    CHECK_OK(velo_port_close(port));
    port = port_open(RESTARTED); /* Takes away what the last one left. */
    CHECK_OK(velo_rma_open(port, NULL, &rma));
    CHECK_OK(velo_rma_close(rma));
    CHECK_OK(velo_port_close(port));
}
