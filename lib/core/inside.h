/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file inside.h
 * @brief Signal handlers that use a port while their thread is inside a network's call for another.
 *
 * The interrupted call may hold locks that all ports of the process share, of the network and of
 * the allocator, and goes on only once the handler has returned. So a thread enters the network
 * once. What a handler sends meanwhile stays in the connection's ring, and the interrupted call
 * sends it before it leaves; what a handler looks for is not there yet.
 *
 * This is not for a network in place of memory (a node's host port), which takes each line as it is
 * written.
 */
#ifndef VELO_CORE_INSIDE_H
#define VELO_CORE_INSIDE_H

#include <stdbool.h>
#include <stdint.h>

/** What a handler has put off: a part of a connection. */
struct put_off {
    struct put_off *next;
    uint32_t is_listed;
    void (*carry)(struct put_off *put_off);
};

/** Enter the network. False: this thread is inside already. */
bool inside_enter(void);
/** Do what handlers have put off, and leave. */
void inside_leave(void);
/** Have the interrupted call do this before it leaves. */
void inside_put_off(struct put_off *put_off);
/** VELO_ERR_STATE, with a sentence. */
int inside_refuse(void);

#endif
