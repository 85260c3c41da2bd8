/* SPDX-License-Identifier: Apache-2.0 */
/* Packets and commands: made, checked as far as the library can, and handed over. */
#include "context.h"

#include <string.h>

/* ---- packets --------------------------------------------------------------------------------- */

/* Words of a peer's memory that a packet may name, as far as all boards agree: a region's size is
 * known to its own board only. */
static uint64_t memory_words(uint32_t memory)
{
    switch (memory) {
    case VELO_DIMMNET_SODIMM:
        return UINT64_C(1) << 32;
    case VELO_DIMMNET_PREFETCH:
        return DIMMNET_PREFETCH_WORDS;
    case VELO_DIMMNET_LLCM:
        return VELO_DIMMNET_LLCM_FREE_WORDS;
    default:
        return 0;
    }
}

static cold_path int bad_target(uint32_t memory, uint32_t word, uint32_t len_words, unsigned status)
{
    if (memory > VELO_DIMMNET_LLCM)
        return velo_fail(VELO_ERR_ARG, "memory is %u; give one of enum velo_dimmnet_memory",
                         memory);
    if (status > 1)
        return velo_fail(VELO_ERR_ARG, "status is %u; give 0 or 1", status);
    return velo_fail(VELO_ERR_ARG, "%u words from word %u lead out of that memory, which has %llu",
                     len_words, word, (unsigned long long)memory_words(memory));
}

hot_inline int check_target(uint32_t memory, uint32_t word, uint32_t len_words, unsigned status)
{
    if (likely((uint64_t)word + len_words <= memory_words(memory) && status <= 1 &&
               memory <= VELO_DIMMNET_LLCM))
        return VELO_OK;
    return bad_target(memory, word, len_words, status);
}

hot_inline uint64_t header_0(const struct velo_dimmnet_target *target, uint64_t entry, bool status)
{
    return velo_dimmnet_packet_word0_pack(
        VELO_DIMMNET_KIND_WRITE, (uint8_t)target->memory, VELO_DIMMNET_ACCESS_CONTIGUOUS, status, 0,
        velo_dimmnet_identity_wid(entry), 0, velo_dimmnet_identity_lid(entry), 0);
}

hot_inline uint64_t header_1(const struct velo_dimmnet_target *target, uint32_t word)
{
    return velo_dimmnet_packet_word1_pack(0, target->tag, word);
}

int velo_dimmnet_header(const struct velo_dimmnet *context,
                        const struct velo_dimmnet_target *target, uint64_t *header)
{
    uint64_t entry;
    if (!context || !target || !header)
        return velo_fail(VELO_ERR_ARG, "context, target or header is NULL");
    int status = check_target(target->memory, target->word, 0, target->status);
    if (status == VELO_OK)
        status = dimmnet_pid(context, target->pid, &entry);
    if (status)
        return status;
    header[0] = header_0(target, entry, target->status);
    header[1] = header_1(target, target->word);
    return VELO_OK;
}

/* Hand over a word that starts something. */
hot_inline int start_word(struct velo_dimmnet *context, unsigned word, uint64_t value)
{
    int status = dimmnet_write(context, word, value);
    context->issued += status == VELO_OK;
    return status;
}

int velo_dimmnet_botf(struct velo_dimmnet *context, unsigned window, uint32_t first_word,
                      uint32_t len_words)
{
    GUARD(context, "context");
    if (unlikely(!context || window >= VELO_DIMMNET_WRITE_WINDOWS ||
                 first_word >= VELO_DIMMNET_WINDOW_WORDS || len_words < VELO_DIMMNET_HEADER_WORDS ||
                 len_words > VELO_DIMMNET_WINDOW_WORDS - first_word))
        return velo_fail(VELO_ERR_ARG,
                         "context is NULL, or %u words from word %u of window %u are no packet; "
                         "give 2 to 64 - first_word, of window 0 or 1",
                         len_words, first_word, window);
    return start_word(
        context, VELO_DIMMNET_REGISTER_BOTF,
        velo_dimmnet_botf_pack((uint8_t)window, (uint8_t)first_word, (uint8_t)len_words));
}

static cold_path int bad_send(const struct velo_dimmnet *context,
                              const struct velo_dimmnet_target *target, const void *words,
                              uint32_t len_words)
{
    if (!context || !target || !words)
        return velo_fail(VELO_ERR_ARG, "context, target or words is NULL");
    return velo_fail(VELO_ERR_ARG, "len_words is %u; give 1 to %u", len_words,
                     VELO_DIMMNET_COMMAND_WORDS_MAX);
}

int velo_dimmnet_send(struct velo_dimmnet *context, const struct velo_dimmnet_target *target,
                      const void *words, uint32_t len_words)
{
    uint64_t entry;
    GUARD(context, "context");
    if (unlikely(!context || !target || !words || len_words == 0 ||
                 len_words > VELO_DIMMNET_COMMAND_WORDS_MAX))
        return bad_send(context, target, words, len_words);
    int status = check_target(target->memory, target->word, len_words, target->status);
    if (likely(status == VELO_OK))
        status = dimmnet_pid(context, target->pid, &entry);
    uint64_t *window = context->slot->write;
    for (uint32_t at = 0; status == VELO_OK && at < len_words;) {
        uint32_t now = len_words - at;
        bool is_last = now <= VELO_DIMMNET_PAYLOAD_WORDS_MAX;
        if (!is_last)
            now = VELO_DIMMNET_PAYLOAD_WORDS_MAX;
        /* The window may still be on its way from the packet before. */
        while ((uint32_t)dimmnet_read(context, VELO_DIMMNET_REGISTER_DONE) != context->issued)
            order_pause();
        window[0] = header_0(target, entry, is_last && target->status);
        window[1] = header_1(target, target->word + at);
        memcpy(window + VELO_DIMMNET_HEADER_WORDS, (const char *)words + at * sizeof *window,
               now * sizeof *window);
        status =
            start_word(context, VELO_DIMMNET_REGISTER_BOTF,
                       velo_dimmnet_botf_pack(0, 0, (uint8_t)(VELO_DIMMNET_HEADER_WORDS + now)));
        at += now;
    }
    return status;
}

int velo_dimmnet_aotf_header(struct velo_dimmnet *context, unsigned slot,
                             const struct velo_dimmnet_target *target)
{
    uint64_t header[VELO_DIMMNET_HEADER_WORDS];
    GUARD(context, "context");
    if (!context || slot >= VELO_DIMMNET_AOTF_HEADERS)
        return velo_fail(VELO_ERR_ARG, "context is NULL, or slot is %u; give 0 to %u", slot,
                         VELO_DIMMNET_AOTF_HEADERS - 1);
    int status = velo_dimmnet_header(context, target, header);
    if (status)
        return status;
    memcpy(context->slot->write + VELO_DIMMNET_WINDOW_WORDS +
               (size_t)slot * VELO_DIMMNET_HEADER_WORDS,
           header, sizeof header);
    return VELO_OK;
}

int velo_dimmnet_aotf(struct velo_dimmnet *context, unsigned slot, uint64_t word)
{
    GUARD(context, "context");
    if (unlikely(!context || slot >= VELO_DIMMNET_AOTF_HEADERS))
        return velo_fail(VELO_ERR_ARG, "context is NULL, or slot is %u; give 0 to %u", slot,
                         VELO_DIMMNET_AOTF_HEADERS - 1);
    return start_word(context, VELO_DIMMNET_REGISTER_AOTF + slot * VELO_DIMMNET_AOTF_STEP_WORDS,
                      word);
}

/* ---- commands -------------------------------------------------------------------------------- */

static cold_path int bad_pattern(const struct velo_dimmnet_pattern *pattern, const char *whose,
                                 uint32_t len_words)
{
    if (pattern->access > VELO_DIMMNET_LIST)
        return velo_fail(VELO_ERR_ARG, "the %s access is %u; give one of enum velo_dimmnet_access",
                         whose, pattern->access);
    if (pattern->element_words < 1 || pattern->element_words > VELO_DIMMNET_ELEMENT_WORDS_MAX ||
        len_words % pattern->element_words != 0)
        return velo_fail(VELO_ERR_ARG,
                         "the %s element_words is %u; give 1 to %u, of which len_words, %u, is a "
                         "multiple",
                         whose, pattern->element_words, VELO_DIMMNET_ELEMENT_WORDS_MAX, len_words);
    return velo_fail(VELO_ERR_ARG,
                     "the %s list of %u offsets from word %u leads out of the LLCM, which has %u "
                     "words for it",
                     whose, len_words / pattern->element_words, pattern->list_word,
                     VELO_DIMMNET_LLCM_FREE_WORDS);
}

hot_inline int check_pattern(const struct velo_dimmnet_pattern *pattern, const char *whose,
                             uint32_t len_words)
{
    if (likely(pattern->access == VELO_DIMMNET_CONTIGUOUS))
        return VELO_OK;
    uint32_t element = pattern->element_words;
    if (likely(pattern->access <= VELO_DIMMNET_LIST && element >= 1 &&
               element <= VELO_DIMMNET_ELEMENT_WORDS_MAX &&
               (element == 1 || len_words % element == 0) &&
               (pattern->access == VELO_DIMMNET_STRIDED ||
                (uint64_t)pattern->list_word + (len_words / element + 1) / 2 <=
                    VELO_DIMMNET_LLCM_FREE_WORDS)))
        return VELO_OK;
    return bad_pattern(pattern, whose, len_words);
}

/* Write a pattern register, unless it holds the pattern. */
hot_inline int set_pattern(struct velo_dimmnet *context, unsigned which,
                           const struct velo_dimmnet_pattern *pattern)
{
    if (pattern->access == VELO_DIMMNET_CONTIGUOUS)
        return VELO_OK;
    uint64_t word = velo_dimmnet_pattern_pack((uint8_t)pattern->element_words, 0,
                                              pattern->access == VELO_DIMMNET_STRIDED
                                                  ? (uint32_t)pattern->step_words
                                                  : pattern->list_word);
    if (word == context->patterns[which])
        return VELO_OK;
    context->patterns[which] = word;
    return dimmnet_write(context, VELO_DIMMNET_REGISTER_PATTERN_LOCAL + which, word);
}

_Static_assert(VELO_DIMMNET_REGISTER_PATTERN_REMOTE == VELO_DIMMNET_REGISTER_PATTERN_LOCAL + 1,
               "pattern registers follow each other");

/* What may be wrong with any transfer. */
static cold_path int bad_transfer(const struct velo_dimmnet *context,
                                  const struct velo_dimmnet_transfer *transfer)
{
    if (!context || !transfer)
        return velo_fail(VELO_ERR_ARG, "context or transfer is NULL");
    if (transfer->status > 1)
        return velo_fail(VELO_ERR_ARG, "status is %u; give 0 or 1", transfer->status);
    return velo_fail(VELO_ERR_ARG, "len_words is %u; give 1 to %u", transfer->len_words,
                     VELO_DIMMNET_COMMAND_WORDS_MAX);
}

hot_inline int check_transfer(const struct velo_dimmnet *context,
                              const struct velo_dimmnet_transfer *transfer)
{
    if (unlikely(!context || !transfer || transfer->len_words == 0 ||
                 transfer->len_words > VELO_DIMMNET_COMMAND_WORDS_MAX || transfer->status > 1))
        return bad_transfer(context, transfer);
    return check_pattern(&transfer->local, "local", transfer->len_words);
}

/* Words in a row inside a window of so many, or in a region by a pattern that only the controller
 * checks. */
hot_inline int check_windows(uint32_t word, uint32_t len_words, uint32_t window_words)
{
    if (likely((uint64_t)word + len_words <= window_words))
        return VELO_OK;
    return velo_fail(VELO_ERR_ARG, "%u words from word %u lead out of the windows, which have %u",
                     len_words, word, window_words);
}

hot_inline int issue_command(struct velo_dimmnet *context, unsigned op,
                             const struct velo_dimmnet_transfer *transfer, uint64_t entry)
{
    bool is_remote = op == VELO_DIMMNET_OP_PUT || op == VELO_DIMMNET_OP_GET;
    int status = set_pattern(context, 0, &transfer->local);
    if (status == VELO_OK && is_remote)
        status = set_pattern(context, 1, &transfer->remote);
    if (status)
        return status;
    uint64_t word_0 = velo_dimmnet_command_word0_pack(
        (uint8_t)op, is_remote ? (uint8_t)transfer->local_memory : 0,
        is_remote ? (uint8_t)transfer->remote_memory : 0, (uint8_t)transfer->local.access,
        is_remote ? (uint8_t)transfer->remote.access : 0, transfer->status,
        velo_dimmnet_identity_wid(entry), transfer->tag, transfer->len_words,
        velo_dimmnet_identity_lid(entry));
    status = dimmnet_write(context, VELO_DIMMNET_REGISTER_COMMAND_0, word_0);
    if (status)
        return status;
    return start_word(context, VELO_DIMMNET_REGISTER_COMMAND_1,
                      velo_dimmnet_command_word1_pack(transfer->local_word, transfer->remote_word));
}

/* Packets of a command begin with a whole element at both ends (spec/dimmnet.toml). */
hot_inline int check_both(const struct velo_dimmnet_transfer *transfer)
{
    int status = check_pattern(&transfer->remote, "remote", transfer->len_words);
    if (likely(status != VELO_OK || transfer->local.access == VELO_DIMMNET_CONTIGUOUS ||
               transfer->remote.access == VELO_DIMMNET_CONTIGUOUS ||
               transfer->local.element_words == transfer->remote.element_words))
        return status;
    return velo_fail(VELO_ERR_ARG,
                     "the local element_words is %u and the remote one %u; give the same, or make "
                     "one side contiguous",
                     transfer->local.element_words, transfer->remote.element_words);
}

/* The own side of a put or get. */
hot_inline int check_local(const struct velo_dimmnet_transfer *transfer, uint32_t window_words)
{
    if (transfer->local_memory == VELO_DIMMNET_SODIMM)
        return VELO_OK; /* The controller knows the region. */
    if (unlikely(transfer->local_memory != VELO_DIMMNET_PREFETCH))
        return velo_fail(VELO_ERR_ARG,
                         "local_memory is %u; give VELO_DIMMNET_SODIMM, or VELO_DIMMNET_PREFETCH "
                         "for the windows",
                         transfer->local_memory);
    if (unlikely(transfer->local.access != VELO_DIMMNET_CONTIGUOUS))
        return velo_fail(VELO_ERR_ARG, "windows are contiguous; set local.access to 0");
    return check_windows(transfer->local_word, transfer->len_words, window_words);
}

int velo_dimmnet_put(struct velo_dimmnet *context, const struct velo_dimmnet_transfer *transfer)
{
    uint64_t entry;
    GUARD(context, "context");
    int status = check_transfer(context, transfer);
    if (status == VELO_OK)
        status = check_local(transfer, DIMMNET_WRITE_WORDS);
    if (status == VELO_OK)
        status = check_both(transfer);
    if (status == VELO_OK && transfer->remote.access == VELO_DIMMNET_CONTIGUOUS)
        status = check_target(transfer->remote_memory, transfer->remote_word, transfer->len_words,
                              transfer->status);
    else if (status == VELO_OK && transfer->remote_memory != VELO_DIMMNET_SODIMM)
        status = velo_fail(VELO_ERR_ARG, "only a region is strided or listed; set remote_memory to "
                                         "VELO_DIMMNET_SODIMM");
    if (status == VELO_OK)
        status = dimmnet_pid(context, transfer->pid, &entry);
    return status ? status : issue_command(context, VELO_DIMMNET_OP_PUT, transfer, entry);
}

int velo_dimmnet_get(struct velo_dimmnet *context, const struct velo_dimmnet_transfer *transfer)
{
    uint64_t entry;
    GUARD(context, "context");
    int status = check_transfer(context, transfer);
    if (status == VELO_OK)
        status = check_local(transfer, DIMMNET_PREFETCH_WORDS);
    if (status == VELO_OK && transfer->local.access == VELO_DIMMNET_LIST)
        status = velo_fail(VELO_ERR_ARG, "the own side of a get is contiguous or strided");
    if (status == VELO_OK)
        status = check_both(transfer);
    if (status == VELO_OK && transfer->remote_memory != VELO_DIMMNET_SODIMM)
        status = velo_fail(VELO_ERR_ARG,
                           "remote_memory is %u; a get reads regions, "
                           "VELO_DIMMNET_SODIMM",
                           transfer->remote_memory);
    if (status == VELO_OK)
        status = dimmnet_pid(context, transfer->pid, &entry);
    return status ? status : issue_command(context, VELO_DIMMNET_OP_GET, transfer, entry);
}

int velo_dimmnet_load(struct velo_dimmnet *context, const struct velo_dimmnet_transfer *transfer)
{
    GUARD(context, "context");
    int status = check_transfer(context, transfer);
    if (status == VELO_OK)
        status = check_windows(transfer->remote_word, transfer->len_words, DIMMNET_PREFETCH_WORDS);
    return status ? status : issue_command(context, VELO_DIMMNET_OP_LOAD, transfer, 0);
}

int velo_dimmnet_store(struct velo_dimmnet *context, const struct velo_dimmnet_transfer *transfer)
{
    GUARD(context, "context");
    int status = check_transfer(context, transfer);
    if (status == VELO_OK)
        status = check_windows(transfer->remote_word, transfer->len_words, DIMMNET_WRITE_WORDS);
    return status ? status : issue_command(context, VELO_DIMMNET_OP_STORE, transfer, 0);
}
