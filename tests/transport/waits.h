/* SPDX-License-Identifier: Apache-2.0 */
/* poll() and epoll_wait(), counted. They stand in the place of the C library's, for all of the
 * process. Calls that do not wait do not count. */
#ifndef VELO_TEST_TRANSPORT_WAITS_H
#define VELO_TEST_TRANSPORT_WAITS_H

#include <stdint.h>

/* Waits of this process. */
extern uint64_t waits;
/* Those of this thread that ended because their time was over. */
extern _Thread_local uint64_t waits_in_vain;
/* Called in this thread when a wait is about to begin. NULL: nothing is. */
extern _Thread_local void (*waits_begin)(void);

static inline uint64_t waits_so_far(void) { return __atomic_load_n(&waits, __ATOMIC_RELAXED); }

#endif
