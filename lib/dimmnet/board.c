/* SPDX-License-Identifier: Apache-2.0 */
/* The privileged side: boards, their processes, and the table of PIDs. */
#include "board.h"

#include <stdlib.h>
#include <string.h>

#include "../base/compiler.h"
#include "../base/error.h"
#include "../base/fork.h"
#include "../base/hook.h"
#include "../base/order.h"
#include "../base/sized.h"
#include "../shm/domain.h"
#include "choice.h"

#define DOMAIN_SUFFIX "+dimm"
#define PROCESSES_DEFAULT VELO_DIMMNET_PROCESSES
#define SODIMM_BYTES_DEFAULT (UINT64_C(16) << 20)
#define SODIMM_BYTES_UNIT 4096u
#define SODIMM_BYTES_MAX (UINT64_C(32) << 30)
#define PGID_DEFAULT 1
#define PGID_MAX 65535u
#define LID_MAX 65535u
#define PATIENCE_NS_DEFAULT 1000000u
#define PATIENCE_NS_MAX 10000000u
/* A region begins at an even word and has an even number of them (spec/dimmnet.toml). */
#define REGION_ODD_WORD 1u

struct velo_dimmnet_board {
    struct dimmnet_board *board;
    uint64_t process; /* The mark of the process that opened it; see ../base/fork.h. */
};

int dimmnet_domain(struct seg_domain *domain, const char *name, const char *group, uint32_t lid)
{
    if (lid < 1 || lid > LID_MAX)
        return velo_fail(VELO_ERR_ARG, "the board's lid is %u; give 1 to %u", lid, LID_MAX);
    int status = domain_init(domain, name, group);
    if (status == VELO_OK)
        memcpy(domain->name + strlen(domain->name), DOMAIN_SUFFIX, sizeof DOMAIN_SUFFIX);
    return status;
}

static void set_defaults(struct velo_dimmnet_board_attr *attr)
{
    if (!attr->processes)
        attr->processes = PROCESSES_DEFAULT;
    if (!attr->sodimm_bytes)
        attr->sodimm_bytes = SODIMM_BYTES_DEFAULT;
    if (!attr->pgid)
        attr->pgid = PGID_DEFAULT;
    if (!attr->patience_ns)
        attr->patience_ns = PATIENCE_NS_DEFAULT;
}

static int check_attr(const struct velo_dimmnet_board_attr *attr)
{
    if (attr->processes > VELO_DIMMNET_PROCESSES_MAX)
        return velo_fail(VELO_ERR_ARG, "processes is %u; give 1 to %u", attr->processes,
                         VELO_DIMMNET_PROCESSES_MAX);
    if (attr->sodimm_bytes % SODIMM_BYTES_UNIT != 0 || attr->sodimm_bytes > SODIMM_BYTES_MAX)
        return velo_fail(VELO_ERR_ARG,
                         "sodimm_bytes is %llu; give a multiple of %u, at most 32 GiB",
                         (unsigned long long)attr->sodimm_bytes, SODIMM_BYTES_UNIT);
    if (attr->pgid > PGID_MAX)
        return velo_fail(VELO_ERR_ARG, "pgid is %u; give 1 to %u", attr->pgid, PGID_MAX);
    if (attr->patience_ns > PATIENCE_NS_MAX)
        return velo_fail(VELO_ERR_ARG, "patience_ns is %u; give at most %u", attr->patience_ns,
                         PATIENCE_NS_MAX);
    return VELO_OK;
}

static void write_process(struct dimmnet_board *board, uint32_t wid,
                          const struct velo_dimmnet_process *process)
{
    const struct dimmnet_engine *engine = board->engine;
    unsigned word = DIMMNET_PROCESS_REGISTER(wid);
    engine->board_write(board, word + 1, process->region_word);
    engine->board_write(board, word + 2, process->region_words);
    engine->board_write(board, word,
                        velo_dimmnet_identity_pack((uint16_t)process->pgid, (uint8_t)wid,
                                                   (uint8_t)process->is_enabled,
                                                   (uint16_t)board->lid));
}

int velo_dimmnet_board_open(const struct velo_dimmnet_board_attr *given,
                            struct velo_dimmnet_board **out)
{
    static const struct velo_dimmnet_board_attr defaults = VELO_DIMMNET_BOARD_ATTR_INIT;
    struct velo_dimmnet_board_attr attr = VELO_DIMMNET_BOARD_ATTR_INIT;
    struct seg_domain domain = {0};
    if (!out || !given)
        return velo_fail(VELO_ERR_ARG, "attr or board is NULL");
    *out = NULL;
    int status = sized_attr(&attr, sizeof attr, given, &defaults, "VELO_DIMMNET_BOARD_ATTR_INIT");
    if (status)
        return status;
    set_defaults(&attr);
    status = check_attr(&attr);
    if (status == VELO_OK)
        status = dimmnet_domain(&domain, attr.domain, attr.group, attr.lid);
    if (status)
        return status;
    struct velo_dimmnet_board *board = calloc(1, sizeof *board);
    if (!board)
        return velo_fail(VELO_ERR_NO_MEMORY, "no memory for a board");
    board->process = fork_mark();
    const struct dimmnet_engine *engine = dimmnet_engine();
    status = engine ? engine->board_open(&domain, attr.lid, attr.processes, attr.sodimm_bytes,
                                         &board->board)
                    : VELO_ERR_ARG;
    if (status) {
        free(board);
        return status;
    }
    engine->board_write(board->board, VELO_DIMMNET_PRIVILEGED_PATIENCE,
                        (attr.patience_ns + DIMMNET_CYCLE_NS - 1) / DIMMNET_CYCLE_NS);
    uint32_t region_words =
        (uint32_t)(board->board->sodimm_words / attr.processes) & ~REGION_ODD_WORD;
    for (uint32_t wid = 0; wid < attr.processes; wid++)
        write_process(board->board, wid,
                      &(struct velo_dimmnet_process){.pgid = attr.pgid,
                                                     .is_enabled = 1,
                                                     .region_word = wid * region_words,
                                                     .region_words = region_words});
    VELO_HOOK(HOOK_DIMMNET_SET);
    engine->board_show(board->board);
    *out = board;
    return VELO_OK;
}

int velo_dimmnet_board_close(struct velo_dimmnet_board *board)
{
    if (!board || !fork_is_ours(board->process))
        return VELO_OK;
    board->board->engine->board_close(board->board);
    free(board);
    return VELO_OK;
}

/* VELO_ERR_ARG: there is no such process. */
static int check_wid(const struct velo_dimmnet_board *board, unsigned wid, const void *process)
{
    if (!board || !process)
        return velo_fail(VELO_ERR_ARG, "board or process is NULL");
    if (wid >= board->board->processes)
        return velo_fail(VELO_ERR_ARG, "board %u has %u processes; %u is not one of them",
                         board->board->lid, board->board->processes, wid);
    return VELO_OK;
}

int velo_dimmnet_board_set_process(struct velo_dimmnet_board *board, unsigned wid,
                                   const struct velo_dimmnet_process *process)
{
    int status = check_wid(board, wid, process);
    if (status)
        return status;
    if (process->pgid < 1 || process->pgid > PGID_MAX || process->is_enabled > 1)
        return velo_fail(VELO_ERR_ARG, "pgid is %u and is_enabled %u; give 1 to %u, and 0 or 1",
                         process->pgid, process->is_enabled, PGID_MAX);
    if ((process->region_word | process->region_words) & REGION_ODD_WORD)
        return velo_fail(VELO_ERR_ARG,
                         "the region is from word %u of %u words; give even numbers of both",
                         process->region_word, process->region_words);
    if ((uint64_t)process->region_word + process->region_words > board->board->sodimm_words)
        return velo_fail(VELO_ERR_ARG,
                         "the region from word %u of %u words leads out of the SO-DIMM, which has "
                         "%llu",
                         process->region_word, process->region_words,
                         (unsigned long long)board->board->sodimm_words);
    write_process(board->board, wid, process);
    return VELO_OK;
}

int velo_dimmnet_board_process(const struct velo_dimmnet_board *board, unsigned wid,
                               struct velo_dimmnet_process *process)
{
    int status = check_wid(board, wid, process);
    if (status)
        return status;
    const struct dimmnet_engine *engine = board->board->engine;
    unsigned word = DIMMNET_PROCESS_REGISTER(wid);
    uint64_t identity = engine->board_read(board->board, word);
    *process = (struct velo_dimmnet_process){
        .pgid = velo_dimmnet_identity_pgid(identity),
        .is_enabled = velo_dimmnet_identity_enabled(identity),
        .region_word = (uint32_t)engine->board_read(board->board, word + 1),
        .region_words = (uint32_t)engine->board_read(board->board, word + 2)};
    return VELO_OK;
}

int velo_dimmnet_board_pid(struct velo_dimmnet_board *board, unsigned pid, unsigned lid,
                           unsigned wid)
{
    if (!board)
        return velo_fail(VELO_ERR_ARG, "board is NULL");
    if (pid >= VELO_DIMMNET_PIDS_MAX || lid > LID_MAX || wid >= VELO_DIMMNET_PROCESSES_MAX)
        return velo_fail(VELO_ERR_ARG,
                         "pid is %u, lid %u, wid %u; give a pid below %u, a lid of 0 to %u and a "
                         "wid below %u",
                         pid, lid, wid, VELO_DIMMNET_PIDS_MAX, LID_MAX, VELO_DIMMNET_PROCESSES_MAX);
    order_publish_entry(&board->board->pids[pid],
                        lid ? velo_dimmnet_identity_pack(0, (uint8_t)wid, 1, (uint16_t)lid) : 0);
    return VELO_OK;
}

int velo_dimmnet_board_counters(const struct velo_dimmnet_board *board,
                                struct velo_dimmnet_counters *counters, size_t counters_bytes)
{
    if (!board || !counters)
        return velo_fail(VELO_ERR_ARG, "board or counters is NULL");
    const struct dimmnet_board *b = board->board;
    uint64_t (*read)(const struct dimmnet_board *, unsigned) = b->engine->board_read;
    struct velo_dimmnet_counters now = {
        .sent = read(b, VELO_DIMMNET_PRIVILEGED_SENT),
        .received = read(b, VELO_DIMMNET_PRIVILEGED_RECEIVED),
        .refused = read(b, VELO_DIMMNET_PRIVILEGED_REFUSED),
        .dropped_pgid = read(b, VELO_DIMMNET_PRIVILEGED_DROPPED_PGID),
        .dropped_malformed = read(b, VELO_DIMMNET_PRIVILEGED_DROPPED_MALFORMED),
        .dropped_bounds = read(b, VELO_DIMMNET_PRIVILEGED_DROPPED_BOUNDS),
        .dropped_status = read(b, VELO_DIMMNET_PRIVILEGED_DROPPED_STATUS)};
    sized_give(counters, counters_bytes, &now, sizeof now);
    return VELO_OK;
}
