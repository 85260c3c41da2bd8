/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file engine.h
 * @brief What a board offers to the library: windows, registers, and time.
 *
 * The library makes packets and commands as spec/dimmnet.toml lays them out and hands them over by
 * writes to registers. An engine stands behind that: the native one carries commands out in the
 * caller (native_layout.h); a board's would store to mapped pages. Nothing above an engine knows
 * which it is.
 *
 * A register write returns VELO_OK once the controller has the word. An engine that knows more says
 * more, with velo_fail(): VELO_ERR_ARG or VELO_ERR_STATE for a command that was refused, and
 * VELO_ERR_NO_PEER, VELO_ERR_PEER_CLOSED or VELO_ERR_PEER_DEAD for a board that is not there.
 */
#ifndef VELO_DIMMNET_ENGINE_H
#define VELO_DIMMNET_ENGINE_H

#include <velo/dimmnet.h>

#include "../shm/segment.h"

struct dimmnet_engine;

/** A process's pages of a slot, as an engine has mapped them. */
struct dimmnet_slot {
    const struct dimmnet_engine *engine;
    uint64_t *write;          /* Write Windows. */
    const uint64_t *prefetch; /* Prefetch Windows. */
    uint64_t *llcm;           /* With the status ring. */
    const uint64_t *pids;     /* The table: dimmnet_identity words, with no PGID; 0: no entry. */
};

/** A board's privileged page, for whoever made it. */
struct dimmnet_board {
    const struct dimmnet_engine *engine;
    uint64_t *pids;
    uint32_t lid;
    uint32_t processes;
    uint64_t sodimm_words;
};

struct dimmnet_engine {
    const char *name;
    /** sleep() looks at the ring all the time: nobody needs to spin before. */
    bool sleep_looks;

    /* A process's side. `wid` may be VELO_DIMMNET_WID_ANY. VELO_ERR_NO_PEER: no board yet. */
    int (*open)(const struct seg_domain *domain, uint32_t lid, int wid, struct dimmnet_slot **slot);
    void (*close)(struct dimmnet_slot *slot);
    /** Write or read a register, by its word in the register page. */
    int (*write)(struct dimmnet_slot *slot, unsigned word, uint64_t value);
    uint64_t (*read)(struct dimmnet_slot *slot, unsigned word);
    /** Words of the process's region now. */
    uint32_t (*region_words)(struct dimmnet_slot *slot);
    /** Forget what the processor has cached of Prefetch Windows. */
    void (*flush)(struct dimmnet_slot *slot, uint32_t first_word, uint32_t len_words);
    /** Sleep while `status_write` is `seen`, at most so long. Without a way to sleep: return at
     *  once. VELO_OK, or VELO_ERR_INTERRUPTED, VELO_ERR_PEER_CLOSED, VELO_ERR_PEER_DEAD. */
    int (*sleep)(struct dimmnet_slot *slot, uint32_t seen, int64_t sleep_ns);
    /** Is a peer's board there? An engine that cannot know says VELO_OK. */
    int (*peer_status)(struct dimmnet_slot *slot, uint32_t lid);

    /* The privileged side. Registers are those of the privileged page. */
    int (*board_open)(const struct seg_domain *domain, uint32_t lid, uint32_t processes,
                      uint64_t sodimm_bytes, struct dimmnet_board **board);
    /** The board is set up: from now on processes can open it. */
    void (*board_show)(struct dimmnet_board *board);
    void (*board_close)(struct dimmnet_board *board);
    void (*board_write)(struct dimmnet_board *board, unsigned word, uint64_t value);
    uint64_t (*board_read)(const struct dimmnet_board *board, unsigned word);
};

/** A board's clock runs at 100 MHz: `patience` counts its cycles. */
#define DIMMNET_CYCLE_NS 10u
/** The three privileged registers of a process. */
#define DIMMNET_PROCESS_REGISTER(wid) (VELO_DIMMNET_PRIVILEGED_PROCESS + 8u * (wid))

/** Is that one of the registers for AOTF? */
static inline bool dimmnet_is_aotf(unsigned word)
{
    unsigned at = word - VELO_DIMMNET_REGISTER_AOTF;
    return at < VELO_DIMMNET_AOTF_HEADERS * VELO_DIMMNET_AOTF_STEP_WORDS &&
           at % VELO_DIMMNET_AOTF_STEP_WORDS == 0;
}

/** Which header such a register uses. */
static inline unsigned dimmnet_aotf_header(unsigned word)
{
    return (word - VELO_DIMMNET_REGISTER_AOTF) / VELO_DIMMNET_AOTF_STEP_WORDS;
}

#define DIMMNET_PREFETCH_WORDS (VELO_DIMMNET_PREFETCH_WINDOWS * VELO_DIMMNET_WINDOW_WORDS)
#define DIMMNET_WRITE_WORDS (VELO_DIMMNET_WRITE_WINDOWS * VELO_DIMMNET_WINDOW_WORDS)

#endif
