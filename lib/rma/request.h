/* SPDX-License-Identifier: Apache-2.0 */
/** @file request.h @brief What a request asks for: its stretches of bytes, its bounds, its right.
 */
#ifndef VELO_RMA_REQUEST_H
#define VELO_RMA_REQUEST_H

#include "unit.h"

/** The next run, of at most limit_bytes. False: there is none. */
VELO_PRIVATE bool rma_request_next(const struct request *request, struct cursor *cursor,
                                   uint64_t limit_bytes, struct run *run);
/** Do all blocks or pieces of a request stay inside this many bytes? */
bool rma_request_parts_fit(const struct request *request, uint64_t size_bytes);
/** Does a request stay inside this many bytes? */
hot_inline bool rma_request_fits(const struct request *request, uint64_t size_bytes)
{
    if (unlikely(request->pieces || request->count > 1))
        return rma_request_parts_fit(request, size_bytes);
    return request->offset <= size_bytes && request->len_bytes <= size_bytes - request->offset;
}

/** Does a request update a word, of len_bytes? */
hot_inline bool rma_request_is_update(const struct request *request)
{
    return request->op >= VELO_RMA_OPERATION_FETCH_COMPARE_ADD &&
           request->op != VELO_RMA_OPERATION_NOTIFY;
}

/** The right that a request needs. */
hot_inline enum velo_rma_right rma_request_right(const struct request *request)
{
    if (request->op == VELO_RMA_OPERATION_GET)
        return VELO_RMA_RIGHT_READ;
    return rma_request_is_update(request) ? VELO_RMA_RIGHT_ATOMIC : VELO_RMA_RIGHT_WRITE;
}

/** The offset in the registration at which a request begins. */
uint64_t rma_request_offset(const struct request *request);
/** The local address of a request, for the notification. */
uint64_t rma_request_address(const struct request *request);

#endif
