/* SPDX-License-Identifier: Apache-2.0 */
/* A peer of rma2 in a process of its own: it registers memory, and keeps each notification. */
#ifndef TESTS_EXTOLL_PEER_H
#define TESTS_EXTOLL_PEER_H

#include <rma2.h>

#include "settings.h"
#include "test.h"

enum { PEER_NOTES_MAX = 65536 };
enum peer_order { PEER_STOP = 1, PEER_UNREGISTER, PEER_REGISTER, PEER_CLOSE, PEER_REST };
/* After PEER_REST it makes no call for so long. */
#define PEER_REST_NS (50 * TEST_MS)

/* Memory that both processes see. */
struct peer {
    pid_t pid;
    unsigned char *memory; /* The peer registers it. */
    size_t size;
    RMA2_Nodeid nodeid;
    RMA2_VPID vpid;
    RMA2_NLA nla;
    int ready;
    int order; /* enum peer_order; 0 when it is carried out. */
    unsigned notes_len;
    RMA2_Notification notes[PEER_NOTES_MAX];
};

/* Start one; before the caller opens a port of its own. */
struct peer *peer_start(size_t size);
void peer_order(struct peer *peer, enum peer_order order);
/* Its notification number `index`, when it is there. */
RMA2_Notification *peer_note(struct peer *peer, unsigned index);
void peer_stop(struct peer *peer);

RMA2_Port port_opened(void);
/* The next notification, which is copied and freed. */
RMA2_Notification note_next(RMA2_Port port);
void note_none(RMA2_Port port);

#endif
