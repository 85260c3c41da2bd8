/* SPDX-License-Identifier: Apache-2.0 */
/* Every shape of datatype keeps its data, and memory between the data is left alone. */
#include "mpi_test.h"

#include <stdlib.h>
#include <string.h>

#define SHAPE_BYTES 24 /* Data in one element of an irregular shape. */

/* A datatype of about len_bytes of data. */
typedef MPI_Datatype (*shape_fn)(int len_bytes);

static MPI_Datatype commit(MPI_Datatype type)
{
    MPI_Type_commit(&type);
    return type;
}

static MPI_Datatype contiguous(int len_bytes)
{
    MPI_Datatype type;
    MPI_Type_contiguous(len_bytes, MPI_BYTE, &type);
    return commit(type);
}

static MPI_Datatype vector(int len_bytes)
{
    MPI_Datatype type;
    MPI_Type_vector(len_bytes / 8 + 1, 8, 13, MPI_BYTE, &type);
    return commit(type);
}

static MPI_Datatype indexed(int len_bytes)
{
    enum { BLOCKS = 5 };
    int part = len_bytes / BLOCKS;
    int lengths[BLOCKS] = {part, part, 0, part + 3, part}, places[BLOCKS];
    for (int i = 0, at = 2; i < BLOCKS; at += lengths[i++] + 1)
        places[i] = at;
    MPI_Datatype type;
    MPI_Type_indexed(BLOCKS, lengths, places, MPI_BYTE, &type);
    return commit(type);
}

static MPI_Datatype structure(int len_bytes)
{
    int lengths[] = {1, 1, len_bytes};
    MPI_Aint places[] = {0, 8, 19};
    MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, MPI_CHAR}, type;
    MPI_Type_create_struct(3, lengths, places, types, &type);
    return commit(type);
}

static MPI_Datatype resized(int len_bytes)
{
    MPI_Datatype inner = contiguous(len_bytes), type;
    MPI_Type_create_resized(inner, 0, len_bytes + 11, &type);
    MPI_Type_free(&inner);
    return commit(type);
}

static MPI_Datatype subarray(int len_bytes)
{
    int sizes[] = {len_bytes / 16 + 4, 32}, part[] = {len_bytes / 16 + 1, 16}, from[] = {2, 7};
    MPI_Datatype type;
    MPI_Type_create_subarray(2, sizes, part, from, MPI_ORDER_C, MPI_BYTE, &type);
    return commit(type);
}

static MPI_Datatype nested(int len_bytes)
{
    MPI_Datatype inner = structure(SHAPE_BYTES), middle, type;
    MPI_Type_create_hvector(2, 1, 64, inner, &middle);
    MPI_Type_create_hvector(len_bytes / SHAPE_BYTES / 2 + 1, 1, 200, middle, &type);
    MPI_Type_free(&inner);
    MPI_Type_free(&middle);
    return commit(type);
}

static MPI_Datatype empty(int len_bytes)
{
    (void)len_bytes;
    MPI_Datatype type;
    MPI_Type_vector(0, 3, 5, MPI_INT, &type);
    return commit(type);
}

struct trip {
    MPI_Datatype type;
    int count, packed_bytes;
    size_t span_bytes;
    char *sent, *received, *expected, *packed;
};

static void begin(struct trip *trip, MPI_Datatype type, int count, unsigned seed)
{
    MPI_Aint lb, extent, true_lb, true_extent;
    MPI_Type_get_extent(type, &lb, &extent);
    MPI_Type_get_true_extent(type, &true_lb, &true_extent);
    CHECK(true_lb >= 0);
    trip->type = type;
    trip->count = count;
    trip->span_bytes = (size_t)(true_lb + true_extent + extent * (count - 1)) + 16;
    trip->sent = must_alloc(trip->span_bytes);
    trip->received = must_alloc(trip->span_bytes);
    trip->expected = must_alloc(trip->span_bytes);
    fill(trip->sent, trip->span_bytes, seed);
    memset(trip->received, 0xee, trip->span_bytes);
    memset(trip->expected, 0xee, trip->span_bytes);
    /* A local copy by MPI itself gives the bytes that must arrive. */
    MPI_Pack_size(count, type, MPI_COMM_SELF, &trip->packed_bytes);
    trip->packed = must_alloc((size_t)trip->packed_bytes);
    int at = 0;
    MPI_Pack(trip->sent, count, type, trip->packed, trip->packed_bytes, &at, MPI_COMM_SELF);
    trip->packed_bytes = at;
    at = 0;
    MPI_Unpack(trip->packed, trip->packed_bytes, &at, trip->expected, count, type, MPI_COMM_SELF);
}

static void finish(struct trip *trip, const MPI_Status *status)
{
    MPI_Count bytes;
    MPI_Get_elements_x(status, MPI_PACKED, &bytes);
    CHECK_EQ(bytes, trip->packed_bytes);
    CHECK(memcmp(trip->received, trip->expected, trip->span_bytes) == 0);
    free(trip->sent);
    free(trip->received);
    free(trip->expected);
    free(trip->packed);
}

/* Both directions at once, the receive posted before or after the message comes. */
static void exchange(struct trip *trip, bool posted_first)
{
    int other = 1 - rank;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    if (posted_first)
        MPI_Irecv(trip->received, trip->count, trip->type, other, 5, MPI_COMM_WORLD, &requests[0]);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Isend(trip->sent, trip->count, trip->type, other, 5, MPI_COMM_WORLD, &requests[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!posted_first)
        MPI_Irecv(trip->received, trip->count, trip->type, other, 5, MPI_COMM_WORLD, &requests[0]);
    MPI_Waitall(2, requests, statuses);
    finish(trip, &statuses[0]);
}

static void round_trips(shape_fn shape)
{
    unsigned seed = 0;
    for (size_t i = 0; i < edge_count; i++) {
        MPI_Datatype type = shape(edge_lengths[i]);
        for (int count = 1; count <= 3; count += 2) {
            for (int posted_first = 0; posted_first < 2; posted_first++) {
                struct trip trip;
                begin(&trip, type, count, seed++);
                exchange(&trip, posted_first != 0);
            }
        }
        MPI_Type_free(&type);
    }
}

TEST(contiguous_data_keeps_its_bytes, 2) { round_trips(contiguous); }
TEST(vectors_keep_their_bytes, 2) { round_trips(vector); }
TEST(indexed_blocks_keep_their_bytes, 2) { round_trips(indexed); }
TEST(structures_keep_their_bytes, 2) { round_trips(structure); }
TEST(resized_types_keep_their_bytes, 2) { round_trips(resized); }
TEST(subarrays_keep_their_bytes, 2) { round_trips(subarray); }
TEST(nested_types_keep_their_bytes, 2) { round_trips(nested); }
TEST(types_without_data_arrive_empty, 2) { round_trips(empty); }

/* Data that are scattered here may be in one piece there. */
TEST(shapes_need_not_be_the_same_on_both_sides, 2)
{
    for (size_t i = 0; i < edge_count; i++) {
        int blocks = edge_lengths[i] / 8 + 1, bytes = 8 * blocks;
        MPI_Datatype type = vector(edge_lengths[i]);
        char *whole = must_alloc((size_t)bytes), *parts = must_alloc((size_t)blocks * 13);
        fill(whole, (size_t)bytes, (unsigned)i);
        memset(parts, 0, (size_t)blocks * 13);
        if (rank == 0) {
            MPI_Send(whole, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
            memset(whole, 0, (size_t)bytes);
            MPI_Recv(whole, bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(filled(whole, (size_t)bytes, (unsigned)i));
        } else {
            MPI_Recv(parts, 1, type, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(memcmp(parts, whole, 8) == 0);
            CHECK(blocks < 2 || memcmp(parts + 13, whole + 8, 8) == 0);
            MPI_Send(parts, 1, type, 0, 2, MPI_COMM_WORLD);
        }
        MPI_Type_free(&type);
        free(whole);
        free(parts);
    }
}

/* Addresses instead of offsets. */
TEST(bottom_with_absolute_addresses_works, 2)
{
    static char first[5000], second[70];
    int lengths[] = {sizeof first, sizeof second};
    MPI_Aint places[2];
    MPI_Get_address(first, &places[0]);
    MPI_Get_address(second, &places[1]);
    MPI_Datatype type;
    MPI_Type_create_hindexed(2, lengths, places, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    if (rank == 0) {
        fill(first, sizeof first, 1);
        fill(second, sizeof second, 2);
        MPI_Ssend(MPI_BOTTOM, 1, type, 1, 0, MPI_COMM_WORLD);
    } else {
        MPI_Recv(MPI_BOTTOM, 1, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(filled(first, sizeof first, 1));
        CHECK(filled(second, sizeof second, 2));
    }
    MPI_Type_free(&type);
}

/* A type in one piece that begins elsewhere than at the address given: what is sent again and again
 * or buffered goes other ways through Open MPI. */
TEST(data_that_begins_past_the_address_is_sent_whole, 2)
{
    enum { LEN = 6000, LEAD = 64 };
    static char bytes[LEAD + LEN], room[LEN + LEAD + MPI_BSEND_OVERHEAD];
    for (int way = 0; way < 4; way++) {
        bool absolute = way % 2 != 0, buffered = way / 2 != 0;
        int length = LEN;
        MPI_Aint place = LEAD;
        if (absolute)
            MPI_Get_address(bytes + LEAD, &place);
        void *base = absolute ? MPI_BOTTOM : bytes;
        MPI_Datatype type;
        MPI_Type_create_hindexed(1, &length, &place, MPI_BYTE, &type);
        MPI_Type_commit(&type);
        MPI_Buffer_attach(room, sizeof room);
        fill(bytes + LEAD, LEN, rank == 0 ? (unsigned)way : 99);
        MPI_Request request;
        if (rank != 0)
            MPI_Recv_init(base, 1, type, 0, way, MPI_COMM_WORLD, &request);
        else if (buffered)
            MPI_Bsend_init(base, 1, type, 1, way, MPI_COMM_WORLD, &request);
        else
            MPI_Send_init(base, 1, type, 1, way, MPI_COMM_WORLD, &request);
        for (int round = 0; round < 3; round++) {
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            CHECK(filled(bytes + LEAD, LEN, (unsigned)way));
            MPI_Barrier(MPI_COMM_WORLD); /* Else buffered data may come back late. */
        }
        MPI_Request_free(&request);
        void *gone;
        int gone_bytes;
        MPI_Buffer_detach(&gone, &gone_bytes);
        MPI_Type_free(&type);
    }
}
