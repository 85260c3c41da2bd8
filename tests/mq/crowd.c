/* SPDX-License-Identifier: Apache-2.0 */
/* More processes than cores: everybody sends to everybody at once, and nobody waits for ever. */
#include <stdlib.h>
#include <string.h>

#include "support.h"

#define RANKS_MAX 8
#define ROUNDS 3
#define LONG_BYTES (test_is_by_card() ? 17001u : 300001u)
#define HUGE_BYTES (test_is_by_card() ? 256u << 10 : 2u << 20)
/* By a card the last one waits long for all the others. */
#define PATIENCE_NS ((test_is_by_card() ? 6 : 1) * TEST_PATIENCE_NS)

struct job {
    int rank;
    int ranks;
    size_t len_bytes;
    bool is_posted_late;
    int path;
    bool with_rma;
    bool is_fetched; /* By RMA, or by none. */
};

static uint64_t seed_of(int round, int from, int to)
{
    return (uint64_t)round * 10000 + (uint64_t)from * 100 + (uint64_t)to;
}

static void exchange(struct node *node, struct velo_mq_peer **peers, const struct job *job,
                     int round)
{
    struct velo_mq_request sends[RANKS_MAX] = {0}, receives[RANKS_MAX] = {0};
    unsigned char *out[RANKS_MAX], *in[RANKS_MAX];

    for (int to = 0; to < job->ranks; to++) {
        out[to] = malloc(job->len_bytes);
        in[to] = malloc(job->len_bytes);
        pattern_fill(out[to], job->len_bytes, seed_of(round, job->rank, to));
        CHECK_OK(velo_mq_isend(peers[to], out[to], job->len_bytes,
                               VELO_MQ_MATCH(0, job->rank, round), 0, &sends[to]));
    }
    if (job->is_posted_late)
        (void)velo_mq_wait(node->mq, &sends[0], TEST_MS); /* Let what others sent come in. */
    for (int from = 0; from < job->ranks; from++)
        CHECK_OK(velo_mq_irecv(node->mq, VELO_ID(0, from), VELO_MQ_MATCH(0, from, round), 0,
                               in[from], job->len_bytes, &receives[from]));
    for (int i = 0; i < job->ranks; i++) {
        CHECK_OK(velo_mq_wait(node->mq, &receives[i], PATIENCE_NS));
        CHECK(pattern_matches(in[i], job->len_bytes, seed_of(round, i, job->rank)));
        CHECK_OK(velo_mq_wait(node->mq, &sends[i], PATIENCE_NS));
        free(out[i]);
        free(in[i]);
    }
}

static void rank_body(void *arg)
{
    const struct job *job = arg;
    struct velo_mq_attr attr = {.size_bytes = sizeof(struct velo_mq_attr), .path = job->path};
    struct velo_mq_peer *peers[RANKS_MAX];
    struct velo_mq_request bye[RANKS_MAX] = {0}, heard[RANKS_MAX] = {0};
    struct node node;

    node_open(&node, job->rank, 0, 0, &attr, job->with_rma);
    for (int i = 0; i < job->ranks; i++)
        peers[i] = node_connect(&node, VELO_ID(0, i));
    for (int round = 0; round < ROUNDS; round++)
        exchange(&node, peers, job, round);
    for (int i = 0; i < job->ranks; i++) { /* Nobody leaves before all are done. */
        CHECK_OK(velo_mq_irecv(node.mq, VELO_ID(0, i), UINT64_MAX, 0, NULL, 0, &heard[i]));
        CHECK_OK(velo_mq_isend(peers[i], NULL, 0, UINT64_MAX, VELO_MQ_SYNC, &bye[i]));
    }
    for (int i = 0; i < job->ranks; i++) {
        CHECK_OK(velo_mq_wait(node.mq, &heard[i], PATIENCE_NS));
        CHECK_OK(velo_mq_wait(node.mq, &bye[i], PATIENCE_NS));
    }
    CHECK_EQ(node_counters(&node).errors, 0);
    if (job->with_rma) /* Its message to itself may always be fetched. */
        CHECK(node_counters(&node).fetched <= ROUNDS || job->is_fetched);
    if (job->is_fetched)
        CHECK_EQ(node_counters(&node).fetched, (uint64_t)job->ranks * ROUNDS);
    node_close(&node);
}

static void crowd(struct job job)
{
    pid_t children[RANKS_MAX];

    for (job.rank = 0; job.rank < job.ranks; job.rank++)
        children[job.rank] = child_start(rank_body, &job);
    for (int i = 0; i < job.ranks; i++)
        child_join(children[i]);
}

TEST(four_send_long_messages_to_each_other_at_once)
{
    crowd((struct job){.ranks = 4, .len_bytes = LONG_BYTES, .path = VELO_MQ_PATH_COPY});
}

TEST(eight_send_long_messages_to_each_other_at_once)
{
    crowd((struct job){.ranks = 8, .len_bytes = LONG_BYTES, .path = VELO_MQ_PATH_COPY});
}

TEST(eight_send_long_messages_to_each_other_before_any_is_asked_for)
{
    crowd((struct job){.ranks = 8, .len_bytes = LONG_BYTES, .is_posted_late = true});
}

TEST(eight_send_short_messages_to_each_other_at_once)
{
    crowd((struct job){.ranks = 8, .len_bytes = 64});
}

TEST(two_send_huge_messages_to_each_other_at_once)
{
    crowd((struct job){.ranks = 2, .len_bytes = HUGE_BYTES});
}

TEST(four_fetch_long_messages_from_each_other_at_once)
{
    test_needs_shared_memory();
    crowd((struct job){.ranks = 4,
                       .len_bytes = LONG_BYTES,
                       .path = VELO_MQ_PATH_GET,
                       .with_rma = true,
                       .is_fetched = true});
}

TEST(four_whom_the_kernel_forbids_to_fetch_have_long_messages_copied)
{
    setenv("VELO_RMA_ATTACH", "0", 1);
    crowd((struct job){
        .ranks = 4, .len_bytes = LONG_BYTES, .path = VELO_MQ_PATH_GET, .with_rma = true});
    unsetenv("VELO_RMA_ATTACH");
}
