/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of a rank wait for each other in virtual time: for mutexes, conditions, semaphores, and
 * for the end of a thread. A thread that the kernel put to sleep would keep the turn, and the
 * thread that is to wake it could not go on. So a thread waits in the simulator, and the thread
 * that wakes it says so in its channel: the waiter goes on at the time of that thread's clock.
 * Another process, or a thread that is not of the cluster, says nothing. Therefore a waiter also
 * looks again after naps; a condition variable is allowed to wake its waiters for no reason. Limits
 * are virtual dates.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <time.h>

#include "../client/order.h"
#include "../client/poll.h"
#include "caller.h"
#include "epoch.h"
#include "nap.h"
#include "sync.h"

/* Each nap of a wait is longer than the one before. */
#define NAP_MIN_NS INT64_C(1000)
#define NAP_MAX_NS INT64_C(100000)

/* pthread_join() looks this many times for the end of a thread that has said that it ends. */
#define END_LOOKS 10000

static uint32_t waiting; /* Threads of this process that wait. */

/* This thread's wait so far: to wait for a condition takes many calls. */
static __thread struct {
    const void *place;
    int64_t end_ns;
    int64_t nap_ns; /* 0: it is over. */
} last;

/* ---- waiting and waking ---------------------------------------------------------------------- */

struct sim_channel *sync_channel_beside(const void *caller)
{
    struct sim_channel *channel = sim_channel_beside();
    return channel && caller_at(caller) != CALLER_LAUNCHER ? channel : NULL;
}

#define CHANNEL_BESIDE sync_channel_beside(__builtin_return_address(0))

bool sync_wait_at(struct sim_channel *channel, const void *place, int64_t end_ns)
{
    int64_t left_ns = end_ns - (int64_t)(channel->call.time_ps / PS_PER_NS);
    if (left_ns <= 0)
        return false;
    bool goes_on = place == last.place && end_ns == last.end_ns && last.nap_ns > 0;
    int64_t nap_ns = goes_on ? 2 * last.nap_ns : NAP_MIN_NS;
    nap_ns = nap_ns < NAP_MAX_NS ? nap_ns : NAP_MAX_NS;
    channel->place = (uintptr_t)place;
    channel->since_ps = goes_on ? channel->since_ps : channel->call.time_ps;
    (void)order_word_add(&waiting, 1);
    nap_for_ns(channel, nap_ns < left_ns ? nap_ns : left_ns);
    (void)order_word_add(&waiting, UINT32_MAX);
    channel->place = 0;
    last.place = place;
    last.end_ns = end_ns;
    last.nap_ns = channel->woken_ps ? 0 : nap_ns;
    channel->woken_ps = 0;
    return true;
}

bool sync_was_woken(void) { return last.nap_ns == 0; }

int sync_wake_at(const void *place, int threads)
{
    const struct sim_channel *self = sim_channel_mine();
    int woken = 0;
    while (self && order_word_read(&waiting) > 0 && woken < threads) {
        struct sim_channel *waiter = sim_channel_waiting_at((uintptr_t)place, false);
        if (!waiter)
            break;
        waiter->woken_ps = self->call.time_ps ? self->call.time_ps : 1;
        woken++;
    }
    return woken;
}

/* Take an object by `take`, which returns 0, an error, or EBUSY if the thread has to wait. */
static int wait_for(struct sim_channel *channel, void *object, int (*take)(void *), int64_t end_ns)
{
    for (;;) {
        int status = take(object);
        if (status != EBUSY)
            return status;
        if (!sync_wait_at(channel, object, end_ns))
            return ETIMEDOUT;
    }
}

bool sync_is_time(const struct timespec *limit)
{
    return limit->tv_nsec >= 0 && limit->tv_nsec < NS_PER_S;
}

/* ---- mutexes --------------------------------------------------------------------------------- */

static int take_mutex(void *mutex) { return pthread_mutex_trylock(mutex); }

/* Mutexes of other kinds check which thread has them, or lend it their priority. */
static bool can_be_tried(const pthread_mutex_t *mutex)
{
    int kind = mutex->__data.__kind;
    return kind == PTHREAD_MUTEX_NORMAL || kind == PTHREAD_MUTEX_RECURSIVE ||
           kind == PTHREAD_MUTEX_ADAPTIVE_NP;
}

SIM_API int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    struct sim_channel *channel = CHANNEL_BESIDE;
    if (channel && can_be_tried(mutex))
        return wait_for(channel, mutex, take_mutex, SYNC_FOREVER_NS);
    CALLER_NEXT(pthread_mutex_lock);
    return next ? next(mutex) : ENOSYS;
}

/* Is the mutex free, and has a thread been woken for it? That thread has not had the turn since.
 * A thread that gives a mutex back and takes it again at once, and lets no time pass in between,
 * would else keep it for ever. */
static bool is_promised(const pthread_mutex_t *mutex)
{
    return mutex->__data.__lock == 0 && order_word_read(&waiting) > 0 &&
           sim_channel_waiting_at((uintptr_t)mutex, true);
}

/* A program that tries in vain tries again. The mutex is given back only if time passes. */
SIM_API int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    const void *caller = __builtin_return_address(0);
    struct sim_channel *channel = sync_channel_beside(caller);
    CALLER_NEXT(pthread_mutex_trylock);
    int status = channel && is_promised(mutex) ? EBUSY : next ? next(mutex) : ENOSYS;
    if (status == EBUSY && channel && caller_at(caller) == CALLER_PROGRAM)
        sim_poll_pass(channel);
    return status;
}

SIM_API int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    CALLER_NEXT(pthread_mutex_unlock);
    int status = next ? next(mutex) : ENOSYS;
    (void)sync_wake_at(mutex, 1);
    return status;
}

SIM_API int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex,
                                    const struct timespec *restrict limit)
{
    struct sim_channel *channel = sync_is_time(limit) ? PROGRAM_CHANNEL : NULL;
    if (channel)
        return wait_for(channel, mutex, take_mutex, epoch_time_ns(CLOCK_REALTIME, limit));
    CALLER_NEXT(pthread_mutex_timedlock);
    return next ? next(mutex, limit) : ENOSYS;
}

SIM_API int pthread_mutex_clocklock(pthread_mutex_t *restrict mutex, clockid_t id,
                                    const struct timespec *restrict limit)
{
    struct sim_channel *channel = sync_is_time(limit) ? PROGRAM_CHANNEL : NULL;
    if (channel)
        return wait_for(channel, mutex, take_mutex, epoch_time_ns(id, limit));
    CALLER_NEXT(pthread_mutex_clocklock);
    return next ? next(mutex, id, limit) : ENOSYS;
}

/* ---- conditions ------------------------------------------------------------------------------ */

/* No other thread has the turn between the unlocking and the wait, so no wake is missed. */
static int wait_for_condition(struct sim_channel *channel, pthread_cond_t *cond,
                              pthread_mutex_t *mutex, int64_t end_ns)
{
    int status = pthread_mutex_unlock(mutex);
    if (status != 0)
        return status;
    bool is_early = sync_wait_at(channel, cond, end_ns);
    status = wait_for(channel, mutex, take_mutex, SYNC_FOREVER_NS);
    return status != 0 ? status : is_early ? 0 : ETIMEDOUT;
}

SIM_API int pthread_cond_wait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex)
{
    struct sim_channel *channel = CHANNEL_BESIDE;
    if (channel)
        return wait_for_condition(channel, cond, mutex, SYNC_FOREVER_NS);
    CALLER_NEXT(pthread_cond_wait);
    return next ? next(cond, mutex) : ENOSYS;
}

SIM_API int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                                   const struct timespec *restrict limit)
{
    struct sim_channel *channel = sync_is_time(limit) ? PROGRAM_CHANNEL : NULL;
    if (channel) /* The limit shows which clock the condition has: a date is larger than any time
                    since the start. */
        return wait_for_condition(
            channel, cond, mutex,
            epoch_time_ns(limit->tv_sec >= EPOCH_S ? CLOCK_REALTIME : CLOCK_MONOTONIC, limit));
    CALLER_NEXT(pthread_cond_timedwait);
    return next ? next(cond, mutex, limit) : ENOSYS;
}

SIM_API int pthread_cond_clockwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                                   clockid_t id, const struct timespec *restrict limit)
{
    struct sim_channel *channel = sync_is_time(limit) ? PROGRAM_CHANNEL : NULL;
    if (channel)
        return wait_for_condition(channel, cond, mutex, epoch_time_ns(id, limit));
    CALLER_NEXT(pthread_cond_clockwait);
    return next ? next(cond, mutex, id, limit) : ENOSYS;
}

SIM_API int pthread_cond_signal(pthread_cond_t *cond)
{
    CALLER_NEXT(pthread_cond_signal);
    (void)sync_wake_at(cond, 1);
    return next ? next(cond) : ENOSYS;
}

SIM_API int pthread_cond_broadcast(pthread_cond_t *cond)
{
    CALLER_NEXT(pthread_cond_broadcast);
    (void)sync_wake_at(cond, SYNC_ALL);
    return next ? next(cond) : ENOSYS;
}

/* ---- semaphores ------------------------------------------------------------------------------ */

static int take_semaphore(void *semaphore)
{
    int status = sem_trywait(semaphore) == 0 ? 0 : errno;
    return status == EAGAIN ? EBUSY : status;
}

static int wait_for_semaphore(struct sim_channel *channel, sem_t *semaphore, int64_t end_ns)
{
    int status = wait_for(channel, semaphore, take_semaphore, end_ns);
    if (status == 0)
        return 0;
    errno = status;
    return -1;
}

SIM_API int sem_wait(sem_t *semaphore)
{
    struct sim_channel *channel = CHANNEL_BESIDE;
    if (channel)
        return wait_for_semaphore(channel, semaphore, SYNC_FOREVER_NS);
    CALLER_NEXT(sem_wait);
    return next ? next(semaphore) : -1;
}

SIM_API int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict limit)
{
    struct sim_channel *channel = sync_is_time(limit) ? PROGRAM_CHANNEL : NULL;
    if (channel)
        return wait_for_semaphore(channel, semaphore, epoch_time_ns(CLOCK_REALTIME, limit));
    CALLER_NEXT(sem_timedwait);
    return next ? next(semaphore, limit) : -1;
}

SIM_API int sem_clockwait(sem_t *restrict semaphore, clockid_t id,
                          const struct timespec *restrict limit)
{
    struct sim_channel *channel = sync_is_time(limit) ? PROGRAM_CHANNEL : NULL;
    if (channel)
        return wait_for_semaphore(channel, semaphore, epoch_time_ns(id, limit));
    CALLER_NEXT(sem_clockwait);
    return next ? next(semaphore, id, limit) : -1;
}

SIM_API int sem_post(sem_t *semaphore)
{
    CALLER_NEXT(sem_post);
    int status = next ? next(semaphore) : -1;
    (void)sync_wake_at(semaphore, 1);
    return status;
}

/* ---- the end of a thread --------------------------------------------------------------------- */

/* The place is the thread's handle: any value serves that differs from all others. */
static const void *end_of(pthread_t thread) { return (const void *)thread; }

static void tell_end(void) { (void)sync_wake_at(end_of(pthread_self()), SYNC_ALL); }

__attribute__((constructor)) static void watch_ends(void) { sim_channel_on_end(tell_end); }

SIM_API int pthread_join(pthread_t thread, void **value)
{
    struct sim_channel *channel = CHANNEL_BESIDE;
    while (channel && sim_channel_is_of_thread(thread))
        (void)sync_wait_at(channel, end_of(thread), SYNC_FOREVER_NS);
    /* The rest of the thread's end takes no virtual time and little real time. The kernel must not
     * put this thread to sleep meanwhile: a run that need not be repeatable would go on without it.
     */
    for (int looks = 0; channel && looks < END_LOOKS; looks++) {
        int status = pthread_tryjoin_np(thread, value);
        if (status != EBUSY)
            return status;
        (void)sched_yield();
    }
    CALLER_NEXT(pthread_join);
    return next ? next(thread, value) : ENOSYS;
}
