/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file provider.h
 * @brief The objects of the provider, and the functions that its files share.
 *
 *   prov.c      entry point; what libfabric itself offers to a provider
 *   info.c      fi_getinfo(): what is offered, and what of it a caller gets
 *   domain.c    fabric, domain
 *   address.c   addresses of endpoints
 *   av.c        address vector
 *   eq.c        event queue
 *   ep.c        endpoint: life, binding, options
 *   pool.c      operations under way
 *   port.c      ports of endpoints and domains, and their end
 *   peer.c      connections, by address
 *   send.c      messages and tagged messages, outgoing
 *   recv.c      the same, incoming: receives, multi-receives, peek, claim
 *   owner.c     the same for an owner that matches by itself; owner.h: what it declares
 *   cq.c        completion queue
 *   cntr.c      counter
 *   watch.c     progress and sleep of those two
 *   mr.c        memory registration; directory.h: how peers find one
 *   rma.c       remote memory
 *   am.c        messages between endpoints that no user sees
 *   atomic.c    atomic operations: requests
 *   compute.c   atomic operations: what the target computes
 *
 * And yield.c, a library of its own, for ranks of MPICH.
 *
 * A file's functions are named after it: vf_cq_..., "velo over fabric".
 *
 * Locks: a domain has one, and takes it only if its threads do not take turns by themselves.
 */
#ifndef VELO_OFI_PROVIDER_H
#define VELO_OFI_PROVIDER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_prov.h>

#include <velo/mq.h>
#include <velo/rma.h>
#include <velo/velo.h>

#define VF_NAME "velo"
#define VF_VERSION FI_VERSION(1, 0)
/** The fabric's name when an owner asks for the provider (FI_PEER). */
#define VF_LNX_FABRIC "shm"

/** A function that is worth its copies: its caller's constants decide much in it. */
#define vf_hot inline __attribute__((always_inline))
#define vf_likely(x) __builtin_expect(!!(x), 1)
#define vf_unlikely(x) __builtin_expect(!!(x), 0)

/** Most pieces of a message's memory. */
#define VF_IOV_MAX 4
/** Longest message. */
#define VF_MESSAGE_BYTES_MAX ((size_t)1 << 40)
/** Longest message that inject takes: as long as one that is sent before its receive is known. */
#define VF_INJECT_BYTES 16384u
/** The most memory of one atomic operation. */
#define VF_ATOMIC_BYTES 4096u
/** Completions of a queue for which no number was asked. */
#define VF_CQ_SIZE 4096u
/** Operations of an endpoint that may be under way: sends and the like, receives. */
#define VF_TX_SIZE 16384u
#define VF_RX_SIZE 65536u

/** Flag of an operation that reports no success, whatever its endpoint says; none of libfabric's.
 */
#define VF_QUIET (UINT64_C(1) << 63)

/** Matching spaces of an endpoint's queues. */
enum vf_space { VF_SPACE_TAGGED = 0, VF_SPACE_MSG = 1, VF_SPACE_AM = 2 };

/** The caller of libfabric's functions is the copy that loaded us; see prov.c. */
extern struct fi_provider vf_provider;

/* ---- addresses ------------------------------------------------------------------------------- */

/** The address of an endpoint, as fi_getname() gives it. */
struct vf_address {
    uint32_t magic;
    uint16_t version;
    uint16_t reserved;
    uint64_t place;          /* The domain on this machine; see vf_address_place(). */
    uint32_t id;             /* Of the endpoint's port. */
    uint32_t generation;     /* Of this port among those of that id. */
    uint32_t rma_id;         /* Of the port that its domain reaches memory with. */
    uint32_t rma_generation; /* 0: it has none. */
};

/** A number for a velo domain of this machine, as its ports see each other. */
uint64_t vf_address_place(const char *domain);
/** The folder of the segments. */
const char *vf_address_folder(void);
/** The address of an endpoint with this port. */
void vf_address_make(struct vf_address *address, uint64_t place, const struct velo_port *port,
                     const struct velo_port *rma_port);
/** The address of an endpoint that is still to get its port. No peer can have it. */
void vf_address_make_any(struct vf_address *address, uint64_t place);
static inline bool vf_address_is_any(const struct vf_address *address)
{
    return address->id == UINT32_MAX;
}
/** Is that an address of a port in this place? 0, or the reason why not. */
int vf_address_check(const struct vf_address *address, uint64_t place);
/** As fi_av_straddr(). */
const char *vf_address_str(const struct vf_address *address, char *buf, size_t *len);
/** The address that vf_address_str() wrote. */
int vf_address_parse(const char *text, struct vf_address *address);

/* ---- fabric, domain -------------------------------------------------------------------------- */

struct vf_fabric {
    struct fid_fabric fid;
    atomic_int users; /* Relaxed: a count, which publishes nothing. */
};

/** One registration. */
struct vf_mr {
    struct fid_mr fid;
    struct vf_domain *domain;
    struct velo_rma_mem *mem;
    char *base;
    size_t len_bytes;
    uint64_t access;
    uint64_t offset_bytes; /* Of its first byte, as peers count. */
    uint32_t slot;         /* In the directory, unless mem is NULL. */
};

struct vf_directory;

struct vf_domain {
    struct fid_domain fid;
    struct vf_fabric *fabric;
    int users;
    bool locks;
    bool is_exiting; /* The lock is held for good. */
    pthread_mutex_t lock;
    char name[VELO_DOMAIN_NAME_MAX + 1];
    uint64_t place;
    int mr_mode;
    uint32_t peers; /* The most that an address vector was opened for; 0: none has said. */
    struct vf_ep *eps;
    /* Remote memory; NULL unless the domain was opened for it. */
    struct velo_port *rma_port;
    struct velo_rma *rma;
    struct velo_rma_mem *directory_mem;
    struct vf_directory *directory;
    struct vf_mr **mrs; /* By slot of the directory. */
    uint64_t key_next;
    uint32_t mr_count;
    uint32_t rma_pending; /* Operations whose notification has not come. */
    uint32_t rma_polls;
    /* Automatic progress; NULL: there is no thread for it. */
    struct vf_watch *thread_watch;
    pthread_t thread;
    bool stop;
};

static inline void vf_lock(struct vf_domain *domain)
{
    if (vf_unlikely(domain->locks))
        pthread_mutex_lock(&domain->lock);
}

static inline void vf_unlock(struct vf_domain *domain)
{
    if (vf_unlikely(domain->locks))
        pthread_mutex_unlock(&domain->lock);
}

/* ---- watch ----------------------------------------------------------------------------------- */

/** The endpoints that a queue or counter makes progress for, and how its reader sleeps. */
struct vf_watch {
    struct vf_domain *domain;
    struct vf_ep **eps;
    uint32_t ep_count;
    bool can_sleep;
    bool needs_fd; /* Its reader waits for the descriptor itself. */
    int poll_fd;   /* -1: none; who waits looks again and again. */
    int wake_fd;
    int sleepers;
    bool is_watched; /* Whoever sleeps, here or on the descriptor, is to be woken. */
    bool is_signaled;
};

int vf_watch_open(struct vf_watch *watch, struct vf_domain *domain, enum fi_wait_obj wait_obj);
void vf_watch_close(struct vf_watch *watch);
int vf_watch_add(struct vf_watch *watch, struct vf_ep *ep);
void vf_watch_remove(struct vf_watch *watch, const struct vf_ep *ep);
/** 0: the descriptor tells what comes from now on; -FI_EAGAIN: there is something to do. */
int vf_watch_arm(struct vf_watch *watch);
/** The same for a caller that sleeps by itself, once it knows that there is nothing to read. */
int vf_watch_trywait(struct vf_watch *watch);
/** Sleep, without the lock, until something comes, at most for so long. 0: no error. */
int vf_watch_sleep(struct vf_watch *watch, int timeout_ms);
/** One round of waiting until then, without the lock. 0: look again; -FI_ETIMEDOUT; or an error. */
int vf_watch_wait(struct vf_watch *watch, int64_t end_ms);
/** The end of a wait; below 0: it has none. */
int64_t vf_watch_end_ms(int timeout_ms);
/** Wake those who sleep. */
void vf_watch_wake(struct vf_watch *watch);
/** As fi_control(FI_GETWAIT). */
int vf_watch_get(struct vf_watch *watch, void *arg);

/* ---- completion queue ------------------------------------------------------------------------ */

/** One completion. An error has `err`. */
struct vf_completion {
    void *context;
    uint64_t flags;
    void *buf;
    uint64_t tag;
    uint64_t data;
    size_t len;
    fi_addr_t source;
    size_t olen;
    int err;
    int prov_errno;
};

struct vf_cq {
    struct fid_cq fid;
    enum fi_cq_format format;
    uint32_t size; /* A power of two. */
    uint32_t head; /* Free running; the next to be read. */
    uint32_t tail;
    uint32_t reads_in_vain; /* Since the last one that found something. */
    bool spins;             /* The last wait was short: a read waits for what comes. */
    struct vf_completion *ring;
    /* Operations whose completion found the ring full, in order. */
    struct vf_op *late;
    struct vf_op **late_end;
    struct vf_watch watch;
    int users;
    struct vf_owner_cq *owner; /* Whose queue gets what comes; NULL: this one is read. */
};

static inline bool vf_cq_has_room(const struct vf_cq *cq)
{
    return cq->tail - cq->head < cq->size && !cq->late;
}

/** The place of the next completion; to be called only if there is room. */
static inline struct vf_completion *vf_cq_push(struct vf_cq *cq)
{
    struct vf_completion *completion = &cq->ring[cq->tail++ & (cq->size - 1)];
    if (vf_unlikely(cq->watch.is_watched))
        vf_watch_wake(&cq->watch);
    return completion;
}

int vf_cq_open(struct fid_domain *domain_fid, struct fi_cq_attr *attr, struct fid_cq **out,
               void *context);
/** Report the completion in an operation; then the operation is free. */
void vf_cq_report(struct vf_cq *cq, struct vf_op *op);
int vf_cq_trywait(struct vf_cq *cq);
/** A completion with `err`, as fi_cq_readerr() gives it; `err_data` stays. */
void vf_cq_describe_error(const struct vf_completion *from, struct fi_cq_err_entry *entry);
/** As fi_cq_strerror(). */
const char *vf_cq_strerror(struct fid_cq *fid, int prov_errno, const void *err_data, char *buf,
                           size_t len);
/** Forget what an endpoint has not reported yet. */
void vf_cq_drop(struct vf_cq *cq, const struct vf_ep *ep);

/* ---- an owner's queues ----------------------------------------------------------------------- */

struct vf_ep;
struct vf_av;
struct vf_srx;

/** Does the libfabric that loaded us have the peer interface as it is served? */
bool vf_owner_is_known(void);
/** What comes to a completion queue goes to that of an owner; context as of fi_cq_open(). */
int vf_owner_cq(struct vf_cq *cq, const void *context);
/** Addresses were inserted: owners may ask for those of messages that came before. */
void vf_owner_inserted(struct vf_av *av);
/** Give the owner's entries back. */
void vf_owner_close(struct vf_ep *ep);
int vf_srx_open(struct fid_domain *domain_fid, struct fi_rx_attr *attr, struct fid_ep **out,
                void *context);
int vf_srx_bind(struct vf_ep *ep, struct fid *fid);
void vf_srx_unbind(struct vf_ep *ep);

/* ---- counter --------------------------------------------------------------------------------- */

struct vf_cntr {
    struct fid_cntr fid;
    _Atomic uint64_t value; /* Relaxed: read by other threads too; they publish nothing. */
    _Atomic uint64_t errors;
    struct vf_watch watch;
    int users;
};

static inline void vf_cntr_add(struct vf_cntr *cntr, int status)
{
    if (vf_likely(!cntr))
        return;
    atomic_fetch_add_explicit(status ? &cntr->errors : &cntr->value, 1, memory_order_relaxed);
    if (cntr->watch.is_watched)
        vf_watch_wake(&cntr->watch);
}

int vf_cntr_open(struct fid_domain *domain_fid, struct fi_cntr_attr *attr, struct fid_cntr **out,
                 void *context);
int vf_cntr_trywait(struct vf_cntr *cntr);

/* ---- address vector -------------------------------------------------------------------------- */

struct vf_av {
    struct fid_av fid;
    struct vf_domain *domain;
    struct vf_address *addresses; /* By fi_addr_t; `magic` is 0 in one that is free. */
    size_t count;                 /* Up to the highest used. */
    size_t cap;
    fi_addr_t *seen;         /* By fi_addr_t: what users see as a source, it or an id of theirs. */
    fi_addr_t *by_node[256]; /* By the vpid of a port's id: as `seen`, and 1; 0: none. */
    int users;
    struct vf_eq *eq;
};

int vf_av_open(struct fid_domain *domain_fid, struct fi_av_attr *attr, struct fid_av **out,
               void *context);

/** The address of a port, or FI_ADDR_NOTAVAIL. */
static inline fi_addr_t vf_av_find(const struct vf_av *av, velo_id_t id)
{
    const fi_addr_t *of_node = av->by_node[VELO_ID_NODE(id) & 0xff];
    return of_node ? of_node[VELO_ID_VPID(id)] - 1 : FI_ADDR_NOTAVAIL;
}

static inline const struct vf_address *vf_av_get(const struct vf_av *av, fi_addr_t addr)
{
    return addr < av->count && av->addresses[addr].magic ? &av->addresses[addr] : NULL;
}

/* ---- event queue ----------------------------------------------------------------------------- */

struct vf_eq;
struct vf_eq *vf_eq_of(struct fid *fid);
int vf_eq_trywait(struct fid *fid);
/** Tell that addresses were inserted. */
void vf_eq_inserted(struct vf_eq *eq, struct vf_av *av, void *context, size_t inserted);
int vf_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **out,
               void *context);

/* ---- operations ------------------------------------------------------------------------------ */

enum vf_kind {
    VF_OP_FREE = 0,
    VF_OP_SEND,
    VF_OP_RECV,
    VF_OP_MULTI,      /* A receive that takes messages one after the other. */
    VF_OP_HELD,       /* A message that an owner has not taken yet, */
    VF_OP_OFFERED,    /* that it has queued, */
    VF_OP_OWNED,      /* that is received into its memory. */
    VF_OP_RMA,        /* A read or write that waits for its notification. */
    VF_OP_RMA_NOTICE, /* A write whose data is there, and whose target is being told. */
    VF_OP_ATOMIC,     /* An atomic operation that waits for its answer. */
    VF_OP_REPORT,     /* Nothing but a completion. */
};

#define VF_LINE 64

/** An operation that is under way, or whose completion waits for room. A receive that takes a short
 * message touches three of its lines: two of `mq`, and this provider's own. */
struct vf_op {
    _Alignas(VF_LINE) struct velo_mq_request mq;
    int status;                           /* RMA: the first error. Atomic: of the request. */
    _Alignas(VF_LINE) struct vf_op *next; /* While free, or late in a queue. */
    void *packed;                         /* Freed with the operation. */
    uint8_t kind;                         /* enum vf_kind. */
    bool reports;                         /* Successes go to the queue; errors always do. */
    bool is_over;                         /* Multi-receive: it takes no more. */
    bool has_notice;                      /* RMA: its target is to be told. */
    uint8_t iov_count; /* Pieces that a packed message is to be copied to; 0: it is not packed. */
    struct vf_ep *ep;
    struct vf_completion completion; /* The members that a receive sets come first. */
    uint32_t parts;                  /* RMA: notifications to come. Atomic: request and answer. */
    struct vf_atomic_answer *answer; /* Atomic. Freed with the operation. */
    struct vf_cntr *cntr;
    /* Multi-receive: what is left of its memory. Atomic: `iov` is where results go. */
    char *base;
    size_t cap_bytes;
    velo_id_t source;
    uint8_t space;
    fi_addr_t dest;
    struct iovec iov[VF_IOV_MAX];
    /* With an owner: the message, taken out of the queues, and the owner's entry for it. */
    struct velo_mq_message *message;
    void *entry;
};

/** Operations in chunks that stay where they are. */
struct vf_pool {
    struct vf_op **chunks;
    struct vf_op *free;
    uint32_t count;
    uint32_t limit;
};

#define VF_CHUNK 256u

/** More operations; NULL: the limit is reached, or there is no memory. */
struct vf_op *vf_pool_grow(struct vf_pool *pool, struct vf_ep *ep);
void vf_pool_close(struct vf_pool *pool);
struct vf_op *vf_pool_at(const struct vf_pool *pool, uint32_t number);

static inline struct vf_op *vf_pool_get(struct vf_pool *pool, struct vf_ep *ep)
{
    struct vf_op *op = pool->free;
    if (vf_unlikely(!op))
        return vf_pool_grow(pool, ep);
    pool->free = op->next;
    return op;
}

/** Why there was none: one that is under way will end, or there is no memory for the first ones. */
static inline int vf_pool_lack(const struct vf_pool *pool)
{
    return pool->count > 0 ? -FI_EAGAIN : -FI_ENOMEM;
}

/* ---- endpoint -------------------------------------------------------------------------------- */

struct vf_rma_peer;
struct vf_am;
struct vf_claim;

struct vf_ep {
    struct fid_ep fid;
    struct vf_domain *domain;
    struct vf_ep *next; /* Of the domain. */
    /* What a send or receive reads comes first. */
    struct velo_mq *mq;
    struct velo_mq_peer **peers; /* By fi_addr_t; NULL: not connected. */
    size_t peers_len;
    struct vf_cq *tx_cq;
    struct vf_cq *rx_cq;
    struct vf_op *recv_last; /* The tagged receive that was posted last; NULL: none was. */
    bool tx_selective;
    bool rx_selective;
    bool is_directed; /* Receives may name their source. */
    bool wants_source;
    uint64_t tx_flags; /* Of calls without flags. */
    uint64_t rx_flags;
    struct vf_cntr *send_cntr, *recv_cntr, *read_cntr, *write_cntr;
    uint64_t orders; /* Of messages, that were asked for. */
    struct vf_av *av;
    struct vf_pool tx, rx;
    struct velo_port *port;
    struct velo_rma *rma;
    struct vf_rma_peer **rma_peers; /* By fi_addr_t. */
    size_t rma_peers_len;
    struct vf_am *am;
    bool am_stalled; /* Requests wait for room. */
    bool has_copy;   /* An injected message goes later, from a copy: one at a time. */
    struct vf_claim *claims;
    struct vf_srx *srx;         /* NULL: we match. */
    struct vf_owner_srx *owner; /* Its owner. */
    struct vf_op *held[2];      /* By space: a message that the owner has not taken. */
    uint64_t answers;           /* Atomic operations so far. */
    uint64_t caps;
    size_t min_multi_recv;
    bool is_enabled;
    bool is_closing; /* What ends now is reported to nobody. */
    struct vf_eq *eq;
};

int vf_ep_open(struct fid_domain *domain_fid, struct fi_info *info, struct fid_ep **out,
               void *context);

/* ---- ports ----------------------------------------------------------------------------------- */

/** Open a port with its RMA unit; on any node if node is below 0. */
int vf_port_open(struct vf_domain *domain, int node, int vpid, struct velo_port **port,
                 struct velo_rma **rma);
/** Close both; NULL is allowed. */
void vf_port_close(struct velo_port *port);
/** Remove what killed processes left in a velo domain. */
void vf_port_sweep(const char *domain);

/** Does an operation with these flags report its success to the queue? */
static inline bool vf_tx_reports(const struct vf_ep *ep, uint64_t flags)
{
    return ep->tx_cq && !(flags & VF_QUIET) && (!ep->tx_selective || (flags & FI_COMPLETION));
}

/** The error of libfabric for a status of velo, above 0. */
int vf_error(int status);
/** As fi_cq_strerror(). */
const char *vf_strerror(int status, char *buf, size_t len);

/** Give a table so many members; the new ones are 0. NULL: no memory, and it stays as it was. */
void *vf_table_grow(void *table, size_t *len, size_t new_len, size_t member_bytes);

/** Give an operation back. */
static inline void vf_op_free(struct vf_pool *pool, struct vf_op *op)
{
    op->kind = VF_OP_FREE;
    op->next = pool->free;
    pool->free = op;
}

void vf_op_release(struct vf_op *op);
/** An operation is done: count it, report it, give it back. */
void vf_op_done(struct vf_op *op, struct vf_cq *cq, int status);

/** The peer of an operation is gone: say so by a completion, as if it had ended under way. Returns
 * 0, or `rc` if that is another error. */
int vf_op_fail(struct vf_ep *ep, void *context, uint64_t flags, struct vf_cntr *cntr, int rc);

/** Copy a message to or from the pieces of its memory. */
size_t vf_iov_bytes(const struct iovec *iov, size_t count);
void vf_iov_gather(void *to, const struct iovec *iov, size_t count);
void vf_iov_scatter(const struct iovec *iov, size_t count, const void *from, size_t len_bytes);

/* ---- peers ----------------------------------------------------------------------------------- */

/** Connect to an address. 0, or an error below 0. */
int vf_peer_connect(struct vf_ep *ep, fi_addr_t addr, struct velo_mq_peer **peer);
/** Is a connect that gave this status worth another try? A full table may be full of senders that
 * have died: it gets half a second. `end_ms` is 0 before the first call. Naps. */
bool vf_table_may_have_room(int status, int64_t *end_ms);
/** An address leaves the vector. */
void vf_peer_forget(struct vf_ep *ep, fi_addr_t addr);

static inline int vf_peer(struct vf_ep *ep, fi_addr_t addr, struct velo_mq_peer **peer)
{
    if (vf_likely(addr < ep->peers_len && (*peer = ep->peers[addr]) != NULL))
        return 0;
    return vf_peer_connect(ep, addr, peer);
}

/* ---- calls on endpoints ---------------------------------------------------------------------- */

extern struct fi_ops_msg vf_msg_ops;
extern struct fi_ops_tagged vf_tagged_ops;
extern struct fi_ops_rma vf_rma_ops;
extern struct fi_ops_atomic vf_atomic_ops;

/* recv.c */
ssize_t vf_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src,
                void *context);
ssize_t vf_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
                 fi_addr_t src, void *context);
ssize_t vf_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags);
ssize_t vf_trecv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src, uint64_t tag,
                 uint64_t ignore, void *context);
ssize_t vf_trecvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
                  fi_addr_t src, uint64_t tag, uint64_t ignore, void *context);
ssize_t vf_trecvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags);
ssize_t vf_recv_cancel(fid_t fid, void *context);
/** A multi-receive goes on, once its last completion was read. */
void vf_recv_again(struct vf_op *op);
void vf_recv_close(struct vf_ep *ep);

/* ---- remote memory --------------------------------------------------------------------------- */

extern struct fi_ops_mr vf_mr_ops;

int vf_mr_start(struct vf_domain *domain);
void vf_mr_stop(struct vf_domain *domain);
/** A registration of ours that permits this. NULL: none does. */
char *vf_mr_reach(struct vf_domain *domain, uint64_t key, uint64_t addr, size_t len_bytes,
                  uint64_t access);

void vf_rma_progress(struct vf_domain *domain);
void vf_rma_forget(struct vf_ep *ep, fi_addr_t addr);
void vf_rma_close(struct vf_ep *ep);

/* ---- messages between endpoints -------------------------------------------------------------- */

enum vf_am_kind { VF_AM_WRITTEN = 1, VF_AM_ATOMIC };

/** A request of one endpoint to another; what it works with follows. */
struct vf_am_header {
    uint8_t kind; /* enum vf_am_kind. */
    uint8_t op;   /* enum fi_op. */
    uint8_t datatype;
    uint8_t wants; /* enum vf_atomic_wants. */
    uint32_t count;
    uint64_t key;
    uint64_t addr;
    uint64_t data;   /* WRITTEN: the data. */
    uint64_t answer; /* ATOMIC: match bits of the answer. */
};

/** An answer; results follow. */
struct vf_am_answer {
    int64_t status; /* VELO_OK, VELO_ERR_ARG or VELO_ERR_ACCESS. */
};

#define VF_AM_BYTES (sizeof(struct vf_am_header) + 2 * VF_ATOMIC_BYTES)

int vf_am_start(struct vf_ep *ep);
void vf_am_close(struct vf_ep *ep);
/** Go on with requests that waited for room. */
void vf_am_retry(struct vf_ep *ep);
/** Send a request. VELO_OK: done; VELO_AGAIN: `op->mq` is under way with `done`; else an error. */
int vf_am_send(struct vf_ep *ep, struct velo_mq_peer *peer, const void *request, size_t len_bytes,
               struct vf_op *op, velo_mq_done_fn done);

enum vf_atomic_wants { VF_WANTS_NOTHING = 0, VF_WANTS_OLD = 1, VF_WANTS_COMPARE = 2 };

/** Do an atomic operation that came. Returns the length of the answer. */
size_t vf_atomic_serve(struct vf_domain *domain, const struct vf_am_header *header,
                       const void *data, size_t len_bytes, struct vf_am_answer *answer);

/** Bytes of a datatype; 0: there is no such. */
size_t vf_datatype_bytes(int datatype);
bool vf_compute_is_valid(int datatype, int op, int wants);
/** Do it to each of `count` elements at `target`. `old` receives what was there; may be NULL. */
void vf_compute(int op, int datatype, void *target, const void *operand, const void *compare,
                void *old, size_t count);
int vf_atomic_query(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
                    struct fi_atomic_attr *attr, uint64_t flags);

int vf_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
               const struct fi_info *hints, struct fi_info **out);
int vf_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **out, void *context);
int vf_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **out,
                   void *context);
int vf_trywait(struct fid_fabric *fabric, struct fid **fids, int count);

/** Go on with everything under way. */
static inline void vf_watch_progress(struct vf_watch *watch)
{
    for (uint32_t i = 0; i < watch->ep_count; i++) {
        struct vf_ep *ep = watch->eps[i];
        (void)velo_mq_progress(ep->mq);
        if (vf_unlikely(ep->am_stalled))
            vf_am_retry(ep);
    }
    if (vf_unlikely(watch->domain->rma != NULL))
        vf_rma_progress(watch->domain);
}

/** The same, and wait a moment for a message if that keeps nobody else out. */
static inline void vf_watch_spin(struct vf_watch *watch)
{
    if (vf_unlikely(watch->ep_count != 1 || watch->domain->locks || watch->domain->rma_pending)) {
        vf_watch_progress(watch);
        return;
    }
    struct vf_ep *ep = watch->eps[0];
    struct vf_op *op = ep->recv_last;
    bool is_waiting = op && op->kind == VF_OP_RECV && op->mq.status == VELO_AGAIN;
    (void)velo_mq_spin(ep->mq, is_waiting ? &op->mq : NULL);
    if (vf_unlikely(ep->am_stalled))
        vf_am_retry(ep);
    if (vf_unlikely(watch->domain->rma != NULL))
        vf_rma_progress(watch->domain);
}

/** A clock, for timeouts. */
int64_t vf_now_ms(void);

/** The velo domain to use: of the parameter, the environment, or velo's default. */
int vf_domain_name(const char *given, char *name, size_t cap_bytes);

/** The object whose first member is the one that libfabric knows. */
#define VF_CONTAINER(fid_, type) ((type *)((char *)(fid_) - offsetof(type, fid)))

#endif
