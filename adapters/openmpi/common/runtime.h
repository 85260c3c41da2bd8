/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file runtime.h
 * @brief What the MTL and the BTL tell the runtime that has started a rank.
 */
#ifndef VELO_MPI_COMMON_RUNTIME_H
#define VELO_MPI_COMMON_RUNTIME_H

/** Have what this rank's PMIx says to the launcher sent at once. At its end it says several things
 *  that nobody answers, in a packet each, and the kernel holds the second one back until the first
 *  is acknowledged, up to 40 ms later (Nagle's algorithm, RFC 896, and delayed acknowledgements):
 *  every job would end that much later. Does nothing where there is no such connection. */
void velo_ompi_hurry_runtime(void);

#endif
