/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder's preloaded library share: how a call is listed, and whether it
 * fails. */
#ifndef VELO_TESTS_FAULTS_PRELOAD_H
#define VELO_TESTS_FAULTS_PRELOAD_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define SHOWN __attribute__((visibility("default")))

/* A call that can be made to fail, and how often velo has made it. */
struct call {
    const char *name;
    atomic_ulong count;
    struct call *next;
};

/* Put a call into the list. */
void call_list(struct call *call);
/* Does velo's own code lie at that address? */
bool call_is_of_velo(const void *caller);
/* Count a call made from `caller`; is it the one that fails? */
bool call_fails(struct call *call, const void *caller);

/* The function of that name behind this library: of the C library, or of what the caller's one is
 * linked to. */
void *call_next(const char *name, const void *caller);

/* `call_NAME` counts; it is in the list before main() begins. */
#define CALL(name)                                                                                 \
    static struct call call_##name = {#name, 0, NULL};                                             \
    static __attribute__((constructor)) void list_##name(void) { call_list(&call_##name); }

#define FAILS(name) call_fails(&call_##name, __builtin_return_address(0))

/* A call that returns `failed` and sets errno. */
#define WRAP(type, name, params, args, failed, error)                                              \
    CALL(name)                                                                                     \
    SHOWN type name params                                                                         \
    {                                                                                              \
        static type(*next) params;                                                                 \
        if (!next)                                                                                 \
            *(void **)&next = call_next(#name, __builtin_return_address(0));                       \
        if (FAILS(name)) {                                                                         \
            errno = (error);                                                                       \
            return failed;                                                                         \
        }                                                                                          \
        return next args;                                                                          \
    }

#endif
