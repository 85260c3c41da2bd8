/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <string.h>

enum { LAST_LLCM_WORD = VELO_DIMMNET_LLCM_FREE_WORDS - 1, STORE_WORDS = 64 };

struct velo_dimmnet_board *board_make(unsigned lid)
{
    struct velo_dimmnet_board_attr attr = VELO_DIMMNET_BOARD_ATTR_INIT;
    struct velo_dimmnet_board *board;

    attr.lid = lid;
    attr.sodimm_bytes = 2 * REGION_WORDS * sizeof(uint64_t);
    CHECK_OK(velo_dimmnet_board_open(&attr, &board));
    for (unsigned l = 1; l <= 2; l++)
        for (unsigned w = 0; w < 2; w++)
            CHECK_OK(velo_dimmnet_board_pid(board, 10 * l + w, l, w));
    return board;
}

struct velo_dimmnet *context_open(unsigned lid, int wid)
{
    struct velo_dimmnet_attr attr = VELO_DIMMNET_ATTR_INIT;
    struct velo_dimmnet *context;

    attr.lid = lid;
    attr.wid = wid;
    CHECK_OK(velo_dimmnet_open(&attr, &context, TEST_PATIENCE_NS));
    return context;
}

void world_open(struct world *world)
{
    world->board_a = board_make(1);
    world->board_b = board_make(2);
    world->a = context_open(1, 0);
    world->b = context_open(2, 0);
}

void world_close(struct world *world)
{
    CHECK_OK(velo_dimmnet_close(world->a));
    CHECK_OK(velo_dimmnet_close(world->b));
    CHECK_OK(velo_dimmnet_board_close(world->board_a));
    CHECK_OK(velo_dimmnet_board_close(world->board_b));
}

struct velo_dimmnet_counters counted(const struct velo_dimmnet_board *board)
{
    struct velo_dimmnet_counters counters;

    CHECK_OK(velo_dimmnet_board_counters(board, &counters, sizeof counters));
    return counters;
}

uint64_t word_of(uint64_t seed, uint32_t at) { return test_mix(seed * 1000003 + at) | 1; }

void words_fill(uint64_t *words, uint32_t len_words, uint64_t seed)
{
    for (uint32_t i = 0; i < len_words; i++)
        words[i] = word_of(seed, i);
}

void words_check(const uint64_t *words, uint32_t len_words, uint64_t seed)
{
    for (uint32_t i = 0; i < len_words; i++)
        if (words[i] != word_of(seed, i))
            test_fail(__FILE__, __LINE__, "word %u of %u is not the one", i, len_words);
}

void region_write(struct velo_dimmnet *context, uint32_t word, const uint64_t *words,
                  uint32_t len_words)
{
    for (uint32_t at = 0; at < len_words; at += STORE_WORDS) {
        uint32_t now = len_words - at < STORE_WORDS ? len_words - at : STORE_WORDS;
        struct velo_dimmnet_transfer store = {.len_words = now, .local_word = word + at};

        CHECK_OK(velo_dimmnet_quiet(context, TEST_PATIENCE_NS));
        memcpy(velo_dimmnet_write_window(context, 0), words + at, now * sizeof *words);
        CHECK_OK(velo_dimmnet_store(context, &store));
    }
    CHECK_OK(velo_dimmnet_quiet(context, TEST_PATIENCE_NS));
}

void region_read(struct velo_dimmnet *context, uint32_t word, uint64_t *words, uint32_t len_words)
{
    for (uint32_t at = 0; at < len_words; at += STORE_WORDS) {
        uint32_t now = len_words - at < STORE_WORDS ? len_words - at : STORE_WORDS;
        struct velo_dimmnet_transfer load = {
            .len_words = now, .local_word = word + at, .remote_word = 192, .status = 1, .tag = 255};

        CHECK_OK(velo_dimmnet_load(context, &load));
        CHECK_EQ(expect_tag(context, 255).kind, 0);
        CHECK_OK(velo_dimmnet_refresh(context, 192, now));
        memcpy(words + at, velo_dimmnet_prefetch(context) + 192, now * sizeof *words);
    }
}

void region_fill(struct velo_dimmnet *context, uint32_t word, uint32_t len_words, uint64_t seed)
{
    uint64_t words[REGION_WORDS];

    words_fill(words, len_words, seed);
    region_write(context, word, words, len_words);
}

void region_check(struct velo_dimmnet *context, uint32_t word, uint32_t len_words, uint64_t seed)
{
    uint64_t words[REGION_WORDS];

    region_read(context, word, words, len_words);
    words_check(words, len_words, seed);
}

struct velo_dimmnet_status expect_tag(struct velo_dimmnet *context, uint8_t tag)
{
    struct velo_dimmnet_status status;

    CHECK_OK(velo_dimmnet_wait(context, &status, TEST_PATIENCE_NS));
    CHECK_EQ(status.tag, tag);
    return status;
}

void expect_none(struct velo_dimmnet *context)
{
    CHECK_STATUS(velo_dimmnet_poll(context, NULL), VELO_AGAIN);
}

void pass_a_word(struct velo_dimmnet *from, struct velo_dimmnet *to, unsigned pid_to)
{
    struct velo_dimmnet_target target = {.pid = pid_to,
                                         .memory = VELO_DIMMNET_LLCM,
                                         .word = LAST_LLCM_WORD,
                                         .tag = 254,
                                         .status = 1};
    uint64_t word = 1;

    CHECK_OK(velo_dimmnet_send(from, &target, &word, 1));
    expect_tag(to, 254);
}
