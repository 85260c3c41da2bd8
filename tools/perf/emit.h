/* SPDX-License-Identifier: Apache-2.0 */
/* The output: one JSON object a line, each written at once. */
#ifndef VELO_BENCH_EMIT_H
#define VELO_BENCH_EMIT_H

#include "options.h"

#include <stdbool.h>
#include <stddef.h>

struct extra {
    const char *name;
    double value;
};

struct sample {
    const char *metric;
    size_t size_bytes;
    unsigned senders;
    unsigned batch;
    double value;
    const char *limit_name;
    double limit_before;
    double limit_after;
    bool near;
    struct extra extra[3];
    unsigned extra_count;
};

void emit_meta(const struct options *options);
void emit_plan(unsigned samples);
void emit_sample(const struct options *options, const struct sample *sample);
void emit_result(const struct options *options, const char *metric, double value,
                 const struct extra *extra);
void emit_error(const char *message);
void emit_end(unsigned dropped);

#endif
