/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two processes do random commands to each other's regions, and a reference model in plain arrays
 * says what must be there. They take turns by tokens in LLCM, so that each step has one outcome;
 * after each turn both compare all memories with the model.
 */
#include <stdlib.h>
#include <string.h>

#include "world.h"

enum { WORDS = 1024, TURNS = 60, STEPS = 40, LISTS = 128 };

/* What each process's memory must hold. Both processes play all turns on it. */
struct model {
    uint64_t region[2][WORDS];
    uint64_t prefetch[2][256];
    uint64_t window[2][128];
};

/* The words of an access, one by one. */
struct order {
    struct velo_dimmnet_pattern pattern;
    uint32_t offsets[LISTS];
    uint32_t first;
};

static uint32_t place_of(const struct order *order, uint32_t i)
{
    uint32_t element = order->pattern.element_words;

    switch (order->pattern.access) {
    case VELO_DIMMNET_STRIDED:
        return (uint32_t)((int64_t)order->first +
                          (int64_t)(i / element) * order->pattern.step_words) +
               i % element;
    case VELO_DIMMNET_LIST:
        return order->first + order->offsets[i / element] + i % element;
    default:
        return order->first + i;
    }
}

/* A random access of so many elements to a memory of `limit` words. */
static void order_random(struct rng *rng, struct order *order, uint32_t limit, uint32_t element,
                         uint32_t elements, uint32_t list_word, unsigned kinds)
{
    uint32_t access = rng_below(rng, kinds);

    CHECK(element > 0 && elements > 0);
    memset(order, 0, sizeof *order);
    order->pattern.access = access;
    order->pattern.element_words = element;
    if (access == VELO_DIMMNET_CONTIGUOUS) {
        order->first = rng_below(rng, limit - element * elements + 1);
    } else if (access == VELO_DIMMNET_STRIDED) {
        uint32_t room = (limit - element) / elements;
        int32_t step = (int32_t)(element + rng_below(rng, room - element + 1));
        bool is_backwards = rng_below(rng, 2);
        order->pattern.step_words = is_backwards ? -step : step;
        order->first = is_backwards ? limit - element : rng_below(rng, 2);
    } else {
        uint32_t places = limit / element - 1;
        order->pattern.list_word = list_word;
        for (uint32_t i = 0; i < elements; i++) /* No place twice: puts would race. */
            order->offsets[i] = i * 7 % places * element;
        order->first = rng_below(rng, element);
    }
}

static void write_list(struct velo_dimmnet *context, const struct order *order)
{
    uint64_t *llcm = velo_dimmnet_llcm(context) + order->pattern.list_word;

    for (uint32_t i = 0; order->pattern.access == VELO_DIMMNET_LIST && i < LISTS; i += 2)
        llcm[i / 2] = order->offsets[i] | (uint64_t)order->offsets[i + 1] << 32;
}

/* One random step of process `me`; `context` is NULL in the process that only plays it. */
static void step(struct rng *rng, struct model *model, unsigned me, struct velo_dimmnet *context)
{
    static const uint32_t element_choices[] = {1, 1, 1, 2, 3, 8};
    unsigned op = rng_below(rng, 5);
    uint32_t element = element_choices[rng_below(rng, 6)];
    uint32_t elements = 1 + rng_below(rng, 120 / element);
    uint32_t len = element * elements;
    struct order local;
    struct order remote;
    uint64_t words[128];
    struct velo_dimmnet_transfer transfer = {
        .pid = me ? PID_A : PID_B, .len_words = len, .tag = (uint8_t)op, .status = 1};

    order_random(rng, &local, WORDS, element, elements, 1000, op == 1 ? 2 : 3);
    order_random(rng, &remote, WORDS, element, elements, 2000, 3);
    uint64_t seed = rng_next(rng);
    uint32_t window = rng_below(rng, 256 - len + 1);
    bool by_window = rng_below(rng, 2);
    uint64_t *mine = model->region[me];
    uint64_t *theirs = model->region[!me];

    transfer.local = local.pattern;
    transfer.remote = remote.pattern;
    transfer.local_word = local.first;
    transfer.remote_word = remote.first;
    if (op == 0) { /* Put. */
        for (uint32_t i = 0; i < len; i++)
            words[i] = mine[place_of(&local, i)];
        for (uint32_t i = 0; i < len; i++)
            theirs[place_of(&remote, i)] = words[i];
        transfer.status = 0;
    } else if (op == 1) { /* Get. */
        for (uint32_t i = 0; i < len; i++)
            words[i] = theirs[place_of(&remote, i)];
        for (uint32_t i = 0; i < len && !by_window; i++)
            mine[place_of(&local, i)] = words[i];
        if (by_window) {
            memcpy(model->prefetch[me] + window, words, len * sizeof *words);
            transfer.local_memory = VELO_DIMMNET_PREFETCH;
            transfer.local_word = window;
            transfer.local.access = VELO_DIMMNET_CONTIGUOUS;
        }
    } else if (op == 2) { /* Load. */
        for (uint32_t i = 0; i < len; i++)
            model->prefetch[me][window + i] = mine[place_of(&local, i)];
        transfer.remote_word = window;
    } else if (op == 3) { /* Store. */
        words_fill(model->window[me], 128, seed);
        for (uint32_t i = 0; i < len; i++)
            mine[place_of(&local, i)] = model->window[me][i];
        transfer.remote_word = 0;
    } else { /* Send. */
        words_fill(words, len, seed);
        memcpy(theirs + window, words, len * sizeof *words);
    }
    if (!context)
        return;
    write_list(context, &local);
    write_list(context, &remote);
    struct velo_dimmnet_target target = {.pid = transfer.pid, .word = window};
    if (op == 3)
        words_fill(velo_dimmnet_write_window(context, 0), 128, seed);
    CHECK_OK(op == 0   ? velo_dimmnet_put(context, &transfer)
             : op == 1 ? velo_dimmnet_get(context, &transfer)
             : op == 2 ? velo_dimmnet_load(context, &transfer)
             : op == 3 ? velo_dimmnet_store(context, &transfer)
                       : velo_dimmnet_send(context, &target, words, len));
    if (op >= 1 && op <= 3)
        expect_tag(context, (uint8_t)op);
    CHECK_OK(velo_dimmnet_quiet(context, TEST_PATIENCE_NS));
}

static void compare(const struct model *model, unsigned me, struct velo_dimmnet *context)
{
    uint64_t words[WORDS];

    CHECK_OK(velo_dimmnet_refresh(context, 0, 192));
    CHECK(memcmp(velo_dimmnet_prefetch(context), model->prefetch[me], 192 * sizeof *words) == 0);
    region_read(context, 0, words, WORDS);
    CHECK(memcmp(words, model->region[me], sizeof words) == 0);
}

static void play(unsigned me, uint64_t seed, struct velo_dimmnet *context)
{
    struct model *model = calloc(1, sizeof *model);
    struct rng rng = {seed};
    struct velo_dimmnet_target token = {.pid = me ? PID_A : PID_B,
                                        .memory = VELO_DIMMNET_LLCM,
                                        .word = VELO_DIMMNET_LLCM_FREE_WORDS - 1,
                                        .tag = 99,
                                        .status = 1};

    CHECK(model);
    for (uint64_t turn = 0; turn < TURNS; turn++) {
        bool is_mine = turn % 2 == me;

        for (int i = 0; i < STEPS; i++)
            step(&rng, model, turn % 2, is_mine ? context : NULL);
        /* Loads of the comparison change nothing but the last Prefetch Window, which is left out.
         */
        memset(model->prefetch[0] + 192, 0, 64 * sizeof(uint64_t));
        memset(model->prefetch[1] + 192, 0, 64 * sizeof(uint64_t));
        if (!is_mine)
            expect_tag(context, 99);
        compare(model, me, context);
        CHECK_OK(velo_dimmnet_send(context, &token, &turn, 1));
        if (is_mine)
            expect_tag(context, 99);
    }
    free(model);
}

static uint64_t child_seed;

static void be_b(void *arg)
{
    struct velo_dimmnet *b = context_open(2, 0);

    (void)arg;
    play(1, child_seed, b);
    CHECK_OK(velo_dimmnet_close(b));
}

TEST(random_commands_of_two_processes_do_what_a_model_says)
{
    for (int round = 0; round < 8; round++) {
        struct velo_dimmnet_board *board_a = board_make(1);
        struct velo_dimmnet_board *board_b = board_make(2);
        struct velo_dimmnet *a = context_open(1, 0);

        child_seed = test_mix(test_seed() + (uint64_t)round);
        pid_t child = child_start(be_b, NULL);
        play(0, child_seed, a);
        child_join(child);
        CHECK_OK(velo_dimmnet_close(a));
        CHECK_OK(velo_dimmnet_board_close(board_a));
        CHECK_OK(velo_dimmnet_board_close(board_b));
    }
}
