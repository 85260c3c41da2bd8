/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that ask for an operation. */
#include "../base/error.h"
#include "fetch.h"
#include "no_device.h"
#include "request.h"
#include "unit.h"

/* ---- posting --------------------------------------------------------------------------------- */

/* The notifications that make sense for an operation. */
static int notify_allowed(const struct request *request)
{
    bool is_read = request->op == VELO_RMA_OPERATION_GET || rma_request_is_update(request);
    return VELO_RMA_NOTIFY_REQUESTER |
           (is_read ? VELO_RMA_NOTIFY_RESPONDER : VELO_RMA_NOTIFY_COMPLETER);
}

static cold_path int failed_at_once(struct velo_rma_peer *peer, int status)
{
    if (is_final(status))
        rma_ask_lose(peer, status);
    return status;
}

/* Queue a request: others are before it, or the owner must be asked. */
static cold_path int post_later(struct velo_rma_peer *peer, const struct request *request)
{
    int status =
        request->op == VELO_RMA_OPERATION_NOTIFY ? VELO_OK : rma_reach_check(peer, request);
    return status < 0 ? failed_at_once(peer, status)
                      : rma_ask_post(peer, request, status == MUST_ASK);
}

static bool must_wait(const struct velo_rma_peer *peer, const struct request *request)
{
    return peer->waiting.head || peer->sending || rma_is_behind_device(peer, request) ||
           (peer->fence && (peer->asked.head || peer->offloaded > 0));
}

static int post_request(struct velo_rma_peer *peer, const struct request *request)
{
    if (unlikely(request->notify & ~notify_allowed(request)))
        return velo_fail(VELO_ERR_ARG,
                         "flags are %#x; give REQUESTER and, for a put, COMPLETER, else RESPONDER",
                         request->notify);
    if (unlikely(peer->gone))
        return velo_fail(peer->gone, "the peer is gone; disconnect");
    if (unlikely(peer->pending > 0) && must_wait(peer, request))
        return post_later(peer, request);
    if (unlikely((request->notify & VELO_RMA_NOTIFY_REQUESTER) && !queue_has_room(peer->rma)))
        return VELO_AGAIN;
    int status = rma_do_now(peer, request);
    if (unlikely(status == MUST_ASK))
        return rma_ask_post(peer, request, true);
    if (likely(status == VELO_OK))
        rma_request_done(peer, request, VELO_OK);
    else if (status != VELO_AGAIN)
        return failed_at_once(peer, status);
    return status;
}

static cold_path int bad_argument(void)
{
    return velo_fail(VELO_ERR_ARG, "a pointer is NULL, a length is out of range, or flags hold "
                                   "what the operation does not have");
}

static bool is_notify(uint32_t flags)
{
    return (flags & ~(uint32_t)(VELO_RMA_NOTIFY_REQUESTER | VELO_RMA_NOTIFY_RESPONDER |
                                VELO_RMA_NOTIFY_COMPLETER)) == 0;
}

/* ---- contiguous ------------------------------------------------------------------------------ */

static int post_contiguous(struct velo_rma_peer *peer, enum velo_rma_operation op, char *local,
                           size_t len_bytes, struct velo_rma_place remote, uint32_t flags,
                           uint64_t cookie)
{
    const uint32_t how = op == VELO_RMA_OPERATION_PUT ? flags & VELO_RMA_TAIL_LAST : 0;
    uint32_t notify = flags & ~how;
    if (unlikely(!peer || (!local && len_bytes > 0) || !is_notify(notify)))
        return bad_argument();
    struct request request = {.op = (uint8_t)op,
                              .notify = (uint8_t)notify,
                              .how = (uint8_t)how,
                              .key = remote.key,
                              .cookie = cookie,
                              .len_bytes = len_bytes,
                              .offset = remote.offset,
                              .local = local,
                              .stride = {.block_bytes = len_bytes},
                              .count = 1};
    return post_request(peer, &request);
}

int velo_rma_put(struct velo_rma_peer *peer, const void *local, size_t len_bytes,
                 struct velo_rma_place remote, uint32_t flags, uint64_t cookie)
{
    return post_contiguous(peer, VELO_RMA_OPERATION_PUT, (char *)local, len_bytes, remote, flags,
                           cookie);
}

int velo_rma_get(struct velo_rma_peer *peer, void *local, size_t len_bytes,
                 struct velo_rma_place remote, uint32_t flags, uint64_t cookie)
{
    return post_contiguous(peer, VELO_RMA_OPERATION_GET, local, len_bytes, remote, flags, cookie);
}

int velo_rma_put_immediate(struct velo_rma_peer *peer, uint64_t value, size_t len_bytes,
                           struct velo_rma_place remote, uint32_t flags, uint64_t cookie)
{
    if (unlikely(!peer || len_bytes < 1 || len_bytes > sizeof value || !is_notify(flags)))
        return bad_argument();
    struct request request = {.op = VELO_RMA_OPERATION_PUT_IMMEDIATE,
                              .notify = (uint8_t)flags,
                              .key = remote.key,
                              .cookie = cookie,
                              .len_bytes = len_bytes,
                              .offset = remote.offset,
                              .word = {value, 0},
                              .count = 1};
    return post_request(peer, &request);
}

int velo_rma_notify(struct velo_rma_peer *peer, uint32_t flags, uint64_t cookie)
{
    if (unlikely(!peer || !is_notify(flags) || !(flags & VELO_RMA_NOTIFY_COMPLETER)))
        return bad_argument();
    struct request request = {
        .op = VELO_RMA_OPERATION_NOTIFY, .notify = (uint8_t)flags, .cookie = cookie, .count = 1};
    return post_request(peer, &request);
}

int velo_rma_fetch_compare_add(struct velo_rma_peer *peer, uint64_t *old,
                               struct velo_rma_place remote, uint64_t compare, uint64_t add,
                               uint32_t flags, uint64_t cookie)
{
    const uint32_t how = flags & (VELO_RMA_ADD_ALWAYS | VELO_RMA_ADD_AT_MOST);
    uint32_t notify = flags & ~how;
    if (unlikely(!peer || !old || !is_notify(notify) || !rma_is_update_how(how)))
        return bad_argument();
    struct request request = {.op = VELO_RMA_OPERATION_FETCH_COMPARE_ADD,
                              .notify = (uint8_t)notify,
                              .how = (uint8_t)how,
                              .key = remote.key,
                              .cookie = cookie,
                              .len_bytes = sizeof *old,
                              .offset = remote.offset,
                              .local = (char *)old,
                              .word = {compare, add},
                              .count = 1};
    return post_request(peer, &request);
}

int velo_rma_fetch_op(struct velo_rma_peer *peer, void *old, struct velo_rma_place remote,
                      enum velo_rma_atomic atomic, enum velo_rma_type type, const void *operand,
                      uint32_t flags, uint64_t cookie)
{
    if (unlikely(!peer || !operand || !is_notify(flags)))
        return bad_argument();
    struct request request = {.op = VELO_RMA_OPERATION_FETCH_OP,
                              .notify = (uint8_t)flags,
                              .update = rma_update_code(atomic, type),
                              .key = remote.key,
                              .cookie = cookie,
                              .offset = remote.offset,
                              .local = old,
                              .count = 1};
    request.len_bytes = atomic > 15 || type > 15 ? 0 : rma_update_bytes(request.update);
    if (unlikely(request.len_bytes == 0))
        return velo_fail(
            VELO_ERR_ARG,
            "there is no update %d of type %d; give an enum velo_rma_atomic and an enum "
            "velo_rma_type, of FLOAT and DOUBLE only ADD, SWAP, MIN and MAX",
            (int)atomic, (int)type);
    memcpy(&request.word[0], operand, request.len_bytes);
    return post_request(peer, &request);
}

int velo_rma_compare_swap(struct velo_rma_peer *peer, void *old, size_t len_bytes,
                          struct velo_rma_place remote, const void *compare, const void *desired,
                          uint32_t flags, uint64_t cookie)
{
    if (unlikely(!peer || !compare || !desired || (len_bytes != 4 && len_bytes != 8) ||
                 !is_notify(flags)))
        return bad_argument();
    struct request request = {.op = VELO_RMA_OPERATION_COMPARE_SWAP,
                              .notify = (uint8_t)flags,
                              .key = remote.key,
                              .cookie = cookie,
                              .len_bytes = len_bytes,
                              .offset = remote.offset,
                              .local = old,
                              .count = 1};
    memcpy(&request.word[0], compare, len_bytes);
    memcpy(&request.word[1], desired, len_bytes);
    return post_request(peer, &request);
}

/* ---- for the matched queues ------------------------------------------------------------------ */

int rma_fetch(struct velo_rma_peer *peer, void *local, size_t len_bytes,
              struct velo_rma_place remote, int *outcome)
{
    struct request request = {.op = VELO_RMA_OPERATION_GET,
                              .key = remote.key,
                              .len_bytes = len_bytes,
                              .offset = remote.offset,
                              .local = local,
                              .stride = {.block_bytes = len_bytes},
                              .count = 1};
    if (peer->gone)
        return peer->gone;
    int status = rma_reach_do(peer, &request);
    if (status == MUST_ASK)
        return rma_ask_device(peer, &request, outcome);
    if (status)
        return failed_at_once(peer, status);
    *outcome = VELO_OK;
    rma_request_done(peer, &request, VELO_OK);
    return VELO_OK;
}

bool rma_device_fetches(struct velo_rma *rma) { return rma->device->is_possible(rma); }

uint64_t rma_fetch_bytes_default(const struct velo_port *port)
{
    return rma_offload_of(port) == &rma_no_device ? RMA_FETCH_BYTES : UINT64_C(8) << 10;
}

/* ---- strided --------------------------------------------------------------------------------- */

static int post_strided(struct velo_rma_peer *peer, enum velo_rma_operation op, char *local,
                        const struct velo_rma_stride *stride, struct velo_rma_place remote,
                        uint32_t flags, uint64_t cookie)
{
    uint64_t total;
    if (unlikely(!peer || !stride || !is_notify(flags) ||
                 __builtin_mul_overflow(stride->block_bytes, stride->count, &total) ||
                 (!local && total > 0)))
        return bad_argument();
    if (total == 0)
        return post_contiguous(peer, op, local, 0, remote, flags, cookie);
    struct request request = {.op = (uint8_t)op,
                              .notify = (uint8_t)flags,
                              .key = remote.key,
                              .cookie = cookie,
                              .len_bytes = total,
                              .offset = remote.offset,
                              .local = local,
                              .stride = *stride,
                              .count = stride->count};
    return post_request(peer, &request);
}

int velo_rma_put_strided(struct velo_rma_peer *peer, const void *local,
                         const struct velo_rma_stride *stride, struct velo_rma_place remote,
                         uint32_t flags, uint64_t cookie)
{
    return post_strided(peer, VELO_RMA_OPERATION_PUT, (char *)local, stride, remote, flags, cookie);
}

int velo_rma_get_strided(struct velo_rma_peer *peer, void *local,
                         const struct velo_rma_stride *stride, struct velo_rma_place remote,
                         uint32_t flags, uint64_t cookie)
{
    return post_strided(peer, VELO_RMA_OPERATION_GET, local, stride, remote, flags, cookie);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static int post_list(struct velo_rma_peer *peer, enum velo_rma_operation op,
                     const struct velo_rma_piece *pieces, size_t count,
                     struct velo_rma_place remote, uint32_t flags, uint64_t cookie)
{
    uint64_t total = 0;
    if (unlikely(!peer || (!pieces && count > 0) || !is_notify(flags)))
        return bad_argument();
    for (size_t i = 0; i < count; i++)
        if ((!pieces[i].local && pieces[i].len_bytes > 0) ||
            __builtin_add_overflow(total, pieces[i].len_bytes, &total))
            return bad_argument();
    struct request request = {.op = (uint8_t)op,
                              .notify = (uint8_t)flags,
                              .key = remote.key,
                              .cookie = cookie,
                              .len_bytes = total,
                              .offset = remote.offset,
                              .pieces = pieces,
                              .count = count};
    return post_request(peer, &request);
}

int velo_rma_put_list(struct velo_rma_peer *peer, const struct velo_rma_piece *pieces, size_t count,
                      struct velo_rma_place remote, uint32_t flags, uint64_t cookie)
{
    return post_list(peer, VELO_RMA_OPERATION_PUT, pieces, count, remote, flags, cookie);
}

int velo_rma_get_list(struct velo_rma_peer *peer, const struct velo_rma_piece *pieces, size_t count,
                      struct velo_rma_place remote, uint32_t flags, uint64_t cookie)
{
    return post_list(peer, VELO_RMA_OPERATION_GET, pieces, count, remote, flags, cookie);
}

/* ---- order ----------------------------------------------------------------------------------- */

int velo_rma_fence(struct velo_rma_peer *peer)
{
    if (!peer)
        return velo_fail(VELO_ERR_ARG, "peer is NULL");
    peer->fence = !peer_is_idle(peer);
    return VELO_OK;
}
