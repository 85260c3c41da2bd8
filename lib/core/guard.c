/* SPDX-License-Identifier: Apache-2.0 */
#include "guard.h"

#ifdef VELO_GUARDS

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "../base/order.h"

static _Noreturn void end(const char *call, const char *what)
{
    (void)fprintf(stderr,
                  "velo: %s() on a %s that is in use: a signal handler, or a second thread, needs "
                  "one of its own\n",
                  call, what);
    abort();
}

uint32_t *guard_enter(uint32_t *in_use, const char *call, const char *what)
{
    if (in_use && !order_use_alone(in_use))
        end(call, what);
    return in_use;
}

void guard_leave(uint32_t **in_use)
{
    if (*in_use)
        order_set_flag(*in_use, 0);
}

void guard_look(const uint32_t *in_use, const char *call, const char *what)
{
    if (in_use && order_flag(in_use) != 0)
        end(call, what);
}

#else

/* C does not allow an empty file. */
typedef int guard_nothing;

#endif
