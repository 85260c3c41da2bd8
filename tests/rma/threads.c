/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Units of one process in threads of their own. ThreadSanitizer cannot judge it: each unit maps the
 * table for itself, and it knows addresses, not memory.
 */
#include <pthread.h>
#include <string.h>

#include "stage.h"

enum { WORDS = 64 };
#define ROUNDS (int)scaled(400, 20)

struct shared {
    _Atomic velo_rma_key_t key;
    atomic_uint hits;
    atomic_int stop;
};

/* Over a transport a put with a key that has ended is refused later, by a notification. Each takes
 * a place in the queue until it is polled. */
static void take_refusals(struct velo_rma *rma)
{
    struct velo_rma_notification note;

    while (velo_rma_try_poll(rma, &note, 1) == 1)
        CHECK(note.class_ == VELO_RMA_CLASS_ERROR && note.status == VELO_ERR_ACCESS);
}

static void *put_all_the_time(void *arg)
{
    struct shared *shared = arg;
    struct velo_port *port = port_open(REQUESTER_VPID);
    struct velo_rma *rma = rma_open(port);
    struct velo_rma_peer *peer;
    uint64_t words[WORDS];

    memset(words, 1, sizeof(words));
    CHECK_OK(velo_rma_connect(rma, OWNER_VPID, &peer, TEST_PATIENCE_NS));
    while (!atomic_load(&shared->stop)) {
        velo_rma_key_t key = atomic_load(&shared->key);
        int status = velo_rma_put(peer, words, sizeof(words), velo_rma_place(key, 0),
                                  VELO_RMA_NOTIFY_COMPLETER, key);

        if (status == VELO_OK)
            atomic_fetch_add(&shared->hits, 1);
        else
            CHECK(status == VELO_ERR_ACCESS || status == VELO_AGAIN);
        if (status != VELO_OK)
            pace(rma); /* There will be another key, or room. */
        take_refusals(rma);
    }
    CHECK_OK(velo_rma_close(rma));
    CHECK_OK(velo_port_close(port));
    return NULL;
}

/* Memory that was put to is read after its notification, and is plain memory after
 * deregistration. */
TEST(memory_is_its_owners_again_after_deregistration)
{
    struct shared shared = {0};
    struct velo_port *port;
    struct velo_rma *rma;
    uint64_t words[WORDS];
    pthread_t thread;

#ifdef __SANITIZE_THREAD__
    test_skip("two mappings of one file are two memories to ThreadSanitizer");
#endif
    way_set(WAY_DIRECT);
    port = port_open(OWNER_VPID);
    rma = rma_open(port);
    CHECK_EQ(pthread_create(&thread, NULL, put_all_the_time, &shared), 0);
    for (int round = 0; round < ROUNDS; round++) {
        struct velo_rma_notification note;
        struct velo_rma_mem *mem;

        memset(words, 2, sizeof(words));
        CHECK_OK(velo_rma_mem_register(rma, words, sizeof(words), VELO_RMA_RIGHT_WRITE,
                                       VELO_RMA_PEER_ANY, &mem));
        atomic_store(&shared.key, velo_rma_mem_key(mem));
        do
            note = note_expect(rma);
        while (note.cookie != velo_rma_mem_key(mem));
        CHECK_OK(velo_rma_mem_deregister(mem, VELO_FOREVER));
        for (size_t i = 0; i < WORDS; i++)
            CHECK_EQ(words[i], UINT64_C(0x0101010101010101));
    }
    atomic_store(&shared.stop, 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_OK(velo_rma_close(rma));
    CHECK_OK(velo_port_close(port));
}
