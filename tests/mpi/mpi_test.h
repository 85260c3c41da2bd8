/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the MPI tests: self-registering tests and checks that end the whole job.
 *
 * A test is a function that all ranks run. `velo-mpi-tests NAME` runs one of them; ctest starts it
 * over each layer with the number of ranks that the test asks for.
 */
#ifndef VELO_MPI_TEST_H
#define VELO_MPI_TEST_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Define and register a test; the name is a sentence that says what holds. */
#define TEST(name, ranks)                                                                          \
    static void name(void);                                                                        \
    __attribute__((constructor)) static void register_##name(void)                                 \
    {                                                                                              \
        mpi_test_register(#name, name, ranks);                                                     \
    }                                                                                              \
    static void name(void)

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            mpi_test_fail(__FILE__, __LINE__, "%s does not hold", #condition);                     \
    } while (0)

#define CHECK_EQ(actual, expected)                                                                 \
    do {                                                                                           \
        long long actual_ = (long long)(actual), expected_ = (long long)(expected);                \
        if (actual_ != expected_)                                                                  \
            mpi_test_fail(__FILE__, __LINE__, "%s is %lld, expected %s = %lld", #actual, actual_,  \
                          #expected, expected_);                                                   \
    } while (0)

void mpi_test_register(const char *name, void (*body)(void), int ranks);
void mpi_test_fail(const char *file, int line, const char *format, ...)
    __attribute__((noreturn, format(printf, 3, 4)));

/* This rank and their number in MPI_COMM_WORLD. */
extern int rank, ranks;

/* Memory that cannot be had fails the test. */
void *must_alloc(size_t len_bytes);
/* Bytes that tell where they belong: message `seed`, position. */
void fill(void *buf, size_t len_bytes, unsigned seed);
bool filled(const void *buf, size_t len_bytes, unsigned seed);
/* Just below, at and just above each length at which a path could change. */
extern const int edge_lengths[];
extern const size_t edge_count;

#endif
