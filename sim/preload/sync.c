/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of a rank wait for each other in virtual time: for mutexes, conditions, semaphores, and
 * for the end of a thread. One that the kernel put to sleep would keep the turn, and whoever is to
 * wake it could not go on. So it waits in the simulator, and who wakes it tells so in its channel:
 * it goes on at that one's time. Whom nobody tells, since another process did something or a thread
 * that is not of the cluster, looks again and again, with naps in between; a condition may wake who
 * waits for it for no reason. Limits are virtual dates.
 */
#include "sync.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <time.h>

#include <velo/velo.h>

#include "../../lib/base/order.h"
#include "../../transports/nic/device.h"
#include "caller.h"
#include "epoch.h"
#include "nap.h"

/* The longer it lasts the longer they get. */
#define NAP_MIN_NS INT64_C(1000)
#define NAP_MAX_NS INT64_C(100000)

#define FOREVER_NS INT64_MAX

/* So often is it looked whether a thread has ended that has said so. */
#define END_LOOKS 10000

static uint64_t waiting; /* Threads of this process. */

/* This thread's wait, as far as it has come: for a condition it is many calls. */
static __thread struct {
    const void *place;
    int64_t end_ns;
    int64_t nap_ns; /* 0: it is over. */
} last;

/* ---- waiting and waking ---------------------------------------------------------------------- */

/* This thread's channel, if it shares its process with others of the cluster; NULL: it does not, is
 * not of the cluster itself, or waits for the launcher. */
static struct sim_channel *channel_beside(const void *caller)
{
    struct sim_channel *channel = start_channel_beside();
    return channel && caller_at(caller) != CALLER_LAUNCHER ? channel : NULL;
}

#define CHANNEL_BESIDE channel_beside(__builtin_return_address(0))

/* Let time pass until somebody wakes this thread at a place, or it is to look again. False: its
 * limit has come. */
static bool wait_at(struct sim_channel *channel, const void *place, int64_t end_ns)
{
    int64_t left_ns = end_ns - (int64_t)(channel->call.time_ps / PS_PER_NS);
    if (left_ns <= 0)
        return false;
    bool goes_on = place == last.place && end_ns == last.end_ns && last.nap_ns > 0;
    int64_t nap_ns = goes_on ? 2 * last.nap_ns : NAP_MIN_NS;
    nap_ns = nap_ns < NAP_MAX_NS ? nap_ns : NAP_MAX_NS;
    channel->place = (uintptr_t)place;
    channel->since_ps = goes_on ? channel->since_ps : channel->call.time_ps;
    order_count_shared(&waiting, 1);
    nap_for_ns(channel, nap_ns < left_ns ? nap_ns : left_ns);
    order_count_shared(&waiting, UINT64_MAX);
    channel->place = 0;
    last.place = place;
    last.end_ns = end_ns;
    last.nap_ns = channel->woken_ps ? 0 : nap_ns;
    channel->woken_ps = 0;
    return true;
}

/* Who waits there goes on: the one that has waited longest, or all. This thread keeps its turn
 * meanwhile: whom it wakes may look, again and again and without a call, for what it does next. */
static void wake_at(const void *place, bool all)
{
    const struct sim_channel *self = channel_mine();
    struct sim_channel *waiter;
    if (!self || order_counter(&waiting) == 0)
        return;
    do {
        waiter = channel_waiting_at((uintptr_t)place, false);
        if (waiter)
            waiter->woken_ps = self->call.time_ps ? self->call.time_ps : 1;
    } while (waiter && all);
}

/* Try to have what `take` takes: 0 or an error, EBUSY if it has to wait. */
static int wait_for(struct sim_channel *channel, void *object, int (*take)(void *), int64_t end_ns)
{
    for (;;) {
        int status = take(object);
        if (status != EBUSY)
            return status;
        if (!wait_at(channel, object, end_ns))
            return ETIMEDOUT;
    }
}

static bool is_time(const struct timespec *limit)
{
    return limit->tv_nsec >= 0 && limit->tv_nsec < NS_PER_S;
}

/* ---- mutexes --------------------------------------------------------------------------------- */

static int take_mutex(void *mutex) { return pthread_mutex_trylock(mutex); }

/* The others check who has them, or lend priority. */
static bool can_be_tried(const pthread_mutex_t *mutex)
{
    int kind = mutex->__data.__kind;
    return kind == PTHREAD_MUTEX_NORMAL || kind == PTHREAD_MUTEX_RECURSIVE ||
           kind == PTHREAD_MUTEX_ADAPTIVE_NP;
}

VELO_API int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    struct sim_channel *channel = CHANNEL_BESIDE;
    if (channel && can_be_tried(mutex))
        return wait_for(channel, mutex, take_mutex, FOREVER_NS);
    CALLER_NEXT(pthread_mutex_lock);
    return next ? next(mutex) : ENOSYS;
}

/* Is it free, and for somebody who was woken for it? That one has not had the turn since: whoever
 * gives a mutex back only to take it again, and lets no time pass between, would keep it for ever.
 */
static bool is_promised(const pthread_mutex_t *mutex)
{
    return mutex->__data.__lock == 0 && order_counter(&waiting) > 0 &&
           channel_waiting_at((uintptr_t)mutex, true);
}

/* A program that tries in vain tries again, and nobody gives it back unless time passes. */
VELO_API int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    const void *caller = __builtin_return_address(0);
    struct sim_channel *channel = channel_beside(caller);
    CALLER_NEXT(pthread_mutex_trylock);
    int status = channel && is_promised(mutex) ? EBUSY : next ? next(mutex) : ENOSYS;
    if (status == EBUSY && channel && caller_at(caller) == CALLER_PROGRAM)
        device_pass_poll(channel);
    return status;
}

VELO_API int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    CALLER_NEXT(pthread_mutex_unlock);
    int status = next ? next(mutex) : ENOSYS;
    wake_at(mutex, false);
    return status;
}

VELO_API int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex,
                                     const struct timespec *restrict limit)
{
    struct sim_channel *channel = is_time(limit) ? PROGRAM_CHANNEL : NULL;
    if (channel)
        return wait_for(channel, mutex, take_mutex, epoch_time_ns(CLOCK_REALTIME, limit));
    CALLER_NEXT(pthread_mutex_timedlock);
    return next ? next(mutex, limit) : ENOSYS;
}

VELO_API int pthread_mutex_clocklock(pthread_mutex_t *restrict mutex, clockid_t id,
                                     const struct timespec *restrict limit)
{
    struct sim_channel *channel = is_time(limit) ? PROGRAM_CHANNEL : NULL;
    if (channel)
        return wait_for(channel, mutex, take_mutex, epoch_time_ns(id, limit));
    CALLER_NEXT(pthread_mutex_clocklock);
    return next ? next(mutex, id, limit) : ENOSYS;
}

/* ---- conditions ------------------------------------------------------------------------------ */

/* Nobody else has the turn between the unlocking and the wait: no wake is missed. */
static int wait_for_condition(struct sim_channel *channel, pthread_cond_t *cond,
                              pthread_mutex_t *mutex, int64_t end_ns)
{
    int status = pthread_mutex_unlock(mutex);
    if (status != 0)
        return status;
    bool is_early = wait_at(channel, cond, end_ns);
    status = wait_for(channel, mutex, take_mutex, FOREVER_NS);
    return status != 0 ? status : is_early ? 0 : ETIMEDOUT;
}

VELO_API int pthread_cond_wait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex)
{
    struct sim_channel *channel = CHANNEL_BESIDE;
    if (channel)
        return wait_for_condition(channel, cond, mutex, FOREVER_NS);
    CALLER_NEXT(pthread_cond_wait);
    return next ? next(cond, mutex) : ENOSYS;
}

VELO_API int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                                    const struct timespec *restrict limit)
{
    struct sim_channel *channel = is_time(limit) ? PROGRAM_CHANNEL : NULL;
    if (channel) /* Whose clock the condition's is shows: no time up is as long as a date. */
        return wait_for_condition(
            channel, cond, mutex,
            epoch_time_ns(limit->tv_sec >= EPOCH_S ? CLOCK_REALTIME : CLOCK_MONOTONIC, limit));
    CALLER_NEXT(pthread_cond_timedwait);
    return next ? next(cond, mutex, limit) : ENOSYS;
}

VELO_API int pthread_cond_clockwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                                    clockid_t id, const struct timespec *restrict limit)
{
    struct sim_channel *channel = is_time(limit) ? PROGRAM_CHANNEL : NULL;
    if (channel)
        return wait_for_condition(channel, cond, mutex, epoch_time_ns(id, limit));
    CALLER_NEXT(pthread_cond_clockwait);
    return next ? next(cond, mutex, id, limit) : ENOSYS;
}

VELO_API int pthread_cond_signal(pthread_cond_t *cond)
{
    CALLER_NEXT(pthread_cond_signal);
    wake_at(cond, false);
    return next ? next(cond) : ENOSYS;
}

VELO_API int pthread_cond_broadcast(pthread_cond_t *cond)
{
    CALLER_NEXT(pthread_cond_broadcast);
    wake_at(cond, true);
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

VELO_API int sem_wait(sem_t *semaphore)
{
    struct sim_channel *channel = CHANNEL_BESIDE;
    if (channel)
        return wait_for_semaphore(channel, semaphore, FOREVER_NS);
    CALLER_NEXT(sem_wait);
    return next ? next(semaphore) : -1;
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

VELO_API int sem_post(sem_t *semaphore)
{
    CALLER_NEXT(sem_post);
    int status = next ? next(semaphore) : -1;
    wake_at(semaphore, false);
    return status;
}

/* ---- the end of a thread --------------------------------------------------------------------- */

/* Any address serves as a place: the thread's own handle is one. */
static const void *end_of(pthread_t thread) { return (const void *)thread; }

void sync_tell_end(void) { wake_at(end_of(pthread_self()), true); }

VELO_API int pthread_join(pthread_t thread, void **value)
{
    struct sim_channel *channel = CHANNEL_BESIDE;
    while (channel && channel_is_of_thread(thread))
        (void)wait_at(channel, end_of(thread), FOREVER_NS);
    /* The rest of its end takes no virtual time and little real one. Who sleeps through that may be
     * passed by, where a run need not be repeatable. */
    for (int looks = 0; channel && looks < END_LOOKS; looks++) {
        int status = pthread_tryjoin_np(thread, value);
        if (status != EBUSY)
            return status;
        (void)sched_yield();
    }
    CALLER_NEXT(pthread_join);
    return next ? next(thread, value) : ENOSYS;
}
