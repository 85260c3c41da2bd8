/* SPDX-License-Identifier: Apache-2.0 */
/* MPI_THREAD_MULTIPLE: several threads on both sides. */
#include "mpi_test.h"

#include <pthread.h>
#include <stdlib.h>

#define THREADS 4
#define ROUNDS 300

struct worker {
    pthread_t thread;
    int number;
    MPI_Comm comm;
};

static void run(void *(*body)(void *), MPI_Comm comm)
{
    struct worker workers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i].number = i;
        workers[i].comm = comm;
        CHECK_EQ(pthread_create(&workers[i].thread, NULL, body, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(workers[i].thread, NULL), 0);
}

static void *ping_pong(void *argument)
{
    const struct worker *self = argument;
    for (int i = 0; i < ROUNDS; i++) {
        int len_bytes = edge_lengths[(size_t)(i + self->number) % 38];
        char *out = must_alloc((size_t)len_bytes), *in = must_alloc((size_t)len_bytes);
        unsigned seed = (unsigned)(1000 * self->number + i);
        fill(out, (size_t)len_bytes, seed);
        MPI_Sendrecv(out, len_bytes, MPI_BYTE, 1 - rank, self->number, in, len_bytes, MPI_BYTE,
                     1 - rank, self->number, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(filled(in, (size_t)len_bytes, seed));
        free(out);
        free(in);
    }
    return NULL;
}

TEST(threads_talk_to_threads, 2) { run(ping_pong, MPI_COMM_WORLD); }

static void *stream(void *argument)
{
    const struct worker *self = argument;
    enum { WINDOW = 16 };
    MPI_Request requests[WINDOW];
    int values[WINDOW];
    for (int i = 0; i < ROUNDS; i++) {
        for (int n = 0; n < WINDOW; n++) {
            values[n] = rank == 0 ? i * WINDOW + n : -1;
            if (rank == 0)
                MPI_Isend(&values[n], 1, MPI_INT, 1, self->number, MPI_COMM_WORLD, &requests[n]);
            else
                MPI_Irecv(&values[n], 1, MPI_INT, 0, self->number, MPI_COMM_WORLD, &requests[n]);
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        for (int n = 0; n < WINDOW; n++)
            CHECK_EQ(values[n], i * WINDOW + n);
    }
    return NULL;
}

TEST(each_thread_keeps_its_order, 2) { run(stream, MPI_COMM_WORLD); }

static void *probing(void *argument)
{
    const struct worker *self = argument;
    for (int i = 0; i < ROUNDS; i++) {
        int value = i, sent = (rank * 100 + self->number) * 1000 + i;
        MPI_Request request;
        MPI_Isend(&sent, 1, MPI_INT, 1 - rank, 50, MPI_COMM_WORLD, &request);
        MPI_Message message;
        MPI_Mprobe(MPI_ANY_SOURCE, 50, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(&value, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
        CHECK_EQ(value / 100000, 1 - rank);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    return NULL;
}

/* What one thread has probed no other one gets. */
TEST(threads_share_a_tag_with_matched_probes, 2) { run(probing, MPI_COMM_WORLD); }
