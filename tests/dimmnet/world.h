/* SPDX-License-Identifier: Apache-2.0 */
/* Two boards of two processes, and short ways to move words and to check them. */
#ifndef TEST_DIMMNET_WORLD_H
#define TEST_DIMMNET_WORLD_H

#include <velo/dimmnet.h>

#include "test.h"

/* PIDs: process w of board l is 10 l + w. */
enum { REGION_WORDS = 8192, PID_A = 10, PID_A1 = 11, PID_B = 20, PID_B1 = 21 };

struct world {
    struct velo_dimmnet_board *board_a; /* LID 1. */
    struct velo_dimmnet_board *board_b; /* LID 2. */
    struct velo_dimmnet *a;             /* Process 0 of each. */
    struct velo_dimmnet *b;
};

struct velo_dimmnet_board *board_make(unsigned lid);
struct velo_dimmnet *context_open(unsigned lid, int wid);
void world_open(struct world *world);
void world_close(struct world *world);
/* What a board has counted. */
struct velo_dimmnet_counters counted(const struct velo_dimmnet_board *board);

/* A word that follows from a seed and a place. */
uint64_t word_of(uint64_t seed, uint32_t at);
void words_fill(uint64_t *words, uint32_t len_words, uint64_t seed);
void words_check(const uint64_t *words, uint32_t len_words, uint64_t seed);

/* By load and store. */
void region_write(struct velo_dimmnet *context, uint32_t word, const uint64_t *words,
                  uint32_t len_words);
void region_read(struct velo_dimmnet *context, uint32_t word, uint64_t *words, uint32_t len_words);
void region_fill(struct velo_dimmnet *context, uint32_t word, uint32_t len_words, uint64_t seed);
void region_check(struct velo_dimmnet *context, uint32_t word, uint32_t len_words, uint64_t seed);

/* The next status, which has this tag. */
struct velo_dimmnet_status expect_tag(struct velo_dimmnet *context, uint8_t tag);
void expect_none(struct velo_dimmnet *context);
/* Send a word with a status, to the peer's LLCM, and have the peer take it: all before it has
 * arrived, and left no status. */
void pass_a_word(struct velo_dimmnet *from, struct velo_dimmnet *to, unsigned pid_to);

#endif
