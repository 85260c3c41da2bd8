/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <strings.h>

#include "../base/cancel.h"
#include "../base/error.h"
#include "../base/fork.h"
#include "../base/order.h"
#include "../base/sized.h"
#include "../core/stream.h"
#include "../rma/fetch.h"
#include "../rma/no_device.h"
#include "../shm/wait.h"
#include "posted.h"
#include "ways.h"

#define EAGER_BYTES_DEFAULT 16384u
#define UNEXPECTED_BYTES_DEFAULT (UINT64_C(64) << 20)
/* The default limit, as a multiple of the bound. */
#define LIMIT_BOUNDS 16

/* Data of a peer's ring, and of all rings of a port. */
#define RING_BYTES_LEAST ((size_t)64 << 10)
#define RING_BYTES_MOST ((size_t)256 << 10)
#define RINGS_BYTES (UINT64_C(4) << 20)

/* Empty polls between two looks at the clock. */
#define POLLS_PER_CLOCK 4096u
/* Messages that velo_mq_wait() takes between two looks at the clock. */
#define ROUNDS_PER_CLOCK 64u
/* While peers have no room for our messages: first spin for this many rounds, then yield the core
 * in each round up to STALLS_YIELDING, then sleep until something comes, STALL_NAP_NS at most. */
#define STALLS_SPINNING 64u
#define STALLS_YIELDING 1024u
#define STALL_NAP_NS INT64_C(50000)

/* ---- open and close -------------------------------------------------------------------------- */

static int read_bytes(const char *name, uint64_t *bytes)
{
    static const char units[] = "kmg";
    const char *text = getenv(name);
    if (*bytes || !text || !*text)
        return VELO_OK;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    unsigned shift = 0;
    for (unsigned i = 0; units[i]; i++)
        if ((*end | 0x20) == units[i])
            shift = 10 * (i + 1);
    if (shift)
        end++;
    if (errno || end == text || *end || *text == '-' || value == 0 || value > UINT64_MAX >> shift)
        return velo_fail(VELO_ERR_ARG,
                         "%s is \"%s\"; give a number of bytes above 0, such as 8192 "
                         "or 64k",
                         name, text);
    *bytes = value << shift;
    return VELO_OK;
}

static int read_path(int *path)
{
    static const char *const names[] = {"auto", "copy", "get"};
    const char *text = getenv("VELO_MQ_PATH");
    if (*path != VELO_MQ_PATH_AUTO || !text || !*text)
        return VELO_OK;
    for (int i = 0; i < 3; i++) {
        if (strcasecmp(text, names[i]) == 0) {
            *path = i;
            return VELO_OK;
        }
    }
    return velo_fail(VELO_ERR_ARG, "VELO_MQ_PATH is \"%s\"; give auto, copy or get", text);
}

static uint64_t or_default(uint64_t value, uint64_t otherwise) { return value ? value : otherwise; }

static uint64_t limit_default(uint64_t bound_bytes)
{
    return bound_bytes < UINT64_MAX / LIMIT_BOUNDS ? bound_bytes * LIMIT_BOUNDS : UINT64_MAX;
}

/* Fill in the settings: those of the caller, then of the environment, then the defaults. */
static int fill_settings(struct velo_mq *mq, const struct velo_mq_attr *attr)
{
    uint64_t eager_bytes = attr->eager_bytes;
    mq->get_bytes = attr->get_bytes;
    mq->pool.bound_bytes = attr->unexpected_bytes;
    mq->pool.limit_bytes = attr->unexpected_limit_bytes;
    mq->path = attr->path;
    if (mq->path < VELO_MQ_PATH_AUTO || mq->path > VELO_MQ_PATH_GET)
        return velo_fail(VELO_ERR_ARG, "path is %d; give one of enum velo_mq_path", mq->path);
    int status = read_bytes("VELO_MQ_EAGER_BYTES", &eager_bytes);
    if (status == VELO_OK)
        status = read_bytes("VELO_MQ_GET_BYTES", &mq->get_bytes);
    if (status == VELO_OK)
        status = read_bytes("VELO_MQ_UNEXPECTED_BYTES", &mq->pool.bound_bytes);
    if (status == VELO_OK)
        status = read_bytes("VELO_MQ_UNEXPECTED_LIMIT_BYTES", &mq->pool.limit_bytes);
    if (status == VELO_OK)
        status = read_path(&mq->path);
    eager_bytes = or_default(eager_bytes, EAGER_BYTES_DEFAULT);
    mq->eager_bytes = eager_bytes < UINT16_MAX ? (uint32_t)eager_bytes : UINT16_MAX;
    mq->measures_ways = mq->get_bytes == 0 && mq->path == VELO_MQ_PATH_AUTO &&
                        rma_offload_of(mq->port) == &rma_no_device;
    mq->get_bytes = or_default(mq->get_bytes, rma_fetch_bytes_default(mq->port));
    mq->pool.bound_bytes = or_default(mq->pool.bound_bytes, UNEXPECTED_BYTES_DEFAULT);
    mq->pool.limit_bytes = or_default(mq->pool.limit_bytes, limit_default(mq->pool.bound_bytes));
    if (mq->pool.limit_bytes < mq->pool.bound_bytes)
        mq->pool.limit_bytes = mq->pool.bound_bytes;
    return status;
}

int mq_ways_from_environment(struct mq_ways *ways)
{
    *ways = (struct mq_ways){.path = VELO_MQ_PATH_AUTO};
    int status = read_bytes("VELO_MQ_GET_BYTES", &ways->get_bytes);
    if (status == VELO_OK)
        status = read_path(&ways->path);
    ways->measures = ways->get_bytes == 0 && ways->path == VELO_MQ_PATH_AUTO;
    ways->get_bytes = or_default(ways->get_bytes, RMA_FETCH_BYTES);
    return status;
}

static void free_mq(struct velo_mq *mq)
{
    for (uint32_t node = 0; node < VELO_NODES; node++)
        free(mq->by_node[node]);
    while (mq->peers) {
        struct velo_mq_peer *peer = mq->peers;
        mq->peers = peer->next;
        free(peer);
    }
    mq_pool_trim(&mq->pool);
    for (int s = 0; s < VELO_MQ_SPACES; s++) {
        mq_posted_close(&mq->spaces[s]);
        mq_table_close(&mq->spaces[s].unexpected);
    }
    free(mq->ids.slots);
    free(mq);
}

static int open_space(struct space *space)
{
    list_init(&space->arrivals);
    if (!mq_posted_open(space) || !mq_table_open(&space->unexpected))
        return velo_fail(VELO_ERR_NO_MEMORY, "no memory for matched queues");
    return VELO_OK;
}

size_t velo_mq_ring_bytes(uint32_t peers)
{
    size_t len_bytes = RING_BYTES_MOST;
    while (len_bytes > RING_BYTES_LEAST && (uint64_t)len_bytes * peers > RINGS_BYTES)
        len_bytes /= 2;
    return len_bytes;
}

int velo_mq_open(struct velo_port *port, struct velo_rma *rma, const struct velo_mq_attr *attr,
                 struct velo_mq **out)
{
    CANCEL_LATER();
    static const struct velo_mq_attr defaults = VELO_MQ_ATTR_INIT;
    struct velo_mq_attr ours = VELO_MQ_ATTR_INIT;
    if (!port || !out)
        return velo_fail(VELO_ERR_ARG, "port or mq is NULL");
    *out = NULL;
    if (!fork_is_ours(port->process))
        return fork_refuse("port");
    int status = sized_attr(&ours, sizeof ours, attr, &defaults, "VELO_MQ_ATTR_INIT");
    if (status)
        return status;
    struct velo_mq *mq = calloc(1, sizeof *mq);
    if (!mq)
        return velo_fail(VELO_ERR_NO_MEMORY, "no memory for matched queues");
    mq->port = port;
    mq->rma = rma;
    mq->sequence = mq->sequence_first = UINT64_C(1) << 63;
    list_init(&mq->probed);
    list_init(&mq->active);
    list_init(&mq->deferred);
    list_init(&mq->gets);
    status = fill_settings(mq, &ours);
    if (status == VELO_OK && !mq_ids_open(&mq->ids))
        status = velo_fail(VELO_ERR_SYSTEM, "getrandom: %s", strerror(errno));
    for (int s = 0; s < VELO_MQ_SPACES && status == VELO_OK; s++)
        status = open_space(&mq->spaces[s]);
    if (status) {
        free_mq(mq);
        return status;
    }
    *out = mq;
    return VELO_OK;
}

/* Drop a message that will not be received. Its sender may wait for an answer. */
static void drop_message(struct velo_mq *mq, struct velo_mq_message *message)
{
    if (message->kind != MQ_WIRE_EAGER)
        mq_answer_refuse(message->peer, message->sender_id);
    message->peer->kept--;
    mq_pool_put(&mq->pool, message, &message->peer->unexpected_bytes);
}

static void drop_all(struct velo_mq *mq)
{
    for (int s = 0; s < VELO_MQ_SPACES; s++) {
        struct link **first = &mq->spaces[s].arrivals.first;
        while (*first) {
            struct velo_mq_message *message = member_of(*first, struct velo_mq_message, arrival);
            mq_recv_unlink_kept(mq, message);
            drop_message(mq, message);
        }
    }
    while (mq->probed.first) {
        struct link *link = mq->probed.first;
        list_remove(&mq->probed, link);
        drop_message(mq, member_of(link, struct velo_mq_message, arrival));
    }
}

static void end_posted(struct space *space)
{
    for (struct transfer *op; (op = mq_posted_any(space)) != NULL;) {
        posted_remove(space, op);
        complete(request_of(op), VELO_ERR_CANCELLED);
    }
}

int velo_mq_close(struct velo_mq *mq)
{
    if (!mq || !fork_is_ours(mq->port->process))
        return VELO_OK;
    mq->before_post |= BEFORE_CLOSING;
    drop_all(mq);
    for (struct velo_mq_peer *peer = mq->peers; peer; peer = peer->next)
        mq_peer_end(peer, VELO_ERR_CANCELLED);
    for (int s = 0; s < VELO_MQ_SPACES; s++)
        end_posted(&mq->spaces[s]);
    (void)velo_resume(mq->port);
    free_mq(mq);
    return VELO_OK;
}

int velo_mq_counters(struct velo_mq *mq, struct velo_mq_counters *counters, size_t counters_bytes)
{
    if (!mq || !counters)
        return velo_fail(VELO_ERR_ARG, "mq or counters is NULL");
    struct velo_mq_counters now = mq->counters;
    now.received = now.eager + now.copied + now.fetched;
    for (int s = 0; s < VELO_MQ_SPACES; s++)
        now.posted += posted_count(&mq->spaces[s]);
    now.unexpected_bytes = mq->pool.used_bytes;
    now.unexpected_peak_bytes = mq->pool.peak_bytes;
    now.unexpected_bound_bytes = mq->pool.bound_bytes;
    now.unexpected_limit_bytes = mq->pool.limit_bytes;
    sized_give(counters, counters_bytes, &now, sizeof now);
    return VELO_OK;
}

/* ---- progress -------------------------------------------------------------------------------- */

/* Look after peers now and then. Returns the time. */
static int64_t check_peers(struct velo_mq *mq)
{
    int64_t time_ns = wait_now_ns();
    if (time_ns - mq->checked_ns >= CHECK_INTERVAL_NS) {
        mq->checked_ns = time_ns;
        mq_peer_check(mq);
    }
    return time_ns;
}

/* Do all work but receiving. `is_dry`: there was nothing to receive, so all is here that was sent
 * by peers that were found gone before. */
static int do_other_work(struct velo_mq *mq, bool is_dry)
{
    int events = 0;
    /* All messages of a peer that is gone, even those pushed back, come before its end. */
    bool may_reap = (mq->work & (WORK_REAP | WORK_RESUME)) == WORK_REAP &&
                    (is_dry || ++mq->last_rounds > LAST_ROUNDS_MAX);
    if (mq->work & WORK_RESUME) {
        mq_recv_resume(mq);
        events++;
    }
    if (unlikely(mq->work & WORK_OVER))
        events += mq_recv_give_up(mq);
    for (uint32_t left = mq->active_count; left > 0 && mq->active.first; left--)
        events += mq_peer_push(member_of(mq->active.first, struct velo_mq_peer, active), is_dry);
    if (mq->work & WORK_GETS)
        events += mq_get_progress(mq);
    if (may_reap)
        events += mq_peer_reap(mq);
    return events;
}

/* The rest of the work, after receiving. A tail call: so the way without it keeps no count. */
static __attribute__((noinline)) int work_after(struct velo_mq *mq, int events)
{
    return events + do_other_work(mq, events == 0);
}

int velo_mq_progress(struct velo_mq *mq)
{
    int events = 0;
    if (unlikely(!mq))
        return velo_fail(VELO_ERR_ARG, "mq is NULL");
    uint64_t header = port_look(mq->port);
    if (header || !port_is_quiet(mq->port))
        events = mq_recv_next(mq, header);
    if (events == 0) {
        mq->burst = 0;
        if (unlikely(++mq->idle_polls % POLLS_PER_CLOCK == 0)) {
            (void)check_peers(mq);
            /* A peer may have sent something after our look, and left before the check. */
            return 0;
        }
    }
    return unlikely(mq->work) ? work_after(mq, events) : events;
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Nothing moves: our work waits for others. The longer this lasts, the more we leave them the core.
 */
static int wait_stalled(struct velo_mq *mq)
{
    struct velo_msg msg;
    int status = VELO_OK;
    if (++mq->stalls < STALLS_SPINNING)
        order_pause();
    else if (mq->stalls < STALLS_YIELDING)
        (void)sched_yield();
    else if ((status = velo_peek(mq->port, &msg, STALL_NAP_NS)) == VELO_OK)
        (void)mq_recv_burst(mq, &msg);
    if (mq->stalls % POLLS_PER_CLOCK == 0)
        (void)check_peers(mq);
    return status == VELO_ERR_INTERRUPTED ? status : VELO_OK;
}

static __attribute__((noinline)) int work_once(struct velo_mq *mq)
{
    if (velo_mq_progress(mq) == 0)
        return wait_stalled(mq);
    mq->stalls = 0;
    return VELO_OK;
}

/* One round of waiting: something was done, VELO_TIMEOUT, or VELO_ERR_INTERRUPTED. */
static int wait_once(struct velo_mq *mq, int64_t slice_ns)
{
    struct velo_msg msg;
    if (unlikely(mq->work))
        return work_once(mq);
    mq->stalls = 0;
    int status = velo_peek(mq->port, &msg, slice_ns);
    if (likely(status == VELO_OK))
        (void)mq_recv_burst(mq, &msg);
    return status;
}

static int64_t slice_of(int64_t timeout_ns, int64_t left_ns)
{
    return timeout_ns >= 0 && left_ns < CHECK_INTERVAL_NS ? left_ns : CHECK_INTERVAL_NS;
}

int velo_mq_wait(struct velo_mq *mq, struct velo_mq_request *request, int64_t timeout_ns)
{
    if (unlikely(!mq || !request || timeout_ns < VELO_FOREVER))
        return velo_fail(VELO_ERR_ARG, "mq or request is NULL, or timeout_ns below -1");
    if (request->status != VELO_AGAIN)
        return request->status;
    int64_t start_ns = timeout_ns > 0 ? wait_now_ns() : 0;
    int64_t left_ns = timeout_ns;
    for (uint32_t round = 1;; round++) {
        int status = wait_once(mq, slice_of(timeout_ns, left_ns));
        if (request->status != VELO_AGAIN)
            return request->status;
        if (unlikely(status == VELO_ERR_INTERRUPTED))
            return status;
        /* A round that yields the core may take long. */
        bool is_quick = status == VELO_OK && mq->stalls < STALLS_SPINNING;
        if (likely(is_quick) && round % ROUNDS_PER_CLOCK != 0 && timeout_ns != 0)
            continue;
        int64_t time_ns = check_peers(mq);
        left_ns = timeout_ns > 0 ? timeout_ns - (time_ns - start_ns) : 0;
        if (timeout_ns >= 0 && left_ns <= 0)
            return request->status == VELO_AGAIN ? VELO_TIMEOUT : request->status;
    }
}

int velo_mq_idle(struct velo_mq *mq, int64_t timeout_ns)
{
    if (!mq || timeout_ns < VELO_FOREVER)
        return velo_fail(VELO_ERR_ARG, "mq is NULL, or timeout_ns below -1");
    int64_t left_ns = timeout_ns;
    for (;;) {
        int64_t slice_ns = slice_of(timeout_ns, left_ns);
        int status = wait_once(mq, slice_ns);
        if (status == VELO_OK || status == VELO_ERR_INTERRUPTED)
            return status;
        (void)check_peers(mq);
        if (mq->work)
            return VELO_OK;
        if (timeout_ns >= 0 && (left_ns -= slice_ns) <= 0)
            return VELO_TIMEOUT;
    }
}

int velo_mq_arm(struct velo_mq *mq)
{
    if (!mq)
        return velo_fail(VELO_ERR_ARG, "mq is NULL");
    (void)check_peers(mq);
    return mq->work ? VELO_AGAIN : velo_port_arm(mq->port);
}
