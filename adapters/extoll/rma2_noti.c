/* SPDX-License-Identifier: Apache-2.0 */
/* Notifications of rma2: what rma.h notifies is put into a queue of the documented shape. */
#include "rma2_internal.h"

/* In a process of several threads, a wait gives the others the port so often. */
#define SHARED_SLICE_NS INT64_C(200000)

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

/* `word1`: size or class, command and modifier. */
hot_inline void push_note(struct rma2_port *port, const struct velo_rma_notification *note,
                          uint64_t type, uint64_t word0, uint64_t word1)
{
    RMA2_Notification *entry = &port->queue[port->arrived++ & port->queue_mask];
    entry->word0.value = word0;
    entry->word1.value = word1 | (uint64_t)VELO_ID_VPID(note->peer) << VPID_AT |
                         (uint64_t)VELO_ID_NODE(note->peer) << NODE_AT | type << TYPE_AT;
    if (unlikely(note->status))
        entry->word1.value |= error_of(note->status) << ERROR_AT;
}

/* The answer's command, of what has one: else 0, which is none. */
hot_inline uint64_t answer_to(uint64_t cmd)
{
    switch (cmd) {
    case RMA2_BT_GET:
        return RMA2_GET_BT_RSP;
    case RMA2_QW_GET:
        return RMA2_GET_QW_RSP;
    case RMA2_LOCK_REQ:
        return RMA2_LOCK_RSP;
    default:
        return 0;
    }
}

static uint64_t lock_word(uint64_t cookie)
{
    return cookie_part(cookie, NUMBER_AT, NUMBER_BITS) % LOCKS << LOCK_NUMBER_AT;
}

/* Word 0 of a lock's notifications, as the hardware filled it: the requester has sent the value
 * that is compared with, and knows no result yet; the completer has the lock's value from now on.
 */
struct lock_words {
    uint64_t requester;
    uint64_t completer;
};

static __attribute__((noinline)) struct lock_words end_lock(struct rma2_port *port, uint64_t cookie,
                                                            bool is_done)
{
    struct lock_op *op = &port->lock_ops[cookie_part(cookie, SLOT_AT, SLOT_BITS) % LOCK_OPS];
    bool added = is_done && (int64_t)op->old <= op->cmp;
    uint32_t value = (uint32_t)op->old + (added ? (uint32_t)op->add : 0);
    op->next = port->lock_free;
    port->lock_free = op;
    return (struct lock_words){(uint32_t)op->cmp | lock_word(cookie),
                               value | lock_word(cookie) | (uint64_t)added << LOCK_RESULT_AT};
}

/* An operation of ours is over: it becomes the notifications that it asked for. */
hot_inline void push_ours(struct rma2_port *port, const struct velo_rma_notification *note)
{
    const uint64_t cookie = note->cookie;
    const uint64_t cmd = cookie_part(cookie, CMD_AT, 4);
    const uint64_t spec = cookie_part(cookie, TYPE_AT, 3);
    const uint64_t answer = answer_to(cmd);
    const uint64_t word1 = cookie & (SIZE_MASK | MODE_MASK);
    struct lock_words word0 = {note->address, note->address};
    if (cmd == RMA2_LOCK_REQ)
        word0 = end_lock(port, cookie, note->status == VELO_OK);
    bool completer = answer && (spec & RMA2_COMPLETER_NOTIFICATION);
    if ((spec & RMA2_REQUESTER_NOTIFICATION) || (note->status && !completer))
        push_note(port, note, RMA2_REQUESTER_NOTIFICATION, word0.requester, word1 | cmd << CMD_AT);
    if (completer)
        push_note(port, note, RMA2_COMPLETER_NOTIFICATION, word0.completer,
                  word1 | answer << CMD_AT);
}

/* An operation of a peer's. */
static __attribute__((noinline)) void push_peers(struct rma2_port *port,
                                                 const struct velo_rma_notification *note)
{
    const bool is_put = note->class_ == VELO_RMA_CLASS_COMPLETER;
    uint64_t word0 = note->address;
    uint64_t len_bytes = note->len_bytes;
    if (note->op == VELO_RMA_OPERATION_FETCH_COMPARE_ADD) {
        const bool added = len_bytes > 0;
        word0 = (uint32_t)note->word | lock_word(note->cookie) | (uint64_t)added << LOCK_RESULT_AT;
        len_bytes = sizeof note->word;
    }
    push_note(port, note, is_put ? RMA2_COMPLETER_NOTIFICATION : RMA2_RESPONDER_NOTIFICATION, word0,
              (note->cookie & (CMD_MASK | MODE_MASK)) | ((len_bytes - 1) & SIZE_MASK));
}

/* Is it of rma2_post_notification()? Then it is a put of one byte, to or from that of a class; of
 * none, if it failed. */
hot_inline bool push_class(struct rma2_port *port, const struct velo_rma_notification *note)
{
    bool is_peers = note->class_ == VELO_RMA_CLASS_COMPLETER;
    uint64_t base = is_peers ? port->classes_at : (uintptr_t)port->class_marks;
    if (note->len_bytes > 1 || note->op != VELO_RMA_OPERATION_PUT ||
        note->address - base >= CLASSES)
        return false;
    push_note(port, note, is_peers ? RMA2_COMPLETER_NOTIFICATION : RMA2_REQUESTER_NOTIFICATION,
              note->cookie, (note->address - base) | (uint64_t)RMA2_NOTIFICATION_PUT << CMD_AT);
    return true;
}

hot_inline void take_one(struct rma2_port *port, const struct velo_rma_notification *note)
{
    if (unlikely(push_class(port, note)))
        return;
    if (note->class_ == VELO_RMA_CLASS_REQUESTER || note->class_ == VELO_RMA_CLASS_ERROR)
        push_ours(port, note);
    else
        push_peers(port, note);
}

/* Notifications of rma.h for which there is room: each becomes two at most. */
hot_inline uint32_t room_of(const struct rma2_port *port)
{
    return (port->queue_entries - (port->arrived - port->freed)) / 2;
}

int rma2_take_in(struct rma2_port *port, int64_t timeout_ns)
{
    struct velo_rma_notification notes[NOTES];
    uint32_t room = room_of(port);
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

hot_inline bool take_note(struct rma2_port *port, RMA2_Notification **notification)
{
    if (port->taken == port->arrived)
        return false;
    *notification = &port->queue[port->taken++ & port->queue_mask];
    return true;
}

/* For a program that looks for each: without the array of rma2_take_in(). */
hot_inline void take_in_one(struct rma2_port *port)
{
    struct velo_rma_notification note;
    if (unlikely(room_of(port) == 0))
        (void)velo_rma_progress(port->rma);
    else if (velo_rma_try_poll(port->rma, &note, 1) == 1)
        take_one(port, &note);
}

RMA2_ERROR rma2_noti_probe(RMA2_Port port, RMA2_Notification **notification)
{
    if (unlikely(!port))
        return RMA2_ERR_INV_PORT;
    if (unlikely(!notification))
        return RMA2_ERR_INV_VALUE;
    enum turn_held held = turn_take(&port->turn);
    bool is_there = take_note(port, notification);
    if (!is_there) {
        take_in_one(port);
        is_there = take_note(port, notification);
    }
    turn_give(&port->turn, held);
    if (likely(is_there))
        return RMA2_SUCCESS;
    if (rma2_has_others())
        (void)rma2_carry_on(port);
    return RMA2_NO_NOTI;
}

/* One look, which may wait. RMA2_NO_NOTI: look again. */
static RMA2_ERROR look_for_note(struct rma2_port *port, RMA2_Notification **notification,
                                uint32_t looks)
{
    int64_t slice_ns = looks % LOOKS_PER_SLICE ? 0 : SLICE_NS;
    enum turn_held held = turn_take(&port->turn);
    bool is_full = room_of(port) == 0;
    bool is_there = take_note(port, notification);
    if (held == TURN_TAKEN)
        slice_ns = SHARED_SLICE_NS;
    else if (!rma2_has_others())
        slice_ns = VELO_FOREVER;
    if (!is_there && !is_full) {
        (void)rma2_take_in(port, slice_ns);
        is_there = take_note(port, notification);
    }
    turn_give(&port->turn, held);
    if (is_there)
        return RMA2_SUCCESS;
    return is_full ? RMA2_ERR_NO_DESC_MEM : RMA2_NO_NOTI;
}

RMA2_ERROR rma2_noti_get_block(RMA2_Port port, RMA2_Notification **notification)
{
    RMA2_ERROR error;
    uint32_t looks = 1;
    if (unlikely(!port))
        return RMA2_ERR_INV_PORT;
    if (unlikely(!notification))
        return RMA2_ERR_INV_VALUE;
    while ((error = look_for_note(port, notification, looks)) == RMA2_NO_NOTI) {
        looks = rma2_carry_on(port) ? 1 : looks + 1;
        if (!__libc_single_threaded)
            sched_yield(); /* A thread that waits for the port gets it. */
    }
    return error;
}

RMA2_ERROR rma2_noti_dup(RMA2_Notification *notification, RMA2_Notification *copy)
{
    if (!notification || !copy)
        return RMA2_ERR_INV_VALUE;
    *copy = *notification;
    return RMA2_SUCCESS;
}

RMA2_ERROR rma2_noti_free(RMA2_Port port, RMA2_Notification *notification)
{
    if (unlikely(!port))
        return RMA2_ERR_INV_PORT;
    enum turn_held held = turn_take(&port->turn);
    bool is_oldest =
        port->freed != port->taken && notification == &port->queue[port->freed & port->queue_mask];
    if (likely(is_oldest)) {
        *notification = (RMA2_Notification){{0}, {0}};
        port->freed++;
    }
    turn_give(&port->turn, held);
    return is_oldest ? RMA2_SUCCESS : RMA2_ERR_INV_VALUE;
}

/* ---- what a notification says ---------------------------------------------------------------- */

static uint64_t note_field(const RMA2_Notification *notification, unsigned at, unsigned bits)
{
    return notification->word1.value >> at & ((UINT64_C(1) << bits) - 1);
}

RMA2_Command rma2_noti_get_cmd(RMA2_Notification *notification)
{
    return (RMA2_Command)note_field(notification, CMD_AT, 4);
}

RMA2_Notification_Spec rma2_noti_get_notification_type(RMA2_Notification *notification)
{
    return (RMA2_Notification_Spec)note_field(notification, TYPE_AT, 3);
}

RMA2_Nodeid rma2_noti_get_remote_nodeid(RMA2_Notification *notification)
{
    return (RMA2_Nodeid)note_field(notification, NODE_AT, 16);
}

RMA2_VPID rma2_noti_get_remote_vpid(RMA2_Notification *notification)
{
    return (RMA2_VPID)note_field(notification, VPID_AT, 8);
}

RMA2_NLA rma2_noti_get_local_address(RMA2_Notification *notification)
{
    return notification->word0.value;
}

uint32_t rma2_noti_get_size(RMA2_Notification *notification)
{
    return (uint32_t)note_field(notification, 0, SIZE_BITS) + 1;
}

uint32_t rma2_noti_get_total_size(RMA2_NLA start, RMA2_Notification *notification)
{
    (void)start; /* Only what the hardware had split began before the notification's address. */
    return rma2_noti_get_size(notification);
}

RMA2_Command_Modifier rma2_noti_get_mode(RMA2_Notification *notification)
{
    return (RMA2_Command_Modifier)note_field(notification, MODE_AT, 6);
}

uint8_t rma2_noti_get_error(RMA2_Notification *notification)
{
    return (uint8_t)note_field(notification, ERROR_AT, 3);
}

uint64_t rma2_noti_get_notiput_payload(RMA2_Notification *notification)
{
    return notification->word0.value;
}

RMA2_Class rma2_noti_get_notiput_class(RMA2_Notification *notification)
{
    return (RMA2_Class)note_field(notification, 0, 8);
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
