/* SPDX-License-Identifier: Apache-2.0 */
/* The collector asks each sampler for its mean first, although that is sent after the values. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <velo/mq.h>

enum { COLLECTOR = 0, SAMPLERS = 4, VALUES = 100000, TAG_VALUES = 7, TAG_MEAN = 8 };
static const int64_t patience_ns = INT64_C(5000000000);
static struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
static struct velo_port *port;
static struct velo_rma *rma; /* Long messages go by it. */
static struct velo_mq *mq;
static double values[VALUES];

static void check(int status, const char *call)
{
    if (status == VELO_OK)
        return;
    fprintf(stderr, "%s: %s\n%s\n", call, velo_strerror(status), velo_last_error());
    exit(1);
}

static void open_queues(int vpid)
{
    attr.vpid = vpid;
    check(velo_port_open(&attr, &port), "velo_port_open");
    check(velo_rma_open(port, NULL, &rma), "velo_rma_open");
    check(velo_mq_open(port, rma, NULL, &mq), "velo_mq_open");
}

static void close_queues(void)
{
    check(velo_mq_close(mq), "velo_mq_close");
    check(velo_rma_close(rma), "velo_rma_close");
    check(velo_port_close(port), "velo_port_close");
}

/* A sensor would be read here. */
static double measure(int self, int i) { return self * 1000 + i % 1000; }

static double mean_of_values(void)
{
    double sum = 0;
    for (int i = 0; i < VALUES; i++)
        sum += values[i];
    return sum / VALUES;
}

static int sample(int self)
{
    open_queues(self);
    struct velo_mq_peer *collector;
    struct velo_mq_request first = {0}, second = {0};
    check(velo_mq_connect(mq, VELO_ID(0, COLLECTOR), &collector, patience_ns), "velo_mq_connect");
    for (int i = 0; i < VALUES; i++)
        values[i] = measure(self, i);
    double mean = mean_of_values();
    check(velo_mq_isend(collector, values, sizeof values, TAG_VALUES, 0, &first), "velo_mq_isend");
    check(velo_mq_isend(collector, &mean, sizeof mean, TAG_MEAN, 0, &second), "velo_mq_isend");
    check(velo_mq_wait(mq, &first, patience_ns), "velo_mq_wait");
    check(velo_mq_wait(mq, &second, patience_ns), "velo_mq_wait");
    close_queues();
    return 0;
}

static void receive(int sampler, uint64_t tag, void *buf, size_t len_bytes)
{
    struct velo_mq_request request = {0};
    check(velo_mq_irecv(mq, VELO_ID(0, sampler), tag, 0, buf, len_bytes, &request), "irecv");
    check(velo_mq_wait(mq, &request, patience_ns), "velo_mq_wait");
}

static int collect(void)
{
    open_queues(COLLECTOR);
    int failed = 0;
    for (int sampler = 1; sampler <= SAMPLERS; sampler++) {
        double mean = 0;
        receive(sampler, TAG_MEAN, &mean, sizeof mean);
        receive(sampler, TAG_VALUES, values, sizeof values);
        printf("sampler %d: its mean is %.1f, and so is that of its values\n", sampler, mean);
        failed |= mean != sampler * 1000 + 499.5 || mean_of_values() != mean;
    }
    close_queues();
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
