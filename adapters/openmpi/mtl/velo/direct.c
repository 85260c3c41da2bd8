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
    /* By MPI_Request_free() before its end: it is given back when it ends. Changes under the lock.
     */
    bool freed;
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
static inline __attribute__((always_inline)) bool
try_send(const void *buf, size_t count, const ompi_datatype_t *datatype, int rank, int tag,
         mca_pml_base_send_mode_t mode, ompi_communicator_t *comm)
{
    void *data;
    size_t len_bytes;
    const struct mtl_velo_endpoint *endpoint = mtl_velo_known(comm, rank);
    if (__builtin_expect((mode != MCA_PML_BASE_SEND_STANDARD && mode != MCA_PML_BASE_SEND_READY) ||
                             endpoint == NULL || endpoint->peer == NULL ||
                             !find_piece(buf, count, datatype, &data, &len_bytes),
                         0))
        return false; /* cm connects to the rank, too. */
    uint64_t match = mtl_velo_match(comm, comm->c_my_rank, tag);
    if (__builtin_expect(!opal_using_threads(), 1))
        return velo_mq_try_send(endpoint->peer, data, len_bytes, match) == VELO_OK;
    mtl_velo_lock();
    int status = velo_mq_try_send(endpoint->peer, data, len_bytes, match);
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

/* If the request was started, its errors are reported with it. `alone`: there are no threads. */
static inline __attribute__((always_inline)) int start(bool alone, void *data, size_t cap_bytes,
                                                       velo_id_t from, int source, int tag,
                                                       ompi_communicator_t *comm,
                                                       struct velo_mq_request *request)
{
    if (!alone)
        mtl_velo_lock();
    int status = velo_mq_irecv(mtl_velo.mq, from, mtl_velo_wanted(comm, source, tag),
                               mtl_velo_ignore(source, tag), data, cap_bytes, request);
    if (!alone)
        mtl_velo_unlock();
    return status;
}

/* Poll for a receive's message, where no other rank wants the processor. Not with threads, which
 * would be kept from the queues meanwhile. In virtual time a poll of ours would cost other than
 * Open MPI's. */
static inline void poll_for(struct velo_mq_request *request)
{
    if (velo_ompi_idle_is_crowd(&mtl_velo.idle) || mca_mtl_velo_component.params.simulated)
        return;
    (void)velo_mq_poll(mtl_velo.mq, request);
}

/* Wait for a receive whose request is on the stack. Without threads only. */
static inline void await_receive(struct velo_mq_request *receive)
{
    while (receive->status == VELO_AGAIN) {
        poll_for(receive);
        if (receive->status != VELO_AGAIN)
            break;
        opal_progress();
    }
}

static int direct_recv(void *buf, size_t count, ompi_datatype_t *datatype, int source, int tag,
                       ompi_communicator_t *comm, ompi_status_public_t *status)
{
    void *data;
    size_t cap_bytes;
    if (__builtin_expect(opal_using_threads(), 0) ||
        !find_piece(buf, count, datatype, &data, &cap_bytes))
        return cm.pml_recv(buf, count, datatype, source, tag, comm, status);
    velo_id_t from;
    if (__builtin_expect(!mtl_velo_source(comm, source, &from), 0))
        return OMPI_ERR_UNREACH;
    struct velo_mq_request receive;
    receive.done = NULL;
    int started = start(true, data, cap_bytes, from, source, tag, comm, &receive);
    if (__builtin_expect(started != VELO_OK, 0))
        return velo_ompi_error(started);
    await_receive(&receive);
    /* A message from the rank that was asked for needs no look at the rank. */
    if (receive.status == VELO_OK && status == MPI_STATUS_IGNORE && source != MPI_ANY_SOURCE)
        return MPI_SUCCESS;
    ompi_status_public_t result;
    mtl_velo_status(&result, comm, &receive);
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

/* Has its outcome been reported, or is it just being reported? Changes under the lock. */
static inline bool has_ended(const mtl_velo_receive *receive)
{
    return receive->op.mq.status != VELO_AGAIN;
}

/* It is freed before its end. Another thread that reports the outcome looks at nothing after that:
 * see report(). */
static __attribute__((noinline)) int free_early(mtl_velo_receive *receive)
{
    mtl_velo_lock();
    bool freed = !has_ended(receive);
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
static __attribute__((noinline)) void report(mtl_velo_receive *receive)
{
    bool freed = receive->freed;
    (void)ompi_request_complete(&receive->super, true);
    if (__builtin_expect(freed, 0)) {
        receive->freed = false;
        give_back(receive);
    }
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

/* Mostly nobody has asked to be told: the request is marked as complete, and that is all. */
static void receive_done(struct velo_mq_request *mq)
{
    struct mtl_velo_op *op = (struct mtl_velo_op *)mq;
    mtl_velo_receive *receive = receive_of(op);
    ompi_request_t *request = &receive->super;
    if (__builtin_expect(opal_using_threads(), 0)) {
        mtl_velo_done(mq);
        return;
    }
    mtl_velo_status(&request->req_status, request->req_mpi_object.comm, mq);
    if (__builtin_expect(request->req_complete_cb != NULL || receive->freed ||
                             request->req_complete != REQUEST_PENDING,
                         0))
        report(receive);
    else
        request->req_complete = REQUEST_COMPLETED;
}

static int receive_cancel(ompi_request_t *request, int flag)
{
    (void)flag;
    mtl_velo_receive *receive = (mtl_velo_receive *)request;
    mtl_velo_lock();
    bool cancelled = velo_mq_cancel(mtl_velo.mq, &receive->op.mq) == VELO_OK;
    mtl_velo_unlock();
    if (!cancelled)
        return OMPI_SUCCESS; /* It is too late: the receive ends normally. */
    mtl_velo_status_cancelled(&request->req_status);
    report(receive);
    return OMPI_SUCCESS;
}

/* These fields are the same for each use of a request. Open MPI clears the callback for its end
 * when it has called it. */
static void receive_construct(mtl_velo_receive *receive)
{
    OMPI_REQUEST_INIT(&receive->super, false);
    receive->super.req_type = OMPI_REQUEST_PML;
    receive->super.req_start = mca_pml.pml_start;
    receive->super.req_free = receive_free;
    receive->super.req_cancel = receive_cancel;
    receive->op.mq.done = receive_done;
    receive->op.end = receive_end;
    receive->freed = false;
}

static __attribute__((noinline)) int irecv_failed(ompi_request_t **request, int status)
{
    give_back((mtl_velo_receive *)*request);
    *request = MPI_REQUEST_NULL;
    return velo_ompi_error(status);
}

/* Start a receive from a port that is known. */
static inline __attribute__((always_inline)) int
irecv(bool alone, void *data, size_t cap_bytes, velo_id_t from, int source, int tag,
      ompi_communicator_t *comm, mtl_velo_receive *receive, ompi_request_t **request)
{
    receive->super.req_complete = REQUEST_PENDING;
    receive->super.req_state = OMPI_REQUEST_ACTIVE;
    receive->super.req_mpi_object.comm = comm;
    OBJ_RETAIN(comm);
    *request = &receive->super;
    int status = start(alone, data, cap_bytes, from, source, tag, comm, &receive->op.mq);
    return __builtin_expect(status == VELO_OK, 1) ? OMPI_SUCCESS : irecv_failed(request, status);
}

static __attribute__((noinline)) int irecv_slow(void *buf, size_t count, ompi_datatype_t *datatype,
                                                int source, int tag, ompi_communicator_t *comm,
                                                ompi_request_t **request)
{
    void *data;
    size_t cap_bytes;
    velo_id_t from;
    mtl_velo_receive *receive = NULL;
    if (!mtl_velo_source(comm, source, &from))
        return OMPI_ERR_UNREACH;
    if (find_piece(buf, count, datatype, &data, &cap_bytes))
        receive = (mtl_velo_receive *)opal_free_list_get(&receives);
    if (receive == NULL)
        return cm.pml_irecv(buf, count, datatype, source, tag, comm, request);
    return irecv(false, data, cap_bytes, from, source, tag, comm, receive, request);
}

/* The usual case saves no registers for the others, which are tail calls. */
static int direct_irecv(void *buf, size_t count, ompi_datatype_t *datatype, int source, int tag,
                        ompi_communicator_t *comm, ompi_request_t **request)
{
    void *data;
    size_t cap_bytes;
    const struct mtl_velo_endpoint *endpoint = mtl_velo_known(comm, source);
    if (__builtin_expect(opal_using_threads() || endpoint == NULL ||
                             !find_piece(buf, count, datatype, &data, &cap_bytes),
                         0))
        return irecv_slow(buf, count, datatype, source, tag, comm, request);
    mtl_velo_receive *receive = (mtl_velo_receive *)opal_lifo_pop_st(&receives.super);
    if (__builtin_expect(receive == NULL, 0))
        return irecv_slow(buf, count, datatype, source, tag, comm, request);
    return irecv(true, data, cap_bytes, endpoint->id, source, tag, comm, receive, request);
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
    if (!opal_using_threads() && is_pending(*request))
        poll_for(&((mtl_velo_receive *)*request)->op.mq);
    return waits.req_wait(request, status);
}

/* Give back the requests before the first that has not ended well, or is neither ours nor that of a
 * send that ended at once. Returns their number. Without threads only. */
static size_t finish_requests(size_t count, ompi_request_t **requests,
                              ompi_status_public_t *statuses)
{
    for (size_t i = 0; i < count; i++) {
        ompi_request_t *request = requests[i];
        if (request != &ompi_request_empty) {
            if (__builtin_expect(request->req_free != receive_free || !REQUEST_COMPLETE(request) ||
                                     request->req_status.MPI_ERROR != MPI_SUCCESS,
                                 0))
                return i;
            OBJ_RELEASE(request->req_mpi_object.comm);
            OMPI_REQUEST_FINI(request);
            (void)opal_lifo_push_st(&receives.super, (opal_list_item_t *)request);
        }
        if (statuses != MPI_STATUSES_IGNORE)
            OMPI_COPY_STATUS(&statuses[i], request->req_status, true);
        requests[i] = MPI_REQUEST_NULL;
    }
    return count;
}

/* Poll for the last request first: until its message is there, those of the others are taken in a
 * stream. Once all have ended Open MPI need not note in each request who waits for it. */
static int direct_wait_all(size_t count, ompi_request_t **requests, ompi_status_public_t *statuses)
{
    if (opal_using_threads())
        return waits.req_wait_all(count, requests, statuses);
    size_t last = count;
    size_t done = finish_requests(count, requests, statuses);
    for (; last > done; last--) {
        if (!is_pending(requests[last - 1]))
            continue;
        poll_for(&((mtl_velo_receive *)requests[last - 1])->op.mq);
        if (is_pending(requests[last - 1]))
            break;
        done += finish_requests(count - done, requests + done,
                                statuses != MPI_STATUSES_IGNORE ? statuses + done : statuses);
    }
    if (done == count)
        return OMPI_SUCCESS;
    return waits.req_wait_all(count - done, requests + done,
                              statuses != MPI_STATUSES_IGNORE ? statuses + done : statuses);
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
