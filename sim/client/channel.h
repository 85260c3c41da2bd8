/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file channel.h
 * @brief This thread's channel to the simulated cluster (spec/sim_channel.h), and its clock.
 *
 * A thread that calls for the first time attaches. Without $VELO_SIM there is no cluster.
 */
#ifndef VELO_DEVICE_CHANNEL_H
#define VELO_DEVICE_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "client.h"

#define PS_PER_NS UINT64_C(1000)
/** Exit code of a process that cannot go on: nobody answers any more, or it would leave virtual
 * time. */
#define CHANNEL_EXIT 70

/** The cluster, or NULL where there is none; velo_last_error() says why. */
struct sim_area *channel_area(void);
/** This thread's channel, claimed if need be; NULL as above. */
struct sim_channel *channel_self(void);
/** The same if it has one already; else NULL. */
struct sim_channel *channel_mine(void);
/** Add to this thread's clock. */
void channel_charge(struct sim_channel *channel, uint64_t time_ps);
/** Add what was computed since the last call returned, if the host model counts that. */
void channel_catch_up(struct sim_channel *channel);
/** The channel of this process's thread that waits longest at a place, of those that nobody has
 * woken, or of those that were woken and have not had the turn since; NULL: there is none. */
struct sim_channel *channel_waiting_at(uint64_t place, bool is_woken);
/** Has a thread of this process, which another one has started, a channel? */
bool channel_is_of_thread(uint64_t thread);
/** A channel for somebody whom this thread starts: virtual time waits for who takes it. NULL: this
 *  thread is not of the cluster, or no channel is free. */
struct sim_channel *channel_hold(void);
/** By who was started: what was held is its channel from here on. NULL is none. */
void channel_take(struct sim_channel *channel);
/** Nobody was started. */
void channel_drop(struct sim_channel *channel);
/** This thread is a child's, and its channel the parent's. */
void channel_forget(void);
/** Hold channels for processes that are forked; see start.c. */
void start_watch(void);
/** Has a thread of the cluster started another one in this process? */
bool start_has_threads(void);
/** The channel of this thread, if it has one and such threads beside it; else NULL. */
struct sim_channel *start_channel_beside(void);
/** A number of the environment. */
uint64_t channel_number(const char *name, uint64_t otherwise);
/** A node's memory. */
const char *channel_memory(uint32_t node);

#endif
