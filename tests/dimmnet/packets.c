/* SPDX-License-Identifier: Apache-2.0 */
/* Packets that a program builds: BOTF, AOTF, and what their receivers see. */
#include <string.h>

#include "world.h"

static struct velo_dimmnet_target to_b(uint32_t memory, uint32_t word, uint8_t tag)
{
    return (struct velo_dimmnet_target){
        .pid = PID_B, .memory = memory, .word = word, .tag = tag, .status = 1};
}

static void send_and_compare(uint32_t memory, uint32_t word, uint32_t len_words)
{
    struct world world;
    uint64_t words[1000];

    world_open(&world);
    struct velo_dimmnet_target target = to_b(memory, word, 7);
    words_fill(words, len_words, 5);
    CHECK_OK(velo_dimmnet_send(world.a, &target, words, len_words));
    memset(words, 0, sizeof words);
    struct velo_dimmnet_status status = expect_tag(world.b, 7);
    CHECK_EQ(status.kind, VELO_DIMMNET_KIND_WRITE);
    CHECK_EQ(status.memory, memory);
    CHECK_EQ(status.lid, 1);
    CHECK_EQ(status.wid, 0);
    if (memory == VELO_DIMMNET_SODIMM) {
        region_check(world.b, word, len_words, 5);
    } else if (memory == VELO_DIMMNET_PREFETCH) {
        CHECK_OK(velo_dimmnet_refresh(world.b, word, len_words));
        words_check(velo_dimmnet_prefetch(world.b) + word, len_words, 5);
    } else {
        words_check(velo_dimmnet_llcm(world.b) + word, len_words, 5);
    }
    expect_none(world.b);
    world_close(&world);
}

TEST(a_packet_reaches_the_so_dimm) { send_and_compare(VELO_DIMMNET_SODIMM, 100, 62); }
TEST(a_packet_reaches_a_prefetch_window) { send_and_compare(VELO_DIMMNET_PREFETCH, 64, 62); }
TEST(a_packet_reaches_the_llcm) { send_and_compare(VELO_DIMMNET_LLCM, 3, 2); }
TEST(a_packet_reaches_the_last_word_of_each_memory)
{
    send_and_compare(VELO_DIMMNET_SODIMM, REGION_WORDS - 5, 5);
    send_and_compare(VELO_DIMMNET_PREFETCH, 256 - 5, 5);
    send_and_compare(VELO_DIMMNET_LLCM, VELO_DIMMNET_LLCM_FREE_WORDS - 5, 5);
}

TEST(several_packets_leave_one_status_behind_the_last)
{
    send_and_compare(VELO_DIMMNET_SODIMM, 0, 63);
    send_and_compare(VELO_DIMMNET_SODIMM, 17, 1000);
    send_and_compare(VELO_DIMMNET_PREFETCH, 0, 256);
}

TEST(a_status_says_how_long_the_last_packet_was)
{
    struct world world;
    uint64_t words[130] = {0};

    world_open(&world);
    struct velo_dimmnet_target target = to_b(VELO_DIMMNET_SODIMM, 0, 1);
    CHECK_OK(velo_dimmnet_send(world.a, &target, words, 62));
    CHECK_EQ(expect_tag(world.b, 1).len_words, 62);
    CHECK_OK(velo_dimmnet_send(world.a, &target, words, 130));
    CHECK_EQ(expect_tag(world.b, 1).len_words, 6);
    struct velo_dimmnet_transfer put = {.pid = PID_B, .len_words = 124, .status = 1};
    CHECK_OK(velo_dimmnet_put(world.a, &put));
    CHECK_EQ(expect_tag(world.b, 0).len_words, 62);
    put.len_words = 120;
    put.remote = (struct velo_dimmnet_pattern){
        .access = VELO_DIMMNET_STRIDED, .element_words = 2, .step_words = 2};
    CHECK_OK(velo_dimmnet_put(world.a, &put)); /* Behind the pattern thirty elements fit. */
    CHECK_EQ(expect_tag(world.b, 0).len_words, 61);
    CHECK_EQ(counted(world.board_a).sent, 1 + 3 + 2 + 2);
    world_close(&world);
}

TEST(a_packet_that_asks_for_no_status_leaves_none)
{
    struct world world;
    uint64_t word = 99;

    world_open(&world);
    struct velo_dimmnet_target target = to_b(VELO_DIMMNET_LLCM, 0, 1);
    target.status = 0;
    CHECK_OK(velo_dimmnet_send(world.a, &target, &word, 1));
    pass_a_word(world.a, world.b, PID_B);
    CHECK_EQ(velo_dimmnet_llcm(world.b)[0], 99);
    expect_none(world.b);
    world_close(&world);
}

TEST(a_packet_built_anywhere_in_a_window_is_sent)
{
    struct world world;

    world_open(&world);
    for (unsigned window = 0; window < 2; window++)
        for (uint32_t first = 0; first <= 58; first += 29) {
            uint64_t *at = velo_dimmnet_write_window(world.a, window) + first;
            struct velo_dimmnet_target target = to_b(VELO_DIMMNET_PREFETCH, first, 9);

            CHECK_OK(velo_dimmnet_quiet(world.a, TEST_PATIENCE_NS));
            CHECK_OK(velo_dimmnet_header(world.a, &target, at));
            words_fill(at + 2, 4, first + window);
            CHECK_OK(velo_dimmnet_botf(world.a, window, first, 6));
            expect_tag(world.b, 9);
            CHECK_OK(velo_dimmnet_refresh(world.b, first, 4));
            words_check(velo_dimmnet_prefetch(world.b) + first, 4, first + window);
        }
    world_close(&world);
}

TEST(a_packet_without_payload_leaves_a_status)
{
    struct world world;

    world_open(&world);
    struct velo_dimmnet_target target = to_b(VELO_DIMMNET_LLCM, 0, 33);
    CHECK_OK(velo_dimmnet_header(world.a, &target, velo_dimmnet_write_window(world.a, 0)));
    CHECK_OK(velo_dimmnet_botf(world.a, 0, 0, 2));
    CHECK_EQ(expect_tag(world.b, 33).len_words, 0);
    world_close(&world);
}

TEST(a_header_cannot_forge_sender_group_or_length)
{
    struct world world;

    world_open(&world);
    struct velo_dimmnet_target target = to_b(VELO_DIMMNET_LLCM, 0, 1);
    uint64_t *window = velo_dimmnet_write_window(world.a, 0);
    CHECK_OK(velo_dimmnet_header(world.a, &target, window));
    window[0] |= VELO_DIMMNET_PACKET_SRC_LID_MASK | VELO_DIMMNET_PACKET_SRC_WID_MASK |
                 VELO_DIMMNET_PACKET_WORDS_MASK;
    window[1] |= VELO_DIMMNET_PACKET_PGID_MASK;
    window[2] = 12;
    CHECK_OK(velo_dimmnet_botf(world.a, 0, 0, 3));
    struct velo_dimmnet_status status = expect_tag(world.b, 1);
    CHECK_EQ(status.lid, 1);
    CHECK_EQ(status.wid, 0);
    CHECK_EQ(status.len_words, 1);
    CHECK_EQ(velo_dimmnet_llcm(world.b)[0], 12);
    world_close(&world);
}

TEST(a_strided_packet_scatters_its_elements)
{
    struct world world;

    world_open(&world);
    struct velo_dimmnet_target target = to_b(VELO_DIMMNET_SODIMM, 1000, 1);
    uint64_t *window = velo_dimmnet_write_window(world.a, 0);
    CHECK_OK(velo_dimmnet_header(world.a, &target, window));
    window[0] |= (uint64_t)VELO_DIMMNET_ACCESS_STRIDED << VELO_DIMMNET_PACKET_ACCESS_LSB;
    window[2] = velo_dimmnet_pattern_pack(2, 3, (uint32_t)-10);
    words_fill(window + 3, 6, 8);
    CHECK_OK(velo_dimmnet_botf(world.a, 0, 0, 9));
    expect_tag(world.b, 1);
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t words[2];

        region_read(world.b, 1000 - 10 * i, words, 2);
        CHECK(words[0] == word_of(8, 2 * i) && words[1] == word_of(8, 2 * i + 1));
    }
    world_close(&world);
}

TEST(a_packet_that_contradicts_itself_is_dropped_and_counted)
{
    struct world world;

    world_open(&world);
    struct velo_dimmnet_target target = to_b(VELO_DIMMNET_SODIMM, 0, 1);
    uint64_t *window = velo_dimmnet_write_window(world.a, 0);
    CHECK_OK(velo_dimmnet_header(world.a, &target, window));
    window[0] |= (uint64_t)VELO_DIMMNET_ACCESS_LIST << VELO_DIMMNET_PACKET_ACCESS_LSB;
    window[2] = velo_dimmnet_pattern_pack(1, 4, 0); /* Four elements, and place for two. */
    window[3] = 0;
    window[4] = 0;
    CHECK_OK(velo_dimmnet_botf(world.a, 0, 0, 7));
    pass_a_word(world.a, world.b, PID_B);
    CHECK_EQ(counted(world.board_b).dropped_malformed, 1);
    world_close(&world);
}

TEST(single_stores_arrive_in_order_and_in_one_piece)
{
    struct world world;

    world_open(&world);
    struct velo_dimmnet_target target = to_b(VELO_DIMMNET_LLCM, 5, 3);
    CHECK_OK(velo_dimmnet_aotf_header(world.a, 31, &target));
    for (uint64_t i = 1; i <= 100; i++) {
        CHECK_OK(velo_dimmnet_aotf(world.a, 31, i * UINT64_C(0x100000001)));
        expect_tag(world.b, 3);
        CHECK_EQ(velo_dimmnet_llcm(world.b)[5], i * UINT64_C(0x100000001));
    }
    world_close(&world);
}

TEST(a_process_sends_to_itself_and_to_its_neighbour)
{
    struct world world;
    uint64_t word = 4;

    world_open(&world);
    struct velo_dimmnet *neighbour = context_open(1, 1);
    pass_a_word(world.a, world.a, PID_A);
    pass_a_word(world.a, neighbour, PID_A1);
    struct velo_dimmnet_target target = {.pid = PID_A, .memory = VELO_DIMMNET_LLCM, .status = 1};
    CHECK_OK(velo_dimmnet_send(neighbour, &target, &word, 1));
    CHECK_EQ(expect_tag(world.a, 0).wid, 1);
    CHECK_OK(velo_dimmnet_close(neighbour));
    world_close(&world);
}

/* ---- dropped --------------------------------------------------------------------------------- */

TEST(a_packet_of_another_group_is_dropped_and_counted)
{
    struct world world;
    struct velo_dimmnet_process process;
    uint64_t word = 6;

    world_open(&world);
    CHECK_OK(velo_dimmnet_board_process(world.board_b, 0, &process));
    process.pgid = 2;
    CHECK_OK(velo_dimmnet_board_set_process(world.board_b, 0, &process));
    struct velo_dimmnet_target target = to_b(VELO_DIMMNET_LLCM, 0, 1);
    CHECK_OK(velo_dimmnet_send(world.a, &target, &word, 1));
    process.pgid = 1;
    CHECK_OK(velo_dimmnet_quiet(world.a, TEST_PATIENCE_NS));
    while (counted(world.board_b).dropped_pgid == 0)
        test_sleep_ns(TEST_US);
    CHECK_OK(velo_dimmnet_board_set_process(world.board_b, 0, &process));
    pass_a_word(world.a, world.b, PID_B);
    CHECK_EQ(velo_dimmnet_llcm(world.b)[0], 0);
    CHECK_EQ(counted(world.board_b).dropped_pgid, 1);
    world_close(&world);
}

TEST(a_packet_to_a_process_that_is_not_enabled_is_dropped_and_counted)
{
    struct world world;
    struct velo_dimmnet_process process;
    uint64_t word = 6;

    world_open(&world);
    CHECK_OK(velo_dimmnet_board_process(world.board_b, 1, &process));
    process.is_enabled = 0;
    CHECK_OK(velo_dimmnet_board_set_process(world.board_b, 1, &process));
    struct velo_dimmnet_target target = {.pid = PID_B1, .memory = VELO_DIMMNET_LLCM, .status = 1};
    CHECK_OK(velo_dimmnet_send(world.a, &target, &word, 1));
    pass_a_word(world.a, world.b, PID_B);
    CHECK_EQ(counted(world.board_b).dropped_pgid, 1);
    world_close(&world);
}

TEST(a_packet_outside_the_target_is_dropped_counted_and_touches_nothing)
{
    struct world world;
    struct velo_dimmnet *neighbour;
    uint64_t words[8];

    world_open(&world);
    neighbour = context_open(2, 1); /* Its region begins where B's ends. */
    region_fill(world.b, REGION_WORDS - 8, 8, 1);
    region_fill(neighbour, 0, 8, 2);
    words_fill(words, 8, 3);
    struct velo_dimmnet_target target = to_b(VELO_DIMMNET_SODIMM, REGION_WORDS - 4, 1);
    CHECK_OK(velo_dimmnet_send(world.a, &target, words, 8));
    target.word = UINT32_MAX - 7;
    CHECK_OK(velo_dimmnet_send(world.a, &target, words, 8));
    pass_a_word(world.a, world.b, PID_B);
    region_check(world.b, REGION_WORDS - 8, 8, 1);
    region_check(neighbour, 0, 8, 2);
    CHECK_EQ(counted(world.board_b).dropped_bounds, 2);
    CHECK_OK(velo_dimmnet_close(neighbour));
    world_close(&world);
}
