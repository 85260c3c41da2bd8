/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Message rate of pairs, as the OSU test osu_mbw_mr defines it: each rank of the first half sends a
 * window of 64 messages to its partner in the second half, which answers a whole window with one
 * short message; the rate is that of all pairs together, over the time of the slowest sender.
 */
#include "clock.h"
#include "session.h"

#include <stdlib.h>
#include <string.h>

#define WINDOW 64u
#define WARM_WINDOWS 2u
#define ACK_BYTES 4
#define TAG_DATA 100
#define TAG_ACK 101

struct pair {
    bool sends;
    int peer;
    unsigned char *buffer; /* a window of messages */
    MPI_Request requests[WINDOW];
};

static void windows(struct pair *pair, size_t size_bytes, unsigned count)
{
    char ack[ACK_BYTES] = {0};
    int bytes = (int)size_bytes;
    for (unsigned i = 0; i < count; i++) {
        for (unsigned k = 0; k < WINDOW; k++) {
            unsigned char *message = pair->buffer + k * size_bytes;
            if (pair->sends) {
                MPI_Isend(message, bytes, MPI_BYTE, pair->peer, TAG_DATA, MPI_COMM_WORLD,
                          &pair->requests[k]);
            } else {
                MPI_Irecv(message, bytes, MPI_BYTE, pair->peer, TAG_DATA, MPI_COMM_WORLD,
                          &pair->requests[k]);
            }
        }
        MPI_Waitall(WINDOW, pair->requests, MPI_STATUSES_IGNORE);
        if (pair->sends) {
            MPI_Recv(ack, ACK_BYTES, MPI_BYTE, pair->peer, TAG_ACK, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        } else {
            MPI_Send(ack, ACK_BYTES, MPI_BYTE, pair->peer, TAG_ACK, MPI_COMM_WORLD);
        }
    }
}

/* One window whose messages differ in every byte, and in order. */
static void verify(struct pair *pair, size_t size_bytes)
{
    for (unsigned k = 0; k < WINDOW; k++) {
        memset(pair->buffer + k * size_bytes, pair->sends ? (int)k + 1 : 0, size_bytes);
    }
    windows(pair, size_bytes, 1);
    for (size_t at = 0; at < WINDOW * size_bytes; at++) {
        if (pair->buffer[at] != at / size_bytes + 1) {
            rank_fail(EXIT_VERIFY, "message %zu of a window of %zu bytes each arrived wrong",
                      at / size_bytes, size_bytes);
        }
    }
}

static void batch(struct session *session, struct pair *pair, size_t size_bytes)
{
    struct batch out = {.metric = "rate_msgs_per_s",
                        .limit_name = "stream",
                        .size_bytes = size_bytes,
                        .pairs = session->ranks / 2};
    double time_ns, slowest_ns = 0;
    verify(pair, size_bytes);
    session_bracket_stream(session, &out.before);
    windows(pair, size_bytes, WARM_WINDOWS);
    MPI_Barrier(MPI_COMM_WORLD);
    uint64_t begin_ns = now_ns();
    windows(pair, size_bytes, session->options.windows);
    time_ns = (double)(now_ns() - begin_ns);
    MPI_Reduce(&time_ns, &slowest_ns, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    session_bracket_stream(session, &out.after);
    if (session->rank == 0) {
        out.value = (double)out.pairs * WINDOW * session->options.windows * 1e9 / slowest_ns;
    }
    session_report(session, &out);
}

static void run(struct session *session)
{
    const struct options *options = &session->options;
    unsigned half = session->ranks / 2;
    struct pair pair = {.sends = session->rank < half};
    size_t largest = 1;
    for (unsigned i = 0; i < options->sizes_count; i++) {
        largest = options->sizes_bytes[i] > largest ? options->sizes_bytes[i] : largest;
    }
    pair.peer = (int)(pair.sends ? session->rank + half : session->rank - half);
    pair.buffer = session_buffer(WINDOW * largest);
    while (session_next(session)) {
        for (unsigned i = 0; i < options->sizes_count; i++) {
            batch(session, &pair, options->sizes_bytes[i]);
        }
    }
    free(pair.buffer);
}

const struct mode rate_mode = {
    .name = "rate",
    .text = "messages per second of pairs, in windows of 64",
    .batches = 100,
    .ranks_multiple = 2,
    .sizes = "8",
    .run = run,
};
