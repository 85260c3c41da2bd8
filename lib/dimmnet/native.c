/* SPDX-License-Identifier: Apache-2.0 */
/* The native engine: contexts and boards, and their registers. */
#include "native.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "native_map.h"
#include "native_packet.h"
#include "native_ring.h"

/* ---- contexts -------------------------------------------------------------------------------- */

/* The Prefetch Windows once more, for reading only. */
static int map_prefetch(struct native_slot *slot)
{
    const struct native_map *home = slot->home;
    const char *base = (const char *)native_prefetch(home, slot->claim.wid);
    off_t at = (off_t)(base - (const char *)home->control);
    at += (off_t)((home->segment->shape.total_bytes + SEG_HEADER_BYTES - 1) &
                  ~(size_t)(SEG_HEADER_BYTES - 1));
    int status = seg_file_take(home->segment);
    if (status)
        return status;
    void *view = mmap(NULL, NATIVE_PREFETCH_WORDS * sizeof(uint64_t), PROT_READ, MAP_SHARED,
                      home->segment->fd, at);
    seg_file_drop(home->segment);
    if (view == MAP_FAILED)
        return velo_fail(VELO_ERR_NO_MEMORY, "no memory to map %s", home->segment->path);
    slot->slot.prefetch = view;
    return VELO_OK;
}

static int attach(struct native_slot *slot, int wid)
{
    int status = native_map_claim(slot->home, wid, &slot->claim);
    if (status)
        return status;
    status = map_prefetch(slot);
    if (status) {
        native_map_unclaim(slot->home, &slot->claim);
        return status;
    }
    slot->self = &slot->home->control->process[slot->claim.wid];
    slot->taken = order_counter(&slot->self->taken);
    slot->slot.write = slot->write;
    slot->slot.llcm = native_llcm(slot->home, slot->claim.wid);
    slot->slot.pids = slot->home->pids;
    slot->spin_max_ns = wait_spin_max_ns();
    return VELO_OK;
}

static int open_slot(const struct seg_domain *domain, uint32_t lid, int wid,
                     struct dimmnet_slot **out)
{
    struct native_map *home;
    int status = native_map_open(domain, lid, &home);
    if (status)
        return status;
    /* Most of it is the table of boards, which takes memory where it is used. */
    struct native_slot *slot = mmap(NULL, sizeof *slot, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (slot == MAP_FAILED) {
        native_map_put(home);
        return velo_fail(VELO_ERR_NO_MEMORY, "no memory for a context");
    }
    slot->slot.engine = &dimmnet_native;
    slot->home = home;
    slot->lid = lid;
    slot->domain = *domain;
    status = attach(slot, wid);
    if (status) {
        native_map_put(home);
        munmap(slot, sizeof *slot);
        return status;
    }
    home->refs++;
    slot->boards[lid] = home; /* Packets to itself and its neighbours. */
    *out = &slot->slot;
    return VELO_OK;
}

static void close_slot(struct dimmnet_slot *given)
{
    struct native_slot *slot = (struct native_slot *)given;
    munmap((void *)slot->slot.prefetch, NATIVE_PREFETCH_WORDS * sizeof(uint64_t));
    native_map_unclaim(slot->home, &slot->claim);
    for (size_t i = 0; i < sizeof slot->boards / sizeof slot->boards[0]; i++)
        if (slot->boards[i])
            native_map_put(slot->boards[i]);
    native_map_put(slot->home);
    munmap(slot, sizeof *slot);
}

/* Something that was started: it is finished already, unless it failed. */
static int count_done(struct native_slot *slot, int status)
{
    slot->done += status == VELO_OK;
    return status;
}

static int write_register(struct dimmnet_slot *given, unsigned word, uint64_t value)
{
    struct native_slot *slot = (struct native_slot *)given;
    switch (word) {
    case VELO_DIMMNET_REGISTER_BOTF:
        return count_done(slot, native_botf(slot, value));
    case VELO_DIMMNET_REGISTER_COMMAND_0:
        slot->command_0 = value;
        return VELO_OK;
    case VELO_DIMMNET_REGISTER_COMMAND_1:
        return count_done(slot, native_command(slot, slot->command_0, value));
    case VELO_DIMMNET_REGISTER_PATTERN_LOCAL:
        slot->pattern_local = value;
        return VELO_OK;
    case VELO_DIMMNET_REGISTER_PATTERN_REMOTE:
        slot->pattern_remote = value;
        return VELO_OK;
    case VELO_DIMMNET_REGISTER_STATUS_READ:
        native_ring_take(slot, (uint32_t)value);
        return VELO_OK;
    case VELO_DIMMNET_REGISTER_ERROR:
        slot->error = VELO_DIMMNET_ERROR_NONE;
        return VELO_OK;
    default:
        if (dimmnet_is_aotf(word))
            return count_done(slot, native_aotf(slot, dimmnet_aotf_header(word), value));
        return VELO_OK; /* As a board: a write to no register is lost. */
    }
}

static uint64_t read_register(struct dimmnet_slot *given, unsigned word)
{
    struct native_slot *slot = (struct native_slot *)given;
    switch (word) {
    case VELO_DIMMNET_REGISTER_PATTERN_LOCAL:
        return slot->pattern_local;
    case VELO_DIMMNET_REGISTER_PATTERN_REMOTE:
        return slot->pattern_remote;
    case VELO_DIMMNET_REGISTER_STATUS_WRITE:
        return (uint32_t)native_ring_written(slot);
    case VELO_DIMMNET_REGISTER_STATUS_READ:
        return (uint32_t)slot->taken;
    case VELO_DIMMNET_REGISTER_DONE:
        return (uint32_t)slot->done;
    case VELO_DIMMNET_REGISTER_ERROR:
        return slot->error;
    case VELO_DIMMNET_REGISTER_IDENTITY:
        return order_read_entry(&slot->self->identity);
    default:
        return 0;
    }
}

static uint32_t region_words(struct dimmnet_slot *given)
{
    return (uint32_t)order_read_field(&((struct native_slot *)given)->self->region_words);
}

/* What peers write goes through the caches, so there is nothing to forget. Acquire: loads that
 * follow are not made earlier. */
static void flush(struct dimmnet_slot *given, uint32_t first_word, uint32_t len_words)
{
    (void)len_words;
    (void)order_read_entry(given->prefetch + first_word);
}

static int sleep_in_slot(struct dimmnet_slot *given, uint32_t seen, int64_t sleep_ns)
{
    return native_ring_sleep((struct native_slot *)given, seen, sleep_ns);
}

static int peer_status(struct dimmnet_slot *given, uint32_t lid)
{
    struct native_slot *slot = (struct native_slot *)given;
    struct native_map *map = slot->boards[lid];
    if (map && seg_check_owner(map->segment) == VELO_OK)
        return VELO_OK;
    int gone = map ? seg_check_owner(map->segment) : VELO_OK;
    int status = native_map_open(&slot->domain, lid, &map);
    if (status == VELO_OK)
        native_map_put(map);
    else if (status == VELO_ERR_NO_PEER && gone)
        status = velo_fail(gone, "board %u has been taken away", lid);
    return status;
}

/* ---- boards ---------------------------------------------------------------------------------- */

static int open_board(const struct seg_domain *domain, uint32_t lid, uint32_t processes,
                      uint64_t sodimm_bytes, struct dimmnet_board **out)
{
    struct native_board *board = calloc(1, sizeof *board);
    if (!board)
        return velo_fail(VELO_ERR_NO_MEMORY, "no memory for a board");
    int status = native_map_create(domain, lid, processes, sodimm_bytes, &board->map);
    if (status) {
        free(board);
        return status;
    }
    for (uint32_t wid = 0; wid < processes; wid++) {
        uint64_t *ring = native_llcm(board->map, wid) + VELO_DIMMNET_STATUS_LLCM_WORD;
        for (uint32_t i = 0; i < VELO_DIMMNET_STATUS_ENTRIES; i++)
            order_empty_status(&ring[i], 0);
    }
    board->board = (struct dimmnet_board){.engine = &dimmnet_native,
                                          .pids = board->map->pids,
                                          .lid = lid,
                                          .processes = processes,
                                          .sodimm_words = board->map->sodimm_words};
    *out = &board->board;
    return VELO_OK;
}

static void show_board(struct dimmnet_board *given)
{
    native_map_show(((struct native_board *)given)->map);
}

static void close_board(struct dimmnet_board *given)
{
    struct native_board *board = (struct native_board *)given;
    seg_retire(board->map->segment);
    for (uint32_t wid = 0; wid < given->processes; wid++) /* They look at the state. */
        wait_wake((const uint32_t *)&board->map->control->process[wid].written);
    native_map_put(board->map);
    free(board);
}

static void write_identity(struct native_board *board, uint32_t wid, uint64_t value)
{
    struct native_process *process = &board->map->control->process[wid];
    uint64_t identity = velo_dimmnet_identity_pack(velo_dimmnet_identity_pgid(value), (uint8_t)wid,
                                                   velo_dimmnet_identity_enabled(value),
                                                   (uint16_t)board->board.lid);
    bool was_enabled = velo_dimmnet_identity_enabled(order_read_entry(&process->identity));
    if (!was_enabled && velo_dimmnet_identity_enabled(value) &&
        !native_map_is_claimed(board->map, wid))
        native_ring_reset(board->map, wid);
    order_publish_entry(&process->identity, identity);
}

static void write_privileged(struct dimmnet_board *given, unsigned word, uint64_t value)
{
    struct native_board *board = (struct native_board *)given;
    struct native_control *control = board->map->control;
    if (word == VELO_DIMMNET_PRIVILEGED_PATIENCE)
        order_show(&control->patience, value);
    if (word < VELO_DIMMNET_PRIVILEGED_PROCESS)
        return;
    uint32_t wid = (word - VELO_DIMMNET_PRIVILEGED_PROCESS) / 8;
    if (wid >= given->processes)
        return;
    switch ((word - VELO_DIMMNET_PRIVILEGED_PROCESS) % 8) {
    case 0:
        write_identity(board, wid, value);
        break;
    case 1:
        order_write_field(&control->process[wid].region_word, value);
        break;
    case 2:
        order_write_field(&control->process[wid].region_words, value);
        break;
    default:
        break;
    }
}

static uint64_t read_counter(const struct native_process *process, unsigned word)
{
    switch (word) {
    case VELO_DIMMNET_PRIVILEGED_DROPPED_PGID:
        return order_counter(&process->dropped_pgid);
    case VELO_DIMMNET_PRIVILEGED_DROPPED_MALFORMED:
        return order_counter(&process->dropped_malformed);
    case VELO_DIMMNET_PRIVILEGED_DROPPED_BOUNDS:
        return order_counter(&process->dropped_bounds);
    case VELO_DIMMNET_PRIVILEGED_DROPPED_STATUS:
        return order_counter(&process->dropped_status);
    case VELO_DIMMNET_PRIVILEGED_REFUSED:
        return order_counter(&process->refused);
    case VELO_DIMMNET_PRIVILEGED_RECEIVED:
        return order_counter(&process->received);
    case VELO_DIMMNET_PRIVILEGED_SENT:
        return order_counter(&process->sent);
    default:
        return 0;
    }
}

static uint64_t read_privileged(const struct dimmnet_board *given, unsigned word)
{
    const struct native_control *control = ((const struct native_board *)given)->map->control;
    if (word == VELO_DIMMNET_PRIVILEGED_LID)
        return given->lid;
    if (word == VELO_DIMMNET_PRIVILEGED_PATIENCE)
        return order_counter(&control->patience);
    if (word < VELO_DIMMNET_PRIVILEGED_PROCESS) {
        uint64_t sum = 0;
        for (uint32_t wid = 0; wid < VELO_DIMMNET_PROCESSES_MAX; wid++)
            sum += read_counter(&control->process[wid], word);
        return sum;
    }
    uint32_t wid = (word - VELO_DIMMNET_PRIVILEGED_PROCESS) / 8;
    if (wid >= given->processes)
        return 0;
    const struct native_process *process = &control->process[wid];
    switch ((word - VELO_DIMMNET_PRIVILEGED_PROCESS) % 8) {
    case 0:
        return order_read_entry(&process->identity);
    case 1:
        return order_read_field(&process->region_word);
    case 2:
        return order_read_field(&process->region_words);
    default:
        return 0;
    }
}

const struct dimmnet_engine dimmnet_native = {
    .name = "native",
    .open = open_slot,
    .close = close_slot,
    .write = write_register,
    .read = read_register,
    .region_words = region_words,
    .flush = flush,
    .sleep = sleep_in_slot,
    .peer_status = peer_status,
    .board_open = open_board,
    .board_show = show_board,
    .board_close = close_board,
    .board_write = write_privileged,
    .board_read = read_privileged,
};
