/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libvelo-yield.so: sched_yield() for ranks with a core each. It is loaded before the C library.
 *
 * MPICH gives the core up after each look for a message, and has no setting for that. The system
 * call takes several times as long as a message. Here one call of many is a real one: whoever
 * shares the core after all still gets a turn.
 */
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Some 15 us of looks of MPICH. */
#define CALLS_PER_YIELD 256u

__attribute__((visibility("default"))) int sched_yield(void)
{
    static _Thread_local unsigned calls;
    return ++calls % CALLS_PER_YIELD ? 0 : (int)syscall(SYS_sched_yield);
}
