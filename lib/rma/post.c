/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that ask for an operation. */
#include "../base/error.h"
#include "fetch.h"
#include "offload.h"

/* ---- the end of an operation ----------------------------------------------------------------- */

static void count(struct velo_rma_counters *counters, const struct request *request)
{
    switch (request->op) {
    case VELO_OP_GET:
        counters->gets++;
        break;
    case VELO_OP_FETCH_COMPARE_ADD:
    case VELO_OP_FETCH_OP:
    case VELO_OP_COMPARE_SWAP:
        counters->atomics++;
        break;
    case VELO_OP_NOTIFY:
        break;
    default:
        counters->puts++;
    }
    counters->bytes += request->len_bytes;
}

void rma_request_done(struct velo_rma_peer *peer, const struct request *request, int status)
{
    struct velo_rma *rma = peer->rma;
    if (likely(status == VELO_OK)) {
        count(&rma->counters, request);
        if (!(request->notify & VELO_NOTIFY_REQUESTER))
            return;
    }
    queue_push(
        rma, &(struct velo_notification){.class_ = status ? VELO_CLASS_ERROR : VELO_CLASS_REQUESTER,
                                         .op = request->op,
                                         .status = (int16_t)status,
                                         .peer = peer->id,
                                         .len_bytes = status ? 0 : request->len_bytes,
                                         .address = rma_request_address(request),
                                         .cookie = request->cookie});
}

/* ---- posting --------------------------------------------------------------------------------- */

/* The notifications that make sense for an operation. */
static int notify_allowed(const struct request *request)
{
    bool is_read = request->op == VELO_OP_GET || rma_request_is_update(request);
    return VELO_NOTIFY_REQUESTER | (is_read ? VELO_NOTIFY_RESPONDER : VELO_NOTIFY_COMPLETER);
}

static cold_path int failed_at_once(struct velo_rma_peer *peer, int status)
{
    if (is_final(status))
        rma_ask_fail(peer, status);
    return status;
}

/* Others are before it, or the owner must be asked. */
static cold_path int post_later(struct velo_rma_peer *peer, const struct request *request)
{
    int status = request->op == VELO_OP_NOTIFY ? VELO_OK : rma_reach_check(peer, request);
    return status ? failed_at_once(peer, status) : rma_ask_post(peer, request);
}

static int post(struct velo_rma_peer *peer, const struct request *request)
{
    if (unlikely(request->notify & ~notify_allowed(request)))
        return velo_fail(VELO_ERR_ARG,
                         "notify is %#x; give REQUESTER and, for a put, COMPLETER, else RESPONDER",
                         request->notify);
    if (unlikely(peer->gone))
        return velo_fail(peer->gone, "the peer is gone; disconnect");
    bool must_wait = peer->waiting.head || peer->sending ||
                     (peer->fence && (peer->asked.head || offload_is_busy(peer)));
    if (unlikely(must_wait))
        return post_later(peer, request);
    if (unlikely((request->notify & VELO_NOTIFY_REQUESTER) && !queue_has_room(peer->rma)))
        return VELO_AGAIN;
    int status = rma_do_now(peer, request);
    if (unlikely(status == MUST_ASK))
        return rma_ask_post(peer, request);
    if (likely(status == VELO_OK))
        rma_request_done(peer, request, VELO_OK);
    else if (status != VELO_AGAIN)
        return failed_at_once(peer, status);
    return status;
}

static cold_path int bad_argument(void)
{
    return velo_fail(VELO_ERR_ARG, "a pointer is NULL, a length is out of range, or notify holds "
                                   "what is no enum velo_notify");
}

static bool is_notify(int notify)
{
    return (notify & ~(VELO_NOTIFY_REQUESTER | VELO_NOTIFY_RESPONDER | VELO_NOTIFY_COMPLETER)) == 0;
}

/* ---- contiguous ------------------------------------------------------------------------------ */

static int post_contiguous(struct velo_rma_peer *peer, enum velo_rma_op op, char *local,
                           size_t len_bytes, velo_key_t key, uint64_t offset, int notify,
                           uint64_t cookie)
{
    if (unlikely(!peer || (!local && len_bytes > 0) || !is_notify(notify)))
        return bad_argument();
    struct request request = {.op = (uint8_t)op,
                              .notify = (uint8_t)notify,
                              .key = key,
                              .cookie = cookie,
                              .len_bytes = len_bytes,
                              .offset = offset,
                              .local = local,
                              .stride = {.block_bytes = len_bytes},
                              .count = 1};
    return post(peer, &request);
}

int velo_put(struct velo_rma_peer *peer, const void *local, size_t len_bytes, velo_key_t key,
             uint64_t offset, int notify, uint64_t cookie)
{
    return post_contiguous(peer, VELO_OP_PUT, (char *)local, len_bytes, key, offset, notify,
                           cookie);
}

int velo_get(struct velo_rma_peer *peer, void *local, size_t len_bytes, velo_key_t key,
             uint64_t offset, int notify, uint64_t cookie)
{
    return post_contiguous(peer, VELO_OP_GET, local, len_bytes, key, offset, notify, cookie);
}

int velo_put_immediate(struct velo_rma_peer *peer, uint64_t value, size_t len_bytes, velo_key_t key,
                       uint64_t offset, int notify, uint64_t cookie)
{
    if (unlikely(!peer || len_bytes < 1 || len_bytes > sizeof value || !is_notify(notify)))
        return bad_argument();
    struct request request = {.op = VELO_OP_PUT_IMMEDIATE,
                              .notify = (uint8_t)notify,
                              .key = key,
                              .cookie = cookie,
                              .len_bytes = len_bytes,
                              .offset = offset,
                              .word = {value, 0},
                              .count = 1};
    return post(peer, &request);
}

int velo_notify(struct velo_rma_peer *peer, int notify, uint64_t cookie)
{
    if (unlikely(!peer || !is_notify(notify) || !(notify & VELO_NOTIFY_COMPLETER)))
        return bad_argument();
    struct request request = {
        .op = VELO_OP_NOTIFY, .notify = (uint8_t)notify, .cookie = cookie, .count = 1};
    return post(peer, &request);
}

int velo_fetch_compare_add(struct velo_rma_peer *peer, uint64_t *old, velo_key_t key,
                           uint64_t offset, uint64_t compare, uint64_t add, int flags, int notify,
                           uint64_t cookie)
{
    if (unlikely(!peer || !old || (flags & ~VELO_ADD_ALWAYS) || !is_notify(notify)))
        return bad_argument();
    struct request request = {.op = VELO_OP_FETCH_COMPARE_ADD,
                              .notify = (uint8_t)notify,
                              .always = flags & VELO_ADD_ALWAYS,
                              .key = key,
                              .cookie = cookie,
                              .len_bytes = sizeof *old,
                              .offset = offset,
                              .local = (char *)old,
                              .word = {compare, add},
                              .count = 1};
    return post(peer, &request);
}

int velo_fetch_op(struct velo_rma_peer *peer, void *old, velo_key_t key, uint64_t offset,
                  enum velo_atomic atomic, enum velo_type type, const void *operand, int notify,
                  uint64_t cookie)
{
    if (unlikely(!peer || !operand || !is_notify(notify)))
        return bad_argument();
    struct request request = {.op = VELO_OP_FETCH_OP,
                              .notify = (uint8_t)notify,
                              .update = rma_update_code(atomic, type),
                              .key = key,
                              .cookie = cookie,
                              .offset = offset,
                              .local = old,
                              .count = 1};
    request.len_bytes = atomic > 15 || type > 15 ? 0 : rma_update_bytes(request.update);
    if (unlikely(request.len_bytes == 0))
        return velo_fail(VELO_ERR_ARG,
                         "there is no update %d of type %d; give an enum velo_atomic and an enum "
                         "velo_type, of FLOAT and DOUBLE only ADD, SWAP, MIN and MAX",
                         (int)atomic, (int)type);
    memcpy(&request.word[0], operand, request.len_bytes);
    return post(peer, &request);
}

int velo_compare_swap(struct velo_rma_peer *peer, void *old, velo_key_t key, uint64_t offset,
                      const void *compare, const void *desired, size_t len_bytes, int notify,
                      uint64_t cookie)
{
    if (unlikely(!peer || !compare || !desired || (len_bytes != 4 && len_bytes != 8) ||
                 !is_notify(notify)))
        return bad_argument();
    struct request request = {.op = VELO_OP_COMPARE_SWAP,
                              .notify = (uint8_t)notify,
                              .key = key,
                              .cookie = cookie,
                              .len_bytes = len_bytes,
                              .offset = offset,
                              .local = old,
                              .count = 1};
    memcpy(&request.word[0], compare, len_bytes);
    memcpy(&request.word[1], desired, len_bytes);
    return post(peer, &request);
}

/* ---- for the matched queues ------------------------------------------------------------------ */

int rma_fetch(struct velo_rma_peer *peer, void *local, size_t len_bytes, velo_key_t key,
              uint64_t offset, int *outcome)
{
    struct request request = {.op = VELO_OP_GET,
                              .key = key,
                              .len_bytes = len_bytes,
                              .offset = offset,
                              .local = local,
                              .stride = {.block_bytes = len_bytes},
                              .count = 1};
    if (peer->gone)
        return peer->gone;
    int status = rma_reach_do(peer, &request);
    if (status == MUST_ASK)
        return rma_ask_node(peer, &request, outcome);
    if (status)
        return failed_at_once(peer, status);
    *outcome = VELO_OK;
    rma_request_done(peer, &request, VELO_OK);
    return VELO_OK;
}

bool rma_node_fetches(struct velo_rma *rma) { return offload_is_possible(rma); }

/* ---- strided --------------------------------------------------------------------------------- */

static int post_strided(struct velo_rma_peer *peer, enum velo_rma_op op, char *local,
                        velo_key_t key, uint64_t offset, const struct velo_stride *stride,
                        int notify, uint64_t cookie)
{
    uint64_t total;
    if (unlikely(!peer || !stride || !is_notify(notify) ||
                 __builtin_mul_overflow(stride->block_bytes, stride->count, &total) ||
                 (!local && total > 0)))
        return bad_argument();
    if (total == 0)
        return post_contiguous(peer, op, local, 0, key, offset, notify, cookie);
    struct request request = {.op = (uint8_t)op,
                              .notify = (uint8_t)notify,
                              .key = key,
                              .cookie = cookie,
                              .len_bytes = total,
                              .offset = offset,
                              .local = local,
                              .stride = *stride,
                              .count = stride->count};
    return post(peer, &request);
}

int velo_put_strided(struct velo_rma_peer *peer, const void *local, velo_key_t key, uint64_t offset,
                     const struct velo_stride *stride, int notify, uint64_t cookie)
{
    return post_strided(peer, VELO_OP_PUT, (char *)local, key, offset, stride, notify, cookie);
}

int velo_get_strided(struct velo_rma_peer *peer, void *local, velo_key_t key, uint64_t offset,
                     const struct velo_stride *stride, int notify, uint64_t cookie)
{
    return post_strided(peer, VELO_OP_GET, local, key, offset, stride, notify, cookie);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static int post_list(struct velo_rma_peer *peer, enum velo_rma_op op, velo_key_t key,
                     const struct velo_piece *pieces, size_t count, int notify, uint64_t cookie)
{
    uint64_t total = 0;
    if (unlikely(!peer || (!pieces && count > 0) || !is_notify(notify)))
        return bad_argument();
    for (size_t i = 0; i < count; i++)
        if ((!pieces[i].local && pieces[i].len_bytes > 0) ||
            __builtin_add_overflow(total, pieces[i].len_bytes, &total))
            return bad_argument();
    struct request request = {.op = (uint8_t)op,
                              .notify = (uint8_t)notify,
                              .key = key,
                              .cookie = cookie,
                              .len_bytes = total,
                              .pieces = pieces,
                              .count = count};
    return post(peer, &request);
}

int velo_put_list(struct velo_rma_peer *peer, velo_key_t key, const struct velo_piece *pieces,
                  size_t count, int notify, uint64_t cookie)
{
    return post_list(peer, VELO_OP_PUT, key, pieces, count, notify, cookie);
}

int velo_get_list(struct velo_rma_peer *peer, velo_key_t key, const struct velo_piece *pieces,
                  size_t count, int notify, uint64_t cookie)
{
    return post_list(peer, VELO_OP_GET, key, pieces, count, notify, cookie);
}

/* ---- order ----------------------------------------------------------------------------------- */

int velo_rma_fence(struct velo_rma_peer *peer)
{
    if (!peer)
        return VELO_ERR_ARG;
    peer->fence = !peer_is_idle(peer);
    return VELO_OK;
}
