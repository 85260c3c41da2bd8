/* SPDX-License-Identifier: Apache-2.0 */
#include "domain.h"

#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/error.h"

static int domain_set_name(struct seg_domain *domain, const char *name)
{
    const char *preset = getenv("VELO_DOMAIN");
    if (!name && preset && *preset)
        name = preset;
    if (!name) {
        (void)snprintf(domain->name, sizeof domain->name, "u%u", (unsigned)geteuid());
        return VELO_OK;
    }
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    size_t len = strnlen(name, VELO_DOMAIN_NAME_MAX + 1);
    if (len == 0 || len > VELO_DOMAIN_NAME_MAX || strspn(name, allowed) != len)
        return velo_fail(VELO_ERR_ARG,
                         "the domain '%.80s' is no name; give 1 to %u of A-Z a-z 0-9 _ -", name,
                         VELO_DOMAIN_NAME_MAX);
    memcpy(domain->name, name, len + 1);
    return VELO_OK;
}

static int domain_set_group(struct seg_domain *domain, const char *group)
{
    if (!group)
        return VELO_OK;
    char buffer[4096];
    struct group entry;
    struct group *found = NULL;
    int error = getgrnam_r(group, &entry, buffer, sizeof buffer, &found);
    if (!found)
        return velo_fail(VELO_ERR_ARG, "there is no group '%s'%s%s", group, error ? ": " : "",
                         error ? strerror(error) : "");
    domain->shared = true;
    domain->gid = found->gr_gid;
    return VELO_OK;
}

int domain_init(struct seg_domain *domain, const char *name, const char *group)
{
    const char *dir = getenv("VELO_SHM_DIR");
    if (!dir || !*dir)
        dir = "/dev/shm";
    if (strlen(dir) >= sizeof domain->dir)
        return velo_fail(VELO_ERR_ARG,
                         "VELO_SHM_DIR has %zu bytes, and may have at most %u: ports have sockets "
                         "in that directory, whose names are short; give it a shorter path",
                         strlen(dir), SEG_DIR_MAX);
    memcpy(domain->dir, dir, strlen(dir) + 1);
    int status = domain_set_name(domain, name);
    return status ? status : domain_set_group(domain, group);
}
