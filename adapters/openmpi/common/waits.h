/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file waits.h
 * @brief Waits of a program with threads poll for a while before they sleep.
 *
 * Under MPI_THREAD_MULTIPLE one thread of a rank polls in Open MPI's waits, and the others sleep
 * until that one wakes them. A thread that is woken on the core of the one that wakes it takes the
 * core away from it, and then waits until that one has left the request, which it does when the
 * core's next turn is its: a millisecond and more for a message of a microsecond. A thread that
 * polls and yields finds its message when its turn comes, and nobody wakes it.
 */
#ifndef VELO_MPI_COMMON_WAITS_H
#define VELO_MPI_COMMON_WAITS_H

/** From now on all blocking calls of MPI that send, receive, probe or wait poll first, if the
 * program has asked for MPI_THREAD_MULTIPLE. Called once the PML has been selected: from
 * add_procs(). A second call does nothing. */
void velo_ompi_mend_waits(void);
/** Undo that. */
void velo_ompi_leave_waits(void);

#endif
