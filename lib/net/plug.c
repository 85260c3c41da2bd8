/* SPDX-License-Identifier: Apache-2.0 */
/* A port's network: what its map of nodes names is loaded, and plugged into the core. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "../base/error.h"
#include "carrier.h"
#include "plug.h"

#define SYMBOL "velo_transport"

/* ---- loading --------------------------------------------------------------------------------- */

/* The folder of plug-ins: $VELO_TRANSPORT_PATH, else `velo` beside this library, or beside the
 * program if the library is part of it. */
static void plugin_dir(char *dir, size_t dir_bytes)
{
    static const char anchor;
    Dl_info info;
    const char *set = getenv("VELO_TRANSPORT_PATH");
    if (set && *set) {
        (void)snprintf(dir, dir_bytes, "%s", set);
        return;
    }
    bool is_known = dladdr(&anchor, &info) != 0 && info.dli_fname;
    const char *slash = is_known ? strrchr(info.dli_fname, '/') : NULL;
    int len = slash ? (int)(slash - info.dli_fname) : 1;
    (void)snprintf(dir, dir_bytes, "%.*s/velo", len, slash ? info.dli_fname : ".");
}

static int check(const struct velo_transport *transport, const char *name, const char *path)
{
    if (!transport)
        return velo_fail(VELO_ERR_ARG, "%s is no transport: it has no symbol " SYMBOL, path);
    if (transport->version != VELO_TRANSPORT_VERSION)
        return velo_fail(VELO_ERR_VERSION,
                         "%s is made for version %u of transports, this library has version %u; "
                         "build both from the same release",
                         path, transport->version, VELO_TRANSPORT_VERSION);
    bool is_sized = transport->payload_bytes_max >= VELO_FRAME_BYTES_MIN &&
                    transport->payload_bytes_max <= VELO_FRAME_BYTES_MAX;
    if (strcmp(transport->name, name) != 0 || (!transport->device && !is_sized))
        return velo_fail(VELO_ERR_ARG, "%s says of itself what no transport '%s' may say", path,
                         name);
    return VELO_OK;
}

/* A device works on this library's structures and calls its functions. It must not use those of
 * another copy. */
static int check_device(void *plugin, const char *name)
{
    return dlsym(plugin, "velo_fail") == (void *)(uintptr_t)velo_fail
               ? VELO_OK
               : velo_fail(VELO_ERR_STATE,
                           "transport '%s' needs the library as libvelo.so, and this program has "
                           "it linked in (libvelo.a)",
                           name);
}

const struct velo_transport *transport_load(const char *name, int *status)
{
    char path[PATH_MAX];
    char dir[PATH_MAX - 64];
    plugin_dir(dir, sizeof dir);
    (void)snprintf(path, sizeof path, "%s/libvelo-%s.so", dir, name);
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!plugin) {
        *status = velo_fail(VELO_ERR_ARG,
                            "VELO_NETWORK names the transport '%s', which cannot be loaded: %s",
                            name, dlerror());
        return NULL;
    }
    const struct velo_transport *transport = dlsym(plugin, SYMBOL);
    *status = check(transport, name, path);
    if (*status == VELO_OK && transport->device)
        *status = check_device(plugin, name);
    return *status ? NULL : transport;
}

/* ---- the plug -------------------------------------------------------------------------------- */

/* Find out which table the core calls: that of the carriers, or that of a device. */
static int find_calls(struct velo_port *port)
{
    const struct network *network = port->network;
    int status = VELO_OK;
    for (uint32_t i = 1; i < network->names_len && status == VELO_OK; i++) {
        const struct velo_transport *transport = transport_load(network->names[i], &status);
        if (transport && (transport->device || !port->net))
            port->net = transport->device ? transport->device : &carriers_calls;
    }
    if (status == VELO_OK && port_net_carries_all(port) && !network_is_uniform(network))
        status = velo_fail(VELO_ERR_ARG,
                           "VELO_NETWORK names a transport with a device, which has to reach all "
                           "peers of a port, also those on its own node: give NAME,own=NAME");
    return status;
}

/* A program that was started on the simulated cluster must not run beside it unnoticed. */
static int check_place(const struct velo_port *port)
{
    int status = VELO_OK;
    bool leads_there = port_net_carries_all(port) || !getenv("VELO_SIM");
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
