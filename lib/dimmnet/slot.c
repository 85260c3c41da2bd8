/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine for boards in memory slots. A board's controller does the work; here its windows are
 * written before a command that reads them, and its commands are given no faster than it has room.
 *
 * A board has no names. As natively, whoever opens a board makes a segment for it (native_map.c),
 * without the board's memories: LID, PIDs, which processes are open and who lives are known by it.
 */
#include "slot.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "native_map.h"
#include "slot_io.h"

/* Commands of a process that a board takes before the first is done. */
#define COMMANDS_MAX 8u
/* Reads that a board keeps, from whomever they are, and listed elements that one asks for. */
#define READS_MAX 8u
#define READ_ELEMENTS 64u
/* The longest look at a ring before a look at who lives. */
#define AWAIT_NS_MAX INT64_C(100000)
/* The longest wait, at the end, for commands that are under way. */
#define CLOSE_NS_MAX INT64_C(1000000)
#define WORD_BYTES sizeof(uint64_t)

struct slot_process {
    struct dimmnet_slot slot;
    struct native_map *home;
    uint64_t board;
    uint32_t lid;
    struct native_claim claim;
    uint32_t started;   /* Commands, modulo 2^32, as `done` counts them. */
    uint32_t done;      /* As last seen. */
    uint32_t written;   /* Statuses whose entries were loaded. */
    uint64_t command_0; /* The first word of a command: both are stored at once. */
    /* As the pattern registers have it, local and remote: */
    uint32_t list_word[2];
    uint32_t element_words[2];
    uint64_t headers[DIMMNET_WRITE_WORDS / VELO_DIMMNET_WRITE_WINDOWS]; /* Of AOTF: on the board. */
    uint64_t write[DIMMNET_WRITE_WORDS];
    uint64_t prefetch[DIMMNET_PREFETCH_WORDS];
    struct seg_domain domain;
    struct native_map *boards[1u << VELO_DIMMNET_COMMAND_LID_BITS]; /* By LID, those asked about. */
};

struct slot_board {
    struct dimmnet_board board;
    struct native_map *map;
    uint64_t number;
};

/* ---- addresses ------------------------------------------------------------------------------- */

static uint64_t page_address(uint32_t wid, unsigned page, uint64_t word)
{
    uint64_t offset = word * WORD_BYTES; /* LLCM goes on in the next pages. */
    return velo_dimmnet_slot_pack((uint16_t)(offset & 0xFFF), (uint8_t)(page + (offset >> 12)),
                                  (uint8_t)wid, false);
}

static uint64_t register_address(const struct slot_process *process, unsigned word)
{
    return page_address(process->claim.wid, VELO_DIMMNET_PAGE_REGISTER, word);
}

static uint64_t privileged_address(unsigned word)
{
    return velo_dimmnet_slot_pack((uint16_t)(word * WORD_BYTES), 0, 0, true);
}

/* By windows: as many words as one call of a plug-in takes. */
static void store_words(const struct slot_process *process, unsigned page, const uint64_t *words,
                        uint32_t first_word, uint32_t len_words)
{
    for (uint32_t at = 0, now; at < len_words; at += now) {
        now =
            len_words - at < VELO_DIMMNET_WINDOW_WORDS ? len_words - at : VELO_DIMMNET_WINDOW_WORDS;
        dimmnet_io->store(process->board, page_address(process->claim.wid, page, first_word + at),
                          words + at, now);
    }
}

static void load_words(const struct slot_process *process, unsigned page, uint64_t *words,
                       uint32_t first_word, uint32_t len_words)
{
    for (uint32_t at = 0, now; at < len_words; at += now) {
        now =
            len_words - at < VELO_DIMMNET_WINDOW_WORDS ? len_words - at : VELO_DIMMNET_WINDOW_WORDS;
        dimmnet_io->load_lines(process->board,
                               page_address(process->claim.wid, page, first_word + at), words + at,
                               now);
    }
}

/* ---- contexts -------------------------------------------------------------------------------- */

static uint64_t read_register(struct dimmnet_slot *given, unsigned word);

static int open_slot(const struct seg_domain *domain, uint32_t lid, int wid,
                     struct dimmnet_slot **out)
{
    struct native_map *home;
    int status = native_map_open(domain, lid, &home);
    if (status)
        return status;
    /* Most of it is the table of boards, which takes memory where it is used. */
    struct slot_process *process = mmap(NULL, sizeof *process, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (process == MAP_FAILED)
        status = velo_fail(VELO_ERR_NO_MEMORY, "no memory for a context");
    else
        status = native_map_claim(home, wid, &process->claim);
    if (status) {
        if (process != MAP_FAILED)
            munmap(process, sizeof *process);
        native_map_put(home);
        return status;
    }
    process->home = home;
    process->lid = lid;
    process->board = home->control->board;
    process->domain = *domain;
    process->slot =
        (struct dimmnet_slot){.engine = &dimmnet_in_slots,
                              .write = process->write,
                              .prefetch = process->prefetch,
                              .llcm = dimmnet_io->llcm(process->board, process->claim.wid),
                              .pids = home->pids};
    process->started = (uint32_t)read_register(&process->slot, VELO_DIMMNET_REGISTER_DONE);
    process->written = (uint32_t)dimmnet_io->load(
        process->board, register_address(process, VELO_DIMMNET_REGISTER_STATUS_READ));
    *out = &process->slot;
    return VELO_OK;
}

/* Wait until at most so many commands are under way. False: they still are, after so long. */
static bool await_done(struct slot_process *process, uint32_t under_way, int64_t timeout_ns)
{
    int64_t end_ns = wait_end_ns(wait_now_ns(), timeout_ns);
    while (process->started - process->done > under_way) {
        (void)read_register(&process->slot, VELO_DIMMNET_REGISTER_DONE);
        if (process->started - process->done > under_way && wait_now_ns() >= end_ns)
            return false;
    }
    return true;
}

static void close_slot(struct dimmnet_slot *given)
{
    struct slot_process *process = (struct slot_process *)given;
    if (native_map_status(process->home) == VELO_OK)
        (void)await_done(process, 0, CLOSE_NS_MAX);
    native_map_unclaim(process->home, &process->claim);
    for (size_t i = 0; i < sizeof process->boards / sizeof process->boards[0]; i++)
        if (process->boards[i])
            native_map_put(process->boards[i]);
    native_map_put(process->home);
    munmap(process, sizeof *process);
}

/* ---- commands -------------------------------------------------------------------------------- */

static int home_status(const struct slot_process *process)
{
    int status = native_map_status(process->home);
    return likely(status == VELO_OK)
               ? status
               : velo_fail(status, "board %u has been taken away", process->lid);
}

/* What the controller will read of Write Windows. */
static void write_windows(struct slot_process *process, uint32_t first_word, uint32_t len_words)
{
    if (first_word < DIMMNET_WRITE_WORDS && len_words <= DIMMNET_WRITE_WORDS - first_word)
        store_words(process, VELO_DIMMNET_PAGE_WRITE, process->write + first_word, first_word,
                    len_words);
}

/* And of LLCM: a list's offsets, two in a word. */
static void write_list(struct slot_process *process, unsigned which, uint32_t len_words)
{
    uint32_t element = process->element_words[which];
    uint32_t words = element ? (len_words / element + 1) / 2 : 0;
    if ((uint64_t)process->list_word[which] + words <= VELO_DIMMNET_LLCM_FREE_WORDS)
        dimmnet_io->llcm_fence(process->board, process->claim.wid, process->list_word[which],
                               words);
}

/* Store what starts something. */
static int start(struct slot_process *process, unsigned word, const uint64_t *words,
                 uint32_t len_words)
{
    dimmnet_io->store(process->board, register_address(process, word), words, len_words);
    process->started++;
    return VELO_OK;
}

static int botf(struct slot_process *process, uint64_t word)
{
    write_windows(process,
                  velo_dimmnet_botf_window(word) * VELO_DIMMNET_WINDOW_WORDS +
                      velo_dimmnet_botf_first(word),
                  velo_dimmnet_botf_words(word));
    return start(process, VELO_DIMMNET_REGISTER_BOTF, &word, 1);
}

static int aotf(struct slot_process *process, unsigned slot, uint64_t word)
{
    uint32_t first = slot * VELO_DIMMNET_HEADER_WORDS;
    uint64_t *header = process->write + VELO_DIMMNET_WINDOW_WORDS + first;
    if (memcmp(process->headers + first, header, VELO_DIMMNET_HEADER_WORDS * WORD_BYTES) != 0) {
        memcpy(process->headers + first, header, VELO_DIMMNET_HEADER_WORDS * WORD_BYTES);
        write_windows(process, VELO_DIMMNET_WINDOW_WORDS + first, VELO_DIMMNET_HEADER_WORDS);
    }
    return start(process, VELO_DIMMNET_REGISTER_AOTF + slot * VELO_DIMMNET_AOTF_STEP_WORDS, &word,
                 1);
}

static int command(struct slot_process *process, uint64_t word_1)
{
    uint64_t word_0 = process->command_0, words[] = {word_0, word_1};
    uint8_t op = velo_dimmnet_command_op(word_0);
    uint32_t len_words = velo_dimmnet_command_words(word_0);
    if (op == VELO_DIMMNET_OP_STORE)
        write_windows(process, velo_dimmnet_command_remote_word(word_1), len_words);
    if (op == VELO_DIMMNET_OP_PUT &&
        velo_dimmnet_command_local_memory(word_0) == VELO_DIMMNET_MEMORY_PREFETCH)
        write_windows(process, velo_dimmnet_command_local_word(word_1), len_words);
    if (velo_dimmnet_command_local_access(word_0) == VELO_DIMMNET_ACCESS_LIST)
        write_list(process, 0, len_words);
    if (velo_dimmnet_command_remote_access(word_0) == VELO_DIMMNET_ACCESS_LIST)
        write_list(process, 1, len_words);
    return start(process, VELO_DIMMNET_REGISTER_COMMAND_0, words, 2);
}

/* Reads for which a board has no room are dropped, and nobody is told. A get by a list is several.
 */
static int check_reads(const struct slot_process *process)
{
    uint64_t word_0 = process->command_0;
    uint32_t element = process->element_words[1];
    if (likely(velo_dimmnet_command_op(word_0) != VELO_DIMMNET_OP_GET ||
               velo_dimmnet_command_remote_access(word_0) != VELO_DIMMNET_ACCESS_LIST || !element))
        return VELO_OK;
    uint32_t elements = velo_dimmnet_command_words(word_0) / element;
    if (likely(elements <= READS_MAX * READ_ELEMENTS))
        return VELO_OK;
    return velo_fail(VELO_ERR_ARG,
                     "a get of %u listed elements is more reads than a board keeps; get at most %u "
                     "at a time",
                     elements, READS_MAX * READ_ELEMENTS);
}

static int start_one(struct slot_process *process, unsigned word, uint64_t value)
{
    int status = home_status(process);
    if (status == VELO_OK && word == VELO_DIMMNET_REGISTER_COMMAND_1)
        status = check_reads(process);
    if (status)
        return status;
    dimmnet_io->work();
    (void)await_done(process, COMMANDS_MAX - 1, INT64_MAX);
    if (word == VELO_DIMMNET_REGISTER_BOTF)
        return botf(process, value);
    if (word == VELO_DIMMNET_REGISTER_COMMAND_1)
        return command(process, value);
    return aotf(process, dimmnet_aotf_header(word), value);
}

/* ---- registers ------------------------------------------------------------------------------- */

static int write_register(struct dimmnet_slot *given, unsigned word, uint64_t value)
{
    struct slot_process *process = (struct slot_process *)given;
    unsigned which = word - VELO_DIMMNET_REGISTER_PATTERN_LOCAL;
    if (word == VELO_DIMMNET_REGISTER_COMMAND_0) {
        process->command_0 = value;
        return VELO_OK;
    }
    if (word == VELO_DIMMNET_REGISTER_BOTF || word == VELO_DIMMNET_REGISTER_COMMAND_1 ||
        dimmnet_is_aotf(word))
        return start_one(process, word, value);
    if (which < 2) {
        process->list_word[which] = velo_dimmnet_pattern_step(value);
        process->element_words[which] = velo_dimmnet_pattern_element_words(value);
    }
    dimmnet_io->store(process->board, register_address(process, word), &value, 1);
    return VELO_OK;
}

/* Load the entries of statuses that are new: the library reads them in LLCM. */
static void load_entries(struct slot_process *process, uint32_t written)
{
    uint64_t entries[VELO_DIMMNET_STATUS_ENTRIES];
    if (written - process->written > VELO_DIMMNET_STATUS_ENTRIES)
        process->written = written; /* The process has begun anew. */
    while (process->written != written) {
        uint32_t first = process->written % VELO_DIMMNET_STATUS_ENTRIES;
        uint32_t len = written - process->written;
        if (len > VELO_DIMMNET_STATUS_ENTRIES - first)
            len = VELO_DIMMNET_STATUS_ENTRIES - first;
        load_words(process, VELO_DIMMNET_PAGE_LLCM, entries, VELO_DIMMNET_STATUS_LLCM_WORD + first,
                   len);
        process->written += len;
    }
}

static uint64_t read_register(struct dimmnet_slot *given, unsigned word)
{
    struct slot_process *process = (struct slot_process *)given;
    /* Of a board that was taken away, the processes were disabled, and count from 0. */
    if (word == VELO_DIMMNET_REGISTER_STATUS_WRITE && native_map_status(process->home) != VELO_OK)
        return process->written;
    uint64_t value = dimmnet_io->load(process->board, register_address(process, word));
    if (word == VELO_DIMMNET_REGISTER_DONE)
        process->done = (uint32_t)value;
    if (word == VELO_DIMMNET_REGISTER_STATUS_WRITE)
        load_entries(process, (uint32_t)value);
    return value;
}

static uint32_t region_words(struct dimmnet_slot *given)
{
    struct slot_process *process = (struct slot_process *)given;
    return (uint32_t)order_read_field(
        &process->home->control->process[process->claim.wid].region_words);
}

static void flush(struct dimmnet_slot *given, uint32_t first_word, uint32_t len_words)
{
    struct slot_process *process = (struct slot_process *)given;
    dimmnet_io->work();
    load_words(process, VELO_DIMMNET_PAGE_PREFETCH, process->prefetch + first_word, first_word,
               len_words);
}

static int sleep_in_slot(struct dimmnet_slot *given, uint32_t seen, int64_t sleep_ns)
{
    struct slot_process *process = (struct slot_process *)given;
    int status = seg_check_owner(process->home->segment);
    if (status)
        return velo_fail(status, "board %u has been taken away", process->lid);
    return dimmnet_io->await(process->board,
                             register_address(process, VELO_DIMMNET_REGISTER_STATUS_WRITE), seen,
                             sleep_ns < AWAIT_NS_MAX ? sleep_ns : AWAIT_NS_MAX)
               ? VELO_ERR_INTERRUPTED
               : VELO_OK;
}

static int peer_status(struct dimmnet_slot *given, uint32_t lid)
{
    struct slot_process *process = (struct slot_process *)given;
    struct native_map *map;
    int gone = process->boards[lid] ? seg_check_owner(process->boards[lid]->segment) : VELO_OK;
    if (process->boards[lid] && gone == VELO_OK)
        return VELO_OK;
    int status = native_map_open(&process->domain, lid, &map);
    if (status == VELO_OK) {
        if (process->boards[lid])
            native_map_put(process->boards[lid]);
        process->boards[lid] = map;
    } else if (status == VELO_ERR_NO_PEER && gone) {
        status = velo_fail(gone, "board %u has been taken away", lid);
    }
    return status;
}

/* ---- boards ---------------------------------------------------------------------------------- */

static void write_privileged(struct dimmnet_board *given, unsigned word, uint64_t value)
{
    struct slot_board *board = (struct slot_board *)given;
    unsigned at = word - VELO_DIMMNET_PRIVILEGED_PROCESS;
    if (word >= VELO_DIMMNET_PRIVILEGED_PROCESS && at / 8 < given->processes && at % 8 == 2)
        order_write_field(&board->map->control->process[at / 8].region_words, value);
    dimmnet_io->store(board->number, privileged_address(word), &value, 1);
}

static uint64_t read_privileged(const struct dimmnet_board *given, unsigned word)
{
    return dimmnet_io->load(((const struct slot_board *)given)->number, privileged_address(word));
}

static int open_board(const struct seg_domain *domain, uint32_t lid, uint32_t processes,
                      uint64_t sodimm_bytes, struct dimmnet_board **out)
{
    if (processes > dimmnet_io->processes || sodimm_bytes > dimmnet_io->sodimm_bytes)
        return velo_fail(
            VELO_ERR_ARG,
            "board %u cannot have %u processes and %llu bytes of SO-DIMM; these boards "
            "have %u and %llu",
            lid, processes, (unsigned long long)sodimm_bytes, dimmnet_io->processes,
            (unsigned long long)dimmnet_io->sodimm_bytes);
    struct slot_board *board = calloc(1, sizeof *board);
    if (!board)
        return velo_fail(VELO_ERR_NO_MEMORY, "no memory for a board");
    int status = native_map_create(domain, lid, processes, 0, &board->map);
    if (status == VELO_OK) {
        status = dimmnet_io->open(lid, &board->number);
        if (status) {
            seg_retire(board->map->segment);
            native_map_put(board->map);
        }
    }
    if (status) {
        free(board);
        return status;
    }
    board->map->control->board = board->number;
    board->board = (struct dimmnet_board){.engine = &dimmnet_in_slots,
                                          .pids = board->map->pids,
                                          .lid = lid,
                                          .processes = processes,
                                          .sodimm_words = sodimm_bytes / WORD_BYTES};
    write_privileged(&board->board, VELO_DIMMNET_PRIVILEGED_LID, lid);
    *out = &board->board;
    return VELO_OK;
}

static void show_board(struct dimmnet_board *given)
{
    native_map_show(((struct slot_board *)given)->map);
}

static void close_board(struct dimmnet_board *given)
{
    struct slot_board *board = (struct slot_board *)given;
    for (uint32_t wid = 0; wid < given->processes; wid++) /* Nobody sends or is sent to. */
        write_privileged(given, DIMMNET_PROCESS_REGISTER(wid), 0);
    seg_retire(board->map->segment);
    dimmnet_io->close(board->number);
    native_map_put(board->map);
    free(board);
}

const struct dimmnet_engine dimmnet_in_slots = {
    .name = "slots",
    .sleep_looks = true,
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
