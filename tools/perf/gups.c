/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RandomAccess directly over velo.h: no MPI, no matching, no copy. An update travels to the rank
 * that owns its word inside a batch, and the batch is built where the receiver will read it.
 */
#include "modes.h"
#include "random_access.h"

#include <stdlib.h>

#define RAW_ROUND_TRIPS 150u
#define BATCH_UPDATES_MAX 256u /* 2 KiB: more gains nothing, and leaves less under way. */
#define BLOCKED_WAIT_NS 50000  /* Ranks may outnumber cores: one without room lets others run. */

enum tag { TAG_UPDATES, TAG_DONE };

/* Updates for one rank: in an open reservation, or in `own_updates` for the rank itself. */
struct batch {
    struct velo_conn *conn;
    uint64_t *updates; /* NULL: no reservation is open */
    unsigned count;
};

/*
 * The own updates take a batch, too: the rank of an update is random, so the processor would
 * mispredict a branch on it every second time, and that costs more than the update.
 */
struct gups {
    struct random_access ra;
    struct velo_port *port;
    struct batch *batches; /* by rank */
    uint64_t own_updates[BATCH_UPDATES_MAX];
    unsigned batch_updates; /* of all batches together at most the look-ahead */
    unsigned done;          /* ranks that have sent all they have, in this run */
};

static const struct report report = {
    .metric = "updates_per_s", .limit_name = "pingpong", .sum = false};

static void check(const char *call, int status)
{
    if (status != VELO_OK) {
        endpoint_fail_call(call, status);
    }
}

static void gups_open(struct gups *gups, struct rank *rank)
{
    const struct options *options = rank->options;
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    unsigned ranks = options->procs;
    uint64_t *table;
    unsigned share = RANDOM_ACCESS_LOOK_AHEAD / ranks;
    size_t table_bytes = sizeof *table << options->table_log2;
    attr.domain = options->domain;
    attr.vpid = (int)rank->index;
    attr.depth_slots = options->depth_slots;
    attr.data_bytes = options->data_bytes;
    table = aligned_alloc(4096, (table_bytes / ranks + 4095) & ~(size_t)4095);
    gups->batches = calloc(ranks, sizeof gups->batches[0]);
    if (!table || !gups->batches) {
        rank_fail(EXIT_FAILED, "out of memory for a table of %zu bytes", table_bytes / ranks);
    }
    random_access_init(&gups->ra, table, options->table_log2, rank->index, ranks);
    gups->batch_updates = share < BATCH_UPDATES_MAX ? share : BATCH_UPDATES_MAX;
    gups->batches[rank->index].updates = gups->own_updates;
    check("velo_port_open", velo_port_open(&attr, &gups->port));
    for (unsigned to = 0; to < ranks; to++) {
        if (to != rank->index) {
            check("velo_connect", velo_connect(gups->port, VELO_ID(0, to), &gups->batches[to].conn,
                                               RECV_TIMEOUT_NS));
        }
    }
}

/* Apply, or count, a message that is held, and let go of it. */
static void take(struct gups *gups, const struct velo_msg *msg)
{
    const uint64_t *updates = msg->data;
    for (size_t i = 0; i < msg->len_bytes / sizeof *updates; i++) {
        random_access_apply(&gups->ra, updates[i]);
    }
    gups->done += msg->tag == TAG_DONE;
    velo_release(gups->port);
}

/* Take messages that are there. True: there were any. */
static bool poll(struct gups *gups)
{
    struct velo_msg msg;
    int status;
    bool any = false;
    while ((status = velo_try_peek(gups->port, &msg)) == VELO_OK) {
        take(gups, &msg);
        any = true;
    }
    if (status != VELO_AGAIN) {
        endpoint_fail_call("velo_try_peek", status);
    }
    return any;
}

static void wait(struct gups *gups, int64_t timeout_ns)
{
    struct velo_msg msg;
    int status = velo_peek(gups->port, &msg, timeout_ns);
    if (status == VELO_OK) {
        take(gups, &msg);
    } else if (status != VELO_TIMEOUT || timeout_ns == RECV_TIMEOUT_NS) {
        endpoint_fail_call("velo_peek", status);
    }
}

/* All ranks may be out of room at once, so a rank that waits for room receives meanwhile. */
static void batch_open(struct gups *gups, struct batch *batch)
{
    size_t batch_bytes = gups->batch_updates * sizeof *batch->updates;
    void *room;
    int status;
    while ((status = velo_try_reserve(batch->conn, batch_bytes, &room)) == VELO_AGAIN) {
        if (!poll(gups)) {
            wait(gups, BLOCKED_WAIT_NS);
        }
    }
    check("velo_try_reserve", status);
    batch->updates = room;
    batch->count = 0;
}

static void batch_send(struct batch *batch, enum tag tag)
{
    check("velo_commit",
          velo_commit(batch->conn, batch->count * sizeof *batch->updates, (uint8_t)tag));
    batch->updates = NULL;
}

static void apply_own(struct gups *gups)
{
    struct batch *own = &gups->batches[gups->ra.rank];
    for (unsigned i = 0; i < own->count; i++) {
        random_access_apply(&gups->ra, own->updates[i]);
    }
    own->count = 0;
}

/* A batch is full. */
static void flush(struct gups *gups, unsigned owner)
{
    if (owner == gups->ra.rank) {
        apply_own(gups);
        return;
    }
    batch_send(&gups->batches[owner], TAG_UPDATES);
    poll(gups);
    batch_open(gups, &gups->batches[owner]);
}

static void open_all(struct gups *gups)
{
    for (unsigned to = 0; to < gups->ra.ranks; to++) {
        if (to != gups->ra.rank) {
            batch_open(gups, &gups->batches[to]);
        }
    }
}

/* Tell the others that no more will come, and take the messages that still come. */
static void finish(struct gups *gups)
{
    const struct random_access *ra = &gups->ra;
    apply_own(gups);
    for (unsigned to = 0; to < ra->ranks; to++) {
        if (to != ra->rank) {
            batch_send(&gups->batches[to], TAG_DONE);
        }
    }
    while (gups->done < ra->ranks - 1) {
        wait(gups, RECV_TIMEOUT_NS);
    }
    gups->done = 0;
}

static void update_all(struct gups *gups)
{
    const struct random_access *ra = &gups->ra;
    uint64_t word = random_access_at(ra->rank * ra->updates_own);
    open_all(gups);
    for (uint64_t n = 0; n < ra->updates_own; n++) {
        unsigned owner = random_access_owner(ra, word);
        struct batch *batch = &gups->batches[owner];
        batch->updates[batch->count++] = word;
        if (batch->count == gups->batch_updates) {
            flush(gups, owner);
        }
        word = random_access_next(word);
    }
    finish(gups);
}

/* The class is that of the first two ranks; the others sleep in the next barrier meanwhile. */
static void bracket(struct rank *rank, struct bracket *out)
{
    rank_barrier(rank);
    if (rank->pair == 0) {
        double hop_ns = limit_pingpong_half_rtt_ns(&rank->limit, RAW_ROUND_TRIPS, false);
        if (rank->index == 0) {
            *out = (struct bracket){.hop_ns = hop_ns, .limit = hop_ns};
        }
    }
    rank_barrier(rank);
}

/* A word that is wrong fails the run: the owner alone writes it, so HPCC's 1 % is not needed. */
static void verify(struct gups *gups)
{
    uint64_t errors = random_access_check(&gups->ra);
    if (errors) {
        rank_fail(EXIT_VERIFY, "%llu of %llu words of rank %u's table are wrong",
                  (unsigned long long)errors, (unsigned long long)gups->ra.words_own,
                  gups->ra.rank);
    }
}

static double timed(struct rank *rank, struct gups *gups)
{
    random_access_reset(&gups->ra);
    rank_barrier(rank);
    uint64_t begin_ns = now_ns();
    update_all(gups);
    rank_barrier(rank);
    double time_ns = (double)(now_ns() - begin_ns);
    verify(gups);
    return (double)gups->ra.updates_own * gups->ra.ranks * 1e9 / time_ns;
}

void gups_run(struct rank *rank)
{
    struct gups gups = {.done = 0};
    struct finding *finding = step_finding(rank);
    gups_open(&gups, rank);
    for (unsigned i = 0; i < rank->plan->steps_count; i++) {
        const struct step *step = &rank->plan->steps[i];
        if (!step_begin(rank, step)) {
            continue;
        }
        bracket(rank, &finding->before);
        double updates_per_s = timed(rank, &gups);
        bracket(rank, &finding->after);
        if (rank->index == 0) {
            finding->value = updates_per_s;
        }
        step_end(rank, step, &report);
    }
    rank_barrier(rank); /* No rank closes a port while another still sends to it. */
    check("velo_port_close", velo_port_close(gups.port));
    free(gups.batches);
    free(gups.ra.table);
}
