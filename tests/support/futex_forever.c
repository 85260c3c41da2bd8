/* SPDX-License-Identifier: Apache-2.0 */
#include "futex_forever.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>

/* The engine's shortest slice. */
#define SLICE_NS 100000000

bool futex_forever;

/* Stands in for libc's: an executable's symbols come first. */
long syscall(long number, ...)
{
    static long (*real_syscall)(long, ...);
    long arg[6];
    va_list args;

    va_start(args, number);
    for (size_t i = 0; i < 6; i++)
        arg[i] = va_arg(args, long);
    va_end(args);

    if (real_syscall == NULL)
        *(void **)&real_syscall = dlsym(RTLD_NEXT, "syscall");
    if (futex_forever && number == SYS_futex && (arg[1] & FUTEX_CMD_MASK) == FUTEX_WAIT) {
        const struct timespec *timeout = (const struct timespec *)arg[3];

        if (timeout != NULL && (timeout->tv_sec > 0 || timeout->tv_nsec >= SLICE_NS))
            arg[3] = 0;
    }
    return real_syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}
