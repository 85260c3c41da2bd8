/* SPDX-License-Identifier: Apache-2.0 */
/* Data with gaps, packed into the pieces of a message and unpacked from them. */
#include "mtl_velo.h"

/* Persistent requests come with a convertor that is at the end of their last message, and the
 * library asks again for a piece whose room another message has taken. */
static void go_to(opal_convertor_t *convertor, size_t offset_bytes)
{
    if (convertor->bConverted != offset_bytes)
        (void)opal_convertor_set_position(convertor, &offset_bytes);
}

static size_t pack(void *state, uint64_t offset_bytes, void *to, size_t cap_bytes)
{
    opal_convertor_t *convertor = state;
    struct iovec iov = {.iov_base = to, .iov_len = cap_bytes};
    uint32_t iov_count = 1;
    go_to(convertor, offset_bytes);
    return opal_convertor_pack(convertor, &iov, &iov_count, &cap_bytes) < 0 ? 0 : cap_bytes;
}

static void unpack(void *state, uint64_t offset_bytes, const void *from, size_t len_bytes)
{
    opal_convertor_t *convertor = state;
    struct iovec iov = {.iov_base = (void *)(uintptr_t)from, .iov_len = len_bytes};
    uint32_t iov_count = 1;
    go_to(convertor, offset_bytes);
    (void)opal_convertor_unpack(convertor, &iov, &iov_count, &len_bytes);
}

const struct velo_mq_layout mtl_velo_layout = {.pack = pack, .unpack = unpack};
