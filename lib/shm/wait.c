/* SPDX-License-Identifier: Apache-2.0 */
#include "wait.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../base/cancel.h"

#define SPIN_NS_DEFAULT 50000
#define SPIN_NS_LIMIT (10 * NS_PER_S)
#define LOCK_NAP_NS 100000

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
    /* No cancellation point, but since glibc 2.41 a request comes as a signal that ends it. */
    CANCEL_LATER();
    struct timespec timeout = to_timespec(timeout_ns);
    /* With a timeout the kernel reports every handler, with or without SA_RESTART. */
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

int64_t wait_spin_max_ns(void)
{
    const char *text = getenv("VELO_SPIN_NS");
    if (!text || !*text)
        return SPIN_NS_DEFAULT;
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    return errno || *end || value < 0 || value > SPIN_NS_LIMIT ? SPIN_NS_DEFAULT : value;
}

bool wait_nap(int64_t nap_ns)
{
    CANCEL_LATER();
    struct timespec nap = to_timespec(nap_ns);
    return nanosleep(&nap, NULL) != 0;
}

/* Tries and naps: ThreadSanitizer does not know pthread_mutex_clocklock(). */
bool wait_lock(pthread_mutex_t *lock, int64_t timeout_ns)
{
    int64_t end_ns = wait_end_ns(wait_now_ns(), timeout_ns);
    while (pthread_mutex_trylock(lock) != 0) {
        if (wait_now_ns() >= end_ns)
            return false;
        (void)wait_nap(LOCK_NAP_NS);
    }
    return true;
}
