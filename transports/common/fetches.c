/* SPDX-License-Identifier: Apache-2.0 */
#include "fetches.h"

#include <stdlib.h>

#include <velo/velo.h>

void fetches_add(struct fetch_base **fetches, struct fetch_base *fetch)
{
    *fetch->outcome = VELO_AGAIN;
    while (*fetches)
        fetches = &(*fetches)->next;
    *fetches = fetch;
}

void fetch_settle(struct fetch_base *fetch, int status)
{
    if (fetch->outcome)
        *fetch->outcome = status;
    fetch->outcome = NULL;
}

void fetches_sweep(struct fetch_base **fetches)
{
    while (*fetches) {
        struct fetch_base *fetch = *fetches;
        if (fetch->outcome || fetch->parts > 0) {
            fetches = &fetch->next;
            continue;
        }
        *fetches = fetch->next;
        free(fetch);
    }
}
