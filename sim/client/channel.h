/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file channel.h
 * @brief This thread's channel to the simulated cluster (spec/sim_channel.h), and its clock.
 *
 * A thread attaches when it first asks for its channel. Without $VELO_SIM there is no cluster. All
 * functions are for any thread, and are about the calling thread unless they say otherwise.
 *
 * The process has one copy of all this, and of poll.h: the plug-in that carries messages and the
 * library that gives programs virtual time share each thread's channel and clock.
 */
#ifndef VELO_SIM_CLIENT_CHANNEL_H
#define VELO_SIM_CLIENT_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "client.h"

#define PS_PER_NS UINT64_C(1000)
#define NS_PER_S INT64_C(1000000000)
/** Exit code of a process that cannot go on: the simulator has ended, or the process did something
 *  that virtual time does not have. */
#define SIM_EXIT 70

/** The cluster, or NULL: there is none, and sim_channel_why_none() says why. */
SIM_API struct sim_area *sim_channel_area(void);
/** The channel, which is claimed if need be; NULL as above. */
SIM_API struct sim_channel *sim_channel_self(void);
/** The channel if this thread has one already; else NULL. */
SIM_API struct sim_channel *sim_channel_mine(void);
/** A sentence, for as long as the process lives. */
SIM_API const char *sim_channel_why_none(void);

/** What a call of the simulator returned that is not to fail: it names what the process has from
 * the simulator. If it was refused all the same, say what, and end the process: to go on would be
 * to take for done what was not. */
SIM_API void sim_channel_expect_done(int status, const char *what);

/** Something makes the run depend on real time or on chance: the result says so. `what`: the call
 *  that did it, at most 23 characters. The first report of a cause counts. Without a cluster the
 *  call does nothing. */
SIM_API void sim_channel_report(enum sim_cause cause, const char *what);

/** Has a signal handler run in this thread during a call, since this was last asked? That is
 *  reported, since real time decides it. */
SIM_API bool sim_channel_was_interrupted(void);

/** Add to the channel's clock. */
SIM_API void sim_channel_charge(struct sim_channel *channel, uint64_t time_ps);
/** Add what this thread computed since its last call returned, if the host model counts that. */
SIM_API void sim_channel_catch_up(struct sim_channel *channel);

/** A node's memory, for as long as the process lives. */
SIM_API const char *sim_channel_memory(uint32_t node);
/** A board's memory, likewise. */
SIM_API char *sim_channel_board(uint64_t board);
/** A number of the environment, or `otherwise` if it has none of that name. */
SIM_API uint64_t sim_environment_number(const char *name, uint64_t otherwise);

/** Before the program begins: if this is the first process of a rank, claim a channel for its main
 *  thread. Virtual time waits for it from now on, until it sleeps, and for all other ranks of the
 * job to begin. */
SIM_API void sim_channel_begin(void);

/* ---- threads and processes that are started ---------------------------------------------------
 */

/** Claim a channel for a thread that this thread is about to start: virtual time waits for it from
 *  now on. NULL: this thread has no channel. If none is free, the process ends with a sentence.
 *  (Processes that are forked get one without this.) */
SIM_API struct sim_channel *sim_channel_hold(void);
/** By the thread that was started: `channel`, which was held, is its own from here on. */
SIM_API void sim_channel_take(struct sim_channel *channel);
/** The thread was not started. */
SIM_API void sim_channel_drop(struct sim_channel *channel);
/** The channel if this thread has one, and this process has held one for a thread; else NULL. */
SIM_API struct sim_channel *sim_channel_beside(void);
/** Has this process held a channel for a thread? */
SIM_API bool sim_channel_has_threads(void);
/** Call `ended` in each thread that has a channel, when the thread ends. */
SIM_API void sim_channel_on_end(void (*ended)(void));

/** Does any other thread wait in a call, of a process for which `is` holds? */
SIM_API bool sim_channel_any_waits(bool (*is)(int pid, const void *arg), const void *arg);

/* ---- threads that wait for each other ----------------------------------------------------------
 */

/** The channel of the thread of this process that waits longest at a place. `is_woken`: of those
 *  that were woken and have not had the turn since; else, of those that nobody has woken. NULL:
 *  there is none. This thread has a channel. */
SIM_API struct sim_channel *sim_channel_waiting_at(uint64_t place, bool is_woken);
/** Has a thread of this process, which another one has started, a channel? */
SIM_API bool sim_channel_is_of_thread(uint64_t thread);

#endif
