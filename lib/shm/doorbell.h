/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file doorbell.h
 * @brief Waking a receiver that sleeps on descriptors: its own event loop's, or a transport's.
 *
 * A doorbell is two sockets, since each reaches some senders that the other does not. The near one
 * has an abstract name: it needs no file, so nobody can take its file away, but only senders in its
 * network namespace reach it. The far one has a name beside the segment and is reached from every
 * network namespace that sees that directory. A doorbell has both, or cannot be opened: a
 * receiver does not know in which namespaces its senders are, and one that it has no socket for
 * would not wake it.
 *
 * Each port has its own. One for all ports of a process would not do: its byte would go to
 * whichever thread looks first, and the descriptor of one port (velo_port_fd()) would show what
 * another one got.
 *
 * A sender rings from a socket that its process keeps from its first port to its last, so a
 * process that has no descriptor left still wakes its receivers.
 */
#ifndef VELO_SHM_DOORBELL_H
#define VELO_SHM_DOORBELL_H

#include <stdint.h>

#include "layout.h"

struct doorbell {
    int near_fd; /* -1: there is no doorbell. */
    int far_fd;
};
#define DOORBELL_NONE {.near_fd = -1, .far_fd = -1}

/** Names in a segment's directory that are far sockets. */
#define DOORBELL_PREFIX "velo+bell."

/** Open the doorbell of a segment that this process owns. VELO_ERR_SYSTEM (also if there is no
 * descriptor for it), and for the name beside the segment VELO_ERR_NO_SPACE, VELO_ERR_ACCESS and
 * VELO_ERR_NO_MEMORY. */
int doorbell_open(struct doorbell *doorbell, const struct seg_domain *domain,
                  const struct segment *segment);
/** Take its name away: before the segment's. */
void doorbell_hide(const struct doorbell *doorbell, const struct segment *segment);
void doorbell_close(struct doorbell *doorbell);
/** Ring the doorbell of a generation whose segment lies beside `path`. Without effect if there is
 * none. A signal handler may call this. */
void doorbell_ring(const char *path, uint32_t generation);
/** Make sure that this doorbell is readable, without a descriptor more. */
void doorbell_ring_own(const struct doorbell *doorbell, const struct segment *segment);
void doorbell_drain(const struct doorbell *doorbell);

/* After seg_acquire(): */

/** A port begins, or ends: while there is one, this process keeps a socket to ring from. False with
 * errno: there is no descriptor for it. */
bool doorbell_ringer_take(void);
void doorbell_ringer_drop(void);
/** The owner of that generation has died: remove what is left of its doorbell. */
void doorbell_forget(const char *path, uint32_t generation);
/** Remove a far socket whose owner has died, if this file is one. */
void doorbell_sweep(const char *path);

#endif
