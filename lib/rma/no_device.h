/* SPDX-License-Identifier: Apache-2.0 */
/** @file no_device.h @brief The table of a unit without a device. */
#ifndef VELO_RMA_NO_DEVICE_H
#define VELO_RMA_NO_DEVICE_H

#include "../core/port.h"
#include "offload.h"

/** The device of a unit whose port has none: it does nothing, so that all is done natively. */
extern const struct rma_offload rma_no_device;

/** What carries out operations of units beside this port. */
static inline const struct rma_offload *rma_offload_of(const struct velo_port *port)
{
    return port->net->offload ? port->net->offload : &rma_no_device;
}

#endif
