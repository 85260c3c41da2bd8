/* SPDX-License-Identifier: Apache-2.0 */
/*
 * velo-replay FOLDER: each rank does what FOLDER/rank.N says. It is an MPI program like any other:
 * on simulated nodes the time between two operations is virtual, elsewhere it is slept through.
 *
 * Messages have no content, and are received from whom the trace had them from. The program ends
 * with one line from rank 0: what was replayed, how long it took, how long the trace took.
 */
#include "script.h"

#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_PER_S 1000000000u

/* A message under way, and memory for it, which is kept for the next one. */
struct slot {
    MPI_Request request;
    unsigned char *memory;
    size_t room_bytes;
};

struct replay {
    struct script script;
    MPI_Comm comms[REPLAY_COMMS_MAX];
    struct slot *slots; /* by number of request */
    struct slot out;    /* of collective operations; they have no request */
    struct slot in;
    uint64_t messages;
    uint64_t collectives;
};

static void *get_memory(size_t count, size_t bytes)
{
    void *memory = calloc(count > 0 ? count : 1, bytes);
    if (!memory) {
        fprintf(stderr, "velo-replay: no memory for %zu bytes\n", count * bytes);
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
        exit(EXIT_FAILURE);
    }
    return memory;
}

static unsigned char *memory_of(struct slot *slot, size_t bytes)
{
    if (bytes > slot->room_bytes) {
        free(slot->memory);
        slot->memory = get_memory(1, bytes);
        slot->room_bytes = bytes;
    }
    return slot->memory;
}

static void compute(uint64_t ns)
{
    struct timespec left = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
    while (nanosleep(&left, &left) != 0)
        continue;
}

static void begin_message(struct replay *replay, const struct step *step)
{
    struct slot *slot = &replay->slots[step->request];
    MPI_Comm comm = replay->comms[step->comm];
    int bytes = (int)step->bytes, peer = (int)step->peer, tag = (int)step->tag;
    if (slot->request != MPI_REQUEST_NULL) {
        fprintf(stderr, "velo-replay: request %u is begun twice\n", step->request);
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    unsigned char *memory = memory_of(slot, step->bytes);
    if (step->kind == STEP_SEND) {
        MPI_Isend(memory, bytes, MPI_BYTE, peer, tag, comm, &slot->request);
        replay->messages++;
    } else {
        MPI_Irecv(memory, bytes, MPI_BYTE, peer, tag, comm, &slot->request);
    }
}

static void take_part(struct replay *replay, const struct step *step)
{
    MPI_Comm comm = replay->comms[step->comm];
    size_t ranks = replay->script.comms[step->comm].count;
    int bytes = (int)step->bytes, root = (int)step->peer;
    /* A block for each rank, though not each operation has so many. */
    unsigned char *out = memory_of(&replay->out, ranks * step->bytes);
    unsigned char *in = memory_of(&replay->in, ranks * step->bytes);
    replay->collectives++;
    switch (step->kind) {
    case STEP_BARRIER:
        MPI_Barrier(comm);
        break;
    case STEP_BCAST:
        MPI_Bcast(out, bytes, MPI_BYTE, root, comm);
        break;
    case STEP_GATHER:
        MPI_Gather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, root, comm);
        break;
    case STEP_SCATTER:
        MPI_Scatter(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, root, comm);
        break;
    case STEP_ALLGATHER:
        MPI_Allgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, comm);
        break;
    case STEP_ALLTOALL:
        MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, comm);
        break;
    case STEP_ALLREDUCE:
        MPI_Allreduce(out, in, bytes, MPI_BYTE, MPI_BOR, comm);
        break;
    case STEP_REDUCE:
        MPI_Reduce(out, in, bytes, MPI_BYTE, MPI_BOR, root, comm);
        break;
    case STEP_REDUCE_SCATTER:
        MPI_Reduce_scatter_block(out, in, bytes, MPI_BYTE, MPI_BOR, comm);
        break;
    case STEP_SCAN:
        MPI_Scan(out, in, bytes, MPI_BYTE, MPI_BOR, comm);
        break;
    default:
        MPI_Exscan(out, in, bytes, MPI_BYTE, MPI_BOR, comm);
        break;
    }
}

static void do_step(struct replay *replay, const struct step *step)
{
    switch (step->kind) {
    case STEP_COMPUTE:
        compute(step->compute_ns);
        break;
    case STEP_SEND:
    case STEP_RECEIVE:
        begin_message(replay, step);
        break;
    case STEP_WAIT:
        MPI_Wait(&replay->slots[step->request].request, MPI_STATUS_IGNORE);
        break;
    default:
        take_part(replay, step);
        break;
    }
}

/* All ranks make all communicators, in the same order. */
static void make_comms(struct replay *replay)
{
    MPI_Group world;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    for (uint32_t i = 0; i < replay->script.comms_count; i++) {
        const struct members *members = &replay->script.comms[i];
        MPI_Group group;
        MPI_Group_incl(world, (int)members->count, members->ranks, &group);
        MPI_Comm_create(MPI_COMM_WORLD, group, &replay->comms[i]);
        MPI_Group_free(&group);
    }
    MPI_Group_free(&world);
}

static void check_ranks(const struct script *script)
{
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if ((uint32_t)ranks == script->ranks && (uint32_t)rank == script->rank)
        return;
    if (rank == 0)
        fprintf(stderr, "velo-replay: the trace has %u ranks; give -n %u\n", script->ranks,
                script->ranks);
    MPI_Finalize();
    exit(EXIT_FAILURE);
}

static void finish(struct replay *replay, double took_s)
{
    uint64_t own[2] = {replay->messages, replay->collectives}, all[2];
    double longest_s;
    MPI_Reduce(own, all, 2, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&took_s, &longest_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (replay->script.rank == 0)
        printf("%u ranks, %" PRIu64 " messages, %" PRIu64
               " parts in collective operations: %.3f us; the trace took %.3f us\n",
               replay->script.ranks, all[0], all[1], longest_s * 1e6,
               (double)replay->script.took_ns / 1e3);
}

int main(int argc, char **argv)
{
    static struct replay replay;
    char path[4096];
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 2 || strcmp(argv[1], "--help") == 0) {
        if (rank == 0)
            puts(
                "Usage: velo-replay FOLDER\n\nDo what the scripts in FOLDER say, which velo replay "
                "has made of a trace.");
        MPI_Finalize();
        return argc == 2 ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    if (snprintf(path, sizeof path, "%s/rank.%d", argv[1], rank) >= (int)sizeof path)
        return EXIT_FAILURE;
    script_read(&replay.script, path);
    check_ranks(&replay.script);
    replay.slots = get_memory(replay.script.requests_count, sizeof *replay.slots);
    for (uint32_t i = 0; i < replay.script.requests_count; i++)
        replay.slots[i].request = MPI_REQUEST_NULL;
    make_comms(&replay);
    MPI_Barrier(MPI_COMM_WORLD);
    double begin_s = MPI_Wtime();
    for (size_t i = 0; i < replay.script.steps_count; i++)
        do_step(&replay, &replay.script.steps[i]);
    for (uint32_t i = 0; i < replay.script.requests_count; i++)
        MPI_Wait(&replay.slots[i].request, MPI_STATUS_IGNORE);
    finish(&replay, MPI_Wtime() - begin_s);
    for (uint32_t i = 0; i < replay.script.requests_count; i++)
        free(replay.slots[i].memory);
    free(replay.slots);
    free(replay.out.memory);
    free(replay.in.memory);
    script_free(&replay.script);
    MPI_Finalize();
    return EXIT_SUCCESS;
}
