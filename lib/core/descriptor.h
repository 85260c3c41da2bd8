/* SPDX-License-Identifier: Apache-2.0 */
/** @file descriptor.h @brief The descriptor by which a program's own event loop waits for a port.
 */
#ifndef VELO_CORE_DESCRIPTOR_H
#define VELO_CORE_DESCRIPTOR_H

#include "port.h"

/** The program is awake after velo_port_arm(): senders need not ring any more. A sender may find
 * that just before it rings, so the descriptor is made readable, for a thread that waits for it. */
void descriptor_wake(struct velo_port *port);
/** To be called before the port's network is closed: its descriptors are in it. */
void descriptor_close(struct velo_port *port);

#endif
