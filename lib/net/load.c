/* SPDX-License-Identifier: Apache-2.0 */
#include "load.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/error.h"

#define SYMBOL "velo_transport"

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

static int check_transport(const struct velo_transport *transport, const char *name,
                           const char *path)
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
    *status = check_transport(transport, name, path);
    if (*status == VELO_OK && transport->device)
        *status = check_device(plugin, name);
    return *status ? NULL : transport;
}
