/* SPDX-License-Identifier: Apache-2.0 */
/* Data that are not in one piece. */
#include "coll_velo.h"

#include <stdlib.h>
#include <sys/uio.h>

#include "opal/datatype/opal_convertor.h"

#define SCRATCH_KEPT_BYTES (64u << 10)

typedef int32_t mover(opal_convertor_t *convertor, struct iovec *pieces, uint32_t *piece_count,
                      size_t *len_bytes);

/* Open MPI's convertor may stop before the end of a piece. */
static int move_piece(opal_convertor_t *convertor, mover *step, uint8_t *at, size_t len_bytes)
{
    while (len_bytes > 0) {
        struct iovec piece = {.iov_base = at, .iov_len = len_bytes};
        uint32_t pieces = 1;
        size_t moved = len_bytes;
        if (step(convertor, &piece, &pieces, &moved) < 0 || moved == 0 || moved > len_bytes)
            return OMPI_ERROR;
        at += moved;
        len_bytes -= moved;
    }
    return OMPI_SUCCESS;
}

int coll_velo_pack_slow(const void *buf, size_t count, const ompi_datatype_t *type, uint8_t *to,
                        size_t len_bytes)
{
    opal_convertor_t convertor;
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    int rc = opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &type->super, count,
                                                      buf, 0, &convertor);
    if (rc == OPAL_SUCCESS)
        rc = move_piece(&convertor, opal_convertor_pack, to, len_bytes);
    OBJ_DESTRUCT(&convertor);
    return rc;
}

int coll_velo_unpack_slow(void *buf, size_t count, const ompi_datatype_t *type, const uint8_t *from,
                          size_t len_bytes)
{
    opal_convertor_t convertor;
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    int rc = opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, &type->super, count,
                                                      buf, 0, &convertor);
    if (rc == OPAL_SUCCESS)
        rc = move_piece(&convertor, opal_convertor_unpack, (uint8_t *)(uintptr_t)from, len_bytes);
    OBJ_DESTRUCT(&convertor);
    return rc;
}

void *coll_velo_scratch(struct coll_velo_scratch *scratch, size_t count,
                        const ompi_datatype_t *type)
{
    ptrdiff_t gap;
    size_t need_bytes = (size_t)opal_datatype_span(&type->super, count, &gap);
    if (need_bytes > scratch->cap_bytes) {
        free(scratch->bytes);
        /* As aligned as what any element may need. */
        scratch->bytes = (uint8_t *)malloc(need_bytes);
        scratch->cap_bytes = scratch->bytes != NULL ? need_bytes : 0;
    }
    return scratch->bytes != NULL ? scratch->bytes - gap : NULL;
}

void coll_velo_scratch_trim(struct coll_velo_scratch *scratch)
{
    if (scratch->cap_bytes <= SCRATCH_KEPT_BYTES)
        return;
    free(scratch->bytes);
    *scratch = (struct coll_velo_scratch){0};
}
