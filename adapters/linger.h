/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file linger.h
 * @brief How long the ports of adapters linger.
 */
#ifndef VELO_ADAPTERS_LINGER_H
#define VELO_ADAPTERS_LINGER_H

#include <stdint.h>

/** A port that closes waits so long for a peer that stands still to take what was sent to it. The
 *  interfaces above promise that what was sent arrives, and have no such time of their own. */
#define ADAPTER_LINGER_NS INT64_C(10000000000)

#endif
