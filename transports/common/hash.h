/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file hash.h
 * @brief A text as a number, where there is no room for the text.
 */
#ifndef VELO_TRANSPORT_HASH_H
#define VELO_TRANSPORT_HASH_H

#include <stdint.h>

/** FNV-1a, 64 bits. */
static inline uint64_t hash_text(const char *text)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001B3);
    return hash;
}

#endif
