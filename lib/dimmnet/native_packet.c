/* SPDX-License-Identifier: Apache-2.0 */
/* What a controller does: packets out of Write Windows, and commands. */
#include "native_packet.h"

#include "native_copy.h"
#include "native_map.h"
#include "native_ring.h"

/* ---- refusing, and finding the target --------------------------------------------------------- */

/* A command that is not carried out. */
static cold_path int refuse(struct native_slot *slot, unsigned error, const char *why)
{
    slot->error = error;
    order_count(&slot->self->refused, 1);
    return velo_fail(error == VELO_DIMMNET_ERROR_DISABLED ? VELO_ERR_STATE : VELO_ERR_ARG,
                     "the controller refused the command: %s", why);
}

static cold_path int refuse_disabled(struct native_slot *slot)
{
    return refuse(slot, VELO_DIMMNET_ERROR_DISABLED,
                  "the process is not enabled; whoever made the board enables it");
}

static cold_path int board_gone(uint32_t lid, int status)
{
    (void)velo_fail(status, "board %u is gone: the process that made it has %s", lid,
                    status == VELO_ERR_PEER_CLOSED ? "taken it away" : "ended");
    return status;
}

/* Map a board for the first time, or once more since the one that was mapped is gone. */
static cold_path int meet(struct native_slot *slot, uint32_t lid, struct native_map **map)
{
    int gone = slot->boards[lid] ? native_map_status(slot->boards[lid]) : VELO_OK;
    int status = native_map_open(&slot->domain, lid, map);
    if (status == VELO_ERR_NO_PEER && gone)
        return board_gone(lid, gone);
    if (status)
        return status;
    if (slot->boards[lid])
        native_map_put(slot->boards[lid]);
    slot->boards[lid] = *map;
    return VELO_OK;
}

hot_inline int reach(struct native_slot *slot, uint32_t lid, struct native_map **map)
{
    int status = native_map_status(slot->home);
    if (unlikely(status))
        return board_gone(slot->lid, status);
    *map = slot->boards[lid];
    if (likely(*map && native_map_status(*map) == VELO_OK))
        return VELO_OK;
    return meet(slot, lid, map);
}

hot_inline bool may_send(uint64_t identity)
{
    return velo_dimmnet_identity_enabled(identity) && velo_dimmnet_identity_lid(identity) != 0;
}

/* May these packets come in? */
hot_inline bool is_welcome(struct native_process *target, uint64_t sender, uint32_t packets)
{
    uint64_t identity = order_read_entry(&target->identity);
    order_count_shared(&target->received, packets);
    if (likely(velo_dimmnet_identity_enabled(identity) &&
               velo_dimmnet_identity_pgid(identity) == velo_dimmnet_identity_pgid(sender)))
        return true;
    order_count_shared(&target->dropped_pgid, packets);
    return false;
}

/* ---- memories -------------------------------------------------------------------------------- */

/* The region as the board says now, cut to what is there. */
static void take_region(const struct native_map *map, uint32_t wid, struct native_words *words)
{
    const struct native_process *process = &map->control->process[wid];
    uint64_t first = order_read_field(&process->region_word);
    uint64_t len = order_read_field(&process->region_words);
    if (first > map->sodimm_words)
        first = map->sodimm_words;
    words->memory = map->sodimm + first;
    words->limit_words = len < map->sodimm_words - first ? len : map->sodimm_words - first;
}

/* False: there is no such memory. */
hot_inline bool take_memory(const struct native_map *map, uint32_t wid, unsigned memory,
                            struct native_words *words)
{
    if (unlikely(wid >= map->processes))
        return false;
    switch (memory) {
    case VELO_DIMMNET_MEMORY_SODIMM:
        take_region(map, wid, words);
        return true;
    case VELO_DIMMNET_MEMORY_PREFETCH:
        words->memory = native_prefetch(map, wid);
        words->limit_words = DIMMNET_PREFETCH_WORDS;
        return true;
    case VELO_DIMMNET_MEMORY_LLCM:
        words->memory = native_llcm(map, wid);
        words->limit_words = VELO_DIMMNET_STATUS_LLCM_WORD;
        return true;
    default:
        return false;
    }
}

/* The order in which a pattern names elements. False: it makes no sense. */
static bool take_pattern(struct native_words *words, unsigned access, uint64_t pattern)
{
    words->access = access;
    words->element_words = velo_dimmnet_pattern_element_words(pattern);
    words->step_words = (int32_t)velo_dimmnet_pattern_step(pattern);
    return access == VELO_DIMMNET_ACCESS_CONTIGUOUS ||
           (access <= VELO_DIMMNET_ACCESS_LIST && words->element_words >= 1 &&
            words->element_words <= VELO_DIMMNET_ELEMENT_WORDS_MAX);
}

/* Where in the process's own LLCM a list stands. False: it leads out of it. */
static bool take_list(const struct native_slot *slot, struct native_words *words,
                      uint32_t len_words)
{
    if (words->access != VELO_DIMMNET_ACCESS_LIST)
        return true;
    uint64_t first = (uint32_t)words->step_words;
    uint64_t list_words = (len_words / words->element_words + 1) / 2;
    words->list = native_llcm(slot->home, slot->claim.wid) + first;
    return first + list_words <= VELO_DIMMNET_STATUS_LLCM_WORD;
}

/* ---- packets --------------------------------------------------------------------------------- */

/* The packets of a transfer. */
struct cut {
    uint32_t packets;
    uint32_t last_words; /* Payload of the last. */
};

static cold_path struct cut cut_elements(const struct native_words *words, uint32_t len_words)
{
    uint32_t element = words->element_words;
    uint32_t elements = len_words / element;
    bool is_list = words->access == VELO_DIMMNET_ACCESS_LIST;
    uint32_t room = VELO_DIMMNET_PAYLOAD_WORDS_MAX - 1; /* Behind the pattern. */
    uint32_t each = is_list ? 2 * room / (2 * element + 1) : room / element;
    struct cut cut = {.packets = (elements + each - 1) / each};
    uint32_t last = elements - (cut.packets - 1) * each;
    cut.last_words = 1 + last * element + (is_list ? (last + 1) / 2 : 0);
    return cut;
}

hot_inline struct cut cut_into_packets(const struct native_words *words, uint32_t len_words)
{
    if (unlikely(words->access != VELO_DIMMNET_ACCESS_CONTIGUOUS))
        return cut_elements(words, len_words);
    uint32_t whole = (len_words - 1) / VELO_DIMMNET_PAYLOAD_WORDS_MAX;
    return (struct cut){whole + 1, len_words - whole * VELO_DIMMNET_PAYLOAD_WORDS_MAX};
}

/* Words that came in, into their place. False: that is outside the memory; they were dropped. */
hot_inline bool write_words(struct native_process *target, const struct native_words *to,
                            const struct native_words *from, uint32_t len_words, uint32_t packets)
{
    if (unlikely(!native_words_fit(to, len_words))) {
        order_count_shared(&target->dropped_bounds, packets);
        return false;
    }
    native_copy(to, from, len_words);
    VELO_HOOK(HOOK_DIMMNET_COPIED);
    return true;
}

/* What follows the header of a packet that is not contiguous: the pattern, a list's offsets, and
 * the elements. Sets the elements' words; 0: the packet contradicts itself. */
static cold_path uint32_t take_elements(struct native_words *to, struct native_words *from,
                                        unsigned access, uint32_t payload_words)
{
    uint64_t pattern = payload_words > 0 ? from->memory[0] : 0;
    uint32_t count = velo_dimmnet_pattern_count(pattern);
    if (!take_pattern(to, access, pattern) || count == 0)
        return 0;
    uint32_t list_words = access == VELO_DIMMNET_ACCESS_LIST ? (count + 1) / 2 : 0;
    uint32_t len_words = count * to->element_words;
    to->list = from->memory + 1;
    from->memory += 1 + list_words;
    return 1 + list_words + len_words == payload_words ? len_words : 0;
}

/* Send a packet that a user has built. */
static int send_packet(struct native_slot *slot, const uint64_t header[2], uint64_t *payload,
                       uint32_t payload_words)
{
    struct native_map *map;
    uint64_t sender = order_read_entry(&slot->self->identity);
    if (unlikely(!may_send(sender)))
        return refuse_disabled(slot);
    if (unlikely(velo_dimmnet_packet_kind(header[0]) != VELO_DIMMNET_KIND_WRITE))
        return refuse(slot, VELO_DIMMNET_ERROR_OP, "the packet in the window is no write");
    int status = reach(slot, velo_dimmnet_packet_dst_lid(header[0]), &map);
    if (unlikely(status))
        return status;
    VELO_HOOK(HOOK_DIMMNET_REACHED);
    order_count(&slot->self->sent, 1);
    uint32_t wid = velo_dimmnet_packet_dst_wid(header[0]);
    struct native_process *target = &map->control->process[wid];
    if (unlikely(!is_welcome(target, sender, 1)))
        return VELO_OK;
    unsigned access = velo_dimmnet_packet_access(header[0]);
    unsigned memory = velo_dimmnet_packet_memory(header[0]);
    struct native_words to = {.first_word = velo_dimmnet_packet_address(header[1])};
    struct native_words from = {.memory = payload, .limit_words = payload_words};
    uint32_t len_words = payload_words;
    bool is_sane = take_memory(map, wid, memory, &to);
    if (unlikely(access != VELO_DIMMNET_ACCESS_CONTIGUOUS)) {
        len_words = take_elements(&to, &from, access, payload_words);
        is_sane = is_sane && len_words > 0 && memory == VELO_DIMMNET_MEMORY_SODIMM;
    }
    if (unlikely(!is_sane)) {
        order_count_shared(&target->dropped_malformed, 1);
        return VELO_OK;
    }
    if (likely(len_words > 0) && unlikely(!write_words(target, &to, &from, len_words, 1)))
        return VELO_OK;
    if (!velo_dimmnet_packet_status(header[0]))
        return VELO_OK;
    return native_ring_post(
        map, wid,
        velo_dimmnet_status_pack(VELO_DIMMNET_KIND_WRITE, (uint8_t)memory, (uint8_t)payload_words,
                                 (uint8_t)slot->claim.wid, velo_dimmnet_packet_tag(header[1]),
                                 (uint16_t)slot->lid));
}

int native_botf(struct native_slot *slot, uint64_t botf)
{
    uint32_t first = velo_dimmnet_botf_first(botf);
    uint32_t words = velo_dimmnet_botf_words(botf);
    uint64_t *window = slot->write + velo_dimmnet_botf_window(botf) * VELO_DIMMNET_WINDOW_WORDS;
    if (unlikely(velo_dimmnet_botf_op(botf) != VELO_DIMMNET_OP_BOTF))
        return refuse(slot, VELO_DIMMNET_ERROR_OP, "no BOTF");
    if (unlikely(words < VELO_DIMMNET_HEADER_WORDS || first + words > VELO_DIMMNET_WINDOW_WORDS))
        return refuse(slot, VELO_DIMMNET_ERROR_SIZE, "the packet is not inside its Write Window");
    return send_packet(slot, window + first, window + first + VELO_DIMMNET_HEADER_WORDS,
                       words - VELO_DIMMNET_HEADER_WORDS);
}

int native_aotf(struct native_slot *slot, unsigned header, uint64_t word)
{
    const uint64_t *window = slot->write + VELO_DIMMNET_WINDOW_WORDS;
    return send_packet(slot, window + (size_t)header * VELO_DIMMNET_HEADER_WORDS, &word, 1);
}

/* ---- commands -------------------------------------------------------------------------------- */

/* A command, decoded and checked on the process's own side. */
struct command {
    uint64_t word_0;
    uint64_t word_1;
    uint64_t sender; /* Its identity. */
    uint32_t len_words;
    struct native_words local;
    struct native_words remote;
};

/* Check an order, and that a number of words is one of whole elements. */
static bool take_order(const struct native_slot *slot, struct native_words *words, unsigned access,
                       uint64_t pattern, uint32_t len_words)
{
    return take_pattern(words, access, pattern) &&
           (access == VELO_DIMMNET_ACCESS_CONTIGUOUS || len_words % words->element_words == 0) &&
           take_list(slot, words, len_words);
}

/* Leave the status of a command, if it asks for one. */
hot_inline int finish(struct native_slot *slot, const struct command *command,
                      struct native_map *map, uint32_t wid, uint8_t kind, unsigned memory,
                      uint32_t words)
{
    bool is_own = kind != VELO_DIMMNET_KIND_WRITE;
    bool is_answer = kind == VELO_DIMMNET_KIND_ANSWER;
    if (!velo_dimmnet_command_status(command->word_0))
        return VELO_OK;
    uint8_t src_wid =
        is_answer ? velo_dimmnet_command_wid(command->word_0) : (uint8_t)slot->claim.wid;
    uint16_t src_lid = is_answer ? velo_dimmnet_command_lid(command->word_0) : (uint16_t)slot->lid;
    uint64_t status = velo_dimmnet_status_pack(kind, (uint8_t)memory, (uint8_t)words, src_wid,
                                               velo_dimmnet_command_tag(command->word_0), src_lid);
    return is_own ? native_ring_post(slot->home, slot->claim.wid, status)
                  : native_ring_post(map, wid, status);
}

static int put(struct native_slot *slot, struct command *command, struct native_map *map)
{
    uint32_t wid = velo_dimmnet_command_wid(command->word_0);
    unsigned memory = velo_dimmnet_command_remote_memory(command->word_0);
    struct native_process *target = &map->control->process[wid];
    struct cut cut = cut_into_packets(&command->remote, command->len_words);
    order_count(&slot->self->sent, cut.packets);
    if (!is_welcome(target, command->sender, cut.packets))
        return VELO_OK;
    if (unlikely(!take_memory(map, wid, memory, &command->remote))) {
        order_count_shared(&target->dropped_malformed, cut.packets);
        return VELO_OK;
    }
    if (!write_words(target, &command->remote, &command->local, command->len_words, cut.packets))
        return VELO_OK;
    return finish(slot, command, map, wid, VELO_DIMMNET_KIND_WRITE, memory, cut.last_words);
}

static int get(struct native_slot *slot, struct command *command, struct native_map *map)
{
    uint32_t wid = velo_dimmnet_command_wid(command->word_0);
    unsigned memory = velo_dimmnet_command_local_memory(command->word_0);
    struct native_process *target = &map->control->process[wid];
    order_count(&slot->self->sent, 1);
    if (!is_welcome(target, command->sender, 1))
        return VELO_OK;
    if (unlikely(!take_memory(map, wid, VELO_DIMMNET_MEMORY_SODIMM, &command->remote)) ||
        !native_words_fit(&command->remote, command->len_words)) {
        order_count_shared(&target->dropped_bounds, 1);
        return VELO_OK;
    }
    native_copy(&command->local, &command->remote, command->len_words);
    VELO_HOOK(HOOK_DIMMNET_COPIED);
    struct cut cut = cut_into_packets(&command->local, command->len_words);
    return finish(slot, command, map, wid, VELO_DIMMNET_KIND_ANSWER, memory, cut.last_words);
}

/* Between the process's own region and windows: the latter are the remote memory here. */
static int move_own(struct native_slot *slot, struct command *command, bool is_load)
{
    struct native_words *windows = &command->remote;
    if (is_load)
        (void)take_memory(slot->home, slot->claim.wid, VELO_DIMMNET_MEMORY_PREFETCH, windows);
    else
        *windows = (struct native_words){.memory = slot->write,
                                         .limit_words = DIMMNET_WRITE_WORDS,
                                         .first_word = windows->first_word};
    windows->access = VELO_DIMMNET_ACCESS_CONTIGUOUS;
    if (!native_words_fit(windows, command->len_words))
        return refuse(slot, VELO_DIMMNET_ERROR_BOUNDS, "words outside the windows");
    if (is_load)
        native_copy(windows, &command->local, command->len_words);
    else
        native_copy(&command->local, windows, command->len_words);
    VELO_HOOK(HOOK_DIMMNET_COPIED);
    struct cut cut = cut_into_packets(windows, command->len_words);
    return finish(slot, command, slot->home, slot->claim.wid, 0,
                  is_load ? VELO_DIMMNET_MEMORY_PREFETCH : VELO_DIMMNET_MEMORY_SODIMM,
                  cut.last_words);
}

/* Decode the process's own side, and refuse what makes no sense. */
static int take_command(struct native_slot *slot, struct command *command)
{
    unsigned op = velo_dimmnet_command_op(command->word_0);
    unsigned memory = velo_dimmnet_command_local_memory(command->word_0);
    unsigned access = velo_dimmnet_command_local_access(command->word_0);
    unsigned remote = velo_dimmnet_command_remote_access(command->word_0);
    bool is_window = memory == VELO_DIMMNET_MEMORY_PREFETCH &&
                     (op == VELO_DIMMNET_OP_PUT || op == VELO_DIMMNET_OP_GET);
    command->local.first_word = velo_dimmnet_command_local_word(command->word_1);
    command->remote.first_word = velo_dimmnet_command_remote_word(command->word_1);
    command->len_words = velo_dimmnet_command_words(command->word_0);
    if (op < VELO_DIMMNET_OP_PUT || op > VELO_DIMMNET_OP_STORE || memory > 1 ||
        (is_window && access != VELO_DIMMNET_ACCESS_CONTIGUOUS) ||
        (op == VELO_DIMMNET_OP_GET && access == VELO_DIMMNET_ACCESS_LIST) ||
        (op == VELO_DIMMNET_OP_PUT && remote != VELO_DIMMNET_ACCESS_CONTIGUOUS &&
         velo_dimmnet_command_remote_memory(command->word_0) != VELO_DIMMNET_MEMORY_SODIMM))
        return refuse(slot, VELO_DIMMNET_ERROR_OP, "its fields contradict each other");
    if (command->len_words == 0 ||
        !take_order(slot, &command->local, access, slot->pattern_local, command->len_words) ||
        (op <= VELO_DIMMNET_OP_GET &&
         !take_order(slot, &command->remote, remote, slot->pattern_remote, command->len_words)))
        return refuse(slot, VELO_DIMMNET_ERROR_SIZE,
                      "no words, no whole elements, or a list that leads out of the LLCM");
    if (is_window && op == VELO_DIMMNET_OP_PUT) {
        command->local.memory = slot->write;
        command->local.limit_words = DIMMNET_WRITE_WORDS;
    } else {
        (void)take_memory(slot->home, slot->claim.wid,
                          is_window ? memory : VELO_DIMMNET_MEMORY_SODIMM, &command->local);
    }
    if (!native_words_fit(&command->local, command->len_words))
        return refuse(slot, VELO_DIMMNET_ERROR_BOUNDS, "words outside the own memory");
    return VELO_OK;
}

int native_command(struct native_slot *slot, uint64_t word_0, uint64_t word_1)
{
    struct command command = {.word_0 = word_0, .word_1 = word_1};
    struct native_map *map;
    unsigned op = velo_dimmnet_command_op(word_0);
    command.sender = order_read_entry(&slot->self->identity);
    if (unlikely(!may_send(command.sender)))
        return refuse_disabled(slot);
    int status = take_command(slot, &command);
    if (unlikely(status))
        return status;
    bool is_own = op == VELO_DIMMNET_OP_LOAD || op == VELO_DIMMNET_OP_STORE;
    status = reach(slot, is_own ? slot->lid : velo_dimmnet_command_lid(word_0), &map);
    if (unlikely(status))
        return status;
    VELO_HOOK(HOOK_DIMMNET_REACHED);
    if (is_own)
        return move_own(slot, &command, op == VELO_DIMMNET_OP_LOAD);
    return op == VELO_DIMMNET_OP_PUT ? put(slot, &command, map) : get(slot, &command, map);
}
