/* SPDX-License-Identifier: Apache-2.0 */
/** @file patience.h @brief How long a peer may be silent. */
#ifndef VELO_TRANSPORT_PATIENCE_H
#define VELO_TRANSPORT_PATIENCE_H

#include "../../lib/net/transport.h"

struct patience {
    int64_t timeout_ns; /* A peer that is silent for so long is lost. */
    int64_t tick_ns;    /* Peers are looked after this often: a tenth of that, a second at most. */
};

/** Read an environment variable, in milliseconds; 10 s if it is not set. VELO_ERR_ARG: it makes no
 *  sense. */
int patience_read(struct patience *patience, const char *variable,
                  const struct velo_transport_calls *calls);

/** Whether a peer was heard lately, and for how long it has been silent. */
struct hearing {
    bool was_heard; /* Since the last tick. */
    uint32_t silent_ticks;
};

/** A tick has gone by: for how many has the peer been silent? */
static inline uint32_t hearing_tick(struct hearing *hearing)
{
    hearing->silent_ticks = hearing->was_heard ? 0 : hearing->silent_ticks + 1;
    hearing->was_heard = false;
    return hearing->silent_ticks;
}

static inline uint32_t patience_ticks(const struct patience *patience)
{
    return (uint32_t)(patience->timeout_ns / patience->tick_ns);
}

#endif
