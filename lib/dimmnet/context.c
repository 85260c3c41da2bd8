/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: opening, windows, PIDs, statuses. */
#include "context.h"

#include <stdlib.h>

#include "../base/fork.h"
#include "../base/sized.h"
#include "board.h"
#include "choice.h"

#define OPEN_NAP_NS 1000000
/* Looks at the ring between two looks at the clock. */
#define LOOKS_PER_CLOCK 64
/* Statuses after which the engine is told that they are taken: a quarter of the ring. */
#define TAKEN_TOLD (VELO_DIMMNET_STATUS_ENTRIES / 4u)

/* ---- open and close -------------------------------------------------------------------------- */

static int open_within(const struct seg_domain *domain, const struct velo_dimmnet_attr *attr,
                       struct dimmnet_slot **slot, int64_t timeout_ns)
{
    const struct dimmnet_engine *engine = dimmnet_engine();
    if (!engine)
        return VELO_ERR_ARG;
    int64_t end_ns = wait_end_ns(wait_now_ns(), timeout_ns);
    for (;;) {
        int status = engine->open(domain, attr->lid, attr->wid, slot);
        if (!status_is_absent(status) || wait_now_ns() >= end_ns)
            return status;
        if (wait_nap(OPEN_NAP_NS))
            return velo_fail(VELO_ERR_INTERRUPTED,
                             "a signal handler ran before the board was there");
    }
}

static int check_pgid(struct dimmnet_slot *slot, const struct velo_dimmnet_attr *attr)
{
    uint64_t identity = slot->engine->read(slot, VELO_DIMMNET_REGISTER_IDENTITY);
    if (attr->pgid == 0 || attr->pgid == velo_dimmnet_identity_pgid(identity))
        return VELO_OK;
    return velo_fail(VELO_ERR_ACCESS,
                     "process %u of board %u is of process group %u, not %u; whoever made the "
                     "board says which",
                     velo_dimmnet_identity_wid(identity), attr->lid,
                     velo_dimmnet_identity_pgid(identity), attr->pgid);
}

int velo_dimmnet_open(const struct velo_dimmnet_attr *given, struct velo_dimmnet **out,
                      int64_t timeout_ns)
{
    static const struct velo_dimmnet_attr defaults = VELO_DIMMNET_ATTR_INIT;
    struct velo_dimmnet_attr attr = VELO_DIMMNET_ATTR_INIT;
    struct seg_domain domain = {0};
    if (!out || !given || timeout_ns < VELO_FOREVER)
        return velo_fail(VELO_ERR_ARG, "attr or context is NULL, or timeout_ns is below -1");
    *out = NULL;
    int status = sized_attr(&attr, sizeof attr, given, &defaults, "VELO_DIMMNET_ATTR_INIT");
    if (status)
        return status;
    if (attr.wid < VELO_DIMMNET_WID_ANY || attr.wid >= (int)VELO_DIMMNET_PROCESSES_MAX)
        return velo_fail(VELO_ERR_ARG, "wid is %d; give 0 to %u, or VELO_DIMMNET_WID_ANY", attr.wid,
                         VELO_DIMMNET_PROCESSES_MAX - 1);
    status = dimmnet_domain(&domain, attr.domain, attr.group, attr.lid);
    if (status)
        return status;
    struct velo_dimmnet *context = calloc(1, sizeof *context);
    if (!context)
        return velo_fail(VELO_ERR_NO_MEMORY, "no memory for a context");
    context->process = fork_mark();
    status = open_within(&domain, &attr, &context->slot, timeout_ns);
    if (status == VELO_OK) {
        status = check_pgid(context->slot, &attr);
        if (status)
            context->slot->engine->close(context->slot);
    }
    if (status) {
        free(context);
        return status;
    }
    context->issued = (uint32_t)dimmnet_read(context, VELO_DIMMNET_REGISTER_DONE);
    context->taken = (uint32_t)dimmnet_read(context, VELO_DIMMNET_REGISTER_STATUS_READ);
    context->taken_told = context->taken;
    context->written = context->taken;
    context->spin_max_ns = context->slot->engine->sleep_looks ? 0 : wait_spin_max_ns();
    *out = context;
    return VELO_OK;
}

static void tell_taken(struct velo_dimmnet *context)
{
    (void)dimmnet_write(context, VELO_DIMMNET_REGISTER_STATUS_READ, context->taken);
    context->taken_told = context->taken;
}

int velo_dimmnet_close(struct velo_dimmnet *context)
{
    if (!context || !fork_is_ours(context->process))
        return VELO_OK;
    GUARD_UNUSED(context, "context");
    tell_taken(context);
    context->slot->engine->close(context->slot);
    free(context);
    return VELO_OK;
}

/* ---- looking --------------------------------------------------------------------------------- */

int velo_dimmnet_identity(const struct velo_dimmnet *context,
                          struct velo_dimmnet_identity *identity)
{
    if (!context || !identity)
        return velo_fail(VELO_ERR_ARG, "context or identity is NULL");
    struct dimmnet_slot *slot = context->slot;
    uint64_t word = slot->engine->read(slot, VELO_DIMMNET_REGISTER_IDENTITY);
    *identity = (struct velo_dimmnet_identity){.lid = velo_dimmnet_identity_lid(word),
                                               .wid = velo_dimmnet_identity_wid(word),
                                               .pgid = velo_dimmnet_identity_pgid(word),
                                               .region_words = slot->engine->region_words(slot)};
    return VELO_OK;
}

static cold_path int no_pid(uint32_t pid)
{
    if (pid >= VELO_DIMMNET_PIDS_MAX) {
        (void)velo_fail(VELO_ERR_ARG, "pid is %u; give 0 to %u", pid, VELO_DIMMNET_PIDS_MAX - 1);
        return VELO_ERR_ARG;
    }
    (void)velo_fail(VELO_ERR_NO_PEER,
                    "the board's table has no PID %u; enter it with velo_dimmnet_board_pid()", pid);
    return VELO_ERR_NO_PEER;
}

int dimmnet_pid(const struct velo_dimmnet *context, uint32_t pid, uint64_t *entry)
{
    if (likely(pid < VELO_DIMMNET_PIDS_MAX)) {
        *entry = order_read_entry(&context->slot->pids[pid]);
        if (likely(*entry))
            return VELO_OK;
    }
    return no_pid(pid);
}

int velo_dimmnet_lookup(const struct velo_dimmnet *context, unsigned pid, unsigned *lid,
                        unsigned *wid)
{
    uint64_t entry;
    if (!context)
        return velo_fail(VELO_ERR_ARG, "context is NULL");
    int status = dimmnet_pid(context, pid, &entry);
    if (status)
        return status;
    if (lid)
        *lid = velo_dimmnet_identity_lid(entry);
    if (wid)
        *wid = velo_dimmnet_identity_wid(entry);
    return VELO_OK;
}

int velo_dimmnet_peer_status(struct velo_dimmnet *context, unsigned pid)
{
    uint64_t entry;
    if (!context)
        return velo_fail(VELO_ERR_ARG, "context is NULL");
    int status = dimmnet_pid(context, pid, &entry);
    return status ? status
                  : context->slot->engine->peer_status(context->slot,
                                                       velo_dimmnet_identity_lid(entry));
}

uint64_t *velo_dimmnet_write_window(struct velo_dimmnet *context, unsigned window)
{
    return context && window < VELO_DIMMNET_WRITE_WINDOWS
               ? context->slot->write + (size_t)window * VELO_DIMMNET_WINDOW_WORDS
               : NULL;
}

const uint64_t *velo_dimmnet_prefetch(const struct velo_dimmnet *context)
{
    return context ? context->slot->prefetch : NULL;
}

uint64_t *velo_dimmnet_llcm(struct velo_dimmnet *context)
{
    return context ? context->slot->llcm : NULL;
}

int velo_dimmnet_refresh(struct velo_dimmnet *context, uint32_t first_word, uint32_t len_words)
{
    if (!context || first_word >= DIMMNET_PREFETCH_WORDS ||
        len_words > DIMMNET_PREFETCH_WORDS - first_word)
        return velo_fail(VELO_ERR_ARG,
                         "context is NULL, or %u words from word %u are not inside the Prefetch "
                         "Windows, which have %u",
                         len_words, first_word, DIMMNET_PREFETCH_WORDS);
    context->slot->engine->flush(context->slot, first_word, len_words);
    return VELO_OK;
}

/* ---- statuses -------------------------------------------------------------------------------- */

hot_inline bool is_there(struct velo_dimmnet *context)
{
    if (context->taken != context->written)
        return true;
    context->written = (uint32_t)dimmnet_read(context, VELO_DIMMNET_REGISTER_STATUS_WRITE);
    return context->taken != context->written;
}

hot_inline void take_status(struct velo_dimmnet *context, struct velo_dimmnet_status *status)
{
    const uint64_t *entry = context->slot->llcm + VELO_DIMMNET_STATUS_LLCM_WORD +
                            context->taken % VELO_DIMMNET_STATUS_ENTRIES;
    uint64_t word = order_read_status(entry);
    context->taken++;
    if (unlikely(context->taken - context->taken_told >= TAKEN_TOLD))
        tell_taken(context);
    if (!status)
        return;
    status->kind = velo_dimmnet_status_kind(word);
    status->memory = velo_dimmnet_status_memory(word);
    status->tag = velo_dimmnet_status_tag(word);
    status->wid = velo_dimmnet_status_src_wid(word);
    status->lid = velo_dimmnet_status_src_lid(word);
    status->len_words = velo_dimmnet_status_words(word);
}

int velo_dimmnet_poll(struct velo_dimmnet *context, struct velo_dimmnet_status *status)
{
    GUARD(context, "context");
    if (unlikely(!context))
        return VELO_ERR_ARG;
    if (!is_there(context))
        return VELO_AGAIN;
    take_status(context, status);
    return VELO_OK;
}

static cold_path int await_status(struct velo_dimmnet *context, int64_t timeout_ns)
{
    int64_t start_ns = wait_now_ns();
    int64_t end_ns = wait_end_ns(start_ns, timeout_ns);
    int64_t spin_end_ns = start_ns + context->spin_max_ns;
    struct dimmnet_slot *slot = context->slot;
    while (timeout_ns != 0 && wait_now_ns() < (spin_end_ns < end_ns ? spin_end_ns : end_ns))
        for (int i = 0; i < LOOKS_PER_CLOCK; i++) {
            if (is_there(context))
                return VELO_OK;
            order_pause();
        }
    for (;;) {
        int64_t left_ns = end_ns - wait_now_ns();
        if (is_there(context))
            return VELO_OK;
        if (timeout_ns == 0 || left_ns <= 0)
            return VELO_TIMEOUT;
        int status = slot->engine->sleep(slot, context->written,
                                         left_ns < WAIT_SLICE_NS ? left_ns : WAIT_SLICE_NS);
        if (status)
            return status;
    }
}

int velo_dimmnet_wait(struct velo_dimmnet *context, struct velo_dimmnet_status *status,
                      int64_t timeout_ns)
{
    GUARD(context, "context");
    if (unlikely(!context || timeout_ns < VELO_FOREVER))
        return VELO_ERR_ARG;
    if (!is_there(context)) {
        int waited = await_status(context, timeout_ns);
        if (waited)
            return waited;
    }
    take_status(context, status);
    return VELO_OK;
}

/* ---- the controller's word ------------------------------------------------------------------- */

int velo_dimmnet_error(struct velo_dimmnet *context)
{
    if (!context)
        return velo_fail(VELO_ERR_ARG, "context is NULL");
    int error = (int)dimmnet_read(context, VELO_DIMMNET_REGISTER_ERROR);
    (void)dimmnet_write(context, VELO_DIMMNET_REGISTER_ERROR, 0);
    return error;
}

int velo_dimmnet_quiet(struct velo_dimmnet *context, int64_t timeout_ns)
{
    GUARD(context, "context");
    if (unlikely(!context || timeout_ns < VELO_FOREVER))
        return VELO_ERR_ARG;
    int64_t end_ns = 0;
    while ((uint32_t)dimmnet_read(context, VELO_DIMMNET_REGISTER_DONE) != context->issued) {
        int64_t now_ns = wait_now_ns();
        end_ns = end_ns ? end_ns : wait_end_ns(now_ns, timeout_ns);
        if (now_ns >= end_ns)
            return VELO_TIMEOUT;
        order_pause();
    }
    return VELO_OK;
}
