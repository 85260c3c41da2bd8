/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fence of the job's launcher (PMIx) is not simulated: it takes as long as it takes in real time,
 * and no virtual time. This library takes the place of PMIx's two calls, tells the simulator, and
 * passes them on. All ranks of a job call them in the same order, and so count them alike.
 */
#include <stddef.h>

#include "../client/poll.h"
#include "caller.h"

/* As in <pmix.h>, which need not be installed: arguments are only passed on. */
#define PMIX_ERR_NOT_SUPPORTED (-47)

typedef int fence(const void *procs, size_t procs_len, const void *info, size_t info_len);
typedef int fence_nb(const void *procs, size_t procs_len, const void *info, size_t info_len,
                     void (*done)(int, void *), void *arg);

SIM_API fence PMIx_Fence;
SIM_API fence_nb PMIx_Fence_nb;

int PMIx_Fence(const void *procs, size_t procs_len, const void *info, size_t info_len)
{
    CALLER_NEXT(PMIx_Fence);
    if (!next)
        return PMIX_ERR_NOT_SUPPORTED;
    sim_poll_go_outside();
    return next(procs, procs_len, info, info_len);
}

int PMIx_Fence_nb(const void *procs, size_t procs_len, const void *info, size_t info_len,
                  void (*done)(int, void *), void *arg)
{
    CALLER_NEXT(PMIx_Fence_nb);
    if (!next)
        return PMIX_ERR_NOT_SUPPORTED;
    sim_poll_go_outside();
    return next(procs, procs_len, info, info_len, done, arg);
}
