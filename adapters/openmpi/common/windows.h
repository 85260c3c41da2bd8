/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file windows.h
 * @brief Windows over several hosts in which some releases of Open MPI hang, or put data astray.
 */
#ifndef VELO_MPI_COMMON_WINDOWS_H
#define VELO_MPI_COMMON_WINDOWS_H

/** See to it that no window gets a component that does not serve it. Called once
 * Open MPI's one-sided components are there: from add_procs(). */
void velo_ompi_guard_windows(void);

#endif
