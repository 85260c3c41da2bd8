/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that use libfabric, and no MPI, on simulated nodes. They learn each other's addresses by
 * messages of velo.h.
 *
 *   fabric round    half round trips of two ranks, by the provider and by the queues below it
 *   fabric memory   each rank writes to one, reads from another, and all add up at rank 0
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <velo/mq.h>
#include <velo/velo.h>

#define RANKS_MAX 16
#define ROUNDS 50
#define WORDS 64
#define ADDS 5
#define NAME_BYTES 64
#define PATIENCE_NS INT64_C(10000000)
#define KEY 7
#define QUEUE_VPID 200

static int rank, ranks;
static struct fi_info *info;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_ep *ep;
static fi_addr_t peers[RANKS_MAX];

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...)
{
    char why[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    fprintf(stderr, "rank %d: %s\n", rank, why);
    exit(EXIT_FAILURE);
}

#define CHECK_FI(call)                                                                             \
    do {                                                                                           \
        ssize_t status_ = (call);                                                                  \
        if (status_ < 0)                                                                           \
            fail("%s: %s", #call, fi_strerror((int)-status_));                                     \
    } while (0)
#define CHECK_VELO(call)                                                                           \
    do {                                                                                           \
        int status_ = (call);                                                                      \
        if (status_ != VELO_OK)                                                                    \
            fail("%s: %s, %s", #call, velo_strerror(status_), velo_last_error());                  \
    } while (0)

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* ---- to begin -------------------------------------------------------------------------------- */

static void open_endpoint(void)
{
    struct fi_info *hints = fi_allocinfo();
    struct fid_fabric *fabric;
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
    if (!hints)
        fail("no memory");
    hints->fabric_attr->prov_name = strdup("velo");
    hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    CHECK_FI(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
    CHECK_FI(fi_fabric(info->fabric_attr, &fabric, NULL));
    CHECK_FI(fi_domain(fabric, info, &domain, NULL));
    CHECK_FI(fi_av_open(domain, &av_attr, &av, NULL));
    CHECK_FI(fi_cq_open(domain, &cq_attr, &cq, NULL));
    CHECK_FI(fi_endpoint(domain, info, &ep, NULL));
    CHECK_FI(fi_ep_bind(ep, &av->fid, 0));
    CHECK_FI(fi_ep_bind(ep, &cq->fid, FI_SEND | FI_RECV));
    CHECK_FI(fi_enable(ep));
    fi_freeinfo(hints);
}

/* Tell all others this rank's address, and learn theirs. */
static void introduce(struct velo_port *port)
{
    char name[NAME_BYTES] = {0}, got[NAME_BYTES];
    size_t len = sizeof name;
    CHECK_FI(fi_getname(&ep->fid, name, &len));
    CHECK_FI(fi_av_insert(av, name, 1, &peers[rank], 0, NULL));
    for (int other = 0; other < ranks; other++) {
        struct velo_conn *conn;
        if (other == rank)
            continue;
        CHECK_VELO(velo_connect(port, VELO_ID(other, 0), &conn, PATIENCE_NS));
        CHECK_VELO(velo_send(conn, name, len, 0, PATIENCE_NS));
    }
    for (int i = 1; i < ranks; i++) {
        struct velo_msg msg;
        CHECK_VELO(velo_recv(port, got, sizeof got, &msg, PATIENCE_NS));
        CHECK_FI(fi_av_insert(av, got, 1, &peers[VELO_ID_NODE(msg.source)], 0, NULL));
    }
}

/* ---- one operation --------------------------------------------------------------------------- */

#define POST(call)                                                                                 \
    do {                                                                                           \
        ssize_t posted_;                                                                           \
        while ((posted_ = (call)) == -FI_EAGAIN)                                                   \
            (void)fi_cq_read(cq, NULL, 0);                                                         \
        CHECK_FI(posted_);                                                                         \
    } while (0)

static void complete(void)
{
    struct fi_cq_tagged_entry entry;
    ssize_t count;
    do
        count = fi_cq_read(cq, &entry, 1);
    while (count == -FI_EAGAIN);
    if (count != 1)
        fail("a completion: %s", fi_strerror((int)-count));
}

enum way { TSEND, TINJECT, SEND };

static void send_one(enum way way, const uint64_t *word, int to)
{
    if (way == TINJECT) {
        POST(fi_tinject(ep, word, sizeof *word, peers[to], 1));
        return;
    }
    if (way == TSEND)
        POST(fi_tsend(ep, word, sizeof *word, NULL, peers[to], 1, NULL));
    else
        POST(fi_send(ep, word, sizeof *word, NULL, peers[to], NULL));
    complete();
}

static void receive_one(enum way way, uint64_t *word, int from)
{
    if (way == SEND)
        POST(fi_recv(ep, word, sizeof *word, NULL, peers[from], NULL));
    else
        POST(fi_trecv(ep, word, sizeof *word, NULL, peers[from], 1, 0, NULL));
    complete();
}

/* All ranks have come here. */
static void meet(void)
{
    uint64_t word = 0;
    for (int other = 1; other < ranks; other++) {
        if (rank == 0)
            receive_one(TSEND, &word, other);
        else if (rank == other)
            send_one(TSEND, &word, 0);
    }
    for (int other = 1; other < ranks; other++) {
        if (rank == 0)
            send_one(TSEND, &word, other);
        else if (rank == other)
            receive_one(TSEND, &word, 0);
    }
}

/* ---- half round trips ------------------------------------------------------------------------ */

static void round_trips(const char *name, enum way way)
{
    meet();
    double begin_ns = now_ns();
    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t word = i;
        if (rank == 0)
            send_one(way, &word, 1);
        receive_one(way, &word, 1 - rank);
        if (rank == 1)
            send_one(way, &word, 0);
        if (word != i)
            fail("%s: got %lu instead of %lu", name, word, i);
    }
    if (rank == 0)
        printf("%s %.1f\n", name, (now_ns() - begin_ns) / ROUNDS / 2);
}

/* The same by the queues below the provider. */
static void queue_round_trips(void)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *port;
    struct velo_mq *mq;
    struct velo_mq_peer *peer;
    attr.node = rank;
    attr.vpid = QUEUE_VPID;
    CHECK_VELO(velo_port_open(&attr, &port));
    CHECK_VELO(velo_mq_open(port, NULL, NULL, &mq));
    CHECK_VELO(velo_mq_connect(mq, VELO_ID(1 - rank, QUEUE_VPID), &peer, PATIENCE_NS));
    meet();
    double begin_ns = now_ns();
    for (uint64_t i = 0; i < ROUNDS; i++) {
        struct velo_mq_request request = {.done = NULL};
        uint64_t word = i;
        if (rank == 0)
            CHECK_VELO(velo_mq_try_send(peer, &word, sizeof word, 1));
        CHECK_VELO(
            velo_mq_irecv(mq, VELO_ID(1 - rank, QUEUE_VPID), 1, 0, &word, sizeof word, &request));
        while (request.status == VELO_AGAIN)
            (void)velo_mq_progress(mq);
        CHECK_VELO(request.status);
        if (rank == 1)
            CHECK_VELO(velo_mq_try_send(peer, &word, sizeof word, 1));
        if (word != i)
            fail("queues: got %lu instead of %lu", word, i);
    }
    if (rank == 0)
        printf("queues %.1f\n", (now_ns() - begin_ns) / ROUNDS / 2);
    meet();
    CHECK_VELO(velo_mq_close(mq));
    CHECK_VELO(velo_port_close(port));
}

static void round_all(void)
{
    round_trips("tsend", TSEND);
    round_trips("tinject", TINJECT);
    round_trips("send", SEND);
    queue_round_trips();
}

/* ---- remote memory --------------------------------------------------------------------------- */

static uint64_t pattern(int of_rank, int to_rank, int at)
{
    return (uint64_t)of_rank << 32 | (uint64_t)to_rank << 16 | (uint64_t)at;
}

/* All add to one word of rank 0, whose library does it when it makes progress. */
static void add_all(const uint64_t *word)
{
    static uint64_t one = 1, before;
    meet();
    uint64_t added = *word;
    meet();
    for (int i = 0; i < ADDS && rank > 0; i++) {
        POST(fi_fetch_atomic(ep, &one, 1, NULL, &before, NULL, peers[0], 0, KEY, FI_UINT64, FI_SUM,
                             NULL));
        complete();
    }
    meet();
    if (rank == 0 && *word != added + (uint64_t)(ADDS * (ranks - 1)))
        fail("%lu were added", *word - added);
}

static void memory_all(void)
{
    static uint64_t memory[2][WORDS], here[WORDS];
    struct fid_mr *mr;
    int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
    double begin_ns;
    for (int i = 0; i < WORDS; i++)
        memory[1][i] = pattern(rank, rank, i);
    CHECK_FI(fi_mr_reg(domain, memory, sizeof memory, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0,
                       &mr, NULL));
    meet();
    /* Each writes to the next one, which finds it there. */
    for (int i = 0; i < WORDS; i++)
        here[i] = pattern(rank, next, i);
    POST(fi_write(ep, here, sizeof here, NULL, peers[next], 0, KEY, NULL));
    complete();
    begin_ns = now_ns();
    POST(fi_write(ep, here, sizeof *here, NULL, peers[next], 0, KEY, NULL));
    complete();
    if (rank == 0)
        printf("write %.1f\n", now_ns() - begin_ns);
    meet();
    for (int i = 0; i < WORDS; i++)
        if (memory[0][i] != pattern(last, rank, i))
            fail("word %d is %lx", i, memory[0][i]);
    /* Each reads what the last one has. */
    POST(fi_read(ep, here, sizeof here, NULL, peers[last], sizeof memory[0], KEY, NULL));
    complete();
    begin_ns = now_ns();
    POST(fi_read(ep, here, sizeof *here, NULL, peers[last], sizeof memory[0], KEY, NULL));
    complete();
    if (rank == 0)
        printf("read %.1f\n", now_ns() - begin_ns);
    for (int i = 0; i < WORDS; i++)
        if (here[i] != pattern(last, last, i))
            fail("word %d of rank %d is %lx", i, last, here[i]);
    add_all(&memory[0][0]);
    CHECK_FI(fi_close(&mr->fid));
}

int main(int argc, char **argv)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *port;
    const char *text = getenv("VELO_SIM_RANK"), *count = getenv("VELO_SIM_RANKS");
    if (argc != 2 || !text || !count || atoi(count) < 2 || atoi(count) > RANKS_MAX)
        fail("start it by velo sim, with 2 to %d ranks", RANKS_MAX);
    rank = atoi(text);
    ranks = atoi(count);
    attr.node = rank;
    CHECK_VELO(velo_port_open(&attr, &port));
    open_endpoint();
    introduce(port);
    if (strcmp(argv[1], "round") == 0)
        round_all();
    else
        memory_all();
    meet();
    CHECK_FI(fi_close(&ep->fid));
    CHECK_FI(fi_close(&cq->fid));
    CHECK_FI(fi_close(&av->fid));
    CHECK_FI(fi_close(&domain->fid));
    CHECK_VELO(velo_port_close(port));
    return EXIT_SUCCESS;
}
