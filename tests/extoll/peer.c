/* SPDX-License-Identifier: Apache-2.0 */
#include "peer.h"

#include <sched.h>
#include <stdlib.h>

RMA2_Port port_opened(void)
{
    RMA2_Port port = NULL;
    CHECK_EQ(rma2_open(&port), RMA2_SUCCESS);
    CHECK(port != NULL);
    return port;
}

RMA2_Notification note_next(RMA2_Port port)
{
    RMA2_Notification *note = NULL;
    RMA2_ERROR error;
    int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;
    while ((error = rma2_noti_probe(port, &note)) == RMA2_NO_NOTI) {
        CHECK(test_now_ns() < end_ns);
        sched_yield();
    }
    CHECK_EQ(error, RMA2_SUCCESS);
    RMA2_Notification copy = *note;
    CHECK_EQ(rma2_noti_free(port, note), RMA2_SUCCESS);
    return copy;
}

void note_none(RMA2_Port port)
{
    RMA2_Notification *note;
    CHECK_EQ(rma2_noti_probe(port, &note), RMA2_NO_NOTI);
}

/* ---- the peer's process ---------------------------------------------------------------------- */

static void keep_notes(struct peer *peer, RMA2_Port port)
{
    RMA2_Notification *note;
    while (rma2_noti_probe(port, &note) == RMA2_SUCCESS) {
        unsigned n = __atomic_load_n(&peer->notes_len, __ATOMIC_RELAXED);
        peer->notes[n % PEER_NOTES_MAX] = *note;
        __atomic_store_n(&peer->notes_len, n + 1, __ATOMIC_RELEASE);
        CHECK_EQ(rma2_noti_free(port, note), RMA2_SUCCESS);
    }
}

static void act(void *arg)
{
    struct peer *peer = arg;
    RMA2_Port port = port_opened();
    RMA2_Region region;
    int order = 0;
    CHECK_EQ(rma2_register_nomalloc(port, peer->memory, peer->size, &region), RMA2_SUCCESS);
    peer->nodeid = rma2_get_nodeid(port);
    peer->vpid = rma2_get_vpid(port);
    CHECK_EQ(rma2_get_nla(&region, 0, &peer->nla), RMA2_SUCCESS);
    __atomic_store_n(&peer->ready, 1, __ATOMIC_RELEASE);
    while (order != PEER_STOP) {
        if (port)
            keep_notes(peer, port);
        sched_yield();
        order = __atomic_load_n(&peer->order, __ATOMIC_ACQUIRE);
        if (order == PEER_UNREGISTER)
            CHECK_EQ(rma2_unregister_nofree(port, &region), RMA2_SUCCESS);
        if (order == PEER_REGISTER)
            CHECK_EQ(rma2_register_nomalloc(port, peer->memory, peer->size, &region), RMA2_SUCCESS);
        if (port && (order == PEER_CLOSE || order == PEER_STOP)) {
            CHECK_EQ(rma2_close(port), RMA2_SUCCESS);
            port = NULL;
        }
        if (order)
            __atomic_store_n(&peer->order, 0, __ATOMIC_RELEASE);
        if (order == PEER_REST)
            test_sleep_ns(PEER_REST_NS);
    }
}

/* ---- its parent's side ----------------------------------------------------------------------- */

static void wait_until(const int *word, bool is_set)
{
    for (int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;
         (__atomic_load_n(word, __ATOMIC_ACQUIRE) != 0) != is_set;) {
        CHECK(test_now_ns() < end_ns);
        test_sleep_ns(50 * TEST_US);
    }
}

struct peer *peer_start(size_t size)
{
    struct peer *peer = test_shared_alloc(sizeof *peer);
    settings_clear();
    peer->memory = test_shared_alloc(size);
    peer->size = size;
    peer->pid = child_start(act, peer);
    wait_until(&peer->ready, true);
    return peer;
}

void peer_order(struct peer *peer, enum peer_order order)
{
    __atomic_store_n(&peer->order, (int)order, __ATOMIC_RELEASE);
    wait_until(&peer->order, false);
}

RMA2_Notification *peer_note(struct peer *peer, unsigned index)
{
    for (int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;
         __atomic_load_n(&peer->notes_len, __ATOMIC_ACQUIRE) <= index;) {
        CHECK(test_now_ns() < end_ns);
        test_sleep_ns(20 * TEST_US);
    }
    return &peer->notes[index % PEER_NOTES_MAX];
}

void peer_stop(struct peer *peer)
{
    peer_order(peer, PEER_STOP);
    child_join(peer->pid);
}
