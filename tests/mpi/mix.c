/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every rank sends messages of random lengths to random ranks, and receives with random wildcards.
 *
 *   velo-mpi-mix MESSAGES MAX_BYTES SEED ROUNDS [SECONDS]
 *
 * Each rank sends MESSAGES in a round, and waits for none of them before the last: a receive of one
 * rank may wait for any of another. There are ROUNDS, and more until SECONDS are over. All that a
 * rank sends follows from the seed, so each receiver knows every message that is to come. MPI
 * promises which of a source's messages a receive takes: the first that fits it and that no receive
 * before it has taken. So for each receive there is, by its source, one right message, of which
 * length, tag and every byte are checked.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAGS 3
#define WINDOW 4
#define TAG_ANY TAGS

struct message {
    int to, tag;
    unsigned len_bytes;
    bool is_synchronous, is_taken;
};

struct receive {
    MPI_Request request;
    int source, tag; /* -1: any. */
    unsigned char *bytes;
};

struct send {
    MPI_Request request;
    unsigned char *bytes;
};

static int rank, ranks;
static unsigned messages, max_bytes;
static uint64_t seed;
/* Of each rank, what it sends in this round. */
static struct message **plans;
/* Of each rank, the number of messages for this one that no receive has taken, in all and by tag.
 */
static unsigned (*coming)[TAGS + 1];
static struct receive receives[WINDOW];
static struct send *sends;

static void fail(const char *what, int source, unsigned number)
{
    (void)fprintf(stderr, "rank %d, message %u of rank %d, seed %llu: %s\n", rank, number, source,
                  (unsigned long long)seed, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void *allocate(size_t count, size_t each_bytes)
{
    void *memory = calloc(count + 1, each_bytes);
    if (memory == NULL)
        MPI_Abort(MPI_COMM_WORLD, 3);
    return memory;
}

static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* As many short ones as long ones: first the number of bits is drawn. */
static unsigned draw_len(uint64_t *state)
{
    unsigned bits = 0;
    while ((max_bytes >> bits) != 0)
        bits++;
    unsigned len = (unsigned)(draw(state) & ((UINT64_C(1) << (draw(state) % (bits + 1))) - 1));
    return len < max_bytes ? len : max_bytes;
}

static void plan(int source)
{
    uint64_t state = seed * 1000003 + (uint64_t)source;
    for (unsigned i = 0; i < messages; i++) {
        struct message *message = &plans[source][i];
        message->to = (int)(draw(&state) % (uint64_t)ranks);
        message->tag = (int)(draw(&state) % TAGS);
        message->len_bytes = draw_len(&state);
        message->is_synchronous = draw(&state) % 8 == 0;
        message->is_taken = false;
        if (message->to == rank) {
            coming[source][message->tag]++;
            coming[source][TAG_ANY]++;
        }
    }
}

static unsigned char byte_of(int source, unsigned number, size_t at)
{
    return (unsigned char)((unsigned)source * 131 + number * 31 + at * 7 + (at >> 8));
}

/* ---- receiving ------------------------------------------------------------------------------- */

static void check(int source, unsigned number, const unsigned char *bytes, unsigned len_bytes)
{
    if (plans[source][number].len_bytes != len_bytes)
        fail("its length is another's", source, number);
    for (unsigned i = 0; i < len_bytes; i++)
        if (bytes[i] != byte_of(source, number, i))
            fail("its content is damaged, or another's", source, number);
}

/* A receive has ended, and so have all before it. */
static void take(const struct receive *receive, const MPI_Status *status)
{
    int source = status->MPI_SOURCE, len_bytes;
    unsigned number = 0;
    if (receive->source >= 0 && receive->source != source)
        fail("it came from another rank", source, 0);
    const struct message *plan_of = plans[source];
    while (number < messages && (plan_of[number].to != rank || plan_of[number].is_taken ||
                                 (receive->tag >= 0 && plan_of[number].tag != receive->tag)))
        number++;
    if (number == messages)
        fail("nothing was to come", source, number);
    if (plan_of[number].tag != status->MPI_TAG)
        fail("its tag is another's", source, number);
    MPI_Get_count(status, MPI_BYTE, &len_bytes);
    check(source, number, receive->bytes, (unsigned)len_bytes);
    plans[source][number].is_taken = true;
    coming[source][plan_of[number].tag]--;
    coming[source][TAG_ANY]--;
}

static unsigned coming_in_all(void)
{
    unsigned sum = 0;
    for (int i = 0; i < ranks; i++)
        sum += coming[i][TAG_ANY];
    return sum;
}

/* A receive that will end: the receives under way may take `under_way` of what fits it. */
static void post(struct receive *receive, unsigned under_way, uint64_t *state)
{
    int source = (int)(draw(state) % (uint64_t)ranks), tag = (int)(draw(state) % (TAGS + 1));
    bool names_source = draw(state) % 2 == 0 && coming[source][tag] > under_way;
    bool names_tag = names_source && tag != TAG_ANY;
    receive->source = names_source ? source : -1;
    receive->tag = names_tag ? tag : -1;
    MPI_Irecv(receive->bytes, (int)max_bytes, MPI_BYTE, names_source ? source : MPI_ANY_SOURCE,
              names_tag ? tag : MPI_ANY_TAG, MPI_COMM_WORLD, &receive->request);
}

/* ---- sending --------------------------------------------------------------------------------- */

static void start(struct send *send, unsigned number)
{
    const struct message *message = &plans[rank][number];
    send->bytes = allocate(message->len_bytes, 1);
    for (unsigned i = 0; i < message->len_bytes; i++)
        send->bytes[i] = byte_of(rank, number, i);
    int count = (int)message->len_bytes;
    if (message->is_synchronous)
        MPI_Issend(send->bytes, count, MPI_BYTE, message->to, message->tag, MPI_COMM_WORLD,
                   &send->request);
    else
        MPI_Isend(send->bytes, count, MPI_BYTE, message->to, message->tag, MPI_COMM_WORLD,
                  &send->request);
}

static void exchange(void)
{
    uint64_t state = seed * 7919 + (uint64_t)rank;
    unsigned sent = 0, posted = 0, taken = 0, all;
    memset(coming, 0, (size_t)ranks * sizeof *coming);
    for (int i = 0; i < ranks; i++)
        plan(i);
    all = coming_in_all();
    while (taken < all || sent < messages) {
        if (sent < messages) {
            start(&sends[sent], sent);
            sent++;
        }
        for (; posted < all && posted - taken < WINDOW; posted++)
            post(&receives[posted % WINDOW], posted - taken, &state);
        struct receive *oldest = &receives[taken % WINDOW];
        MPI_Status status;
        int flag = 0;
        if (taken < posted)
            MPI_Test(&oldest->request, &flag, &status);
        if (flag) {
            take(oldest, &status);
            taken++;
        }
    }
    for (unsigned i = 0; i < messages; i++) {
        MPI_Wait(&sends[i].request, MPI_STATUS_IGNORE);
        free(sends[i].bytes);
    }
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void set_up(char **argv)
{
    messages = (unsigned)strtoul(argv[1], NULL, 10);
    max_bytes = (unsigned)strtoul(argv[2], NULL, 10);
    seed = strtoull(argv[3], NULL, 10);
    plans = allocate((size_t)ranks, sizeof(struct message *));
    coming = allocate((size_t)ranks, sizeof *coming);
    for (int i = 0; i < ranks; i++)
        plans[i] = allocate(messages, sizeof **plans);
    sends = allocate(messages, sizeof *sends);
    for (unsigned i = 0; i < WINDOW; i++)
        receives[i].bytes = allocate(max_bytes, 1);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 5 && argc != 6) {
        (void)fprintf(stderr, "usage: velo-mpi-mix MESSAGES MAX_BYTES SEED ROUNDS [SECONDS]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    double end = MPI_Wtime() + (argc == 6 ? strtod(argv[5], NULL) : 0);
    int is_over = 0;
    unsigned rounds = 0, rounds_min = (unsigned)strtoul(argv[4], NULL, 10);
    set_up(argv);
    for (; !is_over; rounds++, seed++) {
        exchange();
        is_over = rounds + 1 >= rounds_min && MPI_Wtime() >= end;
        MPI_Bcast(&is_over, 1, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD); /* Nobody's wildcard takes a message of the next round. */
    }
    if (rank == 0)
        (void)printf("%d ranks, %u rounds of %u messages each: all as sent\n", ranks, rounds,
                     messages);
    MPI_Finalize();
    return 0;
}
