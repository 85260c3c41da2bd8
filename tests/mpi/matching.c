/* SPDX-License-Identifier: Apache-2.0 */
/* Point-to-point semantics: order, wildcards, probes, modes, cancel, truncation. */
#include "mpi_test.h"

#include <stdlib.h>
#include <string.h>

#define MANY 3000

TEST(messages_of_one_pair_stay_in_order, 2)
{
    static int received[MANY];
    /* Lengths on both sides of every path, so that a fast one could overtake a slow one. */
    for (int i = 0; i < MANY; i++) {
        int len_bytes = edge_lengths[(size_t)i % 30] + (int)sizeof i;
        char *buf = must_alloc((size_t)len_bytes);
        MPI_Status status;
        if (rank == 0) {
            memcpy(buf, &i, sizeof i);
            MPI_Send(buf, len_bytes, MPI_BYTE, 1, i % 3, MPI_COMM_WORLD);
        } else {
            MPI_Recv(buf, len_bytes, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            memcpy(&received[i], buf, sizeof i);
            CHECK_EQ(received[i], i);
            CHECK_EQ(status.MPI_TAG, i % 3);
        }
        free(buf);
    }
}

TEST(receives_are_matched_in_the_order_of_posting, 2)
{
    enum { N = 500 };
    static int values[N];
    MPI_Request requests[N];
    if (rank == 1)
        for (int i = 0; i < N; i++)
            MPI_Irecv(&values[i], 1, MPI_INT, i % 2 ? MPI_ANY_SOURCE : 0, i % 3 ? 7 : MPI_ANY_TAG,
                      MPI_COMM_WORLD, &requests[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        for (int i = 0; i < N; i++)
            MPI_Send(&i, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
    if (rank == 1) {
        MPI_Waitall(N, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < N; i++)
            CHECK_EQ(values[i], i);
    }
}

/* A blocking receive takes a shorter way when it is the only one. Here it is not, or not the first
 * that fits, or its message came before it, or stands behind others. */
TEST(blocking_receives_are_matched_like_any_others, 2)
{
    enum { ROUNDS = 300 };
    for (int i = 0; i < ROUNDS; i++) {
        int sent[4] = {4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3}, got[4] = {-1, -1, -1, -1};
        MPI_Request request;
        MPI_Status status;
        if (rank == 0) {
            MPI_Recv(NULL, 0, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int n = 0; n < 4; n++)
                MPI_Send(&sent[n], 1, MPI_INT, 1, n < 3 ? 7 : 8, MPI_COMM_WORLD);
            continue;
        }
        if (i % 2) {
            MPI_Irecv(&got[0], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
            MPI_Send(NULL, 0, MPI_INT, 0, 1, MPI_COMM_WORLD);
        } else {
            MPI_Send(NULL, 0, MPI_INT, 0, 1, MPI_COMM_WORLD);
            MPI_Irecv(&got[0], 1, MPI_INT, 0, 7, MPI_COMM_WORLD, &request);
        }
        if (i % 3 == 0)
            MPI_Probe(0, 8, MPI_COMM_WORLD, &status); /* Takes in all that stands before. */
        MPI_Recv(&got[1], 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (i % 5 == 0)
            MPI_Recv(&got[3], 1, MPI_INT, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&got[2], 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &status);
        CHECK_EQ(status.MPI_SOURCE, 0);
        if (i % 5 != 0)
            MPI_Recv(&got[3], 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int n = 0; n < 4; n++)
            CHECK_EQ(got[n], sent[n]);
    }
}

TEST(a_blocking_receive_leaves_the_error_of_its_status_alone, 2)
{
    for (int i = 0; i < 200; i++) {
        MPI_Status status = {.MPI_ERROR = 12345};
        int value = i;
        if (rank == 0) {
            MPI_Send(&value, 1, MPI_INT, 1, i, MPI_COMM_WORLD);
            MPI_Recv(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            continue;
        }
        int count, source = i % 2 ? 0 : MPI_ANY_SOURCE, tag = i % 3 ? i : MPI_ANY_TAG;
        MPI_Recv(&value, 1, MPI_INT, source, tag, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_INT, &count);
        CHECK_EQ(count, 1);
        CHECK_EQ(status.MPI_SOURCE, 0);
        CHECK_EQ(status.MPI_TAG, i);
        CHECK_EQ(status.MPI_ERROR, 12345);
        MPI_Send(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
}

TEST(any_source_tells_who_sent, 4)
{
    if (rank == 0) {
        int from[4] = {0}, total = 50 * (ranks - 1);
        for (int i = 0; i < total; i++) {
            MPI_Status status;
            int value;
            MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            CHECK(status.MPI_SOURCE > 0 && status.MPI_SOURCE < ranks);
            CHECK_EQ(status.MPI_TAG, from[status.MPI_SOURCE]++);
            CHECK_EQ(value, 1000 * status.MPI_SOURCE + status.MPI_TAG);
        }
    } else {
        for (int i = 0; i < 50; i++) {
            int value = 1000 * rank + i;
            MPI_Send(&value, 1, MPI_INT, 0, i, MPI_COMM_WORLD);
        }
    }
}

TEST(communicators_and_tags_keep_messages_apart, 2)
{
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    int *max_tag, found, values[4] = {0};
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &max_tag, &found);
    CHECK(found && *max_tag >= 0x7ffffff0);
    if (rank == 0) {
        for (int i = 0; i < 4; i++)
            values[i] = i + 1;
        MPI_Send(&values[0], 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        MPI_Send(&values[1], 1, MPI_INT, 1, 0, other);
        MPI_Send(&values[2], 1, MPI_INT, 1, *max_tag, MPI_COMM_WORLD);
        MPI_Send(&values[3], 1, MPI_INT, 1, *max_tag, other);
    } else {
        MPI_Recv(&values[3], 1, MPI_INT, 0, *max_tag, other, MPI_STATUS_IGNORE);
        MPI_Recv(&values[1], 1, MPI_INT, 0, 0, other, MPI_STATUS_IGNORE);
        MPI_Recv(&values[2], 1, MPI_INT, 0, *max_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&values[0], 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < 4; i++)
            CHECK_EQ(values[i], i + 1);
    }
    MPI_Comm_free(&other);
}

TEST(intercommunicators_name_ranks_of_the_other_side, 4)
{
    MPI_Comm half, inter;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 9, &inter);
    int own, value = rank, got = -1;
    MPI_Comm_rank(half, &own);
    MPI_Status status;
    MPI_Sendrecv(&value, 1, MPI_INT, 1 - own, 3, &got, 1, MPI_INT, MPI_ANY_SOURCE, 3, inter,
                 &status);
    CHECK_EQ(status.MPI_SOURCE, 1 - own);
    CHECK_EQ(got, 2 * (1 - own) + 1 - rank % 2);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

TEST(a_rank_can_send_to_itself, 2)
{
    for (size_t i = 0; i < edge_count; i++) {
        size_t len_bytes = (size_t)edge_lengths[i];
        char *sent = must_alloc(len_bytes), *received = must_alloc(len_bytes);
        fill(sent, len_bytes, (unsigned)i);
        MPI_Sendrecv(sent, edge_lengths[i], MPI_BYTE, rank, 1, received, edge_lengths[i], MPI_BYTE,
                     rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(filled(received, len_bytes, (unsigned)i));
        free(sent);
        free(received);
    }
}

TEST(a_probe_tells_source_tag_and_length, 2)
{
    for (size_t i = 0; i < edge_count; i++) {
        int len_bytes = edge_lengths[i], tag = (int)i, count;
        char *buf = must_alloc((size_t)len_bytes);
        if (rank == 0) {
            fill(buf, (size_t)len_bytes, (unsigned)i);
            MPI_Send(buf, len_bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
        } else {
            MPI_Status status;
            MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_BYTE, &count);
            CHECK_EQ(count, len_bytes);
            CHECK_EQ(status.MPI_SOURCE, 0);
            CHECK_EQ(status.MPI_TAG, tag);
            int flag = 1;
            MPI_Iprobe(0, 1000, MPI_COMM_WORLD, &flag, &status);
            CHECK(!flag);
            MPI_Recv(buf, len_bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(filled(buf, (size_t)len_bytes, (unsigned)i));
        }
        free(buf);
    }
}

TEST(a_matched_probe_takes_the_message_out, 2)
{
    for (size_t i = 0; i < edge_count; i++) {
        int len_bytes = edge_lengths[i], count;
        char *first = must_alloc((size_t)len_bytes), *second = must_alloc((size_t)len_bytes);
        if (rank == 0) {
            fill(first, (size_t)len_bytes, 1);
            fill(second, (size_t)len_bytes, 2);
            MPI_Request requests[2];
            MPI_Isend(first, len_bytes, MPI_BYTE, 1, 4, MPI_COMM_WORLD, &requests[0]);
            MPI_Isend(second, len_bytes, MPI_BYTE, 1, 4, MPI_COMM_WORLD, &requests[1]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        } else {
            MPI_Message message;
            MPI_Status status;
            MPI_Mprobe(MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &message, &status);
            /* The second one: the first is taken. */
            MPI_Recv(second, len_bytes, MPI_BYTE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(filled(second, (size_t)len_bytes, 2));
            MPI_Get_count(&status, MPI_BYTE, &count);
            CHECK_EQ(count, len_bytes);
            if (i % 2 == 0) {
                MPI_Mrecv(first, len_bytes, MPI_BYTE, &message, &status);
            } else {
                MPI_Request request;
                MPI_Imrecv(first, len_bytes, MPI_BYTE, &message, &request);
                MPI_Wait(&request, &status);
            }
            CHECK(message == MPI_MESSAGE_NULL);
            CHECK_EQ(status.MPI_SOURCE, 0);
            CHECK(filled(first, (size_t)len_bytes, 1));
            int flag;
            MPI_Improbe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &status);
            CHECK(!flag);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        free(first);
        free(second);
    }
}

TEST(a_synchronous_send_ends_after_its_match, 2)
{
    for (size_t i = 0; i < edge_count; i++) {
        int len_bytes = edge_lengths[i], flag = 0;
        char *buf = must_alloc((size_t)len_bytes);
        if (rank == 0) {
            MPI_Request request;
            fill(buf, (size_t)len_bytes, 3);
            MPI_Issend(buf, len_bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
            for (int n = 0; n < 200; n++) {
                MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
                CHECK(!flag); /* The receive comes after the message below. */
            }
            MPI_Send(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_Ssend(buf, len_bytes, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
        } else {
            MPI_Recv(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int tag = 1; tag <= 3; tag += 2) {
                memset(buf, 0, (size_t)len_bytes);
                MPI_Recv(buf, len_bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                CHECK(filled(buf, (size_t)len_bytes, 3));
            }
        }
        free(buf);
    }
}

TEST(buffered_and_ready_sends_arrive, 2)
{
    size_t room_bytes = 4u << 20;
    char *room = must_alloc(room_bytes);
    MPI_Buffer_attach(room, (int)room_bytes);
    for (size_t i = 0; i < edge_count; i++) {
        int len_bytes = edge_lengths[i];
        char *buf = must_alloc((size_t)len_bytes);
        MPI_Request request;
        if (rank == 0) {
            fill(buf, (size_t)len_bytes, 8);
            MPI_Bsend(buf, len_bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
            memset(buf, 0, (size_t)len_bytes); /* Buffered: ours again at once. */
            MPI_Recv(NULL, 0, MPI_BYTE, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            fill(buf, (size_t)len_bytes, 9);
            MPI_Rsend(buf, len_bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
        } else {
            MPI_Recv(buf, len_bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(filled(buf, (size_t)len_bytes, 8));
            MPI_Irecv(buf, len_bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &request);
            MPI_Send(NULL, 0, MPI_BYTE, 0, 9, MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            CHECK(filled(buf, (size_t)len_bytes, 9));
        }
        free(buf);
    }
    int size;
    MPI_Buffer_detach(&room, &size);
    free(room);
}

TEST(persistent_requests_start_again_and_again, 2)
{
    static char out[5000], in[5000];
    MPI_Request requests[2];
    MPI_Send_init(out, sizeof out, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(in, sizeof in, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, &requests[1]);
    for (unsigned i = 0; i < 200; i++) {
        fill(out, sizeof out, i);
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK(filled(in, sizeof in, i));
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

/* One kind of persistent send, started three times with other data. */
static void start_thrice(int kind, int count, MPI_Datatype type, size_t stride, int *out, int *in)
{
    static int (*const init[])(const void *, int, MPI_Datatype, int, int, MPI_Comm,
                               MPI_Request *) = {MPI_Send_init, MPI_Bsend_init, MPI_Ssend_init,
                                                 MPI_Rsend_init};
    MPI_Request requests[2];
    size_t len_bytes = (size_t)count * stride * sizeof *out;
    MPI_Recv_init(in, count, type, 1 - rank, kind, MPI_COMM_WORLD, &requests[0]);
    init[kind](out, count, type, 1 - rank, kind, MPI_COMM_WORLD, &requests[1]);
    for (unsigned round = 0; round < 3; round++) {
        MPI_Status status;
        int got;
        fill(out, len_bytes, round + (unsigned)rank);
        MPI_Start(&requests[0]);
        MPI_Barrier(MPI_COMM_WORLD); /* A ready send needs its receive. */
        MPI_Start(&requests[1]);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        MPI_Wait(&requests[0], &status);
        MPI_Get_count(&status, type, &got);
        CHECK_EQ(got, count);
        CHECK_EQ(status.MPI_SOURCE, 1 - rank);
        fill(out, len_bytes, round + 1 - (unsigned)rank);
        for (size_t i = 0; i < (size_t)count; i++)
            CHECK_EQ(in[i * stride], out[i * stride]);
        MPI_Barrier(MPI_COMM_WORLD); /* Else buffered data may come back late. */
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

TEST(each_kind_of_persistent_send_sends_what_is_there_when_it_starts, 2)
{
    static const int counts[] = {0, 1, 100, 2000, 300000};
    static int out[600000], in[600000];
    static char room[4 << 20];
    MPI_Datatype one, strided;
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &strided);
    MPI_Type_commit(&strided);
    MPI_Type_dup(MPI_INT, &one); /* May be freed while requests use it. */
    MPI_Buffer_attach(room, sizeof room);
    for (int kind = 0; kind < 4; kind++) {
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            start_thrice(kind, counts[i], one, 1, out, in);
            start_thrice(kind, counts[i], strided, 2, out, in);
        }
    }
    void *gone;
    int gone_bytes;
    MPI_Buffer_detach(&gone, &gone_bytes);
    MPI_Type_free(&one);
    MPI_Type_free(&strided);
}

TEST(a_buffered_persistent_send_keeps_its_type_and_goes_with_others, 2)
{
    static int out[3], in[3], room[4096];
    MPI_Request requests[6];
    MPI_Buffer_attach(room, sizeof room);
    for (int i = 0; i < 3; i++) {
        MPI_Datatype type;
        MPI_Type_dup(MPI_INT, &type);
        MPI_Recv_init(&in[i], 1, type, 1 - rank, i, MPI_COMM_WORLD, &requests[2 * i]);
        (i == 1 ? MPI_Bsend_init : MPI_Send_init)(&out[i], 1, type, 1 - rank, i, MPI_COMM_WORLD,
                                                  &requests[2 * i + 1]);
        MPI_Type_free(&type);
    }
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 3; i++)
            out[i] = 100 * round + 10 * i + rank;
        MPI_Startall(6, requests);
        MPI_Waitall(6, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 3; i++)
            CHECK_EQ(in[i], 100 * round + 10 * i + 1 - rank);
    }
    for (int i = 0; i < 6; i++)
        MPI_Request_free(&requests[i]);
    void *gone;
    int gone_bytes;
    MPI_Buffer_detach(&gone, &gone_bytes);
}

TEST(a_cancelled_receive_takes_no_message, 2)
{
    static char wrong[4096], right[4096];
    for (int packed = 0; packed < 2; packed++) {
        MPI_Datatype type;
        MPI_Type_vector(512, 4, 8, MPI_BYTE, &type);
        MPI_Type_commit(&type);
        if (rank == 1) {
            MPI_Request request;
            MPI_Status status;
            int flag;
            memset(wrong, 0x5a, sizeof wrong);
            MPI_Irecv(wrong, packed ? 1 : 2048, packed ? type : MPI_BYTE, 0, 6, MPI_COMM_WORLD,
                      &request);
            MPI_Cancel(&request);
            MPI_Wait(&request, &status);
            MPI_Test_cancelled(&status, &flag);
            CHECK(flag);
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Recv(right, 2048, MPI_BYTE, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(filled(right, 2048, 4));
            for (size_t i = 0; i < sizeof wrong; i++)
                CHECK_EQ(wrong[i], 0x5a);
        } else {
            MPI_Barrier(MPI_COMM_WORLD);
            fill(right, 2048, 4);
            MPI_Send(right, 2048, MPI_BYTE, 1, 6, MPI_COMM_WORLD);
        }
        MPI_Type_free(&type);
    }
}

/* Their communicator is freed, too, while they wait. */
TEST(freed_receives_still_take_their_messages, 2)
{
    enum { COUNT = 100 };
    static volatile int values[COUNT];
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (rank == 0) {
        for (int i = 0; i < COUNT; i++) {
            MPI_Request request;
            MPI_Irecv((void *)&values[i], 1, MPI_INT, 1, i, comm, &request);
            MPI_Request_free(&request);
            CHECK(request == MPI_REQUEST_NULL);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = COUNT - 1; rank == 1 && i >= 0; i--)
        MPI_Send(&(int){i + 1}, 1, MPI_INT, 0, i, comm);
    MPI_Comm_free(&comm);
    for (int i = 0; rank == 0 && i < COUNT; i++) {
        while (values[i] == 0)
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &(int){0}, MPI_STATUS_IGNORE);
        CHECK_EQ(values[i], i + 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void truncate_messages(bool guarded)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (size_t i = 1; i < edge_count; i++) {
        int len_bytes = edge_lengths[i], cap_bytes = len_bytes / 2, class_;
        size_t guarded_bytes = (size_t)len_bytes + 64;
        for (int posted_first = 0; posted_first < 2; posted_first++) {
            char *buf = must_alloc(guarded_bytes);
            memset(buf, 0x33, guarded_bytes);
            if (rank == 0) {
                MPI_Barrier(MPI_COMM_WORLD);
                MPI_Send(buf, len_bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
                MPI_Barrier(MPI_COMM_WORLD);
            } else {
                MPI_Request request;
                memset(buf, 0x77, guarded_bytes);
                if (posted_first)
                    MPI_Irecv(buf, cap_bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request);
                MPI_Barrier(MPI_COMM_WORLD);
                if (!posted_first)
                    MPI_Irecv(buf, cap_bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request);
                int error = MPI_Wait(&request, MPI_STATUS_IGNORE);
                MPI_Error_class(error, &class_);
                CHECK_EQ(class_, MPI_ERR_TRUNCATE);
                for (size_t at = (size_t)cap_bytes; guarded && at < guarded_bytes; at++)
                    CHECK_EQ(buf[at], 0x77);
                MPI_Barrier(MPI_COMM_WORLD);
            }
            free(buf);
        }
    }
}

TEST(too_long_a_message_is_a_truncation_error, 2) { truncate_messages(false); }
/* Over the MTL only: Open MPI's ob1 itself writes past the buffer, over vader too. */
TEST(truncation_writes_nothing_past_the_buffer, 2) { truncate_messages(true); }

TEST(everybody_may_send_large_messages_first, 4)
{
    enum { LEN = 3 << 20 };
    char *out = must_alloc(LEN), *in[4] = {NULL};
    MPI_Request requests[8];
    int n = 0;
    fill(out, LEN, (unsigned)rank);
    for (int peer = 0; peer < ranks; peer++)
        if (peer != rank)
            MPI_Isend(out, LEN, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests[n++]);
    for (int peer = 0; peer < ranks; peer++) {
        in[peer] = must_alloc(LEN);
        if (peer != rank)
            MPI_Irecv(in[peer], LEN, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests[n++]);
    }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    for (int peer = 0; peer < ranks; peer++) {
        CHECK(peer == rank || filled(in[peer], LEN, (unsigned)peer));
        free(in[peer]);
    }
    free(out);
}

TEST(ten_thousand_unexpected_messages_wait, 2)
{
    enum { N = 10000 };
    if (rank == 0) {
        for (int i = 0; i < N; i++)
            MPI_Send(&i, 1, MPI_INT, 1, i, MPI_COMM_WORLD);
        MPI_Send(NULL, 0, MPI_BYTE, 1, N, MPI_COMM_WORLD);
    } else {
        int value;
        MPI_Recv(NULL, 0, MPI_BYTE, 0, N, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = N - 1; i >= 0; i--) {
            MPI_Recv(&value, 1, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK_EQ(value, i);
        }
    }
}

/* MPI sets it in calls that have many, and only there. */
static void check_kept(const char *call, MPI_Status *status)
{
    if (status->MPI_ERROR != MPI_ERR_DIMS)
        mpi_test_fail(__FILE__, __LINE__, "%s sets MPI_ERROR to %d", call, status->MPI_ERROR);
    CHECK_EQ(status->MPI_SOURCE, 0);
}

#define CHECK_KEEPS(call)                                                                          \
    do {                                                                                           \
        status = (MPI_Status){.MPI_SOURCE = -7, .MPI_ERROR = MPI_ERR_DIMS};                        \
        call;                                                                                      \
        check_kept(#call, &status);                                                                \
    } while (0)

static void receive_each_way(MPI_Datatype gaps)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Request request;
    MPI_Message message;
    MPI_Status status;
    int words[4], found = 0, index;
    CHECK_KEEPS(MPI_Probe(0, 0, comm, &status));
    CHECK_KEEPS(while (!found) MPI_Iprobe(0, 0, comm, &found, &status));
    CHECK_KEEPS(MPI_Recv(words, 1, MPI_INT, 0, 0, comm, &status));
    CHECK_KEEPS(MPI_Mprobe(0, 1, comm, &message, &status));
    CHECK_KEEPS(MPI_Mrecv(words, 1, MPI_INT, &message, &status));
    found = 0;
    CHECK_KEEPS(while (!found) MPI_Improbe(0, 2, comm, &found, &message, &status));
    MPI_Imrecv(words, 1, MPI_INT, &message, &request);
    CHECK_KEEPS(MPI_Wait(&request, &status));
    MPI_Irecv(words, 1, MPI_INT, 0, 3, comm, &request);
    found = 0;
    CHECK_KEEPS(while (!found) MPI_Test(&request, &found, &status));
    MPI_Irecv(words, 1, MPI_INT, 0, 4, comm, &request);
    CHECK_KEEPS(MPI_Waitany(1, &request, &index, &status));
    CHECK_KEEPS(MPI_Recv(words, 1, gaps, 0, 5, comm, &status));
    CHECK_KEEPS(
        MPI_Sendrecv(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, words, 1, MPI_INT, 0, 6, comm, &status));
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    CHECK_KEEPS(CHECK_EQ(MPI_Recv(words, 0, MPI_INT, 0, 7, comm, &status), MPI_ERR_TRUNCATE));
}

/* The bound for unexpected messages must not hide the one that is asked for (64 MiB for each rank,
 * of which one sender gets half). */
TEST(a_message_behind_more_unexpected_ones_than_fit_arrives, 2)
{
    enum { AHEAD = 20000, AHEAD_BYTES = 4000, WAYS = 3 };
    static char buf[AHEAD_BYTES];
    for (int way = 0; way < WAYS; way++) {
        if (rank == 0) {
            MPI_Request *requests = must_alloc((AHEAD + 1) * sizeof *requests);
            for (int i = 0; i <= AHEAD; i++)
                MPI_Isend(buf, AHEAD_BYTES, MPI_CHAR, 1, i < AHEAD ? 1 : 2, MPI_COMM_WORLD,
                          &requests[i]);
            MPI_Waitall(AHEAD + 1, requests, MPI_STATUSES_IGNORE);
            free(requests);
        } else {
            int found = way != 1;
            while (!found)
                MPI_Iprobe(0, 2, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
            MPI_Recv(buf, AHEAD_BYTES, MPI_CHAR, way == 2 ? MPI_ANY_SOURCE : 0, 2, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            for (int i = 0; i < AHEAD; i++)
                MPI_Recv(buf, AHEAD_BYTES, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
}

TEST(a_call_with_one_status_keeps_its_error_field, 2)
{
    enum { TAGS = 8 };
    const int words[4] = {0};
    MPI_Datatype gaps;
    MPI_Type_vector(2, 1, 2, MPI_INT, &gaps);
    MPI_Type_commit(&gaps);
    for (int tag = 0; tag < TAGS && rank == 0; tag++)
        MPI_Send(words, 1, tag == 5 ? gaps : MPI_INT, 1, tag, MPI_COMM_WORLD);
    if (rank == 1)
        receive_each_way(gaps);
    MPI_Type_free(&gaps);
}

/* ---- waiting for all ------------------------------------------------------------------------- */

enum kind { EARLY, NONE, SEND, PERSISTENT, CANCELLED, GAPS, LARGE, LATE, KINDS };
enum { LARGE_INTS = 100000 };

/* How the requests are waited for: each kind comes first; the last message is longer than its
 * receive, or all requests have ended before. With both Open MPI's own wait for all never ends. A
 * rank that stands still for a moment may find both, so where Open MPI's own is used, which is
 * where threads are allowed, no message is longer than its receive.
 */
struct round {
    int first;
    bool cut;
    bool ended;
};

static int values[KINDS][2], large[LARGE_INTS];

/* Start one request of each kind. The rest is sent once rank 0 has our last message. */
static void start_every_kind(MPI_Request *by_kind, const int *word, MPI_Datatype gaps)
{
    memset(values, 0, sizeof values);
    memset(large, 0, sizeof large);
    by_kind[NONE] = MPI_REQUEST_NULL;
    MPI_Probe(0, EARLY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Irecv(values[EARLY], 1, MPI_INT, 0, EARLY, MPI_COMM_WORLD, &by_kind[EARLY]);
    MPI_Isend(word, 1, MPI_INT, 0, SEND, MPI_COMM_WORLD, &by_kind[SEND]);
    MPI_Recv_init(values[PERSISTENT], 1, MPI_INT, 0, PERSISTENT, MPI_COMM_WORLD,
                  &by_kind[PERSISTENT]);
    MPI_Start(&by_kind[PERSISTENT]);
    MPI_Irecv(values[CANCELLED], 1, MPI_INT, 0, CANCELLED, MPI_COMM_WORLD, &by_kind[CANCELLED]);
    MPI_Cancel(&by_kind[CANCELLED]);
    MPI_Irecv(large, 1, gaps, 0, GAPS, MPI_COMM_WORLD, &by_kind[GAPS]);
    MPI_Irecv(large + 4, LARGE_INTS - 4, MPI_INT, MPI_ANY_SOURCE, LARGE, MPI_COMM_WORLD,
              &by_kind[LARGE]);
    MPI_Irecv(values[LATE], 1, MPI_INT, 0, LATE, MPI_COMM_WORLD, &by_kind[LATE]);
    MPI_Send(word, 1, MPI_INT, 0, LATE, MPI_COMM_WORLD);
}

/* The status of a request that has ended, with an error or without. Returns the error's class. */
static int check_ended(int kind, const MPI_Status *status, int error)
{
    int flag, count, class_ = MPI_SUCCESS;
    MPI_Test_cancelled(status, &flag);
    CHECK_EQ(flag, kind == CANCELLED);
    if (error != MPI_SUCCESS) {
        MPI_Error_class(error, &class_);
        CHECK_EQ(kind, LATE);
    } else if (kind != NONE && kind != SEND && kind != CANCELLED) {
        MPI_Get_count(status, MPI_INT, &count);
        CHECK_EQ(count, kind == LARGE ? LARGE_INTS - 4 : kind == GAPS ? 2 : 1);
        CHECK_EQ(status->MPI_SOURCE, 0);
        CHECK_EQ(status->MPI_TAG, kind);
    }
    return class_;
}

static void check_values(bool cut)
{
    CHECK_EQ(values[EARLY][0], EARLY + 1);
    CHECK_EQ(values[PERSISTENT][0], PERSISTENT + 1);
    CHECK_EQ(values[CANCELLED][0], 0);
    CHECK(large[0] == GAPS + 1 && large[1] == 0 && large[2] == GAPS + 1 && large[3] == 0);
    for (int i = 4; i < LARGE_INTS; i++)
        CHECK_EQ(large[i], LARGE + 1);
    CHECK(cut || values[LATE][0] == LATE + 1);
}

/* Rank 1 waits for one request of each kind. */
static void wait_for_every_kind(struct round round, MPI_Datatype gaps)
{
    MPI_Request requests[KINDS], by_kind[KINDS];
    MPI_Status statuses[KINDS];
    bool seen[KINDS] = {false};
    int last, word = 7 + round.first, class_ = MPI_SUCCESS;
    memset(statuses, 0x7f, sizeof statuses);
    start_every_kind(by_kind, &word, gaps);
    for (int i = 0; i < KINDS; i++)
        requests[i] = by_kind[(round.first + i) % KINDS];
    if (round.ended)
        MPI_Recv(&last, 1, MPI_INT, 0, KINDS, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int left = KINDS; left > 0;) { /* After an error some may be pending still. */
        bool some_failed = MPI_Waitall(KINDS, requests, statuses) == MPI_ERR_IN_STATUS;
        for (int i = 0; i < KINDS; i++) {
            int kind = (round.first + i) % KINDS;
            int error = some_failed ? statuses[i].MPI_ERROR : MPI_SUCCESS;
            if (seen[kind] || error == MPI_ERR_PENDING)
                continue;
            seen[kind] = true;
            left--;
            int of_this = check_ended(kind, &statuses[i], error);
            class_ = of_this != MPI_SUCCESS ? of_this : class_;
            CHECK(requests[i] == (kind == PERSISTENT ? by_kind[PERSISTENT] : MPI_REQUEST_NULL));
        }
    }
    CHECK_EQ(class_, round.cut ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
    check_values(round.cut);
    MPI_Request_free(&by_kind[PERSISTENT]);
}

static void send_every_kind(struct round round)
{
    int word;
    MPI_Send(&(int){EARLY + 1}, 1, MPI_INT, 1, EARLY, MPI_COMM_WORLD);
    MPI_Recv(&word, 1, MPI_INT, 1, LATE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&(int){PERSISTENT + 1}, 1, MPI_INT, 1, PERSISTENT, MPI_COMM_WORLD);
    MPI_Send((int[]){GAPS + 1, GAPS + 1}, 2, MPI_INT, 1, GAPS, MPI_COMM_WORLD);
    for (int i = 0; i < LARGE_INTS; i++)
        large[i] = LARGE + 1;
    MPI_Send(large, LARGE_INTS - 4, MPI_INT, 1, LARGE, MPI_COMM_WORLD);
    MPI_Send((int[]){LATE + 1, LATE + 1}, round.cut ? 2 : 1, MPI_INT, 1, LATE, MPI_COMM_WORLD);
    if (round.ended)
        MPI_Send(&word, 1, MPI_INT, 1, KINDS, MPI_COMM_WORLD);
    MPI_Recv(&word, 1, MPI_INT, 1, SEND, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_EQ(word, 7 + round.first);
}

TEST(a_wait_for_all_takes_requests_of_every_kind, 2)
{
    MPI_Datatype gaps;
    MPI_Type_vector(2, 1, 2, MPI_INT, &gaps);
    MPI_Type_commit(&gaps);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int level;
    MPI_Query_thread(&level);
    for (int i = 0; i < 3 * KINDS; i++) {
        struct round round = {
            .first = i / 3, .cut = i % 3 == 1 && level == MPI_THREAD_SINGLE, .ended = i % 3 == 2};
        if (rank == 1)
            wait_for_every_kind(round, gaps);
        else
            send_every_kind(round);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Type_free(&gaps);
}

/* With threads Open MPI's own wait for all never ends then. */
TEST(a_wait_for_all_tells_of_receives_that_failed_before, 2)
{
    int words[3] = {0}, error, class_;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        for (int tag = 0; tag < 3; tag++)
            MPI_Send((int[]){tag + 1, tag + 1}, tag == 1 ? 2 : 1, MPI_INT, 1, tag, MPI_COMM_WORLD);
        return;
    }
    MPI_Request requests[2];
    MPI_Status statuses[2];
    for (int tag = 0; tag < 2; tag++)
        MPI_Irecv(&words[tag], 1, MPI_INT, 0, tag, MPI_COMM_WORLD, &requests[tag]);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Recv(&words[2], 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    error = MPI_Waitall(2, requests, statuses);
    CHECK_EQ(error, MPI_ERR_IN_STATUS);
    CHECK_EQ(statuses[0].MPI_ERROR, MPI_SUCCESS);
    MPI_Error_class(statuses[1].MPI_ERROR, &class_);
    CHECK_EQ(class_, MPI_ERR_TRUNCATE);
    CHECK(words[0] == 1 && words[2] == 3);
}
