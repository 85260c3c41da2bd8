/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file coll_velo.h
 * @brief Collectives of ranks on one machine, over lines of memory that they share.
 *
 * Each communicator has its own memory, with an area for each rank that only this rank writes: a
 * word that says which collectives it has left, slots, and data. A **slot** is one line: 56 bytes
 * of payload and the flag that publishes them. A longer contribution lies in the data area, and the
 * slot's flag publishes that. A flag is the number of the collective and the length, so nothing is
 * ever cleared. Collectives take the slots in turn (**banks**), and the data in turn.
 *
 * A slot is used again once every rank has left the collective that used it last. Mostly that is
 * known without a look: a collective in which each rank waits for each other tells it.
 *
 * The memory is made at a collective, since only there all ranks are known to come; see setup.c.
 * What the component does not do itself it hands to the functions that the communicator had before.
 */
#ifndef VELO_MPI_COLL_VELO_H
#define VELO_MPI_COLL_VELO_H

#include "ompi_config.h"

#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/op/op.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/compat.h"
#include "order.h"

#define COLL_VELO_RANKS_MAX 1024
#define COLL_VELO_BYTES_MAX 4096u /**< Of a rank's contribution. */
#define COLL_VELO_LINE_BYTES 64u
#define COLL_VELO_INLINE_BYTES 56u
#define COLL_VELO_PAGE_BYTES 4096u
#define COLL_VELO_BANKS 8u
#define COLL_VELO_DATA_BANKS 4u
/** Up to this many ranks read each other; more form groups of this many. */
#define COLL_VELO_GROUP 8
/** Blocks of COLL_VELO_BYTES_MAX in a bank of data: a rank's contributions in stages take one for
 *  each stage, those to an alltoall one for each rank, and up to two banks. */
#define COLL_VELO_BANK_BLOCKS 4
#define COLL_VELO_BANKS_TAKEN 2u

/** A rank's contributions to one collective; see reduce.c. */
enum coll_velo_stage {
    STAGE_LEADER, /**< To everybody, or to the leaders if there are groups. */
    STAGE_MEMBER, /**< To the leader of its group. */
    STAGE_RESULT, /**< From the leader to its group. */
    STAGES,
};

struct coll_velo_slot {
    uint8_t payload[COLL_VELO_INLINE_BYTES];
    uint64_t flag;
} __attribute__((aligned(COLL_VELO_LINE_BYTES)));

/** The first page of a rank's area; its data follow. */
struct coll_velo_area {
    uint64_t done;    /**< The last collective that the rank has left. */
    uint64_t started; /**< When the process began, in ticks; tells it from a later one. */
    int64_t pid;
    struct coll_velo_slot slots[STAGES][COLL_VELO_BANKS];
};
_Static_assert(sizeof(struct coll_velo_area) <= COLL_VELO_PAGE_BYTES, "the slots fit in a page");

enum coll_velo_state {
    COLL_VELO_WAITING, /**< For a communicator that is used more than once. */
    COLL_VELO_MAKING,  /**< The memory; collectives go to the functions from before. */
    COLL_VELO_READY,
    COLL_VELO_OFF, /**< These ranks share no memory. */
};

/** A function that the communicator had before, with its module. */
#define COLL_VELO_PREVIOUS(name)                                                                   \
    mca_coll_base_module_##name##_fn_t name;                                                       \
    mca_coll_base_module_t *name##_module

struct coll_velo_previous {
    COLL_VELO_PREVIOUS(allgather);
    COLL_VELO_PREVIOUS(allreduce);
    COLL_VELO_PREVIOUS(alltoall);
    COLL_VELO_PREVIOUS(barrier);
    COLL_VELO_PREVIOUS(bcast);
    COLL_VELO_PREVIOUS(reduce);
};

/** Private memory that grows when needed. */
struct coll_velo_scratch {
    uint8_t *bytes;
    size_t cap_bytes;
};

/** A communicator's. MPI allows one collective at a time, so nothing is locked. */
typedef struct coll_velo_module {
    mca_coll_base_module_t super;
    enum coll_velo_state state;
    size_t bytes_max;  /**< Of a contribution; before there are data areas, what a slot holds. */
    size_t blocks_max; /**< The same for all blocks that a rank sends in an alltoall. */
    uint64_t sequence; /**< Of the last collective begun. */
    uint64_t known;    /**< All ranks have left this one. */
    uint8_t *areas;    /**< Mapped. */
    size_t area_bytes;
    struct coll_velo_area *own;
    int rank, ranks;
    int group; /**< Ranks in a group; 1: each is a leader. */
    uint32_t spins;
    bool crowded;     /**< Ranks outnumber cores: a rank that waits gives its core away. */
    bool has_no_data; /**< Some rank got no memory for them. */
    int failed;       /**< What this rank's collectives end with: see coll_velo_fail(). */
    size_t data_bank_bytes;
    uint32_t data_turn;
    uint64_t data_sequence[COLL_VELO_DATA_BANKS]; /**< The collective that used it last. */
    uint32_t calls;                               /**< Before the memory was made. */
    struct coll_velo_scratch folded, unpacked;
    struct coll_velo_previous previous;
} coll_velo_module_t;
OBJ_CLASS_DECLARATION(coll_velo_module_t);

struct coll_velo_component {
    mca_coll_base_component_t super;
    int priority;
    unsigned after;     /**< The first collectives of a communicator that go elsewhere. */
    unsigned bytes_max; /**< Longer contributions go elsewhere. */
    unsigned spins;     /**< Looks at a flag before a rank does something else. */
    unsigned group;     /**< Ranks in a group; 0: by their number. */
};
VELO_OMPI_COMPONENT extern struct coll_velo_component mca_coll_velo_component;

/* ---- who takes part: peers.c ----------------------------------------------------------------- */

/** Tell the others what this rank is able to do; before they can ask, and once it is able to. */
int coll_velo_announce(void);
/** Can all ranks share memory, and with the same settings? Every rank comes to the same answer; one
 *  that cannot look ends the job. */
bool coll_velo_peers_match(ompi_communicator_t *comm);
int coll_velo_peers_init(void);
void coll_velo_peers_close(void);

#define COLL_VELO_UNKNOWN UINT64_MAX
/** When a process began, in ticks since the boot; 0: there is none, or it is dead;
 *  COLL_VELO_UNKNOWN: the system does not say. */
uint64_t coll_velo_process_started(int64_t pid);

/* ---- memory: memory.c, setup.c --------------------------------------------------------------- */

/** What a rank must know to map the memory that another one made. */
struct coll_velo_invitation {
    int64_t pid;
    int64_t fd; /**< Of that process; negative: it has failed. */
    uint64_t device, inode, size_bytes;
};

/** Make the memory of a communicator and map it. The invitation's descriptor is to be closed once
 *  all have come. */
void coll_velo_memory_make(coll_velo_module_t *module, struct coll_velo_invitation *invitation);
/** Map what another rank has made. */
bool coll_velo_memory_join(coll_velo_module_t *module,
                           const struct coll_velo_invitation *invitation);
/** Have these pages of our own area, so that no later access can fail. */
bool coll_velo_memory_have(void *from, size_t len_bytes);
void coll_velo_memory_drop(coll_velo_module_t *module);

/** Make what a collective with slots of that length needs. False: it is not ours. All ranks come to
 *  the same answer. */
bool coll_velo_prepare(coll_velo_module_t *module, ompi_communicator_t *comm, size_t len_bytes);

/** This rank could not hear what the ranks have agreed on: each collective ends with this error. */
void coll_velo_fail(coll_velo_module_t *module, int rc);

/** Are contributions of that many bytes ours to carry? All ranks come to the same answer. */
static inline bool coll_velo_takes(coll_velo_module_t *module, ompi_communicator_t *comm,
                                   size_t len_bytes)
{
    if (__builtin_expect(module->state == COLL_VELO_READY && len_bytes <= module->bytes_max, 1))
        return true;
    return len_bytes <= mca_coll_velo_component.bytes_max &&
           coll_velo_prepare(module, comm, len_bytes);
}

/** A bank of data of a communicator of so many ranks. */
static inline size_t coll_velo_bank_bytes(int ranks)
{
    int blocks = ranks < COLL_VELO_BANK_BLOCKS ? ranks : COLL_VELO_BANK_BLOCKS;
    return (size_t)(blocks > STAGES ? blocks : STAGES) * COLL_VELO_BYTES_MAX;
}

/** All blocks that a rank sends in an alltoall lie in its data area together. */
static inline size_t coll_velo_blocks_max(int ranks)
{
    return COLL_VELO_BANKS_TAKEN * coll_velo_bank_bytes(ranks);
}

static inline struct coll_velo_area *coll_velo_area(const coll_velo_module_t *module, int rank)
{
    return (struct coll_velo_area *)(module->areas + (size_t)rank * module->area_bytes);
}

/* ---- one collective: exchange.c -------------------------------------------------------------- */

/** One collective, as a rank sees it. */
struct coll_velo_round {
    uint64_t flag; /**< The number and the length, as every slot has them. */
    size_t bank;
    size_t data_at; /**< Where in each area the data lie; 0: in the slot. */
};

/** Slow ways: wait for a flag, or until all ranks have left a collective. MPI's error. */
int coll_velo_await_long(const coll_velo_module_t *module, int rank, const uint64_t *flag,
                         uint64_t expected);
int coll_velo_await_left(coll_velo_module_t *module, uint64_t sequence);
/** Choose where the data of this round lie. */
int coll_velo_begin_data(coll_velo_module_t *module, size_t len_bytes,
                         struct coll_velo_round *round);

#define COLL_VELO_LEN_BITS 16

/** Begin a collective in which each slot holds that many bytes. MPI's error. */
static inline int coll_velo_begin(coll_velo_module_t *module, size_t len_bytes,
                                  struct coll_velo_round *round)
{
    uint64_t sequence = ++module->sequence;
    round->flag = sequence << COLL_VELO_LEN_BITS | len_bytes;
    round->bank = sequence % COLL_VELO_BANKS;
    round->data_at = 0;
    if (__builtin_expect(module->known + COLL_VELO_BANKS < sequence, 0)) {
        int rc = coll_velo_await_left(module, sequence - COLL_VELO_BANKS);
        if (rc != OMPI_SUCCESS)
            return rc;
    }
    return __builtin_expect(len_bytes > COLL_VELO_INLINE_BYTES, 0)
               ? coll_velo_begin_data(module, len_bytes, round)
               : OMPI_SUCCESS;
}

/** Where a rank's contribution lies. */
static inline uint8_t *coll_velo_place(const coll_velo_module_t *module,
                                       const struct coll_velo_round *round, int rank,
                                       enum coll_velo_stage stage)
{
    struct coll_velo_area *area = coll_velo_area(module, rank);
    if (round->data_at == 0)
        return area->slots[stage][round->bank].payload;
    /* An alltoall has more than a block, but only this stage. */
    return (uint8_t *)area + round->data_at + stage * COLL_VELO_BYTES_MAX;
}

static inline void coll_velo_post(const coll_velo_module_t *module,
                                  const struct coll_velo_round *round, enum coll_velo_stage stage)
{
    coll_velo_publish(&module->own->slots[stage][round->bank].flag, round->flag);
}

/** Wait for a rank's contribution. MPI's error. */
static inline int coll_velo_await(const coll_velo_module_t *module,
                                  const struct coll_velo_round *round, int rank,
                                  enum coll_velo_stage stage)
{
    const uint64_t *flag = &coll_velo_area(module, rank)->slots[stage][round->bank].flag;
    for (uint32_t i = module->spins; i > 0; i--) {
        if (__builtin_expect(coll_velo_look(flag) == round->flag, 1))
            return OMPI_SUCCESS;
        coll_velo_pause();
    }
    return coll_velo_await_long(module, rank, flag, round->flag);
}

/** The end of every collective. `all_came`: this rank knows that each other one has begun it. */
static inline void coll_velo_end(coll_velo_module_t *module, bool all_came)
{
    if (all_came)
        module->known = module->sequence - 1;
    coll_velo_leave(&module->own->done, module->sequence);
}

/** All ranks tell each other whether something went well. MPI's error; *is_well: everywhere. */
int coll_velo_agree(coll_velo_module_t *module, bool *is_well);

/* ---- the data of users: pack.c --------------------------------------------------------------- */

int coll_velo_pack_slow(const void *buf, size_t count, const ompi_datatype_t *type, uint8_t *to,
                        size_t len_bytes);
int coll_velo_unpack_slow(void *buf, size_t count, const ompi_datatype_t *type, const uint8_t *from,
                          size_t len_bytes);
/** A buffer laid out for so many elements, as MPI's calls take it; NULL: out of memory. */
void *coll_velo_scratch(struct coll_velo_scratch *scratch, size_t count,
                        const ompi_datatype_t *type);
/** Give back what is too large to keep. */
void coll_velo_scratch_trim(struct coll_velo_scratch *scratch);

static inline bool coll_velo_is_one_piece(const ompi_datatype_t *type, size_t count)
{
    return opal_datatype_is_contiguous_memory_layout(&type->super, count == 1 ? 1 : 2) != 0;
}

static inline void coll_velo_copy(void *to, const void *from, size_t len_bytes)
{
    if (__builtin_expect(len_bytes == sizeof(uint64_t), 1))
        memcpy(to, from, sizeof(uint64_t));
    else
        memcpy(to, from, len_bytes);
}

static inline int coll_velo_pack(const void *buf, size_t count, const ompi_datatype_t *type,
                                 uint8_t *to, size_t len_bytes)
{
    if (__builtin_expect(!coll_velo_is_one_piece(type, count), 0))
        return coll_velo_pack_slow(buf, count, type, to, len_bytes);
    coll_velo_copy(to, (const char *)buf + type->super.true_lb, len_bytes);
    return OMPI_SUCCESS;
}

static inline int coll_velo_unpack(void *buf, size_t count, const ompi_datatype_t *type,
                                   const uint8_t *from, size_t len_bytes)
{
    if (__builtin_expect(!coll_velo_is_one_piece(type, count), 0))
        return coll_velo_unpack_slow(buf, count, type, from, len_bytes);
    coll_velo_copy((char *)buf + type->super.true_lb, from, len_bytes);
    return OMPI_SUCCESS;
}

/* ---- the collectives ------------------------------------------------------------------------- */

int coll_velo_barrier(ompi_communicator_t *comm, mca_coll_base_module_t *base);
int coll_velo_bcast(void *buf, int count, ompi_datatype_t *type, int root,
                    ompi_communicator_t *comm, mca_coll_base_module_t *base);
int coll_velo_reduce(const void *from, void *to, int count, ompi_datatype_t *type, ompi_op_t *op,
                     int root, ompi_communicator_t *comm, mca_coll_base_module_t *base);
int coll_velo_allreduce(const void *from, void *to, int count, ompi_datatype_t *type, ompi_op_t *op,
                        ompi_communicator_t *comm, mca_coll_base_module_t *base);
int coll_velo_allgather(const void *from, int from_count, ompi_datatype_t *from_type, void *to,
                        int to_count, ompi_datatype_t *to_type, ompi_communicator_t *comm,
                        mca_coll_base_module_t *base);
int coll_velo_alltoall(const void *from, int from_count, ompi_datatype_t *from_type, void *to,
                       int to_count, ompi_datatype_t *to_type, ompi_communicator_t *comm,
                       mca_coll_base_module_t *base);

#endif
