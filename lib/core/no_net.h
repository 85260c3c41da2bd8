/* SPDX-License-Identifier: Apache-2.0 */
/** @file no_net.h @brief The network of a port that has none. */
#ifndef VELO_CORE_NO_NET_H
#define VELO_CORE_NO_NET_H

#include "net.h"

/** All peers share memory with the port: it reaches none, and has nothing to do. */
extern const struct net_calls no_net;

/* Its answers where another network has no part in the question, either. */

/** The node and the ids of a port stay as they are. */
void no_net_place(int *node, uint32_t *first, uint32_t *step);
/** Nothing is on its way that the port does not see in memory. */
bool no_net_is_settled(const struct velo_port *port);

#endif
