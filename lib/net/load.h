/* SPDX-License-Identifier: Apache-2.0 */
/** @file load.h @brief Loading transports. */
#ifndef VELO_NET_LOAD_H
#define VELO_NET_LOAD_H

#include "transport.h"

/** Load a transport, which stays loaded: its ports may be of other threads. NULL: *status is
 *  VELO_ERR_ARG, there is no such transport; VELO_ERR_VERSION; or VELO_ERR_STATE: it has a device,
 *  and this library is linked into the program. */
const struct velo_transport *transport_load(const char *name, int *status);

#endif
