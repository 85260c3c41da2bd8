/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long messages into memory that nobody has touched: which of them are fetched?
 *
 *   fresh MIB   messages from so many MiB on are, shorter ones are not
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define LONGEST_MIB 64
#define ROUNDS 3

static size_t fetched_bytes;
static int is_forbidden;

/* The library's reads of another process come here, since the program's symbols are found first. */
__attribute__((visibility("default"))) ssize_t process_vm_readv(pid_t pid, const struct iovec *lvec,
                                                                unsigned long liovcnt,
                                                                const struct iovec *rvec,
                                                                unsigned long riovcnt,
                                                                unsigned long flags)
{
    ssize_t done = syscall(SYS_process_vm_readv, pid, lvec, liovcnt, rvec, riovcnt, flags);
    if (done > 0)
        fetched_bytes += (size_t)done;
    else
        is_forbidden = 1;
    return done;
}

static _Noreturn void fail(size_t len_mib)
{
    (void)fprintf(stderr, "%zu MiB: %zu bytes were fetched\n", len_mib, fetched_bytes);
    (void)MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

static void receive(size_t len_mib, size_t least_mib, char value)
{
    size_t len_bytes = len_mib * MIB;
    char *in = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (in == MAP_FAILED)
        fail(len_mib);
    fetched_bytes = 0;
    MPI_Recv(in, (int)len_bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    bool is_fetched = fetched_bytes > len_bytes / 2;
    if (is_forbidden)
        (void)printf("the kernel forbids to fetch\n");
    else if (is_fetched != (len_mib >= least_mib) || (!is_fetched && fetched_bytes > 0))
        fail(len_mib);
    for (size_t i = 0; i < len_bytes; i += 4096)
        if (in[i] != value)
            fail(len_mib);
    (void)munmap(in, len_bytes);
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    size_t least_mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    char *out = malloc(LONGEST_MIB * MIB);
    if (out == NULL)
        fail(0);
    for (size_t len_mib = 1; len_mib <= LONGEST_MIB; len_mib *= 2) {
        for (int round = 0; round < ROUNDS; round++) {
            char value = (char)((size_t)round + len_mib);
            if (rank == 1)
                receive(len_mib, least_mib, value);
            if (rank == 0)
                memset(out, value, len_mib * MIB);
            if (rank == 0)
                MPI_Send(out, (int)(len_mib * MIB), MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        }
    }
    free(out);
    MPI_Finalize();
    return 0;
}
