/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file fork.h
 * @brief Whose an object is: a child of fork() has copies of its parent's.
 *
 * A port's locks and memory are the parent's. Were the child to close it, all peers would take the
 * parent's port for closed. So each object keeps the mark of the process that made it. Calls that
 * close do nothing in another process, and the cold ones that use an object refuse.
 *
 * The library, the transports and the adapters may include this header.
 */
#ifndef VELO_BASE_FORK_H
#define VELO_BASE_FORK_H

#include <stdbool.h>
#include <stdint.h>

#include "compiler.h"

/** The mark of this process, never 0. Its ancestors have others. */
VELO_PRIVATE uint64_t fork_mark(void);
/** Is an object with this mark of this process? A load and a comparison. */
VELO_PRIVATE bool fork_is_ours(uint64_t mark);
/** VELO_ERR_STATE, with a sentence about an object that is the parent's. */
VELO_PRIVATE int fork_refuse(const char *object);

#endif
