/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long messages: the receiver's node reads them from the sender's memory. EXTOLL's RMA unit, as the
 * EXTOLL paper has it (GET): a fetch is made of descriptors of PIECE_BYTES, FLIGHTS of an endpoint
 * at a time. Each ends with a notification here; the sender's processor has no part in it.
 *
 * Both sides enter the memory into their nodes' tables for as long as it takes. The sender's pages
 * are granted to the context of one peer, and the node says which context asks, so no key is needed
 * that nobody can guess. A peer may read the rest of the first and of the last page, too. So ports
 * that are shared with a group expose nothing.
 */
#include <stdlib.h>

#include <velo/rma.h>

#include "../../lib/base/order.h"
#include "card.h"

/* Long enough that the way to the peer costs little, short enough that fetches take turns. */
#define PIECE_BYTES (UINT32_C(64) << 10)
/* The other values of a cookie tell this owner of the context from earlier ones. */
#define COOKIE_LIVES 8u

_Static_assert(FLIGHTS *COOKIE_LIVES == 1u << VELO_RMA_DESCRIPTOR_COOKIE_BITS, "a cookie");

struct exposed {
    struct velo_exposed shown; /* First. */
    uint32_t first_page;
};

struct fetch {
    struct fetch_base base; /* First. */
    struct conn *conn;      /* NULL: it has ended. */
    int status;             /* What its descriptors have come to so far. */
    uint64_t from, to;      /* Registered addresses. */
    uint32_t first_page;
    bool is_entered; /* The local memory is. */
};

/* ---- memory ---------------------------------------------------------------------------------- */

/* Enter the pages of memory for one context. `at`: the registered address. */
static bool enter_pages(const struct endpoint *endpoint, const void *memory, size_t len_bytes,
                        unsigned rights, uint16_t peer, uint32_t *first_page, uint64_t *at)
{
    uint64_t address = (uintptr_t)memory;
    uint64_t word = velo_registered_page_pack(1, (uint8_t)rights, 0, 0, peer);
    if (!host_enter_pages(&endpoint->context, address, len_bytes, word, first_page))
        return false;
    *at = velo_registered_address_pack(address % HOST_PAGE_BYTES, *first_page);
    return true;
}

/* A node has a table of pages for contexts that have a queue. */
struct velo_exposed *fetch_expose(const struct circuit *circuit, const void *memory,
                                  size_t len_bytes)
{
    const struct conn *conn = (struct conn *)circuit->circuits;
    struct endpoint *endpoint = conn->endpoint;
    bool is_possible = conn->state == CONN_OPEN && !conn->is_self &&
                       !endpoint->base.attr.is_shared &&
                       host_io->queue_open(&endpoint->context) == VELO_OK;
    struct exposed *exposed = is_possible ? calloc(1, sizeof *exposed) : NULL;
    if (exposed && enter_pages(endpoint, memory, len_bytes, VELO_RMA_RIGHT_READ, conn->address,
                               &exposed->first_page, &exposed->shown.address)) {
        exposed->shown.key = UINT64_C(1) + exposed->first_page;
        return &exposed->shown;
    }
    free(exposed);
    return NULL;
}

void fetch_conceal(const struct endpoint *endpoint, struct velo_exposed *shown)
{
    struct exposed *exposed = (struct exposed *)shown;
    host_io->memory_withdraw(&endpoint->context, exposed->first_page);
    free(exposed);
}

/* ---- fetches --------------------------------------------------------------------------------- */

/* From then on nothing is written to the memory, though descriptors may still be under way. */
static void withdraw_pages(const struct endpoint *endpoint, struct fetch *fetch)
{
    if (fetch->is_entered)
        host_io->memory_withdraw(&endpoint->context, fetch->first_page);
    fetch->is_entered = false;
}

/* No more descriptors of it. */
static void end_fetch(const struct endpoint *endpoint, struct fetch *fetch, int status)
{
    withdraw_pages(endpoint, fetch);
    fetch_settle(&fetch->base, status);
    fetch->conn = NULL;
}

static uint8_t cookie_of(const struct endpoint *endpoint, uint32_t flight)
{
    return (uint8_t)(endpoint->context.opened % COOKIE_LIVES * FLIGHTS + flight);
}

/* False: not now. */
static bool begin_piece(struct endpoint *endpoint, struct fetch *fetch)
{
    uint64_t left_bytes = fetch->base.len_bytes - fetch->base.begun_bytes;
    uint32_t len_bytes = left_bytes < PIECE_BYTES ? (uint32_t)left_bytes : PIECE_BYTES;
    uint16_t peer = fetch->conn->address;
    uint32_t flight = 0;
    while (flight < FLIGHTS && endpoint->flights[flight])
        flight++;
    if (flight == FLIGHTS)
        return false;
    const uint64_t words[3] = {
        velo_rma_descriptor_word0_pack(VELO_RMA_OP_GET, VELO_RMA_PLACE_REQUESTER, 0,
                                       (uint8_t)wire_node(peer), (uint8_t)wire_context(peer),
                                       cookie_of(endpoint, flight), len_bytes),
        velo_rma_descriptor_word1_pack(fetch->to + fetch->base.begun_bytes),
        velo_rma_descriptor_word2_pack(fetch->from + fetch->base.begun_bytes),
    };
    if (!host_io->store(&endpoint->context, VELO_UNIT_RMA, 0, words, 3)) {
        endpoint->base.is_owing = true;
        return false;
    }
    endpoint->flights[flight] = fetch;
    fetch->base.begun_bytes += len_bytes;
    fetch->base.parts++;
    return true;
}

void fetches_push(struct endpoint *endpoint)
{
    for (struct fetch_base *base = endpoint->fetches; base; base = base->next) {
        struct fetch *fetch = (struct fetch *)base;
        while (fetch->conn && fetch->status == VELO_OK && base->begun_bytes < base->len_bytes)
            if (!begin_piece(endpoint, fetch))
                return;
    }
}

int fetch_begin(const struct circuit *circuit, void *to, size_t len_bytes,
                const struct velo_exposed *from, int *outcome)
{
    struct conn *conn = (struct conn *)circuit->circuits;
    struct endpoint *endpoint = conn->endpoint;
    if (conn->state != CONN_OPEN || conn->is_self)
        return VELO_ERR_PEER_DEAD;
    int status = host_io->queue_open(&endpoint->context);
    if (status)
        return status;
    struct fetch *fetch = calloc(1, sizeof *fetch);
    if (!fetch || !enter_pages(endpoint, to, len_bytes, VELO_RMA_RIGHT_READ | VELO_RMA_RIGHT_WRITE,
                               endpoint->place.address, &fetch->first_page, &fetch->to)) {
        free(fetch);
        return endpoint->base.calls->fail(VELO_ERR_NO_MEMORY,
                                          "no room for memory in the node's table of pages");
    }
    fetch->is_entered = true;
    fetch->conn = conn;
    fetch->from = from->address;
    fetch->base.outcome = outcome;
    fetch->base.len_bytes = len_bytes;
    fetches_add(&endpoint->fetches, &fetch->base);
    fetches_push(endpoint);
    return VELO_OK;
}

void fetch_forget(struct endpoint *endpoint, const int *outcome)
{
    for (struct fetch_base *base = endpoint->fetches; base; base = base->next)
        if (base->outcome == outcome)
            end_fetch(endpoint, (struct fetch *)base, VELO_ERR_CANCELLED);
    fetches_sweep(&endpoint->fetches);
}

void fetches_end(const struct conn *conn, int status)
{
    struct endpoint *endpoint = conn->endpoint;
    for (struct fetch_base *base = endpoint->fetches; base; base = base->next)
        if (((struct fetch *)base)->conn == conn)
            end_fetch(endpoint, (struct fetch *)base, status);
    fetches_sweep(&endpoint->fetches);
}

void fetches_free(struct endpoint *endpoint)
{
    while (endpoint->fetches) {
        struct fetch_base *fetch = endpoint->fetches;
        endpoint->fetches = fetch->next;
        free(fetch);
    }
}

/* ---- what the node notifies ------------------------------------------------------------------ */

/* Pieces come in any order. After one that failed the others are waited for: they may still write.
 */
static void take_notification(struct endpoint *endpoint, uint64_t word)
{
    uint32_t flight = velo_rma_notification_cookie(word) % FLIGHTS;
    struct fetch *fetch = endpoint->flights[flight];
    unsigned place = velo_rma_notification_place(word);
    bool is_ours = place == VELO_RMA_PLACE_REQUESTER || place == VELO_RMA_PLACE_ERROR;
    if (!is_ours || !fetch || velo_rma_notification_cookie(word) != cookie_of(endpoint, flight)) {
        endpoint_refuse(&endpoint->base);
        return;
    }
    endpoint->flights[flight] = NULL;
    fetch->base.parts--;
    if (velo_rma_notification_error(word) != VELO_ERROR_NONE)
        fetch->status = VELO_ERR_ACCESS;
    else if (fetch->conn)
        fetch->conn->hearing.was_heard = true; /* Its signs of life may wait behind its data. */
    bool is_begun = fetch->status != VELO_OK || fetch->base.begun_bytes == fetch->base.len_bytes;
    if (fetch->conn && is_begun && fetch->base.parts == 0)
        end_fetch(endpoint, fetch, fetch->status);
}

bool fetches_take(struct endpoint *endpoint)
{
    struct host_context *context = &endpoint->context;
    bool any = false;
    while (context->queue) {
        uint64_t *entry = context->queue + context->queue_head % context->queue_entries * 2;
        uint64_t word = order_read_header(entry);
        if (!velo_rma_notification_valid(word))
            break;
        *entry = 0;
        context->queue_head++;
        host_io->work(HOST_COPY);
        take_notification(endpoint, word);
        store_give_back(endpoint, HOST_REG_QUEUE_READ_POINTERS, context->queue_head,
                        &endpoint->queue_told, context->queue_entries);
        any = true;
    }
    if (any)
        fetches_sweep(&endpoint->fetches);
    return any;
}
