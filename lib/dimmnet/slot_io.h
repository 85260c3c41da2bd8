/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file slot_io.h
 * @brief The seam to boards in memory slots: what a processor does with their addresses.
 *
 * The engine for such boards (slot.c) knows windows, registers and commands; a plug-in,
 * `velo/libvelo-dimmnet-<name>.so` beside this library, brings its loads and stores to a board. It
 * has a symbol `velo_dimmnet_io`, a pointer to this structure. $VELO_DIMMNET names it.
 *
 * Addresses are bytes in a board's slot (spec/dimmnet.toml, dimmnet_slot). Boards are numbered by
 * the plug-in. All functions are for any thread.
 */
#ifndef VELO_DIMMNET_SLOT_IO_H
#define VELO_DIMMNET_SLOT_IO_H

#include "engine.h"

/** Raised with every incompatible change of this file. */
#define DIMMNET_IO_VERSION 1u

struct dimmnet_io {
    uint32_t version;
    uint32_t processes;    /**< Of each board. */
    uint64_t sodimm_bytes; /**< Of each board. */

    /** Give a board to this process, as after power-up. VELO_ERR_FULL, VELO_ERR_IN_USE,
     *  VELO_ERR_STATE, with velo_fail(). */
    int (*open)(uint32_t lid, uint64_t *board);
    void (*close)(uint64_t board);
    /** Store words into write-combining memory, and fence. */
    void (*store)(uint64_t board, uint64_t address, const uint64_t *words, uint32_t len_words);
    /** Load one word that is not cached. */
    uint64_t (*load)(uint64_t board, uint64_t address);
    /** Flush the lines of the words from the cache, and load the words. */
    void (*load_lines)(uint64_t board, uint64_t address, uint64_t *words, uint32_t len_words);
    /** Load one word that is not cached until it is not `seen`, for so long at most. True: a signal
     *  handler ran. */
    bool (*await)(uint64_t board, uint64_t address, uint64_t seen, int64_t timeout_ns);
    /** A process's LLCM, as its loads find it. */
    uint64_t *(*llcm)(uint64_t board, uint32_t wid);
    /** The board has what the process has stored into these words of its LLCM. */
    void (*llcm_fence)(uint64_t board, uint32_t wid, uint32_t first_word, uint32_t len_words);
    /** The processor does what a call of the library takes by itself. */
    void (*work)(void);
};

/** The plug-in, once dimmnet_engine() of choice.h has given dimmnet_in_slots. */
extern const struct dimmnet_io *dimmnet_io;

#endif
