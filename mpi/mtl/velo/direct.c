/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The short way: sends and receives of data in one piece go from MPI's call to the matched queues.
 *
 * PML cm makes a request and a convertor even for a blocking call, which costs as much as all of
 * velo's work. Once cm is selected, four entries of Open MPI's table are replaced, as pml
 * monitoring does; a call that they cannot do at once they pass on to cm. Both ways lead to the
 * same queues, so messages keep their order.
 *
 * This is not used under MPI_THREAD_MULTIPLE: nothing here is locked.
 */
#include "mtl_velo.h"

#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/pml/base/base.h"
#include "ompi/mca/pml/pml.h"
#include "opal/class/opal_free_list.h"
#include "opal/runtime/opal_progress.h"

#include <string.h>

#define RECEIVES_FIRST 64
#define RECEIVES_MORE 256

/* MPI's request of a receive, with ours behind it. */
typedef struct {
    ompi_request_t super;
    struct velo_mq_request mq;
    bool freed; /* By MPI_Request_free() before its end: it is given back when it ends. */
} mtl_velo_receive;

static mca_pml_base_module_t cm;
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
    return __builtin_expect(peer != NULL, 1) &&
           velo_mq_try_send(peer, data, len_bytes, mtl_velo_match(comm, comm->c_my_rank, tag)) ==
               VELO_OK;
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
static inline int start(void *data, size_t cap_bytes, int source, int tag,
                        ompi_communicator_t *comm, struct velo_mq_request *request)
{
    velo_id_t from;
    if (__builtin_expect(!mtl_velo_source(comm, source, &from), 0))
        return OMPI_ERR_UNREACH;
    int status = velo_mq_irecv(mtl_velo.mq, from, mtl_velo_wanted(comm, source, tag),
                               mtl_velo_ignore(source, tag), data, cap_bytes, request);
    return __builtin_expect(status == VELO_OK, 1) ? OMPI_SUCCESS : velo_ompi_error(status);
}

static int direct_recv(void *buf, size_t count, ompi_datatype_t *datatype, int source, int tag,
                       ompi_communicator_t *comm, ompi_status_public_t *status)
{
    void *data;
    size_t cap_bytes;
    if (!find_piece(buf, count, datatype, &data, &cap_bytes))
        return cm.pml_recv(buf, count, datatype, source, tag, comm, status);
    struct velo_mq_request request;
    request.done = NULL;
    int rc = start(data, cap_bytes, source, tag, comm, &request);
    if (__builtin_expect(rc != OMPI_SUCCESS, 0))
        return rc;
    while (*(volatile int *)&request.status == VELO_AGAIN)
        opal_progress();
    ompi_status_public_t result;
    mtl_velo_status(&result, comm, &request);
    if (status != MPI_STATUS_IGNORE)
        OMPI_COPY_STATUS(status, result, false);
    return result.MPI_ERROR;
}

/* ---- receives with a request ------------------------------------------------------------------
 */

static void give_back(mtl_velo_receive *receive)
{
    OBJ_RELEASE(receive->super.req_mpi_object.comm);
    OMPI_REQUEST_FINI(&receive->super);
    opal_free_list_return_st(&receives, &receive->super.super);
}

static int receive_free(ompi_request_t **request)
{
    mtl_velo_receive *receive = (mtl_velo_receive *)*request;
    *request = MPI_REQUEST_NULL;
    if (REQUEST_COMPLETE(&receive->super))
        give_back(receive);
    else
        receive->freed = true;
    return OMPI_SUCCESS;
}

static void end(mtl_velo_receive *receive)
{
    (void)ompi_request_complete(&receive->super, true);
    if (__builtin_expect(receive->freed, 0))
        give_back(receive);
}

static void receive_done(struct velo_mq_request *mq)
{
    mtl_velo_receive *receive = (mtl_velo_receive *)mq->user;
    mtl_velo_status(&receive->super.req_status, receive->super.req_mpi_object.comm, mq);
    end(receive);
}

static int receive_cancel(ompi_request_t *request, int flag)
{
    (void)flag;
    mtl_velo_receive *receive = (mtl_velo_receive *)request;
    /* If it is too late, the receive ends normally. */
    if (REQUEST_COMPLETE(request) || velo_mq_cancel(mtl_velo.mq, &receive->mq) != VELO_OK)
        return OMPI_SUCCESS;
    mtl_velo_status_cancelled(&request->req_status);
    end(receive);
    return OMPI_SUCCESS;
}

static void receive_construct(mtl_velo_receive *receive)
{
    receive->super.req_type = OMPI_REQUEST_PML;
    receive->super.req_start = mca_pml.pml_start;
    receive->super.req_free = receive_free;
    receive->super.req_cancel = receive_cancel;
    receive->mq.done = receive_done;
    receive->mq.user = receive;
}

static int direct_irecv(void *buf, size_t count, ompi_datatype_t *datatype, int source, int tag,
                        ompi_communicator_t *comm, ompi_request_t **request)
{
    void *data;
    size_t cap_bytes;
    mtl_velo_receive *receive = NULL;
    if (find_piece(buf, count, datatype, &data, &cap_bytes))
        receive = (mtl_velo_receive *)opal_free_list_get_st(&receives);
    if (__builtin_expect(receive == NULL, 0))
        return cm.pml_irecv(buf, count, datatype, source, tag, comm, request);
    OMPI_REQUEST_INIT(&receive->super, false);
    receive->super.req_state = OMPI_REQUEST_ACTIVE;
    receive->super.req_mpi_object.comm = comm;
    receive->freed = false;
    OBJ_RETAIN(comm);
    int rc = start(data, cap_bytes, source, tag, comm, &receive->mq);
    if (__builtin_expect(rc != OMPI_SUCCESS, 0)) {
        give_back(receive);
        return rc;
    }
    *request = &receive->super;
    return OMPI_SUCCESS;
}

/* ---- the table --------------------------------------------------------------------------------
 */

int mtl_velo_direct_install(void)
{
    if (is_installed || opal_using_threads() ||
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
    is_installed = true;
    return OMPI_SUCCESS;
}

void mtl_velo_direct_remove(void)
{
    if (!is_installed)
        return;
    mca_pml = cm;
    OBJ_DESTRUCT(&receives);
    is_installed = false;
}
