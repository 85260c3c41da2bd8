/* SPDX-License-Identifier: Apache-2.0 */
#include "no_device.h"

#include "unit.h"

static bool is_possible(struct velo_rma *rma)
{
    (void)rma;
    return false;
}

static int begin(struct velo_rma_peer *peer, struct op *op)
{
    (void)peer, (void)op;
    return MUST_ASK;
}

static int progress(struct velo_rma *rma)
{
    (void)rma;
    return 0;
}

static void fail(struct velo_rma_peer *peer, int status) { (void)peer, (void)status; }

static int peek(struct velo_rma *rma, struct velo_msg *msg, int64_t timeout_ns)
{
    return timeout_ns ? velo_peek(rma->port, msg, timeout_ns) : velo_try_peek(rma->port, msg);
}

static bool enter(struct velo_rma_mem *mem)
{
    (void)mem;
    return false;
}

static void withdraw(struct velo_rma_mem *mem) { (void)mem; }

static void close_unit(struct velo_rma *rma) { (void)rma; }

const struct rma_offload rma_no_device = {
    .is_possible = is_possible,
    .begin = begin,
    .progress = progress,
    .fail = fail,
    .peek = peek,
    .enter = enter,
    .withdraw = withdraw,
    .close = close_unit,
};
