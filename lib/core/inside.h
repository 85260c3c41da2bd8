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

struct velo_conn;
struct velo_port;

/** Enter the network of a port. False: this thread is inside already. */
bool inside_enter(const struct velo_port *port);
/** Send what handlers have put off, and leave. */
void inside_leave(const struct velo_port *port);
/** Have the interrupted call send what was published on this connection. */
void inside_put_off(struct velo_conn *conn);
/** VELO_ERR_STATE, with a sentence. */
int inside_refuse(void);

#endif
