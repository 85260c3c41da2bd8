/* SPDX-License-Identifier: Apache-2.0 */
#include "choice.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/error.h"
#include "native.h"
#include "slot.h"
#include "slot_io.h"

#define SYMBOL "velo_dimmnet_io"
#define WHY_BYTES 512

const struct dimmnet_io *dimmnet_io;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct dimmnet_engine *chosen;
static char why[WHY_BYTES];

/* The folder `velo` beside this library. */
static void plugin_path(char *path, size_t path_bytes, const char *name)
{
    static const char anchor;
    Dl_info info;
    bool is_known = dladdr(&anchor, &info) != 0 && info.dli_fname;
    const char *slash = is_known ? strrchr(info.dli_fname, '/') : NULL;
    int len = slash ? (int)(slash - info.dli_fname) : 1;
    (void)snprintf(path, path_bytes, "%.*s/velo/libvelo-dimmnet-%s.so", len,
                   slash ? info.dli_fname : ".", name);
}

static void choose_engine(void)
{
    char path[PATH_MAX];
    const char *name = getenv("VELO_DIMMNET");
    if (!name || !*name || strcmp(name, dimmnet_native.name) == 0) {
        chosen = &dimmnet_native;
        return;
    }
    plugin_path(path, sizeof path, name);
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct dimmnet_io *const *io = plugin ? dlsym(plugin, SYMBOL) : NULL;
    if (!io) {
        (void)snprintf(why, sizeof why,
                       "VELO_DIMMNET names the boards '%s', which cannot be "
                       "reached: %s",
                       name, plugin ? "the plug-in has no " SYMBOL : dlerror());
        return;
    }
    if ((*io)->version != DIMMNET_IO_VERSION) {
        (void)snprintf(why, sizeof why,
                       "the boards '%s' are of version %u, this library is of %u; build both from "
                       "the same release",
                       name, (*io)->version, DIMMNET_IO_VERSION);
        return;
    }
    dimmnet_io = *io;
    chosen = &dimmnet_in_slots;
}

const struct dimmnet_engine *dimmnet_engine(void)
{
    (void)pthread_once(&once, choose_engine);
    if (!chosen)
        (void)velo_fail(VELO_ERR_ARG, "%s", why);
    return chosen;
}
