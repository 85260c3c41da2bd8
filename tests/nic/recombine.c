/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines that came in parts: each line comes out as it was stored, or not at all, and what one
 * sender does harms no other.
 */
#include "recombine.h"

#include <string.h>

#include <velo/spec.h>

#include "test.h"
#include "wire.h"

enum { WORDS_MAX = 8, HARDWARE_SEQ = 77 };

struct line {
    uint16_t source;
    unsigned words;
    uint64_t word[WORDS_MAX];
};

static struct line make_line(struct rng *rng, uint16_t source, unsigned words)
{
    struct line line = {.source = source, .words = words};
    unsigned len_bytes = words == 1 ? 0 : 8 * (words - 1) - rng_below(rng, 8);
    line.word[0] = velo_header_pack(0, (uint8_t)rng_next(rng), (uint16_t)len_bytes, 0, 0);
    for (unsigned i = 1; i < words; i++)
        line.word[i] = rng_next(rng);
    line.word[0] = recombine_checked(line.word, words);
    return line;
}

/* The slot that the hardware makes of words of a line, from `begin` to before `end`. */
static void slot_of(const struct line *line, unsigned begin, unsigned end, uint64_t *slot)
{
    uint64_t tag =
        velo_fragment_tag_pack((uint8_t)begin, (uint8_t)(line->words - 1), end == line->words);
    memset(slot, 0xee, WORDS_MAX * sizeof *slot);
    slot[0] = velo_header_pack(0, (uint8_t)tag, (uint16_t)(8 * (end - begin)), line->source,
                               HARDWARE_SEQ) |
              (uint64_t)VELO_SLOT_FRAGMENT << VELO_HEADER_RESERVED_LSB;
    memcpy(slot + 1, line->word + begin, (end - begin) * sizeof *slot);
}

static enum recombine_result take(struct recombine *all, const struct line *line, unsigned begin,
                                  unsigned end, uint64_t *whole)
{
    uint64_t slot[WORDS_MAX];
    slot_of(line, begin, end, slot);
    return recombine_take(all, slot, whole);
}

static void check_whole(const struct line *line, const uint64_t *whole)
{
    CHECK_EQ(velo_header_tag(whole[0]), velo_header_tag(line->word[0]));
    CHECK_EQ(velo_header_len(whole[0]), velo_header_len(line->word[0]));
    CHECK_EQ(velo_header_source(whole[0]), line->source);
    CHECK_EQ(velo_header_seq(whole[0]), HARDWARE_SEQ);
    CHECK_EQ(velo_header_reserved(whole[0]), 0);
    CHECK_EQ(velo_header_valid(whole[0]), 1);
    CHECK_EQ(velo_header_external(whole[0]), 0);
    CHECK(memcmp(whole + 1, line->word + 1, (line->words - 1) * sizeof *whole) == 0);
}

TEST(a_line_cut_anywhere_comes_out_as_it_was)
{
    struct rng rng = {1};
    struct recombine all = {0};
    uint64_t whole[WORDS_MAX];
    for (unsigned words = 2; words <= WORDS_MAX; words++)
        for (unsigned cuts = 1; cuts < 1u << (words - 1); cuts++) {
            struct line line = make_line(&rng, 5, words);
            unsigned begin = 0;
            for (unsigned end = 1; end < words; end++)
                if (cuts >> (end - 1) & 1) {
                    CHECK_EQ(take(&all, &line, begin, end, whole), RECOMBINE_OPEN);
                    begin = end;
                }
            CHECK_EQ(take(&all, &line, begin, words, whole), RECOMBINE_WHOLE);
            check_whole(&line, whole);
        }
    CHECK(!all.newest);
    CHECK_EQ(all.refused + all.dropped, 0);
}

TEST(lines_of_many_senders_are_put_together_side_by_side)
{
    enum { SENDERS = 300 };
    struct rng rng = {2};
    struct recombine all = {0};
    static struct line line[SENDERS];
    uint64_t whole[WORDS_MAX];
    for (unsigned s = 0; s < SENDERS; s++) {
        line[s] = make_line(&rng, (uint16_t)(s * 211), 8);
        CHECK_EQ(take(&all, &line[s], 0, 3, whole), RECOMBINE_OPEN);
    }
    for (unsigned s = 0; s < SENDERS; s++)
        CHECK_EQ(take(&all, &line[s], 3, 5, whole), RECOMBINE_OPEN);
    for (unsigned s = SENDERS; s-- > 0;) {
        CHECK_EQ(take(&all, &line[s], 5, 8, whole), RECOMBINE_WHOLE);
        check_whole(&line[s], whole);
    }
    CHECK(!all.newest);
}

TEST(a_line_whose_rest_was_lost_spoils_no_other)
{
    struct rng rng = {3};
    struct recombine all = {0};
    uint64_t whole[WORDS_MAX];
    struct line lost = make_line(&rng, 9, 6), next = make_line(&rng, 9, 6);
    CHECK_EQ(take(&all, &lost, 0, 2, whole), RECOMBINE_OPEN);
    CHECK_EQ(take(&all, &next, 0, 2, whole), RECOMBINE_OPEN);
    CHECK_EQ(take(&all, &next, 2, 4, whole), RECOMBINE_OPEN);
    CHECK_EQ(take(&all, &next, 4, 6, whole), RECOMBINE_WHOLE);
    check_whole(&next, whole);
    /* The beginning of one and the end of another: not a line. */
    next = make_line(&rng, 9, 6);
    CHECK_EQ(take(&all, &next, 2, 6, whole), RECOMBINE_REFUSED);
    CHECK_EQ(take(&all, &lost, 2, 6, whole), RECOMBINE_WHOLE);
    check_whole(&lost, whole);
    CHECK_EQ(all.refused, 1);
    CHECK(!all.newest);
}

TEST(lines_of_two_threads_that_are_split_at_once_are_told_apart)
{
    struct rng rng = {4};
    struct recombine all = {0};
    uint64_t whole[WORDS_MAX];
    struct line a = make_line(&rng, 9, 6), b = make_line(&rng, 9, 6);
    for (unsigned order = 0; order < 2; order++) {
        CHECK_EQ(take(&all, &a, 0, 2, whole), RECOMBINE_OPEN);
        CHECK_EQ(take(&all, &b, 0, 2, whole), RECOMBINE_OPEN);
        CHECK_EQ(take(&all, order ? &a : &b, 2, 6, whole), RECOMBINE_WHOLE);
        check_whole(order ? &a : &b, whole);
        CHECK_EQ(take(&all, order ? &b : &a, 2, 6, whole), RECOMBINE_WHOLE);
        check_whole(order ? &b : &a, whole);
    }
}

TEST(a_sender_keeps_few_lines_open_and_drops_its_own_only)
{
    struct rng rng = {5};
    struct recombine all = {0};
    uint64_t whole[WORDS_MAX];
    struct line victim = make_line(&rng, 1, 8), line[100];
    CHECK_EQ(take(&all, &victim, 0, 7, whole), RECOMBINE_OPEN);
    for (unsigned i = 0; i < ARRAY_LEN(line); i++) {
        line[i] = make_line(&rng, 2, 8);
        CHECK_EQ(take(&all, &line[i], 0, 4, whole), RECOMBINE_OPEN);
    }
    CHECK_EQ(all.dropped, ARRAY_LEN(line) - RECOMBINE_LINES);
    CHECK_EQ(take(&all, &victim, 7, 8, whole), RECOMBINE_WHOLE);
    check_whole(&victim, whole);
    for (unsigned i = 0; i < ARRAY_LEN(line); i++)
        CHECK_EQ(take(&all, &line[i], 4, 8, whole),
                 i < ARRAY_LEN(line) - RECOMBINE_LINES ? RECOMBINE_REFUSED : RECOMBINE_WHOLE);
    CHECK(!all.newest);
}

TEST(a_part_that_contradicts_itself_is_refused)
{
    struct rng rng = {6};
    struct recombine all = {0};
    uint64_t slot[WORDS_MAX], whole[WORDS_MAX];
    struct line line = make_line(&rng, 1, 4);
    const struct {
        unsigned tag, len_bytes;
    } bad[] = {
        {0 | 3 << 3, 0},                            /* nothing */
        {0 | 3 << 3, 12},                           /* half a word */
        {0 | 3 << 3, 32},                           /* as long as the line, and not its end */
        {0 | 3 << 3 | 1 << 6, 32},                  /* a whole line is not a part */
        {2 | 3 << 3, 24},                           /* beyond the line's end */
        {2 | 3 << 3, 16},                           /* reaches the end and does not say so */
        {2 | 3 << 3 | 1 << 6, 8},                   /* says so and does not reach it */
        {0 | 3 << 3 | 1 << 7, 16},                  /* a tag that no node makes */
        {0 | 7 << 3, 64},                           /* longer than a slot */
        {0 | 7 << 3, 1016},        {1 | 3 << 3, 8}, /* its offset is there already */
        {3 | 3 << 3 | 1 << 6, 8},                   /* a word is missing before it */
        {2 | 4 << 3, 8},                            /* of a line of another length */
    };
    CHECK_EQ(take(&all, &line, 0, 2, whole), RECOMBINE_OPEN);
    for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
        slot_of(&line, 0, 2, slot);
        slot[0] = velo_header_pack(0, (uint8_t)bad[i].tag, (uint16_t)bad[i].len_bytes, 1, 0) |
                  (uint64_t)VELO_SLOT_FRAGMENT << VELO_HEADER_RESERVED_LSB;
        CHECK_EQ(recombine_take(&all, slot, whole), RECOMBINE_REFUSED);
    }
    slot_of(&line, 0, 2, slot);
    slot[0] |= UINT64_C(2) << VELO_HEADER_RESERVED_LSB;
    CHECK_EQ(recombine_take(&all, slot, whole), RECOMBINE_REFUSED);
    struct line other = make_line(&rng, 2, 4);
    CHECK_EQ(take(&all, &other, 2, 4, whole), RECOMBINE_REFUSED);
    CHECK_EQ(take(&all, &other, 1, 2, whole), RECOMBINE_REFUSED);
    CHECK_EQ(all.refused, ARRAY_LEN(bad) + 3);
    CHECK_EQ(take(&all, &line, 2, 4, whole), RECOMBINE_WHOLE);
    check_whole(&line, whole);
    CHECK(!all.newest);
}

TEST(a_line_that_is_no_message_is_refused_when_it_is_whole)
{
    struct rng rng = {7};
    uint64_t whole[WORDS_MAX];
    for (unsigned i = 0; i < 5; i++) {
        struct recombine all = {0};
        struct line line = make_line(&rng, 1, 4);
        line.word[0] = velo_header_pack(i == 0, 1, i == 1 ? 8 : i == 2 ? 65535 : 24, 0, 0);
        if (i == 3)
            line.word[0] ^= VELO_HEADER_VALID_MASK;
        line.word[0] = recombine_checked(line.word, 4);
        if (i == 4)
            line.word[3] ^= 1;
        CHECK_EQ(take(&all, &line, 0, 2, whole), RECOMBINE_OPEN);
        CHECK_EQ(take(&all, &line, 2, 4, whole), RECOMBINE_REFUSED);
        recombine_close(&all);
        CHECK(!all.newest);
    }
}

/* Anything at all, of few senders: only lines that were stored come out. */
TEST(whatever_comes_only_lines_that_were_stored_come_out)
{
    enum { LINES = 64, PARTS = 200000 };
    struct rng rng = {test_seed()};
    struct recombine all = {0};
    static struct line line[LINES];
    unsigned wholes = 0;
    for (unsigned i = 0; i < LINES; i++)
        line[i] = make_line(&rng, (uint16_t)rng_below(&rng, 3), 2 + rng_below(&rng, 7));
    for (unsigned i = 0; i < PARTS; i++) {
        uint64_t slot[WORDS_MAX], whole[WORDS_MAX];
        const struct line *from = &line[rng_below(&rng, LINES)];
        unsigned begin = rng_below(&rng, from->words);
        unsigned end = begin + 1 + rng_below(&rng, from->words - begin);
        if (end - begin == from->words)
            continue;
        slot_of(from, begin, end, slot);
        if (rng_below(&rng, 8) == 0)
            slot[rng_below(&rng, WORDS_MAX)] ^= UINT64_C(1) << rng_below(&rng, 32);
        if (recombine_take(&all, slot, whole) != RECOMBINE_WHOLE)
            continue;
        bool is_known = false;
        for (unsigned l = 0; l < LINES && !is_known; l++)
            is_known = velo_header_source(whole[0]) == line[l].source &&
                       velo_header_tag(whole[0]) == velo_header_tag(line[l].word[0]) &&
                       velo_header_len(whole[0]) == velo_header_len(line[l].word[0]) &&
                       memcmp(whole + 1, line[l].word + 1, 8 * (line[l].words - 1)) == 0;

        CHECK(is_known);
        wholes++;
    }
    CHECK(wholes > 100);
    recombine_close(&all);
}
