/* SPDX-License-Identifier: Apache-2.0 */
/* Registration, put, get and atomics. */
#include "btl_velo.h"

#include "opal/sys/atomic.h"

#include <stdlib.h>

/* Completions told of in one call. */
#define BURST_OPS 16

OBJ_CLASS_INSTANCE(btl_velo_op, opal_free_list_item_t, NULL, NULL);

/* The handle is the first member: peers get a copy of it and no more. */
struct registration {
    struct mca_btl_base_registration_handle_t handle;
    struct velo_mem *mem;
};

mca_btl_base_registration_handle_t *btl_velo_register_mem(mca_btl_base_module_t *btl,
                                                          struct mca_btl_base_endpoint_t *endpoint,
                                                          void *base, size_t len_bytes,
                                                          uint32_t flags)
{
    (void)btl;
    (void)endpoint; /* Open MPI hands a registration on to others than it was made for. */
    int rights = ((flags & MCA_BTL_REG_FLAG_REMOTE_READ) != 0 ? VELO_RIGHT_READ : 0) |
                 ((flags & MCA_BTL_REG_FLAG_REMOTE_WRITE) != 0 ? VELO_RIGHT_WRITE : 0) |
                 ((flags & MCA_BTL_REG_FLAG_REMOTE_ATOMIC) != 0 ? VELO_RIGHT_ATOMIC : 0);
    struct registration *registration = calloc(1, sizeof *registration);
    if (registration == NULL)
        return NULL;
    registration->handle.base = (uintptr_t)base;
    if (rights == 0 || len_bytes == 0)
        return &registration->handle; /* Local use needs none of velo's. */
    OPAL_THREAD_LOCK(&btl_velo.lock);
    int status = velo_mem_register(btl_velo.port.rma, base, len_bytes, rights, VELO_PEER_ANY,
                                   &registration->mem);
    if (status == VELO_OK)
        registration->handle.key = velo_mem_key(registration->mem);
    OPAL_THREAD_UNLOCK(&btl_velo.lock);
    if (status == VELO_OK)
        return &registration->handle;
    free(registration);
    return NULL;
}

int btl_velo_deregister_mem(mca_btl_base_module_t *btl, mca_btl_base_registration_handle_t *handle)
{
    (void)btl;
    struct registration *registration = (struct registration *)handle;
    OPAL_THREAD_LOCK(&btl_velo.lock);
    (void)velo_mem_deregister(registration->mem);
    OPAL_THREAD_UNLOCK(&btl_velo.lock);
    free(registration);
    return OPAL_SUCCESS;
}

/* osc/rdma asks for atomics on memory that is mapped here too: its own, for which there is no
 * endpoint, and that of shared windows, which it does not register. The processor's do: velo's are
 * the same instructions (MCA_BTL_ATOMIC_SUPPORTS_GLOB). */
static bool is_mapped(const struct mca_btl_base_endpoint_t *endpoint,
                      const mca_btl_base_registration_handle_t *remote_handle)
{
    return endpoint == NULL || remote_handle == NULL;
}

static struct btl_velo_op *new_op(struct mca_btl_base_endpoint_t *endpoint, void *local_address,
                                  mca_btl_base_registration_handle_t *local_handle,
                                  mca_btl_base_rdma_completion_fn_t done, void *context, void *data)
{
    struct btl_velo_op *op = (struct btl_velo_op *)opal_free_list_get(&btl_velo.ops);
    if (op == NULL)
        return NULL;
    op->endpoint = endpoint;
    op->local_address = local_address;
    op->local_handle = local_handle;
    op->done = done;
    op->context = context;
    op->data = data;
    return op;
}

/* Takes the lock for an operation; false: there is nothing to start it with. */
static bool begin(struct mca_btl_base_endpoint_t *endpoint, struct btl_velo_op *op, int *rc)
{
    *rc = OPAL_ERR_OUT_OF_RESOURCE;
    if (op == NULL)
        return false;
    OPAL_THREAD_LOCK(&btl_velo.lock);
    *rc = endpoint->rma != NULL ? OPAL_SUCCESS : btl_velo_connect_rma(endpoint);
    if (*rc == OPAL_SUCCESS)
        return true;
    OPAL_THREAD_UNLOCK(&btl_velo.lock);
    opal_free_list_return(&btl_velo.ops, &op->super);
    return false;
}

static int end(struct mca_btl_base_endpoint_t *endpoint, struct btl_velo_op *op, int status)
{
    if (status == VELO_OK)
        btl_velo.ops_under_way++;
    OPAL_THREAD_UNLOCK(&btl_velo.lock);
    if (status == VELO_OK)
        return OPAL_SUCCESS;
    opal_free_list_return(&btl_velo.ops, &op->super);
    if (status == VELO_ERR_PEER_CLOSED || status == VELO_ERR_PEER_DEAD)
        btl_velo_fail(endpoint, "reach the memory of a rank", status);
    return velo_ompi_error(status);
}

int btl_velo_put(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                 void *local_address, uint64_t remote_address,
                 mca_btl_base_registration_handle_t *local_handle,
                 mca_btl_base_registration_handle_t *remote_handle, size_t len_bytes, int flags,
                 int order, mca_btl_base_rdma_completion_fn_t done, void *context, void *data)
{
    (void)btl;
    (void)flags;
    (void)order;
    int rc;
    struct btl_velo_op *op = new_op(endpoint, local_address, local_handle, done, context, data);
    if (!begin(endpoint, op, &rc))
        return rc;
    int status =
        velo_put(endpoint->rma, local_address, len_bytes, remote_handle->key,
                 remote_address - remote_handle->base, VELO_NOTIFY_REQUESTER, (uintptr_t)op);
    return end(endpoint, op, status);
}

int btl_velo_get(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                 void *local_address, uint64_t remote_address,
                 mca_btl_base_registration_handle_t *local_handle,
                 mca_btl_base_registration_handle_t *remote_handle, size_t len_bytes, int flags,
                 int order, mca_btl_base_rdma_completion_fn_t done, void *context, void *data)
{
    (void)btl;
    (void)flags;
    (void)order;
    int rc;
    struct btl_velo_op *op = new_op(endpoint, local_address, local_handle, done, context, data);
    if (!begin(endpoint, op, &rc))
        return rc;
    int status =
        velo_get(endpoint->rma, local_address, len_bytes, remote_handle->key,
                 remote_address - remote_handle->base, VELO_NOTIFY_REQUESTER, (uintptr_t)op);
    return end(endpoint, op, status);
}

/* ---- atomics --------------------------------------------------------------------------------- */

/* What osc/rdma is told that it can do without, with a lock, a get and a put. Whatever else it is
 * told of an accumulate, it tries again for ever. */
#define DO_IT_YOURSELF OPAL_ERR_NOT_SUPPORTED

/* What Open MPI asks for; 0: what velo lacks. Of minimum and maximum it does not say whether words
 * are signed, and osc/rdma says FLOAT of a complex number of 8 bytes, too: of floats we move only
 * the bits. */
static int atomic_of(mca_btl_base_atomic_op_t op, int flags)
{
    if ((flags & MCA_BTL_ATOMIC_FLAG_FLOAT) != 0 && op != MCA_BTL_ATOMIC_SWAP)
        return 0;
    switch (op) {
    case MCA_BTL_ATOMIC_ADD:
        return VELO_ATOMIC_ADD;
    case MCA_BTL_ATOMIC_AND:
        return VELO_ATOMIC_AND;
    case MCA_BTL_ATOMIC_OR:
        return VELO_ATOMIC_OR;
    case MCA_BTL_ATOMIC_XOR:
        return VELO_ATOMIC_XOR;
    case MCA_BTL_ATOMIC_LAND:
        return VELO_ATOMIC_LAND;
    case MCA_BTL_ATOMIC_LOR:
        return VELO_ATOMIC_LOR;
    case MCA_BTL_ATOMIC_LXOR:
        return VELO_ATOMIC_LXOR;
    case MCA_BTL_ATOMIC_SWAP:
        return VELO_ATOMIC_SWAP;
    default:
        return 0;
    }
}

/* Of 64 bits, sums and swaps are fetch-compare-adds: hardware has those. */
static int post_fop(const struct btl_velo_op *op, velo_key_t key, uint64_t offset, int atomic,
                    bool is_narrow, uint64_t operand)
{
    struct velo_rma_peer *peer = op->endpoint->rma;
    uint32_t half = (uint32_t)operand;
    if (is_narrow)
        return velo_fetch_op(peer, op->local_address, key, offset, atomic, VELO_TYPE_UINT32, &half,
                             VELO_NOTIFY_REQUESTER, (uintptr_t)op);
    if (atomic == VELO_ATOMIC_ADD)
        return velo_fetch_compare_add(peer, op->local_address, key, offset, 0, operand,
                                      VELO_ADD_ALWAYS, VELO_NOTIFY_REQUESTER, (uintptr_t)op);
    return velo_fetch_op(peer, op->local_address, key, offset, atomic, VELO_TYPE_UINT64, &operand,
                         VELO_NOTIFY_REQUESTER, (uintptr_t)op);
}

int btl_velo_atomic_fop(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                        void *local_address, uint64_t remote_address,
                        mca_btl_base_registration_handle_t *local_handle,
                        mca_btl_base_registration_handle_t *remote_handle,
                        mca_btl_base_atomic_op_t op_, uint64_t operand, int flags, int order,
                        mca_btl_base_rdma_completion_fn_t done, void *context, void *data)
{
    (void)order;
    int rc;
    bool mapped = is_mapped(endpoint, remote_handle);
    bool is_narrow = (flags & MCA_BTL_ATOMIC_FLAG_32BIT) != 0;
    int atomic = atomic_of(op_, flags);
    /* MPI knows no alignment. What is mapped osc/rdma updates itself, but for counters. */
    if (atomic == 0 || remote_address % (is_narrow ? 4 : 8) != 0 ||
        (mapped && (atomic != VELO_ATOMIC_ADD || is_narrow)))
        return DO_IT_YOURSELF;
    if (mapped) {
        *(int64_t *)local_address = opal_atomic_fetch_add_64(
            (volatile int64_t *)(uintptr_t)remote_address, (int64_t)operand);
        done(btl, endpoint, local_address, local_handle, context, data, OPAL_SUCCESS);
        return OPAL_SUCCESS;
    }
    struct btl_velo_op *op = new_op(endpoint, local_address, local_handle, done, context, data);
    if (!begin(endpoint, op, &rc))
        return rc;
    int status = post_fop(op, remote_handle->key, remote_address - remote_handle->base, atomic,
                          is_narrow, operand);
    rc = end(endpoint, op, status);
    return rc == OPAL_SUCCESS || rc == OPAL_ERR_OUT_OF_RESOURCE ? rc : DO_IT_YOURSELF;
}

int btl_velo_atomic_op(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                       uint64_t remote_address, mca_btl_base_registration_handle_t *remote_handle,
                       mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
                       mca_btl_base_rdma_completion_fn_t done, void *context, void *data)
{
    static uint64_t ignored; /* Nobody reads the old value. */
    return btl_velo_atomic_fop(btl, endpoint, &ignored, remote_address, NULL, remote_handle, op,
                               operand, flags, order, done, context, data);
}

/* A compare-and-swap of memory that is mapped. */
static void swap_here(uint64_t address, bool is_narrow, uint64_t compare, uint64_t value, void *old)
{
    if (is_narrow) {
        int32_t half = (int32_t)compare; /* Becomes what was there, if that is something else. */
        (void)opal_atomic_compare_exchange_strong_32((volatile int32_t *)(uintptr_t)address, &half,
                                                     (int32_t)value);
        *(int32_t *)old = half;
    } else {
        int64_t word = (int64_t)compare;
        (void)opal_atomic_compare_exchange_strong_64((volatile int64_t *)(uintptr_t)address, &word,
                                                     (int64_t)value);
        *(int64_t *)old = word;
    }
}

static int post_cswap(const struct btl_velo_op *op, velo_key_t key, uint64_t offset, bool is_narrow,
                      uint64_t compare, uint64_t value)
{
    struct velo_rma_peer *peer = op->endpoint->rma;
    uint32_t half_compare = (uint32_t)compare, half_value = (uint32_t)value;
    if (is_narrow)
        return velo_compare_swap(peer, op->local_address, key, offset, &half_compare, &half_value,
                                 sizeof half_value, VELO_NOTIFY_REQUESTER, (uintptr_t)op);
    return velo_fetch_compare_add(peer, op->local_address, key, offset, compare, value - compare, 0,
                                  VELO_NOTIFY_REQUESTER, (uintptr_t)op);
}

int btl_velo_atomic_cswap(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                          void *local_address, uint64_t remote_address,
                          mca_btl_base_registration_handle_t *local_handle,
                          mca_btl_base_registration_handle_t *remote_handle, uint64_t compare,
                          uint64_t value, int flags, int order,
                          mca_btl_base_rdma_completion_fn_t done, void *context, void *data)
{
    (void)order;
    int rc;
    bool is_narrow = (flags & MCA_BTL_ATOMIC_FLAG_32BIT) != 0;
    if (is_mapped(endpoint, remote_handle)) {
        swap_here(remote_address, is_narrow, compare, value, local_address);
        done(btl, endpoint, local_address, local_handle, context, data, OPAL_SUCCESS);
        return OPAL_SUCCESS;
    }
    struct btl_velo_op *op = new_op(endpoint, local_address, local_handle, done, context, data);
    if (!begin(endpoint, op, &rc))
        return rc;
    int status = post_cswap(op, remote_handle->key, remote_address - remote_handle->base, is_narrow,
                            compare, value);
    return end(endpoint, op, status);
}

/* ---- completion ------------------------------------------------------------------------------ */

static void tell(struct btl_velo_op *op)
{
    struct btl_velo_op told = *op;
    opal_free_list_return(&btl_velo.ops, &op->super);
    if (told.status == VELO_ERR_PEER_CLOSED || told.status == VELO_ERR_PEER_DEAD)
        btl_velo_fail(told.endpoint, "reach the memory of a rank", told.status);
    if (told.done != NULL)
        told.done(&btl_velo.super, told.endpoint, told.local_address, told.local_handle,
                  told.context, told.data, velo_ompi_error(told.status));
}

int btl_velo_rma_progress(void)
{
    struct btl_velo_op *ended[BURST_OPS];
    struct velo_notification notification;
    int count = 0, served = 0;
    OPAL_THREAD_LOCK(&btl_velo.lock);
    if (btl_velo.ops_under_way == 0)
        served = velo_rma_progress(btl_velo.port.rma);
    while (btl_velo.ops_under_way > 0 && count < BURST_OPS &&
           velo_notification_poll(btl_velo.port.rma, &notification) == VELO_OK) {
        /* We ask for no other kind; a peer that sends one gets no more than a discarded word. */
        if ((notification.class_ & (VELO_CLASS_REQUESTER | VELO_CLASS_ERROR)) == 0)
            continue;
        ended[count] = (struct btl_velo_op *)(uintptr_t)notification.cookie;
        ended[count]->status =
            notification.class_ == VELO_CLASS_ERROR ? notification.status : VELO_OK;
        count++;
        btl_velo.ops_under_way--;
    }
    OPAL_THREAD_UNLOCK(&btl_velo.lock);
    for (int i = 0; i < count; i++)
        tell(ended[i]);
    return count + served;
}
