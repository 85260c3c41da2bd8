/* SPDX-License-Identifier: Apache-2.0 */
/*
 * velo.h between two processes that mpirun starts: half round trips, and messages streamed one way,
 * as the VELO paper's NetPIPE does it on its API (section 5). MPI only brings the two together.
 *
 * Every message is checked for source, length and contents. The clock is the system's, which under
 * `velo sim` is virtual; nothing here is meant for a machine whose clock is real (velo-perf is).
 */
#include "clock.h"
#include "pattern.h"

#include <velo/velo.h>

#include <argp.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZES_MAX 64u
#define SIZE_BYTES_MAX 4096u
#define WAIT_NS (INT64_C(20) * 1000000000)
#define WARM 4u
#define VPID 9 /* Beside MPI's own port. */
#define KEY 1u

struct options {
    size_t sizes_bytes[SIZES_MAX];
    unsigned sizes_count;
    unsigned repeats;
    bool stream;
};

struct pair {
    struct velo_port *port;
    struct velo_conn *conn;
    int rank;
    uint64_t sent;
    uint64_t received;
};

static _Noreturn void fail(const char *what, const char *why)
{
    fprintf(stderr, "velo-api-perf: %s: %s\n", what, why);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static void check(const char *call, int status)
{
    if (status != VELO_OK) {
        fail(call, velo_last_error());
    }
}

/* --- the command line ------------------------------------------------------------------------ */

static const char doc[] =
    "Measure velo.h between the two ranks of a job. Start it with `velo sim -n 2`.\v"
    "MODE is latency (half round trip, value in ns) or stream (value in messages per second). "
    "Output, from rank 0, is one JSON object a size.";

static const struct argp_option argp_options[] = {
    {"sizes", 's', "LIST", 0, "message sizes in bytes, comma-separated (8)", 0},
    {"repeats", 'n', "N", 0, "round trips, or messages, of each size (100)", 0},
    {0},
};

static size_t number(struct argp_state *state, const char *text, size_t min, size_t max)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (end == text || *end || *text == '-' || value < min || value > max) {
        argp_error(state, "'%s' is not a number from %zu to %zu", text, min, max);
    }
    return value;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    char *part;
    switch (key) {
    case 's':
        for (options->sizes_count = 0; (part = strsep(&arg, ","));) {
            if (options->sizes_count == SIZES_MAX) {
                argp_error(state, "at most %u sizes", SIZES_MAX);
            }
            options->sizes_bytes[options->sizes_count++] = number(state, part, 1, SIZE_BYTES_MAX);
        }
        return 0;
    case 'n':
        options->repeats = (unsigned)number(state, arg, 1, 1000000);
        return 0;
    case ARGP_KEY_ARG:
        options->stream = strcmp(arg, "stream") == 0;
        if (state->arg_num > 0 || (!options->stream && strcmp(arg, "latency") != 0)) {
            argp_error(state, "MODE is latency or stream, not '%s'", arg);
        }
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "say what to measure: latency or stream");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* --- messages -------------------------------------------------------------------------------- */

static void send_one(struct pair *pair, size_t size_bytes)
{
    unsigned char buffer[SIZE_BYTES_MAX];
    pattern_fill(buffer, size_bytes, KEY + (unsigned)pair->rank, pair->sent++);
    check("velo_send",
          velo_send(pair->conn, buffer, size_bytes, (uint8_t)pair->sent, VELO_FOREVER));
}

static void receive_one(struct pair *pair, size_t size_bytes)
{
    unsigned char buffer[SIZE_BYTES_MAX], expected[SIZE_BYTES_MAX];
    struct velo_msg msg;
    check("velo_recv", velo_recv(pair->port, buffer, sizeof buffer, &msg, WAIT_NS));
    pattern_fill(expected, size_bytes, KEY + 1 - (unsigned)pair->rank, pair->received++);
    if (msg.len_bytes != size_bytes || msg.source != VELO_ID(1 - pair->rank, VPID) ||
        msg.tag != (uint8_t)pair->received || memcmp(buffer, expected, size_bytes) != 0) {
        fail("a message", "it is not what was sent");
    }
}

static void round_trips(struct pair *pair, size_t size_bytes, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (pair->rank == 0) {
            send_one(pair, size_bytes);
        }
        receive_one(pair, size_bytes);
        if (pair->rank == 1) {
            send_one(pair, size_bytes);
        }
    }
}

/* One way, and an answer when all are there. */
static void stream(struct pair *pair, size_t size_bytes, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (pair->rank == 0) {
            send_one(pair, size_bytes);
        } else {
            receive_one(pair, size_bytes);
        }
    }
    if (pair->rank == 0) {
        receive_one(pair, 1);
    } else {
        send_one(pair, 1);
    }
}

static void measure(struct pair *pair, const struct options *options, size_t size_bytes)
{
    void (*run)(struct pair *, size_t, unsigned) = options->stream ? stream : round_trips;
    run(pair, size_bytes, WARM);
    uint64_t begin_ns = now_ns();
    run(pair, size_bytes, options->repeats);
    double time_ns = (double)(now_ns() - begin_ns), repeats = options->repeats;
    if (pair->rank == 0) {
        printf("{\"mode\":\"%s\",\"size_bytes\":%zu,\"value\":%.6g}\n",
               options->stream ? "stream" : "latency", size_bytes,
               options->stream ? repeats * 1e9 / time_ns : time_ns / 2 / repeats);
    }
}

int main(int argc, char **argv)
{
    static const struct argp argp = {argp_options, parse_option, "MODE", doc, NULL, NULL, NULL};
    struct options options = {.sizes_bytes = {8}, .sizes_count = 1, .repeats = 100};
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct pair pair = {0};
    int ranks;
    argp_parse(&argp, argc, argv, 0, NULL, &options);
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &pair.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 2) {
        fail("ranks", "there have to be two");
    }
    attr.node = pair.rank;
    attr.vpid = VPID;
    check("velo_port_open", velo_port_open(&attr, &pair.port));
    MPI_Barrier(MPI_COMM_WORLD);
    check("velo_connect",
          velo_connect(pair.port, VELO_ID(1 - pair.rank, VPID), &pair.conn, WAIT_NS));
    for (unsigned i = 0; i < options.sizes_count; i++) {
        measure(&pair, &options, options.sizes_bytes[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    velo_port_close(pair.port);
    MPI_Finalize();
    return 0;
}
