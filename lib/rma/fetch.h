/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file fetch.h
 * @brief Gets that need nothing of the owner's library, for the matched queues.
 */
#ifndef VELO_RMA_FETCH_H
#define VELO_RMA_FETCH_H

#include <stdbool.h>

#include <velo/rma.h>

/**
 * Get by loads, by cross-memory attach, or by a device. Nobody is notified, whatever
 * becomes of it.
 *
 * VELO_OK: *outcome is the status, VELO_AGAIN while the device is at it. It changes in
 * velo_rma_progress(), and has ended when velo_rma_disconnect() returns. VELO_AGAIN: not now. Else:
 * it cannot be had in this way.
 */
int rma_fetch(struct velo_rma_peer *peer, void *local, size_t len_bytes,
              struct velo_rma_place remote, int *outcome);

/**
 * From about this length on, fetching a message is faster than copying it through the ring, which
 * keeps the processors of both sides busy. Over a device: NetPIPE on the simulated cluster as it is
 * by default; docs/notes-simulator.md has the figures, also those of a faster clock.
 */
uint64_t rma_fetch_bytes_default(const struct velo_port *port);

/** Is it a device that fetches? It lets in only peers that its owner, too, is connected to. */
bool rma_device_fetches(struct velo_rma *rma);

#endif
