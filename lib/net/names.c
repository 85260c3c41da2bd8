/* SPDX-License-Identifier: Apache-2.0 */
#include "names.h"

#include "../base/error.h"

static bool has_carriers(const struct velo_port *port)
{
    return port->has_net && !port->net->carries_all;
}

/* The port's own name, by the first of its transports that gives one. */
static size_t name_of(const struct velo_port *port, char *name)
{
    size_t len_bytes = 0;
    struct carrier *carrier = has_carriers(port) ? carriers_of(port)->first : NULL;
    for (; carrier && len_bytes == 0; carrier = carrier->next) {
        pthread_mutex_lock(&carrier->lock);
        if (carrier->transport->own_name)
            len_bytes = carrier->transport->own_name(carrier->endpoint, name);
        pthread_mutex_unlock(&carrier->lock);
    }
    return len_bytes;
}

void names_show(const struct velo_port *port)
{
    struct seg_header *header = port->segment->header;
    size_t len_bytes = name_of(port, header->name);
    order_publish_entry(&header->name_bytes, len_bytes);
}

int names_find(const struct velo_port *port, velo_id_t peer, struct velo_port_shown *shown)
{
    struct segment *segment;
    int status = seg_open(&port->domain, peer, &segment);
    if (status)
        return status;
    uint64_t len_bytes = order_read_entry(&segment->header->name_bytes);
    if (len_bytes == 0 || len_bytes > sizeof shown->name) {
        status = velo_fail(VELO_ERR_NO_PEER, "the peer's port is not, or not yet, on a network");
    } else {
        shown->generation = segment->generation;
        shown->name_bytes = (uint32_t)len_bytes;
        memcpy(shown->name, segment->header->name, len_bytes);
    }
    seg_file_drop(segment);
    seg_put(segment);
    return status;
}

int velo_port_name(const struct velo_port *port, void *name, size_t *len_bytes)
{
    char ours[VELO_PORT_NAME_BYTES_MAX];
    if (!port || !name || !len_bytes)
        return velo_fail(VELO_ERR_ARG, "port, name or len_bytes is NULL");
    size_t needed = name_of(port, ours);
    if (needed > *len_bytes)
        return velo_fail(VELO_ERR_TOO_BIG, "the name has %zu bytes, there is room for %zu", needed,
                         *len_bytes);
    memcpy(name, ours, needed);
    *len_bytes = needed;
    return VELO_OK;
}

int velo_peer_name(struct velo_port *port, velo_id_t peer, const void *name, size_t len_bytes)
{
    if (!port || !name)
        return velo_fail(VELO_ERR_ARG, "port or name is NULL");
    if (VELO_ID_NODE(peer) >= VELO_NODES || len_bytes > VELO_PORT_NAME_BYTES_MAX)
        return velo_fail(VELO_ERR_ARG, "peer %#x is no id, or the name is longer than %u bytes",
                         peer, VELO_PORT_NAME_BYTES_MAX);
    struct carrier *carrier = port_net_reaches(port, peer) ? carrier_to(port, peer) : NULL;
    if (!carrier || !carrier->transport->learn || len_bytes == 0)
        return VELO_OK;
    pthread_mutex_lock(&carrier->lock);
    int status = carrier->transport->learn(carrier->endpoint, peer, name, len_bytes);
    pthread_mutex_unlock(&carrier->lock);
    return status;
}
