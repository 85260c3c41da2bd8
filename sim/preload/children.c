/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that waits for a process that it has started lets virtual time pass meanwhile: it looks
 * now and then, after a nap. A child that ends has the turn until the kernel shows that it has
 * ended, so how often the parent looks does not depend on real time.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "caller.h"
#include "nap.h"

/* The first nap between two looks, and the longest. */
#define NAP_NS INT64_C(1000)
#define NAP_NS_MAX INT64_C(100000)
/* The status of a shell that there is not. */
#define CANNOT_EXECUTE 127

static pid_t wait_for(const void *caller, pid_t pid, int *status, int options, struct rusage *usage)
{
    CALLER_NEXT(wait4);
    if (!next)
        return -1;
    bool is_wait = (options & WNOHANG) == 0;
    struct sim_channel *channel = is_wait ? caller_program_channel(caller) : NULL;
    if (!channel)
        return next(pid, status, options, usage);
    for (int64_t nap_ns = NAP_NS;; nap_ns = nap_ns < NAP_NS_MAX ? 2 * nap_ns : NAP_NS_MAX) {
        nap_for_ns(channel, nap_ns);
        pid_t ended = next(pid, status, options | WNOHANG, usage);
        if (ended != 0)
            return ended;
    }
}

SIM_API pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
    return wait_for(__builtin_return_address(0), pid, status, options, usage);
}

SIM_API pid_t wait3(int *status, int options, struct rusage *usage)
{
    return wait_for(__builtin_return_address(0), -1, status, options, usage);
}

SIM_API pid_t waitpid(pid_t pid, int *status, int options)
{
    return wait_for(__builtin_return_address(0), pid, status, options, NULL);
}

SIM_API pid_t wait(int *status)
{
    return wait_for(__builtin_return_address(0), -1, status, 0, NULL);
}

/* Virtual time waits for a process that is forked, from its start on. The child of a vfork() is not
 * told of in time. */
SIM_API pid_t vfork(void) { return fork(); }

/* ---- system() -------------------------------------------------------------------------------- */

struct kept {
    struct sigaction on_int, on_quit;
    sigset_t mask;
};

static void give_back(const struct kept *kept)
{
    (void)sigaction(SIGINT, &kept->on_int, NULL);
    (void)sigaction(SIGQUIT, &kept->on_quit, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &kept->mask, NULL);
}

/* As system(3) says: meanwhile SIGCHLD is blocked, and the command alone is interrupted. */
static int run_shell(const void *caller, const char *command)
{
    static const struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct kept kept;
    sigset_t blocked;
    int status = -1;
    (void)sigemptyset(&blocked);
    (void)sigaddset(&blocked, SIGCHLD);
    (void)sigaction(SIGINT, &ignore, &kept.on_int);
    (void)sigaction(SIGQUIT, &ignore, &kept.on_quit);
    (void)pthread_sigmask(SIG_BLOCK, &blocked, &kept.mask);
    pid_t pid = fork();
    if (pid == 0) {
        give_back(&kept);
        (void)execl("/bin/sh", "sh", "-c", "--", command, (char *)NULL);
        _exit(CANNOT_EXECUTE);
    }
    pid_t ended = -1;
    do
        ended = pid < 0 ? -1 : wait_for(caller, pid, &status, 0, NULL);
    while (ended < 0 && pid > 0 && errno == EINTR);
    int error = errno;
    give_back(&kept);
    errno = error;
    return ended < 0 ? -1 : status;
}

/* The C library's own waits where nobody sees it. */
SIM_API int system(const char *command)
{
    CALLER_NEXT(system);
    const void *caller = __builtin_return_address(0);
    if (command && caller_program_channel(caller))
        return run_shell(caller, command);
    return next ? next(command) : -1;
}
