/* SPDX-License-Identifier: Apache-2.0 */
/* No memory at a bad moment. */
#include "support.h"

#include <stdlib.h>

/* Many times what a message needs that goes at once. */
#define LONG_BYTES 300000u

extern void *__libc_malloc(size_t len_bytes);
extern void *__libc_calloc(size_t count, size_t len_bytes);
extern void *__libc_realloc(void *old, size_t len_bytes);

static volatile bool none_is_left;

INTERPOSED void *malloc(size_t size) { return none_is_left ? NULL : __libc_malloc(size); }

INTERPOSED void *calloc(size_t nmemb, size_t size)
{
    return none_is_left ? NULL : __libc_calloc(nmemb, size);
}

INTERPOSED void *realloc(void *ptr, size_t size)
{
    return none_is_left ? NULL : __libc_realloc(ptr, size);
}

/* A receiver without memory refuses what it cannot answer; when its sender's ring is full it would
 * have to keep those words, for which there is no memory either. */
TEST(a_sender_hears_of_a_receiver_that_has_no_memory_even_to_say_so)
{
    enum { SENDS = 150 };
    static struct velo_mq_request sends[SENDS], recvs[SENDS], first, first_recv;
    struct node nodes[2];
    char *buf = calloc(1, LONG_BYTES); /* Its content does not matter. */
    int refused = 0;

    test_needs_shared_memory();
    node_open(&nodes[0], 0, 4096, 16 << 20, NULL, false);
    node_open(&nodes[1], 1, 8, 0, NULL, false);
    struct velo_mq_peer *peer = node_connect(&nodes[1], nodes[0].id);
    /* There is a connection back. */
    CHECK_OK(velo_mq_irecv(nodes[0].mq, nodes[1].id, 1, 0, buf, LONG_BYTES, &first_recv));
    CHECK_OK(velo_mq_isend(peer, buf, LONG_BYTES, 1, 0, &first));
    nodes_finish(nodes, 2, &first_recv);
    nodes_finish(nodes, 2, &first);
    for (int i = 0; i < SENDS; i++) {
        CHECK_OK(velo_mq_irecv(nodes[0].mq, nodes[1].id, 1, 0, buf, LONG_BYTES, &recvs[i]));
        CHECK_OK(velo_mq_isend(peer, buf, LONG_BYTES, 1, 0, &sends[i]));
    }
    none_is_left = true;
    for (int i = 0; i < 4 * SENDS; i++)
        (void)velo_mq_progress(nodes[0].mq);
    none_is_left = false;
    for (int i = 0; i < SENDS; i++) {
        nodes_finish(nodes, 2, &recvs[i]);
        nodes_finish(nodes, 2, &sends[i]);
        refused += recvs[i].status == VELO_ERR_NO_MEMORY;
        CHECK((recvs[i].status == VELO_OK) == (sends[i].status == VELO_OK));
    }
    CHECK(refused > 0);
    node_close(&nodes[1]);
    node_close(&nodes[0]);
    free(buf);
}
