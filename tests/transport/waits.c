/* SPDX-License-Identifier: Apache-2.0 */
#include "waits.h"

#include <poll.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

uint64_t waits;
_Thread_local uint64_t waits_in_vain;
_Thread_local void (*waits_begin)(void);

static void begin(int timeout_ms)
{
    if (timeout_ms != 0 && waits_begin)
        waits_begin();
}

static int counted(long result, int timeout_ms)
{
    if (timeout_ms != 0) {
        __atomic_fetch_add(&waits, 1, __ATOMIC_RELAXED);
        waits_in_vain += result == 0;
    }
    return (int)result;
}

__attribute__((visibility("default"))) int poll(struct pollfd *fds, nfds_t nfds, int timeout)
{
    begin(timeout);
    struct timespec left = {.tv_sec = timeout / 1000, .tv_nsec = timeout % 1000 * 1000000L};
    return counted(syscall(SYS_ppoll, fds, nfds, timeout < 0 ? NULL : &left, NULL, (size_t)0),
                   timeout);
}

__attribute__((visibility("default"))) int epoll_wait(int epfd, struct epoll_event *events,
                                                      int maxevents, int timeout)
{
    begin(timeout);
    return counted(syscall(SYS_epoll_pwait, epfd, events, maxevents, timeout, NULL, (size_t)0),
                   timeout);
}
