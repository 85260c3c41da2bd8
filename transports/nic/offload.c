/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remote memory by the node's RMA unit.
 *
 * An operation becomes one descriptor for each stretch without a gap, and is done when each of them
 * has its outcome, which the node tells by a notification with the operation's number as cookie.
 * Registrations are in the node's table of pages as long as they stand. The local side needs pages,
 * too: it is entered in windows that stay, since a page names an address and not what is there.
 *
 * A notification at the other side has 64 bits of cookie here and 8 there: what it tells goes along
 * as a gated slot of the connection (wire.h), and the node's own notification says that it holds.
 *
 * The node reads a word, then writes it: what the owner's processor does to it meanwhile is lost.
 * So owners update their memory themselves, unless $VELO_RMA_NODE_UPDATES is 1 for all who take
 * part; updates are then atomic among each other only.
 *
 * Asked for as before: operations on nothing, memory that found no room in the node's table or is
 * granted to a peer that the owner has not connected to, and whatever the node refuses. All is
 * where cross-memory attach is forbidden ($VELO_RMA_ATTACH, ports opened to a group).
 */
#include "../../lib/rma/offload.h"

#include <stdlib.h>

#include "../../lib/base/error.h"
#include "../../lib/shm/wait.h"
#include "remote.h"
#include "windows.h"
#include "wire.h"

/* Operations under way at once; each is told by its number in a descriptor's cookie. */
#define FLIGHTS_MAX 64u
/* The rest of a cookie tells this life of our context from earlier ones. */
#define COOKIE_LIVES 4u
/* Most bytes of one descriptor. */
#define DESCRIPTOR_BYTES_MAX (UINT64_C(4) << 20)
/* The node answers far sooner, unless cables are pulled. */
#define ANSWERED_NS INT64_C(10000000)

/* An operation that the node carries out. */
struct flight {
    struct op *op; /* NULL: none. */
    struct velo_rma_peer *peer;
    uint64_t remote;      /* Registered address of the registration's first byte. */
    struct cursor sent;   /* How far it is posted. */
    uint32_t descriptors; /* Under way. */
    uint32_t windows;     /* In use, one bit each. */
    int status;
    bool is_posted;   /* All of it. */
    bool is_noted;    /* The other side has a gated slot for it... */
    uint64_t note_at; /* ...at this position. */
    /* It was noted and failed: its number is not used again before that slot is consumed. */
    const struct velo_rma_peer *lingers;
};

struct offload {
    bool updates; /* May the node do them? */
    struct flight flights[FLIGHTS_MAX];
    struct flight *posting; /* The one that is half posted. */
    uint32_t next;
    uint32_t descriptors; /* Under way. */
    struct windows windows;
};

_Static_assert(FLIGHTS_MAX *COOKIE_LIVES == 1u << VELO_RMA_DESCRIPTOR_COOKIE_BITS, "a cookie");
_Static_assert(DESCRIPTOR_BYTES_MAX < 1u << VELO_RMA_DESCRIPTOR_LEN_BITS, "a descriptor's length");
_Static_assert(VELO_OP_PUT == VELO_RMA_OP_PUT && VELO_OP_GET == VELO_RMA_OP_GET &&
                   VELO_OP_PUT_IMMEDIATE == VELO_RMA_OP_PUT_IMMEDIATE &&
                   VELO_OP_FETCH_COMPARE_ADD == VELO_RMA_OP_FETCH_COMPARE_ADD &&
                   VELO_OP_NOTIFY == VELO_RMA_OP_NOTIFY,
               "operations have the node's numbers");
_Static_assert(VELO_NOTIFY_REQUESTER == VELO_RMA_PLACE_REQUESTER &&
                   VELO_NOTIFY_RESPONDER == VELO_RMA_PLACE_RESPONDER &&
                   VELO_NOTIFY_COMPLETER == VELO_RMA_PLACE_COMPLETER,
               "so have those who are notified");

/* NULL: the node cannot be used, or is not to be: what forbids attach has owners do all themselves.
 */
static struct offload *offload_of(struct velo_rma *rma)
{
    if (!rma->may_attach || remote_open(rma->port->device))
        return NULL;
    if (!rma->offload) {
        const char *updates = getenv("VELO_RMA_NODE_UPDATES");
        rma->offload = calloc(1, sizeof *rma->offload);
        if (rma->offload)
            rma->offload->updates = updates && strtoull(updates, NULL, 10) != 0;
    }
    return rma->offload;
}

bool offload_is_possible(struct velo_rma *rma) { return offload_of(rma) != NULL; }

/* ---- registrations --------------------------------------------------------------------------- */

/* Who that is to the hardware; -1: not known here. */
static int64_t hardware_id(const struct velo_rma *rma, uint64_t peer_id)
{
    if (peer_id == rma->port->id)
        return nic_name_id(nic_name(rma->port->device));
    for (const struct velo_rma_peer *peer = rma->peers; peer; peer = peer->next)
        if (peer->id == peer_id)
            return nic_name_id(peer->conn->peer_device);
    return -1;
}

void offload_register(struct velo_rma *rma, struct velo_mem *mem, struct table_entry *entry)
{
    bool is_any = mem->peer == VELO_PEER_ANY;
    int64_t peer = is_any ? 0 : hardware_id(rma, mem->peer);
    uint64_t from = (uintptr_t)mem->addr & ~(HOST_PAGE_BYTES - 1);
    uint64_t end = (uintptr_t)mem->addr + mem->len_bytes;
    uint64_t len_bytes = (end - from + HOST_PAGE_BYTES - 1) & ~(HOST_PAGE_BYTES - 1);
    mem->page = 0;
    if (peer >= 0 && offload_of(rma)) {
        uint64_t word =
            velo_registered_page_pack(!is_any, (uint8_t)mem->rights, 0, 0, (uint16_t)peer);
        uint32_t page;
        if (host_io->memory_enter(&rma->port->device->context, from, len_bytes, word, &page))
            mem->page = page + 1;
    }
    order_write_field(&entry->page, mem->page);
}

void offload_deregister(struct velo_rma *rma, struct velo_mem *mem)
{
    if (mem->page)
        host_io->memory_withdraw(&rma->port->device->context, mem->page - 1);
    mem->page = 0;
}

/* ---- local memory ---------------------------------------------------------------------------- */

static uint32_t windows_in_use(const struct offload *offload)
{
    uint32_t in_use = 0;
    for (uint32_t i = 0; i < FLIGHTS_MAX; i++)
        if (offload->flights[i].op)
            in_use |= offload->flights[i].windows;
    return in_use;
}

/* The registered address of local memory, for a flight. False: there is none for it. */
static bool find_local(struct velo_rma *rma, struct flight *flight, const struct run *run,
                       uint64_t *registered)
{
    struct offload *offload = rma->offload;
    uint64_t address = (uintptr_t)run->local;
    uint32_t window = windows_find(&offload->windows, address, run->len_bytes);
    if (window == WINDOWS_MAX)
        window = windows_make(&offload->windows, windows_in_use(offload), rma->port->device,
                              address, run->len_bytes);
    if (window == WINDOWS_MAX)
        return false;
    flight->windows |= UINT32_C(1) << window;
    *registered = windows_use(&offload->windows, window, address);
    return true;
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static uint8_t cookie_of(const struct velo_rma *rma, const struct flight *flight)
{
    uint32_t life = rma->port->device->life % COOKIE_LIVES;
    return (uint8_t)(life * FLIGHTS_MAX + (uint32_t)(flight - rma->offload->flights));
}

/* The next stretch; false: there is none. */
static bool next_run(const struct request *request, struct cursor *cursor, struct run *run)
{
    bool is_one = request->op == VELO_OP_FETCH_COMPARE_ADD || request->op == VELO_OP_NOTIFY;
    if (!is_one)
        return rma_request_next(request, cursor, DESCRIPTOR_BYTES_MAX, run);
    *run = (struct run){request->local, request->offset, request->len_bytes};
    return cursor->index++ == 0;
}

static bool has_local(const struct request *request)
{
    return request->op != VELO_OP_PUT_IMMEDIATE && request->op != VELO_OP_NOTIFY;
}

/* Post one descriptor. False: its local memory has no pages. */
static bool post_run(struct velo_rma *rma, struct flight *flight, const struct run *run,
                     bool is_last)
{
    const struct request *request = &flight->op->request;
    uint32_t to = nic_name_id(flight->peer->conn->peer_device);
    uint64_t local = request->op == VELO_OP_PUT_IMMEDIATE ? request->word[0] : 0;
    if (has_local(request) && !find_local(rma, flight, run, &local))
        return false;
    /* Each tells us what became of it; the last one, whom else the operation names. */
    unsigned notify = VELO_NOTIFY_REQUESTER | (is_last ? request->notify : 0u);
    uint64_t words[5] = {
        velo_rma_descriptor_word0_pack(request->op, (uint8_t)notify, request->always,
                                       (uint8_t)(to >> 8), (uint8_t)to, cookie_of(rma, flight),
                                       (uint32_t)run->len_bytes),
        velo_rma_descriptor_word1_pack(local),
        velo_rma_descriptor_word2_pack(
            request->op == VELO_OP_NOTIFY ? 0 : flight->remote + run->offset),
        velo_rma_operands_word0_pack(request->word[0]),
        velo_rma_operands_word1_pack(request->word[1]),
    };
    flight->descriptors++;
    rma->offload->descriptors++;
    nic_send_descriptor(rma->port->device, words, request->op == VELO_OP_FETCH_COMPARE_ADD ? 5 : 3);
    return true;
}

/* Post what may be posted now. */
static void post_some(struct velo_rma *rma, struct flight *flight)
{
    struct offload *offload = rma->offload;
    const struct request *request = &flight->op->request;
    while (!flight->is_posted && offload->descriptors < REMOTE_DESCRIPTORS_MAX) {
        struct run run;
        struct run unused;
        (void)next_run(request, &flight->sent, &run);
        struct cursor ahead = flight->sent;
        flight->is_posted = !next_run(request, &ahead, &unused);
        if (!post_run(rma, flight, &run, flight->is_posted)) {
            flight->status = MUST_ASK;
            flight->is_posted = true;
        }
    }
    offload->posting = flight->is_posted ? NULL : flight;
}

/* ---- beginning ------------------------------------------------------------------------------- */

static bool is_noted(const struct request *request)
{
    return request->notify & (VELO_NOTIFY_RESPONDER | VELO_NOTIFY_COMPLETER);
}

/* Is its number free to use? Those that linger are, once the receiver has come past their slot. */
static bool is_free(struct flight *flight)
{
    if (flight->lingers) {
        const struct seg_ring *ring = flight->lingers->conn->tx.shared;
        if ((int64_t)(order_read_credit(&ring->consumed) - flight->note_at) > 0)
            flight->lingers = NULL;
    }
    return !flight->op && !flight->lingers;
}

/* In turn, so that a number is not used again soon. */
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

/* Room in its peer's ring for what the other side is told. */
static int reserve_note(struct velo_rma_peer *peer, const struct request *request, uint64_t address)
{
    void *place;
    int status = velo_try_reserve(peer->conn, sizeof(struct wire_note), &place);
    if (status)
        return status;
    bool is_read = rma_request_right(request) != VELO_RIGHT_WRITE;
    struct wire_note note = {.class_ = is_read ? VELO_CLASS_RESPONDER : VELO_CLASS_COMPLETER,
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
    post_some(rma, flight);
    bool is_off = flight->descriptors > 0;
    if (flight->is_noted) { /* Behind the first descriptors: they take longer to do. */
        rma->port->device->gate = is_off ? cookie_of(rma, flight) + 1u : 0;
        (void)velo_commit(peer->conn, sizeof(struct wire_note), is_off ? WIRE_NOTE : WIRE_NOTHING);
    }
    if (is_off)
        return OFFLOADED;
    flight->op = NULL;
    peer->offloaded--;
    return MUST_ASK;
}

int offload_begin(struct velo_rma_peer *peer, struct op *op)
{
    const struct request *request = &op->request;
    uint64_t remote = 0;
    uint64_t address = 0;
    if (request->op == VELO_OP_NOTIFY) {
        /* It follows what the node does; where the node refused it, when all that is done. */
        if (op->is_refused || !offload_of(peer->rma))
            return VELO_AGAIN;
    } else if (op->is_refused || request->len_bytes == 0 ||
               !rma_reach_at_node(peer, request, &remote, &address) || !offload_of(peer->rma)) {
        return MUST_ASK;
    }
    const struct offload *offload = peer->rma->offload;
    bool is_nodes = offload->updates && request->op == VELO_OP_FETCH_COMPARE_ADD;
    if (rma_request_is_update(request) && !is_nodes)
        return MUST_ASK;
    if (offload->posting || offload->descriptors == REMOTE_DESCRIPTORS_MAX)
        return VELO_AGAIN;
    return take_off(peer, op, remote, address);
}

/* ---- ending ---------------------------------------------------------------------------------- */

/* What a descriptor's outcome means to its operation. */
static int status_of(const struct flight *flight, uint8_t error)
{
    bool is_update = flight->op->request.op == VELO_OP_FETCH_COMPARE_ADD;
    int status = seg_check_owner(flight->peer->conn->segment);
    switch (error) {
    case VELO_ERROR_NONE:
        return VELO_OK;
    case VELO_ERROR_UNREGISTERED:
    case VELO_ERROR_RIGHT:
        return MUST_ASK;
    case VELO_ERROR_CONTEXT:
    case VELO_ERROR_STALL: /* Done, but that the other side could not be told: do it again. */
        return is_update ? VELO_ERR_SYSTEM : MUST_ASK;
    default:
        return status ? status
                      : velo_fail(VELO_ERR_SYSTEM,
                                  "the node refused an operation (error %u); registered memory, "
                                  "and the local buffer, must stay mapped",
                                  error);
    }
}

static void land(struct velo_rma *rma, struct flight *flight)
{
    struct velo_rma_peer *peer = flight->peer;
    struct op *op = flight->op;
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
}

/* Does nothing more of it. */
static void stop_posting(struct offload *offload, struct flight *flight)
{
    flight->is_posted = true;
    if (offload->posting == flight)
        offload->posting = NULL;
}

/* True: its operation ended. */
static bool take_outcome(struct velo_rma *rma, const struct remote_outcome *outcome)
{
    struct flight *flight = &rma->offload->flights[outcome->cookie % FLIGHTS_MAX];
    if (!flight->op || flight->descriptors == 0 || cookie_of(rma, flight) != outcome->cookie)
        return false;
    flight->descriptors--;
    rma->offload->descriptors--;
    if (outcome->error && !flight->status) {
        flight->status = status_of(flight, outcome->error);
        stop_posting(rma->offload, flight);
    }
    if (flight->descriptors > 0 || !flight->is_posted)
        return false;
    land(rma, flight);
    return true;
}

int offload_progress(struct velo_rma *rma)
{
    struct offload *offload = rma->offload;
    struct remote_outcome outcome;
    int ended = 0;
    if (!offload)
        return 0;
    while (remote_take_outcome(rma->port->device, &outcome))
        ended += take_outcome(rma, &outcome);
    struct flight *flight = offload->posting;
    if (flight)
        post_some(rma, flight);
    if (flight && flight->is_posted && flight->descriptors == 0) {
        land(rma, flight);
        ended++;
    }
    return ended;
}

void offload_fail(struct velo_rma_peer *peer, int status)
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
    /* What the node still writes here it must have written before we say that it is over. */
    int64_t end_ns = wait_now_ns() + ANSWERED_NS;
    while (peer->offloaded > 0 && wait_now_ns() < end_ns) {
        host_io->wait(end_ns);
        (void)offload_progress(rma);
    }
    for (uint32_t i = 0; i < FLIGHTS_MAX; i++) {
        struct flight *flight = &offload->flights[i];
        if (flight->op && flight->peer == peer)
            land(rma, flight);
        if (flight->lingers == peer)
            flight->lingers = NULL;
    }
}

/* ---- waiting, closing ------------------------------------------------------------------------ */

int offload_peek(struct velo_rma *rma, struct velo_msg *msg, int64_t timeout_ns)
{
    if (rma->queue_head != rma->queue_tail)
        host_io->found();
    if (timeout_ns && (!rma->offload || rma->offload->descriptors == 0))
        return velo_peek_wait(rma->port, msg, timeout_ns);
    int64_t end_ns = wait_now_ns() + timeout_ns;
    for (;;) {
        int status = velo_peek(rma->port, msg);
        if (status != VELO_AGAIN || remote_has_outcome(rma->port->device) ||
            wait_now_ns() >= end_ns)
            return status;
        host_io->wait(end_ns);
    }
}

void offload_close(struct velo_rma *rma)
{
    struct offload *offload = rma->offload;
    if (offload)
        windows_close(&offload->windows, rma->port->device);
    free(offload);
    rma->offload = NULL;
}
