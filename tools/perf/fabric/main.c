/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of 8 bytes by velo over transport ofi and by libfabric alone, over TCP of this machine,
 * in turns in one run: half a round trip, and the rate with a window of 64 messages.
 *
 *   velo-fabric-perf [rounds [turns [core core [way]]]]
 *
 * `way`, velo or bare: this one only, for strace -c -f.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <velo/velo.h>

#include "clock.h"
#include "duo_fabric.h"

#define PROVIDER "tcp;ofi_rxm"
#define ROUNDS_MAX 1000
#define LEN_BYTES 8
#define WINDOW 64

enum way { VELO, BARE, WAYS };
enum figure { HALF, RATE, FIGURES };

static const char *const names[WAYS] = {"velo over ofi", "libfabric alone"};

struct side {
    struct duo duo;
    struct velo_port *port;
    struct velo_conn *conn;
    struct duo_fabric fabric;
    char buffers[WINDOW + 1][LEN_BYTES];
    int posted, sends;
};

static void open_velo(struct side *side, const char *domain)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    velo_id_t mine, theirs;
    attr.domain = domain;
    duo_check(velo_port_open(&attr, &side->port), "open a port");
    mine = velo_port_id(side->port);
    duo_swap(&side->duo, &mine, &theirs, sizeof mine);
    duo_check(velo_connect(side->port, theirs, &side->conn, VELO_FOREVER), "connect");
}

static void open_bare(struct side *side)
{
    const struct fi_cq_attr queue = {.format = FI_CQ_FORMAT_MSG, .size = 1024};
    side->fabric = duo_fabric_open(&side->duo, PROVIDER, "127.0.0.1", FI_MSG, queue);
}

/* ---- messages -------------------------------------------------------------------------------- */

static void velo_sends(struct side *side, int count)
{
    const char out[LEN_BYTES] = {0};
    for (int i = 0; i < count; i++)
        duo_check(velo_send(side->conn, out, LEN_BYTES, 1, VELO_FOREVER), "velo_send");
}

static void velo_receives(struct side *side, int count)
{
    char in[LEN_BYTES];
    for (int i = 0; i < count; i++) {
        int rc;
        while ((rc = velo_try_recv(side->port, in, sizeof in, NULL)) == VELO_AGAIN)
            ;
        duo_check(rc, "velo_try_recv");
    }
}

/* Take outcomes: how many messages came. */
static int bare_poll(struct side *side)
{
    struct fi_cq_msg_entry entry[16];
    int received = 0;
    ssize_t got = fi_cq_read(side->fabric.cq, entry, 16);
    if (got == -FI_EAGAIN)
        return 0;
    duo_check(got <= 0, "fi_cq_read");
    for (ssize_t i = 0; i < got; i++) {
        if (entry[i].flags & FI_RECV)
            received++;
        else
            side->sends--;
    }
    return received;
}

/* The other side's answer may come while this one still sends. */
static int bare_sends(struct side *side, int count)
{
    static const char out[LEN_BYTES];
    int received = 0;
    for (int i = 0; i < count; i++) {
        ssize_t rc;
        while ((rc = fi_send(side->fabric.ep, out, LEN_BYTES, NULL, side->fabric.addr, NULL)) ==
               -FI_EAGAIN)
            received += bare_poll(side);
        duo_check((int)rc, "fi_send");
        side->sends++;
    }
    return received;
}

static void bare_receives(struct side *side, int count)
{
    while (count > 0) {
        int received = bare_poll(side);
        for (int i = 0; i < received; i++)
            duo_check((int)fi_recv(side->fabric.ep, side->buffers[i], LEN_BYTES, NULL,
                                   FI_ADDR_UNSPEC, NULL),
                      "fi_recv");
        count -= received;
    }
}

static void bare_post(struct side *side)
{
    for (; side->posted <= WINDOW; side->posted++)
        duo_check((int)fi_recv(side->fabric.ep, side->buffers[side->posted], LEN_BYTES, NULL,
                               FI_ADDR_UNSPEC, NULL),
                  "fi_recv");
}

static int sends(struct side *side, enum way way, int count)
{
    if (way == BARE)
        return bare_sends(side, count);
    velo_sends(side, count);
    return 0;
}

static void receives(struct side *side, enum way way, int count)
{
    if (way == BARE)
        bare_receives(side, count);
    else
        velo_receives(side, count);
}

/* Rank 0 sends `window` messages, rank 1 answers them with one. */
static void turns(struct side *side, enum way way, int count, int window)
{
    for (int i = 0; i < count; i++) {
        if (side->duo.rank == 0) {
            int early = sends(side, way, window);
            receives(side, way, 1 - early);
        } else {
            receives(side, way, window);
            (void)sends(side, way, 1);
        }
    }
}

/* ---- figures --------------------------------------------------------------------------------- */

static double results[FIGURES][WAYS][ROUNDS_MAX];

static double measure(struct side *side, enum way way, enum figure figure, int count)
{
    char mine = 0, theirs;
    int window = figure == RATE ? WINDOW : 1;
    duo_swap(&side->duo, &mine, &theirs, 1);
    uint64_t start_ns = now_ns();
    turns(side, way, count, window);
    double each_ns = (double)(now_ns() - start_ns) / count;
    return figure == RATE ? 1000 * window / each_ns : each_ns / 2000;
}

static void run(struct side *side, int rounds, int count, const char *only)
{
    char domain[32];
    (void)snprintf(domain, sizeof domain, "perf%d", (int)side->duo.parent);
    open_velo(side, domain);
    open_bare(side);
    bare_post(side);
    for (int round = -1; round < rounds; round++) { /* The first one warms up. */
        for (int way = 0; way < WAYS; way++) {
            if (only && strcmp(only, way == VELO ? "velo" : "bare") != 0)
                continue;
            for (int figure = 0; figure < FIGURES; figure++) {
                int turns_here = figure == RATE ? (count + 9) / 10 : count;
                double result = measure(side, (enum way)way, (enum figure)figure, turns_here);
                if (round >= 0)
                    results[figure][way][round] = result;
            }
        }
    }
    duo_check(velo_port_close(side->port), "close the port");
}

int main(int argc, char **argv)
{
    int rounds = duo_number(argc, argv, 1, 20);
    int count = duo_number(argc, argv, 2, 1000);
    int cores[2] = {duo_number(argc, argv, 3, 0), duo_number(argc, argv, 4, 1)};
    if (rounds < 1 || rounds > ROUNDS_MAX || count < 1) {
        fprintf(stderr, "usage: velo-fabric-perf [rounds [turns [core core [way]]]]\n");
        return 2;
    }
    (void)setenv("VELO_NETWORK", "ofi,own=ofi", 1);
    (void)setenv("VELO_OFI_PROVIDER", PROVIDER, 1);
    (void)setenv("VELO_OFI_INTERFACE", "lo", 1);
    (void)setenv("VELO_OFI_SECRET", "for-measuring-on-this-machine-only", 0);
    struct side side = {.duo = duo_start(cores)};
    run(&side, rounds, count, argc > 5 ? argv[5] : NULL);
    if (side.duo.rank)
        return 0;
    for (int figure = 0; figure < FIGURES; figure++)
        for (int way = 0; way < WAYS; way++) {
            double *result = results[figure][way];
            qsort(result, (size_t)rounds, sizeof *result, duo_compare);
            printf("%-16s %-26s median %8.2f, best %8.2f\n", names[way],
                   figure == HALF ? "half a round trip, us:" : "millions of messages/s:",
                   result[rounds / 2], result[figure == HALF ? 0 : rounds - 1]);
        }
    (void)waitpid(side.duo.child, NULL, 0);
    return 0;
}
