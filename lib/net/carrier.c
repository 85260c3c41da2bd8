/* SPDX-License-Identifier: Apache-2.0 */
#include "carrier.h"

#include "held.h"

struct carrier *carrier_to(const struct velo_port *port, velo_id_t peer)
{
    uint32_t index = network_route(port->network, port->id, peer);
    struct carrier *carrier = index == NETWORK_SHM ? NULL : carriers_of(port)->first;
    while (carrier && carrier->index != index)
        carrier = carrier->next;
    return carrier;
}

void carrier_release(struct carrier *carrier)
{
    if (!order_flag(&carrier->held))
        return;
    order_set_flag(&carrier->held, 0);
    held_remove();
}

void carrier_sent(struct carrier *carrier)
{
    if (!carrier->transport->sent)
        return;
    bool is_held = carrier->transport->sent(carrier->endpoint);
    if (is_held && !order_flag(&carrier->held)) {
        order_set_flag(&carrier->held, 1);
        order_set_flag(&carrier->held_is_due, held_add());
    } else if (!is_held) {
        carrier_release(carrier);
    }
}

bool carriers_arm(struct carriers *carriers)
{
    bool is_armed = true;
    for (struct carrier *carrier = carriers->first; carrier; carrier = carrier->next) {
        if (!carrier->transport->arm)
            continue;
        pthread_mutex_lock(&carrier->lock);
        is_armed &= carrier->transport->arm(carrier->endpoint);
        pthread_mutex_unlock(&carrier->lock);
    }
    return is_armed;
}
