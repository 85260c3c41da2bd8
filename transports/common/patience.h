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

static inline uint32_t patience_ticks(const struct patience *patience)
{
    return (uint32_t)(patience->timeout_ns / patience->tick_ns);
}

#endif
