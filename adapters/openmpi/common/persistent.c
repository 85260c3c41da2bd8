/* SPDX-License-Identifier: Apache-2.0 */
#include "common/persistent.h"

#include "ompi_config.h"

#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/request/request.h"

/* A persistent buffered send, and the buffered send of its last start. */
typedef struct {
    ompi_request_t super;
    ompi_request_t *sent; /* To be freed before the next start; NULL before the first. */
    const void *buf;
    size_t count;
    ompi_datatype_t *datatype;
    int rank, tag;
} velo_ompi_persistent;

OBJ_CLASS_INSTANCE(velo_ompi_persistent, ompi_request_t, NULL, NULL);

static mca_pml_base_module_isend_init_fn_t isend_init_before;

static void free_sent(velo_ompi_persistent *request)
{
    if (request->sent != NULL)
        (void)ompi_request_free(&request->sent);
    request->sent = NULL;
}

/* The data is in the buffer that the user has attached. */
static int buffered(ompi_request_t *sent)
{
    velo_ompi_persistent *request = (velo_ompi_persistent *)sent->req_complete_cb_data;
    request->super.req_status.MPI_ERROR = sent->req_status.MPI_ERROR;
    (void)ompi_request_complete(&request->super, true);
    return 0;
}

static int start(size_t count, ompi_request_t **requests)
{
    for (size_t i = 0; i < count; i++) {
        velo_ompi_persistent *request = (velo_ompi_persistent *)requests[i];
        free_sent(request);
        request->super.req_complete = REQUEST_PENDING;
        request->super.req_state = OMPI_REQUEST_ACTIVE;
        ompi_request_t *sent;
        int rc = mca_pml.pml_isend(request->buf, request->count, request->datatype, request->rank,
                                   request->tag, MCA_PML_BASE_SEND_BUFFERED,
                                   request->super.req_mpi_object.comm, &sent);
        if (rc != OMPI_SUCCESS) {
            request->super.req_complete = REQUEST_COMPLETED;
            request->super.req_state = OMPI_REQUEST_INACTIVE;
            return rc;
        }
        request->sent = sent;
        /* At once, unless the PML lacks room for what describes the message. */
        (void)ompi_request_set_callback(sent, buffered, request);
    }
    return OMPI_SUCCESS;
}

static int free_request(ompi_request_t **handle)
{
    velo_ompi_persistent *request = (velo_ompi_persistent *)*handle;
    *handle = MPI_REQUEST_NULL;
    ompi_request_wait_completion(&request->super);
    free_sent(request);
    OBJ_RELEASE(request->super.req_mpi_object.comm);
    if (!ompi_datatype_is_predefined(request->datatype))
        OBJ_RELEASE(request->datatype);
    OMPI_REQUEST_FINI(&request->super);
    OBJ_RELEASE(request);
    return OMPI_SUCCESS;
}

/* A send that is buffered goes on. */
static int cancel(ompi_request_t *request, int flag)
{
    (void)request;
    (void)flag;
    return OMPI_SUCCESS;
}

static int isend_init(const void *buf, size_t count, ompi_datatype_t *datatype, int rank, int tag,
                      mca_pml_base_send_mode_t mode, ompi_communicator_t *comm,
                      ompi_request_t **handle)
{
    if (mode != MCA_PML_BASE_SEND_BUFFERED)
        return isend_init_before(buf, count, datatype, rank, tag, mode, comm, handle);
    velo_ompi_persistent *request = OBJ_NEW(velo_ompi_persistent);
    if (request == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    OMPI_REQUEST_INIT(&request->super, true);
    request->super.req_type = OMPI_REQUEST_PML;
    request->super.req_complete = REQUEST_COMPLETED; /* Inactive. */
    request->super.req_complete_cb = NULL;
    request->super.req_status = ompi_status_empty;
    request->super.req_start = start;
    request->super.req_free = free_request;
    request->super.req_cancel = cancel;
    request->super.req_mpi_object.comm = comm;
    request->sent = NULL;
    request->buf = buf;
    request->count = count;
    request->datatype = datatype;
    request->rank = rank;
    request->tag = tag;
    OBJ_RETAIN(comm);
    if (!ompi_datatype_is_predefined(datatype))
        OBJ_RETAIN(datatype);
    *handle = &request->super;
    return OMPI_SUCCESS;
}

void velo_ompi_mend_persistent(void)
{
    if (isend_init_before != NULL)
        return;
    isend_init_before = mca_pml.pml_isend_init;
    mca_pml.pml_isend_init = isend_init;
}

void velo_ompi_leave_persistent(void)
{
    if (isend_init_before != NULL && mca_pml.pml_isend_init == isend_init)
        mca_pml.pml_isend_init = isend_init_before;
    isend_init_before = NULL;
}
