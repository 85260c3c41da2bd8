/* SPDX-License-Identifier: Apache-2.0 */
/* Posting of rma2. */
#include <stdlib.h>

#include "rma2_internal.h"

#define WORD_BYTES 8u
/* Posts between two looks at what comes: answers must be taken even if a program does nothing else.
 */
#define POSTS_PER_LOOK 64
#define MODIFIERS_ABSENT (RMA2_CMD_MC | RMA2_CMD_ERA | RMA2_CMD_EWA)

/** An operation, in our words. */
struct post {
    uint8_t cmd; /* RMA2_Command. */
    RMA2_Notification_Spec spec;
    RMA2_Command_Modifier modifier;
    uint32_t size;
    union {
        uint64_t local; /* Address; of an immediate put the value, of a notification the class. */
        struct {
            int32_t cmp; /* Of a lock. */
            int32_t add;
        };
    };
    uint64_t remote; /* Address; of a notification the word, of a lock its number, with those of the
                        second target behind those of the first. */
};

hot_inline bool is_get(const struct post *post)
{
    return post->cmd == RMA2_BT_GET || post->cmd == RMA2_QW_GET;
}

/* ---- the place ------------------------------------------------------------------------------- */

/* Look for an address among the stretches that are known. */
static struct known *recall_stretch(struct rma2_handle *handle, uint64_t address,
                                    uint64_t len_bytes)
{
    for (uint32_t i = 0; i < KNOWN; i++) {
        struct known *known = &handle->known[i];
        if (known->key && address >= known->from && address <= known->end &&
            len_bytes <= known->end - address) {
            handle->known_last = i;
            return known;
        }
    }
    return NULL;
}

/* Ask for an address, and for as much behind it again: then a program that goes through a region
 * asks a few times. */
static int find_stretch(struct rma2_handle *handle, uint64_t address, uint64_t len_bytes,
                        struct velo_rma_place *place)
{
    const uint32_t rights = VELO_RMA_RIGHT_READ | VELO_RMA_RIGHT_WRITE;
    int status = velo_rma_mem_find(handle->peer, address, len_bytes, rights, place);
    if (status)
        return status;
    uint64_t from = address - place->offset;
    uint64_t end = address + len_bytes;
    if (from == 0)
        return VELO_OK; /* The peer's library looks itself, each time. */
    struct velo_rma_place more;
    if (velo_rma_mem_find(handle->peer, from, 2 * (end - from), rights, &more) == VELO_OK &&
        more.key == place->key)
        end += end - from;
    handle->known[handle->known_next++ % KNOWN] = (struct known){from, end, place->key, from};
    return VELO_OK;
}

static void forget_stretches(struct rma2_handle *handle)
{
    for (uint32_t i = 0; i < KNOWN; i++)
        handle->known[i].key = 0;
}

/* The place of what the peer offers under a number. It is there soon after its port is open. */
static int look_up(struct rma2_handle *handle, uint32_t number, uint32_t rights,
                   struct velo_rma_place *place)
{
    const struct rma2_port *port = handle->port;
    int64_t since_ns = place_now_ns();
    int status = VELO_OK;
    while (place->key == 0 && (status = velo_rma_mem_lookup(handle->peer, number, rights, place))) {
        if (status != VELO_ERR_ACCESS)
            return status;
        if (place_is_over(since_ns, port->wait_ns))
            return VELO_ERR_NO_PEER;
        (void)rma2_carry_on(port);
        place_nap();
    }
    return status;
}

static int resolve_post(struct rma2_handle *handle, const struct post *post,
                        struct velo_rma_place *place)
{
    int status;
    if (post->cmd == RMA2_LOCK_REQ) {
        status = look_up(handle, NUMBER_LOCKS, VELO_RMA_RIGHT_ATOMIC, &handle->locks);
        *place = velo_rma_place(handle->locks.key,
                                handle->locks.offset + post->remote * sizeof(uint64_t));
        return status;
    }
    if (post->cmd == RMA2_NOTIFICATION_PUT) {
        status = look_up(handle, NUMBER_CLASSES, VELO_RMA_RIGHT_WRITE, &handle->classes);
        *place = velo_rma_place(handle->classes.key, handle->classes.offset + post->local);
        return status;
    }
    const struct known *known = recall_stretch(handle, post->remote, post->size);
    if (unlikely(!known))
        return find_stretch(handle, post->remote, post->size, place);
    *place = velo_rma_place(known->key, post->remote - known->base);
    return VELO_OK;
}

/* ---- the operation --------------------------------------------------------------------------- */

hot_inline uint32_t flags_of(const struct post *post)
{
    bool comes_back = is_get(post) || post->cmd == RMA2_LOCK_REQ;
    uint32_t flags = post->spec & RMA2_REQUESTER_NOTIFICATION ? VELO_RMA_NOTIFY_REQUESTER : 0u;
    if (!comes_back)
        return flags | (post->spec & RMA2_COMPLETER_NOTIFICATION ? VELO_RMA_NOTIFY_COMPLETER : 0u);
    /* A lock's outcome is always of interest to us: then its place is free again. */
    if ((post->spec & RMA2_COMPLETER_NOTIFICATION) || post->cmd == RMA2_LOCK_REQ)
        flags |= VELO_RMA_NOTIFY_REQUESTER;
    return flags | (post->spec & RMA2_RESPONDER_NOTIFICATION ? VELO_RMA_NOTIFY_RESPONDER : 0u);
}

/* A put, a get or an immediate put. */
hot_inline int move_data(struct rma2_handle *handle, const struct post *post,
                         struct velo_rma_place place)
{
    void *local = (void *)(uintptr_t)post->local;
    uint32_t flags = flags_of(post);
    uint64_t word = cookie_make(post->cmd, post->modifier, post->spec, post->size);
    if (post->cmd == RMA2_IMMEDIATE_PUT)
        return velo_rma_put_immediate(handle->peer, post->local, post->size, place, flags, word);
    if (is_get(post))
        return velo_rma_get(handle->peer, local, post->size, place, flags, word);
    return velo_rma_put(handle->peer, local, post->size, place, flags | VELO_RMA_TAIL_LAST, word);
}

static int issue_lock(struct rma2_handle *handle, const struct post *post,
                      struct velo_rma_place place)
{
    struct rma2_port *port = handle->port;
    struct lock_op *op = port->lock_free;
    if (!op)
        return VELO_AGAIN;
    op->cmp = post->cmp;
    op->add = post->add;
    uint64_t cookie = cookie_make(post->cmd, post->modifier, post->spec, post->size) |
                      cookie_of_lock((uint32_t)post->remote, (uint32_t)(op - port->lock_ops));
    struct lock_op *next = op->next;
    int status = velo_rma_fetch_compare_add(
        handle->peer, &op->old, place, (uint64_t)(int64_t)post->cmp, (uint64_t)(int64_t)post->add,
        flags_of(post) | VELO_RMA_ADD_AT_MOST, cookie);
    if (status == VELO_OK)
        port->lock_free = next;
    return status;
}

/* An operation on other memory may go another way, and must not overtake those before it. So those
 * are done first. (Fences would leave it to later calls of the program to go on.) */
static int flush_handle(struct rma2_handle *handle)
{
    int status = velo_rma_flush(handle->peer, 0);
    return status == VELO_TIMEOUT || status == VELO_ERR_INTERRUPTED ? VELO_AGAIN : status;
}

/* Locks and classes are in memory that is mapped here, where the end of its owner does not show. A
 * look is a system call, as a put to another process is one. */
static int look_at_peer(struct rma2_handle *handle)
{
    return handle->id == velo_port_id(handle->port->port) ? VELO_OK
                                                          : velo_rma_peer_status(handle->peer);
}

static int issue_post(struct rma2_handle *handle, const struct post *post,
                      struct velo_rma_place place)
{
    if (unlikely(place.key != handle->key_last)) {
        int status = flush_handle(handle);
        if (status)
            return status;
        handle->key_last = place.key;
    }
    if (post->cmd != RMA2_NOTIFICATION_PUT && post->cmd != RMA2_LOCK_REQ)
        return move_data(handle, post, place);
    int status = look_at_peer(handle);
    if (status)
        return status;
    if (post->cmd == RMA2_LOCK_REQ)
        return issue_lock(handle, post, place);
    return velo_rma_put(handle->peer, handle->port->class_marks + post->local, 1, place,
                        flags_of(post), post->remote);
}

/* Connect, look again, or wait for room, as the status of the first try asks for. */
static int issue_patiently(struct rma2_handle *handle, const struct post *post, int status)
{
    struct rma2_port *port = handle->port;
    struct velo_rma_place place;
    int64_t since_ns = place_now_ns();
    if (!handle->peer && (status = rma2_connect_late(handle)))
        return status;
    if (status == VELO_ERR_ACCESS) /* A registration that was known may have ended. */
        forget_stretches(handle);
    else if (status != VELO_OK && status != VELO_AGAIN)
        return status;
    status = VELO_OK;
    for (;;) {
        if (status == VELO_OK)
            status = resolve_post(handle, post, &place);
        if (status == VELO_OK)
            status = issue_post(handle, post, place);
        if (status != VELO_AGAIN)
            return status;
        if (place_is_over(since_ns, port->wait_ns))
            return status;
        if (rma2_take_in(port, 0) <= 0 && !rma2_carry_on(port))
            sched_yield();
        status = VELO_OK;
    }
}

static RMA2_ERROR check_post(const struct rma2_port *port, const struct rma2_handle *handle,
                             const struct post *post)
{
    if (!port)
        return RMA2_ERR_INV_PORT;
    if (!handle || handle->port != port)
        return RMA2_ERR_INV_HANDLE;
    if (post->spec > RMA2_ALL_NOTIFICATIONS)
        return RMA2_ERR_INV_VALUE;
    if (post->modifier > MODIFIERS_ALL || (post->modifier & MODIFIERS_ABSENT))
        return RMA2_ERR_WRONG_ARG;
    return handle->options & RMA2_CONN_RRA ? RMA2_ERR_NO_DEVICE : RMA2_SUCCESS;
}

/* The post is a copy, so that the short way need not have it in memory. */
static __attribute__((noinline)) RMA2_ERROR post_now(struct rma2_port *port,
                                                     struct rma2_handle *handle, struct post copy)
{
    const struct post *post = &copy;
    struct velo_rma_place place = {0, 0};
    RMA2_ERROR error = check_post(port, handle, post);
    if (unlikely(error))
        return error;
    enum turn_held held = turn_take(&port->turn);
    if (++port->slow_posts % POSTS_PER_LOOK == 0 || port->posts % POSTS_PER_LOOK == 0)
        (void)rma2_take_in(port, 0);
    int status = handle->peer ? resolve_post(handle, post, &place) : VELO_AGAIN;
    if (likely(status == VELO_OK))
        status = issue_post(handle, post, place);
    if (unlikely(status))
        status = issue_patiently(handle, post, status);
    turn_give(&port->turn, held);
    return likely(status == VELO_OK) ? RMA2_SUCCESS : rma2_result(status);
}

/* The short way, for most operations: the peer's memory is the one of the operation before, there
 * is room, and no other thread. False: the long way. */
hot_inline bool post_at_once(struct rma2_port *port, struct rma2_handle *handle,
                             const struct post *post)
{
    if (unlikely(!handle || handle->port != port || !__libc_single_threaded || !handle->peer ||
                 ++port->posts % POSTS_PER_LOOK == 0 || post->spec > RMA2_ALL_NOTIFICATIONS ||
                 post->modifier || (handle->options & RMA2_CONN_RRA)))
        return false;
    const struct known *known = &handle->known[handle->known_last];
    uint64_t offset = post->remote - known->from;
    uint64_t len_bytes = known->end - known->from;
    if (unlikely(known->key != handle->key_last || known->key == 0 || offset > len_bytes ||
                 post->size > len_bytes - offset))
        return false;
    return move_data(handle, post, velo_rma_place(known->key, post->remote - known->base)) ==
           VELO_OK;
}

/* A put or a get. `local` is an address; it is registered, if it comes from a region. */
hot_inline RMA2_ERROR post_move(RMA2_Port port, RMA2_Handle handle, const struct post *post,
                                bool is_checked)
{
    bool is_words = post->cmd == RMA2_QW_PUT || post->cmd == RMA2_QW_GET;
    if (unlikely(!port))
        return RMA2_ERR_INV_PORT;
    if (unlikely(post->size == 0 || post->size > SIZE_MAX_BYTES ||
                 (is_words && (post->size | post->local | post->remote) % WORD_BYTES != 0)))
        return RMA2_ERR_INV_VALUE;
    if (!is_checked) {
        enum turn_held held = turn_take(&port->turn);
        bool is_registered = rma2_is_registered(port, post->local, post->size);
        turn_give(&port->turn, held);
        if (unlikely(!is_registered))
            return RMA2_ERR_ATU;
    }
    return likely(post_at_once(port, handle, post)) ? RMA2_SUCCESS : post_now(port, handle, *post);
}

hot_inline RMA2_ERROR post_region(RMA2_Port port, RMA2_Handle handle, uint8_t cmd,
                                  const RMA2_Region *region, uint32_t offset, uint32_t size,
                                  RMA2_NLA remote, RMA2_Notification_Spec spec,
                                  RMA2_Command_Modifier modifier)
{
    if (unlikely(!port))
        return RMA2_ERR_INV_PORT;
    if (unlikely(!region))
        return RMA2_ERR_INV_VALUE;
    const size_t len_bytes = region->size - region->offset;
    if (unlikely(offset > len_bytes || size > len_bytes - offset))
        return RMA2_ERR_INV_VALUE;
    if (unlikely(!region->internal))
        return RMA2_ERR_ATU;
    const struct post post = {.cmd = cmd,
                              .spec = spec,
                              .modifier = modifier,
                              .size = size,
                              .local = region->nla + region->offset + offset,
                              .remote = remote};
    return post_move(port, handle, &post, true);
}

hot_inline RMA2_ERROR post_direct(RMA2_Port port, RMA2_Handle handle, uint8_t cmd, RMA2_NLA local,
                                  uint32_t size, RMA2_NLA remote, RMA2_Notification_Spec spec,
                                  RMA2_Command_Modifier modifier)
{
    const struct post post = {.cmd = cmd,
                              .spec = spec,
                              .modifier = modifier,
                              .size = size,
                              .local = local,
                              .remote = remote};
    return post_move(port, handle, &post, false);
}

/* ---- the calls ------------------------------------------------------------------------------- */

#define POST_REGION(name, command)                                                                 \
    RMA2_ERROR name(RMA2_Port port, RMA2_Handle handle, RMA2_Region *region, uint32_t offset,      \
                    uint32_t size, RMA2_NLA remote, RMA2_Notification_Spec spec,                   \
                    RMA2_Command_Modifier modifier)                                                \
    {                                                                                              \
        return post_region(port, handle, command, region, offset, size, remote, spec, modifier);   \
    }

#define POST_DIRECT(name, command)                                                                 \
    RMA2_ERROR name(RMA2_Port port, RMA2_Handle handle, RMA2_NLA local, uint32_t size,             \
                    RMA2_NLA remote, RMA2_Notification_Spec spec, RMA2_Command_Modifier modifier)  \
    {                                                                                              \
        return post_direct(port, handle, command, local, size, remote, spec, modifier);            \
    }

POST_REGION(rma2_post_put_bt, RMA2_BT_PUT)
POST_REGION(rma2_post_get_bt, RMA2_BT_GET)
POST_REGION(rma2_post_put_qw, RMA2_QW_PUT)
POST_REGION(rma2_post_get_qw, RMA2_QW_GET)
POST_DIRECT(rma2_post_put_bt_direct, RMA2_BT_PUT)
POST_DIRECT(rma2_post_get_bt_direct, RMA2_BT_GET)
POST_DIRECT(rma2_post_put_qw_direct, RMA2_QW_PUT)
POST_DIRECT(rma2_post_get_qw_direct, RMA2_QW_GET)

RMA2_ERROR rma2_post_immediate_put(RMA2_Port port, RMA2_Handle handle, uint32_t size,
                                   uint64_t value, RMA2_NLA remote, RMA2_Notification_Spec spec,
                                   RMA2_Command_Modifier modifier)
{
    const struct post post = {.cmd = RMA2_IMMEDIATE_PUT,
                              .spec = spec,
                              .modifier = modifier,
                              .size = size,
                              .local = value,
                              .remote = remote};
    if (unlikely(!port))
        return RMA2_ERR_INV_PORT;
    if (unlikely(size == 0 || size > sizeof value))
        return RMA2_ERR_INV_VALUE;
    return likely(post_at_once(port, handle, &post)) ? RMA2_SUCCESS : post_now(port, handle, post);
}

RMA2_ERROR rma2_post_notification(RMA2_Port port, RMA2_Handle handle, RMA2_Class noti_class,
                                  uint64_t value, RMA2_Notification_Spec spec,
                                  RMA2_Command_Modifier modifier)
{
    const struct post post = {.cmd = RMA2_NOTIFICATION_PUT,
                              .spec = spec,
                              .modifier = modifier,
                              .local = noti_class,
                              .remote = value};
    return post_now(port, handle, post);
}

RMA2_ERROR rma2_post_lock(RMA2_Port port, RMA2_Handle handle, int target, uint32_t number,
                          int32_t cmp, int32_t add, RMA2_Notification_Spec spec,
                          RMA2_Command_Modifier modifier)
{
    const struct post post = {.cmd = RMA2_LOCK_REQ,
                              .spec = spec,
                              .modifier = modifier,
                              .size = sizeof(uint64_t),
                              .cmp = cmp,
                              .add = add,
                              .remote = (uint32_t)target * LOCKS + number};
    if (port && (number >= LOCKS || target < 0 || target >= (int)LOCK_TARGETS))
        return RMA2_ERR_INV_VALUE;
    return post_now(port, handle, post);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

RMA2_ERROR rma2_post_descriptor(RMA2_Port port, RMA2_Handle handle, RMA2_Descriptor *descriptor)
{
    if (!port)
        return RMA2_ERR_INV_PORT;
    if (!handle || handle->port != port)
        return RMA2_ERR_INV_HANDLE;
    if (!descriptor)
        return RMA2_ERR_INV_VALUE;
    uint64_t word = descriptor->value[0];
    struct post post = {.cmd = (uint8_t)(word >> DESC_CMD_AT & 15),
                        .spec = (RMA2_Notification_Spec)(word >> SPEC_AT & 7),
                        .modifier = (RMA2_Command_Modifier)(word >> MODIFIER_AT & 31),
                        .size = (uint32_t)(word >> COUNT_AT & (SIZE_MAX_BYTES - 1)) + 1,
                        .local = descriptor->value[1],
                        .remote = descriptor->value[2]};
    if ((word >> DESC_NODE_AT & UINT16_MAX) != VELO_ID_NODE(handle->id) ||
        (word >> DESC_VPID_AT & UINT8_MAX) != VELO_ID_VPID(handle->id))
        return RMA2_ERR_INV_HANDLE;
    if ((word & 3) != WORD0_VALID)
        return RMA2_ERR_WRONG_CMD;
    if (post.cmd == RMA2_IMMEDIATE_PUT)
        return rma2_post_immediate_put(port, handle, post.size, descriptor->value[2],
                                       descriptor->value[1], post.spec, post.modifier);
    if (post.cmd == RMA2_NOTIFICATION_PUT)
        return rma2_post_notification(port, handle, (RMA2_Class)(word >> COUNT_AT),
                                      descriptor->value[1], post.spec, post.modifier);
    if (post.cmd == RMA2_LOCK_REQ)
        return rma2_post_lock(port, handle, (int)(word >> COUNT_AT & 1),
                              (uint32_t)descriptor->value[1] & LOCK_NUMBER_BITS,
                              (int32_t)(descriptor->value[1] >> LOCK_VALUE_AT),
                              (int32_t)(descriptor->value[2] >> LOCK_VALUE_AT), post.spec,
                              post.modifier);
    if (post.cmd > RMA2_QW_PUT)
        return RMA2_ERR_WRONG_CMD;
    if (is_get(&post)) {
        post.local = descriptor->value[2];
        post.remote = descriptor->value[1];
    }
    return post_move(port, handle, &post, false);
}
