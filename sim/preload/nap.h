/* SPDX-License-Identifier: Apache-2.0 */
/** @file nap.h @brief Let virtual time pass. */
#ifndef VELO_SIM_PRELOAD_NAP_H
#define VELO_SIM_PRELOAD_NAP_H

#include <stdint.h>

#include "../client/channel.h"

/** The thread goes on when its clock shows that time; at once, if it already does. */
void nap_until_ns(struct sim_channel *channel, int64_t end_ns);
void nap_for_ns(struct sim_channel *channel, int64_t nap_ns);

#endif
