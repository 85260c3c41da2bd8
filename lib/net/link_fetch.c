/* SPDX-License-Identifier: Apache-2.0 */
#include "link_fetch.h"

#include "../base/error.h"
#include "link.h"

struct velo_exposed *link_expose(struct velo_conn *conn, const void *memory, size_t len_bytes)
{
    struct velo_link *link = link_of(conn);
    const struct velo_transport *transport = link->carrier->transport;
    struct velo_exposed *exposed = NULL;
    if (!transport->expose)
        return NULL;
    pthread_mutex_lock(&link->carrier->lock);
    if (link->circuit)
        exposed = transport->expose(link->circuit, memory, len_bytes);
    pthread_mutex_unlock(&link->carrier->lock);
    return exposed;
}

void link_conceal(struct velo_port *port, velo_id_t peer, struct velo_exposed *exposed)
{
    struct carrier *carrier = carrier_to(port, peer);
    pthread_mutex_lock(&carrier->lock);
    carrier->transport->conceal(carrier->endpoint, exposed);
    pthread_mutex_unlock(&carrier->lock);
}

int link_fetch(struct velo_conn *conn, void *to, size_t len_bytes, const struct velo_exposed *from,
               int *outcome)
{
    struct velo_link *link = link_of(conn);
    const struct velo_transport *transport = link->carrier->transport;
    int status = VELO_ERR_PEER_DEAD;
    if (!transport->fetch)
        return velo_fail(VELO_ERR_STATE, "transport %s cannot fetch", transport->name);
    pthread_mutex_lock(&link->carrier->lock);
    if (link->circuit)
        status = transport->fetch(link->circuit, to, len_bytes, from, outcome);
    pthread_mutex_unlock(&link->carrier->lock);
    return status;
}

void link_forget(struct velo_port *port, velo_id_t peer, const int *outcome)
{
    struct carrier *carrier = carrier_to(port, peer);
    pthread_mutex_lock(&carrier->lock);
    carrier->transport->forget(carrier->endpoint, outcome);
    pthread_mutex_unlock(&carrier->lock);
}
