/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two threads send words to a third one's LLCM (edge 17). Each packet has words of its own, and the
 * ring has room for all statuses, so that nothing but a status orders them.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <velo/dimmnet.h>

#include "race.h"

#define SENDERS 2
#define PACKETS 250
#define WORDS 4
#define ROUNDS                                                                                     \
    12 /* Where the process finds an entry before its sender has counted it, more is ordered. */

static struct velo_dimmnet *contexts[SENDERS + 1];

static void *send_all(void *arg)
{
    unsigned number = (unsigned)(uintptr_t)arg;
    for (unsigned i = 0; i < PACKETS; i++) {
        uint64_t words[WORDS] = {i, i + 1, i + 2, i + 3};
        struct velo_dimmnet_target target = {.pid = 0,
                                             .memory = VELO_DIMMNET_LLCM,
                                             .word = (number * PACKETS + i) * WORDS,
                                             .status = 1};
        check(velo_dimmnet_send(contexts[1 + number], &target, words, WORDS), "velo_dimmnet_send");
    }
    return NULL;
}

static void *take_all(void *arg)
{
    unsigned next[SENDERS] = {0};
    (void)arg;
    for (unsigned n = 0; n < SENDERS * PACKETS; n++) {
        struct velo_dimmnet_status status;
        int got = VELO_AGAIN;
        while (got == VELO_AGAIN)
            got = velo_dimmnet_poll(contexts[0], &status);
        check(got, "velo_dimmnet_poll");
        unsigned number = status.wid - 1u;
        unsigned i = next[number]++;
        const uint64_t *words = velo_dimmnet_llcm(contexts[0]) + (number * PACKETS + i) * WORDS;
        if (words[0] != i || words[WORDS - 1] != i + 3) {
            fprintf(stderr, "packet %u of sender %u is damaged\n", i, number);
            exit(1);
        }
    }
    return NULL;
}

static void race_once(const char *domain)
{
    struct velo_dimmnet_board_attr board_attr = VELO_DIMMNET_BOARD_ATTR_INIT;
    struct velo_dimmnet_attr attr = VELO_DIMMNET_ATTR_INIT;
    struct velo_dimmnet_board *board;
    pthread_t threads[SENDERS + 1];
    board_attr.domain = domain;
    board_attr.lid = 1;
    board_attr.processes = SENDERS + 1;
    attr.domain = domain;
    attr.lid = 1;
    check(velo_dimmnet_board_open(&board_attr, &board), "velo_dimmnet_board_open");
    check(velo_dimmnet_board_pid(board, 0, 1, 0), "velo_dimmnet_board_pid");
    for (attr.wid = 0; attr.wid <= SENDERS; attr.wid++)
        check(velo_dimmnet_open(&attr, &contexts[attr.wid], 0), "velo_dimmnet_open");
    pthread_create(&threads[SENDERS], NULL, take_all, NULL);
    for (uintptr_t i = 0; i < SENDERS; i++)
        pthread_create(&threads[i], NULL, send_all, (void *)i); // NOLINT(performance-no-int-to-ptr)
    for (int i = 0; i <= SENDERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i <= SENDERS; i++)
        check(velo_dimmnet_close(contexts[i]), "velo_dimmnet_close");
    check(velo_dimmnet_board_close(board), "velo_dimmnet_board_close");
}

void race_statuses(const char *domain)
{
    for (int i = 0; i < ROUNDS; i++)
        race_once(domain);
}
