/* SPDX-License-Identifier: Apache-2.0 */
#include "inside.h"

#include "../base/compiler.h"
#include "../base/error.h"
#include "../base/order.h"

/* Found without a call that could allocate: a handler may be the first to touch them. */
#define OF_THREAD static _Thread_local __attribute__((tls_model("initial-exec")))
OF_THREAD uint32_t is_inside;
/* The address of the first put_off; each leads to the next. Handlers add to this list at any time.
 */
OF_THREAD uint64_t list;

static struct put_off *to_pointer(uint64_t address)
{
    return (struct put_off *)(uintptr_t)address; // NOLINT(performance-no-int-to-ptr)
}

bool inside_enter(void) { return order_use_alone(&is_inside); }

static void carry_all(void)
{
    struct put_off *next;
    for (struct put_off *one = to_pointer(order_take(&list)); one; one = next) {
        next = one->next;
        order_set_flag(&one->is_listed, 0); /* From here on a handler puts it off once more. */
        one->carry(one);
    }
}

void inside_leave(void)
{
    do {
        if (unlikely(order_listed(&list)))
            carry_all();
        order_set_flag(&is_inside, 0);
        /* A handler may have run since the look at the list. */
    } while (unlikely(order_listed(&list)) && order_use_alone(&is_inside));
}

void inside_put_off(struct put_off *put_off)
{
    uint64_t first;
    if (!order_use_alone(&put_off->is_listed))
        return;
    do {
        first = order_listed(&list);
        put_off->next = to_pointer(first);
    } while (!order_claim_entry(&list, first, (uintptr_t)put_off));
}

int inside_refuse(void)
{
    return velo_fail(VELO_ERR_STATE,
                     "a signal handler has interrupted a call that uses the network: it can send "
                     "there, and not wait, connect or close");
}
