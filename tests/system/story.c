/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

enum { KEPT = 1 << 14, SHOWN = 40, LINE_BYTES = 320 };

struct line {
    uint64_t step;
    uint32_t about;  /* Ids, as bits. */
    bool is_routine; /* Not worth telling, unless something came of it. */
    char text[LINE_BYTES];
};

static struct line *lines;
static uint64_t lines_len;

void story_begin(void)
{
    if (lines == NULL)
        lines = calloc(KEPT, sizeof *lines);
    if (lines == NULL)
        abort();
    lines_len = 0;
}

static uint32_t bit_of(const struct generation *generation)
{
    return generation ? UINT32_C(1) << generation->vpid : 0;
}

static void finish(const struct line *line)
{
    if (run.options->is_verbose)
        printf("%8llu  %s\n", (unsigned long long)line->step, line->text);
}

void story_step(const struct generation *one, const struct generation *other, const char *format,
                ...)
{
    va_list args;

    if (lines_len > 0 && lines[(lines_len - 1) % KEPT].is_routine)
        lines_len--;
    else if (lines_len > 0)
        finish(&lines[(lines_len - 1) % KEPT]);
    struct line *line = &lines[lines_len++ % KEPT];
    line->step = run.step;
    line->is_routine = run.is_quiet;
    line->about = bit_of(one) | bit_of(other);
    va_start(args, format);
    (void)vsnprintf(line->text, sizeof line->text, format, args);
    va_end(args);
}

void story_outcome(const char *format, ...)
{
    struct line *line = &lines[(lines_len - 1) % KEPT];
    size_t len = strlen(line->text);
    va_list args;

    line->is_routine = false;
    va_start(args, format);
    (void)vsnprintf(line->text + len, sizeof line->text - len, format, args);
    va_end(args);
}

void story_status(int status)
{
    struct line *line = &lines[(lines_len - 1) % KEPT];
    bool was_routine = line->is_routine;

    story_outcome(": %s", status_name(status));
    line->is_routine = was_routine;
}

const char *name_of(const struct generation *generation)
{
    static char names[8][64];
    static unsigned next;
    char *name = names[next++ % 8];

    if (generation == NULL)
        return "nobody";
    (void)snprintf(name, sizeof names[0], "port %u (generation %u)", generation->vpid,
                   generation->number);
    return name;
}

const char *status_name(int status)
{
    static char names[8][32];
    static unsigned next;
    char *name = names[next++ % 8];
    const char *text = velo_strerror(status);

    (void)snprintf(name, sizeof names[0], "%.*s", (int)strcspn(text, ":"), text);
    return name;
}

static void show_story(uint32_t about)
{
    uint64_t first = lines_len > KEPT ? lines_len - KEPT : 0;
    uint64_t from = lines_len;

    for (unsigned count = 0; from > first && count < SHOWN; from--)
        count += lines[(from - 1) % KEPT].about == 0 || (lines[(from - 1) % KEPT].about & about);
    fprintf(stderr, "\nWhat happened before with the ports concerned:\n");
    for (; from < lines_len; from++) {
        const struct line *line = &lines[from % KEPT];
        if (line->about == 0 || (line->about & about))
            fprintf(stderr, "%8llu  %s\n", (unsigned long long)line->step, line->text);
    }
}

void fail_run(const struct generation *one, const struct generation *other, const char *format, ...)
{
    static const char *const only[] = {" --only messages", " --only queues", " --only memory",
                                       " --only edges"};
    const struct options *options = run.options;
    uint32_t about = bit_of(one) | bit_of(other);
    va_list args;

    fflush(stdout);
    fprintf(stderr, "\nvelo-system: seed %llu, step %llu: ", (unsigned long long)run.seed,
            (unsigned long long)run.step);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    show_story(about ? about : UINT32_MAX);
    fprintf(stderr, "\nAgain: velo-system --seed %llu --steps %u%s", (unsigned long long)run.seed,
            options->steps, options->is_calm ? " --calm" : "");
    for (uint32_t i = 0; i < ARRAY_LEN(only) && options->families != ALL; i++)
        if (options->families & 1u << i)
            fputs(only[i], stderr);
    for (uint32_t i = 0; i < options->without_len; i++)
        fprintf(stderr, " --without %s", options->without[i]);
    fputc('\n', stderr);
    stage_abandon();
    exit(1);
}
