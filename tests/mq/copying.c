/* SPDX-License-Identifier: Apache-2.0 */
/* Every copy and every way of a message moves each byte, and no other. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/copy.h"
#include "support.h"

#define LINE 64u
#define GUARD 0xa5
#define EAGER 16384u /* The default. */
#define FIRST 16320u /* Payload of an RTS. */
#define PIECE 16320u /* Of a DATA. */
#define BULK (128u << 10)
#define RING_DATA_BYTES (256u << 10)
#define MIB (1u << 20)

static const char *const ways[] = {"lines", "string", "libc"};

/* ---- the choice ------------------------------------------------------------------------------ */

static void use(const char *by, const char *bytes)
{
    setenv("VELO_COPY", by, 1);
    setenv("VELO_COPY_BYTES", bytes, 1);
}

static bool has_string_moves(void)
{
#if defined(__x86_64__)
    return true;
#else
    return false;
#endif
}

TEST(the_environment_chooses_the_copy)
{
    struct copy_choice usual, chosen;

    unsetenv("VELO_COPY");
    unsetenv("VELO_COPY_BYTES");
    CHECK_OK(copy_configure(&usual));
    CHECK(usual.by != COPY_BY_LINES);
    CHECK(usual.long_bytes >= LINE);

    use("lines", "");
    CHECK_OK(copy_configure(&chosen));
    CHECK_EQ(chosen.by, COPY_BY_LINES);
    CHECK(chosen.long_bytes > COPY_LONG_BYTES_MAX);
    use("LIBC", "100");
    CHECK_OK(copy_configure(&chosen));
    CHECK_EQ(chosen.by, COPY_BY_LIBC);
    CHECK_EQ(chosen.long_bytes, 100);
    CHECK(strcmp(chosen.reason, "VELO_COPY_BYTES") == 0);
    use("auto", "100");
    CHECK_OK(copy_configure(&chosen));
    CHECK_EQ(chosen.by, usual.by);
    CHECK_EQ(chosen.long_bytes, 100);
    use("string", "");
    CHECK_STATUS(copy_configure(&chosen), has_string_moves() ? VELO_OK : VELO_ERR_ARG);
}

/* The processor's family as the kernel tells it; 0: it tells none. */
static int processor_family(void)
{
    char line[256];
    int family = 0;
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && family == 0 && fgets(line, sizeof line, file))
        if (strncmp(line, "cpu family", 10) == 0)
            family = atoi(strchr(line, ':') + 1);
    if (file)
        (void)fclose(file);
    return family;
}

TEST(a_receiver_owns_the_lines_of_long_messages_where_that_is_measured_to_be_faster)
{
    int family = processor_family();

    if (!has_string_moves() || family == 0)
        test_skip("no string moves, or no /proc/cpuinfo");
    use("string", "");
    CHECK_OK(copy_configure(NULL));
    CHECK_EQ(copy_wants_owned(MIB), family >= 0x17 && family <= 0x19);
    CHECK(copy_wants_owned(LINE)); /* It is copied by lines. */
    use("libc", "");
    CHECK_OK(copy_configure(NULL));
    CHECK(copy_wants_owned(MIB));
}

TEST(a_copy_that_makes_no_sense_is_refused_by_name)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *port;
    static const char *const senseless[] = {"63", "1073741825", "-64", "4k", "x"};

    attr.domain = test_domain();
    use("fast", "");
    CHECK_FAILS(velo_port_open(&attr, &port), VELO_ERR_ARG, "VELO_COPY is \"fast\"");
    for (size_t i = 0; i < ARRAY_LEN(senseless); i++) {
        use("", senseless[i]);
        CHECK_FAILS(velo_port_open(&attr, &port), VELO_ERR_ARG, "VELO_COPY_BYTES");
    }
    use("", "64");
    CHECK_OK(velo_port_open(&attr, &port));
    CHECK_OK(velo_port_close(port));
}

/* ---- the copies ------------------------------------------------------------------------------ */

/* Copy from one place to another, both with guards around them, and look at every byte. */
static void check_copy(void (*copy)(void *, const void *, size_t), size_t len_bytes, size_t to_at,
                       size_t from_at)
{
    size_t area_bytes = len_bytes + 4 * (size_t)LINE;
    unsigned char *to = aligned_alloc(LINE, (area_bytes + LINE - 1) / LINE * LINE);
    unsigned char *from = aligned_alloc(LINE, (area_bytes + LINE - 1) / LINE * LINE);

    CHECK(to && from);
    memset(to, GUARD, area_bytes);
    pattern_fill(from, area_bytes, len_bytes + from_at);
    copy(to + LINE + to_at, from + LINE + from_at, len_bytes);
    CHECK(memcmp(to + LINE + to_at, from + LINE + from_at, len_bytes) == 0);
    for (size_t i = 0; i < LINE + to_at; i++)
        CHECK_EQ(to[i], GUARD);
    for (size_t i = LINE + to_at + len_bytes; i < area_bytes; i++)
        CHECK_EQ(to[i], GUARD);
    free(to);
    free(from);
}

TEST(each_copy_moves_each_byte_and_no_other)
{
    static const char *const borders[] = {"64", "100", "5120", ""};
    static const size_t lengths[] = {64,   65,   99,   100,  101,  127,  128,   129,
                                     4095, 4096, 4097, 5119, 5120, 5121, 16384, 70001};
    static const size_t places[] = {0, 1, 8, 31, 33, 63};

    for (size_t way = 0; way < ARRAY_LEN(ways); way++) {
        for (size_t i = 0; i < ARRAY_LEN(borders); i++) {
            use(ways[way], borders[i]);
            if (copy_configure(NULL) != VELO_OK)
                continue; /* There are no string moves. */
            for (size_t j = 0; j < ARRAY_LEN(lengths); j++) {
                for (size_t k = 0; k < ARRAY_LEN(places); k++) {
                    check_copy(copy_to_ring, lengths[j], 0, places[k]);
                    check_copy(copy_from_ring, lengths[j], places[k], 0);
                    check_copy(copy_to_ring, lengths[j], places[k], 17);
                    check_copy(copy_from_ring, lengths[j], 17, places[k]);
                }
            }
        }
    }
}

/* ---- messages -------------------------------------------------------------------------------- */

struct job {
    struct node *nodes;
    struct velo_mq_peer *peer;
    unsigned char *out, *in; /* Of MIB and some more. */
};

/* Send one message to and from places that are not aligned. */
static void check_message(const struct job *job, size_t len_bytes, size_t place, bool is_expected)
{
    struct velo_mq_request send = {0}, recv = {0};
    struct node *nodes = job->nodes;
    uint64_t match = VELO_MQ_MATCH(1, 0, len_bytes);

    pattern_fill(job->out + place, len_bytes, len_bytes + place);
    memset(job->in, GUARD, len_bytes + 2 * (size_t)LINE);
    if (is_expected)
        CHECK_OK(velo_mq_irecv(nodes[1].mq, nodes[0].id, match, 0, job->in + LINE - place,
                               len_bytes, &recv));
    CHECK_OK(velo_mq_isend(job->peer, job->out + place, len_bytes, match, 0, &send));
    if (!is_expected) {
        nodes_settle(nodes, 2);
        CHECK_OK(velo_mq_irecv(nodes[1].mq, nodes[0].id, match, 0, job->in + LINE - place,
                               len_bytes, &recv));
    }
    nodes_finish(nodes, 2, &recv);
    nodes_finish(nodes, 2, &send);
    CHECK_OK(recv.status);
    CHECK_OK(send.status);
    CHECK_EQ(recv.len_bytes, len_bytes);
    CHECK(pattern_matches(job->in + LINE - place, len_bytes, len_bytes + place));
    for (size_t i = 0; i < LINE - place; i++)
        CHECK_EQ(job->in[i], GUARD);
    for (size_t i = LINE - place + len_bytes; i < len_bytes + 2 * (size_t)LINE; i++)
        CHECK_EQ(job->in[i], GUARD);
}

static void check_messages(const char *by, const char *bytes, int path)
{
    static const size_t lengths[] = {
        56,
        57,
        63,
        64,
        5119,
        5120,
        5121,
        EAGER - 8,
        EAGER,
        EAGER + 1,
        FIRST + PIECE - 1,
        FIRST + PIECE,
        FIRST + PIECE + 1,
        FIRST + 2 * PIECE + 1,
        65536,
        FIRST + BULK - 1,
        FIRST + BULK,
        FIRST + PIECE + BULK,
        FIRST + PIECE + BULK + 1,
        MIB + 3,
    };
    static const size_t places[] = {0, 1, 24, 63};
    struct velo_mq_attr attr = {.size_bytes = sizeof attr, .path = path};
    struct node nodes[2];
    struct velo_mq_counters counters;

    use(by, bytes);
    node_open(&nodes[0], 0, 0, RING_DATA_BYTES, &attr, true);
    node_open(&nodes[1], 1, 0, RING_DATA_BYTES, &attr, true);
    struct job job = {.nodes = nodes,
                      .peer = node_connect(&nodes[0], nodes[1].id),
                      .out = malloc(2 * MIB),
                      .in = malloc(2 * MIB)};
    CHECK(job.out && job.in);
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
        for (size_t j = 0; j < ARRAY_LEN(places); j++)
            check_message(&job, lengths[i], places[j], (i + j) % 2 == 0);
    counters = node_counters(&nodes[1]);
    CHECK_EQ(counters.errors, 0);
    CHECK_EQ(counters.unexpected_bytes, 0);
    if (path == VELO_MQ_PATH_COPY)
        CHECK_EQ(counters.fetched, 0);
    if (path == VELO_MQ_PATH_GET && !test_is_carried())
        CHECK(counters.fetched > 0 && counters.copied == 0);
    free(job.out);
    free(job.in);
    nodes_close(nodes, 2);
}

TEST(messages_arrive_whole_by_each_copy_and_each_way)
{
    static const int paths[] = {VELO_MQ_PATH_COPY, VELO_MQ_PATH_GET, VELO_MQ_PATH_AUTO};

    for (size_t way = 0; way < ARRAY_LEN(ways); way++) {
        if (strcmp(ways[way], "string") == 0 && !has_string_moves())
            continue;
        for (size_t i = 0; i < ARRAY_LEN(paths); i++)
            check_messages(ways[way], "", paths[i]);
    }
    check_messages("auto", "64", VELO_MQ_PATH_COPY);
}

/* ---- pieces that are copied ahead ------------------------------------------------------------ */

/* Two ports that send to each other. */
struct pair {
    struct node nodes[2];
    struct velo_mq_peer *to[2]; /* That node 0 and node 1 send to. */
    unsigned char *buf[6];
};

#define AHEAD_BYTES 100000u

static struct pair pair_open(void)
{
    struct velo_mq_attr attr = {.size_bytes = sizeof attr, .path = VELO_MQ_PATH_COPY};
    struct pair pair;

    for (int i = 0; i < 2; i++)
        node_open(&pair.nodes[i], i, 0, RING_DATA_BYTES, &attr, false);
    for (int i = 0; i < 2; i++)
        pair.to[i] = node_connect(&pair.nodes[i], pair.nodes[1 - i].id);
    for (size_t i = 0; i < ARRAY_LEN(pair.buf); i++) {
        pair.buf[i] = malloc(AHEAD_BYTES);
        CHECK(pair.buf[i] != NULL);
        pattern_fill(pair.buf[i], AHEAD_BYTES, i);
    }
    return pair;
}

static void pair_close(struct pair *pair)
{
    for (size_t i = 0; i < ARRAY_LEN(pair->buf); i++)
        free(pair->buf[i]);
    nodes_close(pair->nodes, 2);
}

static void pair_send(struct pair *pair, int from, int buf, struct velo_mq_request *send)
{
    CHECK_OK(velo_mq_isend(pair->to[from], pair->buf[buf], AHEAD_BYTES, VELO_MQ_MATCH(1, from, buf),
                           0, send));
}

static void pair_recv(struct pair *pair, int at, int into, int buf, struct velo_mq_request *recv)
{
    CHECK_OK(velo_mq_irecv(pair->nodes[at].mq, VELO_MQ_ANY_SOURCE, VELO_MQ_MATCH(1, 1 - at, buf), 0,
                           pair->buf[into], AHEAD_BYTES, recv));
}

static void pair_expect(struct pair *pair, struct velo_mq_request *send,
                        struct velo_mq_request *recv, int into, int buf)
{
    nodes_finish(pair->nodes, 2, recv);
    nodes_finish(pair->nodes, 2, send);
    CHECK_OK(recv->status);
    CHECK_OK(send->status);
    CHECK(pattern_matches(pair->buf[into], AHEAD_BYTES, (uint64_t)buf));
    memset(pair->buf[into], GUARD, AHEAD_BYTES);
}

/* The second send is matched first, so that its piece takes the place of the one that was copied
 * ahead. */
TEST(a_piece_that_was_copied_ahead_gives_way_to_another_send)
{
    struct pair pair = pair_open();
    struct velo_mq_request send[2] = {{0}}, recv[2] = {{0}};

    for (int round = 0; round < 20; round++) {
        pair_send(&pair, 0, 0, &send[0]);
        pair_send(&pair, 0, 1, &send[1]);
        pair_recv(&pair, 1, 4, 1, &recv[1]);
        if (round % 2)
            nodes_settle(pair.nodes, 2);
        pair_recv(&pair, 1, 3, 0, &recv[0]);
        pair_expect(&pair, &send[0], &recv[0], 3, 0);
        pair_expect(&pair, &send[1], &recv[1], 4, 1);
    }
    pair_close(&pair);
}

/* The same if the other side's message is answered meanwhile. */
TEST(a_piece_that_was_copied_ahead_gives_way_to_an_answer)
{
    struct pair pair = pair_open();
    struct velo_mq_request send[3] = {{0}}, recv[3] = {{0}};

    for (int round = 0; round < 20; round++) {
        pair_send(&pair, 0, 0, &send[0]);
        pair_send(&pair, 0, 1, &send[1]);
        pair_send(&pair, 1, 2, &send[2]);
        nodes_settle(pair.nodes, 2);
        pair_recv(&pair, 0, 5, 2, &recv[2]);
        if (round % 2)
            nodes_settle(pair.nodes, 2);
        pair_recv(&pair, 1, 4, 1, &recv[1]);
        pair_recv(&pair, 1, 3, 0, &recv[0]);
        for (int i = 0; i < 3; i++)
            pair_expect(&pair, &send[i], &recv[i], 3 + i, i);
    }
    pair_close(&pair);
}

/* A receive that has room for no more than what goes with the announcement: the piece is not asked
 * for, and the next send has another one. */
TEST(a_piece_that_was_copied_ahead_is_not_sent_for_another_message)
{
    struct pair pair = pair_open();
    struct velo_mq_request send = {0}, recv = {0};

    for (int round = 0; round < 4; round++) {
        pair_send(&pair, 0, 0, &send);
        CHECK_OK(velo_mq_irecv(pair.nodes[1].mq, VELO_MQ_ANY_SOURCE, VELO_MQ_MATCH(1, 0, 0), 0,
                               pair.buf[3], 10, &recv));
        nodes_finish(pair.nodes, 2, &recv);
        nodes_finish(pair.nodes, 2, &send);
        CHECK_STATUS(recv.status, VELO_ERR_TOO_BIG);
        pair_send(&pair, 0, 1, &send);
        pair_recv(&pair, 1, 3, 1, &recv);
        pair_expect(&pair, &send, &recv, 3, 1);
    }
    pair_close(&pair);
}

/* A receive that takes less than what was copied ahead. */
TEST(less_is_sent_than_was_copied_ahead_if_less_is_wanted)
{
    struct pair pair = pair_open();
    static const size_t caps[] = {FIRST + 1, FIRST + 100, FIRST + PIECE - 1, FIRST + PIECE + 1};

    for (size_t i = 0; i < 4 * ARRAY_LEN(caps); i++) {
        struct velo_mq_request send = {0}, recv = {0};
        size_t cap_bytes = caps[i % ARRAY_LEN(caps)];

        memset(pair.buf[1], GUARD, AHEAD_BYTES);
        pair_send(&pair, 0, 0, &send);
        CHECK_OK(velo_mq_irecv(pair.nodes[1].mq, VELO_MQ_ANY_SOURCE, VELO_MQ_MATCH(1, 0, 0), 0,
                               pair.buf[1], cap_bytes, &recv));
        nodes_finish(pair.nodes, 2, &recv);
        nodes_finish(pair.nodes, 2, &send);
        CHECK_STATUS(recv.status, VELO_ERR_TOO_BIG);
        CHECK_EQ(recv.len_bytes, cap_bytes);
        CHECK(memcmp(pair.buf[1], pair.buf[0], cap_bytes) == 0);
        CHECK_EQ(pair.buf[1][cap_bytes], GUARD);
    }
    pair_close(&pair);
}

/* The peer is let go, and connected again, while a piece lies ready for it. */
TEST(a_send_that_ends_early_takes_its_piece_along)
{
    struct pair pair = pair_open();
    struct velo_mq_request send = {0}, recv = {0};

    for (int round = 0; round < 3; round++) {
        pair_send(&pair, 0, 0, &send);
        pair_recv(&pair, 1, 1, 0, &recv);
        nodes_finish(pair.nodes, 2, &recv);
        nodes_finish(pair.nodes, 2, &send);
        CHECK_OK(recv.status);
        CHECK(pattern_matches(pair.buf[1], AHEAD_BYTES, 0));
        memset(pair.buf[1], GUARD, AHEAD_BYTES);
        pair_send(&pair, 0, 2, &send); /* Nobody receives it. */
        CHECK_STATUS(send.status, VELO_AGAIN);
        CHECK_OK(velo_mq_disconnect(pair.to[0]));
        CHECK_STATUS(send.status, VELO_ERR_PEER_CLOSED);
        pair.to[0] = node_connect(&pair.nodes[0], pair.nodes[1].id);
    }
    pair_close(&pair);
}

/* ---- copy or get ----------------------------------------------------------------------------- */

static bool reads_fail;
static unsigned failed_reads;

/* Takes the place of the C library's, for the library under test too. */
__attribute__((visibility("default"))) ssize_t process_vm_readv(pid_t pid, const struct iovec *lvec,
                                                                unsigned long liovcnt,
                                                                const struct iovec *rvec,
                                                                unsigned long riovcnt,
                                                                unsigned long flags)
{
    if (!reads_fail)
        return syscall(SYS_process_vm_readv, pid, lvec, liovcnt, rvec, riovcnt, flags);
    failed_reads++;
    errno = EFAULT;
    return -1;
}

#define MESSAGES 200

/* Another process, since a get within one needs no system call. */
static void send_all(void *arg)
{
    struct node node;
    unsigned char *out = malloc(MIB);

    (void)arg;
    CHECK(out != NULL);
    node_open(&node, 0, 0, RING_DATA_BYTES, NULL, true);
    struct velo_mq_peer *peer = node_connect(&node, VELO_ID(0, 1));
    for (int i = 0; i < MESSAGES; i++) {
        struct velo_mq_request send = {0};
        pattern_fill(out, MIB, (uint64_t)i);
        CHECK_OK(velo_mq_isend(peer, out, MIB, 1, 0, &send));
        CHECK_OK(velo_mq_wait(node.mq, &send, TEST_PATIENCE_NS));
    }
    node_close(&node);
    free(out);
}

/* Receive into memory that nobody has touched, or into the same memory again. */
static void receive_long(struct node *nodes, struct velo_mq_peer *peer, const unsigned char *out,
                         unsigned char *in)
{
    struct velo_mq_request send = {0}, recv = {0};
    CHECK_OK(velo_mq_irecv(nodes[1].mq, nodes[0].id, 1, 0, in, 2 * MIB, &recv));
    CHECK_OK(velo_mq_isend(peer, out, 2 * MIB, 1, 0, &send));
    nodes_finish(nodes, 2, &recv);
    nodes_finish(nodes, 2, &send);
    CHECK_OK(recv.status);
    CHECK(pattern_matches(in, 2 * MIB, 7));
}

static unsigned char *fresh_memory(void)
{
    void *memory = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

TEST(messages_into_memory_that_nobody_has_touched_are_fetched_and_are_no_measure)
{
    enum { FRESH = 6 };
    struct node nodes[2];
    test_needs_shared_memory();
    if (is_simulated())
        test_skip("the node fetches, or nobody");
    nodes_open(nodes, 2, NULL, true);
    struct velo_mq_peer *peer = node_connect(&nodes[0], nodes[1].id);
    unsigned char *out = malloc(2 * MIB), *in = NULL;
    CHECK(out != NULL);
    pattern_fill(out, 2 * MIB, 7);
    for (int i = 0; i < FRESH; i++) {
        if (in)
            CHECK_EQ(munmap(in, 2 * MIB), 0);
        in = fresh_memory();
        receive_long(nodes, peer, out, in);
        if (node_counters(&nodes[1]).fetched == 0)
            test_skip("the kernel forbids to fetch");
    }
    CHECK_EQ(node_counters(&nodes[1]).fetched, FRESH);
    /* Now both ways are measured, two messages each, as if nothing had been. */
    for (int i = 0; i < 4; i++)
        receive_long(nodes, peer, out, in);
    CHECK_EQ(node_counters(&nodes[1]).fetched, FRESH + 2);
    CHECK_EQ(node_counters(&nodes[1]).copied, 2);
    CHECK_EQ(munmap(in, 2 * MIB), 0);
    free(out);
    nodes_close(nodes, 2);
}

/* The receiver is told that it may read the sender's memory, and then cannot. */
TEST(a_get_that_fails_is_not_tried_for_each_message)
{
    struct node node;

    test_needs_shared_memory();
    if (is_simulated())
        test_skip("the node fetches, or nobody");
    unsigned char *in = malloc(MIB);
    CHECK(in != NULL);
    pid_t child = child_start(send_all, NULL);
    node_open(&node, 1, 0, RING_DATA_BYTES, NULL, true);
    for (int i = 0; i < MESSAGES; i++) {
        struct velo_mq_request recv = {0};
        CHECK_OK(velo_mq_irecv(node.mq, VELO_ID(0, 0), 1, 0, in, MIB, &recv));
        CHECK_OK(velo_mq_wait(node.mq, &recv, TEST_PATIENCE_NS));
        CHECK(pattern_matches(in, MIB, (uint64_t)i));
        if (node_counters(&node).fetched == 0)
            test_skip("the kernel forbids it from the beginning");
        reads_fail = true; /* From the second message on. */
    }
    reads_fail = false;
    CHECK_EQ(node_counters(&node).fetched, 1);
    CHECK_EQ(node_counters(&node).copied, MESSAGES - 1);
    /* Once at the beginning, then in trials: after 64 messages, and after 128 more. */
    CHECK(failed_reads >= 2);
    CHECK(failed_reads <= 3);
    child_join(child);
    node_close(&node);
    free(in);
}
