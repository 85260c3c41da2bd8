/* SPDX-License-Identifier: Apache-2.0 */
#include "request.h"

static void block_at(const struct request *request, size_t index, struct run *run)
{
    if (request->pieces) {
        const struct velo_rma_piece *piece = &request->pieces[index];
        *run = (struct run){piece->local, request->offset + piece->offset, piece->len_bytes};
    } else if (request->op == VELO_RMA_OPERATION_PUT_IMMEDIATE) {
        *run = (struct run){(char *)request->word, request->offset, request->len_bytes};
    } else {
        const struct velo_rma_stride *stride = &request->stride;
        *run = (struct run){request->local + index * stride->local_stride_bytes,
                            request->offset + index * stride->remote_stride_bytes,
                            stride->block_bytes};
    }
}

bool rma_request_next(const struct request *request, struct cursor *cursor, uint64_t limit_bytes,
                      struct run *run)
{
    while (cursor->index < request->count) {
        block_at(request, cursor->index, run);
        uint64_t left = run->len_bytes - cursor->within;
        if (left == 0) {
            *cursor = (struct cursor){.index = cursor->index + 1};
            continue;
        }
        run->local += cursor->within;
        run->offset += cursor->within;
        run->len_bytes = left < limit_bytes ? left : limit_bytes;
        cursor->within += run->len_bytes;
        return true;
    }
    return false;
}

static bool range_fits(uint64_t offset, uint64_t len_bytes, uint64_t size_bytes)
{
    return offset <= size_bytes && len_bytes <= size_bytes - offset;
}

static bool blocks_fit(const struct request *request, uint64_t size_bytes)
{
    const struct velo_rma_stride *stride = &request->stride;
    uint64_t last;
    return !__builtin_mul_overflow(request->count - 1, stride->remote_stride_bytes, &last) &&
           !__builtin_add_overflow(request->offset, last, &last) &&
           range_fits(request->offset, stride->block_bytes, size_bytes) &&
           range_fits(last, stride->block_bytes, size_bytes);
}

bool rma_request_parts_fit(const struct request *request, uint64_t size_bytes)
{
    if (!request->pieces)
        return blocks_fit(request, size_bytes);
    uint64_t offset;
    for (size_t i = 0; i < request->count; i++)
        if (__builtin_add_overflow(request->offset, request->pieces[i].offset, &offset) ||
            !range_fits(offset, request->pieces[i].len_bytes, size_bytes))
            return false;
    return true;
}

uint64_t rma_request_offset(const struct request *request)
{
    return request->offset + (request->pieces && request->count ? request->pieces[0].offset : 0);
}

uint64_t rma_request_address(const struct request *request)
{
    const char *local =
        request->pieces && request->count ? request->pieces[0].local : request->local;
    return (uintptr_t)local;
}
