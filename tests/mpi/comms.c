/* SPDX-License-Identifier: Apache-2.0 */
#include "comms.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void check_split(void (*check)(MPI_Comm comm, int own, int size), int color, int key)
{
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, color, key, &comm);
    if (comm == MPI_COMM_NULL)
        return;
    int own, size;
    MPI_Comm_rank(comm, &own);
    MPI_Comm_size(comm, &size);
    check(comm, own, size);
    MPI_Comm_free(&comm);
}

void each_comm(void (*check)(MPI_Comm comm, int own, int size))
{
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    check(copy, rank, ranks);
    MPI_Comm_free(&copy);
    for (int size = 1; size < ranks; size++)
        check_split(check, rank < size ? 0 : MPI_UNDEFINED, rank);
    check_split(check, rank % 2, rank);
    check_split(check, 0, -rank);
}

int mapped_memories(void)
{
    char line[512];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    CHECK(maps != NULL);
    while (fgets(line, sizeof line, maps) != NULL)
        found += strstr(line, "memfd:velo-coll") != NULL;
    (void)fclose(maps);
    return found;
}

uint32_t mixed(uint32_t round, uint32_t from, uint32_t at)
{
    uint32_t x = round * 0x9e3779b1u ^ from * 0x85ebca77u ^ at * 0xc2b2ae3du;
    x = (x ^ x >> 15) * 0x2c1b3c6du;
    return x ^ x >> 13;
}

void linger(uint32_t round, unsigned limit_us)
{
    uint32_t chance = mixed(round, (uint32_t)rank, 77);
    if (chance % 4 == 0)
        (void)usleep(chance / 4 % limit_us);
}
