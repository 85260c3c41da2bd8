/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file link_connect.h
 * @brief Connections over a transport: to make and to end them.
 */
#ifndef VELO_NET_LINK_CONNECT_H
#define VELO_NET_LINK_CONNECT_H

#include "../core/net.h"

/** Connect over the carrier that reaches a peer: the connection gets a ring to fill. As
 *  velo_connect(). */
int link_connect(struct velo_conn *conn, velo_id_t peer, int64_t timeout_ns);
/** The connection ends: its link leaves when all is sent. */
void link_disconnect(struct velo_conn *conn);

#endif
