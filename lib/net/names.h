/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file names.h
 * @brief The names by which transports reach ports: shown in the segment to peers of this machine.
 */
#ifndef VELO_NET_NAMES_H
#define VELO_NET_NAMES_H

#include "carrier.h"

/** Show the name of a port that has its carriers. */
void names_show(const struct velo_port *port);
/** The name that a peer of this domain and machine shows. VELO_ERR_NO_PEER: there is no such port,
 *  or it shows none; as seg_open(). */
int names_find(const struct velo_port *port, velo_id_t peer, struct velo_port_shown *shown);

#endif
