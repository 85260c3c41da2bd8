/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of ranks that outnumber cores poll and yield in each blocking call: they do not sleep
 * until another thread wakes them. Two ranks, told that they are in a crowd (MCA parameter
 * mtl_velo_sleep or btl_velo_sleep).
 */
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 3
#define ROUNDS 200
/* Of so many calls one may sleep, since a poll may find a neighbour that has not run for long. */
#define CALLS_A_SLEEP 10
#define LONG_BYTES 65536

static atomic_int sleeps;
static int rank;
static MPI_Comm comms[THREADS];

/* Found by Open MPI's waits before the C library's. */
__attribute__((visibility("default"))) int pthread_cond_wait(pthread_cond_t *cond,
                                                             pthread_mutex_t *mutex)
{
    static int (*real)(pthread_cond_t *, pthread_mutex_t *);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_cond_wait");
    atomic_fetch_add(&sleeps, 1);
    return real(cond, mutex);
}

struct exchange {
    char *out, *in;
    int len_bytes;
    MPI_Comm comm;
};

static void send(const struct exchange *now)
{
    MPI_Send(now->out, now->len_bytes, MPI_BYTE, 1 - rank, 0, now->comm);
}

static MPI_Request receive(const struct exchange *now)
{
    MPI_Request request;
    MPI_Irecv(now->in, now->len_bytes, MPI_BYTE, 1 - rank, 0, now->comm, &request);
    return request;
}

static void by_sendrecv(const struct exchange *now)
{
    MPI_Sendrecv(now->out, now->len_bytes, MPI_BYTE, 1 - rank, 0, now->in, now->len_bytes, MPI_BYTE,
                 1 - rank, 0, now->comm, MPI_STATUS_IGNORE);
}

static void by_recv(const struct exchange *now)
{
    send(now);
    MPI_Recv(now->in, now->len_bytes, MPI_BYTE, 1 - rank, 0, now->comm, MPI_STATUS_IGNORE);
}

static void by_wait(const struct exchange *now)
{
    MPI_Request request = receive(now);
    send(now);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void by_wait_all(const struct exchange *now)
{
    MPI_Request requests[2] = {receive(now)};
    MPI_Isend(now->out, now->len_bytes, MPI_BYTE, 1 - rank, 0, now->comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void by_wait_any(const struct exchange *now)
{
    MPI_Request requests[2] = {receive(now), MPI_REQUEST_NULL};
    int index;
    send(now);
    MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
}

static void by_wait_some(const struct exchange *now)
{
    MPI_Request requests[2] = {receive(now), MPI_REQUEST_NULL};
    int count, indices[2];
    send(now);
    MPI_Waitsome(2, requests, &count, indices, MPI_STATUSES_IGNORE);
}

static void by_probe(const struct exchange *now)
{
    MPI_Status status;
    send(now);
    MPI_Probe(MPI_ANY_SOURCE, 0, now->comm, &status);
    MPI_Recv(now->in, now->len_bytes, MPI_BYTE, status.MPI_SOURCE, 0, now->comm, MPI_STATUS_IGNORE);
}

static void by_mprobe(const struct exchange *now)
{
    MPI_Message message;
    send(now);
    MPI_Mprobe(1 - rank, 0, now->comm, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(now->in, now->len_bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
}

static void by_ssend(const struct exchange *now)
{
    MPI_Request request = receive(now);
    MPI_Ssend(now->out, now->len_bytes, MPI_BYTE, 1 - rank, 0, now->comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static const struct {
    const char *name;
    void (*exchange)(const struct exchange *);
    int len_bytes;
} ways[] = {
    {"MPI_Sendrecv", by_sendrecv, 8}, {"MPI_Recv", by_recv, 8},
    {"MPI_Wait", by_wait, 8},         {"MPI_Waitall", by_wait_all, 8},
    {"MPI_Waitany", by_wait_any, 8},  {"MPI_Waitsome", by_wait_some, 8},
    {"MPI_Probe", by_probe, 8},       {"MPI_Mprobe", by_mprobe, 8},
    {"MPI_Ssend", by_ssend, 8},       {"MPI_Send of a long message", by_wait, LONG_BYTES},
};

#define WAYS (sizeof ways / sizeof *ways)

static size_t way;

static void *exchange_all(void *comm)
{
    struct exchange now = {.len_bytes = ways[way].len_bytes, .comm = *(MPI_Comm *)comm};
    now.out = calloc(1, (size_t)now.len_bytes);
    now.in = calloc(1, (size_t)now.len_bytes);
    if (now.out == NULL || now.in == NULL)
        abort();
    for (int i = 0; i < ROUNDS; i++)
        ways[way].exchange(&now);
    free(now.in);
    free(now.out);
    return NULL;
}

/* Returns how often a thread has slept meanwhile. */
static int run_way(void)
{
    pthread_t threads[THREADS];
    atomic_store(&sleeps, 0);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, exchange_all, &comms[i]) != 0)
            abort();
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    return atomic_load(&sleeps);
}

int main(int argc, char **argv)
{
    int level, failed = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (way = 0; way < WAYS; way++) {
        int slept = run_way();
        printf("rank %d, %s: threads slept %d times in %d exchanges\n", rank, ways[way].name, slept,
               THREADS * ROUNDS);
        failed |= slept * CALLS_A_SLEEP > THREADS * ROUNDS;
    }
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&comms[i]);
    MPI_Finalize();
    return failed;
}
