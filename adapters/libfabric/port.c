/* SPDX-License-Identifier: Apache-2.0 */
/* Ports with their RMA units; and that nothing of them stays in shared memory. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../../lib/base/fd.h"
#include "../linger.h"
#include "fabric.h"
#include "provider.h"

#define NODES 256
#define VPIDS 256

/** An open port. */
struct entry {
    struct entry *next;
    struct vf_domain *domain;
    struct velo_port *port;
    struct velo_rma *rma;
    pid_t pid; /* A child has the list, but not the ports. */
};

static pthread_mutex_t entries_lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *entries;

static int first_node(void)
{
    const char *text = vf_param("NODE");
    long node = text ? strtol(text, NULL, 10) : 0;
    return node >= 0 && node < NODES ? (int)node : 0;
}

static int open_at(const char *domain, uint32_t peers, int node, int vpid, struct velo_port **port,
                   struct velo_rma **rma)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    attr.domain = domain;
    attr.data_bytes = velo_mq_ring_bytes(peers);
    attr.node = node;
    attr.vpid = vpid;
    attr.linger_ns = ADAPTER_LINGER_NS;
    int status = velo_port_open(&attr, port);
    if (status)
        return status;
    status = velo_rma_open(*port, NULL, rma);
    if (status)
        (void)velo_port_close(*port);
    return status;
}

/* A node has a limited number of ports; a machine may have all nodes of a domain. */
int vf_port_open(struct vf_domain *domain, int node, int vpid, struct velo_port **port,
                 struct velo_rma **rma)
{
    struct entry *entry = calloc(1, sizeof *entry);
    if (!entry)
        return -FI_ENOMEM;
    int status;
    int at = node >= 0 ? node : first_node();
    do
        status = open_at(domain->name, domain->peers, at, vpid, port, rma);
    while (status == VELO_ERR_FULL && node < 0 && ++at < NODES);
    if (status) {
        vf_log("open a port: %s", velo_last_error());
        free(entry);
        return status == VELO_ERR_FULL ? -FI_EADDRNOTAVAIL : -vf_error(status);
    }
    *entry = (struct entry){.domain = domain, .port = *port, .rma = *rma, .pid = getpid()};
    pthread_mutex_lock(&entries_lock);
    entry->next = entries;
    entries = entry;
    pthread_mutex_unlock(&entries_lock);
    return 0;
}

void vf_port_close(struct velo_port *port)
{
    struct entry *found = NULL;
    pthread_mutex_lock(&entries_lock);
    for (struct entry **at = &entries; *at; at = &(*at)->next) {
        if ((*at)->port == port) {
            found = *at;
            *at = found->next;
            break;
        }
    }
    pthread_mutex_unlock(&entries_lock);
    if (!found)
        return;
    (void)velo_rma_close(found->rma);
    (void)velo_port_close(found->port);
    free(found);
}

/* A program that exits without closing its endpoints. Nobody uses them any more but threads of its
 * own, which are held up here. */
static __attribute__((destructor)) void close_at_exit(void)
{
    for (struct entry *entry = entries; entry; entry = entry->next) {
        struct timespec until;
        if (entry->pid != getpid())
            continue;
        if (entry->domain->locks && !entry->domain->is_exiting) {
            (void)clock_gettime(CLOCK_REALTIME, &until);
            until.tv_sec++;
            if (pthread_mutex_timedlock(&entry->domain->lock, &until) != 0)
                continue; /* It is in the middle of a call, and stays there. */
            entry->domain->is_exiting = true;
        }
        (void)velo_rma_close(entry->rma);
        (void)velo_port_close(entry->port);
    }
}

/* Killed processes leave the files of their ports. A port that is opened under such an id takes
 * them over, and takes them away when it is closed. */
static void take_away(const char *domain, int node, int vpid)
{
    struct velo_port *port;
    struct velo_rma *rma;
    if (open_at(domain, 0, node, vpid, &port, &rma) != VELO_OK)
        return; /* It lives. */
    (void)velo_rma_close(rma);
    (void)velo_port_close(port);
}

void vf_port_sweep(const char *domain)
{
    static const char *const kinds[] = {"", "+rma"};
    int fd = fd_above_standard(open(vf_address_folder(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        if (fd >= 0)
            (void)close(fd);
        return;
    }
    for (struct dirent *file = readdir(dir); file; file = readdir(dir)) {
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
            char prefix[VELO_DOMAIN_NAME_MAX + 16];
            char *dot = NULL, *end = NULL;
            int len = snprintf(prefix, sizeof prefix, "velo.%s%s.", domain, kinds[i]);
            if (strncmp(file->d_name, prefix, (size_t)len) != 0)
                continue;
            long node = strtol(file->d_name + len, &dot, 10);
            long vpid = *dot == '.' ? strtol(dot + 1, &end, 10) : -1;
            if (node >= 0 && node < NODES && vpid >= 0 && vpid < VPIDS && *end == '\0')
                take_away(domain, (int)node, (int)vpid);
        }
    }
    (void)closedir(dir);
}
