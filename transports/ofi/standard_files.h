/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file standard_files.h
 * @brief No descriptor of libfabric's is 0, 1 or 2.
 *
 * velo moves each descriptor that it opens itself by fd_above_standard(). It cannot move
 * libfabric's, as libfabric keeps their numbers to itself. So while libfabric may open one, velo
 * holds the numbers of those standard files that the program has closed. It does so by descriptors
 * that neither read nor write, so a program that uses such a number meanwhile gets EBADF, as
 * before.
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
