/* SPDX-License-Identifier: Apache-2.0 */
/* A port's network: what its map of nodes names is loaded, and plugged into the core. */
#include <stdlib.h>

#include "../base/error.h"
#include "../core/port.h"
#include "carriers.h"
#include "load.h"
#include "network.h"

/* Find out which table the core calls: that of the carriers, or that of a device. */
static int find_calls(struct velo_port *port)
{
    const struct network *network = port->network;
    int status = VELO_OK;
    for (uint32_t i = 1; i < network->names_len && status == VELO_OK; i++) {
        const struct velo_transport *transport = transport_load(network->names[i], &status);
        if (transport && (transport->device || !port->has_net))
            port_set_net(port, transport->device ? transport->device : &carriers_calls);
    }
    if (status == VELO_OK && port->net->carries_all && !network_is_uniform(network))
        status = velo_fail(VELO_ERR_ARG,
                           "VELO_NETWORK names a transport with a device, which has to reach all "
                           "peers of a port, also those on its own node: give NAME,own=NAME");
    return status;
}

/* A program that was started on the simulated cluster must not run beside it unnoticed. */
static int check_place(const struct velo_port *port)
{
    int status = VELO_OK;
    bool leads_there = port->net->carries_all || !getenv("VELO_SIM");
    for (uint32_t i = 1; i < port->network->names_len && !leads_there && status == VELO_OK; i++) {
        const struct velo_transport *transport = transport_load(port->network->names[i], &status);
        leads_there = transport && transport->uses_node;
    }
    return status || leads_there
               ? status
               : velo_fail(VELO_ERR_STATE, "VELO_SIM names a simulated cluster, but VELO_NETWORK "
                                           "does not lead there; see `velo sim`");
}

static int attach(struct velo_port *port, const struct velo_port *beside)
{
    port->network = malloc(sizeof *port->network);
    if (!port->network)
        return velo_fail(VELO_ERR_NO_MEMORY, "out of memory");
    int status = VELO_OK;
    if (beside)
        *port->network = *beside->network;
    else
        status = network_init(port->network);
    if (status == VELO_OK)
        status = find_calls(port);
    return status ? status : check_place(port);
}

static void detach(struct velo_port *port) { free(port->network); }

int velo_port_open(const struct velo_port_attr *attr, struct velo_port **out)
{
    static const struct net_plug plug = {.attach = attach, .detach = detach};
    return port_open_plugged(attr, &plug, out);
}
