/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages whose data is not in one piece. The caller's functions pack it into the memory that the
 * receiver reads, and unpack it from there, piece by piece: there is no packed copy of the whole.
 *
 * A posted receive into a layout has a state of its own and no room, so that the short ways leave
 * its message to mq_recv_start() and cost what they cost without layouts.
 */
#include "../base/error.h"
#include "internal.h"

int mq_layout_send(const struct transfer *op, size_t most_bytes, const void *trailer,
                   size_t trailer_bytes, uint64_t *packed_bytes)
{
    char *to;
    size_t cookie_bytes = op->has_cookie ? sizeof op->cookie : 0;
    int status =
        velo_try_reserve(op->peer->conn, most_bytes + cookie_bytes + trailer_bytes, (void **)&to);
    if (status)
        return status;
    size_t len_bytes = most_bytes > 0 ? mq_data_in(op, to, most_bytes) : 0;
    if (unlikely(len_bytes > most_bytes || (len_bytes == 0 && most_bytes > 0) ||
                 (op->kind != MQ_WIRE_RTS && len_bytes < most_bytes))) {
        (void)velo_commit(op->peer->conn, 0, 0); /* The receiver counts it as an error. */
        return velo_fail(VELO_ERR_ARG, "pack() of a layout gave %zu bytes of %zu", len_bytes,
                         most_bytes);
    }
    *packed_bytes = len_bytes;
    memcpy(to + len_bytes, &op->cookie, cookie_bytes);
    memcpy(to + len_bytes + cookie_bytes, trailer, trailer_bytes);
    return velo_commit(op->peer->conn, len_bytes + cookie_bytes + trailer_bytes,
                       mq_tag_of((enum mq_wire_kind)op->kind, op->space, op->has_cookie));
}
