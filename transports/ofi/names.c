/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of peers. Nothing is sent to an address that is not from here: the map of nodes, a call
 * of velo_peer_name(), the segment of a port of this machine, or a greeting that proves that its
 * sender has the secret.
 */
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../lib/base/fd.h"
#include "ofi.h"

#define NAME_MAGIC UINT32_C(0x314E4F56) /* "VON1" */

/* What velo_port_name() gives. */
struct name {
    uint32_t magic;
    uint32_t format; /* Of the fabric's address. */
    char address[WIRE_NAME_BYTES];
};
#define NAME_BYTES(address_bytes) (offsetof(struct name, address) + (address_bytes))

/* ---- names ----------------------------------------------------------------------------------- */

size_t names_own(const struct endpoint *endpoint, char *out)
{
    struct name name = {.magic = NAME_MAGIC, .format = endpoint->fabric.info->addr_format};
    memcpy(name.address, endpoint->fabric.name, endpoint->fabric.name_bytes);
    memcpy(out, &name, NAME_BYTES(endpoint->fabric.name_bytes));
    return NAME_BYTES(endpoint->fabric.name_bytes);
}

/* Addresses of one format have one length. */
static int read_name(const struct endpoint *endpoint, const void *text, size_t len_bytes,
                     struct name *name)
{
    const struct fabric *fabric = &endpoint->fabric;
    if (len_bytes > sizeof *name || len_bytes < NAME_BYTES(1))
        return endpoint->base.calls->fail(VELO_ERR_ARG,
                                          "this is no name of a port with transport ofi");
    memset(name, 0, sizeof *name);
    memcpy(name, text, len_bytes);
    if (name->magic != NAME_MAGIC)
        return endpoint->base.calls->fail(VELO_ERR_ARG,
                                          "this is no name of a port with transport ofi");
    if (name->format != fabric->info->addr_format || len_bytes != NAME_BYTES(fabric->name_bytes))
        return endpoint->base.calls->fail(
            VELO_ERR_ARG,
            "the peer uses another provider of libfabric than %s; set "
            "VELO_OFI_PROVIDER on both sides",
            fabric->info->fabric_attr->prov_name);
    return VELO_OK;
}

int names_learn(struct endpoint *endpoint, velo_id_t peer, const void *text, size_t len_bytes)
{
    struct name name;
    int status = read_name(endpoint, text, len_bytes, &name);
    return status
               ? status
               : endpoint_learn(&endpoint->base, peer, name.address, endpoint->fabric.name_bytes);
}

static int find_here(struct endpoint *endpoint, velo_id_t peer, char *address, uint32_t *generation)
{
    struct velo_port_shown shown;
    struct name name;
    int status = endpoint->base.calls->find_name(endpoint->base.attr.owner, peer, &shown);
    if (status == VELO_ERR_NO_PEER)
        return endpoint->base.calls->fail(
            VELO_ERR_NO_PEER,
            "nobody has said where port %u.%u is, and this machine has none: name its host under "
            "[hosts] in the map of nodes, or call velo_peer_name()",
            VELO_ID_NODE(peer), VELO_ID_VPID(peer));
    if (status == VELO_OK)
        status = read_name(endpoint, shown.name, shown.name_bytes, &name);
    if (status)
        return status;
    *generation = shown.generation;
    memcpy(address, name.address, shown.name_bytes - NAME_BYTES(0));
    return VELO_OK;
}

int names_resolve(struct endpoint *endpoint, velo_id_t peer, fi_addr_t *out, uint32_t *generation)
{
    char address[WIRE_NAME_BYTES];
    uint32_t service;
    const char *host = endpoint->base.calls->host_of(endpoint->base.attr.owner, peer, &service);
    int status = VELO_OK;
    *generation = 0;
    if (!host && !port_recall(&endpoint->base.port, peer, address, endpoint->fabric.name_bytes))
        status = find_here(endpoint, peer, address, generation);
    if (status)
        return status;
    *out = host ? fabric_insert_host(&endpoint->fabric, host, service)
                : fabric_insert(&endpoint->fabric, address);
    if (*out != FI_ADDR_UNSPEC)
        return VELO_OK;
    return endpoint->base.calls->fail(
        VELO_ERR_NO_PEER, "libfabric's provider %s does not know the host %s of port %u.%u",
        endpoint->fabric.info->fabric_attr->prov_name, host ? host : "", VELO_ID_NODE(peer),
        VELO_ID_VPID(peer));
}

/* ---- forks ----------------------------------------------------------------------------------- */

/* The number in the address of an internet socket; 0: it is none. */
static in_port_t port_of(const void *address)
{
    struct sockaddr_storage any; /* A name has no alignment. */
    memcpy(&any, address, sizeof any);
    if (any.ss_family == AF_INET)
        return ((const struct sockaddr_in *)&any)->sin_port;
    return any.ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)&any)->sin6_port : 0;
}

_Static_assert(WIRE_NAME_BYTES <= PLACE_BYTES_MAX, "it is kept");
_Static_assert(sizeof(struct sockaddr_storage) <= WIRE_NAME_BYTES, "port_of() reads no further");

/* Does a socket lead from this endpoint, or to a peer of it? No other socket of the process does.
 */
static bool is_of(const struct endpoint *endpoint, int fd)
{
    struct sockaddr_storage own = {0}, peer = {0};
    socklen_t len = sizeof own;
    if (getsockname(fd, (struct sockaddr *)&own, &len) != 0 || port_of(&own) == 0)
        return false;
    if (port_of(&own) == port_of(endpoint->fabric.name))
        return true;
    len = sizeof peer;
    if (getpeername(fd, (struct sockaddr *)&peer, &len) != 0)
        return false;
    for (uint32_t i = 0; i < endpoint->conns_len; i++) {
        char address[WIRE_NAME_BYTES] = {0};
        size_t name_bytes = sizeof address;
        const struct conn *conn = endpoint->conns[i];
        if (conn && !conn->is_self &&
            fi_av_lookup(endpoint->fabric.av, conn->address, address, &name_bytes) == 0 &&
            port_of(address) == port_of(&peer))
            return true;
    }
    return false;
}

void names_forget_sockets(const struct endpoint_base *base)
{
    const struct endpoint *endpoint = (const struct endpoint *)base;
    uint32_t format = endpoint->fabric.info->addr_format;
    int folder =
        fd_above_standard(open("/proc/thread-self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    DIR *dir = folder >= 0 ? fdopendir(folder) : NULL;
    if (!dir) {
        if (folder >= 0)
            close(folder);
        return;
    }
    bool is_internet =
        format == FI_SOCKADDR || format == FI_SOCKADDR_IN || format == FI_SOCKADDR_IN6;
    for (const struct dirent *entry = readdir(dir); entry && is_internet; entry = readdir(dir)) {
        int fd = atoi(entry->d_name); // NOLINT: the names are numbers, but for "." and ".."
        if (fd > 2 && fd != folder && is_of(endpoint, fd))
            close(fd);
    }
    closedir(dir);
}
