/* SPDX-License-Identifier: Apache-2.0 */
/* MPI_THREAD_MULTIPLE: several threads on both sides. */
#include "mpi_test.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

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

/* Data with gaps is packed into memory that its receiver reads; a message of another thread may go
 * before it. */
static void *send_with_gaps(void *argument)
{
    enum { BLOCK = 96, STRIDE = 112, BLOCKS = 1500 };
    const struct worker *self = argument;
    MPI_Datatype type;
    MPI_Type_create_hvector(BLOCKS, BLOCK, STRIDE, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    char *out = must_alloc(BLOCKS * STRIDE), *in = must_alloc(BLOCKS * STRIDE);
    fill(out, BLOCKS * STRIDE, (unsigned)self->number);
    for (int i = 0; i < ROUNDS; i++) {
        int value = -1;
        for (size_t at = 0; at < BLOCKS * STRIDE; at += STRIDE)
            out[at]++;
        MPI_Sendrecv(&i, 1, MPI_INT, 1 - rank, 10 + self->number, &value, 1, MPI_INT, 1 - rank,
                     10 + self->number, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(out, 1, type, 1 - rank, self->number, in, 1, type, 1 - rank, self->number,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_EQ(value, i);
        for (size_t at = 0; at < BLOCKS * STRIDE; at += STRIDE)
            CHECK(memcmp(in + at, out + at, BLOCK) == 0);
    }
    MPI_Type_free(&type);
    free(out);
    free(in);
    return NULL;
}

TEST(threads_that_send_data_with_gaps_keep_it_apart, 2) { run(send_with_gaps, MPI_COMM_WORLD); }

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

/* Threads share a core: only in a long stream is one interrupted in the middle of a call. */
#define STREAM_MESSAGES 1000000

static void *long_stream(void *argument)
{
    const struct worker *self = argument;
    for (int i = 0; i < STREAM_MESSAGES; i++) {
        int value = i;
        if (rank == 0) {
            MPI_Send(&value, 1, MPI_INT, 1, self->number, MPI_COMM_WORLD);
        } else {
            MPI_Recv(&value, 1, MPI_INT, 0, self->number, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK_EQ(value, i);
        }
    }
    return NULL;
}

TEST(threads_that_send_at_once_lose_nothing, 2) { run(long_stream, MPI_COMM_WORLD); }

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

/* A message that one thread has probed goes to no other thread. */
TEST(threads_share_a_tag_with_matched_probes, 2) { run(probing, MPI_COMM_WORLD); }

/* ---- requests that one thread starts and another ends ---------------------------------------- */

/* Room for all: who started a message must never wait for those who end others. */
#define DESK_MAX (2 * ROUNDS)

/* Where starters leave messages for finishers. */
struct parcel {
    MPI_Request request;
    char *bytes;
    int len_bytes;
    unsigned seed;
    bool is_received;
};
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct parcel parcels[DESK_MAX];
    int count, to_come;
} desk = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void leave(const struct parcel *parcel)
{
    pthread_mutex_lock(&desk.lock);
    desk.parcels[desk.count++] = *parcel;
    pthread_cond_broadcast(&desk.changed);
    pthread_mutex_unlock(&desk.lock);
}

static bool fetch(struct parcel *parcel)
{
    pthread_mutex_lock(&desk.lock);
    while (desk.count == 0 && desk.to_come > 0)
        pthread_cond_wait(&desk.changed, &desk.lock);
    bool found = desk.count > 0;
    if (found) {
        *parcel = desk.parcels[--desk.count]; /* The latest: out of order. */
        desk.to_come--;
    }
    pthread_cond_broadcast(&desk.changed);
    pthread_mutex_unlock(&desk.lock);
    return found;
}

static void start_parcels(const struct worker *self)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct parcel parcel = {.len_bytes = edge_lengths[(size_t)i % 38],
                                .seed = (unsigned)(1000 * self->number + i),
                                .is_received = (self->number == 0) == (rank == 0)};
        parcel.bytes = must_alloc((size_t)parcel.len_bytes);
        fill(parcel.bytes, (size_t)parcel.len_bytes, parcel.is_received ? 9999 : parcel.seed);
        if (parcel.is_received)
            MPI_Irecv(parcel.bytes, parcel.len_bytes, MPI_BYTE, 1 - rank, self->number,
                      MPI_COMM_WORLD, &parcel.request);
        else
            MPI_Isend(parcel.bytes, parcel.len_bytes, MPI_BYTE, 1 - rank, self->number,
                      MPI_COMM_WORLD, &parcel.request);
        leave(&parcel);
    }
}

static void finish_parcels(bool by_test)
{
    struct parcel parcel;
    while (fetch(&parcel)) {
        int done = 0;
        while (by_test && !done)
            MPI_Test(&parcel.request, &done, MPI_STATUS_IGNORE);
        MPI_Wait(&parcel.request, MPI_STATUS_IGNORE);
        if (parcel.is_received)
            CHECK(filled(parcel.bytes, (size_t)parcel.len_bytes, parcel.seed));
        free(parcel.bytes);
    }
}

/* Two threads start, one sending what the other rank's other one receives; two finish. */
static void *start_or_finish(void *argument)
{
    const struct worker *self = argument;
    if (self->number < 2)
        start_parcels(self);
    else
        finish_parcels(self->number == 2);
    return NULL;
}

TEST(threads_end_what_other_threads_started, 2)
{
    desk.to_come = 2 * ROUNDS;
    run(start_or_finish, MPI_COMM_WORLD);
    CHECK_EQ(desk.count, 0);
}

/* ---- receives that end in another way -------------------------------------------------------- */

enum { TAG_FREED = 100, TAG_GO = 200, TAG_AFTER = 300, TAG_NEVER = 400 };

static void answer(int number)
{
    for (int i = 0; i < ROUNDS; i++) {
        int round;
        MPI_Recv(&round, 1, MPI_INT, 1, TAG_GO + number, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&round, 1, MPI_INT, 1, TAG_FREED + number, MPI_COMM_WORLD);
        MPI_Send(&round, 1, MPI_INT, 1, TAG_AFTER + number, MPI_COMM_WORLD);
    }
}

static void cancel_one(int number)
{
    int value = 0, cancelled = 0;
    MPI_Request request;
    MPI_Status status;
    MPI_Irecv(&value, 1, MPI_INT, 0, TAG_NEVER + number, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    CHECK(cancelled);
}

static void *free_and_cancel(void *argument)
{
    int number = ((const struct worker *)argument)->number;
    if (rank == 0) {
        answer(number);
        return NULL;
    }
    for (int i = 0; i < ROUNDS; i++) {
        int early = -1, late = -1;
        MPI_Request request;
        MPI_Irecv(&early, 1, MPI_INT, 0, TAG_FREED + number, MPI_COMM_WORLD, &request);
        if (i % 2)
            MPI_Request_free(&request);
        MPI_Send(&i, 1, MPI_INT, 0, TAG_GO + number, MPI_COMM_WORLD);
        cancel_one(number);
        if (i % 2 == 0)
            MPI_Request_free(&request); /* While another thread may be ending it. */
        MPI_Recv(&late, 1, MPI_INT, 0, TAG_AFTER + number, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_EQ(early, i);
        CHECK_EQ(late, i);
    }
    return NULL;
}

TEST(threads_free_and_cancel_receives_under_way, 2) { run(free_and_cancel, MPI_COMM_WORLD); }

/* ---- who looks for messages ------------------------------------------------------------------ */

#define FLOOD 20000

/* Rank 0 sends; all threads of rank 1 look for it, none sleeps. */
static void *poll_flood(void *argument)
{
    const struct worker *self = argument;
    static char seen[FLOOD];
    if (rank == 0) {
        for (int i = self->number; i < FLOOD; i += THREADS)
            MPI_Send(&i, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        return NULL;
    }
    for (int i = self->number; i < FLOOD; i += THREADS) {
        int value = -1, done = 0;
        MPI_Request request;
        MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &request);
        while (!done)
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        CHECK(value >= 0 && value < FLOOD);
        CHECK(!__atomic_test_and_set(&seen[value], __ATOMIC_RELAXED));
    }
    return NULL;
}

TEST(threads_that_poll_get_each_message_once, 2) { run(poll_flood, MPI_COMM_WORLD); }

/* ---- senders beside a receiver ----------------------------------------------------------------
 */

#define BUFFERED_EACH 20

static void *send_buffered(void *argument)
{
    const struct worker *self = argument;
    for (int i = 0; i < BUFFERED_EACH; i++)
        MPI_Bsend(&i, 1, MPI_INT, (rank + 1) % ranks, self->number, MPI_COMM_WORLD);
    return NULL;
}

/* A thread that waits in a receive does not keep the others of its rank from sending. */
TEST(threads_send_around_a_ring_while_one_receives, 3)
{
    struct worker workers[THREADS];
    int len_bytes = THREADS * BUFFERED_EACH * (MPI_BSEND_OVERHEAD + (int)sizeof(int));
    int next[THREADS] = {0};
    void *buffer = must_alloc((size_t)len_bytes);
    MPI_Buffer_attach(buffer, len_bytes);
    for (int i = 0; i < THREADS; i++) {
        workers[i].number = i;
        CHECK_EQ(pthread_create(&workers[i].thread, NULL, send_buffered, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS * BUFFERED_EACH; i++) {
        int value = -1;
        MPI_Status status;
        MPI_Recv(&value, 1, MPI_INT, (rank + ranks - 1) % ranks, MPI_ANY_TAG, MPI_COMM_WORLD,
                 &status);
        CHECK_EQ(value, next[status.MPI_TAG]++);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(workers[i].thread, NULL), 0);
    MPI_Buffer_detach(&buffer, &len_bytes);
    free(buffer);
}

/* ---- everything at once ---------------------------------------------------------------------- */

#define MIXED_ROUNDS 60

/* Its steps are started from inside whichever call makes progress, in any thread. */
static void collect(const struct worker *self)
{
    for (int i = 0; i < MIXED_ROUNDS; i++) {
        int in = rank + i, out = -1, done = 0;
        MPI_Request request;
        MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, self->comm, &request);
        while (!done)
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        CHECK_EQ(out, ranks * i + ranks * (ranks - 1) / 2);
    }
}

/* To everybody, this rank too, from anybody. */
static void exchange(const struct worker *self, int len_bytes)
{
    enum { RANKS_MAX = 8 };
    MPI_Request requests[2 * RANKS_MAX];
    char *in[RANKS_MAX] = {NULL}, *out = must_alloc((size_t)len_bytes);
    CHECK(ranks <= RANKS_MAX);
    for (int i = 0; i < MIXED_ROUNDS; i++) {
        int tag = 100 * i + self->number, left = 2 * ranks;
        fill(out, (size_t)len_bytes, (unsigned)tag);
        for (int r = 0; r < ranks; r++) {
            in[r] = must_alloc((size_t)len_bytes);
            MPI_Irecv(in[r], len_bytes, MPI_BYTE, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD,
                      &requests[r]);
            MPI_Isend(out, len_bytes, MPI_BYTE, r, tag, MPI_COMM_WORLD, &requests[ranks + r]);
        }
        while (left > 0) {
            int count, ended[2 * RANKS_MAX];
            MPI_Testsome(2 * ranks, requests, &count, ended, MPI_STATUSES_IGNORE);
            left -= count;
        }
        for (int r = 0; r < ranks; r++) {
            CHECK(filled(in[r], (size_t)len_bytes, (unsigned)tag));
            free(in[r]);
        }
    }
    free(out);
}

static void *mixed(void *argument)
{
    const struct worker *self = argument;
    if (self->number == 0)
        collect(self);
    else
        exchange(self, self->number == 1 ? 8 : 40000 * self->number);
    return NULL;
}

TEST(threads_test_send_and_collect_at_the_same_time, 3)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    run(mixed, comm);
    MPI_Comm_free(&comm);
}

/* Each way to wait for a message, by several threads of more ranks than cores, in a ring. */
static void wait_in_one_way(int way, int *value, int from, MPI_Comm comm)
{
    MPI_Request request;
    MPI_Message message;
    int found = 0;
    if (way == 0) {
        MPI_Recv(value, 1, MPI_INT, from, 0, comm, MPI_STATUS_IGNORE);
    } else if (way == 1) {
        MPI_Probe(from, 0, comm, MPI_STATUS_IGNORE);
        MPI_Recv(value, 1, MPI_INT, from, 0, comm, MPI_STATUS_IGNORE);
    } else if (way == 2) {
        MPI_Mprobe(from, 0, comm, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(value, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    } else if (way == 3) {
        while (!found)
            MPI_Iprobe(from, 0, comm, &found, MPI_STATUS_IGNORE);
        MPI_Recv(value, 1, MPI_INT, from, 0, comm, MPI_STATUS_IGNORE);
    } else {
        MPI_Irecv(value, 1, MPI_INT, from, 0, comm, &request);
        if (way == 4)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        else if (way == 5)
            MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
        else
            while (!found)
                MPI_Test(&request, &found, MPI_STATUS_IGNORE);
    }
}

static void *turn_ring(void *argument)
{
    const struct worker *self = argument;
    int from = (rank + ranks - 1) % ranks;
    for (int way = 0; way < 7; way++) {
        for (int i = 0; i < 20; i++) {
            int out = 1000 * rank + 100 * self->number + i, in = -1;
            MPI_Request request;
            MPI_Isend(&out, 1, MPI_INT, (rank + 1) % ranks, 0, self->comm, &request);
            wait_in_one_way(way, &in, from, self->comm);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            CHECK_EQ(in, 1000 * from + 100 * self->number + i);
        }
    }
    return NULL;
}

TEST(threads_of_a_crowd_wait_in_every_way, 4)
{
    struct worker workers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i].number = i;
        MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comm);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&workers[i].thread, NULL, turn_ring, &workers[i]), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(workers[i].thread, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&workers[i].comm);
}
