/* SPDX-License-Identifier: Apache-2.0 */
/* Refused operations are counted on both sides, and touch nothing. */
#include <string.h>

#include "stage.h"

enum { SIZE = 4096 };

struct refusals {
    struct owner owner;
    struct requester me;
    unsigned count;
    unsigned char local[SIZE];
};

static void begin(struct refusals *r, enum way way, uint32_t rights, velo_id_t grant)
{
    r->count = 0;
    memset(r->local, 0x55, sizeof(r->local));
    owner_start(&r->owner, way, SIZE, rights, grant);
    requester_open(&r->me, REQUESTER_VPID);
}

#define REFUSED(r, call)                                                                           \
    do {                                                                                           \
        CHECK_FAILS(call, VELO_ERR_ACCESS, "does not permit");                                     \
        (r)->count++;                                                                              \
    } while (0)

static void end(struct refusals *r)
{
    struct velo_rma_counters mine;

    note_none(r->me.rma);
    flush(r->me.peer);
    CHECK_OK(velo_rma_counters(r->me.rma, &mine, sizeof mine));
    owner_order(&r->owner, STAGE_COUNT);
    CHECK_EQ(mine.refused, r->count);
    CHECK_EQ(r->owner.stage->counters.refused_peers, r->count);
    const unsigned char *memory = owner_memory(&r->owner);
    for (size_t i = 0; i < SIZE; i++) {
        CHECK_EQ(memory[i], 0);
        CHECK_EQ(r->local[i], 0x55);
    }
    CHECK_EQ(atomic_load(&r->owner.stage->notes_len), 0);
    requester_close(&r->me);
    owner_stop(&r->owner);
}

/* Every operation on 8 bytes, which must be refused. */
static void all_refused(struct refusals *r, velo_rma_key_t key, uint64_t offset, uint32_t rights)
{
    const struct velo_rma_stride stride = {2, 4, 2, 2};
    struct velo_rma_piece piece = {r->local, offset, 8};
    struct velo_rma_peer *peer = r->me.peer;
    uint32_t at_both = VELO_RMA_NOTIFY_REQUESTER;
    uint64_t *old = (uint64_t *)(void *)r->local;
    const uint64_t zero = 0, word = 1;

    if (rights & VELO_RMA_RIGHT_WRITE) {
        REFUSED(r, velo_rma_put(peer, r->local, 8, velo_rma_place(key, offset),
                                at_both | VELO_RMA_NOTIFY_COMPLETER, 0));
        REFUSED(r, velo_rma_put_immediate(peer, 1, 8, velo_rma_place(key, offset), at_both, 0));
        REFUSED(r, velo_rma_put_strided(peer, r->local, &stride, velo_rma_place(key, offset),
                                        at_both, 0));
        REFUSED(r, velo_rma_put_list(peer, &piece, 1, velo_rma_place(key, 0), at_both, 0));
    }
    if (rights & VELO_RMA_RIGHT_READ) {
        REFUSED(r, velo_rma_get(peer, r->local, 8, velo_rma_place(key, offset),
                                at_both | VELO_RMA_NOTIFY_RESPONDER, 0));
        REFUSED(r, velo_rma_get_strided(peer, r->local, &stride, velo_rma_place(key, offset),
                                        at_both, 0));
        REFUSED(r, velo_rma_get_list(peer, &piece, 1, velo_rma_place(key, 0), at_both, 0));
    }
    if (rights & VELO_RMA_RIGHT_ATOMIC) {
        REFUSED(r, velo_rma_fetch_compare_add(peer, old, velo_rma_place(key, offset), 0, 1,
                                              VELO_RMA_ADD_ALWAYS | at_both, 0));
        REFUSED(r, velo_rma_fetch_op(peer, old, velo_rma_place(key, offset), VELO_RMA_ATOMIC_SWAP,
                                     VELO_RMA_TYPE_UINT64, &word, at_both, 0));
        REFUSED(r, velo_rma_compare_swap(peer, old, 8, velo_rma_place(key, offset), &zero, &word,
                                         at_both, 0));
    }
}

TEST(each_right_that_is_missing_is_refused)
{
    test_needs_shared_memory(); /* It is refused at once. */
    FOR_EACH_WAY(way)
    {
        for (uint32_t rights = 1; rights < VELO_RMA_RIGHT_ALL; rights++) {
            struct refusals r;

            begin(&r, way, rights, VELO_RMA_PEER_ANY);
            all_refused(&r, r.owner.stage->key, 0, VELO_RMA_RIGHT_ALL & ~rights);
            end(&r);
        }
    }
}

TEST(only_the_peer_that_was_granted_memory_may_use_it)
{
    test_needs_shared_memory(); /* It is refused at once. */
    FOR_EACH_WAY(way)
    {
        struct refusals r;
        struct requester granted;
        uint64_t word = 0;

        begin(&r, way, VELO_RMA_RIGHT_ALL, VELO_ID(0, 7));
        all_refused(&r, r.owner.stage->key, 0, VELO_RMA_RIGHT_ALL);
        requester_open(&granted, 7);
        CHECK_OK(velo_rma_put(granted.peer, &word, 8, velo_rma_place(r.owner.stage->key, 0), 0, 0));
        CHECK_OK(velo_rma_get(granted.peer, &word, 8, velo_rma_place(r.owner.stage->key, 0), 0, 0));
        CHECK_OK(velo_rma_fetch_compare_add(granted.peer, &word,
                                            velo_rma_place(r.owner.stage->key, 0), 9, 9, 0, 0));
        flush(granted.peer);
        requester_close(&granted);
        end(&r);
    }
}

TEST(wrong_and_forged_keys_are_refused)
{
    test_needs_shared_memory(); /* It is refused at once. */
    FOR_EACH_WAY(way)
    {
        struct rng rng = {test_seed()};
        struct refusals r;

        begin(&r, way, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
        all_refused(&r, 0, 0, VELO_RMA_RIGHT_ALL);
        all_refused(&r, UINT64_MAX, 0, VELO_RMA_RIGHT_ALL);
        all_refused(&r, r.owner.stage->key + 1, 0, VELO_RMA_RIGHT_ALL);
        all_refused(&r, r.owner.stage->key & 0xffff, 0, VELO_RMA_RIGHT_ALL);
        for (int bit = 0; bit < 64; bit++)
            all_refused(&r, r.owner.stage->key ^ (UINT64_C(1) << bit), 0, VELO_RMA_RIGHT_ALL);
        for (size_t i = 0; i < scaled(1000, 100); i++)
            all_refused(&r, rng_next(&rng), 0, VELO_RMA_RIGHT_ALL);
        end(&r);
    }
}

TEST(a_key_is_worthless_after_deregistration_and_after_registering_anew)
{
    test_needs_shared_memory(); /* It is refused at once. */
    FOR_EACH_WAY(way)
    {
        struct refusals r;
        velo_rma_key_t stale;

        begin(&r, way, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
        stale = r.owner.stage->key;
        owner_order(&r.owner, STAGE_DEREGISTER);
        all_refused(&r, stale, 0, VELO_RMA_RIGHT_ALL);
        owner_order(&r.owner, STAGE_REGISTER);
        CHECK(r.owner.stage->key != stale);
        CHECK_EQ(r.owner.stage->key & 0xffff, stale & 0xffff); /* The same entry. */
        all_refused(&r, stale, 0, VELO_RMA_RIGHT_ALL);
        end(&r);
    }
}

TEST(nothing_outside_a_registration_can_be_reached)
{
    test_needs_shared_memory(); /* It is refused at once. */
    static const uint64_t offsets[] = {
        SIZE - 7,       SIZE,           SIZE + 1,          UINT64_MAX,
        UINT64_MAX - 7, UINT64_MAX - 8, UINT64_MAX - SIZE, (uint64_t)INT64_MAX - 3};

    FOR_EACH_WAY(way)
    {
        struct refusals r;
        struct velo_rma_peer *peer;
        velo_rma_key_t key;

        begin(&r, way, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
        peer = r.me.peer;
        key = r.owner.stage->key;
        for (size_t i = 0; i < ARRAY_LEN(offsets); i++)
            all_refused(&r, key, offsets[i], VELO_RMA_RIGHT_ALL);
        REFUSED(&r, velo_rma_get(peer, r.local, SIZE + 1, velo_rma_place(key, 0), 0, 0));
        REFUSED(&r, velo_rma_get(peer, r.local, SIZE_MAX, velo_rma_place(key, 1), 0, 0));
        REFUSED(&r, velo_rma_put(peer, r.local, SIZE_MAX - 7, velo_rma_place(key, 8), 0, 0));
        /* Only the last block or piece is outside; or the stride wraps around. */
        const struct velo_rma_stride strides[] = {{8, 2, 8, SIZE - 7},
                                                  {8, 513, 0, 8},
                                                  {8, 3, 0, UINT64_MAX / 2},
                                                  {8, 3, 0, UINT64_MAX / 2 + 1},
                                                  {8, 2, 0, UINT64_MAX - 7}};
        for (size_t i = 0; i < ARRAY_LEN(strides); i++) {
            REFUSED(&r,
                    velo_rma_put_strided(peer, r.local, &strides[i], velo_rma_place(key, 8), 0, 0));
            REFUSED(&r,
                    velo_rma_get_strided(peer, r.local, &strides[i], velo_rma_place(key, 8), 0, 0));
        }
        struct velo_rma_piece pieces[] = {{r.local, 0, 8}, {r.local, SIZE - 7, 8}};
        REFUSED(&r, velo_rma_put_list(peer, pieces, 2, velo_rma_place(key, 0), 0, 0));
        REFUSED(&r, velo_rma_get_list(peer, pieces, 2, velo_rma_place(key, 0), 0, 0));
        pieces[1].offset = UINT64_MAX - 3;
        REFUSED(&r, velo_rma_put_list(peer, pieces, 2, velo_rma_place(key, 0), 0, 0));
        end(&r);
    }
}

TEST(the_whole_registration_can_be_reached)
{
    FOR_EACH_WAY(way)
    {
        static unsigned char local[SIZE];
        struct owner owner;
        struct requester me;
        uint64_t old;

        owner_start(&owner, way, SIZE, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
        requester_open(&me, REQUESTER_VPID);
        CHECK_OK(velo_rma_put(me.peer, local, SIZE, velo_rma_place(owner.stage->key, 0), 0, 0));
        CHECK_OK(velo_rma_get(me.peer, local, SIZE, velo_rma_place(owner.stage->key, 0), 0, 0));
        CHECK_OK(velo_rma_put_immediate(me.peer, 1, 1, velo_rma_place(owner.stage->key, SIZE - 1),
                                        0, 0));
        CHECK_OK(velo_rma_fetch_compare_add(
            me.peer, &old, velo_rma_place(owner.stage->key, SIZE - 8), 0, 1, 0, 0));
        const struct velo_rma_stride stride = {8, SIZE / 8, 8, 8};
        CHECK_OK(velo_rma_get_strided(me.peer, local, &stride, velo_rma_place(owner.stage->key, 0),
                                      0, 0));
        flush(me.peer);
        note_none(me.rma);
        requester_close(&me);
        owner_stop(&owner);
    }
}
