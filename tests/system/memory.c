/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rma.h: registered memory of one generation, and what other generations do to it. Each word of
 * memory says which operation wrote it; a word may hold what an operation wrote that was posted
 * before it is looked at, and that no other one has certainly overwritten: one that was posted
 * after the first was done, and is done itself. Once memory is deregistered nothing in it changes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

enum { WRITES_MAX = 96, ADDS_MAX = 250, KNOWN = 48 };

enum op_state { PENDING, DONE, FAILED, DOUBTFUL };

struct op {
    struct op *next_pending;
    struct op *next_told;
    uint64_t serial; /* Its cookie. */
    enum act act;
    struct generation *from, *to;
    uint32_t handle; /* Of the peer. */
    struct mem *mem; /* NULL: a notification alone. */
    uint64_t offset;
    size_t len_bytes;
    uint32_t flags;
    bool is_permitted; /* When it was posted. */
    bool is_told;      /* The owner was notified. */
    enum op_state state;
    uint64_t posted_step;
    uint64_t done_step;
    void *buf;
};

struct mem {
    struct generation *owner;
    uint32_t handle;
    uint64_t key;
    uint64_t address;
    size_t len_bytes;
    uint32_t rights;
    velo_id_t peer;
    void *buf;           /* NULL: the library's. */
    uint64_t serial;     /* Of what it holds at first; 0: zeros. */
    uint64_t ended_step; /* UINT64_MAX: registered. */
    struct op *writes[WRITES_MAX];
    uint32_t writes_len;
    uint32_t adds_posted, adds_done;
    bool seen[ADDS_MAX + 1]; /* Old values that adds returned. */
};

static struct mem *known[KNOWN]; /* The latest registrations, of whomever. */
static uint64_t known_len;

void memory_begin(void)
{
    memset(known, 0, sizeof known);
    known_len = 0;
}

/* ---- what memory may hold -------------------------------------------------------------------- */

static uint64_t word_of(uint64_t serial, size_t index)
{
    return serial ? test_mix(serial * UINT64_C(0x100000001) + index) | 1 : 0;
}

static bool covers(const struct op *op, size_t index)
{
    return index >= op->offset / 8 && index < (op->offset + op->len_bytes) / 8;
}

/* Was what stood there at `since` certainly overwritten by `at`? */
static bool is_overwritten(const struct mem *mem, size_t index, uint64_t since, uint64_t at)
{
    for (uint32_t i = 0; i < mem->writes_len; i++) {
        const struct op *op = mem->writes[i];
        if (op->state != FAILED && covers(op, index) && op->posted_step > since &&
            op->done_step <= at)
            return true;
    }
    return false;
}

static bool is_legal(const struct mem *mem, size_t index, uint64_t word, uint64_t at)
{
    if (index == 0)
        return word >= (at == run.step ? mem->adds_done : 0) && word <= mem->adds_posted;
    for (uint32_t i = mem->writes_len; i-- > 0;) {
        const struct op *op = mem->writes[i];
        if (op->state != FAILED && covers(op, index) && word == word_of(op->serial, index))
            return !is_overwritten(mem, index, op->done_step, at);
    }
    return word == word_of(mem->serial, index) && !is_overwritten(mem, index, 0, at);
}

static void check_words(const struct mem *mem, const uint64_t *words, size_t first, size_t count,
                        uint64_t at, const struct generation *reader)
{
    for (size_t i = 0; i < count; i++) {
        if (is_legal(mem, first + i, words[i], at))
            continue;
        uint64_t writer = 0;
        for (uint64_t serial = run.serial; serial > 0 && writer == 0; serial--)
            writer = words[i] == word_of(serial, first + i) ? serial : 0;
        fail_run(
            mem->owner, reader,
            "word %zu of memory %u of %s, as %s sees it, is %#llx (what operation %llu wrote), "
            "which it may not hold",
            first + i, mem->handle, name_of(mem->owner), name_of(reader),
            (unsigned long long)words[i], (unsigned long long)writer);
    }
}

/* ---- the generation of an operation
 * ---------------------------------------------------------------- */

static struct op *find_pending(const struct generation *generation, uint64_t serial)
{
    for (struct op *op = generation->pending; op != NULL; op = op->next_pending)
        if (op->serial == serial)
            return op;
    return NULL;
}

static void remove_pending(struct op *op)
{
    struct op **link = &op->from->pending;

    while (*link != op)
        link = &(*link)->next_pending;
    *link = op->next_pending;
}

static void op_ended(struct op *op, enum op_state state)
{
    bool is_read = op->act == ACT_GET || op->act == ACT_FETCH_ADD;

    remove_pending(op);
    op->state = state;
    if (state == DONE && op->done_step > run.step)
        op->done_step = run.step;
    if (is_read)
        block_freeze(op->from->process, op->buf);
    else
        block_give(op->from->process, op->buf);
    op->buf = NULL;
}

static void check_added(const struct op *op)
{
    struct mem *mem = op->mem;
    uint64_t old = *(uint64_t *)op->buf;

    if (old >= mem->adds_posted || mem->seen[old])
        fail_run(op->from, op->to, "fetch-and-add %llu returned %llu, %s",
                 (unsigned long long)op->serial, (unsigned long long)old,
                 old >= mem->adds_posted ? "which the word cannot have reached"
                                         : "as another one did");
    mem->seen[old] = true;
    mem->adds_done++;
}

static void op_done(struct op *op)
{
    if (op->to->state != LIVES) { /* It may have reached the memory of the dead port or not. */
        op_ended(op, DOUBTFUL);
        return;
    }
    if (op->mem != NULL && !op->is_permitted)
        fail_run(op->from, op->to,
                 "operation %llu ended with VELO_OK though no registration "
                 "permitted it",
                 (unsigned long long)op->serial);
    if (op->act == ACT_GET && op->len_bytes > 0)
        check_words(op->mem, op->buf, op->offset / 8, op->len_bytes / 8, op->posted_step, op->from);
    if (op->act == ACT_FETCH_ADD && op->mem != NULL)
        check_added(op);
    op_ended(op, DONE);
}

/* It has failed for this reason: rightly? */
static void op_failed(struct op *op, int status, bool was_posted)
{
    const struct mem *mem = op->mem;
    bool gave_up =
        op->from->process->desk->command.act == ACT_RMA_DISCONNECT || op->handle >= RMA_PEERS;
    bool was_refused = status == VELO_ERR_ACCESS && mem != NULL &&
                       (!op->is_permitted || mem->ended_step != UINT64_MAX);
    bool is_gone = status_fits(op->to, status) || (status == VELO_ERR_PEER_CLOSED && gave_up);

    if (!was_refused && !is_gone)
        fail_run(op->from, op->to, "operation %llu on %s ended with %s",
                 (unsigned long long)op->serial, name_of(op->to), status_name(status));
    /* The owner may carry out later what was given up. */
    op_ended(op, was_posted && !was_refused ? DOUBTFUL : FAILED);
    if (op->act == ACT_FETCH_ADD && op->state == FAILED)
        op->mem->adds_posted--;
}

void memory_ended(struct seat *seat)
{
    while (seat->generation->pending != NULL)
        op_ended(seat->generation->pending, DOUBTFUL);
    for (uint32_t i = 0; i < MEMS; i++)
        if (seat->mems[i] != NULL)
            seat->mems[i]->ended_step = run.step;
    seat->generation->told = NULL;
}

/* ---- notifications --------------------------------------------------------------------------- */

static void requester_note(const struct seat *seat, const struct velo_rma_notification *note)
{
    struct op *op = find_pending(seat->generation, note->cookie);

    if (op == NULL)
        fail_run(seat->generation, NULL,
                 "%s was notified of operation %llu (status %s), which is not under way",
                 name_of(seat->generation), (unsigned long long)note->cookie,
                 status_name(note->status));
    story_outcome("; operation %llu: %s", (unsigned long long)op->serial,
                  status_name(note->status));
    if (note->class_ == VELO_RMA_CLASS_ERROR) {
        op_failed(op, note->status, true);
        return;
    }
    if (!(op->flags & VELO_RMA_NOTIFY_REQUESTER) || note->status != VELO_OK ||
        note->peer != op->to->vpid || note->len_bytes != op->len_bytes)
        fail_run(seat->generation, op->to,
                 "the notification of operation %llu is not what was asked for",
                 (unsigned long long)op->serial);
    op_done(op);
}

static void owner_note(const struct seat *seat, const struct velo_rma_notification *note)
{
    struct op *op = seat->generation->told;
    bool is_put = note->class_ == VELO_RMA_CLASS_COMPLETER;

    while (op != NULL && op->serial != note->cookie)
        op = op->next_told;
    if (op == NULL || op->is_told || op->state == FAILED)
        fail_run(seat->generation, NULL, "%s was notified as owner of operation %llu, %s",
                 name_of(seat->generation), (unsigned long long)note->cookie,
                 op == NULL    ? "of which nobody was to tell it"
                 : op->is_told ? "twice"
                               : "which failed");
    uint64_t address = op->mem != NULL ? op->mem->address + op->offset : 0;
    if (is_put != ((op->flags & VELO_RMA_NOTIFY_COMPLETER) != 0) || note->status != VELO_OK ||
        note->peer != op->from->vpid || note->len_bytes != op->len_bytes ||
        note->address != address)
        fail_run(seat->generation, op->from,
                 "the owner's notification of operation %llu is not what was asked for",
                 (unsigned long long)op->serial);
    story_outcome("; told of operation %llu", (unsigned long long)op->serial);
    op->is_told = true;
    if (op->done_step > run.step)
        op->done_step = run.step; /* The data is visible before its notification. */
}

void memory_event(struct seat *seat, const struct event *event)
{
    const struct velo_rma_notification *note = &event->notification;

    digest(note->cookie << 16 | (uint64_t)note->class_ << 8 | (uint8_t)note->status);
    if (note->class_ == VELO_RMA_CLASS_REQUESTER || note->class_ == VELO_RMA_CLASS_ERROR)
        requester_note(seat, note);
    else
        owner_note(seat, note);
}

/* ---- steps: peers ---------------------------------------------------------------------------- */

static bool is_connected(const struct seat *seat, const struct generation *to)
{
    for (uint32_t i = 0; i < RMA_PEERS; i++)
        if (to != NULL && seat->rma_to[i] == to)
            return true;
    return false;
}

static bool step_connect(struct seat *seat)
{
    uint32_t handle = below(RMA_PEERS);
    uint32_t vpid = below(run.vpids);
    struct generation *to = run.by_vpid[vpid];

    if (!seat->generation->shape.has_rma || seat->rma_to[handle] != NULL ||
        (is_connected(seat, to) && chance(80)))
        return false;
    struct command command = {.act = ACT_RMA_CONNECT,
                              .handle = handle,
                              .id = VELO_ID(0, vpid),
                              .die_at = draw_death(2, 6)};
    story_step(seat->generation, to, "%s connects its RMA unit to id %u, which is %s",
               name_of(seat->generation), vpid, name_of(to));
    bool is_there = to != NULL && to->shape.has_rma;
    if (is_there)
        to->conns_count++;
    if (!tell(seat, &command))
        return true;
    int status = reply_of(seat)->status;
    story_status(status);
    bool is_absent = status == VELO_ERR_NO_PEER || status == VELO_TIMEOUT ||
                     status == VELO_ERR_PEER_DEAD || status == VELO_ERR_PEER_CLOSED;
    bool is_full = status == VELO_ERR_FULL && is_there && to->conns_count >= to->shape.conns_max;
    if (!edges_excuse(seat, status) && (is_there ? status != VELO_OK && !is_full : !is_absent))
        fail_run(seat->generation, to, "velo_rma_connect gave %s", status_name(status));
    seat->rma_to[handle] = status == VELO_OK ? to : NULL;
    return true;
}

/* Operations under way on this peer can no longer end well; those done before say nothing. */
static void forget_handle(const struct seat *seat, uint32_t handle)
{
    for (struct op *op = seat->generation->pending; op != NULL; op = op->next_pending)
        if (op->handle == handle)
            op->handle = RMA_PEERS;
}

static bool step_disconnect(struct seat *seat)
{
    uint32_t handle = below(RMA_PEERS);
    struct generation *to = seat->rma_to[handle];

    if (to == NULL || (to->state == LIVES && chance(50)))
        return false;
    struct command command = {
        .act = ACT_RMA_DISCONNECT, .handle = handle, .die_at = draw_death(2, 6)};
    story_step(seat->generation, to, "%s disconnects its RMA unit from %s",
               name_of(seat->generation), name_of(to));
    seat->rma_to[handle] = NULL;
    forget_handle(seat, handle);
    if (!tell(seat, &command))
        return true;
    story_status(reply_of(seat)->status);
    if (reply_of(seat)->status != VELO_OK)
        fail_run(seat->generation, to, "velo_rma_disconnect failed");
    return true;
}

/* ---- steps: memory --------------------------------------------------------------------------- */

static struct mem *new_mem(struct seat *seat, uint32_t handle)
{
    static const uint32_t rights[] = {VELO_RMA_RIGHT_READ, VELO_RMA_RIGHT_WRITE,
                                      VELO_RMA_RIGHT_READ | VELO_RMA_RIGHT_WRITE};
    struct mem *mem = keep(sizeof *mem);

    mem->owner = seat->generation;
    mem->handle = handle;
    mem->len_bytes = 8 * (1 + (size_t)below(chance(20) ? 6000 : 600));
    mem->rights = chance(80) ? VELO_RMA_RIGHT_ALL : rights[below(ARRAY_LEN(rights))];
    mem->peer = chance(90) ? VELO_RMA_PEER_ANY : VELO_ID(0, below(run.vpids));
    mem->ended_step = UINT64_MAX;
    return mem;
}

static bool step_register(struct seat *seat)
{
    uint32_t handle = below(MEMS);
    bool is_own = chance(50);

    if (!seat->generation->shape.has_rma || seat->mems[handle] != NULL)
        return false;
    struct mem *mem = new_mem(seat, handle);
    struct command command = {.act = is_own ? ACT_MEM_REGISTER : ACT_MEM_ALLOC,
                              .handle = handle,
                              .len_bytes = mem->len_bytes,
                              .flags = mem->rights,
                              .id = mem->peer,
                              .die_at = draw_death(1, 6)};
    if (is_own) {
        uint64_t *words = mem->buf = block_take(seat->process);
        if (words == NULL)
            return false;
        mem->serial = ++run.serial;
        words[0] = 0;
        for (size_t i = 1; i < mem->len_bytes / 8; i++)
            words[i] = word_of(mem->serial, i);
        command.buf = words;
    }
    story_step(seat->generation, NULL, "%s %s memory %u: %zu bytes, rights %d",
               name_of(seat->generation), is_own ? "registers" : "allocates", handle,
               mem->len_bytes, mem->rights);
    if (!tell(seat, &command))
        return true;
    if (reply_of(seat)->status != VELO_OK)
        fail_run(seat->generation, NULL, "registering gave %s",
                 status_name(reply_of(seat)->status));
    mem->key = reply_of(seat)->key;
    mem->address = reply_of(seat)->address;
    seat->mems[handle] = mem;
    known[known_len++ % KNOWN] = mem;
    return true;
}

static void memory_check(struct seat *seat)
{
    for (uint32_t i = 0; i < MEMS; i++) {
        struct mem *mem = seat->mems[i];
        void *buf = mem != NULL ? block_take(seat->process) : NULL;
        if (buf == NULL)
            continue;
        struct command command = {
            .act = ACT_MEM_READ, .handle = i, .buf = buf, .len_bytes = mem->len_bytes};
        story_step(seat->generation, NULL, "%s looks at its memory %u", name_of(seat->generation),
                   i);
        (void)tell(seat, &command);
        check_words(mem, buf, 0, mem->len_bytes / 8, run.step, seat->generation);
        block_give(seat->process, buf);
    }
}

static bool step_look(struct seat *seat)
{
    if (!seat->generation->shape.has_rma)
        return false;
    memory_check(seat);
    return true;
}

static bool deregister(struct seat *seat, uint32_t handle)
{
    struct mem *mem = seat->mems[handle];

    if (mem == NULL)
        return false;
    struct command command = {.act = ACT_MEM_DEREGISTER, .handle = handle};
    story_step(seat->generation, NULL, "%s deregisters memory %u", name_of(seat->generation),
               handle);
    seat->mems[handle] = NULL;
    mem->ended_step = run.step;
    (void)tell(seat, &command);
    story_status(reply_of(seat)->status);
    if (reply_of(seat)->status != VELO_OK)
        fail_run(seat->generation, NULL, "velo_rma_mem_deregister failed");
    block_freeze(seat->process, mem->buf);
    return true;
}

static bool step_deregister(struct seat *seat) { return deregister(seat, below(MEMS)); }

/* ---- steps: operations ----------------------------------------------------------------------- */

static bool permits(const struct mem *mem, const struct op *op)
{
    uint32_t right = op->act == ACT_GET         ? VELO_RMA_RIGHT_READ
                     : op->act == ACT_FETCH_ADD ? VELO_RMA_RIGHT_ATOMIC
                                                : VELO_RMA_RIGHT_WRITE;

    return mem->owner == op->to && mem->ended_step == UINT64_MAX && (mem->rights & right) &&
           (mem->peer == VELO_RMA_PEER_ANY || mem->peer == op->from->vpid) &&
           op->offset + op->len_bytes <= mem->len_bytes;
}

/* Mostly one of the peer's, registered; sometimes any that there ever was. */
static struct mem *some_mem(const struct generation *to)
{
    bool is_any = chance(6);

    for (int tries = 0; tries < 40; tries++) {
        struct mem *mem = known[below(KNOWN)];
        if (mem != NULL && (is_any || (mem->owner == to && mem->ended_step == UINT64_MAX)))
            return mem;
    }
    return NULL;
}

static void draw_range(struct op *op)
{
    size_t words = op->mem->len_bytes / 8;
    size_t past = chance(4) ? 3 : 0; /* Words beyond its end that it may reach. */

    op->offset = 8 * (1 + (uint64_t)below((uint32_t)words));
    size_t most = words + past - op->offset / 8;
    op->len_bytes = 8 * (size_t)below((uint32_t)(chance(50) && most > 64 ? 64 : most) + 1);
    if (op->act == ACT_FETCH_ADD)
        op->offset = 0;
    if (op->act == ACT_FETCH_ADD || op->act == ACT_PUT_IMMEDIATE)
        op->len_bytes = 8;
}

static struct op *draw_op(struct seat *seat, uint32_t handle)
{
    static const enum act acts[] = {ACT_PUT, ACT_PUT,       ACT_PUT,       ACT_PUT_IMMEDIATE,
                                    ACT_GET, ACT_FETCH_ADD, ACT_FETCH_ADD, ACT_NOTIFY};
    struct op *op = keep(sizeof *op);

    op->from = seat->generation;
    op->to = seat->rma_to[handle];
    op->handle = handle;
    op->serial = ++run.serial;
    op->act = acts[below(ARRAY_LEN(acts))];
    op->posted_step = run.step;
    op->done_step = UINT64_MAX;
    op->flags = chance(50) ? VELO_RMA_NOTIFY_REQUESTER : 0;
    bool is_read = op->act == ACT_GET || op->act == ACT_FETCH_ADD;
    if (chance(30) || op->act == ACT_NOTIFY)
        op->flags |= is_read ? VELO_RMA_NOTIFY_RESPONDER : VELO_RMA_NOTIFY_COMPLETER;
    if (op->act == ACT_NOTIFY)
        return op;
    op->mem = some_mem(op->to);
    if (op->mem == NULL || op->mem->writes_len == WRITES_MAX || op->mem->adds_posted == ADDS_MAX)
        return NULL;
    draw_range(op);
    op->is_permitted = permits(op->mem, op);
    return op;
}

/* It is under way from here on, as far as anybody knows. */
static void enlist(struct op *op)
{
    op->next_pending = op->from->pending;
    op->from->pending = op;
    if (op->flags & (VELO_RMA_NOTIFY_COMPLETER | VELO_RMA_NOTIFY_RESPONDER)) {
        op->next_told = op->to->told;
        op->to->told = op;
    }
    if (op->mem == NULL)
        return;
    if (op->act == ACT_FETCH_ADD)
        op->mem->adds_posted++;
    else if (op->act != ACT_GET && op->is_permitted)
        op->mem->writes[op->mem->writes_len++] = op;
}

static const char *op_name(const struct op *op)
{
    switch (op->act) {
    case ACT_PUT:
        return "puts";
    case ACT_PUT_IMMEDIATE:
        return "puts a word,";
    case ACT_GET:
        return "gets";
    case ACT_FETCH_ADD:
        return "fetches and adds,";
    default:
        return "notifies,";
    }
}

static void tell_op_story(const struct seat *seat, const struct op *op)
{
    if (op->mem != NULL)
        story_step(seat->generation, op->to,
                   "%s %s %zu bytes at %llu of memory %u of %s by %s (operation %llu, notify %d)",
                   name_of(seat->generation), op_name(op), op->len_bytes,
                   (unsigned long long)op->offset, op->mem->handle, name_of(op->mem->owner),
                   name_of(op->to), (unsigned long long)op->serial, op->flags);
    else
        story_step(seat->generation, op->to, "%s notifies %s (operation %llu, notify %d)",
                   name_of(seat->generation), name_of(op->to), (unsigned long long)op->serial,
                   op->flags);
}

static void posted(struct op *op, int status)
{
    story_status(status);
    run.operations++;
    if (status == VELO_OK)
        return;
    if (status == VELO_AGAIN) {
        if (op->act == ACT_FETCH_ADD)
            op->mem->adds_posted--;
        op_ended(op, FAILED);
        return;
    }
    op_failed(op, status, false);
}

static bool step_operation(struct seat *seat)
{
    uint32_t handle = below(RMA_PEERS);
    struct op *op = seat->rma_to[handle] != NULL ? draw_op(seat, handle) : NULL;

    if (op == NULL)
        return false;
    if (op->act != ACT_NOTIFY && op->act != ACT_PUT_IMMEDIATE) {
        op->buf = block_take(seat->process);
        if (op->buf == NULL)
            return false;
    }
    if (op->act == ACT_PUT)
        for (size_t i = 0; i < op->len_bytes / 8; i++)
            ((uint64_t *)op->buf)[i] = word_of(op->serial, op->offset / 8 + i);
    struct command command = {.act = op->act,
                              .handle = handle,
                              .buf = op->buf,
                              .len_bytes = op->len_bytes,
                              .key = op->mem ? op->mem->key : 0,
                              .offset = op->offset,
                              .value = word_of(op->serial, op->offset / 8),
                              .flags = op->flags,
                              .cookie = op->serial,
                              .die_at = draw_death(4, 6)};
    tell_op_story(seat, op);
    enlist(op);
    if (tell(seat, &command))
        posted(op, reply_of(seat)->status);
    return true;
}

static bool step_fence(struct seat *seat)
{
    uint32_t handle = below(RMA_PEERS);

    if (seat->rma_to[handle] == NULL)
        return false;
    struct command command = {.act = ACT_FENCE, .handle = handle};
    story_step(seat->generation, seat->rma_to[handle], "%s fences its operations on %s",
               name_of(seat->generation), name_of(seat->rma_to[handle]));
    (void)tell(seat, &command);
    return true;
}

/* ---- steps: progress ------------------------------------------------------------------------- */

static bool poll(struct seat *seat, uint32_t count)
{
    struct command command = {.act = ACT_RMA_POLL, .count = count, .die_at = draw_death(1, 6)};

    story_step(seat->generation, NULL, "%s polls %u notifications", name_of(seat->generation),
               count);
    return tell(seat, &command) && reply_of(seat)->status == VELO_OK;
}

bool memory_progress(struct seat *seat, uint32_t rounds)
{
    struct command command = {.act = ACT_RMA_PROGRESS, .count = rounds, .die_at = draw_death(2, 6)};

    if (!seat->generation->shape.has_rma)
        return false;
    story_step(seat->generation, NULL, "the RMA unit of %s makes progress",
               name_of(seat->generation));
    (void)tell(seat, &command);
    return false;
}

/* Everything on this peer has ended, and every notification was taken. */
static void check_flushed(const struct seat *seat, uint32_t handle)
{
    struct op *next;

    for (struct op *op = seat->generation->pending; op != NULL; op = next) {
        next = op->next_pending;
        if (op->handle != handle)
            continue;
        if (op->flags & VELO_RMA_NOTIFY_REQUESTER)
            fail_run(seat->generation, op->to,
                     "velo_rma_flush says that all is done, but operation %llu has left no "
                     "notification",
                     (unsigned long long)op->serial);
        op_done(op);
    }
}

static bool flush(struct seat *seat, uint32_t handle, int64_t timeout_ns)
{
    struct generation *to = seat->rma_to[handle];
    struct command command = {.act = ACT_FLUSH, .handle = handle, .timeout_ns = timeout_ns};

    story_step(seat->generation, to, "%s flushes its operations on %s", name_of(seat->generation),
               name_of(to));
    (void)tell(seat, &command);
    int status = reply_of(seat)->status;
    story_status(status);
    if (status == VELO_TIMEOUT || status == VELO_AGAIN)
        return true;
    if (status != VELO_OK && !status_fits(to, status))
        fail_run(seat->generation, to, "velo_rma_flush gave %s", status_name(status));
    while (poll(seat, 64))
        ;
    if (seat->generation != NULL)
        check_flushed(seat, handle);
    return false;
}

static bool step_flush(struct seat *seat)
{
    uint32_t handle = below(RMA_PEERS);

    if (seat->rma_to[handle] == NULL)
        return false;
    (void)flush(seat, handle, below(2) * 150 * TEST_MS);
    return true;
}

static bool step_progress(struct seat *seat)
{
    if (!seat->generation->shape.has_rma)
        return false;
    (void)memory_progress(seat, 1 + below(4));
    return true;
}

static bool step_poll(struct seat *seat)
{
    if (!seat->generation->shape.has_rma)
        return false;
    (void)poll(seat, 1 + below(8));
    return true;
}

/* A process that waits falls asleep, and looks for dead peers before. */
static bool step_wait(struct seat *seat)
{
    struct command command = {.act = ACT_RMA_WAIT,
                              .count = 1,
                              .timeout_ns = below(2) * 1500 * TEST_MS,
                              .die_at = draw_death(1, 6)};

    if (!seat->generation->shape.has_rma)
        return false;
    story_step(seat->generation, NULL, "%s waits for a notification", name_of(seat->generation));
    if (!tell(seat, &command))
        return true;
    int status = reply_of(seat)->status;
    story_status(status);
    if (status != VELO_OK && status != VELO_TIMEOUT)
        fail_run(seat->generation, NULL, "velo_rma_poll gave %s", status_name(status));
    return true;
}

const struct action memory_actions[] = {
    {"rma-connect", step_connect, 40},   {"rma-disconnect", step_disconnect, 14},
    {"rma-register", step_register, 30}, {"rma-deregister", step_deregister, 14},
    {"rma-look", step_look, 4},          {"rma-operation", step_operation, 120},
    {"rma-fence", step_fence, 6},        {"rma-flush", step_flush, 20},
    {"rma-progress", step_progress, 50}, {"rma-poll", step_poll, 30},
    {"rma-wait", step_wait, 12},         {NULL, NULL, 0},
};

/* ---- the end --------------------------------------------------------------------------------- */

bool memory_drain(struct seat *seat)
{
    bool any = false;

    if (!seat->generation->shape.has_rma)
        return false;
    (void)memory_progress(seat, 8);
    any |= poll(seat, 64);
    for (uint32_t i = 0; i < RMA_PEERS; i++)
        if (seat->rma_to[i] != NULL)
            any |= flush(seat, i, 150 * TEST_MS);
    return any;
}

void memory_drained(struct seat *seat)
{
    const struct generation *generation = seat->generation;

    if (!generation->shape.has_rma)
        return;
    for (const struct op *op = generation->pending; op != NULL; op = op->next_pending)
        if (op->handle < RMA_PEERS || (op->flags & VELO_RMA_NOTIFY_REQUESTER))
            fail_run(generation, op->to, "operation %llu on %s never ends",
                     (unsigned long long)op->serial, name_of(op->to));
    for (const struct op *op = generation->told; op != NULL; op = op->next_told)
        if (op->state == DONE && !op->is_told)
            fail_run(generation, op->from, "%s is never notified of operation %llu of %s",
                     name_of(generation), (unsigned long long)op->serial, name_of(op->from));
    memory_check(seat);
    for (uint32_t i = 0; i < MEMS; i++)
        (void)deregister(seat, i);
}
