/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which context is which port. Somebody has to have said so: a call of velo_peer_name(), the
 * segment of a port of this machine, or the map: a port that is opened where nobody exchanges names
 * has the context that its vpid says, on the node that the map counts it as on. What a peer says of
 * itself counts for nothing unless it agrees.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "card.h"

#define NAME_MAGIC UINT32_C(0x314E4356) /* "VCN1" */

/* What velo_port_name() gives. */
struct name {
    uint32_t magic;
    uint16_t address, generation; /* Of the context. */
};

static struct endpoint *endpoints;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- the ports of this process --------------------------------------------------------------- */

/* The back gives up the child's part of the contexts by itself. */
static void forget_in_child(void)
{
    for (const struct endpoint *endpoint = endpoints; endpoint; endpoint = endpoint->next) {
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

bool names_sibling(const struct endpoint *endpoint, uint64_t domain_hash, uint16_t *address,
                   uint16_t *generation)
{
    (void)pthread_mutex_lock(&lock);
    const struct endpoint *other = endpoints;
    while (other && !(is_beside(endpoint, other) && other->domain_hash == domain_hash))
        other = other->next;
    if (other) {
        *address = other->address;
        *generation = other->generation;
    }
    (void)pthread_mutex_unlock(&lock);
    return other;
}

uint64_t names_hash(const char *domain)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (const char *c = domain; *c; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001B3);
    return hash;
}

/* ---- names ----------------------------------------------------------------------------------- */

size_t names_own(const struct endpoint *endpoint, char *out)
{
    struct name name = {
        .magic = NAME_MAGIC, .address = endpoint->address, .generation = endpoint->generation};
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
    return endpoint->calls->fail(VELO_ERR_ARG, "this is no name of a port with transport card");
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
    struct name name = {0};
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
        known->address = name.address;
        known->context_generation = name.generation;
    }
    (void)pthread_mutex_unlock(&lock);
    return known ? VELO_OK : endpoint->calls->fail(VELO_ERR_NO_MEMORY, "out of memory");
}

/* As velo_peer_name() said to this port, or to the one that it is beside. */
static bool recall(const struct endpoint *endpoint, velo_id_t peer, struct known *out)
{
    const struct known *known = NULL;
    (void)pthread_mutex_lock(&lock);
    for (const struct endpoint *other = endpoints; other && !known; other = other->next)
        if (is_beside(endpoint, other))
            known = find_known(other, peer);
    if (known)
        *out = *known;
    (void)pthread_mutex_unlock(&lock);
    return known;
}

/* Of a port of this machine. VELO_ERR_NO_PEER, _CLOSED, _DEAD: it is none, or none any more. */
static int find_here(const struct endpoint *endpoint, velo_id_t peer, struct name *name,
                     uint32_t *generation)
{
    struct velo_port_shown shown;
    int status = endpoint->calls->find(endpoint->attr.owner, peer, &shown);
    if (status)
        return status;
    *generation = shown.generation;
    return read_name(endpoint, shown.name, shown.name_bytes, name);
}

static uint32_t node_of(const struct endpoint *endpoint, velo_id_t id)
{
    return endpoint->calls->node(endpoint->attr.owner, id);
}

int names_resolve(struct conn *conn)
{
    struct endpoint *endpoint = conn->endpoint;
    velo_id_t peer = conn->peer;
    struct known known = {0};
    struct name name = {0};
    if (recall(endpoint, peer, &known)) {
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
    if (status != VELO_ERR_NO_PEER || node_of(endpoint, peer) == endpoint->attr.node)
        return status;
    conn->address = wire_address(node_of(endpoint, peer), VELO_ID_VPID(peer));
    conn->is_guessed = true;
    return VELO_OK;
}

int names_check(const struct endpoint *endpoint, velo_id_t peer, uint16_t address,
                uint16_t context_generation, bool *is_here)
{
    struct known known = {0};
    struct name name = {0};
    uint32_t generation;
    *is_here = false;
    if (recall(endpoint, peer, &known)) {
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
