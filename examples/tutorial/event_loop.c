/* SPDX-License-Identifier: Apache-2.0 */
/* The collector waits for its samplers and for a timer in one call of poll(). */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>
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
        usleep(1000); /* A sensor takes its time. */
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

/* Sleep until a message may be there, or the timer has run out. */
static void wait_for(struct velo_port *port, struct pollfd files[2], int gone)
{
    int status = velo_port_arm(port);
    if (status == VELO_AGAIN)
        return; /* A message has come meanwhile. */
    check(status, "velo_port_arm");
    poll(files, 2, 1000); /* Once a second at least: arming finds samplers that have died. */
    uint64_t ticks;
    if (files[1].revents && read(files[1].fd, &ticks, sizeof ticks) == sizeof ticks)
        printf("%d samplers have gone so far\n", gone);
}

static int collect(void)
{
    attr.flags = VELO_PORT_DEPARTURES;
    struct velo_port *port = open_port(COLLECTOR);
    double sums[1 << VELO_ADDRESS_VPID_BITS] = {0};
    int gone = 0, failed = 0;
    struct pollfd files[2] = {{.events = POLLIN}, {.events = POLLIN}};
    check(velo_port_fd(port, &files[0].fd), "velo_port_fd");
    files[1].fd = timerfd_create(CLOCK_MONOTONIC, 0);
    const struct timespec period = {.tv_nsec = 50000000};
    timerfd_settime(files[1].fd, 0, &(struct itimerspec){period, period}, NULL);
    while (gone < SAMPLERS) {
        struct velo_msg msg;
        int status = velo_try_peek(port, &msg);
        if (status == VELO_AGAIN) {
            wait_for(port, files, gone);
            continue;
        }
        if (status == VELO_ERR_PEER_CLOSED || status == VELO_ERR_PEER_DEAD) {
            failed |= report(VELO_ID_VPID(msg.source), sums);
            gone++;
            continue;
        }
        check(status, "velo_try_peek");
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
