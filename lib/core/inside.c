/* SPDX-License-Identifier: Apache-2.0 */
#include "inside.h"

#include "../base/error.h"
#include "port.h"

/* Found without a call that could allocate: a handler may be the first to touch them. */
#define OF_THREAD static _Thread_local __attribute__((tls_model("initial-exec")))
OF_THREAD uint32_t is_inside;
OF_THREAD uint64_t put_off; /* A list of connections, changed by handlers at any time. */

bool inside_enter(const struct velo_port *port)
{
    return port->net->carries_all || order_use_alone(&is_inside);
}

static void carry_all(void)
{
    struct velo_conn *next;
    for (struct velo_conn *conn = (struct velo_conn *)(uintptr_t)order_take(&put_off); conn;
         conn = next) {
        next = conn->put_off_next;
        order_set_flag(&conn->is_put_off, 0); /* From here on a handler puts it off once more. */
        conn->carry(conn);
    }
}

void inside_leave(const struct velo_port *port)
{
    if (port->net->carries_all)
        return;
    do {
        if (order_listed(&put_off))
            carry_all();
        order_set_flag(&is_inside, 0);
        /* A handler may have run since the look at the list. */
    } while (unlikely(order_listed(&put_off)) && order_use_alone(&is_inside));
}

void inside_put_off(struct velo_conn *conn)
{
    uint64_t first;
    if (!order_use_alone(&conn->is_put_off))
        return;
    do {
        first = order_listed(&put_off);
        conn->put_off_next =
            (struct velo_conn *)(uintptr_t)first; // NOLINT(performance-no-int-to-ptr)
    } while (!order_claim_entry(&put_off, first, (uintptr_t)conn));
}

int inside_refuse(void)
{
    return velo_fail(VELO_ERR_STATE,
                     "a signal handler has interrupted a call that uses the network: it can send "
                     "there, and not wait, connect or close");
}
