/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks whose OpenMP threads compute, and that send what comes of it.
 *
 *   velo-sim-openmp [BUSY_S]   so long one of the threads computes while the others wait for it
 */
#include <mpi.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* As in <omp.h>, which is the compiler's: the linter is another one. */
int omp_get_thread_num(void);
double omp_get_wtime(void);

#define ROUNDS 3
#define TERMS 100000
#define NS_PER_S 1e9

/* The clocks of the C library are virtual. */
static double really_computed_s(void)
{
    struct timespec now;
    (void)syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / NS_PER_S;
}

int main(int argc, char **argv)
{
    int provided;
    int ranks;
    double busy_s = argc > 1 ? strtod(argv[1], NULL) : 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double begun_s = omp_get_wtime();
    for (int round = 0; round < ROUNDS; round++) {
        long sum = 0;
        long all = 0;
#pragma omp parallel for reduction(+ : sum)
        for (int i = 0; i < TERMS; i++)
            sum += i;
        MPI_Allreduce(&sum, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        if (all != (long)ranks * TERMS * (TERMS - 1) / 2)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    int threads = 0;
#pragma omp parallel reduction(+ : threads)
    {
        threads++;
        while (omp_get_thread_num() == 1 && really_computed_s() < busy_s)
            ;
    }
    /* Their computing takes no virtual time. */
    if (threads < 2 || omp_get_wtime() - begun_s > 1)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Finalize();
    return 0;
}
