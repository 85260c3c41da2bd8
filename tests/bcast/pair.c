/* SPDX-License-Identifier: Apache-2.0 */
#include "pair.h"

#include <stdlib.h>
#include <string.h>

struct velo_bcast *ring_open(uint32_t depth_slots, uint32_t msg_bytes_max, uint32_t data_bytes,
                             uint32_t flags)
{
    struct velo_bcast_attr attr = VELO_BCAST_ATTR_INIT;
    struct velo_bcast *ring;

    attr.depth_slots = depth_slots;
    attr.msg_bytes_max = msg_bytes_max;
    attr.data_bytes = data_bytes;
    attr.flags = flags;
    CHECK_OK(velo_bcast_open(&attr, &ring));
    return ring;
}

struct velo_bcast_reader *ring_join(void)
{
    struct velo_bcast_reader *reader;

    CHECK_OK(velo_bcast_join(NULL, &reader, TEST_PATIENCE_NS));
    return reader;
}

size_t numbered_len(uint64_t number, size_t len_max)
{
    uint64_t bits = test_mix(number ^ 0x77);
    size_t most = bits % 3 == 0 ? len_max : len_max < 60 ? len_max : 60;

    return 8 + (size_t)((bits >> 8) % (most - 7));
}

void numbered_build(void *buf, uint64_t number, size_t len_max)
{
    memcpy(buf, &number, 8);
    pattern_fill((char *)buf + 8, numbered_len(number, len_max) - 8, number);
}

uint64_t numbered_check(const struct velo_msg *msg, size_t len_max)
{
    uint64_t number;

    CHECK(msg->len_bytes >= 8);
    memcpy(&number, msg->data, 8);
    CHECK_EQ(msg->len_bytes, numbered_len(number, len_max));
    CHECK_EQ(msg->tag, pattern_tag(number));
    CHECK_EQ(msg->source, VELO_ID(0, 0));
    CHECK(pattern_matches((const char *)msg->data + 8, msg->len_bytes - 8, number));
    return number;
}

void numbered_send(struct velo_bcast *ring, uint64_t number, size_t len_max)
{
    size_t len = numbered_len(number, len_max);
    void *place = NULL;

    if (number % 2) { /* Every other time in place; now and then more is reserved than used. */
        CHECK_OK(
            velo_bcast_reserve(ring, number % 4 == 1 ? len : len_max, &place, TEST_PATIENCE_NS));
        numbered_build(place, number, len_max);
        CHECK_OK(velo_bcast_commit(ring, len, pattern_tag(number)));
    } else {
        place = malloc(len);
        CHECK(place);
        numbered_build(place, number, len_max);
        CHECK_OK(velo_bcast_send(ring, place, len, pattern_tag(number), TEST_PATIENCE_NS));
        free(place);
    }
}

void numbered_expect(struct velo_bcast_reader *reader, uint64_t number, size_t len_max)
{
    struct velo_msg msg;
    void *buf = malloc(len_max);

    CHECK(buf);
    CHECK_OK(velo_bcast_recv(reader, buf, len_max, &msg, TEST_PATIENCE_NS));
    CHECK(msg.data == buf);
    CHECK_EQ(numbered_check(&msg, len_max), number);
    free(buf);
}
