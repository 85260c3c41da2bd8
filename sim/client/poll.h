/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file poll.h
 * @brief Polls of a thread for what comes to its process, and the cost of a poll.
 *
 * A poll in vain costs a call of the simulator. A thread that polls again and again is therefore
 * taken to wait: after some polls in vain, one after the other, the next ones until something comes
 * are one call. What the thread does in between says whether they are one after the other.
 *
 * A thread may be outside: it waits for something that the cluster does not simulate (SIM_OUTSIDE).
 * Any call of the simulator brings it back.
 *
 * All functions are about the calling thread, which has a channel.
 */
#ifndef VELO_SIM_CLIENT_POLL_H
#define VELO_SIM_CLIENT_POLL_H

#include "channel.h"

/** Poll once: a poll's time passes, or, after some polls in vain, the time until something comes,
 *  as if the thread had gone on polling. */
SIM_API void sim_poll_once(void);
/** Poll until something comes, but not beyond a time. */
SIM_API void sim_poll_until(uint64_t deadline_ps);
/** Call `take` after each poll, in the thread that polled, to take in what has come. */
SIM_API void sim_poll_on_news(void (*take)(void));
/** Take in what has come, without a poll. No time passes. */
SIM_API void sim_poll_take_news(void);

/** Store words of a line to a node's window. While the way there is full, the thread polls.
 *  Returns when the store has left the processor; otherwise SIM_ERR_NODE, SIM_ERR_CALL. */
SIM_API int sim_poll_store(uint32_t node, uint64_t address, const uint64_t *line,
                           uint32_t len_words);
/** The thread has taken a nap, or has found something: it does not only poll. */
SIM_API void sim_poll_napped(void);
/** The program asks whether something has come, and has other things to do if not. A program that
 *  asks for long and does nothing else is taken to wait after all. */
SIM_API void sim_poll_tested(void);
/** Let a poll's time pass, without a poll. */
SIM_API void sim_poll_pass(struct sim_channel *channel);

/** Go outside: what this thread waits for next is not simulated. */
SIM_API void sim_poll_go_outside(void);
SIM_API bool sim_poll_is_outside(void);
/** Come back, if this thread is outside: with all others that are. */
SIM_API void sim_poll_come_back(void);
/** The thread naps in real time. If it is outside, it stays there for some more polls. */
SIM_API void sim_poll_nap_outside(void);

#endif
