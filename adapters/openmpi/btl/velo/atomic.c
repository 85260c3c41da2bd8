/* SPDX-License-Identifier: Apache-2.0 */
/* Atomics: osc/rdma's locks, counters and accumulates. */
#include "btl_velo.h"

#include "opal/sys/atomic.h"

/* osc/rdma gets this status for an operation that it can do by itself, with a lock, a get and a
 * put. After any other error of an accumulate it tries again for ever. */
#define DO_IT_YOURSELF OPAL_ERR_NOT_SUPPORTED

/* Open MPI's operations in velo's terms; 0: velo lacks it. For minimum and maximum Open MPI does
 * not say whether words are signed. osc/rdma says FLOAT for a complex number of 8 bytes, too: so of
 * floats we only move the bits. */
static int atomic_of(mca_btl_base_atomic_op_t op, int flags)
{
    if ((flags & MCA_BTL_ATOMIC_FLAG_FLOAT) != 0 && op != MCA_BTL_ATOMIC_SWAP)
        return 0;
    switch (op) {
    case MCA_BTL_ATOMIC_ADD:
        return VELO_RMA_ATOMIC_ADD;
    case MCA_BTL_ATOMIC_AND:
        return VELO_RMA_ATOMIC_AND;
    case MCA_BTL_ATOMIC_OR:
        return VELO_RMA_ATOMIC_OR;
    case MCA_BTL_ATOMIC_XOR:
        return VELO_RMA_ATOMIC_XOR;
    case MCA_BTL_ATOMIC_LAND:
        return VELO_RMA_ATOMIC_LAND;
    case MCA_BTL_ATOMIC_LOR:
        return VELO_RMA_ATOMIC_LOR;
    case MCA_BTL_ATOMIC_LXOR:
        return VELO_RMA_ATOMIC_LXOR;
    case MCA_BTL_ATOMIC_SWAP:
        return VELO_RMA_ATOMIC_SWAP;
    default:
        return 0;
    }
}

/* osc/rdma also asks for atomics on memory that is mapped here: its own, for which there is no
 * endpoint of another, and that of shared windows, which it does not register. The processor's
 * atomics serve: velo's are the same instructions (MCA_BTL_ATOMIC_SUPPORTS_GLOB). */
static bool is_mapped(const struct mca_btl_base_endpoint_t *endpoint,
                      const mca_btl_base_registration_handle_t *remote_handle)
{
    return endpoint == NULL || remote_handle == NULL ||
           (VELO_OMPI_BTL_REACHES_ITSELF && endpoint->proc == opal_proc_local_get());
}

int btl_velo_atomic_fop(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                        void *local_address, uint64_t remote_address,
                        mca_btl_base_registration_handle_t *local_handle,
                        mca_btl_base_registration_handle_t *remote_handle,
                        mca_btl_base_atomic_op_t op_, uint64_t operand, int flags, int order,
                        mca_btl_base_rdma_completion_fn_t done, void *context, void *data)
{
    (void)order;
    bool mapped = is_mapped(endpoint, remote_handle);
    size_t len_bytes = (flags & MCA_BTL_ATOMIC_FLAG_32BIT) != 0 ? 4 : 8;
    int atomic = atomic_of(op_, flags);
    bool is_sum = atomic == VELO_RMA_ATOMIC_ADD && len_bytes == 8;
    /* MPI knows no alignment. Osc/rdma itself updates memory that is mapped here, but for counters.
     */
    if (atomic == 0 || remote_address % len_bytes != 0 || (mapped && !is_sum))
        return DO_IT_YOURSELF;
    if (mapped) {
        *(int64_t *)local_address = opal_atomic_fetch_add_64(
            (VELO_OMPI_ATOMIC(int64_t) *)(uintptr_t)remote_address, (int64_t)operand);
        done(btl, endpoint, local_address, local_handle, context, data, OPAL_SUCCESS);
        return OPAL_SUCCESS;
    }
    const struct btl_velo_caller caller = {endpoint, local_address, local_handle,
                                           done,     context,       data};
    struct btl_velo_access access = {.op = VELO_RMA_OPERATION_FETCH_OP,
                                     .atomic = atomic,
                                     .len_bytes = len_bytes,
                                     .word = {operand}};
    if (is_sum) /* Hardware has it. */
        access = (struct btl_velo_access){.op = VELO_RMA_OPERATION_FETCH_COMPARE_ADD,
                                          .flags = VELO_RMA_ADD_ALWAYS,
                                          .len_bytes = len_bytes,
                                          .word = {0, operand}};
    int rc = btl_velo_start(&caller, &access, remote_address, remote_handle);
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
        int32_t half = (int32_t)compare; /* If another value was there, this becomes that value. */
        (void)opal_atomic_compare_exchange_strong_32(
            (VELO_OMPI_ATOMIC(int32_t) *)(uintptr_t)address, &half, (int32_t)value);
        *(int32_t *)old = half;
    } else {
        int64_t word = (int64_t)compare;
        (void)opal_atomic_compare_exchange_strong_64(
            (VELO_OMPI_ATOMIC(int64_t) *)(uintptr_t)address, &word, (int64_t)value);
        *(int64_t *)old = word;
    }
}

int btl_velo_atomic_cswap(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                          void *local_address, uint64_t remote_address,
                          mca_btl_base_registration_handle_t *local_handle,
                          mca_btl_base_registration_handle_t *remote_handle, uint64_t compare,
                          uint64_t value, int flags, int order,
                          mca_btl_base_rdma_completion_fn_t done, void *context, void *data)
{
    (void)order;
    bool is_narrow = (flags & MCA_BTL_ATOMIC_FLAG_32BIT) != 0;
    if (is_mapped(endpoint, remote_handle)) {
        swap_here(remote_address, is_narrow, compare, value, local_address);
        done(btl, endpoint, local_address, local_handle, context, data, OPAL_SUCCESS);
        return OPAL_SUCCESS;
    }
    const struct btl_velo_caller caller = {endpoint, local_address, local_handle,
                                           done,     context,       data};
    struct btl_velo_access access = {
        .op = VELO_RMA_OPERATION_COMPARE_SWAP, .len_bytes = 4, .word = {compare, value}};
    if (!is_narrow) /* Hardware has it. */
        access = (struct btl_velo_access){.op = VELO_RMA_OPERATION_FETCH_COMPARE_ADD,
                                          .len_bytes = 8,
                                          .word = {compare, value - compare}};
    return btl_velo_start(&caller, &access, remote_address, remote_handle);
}
