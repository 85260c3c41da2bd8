/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VELO_SYSTEM_WORKER_H
#define VELO_SYSTEM_WORKER_H

#include "desk.h"

/* Carry out commands, one for each byte that comes over `fd`, until there is nobody to send them.
 * The standard files in this set, bits, are closed first. */
_Noreturn void worker_run(int fd, struct desk *desk, struct sundial *sundial,
                          unsigned closed_files);

/* surroundings.c: what a process has beside its ports. */

/* Files that the process does without from now on, and the descriptors that it has. */
void surroundings_begin(unsigned closed_files);
/* One of those that were closed, and is open; -1: none is. */
int surroundings_standard_file(void);
/* Let no more than so many descriptors be free; take them all back. */
void descriptors_end(uint32_t left);
void descriptors_come(void);
/* How many are open that were not at the beginning. */
int64_t descriptors_count(void);
/* Fork. What the child calls returns how many calls went wrong, and so does this; of a child that
 * stays, its process id. */
int64_t fork_child(enum child_act act, int conductor, int64_t (*body)(enum child_act act));

#endif
