/* SPDX-License-Identifier: Apache-2.0 */
/* The provider for libfabric, by libfabric's calls: tagged messages, remote memory, a counter. */
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "play.h"

enum { NAME_BYTES = 256, BURST = 50, KEY = 3 };

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_cntr *cntr;
static struct fid_mr *mr;
static struct fid_ep *ep;
static fi_addr_t peer;
static unsigned char memory[DATA_BYTES], got[DATA_BYTES];

void close_all(void)
{
    struct fid *fids[] = {ep ? &ep->fid : NULL,        mr ? &mr->fid : NULL,
                          cntr ? &cntr->fid : NULL,    cq ? &cq->fid : NULL,
                          av ? &av->fid : NULL,        domain ? &domain->fid : NULL,
                          fabric ? &fabric->fid : NULL};
    for (size_t i = 0; i < sizeof fids / sizeof *fids; i++)
        if (fids[i])
            (void)fi_close(fids[i]);
    if (info)
        fi_freeinfo(info);
}

static void check(ssize_t status, const char *call)
{
    if (status < 0)
        give_up(call, fi_strerror((int)-status), "");
}

#define DO(call) check(call, #call)

/* ---- who the other one is -------------------------------------------------------------------- */

static void path_of(int role, const char *end, char path[static 256])
{
    (void)snprintf(path, 256, "%s/name.%d%s", getenv("VELO_SHM_DIR"), role, end);
}

/* Each puts its name where the other one finds it, and takes the other's away. */
static void meet(int role)
{
    char name[NAME_BYTES] = {0}, part[256], whole[256];
    size_t len = sizeof name;
    int64_t end_ns = now_ns() + patience_ns;
    DO(fi_getname(&ep->fid, name, &len));
    path_of(role, ".part", part);
    path_of(role, "", whole);
    int fd = open(part, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    expect(fd >= 0 && write(fd, name, sizeof name) == sizeof name, "a name is written");
    (void)close(fd);
    expect(rename(part, whole) == 0, "a name is put in its place");
    path_of(!role, "", whole);
    while ((fd = open(whole, O_RDONLY | O_CLOEXEC)) < 0 && now_ns() < end_ns)
        (void)usleep(1000);
    if (fd < 0) {
        path_of(role, "", whole);
        (void)unlink(whole);
        give_up("meet", "the other process does not come", "");
    }
    expect(read(fd, name, sizeof name) == sizeof name, "a name is read");
    (void)close(fd);
    (void)unlink(whole);
    int count = fi_av_insert(av, name, 1, &peer, 0, NULL);
    check(count == 1 ? 0 : count < 0 ? count : -FI_ENOMEM, "fi_av_insert()");
}

/* ---- operations ------------------------------------------------------------------------------ */

static void begin(int role)
{
    struct fi_info *hints = fi_allocinfo();
    struct fi_av_attr av_attr = {.type = FI_AV_MAP};
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD};
    struct fi_cntr_attr cntr_attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC};
    if (hints == NULL)
        give_up("fi_allocinfo()", "no memory", "");
    hints->fabric_attr->prov_name = strdup("velo");
    hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    int status = fi_getinfo(FI_VERSION(1, 15), NULL, NULL, 0, hints, &info);
    fi_freeinfo(hints);
    check(status, "fi_getinfo()");
    DO(fi_fabric(info->fabric_attr, &fabric, NULL));
    DO(fi_domain(fabric, info, &domain, NULL));
    DO(fi_av_open(domain, &av_attr, &av, NULL));
    DO(fi_cq_open(domain, &cq_attr, &cq, NULL));
    DO(fi_cntr_open(domain, &cntr_attr, &cntr, NULL));
    DO(fi_mr_reg(domain, memory, sizeof memory, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &mr,
                 NULL));
    DO(fi_endpoint(domain, info, &ep, NULL));
    DO(fi_ep_bind(ep, &av->fid, 0));
    DO(fi_ep_bind(ep, &cq->fid, FI_SEND | FI_RECV));
    DO(fi_ep_bind(ep, &cntr->fid, FI_SEND | FI_READ | FI_WRITE));
    DO(fi_enable(ep));
    meet(role);
}

/* So many operations have ended. */
static void complete(int count)
{
    int64_t end_ns = now_ns() + patience_ns;
    while (count > 0) {
        struct fi_cq_tagged_entry entry;
        struct fi_cq_err_entry bad = {0};
        ssize_t status = fi_cq_sread(cq, &entry, 1, NULL, 20);
        if (status == -FI_EAVAIL && fi_cq_readerr(cq, &bad, 0) == 1)
            check(-bad.err, "an operation");
        if (status != -FI_EAGAIN)
            check(status, "fi_cq_sread()");
        count -= status > 0;
        expect_before(end_ns, "fi_cq_sread()");
    }
}

/* The call, repeated while there is no room. */
#define POST(call)                                                                                 \
    do {                                                                                           \
        int64_t end_ns = now_ns() + patience_ns;                                                   \
        ssize_t status;                                                                            \
        while ((status = (call)) == -FI_EAGAIN) {                                                  \
            (void)fi_cq_read(cq, NULL, 0);                                                         \
            (void)sched_yield();                                                                   \
            expect_before(end_ns, #call);                                                          \
        }                                                                                          \
        check(status, #call);                                                                      \
    } while (0)

static void send_one(const void *from, size_t len, uint64_t tag)
{
    static struct fi_context2 context;
    POST(fi_tsend(ep, from, len, NULL, peer, tag, &context));
    complete(1);
}

static void receive_one(size_t len, uint64_t tag)
{
    static struct fi_context2 context;
    POST(fi_trecv(ep, got, len, NULL, FI_ADDR_UNSPEC, tag, 0, &context));
    complete(1);
    expect(memcmp(got, data, len) == 0, "the bytes of a message");
}

static void both(int role)
{
    static struct fi_context2 context;
    begin(role);
    uint64_t base = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)memory : 0;
    if (role == 0) {
        for (int i = 0; i < BURST; i++)
            send_one(data, 100, 1);
        send_one(data, DATA_BYTES, 2);
        receive_one(1, 3);
        POST(fi_write(ep, data, DATA_BYTES, NULL, peer, base, KEY, &context));
        complete(1);
        POST(fi_read(ep, got, DATA_BYTES, NULL, peer, base, KEY, &context));
        complete(1);
        expect(memcmp(got, data, DATA_BYTES) == 0, "the bytes of a read");
        send_one(data, 1, 4);
        receive_one(1, 5);
    } else {
        for (int i = 0; i < BURST; i++)
            receive_one(100, 1);
        receive_one(DATA_BYTES, 2);
        send_one(data, 1, 3);
        receive_one(1, 4);
        expect(memcmp(memory, data, DATA_BYTES) == 0, "the bytes of a write");
        send_one(data, 1, 5);
    }
}

const struct scene scenes[] = {{"both", both}, {NULL, NULL}};
