/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file standard_files.h
 * @brief No descriptor of libfabric's is 0, 1 or 2.
 *
 * What velo itself opens, fd_above_standard() moves. libfabric keeps the numbers of its descriptors
 * to itself, so those of the program's standard files that are closed are held while libfabric may
 * open one: by a descriptor that neither reads nor writes, so whoever uses one meanwhile gets
 * EBADF, as before.
 */
#ifndef VELO_OFI_STANDARD_FILES_H
#define VELO_OFI_STANDARD_FILES_H

#include <stdbool.h>

/** Hold those that are closed; threads may do so at once. True: some are. */
bool standard_files_hold(void);
/** Let them go with the last who holds them. */
void standard_files_release(void);

static inline void standard_files_end(const bool *held)
{
    if (*held)
        standard_files_release();
}

/** Until the end of this block, if the program had closed some when the fabric was opened. */
#define HOLD_STANDARD_FILES(fabric)                                                                \
    const bool held_ __attribute__((cleanup(standard_files_end))) = (fabric)->is_bare;             \
    if (held_)                                                                                     \
    (void)standard_files_hold()

#endif
