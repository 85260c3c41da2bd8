/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program gets from outside of the simulated cluster: waits for files, sockets, random
 * numbers, signals. They are real, and work; but then the run need not repeat itself, and its
 * result says so. This library takes the place of the C library's functions to see who calls them:
 * only calls of the program count (caller.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#include "caller.h"
#include "real.h"

void real_report(const void *caller, enum sim_cause cause, const char *what)
{
    if (caller_at(caller) == CALLER_PROGRAM)
        sim_channel_report(cause, what);
}

#define REPORT(cause, what) real_report(__builtin_return_address(0), cause, what)

/* `next` returns what `failed` is if there is none. */
#define PASS(result, name, parameters, arguments, failed, cause)                                   \
    SIM_API result name parameters                                                                 \
    {                                                                                              \
        CALLER_NEXT(name);                                                                         \
        REPORT(cause, #name);                                                                      \
        if (next)                                                                                  \
            return next arguments;                                                                 \
        errno = ENOSYS;                                                                            \
        return failed;                                                                             \
    }

/* ---- waits for files ------------------------------------------------------------------------- */

PASS(int, ppoll,
     (struct pollfd * files, nfds_t files_len, const struct timespec *limit, const sigset_t *mask),
     (files, files_len, limit, mask), -1, SIM_CAUSE_WAIT)
PASS(int, pselect,
     (int files_len, fd_set *restrict in, fd_set *restrict out, fd_set *restrict except,
      const struct timespec *restrict limit, const sigset_t *restrict mask),
     (files_len, in, out, except, limit, mask), -1, SIM_CAUSE_WAIT)
PASS(int, epoll_wait, (int file, struct epoll_event *events, int events_len, int limit_ms),
     (file, events, events_len, limit_ms), -1, SIM_CAUSE_WAIT)
PASS(int, epoll_pwait,
     (int file, struct epoll_event *events, int events_len, int limit_ms, const sigset_t *mask),
     (file, events, events_len, limit_ms, mask), -1, SIM_CAUSE_WAIT)

/* ---- sockets --------------------------------------------------------------------------------- */

PASS(int, socket, (int domain, int kind, int protocol), (domain, kind, protocol), -1,
     SIM_CAUSE_SOCKET)
PASS(int, socketpair, (int domain, int kind, int protocol, int files[2]),
     (domain, kind, protocol, files), -1, SIM_CAUSE_SOCKET)

/* ---- random numbers -------------------------------------------------------------------------- */

PASS(ssize_t, getrandom, (void *to, size_t len_bytes, unsigned flags), (to, len_bytes, flags), -1,
     SIM_CAUSE_RANDOM)
PASS(int, getentropy, (void *to, size_t len_bytes), (to, len_bytes), -1, SIM_CAUSE_RANDOM)

static void report_file(const void *caller, const char *path)
{
    if (path && (strcmp(path, "/dev/urandom") == 0 || strcmp(path, "/dev/random") == 0))
        real_report(caller, SIM_CAUSE_RANDOM, path);
}

#define OPEN(name)                                                                                 \
    SIM_API int name(const char *path, int flags, ...)                                             \
    {                                                                                              \
        va_list arguments;                                                                         \
        va_start(arguments, flags);                                                                \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;               \
        va_end(arguments);                                                                         \
        CALLER_NEXT(name);                                                                         \
        report_file(__builtin_return_address(0), path);                                            \
        if (next)                                                                                  \
            return next(path, flags, mode);                                                        \
        errno = ENOSYS;                                                                            \
        return -1;                                                                                 \
    }

OPEN(open)
OPEN(open64)

#define OPEN_STREAM(name)                                                                          \
    SIM_API FILE *name(const char *restrict path, const char *restrict mode)                       \
    {                                                                                              \
        CALLER_NEXT(name);                                                                         \
        report_file(__builtin_return_address(0), path);                                            \
        return next ? next(path, mode) : NULL;                                                     \
    }

OPEN_STREAM(fopen)
OPEN_STREAM(fopen64)

/* ---- signals --------------------------------------------------------------------------------- */

/* One to oneself comes at once. */
SIM_API int kill(pid_t pid, int number)
{
    CALLER_NEXT(kill);
    if (pid != getpid() && number != 0)
        REPORT(SIM_CAUSE_SIGNAL, "kill");
    return next ? next(pid, number) : -1;
}

SIM_API int pthread_kill(pthread_t thread, int number)
{
    CALLER_NEXT(pthread_kill);
    if (!pthread_equal(thread, pthread_self()) && number != 0)
        REPORT(SIM_CAUSE_SIGNAL, "pthread_kill");
    return next ? next(thread, number) : ENOSYS;
}
