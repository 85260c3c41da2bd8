/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file compiler.h
 * @brief Hints to the compiler: whether a path is hot, and which way a branch goes.
 */
#ifndef VELO_BASE_COMPILER_H
#define VELO_BASE_COMPILER_H

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* The hot path must not become calls, even if several entry points share it. */
#define hot_inline static inline __attribute__((always_inline))

/* Plug-ins that are built with the library may call it: see libvelo.map. */
#define VELO_PRIVATE __attribute__((visibility("default")))

#define cold_path __attribute__((noinline, cold))

#endif
