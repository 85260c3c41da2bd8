/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file fetch.h
 * @brief Gets that do not need the owner's library, for the matched queues.
 */
#ifndef VELO_RMA_FETCH_H
#define VELO_RMA_FETCH_H

#include <stdbool.h>

#include <velo/rma.h>

/**
 * Get by loads, by cross-memory attach, or by a device. Nobody is notified of the end.
 *
 * VELO_OK: *outcome is the status; it is VELO_AGAIN while the device works on the get. It changes
 * in velo_rma_progress(), and is final when velo_rma_disconnect() returns. VELO_AGAIN: not now.
 * Else: the memory cannot be reached in this way.
 */
int rma_fetch(struct velo_rma_peer *peer, void *local, size_t len_bytes,
              struct velo_rma_place remote, int *outcome);

/**
 * From about this length on, fetching a message is faster than copying it through the ring, which
 * keeps the processors of both sides busy. Over a device the length is from NetPIPE on the
 * simulated cluster with its default settings; docs/performance/simulator.md has the figures, also
 * those of a faster clock.
 */
uint64_t rma_fetch_bytes_default(const struct velo_port *port);
/** The same natively. */
#define RMA_FETCH_BYTES (UINT64_C(1) << 20)

/** Does a device fetch? It lets in only peers to which its owner is connected, too. */
bool rma_device_fetches(struct velo_rma *rma);

#endif
