/* SPDX-License-Identifier: Apache-2.0 */
#include "stage.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

void way_set(enum way way) { setenv("VELO_RMA_ATTACH", way == WAY_ASKED ? "0" : "1", 1); }

bool way_is_possible(enum way way)
{
    static int may_attach = -1;

    if (way != WAY_ATTACH)
        return true;
    if (may_attach < 0) {
        uint64_t value = 0, word = 1;
        struct iovec local = {&value, 8}, remote = {&word, 8};
        pid_t parent = getpid();
        pid_t child = fork();

        CHECK(child >= 0);
        if (child == 0)
            _exit(process_vm_readv(parent, &local, 1, &remote, 1, 0) == 8 ? 0 : 3);
        may_attach = child_wait(child) == 0;
        if (!may_attach)
            printf("cross-memory attach is not permitted here: left out\n");
    }
    return may_attach;
}

/* ---- the owner ------------------------------------------------------------------------------- */

struct velo_rma *rma_open(struct velo_port *port)
{
    struct velo_rma *rma = NULL;

    CHECK_OK(velo_rma_open(port, NULL, &rma));
    CHECK(rma != NULL);
    return rma;
}

struct acting {
    struct owner *owner;
    struct velo_rma *rma;
    struct velo_rma_mem *mem;
};

static void enroll(struct acting *self)
{
    struct stage *stage = self->owner->stage;

    if (stage->way == WAY_DIRECT)
        CHECK_OK(velo_rma_mem_alloc(self->rma, stage->size_bytes, stage->rights, stage->grant,
                                    &self->mem));
    else
        CHECK_OK(velo_rma_mem_register(self->rma, self->owner->memory, stage->size_bytes,
                                       stage->rights, stage->grant, &self->mem));
    stage->key = velo_rma_mem_key(self->mem);
    stage->addr = (uintptr_t)velo_rma_mem_addr(self->mem);
}

static bool obey(struct acting *self, int order)
{
    struct stage *stage = self->owner->stage;

    if (order == STAGE_MIRROR && stage->way == WAY_DIRECT)
        memcpy(self->owner->memory, velo_rma_mem_addr(self->mem), stage->size_bytes);
    if (order == STAGE_DEREGISTER)
        CHECK_OK(velo_rma_mem_deregister(self->mem, VELO_FOREVER));
    if (order == STAGE_REGISTER)
        enroll(self);
    if (order == STAGE_COUNT)
        CHECK_OK(velo_rma_counters(self->rma, &stage->counters, sizeof stage->counters));
    return order != STAGE_CLOSE && order != STAGE_STOP;
}

static void keep_notes(struct acting *self)
{
    struct stage *stage = self->owner->stage;
    struct velo_rma_notification note;

    while (velo_rma_try_poll(self->rma, &note, 1) == 1) {
        unsigned n = atomic_load(&stage->notes_len);

        stage->notes[n % NOTES_MAX] = note;
        atomic_store(&stage->notes_len, n + 1);
    }
}

static void act(void *arg)
{
    struct owner *owner = arg;
    struct stage *stage = owner->stage;
    struct velo_port *port = port_open(OWNER_VPID);
    struct acting self = {owner, rma_open(port), NULL};
    bool more = true;

    enroll(&self);
    atomic_store(&stage->ready, 1);
    while (more) {
        int order = atomic_load(&stage->order);

        if (order != STAGE_PAUSE)
            keep_notes(&self);
        if (order != 0 && order != STAGE_PAUSE) {
            more = obey(&self, order);
            if (!more)
                break;
            atomic_store(&stage->order, 0);
        } else {
            sched_yield();
        }
    }
    CHECK_OK(velo_rma_close(self.rma));
    CHECK_OK(velo_port_close(port));
    atomic_store(&stage->order, 0);
}

void owner_start(struct owner *owner, enum way way, size_t size_bytes, uint32_t rights,
                 velo_id_t grant)
{
    way_set(way);
    owner->stage = test_shared_alloc(sizeof(*owner->stage));
    owner->memory = test_shared_alloc(size_bytes);
    owner->stage->way = way;
    owner->stage->size_bytes = size_bytes;
    owner->stage->rights = rights;
    owner->stage->grant = grant;
    owner->pid = child_start(act, owner);
    for (int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS; !atomic_load(&owner->stage->ready);) {
        CHECK(test_now_ns() < end_ns);
        test_sleep_ns(100 * TEST_US);
    }
}

void owner_order(struct owner *owner, enum stage_order order)
{
    atomic_store(&owner->stage->order, order);
    if (order == STAGE_PAUSE) {
        test_sleep_ns(2 * TEST_MS);
        return;
    }
    for (int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS; atomic_load(&owner->stage->order);) {
        CHECK(test_now_ns() < end_ns);
        sched_yield();
    }
}

const unsigned char *owner_memory(struct owner *owner)
{
    owner_order(owner, STAGE_MIRROR);
    return owner->memory;
}

struct velo_rma_notification owner_note(struct owner *owner, unsigned index)
{
    for (int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;
         atomic_load(&owner->stage->notes_len) <= index;) {
        CHECK(test_now_ns() < end_ns);
        sched_yield();
    }
    return owner->stage->notes[index % NOTES_MAX];
}

void owner_stop(struct owner *owner)
{
    atomic_store(&owner->stage->order, STAGE_STOP);
    child_join(owner->pid);
}

/* ---- the requester --------------------------------------------------------------------------- */

void requester_open(struct requester *requester, int vpid)
{
    requester->port = port_open(vpid);
    requester->rma = rma_open(requester->port);
    CHECK_OK(velo_rma_connect(requester->rma, VELO_ID(0, OWNER_VPID), &requester->peer,
                              TEST_PATIENCE_NS));
}

void requester_close(struct requester *requester)
{
    CHECK_OK(velo_rma_close(requester->rma));
    CHECK_OK(velo_port_close(requester->port));
}

struct velo_rma_notification note_expect(struct velo_rma *rma)
{
    struct velo_rma_notification note;

    memset(&note, 0, sizeof(note));
    CHECK_EQ(velo_rma_poll(rma, &note, 1, TEST_PATIENCE_NS), 1);
    return note;
}

void note_none(struct velo_rma *rma)
{
    struct velo_rma_notification note;

    CHECK_EQ(velo_rma_try_poll(rma, &note, 1), 0);
}

void flush(struct velo_rma_peer *peer) { CHECK_OK(velo_rma_flush(peer, TEST_PATIENCE_NS)); }

void pace(struct velo_rma *rma)
{
    (void)velo_rma_progress(rma);
    sched_yield();
}

void clean_up_after(int vpid)
{
    struct velo_port *port = port_open(vpid);

    CHECK_OK(velo_rma_close(rma_open(port)));
    CHECK_OK(velo_port_close(port));
}
