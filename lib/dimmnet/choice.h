/* SPDX-License-Identifier: Apache-2.0 */
/** @file choice.h @brief Which engine: the native one, or boards in slots and the plug-in that
 * reaches them. */
#ifndef VELO_DIMMNET_CHOICE_H
#define VELO_DIMMNET_CHOICE_H

#include "engine.h"

/** The engine that $VELO_DIMMNET names, for all of the process; NULL: velo_last_error() says why.
 */
const struct dimmnet_engine *dimmnet_engine(void);

#endif
