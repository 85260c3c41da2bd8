/* SPDX-License-Identifier: Apache-2.0 */
/* Every documented error, provoked once; those of a peer's death and departure are elsewhere. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "pair.h"

static int open_with(struct velo_bcast_attr attr)
{
    struct velo_bcast *ring;
    int status = velo_bcast_open(&attr, &ring);

    if (status == VELO_OK)
        CHECK_OK(velo_bcast_close(ring));
    return status;
}

TEST(attributes_outside_their_range_are_refused)
{
    const struct velo_bcast_attr plain = VELO_BCAST_ATTR_INIT;
    struct velo_bcast_attr attr;

    CHECK_OK(open_with(plain));
#define REFUSED(member, value, about)                                                              \
    do {                                                                                           \
        attr = plain;                                                                              \
        attr.member = (value);                                                                     \
        CHECK_FAILS(open_with(attr), VELO_ERR_ARG, about);                                         \
    } while (0)
    REFUSED(size_bytes, 3, "size_bytes");
    REFUSED(domain, "no/name", "domain");
    REFUSED(node, 256, "256");
    REFUSED(vpid, -1, "-1");
    REFUSED(depth_slots, 4, "depth_slots");
    REFUSED(depth_slots, 100, "depth_slots");
    REFUSED(depth_slots, 32768, "depth_slots");
    REFUSED(msg_bytes_max, VELO_BCAST_MSG_BYTES_MAX + 1, "msg_bytes_max");
    REFUSED(data_bytes, 4096, "data_bytes");
    REFUSED(data_bytes, 10000, "data_bytes");
    REFUSED(readers_max, 65, "readers_max");
    REFUSED(group, "no-such-group", "group");
    REFUSED(flags, 2, "flags");
    CHECK_FAILS(velo_bcast_open(&plain, NULL), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_bcast_join(NULL, NULL, 0), VELO_ERR_ARG, "NULL");
    struct velo_bcast_reader *reader;
    CHECK_FAILS(velo_bcast_join(NULL, &reader, -2), VELO_ERR_ARG, "timeout_ns");
    attr = plain;
    attr.vpid = 300;
    CHECK_FAILS(velo_bcast_join(&attr, &reader, 0), VELO_ERR_ARG, "300");
}

TEST(arguments_that_make_no_sense_are_refused)
{
    struct velo_bcast *ring = ring_open(0, 100, 0, 0);
    struct velo_bcast_reader *reader = ring_join();
    struct velo_msg msg;
    void *place;

    CHECK_OK(velo_bcast_close(NULL));
    CHECK_OK(velo_bcast_leave(NULL));
    CHECK_STATUS(velo_bcast_readers(NULL), VELO_ERR_ARG);
    CHECK_STATUS(velo_bcast_status(NULL), VELO_ERR_ARG);
    CHECK_STATUS(velo_bcast_try_send(NULL, "", 0, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_bcast_try_send(ring, NULL, 1, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_bcast_try_send(ring, "", 101, 0), VELO_ERR_TOO_BIG);
    CHECK_STATUS(velo_bcast_send(NULL, "", 0, 0, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_bcast_send(ring, NULL, 1, 0, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_bcast_send(ring, "", 1, 0, -2), VELO_ERR_ARG);
    CHECK_STATUS(velo_bcast_send(ring, "", 101, 0, 0), VELO_ERR_TOO_BIG);
    CHECK_STATUS(velo_bcast_try_reserve(NULL, 1, &place), VELO_ERR_ARG);
    CHECK_STATUS(velo_bcast_try_reserve(ring, 1, NULL), VELO_ERR_ARG);
    CHECK_STATUS(velo_bcast_try_reserve(ring, 101, &place), VELO_ERR_TOO_BIG);
    CHECK_STATUS(velo_bcast_reserve(NULL, 1, &place, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_bcast_reserve(ring, 1, NULL, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_bcast_reserve(ring, 1, &place, -2), VELO_ERR_ARG);
    CHECK_STATUS(velo_bcast_reserve(ring, 101, &place, 0), VELO_ERR_TOO_BIG);
    CHECK_STATUS(velo_bcast_commit(NULL, 0, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_bcast_try_recv(NULL, NULL, 0, &msg), VELO_ERR_ARG);
    CHECK_STATUS(velo_bcast_try_recv(reader, NULL, 1, &msg), VELO_ERR_ARG);
    CHECK_STATUS(velo_bcast_recv(NULL, NULL, 0, &msg, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_bcast_recv(reader, NULL, 1, &msg, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_bcast_recv(reader, NULL, 0, &msg, -2), VELO_ERR_ARG);
    CHECK_STATUS(velo_bcast_try_peek(NULL, &msg), VELO_ERR_ARG);
    CHECK_STATUS(velo_bcast_try_peek(reader, NULL), VELO_ERR_ARG);
    CHECK_STATUS(velo_bcast_peek(NULL, &msg, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_bcast_peek(reader, NULL, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_bcast_peek(reader, &msg, -2), VELO_ERR_ARG);
    CHECK_STATUS(velo_bcast_release(NULL), VELO_ERR_ARG);
    CHECK_OK(velo_bcast_leave(reader));
    CHECK_OK(velo_bcast_close(ring));
}

TEST(calls_that_do_not_fit_what_was_called_before_are_refused)
{
    struct velo_bcast *ring = ring_open(0, 100, 0, 0);
    struct velo_bcast_reader *reader = ring_join();
    struct velo_msg msg;
    void *place;

    CHECK_STATUS(velo_bcast_commit(ring, 0, 0), VELO_ERR_STATE);
    CHECK_STATUS(velo_bcast_release(reader), VELO_ERR_STATE);
    CHECK_OK(velo_bcast_reserve(ring, 10, &place, 0));
    CHECK_STATUS(velo_bcast_try_send(ring, "", 0, 0), VELO_ERR_STATE);
    CHECK_STATUS(velo_bcast_send(ring, "", 0, 0, 0), VELO_ERR_STATE);
    CHECK_STATUS(velo_bcast_try_reserve(ring, 1, &place), VELO_ERR_STATE);
    CHECK_STATUS(velo_bcast_reserve(ring, 1, &place, 0), VELO_ERR_STATE);
    CHECK_STATUS(velo_bcast_commit(ring, 11, 0), VELO_ERR_TOO_BIG);
    CHECK_OK(velo_bcast_commit(ring, 10, 0));
    CHECK_OK(velo_bcast_peek(reader, &msg, 0));
    CHECK_STATUS(velo_bcast_try_peek(reader, &msg), VELO_ERR_STATE);
    CHECK_STATUS(velo_bcast_peek(reader, &msg, 0), VELO_ERR_STATE);
    CHECK_STATUS(velo_bcast_try_recv(reader, NULL, 0, NULL), VELO_ERR_STATE);
    CHECK_STATUS(velo_bcast_recv(reader, NULL, 0, NULL, 0), VELO_ERR_STATE);
    CHECK_OK(velo_bcast_release(reader));
    CHECK_OK(velo_bcast_leave(reader));
    CHECK_OK(velo_bcast_close(ring));
    ring = ring_open(0, 100, 0, VELO_BCAST_DROP);
    reader = ring_join();
    CHECK_STATUS(velo_bcast_try_peek(reader, &msg), VELO_ERR_STATE);
    CHECK_STATUS(velo_bcast_peek(reader, &msg, 0), VELO_ERR_STATE);
    CHECK_OK(velo_bcast_leave(reader));
    CHECK_OK(velo_bcast_close(ring));
}

TEST(a_ring_has_one_writer)
{
    struct velo_bcast *ring = ring_open(0, 0, 0, 0);

    CHECK_FAILS(open_with((struct velo_bcast_attr)VELO_BCAST_ATTR_INIT), VELO_ERR_IN_USE, "vpid");
    CHECK_OK(velo_bcast_close(ring));
}

TEST(a_directory_that_is_not_there_is_named)
{
    char before[4096];
    (void)snprintf(before, sizeof before, "%s", test_shm_dir());
    CHECK_EQ(setenv("VELO_SHM_DIR", "/nowhere", 1), 0);
    CHECK_FAILS(open_with((struct velo_bcast_attr)VELO_BCAST_ATTR_INIT), VELO_ERR_ACCESS,
                "/nowhere");
    CHECK_EQ(setenv("VELO_SHM_DIR", before, 1), 0);
}

TEST(memory_that_the_process_may_not_have_is_an_error)
{
    struct velo_bcast_attr attr = VELO_BCAST_ATTR_INIT;
    struct rlimit before, small;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    test_skip("a sanitizer needs address space of its own");
#endif
    attr.data_bytes = 16u << 20;
    CHECK_EQ(getrlimit(RLIMIT_AS, &before), 0);
    small = before;
    small.rlim_cur = 8u << 20; /* Less than is mapped already: no more of it. */
    CHECK_EQ(setrlimit(RLIMIT_AS, &small), 0);
    int status = open_with(attr);
    CHECK_EQ(setrlimit(RLIMIT_AS, &before), 0);
    CHECK_STATUS(status, VELO_ERR_NO_MEMORY);
    CHECK_OK(open_with(attr));
}
