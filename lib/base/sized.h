/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file sized.h
 * @brief Public structs that may grow: the caller says the length of the struct that it knows.
 */
#ifndef VELO_BASE_SIZED_H
#define VELO_BASE_SIZED_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "error.h"

/** Fill in a caller's struct. Members that only the caller knows become 0. */
static inline void sized_give(void *theirs, size_t theirs_bytes, const void *ours,
                              size_t ours_bytes)
{
    size_t common_bytes = theirs_bytes < ours_bytes ? theirs_bytes : ours_bytes;
    memcpy(theirs, ours, common_bytes);
    memset((char *)theirs + common_bytes, 0, theirs_bytes - common_bytes);
}

/** No public struct will ever be longer: a larger size makes no sense. */
#define SIZED_BYTES_MAX 4096u

/** Read a caller's struct that begins with its own size. Members that the caller does not know
 *  become 0. False: the size makes no sense, or the caller asks for something that this library
 *  does not know. */
static inline bool sized_take(void *ours, size_t ours_bytes, const void *theirs)
{
    size_t theirs_bytes;
    memcpy(&theirs_bytes, theirs, sizeof theirs_bytes);
    if (theirs_bytes < sizeof theirs_bytes || theirs_bytes > SIZED_BYTES_MAX)
        return false;
    size_t common_bytes = theirs_bytes < ours_bytes ? theirs_bytes : ours_bytes;
    memset(ours, 0, ours_bytes);
    memcpy(ours, theirs, common_bytes);
    for (size_t i = common_bytes; i < theirs_bytes; i++)
        if (((const unsigned char *)theirs)[i] != 0)
            return false;
    return true;
}

/** Read a caller's attributes, or the defaults where `attr` is NULL. `init` names the macro to
 * start from. VELO_ERR_ARG. */
static inline int sized_attr(void *ours, size_t ours_bytes, const void *attr, const void *defaults,
                             const char *init)
{
    size_t size_bytes;
    const void *theirs = attr ? attr : defaults;
    if (sized_take(ours, ours_bytes, theirs))
        return VELO_OK;
    memcpy(&size_bytes, theirs, sizeof size_bytes);
    return velo_fail(VELO_ERR_ARG,
                     "size_bytes is %zu, or attr asks for what this library does not know; start "
                     "from %s",
                     size_bytes, init);
}

#endif
