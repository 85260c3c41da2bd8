/* SPDX-License-Identifier: Apache-2.0 */
/*
 * To be preloaded: ends a process in which a thread yields its core while it holds a mutex that
 * velo has taken.
 *
 * Locks and yields are seen of all who call them by name. A wait for a condition gives its mutex
 * back meanwhile, and does not count. Nor do mutexes that others have taken: Open MPI 5 yields in
 * MPI_Init() with one of its own, and UCX while it changes the code of mmap().
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Thread_local int held __attribute__((tls_model("initial-exec")));

/* Ours is found before the C library's. */
#define OVER __attribute__((visibility("default")))

/* The function of that name behind ours. */
#define REAL(name)                                                                                 \
    static int (*real)(pthread_mutex_t *);                                                         \
    if (real == NULL)                                                                              \
    *(void **)&real = dlsym(RTLD_NEXT, name)

/* Is the caller in a library, a component or a program of velo? */
static bool is_ours(const void *caller)
{
    Dl_info found;
    if (dladdr(caller, &found) == 0)
        return false;
    const char *slash = strrchr(found.dli_fname, '/');
    return strstr(slash != NULL ? slash + 1 : found.dli_fname, "velo") != NULL;
}

OVER int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    REAL("pthread_mutex_lock");
    int status = real(mutex);
    held += status == 0 && is_ours(__builtin_return_address(0));
    return status;
}

OVER int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    REAL("pthread_mutex_trylock");
    int status = real(mutex);
    held += status == 0 && is_ours(__builtin_return_address(0));
    return status;
}

OVER int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    REAL("pthread_mutex_unlock");
    /* It may have been taken by another thread, or by a call that is not seen. */
    held -= held > 0 && is_ours(__builtin_return_address(0));
    return real(mutex);
}

OVER int sched_yield(void)
{
    static int (*real)(void);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "sched_yield");
    if (held > 0) {
        static const char said[] = "yields: a thread yields its core with a lock\n";
        (void)!write(STDERR_FILENO, said, sizeof said - 1);
        abort();
    }
    return real();
}
