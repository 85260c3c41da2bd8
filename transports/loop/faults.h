/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults, which make the transport as bad as transport.h allows. $VELO_LOOP holds settings NAME=N,
 * separated by commas:
 *
 *     payload=N    most bytes of a frame: long messages come in many pieces
 *     delay_us=N   a frame is taken in so much later
 *     partial=N    a look takes in N frames of a line at most; each Nth send finds no room
 *     full=N       the first N sends of a line find no room
 *     reorder=N    one of up to N frames that have come goes first, at random, where it may
 *     die=N        a line is lost after N frames
 *     seed=N       the seed of all that is random
 *
 * Between socket and library each packet passes the queue of its line. Without a setting it leaves
 * the queue at once.
 */
#ifndef VELO_LOOP_FAULTS_H
#define VELO_LOOP_FAULTS_H

#include "../../lib/net/transport.h"

#define FAULTS_QUEUE_MAX 64u

/* A packet of the socket: the frame, then its payload. */
struct packet {
    uint32_t kind;
    uint32_t payload_bytes;
    uint64_t word[2];
    char payload[VELO_FRAME_BYTES_MAX];
};

/* The faults of one line; all zero at first. */
struct faults {
    struct {
        int64_t due_us;
        struct packet *packet;
    } queue[FAULTS_QUEUE_MAX]; /* The earliest first. */
    uint32_t queue_len;
    uint32_t sends, frames;
    uint64_t random;
};

/* The part of $VELO_LOOP that makes no sense; NULL: all of it makes sense. */
const char *faults_no_setting(void);
/* May packets stay in their queues, where no descriptor shows them? */
bool faults_may_delay(void);
/* The most frames that a look takes in from a line. */
uint32_t faults_frames_per_look(uint32_t usual);

/* Shall this send find no room? */
bool faults_no_room(struct faults *faults);
/* May another packet be read from the socket? */
bool faults_has_room(const struct faults *faults);
/* Keep a packet that was read. */
void faults_put(struct faults *faults, struct packet *packet);
/* The packet to take in now, which the caller frees; NULL: none is due. */
struct packet *faults_take(struct faults *faults);
/* Has the line lived long enough? */
bool faults_is_cut(const struct faults *faults);
/* Free the packets that are left. */
void faults_free(struct faults *faults);

#endif
