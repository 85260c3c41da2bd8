/* SPDX-License-Identifier: Apache-2.0 */
/** @file exposed.h @brief Memory that a peer may fetch over a network. */
#ifndef VELO_CORE_EXPOSED_H
#define VELO_CORE_EXPOSED_H

#include <stdint.h>

/** What names such memory; its owner tells it to the peer by a message. */
struct velo_exposed {
    uint64_t key; /**< Not 0; nobody can guess it. */
    uint64_t address;
};

#endif
