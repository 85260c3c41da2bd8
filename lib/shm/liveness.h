/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file liveness.h
 * @brief Does the owner of a segment live? How to wake it.
 */
#ifndef VELO_SHM_LIVENESS_H
#define VELO_SHM_LIVENESS_H

#include "layout.h"

/** VELO_OK while the owner lives, else VELO_ERR_PEER_CLOSED or VELO_ERR_PEER_DEAD. A system call.
 */
int seg_owner_status(const struct segment *segment);
/** The same, while the segment's file is open: there are few locks in it, see lives.h. */
int seg_open_owner_status(const struct segment *segment);
/** The same. If the owner has died, all its senders hear of that with their next message. */
VELO_PRIVATE int seg_check_owner(const struct segment *segment);
/** It is known to have died: all its senders hear of that. */
void seg_mark_dead(const struct segment *segment);
/** Wake the owner if it sleeps. Its summary has been changed before. */
void seg_wake_owner(const struct segment *segment);

#endif
