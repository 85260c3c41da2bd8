/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Put and get over rma2.h, beside the same loops over rma.h: one at a time, and many at once.
 *
 * `own` modes reach memory of the same process, by loads and stores: there the cost of the calls
 * shows best. The others reach the second process's, by cross-memory attach.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <velo/rma.h>

#include <rma2.h>

#include "../clock.h"
#include "pair.h"

#define MEMORY_BYTES (4u << 20)
#define UNDER_WAY 16u

/* One process's port of each kind, and where it reaches. */
struct side {
    unsigned char *memory;
    RMA2_Port port;
    RMA2_Region region;
    RMA2_Handle handles[2]; /* To itself, to the other. */
    RMA2_NLA remote[2];
    struct velo_port *bare_port;
    struct velo_rma *rma;
    struct velo_rma_mem *mem;
    struct velo_rma_peer *peers[2];
    struct velo_rma_place places[2];
};

/* The measurements. */
struct work {
    const char *mode;
    bool is_get;
    bool is_other; /* The second process's memory. */
    bool is_many;  /* Up to UNDER_WAY at once. */
    uint32_t size;
};

static const struct work works[] = {
    {"own put", false, false, false, 8},
    {"own get", true, false, false, 8},
    {"own put", false, false, false, 4096},
    {"own get", true, false, false, 4096},
    {"put", false, true, false, 8},
    {"get", true, true, false, 8},
    {"put bandwidth", false, true, true, 65536},
    {"get bandwidth", true, true, true, 65536},
    {"put bandwidth", false, true, true, 1 << 20},
    {"get bandwidth", true, true, true, 1 << 20},
};

/* ---- the two ways ---------------------------------------------------------------------------- */

static void post_rma2(struct side *side, const struct work *work)
{
    RMA2_ERROR error =
        work->is_get ? rma2_post_get_bt(side->port, side->handles[work->is_other], &side->region, 0,
                                        work->size, side->remote[work->is_other],
                                        RMA2_COMPLETER_NOTIFICATION, RMA2_CMD_DEFAULT)
                     : rma2_post_put_bt(side->port, side->handles[work->is_other], &side->region, 0,
                                        work->size, side->remote[work->is_other],
                                        RMA2_REQUESTER_NOTIFICATION, RMA2_CMD_DEFAULT);
    pair_check(error == RMA2_SUCCESS, "a post of rma2");
}

static void wait_rma2(struct side *side)
{
    RMA2_Notification *note;
    RMA2_ERROR error;
    while ((error = rma2_noti_probe(side->port, &note)) == RMA2_NO_NOTI)
        ;
    pair_check(error == RMA2_SUCCESS && rma2_noti_get_error(note) == 0 &&
                   rma2_noti_free(side->port, note) == RMA2_SUCCESS,
               "a notification of rma2");
}

static void post_rma(struct side *side, const struct work *work)
{
    struct velo_rma_peer *peer = side->peers[work->is_other];
    struct velo_rma_place place = side->places[work->is_other];
    int status =
        work->is_get
            ? velo_rma_get(peer, side->memory, work->size, place, VELO_RMA_NOTIFY_REQUESTER, 1)
            : velo_rma_put(peer, side->memory, work->size, place, VELO_RMA_NOTIFY_REQUESTER, 1);
    pair_check(status == VELO_OK, "a post of rma");
}

static void wait_rma(struct side *side)
{
    struct velo_rma_notification note;
    int count;
    while ((count = velo_rma_try_poll(side->rma, &note, 1)) == 0)
        ;
    pair_check(count == 1 && note.status == VELO_OK, "a notification of rma");
}

typedef void post_call(struct side *, const struct work *);
typedef void wait_call(struct side *);

static double run(const struct pair *pair, struct side *side, const struct work *work,
                  post_call *post, wait_call *wait_for)
{
    const unsigned count = work->is_many ? UNDER_WAY * 4 : pair->options.repeats;
    const unsigned most = work->is_many ? UNDER_WAY : 1;
    uint64_t begin_ns = now_ns();
    for (unsigned i = 0; i < count + most - 1; i++) {
        if (i < count)
            post(side, work);
        if (i >= most - 1)
            wait_for(side);
    }
    return (double)(now_ns() - begin_ns) / count;
}

static void measure(struct pair *pair, struct side *side, const struct work *work)
{
    static struct pair_times times;
    for (unsigned i = 0; i < 2 * pair->options.batches; i++) {
        if (i % 4 == 0 || i % 4 == 3) /* In turns, each as often the first. */
            times.ours[i / 2] = run(pair, side, work, post_rma2, wait_rma2);
        else
            times.bare[i / 2] = run(pair, side, work, post_rma, wait_rma);
    }
    pair_print(pair, work->mode, work->size, "rma2", "rma", &times);
}

/* ---- the processes --------------------------------------------------------------------------- */

static void open_side(struct pair *pair, struct side *side)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    pair_check(posix_memalign((void **)&side->memory, 4096, MEMORY_BYTES) == 0, "posix_memalign");
    memset(side->memory, pair->self + 1, MEMORY_BYTES);
    pair_check(rma2_open(&side->port) == RMA2_SUCCESS &&
                   rma2_register_nomalloc(side->port, side->memory, MEMORY_BYTES, &side->region) ==
                       RMA2_SUCCESS,
               "opening rma2");
    attr.node = rma2_get_nodeid(side->port);
    attr.vpid = 254 + pair->self;
    pair_check(velo_port_open(&attr, &side->bare_port) == VELO_OK &&
                   velo_rma_open(side->bare_port, NULL, &side->rma) == VELO_OK &&
                   velo_rma_mem_register(side->rma, side->memory, MEMORY_BYTES, VELO_RMA_RIGHT_ALL,
                                         VELO_RMA_PEER_ANY, &side->mem) == VELO_OK,
               "opening rma");
    volatile uint64_t *mine = pair->shared + 2 + 3 * pair->self;
    mine[0] = rma2_get_vpid(side->port);
    mine[1] = side->region.nla;
    mine[2] = velo_rma_mem_key(side->mem);
    pair_meet(pair);
}

static void connect(struct pair *pair, struct side *side)
{
    for (int i = 0; i < 2; i++) {
        const int process = i ? 1 - pair->self : pair->self;
        volatile uint64_t *place = pair->shared + 2 + 3 * process;
        pair_check(rma2_connect(side->port, rma2_get_nodeid(side->port), (RMA2_VPID)place[0],
                                RMA2_CONN_DEFAULT, &side->handles[i]) == RMA2_SUCCESS &&
                       velo_rma_connect(side->rma,
                                        VELO_ID(rma2_get_nodeid(side->port), 254 + process),
                                        &side->peers[i], VELO_FOREVER) == VELO_OK,
                   "connecting");
        side->remote[i] = place[1] + MEMORY_BYTES / 2;
        side->places[i] = velo_rma_place(place[2], MEMORY_BYTES / 2);
    }
}

int main(int argc, char **argv)
{
    struct pair pair = pair_begin(
        argc, argv,
        "Measure rma2.h between two processes, beside rma.h in the same ones, in turns: puts and "
        "gets with a notification, one at a time and many at once.\vOutput is one JSON object a "
        "line; times are of one operation.",
        2000);
    struct side side;
    open_side(&pair, &side);
    connect(&pair, &side);
    if (!pair.self) {
        for (size_t i = 0; i < sizeof works / sizeof works[0]; i++)
            measure(&pair, &side, &works[i]);
        pair.shared[8] = 1;
    }
    while (pair.self && !pair.shared[8]) { /* The other may have to ask us. */
        RMA2_Notification *note;
        (void)rma2_noti_probe(side.port, &note);
        (void)velo_rma_progress(side.rma);
        sched_yield();
    }
    pair_meet(&pair);
    pair_check(rma2_close(side.port) == RMA2_SUCCESS, "rma2_close");
    pair_check(velo_rma_close(side.rma) == VELO_OK && velo_port_close(side.bare_port) == VELO_OK,
               "closing rma");
    free(side.memory);
    pair_end(&pair);
}
