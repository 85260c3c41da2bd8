/* SPDX-License-Identifier: Apache-2.0 */
/** @file sync.h @brief Threads of a rank that wait for each other; see sync.c. */
#ifndef VELO_DEVICE_SYNC_H
#define VELO_DEVICE_SYNC_H

/** This thread ends: whoever joins it goes on. */
void sync_tell_end(void);

#endif
