/* SPDX-License-Identifier: Apache-2.0 */
/** @file internal.h @brief Shared by channel.c and threads.c. */
#ifndef VELO_SIM_CLIENT_INTERNAL_H
#define VELO_SIM_CLIENT_INTERNAL_H

#include "channel.h"

/** The channels that this process may have: all of its own are among them. */
struct sim_channel *channels_begin(void);
struct sim_channel *channels_end(void);
/** The channels that any process may have. */
struct sim_channel *channels_end_of_all(void);
/** Claim a channel, whose clock shows `time_ps`. If none is free, say so and end the process: to
 *  go on would be to live in real time. */
struct sim_channel *channel_claim_free(uint64_t time_ps);
/** Has sim_channel_begin() claimed a channel, in this process or the one that it was forked from?
 */
bool channel_has_begun(void);
/** Is a channel held for this thread, which has not called yet? */
bool channel_is_held(void);
/** This thread has no channel any more, without telling the simulator. */
void channel_forget(void);

/** Hold a channel for each process that is forked. Once for each process. */
void threads_watch_forks(void);
/** This thread ends. */
void threads_end(void);

#endif
