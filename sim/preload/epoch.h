/* SPDX-License-Identifier: Apache-2.0 */
/** @file epoch.h @brief Where virtual clocks begin. */
#ifndef VELO_SIM_PRELOAD_EPOCH_H
#define VELO_SIM_PRELOAD_EPOCH_H

#include <stdint.h>
#include <time.h>

#include "../client/channel.h"

/** The day on which every simulation begins: 2026-01-01. */
#define EPOCH_S INT64_C(1767225600)
/** CLOCK_MONOTONIC never reads 0: programs take that for unset. */
#define UPTIME_S INT64_C(1000)

/** The virtual time at which a clock shows this value. */
static inline int64_t epoch_time_ns(clockid_t id, const struct timespec *shown)
{
    return (shown->tv_sec - (id == CLOCK_REALTIME ? EPOCH_S : UPTIME_S)) * NS_PER_S +
           shown->tv_nsec;
}

#endif
