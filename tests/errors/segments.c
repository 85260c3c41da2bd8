/* SPDX-License-Identifier: Apache-2.0 */
/* Segments that no correct peer made: another version's, cut short, scribbled over. */
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shm/segment.h"
#include "test.h"

enum { DEPTH = 8, DATA_BYTES = 16384, CONNS = 4 };

static char path[4096];

/* The owner of the segment is another process: were it this one, closing a descriptor of the file
 * would drop the locks that say it is alive. */
static void own_port_5(void *arg)
{
    atomic_int *ready = arg;

    port_open_sized(5, DEPTH, DATA_BYTES, CONNS);
    atomic_store(ready, 1);
    for (;;)
        pause();
}

static pid_t owner_start(void)
{
    atomic_int *ready = test_shared_alloc(sizeof(*ready));
    pid_t pid = child_start(own_port_5, ready);

    while (atomic_load(ready) == 0)
        test_sleep_ns(100 * TEST_US);
    snprintf(path, sizeof(path), "%s/velo.%s.0.5", test_shm_dir(), test_domain());
    return pid;
}

static void owner_stop(pid_t pid)
{
    child_kill(pid);
    CHECK_OK(velo_port_close(port_open(5)));
}

/* Map the owner's segment behind the library's back. The mapping is left to the end of the test. */
static char *map_segment(void)
{
    int fd = open(path, O_RDWR);
    struct stat st;

    CHECK(fd >= 0);
    CHECK_EQ(fstat(fd, &st), 0);
    char *base = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(base != MAP_FAILED);
    close(fd);
    return base;
}

/* Of a port of this process, by another one, as each member of its group could. */
static void scribble_over_outgoing(void *arg)
{
    struct seg_header *header = (struct seg_header *)map_segment();
    struct stat st;

    CHECK_EQ(stat(path, &st), 0);
    char *end = (char *)header + st.st_size;
    struct seg_outgoing *lines = (struct seg_outgoing *)(end - SEG_OUTGOING_BYTES);
    for (uint32_t i = 0; i < SEG_OUTGOING_MAX; i++)
        lines[i].entry = ENTRY_READY;
    header->outgoing_len = *(const uint64_t *)arg;
}

TEST(what_others_write_about_a_ports_own_connections_does_not_matter)
{
    setenv("VELO_NETWORK", "loop,own=loop", 1);
    struct velo_port *port = port_open(5), *peer = port_open(6);
    uint64_t lens[] = {SEG_OUTGOING_MAX, UINT64_C(1) << 40};
    struct velo_conn *conns[3];

    snprintf(path, sizeof(path), "%s/velo.%s.0.5", test_shm_dir(), test_domain());
    conns[0] = port_connect(port, VELO_ID(0, 6));
    for (uint64_t i = 1; i < ARRAY_LEN(conns); i++) {
        child_join(child_start(scribble_over_outgoing, &lens[i - 1]));
        conns[i] = port_connect(port, VELO_ID(0, 6));
    }
    CHECK_OK(velo_disconnect(conns[0]));
    conns[0] = port_connect(port, VELO_ID(0, 6));
    for (uint64_t i = 0; i < ARRAY_LEN(conns); i++) {
        message_send(conns[i], 40, i);
        message_expect(peer, 40, i, VELO_ID(0, 5));
    }
    CHECK_OK(velo_port_close(port));
    CHECK_OK(velo_port_close(peer));
    unsetenv("VELO_NETWORK");
}

TEST(a_peer_of_another_version_is_reported)
{
    pid_t owner = owner_start();
    struct seg_header *header = (struct seg_header *)map_segment();
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = NULL;

    header->abi += 1;
    CHECK_FAILS(velo_connect(port, VELO_ID(0, 5), &conn, 0), VELO_ERR_VERSION, "abi");
    header->abi -= 1;
    header->spec_hash ^= 1;
    CHECK_FAILS(velo_connect(port, VELO_ID(0, 5), &conn, 0), VELO_ERR_VERSION, "release");
    header->spec_hash ^= 1;
    CHECK_OK(velo_connect(port, VELO_ID(0, 5), &conn, 0));
    CHECK_OK(velo_port_close(port));
    owner_stop(owner);
}

TEST(a_peer_that_closes_meanwhile_is_reported)
{
    pid_t owner = owner_start();
    struct seg_header *header = (struct seg_header *)map_segment();
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = NULL;

    header->state = SEG_CLOSED; /* Its last act before it takes the name away. */
    CHECK_FAILS(velo_connect(port, VELO_ID(0, 5), &conn, 0), VELO_ERR_PEER_CLOSED, "5");
    CHECK_OK(velo_port_close(port));
    owner_stop(owner);
}

TEST(sizes_that_make_no_sense_are_reported)
{
    static const struct {
        size_t offset;
        uint32_t value;
    } cases[] = {
        {offsetof(struct seg_header, magic), 0},
        {offsetof(struct seg_header, depth_slots), 0},
        {offsetof(struct seg_header, depth_slots), 7},
        {offsetof(struct seg_header, depth_slots), 16},
        {offsetof(struct seg_header, depth_slots), 1u << 31},
        {offsetof(struct seg_header, depth_slots), UINT32_MAX},
        {offsetof(struct seg_header, data_bytes), 0},
        {offsetof(struct seg_header, data_bytes), 65536},
        {offsetof(struct seg_header, data_bytes), UINT32_MAX},
        {offsetof(struct seg_header, conns_max), 0},
        {offsetof(struct seg_header, conns_max), CONNS + 1},
        {offsetof(struct seg_header, conns_max), 4096},
        {offsetof(struct seg_header, conns_max), UINT32_MAX},
        {offsetof(struct seg_header, ring_bytes), 0},
        {offsetof(struct seg_header, ring_bytes), UINT32_MAX},
    };
    pid_t owner = owner_start();
    char *base = map_segment();
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_conn *conn = NULL;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint32_t *word = (uint32_t *)(base + cases[i].offset), good = *word;

        *word = cases[i].value;
        CHECK_FAILS(velo_connect(port, VELO_ID(0, 5), &conn, 0), VELO_ERR_CORRUPT, path);
        *word = good;
    }
    CHECK_OK(velo_connect(port, VELO_ID(0, 5), &conn, 0));
    CHECK_OK(velo_port_close(port));
    owner_stop(owner);
}

/* For any header connect gives one of its documented results. */
TEST(a_header_of_random_bits_never_crashes_connect)
{
    pid_t owner = owner_start();
    char *base = map_segment();
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct rng rng = {test_seed()};
    unsigned char good[SEG_HEADER_BYTES];
    unsigned refused = 0;

    memcpy(good, base, sizeof(good));
    for (int i = 0; i < 3000; i++) {
        struct velo_conn *conn = NULL;
        int status;

        for (uint32_t n = 1 + rng_below(&rng, 4); n > 0; n--)
            ((unsigned char *)base)[rng_below(&rng, 192)] ^=
                (unsigned char)(1u << rng_below(&rng, 8));
        status = velo_connect(port, VELO_ID(0, 5), &conn, 0);
        memcpy(base, good, sizeof(good));
        if (status == VELO_OK) {
            CHECK_OK(velo_disconnect(conn));
            memset(base + SEG_HEADER_BYTES, 0, CONNS * sizeof(uint64_t)); /* Free the entry. */
            continue;
        }
        refused++;
        CHECK(status == VELO_ERR_CORRUPT || status == VELO_ERR_VERSION ||
              status == VELO_ERR_PEER_CLOSED || status == VELO_ERR_PEER_DEAD ||
              status == VELO_ERR_ACCESS); /* By another file its owner cannot be watched. */
        CHECK(velo_last_error()[0] != '\0');
    }
    CHECK(refused > 1000);
    CHECK_OK(velo_port_close(port));
    owner_stop(owner);
}

/* Place a file of so many bytes, cut from `content`, where port 5 would be. */
static void place_file(const char *content, size_t len_bytes)
{
    snprintf(path, sizeof(path), "%s/velo.%s.0.5", test_shm_dir(), test_domain());
    unlink(path);
    int fd = open(path, O_CREAT | O_EXCL | O_RDWR, 0600);
    CHECK(fd >= 0);
    CHECK_EQ(write(fd, content, len_bytes), len_bytes);
    close(fd);
}

TEST(a_segment_cut_short_or_of_garbage_is_reported_and_can_be_replaced)
{
    static const size_t lens[] = {0, 1, 7, 8, 63, 64, 100, 575, 1000, 4095, 4096, 5000, 12288};
    struct velo_port *port = port_open(VELO_VPID_ANY);
    static char content[SEG_HEADER_BYTES * 4];
    struct velo_conn *conn = NULL;
    pid_t owner = owner_start();

    memcpy(content, map_segment(), sizeof(content));
    owner_stop(owner);
    for (int garbage = 0; garbage < 2; garbage++) {
        if (garbage)
            pattern_fill(content, sizeof(content), test_seed());
        for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
            place_file(content, lens[i]);
            CHECK_FAILS(velo_connect(port, VELO_ID(0, 5), &conn, 0), VELO_ERR_CORRUPT, path);
            CHECK_OK(velo_port_close(port_open(5))); /* No live process has it: it is stale. */
        }
    }
    CHECK_OK(velo_port_close(port));
}

TEST(what_is_no_plain_file_is_refused)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);

    snprintf(path, sizeof(path), "%s/velo.%s.0.5", test_shm_dir(), test_domain());
    for (int kind = 0; kind < 3; kind++) {
        struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
        struct velo_conn *conn = NULL;
        struct velo_port *second = NULL;

        if (kind == 0)
            CHECK_EQ(mkdir(path, 0700), 0);
        if (kind == 1)
            CHECK_EQ(mkfifo(path, 0600), 0);
        if (kind == 2)
            CHECK_EQ(symlink("/dev/zero", path), 0);
        attr.vpid = 5;
        CHECK_FAILS(velo_connect(port, VELO_ID(0, 5), &conn, 0), VELO_ERR_ACCESS, path);
        CHECK_FAILS(velo_port_open(&attr, &second), VELO_ERR_ACCESS, path);
        CHECK_EQ(remove(path), 0);
    }
    CHECK_OK(velo_port_close(port));
}

static char *ring_of(char *base, uint32_t index)
{
    struct seg_shape shape;

    CHECK_OK(seg_shape_init(&shape, DEPTH, DATA_BYTES, CONNS));
    return base + SEG_HEADER_BYTES + shape.table_bytes + index * shape.ring_bytes;
}

static uint32_t fill(struct velo_conn *conn, size_t len_bytes)
{
    static const char buf[4096];
    uint32_t sent = 0;
    int status;

    while ((status = velo_try_send(conn, buf, len_bytes, 0)) == VELO_OK)
        sent++;
    CHECK_STATUS(status, VELO_AGAIN);
    return sent;
}

TEST(credits_that_make_no_sense_are_reported_to_the_sender)
{
    static const uint64_t credits[] = {4 * DEPTH + 1, 1000, UINT64_C(1) << 32, UINT64_C(1) << 63,
                                       UINT64_MAX};
    pid_t owner = owner_start();
    char *base = map_segment();
    struct velo_port *port = port_open(VELO_VPID_ANY);

    for (uint32_t i = 0; i < ARRAY_LEN(credits); i++) {
        struct velo_conn *conn = port_connect(port, VELO_ID(0, 5));
        struct seg_ring *ring = (struct seg_ring *)ring_of(base, 0);
        void *place;

        CHECK(fill(conn, 8) > 0);
        __atomic_store_n(&ring->consumed, credits[i], __ATOMIC_SEQ_CST);
        CHECK_STATUS(velo_try_send(conn, "x", 1, 0), VELO_ERR_CORRUPT);
        CHECK_STATUS(velo_send(conn, "x", 1, 0, VELO_FOREVER), VELO_ERR_CORRUPT);
        CHECK_STATUS(velo_try_reserve(conn, 1, &place), VELO_ERR_CORRUPT);
        CHECK_STATUS(velo_reserve(conn, 1, &place, VELO_FOREVER), VELO_ERR_CORRUPT);
        CHECK_OK(velo_disconnect(conn));
        memset(base + SEG_HEADER_BYTES, 0, CONNS * sizeof(uint64_t)); /* Start over. */
        memset(ring, 0, sizeof(*ring) + (size_t)DEPTH * VELO_LINE_BYTES);
    }
    CHECK_OK(velo_port_close(port));
    owner_stop(owner);
}

/* The bits of a header, and the cell of line 0 that it stands in; 0: it is the first of all lines
 * but that one. */
struct garbage {
    uint64_t bits;
    unsigned cell;
};

/* A sender that writes headers into its own ring that no correct sender writes, and waits to be
 * killed. */
static void scribble(void *arg)
{
    const struct garbage *garbage = arg;
    struct velo_port *port = port_open(0);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 5));
    char *base = map_segment();
    struct seg_header *header = (struct seg_header *)base;
    uint64_t *slots = (uint64_t *)(ring_of(base, 0) + sizeof(struct seg_ring));

    for (uint64_t line = 1; !garbage->cell && line < DEPTH; line++)
        slots[line * VELO_LINE_BYTES / 8] =
            VELO_HEADER_VALID_MASK | line << VELO_HEADER_SEQ_LSB | garbage->bits;
    for (unsigned i = 0; i < 1 || i < garbage->cell; i++)
        message_send(conn, 8, 1); /* Into cells of line 0. It makes the receiver look. */
    if (garbage->cell) {
        slots[garbage->cell * 2] = VELO_HEADER_VALID_MASK | garbage->bits;
        __atomic_fetch_or(&header->bells[0], 1, __ATOMIC_SEQ_CST);
        __atomic_fetch_or(&header->summary, 1, __ATOMIC_SEQ_CST);
    }
    for (;;)
        pause();
}

TEST(garbage_in_one_ring_is_counted_and_harms_no_other)
{
    static const struct garbage garbage[] = {
        {VELO_HEADER_RESERVED_MASK, 0},                        /* Reserved bits. */
        {UINT64_C(77) << VELO_HEADER_SOURCE_LSB, 0},           /* Another port's id. */
        {UINT64_C(57) << VELO_HEADER_LEN_LSB, 0},              /* Longer than a slot. */
        {VELO_HEADER_EXTERNAL_MASK | VELO_HEADER_LEN_MASK, 0}, /* Longer than the data region. */
        {VELO_HEADER_RESERVED_MASK, 1},
        {UINT64_C(77) << VELO_HEADER_SOURCE_LSB, 2},
        {UINT64_C(41) << VELO_HEADER_LEN_LSB, 1}, /* Longer than the rest of its line. */
        {UINT64_C(25) << VELO_HEADER_LEN_LSB, 2},
        {UINT64_C(9) << VELO_HEADER_LEN_LSB, 3},
        {VELO_HEADER_EXTERNAL_MASK, 3}, /* Its position and its word are in the next line. */
    };

    snprintf(path, sizeof(path), "%s/velo.%s.0.5", test_shm_dir(), test_domain());
    for (size_t i = 0; i < ARRAY_LEN(garbage); i++) {
        struct velo_port *receiver = port_open_sized(5, DEPTH, DATA_BYTES, CONNS);
        struct velo_port *sender = port_open(6);
        struct velo_port_counters counters = {0};
        struct velo_msg msg;
        pid_t vandal = child_start(scribble, (void *)&garbage[i]);

        for (unsigned n = 0; n < 1 || n < garbage[i].cell; n++)
            message_expect(receiver, 8, 1, VELO_ID(0, 0));
        struct velo_conn *conn = port_connect(sender, VELO_ID(0, 5));
        for (int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS; counters.rx_errors == 0;) {
            CHECK_STATUS(velo_recv(receiver, NULL, 0, &msg, TEST_MS), VELO_TIMEOUT);
            CHECK_OK(velo_port_counters(receiver, &counters, sizeof counters));
            CHECK(test_now_ns() < end_ns);
        }
        for (uint64_t seed = 0; seed < 1000; seed++) {
            message_send(conn, seed % 4097, seed);
            message_expect(receiver, seed % 4097, seed, VELO_ID(0, 6));
        }
        CHECK_OK(velo_port_counters(receiver, &counters, sizeof counters));
        CHECK_EQ(counters.rx_errors, 1);
        child_kill(vandal);
        CHECK_OK(velo_port_close(sender));
        CHECK_OK(velo_port_close(receiver));
        CHECK_OK(velo_port_close(port_open(0)));
    }
}

/* A sender takes the memory of its ring, but the receiver is the one that polls it. */
TEST(the_rings_of_a_port_lie_on_the_node_of_its_receiver)
{
    unsigned long mask[1024 / 64] = {0}, allowed[1024 / 64] = {1};
    unsigned cpu, node;
    int policy = -1;
    void *own = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (syscall(SYS_mbind, own, 4096, MPOL_PREFERRED, allowed, 1025ul, 0u) != 0)
        test_skip("this process may not say where memory is to lie");
    struct velo_port *port = port_open_sized(5, DEPTH, DATA_BYTES, CONNS);
    CHECK_EQ(getcpu(&cpu, &node), 0);
    snprintf(path, sizeof(path), "%s/velo.%s.0.5", test_shm_dir(), test_domain());
    char *base = map_segment(); /* Another mapping: the policy is the file's. */
    CHECK_EQ(
        syscall(SYS_get_mempolicy, &policy, mask, 1024ul, ring_of(base, CONNS - 1), MPOL_F_ADDR),
        0);
    CHECK_EQ(policy, MPOL_PREFERRED);
    CHECK_OK(velo_port_close(port));
}

/* ---- damage behind both backs ---------------------------------------------------------------- */

static void punch_rings(struct velo_port *port)
{
    struct stat st;
    char file[4096];

    snprintf(file, sizeof(file), "%s/velo.%s.0.%u", test_shm_dir(), test_domain(),
             VELO_ID_VPID(velo_port_id(port)));
    int fd = open(file, O_RDWR);
    CHECK(fd >= 0);
    CHECK_EQ(fstat(fd, &st), 0);
    /* Whole pages of slots; the control lines of the only ring stay. */
    off_t from = 2 * SEG_HEADER_BYTES + SEG_HEADER_BYTES;
    CHECK_EQ(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, st.st_size - from), 0);
    /* The descriptor stays open: closing it would drop the locks that tell that the port lives. */
}

/* A sender that waits for room finds its messages gone, and its receiver hears of it. */
TEST(a_hole_punched_into_a_ring_ends_its_connection_on_both_sides)
{
    struct velo_port_attr attr = {.size_bytes = sizeof(attr),
                                  .vpid = 1,
                                  .depth_slots = 256,
                                  .conns_max = 2,
                                  .flags = VELO_PORT_DEPARTURES};
    struct velo_port *port, *sender = port_open(2);
    struct velo_port_counters counters;
    struct velo_conn *conn;
    struct velo_msg msg;
    char buf[64];
    int status, received = 0;

    CHECK_OK(velo_port_open(&attr, &port));
    conn = port_connect(sender, VELO_ID(0, 1));
    while (velo_try_send(conn, "x", 1, 0) == VELO_OK)
        ;
    punch_rings(port);
    while ((status = velo_try_recv(port, buf, sizeof(buf), &msg)) == VELO_OK)
        received++;
    CHECK_STATUS(status, VELO_AGAIN);
    CHECK(received < 256);
    CHECK_FAILS(velo_send(conn, "x", 1, 0, VELO_FOREVER), VELO_ERR_CORRUPT, "overwritten");
    CHECK_STATUS(velo_try_send(conn, "x", 1, 0), VELO_ERR_CORRUPT);
    CHECK_STATUS(velo_recv(port, buf, sizeof(buf), &msg, TEST_PATIENCE_NS), VELO_ERR_CORRUPT);
    CHECK_EQ(msg.source, VELO_ID(0, 2));
    CHECK_OK(velo_port_counters(port, &counters, sizeof counters));
    CHECK_EQ(counters.rx_errors, 1);
    CHECK_OK(velo_disconnect(conn));
    conn = port_connect(sender, VELO_ID(0, 1)); /* A new connection is a new ring. */
    message_send(conn, 8, 3);
    message_expect(port, 8, 3, VELO_ID(0, 2));
    CHECK_OK(velo_port_close(sender));
    CHECK_OK(velo_port_close(port));
}

TEST(messages_that_a_hole_swallowed_are_missed_when_their_sender_leaves)
{
    struct velo_port_attr attr = {
        .size_bytes = sizeof(attr), .vpid = 1, .conns_max = 1, .flags = VELO_PORT_DEPARTURES};
    struct velo_port *port, *sender = port_open(2);
    struct velo_port_counters counters;
    struct velo_conn *conn;
    char line[VELO_INLINE_BYTES] = "";
    int status;

    CHECK_OK(velo_port_open(&attr, &port));
    conn = port_connect(sender, VELO_ID(0, 1));
    for (int i = 0; i < 200; i++)
        CHECK_OK(velo_send(conn, line, sizeof line, 0, VELO_FOREVER));
    punch_rings(port);
    CHECK_OK(velo_disconnect(conn));
    do {
        status = velo_recv(port, line, sizeof line, NULL, TEST_PATIENCE_NS);
    } while (status == VELO_OK);
    CHECK_STATUS(status, VELO_ERR_CORRUPT);
    CHECK_OK(velo_port_counters(port, &counters, sizeof counters));
    CHECK_EQ(counters.rx_errors, 1);
    CHECK_OK(velo_port_close(sender));
    CHECK_OK(velo_port_close(port));
}
