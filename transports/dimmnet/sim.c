/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boards of DIMMnet-2 in the simulated cluster, for libdimmnet (lib/dimmnet/slot_io.h). Each access
 * is a call of the simulator, which has the times of a PC; LLCM is shared memory in which the
 * simulator keeps what the board has.
 */
#include "../../lib/base/error.h"
#include "../../lib/dimmnet/slot_io.h"
#include "../../sim/client/channel.h"

/* Two SO-DIMMs of 256 MB (rtl/dimmnet_board). */
#define SODIMM_BYTES (UINT64_C(512) << 20)

_Static_assert(SIM_SLOT_WORDS >= VELO_DIMMNET_WINDOW_WORDS, "a window is one call");
_Static_assert(SIM_BOARD_PROCESSES == VELO_DIMMNET_PROCESSES, "as the board is built");
_Static_assert(SIM_LLCM_BYTES == VELO_DIMMNET_LLCM_WORDS * sizeof(uint64_t), "of a process");

static int open_board(uint32_t lid, uint64_t *board)
{
    struct sim_channel *channel = sim_channel_self();
    if (!channel)
        return velo_fail(VELO_ERR_STATE, "%s", sim_channel_why_none());
    uint64_t boards = sim_channel_area()->boards;
    if (boards == 0)
        return velo_fail(VELO_ERR_STATE, "the simulated cluster has no boards; start the program "
                                         "with `velo sim --dimmnet N`");
    int status = sim_board_open(channel, lid, board);
    if (status == SIM_ERR_FULL)
        return velo_fail(VELO_ERR_FULL,
                         "all %llu simulated boards are in use; give `velo sim --dimmnet` more",
                         (unsigned long long)boards);
    if (status != SIM_OK)
        return velo_fail(VELO_ERR_IN_USE,
                         "a simulated board has an LID with the lowest four bits of %u; choose "
                         "another",
                         lid);
    return VELO_OK;
}

/* A board may be off by now: whoever made it is gone, which its segment tells. An empty slot takes
 * all, and nothing comes of it. */
static void expect_done(int status, const char *what)
{
    sim_channel_expect_done(status == SIM_ERR_NODE ? SIM_OK : status, what);
}

static void close_board(uint64_t board)
{
    expect_done(sim_board_close(sim_channel_self(), board), "the end of a board");
}

static void store(uint64_t board, uint64_t address, const uint64_t *words, uint32_t len_words)
{
    expect_done(sim_slot_store(sim_channel_self(), board, address, words, len_words),
                "a store to a board");
}

static uint64_t load(uint64_t board, uint64_t address)
{
    uint64_t word = 0;
    expect_done(sim_slot_load(sim_channel_self(), board, address, &word), "a load from a board");
    return word;
}

static void load_lines(uint64_t board, uint64_t address, uint64_t *words, uint32_t len_words)
{
    expect_done(sim_slot_lines(sim_channel_self(), board, address, words, len_words),
                "a load from a board");
}

static bool await(uint64_t board, uint64_t address, uint64_t seen, int64_t timeout_ns)
{
    struct sim_channel *channel = sim_channel_self();
    uint64_t deadline_ps = channel->call.time_ps + (uint64_t)timeout_ns * PS_PER_NS;
    bool is_timeout = sim_slot_await(channel, board, address, &seen, deadline_ps) == SIM_TIMEOUT;
    return sim_channel_was_interrupted() && is_timeout;
}

/* ---- LLCM ------------------------------------------------------------------------------------ */

static uint64_t *llcm(uint64_t board, uint32_t wid)
{
    return (uint64_t *)(void *)(sim_channel_board(board) + (size_t)wid * SIM_LLCM_BYTES);
}

/* Runs of words that differ from what the board has are stored, as a processor would have. */
static void llcm_fence(uint64_t board, uint32_t wid, uint32_t first_word, uint32_t len_words)
{
    const uint64_t *mine = llcm(board, wid), *held = llcm(board, SIM_BOARD_PROCESSES + wid);
    uint32_t end = first_word + len_words;
    for (uint32_t at = first_word; at < end;) {
        uint32_t len = 0;
        while (at + len < end && len < SIM_SLOT_WORDS && mine[at + len] != held[at + len])
            len++;
        uint64_t offset = at * sizeof *mine;
        if (len)
            store(board,
                  velo_dimmnet_slot_pack((uint16_t)(offset & 0xFFF),
                                         (uint8_t)(VELO_DIMMNET_PAGE_LLCM + (offset >> 12)),
                                         (uint8_t)wid, false),
                  mine + at, len);
        at += len ? len : 1;
    }
}

static void work(void) { sim_channel_charge(sim_channel_self(), sim_channel_area()->slot_call_ps); }

static const struct dimmnet_io sim_io = {
    .version = DIMMNET_IO_VERSION,
    .processes = SIM_BOARD_PROCESSES,
    .sodimm_bytes = SODIMM_BYTES,
    .open = open_board,
    .close = close_board,
    .store = store,
    .load = load,
    .load_lines = load_lines,
    .await = await,
    .llcm = llcm,
    .llcm_fence = llcm_fence,
    .work = work,
};

SIM_API extern const struct dimmnet_io *const velo_dimmnet_io;
const struct dimmnet_io *const velo_dimmnet_io = &sim_io;
