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
    bool small = descriptor->super.super.super.obj_class == OBJ_CLASS(btl_velo_fragment_small);
    opal_free_list_return(small ? &btl_velo.small : &btl_velo.large, &descriptor->super);
    return OPAL_SUCCESS;
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
    struct iovec iov = {.iov_base = NULL, .iov_len = *len_bytes};
    if (!in_place)
        iov.iov_base = (char *)fragment->segments[0].seg_addr.pval + header_bytes;
    uint32_t iov_count = 1;
    /* This also moves the convertor on; without a buffer it gives the address instead. */
    if (opal_convertor_pack(convertor, &iov, &iov_count, len_bytes) < 0) {
        (void)btl_velo_free(btl, &fragment->super);
        return NULL;
    }
    if (in_place) {
        fragment->segments[0].seg_len = header_bytes;
        fragment->segments[1].seg_addr.pval = iov.iov_base;
        fragment->segments[1].seg_len = *len_bytes;
        fragment->super.des_segment_count = 2;
    } else {
        fragment->segments[0].seg_len = header_bytes + *len_bytes;
    }
    return &fragment->super;
}
