/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Message rate of pairs, as the OSU test osu_mbw_mr defines it: each rank of the first half sends a
 * window of 64 messages to its partner in the second half, which answers a whole window with one
 * short message; the rate is that of all pairs together, over the time of the slowest sender.
 *
 * Incast is the same with one receiver, rank 0, for all others. It takes a window of each before it
 * answers any, so that a sender that it favors does not run ahead.
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

/* One rank's part: it sends to one peer, or receives from one or more. */
struct side {
    bool sends;
    int first_peer;
    int peers;             /* first_peer and those after it; 1 if it sends */
    unsigned char *buffer; /* a window of messages for each peer */
    MPI_Request *requests; /* likewise */
};

static void start_window(struct side *side, int index, size_t size_bytes)
{
    int bytes = (int)size_bytes, peer = side->first_peer + index;
    for (unsigned k = 0; k < WINDOW; k++) {
        size_t at = (size_t)index * WINDOW + k;
        unsigned char *message = side->buffer + at * size_bytes;
        if (side->sends) {
            MPI_Isend(message, bytes, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD,
                      &side->requests[at]);
        } else {
            MPI_Irecv(message, bytes, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD,
                      &side->requests[at]);
        }
    }
}

static void windows(struct side *side, size_t size_bytes, unsigned count)
{
    char ack[ACK_BYTES] = {0};
    for (unsigned i = 0; i < count; i++) {
        for (int index = 0; index < side->peers; index++) {
            start_window(side, index, size_bytes);
        }
        MPI_Waitall(side->peers * (int)WINDOW, side->requests, MPI_STATUSES_IGNORE);
        for (int index = 0; index < side->peers; index++) {
            int peer = side->first_peer + index;
            if (side->sends) {
                MPI_Recv(ack, ACK_BYTES, MPI_BYTE, peer, TAG_ACK, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
            } else {
                MPI_Send(ack, ACK_BYTES, MPI_BYTE, peer, TAG_ACK, MPI_COMM_WORLD);
            }
        }
    }
}

/* What every byte of a message of a window is: it tells the message, and the sender. */
static int content(int sender, size_t message)
{
    return (int)(message + 1 + 67 * (size_t)sender) & 0xff;
}

/* One window whose messages differ in every byte, by sender and in order. */
static void verify(const struct session *session, struct side *side, size_t size_bytes)
{
    size_t messages = (size_t)side->peers * WINDOW;
    for (size_t k = 0; k < messages; k++) {
        int byte = content((int)session->rank, k);
        memset(side->buffer + k * size_bytes, side->sends ? byte : ~byte, size_bytes);
    }
    windows(side, size_bytes, 1);
    for (size_t at = 0; !side->sends && at < messages * size_bytes; at++) {
        size_t message = at / size_bytes;
        int sender = side->first_peer + (int)(message / WINDOW);
        if (side->buffer[at] != content(sender, message % WINDOW)) {
            rank_fail(EXIT_VERIFY, "message %zu of a window of %zu bytes each arrived wrong",
                      message % WINDOW, size_bytes);
        }
    }
}

static void batch(struct session *session, struct side *side, unsigned senders, size_t size_bytes)
{
    struct batch out = {.metric = "rate_msgs_per_s",
                        .limit_name = "stream",
                        .size_bytes = size_bytes,
                        .pairs = senders};
    double time_ns, slowest_ns = 0;
    verify(session, side, size_bytes);
    session_bracket_stream(session, &out.before);
    windows(side, size_bytes, WARM_WINDOWS);
    MPI_Barrier(MPI_COMM_WORLD);
    uint64_t begin_ns = now_ns();
    windows(side, size_bytes, session->options.windows);
    time_ns = (double)(now_ns() - begin_ns);
    MPI_Reduce(&time_ns, &slowest_ns, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    session_bracket_stream(session, &out.after);
    if (session->rank == 0) {
        out.value = (double)senders * WINDOW * session->options.windows * 1e9 / slowest_ns;
    }
    session_report(session, &out);
}

/* Batches of every size, by so many senders in all. */
static void run(struct session *session, struct side *side, unsigned senders)
{
    const struct options *options = &session->options;
    size_t largest_bytes = session_largest_bytes(session);
    size_t messages = (size_t)side->peers * WINDOW;
    side->buffer = session_buffer(messages * largest_bytes);
    side->requests = calloc(messages, sizeof *side->requests);
    if (!side->requests) {
        rank_fail(EXIT_FAILED, "out of memory for %zu requests", messages);
    }
    while (session_next(session)) {
        for (unsigned i = 0; i < options->sizes_count; i++) {
            batch(session, side, senders, options->sizes_bytes[i]);
        }
    }
    free(side->requests);
    free(side->buffer);
}

static void run_pairs(struct session *session)
{
    unsigned half = session->ranks / 2;
    struct side side = {.sends = session->rank < half, .peers = 1};
    side.first_peer = (int)(side.sends ? session->rank + half : session->rank - half);
    run(session, &side, half);
}

static void run_incast(struct session *session)
{
    unsigned senders = session->ranks - 1;
    struct side receiver = {.first_peer = 1, .peers = (int)senders};
    struct side sender = {.sends = true, .first_peer = 0, .peers = 1};
    run(session, session->rank == 0 ? &receiver : &sender, senders);
}

const struct mode rate_mode = {
    .name = "rate",
    .text = "messages per second of pairs, in windows of 64",
    .batches = 100,
    .ranks_multiple = 2,
    .sizes = "8",
    .takes_windows = true,
    .run = run_pairs,
};

const struct mode incast_mode = {
    .name = "incast",
    .text = "messages per second of all others to rank 0, in windows of 64",
    .batches = 30,
    .ranks_multiple = 1,
    .sizes = "8",
    .takes_windows = true,
    .run = run_incast,
};
