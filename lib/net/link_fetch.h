/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file link_fetch.h
 * @brief Memory that the peers of links fetch. As the calls of a transport (transport.h).
 */
#ifndef VELO_NET_LINK_FETCH_H
#define VELO_NET_LINK_FETCH_H

#include "../core/net.h"

struct velo_exposed *link_expose(struct velo_conn *conn, const void *memory, size_t len_bytes);
void link_conceal(struct velo_port *port, velo_id_t peer, struct velo_exposed *exposed);
int link_fetch(struct velo_conn *conn, void *to, size_t len_bytes, const struct velo_exposed *from,
               int *outcome);
void link_forget(struct velo_port *port, velo_id_t peer, const int *outcome);

#endif
