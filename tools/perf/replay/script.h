/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a rank does, as `velo replay` writes it: a text, one operation a line.
 *
 *   velo-replay 1 RANKS RANK TOOK_NS
 *   comm MEMBER...                        communicators are numbered from 0 in this order
 *   compute NS
 *   send REQUEST COMM PEER TAG BYTES
 *   receive REQUEST COMM PEER TAG BYTES
 *   wait REQUEST
 *   OPERATION COMM ROOT BYTES             a collective one; the bytes are those of a block
 */
#ifndef VELO_REPLAY_SCRIPT_H
#define VELO_REPLAY_SCRIPT_H

#include <stddef.h>
#include <stdint.h>

#define REPLAY_COMMS_MAX 1024u
#define REPLAY_REQUESTS_MAX 65536u
#define REPLAY_BYTES_MAX (1 << 30)

enum step_kind {
    STEP_COMPUTE,
    STEP_SEND,
    STEP_RECEIVE,
    STEP_WAIT,
    STEP_BARRIER,
    STEP_BCAST,
    STEP_GATHER,
    STEP_SCATTER,
    STEP_ALLGATHER,
    STEP_ALLTOALL,
    STEP_ALLREDUCE,
    STEP_REDUCE,
    STEP_REDUCE_SCATTER,
    STEP_SCAN,
    STEP_EXSCAN,
    STEP_KINDS
};

struct step {
    enum step_kind kind;
    uint32_t request;
    uint32_t comm;
    uint32_t peer; /* or root */
    uint32_t tag;
    uint32_t bytes;
    uint64_t compute_ns;
};

struct members {
    uint32_t count;
    int *ranks;
};

struct script {
    uint32_t ranks;
    uint32_t rank;
    uint64_t took_ns; /* as the trace says */
    uint32_t comms_count;
    struct members comms[REPLAY_COMMS_MAX];
    uint32_t requests_count; /* Their numbers are below it. */
    size_t steps_count;
    size_t steps_room;
    struct step *steps;
};

/* Read a script. Ends the program with a message that names file and line if it makes no sense. */
void script_read(struct script *script, const char *path);
void script_free(struct script *script);

#endif
