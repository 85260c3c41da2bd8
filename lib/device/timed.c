/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's waits for its other threads that have a limit, whose limits are virtual dates. No
 * time passes for a thread that the kernel has put to sleep, so it looks again and again instead,
 * with naps in between. A condition may wake who waits for it for no reason: it wakes after each.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <time.h>

#include <velo/velo.h>

#include "caller.h"
#include "epoch.h"
#include "nap.h"

/* The longer it lasts the longer they get. */
#define NAP_MIN_NS INT64_C(1000)
#define NAP_MAX_NS INT64_C(100000)

/* This thread's wait, as far as it has come: for a condition it is many calls. */
static __thread int64_t limit_ns, last_nap_ns;

static bool is_time(const struct timespec *limit)
{
    return limit->tv_nsec >= 0 && limit->tv_nsec < NS_PER_S;
}

/* Let some time pass. False: the limit has come. */
static bool nap_before(struct sim_channel *channel, int64_t end_ns)
{
    int64_t left_ns = end_ns - (int64_t)(channel->time_ps / PS_PER_NS);
    if (left_ns <= 0)
        return false;
    bool goes_on = end_ns == limit_ns && last_nap_ns > 0;
    int64_t nap_ns = goes_on ? 2 * last_nap_ns : NAP_MIN_NS;
    nap_ns = nap_ns < NAP_MAX_NS ? nap_ns : NAP_MAX_NS;
    limit_ns = end_ns;
    last_nap_ns = nap_ns;
    nap_for_ns(channel, nap_ns < left_ns ? nap_ns : left_ns);
    return true;
}

/* ---- conditions ------------------------------------------------------------------------------ */

static int wait_for_condition(struct sim_channel *channel, pthread_mutex_t *mutex, int64_t end_ns)
{
    int status = pthread_mutex_unlock(mutex);
    if (status != 0)
        return status;
    bool is_early = nap_before(channel, end_ns);
    status = pthread_mutex_lock(mutex);
    return status != 0 ? status : is_early ? 0 : ETIMEDOUT;
}

VELO_API int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                                    const struct timespec *restrict limit)
{
    struct sim_channel *channel = is_time(limit) ? PROGRAM_CHANNEL : NULL;
    if (channel) /* Whose clock the condition's is shows: no time up is as long as a date. */
        return wait_for_condition(
            channel, mutex,
            epoch_time_ns(limit->tv_sec >= EPOCH_S ? CLOCK_REALTIME : CLOCK_MONOTONIC, limit));
    CALLER_NEXT(pthread_cond_timedwait);
    return next ? next(cond, mutex, limit) : ENOSYS;
}

VELO_API int pthread_cond_clockwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                                    clockid_t id, const struct timespec *restrict limit)
{
    struct sim_channel *channel = is_time(limit) ? PROGRAM_CHANNEL : NULL;
    if (channel)
        return wait_for_condition(channel, mutex, epoch_time_ns(id, limit));
    CALLER_NEXT(pthread_cond_clockwait);
    return next ? next(cond, mutex, id, limit) : ENOSYS;
}

/* ---- mutexes --------------------------------------------------------------------------------- */

static int wait_for_mutex(struct sim_channel *channel, pthread_mutex_t *mutex, int64_t end_ns)
{
    for (;;) {
        int status = pthread_mutex_trylock(mutex);
        if (status != EBUSY)
            return status;
        if (!nap_before(channel, end_ns))
            return ETIMEDOUT;
    }
}

VELO_API int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex,
                                     const struct timespec *restrict limit)
{
    struct sim_channel *channel = is_time(limit) ? PROGRAM_CHANNEL : NULL;
    if (channel)
        return wait_for_mutex(channel, mutex, epoch_time_ns(CLOCK_REALTIME, limit));
    CALLER_NEXT(pthread_mutex_timedlock);
    return next ? next(mutex, limit) : ENOSYS;
}

VELO_API int pthread_mutex_clocklock(pthread_mutex_t *restrict mutex, clockid_t id,
                                     const struct timespec *restrict limit)
{
    struct sim_channel *channel = is_time(limit) ? PROGRAM_CHANNEL : NULL;
    if (channel)
        return wait_for_mutex(channel, mutex, epoch_time_ns(id, limit));
    CALLER_NEXT(pthread_mutex_clocklock);
    return next ? next(mutex, id, limit) : ENOSYS;
}

/* ---- semaphores ------------------------------------------------------------------------------ */

static int wait_for_semaphore(struct sim_channel *channel, sem_t *semaphore, int64_t end_ns)
{
    while (sem_trywait(semaphore) != 0) {
        if (errno != EAGAIN)
            return -1;
        if (!nap_before(channel, end_ns)) {
            errno = ETIMEDOUT;
            return -1;
        }
    }
    return 0;
}

VELO_API int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict limit)
{
    struct sim_channel *channel = is_time(limit) ? PROGRAM_CHANNEL : NULL;
    if (channel)
        return wait_for_semaphore(channel, semaphore, epoch_time_ns(CLOCK_REALTIME, limit));
    CALLER_NEXT(sem_timedwait);
    return next ? next(semaphore, limit) : -1;
}

VELO_API int sem_clockwait(sem_t *restrict semaphore, clockid_t id,
                           const struct timespec *restrict limit)
{
    struct sim_channel *channel = is_time(limit) ? PROGRAM_CHANNEL : NULL;
    if (channel)
        return wait_for_semaphore(channel, semaphore, epoch_time_ns(id, limit));
    CALLER_NEXT(sem_clockwait);
    return next ? next(semaphore, id, limit) : -1;
}
