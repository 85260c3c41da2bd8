/* SPDX-License-Identifier: Apache-2.0 */
#include "wait.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct timespec to_timespec(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
}

int64_t wait_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

bool wait_sleep(const uint32_t *word, uint32_t expected, int64_t timeout_ns)
{
    struct timespec timeout = to_timespec(timeout_ns);
    /* With a limit the kernel says so after any handler, whether or not it has SA_RESTART. */
    return syscall(SYS_futex, word, FUTEX_WAIT, expected, &timeout, NULL, 0) != 0 && errno == EINTR;
}

void wait_wake(const uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

bool wait_join_barrier(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

void wait_barrier_all(void) { syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0); }

bool wait_nap(int64_t nap_ns)
{
    struct timespec nap = to_timespec(nap_ns);
    return nanosleep(&nap, NULL) != 0;
}
