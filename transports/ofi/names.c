/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of peers. Nothing is sent to an address that is not from here: the map of nodes, a call
 * of velo_peer_name(), the segment of a port of this machine, or a greeting that proves that its
 * sender has the secret.
 */
#include <dirent.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ofi.h"

#define NAME_MAGIC UINT32_C(0x314E4F56) /* "VON1" */

/* What velo_port_name() gives. */
struct name {
    uint32_t magic;
    uint32_t format; /* Of the fabric's address. */
    char address[WIRE_NAME_BYTES];
};
#define NAME_BYTES(address_bytes) (offsetof(struct name, address) + (address_bytes))

static struct endpoint *endpoints;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- the ports of this process --------------------------------------------------------------- */

/* A child has copies of all sockets: the other ends would not see that its parent is gone. */
static void forget_in_child(void)
{
    for (const struct endpoint *endpoint = endpoints; endpoint; endpoint = endpoint->next) {
        names_forget_sockets(endpoint);
        close(endpoint->epoll);
        close(endpoint->timer);
    }
    endpoints = NULL;
    (void)pthread_mutex_init(&lock, NULL);
}

static void watch_forks(void) { (void)pthread_atfork(NULL, NULL, forget_in_child); }

void names_add(struct endpoint *endpoint)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch_forks);
    (void)pthread_mutex_lock(&lock);
    endpoint->next = endpoints;
    endpoints = endpoint;
    (void)pthread_mutex_unlock(&lock);
}

void names_remove(struct endpoint *endpoint)
{
    (void)pthread_mutex_lock(&lock);
    struct endpoint **at = &endpoints;
    while (*at && *at != endpoint)
        at = &(*at)->next;
    if (*at)
        *at = endpoint->next;
    while (endpoint->known) {
        struct known *known = endpoint->known;
        endpoint->known = known->next;
        free(known);
    }
    (void)pthread_mutex_unlock(&lock);
}

/* The library opens ports beside the user's, with its id, in domains "<domain>+<use>". */
static bool is_beside(const struct endpoint *endpoint, const struct endpoint *other)
{
    size_t len = strcspn(endpoint->attr.domain, "+");
    return endpoint->attr.id == other->attr.id && len == strcspn(other->attr.domain, "+") &&
           strncmp(endpoint->attr.domain, other->attr.domain, len) == 0 &&
           strcmp(endpoint->attr.dir, other->attr.dir) == 0;
}

bool names_sibling(const struct endpoint *endpoint, const char *domain, char *address,
                   uint32_t *len_bytes)
{
    (void)pthread_mutex_lock(&lock);
    const struct endpoint *other = endpoints;
    while (other && !(is_beside(endpoint, other) && strcmp(other->attr.domain, domain) == 0))
        other = other->next;
    if (other) {
        *len_bytes = (uint32_t)other->fabric.name_bytes;
        memcpy(address, other->fabric.name, other->fabric.name_bytes);
    }
    (void)pthread_mutex_unlock(&lock);
    return other;
}

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
        return endpoint->calls->fail(VELO_ERR_ARG, "this is no name of a port with transport ofi");
    memset(name, 0, sizeof *name);
    memcpy(name, text, len_bytes);
    if (name->magic != NAME_MAGIC)
        return endpoint->calls->fail(VELO_ERR_ARG, "this is no name of a port with transport ofi");
    if (name->format != fabric->info->addr_format || len_bytes != NAME_BYTES(fabric->name_bytes))
        return endpoint->calls->fail(VELO_ERR_ARG,
                                     "the peer uses another provider of libfabric than %s; set "
                                     "VELO_OFI_PROVIDER on both sides",
                                     fabric->info->fabric_attr->prov_name);
    return VELO_OK;
}

static struct known *find_known(const struct endpoint *endpoint, velo_id_t peer)
{
    struct known *known = endpoint->known;
    while (known && known->peer != peer)
        known = known->next;
    return known;
}

int names_learn(struct endpoint *endpoint, velo_id_t peer, const void *text, size_t len_bytes)
{
    struct name name;
    int status = read_name(endpoint, text, len_bytes, &name);
    if (status)
        return status;
    (void)pthread_mutex_lock(&lock);
    struct known *known = find_known(endpoint, peer);
    if (!known && (known = calloc(1, sizeof *known))) {
        known->next = endpoint->known;
        endpoint->known = known;
    }
    if (known) {
        known->peer = peer;
        known->len_bytes = (uint32_t)(len_bytes - NAME_BYTES(0));
        memcpy(known->address, name.address, known->len_bytes);
    }
    (void)pthread_mutex_unlock(&lock);
    return known ? VELO_OK : endpoint->calls->fail(VELO_ERR_NO_MEMORY, "out of memory");
}

/* As velo_peer_name() said to this port, or to the one that it is beside. */
static bool recall(const struct endpoint *endpoint, velo_id_t peer, char *address)
{
    const struct known *known = NULL;
    (void)pthread_mutex_lock(&lock);
    for (const struct endpoint *other = endpoints; other && !known; other = other->next)
        if (is_beside(endpoint, other))
            known = find_known(other, peer);
    if (known)
        memcpy(address, known->address, known->len_bytes);
    (void)pthread_mutex_unlock(&lock);
    return known;
}

static int find_here(struct endpoint *endpoint, velo_id_t peer, char *address, uint32_t *generation)
{
    struct velo_port_shown shown;
    struct name name;
    int status = endpoint->calls->find(endpoint->attr.owner, peer, &shown);
    if (status == VELO_ERR_NO_PEER)
        return endpoint->calls->fail(
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
    const char *host = endpoint->calls->host(endpoint->attr.owner, peer, &service);
    int status = VELO_OK;
    *generation = 0;
    if (!host && !recall(endpoint, peer, address))
        status = find_here(endpoint, peer, address, generation);
    if (status)
        return status;
    *out = host ? fabric_insert_host(&endpoint->fabric, host, service)
                : fabric_insert(&endpoint->fabric, address);
    if (*out != FI_ADDR_UNSPEC)
        return VELO_OK;
    return endpoint->calls->fail(VELO_ERR_NO_PEER,
                                 "libfabric's provider %s does not know the host %s of port %u.%u",
                                 endpoint->fabric.info->fabric_attr->prov_name, host ? host : "",
                                 VELO_ID_NODE(peer), VELO_ID_VPID(peer));
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

void names_forget_sockets(const struct endpoint *endpoint)
{
    uint32_t format = endpoint->fabric.info->addr_format;
    DIR *dir = opendir("/proc/self/fd");
    if (!dir)
        return;
    bool is_internet =
        format == FI_SOCKADDR || format == FI_SOCKADDR_IN || format == FI_SOCKADDR_IN6;
    for (const struct dirent *entry = readdir(dir); entry && is_internet; entry = readdir(dir)) {
        int fd = atoi(entry->d_name); // NOLINT: the names are numbers, but for "." and ".."
        if (fd > 2 && fd != dirfd(dir) && is_of(endpoint, fd))
            close(fd);
    }
    closedir(dir);
}
