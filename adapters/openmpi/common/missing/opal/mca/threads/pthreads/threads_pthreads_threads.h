/* SPDX-License-Identifier: Apache-2.0 */
/* The same for opal/mca/threads/threads.h. */
#ifndef VELO_MPI_COMMON_THREADS_PTHREADS_THREADS_H
#define VELO_MPI_COMMON_THREADS_PTHREADS_THREADS_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>

static inline void opal_thread_yield(void) { (void)sched_yield(); }

#endif
