/* SPDX-License-Identifier: Apache-2.0 */
#include "link.h"

#include <stdlib.h>

#include "../base/error.h"
#include "link_end.h"
#include "names.h"

int link_frame(struct velo_link *link, uint32_t kind, uint64_t word0, uint64_t word1,
               const void *payload, size_t payload_bytes)
{
    struct velo_frame frame = {.kind = kind,
                               .payload_bytes = (uint32_t)payload_bytes,
                               .word = {word0, word1},
                               .payload = payload};
    if (!link->line)
        return VELO_OK; /* The line is gone, and the frame with it. */
    return link->carrier->transport->send(link->line, &frame);
}

void link_hang_up(struct velo_link *link)
{
    if (link->line)
        link->carrier->transport->hang_up(link->line);
    link->line = NULL;
    link->state = LINK_OVER;
}

struct velo_link *link_new(struct carrier *carrier, void *line)
{
    struct velo_link *link = calloc(1, sizeof *link);
    if (!link)
        return NULL;
    link->carrier = carrier;
    link->line = line;
    link->next = carrier->links;
    carrier->links = link;
    return link;
}

void link_free(struct velo_link *link)
{
    struct velo_link **at = &link->carrier->links;
    while (*at != link)
        at = &(*at)->next;
    *at = link->next;
    link_hang_up(link);
    outgoing_remove(link->carrier->port->segment, link->shown);
    if (link->segment)
        seg_put(link->segment);
    free(link);
}

struct velo_link *link_next(const struct velo_link *link) { return link->next; }

void links_sweep(struct carrier *carrier)
{
    struct velo_link *next;
    for (struct velo_link *link = carrier->links; link; link = next) {
        next = link->next;
        if (link->state == LINK_OVER && !link->is_kept)
            link_free(link);
    }
}

bool link_push(struct velo_link *link)
{
    if (link->state == LINK_OVER)
        return true;
    return link->is_outgoing ? link_out_push(link) : link_in_push(link);
}

/* Nothing tells when there is room: the flag lets progress() look again, which clears it. */
void link_push_soon(struct velo_link *link)
{
    if (!link_push(link))
        order_set_flag(&link->carrier->pending, 1);
}

bool link_is_done(const struct velo_link *link) { return link->state != LINK_LEAVING; }

void link_close(struct velo_link *link)
{
    if (link->is_outgoing)
        link_hang_up(link);
    else
        link_in_close(link);
}

/* ---- what a transport calls ------------------------------------------------------------------ */

static struct velo_link *line_rang(void *owner, void *line)
{
    struct carrier *carrier = owner;
    return carrier->is_closing ? NULL : link_new(carrier, line);
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

static void line_lost(struct velo_link *link, int status)
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

const struct velo_transport_calls link_calls = {.line_rang = line_rang,
                                                .frame_came = frame_came,
                                                .line_lost = line_lost,
                                                .fail = velo_fail,
                                                .count_refused = count_refused,
                                                .host_of = host_of,
                                                .find_name = find_name,
                                                .node_of = node_of};
