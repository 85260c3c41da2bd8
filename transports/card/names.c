/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which context is which port. Somebody has to have said so: a call of velo_peer_name(), the
 * segment of a port of this machine, or the map: a port that is opened where nobody exchanges names
 * has the context that its vpid says, on the node that the map counts it as on. What a peer says of
 * itself counts for nothing unless it agrees.
 */
#include <string.h>

#include "card.h"

#define NAME_MAGIC UINT32_C(0x314E4356) /* "VCN1" */

/* What velo_port_name() gives. */
struct name {
    uint32_t magic;
    uint16_t address, generation; /* Of the context. */
};

size_t names_own(const struct endpoint *endpoint, char *out)
{
    struct name name = {.magic = NAME_MAGIC,
                        .address = endpoint->place.address,
                        .generation = endpoint->place.context_generation};
    memcpy(out, &name, sizeof name);
    return sizeof name;
}

static int read_name(const struct endpoint *endpoint, const void *text, size_t len_bytes,
                     struct name *name)
{
    if (len_bytes == sizeof *name) {
        memcpy(name, text, sizeof *name);
        if (name->magic == NAME_MAGIC && name->generation != 0)
            return VELO_OK;
    }
    return endpoint->base.calls->fail(VELO_ERR_ARG,
                                      "this is no name of a port with transport card");
}

int names_learn(struct endpoint *endpoint, velo_id_t peer, const void *text, size_t len_bytes)
{
    struct name name = {0};
    int status = read_name(endpoint, text, len_bytes, &name);
    const struct place place = {.address = name.address, .context_generation = name.generation};
    return status ? status : endpoint_learn(&endpoint->base, peer, &place, sizeof place);
}

/* As velo_peer_name() said to this port, or to the one that it is beside. */
static bool recall_place(const struct endpoint *endpoint, velo_id_t peer, struct place *place)
{
    return port_recall(&endpoint->base.port, peer, place, sizeof *place);
}

/* Of a port of this machine. VELO_ERR_NO_PEER, _CLOSED, _DEAD: it is none, or none any more. */
static int find_here(const struct endpoint *endpoint, velo_id_t peer, struct name *name,
                     uint32_t *generation)
{
    struct velo_port_shown shown;
    int status = endpoint->base.calls->find_name(endpoint->base.attr.owner, peer, &shown);
    if (status)
        return status;
    *generation = shown.generation;
    return read_name(endpoint, shown.name, shown.name_bytes, name);
}

static uint32_t node_of(const struct endpoint *endpoint, velo_id_t id)
{
    return endpoint->base.calls->node_of(endpoint->base.attr.owner, id);
}

int names_resolve(struct conn *conn)
{
    struct endpoint *endpoint = conn->endpoint;
    velo_id_t peer = conn->circuits.peer;
    struct place known = {0};
    struct name name = {0};
    if (recall_place(endpoint, peer, &known)) {
        conn->address = known.address;
        /* Beside the port that has this name is the one that is wanted: it says where. */
        conn->context_generation = known.context_generation;
        return VELO_OK;
    }
    int status = find_here(endpoint, peer, &name, &conn->generation);
    conn->is_here = status == VELO_OK;
    if (status == VELO_OK) {
        conn->address = name.address;
        conn->context_generation = name.generation;
        return VELO_OK;
    }
    /* The ports of the own node are here, and so is one that has been seen. */
    if (status != VELO_ERR_NO_PEER || node_of(endpoint, peer) == endpoint->base.attr.node)
        return status;
    conn->address = wire_address(node_of(endpoint, peer), VELO_ID_VPID(peer));
    conn->is_guessed = true;
    return VELO_OK;
}

int names_check(const struct endpoint *endpoint, velo_id_t peer, uint16_t address,
                uint16_t context_generation, bool *is_here)
{
    struct place known = {0};
    struct name name = {0};
    uint32_t generation;
    *is_here = false;
    if (recall_place(endpoint, peer, &known)) {
        bool is_it = endpoint->is_beside ? wire_node(known.address) == wire_node(address)
                                         : known.address == address &&
                                               known.context_generation == context_generation;
        return is_it ? VELO_OK : VELO_ERR_ACCESS;
    }
    if (find_here(endpoint, peer, &name, &generation) == VELO_OK) {
        *is_here = name.address == address && name.generation == context_generation;
        return *is_here ? VELO_OK : VELO_ERR_ACCESS;
    }
    bool is_its_context = endpoint->is_beside || wire_context(address) == VELO_ID_VPID(peer);
    return wire_node(address) == node_of(endpoint, peer) && is_its_context ? VELO_OK
                                                                           : VELO_ERR_NO_PEER;
}
