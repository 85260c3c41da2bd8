/* SPDX-License-Identifier: Apache-2.0 */
#include "port.h"

#include <errno.h>

#include "../base/cancel.h"
#include "../base/error.h"
#include "../base/fork.h"
#include "../base/sized.h"
#include "../shm/wait.h"

void port_interrupts_unit(struct velo_port *port, struct velo_port *unit)
{
    order_set_flag(&port->unit_interrupted, 0);
    unit->interrupt = &port->unit_interrupted;
    order_show(&port->unit_generation, unit->segment->generation);
    order_show(&port->unit_word, (uintptr_t)&unit->shared->summary);
}

void port_has_no_unit(struct velo_port *port) { order_show(&port->unit_word, 0); }

/* Another thread may be closing the unit. So nothing of it is read or written here: its waits look
 * at a flag of this port, and the kernel takes an address and a name that may be gone. */
static void interrupt_unit(struct velo_port *port)
{
    const uint32_t *word = (const uint32_t *)(uintptr_t)order_counter(&port->unit_word);
    order_set_flag(&port->unit_interrupted, 1);
    if (!word)
        return;
    wait_wake(word);
    doorbell_ring(port->segment->path, (uint32_t)order_counter(&port->unit_generation));
}

void velo_port_interrupt(struct velo_port *port)
{
    int error = errno; /* Of what a signal handler has interrupted. */
    order_set_flag(&port->interrupted, 1);
    interrupt_unit(port);
    /* No sender set this bit: it makes the sleeper's compare fail, so that it looks. */
    order_ring_summary(&port->shared->summary, 1);
    seg_wake_owner(port->segment);
    errno = error;
}

cold_path bool port_net_progress(struct velo_port *port)
{
    if (!fork_is_ours(port->process))
        return false;
    if (!port_enter_net(port))
        return false;
    CANCEL_LATER();
    bool any = port->net->progress(port);
    port_leave_net(port);
    return any;
}

velo_id_t velo_port_id(const struct velo_port *port) { return port->id; }

uint32_t velo_port_generation(const struct velo_port *port) { return port->segment->generation; }

int velo_port_counters(struct velo_port *port, struct velo_port_counters *counters,
                       size_t counters_bytes)
{
    if (!port || !counters)
        return velo_fail(VELO_ERR_ARG, "port or counters is NULL");
    pthread_mutex_lock(&port->conns_lock);
    struct velo_port_counters now = port->closed;
    for (const struct velo_conn *conn = port->conns; conn; conn = conn->next) {
        const struct seg_ring *ring = conn->tx.shared;
        now.tx_msgs += ring_tx_msgs(&conn->tx);
        now.tx_bytes += ring_tx_bytes(&conn->tx);
        now.tx_again += order_counter(&ring->tx_again);
        now.tx_sleeps += order_counter(&ring->tx_sleeps);
        now.tx_conns++;
    }
    pthread_mutex_unlock(&port->conns_lock);
    now.rx_msgs = order_counter(&port->messages);
    now.rx_bytes = order_counter(&port->bytes);
    now.rx_doorbells = order_counter(&port->shared->rx_doorbells);
    now.rx_sleeps = order_counter(&port->shared->rx_sleeps);
    now.rx_errors = order_counter(&port->shared->rx_errors);
    now.rx_conns = order_counter(&port->shared->rx_conns);
    now.rx_reclaimed = order_counter(&port->shared->rx_reclaimed);
    sized_give(counters, counters_bytes, &now, sizeof now);
    return VELO_OK;
}
