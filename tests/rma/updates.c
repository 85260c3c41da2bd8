/* SPDX-License-Identifier: Apache-2.0 */
/* Fetch-op and compare-and-swap: each operation on each type, over every way, alone and against
 * others. */
#include <math.h>
#include <sched.h>
#include <string.h>

#include "stage.h"

enum { WORDS = 4, AT = 8, CANARY = 0x5a };

static const struct {
    enum velo_rma_type type;
    size_t len_bytes;
} types[] = {{VELO_RMA_TYPE_INT32, 4},  {VELO_RMA_TYPE_UINT32, 4}, {VELO_RMA_TYPE_INT64, 8},
             {VELO_RMA_TYPE_UINT64, 8}, {VELO_RMA_TYPE_FLOAT, 4},  {VELO_RMA_TYPE_DOUBLE, 8}};

static bool is_float(enum velo_rma_type type)
{
    return type == VELO_RMA_TYPE_FLOAT || type == VELO_RMA_TYPE_DOUBLE;
}

/* A value as it stands in memory. */
union value {
    int32_t i32;
    uint32_t u32;
    int64_t i64;
    uint64_t u64;
    float f32;
    double f64;
    unsigned char bytes[8];
};

/* The right result, computed in another way than in the library. */
#define ARITHMETIC(field)                                                                          \
    switch (atomic) {                                                                              \
    case VELO_RMA_ATOMIC_ADD:                                                                      \
        r.field = a.field + b.field;                                                               \
        break;                                                                                     \
    case VELO_RMA_ATOMIC_MIN:                                                                      \
        r.field = b.field < a.field ? b.field : a.field;                                           \
        break;                                                                                     \
    case VELO_RMA_ATOMIC_MAX:                                                                      \
        r.field = b.field > a.field ? b.field : a.field;                                           \
        break;                                                                                     \
    default:                                                                                       \
        r.field = b.field;                                                                         \
    }

#define BITWISE(field)                                                                             \
    switch (atomic) {                                                                              \
    case VELO_RMA_ATOMIC_ADD:                                                                      \
        r.field = a.field + b.field;                                                               \
        break;                                                                                     \
    case VELO_RMA_ATOMIC_AND:                                                                      \
        r.field = a.field & b.field;                                                               \
        break;                                                                                     \
    case VELO_RMA_ATOMIC_OR:                                                                       \
        r.field = a.field | b.field;                                                               \
        break;                                                                                     \
    case VELO_RMA_ATOMIC_XOR:                                                                      \
        r.field = a.field ^ b.field;                                                               \
        break;                                                                                     \
    case VELO_RMA_ATOMIC_LAND:                                                                     \
        r.field = a.field != 0 && b.field != 0;                                                    \
        break;                                                                                     \
    case VELO_RMA_ATOMIC_LOR:                                                                      \
        r.field = a.field != 0 || b.field != 0;                                                    \
        break;                                                                                     \
    case VELO_RMA_ATOMIC_LXOR:                                                                     \
        r.field = (a.field != 0) != (b.field != 0);                                                \
        break;                                                                                     \
    default:                                                                                       \
        r.field = b.field;                                                                         \
    }

static union value result_of(enum velo_rma_atomic atomic, enum velo_rma_type type, union value a,
                             union value b)
{
    union value r = {.u64 = 0};
    bool is_order = atomic == VELO_RMA_ATOMIC_MIN || atomic == VELO_RMA_ATOMIC_MAX;

    if (type == VELO_RMA_TYPE_FLOAT) {
        ARITHMETIC(f32);
    } else if (type == VELO_RMA_TYPE_DOUBLE) {
        ARITHMETIC(f64);
    } else if (is_order && type == VELO_RMA_TYPE_INT32) {
        ARITHMETIC(i32);
    } else if (is_order && type == VELO_RMA_TYPE_INT64) {
        ARITHMETIC(i64);
    } else if (is_order && type == VELO_RMA_TYPE_UINT32) {
        ARITHMETIC(u32);
    } else if (is_order) {
        ARITHMETIC(u64);
    } else if (type == VELO_RMA_TYPE_INT32 || type == VELO_RMA_TYPE_UINT32) {
        BITWISE(u32);
    } else {
        BITWISE(u64);
    }
    return r;
}

/* Signs, wrapping around, nothing at all, and what lies in the upper half. */
static union value value_of(enum velo_rma_type type, size_t index)
{
    static const uint64_t words[] = {0,
                                     5,
                                     UINT64_C(0x8000000080000001),
                                     UINT64_MAX,
                                     UINT64_C(0x7fffffff7fffffff),
                                     UINT64_C(1) << 40};
    static const double reals[] = {0, -0.0, 1.5, -2.25, 1e30, INFINITY};
    union value v = {.u64 = words[index]};

    if (type == VELO_RMA_TYPE_FLOAT)
        v.f32 = (float)reals[index];
    else if (type == VELO_RMA_TYPE_DOUBLE)
        v.f64 = reals[index];
    return v;
}

enum { VALUES = 6 };

/* The word, and its neighbours, which stay. */
static void check_word(struct owner *owner, const union value *expected, size_t len)
{
    const unsigned char *memory = owner_memory(owner);

    CHECK(memcmp(memory + AT, expected->bytes, len) == 0);
    for (size_t i = 0; i < WORDS * 8; i++)
        CHECK((i >= AT && i < AT + len) || memory[i] == CANARY);
}

static void set_word(const struct requester *me, velo_rma_key_t key, const union value *v,
                     size_t len)
{
    unsigned char image[WORDS * 8];

    memset(image, CANARY, sizeof(image));
    memcpy(image + AT, v->bytes, len);
    CHECK_OK(velo_rma_put(me->peer, image, sizeof(image), velo_rma_place(key, 0), 0, 0));
    flush(me->peer);
}

static void check_pair(struct owner *owner, const struct requester *me, enum velo_rma_atomic atomic,
                       size_t t, const union value *a, const union value *b)
{
    velo_rma_key_t key = owner->stage->key;
    enum velo_rma_type type = types[t].type;
    size_t len = types[t].len_bytes;
    union value old = {.u64 = UINT64_C(0xeeeeeeeeeeeeeeee)}, expected;

    set_word(me, key, a, len);
    CHECK_OK(velo_rma_fetch_op(me->peer, old.bytes, velo_rma_place(key, AT), atomic, type, b->bytes,
                               0, 0));
    flush(me->peer);
    CHECK(memcmp(old.bytes, a->bytes, len) == 0);
    for (size_t i = len; i < 8; i++)
        CHECK_EQ(old.bytes[i], 0xee);
    expected = result_of(atomic, type, *a, *b);
    check_word(owner, &expected, len);
}

TEST(a_fetch_op_makes_of_word_and_operand_what_its_name_says)
{
    FOR_EACH_WAY(way)
    {
        struct owner owner;
        struct requester me;

        owner_start(&owner, way, WORDS * 8, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
        requester_open(&me, REQUESTER_VPID);
        for (size_t t = 0; t < ARRAY_LEN(types); t++) {
            for (int atomic = VELO_RMA_ATOMIC_ADD; atomic <= VELO_RMA_ATOMIC_MAX; atomic++) {
                bool is_bitwise = atomic >= VELO_RMA_ATOMIC_AND && atomic <= VELO_RMA_ATOMIC_LXOR;

                if (is_bitwise && is_float(types[t].type))
                    continue;
                for (size_t i = 0; i < scaled(VALUES * VALUES, 5); i++) {
                    union value a = value_of(types[t].type, i % VALUES);
                    union value b = value_of(types[t].type, (i / VALUES + i) % VALUES);

                    check_pair(&owner, &me, (enum velo_rma_atomic)atomic, t, &a, &b);
                }
            }
        }
        requester_close(&me);
        owner_stop(&owner);
    }
}

TEST(a_word_that_does_not_compare_stays)
{
    struct owner owner;
    struct requester me;
    const double nan_ = NAN, one = 1;
    union value word = {.f64 = NAN};

    way_set(WAY_DIRECT);
    owner_start(&owner, WAY_DIRECT, WORDS * 8, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
    requester_open(&me, REQUESTER_VPID);
    for (int atomic = VELO_RMA_ATOMIC_MIN; atomic <= VELO_RMA_ATOMIC_MAX; atomic++) {
        word.f64 = NAN;
        set_word(&me, owner.stage->key, &word, 8);
        CHECK_OK(velo_rma_fetch_op(me.peer, NULL, velo_rma_place(owner.stage->key, AT),
                                   (enum velo_rma_atomic)atomic, VELO_RMA_TYPE_DOUBLE, &one, 0, 0));
        flush(me.peer);
        check_word(&owner, &word, 8);
        word.f64 = one;
        set_word(&me, owner.stage->key, &word, 8);
        CHECK_OK(velo_rma_fetch_op(me.peer, NULL, velo_rma_place(owner.stage->key, AT),
                                   (enum velo_rma_atomic)atomic, VELO_RMA_TYPE_DOUBLE, &nan_, 0,
                                   0));
        flush(me.peer);
        check_word(&owner, &word, 8);
    }
    requester_close(&me);
    owner_stop(&owner);
}

TEST(a_compare_swap_replaces_only_a_word_that_is_as_compared)
{
    FOR_EACH_WAY(way)
    {
        struct owner owner;
        struct requester me;

        owner_start(&owner, way, WORDS * 8, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
        requester_open(&me, REQUESTER_VPID);
        for (size_t len = 4; len <= 8; len += 4) {
            union value before = {.u64 = UINT64_C(0x1122334455667788)}, old;
            union value desired = {.u64 = UINT64_C(0x99aabbccddeeff00)};
            velo_rma_key_t key = owner.stage->key;

            set_word(&me, key, &before, len);
            for (size_t bit = 0; bit < len * 8; bit += 13) {
                union value wrong = {.u64 = before.u64 ^ UINT64_C(1) << bit};

                old.u64 = 0;
                CHECK_OK(velo_rma_compare_swap(me.peer, &old, len, velo_rma_place(key, AT), &wrong,
                                               &desired, 0, 0));
                flush(me.peer);
                CHECK(memcmp(&old, &before, len) == 0);
                check_word(&owner, &before, len);
            }
            old.u64 = 0;
            CHECK_OK(velo_rma_compare_swap(me.peer, &old, len, velo_rma_place(key, AT), &before,
                                           &desired, 0, 0));
            flush(me.peer);
            CHECK(memcmp(&old, &before, len) == 0);
            check_word(&owner, &desired, len);
            CHECK_OK(velo_rma_compare_swap(me.peer, NULL, len, velo_rma_place(key, AT), &desired,
                                           &before, 0, 0));
            flush(me.peer);
            check_word(&owner, &before, len);
        }
        requester_close(&me);
        owner_stop(&owner);
    }
}

TEST(updates_are_of_words_that_are_aligned)
{
    test_needs_shared_memory(); /* It is refused at once. */
    FOR_EACH_WAY(way)
    {
        struct owner owner;
        struct requester me;
        uint64_t word = 1;

        owner_start(&owner, way, WORDS * 8, VELO_RMA_RIGHT_ATOMIC, VELO_RMA_PEER_ANY);
        requester_open(&me, REQUESTER_VPID);
        for (uint64_t at = 1; at < 8; at++) {
            velo_rma_key_t key = owner.stage->key;
            int expected = at % 4 == 0 ? VELO_OK : VELO_ERR_ARG;

            CHECK_FAILS(velo_rma_fetch_op(me.peer, NULL, velo_rma_place(key, at),
                                          VELO_RMA_ATOMIC_ADD, VELO_RMA_TYPE_INT64, &word, 0, 0),
                        VELO_ERR_ARG, "multiple of 8");
            CHECK_FAILS(velo_rma_compare_swap(me.peer, NULL, 8, velo_rma_place(key, at), &word,
                                              &word, 0, 0),
                        VELO_ERR_ARG, "multiple of 8");
            CHECK_STATUS(velo_rma_fetch_op(me.peer, NULL, velo_rma_place(key, at),
                                           VELO_RMA_ATOMIC_XOR, VELO_RMA_TYPE_UINT32, &word, 0, 0),
                         expected);
            CHECK_STATUS(velo_rma_compare_swap(me.peer, NULL, 4, velo_rma_place(key, at), &word,
                                               &word, 0, 0),
                         expected);
            flush(me.peer);
        }
        note_none(me.rma);
        requester_close(&me);
        owner_stop(&owner);
    }
}

/* ---- several at once ------------------------------------------------------------------------- */

enum { UPDATERS = 3 };
/* Loads and stores take long to meet. */
#define ROUNDS(way) (int)scaled((way) == WAY_DIRECT ? 50000 : 300, 20)

/* The kind of the owner's memory. */
struct words {
    uint32_t bits, max;
    uint64_t tickets;
    double sum;
};

struct crowd {
    velo_rma_key_t key;
    int rounds;
    atomic_int ready;
};

struct updater {
    struct crowd *crowd;
    int me;
};

/* One more ticket, by compare-and-swap. */
static void take_ticket(const struct requester *me, velo_rma_key_t key)
{
    uint64_t seen = 0, next, expected;

    do {
        expected = seen;
        next = seen + 1;
        CHECK_OK(velo_rma_compare_swap(me->peer, &seen, 8,
                                       velo_rma_place(key, offsetof(struct words, tickets)),
                                       &expected, &next, 0, 0));
        flush(me->peer);
    } while (seen != expected);
}

static void update_all(void *arg)
{
    const struct updater *self = arg;
    velo_rma_key_t key = self->crowd->key;
    const uint32_t bit = UINT32_C(1) << self->me;
    const double half = 0.5;
    struct requester me;

    requester_open(&me, REQUESTER_VPID + self->me);
    atomic_fetch_add(&self->crowd->ready, 1);
    while (atomic_load(&self->crowd->ready) < UPDATERS)
        sched_yield();
    for (int i = 0; i < self->crowd->rounds; i++) {
        const uint32_t high = UINT32_C(0x80000000) + (uint32_t)(i * UPDATERS + self->me);
        uint32_t old = 0;

        CHECK_OK(velo_rma_fetch_op(me.peer, &old, velo_rma_place(key, offsetof(struct words, bits)),
                                   VELO_RMA_ATOMIC_XOR, VELO_RMA_TYPE_UINT32, &bit, 0, 0));
        CHECK_OK(velo_rma_fetch_op(me.peer, NULL, velo_rma_place(key, offsetof(struct words, max)),
                                   VELO_RMA_ATOMIC_MAX, VELO_RMA_TYPE_UINT32, &high, 0, 0));
        CHECK_OK(velo_rma_fetch_op(me.peer, NULL, velo_rma_place(key, offsetof(struct words, sum)),
                                   VELO_RMA_ATOMIC_ADD, VELO_RMA_TYPE_DOUBLE, &half, 0, 0));
        flush(me.peer);
        CHECK_EQ((old & bit) != 0, i % 2 != 0); /* Nobody else turns it. */
        take_ticket(&me, key);
    }
    requester_close(&me);
}

TEST(updates_of_several_processes_lose_nothing)
{
    FOR_EACH_WAY(way)
    {
        struct crowd *crowd = test_shared_alloc(sizeof(*crowd));
        struct updater updaters[UPDATERS];
        pid_t children[UPDATERS];
        struct owner owner;
        struct words words;

        owner_start(&owner, way, sizeof(struct words), VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
        crowd->key = owner.stage->key;
        crowd->rounds = ROUNDS(way);
        for (int i = 0; i < UPDATERS; i++) {
            updaters[i] = (struct updater){crowd, i};
            children[i] = child_start(update_all, &updaters[i]);
        }
        for (int i = 0; i < UPDATERS; i++)
            child_join(children[i]);
        memcpy(&words, owner_memory(&owner), sizeof(words));
        CHECK_EQ(words.bits, crowd->rounds % 2 ? (1 << UPDATERS) - 1 : 0);
        CHECK_EQ(words.max, UINT32_C(0x80000000) + (uint32_t)(crowd->rounds * UPDATERS - 1));
        CHECK_EQ(words.tickets, UPDATERS * crowd->rounds);
        CHECK(words.sum == 0.5 * UPDATERS * crowd->rounds);
        owner_stop(&owner);
    }
}

TEST(a_word_that_is_not_above_is_added_to)
{
    static const int64_t steps[][2] = {{-1, 7}, {0, 7},  {6, 1},         {7, -10},
                                       {-4, 1}, {-3, 1}, {INT64_MAX, 5}, {INT64_MIN, 1}};

    FOR_EACH_WAY(way)
    {
        struct owner owner;
        struct requester me;
        int64_t word = 0;
        uint64_t old;

        owner_start(&owner, way, 64, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
        requester_open(&me, REQUESTER_VPID);
        const struct velo_rma_place place = velo_rma_place(owner.stage->key, 8);
        for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
            CHECK_OK(velo_rma_fetch_compare_add(me.peer, &old, place, (uint64_t)steps[i][0],
                                                (uint64_t)steps[i][1], VELO_RMA_ADD_AT_MOST, 0));
            flush(me.peer);
            CHECK_EQ(old, word);
            word += word <= steps[i][0] ? steps[i][1] : 0;
        }
        CHECK_STATUS(velo_rma_fetch_compare_add(me.peer, &old, place, 0, 0,
                                                VELO_RMA_ADD_AT_MOST | VELO_RMA_ADD_ALWAYS, 0),
                     VELO_ERR_ARG);
        requester_close(&me);
        owner_stop(&owner);
    }
}
