/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file handlers.h
 * @brief Signal handlers that would find a lock of their own thread.
 *
 * A handler that uses another port may need the process's lock, or the allocator, which the call
 * that it has interrupted holds: neither would go on. So signals wait while a call has them: a few
 * microseconds, never in a sleep.
 */
#ifndef VELO_BASE_HANDLERS_H
#define VELO_BASE_HANDLERS_H

#include <signal.h>

static inline sigset_t handlers_later(void)
{
    /* Those that an instruction causes are not to wait: the kernel would end the process. */
    static const int at_once[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t all, before;
    (void)sigfillset(&all);
    for (unsigned i = 0; i < sizeof at_once / sizeof *at_once; i++)
        (void)sigdelset(&all, at_once[i]);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    return before;
}

static inline void handlers_as_before(const sigset_t *before)
{
    (void)pthread_sigmask(SIG_SETMASK, before, NULL);
}

/** Until the scope ends, signals to this thread wait. */
#define HANDLERS_LATER()                                                                           \
    __attribute__((cleanup(handlers_as_before))) const sigset_t handlers_before_ = handlers_later()

#endif
