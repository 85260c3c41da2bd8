/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file client.h
 * @brief Calls to the simulated cluster: one function for each operation of spec/sim_channel.h.
 *
 * A function fills in the arguments, calls, and gives the results. `channel` is the calling
 * thread's own. Each returns enum sim_status; which ones an operation has, and how much virtual
 * time it takes, is said with its arguments in spec/sim_channel.h.
 */
#ifndef VELO_SIM_CLIENT_CLIENT_H
#define VELO_SIM_CLIENT_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "../../spec/sim_channel.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What the library that talks to the simulator exports. */
#define SIM_API __attribute__((visibility("default")))

/** Give the simulator the turn, with `op` and the arguments that stand in the channel, and wait
 *  until it has answered. The program that includes this file has it. */
SIM_API int sim_submit(struct sim_channel *channel, enum sim_op op);

static inline int sim_attach(struct sim_channel *channel, uint64_t rank, bool is_repeatable)
{
    channel->call.attach.rank = rank;
    channel->call.attach.is_repeatable = is_repeatable;
    return sim_submit(channel, SIM_ATTACH);
}

static inline int sim_detach(struct sim_channel *channel)
{
    return sim_submit(channel, SIM_DETACH);
}

/** `context`: the one that is wanted, then the one that is opened; `opened`: how often it was. Both
 *  change only with SIM_OK. */
static inline int sim_port_open(struct sim_channel *channel, uint64_t node, uint64_t *context,
                                uint64_t *opened)
{
    channel->call.port_open.node = node;
    channel->call.port_open.context = *context;
    int status = sim_submit(channel, SIM_PORT_OPEN);
    if (status == SIM_OK) {
        *context = channel->call.port_open.context;
        *opened = channel->call.port_open.opened;
    }
    return status;
}

static inline int sim_port_close(struct sim_channel *channel, uint64_t node, uint64_t context)
{
    channel->call.port_close.node = node;
    channel->call.port_close.context = context;
    return sim_submit(channel, SIM_PORT_CLOSE);
}

/** Try in each period. `len_words` is at most 8. `arrivals`: as of sim_look(). */
static inline int sim_store_until(struct sim_channel *channel, uint64_t node, uint64_t address,
                                  const uint64_t *line, uint32_t len_words, uint64_t period_ps,
                                  uint64_t *arrivals)
{
    channel->call.store.node = node;
    channel->call.store.address = address;
    channel->call.store.len_words = len_words;
    channel->call.store.period_ps = period_ps;
    channel->call.store.arrivals = *arrivals;
    memcpy(channel->call.store.line, line, len_words * sizeof *line);
    int status = sim_submit(channel, SIM_STORE);
    *arrivals = channel->call.store.arrivals;
    return status;
}

/** Try once. */
static inline int sim_store(struct sim_channel *channel, uint64_t node, uint64_t address,
                            const uint64_t *line, uint32_t len_words)
{
    uint64_t arrivals = 0;
    return sim_store_until(channel, node, address, line, len_words, 0, &arrivals);
}

static inline int sim_register_write(struct sim_channel *channel, uint64_t node, uint64_t offset,
                                     uint64_t value)
{
    channel->call.register_write.node = node;
    channel->call.register_write.offset = offset;
    channel->call.register_write.value = value;
    return sim_submit(channel, SIM_REGISTER_WRITE);
}

/** `value` changes only with SIM_OK. */
static inline int sim_register_read(struct sim_channel *channel, uint64_t node, uint64_t offset,
                                    uint64_t *value)
{
    channel->call.register_read.node = node;
    channel->call.register_read.offset = offset;
    int status = sim_submit(channel, SIM_REGISTER_READ);
    if (status == SIM_OK)
        *value = channel->call.register_read.value;
    return status;
}

/** Look once, at this thread's time. `arrivals`: as it was at the last look, then as it is now. */
static inline int sim_look(struct sim_channel *channel, uint64_t *arrivals)
{
    channel->call.poll.arrivals = *arrivals;
    channel->call.poll.deadline_ps = SIM_NEVER;
    channel->call.poll.until_new = 0;
    channel->call.poll.period_ps = 0;
    int status = sim_submit(channel, SIM_POLL);
    *arrivals = channel->call.poll.arrivals;
    return status;
}

/** Look every `period_ps` until `arrivals` has changed, at most until the deadline. */
static inline int sim_poll(struct sim_channel *channel, uint64_t *arrivals, uint64_t deadline_ps,
                           uint64_t period_ps)
{
    channel->call.poll.arrivals = *arrivals;
    channel->call.poll.deadline_ps = deadline_ps;
    channel->call.poll.until_new = 1;
    channel->call.poll.period_ps = period_ps;
    int status = sim_submit(channel, SIM_POLL);
    *arrivals = channel->call.poll.arrivals;
    return status;
}

static inline int sim_sleep(struct sim_channel *channel, uint64_t end_ps)
{
    channel->call.sleep.end_ps = end_ps;
    return sim_submit(channel, SIM_SLEEP);
}

static inline int sim_outside(struct sim_channel *channel, uint64_t number)
{
    channel->call.outside.number = number;
    return sim_submit(channel, SIM_OUTSIDE);
}

static inline int sim_queue_open(struct sim_channel *channel, uint64_t node, uint64_t context)
{
    channel->call.queue_open.node = node;
    channel->call.queue_open.context = context;
    return sim_submit(channel, SIM_QUEUE_OPEN);
}

/** `first_page` changes only with SIM_OK. */
static inline int sim_memory_enter(struct sim_channel *channel, uint64_t node, uint64_t context,
                                   uint64_t address, uint64_t len_bytes, uint64_t rights,
                                   uint64_t *first_page)
{
    channel->call.memory_enter.node = node;
    channel->call.memory_enter.context = context;
    channel->call.memory_enter.address = address;
    channel->call.memory_enter.len_bytes = len_bytes;
    channel->call.memory_enter.rights = rights;
    int status = sim_submit(channel, SIM_MEMORY_ENTER);
    if (status == SIM_OK)
        *first_page = channel->call.memory_enter.first_page;
    return status;
}

static inline int sim_memory_withdraw(struct sim_channel *channel, uint64_t node,
                                      uint64_t first_page)
{
    channel->call.memory_withdraw.node = node;
    channel->call.memory_withdraw.first_page = first_page;
    return sim_submit(channel, SIM_MEMORY_WITHDRAW);
}

/* ---- boards of DIMMnet-2 ---------------------------------------------------------------------- */

/** `board` changes only with SIM_OK. */
static inline int sim_board_open(struct sim_channel *channel, uint64_t lid, uint64_t *board)
{
    channel->call.board_open.lid = lid;
    int status = sim_submit(channel, SIM_BOARD_OPEN);
    if (status == SIM_OK)
        *board = channel->call.board_open.board;
    return status;
}

static inline int sim_board_close(struct sim_channel *channel, uint64_t board)
{
    channel->call.board_close.board = board;
    return sim_submit(channel, SIM_BOARD_CLOSE);
}

/** `len_words` is at most SIM_SLOT_WORDS. */
static inline int sim_slot_store(struct sim_channel *channel, uint64_t board, uint64_t address,
                                 const uint64_t *words, uint32_t len_words)
{
    channel->call.slot.board = board;
    channel->call.slot.address = address;
    channel->call.slot.len_words = len_words;
    memcpy(channel->call.slot.words, words, len_words * sizeof *words);
    return sim_submit(channel, SIM_SLOT_STORE);
}

/** `word` changes only with SIM_OK. */
static inline int sim_slot_load(struct sim_channel *channel, uint64_t board, uint64_t address,
                                uint64_t *word)
{
    channel->call.slot.board = board;
    channel->call.slot.address = address;
    channel->call.slot.len_words = 1;
    int status = sim_submit(channel, SIM_SLOT_LOAD);
    if (status == SIM_OK)
        *word = channel->call.slot.words[0];
    return status;
}

/** `words` change only with SIM_OK; `len_words` is at most SIM_SLOT_WORDS. */
static inline int sim_slot_lines(struct sim_channel *channel, uint64_t board, uint64_t address,
                                 uint64_t *words, uint32_t len_words)
{
    channel->call.slot.board = board;
    channel->call.slot.address = address;
    channel->call.slot.len_words = len_words;
    int status = sim_submit(channel, SIM_SLOT_LINES);
    if (status == SIM_OK)
        memcpy(words, channel->call.slot.words, len_words * sizeof *words);
    return status;
}

/** `word`: what it is known to be, then what it is. */
static inline int sim_slot_await(struct sim_channel *channel, uint64_t board, uint64_t address,
                                 uint64_t *word, uint64_t deadline_ps)
{
    channel->call.slot.board = board;
    channel->call.slot.address = address;
    channel->call.slot.len_words = 1;
    channel->call.slot.deadline_ps = deadline_ps;
    channel->call.slot.words[0] = *word;
    int status = sim_submit(channel, SIM_SLOT_AWAIT);
    if (status == SIM_OK)
        *word = channel->call.slot.words[0];
    return status;
}

#ifdef __cplusplus
}
#endif

#endif
