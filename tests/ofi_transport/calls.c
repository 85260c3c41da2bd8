/* SPDX-License-Identifier: Apache-2.0 */
#include "calls.h"

#include <stddef.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

_Thread_local uint64_t calls_epoll;
uint64_t *calls_events;

__attribute__((visibility("default"))) int epoll_wait(int epfd, struct epoll_event *events,
                                                      int maxevents, int timeout)
{
    int count = (int)syscall(SYS_epoll_pwait, epfd, events, maxevents, timeout, NULL, (size_t)0);
    calls_epoll++;
    if (count > 0 && timeout > 0 && calls_events)
        __atomic_fetch_add(calls_events, 1, __ATOMIC_RELAXED);
    return count;
}
