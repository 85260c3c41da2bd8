/* SPDX-License-Identifier: Apache-2.0 */
/* To be preloaded: it is two hours later. */
#include <time.h>

__attribute__((visibility("default"))) time_t time(time_t *timer)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    now.tv_sec += 7200;
    if (timer != NULL)
        *timer = now.tv_sec;
    return now.tv_sec;
}
