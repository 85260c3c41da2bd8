/* SPDX-License-Identifier: Apache-2.0 */
#include "patience.h"

#include <stdlib.h>

#include "timer.h"

#define TIMEOUT_MS_DEFAULT 10000
#define TIMEOUT_MS_MIN 100
#define TIMEOUT_MS_MAX 3600000
#define TICKS 10
#define TICK_NS_MAX (1000 * NS_PER_MS)

int patience_read(struct patience *patience, const char *variable,
                  const struct velo_transport_calls *calls)
{
    const char *text = getenv(variable);
    char *end = NULL;
    bool is_set = text && *text;
    long timeout_ms = is_set ? strtol(text, &end, 10) : TIMEOUT_MS_DEFAULT;
    if (is_set && (*end || timeout_ms < TIMEOUT_MS_MIN || timeout_ms > TIMEOUT_MS_MAX))
        return calls->fail(VELO_ERR_ARG, "%s is '%.20s'; give %d to %d", variable, text,
                           TIMEOUT_MS_MIN, TIMEOUT_MS_MAX);
    patience->timeout_ns = timeout_ms * NS_PER_MS;
    patience->tick_ns = patience->timeout_ns / TICKS;
    if (patience->tick_ns > TICK_NS_MAX)
        patience->tick_ns = TICK_NS_MAX;
    return VELO_OK;
}
