/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that waits for a process that it has started lets virtual time pass meanwhile: it looks
 * now and then. A child that ends has the turn until the kernel shows that it has ended, so how
 * often the parent looks does not depend on real time.
 */
#include <stddef.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "caller.h"
#include "nap.h"

/* The first nap between two looks, and the longest. */
#define NAP_NS INT64_C(1000)
#define NAP_NS_MAX INT64_C(100000)

static pid_t wait_for(const void *caller, pid_t pid, int *status, int options, struct rusage *usage)
{
    CALLER_NEXT(wait4);
    if (!next)
        return -1;
    bool is_wait = (options & WNOHANG) == 0;
    struct sim_channel *channel = is_wait ? caller_program_channel(caller) : NULL;
    if (!channel)
        return next(pid, status, options, usage);
    for (int64_t nap_ns = NAP_NS;; nap_ns = nap_ns < NAP_NS_MAX ? 2 * nap_ns : NAP_NS_MAX) {
        pid_t ended = next(pid, status, options | WNOHANG, usage);
        if (ended != 0)
            return ended;
        nap_for_ns(channel, nap_ns);
    }
}

SIM_API pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
    return wait_for(__builtin_return_address(0), pid, status, options, usage);
}

SIM_API pid_t wait3(int *status, int options, struct rusage *usage)
{
    return wait_for(__builtin_return_address(0), -1, status, options, usage);
}

SIM_API pid_t waitpid(pid_t pid, int *status, int options)
{
    return wait_for(__builtin_return_address(0), pid, status, options, NULL);
}

SIM_API pid_t wait(int *status)
{
    return wait_for(__builtin_return_address(0), -1, status, 0, NULL);
}
