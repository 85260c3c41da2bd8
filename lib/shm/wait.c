/* SPDX-License-Identifier: Apache-2.0 */
#include "wait.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "../base/cancel.h"
#include "../base/fd.h"

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

/* ---- doorbells ------------------------------------------------------------------------------- */

static socklen_t doorbell_address(uint32_t generation, struct sockaddr_un *address)
{
    /* The first byte is 0: an abstract name, which needs no file. */
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    int len = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "velo-doorbell-%08x",
                       generation);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

int wait_doorbell_open(uint32_t generation)
{
    struct sockaddr_un address;
    socklen_t len = doorbell_address(generation, &address);
    int fd = fd_above_standard(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fd >= 0 && bind(fd, (const struct sockaddr *)&address, len) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

void wait_doorbell_ring(uint32_t generation)
{
    CANCEL_LATER();
    struct sockaddr_un address;
    socklen_t len = doorbell_address(generation, &address);
    int fd = fd_above_standard(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fd < 0)
        return;
    (void)sendto(fd, "", 1, MSG_NOSIGNAL, (const struct sockaddr *)&address, len);
    close(fd);
}

void wait_doorbell_ring_own(int fd, uint32_t generation)
{
    CANCEL_LATER();
    struct sockaddr_un address;
    socklen_t len = doorbell_address(generation, &address);
    char byte;
    if (recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0)
        (void)sendto(fd, "", 1, MSG_NOSIGNAL, (const struct sockaddr *)&address, len);
}

void wait_doorbell_drain(int fd)
{
    char byte;
    while (recv(fd, &byte, 1, MSG_DONTWAIT) >= 0)
        ;
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
