/* SPDX-License-Identifier: Apache-2.0 */
/* Much at once: full queues, many receives, many peers, threads. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "side.h"

static const struct side_attr plain = {0};
static struct fi_context2 sent, got;

TEST(a_sender_that_outruns_its_receiver_loses_nothing)
{
    enum { COUNT = 20000 };
    static struct fi_context2 contexts[COUNT];
    static uint64_t words[COUNT];
    struct pair pair;
    struct fi_cq_tagged_entry entry;
    uint64_t posted = 0, seen = 0, found = 0;
    size_t refused = 0;

    pair_open(&pair, &plain);
    /* The receiver makes no call until the sender is refused or has sent all. */
    for (; posted < COUNT; posted++) {
        words[posted] = posted;
        ssize_t status =
            fi_tsend(pair.a.ep, &words[posted], 8, NULL, pair.to_b, 1, &contexts[posted]);
        if (status == -FI_EAGAIN) {
            (void)fi_cq_read(pair.a.cq, &entry, 0);
            if (++refused > 50)
                break;
            posted--;
            continue;
        }
        CHECK_FI(status);
    }
    while (seen < COUNT) {
        POST(fi_trecv(pair.b.ep, &found, 8, NULL, FI_ADDR_UNSPEC, 1, 0, &got));
        if (posted < COUNT) {
            words[posted] = posted;
            if (fi_tsend(pair.a.ep, &words[posted], 8, NULL, pair.to_b, 1, &contexts[posted]) == 0)
                posted++;
        }
        UNTIL(kept(&pair.b) > 0 ||
              (posted < COUNT &&
               (words[posted] = posted, fi_tsend(pair.a.ep, &words[posted], 8, NULL, pair.to_b, 1,
                                                 &contexts[posted]) == 0 &&
                                            ++posted && false)));
        next_ok(&pair.b, &got, FI_RECV);
        CHECK_EQ(found, seen);
        seen++;
    }
    for (uint64_t i = 0; i < COUNT; i++)
        CHECK_EQ(next(&pair.a).error, 0);
    nothing_more(&pair.a);
    nothing_more(&pair.b);
    pair_close(&pair);
}

TEST(a_small_queue_of_sends_refuses_and_all_arrives)
{
    enum { COUNT = 500 };
    struct side_attr attr = {.tx_size = 8, .rx_size = 8};
    static unsigned char out[20000], in[20000];
    static struct fi_context2 contexts[COUNT];
    struct pair pair;

    pair_open(&pair, &attr);
    pattern_fill(out, sizeof(out), 1);
    for (int i = 0, seen = 0; seen < COUNT;) {
        while (i < COUNT) {
            ssize_t status =
                fi_tsend(pair.a.ep, out, sizeof(out), NULL, pair.to_b, 1, &contexts[i]);
            if (status == -FI_EAGAIN)
                break;
            CHECK_FI(status);
            i++;
        }
        memset(in, 0, sizeof(in));
        POST(fi_trecv(pair.b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, 1, 0, &got));
        next_ok(&pair.b, &got, FI_RECV);
        CHECK(pattern_matches(in, sizeof(in), 1));
        seen++;
    }
    for (int i = 0; i < COUNT; i++)
        CHECK_EQ(next(&pair.a).error, 0);
    nothing_more(&pair.a);
    pair_close(&pair);
}

TEST(ten_thousand_receives_are_posted_and_all_matched)
{
    enum { COUNT = 10000 };
    static struct fi_context2 contexts[COUNT];
    static uint64_t words[COUNT];
    struct side_attr attr = {.rx_size = COUNT};
    struct pair pair;

    needs(&attr);
    pair_open(&pair, &attr);
    for (uint64_t i = 0; i < COUNT; i++)
        POST(fi_trecv(pair.b.ep, &words[i], 8, NULL, FI_ADDR_UNSPEC, i, 0, &contexts[i]));
    for (uint64_t i = 0; i < COUNT; i++) {
        uint64_t tag = (i * 7919) % COUNT;

        POST(fi_tinject(pair.a.ep, &tag, 8, pair.to_b, tag));
    }
    for (uint64_t i = 0; i < COUNT; i++)
        next_ok(&pair.b, &contexts[(i * 7919) % COUNT], FI_RECV);
    for (uint64_t i = 0; i < COUNT; i++)
        CHECK_EQ(words[i], i);
    nothing_more(&pair.b);
    pair_close(&pair);
}

TEST(ten_thousand_messages_wait_and_are_all_matched)
{
    enum { COUNT = 10000 };
    struct pair pair;
    uint64_t found;

    pair_open(&pair, &plain);
    for (uint64_t i = 0; i < COUNT; i++)
        POST(fi_tinject(pair.a.ep, &i, 8, pair.to_b, i % 10));
    for (uint64_t tag = 0; tag < 10; tag++) {
        for (uint64_t i = tag; i < COUNT; i += 10) {
            POST(fi_trecv(pair.b.ep, &found, 8, NULL, FI_ADDR_UNSPEC, tag, 0, &got));
            next_ok(&pair.b, &got, FI_RECV);
            CHECK_EQ(found, i);
        }
    }
    nothing_more(&pair.b);
    pair_close(&pair);
}

/* Each pair of ranks exchanges messages of all ways, in both directions at once. */
static void exchanges(struct meeting *meeting, int rank)
{
    enum { COUNT = 40 };
    static const size_t lens[] = {8, 3000, 40000, 200000, 64};
    struct side side;
    fi_addr_t addrs[4];
    static struct fi_context2 sends[4][COUNT], receives[4][COUNT];
    static unsigned char *outs[4][COUNT], *ins[4][COUNT];

    side_open_among(&side, &plain, meeting, rank, addrs);
    for (int peer = 0; peer < 4; peer++) {
        for (int i = 0; i < COUNT; i++) {
            size_t len = lens[i % 5];
            uint64_t tag = 1000 * (uint64_t)rank + (uint64_t)i;
            uint64_t from = 1000 * (uint64_t)peer + (uint64_t)i;

            outs[peer][i] = malloc(len);
            ins[peer][i] = malloc(len);
            CHECK(outs[peer][i] && ins[peer][i]);
            pattern_fill(outs[peer][i], len, 10000 * tag + (uint64_t)peer);
            POST(fi_trecv(side.ep, ins[peer][i], len, NULL, FI_ADDR_UNSPEC, from, 0,
                          &receives[peer][i]));
            POST(fi_tsend(side.ep, outs[peer][i], len, NULL, addrs[peer], tag, &sends[peer][i]));
        }
    }
    for (int i = 0; i < 2 * 4 * COUNT; i++)
        CHECK_EQ(next(&side).error, 0);
    for (int peer = 0; peer < 4; peer++)
        for (int i = 0; i < COUNT; i++)
            CHECK(pattern_matches(ins[peer][i], lens[i % 5],
                                  10000 * (1000 * (uint64_t)peer + (uint64_t)i) + (uint64_t)rank));
    meet(meeting);
    side_close(&side);
}

TEST(four_processes_exchange_messages_of_all_sizes) { processes_run(4, exchanges); }

static void many_to_one(struct meeting *meeting, int rank)
{
    enum { COUNT = 2000, RANKS = 5 };
    struct side side;
    fi_addr_t addrs[RANKS];
    uint64_t expected[RANKS] = {0};

    side_open_among(&side, &plain, meeting, rank, addrs);
    if (rank > 0) {
        for (uint64_t i = 0; i < COUNT; i++) {
            uint64_t word[2] = {(uint64_t)rank, i};
            POST(fi_inject(side.ep, word, sizeof(word), addrs[0]));
        }
    } else {
        for (int i = 0; i < COUNT * (RANKS - 1); i++) {
            uint64_t word[2];

            POST(fi_recv(side.ep, word, sizeof(word), NULL, FI_ADDR_UNSPEC, &got));
            next_ok(&side, &got, FI_RECV);
            CHECK(word[0] > 0 && word[0] < RANKS);
            CHECK_EQ(word[1], expected[word[0]]);
            expected[word[0]]++;
        }
    }
    meet(meeting);
    side_close(&side);
}

TEST(messages_of_many_to_one_arrive_in_the_order_of_each) { processes_run(5, many_to_one); }

/* --- threads
 * ------------------------------------------------------------------------------------*/

enum { THREADS = 4, ROUNDS = 400 };
static const struct side_attr safe = {.threading = FI_THREAD_SAFE};

struct shared {
    struct pair pair;
    _Atomic uint32_t done[THREADS];
    _Atomic uint32_t failed;
    struct fi_context2 sends[THREADS][2], receives[THREADS][2];
};

static struct shared shared;

/* Any thread may read any completion: it tells the thread that it belongs to. */
static void read_for_all(struct side *side)
{
    struct fi_cq_tagged_entry entry;
    ssize_t count = fi_cq_read(side->cq, &entry, 1);

    if (count == -FI_EAGAIN)
        return;
    CHECK_EQ(count, 1);
    for (int thread = 0; thread < THREADS; thread++)
        for (int i = 0; i < 2; i++)
            if (entry.op_context == &shared.sends[thread][i] ||
                entry.op_context == &shared.receives[thread][i])
                atomic_fetch_add(&shared.done[thread], 1);
}

static void *ping(void *arg)
{
    int me = (int)(intptr_t)arg;
    struct pair *pair = &shared.pair;
    unsigned char out[3000], in[3000];

    for (uint64_t round = 1; round <= ROUNDS; round++) {
        size_t len = round % 3 ? 16 : sizeof(out);
        uint64_t tag = (uint64_t)me * 1000000 + round;
        ssize_t status;

        pattern_fill(out, len, tag);
        while ((status = fi_trecv(pair->b.ep, in, len, NULL, FI_ADDR_UNSPEC, tag, 0,
                                  &shared.receives[me][0])) == -FI_EAGAIN)
            read_for_all(&pair->b);
        CHECK_FI(status);
        while ((status = fi_tsend(pair->a.ep, out, len, NULL, pair->to_b, tag,
                                  &shared.sends[me][0])) == -FI_EAGAIN)
            read_for_all(&pair->a);
        CHECK_FI(status);
        for (int64_t end = test_now_ns() + TEST_PATIENCE_NS;
             atomic_load(&shared.done[me]) < 2 * round;) {
            CHECK(test_now_ns() < end);
            read_for_all(&pair->a);
            read_for_all(&pair->b);
        }
        CHECK(pattern_matches(in, len, tag));
    }
    return NULL;
}

TEST(threads_send_receive_and_read_at_the_same_time)
{
    pthread_t threads[THREADS];

    needs(&safe);
    memset(&shared, 0, sizeof(shared));
    pair_open(&shared.pair, &safe);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, ping, (void *)(intptr_t)i), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    pair_close(&shared.pair);
}

static void *own_endpoint(void *arg)
{
    struct side *side = arg;
    fi_addr_t self = side_learn(side, side);
    struct fi_context2 contexts[2];
    struct fi_cq_tagged_entry entry;

    for (uint64_t i = 0; i < 300; i++) {
        uint64_t found = 0;
        int due = 2;

        CHECK_FI(fi_trecv(side->ep, &found, 8, NULL, FI_ADDR_UNSPEC, i, 0, &contexts[0]));
        ssize_t status;
        while ((status = fi_tsend(side->ep, &i, 8, NULL, self, i, &contexts[1])) == -FI_EAGAIN)
            (void)fi_cq_read(side->cq, &entry, 0);
        CHECK_FI(status);
        for (int64_t end = test_now_ns() + TEST_PATIENCE_NS; due > 0;) {
            ssize_t count = fi_cq_read(side->cq, &entry, 1);
            CHECK(count == 1 || count == -FI_EAGAIN);
            due -= count == 1;
            CHECK(test_now_ns() < end);
        }
        CHECK_EQ(found, i);
    }
    return NULL;
}

TEST(threads_with_domains_of_their_own_need_no_lock)
{
    pthread_t threads[THREADS];
    struct side sides[THREADS];

    for (int i = 0; i < THREADS; i++)
        side_open(&sides[i], &plain);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, own_endpoint, &sides[i]), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < THREADS; i++)
        side_close(&sides[i]);
}

static void *wait_for_one(void *arg)
{
    struct side *side = arg;
    struct fi_cq_tagged_entry entry;
    ssize_t count;

    while ((count = fi_cq_sread(side->cq, &entry, 1, NULL, -1)) == -FI_EAGAIN)
        ;
    CHECK_EQ(count, 1);
    CHECK(entry.op_context == &got);
    return NULL;
}

TEST(a_thread_that_waits_lets_others_post)
{
    struct side_attr attr = {
        .threading = FI_THREAD_SAFE, .wait = FI_WAIT_UNSPEC, .reads_itself = true};
    struct pair pair;
    pthread_t thread;
    uint64_t word = 5, found = 0;

    needs(&attr);
    side_open(&pair.a, &safe);
    side_open(&pair.b, &attr);
    pair.to_b = side_learn(&pair.a, &pair.b);
    CHECK_EQ(pthread_create(&thread, NULL, wait_for_one, &pair.b), 0);
    test_sleep_ns(20 * TEST_MS);
    CHECK_FI(fi_recv(pair.b.ep, &found, 8, NULL, FI_ADDR_UNSPEC, &got));
    POST(fi_send(pair.a.ep, &word, 8, NULL, pair.to_b, &sent));
    for (int i = 0; i < 100; i++)
        sides_progress();
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(found, 5);
    pair_close(&pair);
}
