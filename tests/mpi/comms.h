/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of collectives: communicators of many shapes, and what a rank contributes. */
#ifndef VELO_MPI_TEST_COMMS_H
#define VELO_MPI_TEST_COMMS_H

#include "mpi_test.h"

/* Run a check on duplicates of and parts of MPI_COMM_WORLD: all ranks, the first n of them for each
 * n, each half, all in reversed order. Ranks that a communicator leaves out do nothing. */
void each_comm(void (*check)(MPI_Comm comm, int own, int size));

/* How often the shared memory of coll/velo is mapped into this process. */
int mapped_memories(void);

/* A number that every rank can compute for every other: round, rank, position. */
uint32_t mixed(uint32_t round, uint32_t from, uint32_t at);

/* Wait up to that long; each rank of each round otherwise. */
void linger(uint32_t round, unsigned limit_us);

#endif
