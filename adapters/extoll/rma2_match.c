/* SPDX-License-Identifier: Apache-2.0 */
/* Taking the next notification of rma2 if it is one of a kind. */
#include "rma2_internal.h"

/* A wait gives other threads the port, and looks after the process's other ports, so often. */
#define MATCH_SLICE_NS INT64_C(200000)

struct wanted {
    RMA2_Command cmd;
    RMA2_Notification_Spec type;
    RMA2_Nodeid nodeid;
    RMA2_VPID vpid;
    RMA2_NLA nla;
    bool is_last_nla;  /* The address behind what was moved. */
    int64_t number;    /* Of a lock; -1: of none, or each. */
    RMA2_Class class_; /* RMA2_CLASS_ANY: each, and what has none. */
};

static bool is_of(RMA2_Command cmd, RMA2_Command wanted)
{
    if (wanted == RMA2_GETS)
        return cmd == RMA2_BT_GET || cmd == RMA2_QW_GET;
    if (wanted == RMA2_PUTS)
        return cmd == RMA2_BT_PUT || cmd == RMA2_QW_PUT || cmd == RMA2_IMMEDIATE_PUT;
    return wanted == RMA2_ANY || cmd == wanted;
}

static bool is_lock(RMA2_Command cmd) { return cmd == RMA2_LOCK_REQ || cmd == RMA2_LOCK_RSP; }

static bool note_fits(RMA2_Notification *note, const struct wanted *wanted)
{
    RMA2_Command cmd = rma2_noti_get_cmd(note);
    RMA2_NLA before = wanted->is_last_nla ? rma2_noti_get_size(note) : 0;
    bool is_command = wanted->number < 0
                          ? is_of(cmd, wanted->cmd)
                          : is_lock(cmd) && rma2_noti_get_lock_number(note) == wanted->number;
    return is_command && wanted->type == rma2_noti_get_notification_type(note) &&
           (wanted->nodeid == RMA2_NODEID_ANY ||
            wanted->nodeid == rma2_noti_get_remote_nodeid(note)) &&
           (wanted->vpid == RMA2_VPID_ANY || wanted->vpid == rma2_noti_get_remote_vpid(note)) &&
           (wanted->class_ == RMA2_CLASS_ANY ||
            wanted->class_ == rma2_noti_get_notiput_class(note)) &&
           (wanted->nla == RMA2_ANY_NLA ||
            wanted->nla - before == rma2_noti_get_local_address(note));
}

/* Look at the next notification; wait for it at most so long. */
static RMA2_ERROR look_at_next(RMA2_Port port, const struct wanted *wanted,
                               RMA2_Notification **notification, int64_t timeout_ns)
{
    RMA2_ERROR error = RMA2_NO_NOTI;
    enum turn_held held = turn_take(&port->turn);
    if (port->taken == port->arrived) {
        if (port->arrived - port->freed > port->queue_entries - 2)
            error = RMA2_ERR_NO_DESC_MEM;
        (void)rma2_take_in(port, timeout_ns);
    }
    if (port->taken != port->arrived) {
        *notification = &port->queue[port->taken & port->queue_mask];
        error = note_fits(*notification, wanted) ? RMA2_SUCCESS : RMA2_ERR_NO_MATCH;
        port->taken += error == RMA2_SUCCESS;
    }
    turn_give(&port->turn, held);
    return error;
}

static RMA2_ERROR match_next(RMA2_Port port, const struct wanted *wanted, bool waits,
                             RMA2_Notification **notification)
{
    RMA2_ERROR error;
    if (!port)
        return RMA2_ERR_INV_PORT;
    if (!notification)
        return RMA2_ERR_INV_VALUE;
    *notification = NULL;
    while ((error = look_at_next(port, wanted, notification, waits ? MATCH_SLICE_NS : 0)) ==
           RMA2_NO_NOTI) {
        (void)rma2_carry_on(port);
        if (!waits)
            return RMA2_NO_NOTI;
    }
    if (error == RMA2_ERR_NO_DESC_MEM && !waits)
        error = RMA2_NO_NOTI;
    return error;
}

RMA2_ERROR rma2_noti_match(RMA2_Port port, RMA2_Command cmd, RMA2_Nodeid nodeid, RMA2_VPID vpid,
                           RMA2_Notification_Spec type, RMA2_NLA nla, int flags,
                           RMA2_Notification **notification)
{
    const struct wanted wanted = {.cmd = cmd,
                                  .type = type,
                                  .nodeid = nodeid,
                                  .vpid = vpid,
                                  .nla = nla,
                                  .is_last_nla = ((uint32_t)flags & RMA2_MATCH_LAST_NLA_FLAG) != 0,
                                  .number = -1,
                                  .class_ = RMA2_CLASS_ANY};
    return match_next(port, &wanted, ((uint32_t)flags & RMA2_BLOCK_FLAG) != 0, notification);
}

RMA2_ERROR rma2_noti_match_block(RMA2_Port port, RMA2_Command cmd, RMA2_Nodeid nodeid,
                                 RMA2_VPID vpid, RMA2_Notification_Spec type, RMA2_NLA nla,
                                 int flags, RMA2_Notification **notification)
{
    return rma2_noti_match(port, cmd, nodeid, vpid, type, nla,
                           (int)((uint32_t)flags | RMA2_BLOCK_FLAG), notification);
}

static RMA2_ERROR match_class(RMA2_Port port, RMA2_Class noti_class, RMA2_Nodeid nodeid,
                              RMA2_VPID vpid, bool waits, RMA2_Notification **notification)
{
    const struct wanted wanted = {.cmd = RMA2_NOTIFICATION_PUT,
                                  .type = RMA2_COMPLETER_NOTIFICATION,
                                  .nodeid = nodeid,
                                  .vpid = vpid,
                                  .nla = RMA2_ANY_NLA,
                                  .number = -1,
                                  .class_ = noti_class};
    return match_next(port, &wanted, waits, notification);
}

RMA2_ERROR rma2_noti_noti_match(RMA2_Port port, RMA2_Class noti_class, RMA2_Nodeid nodeid,
                                RMA2_VPID vpid, RMA2_Notification **notification)
{
    return match_class(port, noti_class, nodeid, vpid, false, notification);
}

RMA2_ERROR rma2_noti_noti_match_block(RMA2_Port port, RMA2_Class noti_class, RMA2_Nodeid nodeid,
                                      RMA2_VPID vpid, RMA2_Notification **notification)
{
    return match_class(port, noti_class, nodeid, vpid, true, notification);
}

static RMA2_ERROR match_lock(RMA2_Port port, uint32_t number, RMA2_Nodeid nodeid, RMA2_VPID vpid,
                             bool waits, RMA2_Notification **notification)
{
    const struct wanted wanted = {.type = RMA2_RESPONDER_NOTIFICATION,
                                  .nodeid = nodeid,
                                  .vpid = vpid,
                                  .nla = RMA2_ANY_NLA,
                                  .number = number,
                                  .class_ = RMA2_CLASS_ANY};
    return match_next(port, &wanted, waits, notification);
}

RMA2_ERROR rma2_noti_lock_match(RMA2_Port port, uint32_t number, RMA2_Nodeid nodeid, RMA2_VPID vpid,
                                RMA2_Notification **notification)
{
    return match_lock(port, number, nodeid, vpid, false, notification);
}

RMA2_ERROR rma2_noti_lock_match_block(RMA2_Port port, uint32_t number, RMA2_Nodeid nodeid,
                                      RMA2_VPID vpid, RMA2_Notification **notification)
{
    return match_lock(port, number, nodeid, vpid, true, notification);
}
