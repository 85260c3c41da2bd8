/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fabric that does not take receive buffers for a while. libfabric's fi_fabric() is replaced for
 * all of the process, and with it, step by step, what leads to an endpoint's fi_recv().
 */
#include <dlfcn.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "test.h"

/* More than an endpoint has buffers: none is taken at first. */
#define REFUSED 200u
#define ROUNDS 500u

static uint32_t to_refuse;
static uint32_t refused;
/* A provider over another one makes the other's fabric in its own. */
static uint32_t depth;

static struct fi_ops_fabric fabric_ops;
static struct fi_ops_domain domain_ops;
static struct fi_ops_msg msg_ops;
static __typeof__(fabric_ops.domain) real_domain;
static __typeof__(domain_ops.endpoint) real_endpoint;
static __typeof__(msg_ops.recv) real_recv;

static ssize_t refusing_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src,
                             void *context)
{
    if (refused < to_refuse) {
        refused++;
        return -FI_EAGAIN;
    }
    return real_recv(ep, buf, len, desc, src, context);
}

static int make_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
                         void *context)
{
    int error = real_endpoint(domain, info, ep, context);
    if (!error) {
        msg_ops = *(*ep)->msg;
        real_recv = msg_ops.recv;
        msg_ops.recv = refusing_recv;
        (*ep)->msg = &msg_ops;
    }
    return error;
}

static int make_domain(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
                       void *context)
{
    int error = real_domain(fabric, info, domain, context);
    if (!error) {
        domain_ops = *(*domain)->ops;
        real_endpoint = domain_ops.endpoint;
        domain_ops.endpoint = make_endpoint;
        (*domain)->ops = &domain_ops;
    }
    return error;
}

__attribute__((visibility("default"))) int fi_fabric(struct fi_fabric_attr *attr,
                                                     struct fid_fabric **fabric, void *context)
{
    int (*real)(struct fi_fabric_attr *, struct fid_fabric **, void *);
    void *found = dlsym(RTLD_NEXT, "fi_fabric");
    CHECK(found != NULL);
    memcpy(&real, &found, sizeof real);
    depth++;
    int error = real(attr, fabric, context);
    depth--;
    if (!error && to_refuse > 0 && depth == 0) {
        fabric_ops = *(*fabric)->ops;
        real_domain = fabric_ops.domain;
        fabric_ops.domain = make_domain;
        (*fabric)->ops = &fabric_ops;
    }
    return error;
}

static void send_all(void *arg)
{
    struct velo_port *port = port_open(1);
    struct velo_conn *conn;

    (void)arg;
    to_refuse = 0;
    conn = port_connect(port, VELO_ID(0, 0));
    for (uint64_t i = 0; i < ROUNDS; i++)
        message_send(conn, 8, i);
    CHECK_OK(velo_disconnect(conn));
    CHECK_OK(velo_port_close(port));
}

TEST(buffers_that_the_fabric_refuses_are_offered_again)
{
    pid_t child = child_start(send_all, NULL);
    struct velo_port *port;

    to_refuse = REFUSED;
    port = port_open(0);
    for (uint64_t i = 0; i < ROUNDS; i++)
        message_expect(port, 8, i, VELO_ID(0, 1));
    CHECK_EQ(refused, REFUSED);
    child_join(child);
    CHECK_OK(velo_port_close(port));
}
