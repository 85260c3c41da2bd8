/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file btl_velo.h
 * @brief Open MPI's byte transfer layer over velo: active messages are velo messages (the BTL's tag
 * is the message's), put, get and atomics are RMA operations.
 *
 * It reaches the ranks of this node only; Open MPI takes another BTL for the others.
 *
 * Threads: `lock` guards connections, RMA and the list of waiting fragments; `receiving` keeps all
 * but one thread, and nested calls, from the port. Callbacks run without the lock. Neither costs
 * anything when there is one thread.
 */
#ifndef VELO_MPI_BTL_VELO_H
#define VELO_MPI_BTL_VELO_H

#include "opal_config.h"

#include "opal/class/opal_free_list.h"
#include "opal/class/opal_list.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/btl/btl.h"
#include "opal/util/proc.h"

#include <velo/mq.h>
#include <velo/rma.h>
#include <velo/velo.h>

#include "common/velo_ompi.h"

struct btl_velo_component {
    mca_btl_base_component_3_0_0_t super;
    struct velo_ompi_params params;
    unsigned serve_polls;
    unsigned long long get_bytes; /**< The PML's messages from this length on are fetched. */
};
VELO_OMPI_COMPONENT extern struct btl_velo_component mca_btl_velo_component;

/** A process of this node. */
struct mca_btl_base_endpoint_t {
    opal_list_item_t super; /**< In the module's list. */
    opal_proc_t *proc;
    struct velo_conn *conn;    /**< NULL until something is sent. */
    struct velo_rma_peer *rma; /**< NULL until the first operation on its memory. */
    opal_list_t waiting;       /**< Fragments that found the ring full, in order. */
    bool has_left;             /**< Its port is closed: another's may have the same id. */
    char *room; /**< Reserved in its ring, for the longest message; NULL: nothing is. */
    struct btl_velo_fragment *packed; /**< The fragment whose payload lies there; NULL: none. */
};
typedef struct mca_btl_base_endpoint_t mca_btl_base_endpoint_t;
OBJ_CLASS_DECLARATION(mca_btl_base_endpoint_t);

/** A descriptor with its memory: the first segment is ours; the second one, if there is one, the
 *  user's, or in the ring, or ours again. */
struct btl_velo_fragment {
    mca_btl_base_descriptor_t super;
    mca_btl_base_segment_t segments[2];
    struct mca_btl_base_endpoint_t *endpoint;
    mca_btl_base_tag_t tag;
    bool is_in_ring; /**< It is its endpoint's `packed`. */
};
OBJ_CLASS_DECLARATION(btl_velo_fragment_small);
OBJ_CLASS_DECLARATION(btl_velo_fragment_large);
typedef struct btl_velo_fragment btl_velo_fragment_small;
typedef struct btl_velo_fragment btl_velo_fragment_large;

/** The first line of a message of more than VELO_INLINE_BYTES. The header ends where the line does,
 * or goes on behind it; of a message of few lines it begins behind `header_at`. So a long payload
 * begins at a line of the ring, where copies are fast, and right behind its header, as the PML
 * needs it. Shorter messages are header and payload, without this. */
struct btl_velo_front {
    uint64_t header_at;
    char rest[VELO_LINE_BYTES - sizeof(uint64_t)];
};

/** The handle by which peers reach registered memory. */
struct mca_btl_base_registration_handle_t {
    velo_rma_key_t key;
    uint64_t base;
    uint64_t len_bytes;
    uint64_t check; /**< Made of the others: tells a handle from two halves of different ones. */
};

/** The work of an operation on remote memory. */
struct btl_velo_access {
    enum velo_rma_operation op;
    enum velo_rma_atomic atomic; /**< Of a fetch-op, which is on unsigned integers. */
    uint32_t flags;              /**< Of a fetch-compare-add. */
    size_t len_bytes;
    uint64_t word[2]; /**< Its operands. */
};

/** The caller of an operation: its function to call at the end, with the arguments. */
struct btl_velo_caller {
    struct mca_btl_base_endpoint_t *endpoint;
    void *local_address;
    struct mca_btl_base_registration_handle_t *local_handle;
    mca_btl_base_rdma_completion_fn_t done;
    void *context, *data;
};

/** An RMA operation under way. */
struct btl_velo_op {
    opal_free_list_item_t super;
    struct btl_velo_caller caller;
    int status;
};
OBJ_CLASS_DECLARATION(btl_velo_op);
typedef struct btl_velo_op btl_velo_op;

struct btl_velo_module {
    mca_btl_base_module_t super;
    struct velo_ompi_port port;
    struct velo_ompi_idle idle;
    opal_mutex_t lock;
    VELO_OMPI_ATOMIC(int32_t) receiving;
    opal_list_t endpoints;
    volatile uint32_t waiting; /**< Endpoints with fragments waiting. */
    opal_free_list_t small, large, ops;
    uint32_t ops_under_way;
    uint32_t registered; /**< Memories that peers may reach. */
    uint32_t polls;      /**< Since the last look at what others ask of our memory. */
    bool in_stream;      /**< The last look at the port found a message. */
    uint32_t empty_polls;
    int64_t checked_ns; /**< When the peers were last looked after. */
    mca_btl_base_module_error_cb_fn_t failed;
};
extern struct btl_velo_module btl_velo;

/** Connections, made when first used; the lock is held. If it fails the reason was printed, and the
 *  caller gives up once it has released the lock: what stands in the way stays. */
int btl_velo_connect(struct mca_btl_base_endpoint_t *endpoint);
int btl_velo_connect_rma(struct mca_btl_base_endpoint_t *endpoint);

/** Free all endpoints. */
void btl_velo_forget_endpoints(void);

/** Fails if a connected peer has died. For ranks that wait and have nothing to send. */
void btl_velo_check_peers(void);

/** Ends the job for a process that is not reached, once the reason has been printed: the PML and
 *  osc/rdma would try again for ever. The lock is not held. */
_Noreturn void btl_velo_give_up(opal_proc_t *proc);
/** A peer cannot be reached any more: the same, with the reason. */
void btl_velo_fail(struct mca_btl_base_endpoint_t *endpoint, const char *what, int status);

int btl_velo_add_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                       struct mca_btl_base_endpoint_t **endpoints, opal_bitmap_t *reachable);
int btl_velo_del_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                       struct mca_btl_base_endpoint_t **endpoints);

mca_btl_base_descriptor_t *btl_velo_alloc(mca_btl_base_module_t *btl,
                                          struct mca_btl_base_endpoint_t *endpoint, uint8_t order,
                                          size_t len_bytes, uint32_t flags);
int btl_velo_free(mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *descriptor);
mca_btl_base_descriptor_t *btl_velo_prepare_src(mca_btl_base_module_t *btl,
                                                struct mca_btl_base_endpoint_t *endpoint,
                                                opal_convertor_t *convertor, uint8_t order,
                                                size_t header_bytes, size_t *len_bytes,
                                                uint32_t flags);
int btl_velo_send(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                  mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag);
int btl_velo_sendi(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                   opal_convertor_t *convertor, void *header, size_t header_bytes,
                   size_t payload_bytes, uint8_t order, uint32_t flags, mca_btl_base_tag_t tag,
                   mca_btl_base_descriptor_t **descriptor);
/** Room in the ring for the payload of a fragment that is about to be packed; NULL: not now. The
 *  lock is held. */
void *btl_velo_room(struct btl_velo_fragment *fragment, size_t header_bytes, size_t len_bytes);
/** Send fragments that wait for room. Returns the number of fragments sent. */
int btl_velo_send_waiting(void);

mca_btl_base_registration_handle_t *btl_velo_register_mem(mca_btl_base_module_t *btl,
                                                          struct mca_btl_base_endpoint_t *endpoint,
                                                          void *base, size_t len_bytes,
                                                          uint32_t flags);
int btl_velo_deregister_mem(mca_btl_base_module_t *btl, mca_btl_base_registration_handle_t *handle);
/** Start an operation. */
int btl_velo_start(const struct btl_velo_caller *caller, const struct btl_velo_access *access,
                   uint64_t address, const mca_btl_base_registration_handle_t *handle);
int btl_velo_put(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                 void *local_address, uint64_t remote_address,
                 mca_btl_base_registration_handle_t *local_handle,
                 mca_btl_base_registration_handle_t *remote_handle, size_t len_bytes, int flags,
                 int order, mca_btl_base_rdma_completion_fn_t done, void *context, void *data);
int btl_velo_get(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                 void *local_address, uint64_t remote_address,
                 mca_btl_base_registration_handle_t *local_handle,
                 mca_btl_base_registration_handle_t *remote_handle, size_t len_bytes, int flags,
                 int order, mca_btl_base_rdma_completion_fn_t done, void *context, void *data);
int btl_velo_atomic_op(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                       uint64_t remote_address, mca_btl_base_registration_handle_t *remote_handle,
                       mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
                       mca_btl_base_rdma_completion_fn_t done, void *context, void *data);
int btl_velo_atomic_fop(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                        void *local_address, uint64_t remote_address,
                        mca_btl_base_registration_handle_t *local_handle,
                        mca_btl_base_registration_handle_t *remote_handle,
                        mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
                        mca_btl_base_rdma_completion_fn_t done, void *context, void *data);
int btl_velo_atomic_cswap(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                          void *local_address, uint64_t remote_address,
                          mca_btl_base_registration_handle_t *local_handle,
                          mca_btl_base_registration_handle_t *remote_handle, uint64_t compare,
                          uint64_t value, int flags, int order,
                          mca_btl_base_rdma_completion_fn_t done, void *context, void *data);
/** Carry out peers' operations, and report our own that are done. Returns their number. */
int btl_velo_rma_progress(void);

#endif
