/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file hook.h
 * @brief Named points between the stores of a sender or requester, for the kill and system tests.
 *
 * In the library proper a point is nothing. Built with VELO_TEST_HOOKS, each point calls
 * velo_test_hook, which the test sets to something that kills or stops the process.
 */
#ifndef VELO_BASE_HOOK_H
#define VELO_BASE_HOOK_H

enum velo_hook_point {
    HOOK_CONNECT_CLAIMED,
    HOOK_CONNECT_ALLOCATED,
    HOOK_CONNECT_READY,
    HOOK_SEND_PAYLOAD,
    HOOK_SEND_DATA_OFFSET,
    HOOK_SEND_EMPTIED,
    HOOK_SEND_HEADER,
    HOOK_SEND_CURSOR,
    HOOK_SEND_COUNTED,
    HOOK_RESERVE,
    HOOK_RING_BIT,
    HOOK_RING_SUMMARY,
    HOOK_RING_WAKE,
    HOOK_WAIT_FLAG,
    HOOK_WAIT_DONE,
    HOOK_DISCONNECT_ENTRY,
    HOOK_DISCONNECT_RING,
    HOOK_REFUSING, /* A receiver has looked whose the ring is that it refuses. */
    HOOK_RMA_ENTERED,
    HOOK_RMA_MOVED,
    HOOK_LAST_LOOK,
    HOOK_ARM,
    HOOK_BCAST_BEGUN, /* The writer of lib/bcast, */
    HOOK_BCAST_PAYLOAD,
    HOOK_BCAST_HEADER,
    HOOK_BCAST_TAIL,
    HOOK_BCAST_TAKEN,
    HOOK_BCAST_STUCK,
    HOOK_BCAST_LIVES, /* and a reader. */
    HOOK_BCAST_CLAIMED,
    HOOK_BCAST_READY,
    HOOK_BCAST_PLACED,
    HOOK_BCAST_FOUND,
    HOOK_BCAST_COPIED,
    HOOK_BCAST_CONSUMED,
    HOOK_BCAST_ASLEEP,
    HOOK_BCAST_LEAVING,
    HOOK_BCAST_FREED,
    HOOK_DIMMNET_SET,     /* The maker of a board of lib/dimmnet, */
    HOOK_DIMMNET_CLAIMED, /* and a process that opens a context, */
    HOOK_DIMMNET_REACHED, /* sends, */
    HOOK_DIMMNET_COPIED,
    HOOK_DIMMNET_POSTED,
    HOOK_DIMMNET_COUNTED,
    HOOK_DIMMNET_WAITING,
    HOOK_DIMMNET_ASLEEP, /* and takes statuses. */
    HOOK_DIMMNET_TAKEN,
    HOOK_DIMMNET_EMPTIED,
};

#ifdef VELO_TEST_HOOKS
extern void (*velo_test_hook)(unsigned point);
#define VELO_HOOK(point)                                                                           \
    do {                                                                                           \
        if (velo_test_hook)                                                                        \
            velo_test_hook(point);                                                                 \
    } while (0)
#else
#define VELO_HOOK(point) ((void)0)
#endif

#endif
