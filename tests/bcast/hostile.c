/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that write nonsense into the shared memory. The test reaches into the structs of both. */
#include "bcast/bcast.h"
#include "pair.h"

TEST(a_slot_that_makes_no_sense_is_refused)
{
    struct velo_bcast *ring = ring_open(8, 1000, 2048, 0);
    struct velo_bcast_reader *reader = ring_join();
    struct bcast_slot *slot = bcast_slot(&ring->map, ring->next);
    char buf[1000];
    struct velo_msg msg;

    CHECK_OK(velo_bcast_try_send(ring, buf, sizeof buf, 0));
    const uint64_t about = slot->about, position = slot->position;
#define REFUSED()                                                                                  \
    do {                                                                                           \
        CHECK_STATUS(velo_bcast_try_recv(reader, buf, sizeof buf, &msg), VELO_ERR_CORRUPT);        \
        CHECK_STATUS(velo_bcast_try_peek(reader, &msg), VELO_ERR_CORRUPT);                         \
    } while (0)
    slot->about = BCAST_ABOUT_LONG | 1001; /* Longer than any. */
    REFUSED();
    slot->about = 49; /* Longer than a slot. */
    REFUSED();
    slot->about = about;
    slot->position = 2048 - 64; /* Past the end. */
    REFUSED();
    slot->position = 8; /* No place that a writer uses. */
    REFUSED();
    slot->position = position;
    slot->header += 8; /* As if it had been overwritten. */
    REFUSED();
    slot->header -= 8;
    CHECK_OK(velo_bcast_try_recv(reader, buf, sizeof buf, &msg));
    ring->map.control->tail += 1; /* A message that is not there. */
    REFUSED();
    CHECK_OK(velo_bcast_leave(reader));
    CHECK_OK(velo_bcast_close(ring));
}

TEST(a_count_of_messages_never_sent_ends_a_reader_and_no_other)
{
    struct velo_bcast *ring = ring_open(8, 0, 0, 0);
    struct velo_bcast_reader *bad = ring_join(), *good = ring_join();

    for (uint64_t n = 0; n < 8; n++)
        numbered_send(ring, n, 60);
    for (uint64_t n = 0; n < 8; n++)
        numbered_expect(good, n, 60);
    bad->place->consumed = UINT64_MAX;
    numbered_send(ring, 8, 60);
    numbered_expect(good, 8, 60);
    CHECK_EQ(velo_bcast_readers(ring), 1);
    bad->next = ring->next;
    CHECK_STATUS(velo_bcast_try_recv(bad, NULL, 0, NULL), VELO_ERR_CORRUPT);
    CHECK_OK(velo_bcast_leave(bad));
    CHECK_OK(velo_bcast_leave(good));
    CHECK_OK(velo_bcast_close(ring));
}

TEST(a_segment_whose_sizes_do_not_fit_is_not_joined)
{
    struct velo_bcast *ring = ring_open(8, 1000, 2048, 0);
    struct bcast_control *control = ring->map.control;
    struct velo_bcast_reader *reader;

#define NOT_JOINED(member, value, status)                                                          \
    do {                                                                                           \
        uint64_t before = control->member;                                                         \
        control->member = (value);                                                                 \
        CHECK_STATUS(velo_bcast_join(NULL, &reader, 0), status);                                   \
        control->member = (typeof(control->member))before;                                         \
    } while (0)
    NOT_JOINED(magic, 0, VELO_ERR_NO_PEER);
    NOT_JOINED(depth_slots, 7, VELO_ERR_CORRUPT);
    NOT_JOINED(depth_slots, 16384, VELO_ERR_CORRUPT);
    NOT_JOINED(msg_bytes_max, 0, VELO_ERR_CORRUPT);
    NOT_JOINED(data_bytes, 3000, VELO_ERR_CORRUPT);
    NOT_JOINED(data_bytes, 1u << 30, VELO_ERR_CORRUPT);
    CHECK_OK(velo_bcast_join(NULL, &reader, 0));
    CHECK_OK(velo_bcast_leave(reader));
    CHECK_OK(velo_bcast_close(ring));
}
