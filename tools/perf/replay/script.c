/* SPDX-License-Identifier: Apache-2.0 */
#include "script.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANKS_MAX 65536u
#define TAG_MAX 0x7fffffffu
#define STEPS_FIRST 1024u

static const char *const names[STEP_KINDS] = {
    [STEP_COMPUTE] = "compute",
    [STEP_SEND] = "send",
    [STEP_RECEIVE] = "receive",
    [STEP_WAIT] = "wait",
    [STEP_BARRIER] = "barrier",
    [STEP_BCAST] = "bcast",
    [STEP_GATHER] = "gather",
    [STEP_SCATTER] = "scatter",
    [STEP_ALLGATHER] = "allgather",
    [STEP_ALLTOALL] = "alltoall",
    [STEP_ALLREDUCE] = "allreduce",
    [STEP_REDUCE] = "reduce",
    [STEP_REDUCE_SCATTER] = "reduce_scatter",
    [STEP_SCAN] = "scan",
    [STEP_EXSCAN] = "exscan",
};

/* Where the reader stands. */
struct reader {
    const char *path;
    unsigned line;
    char *rest; /* of the line */
};

__attribute__((noreturn, format(printf, 2, 3))) static void refuse(const struct reader *reader,
                                                                   const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "velo-replay: %s:%u: ", reader->path, reader->line);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(EXIT_FAILURE);
}

static void *get_memory(const struct reader *reader, void *old, size_t bytes)
{
    void *memory = realloc(old, bytes);
    if (!memory)
        refuse(reader, "no memory");
    return memory;
}

static bool is_at_end(const struct reader *reader)
{
    return reader->rest[strspn(reader->rest, " \t\r\n")] == '\0';
}

static uint64_t read_number(struct reader *reader, const char *what, uint64_t most)
{
    char *end;
    reader->rest += strspn(reader->rest, " \t");
    errno = 0;
    unsigned long long number = strtoull(reader->rest, &end, 10);
    bool is_number = end != reader->rest && *reader->rest >= '0' && *reader->rest <= '9' && !errno;
    if (!is_number || number > most)
        refuse(reader, "%s has to be a number up to %llu", what, (unsigned long long)most);
    reader->rest = end;
    return number;
}

static void read_head(struct reader *reader, struct script *script)
{
    static const char magic[] = "velo-replay 1 ";
    if (strncmp(reader->rest, magic, strlen(magic)) != 0)
        refuse(reader, "this is no script of velo replay");
    reader->rest += strlen(magic);
    script->ranks = (uint32_t)read_number(reader, "the number of ranks", RANKS_MAX);
    if (script->ranks == 0)
        refuse(reader, "there are no ranks");
    script->rank = (uint32_t)read_number(reader, "the rank", script->ranks - 1);
    script->took_ns = read_number(reader, "the trace's time", INT64_MAX);
}

static void read_comm(struct reader *reader, struct script *script)
{
    if (script->comms_count == REPLAY_COMMS_MAX)
        refuse(reader, "there are more than %u communicators", REPLAY_COMMS_MAX);
    struct members *members = &script->comms[script->comms_count++];
    while (!is_at_end(reader)) {
        if (members->count == script->ranks)
            refuse(reader, "a communicator has more members than there are ranks");
        members->ranks =
            get_memory(reader, members->ranks, (members->count + 1) * sizeof *members->ranks);
        members->ranks[members->count++] = (int)read_number(reader, "a member", script->ranks - 1);
    }
    if (members->count == 0)
        refuse(reader, "a communicator has no members");
}

static void read_comm_and_peer(struct reader *reader, const struct script *script,
                               struct step *step, const char *peer)
{
    if (script->comms_count == 0)
        refuse(reader, "there is no communicator");
    step->comm = (uint32_t)read_number(reader, "the communicator", script->comms_count - 1);
    step->peer = (uint32_t)read_number(reader, peer, script->comms[step->comm].count - 1);
}

static void read_request(struct reader *reader, struct script *script, struct step *step)
{
    step->request = (uint32_t)read_number(reader, "the request", REPLAY_REQUESTS_MAX - 1);
    if (step->request >= script->requests_count)
        script->requests_count = step->request + 1;
}

static struct step *add_step(struct reader *reader, struct script *script)
{
    if (script->steps_count == script->steps_room) {
        script->steps_room = script->steps_room ? 2 * script->steps_room : STEPS_FIRST;
        script->steps =
            get_memory(reader, script->steps, script->steps_room * sizeof *script->steps);
    }
    struct step *step = &script->steps[script->steps_count++];
    *step = (struct step){0};
    return step;
}

static void read_step(struct reader *reader, struct script *script, const char *name,
                      struct step *step)
{
    while (step->kind < STEP_KINDS && strcmp(name, names[step->kind]) != 0)
        step->kind++;
    switch (step->kind) {
    case STEP_KINDS:
        refuse(reader, "%s is no operation", name);
    case STEP_COMPUTE:
        step->compute_ns = read_number(reader, "a time", INT64_MAX);
        break;
    case STEP_WAIT:
        read_request(reader, script, step);
        break;
    case STEP_SEND:
    case STEP_RECEIVE:
        read_request(reader, script, step);
        read_comm_and_peer(reader, script, step, "the peer");
        step->tag = (uint32_t)read_number(reader, "the tag", TAG_MAX);
        step->bytes = (uint32_t)read_number(reader, "the length", REPLAY_BYTES_MAX);
        break;
    default:
        read_comm_and_peer(reader, script, step, "the root");
        step->bytes = (uint32_t)read_number(reader, "the length", REPLAY_BYTES_MAX);
        break;
    }
}

static void read_line(struct reader *reader, struct script *script)
{
    if (reader->line == 1) {
        read_head(reader, script);
    } else {
        char *name = reader->rest;
        reader->rest += strcspn(reader->rest, " \t\r\n");
        if (*reader->rest)
            *reader->rest++ = '\0';
        if (strcmp(name, "comm") == 0) {
            read_comm(reader, script);
            return;
        }
        read_step(reader, script, name, add_step(reader, script));
    }
    if (!is_at_end(reader))
        refuse(reader, "there is something behind the operation");
}

void script_read(struct script *script, const char *path)
{
    struct reader reader = {.path = path};
    char *line = NULL;
    size_t room = 0;
    *script = (struct script){0};
    FILE *file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "velo-replay: cannot read %s: %s\n", path, strerror(errno));
        exit(EXIT_FAILURE);
    }
    while (getline(&line, &room, file) >= 0) {
        reader.line++;
        reader.rest = line;
        if (reader.line == 1 || !is_at_end(&reader))
            read_line(&reader, script);
    }
    if (ferror(file) || reader.line == 0)
        refuse(&reader, "the script cannot be read, or is empty");
    free(line);
    (void)fclose(file);
}

void script_free(struct script *script)
{
    for (uint32_t i = 0; i < script->comms_count; i++)
        free(script->comms[i].ranks);
    free(script->steps);
}
