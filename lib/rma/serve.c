/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of peers. Each request is complete in itself: we keep nothing of it. One that cannot be
 * answered now stays in its ring, with all that its sender sent after it. Requests and table are
 * not trusted, since peers write them: they are checked against our own list of registrations.
 */
#include "request.h"
#include "unit.h"

/* Puts that one answer tells of, at most: their requester goes on with what it has heard of. */
#define PUTS_PER_ANSWER 32

/* ---- connections for answers ----------------------------------------------------------------- */

/* Let go of connections whose unit is gone. */
static void sweep_conns(struct velo_rma *rma)
{
    for (uint32_t id = 0; id < IDS_MAX; id++) {
        struct velo_conn **conn = &rma->repliers[id];
        if (*conn && velo_conn_status(*conn)) {
            (void)velo_disconnect(*conn);
            *conn = NULL;
        }
    }
}

/* The connection over which a unit expects its answers; NULL if there can be none. */
static struct velo_conn *answer_conn(struct velo_rma *rma, velo_id_t id, uint32_t generation)
{
    struct velo_conn **conn = &rma->repliers[id];
    if (likely(*conn && velo_conn_generation(*conn) == generation))
        return *conn;
    rma_serve_answer(rma); /* Its connection may be among those that end now. */
    sweep_conns(rma);
    if (!*conn && port_connect_present(rma->port, id, conn) != VELO_OK)
        /* The requester may still live: it has to give up, and not wait for ever. */
        order_publish_entry(&rma->table.rows[rma->port->held->index].unanswerable, 1);
    /* The generation that asked may be gone: another generation of the unit expects no answer. */
    return *conn && velo_conn_generation(*conn) == generation ? *conn : NULL;
}

void rma_serve_close(struct velo_rma *rma)
{
    for (uint32_t id = 0; id < IDS_MAX; id++)
        if (rma->repliers[id])
            (void)velo_disconnect(rma->repliers[id]);
}

/* ---- answers --------------------------------------------------------------------------------- */

void rma_serve_answer(struct velo_rma *rma)
{
    struct puts_served *served = &rma->served;
    if (!served->conn)
        return;
    struct wire_answer answer = {
        .before = served->count - 1, .handle = served->handle, .seq = served->seq};
    memcpy(served->place, &answer, sizeof answer);
    (void)velo_commit(served->conn, sizeof answer, WIRE_ANSWER);
    served->conn = NULL;
}

/* Can the answer that is to be sent tell of this put, too? */
static bool goes_along(const struct puts_served *served, const struct velo_conn *conn,
                       const struct wire_request *wire)
{
    return served->conn == conn && served->handle == wire->handle && served->seq + 1 == wire->seq &&
           served->count < PUTS_PER_ANSWER;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Can a correct requester have sent this message? */
static bool is_well_formed(const struct wire_request *wire, size_t data_bytes)
{
    switch (wire->op) {
    case VELO_RMA_OPERATION_PUT:
        return data_bytes == wire->len_bytes;
    case VELO_RMA_OPERATION_PUT_IMMEDIATE:
        return data_bytes == wire->len_bytes && data_bytes >= 1 && data_bytes <= sizeof(uint64_t);
    case VELO_RMA_OPERATION_GET:
        return data_bytes == 0;
    case VELO_RMA_OPERATION_FETCH_COMPARE_ADD:
        return data_bytes == 0 && wire->len_bytes == sizeof(uint64_t) &&
               rma_is_update_how(wire->how);
    case VELO_RMA_OPERATION_FETCH_OP:
        return data_bytes == 0 && wire->len_bytes > 0 &&
               wire->len_bytes == rma_update_bytes(wire->update);
    case VELO_RMA_OPERATION_COMPARE_SWAP:
        return data_bytes == 0 &&
               (wire->len_bytes == sizeof(uint32_t) || wire->len_bytes == sizeof(uint64_t));
    default:
        return false;
    }
}

/* May this source do this, and does it lie in the registration? */
static bool mem_permits(const struct velo_rma_mem *mem, const struct request *request,
                        velo_id_t source)
{
    return (mem->rights & rma_request_right(request)) &&
           (mem->peer == VELO_RMA_PEER_ANY || mem->peer == source) &&
           rma_request_fits(request, mem->len_bytes);
}

/* A request for what its requester does not see in our table: name the registration. */
static cold_path void resolve_request(const struct velo_rma *rma, struct wire_request *wire,
                                      velo_id_t source)
{
    struct request request = {.op = wire->op, .len_bytes = wire->len_bytes, .count = 1};
    bool by_address = wire->key == TABLE_KEY_ADDRESS;
    for (uint32_t i = 0; i < rma->mems_used; i++) {
        const struct velo_rma_mem *mem = &rma->mems[i];
        uint64_t base = by_address ? (uintptr_t)mem->addr : 0;
        request.offset = wire->offset - base;
        if (mem->key == 0 || (!by_address && mem->number != wire->key) ||
            !mem_permits(mem, &request, source))
            continue;
        wire->key = mem->key;
        wire->offset -= base;
        wire->first_offset -= base;
        return;
    }
}

/* The registration, if it permits the request; the answer must fit into one message. */
static const struct velo_rma_mem *find_mem(const struct velo_rma *rma,
                                           const struct wire_request *wire, velo_id_t source,
                                           size_t max_bytes)
{
    const struct velo_rma_mem *mem = &rma->mems[wire->key % VELO_RMA_MEMS_MAX];
    struct request request = {
        .op = wire->op, .offset = wire->offset, .len_bytes = wire->len_bytes, .count = 1};
    if (wire->key == 0 || mem->key != wire->key || !mem_permits(mem, &request, source) ||
        wire->first_offset > mem->len_bytes || wire->len_bytes > max_bytes)
        return NULL;
    if (rma_request_is_update(&request) &&
        (uintptr_t)(mem->addr + wire->offset) % wire->len_bytes != 0)
        return NULL;
    return mem;
}

static void execute_put(const struct wire_request *wire, char *at, const char *data)
{
    uint64_t value = 0;
    bool is_piece = wire->len_bytes && (wire->len_bytes & (wire->len_bytes - 1)) == 0 &&
                    (uintptr_t)at % wire->len_bytes == 0;
    if (wire->op == VELO_RMA_OPERATION_PUT_IMMEDIATE && is_piece) {
        memcpy(&value, data, wire->len_bytes);
        order_store_piece(at, value, wire->len_bytes);
    } else if (wire->len_bytes > 0) {
        size_t tail_bytes = rma_tail_bytes(at + wire->len_bytes, wire->len_bytes);
        size_t head_bytes = wire->len_bytes - tail_bytes;
        memcpy(&value, data + head_bytes, tail_bytes);
        memcpy(at, data, head_bytes);
        order_store_piece(at + head_bytes, value, tail_bytes);
    }
}

/* What an owner is told of an operation, beside what its request says. */
struct outcome {
    uint64_t len_bytes;
    uint64_t word;
};

static void execute_other(const struct wire_request *wire, char *at, char *data, uint64_t *old,
                          struct outcome *outcome)
{
    struct request request = {.op = wire->op,
                              .how = wire->how,
                              .update = wire->update,
                              .len_bytes = wire->len_bytes,
                              .word = {wire->word[0], wire->word[1]}};
    if (rma_request_is_update(&request)) {
        *old = rma_update(at, &request);
        outcome->len_bytes = rma_update_outcome(&request, *old, &outcome->word);
    } else {
        memcpy(data, at, wire->len_bytes);
    }
}

static bool is_put(const struct wire_request *wire)
{
    return wire->op == VELO_RMA_OPERATION_PUT || wire->op == VELO_RMA_OPERATION_PUT_IMMEDIATE;
}

static void notify_access(struct velo_rma *rma, const struct wire_request *wire, velo_id_t source,
                          const struct velo_rma_mem *mem, struct outcome outcome)
{
    queue_push(rma,
               &(struct velo_rma_notification){.class_ = is_put(wire) ? VELO_RMA_CLASS_COMPLETER
                                                                      : VELO_RMA_CLASS_RESPONDER,
                                               .op = wire->op,
                                               .peer = source,
                                               .len_bytes = outcome.len_bytes,
                                               .address = (uintptr_t)mem->addr + wire->first_offset,
                                               .cookie = wire->cookie,
                                               .word = outcome.word});
}

static bool wants_note(const struct wire_request *wire)
{
    return wire->notify & (VELO_RMA_NOTIFY_RESPONDER | VELO_RMA_NOTIFY_COMPLETER);
}

/* VELO_OK; else there is no room for an answer, or nobody waits for it any more. */
static int serve_put(struct velo_rma *rma, struct velo_conn *conn, const struct wire_request *wire,
                     const struct velo_rma_mem *mem, const char *data)
{
    struct puts_served *served = &rma->served;
    if (!goes_along(served, conn, wire)) {
        void *place;
        rma_serve_answer(rma);
        int status = velo_try_reserve(conn, sizeof(struct wire_answer), &place);
        if (status)
            return status;
        *served = (struct puts_served){.conn = conn, .place = place, .handle = wire->handle};
    }
    served->seq = wire->seq;
    served->count++;
    execute_put(wire, mem->addr + wire->offset, data);
    return VELO_OK;
}

/* The same for what has an answer of its own; `mem` is NULL if it is refused. */
static int serve_other(struct velo_rma *rma, struct velo_conn *conn,
                       const struct wire_request *wire, const struct velo_rma_mem *mem,
                       struct outcome *outcome)
{
    struct wire_answer answer = {.handle = wire->handle, .seq = wire->seq};
    size_t data_bytes = mem && wire->op == VELO_RMA_OPERATION_GET ? wire->len_bytes : 0;
    void *place;
    rma_serve_answer(rma);
    int status = velo_try_reserve(conn, sizeof answer + data_bytes, &place);
    if (status)
        return status;
    if (mem)
        execute_other(wire, mem->addr + wire->offset, (char *)place + sizeof answer, &answer.old,
                      outcome);
    else
        answer.status = VELO_ERR_ACCESS;
    memcpy(place, &answer, sizeof answer);
    (void)velo_commit(conn, sizeof answer + data_bytes, WIRE_ANSWER);
    return VELO_OK;
}

bool rma_serve_request(struct velo_rma *rma, const struct velo_msg *msg)
{
    struct wire_request wire;
    if (msg->len_bytes < sizeof wire)
        return true;
    memcpy(&wire, msg->data, sizeof wire); /* Once: its sender can still write there. */
    if (!is_well_formed(&wire, msg->len_bytes - sizeof wire))
        return true;
    if (wants_note(&wire) && !queue_has_room(rma)) {
        rma->stalled = true;
        return false;
    }
    struct velo_conn *conn = answer_conn(rma, msg->source, msg->generation);
    if (!conn)
        return true;
    if (unlikely(wire.key != 0 && wire.key >> TABLE_INDEX_BITS == 0))
        resolve_request(rma, &wire, msg->source);
    const struct velo_rma_mem *mem =
        find_mem(rma, &wire, msg->source, velo_conn_max_bytes(conn) - sizeof(struct wire_answer));
    const char *data = (const char *)msg->data + sizeof wire;
    struct outcome outcome = {.len_bytes = wire.total_bytes};
    int status = mem && is_put(&wire) ? serve_put(rma, conn, &wire, mem, data)
                                      : serve_other(rma, conn, &wire, mem, &outcome);
    if (status)
        return status != VELO_AGAIN; /* Else nobody waits for the answer any more. */
    rma->counters.served += mem != NULL;
    rma->counters.refused_peers += mem == NULL;
    if (mem && wants_note(&wire))
        notify_access(rma, &wire, msg->source, mem, outcome);
    return true;
}

/* ---- notifications --------------------------------------------------------------------------- */

hot_inline bool serve_note(struct velo_rma *rma, velo_id_t source, const struct wire_note *wire,
                           uint64_t word)
{
    if (wire->class_ != VELO_RMA_CLASS_RESPONDER && wire->class_ != VELO_RMA_CLASS_COMPLETER)
        return true;
    if (!queue_has_room(rma)) {
        rma->stalled = true;
        return false;
    }
    queue_push(rma, &(struct velo_rma_notification){.class_ = wire->class_,
                                                    .op = wire->op,
                                                    .peer = source,
                                                    .len_bytes = wire->len_bytes,
                                                    .address = wire->address,
                                                    .cookie = wire->cookie,
                                                    .word = word});
    return true;
}

static cold_path bool serve_note_update(struct velo_rma *rma, const struct velo_msg *msg)
{
    struct wire_note_update wire;
    if (msg->len_bytes != sizeof wire)
        return true;
    memcpy(&wire, msg->data, sizeof wire);
    return serve_note(rma, msg->source, &wire.note, wire.word);
}

bool rma_serve_note(struct velo_rma *rma, const struct velo_msg *msg)
{
    struct wire_note wire;
    if (unlikely(msg->len_bytes != sizeof wire))
        return serve_note_update(rma, msg);
    memcpy(&wire, msg->data, sizeof wire);
    return serve_note(rma, msg->source, &wire, 0);
}
