/* SPDX-License-Identifier: Apache-2.0 */
/** @file memory.h @brief Where a program's stack and heap are: the same in every run. */
#ifndef VELO_SIM_PRELOAD_MEMORY_H
#define VELO_SIM_PRELOAD_MEMORY_H

/** This thread, which the program has started, allocates from the program's arena. */
void memory_join(void);

#endif
