/* SPDX-License-Identifier: Apache-2.0 */
/* epoll_wait(), counted. It stands in the place of the C library's, for all of the process. */
#ifndef VELO_TEST_OFI_CALLS_H
#define VELO_TEST_OFI_CALLS_H

#include <stdint.h>

/* Calls of this thread. Over TCP each look of libfabric makes some, which do not wait. */
extern _Thread_local uint64_t calls_epoll;
/* Where to count waits with a timeout that ended by an event. NULL: nowhere. */
extern uint64_t *calls_events;

#endif
