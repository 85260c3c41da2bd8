/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The short way: sends and receives of data in one piece go from MPI's call to the matched queues.
 *
 * PML cm makes a request and a convertor even for a blocking call, which costs as much as all of
 * velo's work. Once cm is selected, four entries of Open MPI's table are replaced, as pml
 * monitoring does; a call that they cannot do at once they pass on to cm. Both ways lead to the
 * same queues, so messages keep their order.
 *
 * Under MPI_THREAD_MULTIPLE each call of the queues takes the module's lock; without it the lock
 * costs a look at a flag.
 */
#include "mtl_velo.h"

#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/pml/base/base.h"
#include "ompi/mca/pml/pml.h"
#include "opal/class/opal_free_list.h"
#include "opal/runtime/opal_progress.h"

#include <stddef.h>
#include <string.h>

#define RECEIVES_FIRST 64
#define RECEIVES_MORE 256

/* MPI's request of a receive, with ours behind it. */
typedef struct {
    ompi_request_t super;
    struct mtl_velo_op op;
    /* Both change under the lock: */
    bool ended; /* Its outcome is being reported, or has been. */
    bool freed; /* By MPI_Request_free() before its end: it is given back when it ends. */
} mtl_velo_receive;

static mca_pml_base_module_t cm;
static ompi_request_fns_t waits;
static opal_free_list_t receives;
static bool is_installed;

static void receive_construct(mtl_velo_receive *receive);
OBJ_CLASS_INSTANCE(mtl_velo_receive, ompi_request_t, receive_construct, NULL);

/* Are the data in one piece? Gives that piece. */
static inline bool find_piece(const void *buf, size_t count, const ompi_datatype_t *datatype,
                              void **data, size_t *len_bytes)
{
    const opal_datatype_t *type = &datatype->super;
    *data = (char *)(uintptr_t)buf + type->true_lb;
    *len_bytes = type->size * count;
    return __builtin_expect(
        opal_datatype_is_contiguous_memory_layout(type, count == 1 ? 1 : 2) != 0, 1);
}

/* Has the message been sent already? */
static inline bool try_send(const void *buf, size_t count, const ompi_datatype_t *datatype,
                            int rank, int tag, mca_pml_base_send_mode_t mode,
                            ompi_communicator_t *comm)
{
    void *data;
    size_t len_bytes;
    if (__builtin_expect(mode != MCA_PML_BASE_SEND_STANDARD && mode != MCA_PML_BASE_SEND_READY,
                         0) ||
        !find_piece(buf, count, datatype, &data, &len_bytes))
        return false;
    struct velo_mq_peer *peer = mtl_velo_peer(comm, rank);
    if (__builtin_expect(peer == NULL, 0))
        return false;
    mtl_velo_lock();
    int status =
        velo_mq_try_send(peer, data, len_bytes, mtl_velo_match(comm, comm->c_my_rank, tag));
    mtl_velo_unlock();
    return status == VELO_OK;
}

static int direct_send(const void *buf, size_t count, ompi_datatype_t *datatype, int rank, int tag,
                       mca_pml_base_send_mode_t mode, ompi_communicator_t *comm)
{
    if (__builtin_expect(try_send(buf, count, datatype, rank, tag, mode, comm), 1))
        return OMPI_SUCCESS;
    return cm.pml_send(buf, count, datatype, rank, tag, mode, comm);
}

static int direct_isend(const void *buf, size_t count, ompi_datatype_t *datatype, int rank, int tag,
                        mca_pml_base_send_mode_t mode, ompi_communicator_t *comm,
                        ompi_request_t **request)
{
    if (__builtin_expect(try_send(buf, count, datatype, rank, tag, mode, comm), 1)) {
        *request = &ompi_request_empty; /* Has always ended. */
        return OMPI_SUCCESS;
    }
    return cm.pml_isend(buf, count, datatype, rank, tag, mode, comm, request);
}

/* If the request was started, its errors are reported with it. */
static inline __attribute__((always_inline)) int start(void *data, size_t cap_bytes, int source,
                                                       int tag, ompi_communicator_t *comm,
                                                       struct velo_mq_request *request)
{
    velo_id_t from;
    if (__builtin_expect(!mtl_velo_source(comm, source, &from), 0))
        return OMPI_ERR_UNREACH;
    mtl_velo_lock();
    int status = velo_mq_irecv(mtl_velo.mq, from, mtl_velo_wanted(comm, source, tag),
                               mtl_velo_ignore(source, tag), data, cap_bytes, request);
    mtl_velo_unlock();
    return __builtin_expect(status == VELO_OK, 1) ? OMPI_SUCCESS : velo_ompi_error(status);
}

/* Poll for a receive's message, where no other rank wants the processor. In virtual time a poll of
 * ours would cost other than Open MPI's. */
static inline void poll_for(struct velo_mq_request *request)
{
    if (velo_ompi_idle_is_crowd(&mtl_velo.idle) || mca_mtl_velo_component.params.network ||
        !mtl_velo_lock_to_poll())
        return;
    (void)velo_mq_poll(mtl_velo.mq, request);
    mtl_velo_unlock();
}

/* A receive that this call waits for. Its request is on the stack, and with threads another thread
 * may end it: `ended` is the last that that one writes. */
struct awaited {
    struct velo_mq_request mq;
    volatile bool ended;
};

static void awaited_done(struct velo_mq_request *mq)
{
    opal_atomic_wmb();
    ((struct awaited *)mq)->ended = true;
}

static inline bool is_over(const struct awaited *receive)
{
    if (__builtin_expect(!opal_using_threads(), 1))
        return *(const volatile int *)&receive->mq.status != VELO_AGAIN;
    if (!receive->ended)
        return false;
    opal_atomic_rmb();
    return true;
}

static inline void await(struct awaited *receive)
{
    while (!is_over(receive)) {
        poll_for(&receive->mq);
        if (is_over(receive))
            break;
        opal_progress();
    }
}

static int direct_recv(void *buf, size_t count, ompi_datatype_t *datatype, int source, int tag,
                       ompi_communicator_t *comm, ompi_status_public_t *status)
{
    void *data;
    size_t cap_bytes;
    if (!find_piece(buf, count, datatype, &data, &cap_bytes))
        return cm.pml_recv(buf, count, datatype, source, tag, comm, status);
    struct awaited receive;
    receive.mq.done = opal_using_threads() ? awaited_done : NULL;
    receive.ended = false;
    int rc = start(data, cap_bytes, source, tag, comm, &receive.mq);
    if (__builtin_expect(rc != OMPI_SUCCESS, 0))
        return rc;
    await(&receive);
    /* A message from the rank that was asked for needs no look at the rank. */
    if (receive.mq.status == VELO_OK && status == MPI_STATUS_IGNORE && source != MPI_ANY_SOURCE)
        return MPI_SUCCESS;
    ompi_status_public_t result;
    mtl_velo_status(&result, comm, &receive.mq);
    if (status != MPI_STATUS_IGNORE)
        OMPI_COPY_STATUS(status, result, false);
    return result.MPI_ERROR;
}

/* ---- receives with a request ------------------------------------------------------------------
 */

static inline void give_back(mtl_velo_receive *receive)
{
    OBJ_RELEASE(receive->super.req_mpi_object.comm);
    OMPI_REQUEST_FINI(&receive->super);
    opal_free_list_return(&receives, &receive->super.super);
}

/* It is freed before its end. Another thread that reports the outcome looks at nothing after that:
 * see report(). */
static __attribute__((noinline)) int free_early(mtl_velo_receive *receive)
{
    mtl_velo_lock();
    bool freed = !receive->ended;
    receive->freed = freed;
    mtl_velo_unlock();
    if (freed)
        return OMPI_SUCCESS;
    ompi_request_wait_completion(&receive->super);
    give_back(receive);
    return OMPI_SUCCESS;
}

static int receive_free(ompi_request_t **request)
{
    mtl_velo_receive *receive = (mtl_velo_receive *)*request;
    *request = MPI_REQUEST_NULL;
    if (__builtin_expect(!REQUEST_COMPLETE(&receive->super), 0))
        return free_early(receive);
    give_back(receive);
    return OMPI_SUCCESS;
}

/* As soon as the request is complete another thread may free and use it again. */
static void report(mtl_velo_receive *receive)
{
    bool freed = receive->freed;
    (void)ompi_request_complete(&receive->super, true);
    if (__builtin_expect(freed, 0))
        give_back(receive);
}

static inline mtl_velo_receive *receive_of(struct mtl_velo_op *op)
{
    return (mtl_velo_receive *)((char *)op - offsetof(mtl_velo_receive, op));
}

static void receive_end(struct mtl_velo_op *op)
{
    mtl_velo_receive *receive = receive_of(op);
    mtl_velo_status(&receive->super.req_status, receive->super.req_mpi_object.comm, &op->mq);
    report(receive);
}

static void receive_done(struct velo_mq_request *mq)
{
    struct mtl_velo_op *op = (struct mtl_velo_op *)mq;
    receive_of(op)->ended = true;
    if (__builtin_expect(!opal_using_threads(), 1))
        receive_end(op);
    else
        mtl_velo_done(mq);
}

static int receive_cancel(ompi_request_t *request, int flag)
{
    (void)flag;
    mtl_velo_receive *receive = (mtl_velo_receive *)request;
    mtl_velo_lock();
    bool cancelled = !receive->ended && velo_mq_cancel(mtl_velo.mq, &receive->op.mq) == VELO_OK;
    if (cancelled)
        receive->ended = true;
    mtl_velo_unlock();
    if (!cancelled)
        return OMPI_SUCCESS; /* It is too late: the receive ends normally. */
    mtl_velo_status_cancelled(&request->req_status);
    report(receive);
    return OMPI_SUCCESS;
}

static void receive_construct(mtl_velo_receive *receive)
{
    receive->super.req_type = OMPI_REQUEST_PML;
    receive->super.req_start = mca_pml.pml_start;
    receive->super.req_free = receive_free;
    receive->super.req_cancel = receive_cancel;
    receive->op.mq.done = receive_done;
    receive->op.end = receive_end;
}

static int direct_irecv(void *buf, size_t count, ompi_datatype_t *datatype, int source, int tag,
                        ompi_communicator_t *comm, ompi_request_t **request)
{
    void *data;
    size_t cap_bytes;
    mtl_velo_receive *receive = NULL;
    if (find_piece(buf, count, datatype, &data, &cap_bytes))
        receive = (mtl_velo_receive *)opal_free_list_get(&receives);
    if (__builtin_expect(receive == NULL, 0))
        return cm.pml_irecv(buf, count, datatype, source, tag, comm, request);
    OMPI_REQUEST_INIT(&receive->super, false);
    receive->super.req_state = OMPI_REQUEST_ACTIVE;
    receive->super.req_mpi_object.comm = comm;
    receive->ended = false;
    receive->freed = false;
    OBJ_RETAIN(comm);
    int rc = start(data, cap_bytes, source, tag, comm, &receive->op.mq);
    if (__builtin_expect(rc != OMPI_SUCCESS, 0)) {
        give_back(receive);
        return rc;
    }
    *request = &receive->super;
    return OMPI_SUCCESS;
}

/* ---- waiting ----------------------------------------------------------------------------------
 */

/* Is this request ours and still under way? */
static inline bool is_pending(const ompi_request_t *request)
{
    return request->req_free == receive_free && !REQUEST_COMPLETE(request);
}

static int direct_wait(ompi_request_t **request, ompi_status_public_t *status)
{
    if (is_pending(*request))
        poll_for(&((mtl_velo_receive *)*request)->op.mq);
    return waits.req_wait(request, status);
}

/* Once all have ended Open MPI need not note in each request who waits for it. The last one comes
 * first: until its message is there, those of the others are taken in a stream. */
static int direct_wait_all(size_t count, ompi_request_t **requests, ompi_status_public_t *statuses)
{
    for (size_t i = count; i > 0; i--) {
        if (!is_pending(requests[i - 1]))
            continue;
        poll_for(&((mtl_velo_receive *)requests[i - 1])->op.mq);
        if (is_pending(requests[i - 1]))
            break;
    }
    return waits.req_wait_all(count, requests, statuses);
}

/* ---- the tables -------------------------------------------------------------------------------
 */

int mtl_velo_direct_install(void)
{
    if (is_installed ||
        strcmp(mca_pml_base_selected_component.pmlm_version.mca_component_name, "cm") != 0)
        return OMPI_SUCCESS;
    OBJ_CONSTRUCT(&receives, opal_free_list_t);
    int rc = opal_free_list_init(&receives, sizeof(mtl_velo_receive), opal_cache_line_size,
                                 OBJ_CLASS(mtl_velo_receive), 0, 0, RECEIVES_FIRST, -1,
                                 RECEIVES_MORE, NULL, 0, NULL, NULL, NULL);
    if (rc != OMPI_SUCCESS) {
        OBJ_DESTRUCT(&receives);
        return rc;
    }
    cm = mca_pml;
    mca_pml.pml_send = direct_send;
    mca_pml.pml_isend = direct_isend;
    mca_pml.pml_recv = direct_recv;
    mca_pml.pml_irecv = direct_irecv;
    waits = ompi_request_functions;
    ompi_request_functions.req_wait = direct_wait;
    ompi_request_functions.req_wait_all = direct_wait_all;
    is_installed = true;
    return OMPI_SUCCESS;
}

void mtl_velo_direct_remove(void)
{
    if (!is_installed)
        return;
    mca_pml = cm;
    ompi_request_functions = waits;
    OBJ_DESTRUCT(&receives);
    is_installed = false;
}
