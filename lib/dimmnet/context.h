/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file context.h
 * @brief A context: a slot of some engine, and what the library keeps beside it.
 */
#ifndef VELO_DIMMNET_CONTEXT_H
#define VELO_DIMMNET_CONTEXT_H

#include "engine.h"

#include "../base/compiler.h"
#include "../base/error.h"
#include "../base/order.h"
#include "../core/guard.h"
#include "../shm/wait.h"

struct velo_dimmnet {
    struct dimmnet_slot *slot;
    uint64_t process;    /* The mark of the process that opened it; see ../base/fork.h. */
    uint32_t issued;     /* Commands handed over, modulo 2^32. */
    uint32_t taken;      /* Statuses taken, modulo 2^32. */
    uint32_t taken_told; /* What the engine knows of that. */
    uint32_t written;    /* Statuses written, as of the last look. */
    int64_t spin_max_ns;
    uint64_t patterns[2]; /* What the pattern registers hold: local, remote. */
    uint32_t in_use;
};

/** Where a PID leads: a dimmnet_identity word. VELO_ERR_ARG, VELO_ERR_NO_PEER. */
int dimmnet_pid(const struct velo_dimmnet *context, uint32_t pid, uint64_t *entry);

hot_inline int dimmnet_write(struct velo_dimmnet *context, unsigned word, uint64_t value)
{
    return context->slot->engine->write(context->slot, word, value);
}

hot_inline uint64_t dimmnet_read(struct velo_dimmnet *context, unsigned word)
{
    return context->slot->engine->read(context->slot, word);
}

#endif
