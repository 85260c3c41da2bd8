/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file carriers.h
 * @brief The network of a port (core/net.h) whose map names transports that carry frames: to open
 *        and to close them, and the table for the core.
 */
#ifndef VELO_NET_CARRIERS_H
#define VELO_NET_CARRIERS_H

#include "../core/net.h"

extern const struct net_calls carriers_calls;

#endif
