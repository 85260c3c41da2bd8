/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <stdlib.h>

#define TIMEOUT_MS_DEFAULT 10000
#define TIMEOUT_MS_MIN 100
#define TIMEOUT_MS_MAX 3600000
#define NS_PER_MS INT64_C(1000000)
#define TICKS 10
#define TICK_NS_MAX (1000 * NS_PER_MS)

int settings_read(struct settings *settings, const struct velo_transport_calls *calls)
{
    const char *text = getenv("VELO_CARD_TIMEOUT_MS");
    char *end = NULL;
    bool is_set = text && *text;
    long timeout_ms = is_set ? strtol(text, &end, 10) : TIMEOUT_MS_DEFAULT;
    if (is_set && (*end || timeout_ms < TIMEOUT_MS_MIN || timeout_ms > TIMEOUT_MS_MAX))
        return calls->fail(VELO_ERR_ARG, "VELO_CARD_TIMEOUT_MS is '%.20s'; give %d to %d", text,
                           TIMEOUT_MS_MIN, TIMEOUT_MS_MAX);
    settings->timeout_ns = timeout_ms * NS_PER_MS;
    settings->tick_ns = settings->timeout_ns / TICKS;
    if (settings->tick_ns > TICK_NS_MAX)
        settings->tick_ns = TICK_NS_MAX;
    return VELO_OK;
}
