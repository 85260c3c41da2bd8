/* SPDX-License-Identifier: Apache-2.0 */
/** @file descriptor.h @brief The descriptor by which a program's own event loop waits for a port.
 */
#ifndef VELO_CORE_DESCRIPTOR_H
#define VELO_CORE_DESCRIPTOR_H

#include "port.h"

/** To be called before the port's transports are closed: their descriptors are in it. */
void descriptor_close(struct velo_port *port);

#endif
