/* SPDX-License-Identifier: Apache-2.0 */
/* The entry point. The provider is linked with no libfabric: several copies may be in a process
 * (MPI libraries bring their own), and what is asked of libfabric must be asked of the copy that
 * loaded us. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "fabric.h"
#include "provider.h"

static struct {
    uint32_t (*version)(void);
    int (*param_define)(const struct fi_provider *provider, const char *name,
                        enum fi_param_type type, const char *help, ...);
    int (*log_enabled)(const struct fi_provider *provider, enum fi_log_level level,
                       enum fi_log_subsys subsystem);
    void (*log)(const struct fi_provider *provider, enum fi_log_level level,
                enum fi_log_subsys subsystem, const char *function, int line, const char *format,
                ...);
} fabric;

static void cleanup(void) {}

struct fi_provider vf_provider = {
    .version = VF_VERSION,
    .name = VF_NAME,
    .getinfo = vf_getinfo,
    .fabric = vf_fabric_open,
    .cleanup = cleanup,
};

void vf_log(const char *format, ...)
{
    char text[512];
    va_list args;
    if (!fabric.log || !fabric.log_enabled ||
        !fabric.log_enabled(&vf_provider, FI_LOG_WARN, FI_LOG_CORE))
        return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fabric.log(&vf_provider, FI_LOG_WARN, FI_LOG_CORE, VF_NAME, 0, "%s\n", text);
}

const char *vf_param(const char *name)
{
    char variable[64];
    (void)snprintf(variable, sizeof variable, "FI_VELO_%s", name);
    const char *value = getenv(variable);
    return value && *value ? value : NULL;
}

static void find_fabric(const void *caller)
{
    Dl_info where;
    if (!dladdr(caller, &where) || !where.dli_fname)
        return;
    void *library = dlopen(where.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    if (!library)
        library = dlopen(NULL, RTLD_NOW);
    if (!library)
        return;
    *(void **)&fabric.version = dlsym(library, "fi_version");
    *(void **)&fabric.param_define = dlsym(library, "fi_param_define");
    *(void **)&fabric.log_enabled = dlsym(library, "fi_log_enabled");
    *(void **)&fabric.log = dlsym(library, "fi_log");
    (void)dlclose(library);
}

/* As `fi_info -e` shows them. */
static void define_params(void)
{
    if (!fabric.param_define)
        return;
    (void)fabric.param_define(&vf_provider, "domain", FI_PARAM_STRING,
                              "Name of the velo domain, whose ports see each other (default: "
                              "$VELO_DOMAIN, else u and the user's number)");
    (void)fabric.param_define(&vf_provider, "node", FI_PARAM_INT,
                              "First node number that endpoints try to open on, 0 to 255 (default: "
                              "0)");
}

__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void);

struct fi_provider *fi_prov_ini(void)
{
    find_fabric(__builtin_return_address(0));
    /* libfabric passes a provider over that is older than the application. What we use of its
     * interface has not changed since the version that we are built against. */
    vf_provider.fi_version = fabric.version ? fabric.version() : FI_VERSION(1, 17);
    define_params();
    return &vf_provider;
}
