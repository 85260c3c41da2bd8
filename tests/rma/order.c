/* SPDX-License-Identifier: Apache-2.0 */
/* The order of operations, and their behaviour when something is full. */
#include <sched.h>
#include <string.h>

#include "stage.h"

/* ---- data before its notification ------------------------------------------------------------ */

enum { BLOCKS = 16, BLOCK_WORDS_MAX = 6000 };
#define BLOCK_WORDS scaled(BLOCK_WORDS_MAX, 300)
#define HAMMER_NOTES scaled(1000, 60)

/* An owner that checks each block when it is told of it. */
struct checker {
    enum way way;
    uint64_t *memory;
    atomic_int ready;
    atomic_uint checked;
    velo_rma_key_t key;
};

static void check_blocks(void *arg)
{
    struct checker *c = arg;
    struct velo_port *port = port_open(OWNER_VPID);
    struct velo_rma *rma = rma_open(port);
    size_t bytes = sizeof(uint64_t) * BLOCKS * BLOCK_WORDS;
    uint64_t *memory = c->memory;
    struct velo_rma_mem *mem;

    if (c->way == WAY_DIRECT) {
        CHECK_OK(velo_rma_mem_alloc(rma, bytes, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY, &mem));
        memory = velo_rma_mem_addr(mem);
    } else {
        CHECK_OK(
            velo_rma_mem_register(rma, memory, bytes, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY, &mem));
    }
    c->key = velo_rma_mem_key(mem);
    atomic_store(&c->ready, 1);
    for (uint64_t i = 0; i < HAMMER_NOTES; i++) {
        struct velo_rma_notification note = note_expect(rma);

        CHECK_EQ(note.cookie, i);              /* In order, none lost. */
        for (size_t w = BLOCK_WORDS; w-- > 0;) /* The last were written last. */
            CHECK_EQ(memory[i % BLOCKS * BLOCK_WORDS + w], i + 1);
        atomic_store(&c->checked, (unsigned)i + 1);
    }
    CHECK_OK(velo_rma_close(rma));
    CHECK_OK(velo_port_close(port));
}

/* Try until there is room. */
#define POST(rma, call)                                                                            \
    do {                                                                                           \
        int status_;                                                                               \
        while ((status_ = (call)) == VELO_AGAIN)                                                   \
            pace(rma);                                                                             \
        CHECK_OK(status_);                                                                         \
    } while (0)

/* With a completer notification of the put itself, or with a notification of its own after it. */
static void hammer(enum way way, bool separately)
{
    struct checker *c = test_shared_alloc(sizeof(*c));
    static uint64_t local[BLOCKS][BLOCK_WORDS_MAX];
    const size_t block_bytes = sizeof(uint64_t) * BLOCK_WORDS;
    struct requester me;
    pid_t child;

    way_set(way);
    c->way = way;
    c->memory = test_shared_alloc(sizeof(uint64_t) * BLOCKS * BLOCK_WORDS);
    child = child_start(check_blocks, c);
    requester_open(&me, REQUESTER_VPID);
    while (!atomic_load(&c->ready))
        sched_yield();
    for (uint64_t i = 0; i < HAMMER_NOTES; i++) {
        uint64_t *block = local[i % BLOCKS];

        while (i - atomic_load(&c->checked) >= BLOCKS)
            pace(me.rma);
        for (size_t w = 0; w < BLOCK_WORDS; w++)
            block[w] = i + 1;
        POST(me.rma, velo_rma_put(me.peer, block, block_bytes,
                                  velo_rma_place(c->key, i % BLOCKS * block_bytes),
                                  separately ? 0 : VELO_RMA_NOTIFY_COMPLETER, i));
        if (separately)
            POST(me.rma, velo_rma_notify(me.peer, VELO_RMA_NOTIFY_COMPLETER, i));
    }
    flush(me.peer);
    while (atomic_load(&c->checked) < HAMMER_NOTES)
        sched_yield();
    child_join(child);
    requester_close(&me);
}

TEST(data_is_there_before_the_notification_of_its_put)
{
    FOR_EACH_WAY(way)
    hammer(way, false);
}

TEST(a_notification_arrives_after_what_was_put_before_it)
{
    FOR_EACH_WAY(way)
    hammer(way, true);
}

TEST(data_is_here_before_the_notification_of_its_get)
{
    enum { WORDS = 600 };
    static uint64_t local[8][WORDS];
    const uint64_t gets = scaled(2000, 20);

    FOR_EACH_WAY(way)
    {
        struct owner owner;
        struct requester me;

        owner_start(&owner, way, sizeof(local[0]), VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
        requester_open(&me, REQUESTER_VPID);
        for (uint64_t i = 0; i < gets; i++) {
            struct velo_rma_notification note;
            uint64_t *to = local[i % 8];
            uint64_t first[WORDS];

            for (size_t w = 0; w < WORDS; w++)
                first[w] = i;
            POST(me.rma, velo_rma_put(me.peer, first, sizeof(first),
                                      velo_rma_place(owner.stage->key, 0), 0, 0));
            CHECK_OK(velo_rma_fence(me.peer));
            memset(to, 0xff, sizeof(local[0]));
            POST(me.rma,
                 velo_rma_get(me.peer, to, sizeof(local[0]), velo_rma_place(owner.stage->key, 0),
                              VELO_RMA_NOTIFY_REQUESTER, i));
            note = note_expect(me.rma);
            CHECK_EQ(note.cookie, i);
            for (size_t w = 0; w < WORDS; w++)
                CHECK_EQ(to[w], i);
        }
        requester_close(&me);
        owner_stop(&owner);
    }
}

/* ---- fences ---------------------------------------------------------------------------------- */

/* An owner with memory that must be asked for and memory that is reached directly. */
struct two_kinds {
    atomic_int ready, go, stop;
    velo_rma_key_t slow, fast;
    atomic_ullong slow_word;
};

static void own_two_kinds(void *arg)
{
    struct two_kinds *t = arg;
    struct velo_port *port = port_open(OWNER_VPID);
    struct velo_rma *rma = rma_open(port);
    struct velo_rma_mem *slow, *fast;

    CHECK_OK(
        velo_rma_mem_register(rma, &t->slow_word, 8, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY, &slow));
    CHECK_OK(velo_rma_mem_alloc(rma, 64, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY, &fast));
    t->slow = velo_rma_mem_key(slow);
    t->fast = velo_rma_mem_key(fast);
    atomic_store(&t->ready, 1);
    while (!atomic_load(&t->go))
        test_sleep_ns(TEST_MS);
    while (!atomic_load(&t->stop))
        pace(rma);
    CHECK_OK(velo_rma_close(rma));
    CHECK_OK(velo_port_close(port));
}

static uint64_t look(struct velo_rma_peer *peer, velo_rma_key_t key)
{
    uint64_t value;

    CHECK_OK(velo_rma_get(peer, &value, 8, velo_rma_place(key, 0), 0, 0));
    flush(peer);
    return value;
}

TEST(a_fence_holds_back_what_comes_after_until_all_before_is_done)
{
    test_needs_shared_memory(); /* Some is done without the owner. */
    struct two_kinds *t = test_shared_alloc(sizeof(*t));
    struct velo_rma_peer *onlooker;
    struct requester me;
    uint64_t one = 1;
    pid_t child;

    way_set(WAY_ASKED);
    child = child_start(own_two_kinds, t);
    requester_open(&me, REQUESTER_VPID);
    CHECK_OK(velo_rma_connect(me.rma, VELO_ID(0, OWNER_VPID), &onlooker, 0));
    while (!atomic_load(&t->ready))
        sched_yield();

    /* The owner does nothing: without a fence the direct put overtakes the asked one. */
    CHECK_OK(
        velo_rma_put(me.peer, &one, 8, velo_rma_place(t->slow, 0), VELO_RMA_NOTIFY_REQUESTER, 1));
    CHECK_OK(velo_rma_put_immediate(me.peer, 1, 8, velo_rma_place(t->fast, 0),
                                    VELO_RMA_NOTIFY_REQUESTER, 2));
    CHECK_EQ(look(onlooker, t->fast), 1);
    CHECK_EQ(note_expect(me.rma).cookie, 2);

    CHECK_OK(velo_rma_fence(me.peer));
    CHECK_OK(velo_rma_put_immediate(me.peer, 2, 8, velo_rma_place(t->fast, 0),
                                    VELO_RMA_NOTIFY_REQUESTER, 3));
    CHECK_OK(velo_rma_fence(me.peer));
    CHECK_OK(velo_rma_put_immediate(me.peer, 3, 8, velo_rma_place(t->fast, 0),
                                    VELO_RMA_NOTIFY_REQUESTER, 4));
    CHECK_STATUS(velo_rma_flush(me.peer, 10 * TEST_MS), VELO_TIMEOUT);
    CHECK_EQ(look(onlooker, t->fast), 1);
    CHECK_EQ(atomic_load(&t->slow_word), 0);
    note_none(me.rma);

    atomic_store(&t->go, 1);
    flush(me.peer);
    CHECK_EQ(look(onlooker, t->fast), 3);
    CHECK_EQ(atomic_load(&t->slow_word), 1);
    for (uint64_t cookie = 1; cookie <= 4; cookie++)
        if (cookie != 2)
            CHECK_EQ(note_expect(me.rma).cookie, cookie);
    atomic_store(&t->stop, 1);
    child_join(child);
    requester_close(&me);
}

/* An owner that takes in what has come each time that it is told to, and at no other time. */
struct steps {
    atomic_int ready;
    atomic_uint step, done; /* UINT32_MAX: the last. */
    velo_rma_key_t key;
    uint64_t words[16];
    atomic_ullong served; /* Pieces, after the last step. */
};

static void take_steps(void *arg)
{
    struct steps *s = arg;
    struct velo_port *port = port_open(OWNER_VPID);
    struct velo_rma *rma = rma_open(port);
    struct velo_rma_notification note;
    struct velo_rma_counters counters;
    struct velo_rma_mem *mem;

    CHECK_OK(velo_rma_mem_register(rma, s->words, sizeof s->words, VELO_RMA_RIGHT_ALL,
                                   VELO_RMA_PEER_ANY, &mem));
    s->key = velo_rma_mem_key(mem);
    atomic_store(&s->ready, 1);
    for (unsigned done = 0; done != UINT32_MAX;) {
        unsigned step = atomic_load(&s->step);
        if (step == done) {
            test_sleep_ns(TEST_MS);
            continue;
        }
        (void)velo_rma_try_poll(rma, &note, 1);
        CHECK_OK(velo_rma_counters(rma, &counters, sizeof counters));
        atomic_store(&s->served, counters.served);
        atomic_store(&s->done, done = step);
    }
    CHECK_OK(velo_rma_close(rma));
    CHECK_OK(velo_port_close(port));
}

static void owner_steps(struct steps *s, unsigned step)
{
    atomic_store(&s->step, step);
    while (atomic_load(&s->done) != step)
        sched_yield();
}

static pid_t steps_begin(struct steps *s, struct requester *me)
{
    way_set(WAY_ASKED);
    pid_t child = child_start(take_steps, s);
    while (!atomic_load(&s->ready))
        sched_yield();
    requester_open(me, REQUESTER_VPID);
    return child;
}

static void steps_end(struct steps *s, struct requester *me, pid_t child)
{
    owner_steps(s, UINT32_MAX);
    child_join(child);
    requester_close(me);
}

TEST(what_the_owner_is_asked_for_with_fences_between_takes_one_round_trip)
{
    test_needs_shared_memory(); /* The owner's calls are counted. */
    struct steps *s = test_shared_alloc(sizeof *s);
    struct requester me;
    uint64_t last;
    pid_t child = steps_begin(s, &me);

    for (uint64_t i = 0; i < 16; i++) {
        CHECK_OK(velo_rma_fence(me.peer));
        CHECK_OK(velo_rma_put(me.peer, &i, 8, velo_rma_place(s->key, i / 2 * 8), 0, 0));
    }
    CHECK_OK(velo_rma_fence(me.peer));
    CHECK_OK(velo_rma_get(me.peer, &last, 8, velo_rma_place(s->key, 7 * 8), 0, 0));
    owner_steps(s, 1);
    CHECK_EQ(atomic_load(&s->served), 17);
    flush(me.peer);
    CHECK_EQ(last, 15);
    for (uint64_t i = 0; i < 8; i++)
        CHECK_EQ(s->words[i], 2 * i + 1);
    steps_end(s, &me, child);
}

TEST(a_put_behind_a_fence_sends_what_was_read_before_it)
{
    test_needs_shared_memory();
    struct steps *s = test_shared_alloc(sizeof *s);
    struct requester me;
    uint64_t word = 0;
    pid_t child = steps_begin(s, &me);

    s->words[0] = 7;
    CHECK_OK(velo_rma_get(me.peer, &word, 8, velo_rma_place(s->key, 0), 0, 0));
    CHECK_OK(velo_rma_fence(me.peer));
    CHECK_OK(velo_rma_put(me.peer, &word, 8, velo_rma_place(s->key, 8), 0, 0));
    owner_steps(s, 1);
    CHECK_EQ(atomic_load(&s->served), 1);
    CHECK_STATUS(velo_rma_flush(me.peer, 0),
                 VELO_TIMEOUT); /* The answer is here, the put leaves. */
    owner_steps(s, 2);
    CHECK_EQ(atomic_load(&s->served), 2);
    flush(me.peer);
    CHECK_EQ(s->words[1], 7);
    steps_end(s, &me, child);
}

TEST(a_direct_operation_stays_behind_a_fence_that_an_asked_one_has_passed)
{
    test_needs_shared_memory();
    struct two_kinds *t = test_shared_alloc(sizeof *t);
    struct velo_rma_peer *onlooker;
    struct requester me;
    uint64_t word = 1;

    way_set(WAY_ASKED);
    pid_t child = child_start(own_two_kinds, t);
    requester_open(&me, REQUESTER_VPID);
    CHECK_OK(velo_rma_connect(me.rma, VELO_ID(0, OWNER_VPID), &onlooker, 0));
    while (!atomic_load(&t->ready))
        sched_yield();

    CHECK_OK(velo_rma_put(me.peer, &word, 8, velo_rma_place(t->slow, 0), 0, 0));
    CHECK_OK(velo_rma_fence(me.peer));
    word = 2;
    CHECK_OK(velo_rma_put(me.peer, &word, 8, velo_rma_place(t->slow, 0), 0, 0));
    CHECK_OK(velo_rma_put_immediate(me.peer, 3, 8, velo_rma_place(t->fast, 0), 0, 0));
    CHECK_STATUS(velo_rma_flush(me.peer, 10 * TEST_MS), VELO_TIMEOUT);
    CHECK_EQ(look(onlooker, t->fast), 0);

    atomic_store(&t->go, 1);
    flush(me.peer);
    CHECK_EQ(look(onlooker, t->fast), 3);
    CHECK_EQ(atomic_load(&t->slow_word), 2);
    atomic_store(&t->stop, 1);
    child_join(child);
    requester_close(&me);
}

TEST(a_fence_between_direct_operations_costs_nothing_and_changes_nothing)
{
    struct owner owner;
    struct requester me;

    owner_start(&owner, WAY_DIRECT, 64, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
    requester_open(&me, REQUESTER_VPID);
    for (uint64_t i = 1; i <= 100; i++) {
        CHECK_OK(velo_rma_put_immediate(me.peer, i, 8, velo_rma_place(owner.stage->key, 0), 0, 0));
        CHECK_OK(velo_rma_fence(me.peer));
        CHECK_EQ(look(me.peer, owner.stage->key), i);
    }
    requester_close(&me);
    owner_stop(&owner);
}

/* ---- full queues ----------------------------------------------------------------------------- */

struct hoarder {
    atomic_int ready, drain;
    atomic_uint looks; /* That the owner has taken. */
    velo_rma_key_t key;
    uint64_t memory[8];
};

/* Makes progress, but takes no notification until it is told to. It lets others run only now and
 * then: each time may be a long one where there are many of them. */
static void hoard(void *arg)
{
    struct hoarder *h = arg;
    struct velo_port *port = port_open(OWNER_VPID);
    struct velo_rma *rma = rma_open(port);
    struct velo_rma_mem *mem;

    CHECK_OK(
        velo_rma_mem_register(rma, h->memory, 64, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY, &mem));
    h->key = velo_rma_mem_key(mem);
    atomic_store(&h->ready, 1);
    while (!atomic_load(&h->drain)) {
        (void)velo_rma_progress(rma);
        if (atomic_fetch_add(&h->looks, 1) % 64 == 0)
            sched_yield();
    }
    for (uint64_t i = 0; i < (uint64_t)atomic_load(&h->drain); i++)
        CHECK_EQ(note_expect(rma).cookie, i);
    note_none(rma);
    CHECK_OK(velo_rma_close(rma));
    CHECK_OK(velo_port_close(port));
}

/* Post notifications until the owner takes no more: until nothing could be posted while it has
 * looked 200 times, and for long enough that a network has carried what was on its way. Their
 * number. */
static uint64_t post_until_full(struct requester *me, struct hoarder *h, bool asked)
{
    uint64_t posted = 0;
    unsigned looks = 0;
    int64_t since_ns = 0;

    for (bool is_full = false; !is_full;) {
        int status = asked ? velo_rma_put_immediate(me->peer, 1, 8, velo_rma_place(h->key, 0),
                                                    VELO_RMA_NOTIFY_COMPLETER, posted)
                           : velo_rma_notify(me->peer, VELO_RMA_NOTIFY_COMPLETER, posted);

        if (status == VELO_OK) {
            posted++;
            since_ns = 0;
            continue;
        }
        CHECK_STATUS(status, VELO_AGAIN);
        if (!since_ns) {
            since_ns = test_now_ns();
            looks = atomic_load(&h->looks);
        }
        pace(me->rma);
        is_full = posted >= VELO_RMA_NOTIFICATIONS_MAX && atomic_load(&h->looks) - looks >= 200 &&
                  test_now_ns() - since_ns >= 4 * TEST_MS;
    }
    return posted;
}

TEST(a_full_notification_queue_pushes_back_and_loses_nothing)
{
    /* Notifications of their own, and of puts that are asked for. */
    for (int asked = 0; asked < 2; asked++) {
        struct hoarder *h = test_shared_alloc(sizeof(*h));
        struct requester me;
        pid_t child;

        way_set(WAY_ASKED);
        child = child_start(hoard, h);
        requester_open(&me, REQUESTER_VPID);
        while (!atomic_load(&h->ready))
            sched_yield();
        uint64_t posted = post_until_full(&me, h, asked);
        CHECK(posted <= VELO_RMA_NOTIFICATIONS_MAX + VELO_RMA_OPS_MAX + 1024);
        if (asked) {
            struct velo_rma_peer *other;
            uint64_t value = 7;

            CHECK_STATUS(velo_rma_flush(me.peer, 5 * TEST_MS), VELO_TIMEOUT);
            /* A connection of its own is not held up: only what would notify is. */
            CHECK_OK(velo_rma_connect(me.rma, VELO_ID(0, OWNER_VPID), &other, 0));
            int status = velo_rma_get(other, &value, 8, velo_rma_place(h->key, 0), 0, 0);
            CHECK(status == VELO_OK || status == VELO_AGAIN);
            if (status == VELO_OK) {
                flush(other);
                CHECK_EQ(value, 1);
            }
        }
        atomic_store(&h->drain, (int)posted);
        flush(me.peer);
        child_join(child);
        requester_close(&me);
    }
}

/* With room for what is under way, that for its notification counts. */
static int put_and_note(struct requester *me, velo_rma_key_t key, uint64_t cookie)
{
    int status = velo_rma_put_immediate(me->peer, 1, 8, velo_rma_place(key, 0),
                                        VELO_RMA_NOTIFY_REQUESTER, cookie);

    if (status != VELO_AGAIN)
        return status;
    flush(me->peer);
    return velo_rma_put_immediate(me->peer, 1, 8, velo_rma_place(key, 0), VELO_RMA_NOTIFY_REQUESTER,
                                  cookie);
}

TEST(a_full_queue_of_our_own_makes_us_poll_it)
{
    test_needs_shared_memory(); /* It is done without the owner. */
    struct owner owner;
    struct requester me;
    unsigned posted = 0;

    owner_start(&owner, WAY_DIRECT, 64, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
    requester_open(&me, REQUESTER_VPID);
    while (put_and_note(&me, owner.stage->key, posted) == VELO_OK)
        posted++;
    CHECK_EQ(posted, VELO_RMA_NOTIFICATIONS_MAX);
    if (!test_is_by_node()) /* Needs no room: it cannot fail any more. */
        CHECK_OK(velo_rma_put_immediate(me.peer, 1, 8, velo_rma_place(owner.stage->key, 0), 0, 0));
    for (unsigned i = 0; i < posted; i++)
        CHECK_EQ(note_expect(me.rma).cookie, i);
    note_none(me.rma);
    requester_close(&me);
    owner_stop(&owner);
}

TEST(so_many_operations_may_be_under_way_and_no_more)
{
    struct owner owner;
    struct requester me;
    uint64_t value;
    unsigned posted = 0;

    owner_start(&owner, WAY_ASKED, 64, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
    requester_open(&me, REQUESTER_VPID);
    owner_order(&owner, STAGE_PAUSE);
    while (velo_rma_get(me.peer, &value, 8, velo_rma_place(owner.stage->key, 0),
                        VELO_RMA_NOTIFY_REQUESTER, posted) == VELO_OK)
        posted++;
    CHECK_EQ(posted, VELO_RMA_OPS_MAX);
    owner_order(&owner, STAGE_COUNT);
    for (unsigned i = 0; i < posted; i++)
        CHECK_EQ(note_expect(me.rma).cookie, i);
    CHECK_OK(velo_rma_get(me.peer, &value, 8, velo_rma_place(owner.stage->key, 0), 0, 0));
    flush(me.peer);
    requester_close(&me);
    owner_stop(&owner);
}

/* ---- everybody asks everybody at once -------------------------------------------------------- */

enum { CROWD = 3, CROWD_BYTES_MAX = 200000 };
#define CROWD_BYTES scaled(CROWD_BYTES_MAX, 1500)
#define CROWD_ROUNDS scaled(30, 1)
#define CROWD_NOTES scaled(400, 30)

struct crowd {
    atomic_int ready, done;
    velo_rma_key_t keys[CROWD];
};

struct member {
    struct crowd *crowd;
    int me;
    uint32_t notify;
};

/* Try until there is room, and take notifications meanwhile: a full queue of ours may be why. */
#define POST_POLLING(rma, notes, call)                                                             \
    do {                                                                                           \
        struct velo_rma_notification note_;                                                        \
        int status_;                                                                               \
        while ((status_ = (call)) == VELO_AGAIN)                                                   \
            (notes) += velo_rma_try_poll(rma, &note_, 1) == 1;                                     \
        CHECK_OK(status_);                                                                         \
    } while (0)

/* Flush; where our own full queue is in the way, empty it. */
static unsigned flush_and_count(struct velo_rma *rma, struct velo_rma_peer *peer)
{
    unsigned notes = 0;
    int status;

    while ((status = velo_rma_flush(peer, TEST_PATIENCE_NS)) == VELO_AGAIN) {
        struct velo_rma_notification note;

        while (velo_rma_try_poll(rma, &note, 1) == 1)
            notes++;
    }
    CHECK_OK(status);
    return notes;
}

static void be_one_of_the_crowd(void *arg)
{
    const struct member *self = arg;
    struct crowd *crowd = self->crowd;
    static unsigned char memory[CROWD * CROWD_BYTES_MAX], from[CROWD][CROWD_BYTES_MAX],
        back[CROWD_BYTES_MAX];
    struct velo_port *port = port_open(10 + self->me);
    struct velo_rma *rma = rma_open(port);
    struct velo_rma_peer *peers[CROWD];
    struct velo_rma_notification note;
    struct velo_rma_mem *mem;
    unsigned notes = 0, posted = 0;

    CHECK_OK(velo_rma_mem_register(rma, memory, sizeof(memory), VELO_RMA_RIGHT_ALL,
                                   VELO_RMA_PEER_ANY, &mem));
    crowd->keys[self->me] = velo_rma_mem_key(mem);
    atomic_fetch_add(&crowd->ready, 1);
    while (atomic_load(&crowd->ready) < CROWD)
        sched_yield();
    for (int i = 0; i < CROWD; i++)
        CHECK_OK(velo_rma_connect(rma, VELO_ID(0, 10 + i), &peers[i], TEST_PATIENCE_NS));
    for (uint64_t round = 0; round < CROWD_ROUNDS; round++) {
        uint64_t at = (uint64_t)self->me * CROWD_BYTES;

        for (int i = 0; i < CROWD; i++) {
            pattern_fill(from[i], CROWD_BYTES, round * 100 + (uint64_t)i);
            POST_POLLING(rma, notes,
                         velo_rma_put(peers[i], from[i], CROWD_BYTES,
                                      velo_rma_place(crowd->keys[i], at), 0, 0));
            for (unsigned n = 0; self->notify && n < CROWD_NOTES; n++, posted++)
                POST_POLLING(rma, notes,
                             velo_rma_put_immediate(peers[i], from[i][0], 1,
                                                    velo_rma_place(crowd->keys[i], at),
                                                    VELO_RMA_NOTIFY_COMPLETER, n));
        }
        for (int i = 0; i < CROWD; i++)
            notes += flush_and_count(rma, peers[i]);
        for (int i = 0; i < CROWD; i++) {
            POST_POLLING(rma, notes,
                         velo_rma_get(peers[i], back, CROWD_BYTES,
                                      velo_rma_place(crowd->keys[i], at), 0, 0));
            notes += flush_and_count(rma, peers[i]);
            CHECK(pattern_matches(back, CROWD_BYTES, round * 100 + (uint64_t)i));
        }
    }
    /* As many have come as each of us has posted; and those who are not done need us. */
    for (; notes < posted; notes++)
        CHECK_EQ(velo_rma_poll(rma, &note, 1, TEST_PATIENCE_NS), 1);
    atomic_fetch_add(&crowd->done, 1);
    while (atomic_load(&crowd->done) < CROWD)
        pace(rma);
    note_none(rma);
    CHECK_OK(velo_rma_close(rma));
    CHECK_OK(velo_port_close(port));
}

static void crowd_run(uint32_t notify)
{
    struct crowd *crowd = test_shared_alloc(sizeof(*crowd));
    struct member members[CROWD];
    pid_t children[CROWD];

    way_set(WAY_ASKED);
    for (int i = 0; i < CROWD; i++) {
        members[i] = (struct member){crowd, i, notify};
        children[i] = child_start(be_one_of_the_crowd, &members[i]);
    }
    for (int i = 0; i < CROWD; i++)
        child_join(children[i]);
}

TEST(units_that_all_ask_each_other_for_much_at_once_do_not_block) { crowd_run(0); }

TEST(units_that_flush_while_all_their_queues_are_full_do_not_block) { crowd_run(1); }
