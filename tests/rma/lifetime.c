/* SPDX-License-Identifier: Apache-2.0 */
/* Memory, peers and processes that go away while they are in use. */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stage.h"

/* ---- deregistering under fire ---------------------------------------------------------------- */

enum { TARGET_BYTES_MAX = 300000, HAMMERS = 2 };
#define TARGET_BYTES scaled(TARGET_BYTES_MAX, 3000)

struct target {
    _Atomic velo_rma_key_t key;
    atomic_ulong hits[HAMMERS];
    atomic_int stop, ready;
};

struct hammer {
    struct target *target;
    int me;
};

/* Put and get as fast as possible; whatever is not refused must succeed. */
static void hammer_on(void *arg)
{
    const struct hammer *self = arg;
    struct target *target = self->target;
    static unsigned char data[TARGET_BYTES_MAX], back[TARGET_BYTES_MAX];
    struct requester me;
    struct rng rng = {test_seed() + (uint64_t)self->me};

    requester_open(&me, REQUESTER_VPID + self->me);
    memset(data, 0xaa, sizeof(data));
    atomic_fetch_add(&target->ready, 1);
    while (!atomic_load(&target->stop)) {
        velo_rma_key_t key = atomic_load(&target->key);
        size_t len = rng_below(&rng, 2) ? 64 : TARGET_BYTES;
        int status = rng_below(&rng, 4)
                         ? velo_rma_put(me.peer, data, len, velo_rma_place(key, 0), 0, 0)
                         : velo_rma_get(me.peer, back, len, velo_rma_place(key, 0), 0, 0);
        struct velo_rma_notification note;

        while (velo_rma_try_poll(me.rma, &note, 1) == 1)
            CHECK_STATUS(note.status, VELO_ERR_ACCESS);
        if (status == VELO_OK)
            atomic_fetch_add(&target->hits[self->me], 1);
        else
            CHECK(status == VELO_ERR_ACCESS || status == VELO_AGAIN);
        if (status == VELO_ERR_ACCESS)
            sched_yield(); /* There will be another key. */
    }
    requester_close(&me);
}

static void wait_for_hits(struct velo_rma *rma, struct target *target)
{
    unsigned long start[HAMMERS];
    int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;

    for (int i = 0; i < HAMMERS; i++)
        start[i] = atomic_load(&target->hits[i]);
    for (int i = 0; i < HAMMERS; i++)
        while (atomic_load(&target->hits[i]) < start[i] + 3) {
            CHECK(test_now_ns() < end_ns);
            pace(rma);
        }
}

static void check_untouched(struct velo_rma *rma, const unsigned char *memory, unsigned char value)
{
    int64_t look_ns = (int64_t)scaled(TEST_MS, TEST_MS / 20);

    for (int64_t end_ns = test_now_ns() + look_ns; test_now_ns() < end_ns;)
        pace(rma);
    for (size_t i = 0; i < TARGET_BYTES; i++)
        CHECK_EQ(memory[i], value);
}

TEST(nobody_touches_memory_after_its_deregistration)
{
    const int rounds = (int)scaled(30, 4);

    FOR_EACH_WAY(way)
    {
        struct target *target = test_shared_alloc(sizeof(*target));
        size_t mapped = (TARGET_BYTES + 4095) & ~(size_t)4095;
        struct hammer hammers[HAMMERS];
        pid_t children[HAMMERS];
        struct rng rng = {test_seed()};

        way_set(way);
        for (int i = 0; i < HAMMERS; i++) {
            hammers[i] = (struct hammer){target, i};
            children[i] = child_start(hammer_on, &hammers[i]);
        }
        struct velo_port *port = port_open(OWNER_VPID);
        struct velo_rma *rma = rma_open(port);
        while (atomic_load(&target->ready) < HAMMERS)
            sched_yield();
        for (int round = 0; round < rounds; round++) {
            unsigned char *memory;
            struct velo_rma_mem *mem;

            if (way == WAY_DIRECT) {
                CHECK_OK(velo_rma_mem_alloc(rma, TARGET_BYTES, VELO_RMA_RIGHT_ALL,
                                            VELO_RMA_PEER_ANY, &mem));
                memory = velo_rma_mem_addr(mem);
                check_untouched(rma, memory, 0); /* The same pages as in the last round. */
            } else {
                memory =
                    mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                CHECK(memory != MAP_FAILED);
                CHECK_OK(velo_rma_mem_register(rma, memory, TARGET_BYTES, VELO_RMA_RIGHT_ALL,
                                               VELO_RMA_PEER_ANY, &mem));
            }
            atomic_store(&target->key, velo_rma_mem_key(mem));
            wait_for_hits(rma, target);
            test_sleep_ns(rng_below(&rng, 100000));
            CHECK_OK(velo_rma_mem_deregister(mem, VELO_FOREVER));
            if (way == WAY_DIRECT)
                continue;
            /* A late access finds no memory, or is seen. */
            if (round % 2) {
                memset(memory, 0x77, TARGET_BYTES);
                check_untouched(rma, memory, 0x77);
            }
            CHECK_EQ(munmap(memory, mapped), 0);
        }
        atomic_store(&target->stop, 1);
        for (int i = 0; i < HAMMERS; i++)
            child_join(children[i]);
        CHECK_OK(velo_rma_close(rma));
        CHECK_OK(velo_port_close(port));
    }
}

TEST(deregistering_goes_on_when_a_requester_is_killed)
{
    const int rounds = (int)scaled(20, 4);

    FOR_EACH_WAY(way)
    {
        static unsigned char memory[TARGET_BYTES_MAX];
        struct target *target = test_shared_alloc(sizeof(*target));
        struct velo_port *port = port_open(OWNER_VPID);
        struct velo_rma *rma = rma_open(port);
        struct rng rng = {test_seed()};

        way_set(way);
        for (int round = 0; round < rounds; round++) {
            struct hammer hammer = {target, 0};
            struct velo_rma_mem *mem;
            int64_t start_ns;
            pid_t child;

            if (way == WAY_DIRECT)
                CHECK_OK(velo_rma_mem_alloc(rma, TARGET_BYTES, VELO_RMA_RIGHT_ALL,
                                            VELO_RMA_PEER_ANY, &mem));
            else
                CHECK_OK(velo_rma_mem_register(rma, memory, TARGET_BYTES, VELO_RMA_RIGHT_ALL,
                                               VELO_RMA_PEER_ANY, &mem));
            atomic_store(&target->key, velo_rma_mem_key(mem));
            atomic_store(&target->hits[0], 0);
            child = child_start(hammer_on, &hammer);
            while (atomic_load(&target->hits[0]) < 3)
                pace(rma);
            test_sleep_ns(rng_below(&rng, 300000));
            child_kill(child);
            start_ns = test_now_ns();
            CHECK_OK(velo_rma_mem_deregister(mem, VELO_FOREVER));
            CHECK(test_now_ns() - start_ns < TEST_PATIENCE_NS / 10);
        }
        CHECK_OK(velo_rma_close(rma));
        CHECK_OK(velo_port_close(port));
        clean_up_after(REQUESTER_VPID);
    }
}

/* ---- owners that go -------------------------------------------------------------------------- */

static void post_and_forget(struct requester *me, velo_rma_key_t key, uint64_t *local, int *status)
{
    *status = velo_rma_put(me->peer, local, 8, velo_rma_place(key, 0), 0, 0);
    if (*status == VELO_OK)
        *status =
            velo_rma_get(me->peer, local, 8, velo_rma_place(key, 0), VELO_RMA_NOTIFY_REQUESTER, 0);
    if (*status == VELO_OK)
        *status = velo_rma_notify(me->peer, VELO_RMA_NOTIFY_COMPLETER, 0);
}

/* Go on until the owner's end is noticed. */
static int until_noticed(struct requester *me, velo_rma_key_t key)
{
    int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;
    uint64_t local = 0;
    int status = VELO_OK;

    while (status == VELO_OK || status == VELO_AGAIN) {
        struct velo_rma_notification note;

        CHECK(test_now_ns() < end_ns);
        post_and_forget(me, key, &local, &status);
        while (velo_rma_try_poll(me->rma, &note, 1) == 1)
            CHECK(note.class_ == VELO_RMA_CLASS_REQUESTER || note.status == VELO_ERR_PEER_DEAD ||
                  note.status == VELO_ERR_PEER_CLOSED);
    }
    return status;
}

TEST(requesters_learn_that_an_owner_was_killed_and_its_name_can_be_used_again)
{
    const int rounds = (int)scaled(8, 2);

    FOR_EACH_WAY(way)
    {
        for (int round = 0; round < rounds; round++) {
            struct owner owner;
            struct requester me;
            uint64_t word;

            owner_start(&owner, way, 64, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
            requester_open(&me, REQUESTER_VPID);
            CHECK_OK(
                velo_rma_put_immediate(me.peer, 1, 8, velo_rma_place(owner.stage->key, 0), 0, 0));
            flush(me.peer);
            child_kill(owner.pid);
            CHECK_STATUS(until_noticed(&me, owner.stage->key), VELO_ERR_PEER_DEAD);
            CHECK_STATUS(velo_rma_flush(me.peer, TEST_PATIENCE_NS), VELO_ERR_PEER_DEAD);
            CHECK_STATUS(velo_rma_get(me.peer, &word, 8, velo_rma_place(owner.stage->key, 0), 0, 0),
                         VELO_ERR_PEER_DEAD);
            requester_close(&me);
        }
        clean_up_after(OWNER_VPID);
    }
}

TEST(who_only_stores_to_mapped_memory_learns_that_its_owner_was_killed)
{
    struct owner owner;
    struct requester me;
    struct velo_rma_notification note;
    int status = VELO_OK;

    owner_start(&owner, WAY_DIRECT, 64, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
    requester_open(&me, REQUESTER_VPID);
    child_kill(owner.pid);
    /* Where the owner has to be asked, what waits for its answers has an end. */
    for (int i = 0; i < 20000 && (status == VELO_OK || status == VELO_AGAIN); i++) {
        if (status == VELO_AGAIN)
            (void)velo_rma_try_poll(me.rma, &note, 1);
        status = velo_rma_put_immediate(me.peer, 1, 8, velo_rma_place(owner.stage->key, 0), 0, 0);
    }
    CHECK_STATUS(status, VELO_ERR_PEER_DEAD);
    requester_close(&me);
    clean_up_after(OWNER_VPID);
}

TEST(the_status_of_a_peer_shows_its_end_at_once)
{
    FOR_EACH_WAY(way)
    {
        struct owner owner;
        struct requester me;

        owner_start(&owner, way, 64, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
        requester_open(&me, REQUESTER_VPID);
        CHECK_OK(velo_rma_peer_status(me.peer));
        child_kill(owner.pid);
        CHECK_STATUS(velo_rma_peer_status(me.peer), VELO_ERR_PEER_DEAD);
        CHECK_STATUS(
            velo_rma_put_immediate(me.peer, 1, 8, velo_rma_place(owner.stage->key, 0), 0, 0),
            VELO_ERR_PEER_DEAD);
        requester_close(&me);
        clean_up_after(OWNER_VPID);

        owner_start(&owner, way, 64, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
        requester_open(&me, REQUESTER_VPID);
        owner_stop(&owner);
        CHECK_STATUS(velo_rma_peer_status(me.peer), VELO_ERR_PEER_CLOSED);
        requester_close(&me);
    }
}

TEST(requesters_learn_that_an_owner_closed)
{
    FOR_EACH_WAY(way)
    {
        struct owner owner;
        struct requester me;

        owner_start(&owner, way, 64, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
        requester_open(&me, REQUESTER_VPID);
        CHECK_OK(velo_rma_put_immediate(me.peer, 1, 8, velo_rma_place(owner.stage->key, 0), 0, 0));
        flush(me.peer);
        owner_stop(&owner);
        CHECK_STATUS(until_noticed(&me, owner.stage->key), VELO_ERR_PEER_CLOSED);
        CHECK_STATUS(velo_rma_flush(me.peer, TEST_PATIENCE_NS), VELO_ERR_PEER_CLOSED);
        requester_close(&me);
    }
}

TEST(what_an_owner_answered_before_it_closed_is_done)
{
    enum { GETS = 8 };
    struct owner owner;
    struct requester me;
    struct velo_rma_notification note;
    uint64_t words[GETS] = {0};

    owner_start(&owner, WAY_ASKED, 64, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
    requester_open(&me, REQUESTER_VPID);
    CHECK_OK(velo_rma_put_immediate(me.peer, 6, 8, velo_rma_place(owner.stage->key, 0), 0, 0));
    flush(me.peer);
    for (int i = 0; i < GETS; i++)
        CHECK_OK(velo_rma_get(me.peer, &words[i], 8, velo_rma_place(owner.stage->key, 0),
                              VELO_RMA_NOTIFY_REQUESTER, 0));
    /* Their requests are in the owner's ring then, which it empties before it obeys. */
    test_sleep_ns(20 * TEST_MS);
    owner_order(&owner, STAGE_COUNT);
    owner_stop(&owner);
    CHECK_STATUS(velo_rma_peer_status(me.peer), VELO_ERR_PEER_CLOSED);
    for (int i = 0; i < GETS; i++) {
        CHECK_EQ(velo_rma_poll(me.rma, &note, 1, TEST_PATIENCE_NS), 1);
        CHECK_OK(note.status);
        CHECK_EQ(words[i], 6);
    }
    requester_close(&me);
}

TEST(operations_under_way_end_with_an_error_when_their_owner_is_killed)
{
    enum { OPS = 20 };
    static unsigned char local[OPS][50000];
    const size_t bytes = scaled(sizeof(local[0]), 5000);
    struct owner owner;
    struct requester me;
    int64_t start_ns;

    owner_start(&owner, WAY_ASKED, bytes, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
    requester_open(&me, REQUESTER_VPID);
    owner_order(&owner, STAGE_PAUSE);
    for (unsigned i = 0; i < OPS; i++)
        CHECK_OK(i % 2 ? velo_rma_get(me.peer, local[i], bytes, velo_rma_place(owner.stage->key, 0),
                                      0, i)
                       : velo_rma_put(me.peer, local[i], bytes, velo_rma_place(owner.stage->key, 0),
                                      0, i));
    child_kill(owner.pid);
    start_ns = test_now_ns();
    CHECK_STATUS(velo_rma_flush(me.peer, TEST_PATIENCE_NS), VELO_ERR_PEER_DEAD);
    CHECK(test_now_ns() - start_ns < TEST_PATIENCE_NS / 10);
    for (unsigned i = 0; i < OPS; i++) {
        struct velo_rma_notification note = note_expect(me.rma);

        CHECK_EQ(note.class_, VELO_RMA_CLASS_ERROR);
        CHECK_EQ(note.status, VELO_ERR_PEER_DEAD);
        CHECK_EQ(note.cookie, i);
        CHECK_EQ(note.peer, OWNER_VPID);
        CHECK_EQ(note.len_bytes, 0);
    }
    requester_close(&me);
    clean_up_after(OWNER_VPID);
}

TEST(a_wait_for_a_notification_ends_when_the_owner_of_an_operation_dies)
{
    struct owner owner;
    struct requester me;
    uint64_t word;

    owner_start(&owner, WAY_ASKED, 64, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
    requester_open(&me, REQUESTER_VPID);
    owner_order(&owner, STAGE_PAUSE);
    CHECK_OK(velo_rma_get(me.peer, &word, 8, velo_rma_place(owner.stage->key, 0),
                          VELO_RMA_NOTIFY_REQUESTER, 5));
    child_kill(owner.pid);
    CHECK_EQ(note_expect(me.rma).status, VELO_ERR_PEER_DEAD);
    requester_close(&me);
    clean_up_after(OWNER_VPID);
}

/* ---- requesters that go ---------------------------------------------------------------------- */

TEST(an_owner_goes_on_when_requesters_are_killed_in_the_middle)
{
    const int rounds = (int)scaled(30, 4);

    FOR_EACH_WAY(way)
    {
        struct rng rng = {test_seed()};
        struct owner owner;

        owner_start(&owner, way, TARGET_BYTES, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
        for (int round = 0; round < rounds; round++) {
            struct target *target = test_shared_alloc(sizeof(*target));
            struct hammer hammer = {target, 0};
            struct requester me;
            uint64_t old;
            pid_t child;

            atomic_store(&target->key, owner.stage->key);
            child = child_start(hammer_on, &hammer);
            while (atomic_load(&target->hits[0]) < 1)
                sched_yield();
            test_sleep_ns(rng_below(&rng, 500000));
            child_kill(child);
            /* The same name again. */
            requester_open(&me, REQUESTER_VPID);
            CHECK_OK(velo_rma_fetch_compare_add(me.peer, &old, velo_rma_place(owner.stage->key, 0),
                                                0, 0, 0, 0));
            flush(me.peer);
            requester_close(&me);
        }
        owner_stop(&owner);
    }
}

TEST(disconnecting_ends_what_is_under_way_and_leaves_local_memory_alone)
{
    enum { OPS = 10 };
    static unsigned char local[OPS][40000];
    const size_t bytes = scaled(sizeof(local[0]), 2000);
    struct velo_rma_peer *again;
    struct owner owner;
    struct requester me;
    unsigned char byte = 1;

    owner_start(&owner, WAY_ASKED, bytes, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
    requester_open(&me, REQUESTER_VPID);
    CHECK_OK(velo_rma_put_immediate(me.peer, 0xff, 1, velo_rma_place(owner.stage->key, 0), 0, 0));
    flush(me.peer);
    owner_order(&owner, STAGE_PAUSE);
    for (unsigned i = 0; i < OPS; i++)
        CHECK_OK(velo_rma_get(me.peer, local[i], bytes, velo_rma_place(owner.stage->key, 0), 0, i));
    CHECK_OK(velo_rma_disconnect(me.peer));
    for (unsigned i = 0; i < OPS; i++) {
        struct velo_rma_notification note = note_expect(me.rma);

        CHECK_EQ(note.class_, VELO_RMA_CLASS_ERROR);
        CHECK_EQ(note.status, VELO_ERR_PEER_CLOSED);
        CHECK_EQ(note.cookie, i);
    }
    /* The answers come, to nobody; that of the next connection does. */
    CHECK_OK(velo_rma_connect(me.rma, VELO_ID(0, OWNER_VPID), &again, TEST_PATIENCE_NS));
    CHECK_OK(velo_rma_get(again, &byte, 1, velo_rma_place(owner.stage->key, 0), 0, 0));
    owner_order(&owner, STAGE_COUNT);
    flush(again);
    note_none(me.rma);
    CHECK_EQ(byte, 0xff);
    for (size_t i = 0; i < sizeof(local); i++)
        CHECK_EQ(((unsigned char *)local)[i], 0);
    requester_close(&me);
    owner_stop(&owner);
}

TEST(an_operation_whose_registration_ends_meanwhile_is_refused_and_reported)
{
    static unsigned char local[200000];
    struct velo_rma_counters mine;
    struct velo_rma_notification note;
    struct owner owner;
    struct requester me;

    owner_start(&owner, WAY_ASKED, sizeof(local), VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
    requester_open(&me, REQUESTER_VPID);
    owner_order(&owner, STAGE_PAUSE);
    CHECK_OK(velo_rma_put(me.peer, local, sizeof(local), velo_rma_place(owner.stage->key, 0),
                          VELO_RMA_NOTIFY_COMPLETER, 9));
    owner_order(&owner, STAGE_DEREGISTER); /* Before it looks at its messages again. */
    CHECK_STATUS(velo_rma_flush(me.peer, TEST_PATIENCE_NS), VELO_OK);
    note = note_expect(me.rma);
    CHECK_EQ(note.class_, VELO_RMA_CLASS_ERROR);
    CHECK_EQ(note.op, VELO_RMA_OPERATION_PUT);
    CHECK_EQ(note.status, VELO_ERR_ACCESS);
    CHECK_EQ(note.cookie, 9);
    CHECK_OK(velo_rma_counters(me.rma, &mine, sizeof mine));
    CHECK_EQ(mine.refused, 1);
    owner_order(&owner, STAGE_COUNT);
    CHECK(owner.stage->counters.refused_peers >= 1);
    CHECK_EQ(atomic_load(&owner.stage->notes_len), 0);
    requester_close(&me);
    owner_stop(&owner);
}

/* ---- atomics --------------------------------------------------------------------------------- */

enum { ADDERS = 3 };
#define LOCKS (int)scaled(100, 10)

struct sum {
    velo_rma_key_t key;
    int adds;
    atomic_int ready;
};

struct adder {
    struct sum *sum;
    int me;
};

/* As a lock: compare-and-swap word 1 from 0, add to word 2 with plain gets and puts. */
static void add_under_lock(const struct requester *me, velo_rma_key_t key)
{
    uint64_t old, value;

    do {
        CHECK_OK(velo_rma_fetch_compare_add(me->peer, &old, velo_rma_place(key, 8), 0, 1, 0, 0));
        flush(me->peer);
    } while (old != 0);
    CHECK_OK(velo_rma_get(me->peer, &value, 8, velo_rma_place(key, 16), 0, 0));
    flush(me->peer);
    value++;
    CHECK_OK(velo_rma_put(me->peer, &value, 8, velo_rma_place(key, 16), 0, 0));
    CHECK_OK(velo_rma_fence(me->peer));
    CHECK_OK(
        velo_rma_fetch_compare_add(me->peer, &old, velo_rma_place(key, 8), 1, UINT64_MAX, 0, 0));
    flush(me->peer);
    CHECK_EQ(old, 1);
}

static void add_up(void *arg)
{
    const struct adder *self = arg;
    struct sum *sum = self->sum;
    struct requester me;
    uint64_t last = 0, old = 0;

    requester_open(&me, REQUESTER_VPID + self->me);
    atomic_fetch_add(&sum->ready, 1);
    while (atomic_load(&sum->ready) < ADDERS)
        sched_yield();
    for (int i = 0; i < sum->adds; i++) {
        CHECK_OK(velo_rma_fetch_compare_add(me.peer, &old, velo_rma_place(sum->key, 0), 0, 1,
                                            VELO_RMA_ADD_ALWAYS, 0));
        flush(me.peer);
        CHECK(i == 0 || old > last); /* Nobody sees an old value twice. */
        last = old;
    }
    for (int i = 0; i < LOCKS; i++)
        add_under_lock(&me, sum->key);
    requester_close(&me);
}

TEST(atomic_updates_of_several_processes_sum_exactly)
{
    test_needs_shared_memory(); /* Each by a message and its answer: minutes. */
    FOR_EACH_WAY(way)
    {
        struct sum *sum = test_shared_alloc(sizeof(*sum));
        struct adder adders[ADDERS];
        pid_t children[ADDERS];
        struct owner owner;
        uint64_t words[3], mine = 0;

        owner_start(&owner, way, 64, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
        sum->key = owner.stage->key;
        sum->adds = (int)scaled(way == WAY_DIRECT ? 2000000 : 3000, 50);
        for (int i = 0; i < ADDERS; i++) {
            adders[i] = (struct adder){sum, i};
            children[i] = child_start(add_up, &adders[i]);
        }
        /* The owner of the memory adds, too, with the processor's atomics. */
        while (way != WAY_DIRECT && atomic_load(&sum->ready) < ADDERS)
            sched_yield();
        for (; way != WAY_DIRECT && mine < 3000000; mine++)
            atomic_fetch_add((_Atomic uint64_t *)(void *)owner.memory, 1);
        for (int i = 0; i < ADDERS; i++)
            child_join(children[i]);
        memcpy(words, owner_memory(&owner), sizeof(words));
        CHECK_EQ(words[0], (uint64_t)ADDERS * (uint64_t)sum->adds + mine);
        CHECK_EQ(words[1], 0);
        CHECK_EQ(words[2], (uint64_t)ADDERS * (uint64_t)LOCKS);
        owner_stop(&owner);
    }
}

/* ---- a child with its parent's number -------------------------------------------------------- */

/* Both are the first process of a PID namespace: each is number 1 to itself. */
struct namesakes {
    char memory[8]; /* Of the parent; the child has a copy. */
    velo_rma_key_t key;
    atomic_int *skipped, *is_put;
};

/* As child_start(), which compares process ids: they differ inside. */
static pid_t start_inside(void (*body)(void *arg), void *arg)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child != 0)
        return child;
    CHECK_EQ(prctl(PR_SET_PDEATHSIG, SIGKILL), 0);
    body(arg);
    _exit(0);
}

static void put_to_parent(void *arg)
{
    struct namesakes *both = arg;
    struct requester me;
    struct velo_rma_notification note;
    CHECK_EQ(getpid(), 1);
    requester_open(&me, REQUESTER_VPID);
    CHECK_OK(velo_rma_put(me.peer, "written", sizeof both->memory, velo_rma_place(both->key, 0),
                          VELO_RMA_NOTIFY_REQUESTER, 0));
    CHECK_EQ(velo_rma_poll(me.rma, &note, 1, TEST_PATIENCE_NS), 1);
    CHECK_EQ(note.class_, VELO_RMA_CLASS_REQUESTER);
    CHECK_EQ(both->memory[0], 0); /* It is not what was put to. */
    atomic_store(both->is_put, 1);
    requester_close(&me);
}

static void own_in_namespace(void *arg)
{
    struct namesakes *both = arg;
    struct velo_port *port = port_open(OWNER_VPID);
    struct velo_rma *rma;
    struct velo_rma_mem *mem;
    CHECK_EQ(getpid(), 1);
    CHECK_OK(velo_rma_open(port, NULL, &rma));
    CHECK_OK(velo_rma_mem_register(rma, both->memory, sizeof both->memory, VELO_RMA_RIGHT_ALL,
                                   VELO_RMA_PEER_ANY, &mem));
    both->key = velo_rma_mem_key(mem);
    if (!test_unshare(CLONE_NEWPID)) {
        atomic_store(both->skipped, 1);
    } else {
        pid_t child = start_inside(put_to_parent, both);
        int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;
        while (!atomic_load(both->is_put) && test_now_ns() < end_ns)
            (void)velo_rma_progress(rma);
        child_join(child);
        CHECK_EQ(memcmp(both->memory, "written", sizeof both->memory), 0);
    }
    CHECK_OK(velo_rma_mem_deregister(mem, VELO_FOREVER));
    CHECK_OK(velo_rma_close(rma));
    CHECK_OK(velo_port_close(port));
}

static void enter_namespace(void *arg)
{
    const struct namesakes *both = arg;
    if (test_unshare(CLONE_NEWPID))
        child_join(start_inside(own_in_namespace, arg));
    else
        atomic_store(both->skipped, 1);
}

TEST(a_child_with_the_number_of_its_parent_puts_to_the_parent_not_to_its_own_copy)
{
    test_needs_shared_memory();
    struct namesakes both = {.skipped = test_shared_alloc(sizeof(atomic_int)),
                             .is_put = test_shared_alloc(sizeof(atomic_int))};
    child_join(child_start(enter_namespace, &both));
    if (atomic_load(both.skipped))
        test_skip("no PID namespaces here");
}

/* ---- forks ----------------------------------------------------------------------------------- */

struct inherited {
    struct velo_rma *rma;
    struct velo_rma_peer *peer;
    struct velo_rma_mem *mem;
};

static void close_what_is_the_parents(void *arg)
{
    const struct inherited *of_parent = arg;
    struct velo_rma_peer *peer;

    CHECK_STATUS(velo_rma_connect(of_parent->rma, VELO_ID(0, OWNER_VPID), &peer, 0),
                 VELO_ERR_STATE);
    CHECK(strstr(velo_last_error(), "parent") != NULL);
    CHECK_OK(velo_rma_disconnect(of_parent->peer));
    CHECK_OK(velo_rma_mem_deregister(of_parent->mem, VELO_FOREVER));
    CHECK_OK(velo_rma_close(of_parent->rma));
}

TEST(a_child_that_closes_the_unit_of_its_parent_closes_nothing)
{
    struct velo_port *port = port_open(OWNER_VPID);
    struct inherited inherited;
    char word[8] = "before";

    CHECK_OK(velo_rma_open(port, NULL, &inherited.rma));
    CHECK_OK(velo_rma_mem_alloc(inherited.rma, sizeof word, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY,
                                &inherited.mem));
    CHECK_OK(
        velo_rma_connect(inherited.rma, VELO_ID(0, OWNER_VPID), &inherited.peer, TEST_PATIENCE_NS));
    child_join(child_start(close_what_is_the_parents, &inherited));
    CHECK_OK(velo_rma_put(inherited.peer, word, sizeof word,
                          velo_rma_place(velo_rma_mem_key(inherited.mem), 0), 0, 0));
    CHECK_OK(velo_rma_flush(inherited.peer, TEST_PATIENCE_NS));
    CHECK_EQ(memcmp(velo_rma_mem_addr(inherited.mem), word, sizeof word), 0);
    CHECK_OK(velo_rma_disconnect(inherited.peer));
    CHECK_OK(velo_rma_mem_deregister(inherited.mem, VELO_FOREVER));
    CHECK_OK(velo_rma_close(inherited.rma));
    CHECK_OK(velo_port_close(port));
}
