/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An owner of memory in a process of its own, and a requester in this one. The owner does what it
 * is told, and otherwise calls its library and keeps what it is notified of.
 */
#ifndef VELO_TEST_STAGE_H
#define VELO_TEST_STAGE_H

#include <stdatomic.h>

#include <velo/rma.h>

#include "test.h"

/* How memory is reached. */
enum way {
    WAY_DIRECT, /* From velo_rma_mem_alloc(). */
    WAY_ATTACH, /* Any memory, by cross-memory attach; simulated, by the node. */
    WAY_ASKED,  /* Any memory, attach forbidden. */
    WAYS
};

enum { OWNER_VPID = 1, REQUESTER_VPID = 2, NOTES_MAX = 65536 };

/* Memory that both processes see. */
struct stage {
    enum way way;
    size_t size_bytes;
    uint32_t rights;
    velo_id_t grant;
    atomic_int ready;
    atomic_int order; /* enum stage_order; 0 when carried out. */
    velo_rma_key_t key;
    uint64_t addr; /* In the owner. */
    struct velo_rma_counters counters;
    atomic_uint notes_len;
    struct velo_rma_notification notes[NOTES_MAX];
};

enum stage_order {
    STAGE_MIRROR = 1,
    STAGE_DEREGISTER,
    STAGE_STOP,
    STAGE_CLOSE,
    STAGE_REGISTER,
    STAGE_PAUSE,
    STAGE_COUNT
};

struct owner {
    pid_t pid;
    struct stage *stage;
    unsigned char *memory; /* The owner registers it; or a copy of memory that it allocated. */
};

struct requester {
    struct velo_port *port;
    struct velo_rma *rma;
    struct velo_rma_peer *peer;
};

/* Forbid attach, or permit it, in this process and those to come. */
void way_set(enum way way);
/* Start an owner; before the requester, so that it inherits no port. */
void owner_start(struct owner *owner, enum way way, size_t size_bytes, uint32_t rights,
                 velo_id_t grant);
/* Have it do something, and wait until it is done. PAUSE: it sleeps until the next order. */
void owner_order(struct owner *owner, enum stage_order order);
/* Its memory as it is now. */
const unsigned char *owner_memory(struct owner *owner);
/* Wait for its next notification. */
struct velo_rma_notification owner_note(struct owner *owner, unsigned index);
/* Close it and check that it ends well. */
void owner_stop(struct owner *owner);

struct velo_rma *rma_open(struct velo_port *port);
void requester_open(struct requester *requester, int vpid);
void requester_close(struct requester *requester);
/* Post with a notification to the requester, and wait for that. */
struct velo_rma_notification note_expect(struct velo_rma *rma);
void note_none(struct velo_rma *rma);
void flush(struct velo_rma_peer *peer);
/* Make progress, and let others run: there may be more processes than cores. */
void pace(struct velo_rma *rma);
/* Take away what a killed process of that name left. */
void clean_up_after(int vpid);

#define FOR_EACH_WAY(way)                                                                          \
    for (enum way way = WAY_DIRECT; (way) < WAYS; (way)++)                                         \
        if (way_set(way), way_is_possible(way))
bool way_is_possible(enum way way);

#endif
