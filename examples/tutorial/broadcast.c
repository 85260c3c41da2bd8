/* SPDX-License-Identifier: Apache-2.0 */
/* The collector says what to measure next: one copy of each plan in memory serves all samplers. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <velo/bcast.h>
#include <velo/velo.h>

enum { COLLECTOR = 0, SAMPLERS = 4, PLANS = 200, BLOCK = 500 };
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
static double measure(int self, int gain, int i) { return self * gain + i; }

static int sample(int self, const struct velo_bcast_attr *plans_attr)
{
    struct velo_port *port = open_port(self);
    struct velo_conn *conn;
    struct velo_bcast_reader *reader;
    struct velo_msg plan;
    int status;
    check(velo_connect(port, VELO_ID(0, COLLECTOR), &conn, patience_ns), "velo_connect");
    check(velo_bcast_join(plans_attr, &reader, patience_ns), "velo_bcast_join");
    while ((status = velo_bcast_peek(reader, &plan, patience_ns)) == VELO_OK) {
        void *block;
        check(velo_reserve(conn, BLOCK * sizeof(double), &block, patience_ns), "velo_reserve");
        for (int j = 0; j < BLOCK; j++)
            ((double *)block)[j] = measure(self, *(const int *)plan.data, j);
        check(velo_commit(conn, BLOCK * sizeof(double), 0), "velo_commit");
        check(velo_bcast_release(reader), "velo_bcast_release");
    }
    if (status != VELO_ERR_PEER_CLOSED) /* So the collector says that there are no more plans. */
        check(status, "velo_bcast_peek");
    check(velo_bcast_leave(reader), "velo_bcast_leave");
    check(velo_port_close(port), "velo_port_close");
    return 0;
}

static int report(int sampler, const double *sums)
{
    double mean = sums[sampler] / PLANS / BLOCK;
    printf("sampler %d: the mean of %d blocks is %.1f\n", sampler, PLANS, mean);
    return mean != sampler * (PLANS + 1) / 2.0 + (BLOCK - 1) / 2.0;
}

static int collect(const struct velo_bcast_attr *plans_attr)
{
    struct velo_port *port = open_port(COLLECTOR);
    struct velo_bcast *plans;
    double sums[1 << VELO_ADDRESS_VPID_BITS] = {0};
    check(velo_bcast_open(plans_attr, &plans), "velo_bcast_open");
    while (velo_bcast_readers(plans) < SAMPLERS) /* Each gets what is sent after it has joined. */
        usleep(1000);
    for (int gain = 1; gain <= PLANS; gain++) {
        check(velo_bcast_send(plans, &gain, sizeof gain, 0, patience_ns), "velo_bcast_send");
        for (int blocks = 0; blocks < SAMPLERS; blocks++) {
            struct velo_msg msg;
            check(velo_peek(port, &msg, patience_ns), "velo_peek");
            const double *block = msg.data;
            for (size_t j = 0; j < msg.len_bytes / sizeof *block; j++)
                sums[VELO_ID_VPID(msg.source)] += block[j];
            check(velo_release(port), "velo_release");
        }
    }
    check(velo_bcast_close(plans), "velo_bcast_close");
    check(velo_port_close(port), "velo_port_close");
    int failed = 0;
    for (int sampler = 1; sampler <= SAMPLERS; sampler++)
        failed |= report(sampler, sums);
    return failed;
}

int main(void)
{
    char domain[32]; /* One of our own, so that two runs do not meet. */
    snprintf(domain, sizeof domain, "tutorial-%d", (int)getpid());
    attr.domain = domain;
    struct velo_bcast_attr plans = VELO_BCAST_ATTR_INIT;
    plans.domain = domain;
    for (int sampler = 1; sampler <= SAMPLERS; sampler++)
        if (fork() == 0)
            return sample(sampler, &plans);
    int failed = collect(&plans), status;
    while (wait(&status) > 0)
        failed |= status != 0;
    return failed;
}
