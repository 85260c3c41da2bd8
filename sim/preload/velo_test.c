/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that asks velo whether something has come goes on if nothing has: see mpi_test.c. Only
 * the functions that never wait ask so. When Open MPI's components call one of them, then the
 * program does not ask. (Calls within libvelo do not come here.)
 */
#include <velo/mq.h>
#include <velo/rma.h>

#include "../client/poll.h"
#include "caller.h"

#define ASK(name, parameters, arguments)                                                           \
    int name parameters                                                                            \
    {                                                                                              \
        CALLER_NEXT(name);                                                                         \
        if (!next)                                                                                 \
            return VELO_ERR_SYSTEM;                                                                \
        if (caller_at(__builtin_return_address(0)) == CALLER_PROGRAM)                              \
            sim_poll_tested();                                                                     \
        return next arguments;                                                                     \
    }

ASK(velo_try_recv, (struct velo_port * port, void *buf, size_t cap_bytes, struct velo_msg *msg),
    (port, buf, cap_bytes, msg))
ASK(velo_try_peek, (struct velo_port * port, struct velo_msg *msg), (port, msg))
ASK(velo_rma_progress, (struct velo_rma * rma), (rma))
ASK(velo_rma_try_poll,
    (struct velo_rma * rma, struct velo_rma_notification *notifications, int notifications_max),
    (rma, notifications, notifications_max))
ASK(velo_mq_progress, (struct velo_mq * mq), (mq))
