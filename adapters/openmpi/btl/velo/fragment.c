/* SPDX-License-Identifier: Apache-2.0 */
#include "btl_velo.h"

static void fragment_construct(struct btl_velo_fragment *fragment)
{
    fragment->super.des_segments = fragment->segments;
    fragment->super.des_segment_count = 1;
    fragment->segments[0].seg_addr.pval = fragment->super.super.ptr;
}

OBJ_CLASS_INSTANCE(btl_velo_fragment_small, mca_btl_base_descriptor_t, fragment_construct, NULL);
OBJ_CLASS_INSTANCE(btl_velo_fragment_large, mca_btl_base_descriptor_t, fragment_construct, NULL);

static struct btl_velo_fragment *take_fragment(struct mca_btl_base_endpoint_t *endpoint,
                                               uint8_t order, size_t own_bytes, uint32_t flags)
{
    if (own_bytes > btl_velo.super.btl_max_send_size)
        return NULL;
    opal_free_list_t *list =
        own_bytes <= btl_velo.super.btl_eager_limit ? &btl_velo.small : &btl_velo.large;
    struct btl_velo_fragment *fragment = (struct btl_velo_fragment *)opal_free_list_get(list);
    if (fragment == NULL)
        return NULL;
    fragment->super.des_segment_count = 1;
    fragment->super.des_flags = flags;
    fragment->super.order = order;
    fragment->segments[0].seg_addr.pval = fragment->super.super.ptr;
    fragment->segments[0].seg_len = own_bytes;
    fragment->endpoint = endpoint;
    fragment->is_in_ring = false;
    return fragment;
}

mca_btl_base_descriptor_t *btl_velo_alloc(mca_btl_base_module_t *btl,
                                          struct mca_btl_base_endpoint_t *endpoint, uint8_t order,
                                          size_t len_bytes, uint32_t flags)
{
    (void)btl;
    struct btl_velo_fragment *fragment = take_fragment(endpoint, order, len_bytes, flags);
    return fragment != NULL ? &fragment->super : NULL;
}

int btl_velo_free(mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *descriptor)
{
    (void)btl;
    struct btl_velo_fragment *fragment = (struct btl_velo_fragment *)descriptor;
    if (__builtin_expect(fragment->is_in_ring, 0)) {
        OPAL_THREAD_LOCK(&btl_velo.lock);
        if (fragment->is_in_ring)
            fragment->endpoint->packed = NULL; /* The room stays, for the next message. */
        OPAL_THREAD_UNLOCK(&btl_velo.lock);
    }
    bool small = descriptor->super.super.super.obj_class == OBJ_CLASS(btl_velo_fragment_small);
    opal_free_list_return(small ? &btl_velo.small : &btl_velo.large, &descriptor->super);
    return OPAL_SUCCESS;
}

/* This also moves the convertor on; without a buffer it gives the address instead. */
static bool pack(opal_convertor_t *convertor, void **to, size_t *len_bytes)
{
    struct iovec iov = {.iov_base = *to, .iov_len = *len_bytes};
    uint32_t iov_count = 1;
    int rc = opal_convertor_pack(convertor, &iov, &iov_count, len_bytes);
    *to = iov.iov_base;
    return rc >= 0;
}

static void describe(struct btl_velo_fragment *fragment, size_t header_bytes, void *payload,
                     size_t payload_bytes)
{
    fragment->segments[0].seg_len = header_bytes;
    fragment->segments[1].seg_addr.pval = payload;
    fragment->segments[1].seg_len = payload_bytes;
    fragment->super.des_segment_count = 2;
}

/* Pack the payload where its receiver reads it. False: there is no room now. As soon as the lock is
 * released another thread may take that, and move the payload out. */
static bool pack_in_ring(struct btl_velo_fragment *fragment, opal_convertor_t *convertor,
                         size_t header_bytes, size_t *len_bytes, bool *is_packed)
{
    OPAL_THREAD_LOCK(&btl_velo.lock);
    void *to = btl_velo_room(fragment, header_bytes, *len_bytes);
    if (to != NULL) {
        *is_packed = pack(convertor, &to, len_bytes);
        describe(fragment, header_bytes, to, *len_bytes);
    }
    OPAL_THREAD_UNLOCK(&btl_velo.lock);
    return to != NULL;
}

mca_btl_base_descriptor_t *btl_velo_prepare_src(mca_btl_base_module_t *btl,
                                                struct mca_btl_base_endpoint_t *endpoint,
                                                opal_convertor_t *convertor, uint8_t order,
                                                size_t header_bytes, size_t *len_bytes,
                                                uint32_t flags)
{
    size_t room_bytes = btl->btl_max_send_size - header_bytes;
    if (*len_bytes > room_bytes)
        *len_bytes = room_bytes;
    /* Data in one piece stays where it is until it is copied into the receiver's ring. */
    bool in_place = !opal_convertor_need_buffers(convertor);
    struct btl_velo_fragment *fragment =
        take_fragment(endpoint, order, header_bytes + (in_place ? 0 : *len_bytes), flags);
    if (fragment == NULL)
        return NULL;
    bool is_packed = true;
    if (in_place || !pack_in_ring(fragment, convertor, header_bytes, len_bytes, &is_packed)) {
        void *to = in_place ? NULL : (char *)fragment->segments[0].seg_addr.pval + header_bytes;
        is_packed = pack(convertor, &to, len_bytes);
        describe(fragment, header_bytes, to, *len_bytes);
    }
    if (!is_packed) {
        (void)btl_velo_free(btl, &fragment->super);
        return NULL;
    }
    return &fragment->super;
}
