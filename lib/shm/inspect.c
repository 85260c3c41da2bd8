/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect.h"

#include <ctype.h>
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
#include "../base/fd.h"
#include "../base/order.h"
#include "domain.h"
#include "liveness.h"
#include "lives.h"
#include "registry.h"
#include "shape.h"

/* One segment, mapped read-only. */
struct mapped {
    struct segment segment;
    struct velo_port_view view;
};

/* This loses no lock of our process: a port that it owns is never opened here. */
static void close_file(struct segment *segment)
{
    if (segment->fd >= 0)
        close(segment->fd);
    segment->fd = -1;
}

void velo_inspect_unmap(struct segment *segment)
{
    if (segment->header)
        munmap(segment->header, segment->shape.total_bytes);
    seg_acquire();
    lives_close(segment);
    seg_release();
    close_file(segment);
}

bool velo_inspect_map(struct segment *segment, const char *path, uint64_t *memory_bytes)
{
    struct stat st;
    struct seg_header header;
    memset(segment, 0, sizeof *segment);
    segment->lives_fd = -1;
    (void)snprintf(segment->path, sizeof segment->path, "%s", path);
    segment->fd = fd_above_standard(open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (segment->fd < 0 || fstat(segment->fd, &st) != 0 || !S_ISREG(st.st_mode) ||
        pread(segment->fd, &header, sizeof header, 0) != (ssize_t)sizeof header ||
        seg_header_check(&header, (size_t)st.st_size, path, &segment->shape) != VELO_OK)
        return false;
    void *base = mmap(NULL, segment->shape.total_bytes, PROT_READ, MAP_SHARED, segment->fd, 0);
    if (base == MAP_FAILED)
        return false;
    segment->header = base;
    segment->entries = (uint64_t *)((char *)base + SEG_HEADER_BYTES);
    segment->dev = st.st_dev;
    segment->generation = header.generation;
    seg_acquire();
    (void)lives_find(segment, &st, &header);
    seg_release();
    *memory_bytes = (uint64_t)st.st_blocks * 512;
    return true;
}

static bool map_port(struct mapped *m, const char *path)
{
    memset(&m->view, 0, sizeof m->view);
    if (!velo_inspect_map(&m->segment, path, &m->view.memory_bytes))
        return false;
    const struct seg_header *header = m->segment.header;
    m->view.id = header->id;
    m->view.pid = (long)header->pid;
    m->view.alive = seg_owner_status(&m->segment) == VELO_OK;
    m->view.depth_slots = header->depth_slots;
    m->view.data_bytes = header->data_bytes;
    m->view.conns_max = header->conns_max;
    m->view.segment_bytes = m->segment.shape.total_bytes;
    close_file(&m->segment); /* There may be more ports than descriptors. */
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

static struct mapped *find_port(struct mapped *all, size_t n, velo_id_t id)
{
    for (size_t i = 0; i < n; i++)
        if (all[i].view.id == id)
            return &all[i];
    return NULL;
}

/* ---- connections ----------------------------------------------------------------------------- */

/* All connections that were found, of all ports. */
struct conns {
    struct velo_conn_view *list;
    size_t len, max;
    bool is_short; /* Of memory. */
};

/* The name of a transport as it stands in memory that others write. */
static void copy_name(char *name, const char *text)
{
    size_t len = strnlen(text, SEG_TRANSPORT_BYTES - 1);
    memcpy(name, text, len);
    name[len] = '\0';
    for (char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '_')
            *c = '.';
}

static void add_conn(struct conns *conns, velo_id_t port, velo_id_t peer, bool is_outgoing,
                     const char *transport)
{
    if (conns->len == conns->max) {
        size_t max = conns->max ? 2 * conns->max : 64;
        struct velo_conn_view *list = realloc(conns->list, max * sizeof *list);
        conns->is_short |= !list;
        if (!list)
            return;
        conns->list = list;
        conns->max = max;
    }
    struct velo_conn_view *conn = &conns->list[conns->len++];
    *conn = (struct velo_conn_view){.port = port, .peer = peer, .is_outgoing = is_outgoing};
    copy_name(conn->transport, transport);
}

static void count_tx(struct velo_port_counters *c, const uint64_t *msgs, const uint64_t *bytes,
                     const uint64_t *again, const uint64_t *sleeps)
{
    c->tx_msgs += order_counter(msgs);
    c->tx_bytes += order_counter(bytes);
    c->tx_again += order_counter(again);
    c->tx_sleeps += order_counter(sleeps);
    c->tx_conns++;
}

/* Messages over shared memory are counted in the segment of their receiver. */
static void find_incoming(struct mapped *all, size_t n, const struct mapped *receiver,
                          struct conns *conns)
{
    const struct segment *segment = &receiver->segment;
    for (uint32_t index = 0; index < segment->shape.conns_max; index++) {
        uint64_t entry = order_read_entry(&segment->entries[index]);
        if (entry_state(entry) != ENTRY_READY)
            continue;
        velo_id_t source = entry_source(entry);
        const struct seg_ring *ring = seg_ring(segment, index);
        bool is_carried = ring->transport[0] != '\0';
        const char *transport = is_carried ? ring->transport : ring->tx_device ? "nic" : "shm";
        add_conn(conns, receiver->view.id, source, false, transport);
        struct mapped *sender = is_carried ? NULL : find_port(all, n, source);
        if (!sender || sender->segment.header->generation != entry_generation(entry))
            continue;
        add_conn(conns, source, receiver->view.id, true, transport);
        count_tx(&sender->view.counters, &ring->tx_msgs, &ring->tx_bytes, &ring->tx_again,
                 &ring->tx_sleeps);
    }
}

/* Messages over a transport are counted in the segment of their sender. */
static void find_outgoing(struct mapped *sender, struct conns *conns)
{
    uint64_t len = order_counter(&sender->segment.header->outgoing_len);
    for (uint64_t i = 0; i < len && i < SEG_OUTGOING_MAX; i++) {
        const struct seg_outgoing *row = seg_outgoing(&sender->segment, i);
        uint64_t entry = order_read_entry(&row->entry);
        if (entry_state(entry) != ENTRY_READY)
            continue;
        add_conn(conns, sender->view.id, entry_source(entry), true, row->transport);
        count_tx(&sender->view.counters, &row->tx_msgs, &row->tx_bytes, &row->tx_again,
                 &row->tx_sleeps);
    }
}

static int by_transport(const char *a, const char *b)
{
    bool is_a_memory = strcmp(a, "shm") == 0;
    bool is_b_memory = strcmp(b, "shm") == 0;
    return is_a_memory || is_b_memory ? is_b_memory - is_a_memory : strcmp(a, b);
}

static int by_port(const void *a, const void *b)
{
    const struct velo_conn_view *x = a;
    const struct velo_conn_view *y = b;
    int transport = by_transport(x->transport, y->transport);
    return x->port != y->port                 ? (x->port > y->port) - (x->port < y->port)
           : transport != 0                   ? transport
           : x->is_outgoing != y->is_outgoing ? x->is_outgoing - y->is_outgoing
                                              : (x->peer > y->peer) - (x->peer < y->peer);
}

/* Give each port its own connections. */
static int find_conns(struct mapped *all, size_t n, struct conns *conns)
{
    for (size_t i = 0; i < n; i++) {
        find_incoming(all, n, &all[i], conns);
        find_outgoing(&all[i], conns);
    }
    if (conns->is_short)
        return velo_fail(VELO_ERR_NO_MEMORY, "out of memory");
    if (conns->len == 0)
        return VELO_OK;
    qsort(conns->list, conns->len, sizeof *conns->list, by_port);
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        struct velo_port_view *view = &all[i].view;
        size_t first = at;
        while (at < conns->len && conns->list[at].port == view->id)
            at++;
        view->conns = conns->list + first;
        view->conns_len = at - first;
    }
    return VELO_OK;
}

/* ---- the walk -------------------------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
    const struct mapped *x = a;
    const struct mapped *y = b;
    return (x->view.id > y->view.id) - (x->view.id < y->view.id);
}

int velo_inspect_paths(const struct seg_domain *domain, int (*each)(void *arg, const char *path),
                       void *arg)
{
    char pattern[PATH_MAX];
    (void)snprintf(pattern, sizeof pattern, "%s/velo.%s.*.*", domain->dir, domain->name);
    glob_t names;
    int found = glob(pattern, 0, NULL, &names);
    if (found == GLOB_NOMATCH)
        return VELO_OK;
    if (found != 0)
        return velo_fail(VELO_ERR_ACCESS, "cannot list %s: %s", domain->dir, strerror(errno));
    int status = VELO_OK;
    for (size_t i = 0; status == VELO_OK && i < names.gl_pathc; i++)
        status = each(arg, names.gl_pathv[i]);
    globfree(&names);
    return status;
}

/* All segments of ports that can be read. */
struct ports {
    struct mapped *list;
    size_t len, max;
};

static int add_port(void *arg, const char *path)
{
    struct ports *ports = arg;
    if (ports->len == ports->max) {
        size_t max = ports->max ? 2 * ports->max : 16;
        struct mapped *list = realloc(ports->list, max * sizeof *list);
        if (!list)
            return velo_fail(VELO_ERR_NO_MEMORY, "out of memory");
        ports->list = list;
        ports->max = max;
    }
    struct mapped *next = &ports->list[ports->len];
    if (map_port(next, path))
        ports->len++;
    else
        velo_inspect_unmap(&next->segment);
    return VELO_OK;
}

static int look(struct ports *ports, int (*each)(void *arg, const struct velo_port_view *view),
                void *arg)
{
    struct conns conns = {0};
    if (ports->len)
        qsort(ports->list, ports->len, sizeof *ports->list, by_id);
    for (size_t i = 0; i < ports->len; i++)
        count_rx(&ports->list[i]);
    int status = find_conns(ports->list, ports->len, &conns);
    for (size_t i = 0; i < ports->len && status == VELO_OK; i++) {
        ports->list[i].view.path = ports->list[i].segment.path;
        status = each(arg, &ports->list[i].view);
    }
    free(conns.list);
    return status;
}

int velo_inspect_domain(const char *domain,
                        int (*each)(void *arg, const struct velo_port_view *view), void *arg)
{
    struct seg_domain where = {0};
    struct ports ports = {0};
    int status = domain_init(&where, domain, NULL);
    if (status == VELO_OK)
        status = velo_inspect_paths(&where, add_port, &ports);
    if (status == VELO_OK)
        status = look(&ports, each, arg);
    for (size_t i = 0; i < ports.len; i++)
        velo_inspect_unmap(&ports.list[i].segment);
    free(ports.list);
    return status;
}
