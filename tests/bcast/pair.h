/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of bcast.h: rings, readers, and messages that tell what they are. */
#ifndef VELO_TEST_BCAST_PAIR_H
#define VELO_TEST_BCAST_PAIR_H

#include <velo/bcast.h>

#include "test.h"

/* Open a ring; zeros ask for the defaults. */
struct velo_bcast *ring_open(uint32_t depth_slots, uint32_t msg_bytes_max, uint32_t data_bytes,
                             uint32_t flags);
struct velo_bcast_reader *ring_join(void);

/* Message n of a test: its length and contents follow from n. At least 8 bytes, its number first.
 */
size_t numbered_len(uint64_t number, size_t len_max);
void numbered_build(void *buf, uint64_t number, size_t len_max);
/* Check that a message is one of these, and return its number. */
uint64_t numbered_check(const struct velo_msg *msg, size_t len_max);
/* Send, and take, message `number`. */
void numbered_send(struct velo_bcast *ring, uint64_t number, size_t len_max);
void numbered_expect(struct velo_bcast_reader *reader, uint64_t number, size_t len_max);

#endif
