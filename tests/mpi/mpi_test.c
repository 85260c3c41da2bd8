/* SPDX-License-Identifier: Apache-2.0 */
#include "mpi_test.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TESTS_MAX 256

static struct {
    const char *name;
    void (*body)(void);
    int ranks;
} tests[TESTS_MAX];
static size_t test_count;

int rank, ranks;

const int edge_lengths[] = {
    0,     1,     7,     8,     31,    32,     39,     40,     41,     48,      55,     56,
    57,    63,    64,    65,    255,   256,    257,    1000,   2047,   2048,    2049,   4000,
    4095,  4096,  4097,  8150,  8191,  8192,   8193,   16383,  16384,  16385,   32767,  32768,
    32769, 65535, 65536, 65537, 99999, 131072, 262143, 262145, 524289, 1048576, 1048579};
const size_t edge_count = ARRAY_LEN(edge_lengths);

void mpi_test_register(const char *name, void (*body)(void), int ranks_)
{
    if (test_count == TESTS_MAX) {
        fprintf(stderr, "more than %d tests; raise TESTS_MAX in %s\n", TESTS_MAX, __FILE__);
        abort();
    }
    tests[test_count].name = name;
    tests[test_count].ranks = ranks_;
    tests[test_count++].body = body;
}

void mpi_test_fail(const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s:%d: rank %d: ", file, line, rank);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

void *must_alloc(size_t len_bytes)
{
    void *memory = malloc(len_bytes > 0 ? len_bytes : 1);
    CHECK(memory != NULL);
    return memory;
}

static uint8_t pattern(size_t i, unsigned seed)
{
    return (uint8_t)((i * 167u + (i >> 8) * 13u + seed * 59u + 1u) & 0xffu);
}

void fill(void *buf, size_t len_bytes, unsigned seed)
{
    for (size_t i = 0; i < len_bytes; i++)
        ((uint8_t *)buf)[i] = pattern(i, seed);
}

bool filled(const void *buf, size_t len_bytes, unsigned seed)
{
    for (size_t i = 0; i < len_bytes; i++)
        if (((const uint8_t *)buf)[i] != pattern(i, seed))
            return false;
    return true;
}

static void run(const char *name)
{
    for (size_t i = 0; i < test_count; i++) {
        if (strcmp(name, tests[i].name) != 0)
            continue;
        CHECK_EQ(ranks, tests[i].ranks);
        tests[i].body();
        return;
    }
    mpi_test_fail(__FILE__, __LINE__, "no test is called %s", name);
}

/* velo-mpi-tests NAME... [single]: `single` asks for no threads, which takes shorter ways. All
 * ranks have ended a test before the next one begins. */
int main(int argc, char **argv)
{
    int names = argc - 1;
    int level = MPI_THREAD_MULTIPLE;
    if (names > 0 && strcmp(argv[names], "single") == 0) {
        level = MPI_THREAD_SINGLE;
        names--;
    }
    int provided;
    MPI_Init_thread(&argc, &argv, level, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK_EQ(provided, level);
    CHECK(names > 0);
    for (int i = 1; i <= names; i++) {
        run(argv[i]);
        if (names == 1)
            break; /* Alone, its last messages meet MPI_Finalize(). */
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            printf("passed: %s\n", argv[i]);
            fflush(stdout);
        }
    }
    MPI_Finalize();
    return 0;
}
