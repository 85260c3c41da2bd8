/* SPDX-License-Identifier: Apache-2.0 */
/** @file native_copy.h @brief Words in their order. */
#ifndef VELO_DIMMNET_NATIVE_COPY_H
#define VELO_DIMMNET_NATIVE_COPY_H

#include <stdbool.h>
#include <stdint.h>

/** Words of one memory, in the order of an access. */
struct native_words {
    uint64_t *memory;
    uint64_t limit_words; /* Of the memory. */
    uint32_t first_word;
    uint32_t access; /* VELO_DIMMNET_ACCESS_x. */
    uint32_t element_words;
    int32_t step_words;
    const void *list; /* Offsets of 32 bits. */
};

/** Are all of them inside the memory? */
bool native_words_fit(const struct native_words *words, uint32_t len_words);
/** Copy; both fit. An offset that changes meanwhile is left out. */
void native_copy(const struct native_words *to, const struct native_words *from,
                 uint32_t len_words);

#endif
