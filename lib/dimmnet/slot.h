/* SPDX-License-Identifier: Apache-2.0 */
/** @file slot.h @brief Boards in memory slots, reached by a plug-in (slot_io.h). */
#ifndef VELO_DIMMNET_SLOT_H
#define VELO_DIMMNET_SLOT_H

#include "engine.h"

extern const struct dimmnet_engine dimmnet_in_slots;

#endif
