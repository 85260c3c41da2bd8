/* SPDX-License-Identifier: Apache-2.0 */
/* Registrations and allocations: how many, nested, overlapping, and what becomes of their memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stage.h"

struct pair {
    struct velo_port *port;
    struct velo_rma *rma;
    struct velo_rma_peer *self;
};

static void pair_open(struct pair *p)
{
    /* With attach forbidden allocated memory is reached through the file, as by any peer. */
    way_set(WAY_ASKED);
    p->port = port_open(VELO_VPID_ANY);
    p->rma = rma_open(p->port);
    CHECK_OK(velo_rma_connect(p->rma, velo_port_id(p->port), &p->self, 0));
}

static void pair_close(struct pair *p)
{
    CHECK_OK(velo_rma_close(p->rma));
    CHECK_OK(velo_port_close(p->port));
}

static uint64_t registered(struct velo_rma *rma)
{
    struct velo_rma_counters counters;

    CHECK_OK(velo_rma_counters(rma, &counters, sizeof counters));
    return counters.registered;
}

TEST(registrations_may_nest_and_overlap_and_each_has_its_own_rights)
{
    test_needs_shared_memory(); /* It is refused at once. */
    static unsigned char memory[300];
    struct velo_rma_mem *outer, *inner, *overlapping, *twin;
    struct pair p;

    pair_open(&p);
    CHECK_OK(
        velo_rma_mem_register(p.rma, memory, 300, VELO_RMA_RIGHT_READ, VELO_RMA_PEER_ANY, &outer));
    CHECK_OK(velo_rma_mem_register(p.rma, memory + 100, 50, VELO_RMA_RIGHT_WRITE, VELO_RMA_PEER_ANY,
                                   &inner));
    CHECK_OK(velo_rma_mem_register(p.rma, memory + 120, 100, VELO_RMA_RIGHT_WRITE,
                                   VELO_RMA_PEER_ANY, &overlapping));
    CHECK_OK(
        velo_rma_mem_register(p.rma, memory, 300, VELO_RMA_RIGHT_WRITE, VELO_RMA_PEER_ANY, &twin));
    CHECK_EQ(registered(p.rma), 4);
    CHECK(velo_rma_mem_addr(inner) == memory + 100);
    CHECK_STATUS(
        velo_rma_put_immediate(p.self, 1, 1, velo_rma_place(velo_rma_mem_key(outer), 0), 0, 0),
        VELO_ERR_ACCESS);
    CHECK_OK(
        velo_rma_put_immediate(p.self, 2, 1, velo_rma_place(velo_rma_mem_key(inner), 49), 0, 0));
    CHECK_STATUS(
        velo_rma_put_immediate(p.self, 1, 1, velo_rma_place(velo_rma_mem_key(inner), 50), 0, 0),
        VELO_ERR_ACCESS);
    CHECK_OK(velo_rma_put_immediate(p.self, 3, 1, velo_rma_place(velo_rma_mem_key(overlapping), 99),
                                    0, 0));
    flush(p.self);
    CHECK_EQ(memory[149], 2);
    CHECK_EQ(memory[219], 3);
    /* One goes, the others stay. */
    CHECK_OK(velo_rma_mem_deregister(twin, VELO_FOREVER));
    CHECK_OK(velo_rma_mem_deregister(inner, VELO_FOREVER));
    CHECK_OK(velo_rma_put_immediate(p.self, 4, 1, velo_rma_place(velo_rma_mem_key(overlapping), 0),
                                    0, 0));
    flush(p.self);
    CHECK_EQ(memory[120], 4);
    CHECK_EQ(registered(p.rma), 2);
    pair_close(&p);
}

static int by_value(const void *a, const void *b)
{
    const velo_rma_key_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* A look finds memory that is registered for us, with all the rights, in one piece; no other. */
TEST(what_is_registered_at_an_address_is_found)
{
    test_needs_shared_memory(); /* Registrations are looked up. */
    static unsigned char memory[300];
    struct velo_rma_mem *readable, *writable, *others;
    const uint64_t at = (uintptr_t)memory;
    struct velo_rma_place found = {0, 0};
    struct pair p;

    pair_open(&p);
    CHECK_FAILS(velo_rma_mem_find(p.self, at, 1, VELO_RMA_RIGHT_READ, &found), VELO_ERR_ACCESS,
                "registered nothing");
    CHECK_OK(velo_rma_mem_register(p.rma, memory, 300, VELO_RMA_RIGHT_ALL, 77, &others));
    CHECK_OK(velo_rma_mem_register(p.rma, memory, 200, VELO_RMA_RIGHT_READ, VELO_RMA_PEER_ANY,
                                   &readable));
    CHECK_OK(velo_rma_mem_register(p.rma, memory + 100, 200, VELO_RMA_RIGHT_ALL,
                                   velo_port_id(p.port), &writable));
    CHECK_OK(velo_rma_mem_find(p.self, at, 200, VELO_RMA_RIGHT_READ, &found));
    CHECK(found.key == velo_rma_mem_key(readable) && found.offset == 0);
    CHECK_OK(velo_rma_mem_find(p.self, at + 299, 1, VELO_RMA_RIGHT_READ, &found));
    CHECK(found.key == velo_rma_mem_key(writable) && found.offset == 199);
    CHECK_OK(velo_rma_mem_find(p.self, at + 100, 100, VELO_RMA_RIGHT_READ | VELO_RMA_RIGHT_ATOMIC,
                               &found));
    CHECK(found.key == velo_rma_mem_key(writable) && found.offset == 0);
    CHECK_STATUS(velo_rma_mem_find(p.self, at, 201, VELO_RMA_RIGHT_READ, &found), VELO_ERR_ACCESS);
    CHECK_STATUS(velo_rma_mem_find(p.self, at + 99, 1, VELO_RMA_RIGHT_WRITE, &found),
                 VELO_ERR_ACCESS);
    CHECK_STATUS(velo_rma_mem_find(p.self, at - 1, 1, VELO_RMA_RIGHT_READ, &found),
                 VELO_ERR_ACCESS);
    CHECK_STATUS(velo_rma_mem_find(p.self, at + 300, 1, VELO_RMA_RIGHT_READ, &found),
                 VELO_ERR_ACCESS);
    CHECK_STATUS(velo_rma_mem_find(p.self, at + 299, 2, VELO_RMA_RIGHT_READ, &found),
                 VELO_ERR_ACCESS);
    CHECK_STATUS(velo_rma_mem_find(p.self, at + 1, SIZE_MAX, VELO_RMA_RIGHT_READ, &found),
                 VELO_ERR_ACCESS);
    CHECK_OK(velo_rma_mem_deregister(writable, VELO_FOREVER));
    CHECK_STATUS(velo_rma_mem_find(p.self, at + 299, 1, VELO_RMA_RIGHT_READ, &found),
                 VELO_ERR_ACCESS);
    CHECK_OK(velo_rma_mem_deregister(readable, VELO_FOREVER));
    CHECK_OK(velo_rma_mem_deregister(others, VELO_FOREVER));
    pair_close(&p);
}

TEST(as_many_registrations_fit_as_promised_and_all_keys_differ)
{
    static struct velo_rma_mem *mems[VELO_RMA_MEMS_MAX];
    static velo_rma_key_t keys[2 * VELO_RMA_MEMS_MAX];
    static uint64_t words[VELO_RMA_MEMS_MAX];
    struct velo_rma_mem *extra;
    struct pair p;

    pair_open(&p);
    for (int lap = 0; lap < 2; lap++) {
        for (size_t i = 0; i < VELO_RMA_MEMS_MAX; i++) {
            CHECK_OK(velo_rma_mem_register(p.rma, &words[i], 8, VELO_RMA_RIGHT_ALL,
                                           VELO_RMA_PEER_ANY, &mems[i]));
            keys[(size_t)lap * VELO_RMA_MEMS_MAX + i] = velo_rma_mem_key(mems[i]);
        }
        CHECK_FAILS(velo_rma_mem_register(p.rma, words, 8, 1, VELO_RMA_PEER_ANY, &extra),
                    VELO_ERR_FULL, "deregister");
        CHECK_FAILS(velo_rma_mem_alloc(p.rma, 8, 1, VELO_RMA_PEER_ANY, &extra), VELO_ERR_FULL,
                    "deregister");
        CHECK_EQ(registered(p.rma), VELO_RMA_MEMS_MAX);
        for (size_t i = 0; i < VELO_RMA_MEMS_MAX; i += 4999) {
            CHECK_OK(velo_rma_put_immediate(p.self, i + 1, 8,
                                            velo_rma_place(velo_rma_mem_key(mems[i]), 0), 0, 0));
            flush(p.self);
            CHECK_EQ(words[i], i + 1);
        }
        for (size_t i = 0; i < VELO_RMA_MEMS_MAX; i++)
            CHECK_OK(velo_rma_mem_deregister(mems[i], VELO_FOREVER));
    }
    qsort(keys, ARRAY_LEN(keys), sizeof(keys[0]), by_value);
    for (size_t i = 1; i < ARRAY_LEN(keys); i++)
        CHECK(keys[i - 1] < keys[i]);
    pair_close(&p);
}

/* Memory in use by the file of our unit. */
static uint64_t file_bytes(const struct pair *p)
{
    velo_id_t id = velo_port_id(p->port);
    char path[4096];
    struct stat st;

    snprintf(path, sizeof(path), "%s/velo.%s+rma.%u.%u", test_shm_dir(), test_domain(),
             VELO_ID_NODE(id), VELO_ID_VPID(id));
    CHECK_EQ(stat(path, &st), 0);
    return (uint64_t)st.st_blocks * 512;
}

TEST(allocated_memory_is_zeroed_aligned_and_given_back)
{
    enum { BYTES = 1 << 20 };
    struct pair p;
    uint64_t before;

    pair_open(&p);
    before = file_bytes(&p);
    for (int i = 0; i < 20; i++) {
        struct velo_rma_mem *mem;
        unsigned char *memory;

        CHECK_OK(velo_rma_mem_alloc(p.rma, BYTES, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY, &mem));
        memory = velo_rma_mem_addr(mem);
        CHECK_EQ((uintptr_t)memory % (uintptr_t)sysconf(_SC_PAGESIZE), 0);
        for (size_t b = 0; b < BYTES; b++)
            CHECK_EQ(memory[b], 0);
        memset(memory, 0xff, BYTES);
        CHECK(file_bytes(&p) >= before + BYTES);
        CHECK(file_bytes(&p) < before + 2 * BYTES);
        CHECK_OK(velo_rma_mem_deregister(mem, VELO_FOREVER));
        CHECK_EQ(file_bytes(&p), before);
    }
    pair_close(&p);
}

TEST(allocations_that_come_and_go_never_share_memory)
{
    enum { SLOTS = 40 };
    struct {
        struct velo_rma_mem *mem;
        size_t len;
        uint64_t seed;
    } slots[SLOTS] = {{NULL, 0, 0}};
    static unsigned char buf[100000];
    const uint64_t rounds = scaled(3000, 100);
    struct rng rng = {test_seed()};
    struct pair p;

    pair_open(&p);
    for (uint64_t round = 1; round <= rounds; round++) {
        uint32_t s = rng_below(&rng, SLOTS);

        if (slots[s].mem == NULL) {
            slots[s].len = 1 + rng_below(&rng, (uint32_t)scaled(sizeof(buf) - 1, 3000));
            slots[s].seed = round;
            CHECK_OK(velo_rma_mem_alloc(p.rma, slots[s].len, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY,
                                        &slots[s].mem));
            pattern_fill(buf, slots[s].len, round);
            CHECK_OK(velo_rma_put(p.self, buf, slots[s].len,
                                  velo_rma_place(velo_rma_mem_key(slots[s].mem), 0), 0, 0));
            flush(p.self);
            continue;
        }
        CHECK(pattern_matches(velo_rma_mem_addr(slots[s].mem), slots[s].len, slots[s].seed));
        CHECK_OK(velo_rma_get(p.self, buf, slots[s].len,
                              velo_rma_place(velo_rma_mem_key(slots[s].mem), 0), 0, 0));
        flush(p.self);
        CHECK(pattern_matches(buf, slots[s].len, slots[s].seed));
        CHECK_OK(velo_rma_mem_deregister(slots[s].mem, VELO_FOREVER));
        slots[s].mem = NULL;
    }
    pair_close(&p);
}

/* Numbers last as long as registrations do, and give no right. Where the peer's table is not seen,
 * its owner looks. */
/* Do we see our own table, or does our library look when an operation comes? */
static bool own_table_is_seen(void)
{
    return !test_is_carried() || !strstr(getenv("VELO_NETWORK"), "own=");
}

TEST(a_registration_is_found_by_its_number)
{
    static unsigned char memory[64];
    struct velo_rma_place place = {0, 0};
    struct velo_rma_mem *mem, *other;
    struct velo_rma_notification note;
    struct pair p;
    const velo_id_t nobody = 77;

    pair_open(&p);
    CHECK_OK(velo_rma_mem_register(p.rma, memory, 32, VELO_RMA_RIGHT_READ | VELO_RMA_RIGHT_WRITE,
                                   VELO_RMA_PEER_ANY, &mem));
    CHECK_OK(velo_rma_mem_register(p.rma, memory, 64, VELO_RMA_RIGHT_ALL, nobody, &other));
    CHECK_OK(velo_rma_mem_publish(other, 5));
    CHECK_OK(velo_rma_mem_publish(mem, 5));
    CHECK_OK(velo_rma_mem_lookup(p.self, 5, VELO_RMA_RIGHT_WRITE, &place));
    CHECK_OK(
        velo_rma_put_immediate(p.self, 3, 1, velo_rma_place(place.key, place.offset + 31), 0, 0));
    flush(p.self);
    CHECK_EQ(memory[31], 3);
    if (own_table_is_seen()) {
        CHECK_EQ(place.key, velo_rma_mem_key(mem));
        CHECK_STATUS(velo_rma_mem_lookup(p.self, 5, VELO_RMA_RIGHT_ATOMIC, &place),
                     VELO_ERR_ACCESS);
        CHECK_FAILS(velo_rma_mem_lookup(p.self, 6, VELO_RMA_RIGHT_READ, &place), VELO_ERR_ACCESS,
                    "under number");
    } else {
        CHECK_OK(velo_rma_put_immediate(p.self, 4, 1, velo_rma_place(place.key, 32), 0, 9));
        CHECK_EQ(velo_rma_poll(p.rma, &note, 1, TEST_PATIENCE_NS), 1);
        CHECK_EQ(note.status, VELO_ERR_ACCESS);
        /* The same of an address. */
        CHECK_OK(
            velo_rma_mem_find(p.self, (uintptr_t)memory + 30, 1, VELO_RMA_RIGHT_WRITE, &place));
        CHECK_OK(velo_rma_put_immediate(p.self, 0x0605, 2, place, 0, 0));
        flush(p.self);
        CHECK(memory[30] == 5 && memory[31] == 6 && memory[32] == 0);
    }
    CHECK_OK(velo_rma_mem_publish(mem, 0));
    /* Key 0 is nobody's, also not that of a registration without a number. */
    if (own_table_is_seen()) {
        CHECK_STATUS(velo_rma_put_immediate(p.self, 7, 1, velo_rma_place(0, 0), 0, 0),
                     VELO_ERR_ACCESS);
    } else {
        CHECK_OK(velo_rma_put_immediate(p.self, 7, 1, velo_rma_place(0, 0), 0, 0));
        CHECK_EQ(velo_rma_poll(p.rma, &note, 1, TEST_PATIENCE_NS), 1);
        CHECK_STATUS(note.status, VELO_ERR_ACCESS);
    }
    CHECK_EQ(memory[0], 0);
    CHECK_OK(velo_rma_mem_publish(mem, VELO_RMA_NUMBER_MAX));
    CHECK_OK(velo_rma_mem_lookup(p.self, VELO_RMA_NUMBER_MAX, VELO_RMA_RIGHT_READ, &place));
    CHECK_OK(velo_rma_mem_deregister(mem, VELO_FOREVER));
    CHECK_OK(velo_rma_mem_register(p.rma, memory, 1, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY, &mem));
    if (own_table_is_seen())
        CHECK_STATUS(velo_rma_mem_lookup(p.self, VELO_RMA_NUMBER_MAX, VELO_RMA_RIGHT_READ, &place),
                     VELO_ERR_ACCESS);
    CHECK_STATUS(velo_rma_mem_publish(NULL, 1), VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_mem_publish(mem, VELO_RMA_NUMBER_MAX + 1), VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_mem_lookup(p.self, 0, VELO_RMA_RIGHT_READ, &place), VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_mem_lookup(p.self, VELO_RMA_NUMBER_MAX + 1, VELO_RMA_RIGHT_READ, &place),
                 VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_mem_lookup(p.self, 1, 0, &place), VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_mem_lookup(p.self, 1, VELO_RMA_RIGHT_READ, NULL), VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_mem_lookup(NULL, 1, VELO_RMA_RIGHT_READ, &place), VELO_ERR_ARG);
    CHECK_OK(velo_rma_mem_deregister(mem, VELO_FOREVER));
    CHECK_OK(velo_rma_mem_deregister(other, VELO_FOREVER));
    pair_close(&p);
}
