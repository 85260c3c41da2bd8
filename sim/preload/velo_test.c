/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that asks velo whether something has come goes on if nothing has: see mpi_test.c. Only
 * the functions that never wait ask so. When another function of velo calls one of them, or Open
 * MPI's components do, then the program does not ask.
 *
 * As long as this is built into libvelo, the engine's own functions have other names in it
 * (CMakeLists.txt).
 */
#include <velo/mq.h>
#include <velo/rma.h>

#include "../client/poll.h"
#include "caller.h"

static void note(const void *caller)
{
    if (caller_at(caller) == CALLER_PROGRAM)
        sim_poll_tested();
}

#define ASK(name, parameters, arguments)                                                           \
    typedef int name##_call parameters;                                                            \
    SIM_API name##_call velo_##name;                                                               \
    int velo_##name parameters                                                                     \
    {                                                                                              \
        note(__builtin_return_address(0));                                                         \
        return velo_engine_##name arguments;                                                       \
    }

#undef velo_try_recv
#undef velo_try_peek
#undef velo_rma_progress
#undef velo_rma_try_poll
#undef velo_mq_progress

ASK(try_recv, (struct velo_port * port, void *buf, size_t cap_bytes, struct velo_msg *msg),
    (port, buf, cap_bytes, msg))
ASK(try_peek, (struct velo_port * port, struct velo_msg *msg), (port, msg))
ASK(rma_progress, (struct velo_rma * rma), (rma))
ASK(rma_try_poll,
    (struct velo_rma * rma, struct velo_rma_notification *notifications, int notifications_max),
    (rma, notifications, notifications_max))
ASK(mq_progress, (struct velo_mq * mq), (mq))
