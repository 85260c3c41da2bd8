/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RandomAccess over MPI by the scheme of HPCC's MPI version: updates for others are sorted into one
 * bucket a rank; when all buckets together hold the look-ahead, the fullest is sent, one send under
 * way at a time; one receive from anybody is posted, and tested before each update.
 */
#include "clock.h"
#include "random_access.h"
#include "session.h"

#include <stdlib.h>
#include <string.h>

#define TAG_UPDATES 1
#define TAG_DONE 2

struct bucket {
    unsigned count;
    uint64_t updates[RANDOM_ACCESS_LOOK_AHEAD];
};

struct gups {
    struct random_access ra;
    struct bucket *buckets; /* by rank */
    unsigned pending;       /* in all buckets */
    unsigned done;          /* ranks that have sent all they have */
    MPI_Request sending;
    uint64_t sent[RANDOM_ACCESS_LOOK_AHEAD];
    MPI_Request receiving;
    uint64_t received[RANDOM_ACCESS_LOOK_AHEAD];
};

static void post(struct gups *gups)
{
    MPI_Irecv(gups->received, RANDOM_ACCESS_LOOK_AHEAD, MPI_UINT64_T, MPI_ANY_SOURCE, MPI_ANY_TAG,
              MPI_COMM_WORLD, &gups->receiving);
}

/* Apply what has come; the last "done" posts no further receive. */
static void poll(struct gups *gups)
{
    while (gups->done < gups->ra.ranks - 1) {
        int arrived, count;
        MPI_Status status;
        MPI_Test(&gups->receiving, &arrived, &status);
        if (!arrived) {
            return;
        }
        MPI_Get_count(&status, MPI_UINT64_T, &count);
        for (int i = 0; i < count; i++) {
            random_access_apply(&gups->ra, gups->received[i]);
        }
        gups->done += status.MPI_TAG == TAG_DONE;
        if (gups->done < gups->ra.ranks - 1) {
            post(gups);
        }
    }
}

static void send_wait(struct gups *gups)
{
    int sent = 0;
    while (MPI_Test(&gups->sending, &sent, MPI_STATUS_IGNORE), !sent) {
        poll(gups);
    }
}

static unsigned fullest(const struct gups *gups)
{
    unsigned best = 0;
    for (unsigned i = 1; i < gups->ra.ranks; i++) {
        best = gups->buckets[i].count > gups->buckets[best].count ? i : best;
    }
    return best;
}

static void send_bucket(struct gups *gups, unsigned to, int tag)
{
    struct bucket *bucket = &gups->buckets[to];
    send_wait(gups);
    memcpy(gups->sent, bucket->updates, bucket->count * sizeof bucket->updates[0]);
    MPI_Isend(gups->sent, (int)bucket->count, MPI_UINT64_T, (int)to, tag, MPI_COMM_WORLD,
              &gups->sending);
    gups->pending -= bucket->count;
    bucket->count = 0;
}

static void update(struct gups *gups, uint64_t word)
{
    unsigned owner = random_access_owner(&gups->ra, word);
    struct bucket *bucket = &gups->buckets[owner];
    if (owner == gups->ra.rank) {
        random_access_apply(&gups->ra, word);
        return;
    }
    bucket->updates[bucket->count++] = word;
    if (++gups->pending == RANDOM_ACCESS_LOOK_AHEAD) {
        send_bucket(gups, fullest(gups), TAG_UPDATES);
    }
}

static void finish(struct gups *gups)
{
    for (unsigned to = 0; to < gups->ra.ranks; to++) {
        if (to != gups->ra.rank) {
            send_bucket(gups, to, TAG_DONE);
        }
    }
    send_wait(gups);
    while (gups->done < gups->ra.ranks - 1) {
        poll(gups);
    }
}

static void update_all(struct gups *gups)
{
    uint64_t word = random_access_at(gups->ra.rank * gups->ra.updates_own);
    gups->done = 0;
    gups->sending = MPI_REQUEST_NULL;
    post(gups);
    for (uint64_t n = gups->ra.updates_own; n; n--) {
        poll(gups);
        update(gups, word);
        word = random_access_next(word);
    }
    finish(gups);
}

/* A word that is wrong fails the run: the owner alone writes it, so HPCC's 1 % is not needed. */
static void verify(const struct gups *gups)
{
    uint64_t errors = random_access_check(&gups->ra);
    if (errors) {
        rank_fail(EXIT_VERIFY, "%llu of %llu words of rank %u's table are wrong",
                  (unsigned long long)errors, (unsigned long long)gups->ra.words_own,
                  gups->ra.rank);
    }
}

static void batch(struct session *session, struct gups *gups)
{
    struct batch out = {.metric = "updates_per_s",
                        .limit_name = "pingpong",
                        .size_bytes = sizeof(uint64_t),
                        .pairs = 1};
    random_access_reset(&gups->ra);
    session_bracket(session, &out.before);
    MPI_Barrier(MPI_COMM_WORLD);
    uint64_t begin_ns = now_ns();
    update_all(gups);
    MPI_Barrier(MPI_COMM_WORLD);
    out.value =
        (double)(gups->ra.updates_own * gups->ra.ranks) * 1e9 / (double)(now_ns() - begin_ns);
    session_bracket(session, &out.after);
    verify(gups);
    session_report(session, &out);
}

static void run(struct session *session)
{
    static struct gups gups;
    size_t table_bytes = (sizeof(uint64_t) << session->options.table_log2) / session->ranks;
    gups.buckets = calloc(session->ranks, sizeof gups.buckets[0]);
    uint64_t *table = (uint64_t *)(void *)session_buffer(table_bytes);
    if (!gups.buckets) {
        rank_fail(EXIT_FAILED, "out of memory for %u buckets", session->ranks);
    }
    random_access_init(&gups.ra, table, session->options.table_log2, session->rank, session->ranks);
    while (session_next(session)) {
        batch(session, &gups);
    }
    free(table);
    free(gups.buckets);
}

const struct mode gups_mode = {
    .name = "gups",
    .text = "RandomAccess: updates per second to a table spread over the ranks",
    .batches = 10,
    .ranks_multiple = 1,
    .ranks_power_of_two = true,
    .takes_table = true,
    .run = run,
};
