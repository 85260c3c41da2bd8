/* SPDX-License-Identifier: Apache-2.0 */
#include "common/waits.h"

#include "ompi_config.h"

#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/message/message.h"
#include "ompi/request/request.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/runtime/opal_progress.h"

#include <stdbool.h>

/* Then the message takes so long that to be woken for it costs little, and others may have the
 * core. */
#define POLLS_MAX 1000

static ompi_request_fns_t waits;
static mca_pml_base_module_t pml;
static bool is_mended;

/* What a thread waits for. */
struct wanted {
    size_t count;
    ompi_request_t **requests;
    size_t ended; /* All before this one have. */
};

static bool have_all_ended(struct wanted *wanted)
{
    while (wanted->ended < wanted->count && REQUEST_COMPLETE(wanted->requests[wanted->ended]))
        wanted->ended++;
    return wanted->ended == wanted->count;
}

/* Also if none is under way: then there is nothing to wait for. */
static bool has_any_ended(struct wanted *wanted)
{
    bool is_any_active = false;
    for (size_t i = 0; i < wanted->count; i++) {
        const ompi_request_t *request = wanted->requests[i];
        if (request->req_state == OMPI_REQUEST_INACTIVE)
            continue;
        if (REQUEST_COMPLETE(request))
            return true;
        is_any_active = true;
    }
    return !is_any_active;
}

/* Whatever it finds, Open MPI's own wait comes next. That one also sees to it that what the request
 * has brought is read after its end. */
static void poll_for(bool (*has_ended)(struct wanted *), size_t count, ompi_request_t **requests)
{
    struct wanted wanted = {.count = count, .requests = requests};
    for (int polls = 0; polls < POLLS_MAX && !has_ended(&wanted); polls++)
        opal_progress();
}

static int wait(ompi_request_t **request, ompi_status_public_t *status)
{
    poll_for(have_all_ended, 1, request);
    return waits.req_wait(request, status);
}

static int wait_all(size_t count, ompi_request_t **requests, ompi_status_public_t *statuses)
{
    int result = OMPI_SUCCESS;
    poll_for(have_all_ended, count, requests);
    /* One after the other: Open MPI's own wait for all never ends if one has failed before it. */
    for (size_t i = 0; i < count; i++) {
        ompi_status_public_t *status =
            statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
        int rc = waits.req_wait(&requests[i], status);
        if (status != MPI_STATUS_IGNORE)
            status->MPI_ERROR = rc;
        if (rc != OMPI_SUCCESS)
            result = MPI_ERR_IN_STATUS;
    }
    return result;
}

static int wait_any(size_t count, ompi_request_t **requests, int *index,
                    ompi_status_public_t *status)
{
    poll_for(has_any_ended, count, requests);
    return waits.req_wait_any(count, requests, index, status);
}

static int wait_some(size_t count, ompi_request_t **requests, int *outcount, int *indices,
                     ompi_status_public_t *statuses)
{
    poll_for(has_any_ended, count, requests);
    return waits.req_wait_some(count, requests, outcount, indices, statuses);
}

/* PMLs wait for what a blocking call has started without the table of waits. */
static int complete(int rc, ompi_request_t *request, ompi_status_public_t *status)
{
    if (rc != OMPI_SUCCESS)
        return rc;
    rc = ompi_request_wait(&request, status);
    if (rc != OMPI_SUCCESS && request != MPI_REQUEST_NULL) /* Open MPI keeps what has failed. */
        (void)ompi_request_free(&request);
    return rc;
}

static int blocking_send(const void *buf, size_t count, ompi_datatype_t *datatype, int rank,
                         int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t *comm)
{
    ompi_request_t *request = NULL;
    int rc = mca_pml.pml_isend(buf, count, datatype, rank, tag, mode, comm, &request);
    return complete(rc, request, MPI_STATUS_IGNORE);
}

static int blocking_recv(void *buf, size_t count, ompi_datatype_t *datatype, int source, int tag,
                         ompi_communicator_t *comm, ompi_status_public_t *status)
{
    ompi_request_t *request = NULL;
    int rc = mca_pml.pml_irecv(buf, count, datatype, source, tag, comm, &request);
    return complete(rc, request, status);
}

static int blocking_mrecv(void *buf, size_t count, ompi_datatype_t *datatype,
                          ompi_message_t **message, ompi_status_public_t *status)
{
    ompi_request_t *request = NULL;
    int rc = mca_pml.pml_imrecv(buf, count, datatype, message, &request);
    return complete(rc, request, status);
}

static int blocking_probe(int source, int tag, ompi_communicator_t *comm,
                          ompi_status_public_t *status)
{
    int found = 0;
    for (int polls = 0; polls < POLLS_MAX; polls++) {
        int rc = mca_pml.pml_iprobe(source, tag, comm, &found, status);
        if (rc != OMPI_SUCCESS || found)
            return rc;
    }
    return pml.pml_probe(source, tag, comm, status);
}

static int blocking_mprobe(int source, int tag, ompi_communicator_t *comm, ompi_message_t **message,
                           ompi_status_public_t *status)
{
    int found = 0;
    for (int polls = 0; polls < POLLS_MAX; polls++) {
        int rc = mca_pml.pml_improbe(source, tag, comm, &found, message, status);
        if (rc != OMPI_SUCCESS || found)
            return rc;
    }
    return pml.pml_mprobe(source, tag, comm, message, status);
}

void velo_ompi_mend_waits(void)
{
    if (is_mended || !ompi_mpi_thread_multiple)
        return;
    waits = ompi_request_functions;
    ompi_request_functions.req_wait = wait;
    ompi_request_functions.req_wait_all = wait_all;
    ompi_request_functions.req_wait_any = wait_any;
    ompi_request_functions.req_wait_some = wait_some;
    pml = mca_pml;
    mca_pml.pml_send = blocking_send;
    mca_pml.pml_recv = blocking_recv;
    mca_pml.pml_mrecv = blocking_mrecv;
    mca_pml.pml_probe = blocking_probe;
    mca_pml.pml_mprobe = blocking_mprobe;
    is_mended = true;
}

void velo_ompi_leave_waits(void)
{
    if (is_mended && ompi_request_functions.req_wait == wait)
        ompi_request_functions = waits;
    if (is_mended && mca_pml.pml_send == blocking_send) {
        mca_pml.pml_send = pml.pml_send;
        mca_pml.pml_recv = pml.pml_recv;
        mca_pml.pml_mrecv = pml.pml_mrecv;
        mca_pml.pml_probe = pml.pml_probe;
        mca_pml.pml_mprobe = pml.pml_mprobe;
    }
    is_mended = false;
}
