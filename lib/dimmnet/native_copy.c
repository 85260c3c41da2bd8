/* SPDX-License-Identifier: Apache-2.0 */
/* Gathering and scattering: contiguous, strided, by a list. */
#include "native_copy.h"

#include <string.h>

#include <velo/dimmnet.h>

#include "../base/compiler.h"
#include "../base/order.h"

/* Peers may write to the list meanwhile: each offset is read once for the check, once for its use.
 */
hot_inline uint32_t offset_at(const void *list, size_t index)
{
    return order_read_half((const char *)list + index * sizeof(uint32_t));
}

/* ---- does it fit? ---------------------------------------------------------------------------- */

static bool strided_fits(const struct native_words *words, uint32_t elements)
{
    int64_t first = words->first_word;
    int64_t last = first + (int64_t)words->step_words * (int64_t)(elements - 1);
    int64_t least = first < last ? first : last;
    int64_t most = first < last ? last : first;
    return least >= 0 && (uint64_t)most + words->element_words <= words->limit_words;
}

static bool list_fits(const struct native_words *words, uint32_t elements)
{
    uint32_t most = 0;
    for (size_t i = 0; i < elements; i++) {
        uint32_t offset = offset_at(words->list, i);
        most = offset > most ? offset : most;
    }
    return (uint64_t)words->first_word + most + words->element_words <= words->limit_words;
}

bool native_words_fit(const struct native_words *words, uint32_t len_words)
{
    switch (words->access) {
    case VELO_DIMMNET_ACCESS_STRIDED:
        return strided_fits(words, len_words / words->element_words);
    case VELO_DIMMNET_ACCESS_LIST:
        return list_fits(words, len_words / words->element_words);
    default:
        return (uint64_t)words->first_word + len_words <= words->limit_words;
    }
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* A word alone is stored in one piece: a peer may poll it. */
hot_inline void copy_words(uint64_t *to, const uint64_t *from, size_t len_words)
{
    if (len_words == 1)
        order_store_piece(to, *from, sizeof *to);
    else
        memmove(to, from, len_words * sizeof *to);
}

/* Where an element begins; NULL: its offset has changed and leads out of the memory. */
hot_inline uint64_t *element_at(const struct native_words *words, size_t index)
{
    if (words->access == VELO_DIMMNET_ACCESS_STRIDED)
        return words->memory + words->first_word + (int64_t)words->step_words * (int64_t)index;
    uint64_t at = (uint64_t)words->first_word + offset_at(words->list, index);
    return likely(at + words->element_words <= words->limit_words) ? words->memory + at : NULL;
}

/* The hot paths: elements of one word from, or to, words in a row. */
static void gather_words(uint64_t *to, const struct native_words *from, uint32_t len_words)
{
    if (from->access == VELO_DIMMNET_ACCESS_STRIDED) {
        const uint64_t *at = from->memory + from->first_word;
        for (uint32_t i = 0; i < len_words; i++, at += from->step_words)
            to[i] = *at;
        return;
    }
    const uint64_t *base = from->memory + from->first_word;
    uint64_t room = from->limit_words - from->first_word;
    for (uint32_t i = 0; i < len_words; i++) {
        uint32_t offset = offset_at(from->list, i);
        if (likely(offset < room))
            to[i] = base[offset];
    }
}

static void scatter_words(const struct native_words *to, const uint64_t *from, uint32_t len_words)
{
    if (to->access == VELO_DIMMNET_ACCESS_STRIDED) {
        uint64_t *at = to->memory + to->first_word;
        for (uint32_t i = 0; i < len_words; i++, at += to->step_words)
            *at = from[i];
        return;
    }
    uint64_t *base = to->memory + to->first_word;
    uint64_t room = to->limit_words - to->first_word;
    for (uint32_t i = 0; i < len_words; i++) {
        uint32_t offset = offset_at(to->list, i);
        if (likely(offset < room))
            base[offset] = from[i];
    }
}

/* Where the walk over elements is. */
struct walk {
    const struct native_words *words;
    size_t element;
    uint32_t inside; /* Words of it that are done. */
};

/* The next words in a row; NULL: they are to be left out. */
static uint64_t *next_run(const struct walk *walk, uint32_t left_words, uint32_t *run_words)
{
    const struct native_words *words = walk->words;
    if (words->access == VELO_DIMMNET_ACCESS_CONTIGUOUS) {
        *run_words = left_words;
        return words->memory + words->first_word + walk->inside;
    }
    uint32_t rest = words->element_words - walk->inside;
    uint64_t *element = element_at(words, walk->element);
    *run_words = rest < left_words ? rest : left_words;
    return element ? element + walk->inside : NULL;
}

static void advance_walk(struct walk *walk, uint32_t words)
{
    walk->inside += words;
    if (walk->words->access != VELO_DIMMNET_ACCESS_CONTIGUOUS &&
        walk->inside == walk->words->element_words) {
        walk->element++;
        walk->inside = 0;
    }
}

static void copy_runs(const struct native_words *to, const struct native_words *from,
                      uint32_t len_words)
{
    struct walk target = {.words = to};
    struct walk source = {.words = from};
    while (len_words > 0) {
        uint32_t to_words;
        uint32_t from_words;
        uint64_t *into = next_run(&target, len_words, &to_words);
        const uint64_t *out = next_run(&source, len_words, &from_words);
        uint32_t words = to_words < from_words ? to_words : from_words;
        if (likely(into && out))
            copy_words(into, out, words);
        advance_walk(&target, words);
        advance_walk(&source, words);
        len_words -= words;
    }
}

void native_copy(const struct native_words *to, const struct native_words *from, uint32_t len_words)
{
    bool is_row_to = to->access == VELO_DIMMNET_ACCESS_CONTIGUOUS;
    bool is_row_from = from->access == VELO_DIMMNET_ACCESS_CONTIGUOUS;
    if (is_row_to && is_row_from)
        copy_words(to->memory + to->first_word, from->memory + from->first_word, len_words);
    else if (is_row_to && from->element_words == 1)
        gather_words(to->memory + to->first_word, from, len_words);
    else if (is_row_from && to->element_words == 1)
        scatter_words(to, from->memory + from->first_word, len_words);
    else
        copy_runs(to, from, len_words);
}
