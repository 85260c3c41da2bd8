/* SPDX-License-Identifier: Apache-2.0 */
#include "mtl_velo.h"

#include "opal/datatype/opal_datatype.h"
#include "opal/runtime/opal_progress.h"

#include <stdlib.h>
#include <string.h>

/* A message: the user's memory in one piece, a packed copy to be freed, or data with gaps. */
struct piece {
    const void *data;
    size_t len_bytes;
    void *packed;
    opal_convertor_t *gaps; /* NULL: it is in one piece. */
};

static int pack_piece(opal_convertor_t *convertor, struct piece *piece)
{
    opal_convertor_get_packed_size(convertor, &piece->len_bytes);
    piece->data = NULL;
    if (piece->len_bytes == 0)
        return OMPI_SUCCESS;
    struct iovec iov = {.iov_base = NULL, .iov_len = piece->len_bytes};
    uint32_t iov_count = 1;
    if (opal_convertor_need_buffers(convertor) && !mtl_velo.packs_whole) {
        piece->gaps = convertor;
        return OMPI_SUCCESS;
    }
    if (opal_convertor_need_buffers(convertor)) {
        piece->packed = malloc(piece->len_bytes);
        if (piece->packed == NULL)
            return OMPI_ERR_OUT_OF_RESOURCE;
        iov.iov_base = piece->packed;
    }
    (void)opal_convertor_pack(convertor, &iov, &iov_count, &piece->len_bytes);
    piece->data = iov.iov_base;
    return OMPI_SUCCESS;
}

static inline int take_piece(opal_convertor_t *convertor, struct piece *piece)
{
    piece->packed = NULL;
    piece->gaps = NULL;
    /* For contiguous data the PML fills in only the members that are read here, with pBaseBuf
     * already at the first byte. Persistent and buffered sends come with a convertor made for
     * sending, in which pBaseBuf is the user's address: MPI_BOTTOM, or an address before the data.
     */
    if (__builtin_expect(convertor->pDesc != NULL &&
                             (convertor->flags & (CONVERTOR_COMPLETED | CONVERTOR_SEND)) == 0 &&
                             opal_datatype_is_contiguous_memory_layout(
                                 convertor->pDesc, (int32_t)convertor->count) != 0,
                         1)) {
        piece->data = convertor->pBaseBuf;
        piece->len_bytes = convertor->local_size;
        return OMPI_SUCCESS;
    }
    return pack_piece(convertor, piece);
}

/* Wait for a send that has no MPI request. */
static int finish_send(struct velo_mq_request *request)
{
    for (;;) {
        OPAL_THREAD_LOCK(&mtl_velo.lock);
        int status = request->status;
        OPAL_THREAD_UNLOCK(&mtl_velo.lock);
        if (status != VELO_AGAIN)
            return status;
        opal_progress();
    }
}

/* Start a send. The lock is held. */
static int start(struct velo_mq_peer *peer, const struct piece *piece, uint64_t match,
                 mca_pml_base_send_mode_t mode, struct velo_mq_request *request)
{
    uint32_t flags = mode == MCA_PML_BASE_SEND_SYNCHRONOUS ? VELO_MQ_SYNC : 0;
    if (piece->gaps != NULL)
        return velo_mq_isend_layout(peer, &mtl_velo_layout, piece->gaps, piece->len_bytes, match,
                                    flags, request);
    return velo_mq_isend(peer, piece->data, piece->len_bytes, match, flags, request);
}

static int send_slowly(struct velo_mq_peer *peer, const struct piece *piece, uint64_t match,
                       mca_pml_base_send_mode_t mode)
{
    struct velo_mq_request request;
    memset(&request, 0, sizeof request);
    mtl_velo_lock();
    int status = start(peer, piece, match, mode, &request);
    mtl_velo_unlock();
    if (status == VELO_OK)
        status = finish_send(&request);
    if (status != VELO_OK)
        velo_ompi_complain("send a message", status);
    return status;
}

int mtl_velo_send(mca_mtl_base_module_t *mtl, ompi_communicator_t *comm, int rank, int tag,
                  opal_convertor_t *convertor, mca_pml_base_send_mode_t mode)
{
    (void)mtl;
    struct velo_mq_peer *peer = mtl_velo_peer(comm, rank);
    if (__builtin_expect(peer == NULL, 0))
        return OMPI_ERR_UNREACH;
    struct piece piece;
    int rc = take_piece(convertor, &piece);
    if (__builtin_expect(rc != OMPI_SUCCESS, 0))
        return rc;
    uint64_t match = mtl_velo_match(comm, comm->c_my_rank, tag);
    int status = VELO_AGAIN;
    if (mode != MCA_PML_BASE_SEND_SYNCHRONOUS && piece.gaps == NULL) {
        mtl_velo_lock();
        status = velo_mq_try_send(peer, piece.data, piece.len_bytes, match);
        mtl_velo_unlock();
    }
    if (__builtin_expect(status != VELO_OK, 0))
        status = send_slowly(peer, &piece, match, mode);
    if (piece.packed != NULL)
        free(piece.packed);
    return __builtin_expect(status == VELO_OK, 1) ? OMPI_SUCCESS : velo_ompi_error(status);
}

int mtl_velo_isend(mca_mtl_base_module_t *mtl, ompi_communicator_t *comm, int rank, int tag,
                   opal_convertor_t *convertor, mca_pml_base_send_mode_t mode, bool blocking,
                   mca_mtl_request_t *mtl_request)
{
    (void)mtl;
    (void)blocking;
    struct mtl_velo_request *request = (struct mtl_velo_request *)mtl_request;
    struct velo_mq_peer *peer = mtl_velo_peer(comm, rank);
    if (__builtin_expect(peer == NULL, 0))
        return OMPI_ERR_UNREACH;
    struct piece piece;
    int rc = take_piece(convertor, &piece);
    if (__builtin_expect(rc != OMPI_SUCCESS, 0))
        return rc;
    uint64_t match = mtl_velo_match(comm, comm->c_my_rank, tag);
    int status = VELO_AGAIN;
    request->comm = NULL;
    request->packed = piece.packed;
    if (mode != MCA_PML_BASE_SEND_SYNCHRONOUS && piece.gaps == NULL) {
        mtl_velo_lock();
        status = velo_mq_try_send(peer, piece.data, piece.len_bytes, match);
        mtl_velo_unlock();
        if (__builtin_expect(status == VELO_OK, 1)) {
            request->op.mq.status = VELO_OK;
            mtl_velo_complete(request);
            return OMPI_SUCCESS;
        }
    }
    request->op.mq.done = mtl_velo_done;
    request->op.end = mtl_velo_request_end;
    mtl_velo_lock();
    status = start(peer, &piece, match, mode, &request->op.mq);
    mtl_velo_unlock();
    if (__builtin_expect(status == VELO_OK, 1))
        return OMPI_SUCCESS;
    free(piece.packed);
    return velo_ompi_error(status);
}
