/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file guard.h
 * @brief Misuse that a caller cannot see otherwise: two at a time in what is for one at a time.
 *
 * A signal handler that sends on the connection which the code it interrupts is sending on, or a
 * port that is closed while another thread receives from it, loses messages or worse. Built with
 * VELO_GUARDS (debug and sanitizer builds) such a call ends the process with a sentence. Otherwise
 * everything here is empty.
 */
#ifndef VELO_CORE_GUARD_H
#define VELO_CORE_GUARD_H

#ifdef VELO_GUARDS

#include <stdint.h>

/** Be the one that uses an object until the scope ends; end the process if there is one already. */
#define GUARD(object, what)                                                                        \
    __attribute__((cleanup(guard_leave))) uint32_t *guard_ =                                       \
        guard_enter((object) ? &(object)->in_use : NULL, __func__, what)
/** Only look, since the object does not outlive the scope. */
#define GUARD_UNUSED(object, what) guard_look((object) ? &(object)->in_use : NULL, __func__, what)

uint32_t *guard_enter(uint32_t *in_use, const char *call, const char *what);
void guard_leave(uint32_t **in_use);
void guard_look(const uint32_t *in_use, const char *call, const char *what);

#else

#define GUARD(object, what) (void)0
#define GUARD_UNUSED(object, what) (void)0

#endif

#endif
