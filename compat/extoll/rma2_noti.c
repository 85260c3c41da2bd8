/* SPDX-License-Identifier: Apache-2.0 */
/* Notifications of rma2: what rma.h notifies is put into a queue of the documented shape. */
#include "rma2_internal.h"

/* In a process of several threads, a wait gives the others the port so often. */
#define SLICE_NS INT64_C(200000)

/* Word 1. */
#define VPID_AT 23
#define NODE_AT 32
#define TYPE_AT 48
#define CMD_AT 51
#define MODE_AT 55
#define ERROR_AT 61
#define SIZE_MASK ((UINT64_C(1) << VPID_AT) - 1)
/* Word 0 of a lock. */
#define LOCK_NUMBER_AT 32
#define LOCK_NUMBER_MASK UINT64_C(0x7fffffff)
#define LOCK_RESULT_AT 63

/* ---- from rma.h ------------------------------------------------------------------------------ */

static uint64_t error_of(int status)
{
    switch (status) {
    case VELO_OK:
        return 0;
    case VELO_ERR_ACCESS:
        return 1;
    case VELO_ERR_PEER_CLOSED:
    case VELO_ERR_PEER_DEAD:
        return 2;
    default:
        return 3;
    }
}

static void push(struct rma2_port *port, const struct velo_rma_notification *note,
                 const struct cookie *cookie, uint32_t type, uint64_t word0, uint64_t low)
{
    RMA2_Notification *entry = &port->queue[port->arrived++ % QUEUE_ENTRIES];
    entry->word0.value = word0;
    entry->word1.value = low | (uint64_t)VELO_ID_VPID(note->peer) << VPID_AT |
                         (uint64_t)VELO_ID_NODE(note->peer) << NODE_AT | (uint64_t)type << TYPE_AT |
                         (uint64_t)cookie->cmd << CMD_AT | (uint64_t)cookie->mode << MODE_AT |
                         error_of(note->status) << ERROR_AT;
}

static uint8_t answer_to(uint8_t cmd)
{
    switch (cmd) {
    case RMA2_BT_GET:
        return RMA2_GET_BT_RSP;
    case RMA2_QW_GET:
        return RMA2_GET_QW_RSP;
    case RMA2_LOCK_REQ:
        return RMA2_LOCK_RSP;
    default:
        return cmd;
    }
}

/* The outcome of a lock, as it stands in word 0. */
static uint64_t end_lock(struct rma2_port *port, const struct cookie *cookie, bool is_done)
{
    struct lock_op *op = &port->lock_ops[cookie->slot % LOCK_OPS];
    bool added = is_done && (int64_t)op->old <= op->cmp;
    uint64_t word = (uint32_t)op->old | (uint64_t)(cookie->number % LOCKS) << LOCK_NUMBER_AT |
                    (uint64_t)added << LOCK_RESULT_AT;
    op->next = port->lock_free;
    port->lock_free = op;
    return word;
}

/* An operation of ours is over: it becomes the notifications that it asked for. */
static void push_ours(struct rma2_port *port, const struct velo_rma_notification *note)
{
    struct cookie cookie = cookie_unpack(note->cookie);
    struct cookie answer = cookie;
    answer.cmd = answer_to(cookie.cmd);
    bool comes_back = answer.cmd != cookie.cmd;
    uint64_t low = (cookie.size - 1) & SIZE_MASK;
    uint64_t word0 = note->address;
    if (cookie.cmd == RMA2_LOCK_REQ)
        word0 = end_lock(port, &cookie, note->status == VELO_OK);
    bool completer = comes_back && (cookie.spec & RMA2_COMPLETER_NOTIFICATION);
    if ((cookie.spec & RMA2_REQUESTER_NOTIFICATION) || (note->status && !completer))
        push(port, note, &cookie, RMA2_REQUESTER_NOTIFICATION, word0, low);
    if (completer)
        push(port, note, &answer, RMA2_COMPLETER_NOTIFICATION, word0, low);
}

/* An operation of a peer's. */
static void push_peers(struct rma2_port *port, const struct velo_rma_notification *note)
{
    struct cookie cookie = cookie_unpack(note->cookie);
    bool is_put = note->class_ == VELO_RMA_CLASS_COMPLETER;
    uint64_t word0 = cookie.cmd == RMA2_LOCK_REQ
                         ? (uint64_t)(cookie.number % LOCKS) << LOCK_NUMBER_AT
                         : note->address;
    push(port, note, &cookie, is_put ? RMA2_COMPLETER_NOTIFICATION : RMA2_RESPONDER_NOTIFICATION,
         word0, (note->len_bytes - 1) & SIZE_MASK);
}

/* Is it of rma2_post_notification()? Then it is a put of no bytes, to or from a byte of a class. */
static bool push_class(struct rma2_port *port, const struct velo_rma_notification *note)
{
    static const struct cookie cookie = {.cmd = RMA2_NOTIFICATION_PUT};
    bool is_peers = note->class_ == VELO_RMA_CLASS_COMPLETER;
    uint64_t base = is_peers ? port->classes_at : (uintptr_t)port->class_marks;
    if (note->op != VELO_RMA_OPERATION_PUT || note->len_bytes > 0 ||
        note->address - base >= CLASSES)
        return false;
    push(port, note, &cookie, is_peers ? RMA2_COMPLETER_NOTIFICATION : RMA2_REQUESTER_NOTIFICATION,
         note->cookie, note->address - base);
    return true;
}

static void take_one(struct rma2_port *port, const struct velo_rma_notification *note)
{
    if (push_class(port, note))
        return;
    if (note->class_ == VELO_RMA_CLASS_REQUESTER || note->class_ == VELO_RMA_CLASS_ERROR)
        push_ours(port, note);
    else
        push_peers(port, note);
}

int rma2_take_in(struct rma2_port *port, int64_t timeout_ns)
{
    struct velo_rma_notification notes[NOTES];
    uint32_t room = ((uint32_t)QUEUE_ENTRIES - (port->arrived - port->freed)) / 2;
    if (unlikely(room == 0)) {
        (void)velo_rma_progress(port->rma);
        return 0;
    }
    int max = room < NOTES ? (int)room : NOTES;
    int count = timeout_ns ? velo_rma_poll(port->rma, notes, max, timeout_ns)
                           : velo_rma_try_poll(port->rma, notes, max);
    for (int i = 0; i < count; i++)
        take_one(port, &notes[i]);
    return count;
}

/* ---- the queue ------------------------------------------------------------------------------- */

static bool take(struct rma2_port *port, RMA2_Notification **notification)
{
    if (port->taken == port->arrived)
        return false;
    *notification = &port->queue[port->taken++ % QUEUE_ENTRIES];
    return true;
}

RMA2_ERROR rma2_noti_probe(RMA2_Port port, RMA2_Notification **notification)
{
    if (unlikely(!port))
        return RMA2_ERR_INV_PORT;
    if (unlikely(!notification))
        return RMA2_ERR_INV_VALUE;
    enum turn_held held = turn_take(&port->turn);
    bool is_there = take(port, notification);
    if (!is_there && rma2_take_in(port, 0) > 0)
        is_there = take(port, notification);
    turn_give(&port->turn, held);
    return is_there ? RMA2_SUCCESS : RMA2_NO_NOTI;
}

/* One look, which may wait. RMA2_NO_NOTI: look again. */
static RMA2_ERROR look(struct rma2_port *port, RMA2_Notification **notification)
{
    enum turn_held held = turn_take(&port->turn);
    bool is_full = port->arrived - port->freed >= QUEUE_ENTRIES - 1;
    bool is_there = take(port, notification);
    if (!is_there && !is_full) {
        (void)rma2_take_in(port, held == TURN_ALONE ? VELO_FOREVER : SLICE_NS);
        is_there = take(port, notification);
    }
    turn_give(&port->turn, held);
    if (is_there)
        return RMA2_SUCCESS;
    return is_full ? RMA2_ERR_NO_DESC_MEM : RMA2_NO_NOTI;
}

RMA2_ERROR rma2_noti_get_block(RMA2_Port port, RMA2_Notification **notification)
{
    RMA2_ERROR error;
    if (unlikely(!port))
        return RMA2_ERR_INV_PORT;
    if (unlikely(!notification))
        return RMA2_ERR_INV_VALUE;
    while ((error = look(port, notification)) == RMA2_NO_NOTI)
        if (!__libc_single_threaded)
            sched_yield(); /* Who waits for the port gets it. */
    return error;
}

RMA2_ERROR rma2_noti_free(RMA2_Port port, RMA2_Notification *notification)
{
    if (unlikely(!port))
        return RMA2_ERR_INV_PORT;
    enum turn_held held = turn_take(&port->turn);
    bool is_oldest =
        port->freed != port->taken && notification == &port->queue[port->freed % QUEUE_ENTRIES];
    if (likely(is_oldest)) {
        *notification = (RMA2_Notification){{0}, {0}};
        port->freed++;
    }
    turn_give(&port->turn, held);
    return is_oldest ? RMA2_SUCCESS : RMA2_ERR_INV_VALUE;
}

/* ---- what a notification says ---------------------------------------------------------------- */

static uint64_t field(const RMA2_Notification *notification, unsigned at, unsigned bits)
{
    return notification->word1.value >> at & ((UINT64_C(1) << bits) - 1);
}

RMA2_Command rma2_noti_get_cmd(RMA2_Notification *notification)
{
    return (RMA2_Command)field(notification, CMD_AT, 4);
}

RMA2_Notification_Spec rma2_noti_get_notification_type(RMA2_Notification *notification)
{
    return (RMA2_Notification_Spec)field(notification, TYPE_AT, 3);
}

RMA2_Nodeid rma2_noti_get_remote_nodeid(RMA2_Notification *notification)
{
    return (RMA2_Nodeid)field(notification, NODE_AT, 16);
}

RMA2_VPID rma2_noti_get_remote_vpid(RMA2_Notification *notification)
{
    return (RMA2_VPID)field(notification, VPID_AT, 8);
}

RMA2_NLA rma2_noti_get_local_address(RMA2_Notification *notification)
{
    return notification->word0.value;
}

uint32_t rma2_noti_get_size(RMA2_Notification *notification)
{
    return (uint32_t)field(notification, 0, VPID_AT) + 1;
}

uint8_t rma2_noti_get_error(RMA2_Notification *notification)
{
    return (uint8_t)field(notification, ERROR_AT, 3);
}

uint64_t rma2_noti_get_notiput_payload(RMA2_Notification *notification)
{
    return notification->word0.value;
}

RMA2_Class rma2_noti_get_notiput_class(RMA2_Notification *notification)
{
    return (RMA2_Class)field(notification, 0, 8);
}

int32_t rma2_noti_get_lock_value(RMA2_Notification *notification)
{
    return (int32_t)(uint32_t)notification->word0.value;
}

uint32_t rma2_noti_get_lock_number(RMA2_Notification *notification)
{
    return (uint32_t)(notification->word0.value >> LOCK_NUMBER_AT & LOCK_NUMBER_MASK);
}

uint8_t rma2_noti_get_lock_result(RMA2_Notification *notification)
{
    return (uint8_t)(notification->word0.value >> LOCK_RESULT_AT);
}
