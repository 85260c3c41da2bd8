/* SPDX-License-Identifier: Apache-2.0 */
/* Samplers write all their values into a table in the collector's memory, and notify it. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <velo/rma.h>

enum { COLLECTOR = 0, SAMPLERS = 4, VALUES = 100000, BLOCK = 500, TABLE = 1 };
static const int64_t patience_ns = INT64_C(5000000000);
static struct velo_port_attr attr = VELO_PORT_ATTR_INIT;

static void check(int status, const char *call)
{
    if (status == VELO_OK)
        return;
    fprintf(stderr, "%s: %s\n%s\n", call, velo_strerror(status), velo_last_error());
    exit(1);
}

static struct velo_port *open_port(int vpid)
{
    struct velo_port *port;
    attr.vpid = vpid;
    check(velo_port_open(&attr, &port), "velo_port_open");
    return port;
}

/* A sensor would be read here. */
static double measure(int self, int i) { return self * 1000 + i % 1000; }

static int sample(int self)
{
    struct velo_port *port = open_port(self);
    struct velo_rma *rma;
    struct velo_rma_peer *collector;
    struct velo_rma_place place;
    int status;
    check(velo_rma_open(port, NULL, &rma), "velo_rma_open");
    check(velo_rma_connect(rma, VELO_ID(0, COLLECTOR), &collector, patience_ns), "connect");
    do /* Until the collector has published its table. */
        status = velo_rma_mem_lookup(collector, TABLE, VELO_RMA_RIGHT_WRITE, &place);
    while (status == VELO_ERR_ACCESS);
    check(status, "velo_rma_mem_lookup");
    place.offset += (uint64_t)self * sizeof(double[VALUES]);
    for (int i = 0; i < VALUES; i += BLOCK) {
        double block[BLOCK];
        for (int j = 0; j < BLOCK; j++)
            block[j] = measure(self, i + j);
        check(velo_rma_put(collector, block, sizeof block, place, 0, 0), "velo_rma_put");
        check(velo_rma_flush(collector, patience_ns), "flush"); /* Now the block is ours again. */
        place.offset += sizeof block;
    }
    check(velo_rma_notify(collector, VELO_RMA_NOTIFY_COMPLETER, 0), "velo_rma_notify");
    check(velo_rma_flush(collector, patience_ns), "velo_rma_flush");
    check(velo_rma_close(rma), "velo_rma_close");
    check(velo_port_close(port), "velo_port_close");
    return 0;
}

static int report(unsigned sampler, const double *row)
{
    double sum = 0;
    for (int i = 0; i < VALUES; i++)
        sum += row[i];
    printf("sampler %u is done, its mean is %.1f\n", sampler, sum / VALUES);
    return sum / VALUES != sampler * 1000 + 499.5;
}

static int collect(void)
{
    struct velo_port *port = open_port(COLLECTOR);
    struct velo_rma *rma;
    struct velo_rma_mem *mem;
    int failed = 0;
    check(velo_rma_open(port, NULL, &rma), "velo_rma_open");
    check(velo_rma_mem_alloc(rma, sizeof(double[SAMPLERS + 1][VALUES]), VELO_RMA_RIGHT_WRITE,
                             VELO_RMA_PEER_ANY, &mem),
          "velo_rma_mem_alloc");
    check(velo_rma_mem_publish(mem, TABLE), "velo_rma_mem_publish");
    const double(*table)[VALUES] = velo_rma_mem_addr(mem);
    for (int done = 0; done < SAMPLERS; done++) {
        struct velo_rma_notification note; /* It comes after the data. */
        int count = velo_rma_poll(rma, &note, 1, patience_ns);
        check(count == 1 ? note.status : count, "velo_rma_poll");
        unsigned sampler = VELO_ID_VPID(note.peer);
        failed |= sampler > SAMPLERS || report(sampler, table[sampler]);
    }
    check(velo_rma_close(rma), "velo_rma_close");
    check(velo_port_close(port), "velo_port_close");
    return failed;
}

int main(void)
{
    char domain[32]; /* One of our own, so that two runs do not meet. */
    snprintf(domain, sizeof domain, "tutorial-%d", (int)getpid());
    attr.domain = domain;
    for (int sampler = 1; sampler <= SAMPLERS; sampler++)
        if (fork() == 0)
            return sample(sampler);
    int failed = collect(), status;
    while (wait(&status) > 0)
        failed |= status != 0;
    return failed;
}
