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

/* The address and the number in the address of an internet socket. */
struct inet {
    char ip[sizeof(struct in6_addr)];
    sa_family_t family; /* 0: it is none. */
    in_port_t number;
};

static struct inet inet_of(const void *address)
{
    static const size_t ip4_bytes = sizeof(struct in_addr), ip6_bytes = sizeof(struct in6_addr);
    struct inet inet = {.family = 0};
    struct sockaddr_storage any; /* A name has no alignment. */
    memcpy(&any, address, sizeof any);
    if (any.ss_family == AF_INET) {
        memcpy(inet.ip, &((const struct sockaddr_in *)&any)->sin_addr, ip4_bytes);
        inet.number = ((const struct sockaddr_in *)&any)->sin_port;
    } else if (any.ss_family == AF_INET6) {
        memcpy(inet.ip, &((const struct sockaddr_in6 *)&any)->sin6_addr, ip6_bytes);
        inet.number = ((const struct sockaddr_in6 *)&any)->sin6_port;
    }
    inet.family = inet.number ? any.ss_family : 0;
    return inet;
}

static bool inet_is_any(const struct inet *inet)
{
    static const char any[sizeof inet->ip];
    return memcmp(inet->ip, any, sizeof any) == 0;
}

/* An address that stands for all of the machine's is the same as each. */
static bool inet_is_same(const struct inet *one, const struct inet *other)
{
    return one->family != 0 && one->family == other->family && one->number == other->number &&
           (inet_is_any(one) || inet_is_any(other) ||
            memcmp(one->ip, other->ip, sizeof one->ip) == 0);
}

_Static_assert(WIRE_NAME_BYTES <= PLACE_BYTES_MAX, "it is kept");
_Static_assert(sizeof(struct sockaddr_storage) <= WIRE_NAME_BYTES, "inet_of() reads no further");

/* Where a socket of the endpoint's kind is bound, and where it leads. False: it is none. */
static bool inet_of_socket(const struct endpoint *endpoint, int fd, struct inet *own,
                           struct inet *other)
{
    const char *provider = endpoint->fabric.info->fabric_attr->prov_name;
    int type = 0, wanted = strncmp(provider, "udp", 3) == 0 ? SOCK_DGRAM : SOCK_STREAM;
    struct sockaddr_storage address = {0};
    socklen_t type_bytes = sizeof type, len = sizeof address;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_bytes) != 0 || type != wanted ||
        getsockname(fd, (struct sockaddr *)&address, &len) != 0)
        return false;
    *own = inet_of(&address);
    len = sizeof address;
    *other = getpeername(fd, (struct sockaddr *)&address, &len) == 0 ? inet_of(&address)
                                                                     : (struct inet){.family = 0};
    return own->family != 0;
}

/* Does a socket lead from this endpoint, or to a peer of it? No other socket of the process does.
 */
static bool is_of(const struct endpoint *endpoint, const struct inet *listens, int fd)
{
    struct inet own, other;
    if (!inet_of_socket(endpoint, fd, &own, &other))
        return false;
    if (inet_is_same(&own, listens))
        return true;
    for (uint32_t i = 0; i < endpoint->conns_len; i++) {
        char address[WIRE_NAME_BYTES] = {0};
        size_t name_bytes = sizeof address;
        const struct conn *conn = endpoint->conns[i];
        if (!conn || conn->is_self ||
            fi_av_lookup(endpoint->fabric.av, conn->address, address, &name_bytes) != 0)
            continue;
        struct inet peer = inet_of(address);
        if (inet_is_same(&other, &peer))
            return true;
    }
    return false;
}

/* The next descriptor of a folder of them; -1: there is none. */
static int next_file(DIR *dir, int folder)
{
    for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        int fd = atoi(entry->d_name); // NOLINT: the names are numbers, but for "." and ".."
        if (fd > FD_STANDARD_MAX && fd != folder)
            return fd;
    }
    return -1;
}

/* Where the endpoint listens. Its name has one address of this machine; if it listens at all of
 * them, those that it accepted may have another one. */
static struct inet find_listener(const struct endpoint *endpoint, DIR *dir, int folder)
{
    struct inet name = inet_of(endpoint->fabric.name), own, other;
    for (int fd = next_file(dir, folder); fd >= 0; fd = next_file(dir, folder))
        if (inet_of_socket(endpoint, fd, &own, &other) && other.family == 0 &&
            inet_is_same(&own, &name) && inet_is_any(&own))
            return own;
    return name;
}

void names_forget_sockets(const struct endpoint_base *base)
{
    const struct endpoint *endpoint = (const struct endpoint *)base;
    uint32_t format = endpoint->fabric.info->addr_format;
    if (format != FI_SOCKADDR && format != FI_SOCKADDR_IN && format != FI_SOCKADDR_IN6)
        return;
    int folder =
        fd_above_standard(open("/proc/thread-self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    DIR *dir = folder >= 0 ? fdopendir(folder) : NULL;
    if (!dir) {
        if (folder >= 0)
            close(folder);
        return;
    }
    struct inet listens = find_listener(endpoint, dir, folder);
    rewinddir(dir);
    for (int fd = next_file(dir, folder); fd >= 0; fd = next_file(dir, folder))
        if (is_of(endpoint, &listens, fd))
            close(fd);
    closedir(dir);
}
