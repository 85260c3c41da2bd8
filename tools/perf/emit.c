/* SPDX-License-Identifier: Apache-2.0 */
#include "emit.h"

#include "json.h"
#include "machine.h"

#include <velo/velo.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void line_end(void)
{
    fputs("}\n", stdout);
    if (fflush(stdout) != 0) {
        fprintf(stderr, "velo-perf: cannot write the output: %s\n", strerror(errno));
        _exit(EXIT_FAILED);
    }
}

void emit_meta(const struct options *options)
{
    fputs("{\"type\":\"meta\",\"version\":", stdout);
    json_string(stdout, velo_version());
    printf(",\"mode\":\"%s\",\"cpus\":[", mode_name(options->mode));
    for (unsigned i = 0; i < options->cpus_count; i++) {
        printf("%s%u", i ? "," : "", options->cpus[i]);
    }
    fputs("],\"cpu_model\":", stdout);
    char model[MACHINE_TEXT_BYTES];
    json_string(stdout, machine_cpu_model(model));
    printf(
        ",\"pairs\":%u,\"threads\":%u,\"processes\":%u,\"tokens\":%u,\"batches\":%u,\"iters\":%u",
        options->pairs, options->threads, options_ranks(options), options->tokens, options->batches,
        options->iters);
    printf(",\"near_ns\":%g,\"seed\":%llu,\"poll\":%s,\"in_place\":%s,\"domain\":\"%s\"",
           options->near_ns, (unsigned long long)options->seed, options->poll ? "true" : "false",
           options->in_place ? "true" : "false", options->domain);
    line_end();
}

void emit_plan(unsigned samples)
{
    printf("{\"type\":\"plan\",\"samples\":%u", samples);
    line_end();
}

static void emit_extras(const struct extra *extra, unsigned count)
{
    fputs(",\"extra\":{", stdout);
    for (unsigned i = 0; i < count; i++) {
        printf("%s\"%s\":%.6g", i ? "," : "", extra[i].name, extra[i].value);
    }
    fputc('}', stdout);
}

void emit_sample(const struct options *options, const struct sample *sample)
{
    printf("{\"type\":\"sample\",\"mode\":\"%s\",\"metric\":\"%s\",\"size_bytes\":%zu",
           mode_name(options->mode), sample->metric, sample->size_bytes);
    printf(",\"pairs\":%u,\"threads\":%u,\"senders\":%u,\"batch\":%u,\"value\":%.6g",
           options->pairs, options->threads, sample->senders, sample->batch, sample->value);
    printf(",\"limit_name\":\"%s\",\"limit_before\":%.6g,\"limit_after\":%.6g", sample->limit_name,
           sample->limit_before, sample->limit_after);
    printf(",\"near\":%s", sample->near ? "true" : "false");
    emit_extras(sample->extra, sample->extra_count);
    line_end();
}

void emit_result(const struct options *options, const char *metric, double value,
                 const struct extra *extra)
{
    printf("{\"type\":\"result\",\"mode\":\"%s\",\"metric\":\"%s\",\"value\":%.6g",
           mode_name(options->mode), metric, value);
    emit_extras(extra, 1);
    line_end();
}

void emit_error(const char *message)
{
    fputs("{\"type\":\"error\",\"message\":", stdout);
    json_string(stdout, message);
    line_end();
}

void emit_end(unsigned dropped)
{
    printf("{\"type\":\"end\",\"ok\":true,\"dropped\":%u", dropped);
    line_end();
}
