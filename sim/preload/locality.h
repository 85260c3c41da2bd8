/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file locality.h
 * @brief Which simulated node a rank is on.
 */
#ifndef VELO_SIM_PRELOAD_LOCALITY_H
#define VELO_SIM_PRELOAD_LOCALITY_H

#include <stdbool.h>
#include <stdint.h>

/** Ranks of each node, as `velo sim` says; 0: it has started no ranks. */
uint32_t locality_ranks_a_node(void);
/** This process's rank. */
uint32_t locality_rank(void);
/** The node of this process's rank. */
uint32_t locality_node(void);
/** Does MPI know which ranks are on this node? */
bool locality_was_told(void);

/** The file by which a rank that Hydra has started asks it; -1: another launcher has started it. */
int locality_hydra_file(void);

#endif
