/* SPDX-License-Identifier: Apache-2.0 */
/* Each error of dimmnet.h once, and what its sentence names. */
#include <string.h>
#include <unistd.h>

#include "world.h"

TEST(a_board_with_bad_attributes_is_refused)
{
    struct velo_dimmnet_board *board;
    struct velo_dimmnet_board_attr attr = VELO_DIMMNET_BOARD_ATTR_INIT;

    CHECK_FAILS(velo_dimmnet_board_open(NULL, &board), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_dimmnet_board_open(&attr, NULL), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_dimmnet_board_open(&attr, &board), VELO_ERR_ARG, "lid is 0");
    CHECK(board == NULL);
    attr.lid = 65536;
    CHECK_FAILS(velo_dimmnet_board_open(&attr, &board), VELO_ERR_ARG, "lid");
    attr.lid = 1;
    attr.processes = 17;
    CHECK_FAILS(velo_dimmnet_board_open(&attr, &board), VELO_ERR_ARG, "processes is 17");
    attr.processes = 0;
    attr.sodimm_bytes = 4095;
    CHECK_FAILS(velo_dimmnet_board_open(&attr, &board), VELO_ERR_ARG, "multiple");
    attr.sodimm_bytes = 0;
    attr.pgid = 65536;
    CHECK_FAILS(velo_dimmnet_board_open(&attr, &board), VELO_ERR_ARG, "pgid");
    attr.pgid = 0;
    attr.patience_ns = 10000001;
    CHECK_FAILS(velo_dimmnet_board_open(&attr, &board), VELO_ERR_ARG, "patience_ns");
    attr.patience_ns = 0;
    attr.domain = "no/name";
    CHECK_FAILS(velo_dimmnet_board_open(&attr, &board), VELO_ERR_ARG, "no/name");
    attr.domain = NULL;
    attr.group = "no-such-group";
    CHECK_FAILS(velo_dimmnet_board_open(&attr, &board), VELO_ERR_ARG, "no-such-group");
    attr.group = NULL;
    attr.size_bytes = 3;
    CHECK_FAILS(velo_dimmnet_board_open(&attr, &board), VELO_ERR_ARG, "BOARD_ATTR_INIT");
}

TEST(a_lid_and_a_process_are_taken_once)
{
    struct velo_dimmnet_board *board = board_make(1);
    struct velo_dimmnet_board *other;
    struct velo_dimmnet_board_attr board_attr = VELO_DIMMNET_BOARD_ATTR_INIT;
    struct velo_dimmnet_attr attr = VELO_DIMMNET_ATTR_INIT;
    struct velo_dimmnet *context;
    struct velo_dimmnet_identity identity;

    board_attr.lid = 1;
    CHECK_FAILS(velo_dimmnet_board_open(&board_attr, &other), VELO_ERR_IN_USE, "live process");
    struct velo_dimmnet *first = context_open(1, 1);
    attr.lid = 1;
    attr.wid = 1;
    CHECK_FAILS(velo_dimmnet_open(&attr, &context, 0), VELO_ERR_IN_USE, "process 1 of board 1");
    struct velo_dimmnet *second = context_open(1, VELO_DIMMNET_WID_ANY);
    CHECK_OK(velo_dimmnet_identity(second, &identity));
    CHECK_EQ(identity.wid, 0);
    attr.wid = VELO_DIMMNET_WID_ANY;
    CHECK_FAILS(velo_dimmnet_open(&attr, &context, 0), VELO_ERR_FULL, "all 2 processes");
    CHECK_OK(velo_dimmnet_close(first));
    first = context_open(1, 1);
    CHECK_OK(velo_dimmnet_close(first));
    CHECK_OK(velo_dimmnet_close(second));
    CHECK_OK(velo_dimmnet_board_close(board));
}

TEST(a_context_with_bad_attributes_is_refused)
{
    struct velo_dimmnet_board *board = board_make(1);
    struct velo_dimmnet_attr attr = VELO_DIMMNET_ATTR_INIT;
    struct velo_dimmnet *context;

    CHECK_FAILS(velo_dimmnet_open(NULL, &context, 0), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_dimmnet_open(&attr, &context, -2), VELO_ERR_ARG, "timeout_ns");
    CHECK_FAILS(velo_dimmnet_open(&attr, &context, 0), VELO_ERR_ARG, "lid is 0");
    attr.lid = 1;
    attr.wid = 16;
    CHECK_FAILS(velo_dimmnet_open(&attr, &context, 0), VELO_ERR_ARG, "wid is 16");
    attr.wid = 2;
    CHECK_FAILS(velo_dimmnet_open(&attr, &context, 0), VELO_ERR_ARG, "2 processes");
    attr.wid = 0;
    attr.pgid = 9;
    CHECK_FAILS(velo_dimmnet_open(&attr, &context, 0), VELO_ERR_ACCESS, "group 1, not 9");
    attr.pgid = 1;
    CHECK_OK(velo_dimmnet_open(&attr, &context, 0));
    CHECK_OK(velo_dimmnet_close(context));
    attr.lid = 5;
    CHECK_FAILS(velo_dimmnet_open(&attr, &context, 2 * TEST_MS), VELO_ERR_NO_PEER, "board 5");
    attr.size_bytes = 1;
    CHECK_FAILS(velo_dimmnet_open(&attr, &context, 0), VELO_ERR_ARG, "ATTR_INIT");
    CHECK_OK(velo_dimmnet_board_close(board));
}

TEST(a_pid_leads_where_the_table_says)
{
    struct world world;
    unsigned lid;
    unsigned wid;

    world_open(&world);
    CHECK_OK(velo_dimmnet_lookup(world.a, PID_B1, &lid, &wid));
    CHECK(lid == 2 && wid == 1);
    CHECK_OK(velo_dimmnet_lookup(world.a, PID_B1, NULL, NULL));
    CHECK_FAILS(velo_dimmnet_lookup(world.a, 12, &lid, &wid), VELO_ERR_NO_PEER, "no PID 12");
    CHECK_FAILS(velo_dimmnet_lookup(world.a, 16384, &lid, &wid), VELO_ERR_ARG, "16383");
    CHECK_FAILS(velo_dimmnet_lookup(NULL, 0, &lid, &wid), VELO_ERR_ARG, "NULL");
    CHECK_OK(velo_dimmnet_board_pid(world.board_a, 16383, 2, 0));
    CHECK_OK(velo_dimmnet_lookup(world.a, 16383, &lid, &wid));
    CHECK_OK(velo_dimmnet_board_pid(world.board_a, 16383, 0, 0));
    CHECK_FAILS(velo_dimmnet_lookup(world.a, 16383, &lid, &wid), VELO_ERR_NO_PEER, "16383");
    CHECK_FAILS(velo_dimmnet_board_pid(world.board_a, 16384, 2, 0), VELO_ERR_ARG, "16384");
    CHECK_FAILS(velo_dimmnet_board_pid(world.board_a, 0, 65536, 0), VELO_ERR_ARG, "lid");
    CHECK_FAILS(velo_dimmnet_board_pid(world.board_a, 0, 2, 16), VELO_ERR_ARG, "wid");
    CHECK_FAILS(velo_dimmnet_board_pid(NULL, 0, 2, 0), VELO_ERR_ARG, "NULL");
    world_close(&world);
}

TEST(a_process_with_a_bad_description_is_refused)
{
    struct world world;
    struct velo_dimmnet_process process;

    world_open(&world);
    CHECK_FAILS(velo_dimmnet_board_process(world.board_a, 2, &process), VELO_ERR_ARG,
                "2 processes");
    CHECK_FAILS(velo_dimmnet_board_process(NULL, 0, &process), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_dimmnet_board_set_process(world.board_a, 0, NULL), VELO_ERR_ARG, "NULL");
    CHECK_OK(velo_dimmnet_board_process(world.board_a, 0, &process));
    process.pgid = 0;
    CHECK_FAILS(velo_dimmnet_board_set_process(world.board_a, 0, &process), VELO_ERR_ARG, "pgid");
    process.pgid = 1;
    process.region_word = 2 * REGION_WORDS - 2;
    process.region_words = 4;
    CHECK_FAILS(velo_dimmnet_board_set_process(world.board_a, 0, &process), VELO_ERR_ARG, "leads");
    process.region_words = 1;
    CHECK_FAILS(velo_dimmnet_board_set_process(world.board_a, 0, &process), VELO_ERR_ARG, "even");
    process.region_word = 1;
    process.region_words = 2;
    CHECK_FAILS(velo_dimmnet_board_set_process(world.board_a, 0, &process), VELO_ERR_ARG, "even");
    CHECK_FAILS(velo_dimmnet_board_counters(NULL, NULL, 0), VELO_ERR_ARG, "NULL");
    world_close(&world);
}

TEST(a_bad_send_is_refused_and_sends_nothing)
{
    struct world world;
    uint64_t words[62] = {0};
    uint64_t header[2];
    struct velo_dimmnet_target target = {.pid = PID_B, .status = 1};

    world_open(&world);
    CHECK_FAILS(velo_dimmnet_send(NULL, &target, words, 1), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_dimmnet_send(world.a, NULL, words, 1), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_dimmnet_send(world.a, &target, NULL, 1), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_dimmnet_send(world.a, &target, words, 0), VELO_ERR_ARG, "len_words is 0");
    CHECK_FAILS(velo_dimmnet_send(world.a, &target, words, 1u << 20), VELO_ERR_ARG, "1048575");
    target.memory = 3;
    CHECK_FAILS(velo_dimmnet_send(world.a, &target, words, 1), VELO_ERR_ARG, "memory is 3");
    target.memory = VELO_DIMMNET_PREFETCH;
    target.word = 200;
    CHECK_FAILS(velo_dimmnet_send(world.a, &target, words, 57), VELO_ERR_ARG, "256");
    target.memory = VELO_DIMMNET_LLCM;
    target.word = VELO_DIMMNET_LLCM_FREE_WORDS;
    CHECK_FAILS(velo_dimmnet_send(world.a, &target, words, 1), VELO_ERR_ARG, "3584");
    target.word = 0;
    target.status = 2;
    CHECK_FAILS(velo_dimmnet_send(world.a, &target, words, 1), VELO_ERR_ARG, "status is 2");
    target.status = 1;
    target.pid = 13;
    CHECK_FAILS(velo_dimmnet_send(world.a, &target, words, 1), VELO_ERR_NO_PEER, "no PID 13");
    CHECK_FAILS(velo_dimmnet_header(world.a, &target, header), VELO_ERR_NO_PEER, "no PID 13");
    CHECK_FAILS(velo_dimmnet_aotf_header(world.a, 32, &target), VELO_ERR_ARG, "slot is 32");
    CHECK_FAILS(velo_dimmnet_aotf(world.a, 32, 0), VELO_ERR_ARG, "slot is 32");
    CHECK_FAILS(velo_dimmnet_botf(world.a, 2, 0, 3), VELO_ERR_ARG, "window 2");
    CHECK_FAILS(velo_dimmnet_botf(world.a, 0, 60, 5), VELO_ERR_ARG, "no packet");
    CHECK_FAILS(velo_dimmnet_botf(world.a, 0, 0, 1), VELO_ERR_ARG, "no packet");
    CHECK_EQ(counted(world.board_b).received, 0);
    pass_a_word(world.a, world.b, PID_B);
    /* There is no header: a board sends it to LID 0, where nobody is. */
    int status = velo_dimmnet_aotf(world.a, 0, 0);
    CHECK(status == VELO_OK || status == VELO_ERR_ARG);
    CHECK_OK(velo_dimmnet_quiet(world.a, TEST_PATIENCE_NS));
    CHECK_EQ(velo_dimmnet_error(world.a) != VELO_DIMMNET_ERROR_NONE, status == VELO_ERR_ARG);
    pass_a_word(world.a, world.b, PID_B);
    CHECK_EQ(counted(world.board_b).received, 2);
    world_close(&world);
}

TEST(a_bad_transfer_is_refused_and_moves_nothing)
{
    struct world world;
    struct velo_dimmnet_transfer good = {.pid = PID_B, .len_words = 4, .status = 1};
    struct velo_dimmnet_transfer bad;

    world_open(&world);
#define REFUSED(call, about, ...)                                                                  \
    do {                                                                                           \
        bad = good;                                                                                \
        __VA_ARGS__;                                                                               \
        CHECK_FAILS(velo_dimmnet_##call(world.a, &bad), VELO_ERR_ARG, about);                      \
    } while (0)
    CHECK_FAILS(velo_dimmnet_put(world.a, NULL), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_dimmnet_get(NULL, &good), VELO_ERR_ARG, "NULL");
    REFUSED(put, "len_words is 0", bad.len_words = 0);
    REFUSED(get, "1048575", bad.len_words = 1u << 20);
    REFUSED(load, "status is 2", bad.status = 2);
    REFUSED(put, "local_memory is 2", bad.local_memory = VELO_DIMMNET_LLCM);
    REFUSED(put, "which have 128",
            (bad.local_memory = VELO_DIMMNET_PREFETCH, bad.local_word = 125));
    REFUSED(get, "which have 256",
            (bad.local_memory = VELO_DIMMNET_PREFETCH, bad.local_word = 253));
    REFUSED(get, "remote_memory is 1", bad.remote_memory = VELO_DIMMNET_PREFETCH);
    REFUSED(put, "local access is 3", bad.local.access = 3);
    REFUSED(put, "remote element_words is 3",
            (bad.remote.access = VELO_DIMMNET_STRIDED, bad.remote.element_words = 3));
    REFUSED(
        put, "element_words is 33",
        (bad.len_words = 33, bad.remote.access = VELO_DIMMNET_LIST, bad.remote.element_words = 33));
    REFUSED(put, "leads out of the LLCM",
            (bad.remote.access = VELO_DIMMNET_LIST, bad.remote.element_words = 1,
             bad.remote.list_word = 3583));
    REFUSED(get, "contiguous or strided",
            (bad.local.access = VELO_DIMMNET_LIST, bad.local.element_words = 1));
    REFUSED(put, "only a region",
            (bad.remote_memory = VELO_DIMMNET_LLCM, bad.remote.access = VELO_DIMMNET_STRIDED,
             bad.remote.element_words = 1));
    REFUSED(put, "windows are contiguous",
            (bad.local_memory = VELO_DIMMNET_PREFETCH, bad.local.access = VELO_DIMMNET_STRIDED,
             bad.local.element_words = 1));
    REFUSED(load, "which have 256", bad.remote_word = 253);
    REFUSED(store, "which have 128", bad.remote_word = 125);
#undef REFUSED
    CHECK_EQ(velo_dimmnet_error(world.a), VELO_DIMMNET_ERROR_NONE);
    CHECK_EQ(counted(world.board_a).sent, 0);
    CHECK_EQ(counted(world.board_b).received, 0);
    expect_none(world.a);
    world_close(&world);
}

/* An engine that knows at once says so; every engine notes it. */
static void check_refused(struct world *world, int status, int error)
{
    CHECK(status == VELO_OK || status == VELO_ERR_ARG);
    pass_a_word(world->a, world->b, PID_B);
    CHECK_EQ(velo_dimmnet_error(world->a), error);
    CHECK_EQ(velo_dimmnet_error(world->a), VELO_DIMMNET_ERROR_NONE);
    expect_none(world->a);
}

TEST(the_controller_refuses_words_outside_the_own_region_and_notes_it)
{
    struct world world;
    struct velo_dimmnet_transfer move = {
        .pid = PID_B, .len_words = 2, .local_word = REGION_WORDS - 1, .status = 1};

    world_open(&world);
    check_refused(&world, velo_dimmnet_put(world.a, &move), VELO_DIMMNET_ERROR_BOUNDS);
    check_refused(&world, velo_dimmnet_get(world.a, &move), VELO_DIMMNET_ERROR_BOUNDS);
    check_refused(&world, velo_dimmnet_load(world.a, &move), VELO_DIMMNET_ERROR_BOUNDS);
    check_refused(&world, velo_dimmnet_store(world.a, &move), VELO_DIMMNET_ERROR_BOUNDS);
    velo_dimmnet_llcm(world.a)[0] = (uint64_t)REGION_WORDS << 32; /* Offsets 0 and one too far. */
    move.local_word = 0;
    move.local = (struct velo_dimmnet_pattern){.access = VELO_DIMMNET_LIST, .element_words = 1};
    check_refused(&world, velo_dimmnet_put(world.a, &move), VELO_DIMMNET_ERROR_BOUNDS);
    CHECK_EQ(counted(world.board_a).refused, 5);
    world_close(&world);
}

TEST(a_process_that_is_not_enabled_may_not_send)
{
    struct world world;
    struct velo_dimmnet_process process;
    struct velo_dimmnet_target target = {.pid = PID_B, .status = 1};
    struct velo_dimmnet_transfer load = {.len_words = 1};
    uint64_t word = 1;

    world_open(&world);
    CHECK_OK(velo_dimmnet_board_process(world.board_a, 0, &process));
    process.is_enabled = 0;
    CHECK_OK(velo_dimmnet_board_set_process(world.board_a, 0, &process));
    /* As in check_refused(). */
    int sent = velo_dimmnet_send(world.a, &target, &word, 1);
    CHECK(sent == VELO_OK || sent == VELO_ERR_STATE);
    int loaded = velo_dimmnet_load(world.a, &load);
    CHECK(loaded == VELO_OK || loaded == VELO_ERR_STATE);
    CHECK_OK(velo_dimmnet_quiet(world.a, TEST_PATIENCE_NS));
    CHECK_EQ(velo_dimmnet_error(world.a), VELO_DIMMNET_ERROR_DISABLED);
    CHECK_EQ(counted(world.board_a).refused, 2);
    CHECK_EQ(counted(world.board_b).received, 0);
    world_close(&world);
}

TEST(looking_outside_the_windows_is_refused)
{
    struct world world;

    world_open(&world);
    CHECK(velo_dimmnet_write_window(world.a, 2) == NULL);
    CHECK(velo_dimmnet_write_window(NULL, 0) == NULL);
    CHECK(velo_dimmnet_prefetch(NULL) == NULL);
    CHECK(velo_dimmnet_llcm(NULL) == NULL);
    CHECK_OK(velo_dimmnet_refresh(world.a, 0, 256));
    CHECK_FAILS(velo_dimmnet_refresh(world.a, 1, 256), VELO_ERR_ARG, "256 words from word 1");
    CHECK_FAILS(velo_dimmnet_refresh(world.a, 256, 0), VELO_ERR_ARG, "Prefetch");
    CHECK_FAILS(velo_dimmnet_identity(world.a, NULL), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_dimmnet_error(NULL), VELO_ERR_ARG, "NULL");
    CHECK_STATUS(velo_dimmnet_poll(NULL, NULL), VELO_ERR_ARG);
    CHECK_STATUS(velo_dimmnet_wait(world.a, NULL, -2), VELO_ERR_ARG);
    CHECK_STATUS(velo_dimmnet_quiet(world.a, -2), VELO_ERR_ARG);
    CHECK_OK(velo_dimmnet_close(NULL));
    CHECK_OK(velo_dimmnet_board_close(NULL));
    world_close(&world);
}

TEST(a_board_that_was_taken_away_is_told_of)
{
    struct world world;
    struct velo_dimmnet_target target = {.pid = PID_B, .status = 1};
    struct velo_dimmnet_transfer load = {.len_words = 1};
    uint64_t word = 1;

    world_open(&world);
    pass_a_word(world.a, world.b, PID_B);
    CHECK_OK(velo_dimmnet_peer_status(world.a, PID_B));
    CHECK_FAILS(velo_dimmnet_peer_status(world.a, 12), VELO_ERR_NO_PEER, "no PID 12");
    CHECK_OK(velo_dimmnet_board_close(world.board_b));
    CHECK_FAILS(velo_dimmnet_peer_status(world.a, PID_B), VELO_ERR_PEER_CLOSED, "board 2");
    int sent = velo_dimmnet_send(world.a, &target, &word, 1); /* A board does not know. */
    CHECK(sent == VELO_OK || sent == VELO_ERR_PEER_CLOSED);
    CHECK_FAILS(velo_dimmnet_load(world.b, &load), VELO_ERR_PEER_CLOSED, "board 2");
    CHECK_FAILS(velo_dimmnet_wait(world.b, NULL, TEST_PATIENCE_NS), VELO_ERR_PEER_CLOSED,
                "board 2");
    CHECK_OK(velo_dimmnet_close(world.b));
    /* Made anew, it is another board under the same LID, and found without more ado. */
    world.board_b = board_make(2);
    world.b = context_open(2, 0);
    pass_a_word(world.a, world.b, PID_B);
    world_close(&world);
}

static void close_what_is_the_parents(void *arg)
{
    struct world *of_parent = arg;

    world_close(of_parent);
}

TEST(a_child_that_closes_the_boards_of_its_parent_closes_nothing)
{
    struct world world;

    world_open(&world);
    child_join(child_start(close_what_is_the_parents, &world));
    pass_a_word(world.a, world.b, 20);
    world_close(&world);
}
