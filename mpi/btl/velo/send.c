/* SPDX-License-Identifier: Apache-2.0 */
/* Active messages: a fragment is one velo message, built in the receiver's ring. */
#include "btl_velo.h"

#include <string.h>

static inline int connected(struct mca_btl_base_endpoint_t *endpoint)
{
    return __builtin_expect(endpoint->conn != NULL, 1) ? OPAL_SUCCESS : btl_velo_connect(endpoint);
}

/* The lock is held. */
static int put_in_ring(struct mca_btl_base_endpoint_t *endpoint,
                       const struct btl_velo_fragment *fragment)
{
    const mca_btl_base_segment_t *own = &fragment->segments[0], *users = &fragment->segments[1];
    size_t own_bytes = own->seg_len;
    if (fragment->super.des_segment_count == 1)
        return velo_try_send(endpoint->conn, own->seg_addr.pval, own_bytes, fragment->tag);
    size_t len_bytes = own_bytes + users->seg_len;
    void *to;
    int status = velo_try_reserve(endpoint->conn, len_bytes, &to);
    if (status != VELO_OK)
        return status;
    memcpy(to, own->seg_addr.pval, own_bytes);
    memcpy((char *)to + own_bytes, users->seg_addr.pval, users->seg_len);
    return velo_commit(endpoint->conn, len_bytes, fragment->tag);
}

static void wait_for_room(struct mca_btl_base_endpoint_t *endpoint,
                          struct btl_velo_fragment *fragment)
{
    fragment->super.des_flags |= MCA_BTL_DES_SEND_ALWAYS_CALLBACK;
    if (opal_list_get_size(&endpoint->waiting) == 0)
        btl_velo.waiting++;
    opal_list_append(&endpoint->waiting, (opal_list_item_t *)fragment);
}

/* The data is on its way: the descriptor is not ours any more. */
static void sent(struct btl_velo_fragment *fragment)
{
    mca_btl_base_descriptor_t *descriptor = &fragment->super;
    bool ours = (descriptor->des_flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP) != 0;
    if ((descriptor->des_flags & MCA_BTL_DES_SEND_ALWAYS_CALLBACK) != 0)
        descriptor->des_cbfunc(&btl_velo.super, fragment->endpoint, descriptor, OPAL_SUCCESS);
    if (ours)
        (void)btl_velo_free(&btl_velo.super, descriptor);
}

int btl_velo_send(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                  mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag)
{
    (void)btl;
    struct btl_velo_fragment *fragment = (struct btl_velo_fragment *)descriptor;
    fragment->endpoint = endpoint;
    fragment->tag = tag;
    OPAL_THREAD_LOCK(&btl_velo.lock);
    int rc = connected(endpoint);
    int status = VELO_AGAIN;
    if (rc == OPAL_SUCCESS) {
        if (opal_list_get_size(&endpoint->waiting) == 0)
            status = put_in_ring(endpoint, fragment);
        if (status == VELO_AGAIN)
            wait_for_room(endpoint, fragment);
    }
    OPAL_THREAD_UNLOCK(&btl_velo.lock);
    if (rc != OPAL_SUCCESS || status == VELO_AGAIN)
        return rc;
    if (__builtin_expect(status != VELO_OK, 0))
        btl_velo_fail(endpoint, "send to a rank", status);
    sent(fragment);
    return 1;
}

/* The lock is held; nothing waits. */
static int send_pieces(struct mca_btl_base_endpoint_t *endpoint, opal_convertor_t *convertor,
                       const void *header, size_t header_bytes, size_t payload_bytes,
                       mca_btl_base_tag_t tag)
{
    char line[VELO_INLINE_BYTES];
    size_t len_bytes = header_bytes + payload_bytes;
    void *to = line;
    if (len_bytes > sizeof line) {
        int status = velo_try_reserve(endpoint->conn, len_bytes, &to);
        if (status != VELO_OK)
            return status;
    }
    memcpy(to, header, header_bytes);
    if (payload_bytes > 0) {
        if (!opal_convertor_need_buffers(convertor)) {
            void *payload;
            opal_convertor_get_current_pointer(convertor, &payload);
            memcpy((char *)to + header_bytes, payload, payload_bytes);
        } else {
            struct iovec iov = {.iov_base = (char *)to + header_bytes, .iov_len = payload_bytes};
            uint32_t iov_count = 1;
            size_t packed_bytes = payload_bytes;
            (void)opal_convertor_pack(convertor, &iov, &iov_count, &packed_bytes);
        }
    }
    if (len_bytes <= sizeof line)
        return velo_try_send(endpoint->conn, line, len_bytes, tag);
    return velo_commit(endpoint->conn, len_bytes, tag);
}

int btl_velo_sendi(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                   opal_convertor_t *convertor, void *header, size_t header_bytes,
                   size_t payload_bytes, uint8_t order, uint32_t flags, mca_btl_base_tag_t tag,
                   mca_btl_base_descriptor_t **descriptor)
{
    OPAL_THREAD_LOCK(&btl_velo.lock);
    int rc = connected(endpoint);
    int status = VELO_AGAIN;
    if (rc == OPAL_SUCCESS && opal_list_get_size(&endpoint->waiting) == 0)
        status = send_pieces(endpoint, convertor, header, header_bytes, payload_bytes, tag);
    OPAL_THREAD_UNLOCK(&btl_velo.lock);
    if (__builtin_expect(status == VELO_OK, 1))
        return OPAL_SUCCESS;
    if (status != VELO_AGAIN)
        btl_velo_fail(endpoint, "send to a rank", status);
    /* A message that could not go at once goes through btl_send, which waits for room. */
    if (descriptor != NULL)
        *descriptor = btl_velo_alloc(btl, endpoint, order, header_bytes + payload_bytes, flags);
    return rc != OPAL_SUCCESS ? rc : OPAL_ERR_RESOURCE_BUSY;
}

/* Send those of an endpoint's waiting fragments that fit, and move them to `done`. The lock is
 * held. */
static int drain(struct mca_btl_base_endpoint_t *endpoint, opal_list_t *done)
{
    while (opal_list_get_size(&endpoint->waiting) > 0) {
        opal_list_item_t *first = opal_list_get_first(&endpoint->waiting);
        int status = put_in_ring(endpoint, (struct btl_velo_fragment *)first);
        if (status != VELO_OK)
            return status;
        (void)opal_list_remove_item(&endpoint->waiting, first);
        opal_list_append(done, first);
    }
    return VELO_OK;
}

int btl_velo_send_waiting(void)
{
    struct mca_btl_base_endpoint_t *endpoint, *lost = NULL;
    int lost_status = VELO_OK, count = 0;
    opal_list_t done;
    OBJ_CONSTRUCT(&done, opal_list_t);
    OPAL_THREAD_LOCK(&btl_velo.lock);
    OPAL_LIST_FOREACH(endpoint, &btl_velo.endpoints, struct mca_btl_base_endpoint_t)
    {
        if (opal_list_get_size(&endpoint->waiting) == 0)
            continue;
        int status = drain(endpoint, &done);
        if (status == VELO_OK) {
            btl_velo.waiting--;
        } else if (status != VELO_AGAIN) {
            lost = endpoint;
            lost_status = status;
        }
    }
    OPAL_THREAD_UNLOCK(&btl_velo.lock);
    for (; opal_list_get_size(&done) > 0; count++)
        sent((struct btl_velo_fragment *)opal_list_remove_first(&done));
    OBJ_DESTRUCT(&done);
    if (lost != NULL)
        btl_velo_fail(lost, "send to a rank", lost_status);
    return count;
}
