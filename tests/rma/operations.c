/* SPDX-License-Identifier: Apache-2.0 */
/* Every operation over every way: what it moves, what it leaves alone, whom it notifies. */
#include <string.h>
#include <sys/mman.h>

#include "stage.h"

enum { SIZE_MAX_ = (1 << 20) + 4096, GUARD = 64 };
#define SIZE scaled(SIZE_MAX_, 4096 + 4200)

static const size_t lens[] = {0,    1,    7,    8,     9,     64,    4096,
                              5119, 5120, 5121, 16304, 16305, 65537, (1 << 20) + 3};
/* Those that fit in any case. */
#define LENS scaled(ARRAY_LEN(lens), 7)
static const size_t offsets[] = {0, 1, 5, 64, 4093};

/* The bytes around a stretch are as they were. */
static bool is_untouched(const unsigned char *memory, size_t from, size_t to, unsigned char value)
{
    for (size_t i = from; i < to; i++)
        if (memory[i] != value)
            return false;
    return true;
}

TEST(a_put_writes_its_bytes_and_no_others)
{
    static unsigned char local[SIZE_MAX_];

    FOR_EACH_WAY(way)
    {
        struct owner owner;
        struct requester me;
        uint64_t seed = 1;

        owner_start(&owner, way, SIZE, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
        requester_open(&me, REQUESTER_VPID);
        for (size_t l = 0; l < LENS; l++) {
            for (size_t o = 0; o < ARRAY_LEN(offsets); o++, seed++) {
                size_t at = offsets[o], len = lens[l];
                const unsigned char *memory;

                memset(local, 0xee, SIZE);
                CHECK_OK(
                    velo_rma_put(me.peer, local, SIZE, velo_rma_place(owner.stage->key, 0), 0, 0));
                flush(me.peer);
                pattern_fill(local + o, len, seed);
                CHECK_OK(velo_rma_put(me.peer, local + o, len, velo_rma_place(owner.stage->key, at),
                                      0, 0));
                flush(me.peer);
                memory = owner_memory(&owner);
                CHECK(pattern_matches(memory + at, len, seed));
                CHECK(is_untouched(memory, 0, at, 0xee));
                CHECK(is_untouched(memory, at + len, SIZE, 0xee));
            }
        }
        requester_close(&me);
        owner_stop(&owner);
    }
}

TEST(a_get_reads_its_bytes_and_no_others)
{
    static unsigned char local[SIZE_MAX_ + GUARD];

    FOR_EACH_WAY(way)
    {
        struct owner owner;
        struct requester me;
        uint64_t seed = 1;

        owner_start(&owner, way, SIZE, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
        requester_open(&me, REQUESTER_VPID);
        for (size_t l = 0; l < LENS; l++) {
            for (size_t o = 0; o < ARRAY_LEN(offsets); o++, seed++) {
                size_t at = offsets[o], len = lens[l];

                pattern_fill(local, len, seed);
                CHECK_OK(
                    velo_rma_put(me.peer, local, len, velo_rma_place(owner.stage->key, at), 0, 0));
                flush(me.peer);
                memset(local, 0xee, SIZE);
                CHECK_OK(velo_rma_get(me.peer, local + o, len, velo_rma_place(owner.stage->key, at),
                                      0, 0));
                flush(me.peer);
                CHECK(pattern_matches(local + o, len, seed));
                CHECK(is_untouched(local, 0, o, 0xee));
                CHECK(is_untouched(local, o + len, SIZE, 0xee));
            }
        }
        requester_close(&me);
        owner_stop(&owner);
    }
}

TEST(each_way_is_the_one_that_is_counted)
{
    test_needs_shared_memory(); /* Each way is counted. */
    FOR_EACH_WAY(way)
    {
        const bool by_node = test_is_by_node() && way != WAY_ASKED;
        struct velo_rma_counters mine;
        struct owner owner;
        struct requester me;
        uint64_t word = 1;

        owner_start(&owner, way, 64, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
        requester_open(&me, REQUESTER_VPID);
        CHECK_OK(velo_rma_put(me.peer, &word, 8, velo_rma_place(owner.stage->key, 0), 0, 0));
        CHECK_OK(velo_rma_put_immediate(me.peer, 1, 4, velo_rma_place(owner.stage->key, 0), 0, 0));
        CHECK_OK(velo_rma_get(me.peer, &word, 8, velo_rma_place(owner.stage->key, 0), 0, 0));
        CHECK_OK(velo_rma_fetch_compare_add(me.peer, &word, velo_rma_place(owner.stage->key, 0), 0,
                                            0, 0, 0));
        flush(me.peer);
        CHECK_OK(velo_rma_counters(me.rma, &mine, sizeof mine));
        owner_order(&owner, STAGE_COUNT);
        CHECK_EQ(mine.puts, 2);
        CHECK_EQ(mine.gets, 1);
        CHECK_EQ(mine.atomics, 1);
        CHECK_EQ(mine.bytes, 8 + 4 + 8 + 8);
        CHECK_EQ(mine.direct, by_node ? 3 : way == WAY_DIRECT ? 4 : 0);
        CHECK_EQ(mine.attach, way == WAY_ATTACH && !by_node ? 3 : 0);
        CHECK_EQ(mine.asked, way == WAY_ASKED ? 4 : way == WAY_ATTACH || by_node ? 1 : 0);
        CHECK_EQ(owner.stage->counters.served, mine.asked);
        CHECK_EQ(owner.stage->counters.registered, 1);
        CHECK_EQ(mine.registered, 0);
        requester_close(&me);
        owner_stop(&owner);
    }
}

/* Memory at an address may be other memory than a device knows there. */
TEST(gets_and_puts_of_memory_that_was_mapped_anew_take_the_same_way)
{
    const size_t len = scaled(65536, 8192);
    struct owner owner;
    struct requester me;
    unsigned char *memory = NULL;

    owner_start(&owner, WAY_ATTACH, len, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
    requester_open(&me, REQUESTER_VPID);
    for (uint64_t round = 0; round < 4; round++) {
        struct velo_rma_counters mine;

        if (memory != NULL)
            CHECK_EQ(munmap(memory, len), 0);
        memory =
            mmap(memory, len, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | (memory != NULL ? MAP_FIXED_NOREPLACE : 0), -1, 0);
        CHECK(memory != MAP_FAILED);
        pattern_fill(memory, len, round);
        CHECK_OK(velo_rma_put(me.peer, memory, len, velo_rma_place(owner.stage->key, 0), 0, 0));
        flush(me.peer);
        CHECK(pattern_matches(owner_memory(&owner), len, round));
        memset(memory, 0, len);
        CHECK_OK(velo_rma_get(me.peer, memory, len, velo_rma_place(owner.stage->key, 0), 0, 0));
        flush(me.peer);
        CHECK(pattern_matches(memory, len, round));
        CHECK_OK(velo_rma_counters(me.rma, &mine, sizeof mine));
        if (!test_is_carried())
            CHECK_EQ(mine.asked, 0);
    }
    requester_close(&me);
    owner_stop(&owner);
    CHECK_EQ(munmap(memory, len), 0);
}

TEST(an_immediate_put_writes_up_to_8_bytes_lowest_first)
{
    FOR_EACH_WAY(way)
    {
        struct owner owner;
        struct requester me;

        owner_start(&owner, way, 64, VELO_RMA_RIGHT_WRITE, VELO_RMA_PEER_ANY);
        requester_open(&me, REQUESTER_VPID);
        for (size_t len = 1; len <= 8; len++) {
            for (size_t at = 0; at < 16; at++) {
                const uint64_t value = UINT64_C(0x8877665544332211);
                unsigned char blank[64];
                const unsigned char *memory;

                memset(blank, 0xee, sizeof(blank));
                CHECK_OK(velo_rma_put(me.peer, blank, sizeof(blank),
                                      velo_rma_place(owner.stage->key, 0), 0, 0));
                CHECK_OK(velo_rma_put_immediate(me.peer, value, len,
                                                velo_rma_place(owner.stage->key, at), 0, 0));
                flush(me.peer);
                memory = owner_memory(&owner);
                CHECK(memcmp(memory + at, &value, len) == 0);
                CHECK(is_untouched(memory, 0, at, 0xee));
                CHECK(is_untouched(memory, at + len, 64, 0xee));
            }
        }
        requester_close(&me);
        owner_stop(&owner);
    }
}

static uint64_t word_of(struct owner *owner, size_t at)
{
    uint64_t word;

    memcpy(&word, owner_memory(owner) + at, sizeof(word));
    return word;
}

TEST(fetch_compare_add_adds_only_where_the_word_is_as_compared)
{
    test_needs_shared_memory(); /* A word that is not aligned is refused at once. */
    FOR_EACH_WAY(way)
    {
        struct owner owner;
        struct requester me;
        uint64_t old = 99;
        velo_rma_key_t key;

        owner_start(&owner, way, 64, VELO_RMA_RIGHT_ATOMIC, VELO_RMA_PEER_ANY);
        requester_open(&me, REQUESTER_VPID);
        key = owner.stage->key;
        CHECK_OK(velo_rma_fetch_compare_add(me.peer, &old, velo_rma_place(key, 8), 0, 5, 0, 0));
        flush(me.peer);
        CHECK_EQ(old, 0);
        CHECK_EQ(word_of(&owner, 8), 5);
        CHECK_OK(velo_rma_fetch_compare_add(me.peer, &old, velo_rma_place(key, 8), 4, 100, 0, 0));
        flush(me.peer);
        CHECK_EQ(old, 5);
        CHECK_EQ(word_of(&owner, 8), 5);
        CHECK_OK(velo_rma_fetch_compare_add(me.peer, &old, velo_rma_place(key, 8), 4, UINT64_MAX,
                                            VELO_RMA_ADD_ALWAYS, 0));
        flush(me.peer);
        CHECK_EQ(old, 5);
        CHECK_EQ(word_of(&owner, 8), 4);
        /* A compare-and-swap of 4 to 1000. */
        CHECK_OK(
            velo_rma_fetch_compare_add(me.peer, &old, velo_rma_place(key, 8), 4, 1000 - 4, 0, 0));
        flush(me.peer);
        CHECK_EQ(word_of(&owner, 8), 1000);
        CHECK_EQ(word_of(&owner, 0), 0);
        CHECK_EQ(word_of(&owner, 16), 0);
        for (uint64_t at = 1; at < 8; at++)
            CHECK_FAILS(
                velo_rma_fetch_compare_add(me.peer, &old, velo_rma_place(key, at), 0, 1, 0, 0),
                VELO_ERR_ARG, "multiple of 8");
        requester_close(&me);
        owner_stop(&owner);
    }
}

/* ---- strided and list ------------------------------------------------------------------------ */

TEST(strided_puts_and_gets_move_blocks_and_leave_the_gaps)
{
    static const struct velo_rma_stride strides[] = {
        {3, 100, 3, 7}, {64, 40, 100, 64}, {1, 1, 0, 0}, {20000, 3, 20011, 30001}, {8, 500, 8, 16}};
    static unsigned char local[1 << 17], back[1 << 17], model[1 << 17];

    FOR_EACH_WAY(way)
    {
        struct owner owner;
        struct requester me;

        owner_start(&owner, way, sizeof(model), VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
        requester_open(&me, REQUESTER_VPID);
        for (size_t s = 0; s < ARRAY_LEN(strides); s++) {
            const struct velo_rma_stride *stride = &strides[s];
            struct velo_rma_notification note;
            size_t at = s * 13;

            memset(model, 0xee, sizeof(model));
            CHECK_OK(velo_rma_put(me.peer, model, sizeof(model),
                                  velo_rma_place(owner.stage->key, 0), 0, 0));
            flush(me.peer);
            pattern_fill(local, sizeof(local), s + 1);
            for (size_t i = 0; i < stride->count; i++)
                memcpy(model + at + i * stride->remote_stride_bytes,
                       local + i * stride->local_stride_bytes, stride->block_bytes);
            CHECK_OK(velo_rma_put_strided(me.peer, local, stride,
                                          velo_rma_place(owner.stage->key, at),
                                          VELO_RMA_NOTIFY_REQUESTER, 7));
            note = note_expect(me.rma);
            CHECK_EQ(note.class_, VELO_RMA_CLASS_REQUESTER);
            CHECK_EQ(note.len_bytes, stride->block_bytes * stride->count);
            note_none(me.rma);
            CHECK(memcmp(owner_memory(&owner), model, sizeof(model)) == 0);

            memset(back, 0x11, sizeof(back));
            memset(local, 0x11, sizeof(local));
            for (size_t i = 0; i < stride->count; i++)
                memcpy(local + i * stride->local_stride_bytes,
                       model + at + i * stride->remote_stride_bytes, stride->block_bytes);
            CHECK_OK(velo_rma_get_strided(me.peer, back, stride,
                                          velo_rma_place(owner.stage->key, at), 0, 0));
            flush(me.peer);
            CHECK(memcmp(back, local, sizeof(back)) == 0);
        }
        requester_close(&me);
        owner_stop(&owner);
    }
}

TEST(list_puts_and_gets_move_each_piece)
{
    enum { PIECES = 100, AREA = 1 << 18 };
    static unsigned char local[AREA], back[AREA], model[AREA];

    FOR_EACH_WAY(way)
    {
        struct velo_rma_piece pieces[PIECES];
        struct velo_rma_notification note;
        struct owner owner;
        struct requester me;
        uint64_t total = 0;

        owner_start(&owner, way, AREA, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
        requester_open(&me, REQUESTER_VPID);
        memset(model, 0, sizeof(model));
        pattern_fill(local, sizeof(local), 3);
        for (size_t i = 0; i < PIECES; i++) {
            /* From left to right here, from right to left there; some are empty, one is long. */
            uint64_t len = i == 50 ? 40000 : i % 5 * 333;

            pieces[i] = (struct velo_rma_piece){local + i * 1333, AREA - 60000 - i * 1999, len};
            memcpy(model + pieces[i].offset, pieces[i].local, len);
            total += len;
        }
        /* The long piece overlaps others there: the later pieces win. */
        CHECK_OK(velo_rma_put_list(me.peer, pieces, PIECES, velo_rma_place(owner.stage->key, 0),
                                   VELO_RMA_NOTIFY_REQUESTER, 1));
        note = note_expect(me.rma);
        CHECK_EQ(note.len_bytes, total);
        CHECK_EQ(note.address, (uintptr_t)pieces[0].local);
        CHECK(memcmp(owner_memory(&owner), model, sizeof(model)) == 0);

        memset(back, 0, sizeof(back));
        for (size_t i = 0; i < PIECES; i++)
            pieces[i].local = back + (size_t)((unsigned char *)pieces[i].local - local);
        CHECK_OK(
            velo_rma_get_list(me.peer, pieces, PIECES, velo_rma_place(owner.stage->key, 0), 0, 0));
        flush(me.peer);
        memset(local, 0, sizeof(local));
        for (size_t i = 0; i < PIECES; i++)
            memcpy(local + ((unsigned char *)pieces[i].local - back), model + pieces[i].offset,
                   pieces[i].len_bytes);
        CHECK(memcmp(back, local, sizeof(back)) == 0);
        requester_close(&me);
        owner_stop(&owner);
    }
}

TEST(operations_on_nothing_are_done_and_notified)
{
    test_needs_shared_memory(); /* Only there is an access outside refused at once. */
    static const struct velo_rma_stride none = {8, 0, 8, 8}, empty = {0, 8, 8, 8};
    uint32_t notify = VELO_RMA_NOTIFY_REQUESTER | VELO_RMA_NOTIFY_COMPLETER;

    FOR_EACH_WAY(way)
    {
        struct owner owner;
        struct requester me;
        velo_rma_key_t key;

        owner_start(&owner, way, 64, VELO_RMA_RIGHT_WRITE, VELO_RMA_PEER_ANY);
        requester_open(&me, REQUESTER_VPID);
        key = owner.stage->key;
        CHECK_OK(velo_rma_put(me.peer, NULL, 0, velo_rma_place(key, 64), notify, 0));
        CHECK_OK(velo_rma_put_strided(me.peer, NULL, &none, velo_rma_place(key, 64), notify, 1));
        CHECK_OK(velo_rma_put_strided(me.peer, NULL, &empty, velo_rma_place(key, 64), notify, 2));
        CHECK_OK(velo_rma_put_list(me.peer, NULL, 0, velo_rma_place(key, 0), notify, 3));
        for (unsigned i = 0; i < 4; i++) {
            struct velo_rma_notification note = note_expect(me.rma);

            CHECK_EQ(note.cookie, i);
            CHECK_EQ(note.class_, VELO_RMA_CLASS_REQUESTER);
            CHECK_EQ(note.len_bytes, 0);
            CHECK_EQ(owner_note(&owner, i).cookie, i);
        }
        CHECK_STATUS(velo_rma_put(me.peer, NULL, 0, velo_rma_place(key, 65), 0, 0),
                     VELO_ERR_ACCESS);
        requester_close(&me);
        owner_stop(&owner);
    }
}

/* ---- notifications --------------------------------------------------------------------------- */

struct expected {
    enum velo_rma_operation op;
    uint64_t len_bytes;
    uint64_t offset;   /* In the owner's memory. */
    uint32_t at_owner; /* The class there. */
};

static void check_note(const struct velo_rma_notification *note, const struct expected *expected,
                       int class_, velo_id_t peer, uint64_t address)
{
    CHECK_EQ(note->class_, class_);
    CHECK_EQ(note->op, expected->op);
    CHECK_EQ(note->status, VELO_OK);
    CHECK_EQ(note->peer, peer);
    CHECK_EQ(note->len_bytes, expected->len_bytes);
    CHECK_EQ(note->address, address);
    CHECK_EQ(note->cookie, 1000 + expected->op);
}

static int post(struct velo_rma_peer *peer, const struct expected *expected, uint64_t *local,
                velo_rma_key_t key, uint32_t notify)
{
    uint64_t cookie = 1000 + expected->op;

    switch (expected->op) {
    case VELO_RMA_OPERATION_PUT:
        return velo_rma_put(peer, local, expected->len_bytes, velo_rma_place(key, expected->offset),
                            notify, cookie);
    case VELO_RMA_OPERATION_GET:
        return velo_rma_get(peer, local, expected->len_bytes, velo_rma_place(key, expected->offset),
                            notify, cookie);
    case VELO_RMA_OPERATION_PUT_IMMEDIATE:
        return velo_rma_put_immediate(peer, 1, expected->len_bytes,
                                      velo_rma_place(key, expected->offset), notify, cookie);
    case VELO_RMA_OPERATION_FETCH_COMPARE_ADD:
        return velo_rma_fetch_compare_add(peer, local, velo_rma_place(key, expected->offset), 0, 0,
                                          notify, cookie);
    case VELO_RMA_OPERATION_FETCH_OP:
        return velo_rma_fetch_op(peer, local, velo_rma_place(key, expected->offset),
                                 VELO_RMA_ATOMIC_ADD, VELO_RMA_TYPE_FLOAT, &(float){0}, notify,
                                 cookie);
    case VELO_RMA_OPERATION_COMPARE_SWAP:
        return velo_rma_compare_swap(peer, local, 8, velo_rma_place(key, expected->offset),
                                     &(uint64_t){0}, &(uint64_t){0}, notify, cookie);
    default:
        return velo_rma_notify(peer, notify, cookie);
    }
}

TEST(notifications_tell_class_operation_size_address_and_cookie)
{
    static const struct expected all[] = {
        {VELO_RMA_OPERATION_PUT, 40000, 3, VELO_RMA_CLASS_COMPLETER},
        {VELO_RMA_OPERATION_GET, 40000, 5, VELO_RMA_CLASS_RESPONDER},
        {VELO_RMA_OPERATION_PUT_IMMEDIATE, 4, 8, VELO_RMA_CLASS_COMPLETER},
        {VELO_RMA_OPERATION_FETCH_COMPARE_ADD, 8, 16, VELO_RMA_CLASS_RESPONDER},
        {VELO_RMA_OPERATION_FETCH_OP, 4, 20, VELO_RMA_CLASS_RESPONDER},
        {VELO_RMA_OPERATION_COMPARE_SWAP, 8, 24, VELO_RMA_CLASS_RESPONDER},
        {VELO_RMA_OPERATION_NOTIFY, 0, 0, VELO_RMA_CLASS_COMPLETER},
    };
    static uint64_t local[5000];

    FOR_EACH_WAY(way)
    {
        struct owner owner;
        struct requester me;
        unsigned notes = 0;

        owner_start(&owner, way, 40100, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
        requester_open(&me, REQUESTER_VPID);
        for (size_t i = 0; i < ARRAY_LEN(all); i++) {
            bool has_local = all[i].op != VELO_RMA_OPERATION_PUT_IMMEDIATE &&
                             all[i].op != VELO_RMA_OPERATION_NOTIFY;
            uint64_t here = has_local ? (uintptr_t)local : 0;
            uint64_t there =
                all[i].op == VELO_RMA_OPERATION_NOTIFY ? 0 : owner.stage->addr + all[i].offset;
            struct velo_rma_notification note;

            /* At one side only, then at both. */
            if (all[i].op != VELO_RMA_OPERATION_NOTIFY) {
                CHECK_OK(
                    post(me.peer, &all[i], local, owner.stage->key, VELO_RMA_NOTIFY_REQUESTER));
                note = note_expect(me.rma);
                check_note(&note, &all[i], VELO_RMA_CLASS_REQUESTER, OWNER_VPID, here);
            }
            CHECK_OK(post(me.peer, &all[i], local, owner.stage->key, all[i].at_owner));
            flush(me.peer);
            note = owner_note(&owner, notes++);
            check_note(&note, &all[i], (int)all[i].at_owner, REQUESTER_VPID, there);
            note_none(me.rma);
            CHECK_OK(post(me.peer, &all[i], local, owner.stage->key,
                          VELO_RMA_NOTIFY_REQUESTER | all[i].at_owner));
            note = note_expect(me.rma);
            check_note(&note, &all[i], VELO_RMA_CLASS_REQUESTER, OWNER_VPID, here);
            note = owner_note(&owner, notes++);
            check_note(&note, &all[i], (int)all[i].at_owner, REQUESTER_VPID, there);
        }
        requester_close(&me);
        CHECK_EQ(atomic_load(&owner.stage->notes_len), notes);
        owner_stop(&owner);
    }
}

/* The responder of an update is told the word after it, and whether it was written. */
TEST(a_responder_learns_what_an_update_has_made_of_its_word)
{
    static const struct {
        uint64_t before, compare, operand, after;
        uint32_t op, how;
        size_t len_bytes, written_bytes;
    } all[] = {
        {5, 5, 2, 7, VELO_RMA_OPERATION_FETCH_COMPARE_ADD, 0, 8, 8},
        {5, 4, 2, 5, VELO_RMA_OPERATION_FETCH_COMPARE_ADD, 0, 8, 0},
        {5, 4, 2, 7, VELO_RMA_OPERATION_FETCH_COMPARE_ADD, VELO_RMA_ADD_ALWAYS, 8, 8},
        {5, 9, 0, 5, VELO_RMA_OPERATION_FETCH_COMPARE_ADD, VELO_RMA_ADD_AT_MOST, 8, 8},
        {5, 4, 2, 5, VELO_RMA_OPERATION_FETCH_COMPARE_ADD, VELO_RMA_ADD_AT_MOST, 8, 0},
        {5, UINT64_MAX, 2, 5, VELO_RMA_OPERATION_FETCH_COMPARE_ADD, VELO_RMA_ADD_AT_MOST, 8, 0},
        {5, 0, UINT64_MAX, 4, VELO_RMA_OPERATION_FETCH_OP, 0, 8, 8},
        {5, 0, UINT32_MAX, 4, VELO_RMA_OPERATION_FETCH_OP, 0, 4, 4},
        {5, 5, 9, 9, VELO_RMA_OPERATION_COMPARE_SWAP, 0, 8, 8},
        {5, 6, 9, 5, VELO_RMA_OPERATION_COMPARE_SWAP, 0, 8, 0},
        {5, 5, 9, 9, VELO_RMA_OPERATION_COMPARE_SWAP, 0, 4, 4},
        {5, 6, 9, 5, VELO_RMA_OPERATION_COMPARE_SWAP, 0, 4, 0},
    };
    FOR_EACH_WAY(way)
    {
        struct owner owner;
        struct requester me;
        owner_start(&owner, way, 64, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
        requester_open(&me, REQUESTER_VPID);
        const struct velo_rma_place place = velo_rma_place(owner.stage->key, 8);
        for (unsigned i = 0; i < ARRAY_LEN(all); i++) {
            uint64_t old = 0;
            CHECK_OK(velo_rma_put(me.peer, &all[i].before, 8, place, 0, 0));
            flush(me.peer);
            if (all[i].op == VELO_RMA_OPERATION_FETCH_COMPARE_ADD)
                CHECK_OK(velo_rma_fetch_compare_add(me.peer, &old, place, all[i].compare,
                                                    all[i].operand,
                                                    all[i].how | VELO_RMA_NOTIFY_RESPONDER, i));
            else if (all[i].op == VELO_RMA_OPERATION_FETCH_OP)
                CHECK_OK(velo_rma_fetch_op(me.peer, i % 2 ? &old : NULL, place, VELO_RMA_ATOMIC_ADD,
                                           all[i].len_bytes == 8 ? VELO_RMA_TYPE_UINT64
                                                                 : VELO_RMA_TYPE_UINT32,
                                           &all[i].operand, VELO_RMA_NOTIFY_RESPONDER, i));
            else
                CHECK_OK(velo_rma_compare_swap(me.peer, &old, all[i].len_bytes, place,
                                               &all[i].compare, &all[i].operand,
                                               VELO_RMA_NOTIFY_RESPONDER, i));
            flush(me.peer);
            struct velo_rma_notification note = owner_note(&owner, i);
            CHECK_EQ(note.cookie, i);
            CHECK_EQ(note.word, all[i].after);
            CHECK_EQ(note.len_bytes, all[i].written_bytes);
            if (all[i].op != VELO_RMA_OPERATION_FETCH_OP || i % 2)
                CHECK_EQ(old, all[i].before);
        }
        requester_close(&me);
        owner_stop(&owner);
    }
}

/* ---- ourselves ------------------------------------------------------------------------------- */

TEST(a_unit_is_its_own_peer)
{
    static unsigned char memory[100000], local[100000];

    for (enum way way = WAY_DIRECT; way < WAYS; way++) {
        struct velo_port *port = port_open(VELO_VPID_ANY);
        struct velo_rma_peer *self;
        struct velo_rma_mem *mem;
        struct velo_rma *rma;
        struct velo_rma_notification note;
        unsigned char *there = memory;
        uint64_t old = 1;

        way_set(way);
        rma = rma_open(port);
        CHECK_OK(velo_rma_connect(rma, velo_port_id(port), &self, 0));
        if (way == WAY_DIRECT) {
            CHECK_OK(velo_rma_mem_alloc(rma, sizeof(memory), VELO_RMA_RIGHT_ALL, velo_port_id(port),
                                        &mem));
            there = velo_rma_mem_addr(mem);
        } else {
            CHECK_OK(velo_rma_mem_register(rma, memory, sizeof(memory), VELO_RMA_RIGHT_ALL,
                                           velo_port_id(port), &mem));
        }
        memset(memory, 0, sizeof(memory));
        pattern_fill(local, sizeof(local), 9);
        CHECK_OK(velo_rma_put(self, local, sizeof(local), velo_rma_place(velo_rma_mem_key(mem), 0),
                              VELO_RMA_NOTIFY_COMPLETER, 4));
        note = note_expect(rma);
        CHECK_EQ(note.class_, VELO_RMA_CLASS_COMPLETER);
        CHECK_EQ(note.address, (uintptr_t)there);
        CHECK(pattern_matches(there, sizeof(local), 9));
        CHECK_OK(velo_rma_get(self, local, 8, velo_rma_place(velo_rma_mem_key(mem), 16),
                              VELO_RMA_NOTIFY_RESPONDER, 5));
        CHECK_EQ(note_expect(rma).class_, VELO_RMA_CLASS_RESPONDER);
        flush(self);
        CHECK(memcmp(local, there + 16, 8) == 0);
        memset(there, 0, 8);
        CHECK_OK(velo_rma_fetch_compare_add(self, &old, velo_rma_place(velo_rma_mem_key(mem), 0), 0,
                                            3, 0, 0));
        flush(self);
        CHECK_EQ(old, 0);
        CHECK_EQ(there[0], 3);
        CHECK_OK(velo_rma_close(rma));
        CHECK_OK(velo_port_close(port));
    }
}

/* Every length at every alignment of its end, and nothing beside it. */
TEST(a_put_whose_end_comes_last_writes_the_same_bytes)
{
    static unsigned char local[256];

    FOR_EACH_WAY(way)
    {
        struct owner owner;
        struct requester me;

        owner_start(&owner, way, 256, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
        requester_open(&me, REQUESTER_VPID);
        for (size_t len = 0; len <= 130; len += scaled(1, 13)) {
            for (size_t at = 0; at < 9; at++) {
                memset(local, 0xee, sizeof local);
                CHECK_OK(velo_rma_put(me.peer, local, sizeof local,
                                      velo_rma_place(owner.stage->key, 0), VELO_RMA_TAIL_LAST, 0));
                flush(me.peer); /* Its source is filled anew. */
                pattern_fill(local, len, len);
                CHECK_OK(velo_rma_put(me.peer, local, len, velo_rma_place(owner.stage->key, at),
                                      VELO_RMA_TAIL_LAST, 0));
                flush(me.peer);
                const unsigned char *memory = owner_memory(&owner);
                CHECK(pattern_matches(memory + at, len, len));
                CHECK(is_untouched(memory, 0, at, 0xee));
                CHECK(is_untouched(memory, at + len, 256, 0xee));
            }
        }
        CHECK_STATUS(velo_rma_get(me.peer, local, 1, velo_rma_place(owner.stage->key, 0),
                                  VELO_RMA_TAIL_LAST, 0),
                     VELO_ERR_ARG);
        requester_close(&me);
        owner_stop(&owner);
    }
}
