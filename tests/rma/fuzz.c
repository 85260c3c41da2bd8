/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random registrations and operations, with right and wrong keys, ranges and rights, against a
 * model that knows what must be allowed and what memory must then hold.
 */
#include <stdlib.h>
#include <string.h>

#include "stage.h"

enum { BUFFER = 20000, REGIONS = 24, STALE = 16, LOCAL = 60000, MAX_BLOCKS = 6 };

struct region {
    struct velo_rma_mem *mem; /* NULL: none. */
    velo_rma_key_t key;
    unsigned char *memory;
    unsigned char *model;
    uint64_t len;
    uint32_t rights;
    velo_id_t grant;
    bool is_allocated;
};

struct world {
    struct rng rng;
    struct velo_port *owner_port, *port;
    struct velo_rma *owner, *rma;
    struct velo_rma_peer *peer;
    unsigned char buffer[BUFFER], model[BUFFER]; /* Registrations are parts of it, or allocated. */
    struct region regions[REGIONS];
    velo_rma_key_t stale[STALE];
    unsigned char local[LOCAL];
    uint64_t refused;
};

/* ---- registrations --------------------------------------------------------------------------- */

static void add_region(struct world *w, struct region *r)
{
    uint64_t at = rng_below(&w->rng, BUFFER - 1);

    r->rights = 1 + rng_below(&w->rng, VELO_RMA_RIGHT_ALL);
    r->grant = (velo_id_t[]){VELO_RMA_PEER_ANY, VELO_RMA_PEER_ANY, REQUESTER_VPID,
                             99}[rng_below(&w->rng, 4)];
    r->is_allocated = rng_below(&w->rng, 4) == 0;
    r->len = 1 + rng_below(&w->rng, (uint32_t)(BUFFER - at));
    if (r->is_allocated) {
        CHECK_OK(velo_rma_mem_alloc(w->owner, r->len, r->rights, r->grant, &r->mem));
        r->memory = velo_rma_mem_addr(r->mem);
        r->model = calloc(1, r->len);
        CHECK(r->model != NULL);
    } else {
        r->memory = w->buffer + at;
        r->model = w->model + at;
        CHECK_OK(velo_rma_mem_register(w->owner, r->memory, r->len, r->rights, r->grant, &r->mem));
    }
    r->key = velo_rma_mem_key(r->mem);
}

static void remove_region(struct world *w, struct region *r)
{
    if (r->is_allocated) {
        CHECK(memcmp(r->memory, r->model, r->len) == 0);
        free(r->model);
    }
    CHECK_OK(velo_rma_mem_deregister(r->mem, VELO_FOREVER));
    w->stale[rng_below(&w->rng, STALE)] = r->key;
    r->mem = NULL;
}

/* ---- what must be allowed -------------------------------------------------------------------- */

/* The bytes that an operation moves, block by block. */
struct shape {
    size_t count;
    struct {
        uint64_t local, offset, len;
    } blocks[MAX_BLOCKS];
};

static const struct region *find(const struct world *w, velo_rma_key_t key)
{
    for (size_t i = 0; i < REGIONS; i++)
        if (w->regions[i].mem != NULL && w->regions[i].key == key)
            return &w->regions[i];
    return NULL;
}

static bool must_be_allowed(const struct region *r, uint32_t right, const struct shape *shape)
{
    if (r == NULL || !(r->rights & right) ||
        (r->grant != VELO_RMA_PEER_ANY && r->grant != REQUESTER_VPID))
        return false;
    for (size_t i = 0; i < shape->count; i++)
        if ((__uint128_t)shape->blocks[i].offset + shape->blocks[i].len > r->len)
            return false;
    return true;
}

/* ---- choices --------------------------------------------------------------------------------- */

static velo_rma_key_t choose_key(struct world *w)
{
    const struct region *r = &w->regions[rng_below(&w->rng, REGIONS)];

    switch (rng_below(&w->rng, 12)) {
    case 0:
        return w->stale[rng_below(&w->rng, STALE)];
    case 1:
        return r->key ^ (UINT64_C(1) << rng_below(&w->rng, 64));
    case 2:
        return rng_next(&w->rng);
    default:
        return r->key;
    }
}

static uint64_t choose_offset(struct world *w, const struct region *r, uint64_t len)
{
    uint64_t size = r != NULL ? r->len : BUFFER;

    switch (rng_below(&w->rng, 10)) {
    case 0:
        return size - rng_below(&w->rng, 20);
    case 1:
        return size + rng_below(&w->rng, 3) - len;
    case 2:
        return UINT64_MAX - rng_below(&w->rng, 20000);
    case 3:
        return rng_next(&w->rng);
    default:
        return rng_below(&w->rng, (uint32_t)size);
    }
}

static uint64_t choose_len(struct world *w)
{
    return rng_below(&w->rng, (uint32_t[]){2, 9, 300, 9000}[rng_below(&w->rng, 4)]);
}

/* ---- one operation --------------------------------------------------------------------------- */

static int post_strided(struct world *w, bool get, velo_rma_key_t key, struct shape *shape,
                        const struct region *r)
{
    struct velo_rma_stride stride = {choose_len(w), rng_below(&w->rng, MAX_BLOCKS + 1), 0, 0};
    uint64_t at;

    stride.local_stride_bytes = stride.block_bytes + rng_below(&w->rng, 50);
    stride.remote_stride_bytes =
        rng_below(&w->rng, 8) ? stride.block_bytes + rng_below(&w->rng, 900) : rng_next(&w->rng);
    at = choose_offset(w, r, stride.block_bytes * stride.count);
    shape->count = stride.count;
    for (size_t i = 0; i < shape->count; i++) {
        __uint128_t offset = (__uint128_t)i * stride.remote_stride_bytes + at;

        shape->blocks[i].local = i * stride.local_stride_bytes;
        shape->blocks[i].offset = offset > UINT64_MAX ? UINT64_MAX : (uint64_t)offset;
        shape->blocks[i].len = stride.block_bytes;
    }
    if (stride.count == 0 || stride.block_bytes == 0) { /* Then only the offset counts. */
        shape->count = 1;
        shape->blocks[0].offset = at;
        shape->blocks[0].len = 0;
    }
    return get ? velo_rma_get_strided(w->peer, w->local, &stride, velo_rma_place(key, at), 0, 0)
               : velo_rma_put_strided(w->peer, w->local, &stride, velo_rma_place(key, at), 0, 0);
}

static int post_list(struct world *w, bool get, velo_rma_key_t key, struct shape *shape,
                     const struct region *r)
{
    static struct velo_rma_piece pieces[MAX_BLOCKS]; /* Must stay until the operation is done. */

    shape->count = rng_below(&w->rng, MAX_BLOCKS + 1);
    for (size_t i = 0; i < shape->count; i++) {
        uint64_t len = choose_len(w);

        shape->blocks[i].local = i * 9000;
        shape->blocks[i].len = len;
        shape->blocks[i].offset = choose_offset(w, r, len);
        pieces[i] = (struct velo_rma_piece){w->local + i * 9000, shape->blocks[i].offset, len};
    }
    return get ? velo_rma_get_list(w->peer, pieces, shape->count, velo_rma_place(key, 0), 0, 0)
               : velo_rma_put_list(w->peer, pieces, shape->count, velo_rma_place(key, 0), 0, 0);
}

static int post_contiguous(struct world *w, bool get, velo_rma_key_t key, struct shape *shape,
                           const struct region *r)
{
    uint64_t len = choose_len(w), at = choose_offset(w, r, len);

    shape->count = 1;
    shape->blocks[0].local = 0;
    shape->blocks[0].offset = at;
    shape->blocks[0].len = len;
    if (!get && len >= 1 && len <= 8 && rng_below(&w->rng, 2)) {
        uint64_t value;

        memcpy(&value, w->local, sizeof(value));
        return velo_rma_put_immediate(w->peer, value, len, velo_rma_place(key, at), 0, 0);
    }
    return get ? velo_rma_get(w->peer, w->local, len, velo_rma_place(key, at), 0, 0)
               : velo_rma_put(w->peer, w->local, len, velo_rma_place(key, at), 0, 0);
}

static void wait_until_done(struct world *w)
{
    int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;
    int status;

    while ((status = velo_rma_flush(w->peer, 0)) == VELO_TIMEOUT) {
        CHECK(test_now_ns() < end_ns);
        (void)velo_rma_progress(w->owner);
    }
    CHECK_OK(status);
    note_none(w->rma);
}

static void expect(struct world *w, int status, bool allowed)
{
    CHECK_STATUS(status, allowed ? VELO_OK : VELO_ERR_ACCESS);
    w->refused += !allowed;
    wait_until_done(w);
}

static void move_something(struct world *w)
{
    static int (*const posts[])(struct world *, bool, velo_rma_key_t, struct shape *,
                                const struct region *) = {post_contiguous, post_strided, post_list};
    velo_rma_key_t key = choose_key(w);
    const struct region *r = find(w, key);
    bool get = rng_below(&w->rng, 2);
    static unsigned char before[LOCAL];
    struct shape shape;
    bool allowed;
    int status;

    pattern_fill(w->local, 300, rng_next(&w->rng));
    memcpy(before, w->local, LOCAL);
    status = posts[rng_below(&w->rng, 3)](w, get, key, &shape, r);
    allowed = must_be_allowed(r, get ? VELO_RMA_RIGHT_READ : VELO_RMA_RIGHT_WRITE, &shape);
    expect(w, status, allowed);
    for (size_t i = 0; allowed && i < shape.count; i++) {
        unsigned char *model = r->model + shape.blocks[i].offset;
        unsigned char *local = before + shape.blocks[i].local;

        if (get)
            memcpy(local, model, shape.blocks[i].len);
        else
            memcpy(model, local, shape.blocks[i].len);
    }
    CHECK(memcmp(before, w->local, LOCAL) == 0);
}

/* One of the calls that add to a word, or swap it, if it is as compared. */
static int update(struct world *w, uint64_t *old, velo_rma_key_t key, uint64_t at, uint64_t compare,
                  uint64_t add)
{
    uint64_t desired = compare + add;

    if (rng_below(&w->rng, 2))
        return velo_rma_fetch_compare_add(w->peer, old, velo_rma_place(key, at), compare, add, 0,
                                          0);
    return velo_rma_compare_swap(w->peer, old, 8, velo_rma_place(key, at), &compare, &desired, 0,
                                 0);
}

static void update_something(struct world *w)
{
    velo_rma_key_t key = choose_key(w);
    const struct region *r = find(w, key);
    uint64_t at = choose_offset(w, r, 8), old = 0, word = 0, add = rng_next(&w->rng);
    struct shape shape = {1, {{0, at, 8}}};
    bool allowed = must_be_allowed(r, VELO_RMA_RIGHT_ATOMIC, &shape), match = rng_below(&w->rng, 2);
    int status;

    if (allowed) {
        if (rng_below(&w->rng, 4))
            at -= ((uintptr_t)r->memory + at) % 8 <= at ? ((uintptr_t)r->memory + at) % 8 : 0;
        memcpy(&word, r->model + at, 8);
    }
    status = update(w, &old, key, at, match ? word : ~word, add);
    if (allowed && ((uintptr_t)r->memory + at) % 8 != 0) {
        CHECK_STATUS(status, VELO_ERR_ARG);
        return;
    }
    expect(w, status, allowed);
    CHECK_EQ(old, word);
    word += match ? add : 0;
    if (allowed)
        memcpy(r->model + at, &word, 8);
}

static void check_world(struct world *w)
{
    struct velo_rma_counters counters;

    CHECK(memcmp(w->buffer, w->model, BUFFER) == 0);
    for (size_t i = 0; i < REGIONS; i++)
        CHECK(w->regions[i].mem == NULL ||
              memcmp(w->regions[i].memory, w->regions[i].model, w->regions[i].len) == 0);
    CHECK_OK(velo_rma_counters(w->rma, &counters, sizeof counters));
    CHECK_EQ(counters.refused, w->refused);
    CHECK_OK(velo_rma_counters(w->owner, &counters, sizeof counters));
    CHECK_EQ(counters.refused_peers, w->refused);
}

static void run(enum way way, uint64_t seed, int steps)
{
    static struct world world;
    struct world *w = &world;

    memset(w, 0, sizeof(*w));
    w->rng.state = seed;
    way_set(way);
    w->owner_port = port_open(OWNER_VPID);
    w->port = port_open(REQUESTER_VPID);
    w->owner = rma_open(w->owner_port);
    w->rma = rma_open(w->port);
    CHECK_OK(velo_rma_connect(w->rma, OWNER_VPID, &w->peer, 0));
    for (int step = 0; step < steps; step++) {
        struct region *r = &w->regions[rng_below(&w->rng, REGIONS)];

        if (rng_below(&w->rng, 10) == 0 && r->mem != NULL)
            remove_region(w, r);
        else if (rng_below(&w->rng, 5) == 0 && r->mem == NULL)
            add_region(w, r);
        else if (rng_below(&w->rng, 5) == 0)
            update_something(w);
        else
            move_something(w);
        if (step % 64 == 0)
            check_world(w);
    }
    check_world(w);
    for (size_t i = 0; i < REGIONS; i++)
        if (w->regions[i].mem != NULL)
            remove_region(w, &w->regions[i]);
    CHECK_OK(velo_rma_close(w->rma));
    CHECK_OK(velo_rma_close(w->owner));
    CHECK_OK(velo_port_close(w->port));
    CHECK_OK(velo_port_close(w->owner_port));
}

TEST(random_operations_do_what_the_model_says_with_loads_and_stores)
{
    test_needs_shared_memory(); /* A refusal is known at once, and before any of it is done. */
    for (uint64_t i = 0; i < scaled(5, 1); i++)
        run(WAY_DIRECT, test_seed() + i, (int)scaled(4000, 500));
}

TEST(random_operations_do_what_the_model_says_by_asking)
{
    test_needs_shared_memory(); /* A refusal is known at once, and before any of it is done. */
    for (uint64_t i = 0; i < scaled(5, 1); i++)
        run(WAY_ASKED, test_seed() + 100 + i, (int)scaled(4000, 300));
}
