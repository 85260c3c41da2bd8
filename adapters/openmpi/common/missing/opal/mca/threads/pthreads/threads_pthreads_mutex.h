/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A header of Open MPI 5 that Debian's package leaves out, though opal/mca/threads/mutex.h includes
 * it: the mutexes and condition variables of a build with POSIX threads. velo_ompi_fits() compares
 * the size of what is made of them with the library's.
 */
#ifndef VELO_MPI_COMMON_THREADS_PTHREADS_MUTEX_H
#define VELO_MPI_COMMON_THREADS_PTHREADS_MUTEX_H

#include <pthread.h>

#include "opal/class/opal_object.h"
#include "opal/constants.h"

typedef pthread_mutex_t opal_thread_internal_mutex_t;
typedef pthread_cond_t opal_thread_internal_cond_t;

#define OPAL_THREAD_INTERNAL_MUTEX_INITIALIZER PTHREAD_MUTEX_INITIALIZER
#define OPAL_THREAD_INTERNAL_COND_INITIALIZER PTHREAD_COND_INITIALIZER

/* 0, or 1 if another thread has it. */
static inline int opal_thread_internal_mutex_trylock(opal_thread_internal_mutex_t *mutex)
{
    return pthread_mutex_trylock(mutex) != 0;
}

static inline void opal_thread_internal_mutex_lock(opal_thread_internal_mutex_t *mutex)
{
    (void)pthread_mutex_lock(mutex);
}

static inline void opal_thread_internal_mutex_unlock(opal_thread_internal_mutex_t *mutex)
{
    (void)pthread_mutex_unlock(mutex);
}

static inline int opal_thread_internal_mutex_init(opal_thread_internal_mutex_t *mutex,
                                                  bool recursive)
{
    pthread_mutexattr_t kind;
    if (pthread_mutexattr_init(&kind) != 0)
        return OPAL_ERR_IN_ERRNO;
    int rc = recursive ? pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE) : 0;
    if (rc == 0)
        rc = pthread_mutex_init(mutex, &kind);
    (void)pthread_mutexattr_destroy(&kind);
    return rc == 0 ? OPAL_SUCCESS : OPAL_ERR_IN_ERRNO;
}

static inline void opal_thread_internal_mutex_destroy(opal_thread_internal_mutex_t *mutex)
{
    (void)pthread_mutex_destroy(mutex);
}

static inline int opal_thread_internal_cond_init(opal_thread_internal_cond_t *cond)
{
    return pthread_cond_init(cond, NULL) == 0 ? OPAL_SUCCESS : OPAL_ERR_IN_ERRNO;
}

static inline void opal_thread_internal_cond_wait(opal_thread_internal_cond_t *cond,
                                                  opal_thread_internal_mutex_t *mutex)
{
    (void)pthread_cond_wait(cond, mutex);
}

static inline void opal_thread_internal_cond_broadcast(opal_thread_internal_cond_t *cond)
{
    (void)pthread_cond_broadcast(cond);
}

static inline void opal_thread_internal_cond_signal(opal_thread_internal_cond_t *cond)
{
    (void)pthread_cond_signal(cond);
}

static inline void opal_thread_internal_cond_destroy(opal_thread_internal_cond_t *cond)
{
    (void)pthread_cond_destroy(cond);
}

#endif
