/* SPDX-License-Identifier: Apache-2.0 */
/* A sampler measures, and sends each value to a collector, which takes their mean. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <velo/velo.h>

enum { COLLECTOR = 0, SAMPLER = 1, VALUES = 100000 };
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
static double measure(int i) { return i % 1000; }

static int sample(void)
{
    struct velo_port *port = open_port(SAMPLER);
    struct velo_conn *conn;
    check(velo_connect(port, VELO_ID(0, COLLECTOR), &conn, patience_ns), "velo_connect");
    for (int i = 0; i < VALUES; i++) {
        double value = measure(i);
        check(velo_send(conn, &value, sizeof value, 0, patience_ns), "velo_send");
    }
    check(velo_port_close(port), "velo_port_close");
    return 0;
}

static int collect(void)
{
    struct velo_port *port = open_port(COLLECTOR);
    double sum = 0, value;
    for (int i = 0; i < VALUES; i++) {
        check(velo_recv(port, &value, sizeof value, NULL, patience_ns), "velo_recv");
        sum += value;
    }
    check(velo_port_close(port), "velo_port_close");
    printf("%d values, their mean is %.1f\n", VALUES, sum / VALUES);
    return sum / VALUES != 499.5;
}

int main(void)
{
    char domain[32]; /* One of our own, so that two runs do not meet. */
    snprintf(domain, sizeof domain, "tutorial-%d", (int)getpid());
    attr.domain = domain;
    if (fork() == 0)
        return sample();
    int failed = collect(), status;
    return failed || wait(&status) < 0 || status != 0;
}
