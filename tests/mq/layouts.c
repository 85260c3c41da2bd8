/* SPDX-License-Identifier: Apache-2.0 */
/* Messages whose data is not in one piece go through the ring in pieces, each byte to its place. */
#include <stdlib.h>
#include <string.h>

#include "support.h"

#define ELEMENT 12u /* Bytes of data, ... */
#define STRIDE 17u  /* ... each so far from the one before. */
#define GAP 0xee
#define EAGER 16384u /* The default. */
#define PIECE_MOST (64u << 10)
#define MIB (1u << 20)

/* Memory with gaps, and what was asked of it. */
struct gaps {
    unsigned char *memory;
    size_t len_bytes; /* Of data. */
    uint64_t next_bytes;
    uint64_t most_bytes; /* In one call. */
    int calls;
    int again; /* Calls for a piece that was packed before. */
    bool gives_nothing;
};

static size_t span_of(size_t len_bytes) { return (len_bytes / ELEMENT + 1) * STRIDE; }

static size_t place_of(size_t offset_bytes)
{
    return offset_bytes / ELEMENT * STRIDE + offset_bytes % ELEMENT;
}

static unsigned char byte_of(size_t offset_bytes)
{
    return (unsigned char)(offset_bytes * 7 % 251);
}

static void open_gaps(struct gaps *gaps, size_t len_bytes, bool is_filled)
{
    *gaps = (struct gaps){.memory = malloc(span_of(len_bytes)), .len_bytes = len_bytes};
    CHECK(gaps->memory != NULL);
    memset(gaps->memory, GAP, span_of(len_bytes));
    for (size_t i = 0; is_filled && i < len_bytes; i++)
        gaps->memory[place_of(i)] = byte_of(i);
}

/* The data up to some length is there, and nothing else was written. */
static void close_gaps(struct gaps *gaps, size_t arrived_bytes)
{
    for (size_t i = 0; i < arrived_bytes; i++)
        CHECK_EQ(gaps->memory[place_of(i)], byte_of(i));
    for (size_t i = 0, offset = 0; i < span_of(gaps->len_bytes); i++) {
        bool is_data = offset < arrived_bytes && place_of(offset) == i;
        if (is_data)
            offset++;
        else
            CHECK_EQ(gaps->memory[i], GAP);
    }
    free(gaps->memory);
}

static void note(struct gaps *gaps, uint64_t offset_bytes, size_t len_bytes)
{
    gaps->calls++;
    gaps->next_bytes = offset_bytes + len_bytes;
    if (len_bytes > gaps->most_bytes)
        gaps->most_bytes = len_bytes;
}

/* Whole elements, but at the end of the message. */
static size_t pack(void *state, uint64_t offset_bytes, void *to, size_t cap_bytes)
{
    struct gaps *gaps = state;
    if (gaps->gives_nothing && offset_bytes + cap_bytes >= gaps->len_bytes)
        return 0;
    CHECK(offset_bytes <= gaps->next_bytes);
    gaps->again += offset_bytes < gaps->next_bytes;
    size_t len_bytes = cap_bytes;
    if (offset_bytes + cap_bytes < gaps->len_bytes)
        len_bytes -= (offset_bytes + cap_bytes) % ELEMENT;
    for (size_t i = 0; i < len_bytes; i++)
        ((unsigned char *)to)[i] = gaps->memory[place_of(offset_bytes + i)];
    note(gaps, offset_bytes, len_bytes);
    return len_bytes;
}

static void unpack(void *state, uint64_t offset_bytes, const void *from, size_t len_bytes)
{
    struct gaps *gaps = state;
    CHECK_EQ(offset_bytes, gaps->next_bytes);
    for (size_t i = 0; i < len_bytes; i++)
        gaps->memory[place_of(offset_bytes + i)] = ((const unsigned char *)from)[i];
    note(gaps, offset_bytes, len_bytes);
}

static const struct velo_mq_layout layout = {.pack = pack, .unpack = unpack};

static unsigned char *open_line(size_t len_bytes, bool is_filled)
{
    unsigned char *memory = malloc(len_bytes + 1);
    CHECK(memory != NULL);
    for (size_t i = 0; i < len_bytes; i++)
        memory[i] = is_filled ? byte_of(i) : GAP;
    return memory;
}

struct trip {
    size_t len_bytes;
    uint32_t flags;
    bool has_gaps_there, has_gaps_here, is_posted_first;
};

static void send_and_receive(struct node *nodes, struct velo_mq_peer *peer, const struct trip *trip)
{
    size_t len_bytes = trip->len_bytes;
    struct gaps sent, received;
    unsigned char *line_there = open_line(len_bytes, true), *line = open_line(len_bytes, false);
    struct velo_mq_request send = {0}, receive = {0};
    open_gaps(&sent, len_bytes, true);
    open_gaps(&received, len_bytes, false);
    for (int step = 0; step < 2; step++) {
        if ((step == 0) == trip->is_posted_first) {
            if (trip->has_gaps_here)
                CHECK_OK(velo_mq_irecv_layout(nodes[1].mq, nodes[0].id, 5, 0, &layout, &received,
                                              len_bytes, &receive));
            else
                CHECK_OK(velo_mq_irecv(nodes[1].mq, nodes[0].id, 5, 0, line, len_bytes, &receive));
        } else if (trip->has_gaps_there) {
            CHECK_OK(velo_mq_isend_layout(peer, &layout, &sent, len_bytes, 5, trip->flags, &send));
        } else {
            CHECK_OK(velo_mq_isend(peer, line_there, len_bytes, 5, trip->flags, &send));
        }
        nodes_settle(nodes, 2);
    }
    nodes_finish(nodes, 2, &receive);
    nodes_finish(nodes, 2, &send);
    CHECK_OK(send.status);
    CHECK_OK(receive.status);
    CHECK_EQ(receive.len_bytes, len_bytes);
    CHECK_EQ(receive.total_bytes, len_bytes);
    CHECK_EQ(send.len_bytes, len_bytes);
    if (!trip->has_gaps_here)
        CHECK(memcmp(line, line_there, len_bytes) == 0);
    CHECK(sent.most_bytes <= PIECE_MOST && received.most_bytes <= PIECE_MOST);
    free(line_there);
    free(line);
    free(sent.memory);
    close_gaps(&received, trip->has_gaps_here ? len_bytes : 0);
}

TEST(data_with_gaps_arrives_at_every_length_and_on_every_side)
{
    static const size_t lengths[] = {
        0,         1,         ELEMENT,       56,     57, 1000, EAGER - 1, EAGER, EAGER + 1,
        2 * EAGER, 65536 + 5, MIB + ELEMENT, 3 * MIB};
    struct node nodes[2];
    nodes_open(nodes, 2, NULL, true);
    struct velo_mq_peer *peer = node_connect(&nodes[0], nodes[1].id);
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        for (unsigned way = 0; way < 16; way++) {
            struct trip trip = {.len_bytes = lengths[i],
                                .flags = way & 8 ? VELO_MQ_SYNC : 0,
                                .has_gaps_there = way & 4,
                                .has_gaps_here = way & 2,
                                .is_posted_first = way & 1};
            send_and_receive(nodes, peer, &trip);
        }
    }
    CHECK_EQ(node_counters(&nodes[1]).errors, 0);
    nodes_close(nodes, 2);
}

TEST(a_longer_message_fills_a_layout_and_no_more)
{
    static const size_t lengths[] = {100, 10000, 2 * EAGER, MIB};
    struct node nodes[2];
    nodes_open(nodes, 2, NULL, true);
    struct velo_mq_peer *peer = node_connect(&nodes[0], nodes[1].id);
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        struct gaps sent, received;
        struct velo_mq_request send = {0}, receive = {0};
        size_t cap_bytes = lengths[i] / 2 + 1;
        open_gaps(&sent, lengths[i], true);
        open_gaps(&received, lengths[i], false);
        CHECK_OK(velo_mq_irecv_layout(nodes[1].mq, VELO_MQ_ANY_SOURCE, 5, 0, &layout, &received,
                                      cap_bytes, &receive));
        CHECK_OK(velo_mq_isend_layout(peer, &layout, &sent, lengths[i], 5, 0, &send));
        nodes_finish(nodes, 2, &receive);
        nodes_finish(nodes, 2, &send);
        CHECK_STATUS(receive.status, VELO_ERR_TOO_BIG);
        CHECK_EQ(receive.len_bytes, cap_bytes);
        CHECK_EQ(receive.total_bytes, lengths[i]);
        free(sent.memory);
        close_gaps(&received, cap_bytes);
    }
    nodes_close(nodes, 2);
}

TEST(a_message_that_was_taken_out_is_received_into_a_layout)
{
    static const size_t lengths[] = {0, 100, MIB};
    struct node nodes[2];
    nodes_open(nodes, 2, NULL, true);
    struct velo_mq_peer *peer = node_connect(&nodes[0], nodes[1].id);
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        struct gaps sent, received;
        struct velo_mq_request send = {0}, receive = {0};
        struct velo_mq_message *message;
        open_gaps(&sent, lengths[i], true);
        open_gaps(&received, lengths[i], false);
        CHECK_OK(velo_mq_isend_layout(peer, &layout, &sent, lengths[i], 5, 0, &send));
        nodes_settle(nodes, 2);
        CHECK_OK(velo_mq_try_mprobe(nodes[1].mq, nodes[0].id, 5, 0, &message, NULL));
        CHECK_OK(
            velo_mq_mrecv_layout(nodes[1].mq, message, &layout, &received, lengths[i], &receive));
        nodes_finish(nodes, 2, &receive);
        nodes_finish(nodes, 2, &send);
        CHECK_OK(receive.status);
        free(sent.memory);
        close_gaps(&received, lengths[i]);
    }
    nodes_close(nodes, 2);
}

TEST(a_receive_into_a_layout_can_be_cancelled)
{
    struct node nodes[2];
    nodes_open(nodes, 2, NULL, false);
    struct gaps received;
    struct velo_mq_request receive = {0};
    open_gaps(&received, 100, false);
    CHECK_OK(velo_mq_irecv_layout(nodes[1].mq, VELO_MQ_ANY_SOURCE, 5, 0, &layout, &received, 100,
                                  &receive));
    CHECK_OK(velo_mq_cancel(nodes[1].mq, &receive));
    CHECK_STATUS(receive.status, VELO_ERR_CANCELLED);
    CHECK_EQ(node_counters(&nodes[1]).posted, 0);
    CHECK_EQ(received.calls, 0);
    close_gaps(&received, 0);
    nodes_close(nodes, 2);
}

/* The next piece of an announced message is packed ahead. An answer takes its room. */
TEST(a_piece_whose_room_another_message_took_is_packed_again)
{
    struct node nodes[2];
    nodes_open(nodes, 2, NULL, false);
    struct velo_mq_peer *peer = node_connect(&nodes[0], nodes[1].id);
    struct velo_mq_peer *back = node_connect(&nodes[1], nodes[0].id);
    struct gaps sent, received;
    struct velo_mq_request send[2] = {0}, receive[2] = {0}, synced = {0};
    char word = 'x';
    /* The first long message opens the connection that pieces go over. */
    for (int i = 0; i < 2; i++) {
        open_gaps(&sent, MIB, true);
        open_gaps(&received, MIB, false);
        CHECK_OK(velo_mq_isend_layout(peer, &layout, &sent, MIB, 5, 0, &send[i]));
        CHECK_OK(velo_mq_isend(back, &word, 1, 6, VELO_MQ_SYNC, &synced));
        nodes_settle(nodes, 2);
        struct velo_mq_request word_receive = {0};
        CHECK_OK(velo_mq_irecv(nodes[0].mq, nodes[1].id, 6, 0, &word, 1, &word_receive));
        nodes_finish(nodes, 2, &synced);
        CHECK_OK(velo_mq_irecv_layout(nodes[1].mq, nodes[0].id, 5, 0, &layout, &received, MIB,
                                      &receive[i]));
        nodes_finish(nodes, 2, &receive[i]);
        nodes_finish(nodes, 2, &send[i]);
        CHECK_OK(receive[i].status);
        if (i == 1 && !test_is_carried())
            CHECK_EQ(sent.again, 1);
        free(sent.memory);
        close_gaps(&received, MIB);
    }
    nodes_close(nodes, 2);
}

TEST(a_layout_that_gives_nothing_ends_its_own_message_only)
{
    static const size_t lengths[] = {100, 10000, MIB};
    struct node nodes[2];
    nodes_open(nodes, 2, NULL, true);
    struct velo_mq_peer *peer = node_connect(&nodes[0], nodes[1].id);
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        struct gaps sent, received;
        struct velo_mq_request send = {0}, receive = {0};
        open_gaps(&sent, lengths[i], true);
        open_gaps(&received, lengths[i], false);
        sent.gives_nothing = true;
        CHECK_OK(velo_mq_irecv_layout(nodes[1].mq, nodes[0].id, 5, 0, &layout, &received,
                                      lengths[i], &receive));
        CHECK_OK(velo_mq_isend_layout(peer, &layout, &sent, lengths[i], 5, 0, &send));
        nodes_finish(nodes, 2, &send);
        CHECK_STATUS(send.status, VELO_ERR_ARG);
        if (lengths[i] > EAGER) {
            nodes_finish(nodes, 2, &receive);
            CHECK_STATUS(receive.status, VELO_ERR_PEER_CLOSED);
        } else {
            CHECK_OK(velo_mq_cancel(nodes[1].mq, &receive));
        }
        free(sent.memory);
        free(received.memory);
        send_and_receive(
            nodes, peer,
            &(struct trip){.len_bytes = lengths[i], .has_gaps_there = true, .has_gaps_here = true});
    }
    nodes_close(nodes, 2);
}

TEST(calls_for_layouts_refuse_what_makes_no_sense)
{
    static const struct velo_mq_layout none;
    struct node nodes[2];
    struct velo_mq_request request = {0};
    struct gaps gaps = {0};
    nodes_open(nodes, 2, NULL, false);
    struct velo_mq_peer *peer = node_connect(&nodes[0], nodes[1].id);
    CHECK_FAILS(velo_mq_isend_layout(NULL, &layout, &gaps, 0, 5, 0, &request), VELO_ERR_ARG,
                "NULL");
    CHECK_FAILS(velo_mq_isend_layout(peer, NULL, &gaps, 0, 5, 0, &request), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_isend_layout(peer, &none, &gaps, 0, 5, 0, &request), VELO_ERR_ARG,
                "pack()");
    CHECK_FAILS(velo_mq_isend_layout(peer, &layout, &gaps, 0, 5, VELO_MQ_FIRST, &request),
                VELO_ERR_ARG, "VELO_MQ_SYNC");
    CHECK_FAILS(velo_mq_isend_layout(peer, &layout, &gaps, 0, 5, 0, NULL), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_mq_irecv_layout(NULL, 0, 5, 0, &layout, &gaps, 0, &request), VELO_ERR_ARG,
                "NULL");
    CHECK_FAILS(velo_mq_irecv_layout(nodes[0].mq, 0, 5, 0, NULL, &gaps, 0, &request), VELO_ERR_ARG,
                "NULL");
    CHECK_FAILS(velo_mq_irecv_layout(nodes[0].mq, 0, 5, 0, &none, &gaps, 0, &request), VELO_ERR_ARG,
                "unpack()");
    CHECK_FAILS(velo_mq_irecv_layout(nodes[0].mq, 0, 5, 0, &layout, &gaps, 0, NULL), VELO_ERR_ARG,
                "NULL");
    CHECK_FAILS(velo_mq_mrecv_layout(nodes[0].mq, NULL, &layout, &gaps, 0, &request), VELO_ERR_ARG,
                "NULL");
    nodes_close(nodes, 2);
}
