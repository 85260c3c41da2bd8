/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Near or far: two looks at the raw line classify the batch between them. Half a round trip takes
 * 40 to 80 ns between cores that share a cache and 200 ns between others.
 */
#ifndef VELO_BENCH_HOP_H
#define VELO_BENCH_HOP_H

#include <stdbool.h>

#define HOP_NEAR_NS 110.0
/* Both looks near, or both far, is not enough: cores that share a core's caches are faster still
 * than near ones, and moves among those show as a step of the raw line. */
#define HOP_STEADY_RATIO 1.5

static inline bool hop_is_near(double hop_ns, double near_ns) { return hop_ns < near_ns; }

/* False: the cores moved, and the batch says nothing. */
static inline bool hop_is_steady(double before_ns, double after_ns, double near_ns)
{
    double low = before_ns < after_ns ? before_ns : after_ns;
    double high = before_ns < after_ns ? after_ns : before_ns;
    return hop_is_near(before_ns, near_ns) == hop_is_near(after_ns, near_ns) &&
           high <= HOP_STEADY_RATIO * low;
}

#endif
