/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetching words that lie apart, over any MPI: rank 1 owns them, rank 0 wants them in a row. By
 * derived datatypes, sent and got, and packed by the owner's program. Every round takes all ways.
 */
#include <mpi.h>
#include <string.h>

#include "../clock.h"
#include "problem.h"

enum { REQUESTER, OWNER };
enum way { SEND_DERIVED, GET_DERIVED, SEND_PACKED, WAYS };
static const char *const way_names[WAYS] = {"mpi-derived", "mpi-get", "mpi-packed"};

static uint64_t *owned;
static uint64_t *got;
static MPI_Datatype apart[PROBLEMS];
static MPI_Win window;
static double ns[PROBLEMS][WAYS][ROUNDS_MAX];

static void describe(unsigned p)
{
    const struct problem *problem = &problems[p];
    int *places = malloc(problem->wanted * sizeof *places);
    if (!places)
        abort();
    for (uint32_t i = 0; i < problem->wanted; i++)
        places[i] = (int)problem->offsets[i];
    if (problem->side) {
        /* A column of the matrix, which begins a word after the one before it. */
        MPI_Datatype column;
        MPI_Datatype next;
        MPI_Type_vector((int)problem->side, 1, (int)problem->side, MPI_UINT64_T, &column);
        MPI_Type_create_resized(column, 0, sizeof(uint64_t), &next);
        MPI_Type_contiguous((int)problem->side, next, &apart[p]);
        MPI_Type_free(&column);
        MPI_Type_free(&next);
    } else {
        MPI_Type_create_indexed_block((int)problem->wanted, 1, places, MPI_UINT64_T, &apart[p]);
    }
    MPI_Type_commit(&apart[p]);
    free(places);
}

/* A request: which problem, and which way; what they number. */
static void own(void)
{
    uint64_t *packed = malloc(WANTED_MAX * sizeof *packed);
    int request[2];
    if (!packed)
        abort(); /* The launcher ends the other. */
    for (;;) {
        MPI_Recv(request, 2, MPI_INT, REQUESTER, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (request[0] < 0)
            break;
        const struct problem *problem = &problems[request[0]];
        if (request[1] == SEND_DERIVED) {
            MPI_Send(owned, 1, apart[request[0]], REQUESTER, 1, MPI_COMM_WORLD);
        } else {
            pack(problem, owned, packed);
            MPI_Send(packed, (int)problem->wanted, MPI_UINT64_T, REQUESTER, 1, MPI_COMM_WORLD);
        }
    }
    free(packed);
}

static void fetch(unsigned p, enum way way)
{
    const int wanted = (int)problems[p].wanted;
    if (way == GET_DERIVED) {
        MPI_Get(got, wanted, MPI_UINT64_T, OWNER, 0, 1, apart[p], window);
        MPI_Win_flush(OWNER, window);
        return;
    }
    int request[2] = {(int)p, (int)way};
    MPI_Send(request, 2, MPI_INT, OWNER, 0, MPI_COMM_WORLD);
    MPI_Recv(got, wanted, MPI_UINT64_T, OWNER, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void request_all(unsigned rounds)
{
    for (unsigned p = 0; p < PROBLEMS; p++)
        for (unsigned round = 0; round <= rounds; round++) /* The first warms up. */
            for (unsigned turn = 0; turn < WAYS; turn++) {
                const unsigned way = (turn + round) % WAYS;
                const unsigned times = problems[p].side ? 2 : 8;
                uint64_t begin_ns = now_ns();
                for (unsigned i = 0; i < times; i++) {
                    fetch(p, (enum way)way);
                    if (consume(got, problems[p].wanted, 0) != problems[p].sum) {
                        fprintf(stderr, "%s by %s: the words are not those that were wanted\n",
                                problems[p].name, way_names[way]);
                        MPI_Abort(MPI_COMM_WORLD, 3);
                    }
                }
                ns[p][way][round ? round - 1 : 0] =
                    (double)(now_ns() - begin_ns) / times / problems[p].wanted;
            }
    int stop[2] = {-1, 0};
    MPI_Send(stop, 2, MPI_INT, OWNER, 0, MPI_COMM_WORLD);
    for (unsigned p = 0; p < PROBLEMS; p++)
        for (unsigned way = 0; way < WAYS; way++)
            print_way(&problems[p], way_names[way], ns[p][way], rounds);
}

int main(int argc, char **argv)
{
    int rank;
    int size;
    unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 20;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2 || rounds < 1 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "velo-dimmnet-mpi-perf: run two ranks; give 1 to %u rounds\n", ROUNDS_MAX);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    problems_init();
    got = calloc(WANTED_MAX, sizeof *got);
    MPI_Win_allocate(rank == OWNER ? OWNED_MAX * sizeof *owned : 0, sizeof *owned, MPI_INFO_NULL,
                     MPI_COMM_WORLD, &owned, &window);
    for (uint32_t i = 0; rank == OWNER && i < OWNED_MAX; i++)
        owned[i] = owned_word(i);
    for (unsigned p = 0; p < PROBLEMS; p++)
        describe(p);
    MPI_Win_lock_all(0, window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == OWNER)
        own();
    else
        request_all(rounds);
    MPI_Win_unlock_all(window);
    for (unsigned p = 0; p < PROBLEMS; p++)
        MPI_Type_free(&apart[p]);
    MPI_Win_free(&window);
    free(got);
    return MPI_Finalize();
}
