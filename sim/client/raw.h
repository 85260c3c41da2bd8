/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file raw.h
 * @brief A system call that no library's function stands before.
 *
 * sim/preload takes the place of the C library's syscall(), and so has nobody to pass a call on to
 * before the program's libraries have begun. sim/client calls the kernel while it holds no turn,
 * and must not come to sim/preload then.
 */
#ifndef VELO_SIM_CLIENT_RAW_H
#define VELO_SIM_CLIENT_RAW_H

/** The kernel's answer: an error is a negative errno, and errno itself stays. */
static inline long raw_syscall(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
    long answer;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(answer)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return answer;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
#else
#error "raw_syscall() knows x86-64 and AArch64"
#endif
}

#endif
