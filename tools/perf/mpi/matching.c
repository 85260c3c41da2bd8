/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a long queue of posted receives: the half round trip of 8 bytes with one receive
 * posted, and with 10,000 posted, of which the fitting one was posted last. Both kinds take turns.
 */
#include "pingpong.h"

#include <stdlib.h>

#define SIZE_BYTES 8u
#define ROUND_TRIPS 200u

struct queue {
    unsigned count; /* receives posted beside the one */
    int peer;
    MPI_Request *requests;
    uint32_t *values;
};

/* Tags 1 to count; those of the round trips are 0. */
static void post(struct queue *queue)
{
    for (unsigned i = 0; i < queue->count; i++) {
        queue->values[i] = 0;
        MPI_Irecv(&queue->values[i], sizeof queue->values[i], MPI_BYTE, queue->peer, (int)i + 1,
                  MPI_COMM_WORLD, &queue->requests[i]);
    }
}

/* Complete them all, in the order of posting, and see that each got its own message. */
static void drain(struct queue *queue)
{
    for (unsigned i = 0; i < queue->count; i++) {
        uint32_t value = i + 1;
        MPI_Send(&value, sizeof value, MPI_BYTE, queue->peer, (int)i + 1, MPI_COMM_WORLD);
    }
    MPI_Waitall((int)queue->count, queue->requests, MPI_STATUSES_IGNORE);
    for (unsigned i = 0; i < queue->count; i++) {
        if (queue->values[i] != i + 1) {
            rank_fail(EXIT_VERIFY, "the receive of tag %u got the message of tag %u", i + 1,
                      queue->values[i]);
        }
    }
}

static void batch(struct session *session, struct pingpong *pingpong, unsigned posted)
{
    struct batch out = {.metric = "half_rtt_ns",
                        .limit_name = "pingpong",
                        .size_bytes = SIZE_BYTES,
                        .pairs = 1,
                        .posted = posted};
    session_bracket(session, &out.before);
    out.value = pingpong_half_rtt_ns(pingpong, SIZE_BYTES, ROUND_TRIPS);
    session_bracket(session, &out.after);
    session_report(session, &out);
}

static void run(struct session *session)
{
    struct queue queue = {.count = session->options.posted - 1, .peer = (int)(session->rank ^ 1)};
    struct pingpong pingpong;
    queue.requests = calloc(queue.count, sizeof queue.requests[0]);
    queue.values = calloc(queue.count, sizeof queue.values[0]);
    if (!queue.requests || !queue.values) {
        rank_fail(EXIT_FAILED, "out of memory for %u receives", queue.count);
    }
    pingpong_init(&pingpong, session, SIZE_BYTES);
    while (session_next(session)) {
        batch(session, &pingpong, 1);
        post(&queue);
        batch(session, &pingpong, session->options.posted);
        drain(&queue);
    }
    pingpong_free(&pingpong);
    free(queue.requests);
    free(queue.values);
}

const struct mode matching_mode = {
    .name = "matching",
    .text = "half round trip with 1 and with many posted receives",
    .batches = 30,
    .ranks_multiple = 2,
    .takes_posted = true,
    .run = run,
};
