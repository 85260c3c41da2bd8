/* SPDX-License-Identifier: Apache-2.0 */
/* Several samplers write to one collector, which sees whose block it is, and who has gone. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <velo/velo.h>

enum { COLLECTOR = 0, SAMPLERS = 4, VALUES = 100000, BLOCK = 500 };
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
    struct velo_conn *conn;
    check(velo_connect(port, VELO_ID(0, COLLECTOR), &conn, patience_ns), "velo_connect");
    for (int i = 0; i < VALUES; i += BLOCK) {
        void *block;
        check(velo_reserve(conn, BLOCK * sizeof(double), &block, patience_ns), "velo_reserve");
        for (int j = 0; j < BLOCK; j++)
            ((double *)block)[j] = measure(self, i + j);
        check(velo_commit(conn, BLOCK * sizeof(double), 0), "velo_commit");
    }
    check(velo_port_close(port), "velo_port_close");
    return 0;
}

static int report(unsigned sampler, const double *sums)
{
    double mean = sums[sampler] / VALUES;
    printf("sampler %u has gone, its mean is %.1f\n", sampler, mean);
    return mean != sampler * 1000 + 499.5;
}

static int collect(void)
{
    attr.flags = VELO_PORT_DEPARTURES;
    struct velo_port *port = open_port(COLLECTOR);
    double sums[1 << VELO_ADDRESS_VPID_BITS] = {0};
    int gone = 0, failed = 0;
    while (gone < SAMPLERS) {
        struct velo_msg msg;
        int status = velo_peek(port, &msg, patience_ns);
        if (status == VELO_ERR_PEER_CLOSED || status == VELO_ERR_PEER_DEAD) {
            failed |= report(VELO_ID_VPID(msg.source), sums);
            gone++;
            continue;
        }
        check(status, "velo_peek");
        const double *block = msg.data;
        for (size_t j = 0; j < msg.len_bytes / sizeof *block; j++)
            sums[VELO_ID_VPID(msg.source)] += block[j];
        check(velo_release(port), "velo_release");
    }
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
