/* SPDX-License-Identifier: Apache-2.0 */
/* Units and peers: opening, connecting, closing. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "../base/cancel.h"
#include "../base/error.h"
#include "../base/fork.h"
#include "../base/sized.h"
#include "../shm/wait.h"
#include "no_device.h"
#include "unit.h"

#define PROBE_BYTES 4096u /* The kernel rounds it up to a page. */
#define DOMAIN_SUFFIX "+rma"
#define CONNECT_NAP_NS 1000000

/* ---- the unit -------------------------------------------------------------------------------- */

static bool attach_is_wanted(void)
{
    const char *text = getenv("VELO_RMA_ATTACH");
    return !text || strcmp(text, "0") != 0;
}

static int fill_random(void *to, size_t len_bytes)
{
    return getrandom(to, len_bytes, 0) == (ssize_t)len_bytes
               ? VELO_OK
               : velo_fail(VELO_ERR_SYSTEM, "getrandom: %s", strerror(errno));
}

/* A page that children do not inherit: they find zero there. */
static uint64_t *make_probe(void)
{
    void *page =
        mmap(NULL, PROBE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return NULL;
    (void)madvise(page, PROBE_BYTES, MADV_WIPEONFORK); /* Linux 4.14. */
    return page;
}

static int allocate_unit(struct velo_rma *rma)
{
    rma->probe = make_probe();
    rma->queue = calloc(VELO_RMA_NOTIFICATIONS_MAX, sizeof *rma->queue);
    rma->mems = calloc(VELO_RMA_MEMS_MAX, sizeof *rma->mems);
    rma->ops = calloc(VELO_RMA_OPS_MAX, sizeof *rma->ops);
    rma->repliers = calloc(IDS_MAX, sizeof *rma->repliers);
    if (!rma->probe || !rma->queue || !rma->mems || !rma->ops || !rma->repliers)
        return velo_fail(VELO_ERR_NO_MEMORY, "no memory for an RMA unit");
    for (uint32_t i = 0; i < VELO_RMA_OPS_MAX; i++) {
        rma->ops[i].next = rma->ops_free;
        rma->ops_free = &rma->ops[i];
    }
    uint64_t random[3];
    int status = fill_random(random, sizeof random);
    *rma->probe = random[0];
    rma->key_last = random[1];
    rma->key_step = random[2] | 1;
    return status;
}

static int open_port(struct velo_rma *rma, struct velo_port *port, bool may_attach)
{
    /* Each peer may take two connections: for its requests, and for its answers to ours. */
    uint32_t conns_max = port->shape.conns_max * 2;
    int status = port_open_beside(
        port, DOMAIN_SUFFIX, conns_max < VELO_CONNS_MAX ? conns_max : VELO_CONNS_MAX, &rma->port);
    if (status == VELO_ERR_IN_USE)
        return velo_fail(VELO_ERR_STATE, "the port has an RMA unit already; use that one");
    if (status)
        return status;
    rma->owner = port;
    port_interrupts_unit(port, rma->port);
    rma->device = rma_offload_of(rma->port);
    rma->is_plain = rma->device == &rma_no_device;
    /* Members of the group could make us reach other memory than was registered. */
    rma->may_attach = may_attach && attach_is_wanted() && !port->domain.shared;
#ifdef PR_SET_PTRACER
    if (rma->may_attach) /* Without this call Yama permits attach to related processes only. */
        (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
#endif
    return rma_table_create(&rma->table, rma->port->segment, rma->probe);
}

static void destroy_unit(struct velo_rma *rma)
{
    if (rma->owner)
        port_has_no_unit(rma->owner);
    (void)velo_port_close(rma->port);
    rma_table_close(&rma->table);
    free(rma->queue);
    free(rma->mems);
    free(rma->ops);
    free(rma->repliers);
    if (rma->probe)
        (void)munmap(rma->probe, PROBE_BYTES);
    free(rma);
}

static int read_attr(struct velo_rma_attr *ours, const struct velo_rma_attr *attr)
{
    static const struct velo_rma_attr defaults = VELO_RMA_ATTR_INIT;
    int status = sized_attr(ours, sizeof *ours, attr, &defaults, "VELO_RMA_ATTR_INIT");
    if (status)
        return status;
    if (ours->flags & ~(uint32_t)VELO_RMA_OPEN_NO_ATTACH)
        return velo_fail(VELO_ERR_ARG, "flags are %#x; give those of enum velo_rma_open_flag",
                         ours->flags);
    return VELO_OK;
}

int velo_rma_open(struct velo_port *port, const struct velo_rma_attr *attr, struct velo_rma **out)
{
    CANCEL_LATER();
    struct velo_rma_attr ours = VELO_RMA_ATTR_INIT;
    if (!port || !out)
        return velo_fail(VELO_ERR_ARG, "port or rma is NULL");
    *out = NULL;
    if (!fork_is_ours(port->process))
        return fork_refuse("port");
    int status = read_attr(&ours, attr);
    if (status)
        return status;
    struct velo_rma *rma = calloc(1, sizeof *rma);
    if (!rma)
        return velo_fail(VELO_ERR_NO_MEMORY, "no memory for an RMA unit");
    status = allocate_unit(rma);
    if (status == VELO_OK)
        status = open_port(rma, port, (ours.flags & VELO_RMA_OPEN_NO_ATTACH) == 0);
    if (status)
        destroy_unit(rma);
    else
        *out = rma;
    return status;
}

/* End a peer that is off its unit's list. */
static void end_peer(struct velo_rma_peer *peer)
{
    rma_ask_fail(peer, VELO_ERR_PEER_CLOSED);
    peer->rma->by_handle[peer->handle % PEERS_MAX] = NULL;
    if (peer->arena)
        munmap(peer->arena, peer->arena_bytes);
    (void)velo_disconnect(peer->conn);
    rma_table_close(&peer->table);
    free(peer);
}

/* All keys are worthless from the first try on. False: somebody touches the memory still. */
static bool deregister_all(struct velo_rma *rma)
{
    int64_t end_ns = wait_end_ns(wait_now_ns(), rma->port->linger_ns);
    bool is_done = true;
    for (uint32_t i = 0; i < rma->mems_used; i++)
        if (rma->mems[i].key && velo_rma_mem_deregister(&rma->mems[i], 0) != VELO_OK)
            is_done = false;
    for (uint32_t i = 0; i < rma->mems_used && !is_done; i++) {
        int64_t left_ns = end_ns - wait_now_ns();
        if (rma->mems[i].key &&
            velo_rma_mem_deregister(&rma->mems[i], left_ns > 0 ? left_ns : 0) != VELO_OK)
            return false;
    }
    return true;
}

int velo_rma_close(struct velo_rma *rma)
{
    CANCEL_LATER();
    if (!rma || !fork_is_ours(rma->port->process))
        return VELO_OK;
    while (rma->peers) {
        struct velo_rma_peer *peer = rma->peers;
        rma->peers = peer->next;
        end_peer(peer);
    }
    if (!deregister_all(rma))
        return velo_fail(VELO_TIMEOUT,
                         "a peer stands still in the middle of an operation on memory of this "
                         "unit; close it again when the peer goes on or has ended");
    rma->device->close(rma);
    rma_serve_close(rma);
    destroy_unit(rma);
    return VELO_OK;
}

int velo_rma_counters(struct velo_rma *rma, struct velo_rma_counters *counters,
                      size_t counters_bytes)
{
    if (!rma || !counters)
        return velo_fail(VELO_ERR_ARG, "rma or counters is NULL");
    struct velo_rma_counters now = rma->counters;
    now.refused_peers += order_counter(&rma->table.header->refused);
    sized_give(counters, counters_bytes, &now, sizeof now);
    return VELO_OK;
}

/* ---- peers ----------------------------------------------------------------------------------- */

/* A number that no other peer has had; its low bits are its place. */
static bool take_handle(struct velo_rma *rma, struct velo_rma_peer *peer)
{
    for (uint32_t tries = 0; tries < PEERS_MAX; tries++) {
        peer->handle = rma->handle_next++;
        if (!rma->by_handle[peer->handle % PEERS_MAX]) {
            rma->by_handle[peer->handle % PEERS_MAX] = peer;
            return true;
        }
    }
    return false;
}

static void prepare_line(struct velo_rma_peer *peer)
{
    peer->row = &peer->table.rows[peer->conn->index];
    order_leave(&peer->row->active); /* An earlier user of the row may have died in between. */
    order_publish_entry(&peer->row->unanswerable, 0);
    order_publish_entry(&peer->row->generation, velo_port_generation(peer->rma->port));
    order_raise(&peer->table.header->rows_used, peer->conn->index + 1);
}

/* Try once to connect. VELO_ERR_NO_PEER and the like: the peer may still come. */
static int connect_once(struct velo_rma_peer *peer, int64_t timeout_ns)
{
    int status = velo_connect(peer->rma->port, peer->id, &peer->conn, timeout_ns);
    if (status)
        return status;
    peer->piece_bytes = velo_conn_max_bytes(peer->conn) - sizeof(struct wire_request);
    if (peer->conn->stands_in) /* The peer shares no memory with us: see rma_peer_is_remote(). */
        return VELO_OK;
    status = seg_file_take(peer->conn->segment);
    if (status == VELO_OK) {
        status = rma_table_open(&peer->table, peer->conn->segment);
        seg_file_drop(peer->conn->segment);
    }
    if (status) {
        (void)velo_disconnect(peer->conn);
        return status;
    }
    prepare_line(peer);
    rma_reach_probe(peer);
    return VELO_OK;
}

static int connect_peer(struct velo_rma_peer *peer, int64_t timeout_ns)
{
    int64_t start_ns = wait_now_ns();
    int64_t left_ns = timeout_ns;
    for (;;) {
        int status = connect_once(peer, left_ns);
        if (!status_is_absent(status))
            return status;
        if (timeout_ns >= 0) {
            left_ns = timeout_ns - (wait_now_ns() - start_ns);
            if (left_ns <= 0)
                return status;
        }
        if (wait_nap(CONNECT_NAP_NS))
            return velo_fail(VELO_ERR_INTERRUPTED,
                             "a signal handler ran before the peer was there");
    }
}

int velo_rma_connect(struct velo_rma *rma, velo_id_t id, struct velo_rma_peer **out,
                     int64_t timeout_ns)
{
    CANCEL_LATER();
    if (!rma || !out)
        return velo_fail(VELO_ERR_ARG, "rma or peer is NULL");
    *out = NULL;
    if (!fork_is_ours(rma->port->process))
        return fork_refuse("unit");
    struct velo_rma_peer *peer = calloc(1, sizeof *peer);
    if (!peer)
        return velo_fail(VELO_ERR_NO_MEMORY, "no memory for a peer");
    peer->rma = rma;
    peer->id = id;
    int status =
        take_handle(rma, peer)
            ? connect_peer(peer, timeout_ns)
            : velo_fail(VELO_ERR_FULL, "the unit has %u peers; disconnect some", PEERS_MAX);
    if (status) {
        if (rma->by_handle[peer->handle % PEERS_MAX] == peer)
            rma->by_handle[peer->handle % PEERS_MAX] = NULL;
        free(peer);
        return status;
    }
    peer->next = rma->peers;
    rma->peers = peer;
    *out = peer;
    return VELO_OK;
}

int velo_rma_peer_status(struct velo_rma_peer *peer)
{
    if (!peer)
        return velo_fail(VELO_ERR_ARG, "peer is NULL");
    int status = peer->gone ? peer->gone : velo_conn_status(peer->conn);
    if (status && !peer->gone)
        rma_ask_lose(peer, status);
    return status;
}

int velo_rma_disconnect(struct velo_rma_peer *peer)
{
    CANCEL_LATER();
    if (!peer || !fork_is_ours(peer->rma->port->process))
        return VELO_OK;
    struct velo_rma_peer **link = &peer->rma->peers;
    while (*link != peer)
        link = &(*link)->next;
    *link = peer->next;
    end_peer(peer);
    return VELO_OK;
}
