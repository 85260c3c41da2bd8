/* SPDX-License-Identifier: Apache-2.0 */
/* Active messages: a fragment is one velo message, built in the receiver's ring. */
#include "btl_velo.h"

#include <string.h>

/* Payloads from this length on begin at a line: a line that a shorter one begins in the middle of
 * costs less than a line more. */
#define ALIGNED_BYTES 192u
/* Payloads from this length on are copied by the library, which chooses the way by the processor.
 * For shorter ones the calls would cost more than the copy. */
#define LONG_BYTES 4096u
/* The longest header that fits into a front. */
#define HEADER_BYTES_MAX sizeof(((struct btl_velo_front *)0)->rest)

static inline int connect_endpoint(struct mca_btl_base_endpoint_t *endpoint)
{
    return __builtin_expect(endpoint->conn != NULL, 1) ? OPAL_SUCCESS : btl_velo_connect(endpoint);
}

/* Copy a header, or a payload of a line at most: two moves of one width, which overlap, are shorter
 * than a call. */
static inline void copy_short(void *to, const void *from, size_t len_bytes)
{
    char head[16], tail[16];
    if (__builtin_expect(len_bytes < 8 || len_bytes > 32, 0)) {
        if (len_bytes > 0)
            memcpy(to, from, len_bytes);
    } else if (len_bytes <= 16) {
        memcpy(head, from, 8);
        memcpy(tail, (const char *)from + len_bytes - 8, 8);
        memcpy(to, head, 8);
        memcpy((char *)to + len_bytes - 8, tail, 8);
    } else {
        memcpy(head, from, 16);
        memcpy(tail, (const char *)from + len_bytes - 16, 16);
        memcpy(to, head, 16);
        memcpy((char *)to + len_bytes - 16, tail, 16);
    }
}

static int send_long(struct velo_conn *conn, const void *payload, size_t payload_bytes,
                     const void *header, size_t header_bytes, mca_btl_base_tag_t tag)
{
    struct btl_velo_front front = {.header_at = sizeof front - header_bytes};
    copy_short((char *)&front + front.header_at, header, header_bytes);
    const struct iovec pieces[] = {{&front, sizeof front},
                                   {(void *)(uintptr_t)payload, payload_bytes}};
    return velo_try_sendv(conn, pieces, 2, tag);
}

/* Room for header and payload of a message that is built in place. */
static inline int reserve_message(struct velo_conn *conn, uint64_t header_at, size_t len_bytes,
                                  char **to)
{
    void *room;
    int status = velo_try_reserve(conn, header_at + len_bytes, &room);
    if (status != VELO_OK)
        return status;
    memcpy(room, &header_at, sizeof header_at);
    *to = (char *)room + header_at;
    return VELO_OK;
}

static int send_medium(struct velo_conn *conn, const void *payload, size_t payload_bytes,
                       const void *header, size_t header_bytes, mca_btl_base_tag_t tag)
{
    char *to;
    bool is_aligned = payload_bytes >= ALIGNED_BYTES && header_bytes <= HEADER_BYTES_MAX;
    uint64_t header_at =
        is_aligned ? sizeof(struct btl_velo_front) - header_bytes : sizeof header_at;
    int status = reserve_message(conn, header_at, header_bytes + payload_bytes, &to);
    if (status != VELO_OK)
        return status;
    copy_short(to, header, header_bytes);
    if (payload_bytes > 0)
        memcpy(to + header_bytes, payload, payload_bytes);
    return velo_commit(conn, header_at + header_bytes + payload_bytes, tag);
}

/* Send header and payload, which lies in one piece. */
static int send_contiguous(struct velo_conn *conn, const void *payload, size_t payload_bytes,
                           const void *header, size_t header_bytes, mca_btl_base_tag_t tag)
{
    char line[VELO_INLINE_BYTES];
    if (header_bytes + payload_bytes > sizeof line)
        return (payload_bytes < LONG_BYTES || header_bytes > HEADER_BYTES_MAX
                    ? send_medium
                    : send_long)(conn, payload, payload_bytes, header, header_bytes, tag);
    copy_short(line, header, header_bytes);
    copy_short(line + header_bytes, payload, payload_bytes);
    return velo_try_send(conn, line, header_bytes + payload_bytes, tag);
}

/* ---- room that is reserved ------------------------------------------------------------------- */

void *btl_velo_room(struct btl_velo_fragment *fragment, size_t header_bytes, size_t len_bytes)
{
    struct mca_btl_base_endpoint_t *endpoint = fragment->endpoint;
    if (len_bytes < ALIGNED_BYTES || header_bytes > HEADER_BYTES_MAX || endpoint->conn == NULL ||
        endpoint->packed != NULL || opal_list_get_size(&endpoint->waiting) > 0)
        return NULL;
    if (endpoint->room == NULL &&
        velo_try_reserve(endpoint->conn,
                         btl_velo.super.btl_max_send_size + sizeof(struct btl_velo_front),
                         (void **)&endpoint->room) != VELO_OK)
        return NULL;
    endpoint->packed = fragment;
    fragment->is_in_ring = true;
    return endpoint->room + sizeof(struct btl_velo_front);
}

/* Another message goes first, and takes the room: the payload moves to the fragment's own memory.
 */
static void move_out(struct btl_velo_fragment *fragment)
{
    mca_btl_base_segment_t *own = &fragment->segments[0], *payload = &fragment->segments[1];
    void *to = (char *)own->seg_addr.pval + own->seg_len;
    memcpy(to, payload->seg_addr.pval, payload->seg_len);
    payload->seg_addr.pval = to;
    fragment->is_in_ring = false;
}

/* Copy a fragment whose payload lies elsewhere. Returns the length of the message. */
static size_t copy_to_room(char *room, const struct btl_velo_fragment *fragment)
{
    const mca_btl_base_segment_t *own = &fragment->segments[0], *payload = &fragment->segments[1];
    bool is_whole = fragment->super.des_segment_count == 1;
    size_t header_bytes = is_whole ? 0 : own->seg_len;
    if (is_whole)
        payload = own;
    uint64_t header_at = 0;
    if (header_bytes + payload->seg_len > VELO_INLINE_BYTES) {
        header_at = header_bytes <= HEADER_BYTES_MAX ? sizeof(struct btl_velo_front) - header_bytes
                                                     : sizeof header_at;
        memcpy(room, &header_at, sizeof header_at);
    }
    copy_short(room + header_at, own->seg_addr.pval, header_bytes);
    if (payload->seg_len > 0)
        memcpy(room + header_at + header_bytes, payload->seg_addr.pval, payload->seg_len);
    return header_at + header_bytes + payload->seg_len;
}

/* Write the header of a fragment whose payload lies in the room. The same. */
static size_t complete_room(char *room, const struct btl_velo_fragment *fragment)
{
    const mca_btl_base_segment_t *own = &fragment->segments[0], *payload = &fragment->segments[1];
    uint64_t header_at = sizeof(struct btl_velo_front) - own->seg_len;
    memcpy(room, &header_at, sizeof header_at);
    copy_short(room + header_at, own->seg_addr.pval, own->seg_len);
    return sizeof(struct btl_velo_front) + payload->seg_len;
}

static int put_in_room(struct mca_btl_base_endpoint_t *endpoint, struct btl_velo_fragment *fragment)
{
    char *room = endpoint->room;
    size_t len_bytes;
    if (endpoint->packed == fragment) {
        len_bytes = complete_room(room, fragment);
    } else {
        if (endpoint->packed != NULL)
            move_out(endpoint->packed);
        len_bytes = copy_to_room(room, fragment);
    }
    fragment->is_in_ring = false;
    endpoint->packed = NULL;
    endpoint->room = NULL;
    return velo_commit(endpoint->conn, len_bytes, fragment->tag);
}

/* The lock is held. */
static int put_in_ring(struct mca_btl_base_endpoint_t *endpoint, struct btl_velo_fragment *fragment)
{
    const mca_btl_base_segment_t *own = &fragment->segments[0], *users = &fragment->segments[1];
    if (__builtin_expect(endpoint->room != NULL, 0))
        return put_in_room(endpoint, fragment);
    if (fragment->super.des_segment_count == 2)
        return send_contiguous(endpoint->conn, users->seg_addr.pval, users->seg_len,
                               own->seg_addr.pval, own->seg_len, fragment->tag);
    if (own->seg_len <= VELO_INLINE_BYTES)
        return velo_try_send(endpoint->conn, own->seg_addr.pval, own->seg_len, fragment->tag);
    return send_long(endpoint->conn, own->seg_addr.pval, own->seg_len, NULL, 0, fragment->tag);
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
static void end_fragment(struct btl_velo_fragment *fragment)
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
    int rc = connect_endpoint(endpoint);
    int status = VELO_AGAIN;
    if (rc == OPAL_SUCCESS) {
        if (opal_list_get_size(&endpoint->waiting) == 0)
            status = put_in_ring(endpoint, fragment);
        if (status == VELO_AGAIN)
            wait_for_room(endpoint, fragment);
    }
    OPAL_THREAD_UNLOCK(&btl_velo.lock);
    if (__builtin_expect(rc != OPAL_SUCCESS, 0))
        btl_velo_give_up(endpoint->proc);
    if (status == VELO_AGAIN)
        return OPAL_SUCCESS;
    if (__builtin_expect(status != VELO_OK, 0))
        btl_velo_fail(endpoint, "send to a rank", status);
    end_fragment(fragment);
    return 1;
}

static void pack_data(opal_convertor_t *convertor, void *to, size_t len_bytes)
{
    struct iovec iov = {.iov_base = to, .iov_len = len_bytes};
    uint32_t iov_count = 1;
    (void)opal_convertor_pack(convertor, &iov, &iov_count, &len_bytes);
}

/* A message that is packed in the ring, or into a line on the way there. */
static int send_packed(struct velo_conn *conn, opal_convertor_t *convertor, const void *header,
                       size_t header_bytes, size_t payload_bytes, mca_btl_base_tag_t tag)
{
    char line[VELO_INLINE_BYTES], *to = line;
    size_t len_bytes = header_bytes + payload_bytes;
    bool is_short = len_bytes <= sizeof line;
    int status = is_short ? VELO_OK : reserve_message(conn, sizeof(uint64_t), len_bytes, &to);
    if (status != VELO_OK)
        return status;
    copy_short(to, header, header_bytes);
    pack_data(convertor, to + header_bytes, payload_bytes);
    return is_short ? velo_try_send(conn, line, len_bytes, tag)
                    : velo_commit(conn, sizeof(uint64_t) + len_bytes, tag);
}

/* The lock is held; nothing waits. */
static int send_pieces(struct velo_conn *conn, opal_convertor_t *convertor, const void *header,
                       size_t header_bytes, size_t payload_bytes, mca_btl_base_tag_t tag)
{
    void *payload = NULL;
    if (payload_bytes > 0) {
        if (opal_convertor_need_buffers(convertor))
            return send_packed(conn, convertor, header, header_bytes, payload_bytes, tag);
        opal_convertor_get_current_pointer(convertor, &payload);
    }
    return send_contiguous(conn, payload, payload_bytes, header, header_bytes, tag);
}

int btl_velo_sendi(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                   opal_convertor_t *convertor, void *header, size_t header_bytes,
                   size_t payload_bytes, uint8_t order, uint32_t flags, mca_btl_base_tag_t tag,
                   mca_btl_base_descriptor_t **descriptor)
{
    OPAL_THREAD_LOCK(&btl_velo.lock);
    int rc = connect_endpoint(endpoint);
    int status = VELO_AGAIN;
    /* Room that is reserved is for btl_send: one reservation is open at a time. */
    if (rc == OPAL_SUCCESS && opal_list_get_size(&endpoint->waiting) == 0 && endpoint->room == NULL)
        status = send_pieces(endpoint->conn, convertor, header, header_bytes, payload_bytes, tag);
    OPAL_THREAD_UNLOCK(&btl_velo.lock);
    if (__builtin_expect(status == VELO_OK, 1))
        return OPAL_SUCCESS;
    if (rc != OPAL_SUCCESS)
        btl_velo_give_up(endpoint->proc);
    if (status != VELO_AGAIN)
        btl_velo_fail(endpoint, "send to a rank", status);
    /* A message that could not go at once goes through btl_send, which waits for room. */
    if (descriptor != NULL)
        *descriptor = btl_velo_alloc(btl, endpoint, order, header_bytes + payload_bytes, flags);
    return OPAL_ERR_RESOURCE_BUSY;
}

/* Send those of an endpoint's waiting fragments that fit, and move them to `done`. The lock is
 * held. */
static int drain_waiting(struct mca_btl_base_endpoint_t *endpoint, opal_list_t *done)
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
        int status = drain_waiting(endpoint, &done);
        if (status == VELO_OK) {
            btl_velo.waiting--;
        } else if (status != VELO_AGAIN) {
            lost = endpoint;
            lost_status = status;
        }
    }
    OPAL_THREAD_UNLOCK(&btl_velo.lock);
    for (; opal_list_get_size(&done) > 0; count++)
        end_fragment((struct btl_velo_fragment *)opal_list_remove_first(&done));
    OBJ_DESTRUCT(&done);
    if (lost != NULL)
        btl_velo_fail(lost, "send to a rank", lost_status);
    return count;
}
