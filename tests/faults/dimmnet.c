/* SPDX-License-Identifier: Apache-2.0 */
/* Two boards of DIMMnet-2 of two processes: a packet, a put, a get. */
#include <sched.h>
#include <stdint.h>
#include <string.h>

#include <velo/dimmnet.h>
#include <velo/velo.h>

#include "play.h"

enum { WORDS = 500, STORE_WORDS = 64 };

/* close_all() closes these, in this order. */
static struct velo_dimmnet *context;
static struct velo_dimmnet_board *board;

void close_all(void)
{
    if (context)
        (void)velo_dimmnet_close(context);
    if (board)
        (void)velo_dimmnet_board_close(board);
}

static void check(int status, const char *call)
{
    if (status < VELO_OK)
        give_up(call, velo_strerror(status), velo_last_error());
}

#define DO(call) check(call, #call)

/* Process ROLE is 1 + ROLE at the board of that number; pid 10 and 20. */
static void begin(int role)
{
    struct velo_dimmnet_board_attr board_attr = VELO_DIMMNET_BOARD_ATTR_INIT;
    struct velo_dimmnet_attr attr = VELO_DIMMNET_ATTR_INIT;
    board_attr.lid = 1 + (unsigned)role;
    board_attr.sodimm_bytes = 1 << 16;
    DO(velo_dimmnet_board_open(&board_attr, &board));
    for (unsigned lid = 1; lid <= 2; lid++)
        DO(velo_dimmnet_board_pid(board, 10 * lid, lid, 0));
    attr.lid = 1 + (unsigned)role;
    attr.wid = 0;
    DO(velo_dimmnet_open(&attr, &context, patience_ns));
}

static void wait_for(uint8_t tag)
{
    struct velo_dimmnet_status status;
    DO(velo_dimmnet_wait(context, &status, patience_ns));
    expect(status.tag == tag, "a status's tag");
}

/* Until the other board is there a packet leads to nobody. */
static void send_word(unsigned pid, uint64_t word, uint8_t tag)
{
    const struct velo_dimmnet_target target = {
        .pid = pid, .memory = VELO_DIMMNET_LLCM, .word = 7, .tag = tag, .status = 1};
    int64_t end_ns = now_ns() + patience_ns;
    int status;
    while ((status = velo_dimmnet_peer_status(context, pid)) == VELO_ERR_NO_PEER) {
        expect_before(end_ns, "velo_dimmnet_peer_status");
        (void)sched_yield();
    }
    check(status, "velo_dimmnet_peer_status");
    DO(velo_dimmnet_send(context, &target, &word, 1));
}

static void store_words(void)
{
    for (uint32_t at = 0; at < WORDS; at += STORE_WORDS) {
        uint32_t len_words = WORDS - at < STORE_WORDS ? WORDS - at : STORE_WORDS;
        const struct velo_dimmnet_transfer store = {.len_words = len_words, .local_word = at};
        DO(velo_dimmnet_quiet(context, patience_ns));
        memcpy(velo_dimmnet_write_window(context, 0), data + 8 * at, 8 * (size_t)len_words);
        DO(velo_dimmnet_store(context, &store));
    }
    DO(velo_dimmnet_quiet(context, patience_ns));
}

static void expect_words(uint32_t first_word)
{
    for (uint32_t at = 0; at < WORDS; at += STORE_WORDS) {
        uint32_t len_words = WORDS - at < STORE_WORDS ? WORDS - at : STORE_WORDS;
        const struct velo_dimmnet_transfer load = {.len_words = len_words,
                                                   .local_word = first_word + at,
                                                   .remote_word = 192,
                                                   .status = 1,
                                                   .tag = 99};
        DO(velo_dimmnet_load(context, &load));
        wait_for(99);
        DO(velo_dimmnet_refresh(context, 192, len_words));
        expect(memcmp((const void *)(velo_dimmnet_prefetch(context) + 192), data + 8 * at,
                      8 * (size_t)len_words) == 0,
               "the words of a transfer");
    }
}

static void transfers(int role)
{
    const unsigned other = role == 0 ? 20 : 10;
    begin(role);
    send_word(other, 5, 1);
    wait_for(1);
    expect(velo_dimmnet_llcm(context)[7] == 5, "the word of a packet");
    if (role == 0) {
        const struct velo_dimmnet_transfer put = {
            .pid = other, .len_words = WORDS, .remote_word = 60, .tag = 2, .status = 1};
        const struct velo_dimmnet_transfer get = {.pid = other,
                                                  .len_words = WORDS,
                                                  .local_word = 2000,
                                                  .remote_word = 60,
                                                  .tag = 3,
                                                  .status = 1};
        store_words();
        DO(velo_dimmnet_put(context, &put));
        wait_for(4);
        DO(velo_dimmnet_get(context, &get));
        wait_for(3);
        expect_words(2000);
        send_word(other, 6, 5);
        DO(velo_dimmnet_quiet(context, patience_ns));
    } else {
        wait_for(2);
        expect_words(60);
        send_word(other, 7, 4);
        wait_for(5);
    }
}

const struct scene scenes[] = {{"transfers", transfers}, {NULL, NULL}};
