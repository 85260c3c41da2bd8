/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file source.h
 * @brief Where messages come from, as they say it.
 */
#ifndef VELO_CORE_SOURCE_H
#define VELO_CORE_SOURCE_H

#include <stddef.h>
#include <string.h>

#include <velo/velo.h>

#include "../base/compiler.h"

/** The source of messages: a port or a ring, one generation of it, and the pointer that the
 *  receiver keeps for it. In struct velo_msg the three stand in the same order. */
struct msg_source {
    velo_id_t id;
    uint32_t generation;
    void *user;
};

_Static_assert(offsetof(struct velo_msg, generation) - offsetof(struct velo_msg, source) ==
                       offsetof(struct msg_source, generation) &&
                   offsetof(struct velo_msg, user) - offsetof(struct velo_msg, source) ==
                       offsetof(struct msg_source, user) &&
                   offsetof(struct velo_msg, user) + sizeof(void *) -
                           offsetof(struct velo_msg, source) ==
                       sizeof(struct msg_source),
               "a message is handed out with its source in one piece");

/** Tell the source of a message, in one piece. */
hot_inline void msg_source_tell(const struct msg_source *source, struct velo_msg *msg)
{
    memcpy((char *)msg + offsetof(struct velo_msg, source), source, sizeof *source);
}

#endif
