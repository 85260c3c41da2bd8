/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remote memory by the node's RMA unit.
 *
 * An operation becomes one descriptor for each stretch without a gap. It is done when each
 * descriptor has its outcome: the node notifies it, with the operation's number as cookie.
 * Registrations are in the node's table of pages as long as they last. Local memory needs pages,
 * too (windows.h).
 *
 * A notification at the other side has a cookie of 64 bits for the library and of 8 bits for the
 * node. Therefore its content goes along as a gated slot of the connection (wire.h), and the node's
 * own notification says that the slot holds.
 *
 * For an update the node reads a word, then writes it: a write of the owner's processor in between
 * is lost. So owners update their memory themselves, unless $VELO_RMA_NODE_UPDATES is 1 in all
 * processes. Updates are then atomic among each other only. A card's never does them: if the memory
 * for a result is not entered any more, the update has been done, and still is refused.
 *
 * The owner's library is asked for the rest: operations of no bytes, on memory that found no room
 * in the node's table or is granted to a peer that the owner has not connected to, and operations
 * that the node refuses. Where cross-memory attach is forbidden ($VELO_RMA_ATTACH, ports opened to
 * a group), it is asked for everything.
 */
#include <stdlib.h>

#include "../../lib/base/error.h"
#include "../../lib/rma/request.h"
#include "../../lib/shm/wait.h"
#include "flight.h"
#include "remote.h"
#include "wire.h"

/* The node answers far sooner, unless cables are pulled. */
#define ANSWERED_NS INT64_C(10000000)

/* NULL: the node cannot be used, or must not be used, since attach is forbidden and so everything
 * is left to the owners. */
static struct offload *offload_of(struct velo_rma *rma)
{
    if (!rma->may_attach || remote_open(nic_port(rma->port)))
        return NULL;
    if (!rma->offload) {
        const char *updates = getenv("VELO_RMA_NODE_UPDATES");
        rma->offload = calloc(1, sizeof *rma->offload);
        if (rma->offload)
            rma->offload->updates =
                host_io->enters_addresses && updates && strtoull(updates, NULL, 10) != 0;
    }
    return rma->offload;
}

static bool is_possible(struct velo_rma *rma) { return offload_of(rma) != NULL; }

/* ---- registrations --------------------------------------------------------------------------- */

/* The hardware's name of a peer; -1: this unit does not know the peer. */
static int64_t hardware_id(const struct velo_rma *rma, uint64_t peer_id)
{
    if (peer_id == rma->port->id)
        return nic_name_id(nic_name(nic_port(rma->port)));
    for (const struct velo_rma_peer *peer = rma->peers; peer; peer = peer->next)
        if (peer->id == peer_id)
            return nic_name_id(peer->conn->net_name);
    return -1;
}

static bool enter(struct velo_rma_mem *mem)
{
    struct velo_rma *rma = mem->rma;
    bool is_any = mem->peer == VELO_RMA_PEER_ANY;
    int64_t peer = is_any ? 0 : hardware_id(rma, mem->peer);
    mem->page = 0;
    if (peer >= 0 && offload_of(rma)) {
        uint64_t word =
            velo_registered_page_pack(!is_any, (uint8_t)mem->rights, 0, 0, (uint16_t)peer);
        uint32_t page;
        if (host_enter_pages(&nic_port(rma->port)->context, (uintptr_t)mem->addr, mem->len_bytes,
                             word, &page))
            mem->page = page + 1;
    }
    order_write_field(&rma->table.entries[mem - rma->mems].page, mem->page);
    return true;
}

static void withdraw(struct velo_rma_mem *mem)
{
    if (mem->page)
        host_io->memory_withdraw(&nic_port(mem->rma->port)->context, mem->page - 1);
    mem->page = 0;
}

/* ---- beginning ------------------------------------------------------------------------------- */

static bool is_noted(const struct request *request)
{
    return request->notify & (VELO_RMA_NOTIFY_RESPONDER | VELO_RMA_NOTIFY_COMPLETER);
}

/* Can the number of this flight be used? One that lingers can, once the receiver has consumed its
 * slot. */
static bool is_free(struct flight *flight)
{
    if (flight->lingers) {
        const struct seg_ring *ring = flight->lingers->conn->tx.shared;
        if ((int64_t)(order_read_credit(&ring->consumed) - flight->note_at) > 0)
            flight->lingers = NULL;
    }
    return !flight->op && !flight->lingers;
}

/* Numbers are taken in turn, so that none is used again soon. */
static struct flight *take_flight(struct offload *offload)
{
    for (uint32_t tries = 0; tries < FLIGHTS_MAX; tries++) {
        struct flight *flight = &offload->flights[offload->next++ % FLIGHTS_MAX];
        if (is_free(flight)) {
            *flight = (struct flight){0};
            return flight;
        }
    }
    return NULL;
}

/* Reserve room in the peer's ring for the notification at the other side. */
static int reserve_note(struct velo_rma_peer *peer, const struct request *request, uint64_t address)
{
    void *place;
    int status = velo_try_reserve(peer->conn, sizeof(struct wire_note), &place);
    if (status)
        return status;
    bool is_read = rma_request_right(request) != VELO_RMA_RIGHT_WRITE;
    struct wire_note note = {.class_ =
                                 is_read ? VELO_RMA_CLASS_RESPONDER : VELO_RMA_CLASS_COMPLETER,
                             .op = request->op,
                             .len_bytes = request->len_bytes,
                             .address = address,
                             .cookie = request->cookie};
    memcpy(place, &note, sizeof note);
    return VELO_OK;
}

_Static_assert(sizeof(struct wire_note) == WIRE_GATED_BYTES, "a gated slot holds a notification");

static int take_off(struct velo_rma_peer *peer, struct op *op, uint64_t remote, uint64_t address)
{
    struct velo_rma *rma = peer->rma;
    struct flight *flight = take_flight(rma->offload);
    if (!flight)
        return VELO_AGAIN;
    if (is_noted(&op->request)) {
        uint64_t position = peer->conn->tx.tail;
        int status = reserve_note(peer, &op->request, address);
        if (status)
            return status;
        flight->is_noted = true;
        flight->note_at = position;
    }
    flight->op = op;
    flight->peer = peer;
    flight->remote = remote;
    peer->offloaded++;
    host_io->work(HOST_CALL);
    flight_post(rma, flight);
    bool is_off = flight->descriptors > 0;
    if (flight->is_noted) { /* It goes after the first descriptors, since they take longer. */
        nic_port(rma->port)->gate = is_off ? flight_cookie(rma, flight) + 1u : 0;
        (void)velo_commit(peer->conn, sizeof(struct wire_note), is_off ? WIRE_NOTE : WIRE_NOTHING);
    }
    if (is_off)
        return OFFLOADED;
    flight->op = NULL;
    peer->offloaded--;
    return MUST_ASK;
}

static int begin(struct velo_rma_peer *peer, struct op *op)
{
    const struct request *request = &op->request;
    uint64_t remote = 0;
    uint64_t address = 0;
    if (request->op == VELO_RMA_OPERATION_NOTIFY) {
        /* A notification comes after the node's operations before it. One that the node refused
         * waits until all of those are done. */
        if (op->is_refused || !offload_of(peer->rma))
            return VELO_AGAIN;
    } else if (op->is_refused || request->len_bytes == 0 ||
               !rma_reach_at_node(peer, request, &remote, &address) || !offload_of(peer->rma)) {
        return MUST_ASK;
    }
    const struct offload *offload = peer->rma->offload;
    bool is_nodes = offload->updates && request->op == VELO_RMA_OPERATION_FETCH_COMPARE_ADD &&
                    request->how != VELO_RMA_ADD_AT_MOST;
    if (rma_request_is_update(request) && !is_nodes)
        return MUST_ASK;
    if (offload->posting || offload->descriptors == REMOTE_DESCRIPTORS_MAX)
        return VELO_AGAIN;
    return take_off(peer, op, remote, address);
}

/* ---- ending ---------------------------------------------------------------------------------- */

/* The status of an operation, from the outcome of one of its descriptors. */
static int status_of(const struct flight *flight, uint8_t error)
{
    bool is_update = flight->op->request.op == VELO_RMA_OPERATION_FETCH_COMPARE_ADD;
    int status = seg_check_owner(flight->peer->conn->segment);
    switch (error) {
    case VELO_ERROR_NONE:
        return VELO_OK;
    case VELO_ERROR_UNREGISTERED:
    case VELO_ERROR_RIGHT:
        return MUST_ASK;
    case VELO_ERROR_CONTEXT:
    case VELO_ERROR_STALL: /* The operation is done, but the other side could not be notified: do it
                              again. */
        return is_update ? VELO_ERR_SYSTEM : MUST_ASK;
    default:
        return status ? status
                      : velo_fail(VELO_ERR_SYSTEM,
                                  "the node refused an operation (error %u); registered memory, "
                                  "and the local buffer, must stay mapped",
                                  error);
    }
}

/* A refused operation may have used windows whose memory is not there any more. Post it once more,
 * with new ones. Not if the other side is told of it: its slot has left. */
static bool post_again(struct velo_rma *rma, struct flight *flight)
{
    struct offload *offload = rma->offload;
    struct velo_rma_peer *peer = flight->peer;
    struct op *op = flight->op;
    uint64_t remote, address;
    if (host_io->enters_addresses || flight->status != MUST_ASK || flight->is_again ||
        flight->is_noted || !flight->windows)
        return false;
    if (offload->posting || offload->descriptors == REMOTE_DESCRIPTORS_MAX ||
        !rma_reach_at_node(peer, &op->request, &remote, &address))
        return false;
    uint32_t used = flight->windows;
    flight->op = NULL;
    windows_drop(&offload->windows, used & ~flight_windows(offload), nic_port(rma->port));
    *flight = (struct flight){.op = op, .peer = peer, .remote = remote, .is_again = true};
    flight_post(rma, flight);
    return flight->descriptors > 0;
}

/* False: it is posted once more. */
static bool land_flight(struct velo_rma *rma, struct flight *flight)
{
    struct velo_rma_peer *peer = flight->peer;
    struct op *op = flight->op;
    if (post_again(rma, flight))
        return false;
    int status = flight->status;
    flight->op = NULL;
    peer->offloaded--;
    if (status && flight->is_noted) {
        nic_send_empty(peer->conn, flight->note_at, WIRE_NOTHING);
        flight->lingers = peer;
    }
    if (status == VELO_OK)
        rma->counters.direct++;
    rma_ask_offloaded(peer, op, status);
    if (is_final(status) && !peer->gone)
        rma_ask_fail(peer, status);
    return true;
}

/* Nothing more of the operation is posted. */
static void stop_posting(struct offload *offload, struct flight *flight)
{
    flight->is_posted = true;
    if (offload->posting == flight)
        offload->posting = NULL;
}

/* True: the outcome ended its operation. */
static bool take_outcome(struct velo_rma *rma, const struct remote_outcome *outcome)
{
    struct flight *flight = &rma->offload->flights[outcome->cookie % FLIGHTS_MAX];
    if (!flight->op || flight->descriptors == 0 || flight_cookie(rma, flight) != outcome->cookie)
        return false;
    flight->descriptors--;
    rma->offload->descriptors--;
    if (outcome->error && !flight->status) {
        flight->status = status_of(flight, outcome->error);
        stop_posting(rma->offload, flight);
    }
    if (flight->descriptors > 0 || !flight->is_posted)
        return false;
    return land_flight(rma, flight);
}

static int progress(struct velo_rma *rma)
{
    struct offload *offload = rma->offload;
    struct remote_outcome outcome;
    int ended = 0;
    if (!offload)
        return 0;
    while (remote_take_outcome(nic_port(rma->port), &outcome))
        ended += take_outcome(rma, &outcome);
    struct flight *flight = offload->posting;
    if (flight)
        flight_post(rma, flight);
    if (flight && flight->is_posted && flight->descriptors == 0) {
        ended += land_flight(rma, flight);
    }
    return ended;
}

static void fail(struct velo_rma_peer *peer, int status)
{
    struct velo_rma *rma = peer->rma;
    struct offload *offload = rma->offload;
    if (!offload)
        return;
    for (uint32_t i = 0; i < FLIGHTS_MAX; i++) {
        struct flight *flight = &offload->flights[i];
        if (flight->op && flight->peer == peer) {
            flight->status = status;
            stop_posting(offload, flight);
        }
    }
    /* The node must end all of its writes before the caller hears that the operation is over. */
    int64_t now_ns = wait_now_ns();
    int64_t end_ns = now_ns + ANSWERED_NS;
    for (; peer->offloaded > 0 && now_ns < end_ns; now_ns = wait_now_ns()) {
        (void)host_io->wait(end_ns - now_ns);
        (void)progress(rma);
    }
    for (uint32_t i = 0; i < FLIGHTS_MAX; i++) {
        struct flight *flight = &offload->flights[i];
        if (flight->op && flight->peer == peer)
            (void)land_flight(rma, flight);
        if (flight->lingers == peer)
            flight->lingers = NULL;
    }
}

/* ---- waiting, closing ------------------------------------------------------------------------ */

static int peek(struct velo_rma *rma, struct velo_msg *msg, int64_t timeout_ns)
{
    if (rma->queue_head != rma->queue_tail)
        host_io->found();
    if (timeout_ns && (!rma->offload || rma->offload->descriptors == 0))
        return velo_peek(rma->port, msg, timeout_ns);
    int64_t end_ns = wait_end_ns(wait_now_ns(), timeout_ns);
    for (;;) {
        int status = velo_try_peek(rma->port, msg);
        int64_t now_ns = wait_now_ns();
        if (status != VELO_AGAIN || remote_has_outcome(nic_port(rma->port)) || now_ns >= end_ns)
            return status;
        if (host_io->wait(end_ns - now_ns))
            return VELO_ERR_INTERRUPTED;
    }
}

static void close_unit(struct velo_rma *rma)
{
    struct offload *offload = rma->offload;
    if (offload)
        windows_close(&offload->windows, nic_port(rma->port));
    free(offload);
    rma->offload = NULL;
}

const struct rma_offload nic_rma = {
    .is_possible = is_possible,
    .begin = begin,
    .progress = progress,
    .fail = fail,
    .peek = peek,
    .enter = enter,
    .withdraw = withdraw,
    .close = close_unit,
};
