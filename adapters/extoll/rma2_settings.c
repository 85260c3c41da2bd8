/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of a port and of a connection of rma2, and what EXTOLL's library let a program ask for.
 */
#include <stdlib.h>

#include "rma2_internal.h"

/* What a program can have in flight at once is far less. */
#define QUEUE_BYTES_MAX (UINT32_C(1) << 30)

/* ---- the queue of notifications -------------------------------------------------------------- */

RMA2_ERROR rma2_make_queue(struct rma2_port *port, uint32_t entries)
{
    uint32_t places = 1;
    while (places < entries)
        places *= 2;
    RMA2_Notification *queue = calloc(places, sizeof *queue);
    if (!queue)
        return RMA2_ERR_NO_MEM;
    free(port->queue);
    port->queue = queue;
    port->queue_entries = entries;
    port->queue_mask = places - 1;
    return RMA2_SUCCESS;
}

static bool is_size(uint32_t bytes)
{
    return bytes != 0 && bytes % PAGE_BYTES == 0 && bytes <= QUEUE_BYTES_MAX;
}

uint32_t rma2_get_queue_size(RMA2_Port port)
{
    return port ? port->queue_entries * (uint32_t)sizeof *port->queue : 0;
}

RMA2_ERROR rma2_set_queue_size(RMA2_Port port, uint32_t bytes)
{
    if (!port)
        return RMA2_ERR_INV_PORT;
    if (!is_size(bytes))
        return RMA2_ERR_INV_VALUE;
    enum turn_held held = turn_take(&port->turn);
    RMA2_ERROR error = RMA2_ERR_NOT_YET;
    if (port->arrived == port->freed)
        error = rma2_make_queue(port, bytes / (uint32_t)sizeof *port->queue);
    turn_give(&port->turn, held);
    return error;
}

uint32_t rma2_get_queue_segment_size(RMA2_Port port)
{
    if (!port)
        return 0;
    return port->segment_bytes ? port->segment_bytes : rma2_get_queue_size(port);
}

RMA2_ERROR rma2_set_queue_segment_size(RMA2_Port port, uint32_t bytes)
{
    if (!port)
        return RMA2_ERR_INV_PORT;
    if (!is_size(bytes))
        return RMA2_ERR_INV_VALUE;
    port->segment_bytes = bytes;
    return RMA2_SUCCESS;
}

/* ---- the buffer between stores and the device, which is not there ---------------------------- */

RMA2_ERROR rma2_replay_buffer_drain(RMA2_Port port)
{
    return port ? RMA2_SUCCESS : RMA2_ERR_INV_PORT;
}

void rma2_set_replay_mode(RMA2_Port port, RMA2_Replay_Buffer_Mode mode)
{
    if (port)
        port->replay_mode = mode;
}

RMA2_Replay_Buffer_Mode rma2_get_replay_buffer_mode(RMA2_Port port)
{
    return port ? port->replay_mode : RMA2_REPLAY_MANUAL;
}

/* ---- connections ----------------------------------------------------------------------------- */

/* Set the options of `mask` to `options`. */
static RMA2_ERROR set_options(RMA2_Port port, RMA2_Handle handle, RMA2_Connection_Options mask,
                              RMA2_Connection_Options options)
{
    if (!port)
        return RMA2_ERR_INV_PORT;
    enum turn_held held = turn_take(&port->turn);
    RMA2_ERROR error = RMA2_ERR_INV_HANDLE;
    if (handle && rma2_link_to(port, handle)) {
        handle->options = (handle->options & ~mask) | options;
        error = RMA2_SUCCESS;
    }
    turn_give(&port->turn, held);
    return error;
}

/* A result, as a number as that library had it: success if the connection has the option. */
static uint32_t tell_option(RMA2_Port port, RMA2_Handle handle, RMA2_Connection_Options option)
{
    bool has = port && handle && (handle->options & option) != 0;
    return (uint32_t)(has ? RMA2_SUCCESS : RMA2_ERR_ERROR);
}

/* This library has no such device, whatever the connection. */
static RMA2_ERROR refuse_device(RMA2_Port port, RMA2_Handle handle)
{
    if (!port)
        return RMA2_ERR_INV_PORT;
    return handle ? RMA2_ERR_NO_DEVICE : RMA2_ERR_INV_HANDLE;
}

RMA2_ERROR rma2_request_interrupt(RMA2_Port port, RMA2_Handle handle)
{
    return set_options(port, handle, 0, RMA2_CONN_IRQ);
}

uint32_t rma2_get_interrupt(RMA2_Port port, RMA2_Handle handle)
{
    return tell_option(port, handle, RMA2_CONN_IRQ);
}

RMA2_ERROR rma2_request_rra(RMA2_Port port, RMA2_Handle handle)
{
    return refuse_device(port, handle);
}

uint32_t rma2_get_rra(RMA2_Port port, RMA2_Handle handle)
{
    return tell_option(port, handle, RMA2_CONN_RRA);
}

RMA2_ERROR rma2_request_physical_access(RMA2_Port port, RMA2_Handle handle)
{
    return refuse_device(port, handle);
}

uint32_t rma2_get_physical_access(RMA2_Port port, RMA2_Handle handle)
{
    (void)port;
    (void)handle;
    return (uint32_t)RMA2_ERR_ERROR;
}

RMA2_ERROR rma2_request_tcs(RMA2_Port port, RMA2_Handle handle, uint32_t request_tc,
                            uint32_t response_tc)
{
    if (port && handle && (request_tc > TRAFFIC_CLASSES_ALL || response_tc > TRAFFIC_CLASSES_ALL))
        return RMA2_ERR_INV_VALUE;
    return set_options(port, handle, TRAFFIC_CLASSES_ALL | TRAFFIC_CLASSES_ALL << RESPONSE_TC_AT,
                       request_tc | response_tc << RESPONSE_TC_AT);
}

RMA2_ERROR rma2_get_tcs(RMA2_Port port, RMA2_Handle handle, uint32_t *request_tc,
                        uint32_t *response_tc)
{
    if (!port)
        return RMA2_ERR_INV_PORT;
    if (!handle)
        return RMA2_ERR_INV_HANDLE;
    if (!request_tc || !response_tc)
        return RMA2_ERR_INV_VALUE;
    *request_tc = handle->options & TRAFFIC_CLASSES_ALL;
    *response_tc = handle->options >> RESPONSE_TC_AT;
    return RMA2_SUCCESS;
}

RMA2_ERROR rma2_set_protectionid(RMA2_Port port, uint16_t id)
{
    if (!port)
        return RMA2_ERR_INV_PORT;
    return id == 0 ? RMA2_SUCCESS : RMA2_ERR_NO_DEVICE;
}
