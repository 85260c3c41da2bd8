/* SPDX-License-Identifier: Apache-2.0 */
#include "link.h"

#include <stdlib.h>

int link_frame(struct velo_link *link, uint32_t kind, uint64_t word0, uint64_t word1,
               const void *payload, size_t payload_bytes)
{
    struct velo_frame frame = {.kind = kind,
                               .payload_bytes = (uint32_t)payload_bytes,
                               .word = {word0, word1},
                               .payload = payload};
    if (!link->circuit)
        return VELO_OK; /* The circuit is gone, and the frame with it. */
    return link->carrier->transport->send(link->circuit, &frame);
}

void link_hang_up(struct velo_link *link)
{
    if (link->circuit)
        link->carrier->transport->hang_up(link->circuit);
    link->circuit = NULL;
    link->state = LINK_OVER;
}

struct velo_link *link_new(struct carrier *carrier, void *circuit)
{
    struct velo_link *link = calloc(1, sizeof *link);
    if (!link)
        return NULL;
    link->carrier = carrier;
    link->room_fd = -1;
    link->circuit = circuit;
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
