/* SPDX-License-Identifier: Apache-2.0 */
/* Completion, progress and cancellation of requests. */
#include "mtl_velo.h"

#include "opal/util/output.h"

#include <sched.h>
#include <stddef.h>
#include <stdlib.h>

/* A thread that polls keeps the lock for a microsecond or so: sleeping for it would take longer,
 * unless that thread has lost its core. */
#define LOCK_TRIES 100

void mtl_velo_status_cancelled(ompi_status_public_t *status)
{
    status->MPI_SOURCE = MPI_ANY_SOURCE;
    status->MPI_TAG = MPI_ANY_TAG;
    status->MPI_ERROR = MPI_SUCCESS;
    status->_ucount = 0;
    status->_cancelled = 1;
}

int mtl_velo_failed(int status)
{
    if (status == VELO_ERR_TOO_BIG)
        return MPI_ERR_TRUNCATE;
    velo_ompi_complain("go on with a message", status);
    return status == VELO_ERR_NO_MEMORY ? MPI_ERR_NO_MEM : MPI_ERR_OTHER;
}

static void unpack_payload(struct mtl_velo_request *request)
{
    struct iovec iov = {.iov_base = request->packed, .iov_len = request->op.mq.len_bytes};
    uint32_t iov_count = 1;
    size_t max_bytes = iov.iov_len;
    if (max_bytes > 0)
        (void)opal_convertor_unpack(request->convertor, &iov, &iov_count, &max_bytes);
}

void mtl_velo_complete(struct mtl_velo_request *request)
{
    ompi_status_public_t *status = &request->super.ompi_req->req_status;
    if (request->comm != NULL) {
        mtl_velo_status(status, request->comm, &request->op.mq);
        if (request->packed != NULL)
            unpack_payload(request);
    } else {
        status->MPI_ERROR = MPI_SUCCESS;
        if (__builtin_expect(request->op.mq.status != VELO_OK, 0))
            status->MPI_ERROR = mtl_velo_failed(request->op.mq.status);
    }
    if (request->packed != NULL)
        free(request->packed);
    request->packed = NULL;
    request->super.completion_callback(&request->super);
}

void mtl_velo_request_end(struct mtl_velo_op *op)
{
    mtl_velo_complete(
        (struct mtl_velo_request *)((char *)op - offsetof(struct mtl_velo_request, op)));
}

/* ---- the lock ------------------------------------------------------------------------------- */

void mtl_velo_lock_wanted(void)
{
    (void)opal_atomic_add_fetch_32(&mtl_velo.lock_wanted, 1);
    int tries = 0;
    while (tries < LOCK_TRIES && opal_mutex_trylock(&mtl_velo.lock) != 0) {
        velo_ompi_pause();
        tries++;
    }
    if (tries == LOCK_TRIES) /* Not a yield: whoever gets the core then may keep it for long. */
        opal_mutex_lock(&mtl_velo.lock);
    (void)opal_atomic_add_fetch_32(&mtl_velo.lock_wanted, -1);
}

void mtl_velo_done(struct velo_mq_request *mq)
{
    struct mtl_velo_op *op = (struct mtl_velo_op *)mq;
    if (!opal_using_threads()) {
        op->end(op);
        return;
    }
    op->next = NULL;
    *mtl_velo.done_end = op;
    mtl_velo.done_end = &op->next;
}

void mtl_velo_end_done(void)
{
    struct mtl_velo_op *op = mtl_velo.done;
    mtl_velo.done = NULL;
    mtl_velo.done_end = &mtl_velo.done;
    opal_mutex_unlock(&mtl_velo.lock);
    while (op != NULL) {
        struct mtl_velo_op *next = op->next; /* Once it has ended it is used again. */
        op->end(op);
        op = next;
    }
}

int mtl_velo_progress(void)
{
    if (!mtl_velo_lock_to_poll()) { /* Another thread does it, or comes first. */
        velo_ompi_idle_stand_back();
        return 0;
    }
    velo_ompi_idle_note_thread(&mtl_velo.idle);
    int events = velo_mq_progress(mtl_velo.mq);
    enum velo_ompi_rest rest = velo_ompi_idle_rest(&mtl_velo.idle, events);
    bool threads = opal_using_threads();
    /* A sleep in the port would keep the other threads from it. */
    if (__builtin_expect(rest == VELO_OMPI_SLEEPS, 0))
        (void)velo_mq_idle(mtl_velo.mq, threads ? 0 : mtl_velo.idle.sleep_ns);
    if (threads)
        mtl_velo_end_done();
    if (__builtin_expect(rest == VELO_OMPI_YIELDS, 0))
        (void)sched_yield();
    return events;
}

int mtl_velo_cancel(mca_mtl_base_module_t *mtl, mca_mtl_request_t *mtl_request, int flag)
{
    (void)mtl;
    (void)flag;
    struct mtl_velo_request *request = (struct mtl_velo_request *)mtl_request;
    if (request->comm == NULL)
        return OMPI_SUCCESS; /* A send: MPI lets it go on, and so do we. */
    mtl_velo_lock();
    int status = velo_mq_cancel(mtl_velo.mq, &request->op.mq);
    mtl_velo_unlock();
    if (status != VELO_OK)
        return OMPI_SUCCESS; /* It is too late: the receive ends normally. */
    free(request->packed);
    request->packed = NULL;
    mtl_velo_status_cancelled(&mtl_request->ompi_req->req_status);
    mtl_request->completion_callback(mtl_request);
    return OMPI_SUCCESS;
}
