/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file copy.h
 * @brief Copies between a user's buffer and lines that two cores share.
 *
 * memcpy() is made for memory that one core uses. Here every line written must be taken from the
 * other core and every line read must be fetched from it, and hardware prefetch that runs past the
 * end of a message steals lines that the other side is about to use. So a sender writes its lines
 * strictly upwards (prefetch then asks early for the lines of its next message), and a receiver
 * reads them downwards (prefetch then runs into messages it is done with). docs/PERFORMANCE.md has
 * figures.
 */
#ifndef VELO_NATIVE_COPY_H
#define VELO_NATIVE_COPY_H

#include <stddef.h>

/** Copy into a ring; `to` is aligned to a line. */
void copy_to_ring(void *to, const void *from, size_t len_bytes);
/** Copy out of a ring; `from` is aligned to a line. */
void copy_from_ring(void *to, const void *from, size_t len_bytes);

#endif
