/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BTL packs data with gaps in the receiver's ring, when its caller prepares a fragment. Another
 * message that is sent before that fragment takes its place: the data moves out. The PML does that
 * only where threads meet at that moment; here the test is the BTL's caller.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ompi_config.h"

#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/bml/base/base.h"
#include "ompi/proc/proc.h"
#include "opal/mca/btl/base/base.h"

enum {
    TAG = MCA_BTL_TAG_USR,
    HEADER_BYTES = 16,
    BLOCK = 100,
    STRIDE = 130,
    BLOCKS = 80,
    LEN_BYTES = BLOCK * BLOCKS,
    OTHER_BYTES = 3000,
    ROUNDS = 50,
    MESSAGES = ROUNDS * 8,
};

static int rank;
static mca_btl_base_module_t *btl;
static struct mca_btl_base_endpoint_t *endpoint;
static unsigned char gaps[BLOCKS * STRIDE];
static MPI_Datatype type;

static void expect(bool is_right, const char *what)
{
    if (is_right)
        return;
    (void)fprintf(stderr, "rank %d: %s\n", rank, what);
    (void)MPI_Abort(MPI_COMM_WORLD, 1);
}

/* ---- receiving ------------------------------------------------------------------------------- */

/* A message is its number, its length, and bytes that follow from both. */
struct front {
    uint64_t number;
    uint64_t len_bytes;
};
_Static_assert(sizeof(struct front) == HEADER_BYTES, "the header of a fragment");

static uint64_t received;

static unsigned char byte_of(uint64_t number, size_t at)
{
    return (unsigned char)(number * 31 + at);
}

static void take(const mca_btl_base_segment_t *segment)
{
    const unsigned char *bytes = segment->seg_addr.pval;
    struct front front;
    memcpy(&front, bytes, sizeof front);
    expect(front.number == received, "messages do not come in the order in which they were sent");
    expect(front.len_bytes + HEADER_BYTES == segment->seg_len, "a message has another length");
    for (size_t i = 0; i < front.len_bytes; i++)
        expect(bytes[HEADER_BYTES + i] == byte_of(front.number, i), "a message has other bytes");
    received++;
}

#if OPAL_MAJOR_VERSION >= 5
static void came(mca_btl_base_module_t *from, const mca_btl_base_receive_descriptor_t *descriptor)
{
    (void)from;
    take(descriptor->des_segments);
}
#else
static void came(mca_btl_base_module_t *from, mca_btl_base_tag_t tag,
                 mca_btl_base_descriptor_t *descriptor, void *context)
{
    (void)from;
    (void)tag;
    (void)context;
    take(descriptor->des_segments);
}
#endif

/* ---- sending --------------------------------------------------------------------------------- */

static void find_btl(void)
{
    mca_btl_base_selected_module_t *each;
    OPAL_LIST_FOREACH(each, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t)
    if (strcmp(each->btl_component->btl_version.mca_component_name, "velo") == 0)
        btl = each->btl_module;
    expect(btl != NULL, "the job does not use btl velo");
    mca_bml_base_endpoint_t *all =
        mca_bml_base_get_endpoint(ompi_comm_peer_lookup(&ompi_mpi_comm_world.comm, !rank));
    for (size_t i = 0; i < mca_bml_base_btl_array_get_size(&all->btl_eager); i++) {
        mca_bml_base_btl_t *way = mca_bml_base_btl_array_get_index(&all->btl_eager, i);
        if (way->btl == btl)
            endpoint = way->btl_endpoint;
    }
    expect(endpoint != NULL, "btl velo does not reach the other rank");
}

static void ended(mca_btl_base_module_t *from, struct mca_btl_base_endpoint_t *to,
                  mca_btl_base_descriptor_t *descriptor, int status)
{
    (void)from;
    (void)to;
    (void)descriptor;
    expect(status == OPAL_SUCCESS, "a fragment was not sent");
}

static void put_front(mca_btl_base_descriptor_t *descriptor, uint64_t number, size_t len_bytes)
{
    const struct front front = {number, len_bytes};
    memcpy(descriptor->des_segments[0].seg_addr.pval, &front, sizeof front);
    descriptor->des_cbfunc = ended;
}

enum { FLAGS = MCA_BTL_DES_FLAGS_BTL_OWNERSHIP | MCA_BTL_DES_FLAGS_PRIORITY };

/* The data of a message that is sent as `number`. */
static mca_btl_base_descriptor_t *prepare(uint64_t number)
{
    opal_convertor_t convertor;
    size_t len_bytes = LEN_BYTES;
    for (size_t i = 0; i < LEN_BYTES; i++)
        gaps[i / BLOCK * STRIDE + i % BLOCK] = byte_of(number, i);
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &type->super, 1, gaps, 0,
                                             &convertor);
    mca_btl_base_descriptor_t *descriptor = btl->btl_prepare_src(
        btl, endpoint, &convertor, MCA_BTL_NO_ORDER, HEADER_BYTES, &len_bytes, FLAGS);
    OBJ_DESTRUCT(&convertor);
    memset(gaps, 0xee, sizeof gaps);
    expect(descriptor != NULL && len_bytes == LEN_BYTES, "a fragment is not prepared");
    put_front(descriptor, number, len_bytes);
    return descriptor;
}

static void send_one(mca_btl_base_descriptor_t *descriptor)
{
    expect(btl->btl_send(btl, endpoint, descriptor, TAG) >= 0, "a fragment is not taken");
}

static void send_other(uint64_t number)
{
    mca_btl_base_descriptor_t *descriptor =
        btl->btl_alloc(btl, endpoint, MCA_BTL_NO_ORDER, HEADER_BYTES + OTHER_BYTES, FLAGS);
    expect(descriptor != NULL, "there is no fragment");
    put_front(descriptor, number, OTHER_BYTES);
    unsigned char *bytes = descriptor->des_segments[0].seg_addr.pval;
    for (size_t i = 0; i < OTHER_BYTES; i++)
        bytes[HEADER_BYTES + i] = byte_of(number, i);
    send_one(descriptor);
}

/* Does the payload lie elsewhere than behind its header? */
static bool is_in_ring(const mca_btl_base_descriptor_t *descriptor)
{
    const mca_btl_base_segment_t *segments = descriptor->des_segments;
    return (char *)segments[1].seg_addr.pval != (char *)segments[0].seg_addr.pval + HEADER_BYTES;
}

static uint64_t round_of(uint64_t number)
{
    mca_btl_base_descriptor_t *first = prepare(number + 1);
    expect(number > 0 || is_in_ring(first), "data is not packed in the ring");
    send_other(number); /* The first one moves out. */
    expect(!is_in_ring(first), "the place is not given to the message that goes first");
    send_one(first);
    first = prepare(number + 3);
    mca_btl_base_descriptor_t *second = prepare(number + 2); /* Its place is taken. */
    send_one(second);
    send_one(first);
    first = prepare(number + 4); /* It is never sent: another takes the place. */
    (void)btl->btl_free(btl, first);
    send_one(prepare(number + 4));
    first = prepare(number + 6);
    second = prepare(number + 7);
    send_other(number + 5);
    send_one(first);
    send_one(second);
    return number + 8;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    mca_btl_base_active_message_trigger[TAG].cbfunc = came;
    MPI_Type_vector(BLOCKS, BLOCK, STRIDE, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    /* They are connected from now on. */
    MPI_Barrier(MPI_COMM_WORLD);
    find_btl();
    if (rank == 0) {
        for (uint64_t number = 0; number < MESSAGES; (void)btl->btl_component->btl_progress())
            number = round_of(number);
        received = MESSAGES;
    }
    while (received < MESSAGES)
        opal_progress();
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Type_free(&type);
    MPI_Finalize();
    return 0;
}
