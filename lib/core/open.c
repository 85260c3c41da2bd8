/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing ports. */
#include <stdlib.h>
#include <unistd.h>

#include "../base/cancel.h"
#include "../base/copy.h"
#include "../base/error.h"
#include "../base/fork.h"
#include "../base/sized.h"
#include "../shm/domain.h"
#include "../shm/wait.h"
#include "descriptor.h"
#include "no_net.h"
#include "port.h"
#include "senders.h"

#define DEPTH_SLOTS_DEFAULT 256
#define DATA_BYTES_DEFAULT (64u << 10)
#define CONNS_MAX_DEFAULT 1024
#define LINGER_NS_DEFAULT (NS_PER_S / 2)

#ifdef VELO_TEST_HOOKS
void (*velo_test_hook)(unsigned point);
#endif

static bool is_by_line(void)
{
    const char *text = getenv("VELO_MESSAGE_LINES");
    return text && strcmp(text, "1") == 0;
}

/* Create the segment under the id asked for, or under the first free one of the node. */
static int create_segment(struct velo_port *port, const struct velo_port_attr *attr)
{
    uint32_t flags = port->flags | (port->fenced ? SEG_NEEDS_FENCE : 0);
    int node = attr->node;
    uint32_t first = 0, step = 1;
    port->net->place(&node, &first, &step);
    if (attr->vpid != VELO_VPID_ANY) {
        port->id = VELO_ID(node, attr->vpid);
        return seg_create(&port->domain, port->id, &port->shape, flags, &port->segment);
    }
    for (uint32_t vpid = first; vpid < VELO_VPIDS; vpid += step) {
        port->id = VELO_ID(node, vpid);
        int status = seg_create(&port->domain, port->id, &port->shape, flags, &port->segment);
        if (status != VELO_ERR_IN_USE)
            return status;
    }
    return velo_fail(VELO_ERR_FULL, "all %u contexts of node %d are in use; choose another node",
                     (unsigned)VELO_VPIDS, node);
}

static int check_attr(const struct velo_port_attr *attr)
{
    if (attr->node < 0 || (uint32_t)attr->node >= VELO_NODES)
        return velo_fail(VELO_ERR_ARG, "node is %d; give 0 to %u", attr->node,
                         (unsigned)VELO_NODES - 1);
    if (attr->flags & ~(uint32_t)VELO_PORT_DEPARTURES)
        return velo_fail(VELO_ERR_ARG, "flags is %#x; give those of enum velo_port_flag",
                         attr->flags);
    if (attr->vpid != VELO_VPID_ANY && (attr->vpid < 0 || (uint32_t)attr->vpid >= VELO_VPIDS))
        return velo_fail(VELO_ERR_ARG, "vpid is %d; give 0 to %u or VELO_VPID_ANY", attr->vpid,
                         (unsigned)VELO_VPIDS - 1);
    if (attr->linger_ns < VELO_FOREVER)
        return velo_fail(VELO_ERR_ARG, "linger_ns is %lld; give 0 or more, or VELO_FOREVER",
                         (long long)attr->linger_ns);
    return VELO_OK;
}

static int port_name(struct velo_port *port, const struct velo_port_attr *attr)
{
    int status = check_attr(attr);
    if (status == VELO_OK)
        status = copy_configure(NULL);
    if (status == VELO_OK)
        status = seg_shape_init(&port->shape,
                                attr->depth_slots ? attr->depth_slots : DEPTH_SLOTS_DEFAULT,
                                attr->data_bytes ? attr->data_bytes : DATA_BYTES_DEFAULT,
                                attr->conns_max ? attr->conns_max : CONNS_MAX_DEFAULT);
    return status ? status : domain_init(&port->domain, attr->domain, attr->group);
}

static int open_net(struct velo_port *port)
{
    if (!port->has_net)
        return port->net->open(port);
    if (!port_enter_net(port))
        return inside_refuse();
    int status = port->net->open(port);
    port_leave_net(port);
    return status;
}

/* Make the port, in the domain and with the shape that are set. */
static int port_start(struct velo_port *port, const struct velo_port_attr *attr,
                      const struct net_plug *plug, const struct velo_port *beside)
{
    static const uint32_t always = 1;
    port->tells_departures = attr->flags & VELO_PORT_DEPARTURES;
    port->linger_ns = attr->linger_ns ? attr->linger_ns : LINGER_NS_DEFAULT;
    pthread_mutex_init(&port->conns_lock, NULL);
    int status = rx_open(port);
    port->plug = plug;
    if (status == VELO_OK)
        status = plug->attach(port, beside);
    if (status)
        return status;
    bool carries_all = port->net->carries_all;
    port->spin_max_ns = carries_all ? 0 : wait_spin_max_ns();
    port->spin_ns = port->spin_max_ns;
    port->promote = port->spin_ns > 0;
    port->fenced = carries_all || !wait_join_barrier();
    port->by_line = carries_all || is_by_line();
    status = create_segment(port, attr);
    if (status)
        return status;
    port->shared = port->segment->header;
    port->look = port->has_net ? &always : &port->shared->summary;
    status = open_net(port);
    if (status) {
        doorbell_hide(&port->doorbell, port->segment);
        seg_retire(port->segment);
    }
    return status;
}

static struct velo_port *port_new(void)
{
    struct velo_port *port =
        aligned_alloc(SEG_ALIGN, sizeof *port / SEG_ALIGN * SEG_ALIGN + SEG_ALIGN);
    if (!port) {
        (void)velo_fail(VELO_ERR_NO_MEMORY, "out of memory");
        return NULL;
    }
    memset(port, 0, sizeof *port);
    port->doorbell = (struct doorbell)DOORBELL_NONE;
    port->epoll_fd = -1;
    port->process = fork_mark();
    port->interrupt = &port->interrupted;
    port->net = &no_net;
    return port;
}

/* Hand the port out, or free it if it could not be made. */
static int port_finish(struct velo_port *port, int status, struct velo_port **out)
{
    if (status) {
        descriptor_close(port);
        rx_close(port);
        if (port->segment)
            seg_put(port->segment);
        if (port->plug)
            port->plug->detach(port);
        free(port);
        return status;
    }
    *out = port;
    return VELO_OK;
}

int port_open_plugged(const struct velo_port_attr *attr, const struct net_plug *plug,
                      struct velo_port **out)
{
    CANCEL_LATER();
    static const struct velo_port_attr defaults = VELO_PORT_ATTR_INIT;
    struct velo_port_attr ours = VELO_PORT_ATTR_INIT;
    if (!out)
        return velo_fail(VELO_ERR_ARG, "port is NULL");
    *out = NULL;
    int status = sized_attr(&ours, sizeof ours, attr, &defaults, "VELO_PORT_ATTR_INIT");
    if (status)
        return status;
    struct velo_port *port = port_new();
    if (!port)
        return VELO_ERR_NO_MEMORY;
    status = port_name(port, &ours);
    return port_finish(port, status ? status : port_start(port, &ours, plug, NULL), out);
}

int port_open_beside(const struct velo_port *port, const char *suffix, uint32_t conns_max,
                     struct velo_port **out)
{
    CANCEL_LATER();
    struct velo_port *beside = port_new();
    if (!beside)
        return VELO_ERR_NO_MEMORY;
    beside->domain = port->domain;
    (void)strncat(beside->domain.name, suffix,
                  sizeof beside->domain.name - strlen(beside->domain.name) - 1);
    beside->flags = SEG_HAS_TAIL;
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    attr.node = (int)VELO_ID_NODE(port->id);
    attr.vpid = (int)VELO_ID_VPID(port->id);
    attr.linger_ns = port->linger_ns;
    int status = seg_shape_init(&beside->shape, DEPTH_SLOTS_DEFAULT, DATA_BYTES_DEFAULT, conns_max);
    return port_finish(beside, status ? status : port_start(beside, &attr, port->plug, port), out);
}

int velo_port_close(struct velo_port *port)
{
    CANCEL_LATER();
    if (!port || !fork_is_ours(port->process))
        return VELO_OK;
    GUARD_UNUSED(port, "port");
    bool uses_net = port->has_net;
    if (uses_net && !port_enter_net(port))
        return inside_refuse(); /* Before anything is closed. */
    if (uses_net)
        port_leave_net(port);
    while (port->conns)
        (void)velo_disconnect(port->conns);
    if (uses_net)
        (void)port_enter_net(port);
    port->net->leave(port);
    /* First: whoever takes a dead port's segment away takes its doorbell, too. */
    doorbell_hide(&port->doorbell, port->segment);
    seg_retire(port->segment);
    port->net->close(port);
    if (uses_net)
        port_leave_net(port);
    descriptor_close(port);
    rx_close(port);
    seg_put(port->segment);
    port->plug->detach(port);
    pthread_mutex_destroy(&port->conns_lock);
    free(port);
    return VELO_OK;
}
