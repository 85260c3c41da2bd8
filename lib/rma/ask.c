/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that wait for their turn, and operations that the owner's library carries out. An
 * asked operation is sent piece by piece as the peer's ring has room; each piece has one answer,
 * and the answers come in the order of the pieces.
 */
#include "../core/senders.h"
#include "no_device.h"
#include "request.h"
#include "unit.h"

/* Calls of progress, each of which takes many messages, that are enough to empty the ring of a peer
 * that has left. */
#define LAST_ROUNDS_MAX 4096u

/* ---- lists of operations --------------------------------------------------------------------- */

static void append_op(struct op_list *list, struct op *op)
{
    op->next = NULL;
    if (list->tail)
        list->tail->next = op;
    else
        list->head = op;
    list->tail = op;
}

static struct op *take_first_op(struct op_list *list)
{
    struct op *op = list->head;
    list->head = op->next;
    if (!list->head)
        list->tail = NULL;
    return op;
}

static struct op *take_free(struct velo_rma_peer *peer)
{
    struct velo_rma *rma = peer->rma;
    struct op *op = rma->ops_free;
    rma->ops_free = op->next;
    rma->ops_used++;
    peer->pending++;
    return op;
}

static void give_back(struct velo_rma_peer *peer, struct op *op)
{
    struct velo_rma *rma = peer->rma;
    op->next = rma->ops_free;
    rma->ops_free = op;
    rma->ops_used--;
    peer->pending--;
}

/* The operation is off all lists: free it, and notify its end. */
static void finish_op(struct velo_rma_peer *peer, struct op *op, int status)
{
    rma_request_done(peer, &op->request, status);
    give_back(peer, op);
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Is an operation one block that fits into one message? Every update is. */
static bool is_one_piece(const struct velo_rma_peer *peer, const struct request *request)
{
    return !request->pieces && request->count == 1 && request->len_bytes <= peer->piece_bytes;
}

/* The next piece. An operation has at least one piece, even one of no bytes. */
static bool next_piece(const struct velo_rma_peer *peer, const struct request *request,
                       struct cursor *cursor, uint64_t pieces, struct run *run)
{
    if (likely(is_one_piece(peer, request))) {
        bool is_immediate = request->op == VELO_RMA_OPERATION_PUT_IMMEDIATE;
        *run = (struct run){is_immediate ? (char *)request->word : request->local, request->offset,
                            request->len_bytes};
        return pieces == 0;
    }
    if (rma_request_next(request, cursor, peer->piece_bytes, run))
        return true;
    *run = (struct run){NULL, rma_request_offset(request), 0};
    return pieces == 0;
}

static bool is_all_sent(const struct velo_rma_peer *peer, const struct op *op)
{
    struct cursor cursor = op->sent;
    struct run run;
    return !next_piece(peer, &op->request, &cursor, op->pieces_sent, &run);
}

static bool carries_data(const struct request *request)
{
    return request->op == VELO_RMA_OPERATION_PUT || request->op == VELO_RMA_OPERATION_PUT_IMMEDIATE;
}

/* VELO_AGAIN: there is no room for the piece now. */
static int send_piece(struct velo_rma_peer *peer, struct op *op)
{
    const struct request *request = &op->request;
    struct cursor cursor = op->sent;
    struct run run;
    (void)next_piece(peer, request, &cursor, op->pieces_sent, &run);
    size_t data_bytes = carries_data(request) ? run.len_bytes : 0;
    void *place;
    int status = velo_try_reserve(peer->conn, sizeof(struct wire_request) + data_bytes, &place);
    if (status)
        return status;
    struct wire_request wire = {.op = request->op,
                                .how = rma_request_is_update(request) ? request->how : 0,
                                .update = request->update,
                                .handle = peer->handle,
                                .seq = peer->seq_sent,
                                .key = request->key,
                                .offset = run.offset,
                                .len_bytes = run.len_bytes,
                                .cookie = request->cookie,
                                .first_offset = rma_request_offset(request),
                                .total_bytes = request->len_bytes};
    if (rma_request_is_update(request))
        memcpy(wire.word, request->word, sizeof wire.word);
    op->sent = cursor;
    op->pieces_sent++;
    peer->seq_sent++;
    if (is_all_sent(peer, op)) {
        wire.notify = request->notify;
        peer->sending = NULL;
    }
    memcpy(place, &wire, sizeof wire);
    if (data_bytes)
        memcpy((char *)place + sizeof wire, run.local, data_bytes);
    return velo_commit(peer->conn, sizeof wire + data_bytes, WIRE_REQUEST);
}

static int send_notify(struct velo_rma_peer *peer, const struct request *request)
{
    struct wire_note note = {.class_ = VELO_RMA_CLASS_COMPLETER,
                             .op = VELO_RMA_OPERATION_NOTIFY,
                             .cookie = request->cookie};
    return velo_try_send(peer->conn, &note, sizeof note, WIRE_NOTE);
}

int rma_do_now(struct velo_rma_peer *peer, const struct request *request)
{
    return request->op == VELO_RMA_OPERATION_NOTIFY ? send_notify(peer, request)
                                                    : rma_reach_do(peer, request);
}

static bool writes_here(const struct request *request)
{
    return request->op == VELO_RMA_OPERATION_GET || rma_request_is_update(request);
}

/* Is a fenced operation behind all before it, although they are not done? It is if the owner
 * carries out all of them, one after the other, unless its data come from memory here that the
 * answers to those before it are still to write. */
static bool is_behind_all(const struct velo_rma_peer *peer, const struct op *op)
{
    bool reads_late = op->request.op == VELO_RMA_OPERATION_PUT && peer->asked_here > 0;
    return op->must_ask && !reads_late && peer->rma->device == &rma_no_device;
}

/* The operation after a fenced one is fenced, too: it may be one that is done without the owner,
 * and would overtake those before the fence. */
static void pass_fence_on(struct velo_rma_peer *peer)
{
    struct op *next = peer->waiting.head->next;
    if (next)
        next->fenced = true;
    else
        peer->fence = true;
}

/* Begin the first operation that waits. VELO_AGAIN: not now. */
static int begin_op(struct velo_rma_peer *peer, int *ended)
{
    struct op *op = peer->waiting.head;
    bool is_fenced = op->fenced && (peer->asked.head || peer->offloaded > 0);
    if (is_fenced && !is_behind_all(peer, op))
        return VELO_AGAIN;
    if (is_fenced)
        pass_fence_on(peer);
    int status = op->must_ask || rma_is_behind_device(peer, &op->request)
                     ? MUST_ASK
                     : rma_do_now(peer, &op->request);
    if (status == MUST_ASK)
        status = peer->rma->device->begin(peer, op);
    if (status == VELO_AGAIN)
        return status;
    (void)take_first_op(&peer->waiting);
    if (status == OFFLOADED)
        return VELO_OK;
    if (status == MUST_ASK) {
        append_op(&peer->asked, op);
        peer->asked_here += writes_here(&op->request);
        peer->sending = op;
        return VELO_OK;
    }
    finish_op(peer, op, status);
    ++*ended;
    return is_final(status) ? status : VELO_OK;
}

int rma_ask_pump(struct velo_rma_peer *peer)
{
    int ended = 0;
    int status = VELO_OK;
    while (status == VELO_OK && !peer->gone && (peer->sending || peer->waiting.head)) {
        status = peer->sending ? send_piece(peer, peer->sending) : begin_op(peer, &ended);
    }
    if (status && status != VELO_AGAIN)
        rma_ask_lose(peer, status);
    return ended;
}

int rma_ask_post(struct velo_rma_peer *peer, const struct request *request, bool must_ask)
{
    struct velo_rma *rma = peer->rma;
    if (!rma->ops_free || !queue_has_room(rma))
        return VELO_AGAIN;
    struct op *op = take_free(peer);
    *op = (struct op){.request = *request, .fenced = peer->fence, .must_ask = must_ask};
    peer->fence = false;
    bool is_first = !peer->waiting.head && !peer->sending;
    append_op(&peer->waiting, op);
    /* Behind others it would only find again that there is no room; progress looks. */
    if (is_first)
        (void)rma_ask_pump(peer);
    return VELO_OK;
}

int rma_ask_device(struct velo_rma_peer *peer, const struct request *request, int *outcome)
{
    const struct rma_offload *device = peer->rma->device;
    if (!device->is_possible(peer->rma))
        return VELO_ERR_ACCESS;
    if (!peer->rma->ops_free)
        return VELO_AGAIN;
    struct op *op = take_free(peer);
    *op = (struct op){.request = *request, .outcome = outcome};
    *outcome = VELO_AGAIN;
    int status = device->begin(peer, op);
    if (status == OFFLOADED)
        return VELO_OK;
    give_back(peer, op);
    return status == MUST_ASK ? VELO_ERR_ACCESS : status;
}

/* End a fetch: only its caller hears of it. */
static void end_fetch(struct velo_rma_peer *peer, struct op *op, int status)
{
    *op->outcome = status == MUST_ASK ? VELO_ERR_ACCESS : status;
    if (status == VELO_OK)
        finish_op(peer, op, status);
    else
        give_back(peer, op);
}

void rma_ask_offloaded(struct velo_rma_peer *peer, struct op *op, int status)
{
    if (op->outcome) {
        end_fetch(peer, op, status);
        return;
    }
    if (status != MUST_ASK) {
        finish_op(peer, op, status);
        return;
    }
    op->is_refused = true;
    op->next = peer->waiting.head;
    peer->waiting.head = op;
    if (!op->next)
        peer->waiting.tail = op;
}

/* ---- answers --------------------------------------------------------------------------------- */

static struct velo_rma_peer *find_peer(const struct velo_rma *rma, const struct velo_msg *msg,
                                       const struct wire_answer *answer)
{
    struct velo_rma_peer *peer = rma->by_handle[answer->handle % PEERS_MAX];
    bool is_ours = peer && peer->handle == answer->handle && peer->id == msg->source &&
                   velo_conn_generation(peer->conn) == msg->generation;
    return is_ours ? peer : NULL;
}

/* Take the data that the owner sent. VELO_ERR_CORRUPT: they do not fit the request. */
static int take_data(const struct velo_rma_peer *peer, struct op *op, const char *data,
                     size_t data_bytes, uint64_t old)
{
    const struct request *request = &op->request;
    struct run run;
    if (rma_request_is_update(request) && request->local)
        memcpy(request->local, &old, request->len_bytes);
    if (request->op != VELO_RMA_OPERATION_GET)
        return data_bytes == 0 ? VELO_OK : VELO_ERR_CORRUPT;
    if (!next_piece(peer, request, &op->answered, op->pieces_answered, &run) ||
        run.len_bytes != data_bytes)
        return VELO_ERR_CORRUPT;
    if (data_bytes)
        memcpy(run.local, data, data_bytes);
    return VELO_OK;
}

/* The next piece was answered, with these data. Returns the number of operations that ended. */
static int take_answer(struct velo_rma_peer *peer, int status, const char *data, size_t data_bytes,
                       uint64_t old)
{
    struct op *op = peer->asked.head;
    if (status == VELO_OK && op->status == VELO_OK)
        status = take_data(peer, op, data, data_bytes, old);
    peer->seq_answered++;
    op->pieces_answered++;
    if (status && op->status == VELO_OK) {
        op->status = status;
        peer->rma->counters.refused += status == VELO_ERR_ACCESS;
        if (peer->sending == op)
            peer->sending = NULL; /* There is no use in sending more. */
    }
    if (peer->sending == op || op->pieces_answered < op->pieces_sent)
        return 0;
    (void)take_first_op(&peer->asked);
    peer->asked_here -= writes_here(&op->request);
    if (op->status == VELO_OK)
        peer->rma->counters.asked++;
    finish_op(peer, op, op->status);
    return 1;
}

static bool waits_for_answer(const struct velo_rma_peer *peer)
{
    const struct op *op = peer->asked.head;
    return op && op->pieces_answered < op->pieces_sent;
}

int rma_ask_answered(struct velo_rma *rma, const struct velo_msg *msg)
{
    struct wire_answer answer;
    int ended = 0;
    if (msg->len_bytes < sizeof answer)
        return 0;
    memcpy(&answer, msg->data, sizeof answer);
    struct velo_rma_peer *peer = find_peer(rma, msg, &answer);
    /* An answer that nobody waits for belongs to an operation that was given up. */
    if (!peer || answer.seq - answer.before != peer->seq_answered)
        return 0;
    while (peer->seq_answered != answer.seq && waits_for_answer(peer))
        ended += take_answer(peer, VELO_OK, NULL, 0, 0);
    if (!waits_for_answer(peer))
        return ended;
    int status = answer.status < 0 && answer.status >= VELO_ERR_SYSTEM ? answer.status : VELO_OK;
    return ended + take_answer(peer, status, (const char *)msg->data + sizeof answer,
                               msg->len_bytes - sizeof answer, answer.old);
}

/* ---- failure --------------------------------------------------------------------------------- */

static void stop_leaving(struct velo_rma_peer *peer)
{
    peer->rma->leaving -= peer->is_leaving;
    peer->is_leaving = false;
}

void rma_ask_fail(struct velo_rma_peer *peer, int status)
{
    stop_leaving(peer);
    peer->gone = status;
    peer->sending = NULL;
    peer->asked_here = 0;
    peer->rma->device->fail(peer, status);
    while (peer->asked.head)
        finish_op(peer, take_first_op(&peer->asked), status);
    while (peer->waiting.head)
        finish_op(peer, take_first_op(&peer->waiting), status);
}

/* Only a peer that has left sends no more: from any other, answers might come for ever. */
void rma_ask_lose(struct velo_rma_peer *peer, int status)
{
    bool has_left = status == VELO_ERR_PEER_CLOSED || status == VELO_ERR_PEER_DEAD;
    if (!has_left || !peer->asked.head) {
        rma_ask_fail(peer, status);
        return;
    }
    peer->gone = status;
    if (peer->sending) /* The rest of it will not be sent. */
        peer->sending->status = status;
    peer->sending = NULL;
    peer->rma->leaving += !peer->is_leaving;
    peer->rma->last_rounds = 0;
    peer->is_leaving = true;
}

static bool is_late(const struct velo_rma_peer *peer)
{
    uint32_t generation = velo_conn_generation(peer->conn);
    return rx_may_be_late(peer->rma->port, peer->id, generation, peer->gone);
}

int rma_ask_end_leaving(struct velo_rma *rma, bool is_dry)
{
    int ended = 0;
    bool is_last = ++rma->last_rounds > LAST_ROUNDS_MAX;
    if (!is_dry && !is_last)
        return 0;
    for (struct velo_rma_peer *peer = rma->peers; peer && rma->leaving > 0; peer = peer->next) {
        if (!peer->is_leaving || (!is_last && is_late(peer)))
            continue;
        ended += (int)peer->pending;
        rma_ask_fail(peer, peer->gone);
    }
    return ended;
}

static int peer_status(const struct velo_rma_peer *peer)
{
    int status = seg_check_owner(peer->conn->segment);
    if (status)
        return status;
    bool unanswerable = peer->row && order_read_entry(&peer->row->unanswerable) != 0;
    return unanswerable ? VELO_ERR_FULL : VELO_OK;
}

void rma_ask_check_peers(struct velo_rma *rma)
{
    for (struct velo_rma_peer *peer = rma->peers; peer; peer = peer->next) {
        int status = peer_is_idle(peer) || peer->gone ? VELO_OK : peer_status(peer);
        if (status)
            rma_ask_lose(peer, status);
    }
}
