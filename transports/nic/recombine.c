/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sender's open lines are found by a linear search, as in the paper: splits are rare.
 */
#include "recombine.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define LINE_WORDS (VELO_LINE_BYTES / sizeof(uint64_t))

/* The words below `next` are there. */
struct recombine_line {
    struct recombine_line *older;
    uint16_t source;
    uint8_t words, next;
    uint64_t word[LINE_WORDS];
};

/* A part, as its slot says. */
struct part {
    uint16_t source;
    uint8_t offset, words, line_words;
    bool is_last;
    const uint64_t *word;
};

/* Tag and length agree with each other, and the part is not a whole line. */
static bool part_of(const uint64_t *slot, struct part *part)
{
    uint64_t tag = velo_header_tag(slot[0]);
    unsigned len_bytes = velo_header_len(slot[0]);
    *part = (struct part){
        .source = velo_header_source(slot[0]),
        .offset = velo_fragment_tag_offset(tag),
        .words = (uint8_t)(len_bytes / sizeof(uint64_t)),
        .line_words = (uint8_t)(velo_fragment_tag_words(tag) + 1),
        .is_last = velo_fragment_tag_last(tag) != 0,
        .word = slot + 1,
    };
    unsigned end = part->offset + part->words;
    return velo_header_reserved(slot[0]) == VELO_SLOT_FRAGMENT && (tag & 0x80) == 0 &&
           len_bytes % sizeof(uint64_t) == 0 && part->words != 0 && part->words < LINE_WORDS &&
           end <= part->line_words && part->is_last == (end == part->line_words);
}

static void drop_line(struct recombine_line **link)
{
    struct recombine_line *line = *link;
    *link = line->older;
    free(line);
}

/* A part that begins a line may be the sender's last one of several that were never ended. */
static bool begin_line(struct recombine *all, const struct part *part)
{
    unsigned open = 0;
    struct recombine_line **oldest = NULL;
    for (struct recombine_line **link = &all->newest; *link; link = &(*link)->older)
        if ((*link)->source == part->source) {
            oldest = link;
            open++;
        }
    if (open == RECOMBINE_LINES) {
        drop_line(oldest);
        all->dropped++;
    }
    struct recombine_line *line = calloc(1, sizeof *line);
    if (!line)
        return false;
    line->source = part->source;
    line->words = part->line_words;
    line->next = part->words;
    memcpy(line->word, part->word, part->words * sizeof(uint64_t));
    line->older = all->newest;
    all->newest = line;
    return true;
}

static bool part_fits(const struct recombine_line *line, const struct part *part)
{
    return line->source == part->source && line->words == part->line_words &&
           line->next == part->offset;
}

/* The line is one that a port of the library stored: its header, its length and its check. */
static bool is_right(const uint64_t *line, unsigned words)
{
    const uint64_t low =
        VELO_HEADER_VALID_MASK | VELO_HEADER_EXTERNAL_MASK | VELO_HEADER_RESERVED_MASK;
    unsigned len_bytes = velo_header_len(line[0]);
    return (line[0] & low) == VELO_HEADER_VALID_MASK && 1 + (len_bytes + 7) / 8 == words &&
           recombine_checked(line, words) == line[0];
}

static bool end_line(struct recombine *all, const struct part *part, uint64_t header,
                     uint64_t *line)
{
    uint64_t whole[LINE_WORDS] = {0};
    for (struct recombine_line **link = &all->newest; *link; link = &(*link)->older) {
        if (!part_fits(*link, part))
            continue;
        memcpy(whole, (*link)->word, part->offset * sizeof(uint64_t));
        memcpy(whole + part->offset, part->word, part->words * sizeof(uint64_t));
        if (!is_right(whole, part->line_words))
            continue;
        drop_line(link);
        /* The sender's tag and length; the rest is the hardware's word. */
        whole[0] = velo_header_pack(0, velo_header_tag(whole[0]), velo_header_len(whole[0]),
                                    velo_header_source(header), velo_header_seq(header));
        memcpy(line, whole, sizeof whole);
        return true;
    }
    return false;
}

static bool go_on(const struct recombine *all, const struct part *part)
{
    for (struct recombine_line *line = all->newest; line; line = line->older)
        if (part_fits(line, part)) {
            memcpy(line->word + part->offset, part->word, part->words * sizeof(uint64_t));
            line->next = (uint8_t)(part->offset + part->words);
            return true;
        }
    return false;
}

enum recombine_result recombine_take(struct recombine *all, const uint64_t *slot, uint64_t *line)
{
    struct part part;
    if (part_of(slot, &part)) {
        if (part.is_last && end_line(all, &part, slot[0], line))
            return RECOMBINE_WHOLE;
        if (!part.is_last && (part.offset == 0 ? begin_line(all, &part) : go_on(all, &part)))
            return RECOMBINE_OPEN;
    }
    all->refused++;
    return RECOMBINE_REFUSED;
}

void recombine_close(struct recombine *all)
{
    while (all->newest)
        drop_line(&all->newest);
}
