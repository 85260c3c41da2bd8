/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two ranks compute, and exchange messages whose length is the argument [bytes]: long ones register
 * memory first. Prints how much processor time rank 0 computed, and how long it took in virtual
 * time [us]. The C library's clock shows virtual time, so the kernel is asked.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 4, STEPS = 10000000, BYTES_MAX = 1 << 20 };
static char out[BYTES_MAX], in[BYTES_MAX];
static volatile double sum;

static double processor_us(void)
{
    struct timespec now;
    (void)syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void compute(void)
{
    double value = 1;
    for (long i = 0; i < STEPS; i++)
        value = value * 1.0000001 + 1e-9;
    sum = value;
}

int main(int argc, char **argv)
{
    int rank, bytes = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 8;
    double computed_us = 0;
    if (bytes < 0 || bytes > BYTES_MAX)
        return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    double begin_s = MPI_Wtime();
    for (int i = 0; i < ROUNDS; i++) {
        double before_us = processor_us();
        compute();
        computed_us += processor_us() - before_us;
        MPI_Sendrecv(out, bytes, MPI_BYTE, 1 - rank, 0, in, bytes, MPI_BYTE, 1 - rank, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    double took_us = (MPI_Wtime() - begin_s) * 1e6;
    if (rank == 0)
        printf("%.0f %.0f\n", computed_us, took_us);
    MPI_Finalize();
    return 0;
}
