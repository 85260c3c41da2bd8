/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file liveness.h
 * @brief Which processes live: the owner of a segment, and those that send to it.
 */
#ifndef VELO_SHM_LIVENESS_H
#define VELO_SHM_LIVENESS_H

#include "layout.h"

/** VELO_OK while the owner lives, else VELO_ERR_PEER_CLOSED or VELO_ERR_PEER_DEAD. A system call.
 */
int seg_owner_status(const struct segment *segment);
/** The same. If the owner has died, all its senders hear of that with their next message. */
VELO_PRIVATE int seg_check_owner(const struct segment *segment);
/** Wake the owner if it sleeps. Its summary has been changed before. */
void seg_wake_owner(const struct segment *segment);
/** Take the lock of an entry, after seg_acquire(). VELO_AGAIN: another process has it.
 * VELO_ERR_SYSTEM: the system gives none; velo_last_error() says why. */
VELO_PRIVATE int seg_lock_entry(const struct segment *segment, uint32_t index);
/** The same, if no thread of this process has it, either. */
VELO_PRIVATE int seg_lock_dead_entry(const struct segment *segment, uint32_t index);
VELO_PRIVATE void seg_unlock_entry(const struct segment *segment, uint32_t index);
/** Does the process that sends on this entry live? A system call. */
VELO_PRIVATE bool seg_sender_alive(const struct segment *segment, uint32_t index);

#endif
