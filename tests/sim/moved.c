/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moved KIND: each rank moves BYTES to a rank of the other node, in one way of MPI's. Four ranks on
 * two nodes. It prints what so went from each node to the other; carried.py asks the links.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES 40000
#define RANKS 4
#define RANKS_A_NODE 2

static int rank, partner;
static char mine[BYTES], theirs[BYTES];

static void check(bool holds, const char *what)
{
    if (holds)
        return;
    (void)printf("rank %d: %s does not hold\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

#define CHECK(condition) check(condition, #condition)

static char byte_of(int of_rank, int i) { return (char)(17 * of_rank + i % 251); }

static void fill(char *bytes, int of_rank)
{
    for (int i = 0; i < BYTES; i++)
        bytes[i] = byte_of(of_rank, i);
}

static bool is_of(const char *bytes, int of_rank)
{
    for (int i = 0; i < BYTES; i++)
        if (bytes[i] != byte_of(of_rank, i))
            return false;
    return true;
}

/* ---- messages -------------------------------------------------------------------------------- */

static void send(void)
{
    MPI_Sendrecv(mine, BYTES, MPI_BYTE, partner, 0, theirs, BYTES, MPI_BYTE, partner, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Each block goes to one rank; only those for the other node count, and of these, one. */
static void collect(void)
{
    static char out[RANKS * BYTES], in[RANKS * BYTES];
    for (int r = 0; r < RANKS; r++)
        memcpy(out + (size_t)r * BYTES, mine, BYTES);
    MPI_Alltoall(out, BYTES, MPI_BYTE, in, BYTES, MPI_BYTE, MPI_COMM_WORLD);
    memcpy(theirs, in + (size_t)partner * BYTES, BYTES);
}

/* ---- windows --------------------------------------------------------------------------------- */

static MPI_Win window;
static char *base;
static MPI_Aint there; /* Where the partner's memory begins. */

static void open_created(void)
{
    base = theirs;
    MPI_Win_create(base, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
}

static void open_allocated(void)
{
    MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
}

static void open_dynamic(void)
{
    MPI_Aint here;
    base = theirs;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_attach(window, base, BYTES);
    MPI_Get_address(base, &here);
    MPI_Sendrecv(&here, 1, MPI_AINT, partner, 0, &there, 1, MPI_AINT, partner, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

static void put(void) { MPI_Put(mine, BYTES, MPI_BYTE, partner, there, BYTES, MPI_BYTE, window); }

static void accumulate(void)
{
    MPI_Accumulate(mine, BYTES, MPI_BYTE, partner, there, BYTES, MPI_BYTE, MPI_REPLACE, window);
}

static void get(void)
{
    static char got[BYTES];
    fill(base, rank);
    MPI_Win_fence(0, window);
    MPI_Get(got, BYTES, MPI_BYTE, partner, there, BYTES, MPI_BYTE, window);
    MPI_Win_fence(0, window);
    memcpy(base, got, BYTES); /* As if it had been put there. */
}

static void by_window(void (*open)(void), void (*move)(void))
{
    there = 0;
    open();
    MPI_Win_fence(0, window);
    move();
    MPI_Win_fence(0, window);
    memmove(theirs, base, BYTES);
    MPI_Barrier(MPI_COMM_WORLD);
    if (open == open_dynamic)
        MPI_Win_detach(window, base);
    MPI_Win_free(&window);
}

static void put_created(void) { by_window(open_created, put); }
static void put_allocated(void) { by_window(open_allocated, put); }
static void put_dynamic(void) { by_window(open_dynamic, put); }
static void get_created(void) { by_window(open_created, get); }
static void get_allocated(void) { by_window(open_allocated, get); }
static void accumulate_created(void) { by_window(open_created, accumulate); }
static void accumulate_allocated(void) { by_window(open_allocated, accumulate); }

/* Within the node by memory that is shared, then on. */
static void share(void)
{
    MPI_Comm node;
    char *shared;
    int local, unit;
    MPI_Aint len;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &local);
    MPI_Win_allocate_shared(BYTES, 1, MPI_INFO_NULL, node, &base, &window);
    memcpy(base, mine, BYTES);
    MPI_Win_fence(0, window);
    MPI_Win_shared_query(window, 1 - local, &len, &unit, &shared);
    /* The neighbour's, to the neighbour's partner's neighbour. */
    MPI_Sendrecv(shared, BYTES, MPI_BYTE, partner, 0, theirs, BYTES, MPI_BYTE, partner, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(is_of(theirs, partner ^ 1));
    fill(theirs, partner);
    MPI_Win_free(&window);
    MPI_Comm_free(&node);
}

/* ---- who is where ---------------------------------------------------------------------------- */

static int number(const char *name)
{
    const char *text = getenv(name);
    return text ? atoi(text) : -1;
}

static void check_places(void)
{
    char names[RANKS][MPI_MAX_PROCESSOR_NAME] = {{0}};
    MPI_Comm node;
    int len, ranks, local;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &ranks);
    MPI_Comm_rank(node, &local);
    CHECK(ranks == RANKS_A_NODE && local == rank % RANKS_A_NODE);
    CHECK(number("OMPI_COMM_WORLD_LOCAL_RANK") == local);
    CHECK(number("OMPI_COMM_WORLD_LOCAL_SIZE") == RANKS_A_NODE);
    MPI_Get_processor_name(names[rank], &len);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, names, sizeof *names, MPI_CHAR,
                  MPI_COMM_WORLD);
    CHECK(strcmp(names[rank], names[rank ^ 1]) == 0 && strcmp(names[rank], names[partner]) != 0);
    MPI_Comm_free(&node);
}

static const struct kind {
    const char *name;
    void (*move)(void);
} kinds[] = {
    {"send", send},
    {"alltoall", collect},
    {"put_created", put_created},
    {"put_allocated", put_allocated},
    {"put_dynamic", put_dynamic},
    {"get_created", get_created},
    {"get_allocated", get_allocated},
    {"accumulate_created", accumulate_created},
    {"accumulate_allocated", accumulate_allocated},
    {"shared", share},
};

int main(int argc, char **argv)
{
    int ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(ranks == RANKS && argc == 2);
    partner = (rank + RANKS_A_NODE) % RANKS;
    check_places();
    fill(mine, rank);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(argv[1], kinds[i].name) == 0)
            kinds[i].move();
    CHECK(is_of(theirs, partner));
    if (rank == 0)
        (void)printf("moved %d\n", RANKS_A_NODE * BYTES);
    MPI_Finalize();
    return EXIT_SUCCESS;
}
