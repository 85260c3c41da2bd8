/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The half round trip of short messages by mq.h and by the libfabric provider above it, in turns in
 * one run: the difference is what the provider costs. Of both once more with 10,000 receives posted
 * that nothing comes for.
 *
 *   velo-ofi-perf [rounds [messages [core core]]]
 *
 * One line a round would tell little; it prints medians and the least of each way.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_tagged.h>
#include <velo/mq.h>

#include "clock.h"
#include "duo_fabric.h"

#define WAYS 7
#define POSTED 10000
#define ROUNDS_MAX 1000
#define LEN_BYTES 8

enum way { MQ_PROGRESS, MQ_POLL, MQ_CROWD, FI_WAY_INJECT, FI_WAY_SEND, FI_WAY_DATA, FI_WAY_CROWD };

static const char *const names[WAYS] = {"mq.h, try_send and progress",
                                        "mq.h, try_send and poll",
                                        "mq.h, progress, 10,000 receives posted",
                                        "provider, fi_tinject",
                                        "provider, fi_tsend with its completion",
                                        "provider, fi_tinjectdata",
                                        "provider, fi_tinject, 10,000 posted"};

struct side {
    struct duo duo;
    struct velo_port *port;
    struct velo_mq *mq;
    struct velo_mq_peer *peer;
    struct duo_fabric fabric;
};

static void open_mq(struct side *side, const char *domain)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    velo_id_t mine, theirs;
    attr.domain = domain;
    duo_check(velo_port_open(&attr, &side->port), "open a port");
    duo_check(velo_mq_open(side->port, NULL, NULL, &side->mq), "open the queues");
    mine = velo_port_id(side->port);
    duo_swap(&side->duo, &mine, &theirs, sizeof mine);
    duo_check(velo_mq_connect(side->mq, theirs, &side->peer, VELO_FOREVER), "connect");
}

static void open_provider(struct side *side)
{
    const struct fi_cq_attr queue = {.format = FI_CQ_FORMAT_TAGGED};
    side->fabric = duo_fabric_open(&side->duo, "velo", NULL, FI_TAGGED, queue);
}

/* Receives that nothing comes for, with ignore bits as MPIs have them. */
static void post_crowd(struct side *side)
{
    static struct velo_mq_request requests[POSTED];
    static char buf[LEN_BYTES];
    const uint64_t ignore = UINT64_C(1) << 63;
    for (uint64_t i = 0; i < POSTED; i++) {
        duo_check(velo_mq_irecv(side->mq, VELO_MQ_ANY_SOURCE, i + 2, ignore, buf, sizeof buf,
                                &requests[i]),
                  "irecv");
        duo_check((int)fi_trecv(side->fabric.ep, buf, sizeof buf, NULL, FI_ADDR_UNSPEC, i + 2,
                                ignore, buf),
                  "fi_trecv");
    }
}

static void mq_send(struct side *side, const void *buf)
{
    while (velo_mq_try_send(side->peer, buf, LEN_BYTES, 1) == VELO_AGAIN)
        (void)velo_mq_progress(side->mq);
}

static void mq_turns(struct side *side, int count, bool polls)
{
    struct velo_mq_request request = {0};
    char in[LEN_BYTES], out[LEN_BYTES] = {0};
    for (int i = 0; i < count; i++) {
        if (side->duo.rank == 0)
            mq_send(side, out);
        duo_check(velo_mq_irecv(side->mq, VELO_MQ_ANY_SOURCE, 1, 0, in, sizeof in, &request),
                  "irecv");
        while (request.status == VELO_AGAIN)
            (void)(polls ? velo_mq_poll(side->mq, &request) : velo_mq_progress(side->mq));
        if (side->duo.rank == 1)
            mq_send(side, out);
    }
}

static void fi_send_one(struct side *side, const void *buf, enum way way, int *sends)
{
    ssize_t rc;
    do {
        if (way == FI_WAY_INJECT || way == FI_WAY_CROWD)
            rc = fi_tinject(side->fabric.ep, buf, LEN_BYTES, side->fabric.addr, 1);
        else if (way == FI_WAY_DATA)
            rc = fi_tinjectdata(side->fabric.ep, buf, LEN_BYTES, 7, side->fabric.addr, 1);
        else
            rc = fi_tsend(side->fabric.ep, buf, LEN_BYTES, NULL, side->fabric.addr, 1, NULL);
        if (rc == -FI_EAGAIN)
            (void)fi_cq_read(side->fabric.cq, NULL, 0);
    } while (rc == -FI_EAGAIN);
    duo_check((int)rc, "send");
    *sends += way == FI_WAY_SEND;
}

static void fi_turns(struct side *side, int count, enum way way)
{
    char in[LEN_BYTES], out[LEN_BYTES] = {0};
    struct fi_cq_tagged_entry entry;
    int sends = 0;
    for (int i = 0; i < count; i++) {
        bool received = false;
        if (side->duo.rank == 0)
            fi_send_one(side, out, way, &sends);
        duo_check((int)fi_trecv(side->fabric.ep, in, sizeof in, NULL, FI_ADDR_UNSPEC, 1, 0, in),
                  "fi_trecv");
        while (!received || sends > 0) {
            ssize_t rc = fi_cq_read(side->fabric.cq, &entry, 1);
            if (rc == -FI_EAGAIN)
                continue;
            duo_check(rc != 1, "fi_cq_read");
            if (entry.flags & FI_RECV)
                received = true;
            else
                sends--;
        }
        if (side->duo.rank == 1)
            fi_send_one(side, out, way, &sends);
    }
    while (sends > 0)
        sends -= fi_cq_read(side->fabric.cq, &entry, 1) == 1;
}

static void turns(struct side *sides, int count, enum way way)
{
    struct side *side = &sides[way == MQ_CROWD || way == FI_WAY_CROWD];
    if (way <= MQ_CROWD)
        mq_turns(side, count, way == MQ_POLL);
    else
        fi_turns(side, count, way);
}

static double results[WAYS][ROUNDS_MAX];

/* The second one of the sides has many receives posted. */
static void run(struct side sides[2], int rounds, int count)
{
    struct side *side = &sides[0];
    char domain[32], mine = 0, theirs;
    (void)snprintf(domain, sizeof domain, "perf%d", (int)side->duo.parent);
    for (int i = 0; i < 2; i++) {
        open_mq(&sides[i], domain);
        open_provider(&sides[i]);
    }
    post_crowd(&sides[1]);
    for (int round = -1; round < rounds; round++) { /* The first one warms up. */
        for (int way = 0; way < WAYS; way++) {
            duo_swap(&side->duo, &mine, &theirs, 1);
            uint64_t start_ns = now_ns();
            turns(sides, count, (enum way)way);
            if (round >= 0)
                results[way][round] = (double)(now_ns() - start_ns) / count / 2;
        }
    }
}

int main(int argc, char **argv)
{
    int rounds = duo_number(argc, argv, 1, 50);
    int count = duo_number(argc, argv, 2, 5000);
    int cores[2] = {duo_number(argc, argv, 3, 0), duo_number(argc, argv, 4, 1)};
    if (rounds < 1 || rounds > ROUNDS_MAX || count < 1) {
        fprintf(stderr, "usage: velo-ofi-perf [rounds [messages [core core]]]\n");
        return 2;
    }
    (void)setenv("FI_PROVIDER_PATH", VELO_PROVIDER_PATH, 0);
    struct side sides[2] = {{.duo = duo_start(cores)}};
    sides[1] = sides[0];
    run(sides, rounds, count);
    if (sides[0].duo.rank)
        return 0;
    for (int way = 0; way < WAYS; way++) {
        qsort(results[way], (size_t)rounds, sizeof(double), duo_compare);
        printf("%-40s median %7.1f ns, least %7.1f ns\n", names[way], results[way][rounds / 2],
               results[way][0]);
    }
    (void)waitpid(sides[0].duo.child, NULL, 0);
    return 0;
}
