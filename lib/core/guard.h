/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file guard.h
 * @brief Finds a misuse that stays hidden otherwise: two calls at a time on one object.
 *
 * A signal handler may interrupt a send and send on the same connection; a port may be closed while
 * another thread receives from it. Both lose messages or do worse. With VELO_GUARDS (debug and
 * sanitizer builds) such a call ends the process with a sentence. Otherwise everything here is
 * empty.
 */
#ifndef VELO_CORE_GUARD_H
#define VELO_CORE_GUARD_H

#ifdef VELO_GUARDS

#include <stdint.h>

#include "../base/compiler.h"

/** Use an object alone until the scope ends; end the process if another call uses it. */
#define GUARD(object, what)                                                                        \
    __attribute__((cleanup(guard_leave))) uint32_t *guard_ =                                       \
        guard_enter((object) ? &(object)->in_use : NULL, __func__, what)
/** Only check that no call uses the object: it does not outlive the scope. */
#define GUARD_UNUSED(object, what) guard_look((object) ? &(object)->in_use : NULL, __func__, what)

VELO_PRIVATE uint32_t *guard_enter(uint32_t *in_use, const char *call, const char *what);
VELO_PRIVATE void guard_leave(uint32_t **in_use);
VELO_PRIVATE void guard_look(const uint32_t *in_use, const char *call, const char *what);

#else

#define GUARD(object, what) (void)0
#define GUARD_UNUSED(object, what) (void)0

#endif

#endif
