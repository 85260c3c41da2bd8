/* SPDX-License-Identifier: Apache-2.0 */
/* Ports, connections and registrations of rma2. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "rma2_internal.h"

#define NODES 256
#define OPTIONS_ALL 31u
#define AREAS_MAX (VELO_RMA_MEMS_MAX - 2)
#define AREAS_FIRST 16u

const RMA2_Class RMA2_CLASS_ANY = 0xff;
const RMA2_Nodeid RMA2_NODEID_ANY = 0xffff;
const RMA2_VPID RMA2_VPID_ANY = 0xffff;
const RMA2_NLA RMA2_ANY_NLA = ~UINT64_C(0);
const uint32_t RMA2_DEFAULT_FLAG = 0;
const uint32_t RMA2_BLOCK_FLAG = 1;
const uint32_t RMA2_MATCH_LAST_NLA_FLAG = 2;

_Static_assert(sizeof(RMA2_Notification) == 16, "a notification is two words");
_Static_assert(sizeof(RMA2_Region) <= 112, "a region fits where programs have room for one");
_Static_assert(sizeof(RMA2_Descriptor) == 64 && _Alignof(RMA2_Descriptor) == 16, "a descriptor");
_Static_assert(sizeof(RMA2_Nodeid) == 2 && sizeof(RMA2_VPID) == 2 && sizeof(RMA2_NLA) == 8 &&
                   sizeof(RMA2_Class) == 1,
               "the simple types");
_Static_assert(QUEUE_ENTRIES == 16384, "a queue");
_Static_assert(LOCKS *LOCK_TARGETS <= 1u << NUMBER_BITS && LOCK_OPS <= 1u << SLOT_BITS &&
                   NUMBER_AT + NUMBER_BITS <= SLOT_AT && SLOT_AT + SLOT_BITS <= TYPE_AT,
               "a lock's number and place stand in a cookie");
_Static_assert(SIZE_MAX_BYTES == SIZE_MASK + 1, "a size less 1 fits");

RMA2_ERROR rma2_result(int status)
{
    switch (status) {
    case VELO_OK:
        return RMA2_SUCCESS;
    case VELO_AGAIN:
        return RMA2_ERR_NO_DESC_MEM;
    case VELO_ERR_ARG:
        return RMA2_ERR_INV_VALUE;
    case VELO_TIMEOUT:
    case VELO_ERR_NO_PEER:
    case VELO_ERR_PEER_CLOSED:
    case VELO_ERR_PEER_DEAD:
        return RMA2_ERR_NO_CONNECT;
    case VELO_ERR_FULL:
        return RMA2_ERR_PORTS_USED;
    case VELO_ERR_ACCESS:
        return RMA2_ERR_ATU;
    case VELO_ERR_NO_SPACE:
        return RMA2_ERR_FD;
    case VELO_ERR_NO_MEMORY:
        return RMA2_ERR_NO_MEM;
    case VELO_ERR_VERSION:
        return RMA2_ERR_INVALID_VERSION;
    default:
        return RMA2_ERR_ERROR;
    }
}

/* ---- ports ----------------------------------------------------------------------------------- */

/* All ports of this process: a wait at one of them carries on with the others. */
static pthread_mutex_t ports_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rma2_port *ports;
static struct shown ports_count;

bool rma2_has_others(void) { return shown_get(&ports_count) > 1; }

bool rma2_carry_on(const struct rma2_port *own)
{
    bool is_busy = false;
    if (pthread_mutex_trylock(&ports_lock) != 0)
        return false; /* Another thread does it. */
    for (struct rma2_port *port = ports; port; port = port->next) {
        enum turn_held held = port == own ? TURN_REFUSED : turn_try(&port->turn);
        if (held == TURN_REFUSED)
            continue;
        is_busy |= velo_rma_progress(port->rma) > 0;
        is_busy |= rma2_take_in(port, 0) > 0;
        turn_give(&port->turn, held);
    }
    (void)pthread_mutex_unlock(&ports_lock);
    return is_busy;
}

static bool carry_on_all(void) { return rma2_carry_on(NULL); }

static void enlist_port(struct rma2_port *port)
{
    (void)pthread_mutex_lock(&ports_lock);
    port->next = ports;
    ports = port;
    shown_set(&ports_count, shown_get(&ports_count) + 1);
    velo2_set_carry_on(carry_on_all);
    (void)pthread_mutex_unlock(&ports_lock);
}

static void strike_out(const struct rma2_port *port)
{
    (void)pthread_mutex_lock(&ports_lock);
    struct rma2_port **link = &ports;
    while (*link != port)
        link = &(*link)->next;
    *link = port->next;
    shown_set(&ports_count, shown_get(&ports_count) - 1);
    velo2_set_carry_on(ports ? carry_on_all : NULL);
    (void)pthread_mutex_unlock(&ports_lock);
}

/* Memory for peers, under a number. */
static int offer_memory(struct rma2_port *port, size_t len_bytes, uint32_t rights, uint32_t number,
                        struct velo_rma_mem **mem)
{
    int status = velo_rma_mem_alloc(port->rma, len_bytes, rights, VELO_RMA_PEER_ANY, mem);
    return status ? status : velo_rma_mem_publish(*mem, number);
}

static int open_unit(struct rma2_port *port)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    int status = place_wait_ns(&port->wait_ns) ? place_open(&attr, &port->port) : VELO_ERR_ARG;
    if (status == VELO_OK)
        status = velo_rma_open(port->port, NULL, &port->rma);
    if (status == VELO_OK)
        status = offer_memory(port, LOCK_TARGETS * LOCKS * sizeof(uint64_t), VELO_RMA_RIGHT_ATOMIC,
                              NUMBER_LOCKS, &port->locks);
    if (status == VELO_OK)
        status = offer_memory(port, CLASSES, VELO_RMA_RIGHT_WRITE, NUMBER_CLASSES, &port->classes);
    if (status == VELO_OK)
        port->classes_at = (uintptr_t)velo_rma_mem_addr(port->classes);
    return status;
}

static void free_port(struct rma2_port *port)
{
    (void)velo_rma_close(port->rma);
    (void)velo_port_close(port->port);
    while (port->handles) {
        struct rma2_handle *next = port->handles->next;
        free(port->handles);
        port->handles = next;
    }
    free(port->areas);
    free(port->lock_ops);
    free(port->queue);
    free(port);
}

RMA2_ERROR rma2_open(RMA2_Port *out)
{
    if (!out)
        return RMA2_ERR_INV_PORT;
    *out = NULL;
    struct rma2_port *port = calloc(1, sizeof *port);
    if (!port)
        return RMA2_ERR_NO_MEM;
    port->lock_ops = calloc(LOCK_OPS, sizeof *port->lock_ops);
    bool has_memory = rma2_make_queue(port, QUEUE_ENTRIES) == RMA2_SUCCESS && port->lock_ops;
    int status = has_memory ? open_unit(port) : VELO_ERR_NO_MEMORY;
    if (status) {
        free_port(port);
        return status == VELO_ERR_ACCESS ? RMA2_ERR_FD : rma2_result(status);
    }
    for (uint32_t i = 0; i < LOCK_OPS; i++) {
        port->lock_ops[i].next = port->lock_free;
        port->lock_free = &port->lock_ops[i];
    }
    enlist_port(port);
    *out = port;
    return RMA2_SUCCESS;
}

RMA2_ERROR rma2_close(RMA2_Port port)
{
    if (!port)
        return RMA2_ERR_INV_PORT;
    strike_out(port);
    free_port(port);
    return RMA2_SUCCESS;
}

RMA2_Nodeid rma2_get_nodeid(RMA2_Port port)
{
    return port ? (RMA2_Nodeid)VELO_ID_NODE(velo_port_id(port->port)) : RMA2_NODEID_ANY;
}

RMA2_VPID rma2_get_vpid(RMA2_Port port)
{
    return port ? (RMA2_VPID)VELO_ID_VPID(velo_port_id(port->port)) : RMA2_VPID_ANY;
}

RMA2_Nodeid rma2_get_node_num(RMA2_Port port) { return port ? VELO_NODES : 0; }

RMA2_VPID rma2_get_proc_num(RMA2_Port port) { return port ? USER_VPIDS : 0; }

/* ---- connections ----------------------------------------------------------------------------- */

RMA2_ERROR rma2_connect(RMA2_Port port, RMA2_Nodeid nodeid, RMA2_VPID vpid,
                        RMA2_Connection_Options options, RMA2_Handle *out)
{
    if (!port)
        return RMA2_ERR_INV_PORT;
    if (!out || nodeid >= NODES || vpid >= USER_VPIDS)
        return RMA2_ERR_INV_VALUE;
    *out = NULL;
    if (options > OPTIONS_ALL)
        return RMA2_ERR_WRONG_ARG;
    struct rma2_handle *handle = calloc(1, sizeof *handle);
    if (!handle)
        return RMA2_ERR_NO_MEM;
    handle->port = port;
    handle->id = VELO_ID(nodeid, vpid);
    handle->options = options | (options & TRAFFIC_CLASSES_ALL) << RESPONSE_TC_AT;
    enum turn_held held = turn_take(&port->turn);
    /* If the peer is not there yet, the first operation connects. */
    (void)velo_rma_connect(port->rma, handle->id, &handle->peer, 0);
    handle->next = port->handles;
    port->handles = handle;
    turn_give(&port->turn, held);
    *out = handle;
    return RMA2_SUCCESS;
}

int rma2_connect_late(struct rma2_handle *handle)
{
    struct rma2_port *port = handle->port;
    int64_t since_ns = place_now_ns();
    int status;
    while (place_tries_again(status = velo_rma_connect(port->rma, handle->id, &handle->peer, 0),
                             since_ns, port->wait_ns)) {
        (void)rma2_take_in(port, 0);
        (void)rma2_carry_on(port);
        place_nap();
    }
    return status;
}

struct rma2_handle **rma2_link_to(struct rma2_port *port, const struct rma2_handle *handle)
{
    struct rma2_handle **link = &port->handles;
    while (*link && *link != handle)
        link = &(*link)->next;
    return *link ? link : NULL;
}

/* Wait until all is done. */
static void finish_handle(struct rma2_handle *handle)
{
    struct rma2_port *port = handle->port;
    int64_t since_ns = place_now_ns();
    int status;
    do {
        status = velo_rma_flush(handle->peer, SLICE_NS);
        (void)rma2_carry_on(port);
        if (status == VELO_AGAIN)
            (void)rma2_take_in(port, 0);
    } while ((status == VELO_AGAIN || status == VELO_TIMEOUT || status == VELO_ERR_INTERRUPTED) &&
             !place_is_over(since_ns, port->wait_ns));
}

RMA2_Nodeid rma2_handle_get_node(RMA2_Handle handle)
{
    return handle ? (RMA2_Nodeid)VELO_ID_NODE(handle->id) : RMA2_NODEID_ANY;
}

RMA2_VPID rma2_handle_get_vpid(RMA2_Handle handle)
{
    return handle ? (RMA2_VPID)VELO_ID_VPID(handle->id) : RMA2_VPID_ANY;
}

RMA2_ERROR rma2_disconnect(RMA2_Port port, RMA2_Handle handle)
{
    if (!port)
        return RMA2_ERR_INV_PORT;
    enum turn_held held = turn_take(&port->turn);
    struct rma2_handle **link = rma2_link_to(port, handle);
    if (link) {
        if (handle->peer)
            finish_handle(handle);
        *link = handle->next;
        (void)velo_rma_disconnect(handle->peer);
        free(handle);
    }
    turn_give(&port->turn, held);
    return link ? RMA2_SUCCESS : RMA2_ERR_INV_HANDLE;
}

/* ---- registrations --------------------------------------------------------------------------- */

bool rma2_is_registered(struct rma2_port *port, RMA2_NLA address, uint64_t len_bytes)
{
    for (uint32_t i = 0; i < port->areas_count; i++) {
        uint32_t index = i == 0 ? port->area_last : i - (i <= port->area_last);
        const struct area *area = &port->areas[index];
        if (address >= area->from && address <= area->end && len_bytes <= area->end - address) {
            port->area_last = index;
            return true;
        }
    }
    return false;
}

static bool make_room(struct rma2_port *port)
{
    if (port->areas_count < port->areas_max)
        return true;
    uint32_t more = port->areas_max ? 2 * port->areas_max : AREAS_FIRST;
    struct area *areas = realloc(port->areas, more * sizeof *areas);
    if (!areas)
        return false;
    port->areas = areas;
    port->areas_max = more;
    return true;
}

static RMA2_ERROR enter_region(struct rma2_port *port, uint64_t first, uint64_t end, velo_id_t peer,
                               RMA2_Region *region)
{
    uint64_t from = first & ~(uint64_t)(PAGE_BYTES - 1);
    struct velo_rma_mem *mem;
    if (port->areas_count == AREAS_MAX)
        return RMA2_ERR_MLOCKLIMIT;
    if (!make_room(port))
        return RMA2_ERR_NO_MEM;
    int status = velo_rma_mem_register(port->rma, (void *)(uintptr_t)from, end - from,
                                       VELO_RMA_RIGHT_ALL, peer, &mem);
    if (status)
        return rma2_result(status);
    port->areas[port->areas_count++] = (struct area){from, end, mem};
    *region = (RMA2_Region){(void *)(uintptr_t)from, from, end - from, mem, first - from};
    return RMA2_SUCCESS;
}

static RMA2_ERROR enter_range(RMA2_Port port, void *address, size_t size, velo_id_t peer,
                              RMA2_Region *region)
{
    uint64_t end;
    if (!port)
        return RMA2_ERR_INV_PORT;
    if (!address || !region || size == 0 ||
        __builtin_add_overflow((uint64_t)(uintptr_t)address, size, &end))
        return RMA2_ERR_INV_VALUE;
    enum turn_held held = turn_take(&port->turn);
    RMA2_ERROR error = enter_region(port, (uintptr_t)address, end, peer, region);
    turn_give(&port->turn, held);
    return error;
}

/* The region is one that the caller frees. */
static RMA2_ERROR enter_new(RMA2_Port port, void *address, size_t size, velo_id_t peer,
                            RMA2_Region **region)
{
    if (!port)
        return RMA2_ERR_INV_PORT;
    if (!region)
        return RMA2_ERR_INV_VALUE;
    *region = calloc(1, sizeof **region);
    if (!*region)
        return RMA2_ERR_NO_MEM;
    RMA2_ERROR error = enter_range(port, address, size, peer, *region);
    if (error) {
        free(*region);
        *region = NULL;
    }
    return error;
}

RMA2_ERROR rma2_register_nomalloc(RMA2_Port port, void *address, size_t size, RMA2_Region *region)
{
    return enter_range(port, address, size, VELO_RMA_PEER_ANY, region);
}

RMA2_ERROR rma2_register(RMA2_Port port, void *address, size_t size, RMA2_Region **region)
{
    return enter_new(port, address, size, VELO_RMA_PEER_ANY, region);
}

RMA2_ERROR rma2_register_adhoc(RMA2_Port port, void *address, RMA2_Region **region)
{
    velo_id_t self = port ? velo_port_id(port->port) : VELO_RMA_PEER_ANY;
    return enter_new(port, address, PAGE_BYTES, self, region);
}

static RMA2_ERROR withdraw_region(struct rma2_port *port, const RMA2_Region *region)
{
    uint32_t i = 0;
    while (i < port->areas_count && port->areas[i].mem != region->internal)
        i++;
    if (i == port->areas_count)
        return RMA2_ERR_INV_VALUE;
    int status = velo_rma_mem_deregister(port->areas[i].mem, port->wait_ns);
    if (status)
        return status == VELO_TIMEOUT ? RMA2_ERR_NOT_YET : rma2_result(status);
    port->areas[i] = port->areas[--port->areas_count];
    port->area_last = 0;
    return RMA2_SUCCESS;
}

RMA2_ERROR rma2_unregister_nofree(RMA2_Port port, RMA2_Region *region)
{
    if (!port)
        return RMA2_ERR_INV_PORT;
    if (!region)
        return RMA2_ERR_INV_VALUE;
    enum turn_held held = turn_take(&port->turn);
    RMA2_ERROR error = withdraw_region(port, region);
    turn_give(&port->turn, held);
    if (error == RMA2_SUCCESS)
        memset(region, 0, sizeof *region);
    return error;
}

RMA2_ERROR rma2_unregister(RMA2_Port port, RMA2_Region *region)
{
    RMA2_ERROR error = rma2_unregister_nofree(port, region);
    if (error == RMA2_SUCCESS)
        free(region);
    return error;
}

/* Registering takes no pages: there is nothing that a cache would save. */
RMA2_ERROR rma2_register_cached(RMA2_Port port, void *address, size_t size, RMA2_Region **region)
{
    return rma2_register(port, address, size, region);
}

RMA2_ERROR rma2_unregister_cached(RMA2_Port port, RMA2_Region *region)
{
    return rma2_unregister(port, region);
}

RMA2_ERROR rma2_unregister_adhoc(RMA2_Port port, RMA2_Region *region)
{
    return rma2_unregister(port, region);
}
