/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file ports.h
 * @brief The ports of this process that have a transport, and what velo_peer_name() has said to
 * them.
 *
 * The library opens ports beside the user's, with its id, in domains "<domain>+<use>". A name that
 * velo_peer_name() gives to one of them holds for all. Any thread may call these functions.
 */
#ifndef VELO_TRANSPORT_PORTS_H
#define VELO_TRANSPORT_PORTS_H

#include "../../lib/net/transport.h"

/** Most bytes of the place of a port. */
#define PLACE_BYTES_MAX 256u

struct known;

/** A port among those of the process; a part of a transport's endpoint. */
struct port {
    struct port *next;
    const struct velo_endpoint_attr *attr;
    const void *place; /* Where it is, as the transport has it. */
    size_t place_bytes;
    void (*forget)(const struct port *port);
    struct known *known;
};

/** Add a port. In the child of a fork `forget` is called with each port, which is none of the
 *  child's: the other ends would not see that the parent is gone if it kept the descriptors. */
void port_add(struct port *port, const struct velo_endpoint_attr *attr,
              void (*forget)(const struct port *port));
void port_remove(struct port *port);
/** Is a port one that the library has opened beside the user's? */
bool attr_is_beside(const struct velo_endpoint_attr *attr);
/** The place of the port of the same id and domain, but for its suffix, whose domain has this hash.
 * Its length; 0: there is none. */
size_t port_place_beside(const struct port *port, uint64_t domain_hash, void *place);
/** Keep the place of a peer, as velo_peer_name() gave it to a port. False: out of memory. */
bool port_learn(struct port *port, velo_id_t peer, const void *place, size_t place_bytes);
/** The place of a peer, as velo_peer_name() gave it to this port or to one beside it. False: it
 * gave none. */
bool port_recall(const struct port *port, velo_id_t peer, void *place, size_t place_bytes);

#endif
