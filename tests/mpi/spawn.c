/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spawns itself, talks with the children and disconnects from them, again and again. What the first
 * rank has open and mapped must not grow with that.
 *
 *   spawn ROUNDS CHILDREN
 */
#include <dirent.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG_BYTES (1 << 20)
#define TAG_LONG 1
/* After so many rounds all is there that a job keeps. */
#define ROUNDS_TO_SETTLE 3
/* Then come so many more at once. A child that comes alone takes the number of the one before it,
 * whose connection ends with that; of these all but one must be given back without it. */
#define CROWD 3
/* A process that has just left is noticed when the next one is met. */
#define GROWTH_MAX 2

static void fail(const char *what)
{
    (void)fprintf(stderr, "spawn: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static int descriptors(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir != NULL && readdir(dir) != NULL)
        count++;
    if (dir != NULL)
        (void)closedir(dir);
    return count;
}

/* Segments of velo that are mapped. */
static int mappings(void)
{
    char line[4096];
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
        count += strstr(line, "/velo.") != NULL;
    if (maps != NULL)
        (void)fclose(maps);
    return count;
}

/* KiB of addresses. */
static long addresses(void)
{
    char line[128];
    long size_kb = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "VmSize:", 7) == 0)
            size_kb = strtol(line + 7, NULL, 10);
    if (file != NULL)
        (void)fclose(file);
    return size_kb;
}

static char data[LONG_BYTES];

static void be_a_child(MPI_Comm parents)
{
    int round = -1;
    MPI_Bcast(&round, 1, MPI_INT, 0, parents);
    memset(data, round, LONG_BYTES);
    MPI_Send(data, LONG_BYTES, MPI_CHAR, 0, TAG_LONG, parents);
    MPI_Barrier(parents);
    MPI_Comm_disconnect(&parents);
}

static void raise_children(char *program, int round, int count, int rank)
{
    MPI_Comm children;
    MPI_Status status;
    if (MPI_Comm_spawn(program, MPI_ARGV_NULL, count, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                       MPI_ERRCODES_IGNORE) != MPI_SUCCESS)
        fail("no children");
    MPI_Bcast(&round, 1, MPI_INT, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, children);
    for (int i = 0; rank == 0 && i < count; i++) {
        data[0] = data[LONG_BYTES - 1] = -1;
        MPI_Recv(data, LONG_BYTES, MPI_CHAR, MPI_ANY_SOURCE, TAG_LONG, children, &status);
        if (data[0] != (char)round || data[LONG_BYTES - 1] != (char)round)
            fail("a message is not what its child sent");
    }
    /* What this rank has sent to lies in a child's segment. */
    if (rank == 0 && mappings() == 0)
        fail("another network than velo has carried the messages");
    MPI_Barrier(children);
    MPI_Comm_disconnect(&children);
}

int main(int argc, char **argv)
{
    int level, rank, first[2] = {0, 0};
    long first_kb = 0;
    MPI_Comm parents;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&parents);
    if (parents != MPI_COMM_NULL) {
        be_a_child(parents);
        MPI_Finalize();
        return 0;
    }
    if (argc != 3)
        fail("usage: spawn ROUNDS CHILDREN");
    for (int round = 0; round < atoi(argv[1]); round++) {
        raise_children(argv[0], round, atoi(argv[2]) + (round == ROUNDS_TO_SETTLE ? CROWD : 0),
                       rank);
        if (round == ROUNDS_TO_SETTLE - 1) {
            first[0] = descriptors();
            first[1] = mappings();
            first_kb = addresses();
        }
    }
    int last[2] = {descriptors(), mappings()};
    if (rank == 0)
        (void)printf(
            "descriptors %d then %d, segments mapped %d then %d, addresses %ld KiB then %ld\n",
            first[0], last[0], first[1], last[1], first_kb, addresses());
    if (first[0] > 0 && (last[0] > first[0] + GROWTH_MAX || last[1] > first[1] + GROWTH_MAX))
        fail("what is kept grows with the children that came and went");
    MPI_Finalize();
    return 0;
}
