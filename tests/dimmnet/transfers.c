/* SPDX-License-Identifier: Apache-2.0 */
/* Put, get, load and store: contiguous, strided, by lists. */
#include <string.h>

#include "world.h"

/* A get by a longer list may be more than a board can do at once. */
enum { LIST_WORD = 100, LIST_SURE = 512 };

static struct velo_dimmnet_pattern strided(uint32_t element_words, int32_t step_words)
{
    return (struct velo_dimmnet_pattern){
        .access = VELO_DIMMNET_STRIDED, .element_words = element_words, .step_words = step_words};
}

/* Put offsets into the LLCM. */
static struct velo_dimmnet_pattern listed(struct velo_dimmnet *context, uint32_t element_words,
                                          uint32_t list_word, const uint32_t *offsets,
                                          uint32_t count)
{
    uint64_t *llcm = velo_dimmnet_llcm(context) + list_word;

    for (uint32_t i = 0; i < count; i += 2)
        llcm[i / 2] = offsets[i] | (i + 1 < count ? (uint64_t)offsets[i + 1] << 32 : 0);
    return (struct velo_dimmnet_pattern){
        .access = VELO_DIMMNET_LIST, .element_words = element_words, .list_word = list_word};
}

/* ---- contiguous ------------------------------------------------------------------------------ */

TEST(what_is_stored_is_loaded)
{
    struct world world;

    world_open(&world);
    region_fill(world.a, 0, REGION_WORDS, 1);
    region_check(world.a, 0, REGION_WORDS, 1);
    region_fill(world.a, 77, 3, 2);
    region_check(world.a, 77, 3, 2);
    world_close(&world);
}

TEST(put_moves_a_region_to_a_region)
{
    struct world world;

    world_open(&world);
    region_fill(world.a, 50, 4000, 3);
    struct velo_dimmnet_transfer put = {.pid = PID_B,
                                        .len_words = 4000,
                                        .local_word = 50,
                                        .remote_word = 60,
                                        .tag = 8,
                                        .status = 1};
    CHECK_OK(velo_dimmnet_put(world.a, &put));
    struct velo_dimmnet_status status = expect_tag(world.b, 8);
    CHECK_EQ(status.kind, VELO_DIMMNET_KIND_WRITE);
    CHECK_EQ(status.len_words, 4000 % 62);
    region_check(world.b, 60, 4000, 3);
    expect_none(world.a);
    world_close(&world);
}

TEST(put_moves_write_windows_to_prefetch_windows_and_llcm)
{
    struct world world;

    world_open(&world);
    words_fill(velo_dimmnet_write_window(world.a, 0), 128, 4);
    struct velo_dimmnet_transfer put = {.pid = PID_B,
                                        .len_words = 128,
                                        .local_memory = VELO_DIMMNET_PREFETCH,
                                        .remote_memory = VELO_DIMMNET_PREFETCH,
                                        .remote_word = 30,
                                        .status = 1};
    CHECK_OK(velo_dimmnet_put(world.a, &put));
    CHECK_EQ(expect_tag(world.b, 0).memory, VELO_DIMMNET_PREFETCH);
    CHECK_OK(velo_dimmnet_refresh(world.b, 30, 128));
    words_check(velo_dimmnet_prefetch(world.b) + 30, 128, 4);
    put.remote_memory = VELO_DIMMNET_LLCM;
    CHECK_OK(velo_dimmnet_put(world.a, &put));
    expect_tag(world.b, 0);
    words_check(velo_dimmnet_llcm(world.b) + 30, 128, 4);
    world_close(&world);
}

TEST(get_moves_a_region_to_a_region)
{
    struct world world;

    world_open(&world);
    region_fill(world.b, 10, 5000, 5);
    struct velo_dimmnet_transfer get = {
        .pid = PID_B, .len_words = 5000, .local_word = 3, .remote_word = 10, .tag = 9, .status = 1};
    CHECK_OK(velo_dimmnet_get(world.a, &get));
    struct velo_dimmnet_status status = expect_tag(world.a, 9);
    CHECK_EQ(status.kind, VELO_DIMMNET_KIND_ANSWER);
    CHECK_EQ(status.lid, 2);
    region_check(world.a, 3, 5000, 5);
    expect_none(world.b);
    world_close(&world);
}

TEST(get_moves_a_region_to_prefetch_windows)
{
    struct world world;

    world_open(&world);
    region_fill(world.b, 10, 256, 6);
    struct velo_dimmnet_transfer get = {.pid = PID_B,
                                        .len_words = 256,
                                        .local_memory = VELO_DIMMNET_PREFETCH,
                                        .remote_word = 10,
                                        .status = 1};
    CHECK_OK(velo_dimmnet_get(world.a, &get));
    expect_tag(world.a, 0);
    CHECK_OK(velo_dimmnet_refresh(world.a, 0, 256));
    words_check(velo_dimmnet_prefetch(world.a), 256, 6);
    world_close(&world);
}

/* ---- strided --------------------------------------------------------------------------------- */

static void get_strided(uint32_t element_words, int32_t step_words, uint32_t elements,
                        uint32_t first)
{
    struct world world;
    uint64_t all[REGION_WORDS];
    uint64_t words[REGION_WORDS];

    world_open(&world);
    words_fill(all, REGION_WORDS, 7);
    region_write(world.b, 0, all, REGION_WORDS);
    struct velo_dimmnet_transfer get = {.pid = PID_B,
                                        .len_words = element_words * elements,
                                        .local_word = 5,
                                        .remote_word = first,
                                        .status = 1,
                                        .remote = strided(element_words, step_words)};
    CHECK_OK(velo_dimmnet_get(world.a, &get));
    expect_tag(world.a, 0);
    region_read(world.a, 5, words, get.len_words);
    for (uint32_t i = 0; i < get.len_words; i++) {
        int64_t at = first + (int64_t)(i / element_words) * step_words + i % element_words;
        CHECK(words[i] == all[at]);
    }
    world_close(&world);
}

TEST(get_gathers_single_words_at_equal_distances) { get_strided(1, 37, 200, 11); }
TEST(get_gathers_elements_at_equal_distances) { get_strided(7, 50, 150, 4); }
TEST(get_gathers_backwards) { get_strided(3, -20, 100, 2500); }
TEST(get_gathers_one_element_many_times) { get_strided(2, 0, 100, 40); }
TEST(get_gathers_up_to_the_last_word) { get_strided(2, 1000, 9, REGION_WORDS - 8002); }

TEST(put_scatters_into_a_strided_region)
{
    struct world world;

    world_open(&world);
    region_fill(world.a, 0, 300, 8);
    struct velo_dimmnet_transfer put = {
        .pid = PID_B, .len_words = 300, .remote_word = 2, .status = 1, .remote = strided(1, 20)};
    CHECK_OK(velo_dimmnet_put(world.a, &put));
    expect_tag(world.b, 0);
    struct velo_dimmnet_transfer get = put;
    get.pid = PID_B;
    get.local_word = 1000;
    CHECK_OK(velo_dimmnet_get(world.a, &get));
    expect_tag(world.a, 0);
    region_check(world.a, 1000, 300, 8);
    world_close(&world);
}

/* A 40 x 60 matrix, transposed: columns there are rows here. */
TEST(strided_puts_transpose_a_matrix)
{
    enum { ROWS = 40, COLUMNS = 60 };
    struct world world;
    uint64_t matrix[ROWS][COLUMNS];
    uint64_t turned[COLUMNS][ROWS];

    world_open(&world);
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t c = 0; c < COLUMNS; c++)
            matrix[r][c] = 1000 * r + c;
    region_write(world.a, 0, &matrix[0][0], ROWS * COLUMNS);
    for (uint32_t r = 0; r < ROWS; r++) {
        struct velo_dimmnet_transfer put = {.pid = PID_B,
                                            .len_words = COLUMNS,
                                            .local_word = r * COLUMNS,
                                            .remote_word = r,
                                            .status = r == ROWS - 1,
                                            .remote = strided(1, ROWS)};
        CHECK_OK(velo_dimmnet_put(world.a, &put));
    }
    expect_tag(world.b, 0);
    region_read(world.b, 0, &turned[0][0], ROWS * COLUMNS);
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t c = 0; c < COLUMNS; c++)
            CHECK(turned[c][r] == matrix[r][c]);
    world_close(&world);
}

TEST(elements_of_both_sides_have_the_same_size)
{
    struct world world;
    uint64_t words[600];

    world_open(&world);
    region_fill(world.a, 0, 600, 9);
    struct velo_dimmnet_transfer put = {.pid = PID_B,
                                        .len_words = 60,
                                        .local_word = 1,
                                        .remote_word = 2,
                                        .status = 1,
                                        .local = strided(4, 40),
                                        .remote = strided(6, 10)};
    CHECK_FAILS(velo_dimmnet_put(world.a, &put), VELO_ERR_ARG, "is 4 and the remote one 6");
    CHECK_FAILS(velo_dimmnet_get(world.a, &put), VELO_ERR_ARG, "is 4 and the remote one 6");
    put.remote = strided(4, 10);
    CHECK_OK(velo_dimmnet_put(world.a, &put));
    expect_tag(world.b, 0);
    region_read(world.b, 0, words, 200);
    for (uint32_t i = 0; i < 60; i++)
        CHECK(words[2 + i / 4 * 10 + i % 4] == word_of(9, 1 + i / 4 * 40 + i % 4));
    world_close(&world);
}

TEST(load_and_store_gather_and_scatter)
{
    struct world world;

    world_open(&world);
    words_fill(velo_dimmnet_write_window(world.a, 0), 128, 10);
    struct velo_dimmnet_transfer move = {
        .len_words = 128, .local_word = 3, .status = 1, .local = strided(1, 64)};
    CHECK_OK(velo_dimmnet_store(world.a, &move));
    expect_tag(world.a, 0);
    move.remote_word = 100;
    CHECK_OK(velo_dimmnet_load(world.a, &move));
    CHECK_EQ(expect_tag(world.a, 0).memory, VELO_DIMMNET_PREFETCH);
    CHECK_OK(velo_dimmnet_refresh(world.a, 100, 128));
    words_check(velo_dimmnet_prefetch(world.a) + 100, 128, 10);
    world_close(&world);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void get_listed(uint32_t element_words, uint32_t elements)
{
    struct world world;
    uint32_t offsets[3000];
    uint64_t all[REGION_WORDS];
    uint64_t words[REGION_WORDS];
    struct rng rng = {test_seed()};

    world_open(&world);
    words_fill(all, REGION_WORDS, 11);
    region_write(world.b, 0, all, REGION_WORDS);
    for (uint32_t i = 0; i < elements; i++)
        offsets[i] = rng_below(&rng, REGION_WORDS - 32 - element_words);
    struct velo_dimmnet_transfer get = {
        .pid = PID_B,
        .len_words = element_words * elements,
        .remote_word = 32,
        .status = 1,
        .remote = listed(world.a, element_words, LIST_WORD, offsets, elements)};
    int got = velo_dimmnet_get(world.a, &get);
    if (elements > LIST_SURE && got == VELO_ERR_ARG) {
        CHECK(strstr(velo_last_error(), "more reads than a board keeps"));
        world_close(&world);
        return;
    }
    CHECK_OK(got);
    expect_tag(world.a, 0);
    region_read(world.a, 0, words, get.len_words);
    for (uint32_t i = 0; i < get.len_words; i++)
        CHECK(words[i] == all[32 + offsets[i / element_words] + i % element_words]);
    world_close(&world);
}

TEST(get_gathers_single_words_by_a_list) { get_listed(1, LIST_SURE); }
TEST(get_gathers_by_a_long_list_or_refuses_it) { get_listed(1, 3000); }
TEST(get_gathers_elements_by_a_list) { get_listed(5, 501); }
TEST(get_gathers_one_listed_element) { get_listed(32, 1); }

TEST(put_scatters_by_a_list_what_it_gathers_by_another)
{
    struct world world;
    uint32_t from[200];
    uint32_t to[200];
    uint64_t words[REGION_WORDS];

    world_open(&world);
    for (uint32_t i = 0; i < 200; i++) {
        from[i] = (i * 77) % 200 * 3;
        to[i] = (i * 31) % 200 * 5;
    }
    region_fill(world.a, 0, 700, 12);
    struct velo_dimmnet_transfer put = {.pid = PID_B,
                                        .len_words = 400,
                                        .status = 1,
                                        .local = listed(world.a, 2, 0, from, 200),
                                        .remote = listed(world.a, 2, 500, to, 200)};
    CHECK_OK(velo_dimmnet_put(world.a, &put));
    expect_tag(world.b, 0);
    region_read(world.b, 0, words, 1000);
    for (uint32_t i = 0; i < 400; i++)
        CHECK(words[to[i / 2] + i % 2] == word_of(12, from[i / 2] + i % 2));
    world_close(&world);
}

/* ---- outside --------------------------------------------------------------------------------- */

TEST(a_get_from_outside_the_peer_is_dropped_and_no_status_comes)
{
    struct world world;
    uint32_t offsets[2] = {0, REGION_WORDS};

    world_open(&world);
    struct velo_dimmnet_transfer get = {
        .pid = PID_B, .len_words = 2, .remote_word = REGION_WORDS - 1, .status = 1};
    CHECK_OK(velo_dimmnet_get(world.a, &get));
    get.remote = strided(1, -REGION_WORDS);
    CHECK_OK(velo_dimmnet_get(world.a, &get));
    get.remote_word = 0;
    get.remote = listed(world.a, 1, LIST_WORD, offsets, 2);
    CHECK_OK(velo_dimmnet_get(world.a, &get));
    pass_a_word(world.a, world.b, PID_B);
    CHECK_STATUS(velo_dimmnet_wait(world.a, NULL, TEST_MS), VELO_TIMEOUT);
    CHECK_EQ(counted(world.board_b).dropped_bounds, 3);
    world_close(&world);
}

TEST(a_put_outside_the_peer_touches_nothing)
{
    struct world world;
    uint32_t offsets[3] = {1, REGION_WORDS, 2};
    struct velo_dimmnet *neighbour;

    world_open(&world);
    neighbour = context_open(2, 1);
    region_fill(world.a, 0, 100, 1);
    region_fill(world.b, 0, REGION_WORDS, 2);
    region_fill(neighbour, 0, 200, 3);
    struct velo_dimmnet_transfer put = {
        .pid = PID_B, .len_words = 3, .remote_word = REGION_WORDS - 2, .status = 1};
    CHECK_OK(velo_dimmnet_put(world.a, &put));
    put.remote = strided(1, 2);
    CHECK_OK(velo_dimmnet_put(world.a, &put));
    put.remote_word = 0;
    put.remote = listed(world.a, 1, LIST_WORD, offsets, 3);
    CHECK_OK(velo_dimmnet_put(world.a, &put));
    pass_a_word(world.a, world.b, PID_B);
    region_check(world.b, 0, REGION_WORDS, 2);
    region_check(neighbour, 0, 200, 3);
    CHECK(counted(world.board_b).dropped_bounds >= 3);
    CHECK_OK(velo_dimmnet_close(neighbour));
    world_close(&world);
}

TEST(a_region_that_was_made_smaller_keeps_its_bounds)
{
    struct world world;
    struct velo_dimmnet_process process;
    struct velo_dimmnet_identity identity;

    world_open(&world);
    CHECK_OK(velo_dimmnet_board_process(world.board_b, 0, &process));
    CHECK_EQ(process.region_words, REGION_WORDS);
    process.region_word = 10;
    process.region_words = 100;
    CHECK_OK(velo_dimmnet_board_set_process(world.board_b, 0, &process));
    CHECK_OK(velo_dimmnet_identity(world.b, &identity));
    CHECK_EQ(identity.region_words, 100);
    CHECK_EQ(identity.lid, 2);
    region_fill(world.a, 0, 101, 4);
    struct velo_dimmnet_transfer put = {.pid = PID_B, .len_words = 100, .status = 1};
    CHECK_OK(velo_dimmnet_put(world.a, &put));
    expect_tag(world.b, 0);
    region_check(world.b, 0, 100, 4);
    put.len_words = 101;
    CHECK_OK(velo_dimmnet_put(world.a, &put));
    pass_a_word(world.a, world.b, PID_B);
    CHECK(counted(world.board_b).dropped_bounds >= 1);
    world_close(&world);
}
