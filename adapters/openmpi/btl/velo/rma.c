/* SPDX-License-Identifier: Apache-2.0 */
/* Registration, operations on registered memory, and their completion. */
#include "btl_velo.h"

#include <stdlib.h>
#include <string.h>

/* The most completions that are reported in one call. */
#define BURST_OPS 16
#define CANNOT_REACH "reach the memory of a rank"

OBJ_CLASS_INSTANCE(btl_velo_op, opal_free_list_item_t, NULL, NULL);

/* ---- registration ---------------------------------------------------------------------------- */

/* The handle is the first member: peers get a copy of it and no more. */
struct registration {
    struct mca_btl_base_registration_handle_t handle;
    struct velo_rma_mem *mem;
};

/* The factors are odd: a mixture of words of two handles has the sum of neither. */
static uint64_t check_of(const struct mca_btl_base_registration_handle_t *handle)
{
    return handle->key * UINT64_C(0x9e3779b97f4a7c15) +
           handle->base * UINT64_C(0xc2b2ae3d27d4eb4f) +
           handle->len_bytes * UINT64_C(0x165667b19e3779f9) + 1;
}

/* The PML asks in this way whether a message's receiver can fetch it. If not, it sends fragments.
 * Simulated nodes fetch. Others register for more than a peer's reads. */
static bool is_sent_instead(uint32_t flags, size_t len_bytes)
{
    return flags == MCA_BTL_REG_FLAG_REMOTE_READ && !mca_btl_velo_component.params.simulated &&
           len_bytes < mca_btl_velo_component.get_bytes;
}

mca_btl_base_registration_handle_t *btl_velo_register_mem(mca_btl_base_module_t *btl,
                                                          struct mca_btl_base_endpoint_t *endpoint,
                                                          void *base, size_t len_bytes,
                                                          uint32_t flags)
{
    (void)btl;
    (void)endpoint; /* Open MPI hands a registration on to other peers, too. */
    uint32_t rights = ((flags & MCA_BTL_REG_FLAG_REMOTE_READ) != 0 ? VELO_RMA_RIGHT_READ : 0) |
                      ((flags & MCA_BTL_REG_FLAG_REMOTE_WRITE) != 0 ? VELO_RMA_RIGHT_WRITE : 0) |
                      ((flags & MCA_BTL_REG_FLAG_REMOTE_ATOMIC) != 0 ? VELO_RMA_RIGHT_ATOMIC : 0);
    if (is_sent_instead(flags, len_bytes))
        return NULL;
    struct registration *registration = calloc(1, sizeof *registration);
    if (registration == NULL)
        return NULL;
    registration->handle.base = (uintptr_t)base;
    registration->handle.len_bytes = len_bytes;
    if (rights == 0 || len_bytes == 0)
        return &registration->handle; /* For local use velo needs no registration. */
    OPAL_THREAD_LOCK(&btl_velo.lock);
    int status = velo_rma_mem_register(btl_velo.port.rma, base, len_bytes, rights,
                                       VELO_RMA_PEER_ANY, &registration->mem);
    if (status == VELO_OK) {
        registration->handle.key = velo_rma_mem_key(registration->mem);
        btl_velo.registered++;
    }
    OPAL_THREAD_UNLOCK(&btl_velo.lock);
    registration->handle.check = check_of(&registration->handle);
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
    btl_velo.registered -= registration->mem != NULL;
    (void)velo_rma_mem_deregister(registration->mem, VELO_FOREVER);
    OPAL_THREAD_UNLOCK(&btl_velo.lock);
    free(registration);
    return OPAL_SUCCESS;
}

/* ---- where memory is ------------------------------------------------------------------------- */

static int right_of(const struct btl_velo_access *access)
{
    switch (access->op) {
    case VELO_RMA_OPERATION_PUT:
        return VELO_RMA_RIGHT_WRITE;
    case VELO_RMA_OPERATION_GET:
        return VELO_RMA_RIGHT_READ;
    default:
        return VELO_RMA_RIGHT_ATOMIC;
    }
}

/* The place of an address in a handle's memory. osc/rdma leaves handles of dynamic windows in
 * memory that their owner moves when it attaches more: this handle may be another one by now, or
 * half of one. */
static bool find_by_handle(const mca_btl_base_registration_handle_t *shared, uint64_t address,
                           size_t len_bytes, struct velo_rma_place *place)
{
    mca_btl_base_registration_handle_t handle;
    memcpy(&handle, shared, sizeof handle);
    uint64_t offset = address - handle.base;
    if (offset > handle.len_bytes || len_bytes > handle.len_bytes - offset ||
        handle.check != check_of(&handle))
        return false;
    *place = velo_rma_place(handle.key, offset);
    return true;
}

static int find_by_address(const struct mca_btl_base_endpoint_t *endpoint,
                           const struct btl_velo_access *access, uint64_t address,
                           struct velo_rma_place *place)
{
    return velo_rma_mem_find(endpoint->rma, address, access->len_bytes, right_of(access), place);
}

/* ---- operations ------------------------------------------------------------------------------ */

static int post_access(const struct btl_velo_op *op, const struct btl_velo_access *access,
                       const struct velo_rma_place *place)
{
    struct velo_rma_peer *peer = op->caller.endpoint->rma;
    void *local = op->caller.local_address;
    const uint32_t notify = VELO_RMA_NOTIFY_REQUESTER;
    const uint64_t cookie = (uintptr_t)op;
    switch (access->op) {
    case VELO_RMA_OPERATION_PUT:
        return velo_rma_put(peer, local, access->len_bytes, *place, notify, cookie);
    case VELO_RMA_OPERATION_GET:
        return velo_rma_get(peer, local, access->len_bytes, *place, notify, cookie);
    case VELO_RMA_OPERATION_FETCH_OP:
        return velo_rma_fetch_op(peer, local, *place, access->atomic,
                                 access->len_bytes == 4 ? VELO_RMA_TYPE_UINT32
                                                        : VELO_RMA_TYPE_UINT64,
                                 &access->word[0], notify, cookie);
    case VELO_RMA_OPERATION_COMPARE_SWAP:
        return velo_rma_compare_swap(peer, local, access->len_bytes, *place, &access->word[0],
                                     &access->word[1], notify, cookie);
    default:
        return velo_rma_fetch_compare_add(peer, local, *place, access->word[0], access->word[1],
                                          access->flags | notify, cookie);
    }
}

/* The lock is held. */
static int post_at(const struct btl_velo_op *op, const struct btl_velo_access *access,
                   uint64_t address, const mca_btl_base_registration_handle_t *handle)
{
    struct velo_rma_place place;
    int status = VELO_ERR_ACCESS;
    if (find_by_handle(handle, address, access->len_bytes, &place))
        status = post_access(op, access, &place);
    if (__builtin_expect(status != VELO_ERR_ACCESS, 1))
        return status;
    status = find_by_address(op->caller.endpoint, access, address, &place);
    return status == VELO_OK ? post_access(op, access, &place) : status;
}

/* The lock is held. */
static int connect_rma(struct mca_btl_base_endpoint_t *endpoint)
{
    return __builtin_expect(endpoint->rma != NULL, 1) ? OPAL_SUCCESS
                                                      : btl_velo_connect_rma(endpoint);
}

int btl_velo_start(const struct btl_velo_caller *caller, const struct btl_velo_access *access,
                   uint64_t address, const mca_btl_base_registration_handle_t *handle)
{
    struct btl_velo_op *op = (struct btl_velo_op *)opal_free_list_get(&btl_velo.ops);
    if (op == NULL)
        return OPAL_ERR_OUT_OF_RESOURCE;
    op->caller = *caller;
    OPAL_THREAD_LOCK(&btl_velo.lock);
    int rc = connect_rma(caller->endpoint);
    int status = rc == OPAL_SUCCESS ? post_at(op, access, address, handle) : VELO_OK;
    if (rc == OPAL_SUCCESS && status == VELO_OK)
        btl_velo.ops_under_way++;
    OPAL_THREAD_UNLOCK(&btl_velo.lock);
    if (__builtin_expect(rc == OPAL_SUCCESS && status == VELO_OK, 1))
        return OPAL_SUCCESS;
    opal_free_list_return(&btl_velo.ops, &op->super);
    if (rc != OPAL_SUCCESS)
        btl_velo_give_up(caller->endpoint->proc);
    /* After any error of a put or a get osc/rdma tries again for ever. */
    bool is_tried_again =
        access->op == VELO_RMA_OPERATION_PUT || access->op == VELO_RMA_OPERATION_GET;
    if (status == VELO_ERR_PEER_CLOSED || status == VELO_ERR_PEER_DEAD ||
        (is_tried_again && status != VELO_AGAIN))
        btl_velo_fail(caller->endpoint, CANNOT_REACH, status);
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
    const struct btl_velo_caller caller = {endpoint, local_address, local_handle,
                                           done,     context,       data};
    const struct btl_velo_access access = {.op = VELO_RMA_OPERATION_PUT, .len_bytes = len_bytes};
    return btl_velo_start(&caller, &access, remote_address, remote_handle);
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
    const struct btl_velo_caller caller = {endpoint, local_address, local_handle,
                                           done,     context,       data};
    const struct btl_velo_access access = {.op = VELO_RMA_OPERATION_GET, .len_bytes = len_bytes};
    return btl_velo_start(&caller, &access, remote_address, remote_handle);
}

/* ---- completion ------------------------------------------------------------------------------ */

static void tell_caller(struct btl_velo_op *op)
{
    const struct btl_velo_caller caller = op->caller;
    int status = op->status;
    opal_free_list_return(&btl_velo.ops, &op->super);
    if (status != VELO_OK) /* osc/rdma would think that the operation is done. */
        btl_velo_fail(caller.endpoint, CANNOT_REACH, status);
    if (caller.done != NULL)
        caller.done(&btl_velo.super, caller.endpoint, caller.local_address, caller.local_handle,
                    caller.context, caller.data, OPAL_SUCCESS);
}

int btl_velo_rma_progress(void)
{
    struct btl_velo_op *ended[BURST_OPS];
    struct velo_rma_notification notification;
    int count = 0, served = 0;
    OPAL_THREAD_LOCK(&btl_velo.lock);
    if (btl_velo.ops_under_way == 0)
        served = velo_rma_progress(btl_velo.port.rma);
    while (btl_velo.ops_under_way > 0 && count < BURST_OPS &&
           velo_rma_try_poll(btl_velo.port.rma, &notification, 1) == 1) {
        /* We ask for no other kind; a peer that sends one gets no more than a discarded word. */
        if ((notification.class_ & (VELO_RMA_CLASS_REQUESTER | VELO_RMA_CLASS_ERROR)) == 0)
            continue;
        ended[count] = (struct btl_velo_op *)(uintptr_t)notification.cookie;
        ended[count]->status =
            notification.class_ == VELO_RMA_CLASS_ERROR ? notification.status : VELO_OK;
        count++;
        btl_velo.ops_under_way--;
    }
    OPAL_THREAD_UNLOCK(&btl_velo.lock);
    for (int i = 0; i < count; i++)
        tell_caller(ended[i]);
    return count + served;
}
