/* SPDX-License-Identifier: Apache-2.0 */
#include "ports.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"

struct known {
    struct known *next;
    velo_id_t peer;
    char place[PLACE_BYTES_MAX];
};

static struct port *ports;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- which there are ------------------------------------------------------------------------- */

static void forget_in_child(void)
{
    for (const struct port *port = ports; port; port = port->next)
        port->forget(port);
    ports = NULL;
    (void)pthread_mutex_init(&lock, NULL);
}

static void watch_forks(void) { (void)pthread_atfork(NULL, NULL, forget_in_child); }

void port_add(struct port *port, const struct velo_endpoint_attr *attr,
              void (*forget)(const struct port *port))
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch_forks);
    (void)pthread_mutex_lock(&lock);
    port->attr = attr;
    port->forget = forget;
    port->next = ports;
    ports = port;
    (void)pthread_mutex_unlock(&lock);
}

void port_remove(struct port *port)
{
    (void)pthread_mutex_lock(&lock);
    struct port **at = &ports;
    while (*at && *at != port)
        at = &(*at)->next;
    if (*at)
        *at = port->next;
    while (port->known) {
        struct known *known = port->known;
        port->known = known->next;
        free(known);
    }
    (void)pthread_mutex_unlock(&lock);
}

bool attr_is_beside(const struct velo_endpoint_attr *attr)
{
    return strchr(attr->domain, '+') != NULL;
}

static bool is_beside(const struct port *port, const struct port *other)
{
    size_t len = strcspn(port->attr->domain, "+");
    return port->attr->id == other->attr->id && len == strcspn(other->attr->domain, "+") &&
           strncmp(port->attr->domain, other->attr->domain, len) == 0 &&
           strcmp(port->attr->dir, other->attr->dir) == 0;
}

size_t port_place_beside(const struct port *port, uint64_t domain_hash, void *place)
{
    size_t len_bytes = 0;
    (void)pthread_mutex_lock(&lock);
    for (const struct port *other = ports; other && len_bytes == 0; other = other->next)
        if (is_beside(port, other) && hash_text(other->attr->domain) == domain_hash) {
            len_bytes = other->place_bytes;
            memcpy(place, other->place, len_bytes);
        }
    (void)pthread_mutex_unlock(&lock);
    return len_bytes;
}

/* ---- what they know -------------------------------------------------------------------------- */

static struct known *find_known(const struct port *port, velo_id_t peer)
{
    struct known *known = port->known;
    while (known && known->peer != peer)
        known = known->next;
    return known;
}

bool port_learn(struct port *port, velo_id_t peer, const void *place, size_t place_bytes)
{
    (void)pthread_mutex_lock(&lock);
    struct known *known = find_known(port, peer);
    if (!known && (known = calloc(1, sizeof *known))) {
        known->peer = peer;
        known->next = port->known;
        port->known = known;
    }
    if (known)
        memcpy(known->place, place, place_bytes);
    (void)pthread_mutex_unlock(&lock);
    return known;
}

bool port_recall(const struct port *port, velo_id_t peer, void *place, size_t place_bytes)
{
    const struct known *known = NULL;
    (void)pthread_mutex_lock(&lock);
    for (const struct port *other = ports; other && !known; other = other->next)
        if (is_beside(port, other))
            known = find_known(other, peer);
    if (known)
        memcpy(place, known->place, place_bytes);
    (void)pthread_mutex_unlock(&lock);
    return known;
}
