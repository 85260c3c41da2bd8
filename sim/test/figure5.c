/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figure 5 of the DIMMnet-2 paper over simulated boards, by loads and stores alone, as
 * rtl/dimmnet_board/host/figure5.py has it: half of a round trip in ns, by case and bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <velo/dimmnet_spec.h>

#include "../client/channel.h"

enum { ROUNDS = 4, PGID = 42, REGION_WORDS = 1 << 20, SETTLE_US = 200 };
static const unsigned sizes_bytes[] = {16, 64, 128, 256, 496};
/* a: status seen, data in the Prefetch Window; b: data in SO-DIMM; c: as a, and data read. */
static const char cases[] = "abc";

static struct sim_channel *channel;
static uint64_t board, seen;

static void check(int status, const char *what)
{
    if (status == SIM_OK)
        return;
    fprintf(stderr, "%s: status %d\n", what, status);
    exit(1);
}

static uint64_t page(unsigned kind) { return velo_dimmnet_slot_pack(0, (uint8_t)kind, 0, false); }

static uint64_t own_register(unsigned word)
{
    return page(VELO_DIMMNET_PAGE_REGISTER) + word * sizeof(uint64_t);
}

static void store(uint64_t address, uint64_t word)
{
    check(sim_slot_store(channel, board, address, &word, 1), "store");
}

static void set_up(unsigned lid)
{
    uint64_t privileged = velo_dimmnet_slot_pack(0, 0, 0, true);
    uint64_t process = privileged + VELO_DIMMNET_PRIVILEGED_PROCESS * sizeof(uint64_t);

    channel = sim_channel_self();
    if (!channel) {
        fprintf(stderr, "%s\n", sim_channel_why_none());
        exit(1);
    }
    check(sim_board_open(channel, lid, &board), "board open");
    store(privileged + VELO_DIMMNET_PRIVILEGED_LID * sizeof(uint64_t), lid);
    store(process, velo_dimmnet_identity_pack(PGID, 0, true, 0));
    store(process + 2 * sizeof(uint64_t), REGION_WORDS);
}

static void work(void) { sim_channel_charge(channel, sim_channel_area()->slot_call_ps); }

static void send(unsigned lid, bool to_sodimm, unsigned len_words, uint64_t turn)
{
    uint64_t packet[VELO_DIMMNET_WINDOW_WORDS];

    work();
    uint8_t memory =
        (uint8_t)(to_sodimm ? VELO_DIMMNET_MEMORY_SODIMM : VELO_DIMMNET_MEMORY_PREFETCH);
    packet[0] = velo_dimmnet_packet_word0_pack(VELO_DIMMNET_KIND_WRITE, memory,
                                               VELO_DIMMNET_ACCESS_CONTIGUOUS, true,
                                               (uint8_t)len_words, 0, 0, (uint16_t)lid, 0);
    packet[1] = velo_dimmnet_packet_word1_pack(0, (uint8_t)turn, 0);
    for (unsigned i = 0; i < len_words; i++)
        packet[VELO_DIMMNET_HEADER_WORDS + i] = turn << 32 | i;
    check(sim_slot_store(channel, board, page(VELO_DIMMNET_PAGE_WRITE), packet,
                         VELO_DIMMNET_HEADER_WORDS + len_words),
          "store");
    store(own_register(VELO_DIMMNET_REGISTER_BOTF),
          velo_dimmnet_botf_pack(0, 0, (uint8_t)(VELO_DIMMNET_HEADER_WORDS + len_words)));
}

/* The words read must be this turn's. */
static void receive(bool is_read, unsigned len_words, uint64_t turn)
{
    uint64_t words[VELO_DIMMNET_WINDOW_WORDS];
    uint64_t written = seen;

    work();
    check(sim_slot_await(channel, board, own_register(VELO_DIMMNET_REGISTER_STATUS_WRITE), &written,
                         SIM_NEVER),
          "await");
    seen++;
    if (is_read)
        check(sim_slot_lines(channel, board, page(VELO_DIMMNET_PAGE_PREFETCH), words, len_words),
              "load");
    for (unsigned i = 0; is_read && i < len_words; i++)
        if (words[i] != (turn << 32 | i))
            check(SIM_ERR_CALL, "words of another turn");
}

static void ping_pong(bool is_first, unsigned lid, char what, unsigned size_bytes)
{
    unsigned len_words = size_bytes / sizeof(uint64_t);
    uint64_t sum_ps = 0;

    for (uint64_t turn = 0; turn <= ROUNDS; turn++) {
        uint64_t start_ps = channel->call.time_ps;
        if (is_first)
            send(lid, what == 'b', len_words, turn);
        receive(what == 'c', len_words, turn);
        if (turn > 0) /* The first warms up. */
            sum_ps += channel->call.time_ps - start_ps;
        if (!is_first)
            send(lid, what == 'b', len_words, turn);
        store(own_register(VELO_DIMMNET_REGISTER_STATUS_READ), seen);
    }
    if (is_first)
        printf("%c %u %.1f\n", what, size_bytes, (double)sum_ps / (double)(PS_PER_NS * ROUNDS * 2));
}

int main(void)
{
    channel = sim_channel_self();
    pid_t child = fork();
    bool is_first = child != 0;
    unsigned lids[] = {0x11, 0x12};
    int status = 0;

    set_up(lids[!is_first]);
    usleep(SETTLE_US); /* The other board is there. */
    for (const char *what = cases; *what; what++)
        for (unsigned i = 0; i < sizeof sizes_bytes / sizeof sizes_bytes[0]; i++)
            ping_pong(is_first, lids[is_first], *what, sizes_bytes[i]);
    if (is_first)
        (void)waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
