/* SPDX-License-Identifier: Apache-2.0 */
#include "mtl_velo.h"

#include "opal/runtime/opal_progress.h"

#include <stdlib.h>

/* The place for a message. */
struct place {
    void *buf; /* The user's memory, or a buffer from which mtl_velo_complete() unpacks it. */
    size_t cap_bytes;
    bool has_gaps; /* The request's convertor takes the pieces that come. */
};

static inline int prepare_request(struct mtl_velo_request *request, ompi_communicator_t *comm,
                                  opal_convertor_t *convertor, struct place *place)
{
    request->op.mq.done = mtl_velo_done;
    request->op.end = mtl_velo_request_end;
    request->comm = comm;
    request->convertor = convertor;
    request->packed = NULL;
    place->buf = NULL;
    place->has_gaps = false;
    opal_convertor_get_packed_size(convertor, &place->cap_bytes);
    if (place->cap_bytes == 0)
        return OMPI_SUCCESS;
    if (__builtin_expect(!opal_convertor_need_buffers(convertor), 1)) {
        opal_convertor_get_current_pointer(convertor, &place->buf);
        return OMPI_SUCCESS;
    }
    place->has_gaps = !mtl_velo.packs_whole;
    if (place->has_gaps)
        return OMPI_SUCCESS;
    request->packed = malloc(place->cap_bytes);
    place->buf = request->packed;
    return request->packed != NULL ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
}

/* The lock is held. */
static inline int start(struct mtl_velo_request *request, const struct place *place, velo_id_t from,
                        uint64_t wanted, uint64_t ignore)
{
    if (__builtin_expect(place->has_gaps, 0))
        return velo_mq_irecv_layout(mtl_velo.mq, from, wanted, ignore, &mtl_velo_layout,
                                    request->convertor, place->cap_bytes, &request->op.mq);
    return velo_mq_irecv(mtl_velo.mq, from, wanted, ignore, place->buf, place->cap_bytes,
                         &request->op.mq);
}

int mtl_velo_irecv(mca_mtl_base_module_t *mtl, ompi_communicator_t *comm, int source, int tag,
                   opal_convertor_t *convertor, mca_mtl_request_t *mtl_request)
{
    (void)mtl;
    struct mtl_velo_request *request = (struct mtl_velo_request *)mtl_request;
    struct place place;
    velo_id_t from;
    if (__builtin_expect(!mtl_velo_source(comm, source, &from), 0))
        return OMPI_ERR_UNREACH;
    int rc = prepare_request(request, comm, convertor, &place);
    if (__builtin_expect(rc != OMPI_SUCCESS, 0))
        return rc;
    mtl_velo_lock();
    int status = start(request, &place, from, mtl_velo_wanted(comm, source, tag),
                       mtl_velo_ignore(source, tag));
    mtl_velo_unlock();
    if (__builtin_expect(status == VELO_OK, 1))
        return OMPI_SUCCESS;
    free(request->packed);
    return velo_ompi_error(status);
}

static int probe_outcome(int status)
{
    if (status == VELO_OK || status == VELO_AGAIN)
        return OMPI_SUCCESS;
    velo_ompi_complain("probe for a message", status);
    return velo_ompi_error(status);
}

int mtl_velo_iprobe(mca_mtl_base_module_t *mtl, ompi_communicator_t *comm, int source, int tag,
                    int *found, ompi_status_public_t *status)
{
    (void)mtl;
    struct velo_mq_info info;
    int rc = VELO_AGAIN;
    /* Context and rank name the sender as well as a port id does. */
    for (int look = 0; look < 2 && rc == VELO_AGAIN; look++) {
        if (look > 0)
            opal_progress(); /* A program may do nothing but probe. */
        mtl_velo_lock();
        rc = velo_mq_try_probe(mtl_velo.mq, VELO_MQ_ANY_SOURCE, mtl_velo_wanted(comm, source, tag),
                               mtl_velo_ignore(source, tag), &info);
        mtl_velo_unlock();
    }
    *found = rc == VELO_OK;
    if (rc == VELO_OK && status != MPI_STATUS_IGNORE)
        return mtl_velo_status_found(status, comm, info.match, info.len_bytes);
    return probe_outcome(rc);
}

int mtl_velo_improbe(mca_mtl_base_module_t *mtl, ompi_communicator_t *comm, int source, int tag,
                     int *found, ompi_message_t **message, ompi_status_public_t *status)
{
    (void)mtl;
    struct velo_mq_info info;
    struct velo_mq_message *taken = NULL;
    ompi_message_t *own = ompi_message_alloc();
    if (own == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    int rc = VELO_AGAIN;
    for (int look = 0; look < 2 && rc == VELO_AGAIN; look++) {
        if (look > 0)
            opal_progress();
        mtl_velo_lock();
        rc = velo_mq_try_mprobe(mtl_velo.mq, VELO_MQ_ANY_SOURCE, mtl_velo_wanted(comm, source, tag),
                                mtl_velo_ignore(source, tag), &taken, &info);
        mtl_velo_unlock();
    }
    *found = rc == VELO_OK;
    if (rc != VELO_OK) {
        ompi_message_return(own);
        *message = MPI_MESSAGE_NULL;
        return probe_outcome(rc);
    }
    own->comm = comm;
    own->req_ptr = taken;
    own->peer = VELO_MQ_RANK(info.match);
    own->count = info.len_bytes;
    *message = own;
    return status != MPI_STATUS_IGNORE
               ? mtl_velo_status_found(status, comm, info.match, info.len_bytes)
               : OMPI_SUCCESS;
}

int mtl_velo_imrecv(mca_mtl_base_module_t *mtl, opal_convertor_t *convertor,
                    ompi_message_t **message, mca_mtl_request_t *mtl_request)
{
    (void)mtl;
    struct mtl_velo_request *request = (struct mtl_velo_request *)mtl_request;
    struct place place;
    int rc = prepare_request(request, (*message)->comm, convertor, &place);
    if (rc != OMPI_SUCCESS)
        return rc;
    struct velo_mq_message *taken = (struct velo_mq_message *)(*message)->req_ptr;
    ompi_message_return(*message);
    *message = MPI_MESSAGE_NULL;
    mtl_velo_lock();
    int status = place.has_gaps ? velo_mq_mrecv_layout(mtl_velo.mq, taken, &mtl_velo_layout,
                                                       convertor, place.cap_bytes, &request->op.mq)
                                : velo_mq_mrecv(mtl_velo.mq, taken, place.buf, place.cap_bytes,
                                                &request->op.mq);
    mtl_velo_unlock();
    if (status == VELO_OK)
        return OMPI_SUCCESS;
    free(request->packed);
    return velo_ompi_error(status);
}
