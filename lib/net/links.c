/* SPDX-License-Identifier: Apache-2.0 */
#include "links.h"

#include "../base/error.h"
#include "link.h"
#include "link_in.h"
#include "link_out.h"
#include "names.h"

static bool push_link(struct velo_link *link)
{
    if (link->state == LINK_OVER)
        return true;
    return link->is_outgoing ? link_out_push(link) : link_in_push(link);
}

bool links_push(struct carrier *carrier)
{
    bool is_pushed = true;
    for (struct velo_link *link = carrier->links; link; link = link->next)
        is_pushed &= push_link(link);
    return is_pushed;
}

void links_close(struct carrier *carrier)
{
    for (struct velo_link *link = carrier->links; link; link = link->next)
        if (link->is_outgoing)
            link_hang_up(link);
        else
            link_in_close(link);
}

bool links_are_done(const struct carrier *carrier)
{
    const struct velo_link *link = carrier->links;
    while (link && link->state != LINK_LEAVING)
        link = link->next;
    return !link;
}

void links_sweep(struct carrier *carrier)
{
    struct velo_link *next;
    for (struct velo_link *link = carrier->links; link; link = next) {
        next = link->next;
        if (link->state == LINK_OVER && !link->is_kept)
            link_free(link);
    }
}

void links_free(struct carrier *carrier)
{
    while (carrier->links)
        link_free(carrier->links);
}

/* ---- what a transport calls ------------------------------------------------------------------ */

static struct velo_link *circuit_rang(void *owner, void *circuit)
{
    struct carrier *carrier = owner;
    return carrier->is_closing ? NULL : link_new(carrier, circuit);
}

static void frame_came(struct velo_link *link, const struct velo_frame *frame)
{
    if (link->state == LINK_OVER)
        return;
    if (link->is_outgoing)
        link_out_take(link, frame);
    else
        link_in_take(link, frame);
}

static void room_came(struct velo_link *link) { link_note_pushed(link, push_link(link)); }

static void circuit_lost(struct velo_link *link, int status)
{
    if (link->state == LINK_OVER)
        link_hang_up(link);
    else if (link->is_outgoing)
        link_out_end(link, status);
    else
        link_in_end(link, status);
}

static void count_refused(void *owner, uint64_t count)
{
    const struct carrier *carrier = owner;
    order_count(&carrier->port->shared->rx_errors, count);
}

static const char *host_of(void *owner, velo_id_t id, uint32_t *service)
{
    const struct carrier *carrier = owner;
    return network_host(carrier->port->network, id, service);
}

static int find_name(void *owner, velo_id_t peer, struct velo_port_shown *shown)
{
    const struct carrier *carrier = owner;
    return names_find(carrier->port, peer, shown);
}

static uint32_t node_of(void *owner, velo_id_t id)
{
    const struct carrier *carrier = owner;
    return network_node(carrier->port->network, id);
}

const struct velo_transport_calls link_calls = {.circuit_rang = circuit_rang,
                                                .frame_came = frame_came,
                                                .room_came = room_came,
                                                .circuit_lost = circuit_lost,
                                                .fail = velo_fail,
                                                .count_refused = count_refused,
                                                .host_of = host_of,
                                                .find_name = find_name,
                                                .node_of = node_of};
