/* SPDX-License-Identifier: Apache-2.0 */
/* Two boards play ping-pong by BOTF: a packet of a Write Window each way, a status when it is
 * there. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <velo/dimmnet.h>

enum { ROUNDS = 2000 };
static const int64_t patience_ns = INT64_C(5000000000);

static void check(int status, const char *call)
{
    if (status >= VELO_OK)
        return;
    fprintf(stderr, "%s: %s\n%s\n", call, velo_strerror(status), velo_last_error());
    exit(1);
}

/* Process 0 of board 1 or 2. PIDs are the boards' LIDs. */
static int play(const char *domain, unsigned lid)
{
    struct velo_dimmnet_board_attr board_attr = VELO_DIMMNET_BOARD_ATTR_INIT;
    struct velo_dimmnet_attr attr = VELO_DIMMNET_ATTR_INIT;
    struct velo_dimmnet_board *board; /* On a machine with boards, an administrator makes them. */
    struct velo_dimmnet *context;
    board_attr.domain = attr.domain = domain;
    board_attr.lid = attr.lid = lid;
    check(velo_dimmnet_board_open(&board_attr, &board), "velo_dimmnet_board_open");
    check(velo_dimmnet_board_pid(board, 3 - lid, 3 - lid, 0), "velo_dimmnet_board_pid");
    check(velo_dimmnet_open(&attr, &context, patience_ns), "velo_dimmnet_open");
    while (velo_dimmnet_peer_status(context, 3 - lid) == VELO_ERR_NO_PEER)
        usleep(1000);

    struct velo_dimmnet_target peer = {
        .pid = 3 - lid, .memory = VELO_DIMMNET_PREFETCH, .word = 0, .tag = 7, .status = 1};
    struct velo_dimmnet_status status;
    uint64_t ball[2] = {0, lid}, rounds = 0;
    for (; rounds < ROUNDS; rounds++) {
        if (lid == 1)
            check(velo_dimmnet_send(context, &peer, ball, 2), "velo_dimmnet_send");
        check(velo_dimmnet_wait(context, &status, patience_ns), "velo_dimmnet_wait");
        check(velo_dimmnet_refresh(context, 0, 2), "velo_dimmnet_refresh");
        ball[0] = velo_dimmnet_prefetch(context)[0] + 1;
        if (lid == 2)
            check(velo_dimmnet_send(context, &peer, ball, 2), "velo_dimmnet_send");
    }
    check(velo_dimmnet_close(context), "velo_dimmnet_close");
    if (lid == 1)
        wait(NULL); /* The other still reads its last ball. */
    check(velo_dimmnet_board_close(board), "velo_dimmnet_board_close");
    printf("board %u: the ball was hit %llu times\n", lid, (unsigned long long)ball[0]);
    return ball[0] == (lid == 1 ? 2 * ROUNDS : 2 * ROUNDS - 1) ? 0 : 1;
}

int main(void)
{
    char domain[32]; /* One of our own, so that two runs do not meet. */
    snprintf(domain, sizeof domain, "botf-%d", (int)getpid());
    return fork() == 0 ? play(domain, 2) : play(domain, 1);
}
