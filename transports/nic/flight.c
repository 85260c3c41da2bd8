/* SPDX-License-Identifier: Apache-2.0 */
#include "flight.h"
#include "../../lib/rma/request.h"

#include "remote.h"

/* Most bytes of one descriptor. */
#define DESCRIPTOR_BYTES_MAX (UINT64_C(4) << 20)
/* The other bits of a cookie tell this generation of the context from earlier ones. */
#define COOKIE_LIVES 4u

_Static_assert(FLIGHTS_MAX *COOKIE_LIVES == 1u << VELO_RMA_DESCRIPTOR_COOKIE_BITS, "a cookie");
_Static_assert(DESCRIPTOR_BYTES_MAX < 1u << VELO_RMA_DESCRIPTOR_LEN_BITS, "a descriptor's length");
_Static_assert(VELO_RMA_OPERATION_PUT == VELO_RMA_OP_PUT &&
                   VELO_RMA_OPERATION_GET == VELO_RMA_OP_GET &&
                   VELO_RMA_OPERATION_PUT_IMMEDIATE == VELO_RMA_OP_PUT_IMMEDIATE &&
                   VELO_RMA_OPERATION_FETCH_COMPARE_ADD == VELO_RMA_OP_FETCH_COMPARE_ADD &&
                   VELO_RMA_OPERATION_NOTIFY == VELO_RMA_OP_NOTIFY,
               "operations have the node's numbers");
_Static_assert(VELO_RMA_NOTIFY_REQUESTER == VELO_RMA_PLACE_REQUESTER &&
                   VELO_RMA_NOTIFY_RESPONDER == VELO_RMA_PLACE_RESPONDER &&
                   VELO_RMA_NOTIFY_COMPLETER == VELO_RMA_PLACE_COMPLETER,
               "so have those who are notified");

/* ---- local memory ---------------------------------------------------------------------------- */

uint32_t flight_windows(const struct offload *offload)
{
    uint32_t in_use = 0;
    for (uint32_t i = 0; i < FLIGHTS_MAX; i++)
        if (offload->flights[i].op)
            in_use |= offload->flights[i].windows;
    return in_use;
}

/* Find the registered address of a flight's local memory. False: the memory has none. */
static bool find_local(struct velo_rma *rma, struct flight *flight, const struct run *run,
                       uint64_t *registered)
{
    struct offload *offload = rma->offload;
    uint64_t address = (uintptr_t)run->local;
    uint32_t window = windows_find(&offload->windows, address, run->len_bytes);
    if (window == WINDOWS_MAX)
        window = windows_make(&offload->windows, flight_windows(offload), nic_port(rma->port),
                              address, run->len_bytes);
    if (window == WINDOWS_MAX)
        return false;
    flight->windows |= UINT32_C(1) << window;
    *registered = windows_use(&offload->windows, window, address);
    return true;
}

/* ---- descriptors ----------------------------------------------------------------------------- */

uint8_t flight_cookie(const struct velo_rma *rma, const struct flight *flight)
{
    uint32_t generation = nic_port(rma->port)->generation % COOKIE_LIVES;
    return (uint8_t)(generation * FLIGHTS_MAX + (uint32_t)(flight - rma->offload->flights));
}

/* The next stretch; false: there is none. */
static bool next_run(const struct request *request, struct cursor *cursor, struct run *run)
{
    bool is_one = request->op == VELO_RMA_OPERATION_FETCH_COMPARE_ADD ||
                  request->op == VELO_RMA_OPERATION_NOTIFY;
    if (!is_one)
        return rma_request_next(request, cursor, DESCRIPTOR_BYTES_MAX, run);
    *run = (struct run){request->local, request->offset, request->len_bytes};
    return cursor->index++ == 0;
}

static bool has_local(const struct request *request)
{
    return request->op != VELO_RMA_OPERATION_PUT_IMMEDIATE &&
           request->op != VELO_RMA_OPERATION_NOTIFY;
}

/* Post one descriptor. False: its local memory has no pages. */
static bool post_run(struct velo_rma *rma, struct flight *flight, const struct run *run,
                     bool is_last)
{
    const struct request *request = &flight->op->request;
    uint32_t to = nic_name_id(flight->peer->conn->net_name);
    uint64_t local = request->op == VELO_RMA_OPERATION_PUT_IMMEDIATE ? request->word[0] : 0;
    if (has_local(request) && !find_local(rma, flight, run, &local))
        return false;
    /* Each descriptor notifies this unit; the last one also those that the operation names. */
    unsigned notify = VELO_RMA_NOTIFY_REQUESTER | (is_last ? request->notify : 0u);
    uint64_t words[5] = {
        velo_rma_descriptor_word0_pack(
            request->op, (uint8_t)notify, request->how == VELO_RMA_ADD_ALWAYS, (uint8_t)(to >> 8),
            (uint8_t)to, flight_cookie(rma, flight), (uint32_t)run->len_bytes),
        velo_rma_descriptor_word1_pack(local),
        velo_rma_descriptor_word2_pack(
            request->op == VELO_RMA_OPERATION_NOTIFY ? 0 : flight->remote + run->offset),
        velo_rma_operands_word0_pack(request->word[0]),
        velo_rma_operands_word1_pack(request->word[1]),
    };
    flight->descriptors++;
    rma->offload->descriptors++;
    nic_send_descriptor(nic_port(rma->port), words,
                        request->op == VELO_RMA_OPERATION_FETCH_COMPARE_ADD ? 5 : 3);
    return true;
}

void flight_post(struct velo_rma *rma, struct flight *flight)
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
