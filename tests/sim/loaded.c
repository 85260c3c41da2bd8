/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that loads MPI at run time, as interpreters do: each rank tells the next one its
 * number. What it has of MPI it finds by name, so it needs no header of it.
 *
 * loaded LIBRARY
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

typedef int init(int *argc, char ***argv);
typedef int finalize(void);
typedef int ask(void *comm, int *number);
typedef int exchange(const void *out, int out_len, void *out_type, int to, int out_tag, void *in,
                     int in_len, void *in_type, int from, int in_tag, void *comm, void *status);

static void *library;

/* Calls are found as objects are, and POSIX lets one be taken for the other. */
#define FIND(type, name) ((type *)(uintptr_t)dlsym(library, name))

int main(int argc, char **argv)
{
    int rank = -1, ranks = -1, got = -1;
    library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
    if (!library) {
        (void)fprintf(stderr, "loaded: %s\n", argc > 1 ? dlerror() : "which library?");
        return 2;
    }
    void *world = dlsym(library, "ompi_mpi_comm_world"), *type = dlsym(library, "ompi_mpi_int");
    if (!world || !type || FIND(init, "MPI_Init")(&argc, &argv) != 0)
        return 1;
    (void)FIND(ask, "MPI_Comm_rank")(world, &rank);
    (void)FIND(ask, "MPI_Comm_size")(world, &ranks);
    int status = FIND(exchange, "MPI_Sendrecv")(&rank, 1, type, (rank + 1) % ranks, 0, &got, 1,
                                                type, (rank + ranks - 1) % ranks, 0, world, NULL);
    if (FIND(finalize, "MPI_Finalize")() != 0 || status != 0 || got != (rank + ranks - 1) % ranks)
        return 1;
    if (printf("rank %d heard of %d\n", rank, got) < 0)
        return 1;
    return 0;
}
