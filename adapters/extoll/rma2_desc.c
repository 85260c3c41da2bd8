/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors of rma2: what a post says, as the three words that its hardware took. */
#include <limits.h>
#include <stdlib.h>

#include "rma2_internal.h"

RMA2_ERROR rma2_desc_alloc(RMA2_Port port, RMA2_Descriptor **descriptor)
{
    if (!port)
        return RMA2_ERR_INV_PORT;
    if (!descriptor)
        return RMA2_ERR_INV_VALUE;
    *descriptor = aligned_alloc(_Alignof(RMA2_Descriptor), sizeof **descriptor);
    if (!*descriptor)
        return RMA2_ERR_NO_DESC_MEM;
    **descriptor = (RMA2_Descriptor){{0}};
    return RMA2_SUCCESS;
}

RMA2_ERROR rma2_desc_free(RMA2_Port port, RMA2_Descriptor *descriptor)
{
    if (!port)
        return RMA2_ERR_INV_PORT;
    free(descriptor);
    return RMA2_SUCCESS;
}

RMA2_ERROR rma2_desc_query_free(RMA2_Port port, int *count)
{
    if (!port)
        return RMA2_ERR_INV_PORT;
    if (!count)
        return RMA2_ERR_INV_VALUE;
    *count = INT_MAX;
    return RMA2_SUCCESS;
}

/* `count`: what stands in place of the size less 1. */
static RMA2_ERROR fill_descriptor(RMA2_Descriptor *descriptor, RMA2_Handle handle,
                                  RMA2_Command command, uint64_t count, RMA2_Notification_Spec spec,
                                  RMA2_Command_Modifier modifier, uint64_t word1, uint64_t word2)
{
    if (!handle)
        return RMA2_ERR_INV_HANDLE;
    if (!descriptor || spec > RMA2_ALL_NOTIFICATIONS)
        return RMA2_ERR_INV_VALUE;
    if (modifier > MODIFIERS_ALL)
        return RMA2_ERR_WRONG_ARG;
    *descriptor = (RMA2_Descriptor){{count << COUNT_AT | (uint64_t)modifier << MODIFIER_AT |
                                         (uint64_t)spec << SPEC_AT |
                                         (uint64_t)VELO_ID_NODE(handle->id) << DESC_NODE_AT |
                                         (uint64_t)VELO_ID_VPID(handle->id) << DESC_VPID_AT |
                                         (uint64_t)command << DESC_CMD_AT | WORD0_VALID,
                                     word1, word2}};
    return RMA2_SUCCESS;
}

RMA2_ERROR rma2_desc_set_put_get(RMA2_Descriptor *descriptor, RMA2_Handle handle,
                                 RMA2_Command command, uint32_t size, RMA2_Notification_Spec spec,
                                 RMA2_Command_Modifier modifier, RMA2_NLA read_address,
                                 RMA2_NLA write_address)
{
    if (handle && (size == 0 || size > SIZE_MAX_BYTES))
        return RMA2_ERR_INV_VALUE;
    if (handle && command > RMA2_QW_PUT)
        return RMA2_ERR_WRONG_CMD;
    return fill_descriptor(descriptor, handle, command, size - 1, spec, modifier, read_address,
                           write_address);
}

RMA2_ERROR rma2_desc_set_immediate_put(RMA2_Descriptor *descriptor, RMA2_Handle handle,
                                       RMA2_Notification_Spec spec, RMA2_Command_Modifier modifier,
                                       uint32_t size, RMA2_NLA write_address, uint64_t value)
{
    if (handle && (size == 0 || size > sizeof value))
        return RMA2_ERR_INV_VALUE;
    return fill_descriptor(descriptor, handle, RMA2_IMMEDIATE_PUT, size - 1, spec, modifier,
                           write_address, value);
}

RMA2_ERROR rma2_desc_set_noti_put(RMA2_Descriptor *descriptor, RMA2_Handle handle,
                                  RMA2_Notification_Spec spec, RMA2_Command_Modifier modifier,
                                  RMA2_Class noti_class, uint64_t value)
{
    return fill_descriptor(descriptor, handle, RMA2_NOTIFICATION_PUT, noti_class, spec, modifier,
                           value, 0);
}

RMA2_ERROR rma2_desc_set_lock(RMA2_Descriptor *descriptor, RMA2_Handle handle,
                              RMA2_Notification_Spec spec, RMA2_Command_Modifier modifier,
                              uint8_t target, uint32_t number, uint32_t cmp, uint32_t add)
{
    if (handle && (target >= LOCK_TARGETS || number >= LOCKS))
        return RMA2_ERR_INV_VALUE;
    return fill_descriptor(descriptor, handle, RMA2_LOCK_REQ, target, spec, modifier,
                           (uint64_t)cmp << LOCK_VALUE_AT | number, (uint64_t)add << LOCK_VALUE_AT);
}

RMA2_ERROR rma2_desc_set_notification_value(RMA2_Descriptor *descriptor, RMA2_Class noti_class,
                                            uint64_t value)
{
    if (!descriptor)
        return RMA2_ERR_INV_VALUE;
    descriptor->value[0] = (descriptor->value[0] & ~(SIZE_MASK << COUNT_AT)) | (uint64_t)noti_class
                                                                                   << COUNT_AT;
    descriptor->value[1] = value;
    return RMA2_SUCCESS;
}
