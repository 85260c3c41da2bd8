/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/error.h"
#include "../base/order.h"
#include "domain.h"

/* One segment, mapped read-only. */
struct mapped {
    struct segment segment;
    struct velo_port_view view;
};

static void unmap(struct mapped *m)
{
    if (m->segment.header)
        munmap(m->segment.header, m->segment.shape.total_bytes);
    /* This process has no lock to lose: a port that it owns is never opened here. */
    if (m->segment.fd >= 0)
        close(m->segment.fd);
}

static bool map_readonly(struct mapped *m, const char *path)
{
    struct stat st;
    struct seg_header header;
    memset(m, 0, sizeof *m);
    (void)snprintf(m->segment.path, sizeof m->segment.path, "%s", path);
    m->segment.fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (m->segment.fd < 0 || fstat(m->segment.fd, &st) != 0 || !S_ISREG(st.st_mode) ||
        pread(m->segment.fd, &header, sizeof header, 0) != (ssize_t)sizeof header ||
        seg_header_check(&header, (size_t)st.st_size, path, &m->segment.shape) != VELO_OK)
        return false;
    void *base = mmap(NULL, m->segment.shape.total_bytes, PROT_READ, MAP_SHARED, m->segment.fd, 0);
    if (base == MAP_FAILED)
        return false;
    m->segment.header = base;
    m->segment.entries = (uint64_t *)((char *)base + SEG_HEADER_BYTES);
    m->view.id = header.id;
    m->view.pid = (long)header.pid;
    m->view.alive = seg_owner_status(&m->segment) == VELO_OK;
    m->view.depth_slots = header.depth_slots;
    m->view.data_bytes = header.data_bytes;
    m->view.conns_max = header.conns_max;
    m->view.segment_bytes = m->segment.shape.total_bytes;
    m->view.memory_bytes = (uint64_t)st.st_blocks * 512;
    return true;
}

static void count_rx(struct mapped *m)
{
    const struct seg_header *header = m->segment.header;
    struct velo_port_counters *c = &m->view.counters;
    c->rx_msgs = order_counter(&header->rx_msgs);
    c->rx_bytes = order_counter(&header->rx_bytes);
    c->rx_doorbells = order_counter(&header->rx_doorbells);
    c->rx_sleeps = order_counter(&header->rx_sleeps);
    c->rx_errors = order_counter(&header->rx_errors);
    c->rx_conns = order_counter(&header->rx_conns);
    c->rx_reclaimed = order_counter(&header->rx_reclaimed);
    m->view.kept_bytes = order_counter(&header->kept_bytes);
    m->view.kept_bound_bytes = order_counter(&header->kept_bound_bytes);
}

static struct mapped *find(struct mapped *all, size_t n, velo_id_t id)
{
    for (size_t i = 0; i < n; i++)
        if (all[i].view.id == id)
            return &all[i];
    return NULL;
}

/* What a port sends is counted in the segments of its receivers. */
static void count_tx(struct mapped *all, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct segment *segment = &all[i].segment;
        for (uint32_t index = 0; index < segment->shape.conns_max; index++) {
            uint64_t entry = order_read_entry(&segment->entries[index]);
            struct mapped *sender = find(all, n, entry_source(entry));
            if (entry_state(entry) != ENTRY_READY || !sender)
                continue;
            const struct seg_ring *ring = seg_ring(segment, index);
            sender->view.counters.tx_msgs += order_counter(&ring->tx_msgs);
            sender->view.counters.tx_bytes += order_counter(&ring->tx_bytes);
            sender->view.counters.tx_again += order_counter(&ring->tx_again);
            sender->view.counters.tx_sleeps += order_counter(&ring->tx_sleeps);
            sender->view.counters.tx_conns++;
        }
    }
}

static int by_id(const void *a, const void *b)
{
    const struct mapped *x = a;
    const struct mapped *y = b;
    return (x->view.id > y->view.id) - (x->view.id < y->view.id);
}

int velo_inspect_domain(const char *domain,
                        int (*each)(void *arg, const struct velo_port_view *view), void *arg)
{
    struct seg_domain where = {0};
    int status = domain_init(&where, domain, NULL);
    if (status)
        return status;
    char pattern[PATH_MAX];
    (void)snprintf(pattern, sizeof pattern, "%s/velo.%s.*.*", where.dir, where.name);
    glob_t names;
    int found = glob(pattern, 0, NULL, &names);
    if (found == GLOB_NOMATCH)
        return VELO_OK;
    if (found != 0)
        return velo_fail(VELO_ERR_ACCESS, "cannot list %s: %s", where.dir, strerror(errno));
    struct mapped *all = calloc(names.gl_pathc, sizeof *all);
    size_t n = 0;
    for (size_t i = 0; all && i < names.gl_pathc; i++) {
        if (map_readonly(&all[n], names.gl_pathv[i]))
            n++;
        else
            unmap(&all[n]);
    }
    globfree(&names);
    if (!all)
        return velo_fail(VELO_ERR_NO_MEMORY, "out of memory");
    qsort(all, n, sizeof *all, by_id);
    for (size_t i = 0; i < n; i++)
        count_rx(&all[i]);
    count_tx(all, n);
    for (size_t i = 0; i < n && status == VELO_OK; i++) {
        all[i].view.path = all[i].segment.path;
        status = each(arg, &all[i].view);
    }
    for (size_t i = 0; i < n; i++)
        unmap(&all[i]);
    free(all);
    return status;
}
