/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ways WAY: two ranks pass the simulated hardware by, in memory or files that both have. That is
 * for ranks of one node; refused.py runs it on one and on two. "ways none" takes none.
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/uio.h>
#include <unistd.h>

#define BYTES 4096

static int rank;
static char name[64]; /* Of this job alone. */

static void must(int holds, const char *what)
{
    if (holds)
        return;
    perror(what);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

#define MUST(condition) must(condition, #condition)

static int open_shared(void)
{
    int file = shm_open(name, O_CREAT | O_RDWR, 0600);
    MUST(file >= 0 && ftruncate(file, BYTES) == 0);
    return file;
}

static void map(int rights)
{
    int file = open_shared();
    void *memory = mmap(NULL, BYTES, rights, MAP_SHARED, file, 0);
    MUST(memory != MAP_FAILED);
    close(file);
    MPI_Barrier(MPI_COMM_WORLD);
    (void)shm_unlink(name);
}

static void map_both(void) { map(PROT_READ | PROT_WRITE); }
static void map_to_read(void) { map(PROT_READ); }

/* Rank 0 writes, rank 1 reads. */
static void map_one_way(void) { map(rank == 0 ? PROT_READ | PROT_WRITE : PROT_READ); }

static void attach(void)
{
    int id = rank == 0 ? shmget(IPC_PRIVATE, BYTES, IPC_CREAT | 0600) : -1;
    MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD);
    void *memory = shmat(id, NULL, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        (void)shmctl(id, IPC_RMID, NULL);
    MUST((intptr_t)memory != -1);
}

static void reach(void)
{
    static long word;
    long there[2] = {getpid(), (long)&word}, old = 0;
    (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    MPI_Bcast(there, 2, MPI_LONG, 0, MPI_COMM_WORLD);
    struct iovec mine = {&old, sizeof old}, theirs = {(void *)there[1], sizeof old};
    if (rank == 1)
        MUST(process_vm_readv((pid_t)there[0], &mine, 1, &theirs, 1, 0) == sizeof old);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void open_file(void)
{
    MPI_File file;
    char path[80];
    (void)snprintf(path, sizeof path, "/tmp%s", name);
    MUST(MPI_File_open(MPI_COMM_WORLD, path,
                       MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                       &file) == MPI_SUCCESS);
    MPI_File_close(&file);
}

static void share(void)
{
    MPI_Win window;
    void *base;
    MPI_Win_allocate_shared(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, (void *)&base, &window);
    MPI_Win_free(&window);
}

static void make_dynamic(void)
{
    MPI_Win window;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_free(&window);
}

static void take_none(void) {}

static const struct way {
    const char *name;
    void (*take)(void);
} ways[] = {
    {"none", take_none},          {"map", map_both},  {"map_to_read", map_to_read},
    {"map_one_way", map_one_way}, {"attach", attach}, {"reach", reach},
    {"file", open_file},          {"shared", share},  {"dynamic", make_dynamic},
};

int main(int argc, char **argv)
{
    int job = getpid();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Bcast(&job, 1, MPI_INT, 0, MPI_COMM_WORLD);
    (void)snprintf(name, sizeof name, "/velo-sim-ways.%d", job);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(argv[argc - 1], ways[i].name) == 0)
            ways[i].take();
    MPI_Finalize();
    return EXIT_SUCCESS;
}
