/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file compiler.h
 * @brief Hints to the compiler: whether a path is hot, and which way a branch goes.
 */
#ifndef VELO_BASE_COMPILER_H
#define VELO_BASE_COMPILER_H

#include <stdint.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* The hot path must not become calls, even if several entry points share it. */
#define hot_inline static inline __attribute__((always_inline))

/* Plug-ins that are built with the library may call it: see libvelo.map. */
#define VELO_PRIVATE __attribute__((visibility("default")))

#define cold_path __attribute__((noinline, cold))

/** A constant that the compiler does not replace by a variable of which it knows that it has this
 *  value. The core can compute with it before the variable is there: a branch has guessed it. */
#if defined(__x86_64__) || defined(__i386__)
#define compiler_constant(value)                                                                   \
    ({                                                                                             \
        uint32_t constant_;                                                                        \
        __asm__("movl %1, %0" : "=r"(constant_) : "n"(value));                                     \
        constant_;                                                                                 \
    })
#else
#define compiler_constant(value) ((uint32_t)(value))
#endif

/** Have the compiler keep this vector in its register as it is. */
#if defined(__x86_64__)
#define compiler_keep_vector(vector) __asm__("" : "+x"(vector))
#elif defined(__aarch64__)
#define compiler_keep_vector(vector) __asm__("" : "+w"(vector))
#else
#define compiler_keep_vector(vector) ((void)(vector))
#endif

/** `guess` if it is `value`, else `value`. Unlike the compiler, the core may go on with the guess
 *  before the value is there. */
hot_inline uint64_t compiler_guess(uint64_t value, uint64_t guess)
{
    if (__builtin_expect(value != guess, 0))
        return value;
    __asm__("" : "+r"(guess));
    return guess;
}

#endif
