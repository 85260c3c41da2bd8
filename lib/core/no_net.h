/* SPDX-License-Identifier: Apache-2.0 */
/** @file no_net.h @brief The network of a port that has none. */
#ifndef VELO_CORE_NO_NET_H
#define VELO_CORE_NO_NET_H

#include "net.h"

/** All peers share memory with the port: it reaches none, and has nothing to do. */
extern const struct net_calls no_net;

#endif
