/* SPDX-License-Identifier: Apache-2.0 */
/* Ports and connections of velo2. */
#include "velo2_internal.h"

#include <pthread.h>
#include <stdlib.h>

#define QUEUE_SLOTS_DEFAULT 1024
#define NODES 256
#define LINE_BYTES 128u /* A message's share of the memory for long ones. */

_Static_assert(sizeof(velo2_port_t) == sizeof(void *), "a port is one word");
_Static_assert(sizeof(velo2_connection_t) == 16, "a connection is two words");
_Static_assert(VELO2_ADDR_PACK(0x1234, 0x56) == 0x561234, "vpid above node");

/* All ports of this process: a sender that waits looks after each. */
static pthread_mutex_t ports_lock = PTHREAD_MUTEX_INITIALIZER;
static struct velo2_context *ports;

/* Of the ports of rma2; NULL: there are none. */
static struct shown others_carry_on;

void velo2_set_carry_on(carry_on_fn carry_on) { shown_set(&others_carry_on, (uintptr_t)carry_on); }

bool velo2_has_others(void) { return shown_get(&others_carry_on) != 0; }

bool velo2_carry_on(void)
{
    carry_on_fn carry_on = (carry_on_fn)shown_get(&others_carry_on);
    return carry_on && carry_on();
}

bool velo2_keep_all(const struct velo2_context *own)
{
    bool is_full = false;
    (void)velo2_carry_on();
    (void)pthread_mutex_lock(&ports_lock);
    for (struct velo2_context *context = ports; context; context = context->next)
        if (velo2_keep(context) && context == own)
            is_full = true;
    (void)pthread_mutex_unlock(&ports_lock);
    return is_full;
}

velo2_ret_t velo2_result(int status)
{
    switch (status) {
    case VELO_OK:
        return VELO2_RET_SUCCESS;
    case VELO_AGAIN:
        return VELO2_RET_NO_MSG;
    case VELO_ERR_NO_PEER:
    case VELO_ERR_PEER_CLOSED:
    case VELO_ERR_PEER_DEAD:
        return VELO2_RET_INVALID_MBOX;
    case VELO_ERR_FULL:
    case VELO_TIMEOUT:
        return VELO2_RET_TRY_AGAIN;
    case VELO_ERR_ACCESS:
    case VELO_ERR_NO_SPACE:
    case VELO_ERR_SYSTEM:
        return VELO2_RET_ERR_FDOPEN;
    case VELO_ERR_NO_MEMORY:
        return VELO2_RET_ERR_MMAP;
    default:
        return VELO2_RET_ERROR;
    }
}

/* ---- ports ----------------------------------------------------------------------------------- */

static bool read_settings(struct velo2_context *context, struct velo_port_attr *attr)
{
    long mtu;
    long slots;
    if (!place_number("VELO2_MTU", VELO2_MTU_OLD, VELO2_MTU, VELO2_MTU, &mtu) ||
        !place_number("VELO2_QUEUE_SLOTS", 8, 16384, QUEUE_SLOTS_DEFAULT, &slots) ||
        !place_wait_ns(&context->wait_ns) || (mtu != VELO2_MTU && mtu != VELO2_MTU_OLD))
        return false;
    context->mtu = (unsigned int)mtu;
    attr->depth_slots = (uint32_t)slots;
    attr->data_bytes = (uint32_t)slots * LINE_BYTES;
    if (attr->data_bytes < 16384)
        attr->data_bytes = 16384;
    return true;
}

velo2_ret_t velo2_open(velo2_port_t *port)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    if (!port)
        return VELO2_RET_ERROR;
    port->map = NULL;
    struct velo2_context *context = calloc(1, sizeof *context);
    if (!context)
        return VELO2_RET_ERR_MMAP;
    int status = VELO_ERR_ARG;
    if (read_settings(context, &attr))
        status = place_open(&attr, &context->port);
    if (status) {
        free(context);
        return velo2_result(status);
    }
    (void)pthread_mutex_lock(&ports_lock);
    context->next = ports;
    ports = context;
    (void)pthread_mutex_unlock(&ports_lock);
    port->map = context;
    return VELO2_RET_SUCCESS;
}

velo2_ret_t velo2_close(velo2_port_t *port)
{
    if (!port || !port->map)
        return VELO2_RET_ERROR;
    struct velo2_context *context = port->map;
    (void)pthread_mutex_lock(&ports_lock);
    struct velo2_context **link = &ports;
    while (*link != context)
        link = &(*link)->next;
    *link = context->next;
    (void)pthread_mutex_unlock(&ports_lock);
    while (context->links) {
        struct velo2_link *next = context->links->next;
        free(context->links);
        context->links = next;
    }
    velo2_forget_kept(context);
    (void)velo_port_close(context->port);
    free(context);
    port->map = NULL;
    return VELO2_RET_SUCCESS;
}

velo2_nodeid_t velo2_get_nodeid(velo2_port_t *port)
{
    const struct velo2_context *context = port ? port->map : NULL;
    return context ? VELO_ID_NODE(velo_port_id(context->port)) : UINT32_MAX;
}

velo2_vpid_t velo2_get_vpid(velo2_port_t *port)
{
    const struct velo2_context *context = port ? port->map : NULL;
    return context ? VELO_ID_VPID(velo_port_id(context->port)) : UINT32_MAX;
}

/* ---- connections ----------------------------------------------------------------------------- */

velo2_ret_t velo2_connect(velo2_port_t *port, velo2_connection_t *con, velo2_nodeid_t node,
                          velo2_vpid_t vpid)
{
    if (!port || !port->map || !con)
        return VELO2_RET_ERROR;
    *con = (velo2_connection_t){{0}, NULL};
    if (node >= NODES)
        return VELO2_RET_INVALID_NODE;
    if (vpid >= USER_VPIDS)
        return VELO2_RET_INVALID_MBOX;
    struct velo2_context *context = port->map;
    struct velo2_link *link = calloc(1, sizeof *link);
    if (!link)
        return VELO2_RET_ERR_MMAP;
    link->context = context;
    link->peer = VELO_ID(node, vpid);
    link->mtu = context->mtu;
    /* If the peer is not there yet, the first send connects. */
    (void)velo_connect(context->port, link->peer, &link->conn, 0);
    enum turn_held held = turn_take(&context->links_turn);
    link->next = context->links;
    context->links = link;
    turn_give(&context->links_turn, held);
    con->dest.raw = VELO2_ADDR_PACK(node, vpid);
    con->state_map = link;
    return VELO2_RET_SUCCESS;
}

velo2_ret_t velo2_disconnect(velo2_port_t *port, velo2_connection_t *con)
{
    if (!port || !port->map || !con || !con->state_map)
        return VELO2_RET_ERROR;
    struct velo2_context *context = port->map;
    enum turn_held held = turn_take(&context->links_turn);
    struct velo2_link **at = &context->links;
    while (*at && *at != con->state_map)
        at = &(*at)->next;
    struct velo2_link *link = *at;
    if (link)
        *at = link->next;
    turn_give(&context->links_turn, held);
    if (!link)
        return VELO2_RET_ERROR;
    (void)velo_disconnect(link->conn);
    free(link);
    *con = (velo2_connection_t){{0}, NULL};
    return VELO2_RET_SUCCESS;
}
