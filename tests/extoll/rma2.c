/* SPDX-License-Identifier: Apache-2.0 */
/* rma2.h: ports, connections, registrations, errors. Each test by the page of the call. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"

#define SUCCESS RMA2_SUCCESS
#define PAGE 4096u

static unsigned char memory[8 * PAGE] __attribute__((aligned(PAGE)));

/* A port that is connected to itself. */
struct alone {
    RMA2_Port port;
    RMA2_Handle self;
    RMA2_Region *region;
};

static struct alone alone_opened(void)
{
    struct alone a;
    a.port = port_opened();
    CHECK_EQ(rma2_connect(a.port, rma2_get_nodeid(a.port), rma2_get_vpid(a.port), RMA2_CONN_DEFAULT,
                          &a.self),
             SUCCESS);
    CHECK_EQ(rma2_register(a.port, memory, sizeof memory, &a.region), SUCCESS);
    return a;
}

static struct alone alone_fresh(void)
{
    settings_clear();
    memset(memory, 0, sizeof memory);
    return alone_opened();
}

static void alone_close(struct alone *a)
{
    note_none(a->port);
    CHECK_EQ(rma2_unregister(a->port, a->region), SUCCESS);
    CHECK_EQ(rma2_disconnect(a->port, a->self), SUCCESS);
    CHECK_EQ(rma2_close(a->port), SUCCESS);
}

/* ---- ports ----------------------------------------------------------------------------------- */

TEST(an_open_port_has_a_place)
{
    settings_clear();
    RMA2_Port a = port_opened();
    RMA2_Port b = port_opened();
    CHECK_EQ(rma2_get_nodeid(a), 0);
    CHECK(rma2_get_vpid(a) < 252 && rma2_get_vpid(b) < 252);
    CHECK(rma2_get_vpid(a) != rma2_get_vpid(b));
    CHECK_EQ(rma2_close(a), SUCCESS);
    CHECK_EQ(rma2_close(b), SUCCESS);
}

TEST(a_node_has_252_contexts_and_no_more)
{
    if (is_simulated())
        test_skip("a simulated node has fewer");
    static RMA2_Port ports[252];
    RMA2_Port more;
    settings_clear();
    for (size_t i = 0; i < ARRAY_LEN(ports); i++) {
        ports[i] = port_opened();
        CHECK_EQ(rma2_get_vpid(ports[i]), i);
    }
    CHECK_EQ(rma2_open(&more), RMA2_ERR_PORTS_USED);
    CHECK(more == NULL);
    for (size_t i = 0; i < ARRAY_LEN(ports); i++)
        CHECK_EQ(rma2_close(ports[i]), SUCCESS);
}

TEST(settings_that_make_no_sense_are_refused)
{
    RMA2_Port port;
    settings_clear();
    setenv("VELO_NODE", "256", 1);
    CHECK_EQ(rma2_open(&port), RMA2_ERR_INV_VALUE);
    CHECK(port == NULL);
    settings_clear();
    setenv("VELO_EXTOLL_WAIT_MS", "never", 1);
    CHECK_EQ(rma2_open(&port), RMA2_ERR_INV_VALUE);
}

TEST(the_environment_says_which_node_this_is)
{
    if (is_simulated())
        test_skip("there are two simulated nodes");
    settings_clear();
    setenv("VELO_NODE", "17", 1);
    RMA2_Port port = port_opened();
    CHECK_EQ(rma2_get_nodeid(port), 17);
    CHECK_EQ(rma2_close(port), SUCCESS);
}

TEST(no_port_is_an_error_of_each_call)
{
    struct alone a = alone_fresh();
    RMA2_Region region = *a.region, *out;
    RMA2_Notification *note;
    RMA2_Handle handle;
    const RMA2_ERROR no_port = RMA2_ERR_INV_PORT;
    CHECK_EQ(rma2_open(NULL), no_port);
    CHECK_EQ(rma2_close(NULL), no_port);
    CHECK_EQ(rma2_connect(NULL, 0, 0, RMA2_CONN_DEFAULT, &handle), no_port);
    CHECK_EQ(rma2_disconnect(NULL, a.self), no_port);
    CHECK_EQ(rma2_register(NULL, memory, 1, &out), no_port);
    CHECK_EQ(rma2_register_nomalloc(NULL, memory, 1, &region), no_port);
    CHECK_EQ(rma2_unregister(NULL, a.region), no_port);
    CHECK_EQ(rma2_unregister_nofree(NULL, a.region), no_port);
    CHECK_EQ(rma2_noti_probe(NULL, &note), no_port);
    CHECK_EQ(rma2_noti_get_block(NULL, &note), no_port);
    CHECK_EQ(rma2_noti_free(NULL, NULL), no_port);
    CHECK_EQ(rma2_replay_buffer_drain(NULL), no_port);
    CHECK_EQ(rma2_get_queue_size(NULL), 0);
    CHECK_EQ(rma2_get_nodeid(NULL), RMA2_NODEID_ANY);
    CHECK_EQ(rma2_get_vpid(NULL), RMA2_VPID_ANY);
    alone_close(&a);
}

TEST(no_port_is_an_error_of_each_setting)
{
    struct alone a = alone_fresh();
    RMA2_Region *out;
    uint32_t tc;
    const RMA2_ERROR no_port = RMA2_ERR_INV_PORT;
    CHECK_EQ(rma2_set_queue_size(NULL, PAGE), no_port);
    CHECK_EQ(rma2_set_queue_segment_size(NULL, PAGE), no_port);
    CHECK_EQ(rma2_register_adhoc(NULL, memory, &out), no_port);
    CHECK_EQ(rma2_unregister_adhoc(NULL, a.region), no_port);
    CHECK_EQ(rma2_request_interrupt(NULL, a.self), no_port);
    CHECK_EQ(rma2_request_rra(NULL, a.self), no_port);
    CHECK_EQ(rma2_request_physical_access(NULL, a.self), no_port);
    CHECK_EQ(rma2_request_tcs(NULL, a.self, 0, 0), no_port);
    CHECK_EQ(rma2_get_tcs(NULL, a.self, &tc, &tc), no_port);
    CHECK_EQ(rma2_set_protectionid(NULL, 0), no_port);
    rma2_set_replay_mode(NULL, RMA2_REPLAY_ALL);
    CHECK_EQ(rma2_get_replay_buffer_mode(NULL), RMA2_REPLAY_MANUAL);
    alone_close(&a);
}

TEST(no_port_is_an_error_of_each_post)
{
    struct alone a = alone_fresh();
    RMA2_Descriptor descriptor;
    const RMA2_ERROR no_port = RMA2_ERR_INV_PORT;
    CHECK_EQ(rma2_post_put_bt(NULL, a.self, a.region, 0, 1, a.region->nla, 0, 0), no_port);
    CHECK_EQ(rma2_post_get_bt(NULL, a.self, a.region, 0, 1, a.region->nla, 0, 0), no_port);
    CHECK_EQ(rma2_post_put_qw(NULL, a.self, a.region, 0, 8, a.region->nla, 0, 0), no_port);
    CHECK_EQ(rma2_post_get_qw(NULL, a.self, a.region, 0, 8, a.region->nla, 0, 0), no_port);
    CHECK_EQ(rma2_post_put_bt_direct(NULL, a.self, a.region->nla, 1, a.region->nla, 0, 0), no_port);
    CHECK_EQ(rma2_post_get_bt_direct(NULL, a.self, a.region->nla, 1, a.region->nla, 0, 0), no_port);
    CHECK_EQ(rma2_post_put_qw_direct(NULL, a.self, a.region->nla, 8, a.region->nla, 0, 0), no_port);
    CHECK_EQ(rma2_post_get_qw_direct(NULL, a.self, a.region->nla, 8, a.region->nla, 0, 0), no_port);
    CHECK_EQ(rma2_post_immediate_put(NULL, a.self, 8, 0, a.region->nla, 0, 0), no_port);
    CHECK_EQ(rma2_post_notification(NULL, a.self, 0, 0, 0, 0), no_port);
    CHECK_EQ(rma2_post_lock(NULL, a.self, 0, 0, 0, 0, 0, 0), no_port);
    CHECK_EQ(rma2_desc_set_put_get(&descriptor, a.self, RMA2_BT_PUT, 1, 0, 0, 0, 0), SUCCESS);
    CHECK_EQ(rma2_post_descriptor(NULL, a.self, &descriptor), no_port);
    alone_close(&a);
}

TEST(nothing_is_to_be_drained_and_the_queue_has_its_size)
{
    struct alone a = alone_fresh();
    CHECK_EQ(rma2_replay_buffer_drain(a.port), SUCCESS);
    CHECK_EQ(rma2_get_queue_size(a.port), 256 << 10);
    CHECK_EQ(rma2_get_replay_buffer_mode(a.port), RMA2_REPLAY_MANUAL);
    rma2_set_replay_mode(a.port, RMA2_REPLAY_ALL);
    CHECK_EQ(rma2_get_replay_buffer_mode(a.port), RMA2_REPLAY_ALL);
    alone_close(&a);
}

TEST(a_queue_of_a_size_that_cannot_be_is_refused)
{
    struct alone a = alone_fresh();
    const uint32_t wrong[] = {0, 1, PAGE - 1, PAGE + 16, (UINT32_C(1) << 30) + PAGE};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        CHECK_EQ(rma2_set_queue_size(a.port, wrong[i]), RMA2_ERR_INV_VALUE);
        CHECK_EQ(rma2_set_queue_segment_size(a.port, wrong[i]), RMA2_ERR_INV_VALUE);
    }
    CHECK_EQ(rma2_get_queue_segment_size(a.port), 256 << 10);
    CHECK_EQ(rma2_set_queue_segment_size(a.port, 2 * PAGE), SUCCESS);
    CHECK_EQ(rma2_get_queue_segment_size(a.port), 2 * PAGE);
    CHECK_EQ(rma2_get_queue_size(a.port), 256 << 10);
    alone_close(&a);
}

/* Post and take, and free none, until there is no room. */
static uint32_t fill_queue(const struct alone *a, RMA2_Notification **notes, uint32_t notes_max)
{
    uint32_t taken = 0;
    RMA2_ERROR error = SUCCESS;
    while (error == SUCCESS && taken < notes_max) {
        CHECK_EQ(rma2_post_immediate_put(a->port, a->self, 8, 1, a->region->nla, RMA2_REQUESTER, 0),
                 SUCCESS);
        error = rma2_noti_get_block(a->port, &notes[taken]);
        taken += error == SUCCESS;
        CHECK_EQ(rma2_set_queue_size(a->port, PAGE), RMA2_ERR_NOT_YET);
    }
    CHECK_EQ(error, RMA2_ERR_NO_DESC_MEM);
    return taken;
}

/* 768 notifications: its places are not a power of two. */
TEST(a_queue_is_as_long_as_the_program_wants)
{
    struct alone a = alone_fresh();
    RMA2_Notification *notes[768];
    CHECK_EQ(rma2_set_queue_size(a.port, 3 * PAGE), SUCCESS);
    CHECK_EQ(rma2_get_queue_size(a.port), 3 * PAGE);
    uint32_t taken = fill_queue(&a, notes, ARRAY_LEN(notes));
    CHECK(taken >= ARRAY_LEN(notes) - 2);
    for (uint32_t i = 0; i < taken; i++) {
        CHECK_EQ(rma2_noti_get_size(notes[i]), 8);
        CHECK_EQ(rma2_noti_get_cmd(notes[i]), RMA2_IMMEDIATE_PUT);
        CHECK_EQ(rma2_noti_free(a.port, notes[i]), SUCCESS);
    }
    (void)note_next(a.port); /* Of the last post, for which there was no room. */
    CHECK_EQ(rma2_set_queue_size(a.port, 256 << 10), SUCCESS);
    alone_close(&a);
}

/* ---- connections ----------------------------------------------------------------------------- */

TEST(nodes_contexts_and_options_that_cannot_be_are_refused)
{
    struct alone a = alone_fresh();
    RMA2_Handle handle;
    const RMA2_Connection_Options all = RMA2_CONN_DEFAULT;
    CHECK_EQ(rma2_connect(a.port, 256, 0, all, &handle), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_connect(a.port, 0, 252, all, &handle), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_connect(a.port, RMA2_NODEID_ANY, 0, all, &handle), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_connect(a.port, 0, RMA2_VPID_ANY, all, &handle), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_connect(a.port, 0, 0, all, NULL), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_connect(a.port, 0, 0, 32, &handle), RMA2_ERR_WRONG_ARG);
    CHECK(handle == NULL);
    alone_close(&a);
}

TEST(wildcards_have_their_values)
{
    CHECK_EQ(RMA2_CLASS_ANY, 0xff);
    CHECK_EQ(RMA2_NODEID_ANY, 0xffff);
    CHECK_EQ(RMA2_VPID_ANY, 0xffff);
    CHECK(RMA2_ANY_NLA == UINT64_MAX);
}

TEST(each_option_connects_and_a_register_file_is_refused_at_the_post)
{
    static const RMA2_Connection_Options options[] = {
        RMA2_CONN_PHYSICAL, RMA2_CONN_DEFAULT, RMA2_CONN_DEFAULT | RMA2_CONN_TC3,
        RMA2_CONN_DEFAULT | RMA2_CONN_IRQ, RMA2_CONN_TC1 | RMA2_CONN_TC2 | RMA2_CONN_DEFAULT};
    struct alone a = alone_fresh();
    RMA2_Handle handle;
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        CHECK_EQ(rma2_connect(a.port, 0, rma2_get_vpid(a.port), options[i], &handle), SUCCESS);
        CHECK_EQ(rma2_post_immediate_put(a.port, handle, 1, i + 1, a.region->nla,
                                         RMA2_REQUESTER_NOTIFICATION, 0),
                 SUCCESS);
        (void)note_next(a.port);
        CHECK_EQ(memory[0], i + 1);
        CHECK_EQ(rma2_disconnect(a.port, handle), SUCCESS);
    }
    CHECK_EQ(
        rma2_connect(a.port, 0, rma2_get_vpid(a.port), RMA2_CONN_RRA | RMA2_CONN_DEFAULT, &handle),
        SUCCESS);
    CHECK_EQ(rma2_post_immediate_put(a.port, handle, 1, 9, a.region->nla, 0, 0),
             RMA2_ERR_NO_DEVICE);
    CHECK_EQ(rma2_post_notification(a.port, handle, 0, 0, RMA2_ALL, 0), RMA2_ERR_NO_DEVICE);
    CHECK_EQ(rma2_disconnect(a.port, handle), SUCCESS);
    alone_close(&a);
}

TEST(a_connection_refuses_what_is_not_there)
{
    struct alone a = alone_fresh();
    const uint32_t no = (uint32_t)RMA2_ERR_ERROR;
    CHECK_EQ(rma2_request_rra(a.port, a.self), RMA2_ERR_NO_DEVICE);
    CHECK_EQ(rma2_get_rra(a.port, a.self), no);
    CHECK_EQ(rma2_request_physical_access(a.port, a.self), RMA2_ERR_NO_DEVICE);
    CHECK_EQ(rma2_get_physical_access(a.port, a.self), no);
    CHECK_EQ(rma2_request_rra(a.port, NULL), RMA2_ERR_INV_HANDLE);
    CHECK_EQ(rma2_get_rra(a.port, NULL), no);
    CHECK_EQ(rma2_set_protectionid(a.port, 0), SUCCESS);
    CHECK_EQ(rma2_set_protectionid(a.port, 1), RMA2_ERR_NO_DEVICE);
    alone_close(&a);
}

TEST(a_connection_keeps_its_traffic_classes)
{
    struct alone a = alone_fresh();
    RMA2_Handle other;
    uint32_t request = 9, response = 9;
    CHECK_EQ(rma2_request_tcs(a.port, a.self, 4, 0), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_request_tcs(a.port, a.self, 0, 4), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_get_tcs(a.port, a.self, &request, &response), SUCCESS);
    CHECK(request == 0 && response == 0);
    CHECK_EQ(rma2_request_tcs(a.port, a.self, 2, 3), SUCCESS);
    CHECK_EQ(rma2_get_tcs(a.port, a.self, &request, &response), SUCCESS);
    CHECK(request == 2 && response == 3);
    CHECK_EQ(rma2_get_tcs(a.port, a.self, NULL, &response), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_connect(a.port, 0, 7, RMA2_CONN_TC3 | RMA2_CONN_RRA, &other), SUCCESS);
    CHECK_EQ(rma2_get_rra(a.port, other), (uint32_t)SUCCESS);
    CHECK_EQ(rma2_get_tcs(a.port, other, &request, &response), SUCCESS);
    CHECK(request == 3 && response == 3);
    CHECK_EQ(rma2_disconnect(a.port, other), SUCCESS);
    alone_close(&a);
}

TEST(a_connection_interrupts_if_it_is_asked_to)
{
    struct alone a = alone_fresh();
    CHECK_EQ(rma2_get_interrupt(a.port, a.self), (uint32_t)RMA2_ERR_ERROR);
    CHECK_EQ(rma2_request_interrupt(a.port, a.self), SUCCESS);
    CHECK_EQ(rma2_get_interrupt(a.port, a.self), (uint32_t)SUCCESS);
    CHECK_EQ(rma2_request_tcs(a.port, a.self, 1, 1), SUCCESS);
    CHECK_EQ(rma2_get_interrupt(a.port, a.self), (uint32_t)SUCCESS);
    alone_close(&a);
}

TEST(a_handle_of_another_port_is_refused)
{
    struct alone a = alone_fresh();
    RMA2_Port b = port_opened();
    RMA2_Handle other;
    RMA2_Descriptor descriptor;
    const RMA2_NLA nla = a.region->nla;
    const RMA2_ERROR no_handle = RMA2_ERR_INV_HANDLE;
    CHECK_EQ(rma2_connect(b, 0, rma2_get_vpid(a.port), RMA2_CONN_DEFAULT, &other), SUCCESS);
    CHECK_EQ(rma2_desc_set_put_get(&descriptor, other, RMA2_BT_PUT, 1, 0, 0, nla, nla), SUCCESS);
    RMA2_Handle wrong[] = {NULL, other};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        CHECK_EQ(rma2_post_put_bt(a.port, wrong[i], a.region, 0, 1, nla, 0, 0), no_handle);
        CHECK_EQ(rma2_post_get_bt_direct(a.port, wrong[i], nla, 1, nla, 0, 0), no_handle);
        CHECK_EQ(rma2_post_immediate_put(a.port, wrong[i], 1, 0, nla, 0, 0), no_handle);
        CHECK_EQ(rma2_post_notification(a.port, wrong[i], 0, 0, 0, 0), no_handle);
        CHECK_EQ(rma2_post_lock(a.port, wrong[i], 0, 0, 0, 0, 0, 0), no_handle);
        CHECK_EQ(rma2_post_descriptor(a.port, wrong[i], &descriptor), no_handle);
        CHECK_EQ(rma2_request_interrupt(a.port, wrong[i]), no_handle);
        CHECK_EQ(rma2_request_tcs(a.port, wrong[i], 0, 0), no_handle);
        CHECK_EQ(rma2_disconnect(a.port, wrong[i]), no_handle);
    }
    CHECK_EQ(rma2_desc_set_put_get(&descriptor, NULL, RMA2_BT_PUT, 1, 0, 0, nla, nla), no_handle);
    CHECK_EQ(rma2_close(b), SUCCESS);
    alone_close(&a);
}

TEST(a_post_to_a_port_that_never_opens_ends_with_an_error)
{
    settings_clear();
    setenv("VELO_EXTOLL_WAIT_MS", "10", 1);
    struct alone a = alone_opened();
    RMA2_Handle handle;
    CHECK_EQ(rma2_connect(a.port, 0, 200, RMA2_CONN_DEFAULT, &handle), SUCCESS);
    CHECK_EQ(rma2_post_immediate_put(a.port, handle, 1, 1, a.region->nla, RMA2_ALL, 0),
             RMA2_ERR_NO_CONNECT);
    CHECK_EQ(rma2_post_lock(a.port, handle, 0, 0, 0, 0, RMA2_ALL, 0), RMA2_ERR_NO_CONNECT);
    CHECK_EQ(rma2_disconnect(a.port, handle), SUCCESS);
    alone_close(&a);
}

static void *open_late(void *arg)
{
    RMA2_Port *port = arg;
    test_sleep_ns(20 * TEST_MS);
    *port = port_opened();
    return NULL;
}

TEST(the_first_post_waits_for_a_port_that_is_not_open_yet)
{
    struct alone a = alone_fresh();
    RMA2_Port late = NULL;
    RMA2_Handle handle;
    pthread_t thread;
    CHECK_EQ(
        rma2_connect(a.port, 0, (RMA2_VPID)(rma2_get_vpid(a.port) + 1), RMA2_CONN_DEFAULT, &handle),
        SUCCESS);
    CHECK_EQ(pthread_create(&thread, NULL, open_late, &late), 0);
    CHECK_EQ(rma2_post_notification(a.port, handle, 7, 77, RMA2_COMPLETER_NOTIFICATION, 0),
             SUCCESS);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    RMA2_Notification note = note_next(late);
    CHECK_EQ(rma2_noti_get_notiput_payload(&note), 77);
    CHECK_EQ(rma2_close(late), SUCCESS);
    alone_close(&a);
}

TEST(a_peer_that_closes_is_an_error_to_who_posts)
{
    struct peer *peer = peer_start(PAGE);
    struct alone a = alone_fresh();
    RMA2_Handle handle;
    RMA2_ERROR error = SUCCESS;
    CHECK_EQ(rma2_connect(a.port, peer->nodeid, peer->vpid, RMA2_CONN_DEFAULT, &handle), SUCCESS);
    CHECK_EQ(rma2_post_immediate_put(a.port, handle, 8, 1, peer->nla, RMA2_REQUESTER, 0), SUCCESS);
    (void)note_next(a.port);
    peer_order(peer, PEER_CLOSE);
    for (int i = 0; i < 10000 && error == SUCCESS; i++) {
        error = rma2_post_immediate_put(a.port, handle, 8, 1, peer->nla, 0, 0);
        RMA2_Notification *note;
        if (rma2_noti_probe(a.port, &note) == SUCCESS) { /* Or it is notified later. */
            CHECK_EQ(rma2_noti_get_error(note), 2);
            CHECK_EQ(rma2_noti_free(a.port, note), SUCCESS);
        }
    }
    CHECK_EQ(error, RMA2_ERR_NO_CONNECT);
    peer_stop(peer);
    CHECK_EQ(rma2_disconnect(a.port, handle), SUCCESS);
    alone_close(&a);
}

TEST(a_peer_that_was_killed_is_an_error_of_each_post)
{
    struct peer *peer = peer_start(PAGE);
    struct alone a = alone_fresh();
    RMA2_Handle h;
    const RMA2_ERROR gone = RMA2_ERR_NO_CONNECT;
    CHECK_EQ(rma2_connect(a.port, peer->nodeid, peer->vpid, RMA2_CONN_DEFAULT, &h), SUCCESS);
    CHECK_EQ(rma2_post_lock(a.port, h, RMA2_LOCK_COMPLETER, 3, 0, 1, RMA2_COMPLETER, 0), SUCCESS);
    RMA2_Notification note = note_next(a.port);
    CHECK_EQ(rma2_noti_get_lock_result(&note), 1);
    CHECK_EQ(rma2_post_notification(a.port, h, 1, 2, RMA2_REQUESTER, 0), SUCCESS);
    (void)note_next(a.port);
    child_kill(peer->pid);
    CHECK_EQ(rma2_post_notification(a.port, h, 1, 2, RMA2_ALL, 0), gone);
    CHECK_EQ(rma2_post_lock(a.port, h, RMA2_LOCK_COMPLETER, 3, 9, 1, RMA2_ALL, 0), gone);
    CHECK_EQ(rma2_post_immediate_put(a.port, h, 8, 1, peer->nla, RMA2_ALL, 0), gone);
    CHECK_EQ(rma2_post_put_bt(a.port, h, a.region, 0, 8, peer->nla, RMA2_ALL, 0), gone);
    CHECK_EQ(rma2_post_get_bt(a.port, h, a.region, 0, 8, peer->nla, RMA2_ALL, 0), gone);
    CHECK_EQ(rma2_disconnect(a.port, h), SUCCESS);
    RMA2_Port next = port_opened(); /* Takes the dead one's context, and what it left. */
    CHECK_EQ(rma2_get_vpid(next), peer->vpid);
    CHECK_EQ(rma2_close(next), SUCCESS);
    alone_close(&a);
}

/* ---- registrations --------------------------------------------------------------------------- */

TEST(a_region_says_where_its_memory_is)
{
    struct alone a = alone_fresh();
    RMA2_NLA nla = 0;
    CHECK(a.region->start == memory);
    CHECK_EQ(a.region->size, sizeof memory);
    CHECK_EQ(a.region->nla % PAGE, 0);
    for (size_t offset = 0; offset <= sizeof memory; offset += 1000) {
        CHECK_EQ(rma2_get_nla(a.region, offset, &nla), SUCCESS);
        CHECK_EQ(nla, a.region->nla + offset);
    }
    CHECK_EQ(rma2_get_nla(a.region, sizeof memory, &nla), SUCCESS);
    CHECK_EQ(rma2_get_nla(a.region, sizeof memory + 1, &nla), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_get_nla(NULL, 0, &nla), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_get_nla(a.region, 0, NULL), RMA2_ERR_INV_VALUE);
    alone_close(&a);
}

TEST(a_region_begins_with_its_first_page)
{
    struct alone a = alone_fresh();
    RMA2_Region region;
    CHECK_EQ(rma2_register_nomalloc(a.port, memory + PAGE + 100, 1000, &region), SUCCESS);
    CHECK(region.start == memory + PAGE);
    CHECK_EQ(region.size, 1100);
    CHECK_EQ(region.nla, a.region->nla + PAGE);
    CHECK_EQ(region.offset, 100);
    CHECK_EQ(rma2_unregister_nofree(a.port, &region), SUCCESS);
    CHECK(region.start == NULL && region.nla == 0 && region.size == 0);
    alone_close(&a);
}

TEST(offsets_count_from_the_first_byte_that_was_registered)
{
    struct alone a = alone_fresh();
    unsigned char *pages = aligned_alloc(PAGE, 2 * PAGE), *bytes = pages + 100;
    RMA2_Region *region;
    RMA2_NLA nla = 0;
    CHECK(pages);
    memset(bytes, 0, 3000);
    memset(memory, 0, sizeof memory);
    CHECK_EQ(rma2_register(a.port, bytes, 3000, &region), SUCCESS);
    CHECK_EQ(rma2_get_nla(region, 7, &nla), SUCCESS);
    CHECK_EQ(nla, (uintptr_t)bytes + 7);
    CHECK_EQ(rma2_get_nla(region, 3000, &nla), SUCCESS);
    CHECK_EQ(rma2_get_nla(region, 3001, &nla), RMA2_ERR_INV_VALUE);
    bytes[2999] = 5;
    CHECK_EQ(rma2_post_put_bt(a.port, a.self, region, 2999, 1, a.region->nla, RMA2_REQUESTER, 0),
             SUCCESS);
    RMA2_Notification note = note_next(a.port);
    CHECK_EQ(rma2_noti_get_local_address(&note), (uintptr_t)bytes + 2999);
    CHECK_EQ(memory[0], 5);
    CHECK_EQ(rma2_post_put_bt(a.port, a.self, region, 2999, 2, a.region->nla, 0, 0),
             RMA2_ERR_INV_VALUE);
    memory[1] = 6;
    CHECK_EQ(rma2_post_get_bt(a.port, a.self, region, 1, 1, a.region->nla + 1, RMA2_COMPLETER, 0),
             SUCCESS);
    (void)note_next(a.port);
    CHECK_EQ(bytes[1], 6);
    CHECK_EQ(rma2_unregister(a.port, region), SUCCESS);
    free(pages);
    alone_close(&a);
}

TEST(a_region_knows_its_bytes)
{
    struct alone a = alone_fresh();
    unsigned char *first = memory + PAGE - 100;
    RMA2_Region *region;
    size_t size = 0, pages = 0;
    void *address = NULL;
    CHECK_EQ(rma2_register_cached(a.port, first, 300, &region), SUCCESS);
    CHECK_EQ(rma2_get_size(region, &size), SUCCESS);
    CHECK_EQ(size, 300);
    CHECK_EQ(rma2_get_page_count(region, &pages), SUCCESS);
    CHECK_EQ(pages, 2);
    CHECK_EQ(rma2_get_va(region, 300, &address), SUCCESS);
    CHECK(address == first + 300);
    CHECK_EQ(rma2_get_va(region, 301, &address), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_get_va(NULL, 0, &address), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_get_size(region, NULL), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_get_page_count(NULL, &pages), RMA2_ERR_INV_VALUE);
    static const struct {
        int from, size;
        bool contained, overlap, equal;
    } buffers[] = {
        {0, 300, true, true, true},    {0, 299, true, true, false},    {1, 299, true, true, false},
        {-1, 301, false, true, false}, {0, 301, false, true, false},   {-5, 5, false, false, false},
        {-5, 6, false, true, false},   {299, 1, true, true, false},    {299, 2, false, true, false},
        {300, 1, false, false, false}, {-50, 400, false, true, false}, {100, 0, true, false, false},
        {300, 0, true, false, false},  {301, 0, false, false, false}};
    for (size_t i = 0; i < ARRAY_LEN(buffers); i++) {
        unsigned char *start = first + buffers[i].from;
        size_t len = (size_t)buffers[i].size;
        CHECK_EQ(rma2_get_region_contained(region, start, len), buffers[i].contained);
        CHECK_EQ(rma2_get_region_overlap(region, start, len), buffers[i].overlap);
        CHECK_EQ(rma2_get_region_equal(region, start, len), buffers[i].equal);
    }
    CHECK_EQ(rma2_get_region_contained(region, first, SIZE_MAX), 0);
    CHECK_EQ(rma2_get_region_contained(NULL, first, 1), 0);
    CHECK_EQ(rma2_unregister_cached(a.port, region), SUCCESS);
    alone_close(&a);
}

TEST(memory_that_cannot_be_registered_is_refused)
{
    struct alone a = alone_fresh();
    RMA2_Region *region, mine;
    CHECK_EQ(rma2_register(a.port, NULL, 1, &region), RMA2_ERR_INV_VALUE);
    CHECK(region == NULL);
    CHECK_EQ(rma2_register(a.port, memory, 0, &region), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_register(a.port, memory, SIZE_MAX, &region), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_register(a.port, memory, 1, NULL), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_register_nomalloc(a.port, NULL, 1, &mine), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_register_nomalloc(a.port, memory, 1, NULL), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_register_nomalloc(a.port, memory, 0, &mine), RMA2_ERR_INV_VALUE);
    alone_close(&a);
}

TEST(a_region_is_unregistered_once_and_by_its_port)
{
    struct alone a = alone_fresh();
    RMA2_Port b = port_opened();
    RMA2_Region region;
    CHECK_EQ(rma2_register_nomalloc(a.port, memory, 1, &region), SUCCESS);
    CHECK_EQ(rma2_unregister_nofree(b, &region), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_unregister_nofree(a.port, &region), SUCCESS);
    CHECK_EQ(rma2_unregister_nofree(a.port, &region), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_unregister(a.port, NULL), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_unregister_nofree(a.port, NULL), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_close(b), SUCCESS);
    alone_close(&a);
}

TEST(many_regions_overlap_and_each_is_reached)
{
    enum { REGIONS = 300 };
    struct alone a = alone_fresh();
    static RMA2_Region regions[REGIONS];
    for (size_t i = 0; i < REGIONS; i++)
        CHECK_EQ(rma2_register_nomalloc(a.port, memory + i % 4 * PAGE, i + 1, &regions[i]),
                 SUCCESS);
    for (size_t i = 0; i < REGIONS; i += 7) {
        CHECK_EQ(rma2_post_immediate_put(a.port, a.self, 1, i, regions[i].nla + i,
                                         RMA2_REQUESTER_NOTIFICATION, 0),
                 SUCCESS);
        (void)note_next(a.port);
        CHECK_EQ(memory[i % 4 * PAGE + i], (unsigned char)i);
    }
    for (size_t i = 0; i < REGIONS; i++)
        CHECK_EQ(rma2_unregister_nofree(a.port, &regions[i]), SUCCESS);
    alone_close(&a);
}

TEST(registrations_are_bounded)
{
    if (is_simulated())
        test_skip("a simulated node has fewer pages");
    enum { MOST = 65534 };
    struct alone a = alone_fresh();
    RMA2_Region *regions = calloc(MOST, sizeof *regions), more;
    for (size_t i = 1; i < MOST; i++)
        CHECK_EQ(rma2_register_nomalloc(a.port, memory, 1, &regions[i]), SUCCESS);
    CHECK_EQ(rma2_register_nomalloc(a.port, memory, 1, &more), RMA2_ERR_MLOCKLIMIT);
    for (size_t i = MOST - 1; i > 0; i--)
        CHECK_EQ(rma2_unregister_nofree(a.port, &regions[i]), SUCCESS);
    free(regions);
    alone_close(&a);
}

TEST(memory_for_the_port_alone_is_out_of_its_peers_reach)
{
    struct alone a = alone_fresh();
    RMA2_Region *region;
    RMA2_Port b = port_opened();
    RMA2_Handle to_a;
    size_t size;
    CHECK_EQ(rma2_unregister(a.port, a.region), SUCCESS);
    CHECK_EQ(rma2_register_adhoc(a.port, memory + 8, NULL), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_register_adhoc(a.port, memory + 8, &region), SUCCESS);
    CHECK_EQ(rma2_get_size(region, &size), SUCCESS);
    CHECK_EQ(size, PAGE);
    CHECK_EQ(
        rma2_connect(b, rma2_get_nodeid(a.port), rma2_get_vpid(a.port), RMA2_CONN_DEFAULT, &to_a),
        SUCCESS);
    /* A peer's is refused at the post, or by its notification. */
    RMA2_NLA nla;
    CHECK_EQ(rma2_get_nla(region, 0, &nla), SUCCESS);
    RMA2_ERROR error = rma2_post_immediate_put(b, to_a, 1, 9, nla, RMA2_REQUESTER, 0);
    if (error == SUCCESS) {
        RMA2_Notification note = note_next(b);
        CHECK(rma2_noti_get_error(&note) != 0);
    } else {
        CHECK_EQ(error, RMA2_ERR_ATU);
    }
    CHECK_EQ(memory[8], 0);
    CHECK_EQ(rma2_post_immediate_put(a.port, a.self, 1, 9, nla, RMA2_REQUESTER, 0), SUCCESS);
    RMA2_Notification note = note_next(a.port);
    CHECK_EQ(rma2_noti_get_error(&note), 0);
    CHECK_EQ(memory[8], 9);
    CHECK_EQ(rma2_unregister_adhoc(a.port, region), SUCCESS);
    CHECK_EQ(rma2_close(b), SUCCESS);
    CHECK_EQ(rma2_register(a.port, memory, sizeof memory, &a.region), SUCCESS);
    alone_close(&a);
}

TEST(what_is_not_registered_is_refused_at_both_ends)
{
    test_needs_shared_memory(); /* It is refused at once. */
    struct alone a = alone_fresh();
    RMA2_Region region = *a.region;
    const RMA2_NLA nla = a.region->nla, end = nla + sizeof memory;
    CHECK_EQ(rma2_post_put_bt(a.port, a.self, a.region, 0, 9, end - 8, RMA2_ALL, 0), RMA2_ERR_ATU);
    CHECK_EQ(rma2_post_get_bt(a.port, a.self, a.region, 0, 9, end - 8, RMA2_ALL, 0), RMA2_ERR_ATU);
    CHECK_EQ(rma2_post_immediate_put(a.port, a.self, 2, 0, end - 1, RMA2_ALL, 0), RMA2_ERR_ATU);
    CHECK_EQ(rma2_post_immediate_put(a.port, a.self, 2, 0, RMA2_ANY_NLA, 0, 0), RMA2_ERR_ATU);
    CHECK_EQ(rma2_post_put_bt_direct(a.port, a.self, end - 8, 9, nla, RMA2_ALL, 0), RMA2_ERR_ATU);
    CHECK_EQ(rma2_post_get_bt_direct(a.port, a.self, nla - 1, 2, nla, RMA2_ALL, 0), RMA2_ERR_ATU);
    region.internal = NULL;
    CHECK_EQ(rma2_post_put_bt(a.port, a.self, &region, 0, 1, nla, 0, 0), RMA2_ERR_ATU);
    alone_close(&a);
}

TEST(a_region_that_has_ended_is_out_of_reach_until_it_is_registered_again)
{
    struct peer *peer = peer_start(PAGE);
    struct alone a = alone_fresh();
    RMA2_Handle handle;
    RMA2_ERROR error;
    CHECK_EQ(rma2_connect(a.port, peer->nodeid, peer->vpid, RMA2_CONN_DEFAULT, &handle), SUCCESS);
    for (unsigned i = 1; i <= 3; i++) {
        CHECK_EQ(rma2_post_immediate_put(a.port, handle, 8, i, peer->nla, RMA2_REQUESTER, 0),
                 SUCCESS);
        (void)note_next(a.port);
        CHECK_EQ(peer->memory[0], i);
        peer_order(peer, PEER_UNREGISTER);
        error = rma2_post_immediate_put(a.port, handle, 8, 99, peer->nla, RMA2_REQUESTER, 0);
        if (error == SUCCESS) { /* Its owner refuses. */
            RMA2_Notification note = note_next(a.port);
            CHECK_EQ(rma2_noti_get_error(&note), 1);
        } else {
            CHECK_EQ(error, RMA2_ERR_ATU);
        }
        CHECK_EQ(peer->memory[0], i);
        peer_order(peer, PEER_REGISTER);
    }
    peer_stop(peer);
    CHECK_EQ(rma2_disconnect(a.port, handle), SUCCESS);
    alone_close(&a);
}

/* ---- arguments of posts ---------------------------------------------------------------------- */

TEST(sizes_and_offsets_that_cannot_be_are_refused)
{
    struct alone a = alone_fresh();
    const RMA2_NLA nla = a.region->nla;
    const uint32_t size = sizeof memory, most = 8 << 20;
    const RMA2_ERROR bad = RMA2_ERR_INV_VALUE;
    CHECK_EQ(rma2_post_put_bt(a.port, a.self, a.region, 0, 0, nla, 0, 0), bad);
    CHECK_EQ(rma2_post_put_bt(a.port, a.self, a.region, size, 1, nla, 0, 0), bad);
    CHECK_EQ(rma2_post_put_bt(a.port, a.self, a.region, 1, size, nla, 0, 0), bad);
    CHECK_EQ(rma2_post_put_bt(a.port, a.self, a.region, UINT32_MAX, 1, nla, 0, 0), bad);
    CHECK_EQ(rma2_post_put_bt(a.port, a.self, NULL, 0, 1, nla, 0, 0), bad);
    CHECK_EQ(rma2_post_get_bt(a.port, a.self, a.region, 0, 0, nla, 0, 0), bad);
    CHECK_EQ(rma2_post_put_bt_direct(a.port, a.self, nla, 0, nla, 0, 0), bad);
    CHECK_EQ(rma2_post_put_bt_direct(a.port, a.self, nla, most + 1, nla, 0, 0), bad);
    CHECK_EQ(rma2_post_immediate_put(a.port, a.self, 0, 0, nla, 0, 0), bad);
    CHECK_EQ(rma2_post_immediate_put(a.port, a.self, 9, 0, nla, 0, 0), bad);
    CHECK_EQ(rma2_post_put_qw(a.port, a.self, a.region, 0, 12, nla, 0, 0), bad);
    CHECK_EQ(rma2_post_put_qw(a.port, a.self, a.region, 4, 8, nla, 0, 0), bad);
    CHECK_EQ(rma2_post_get_qw(a.port, a.self, a.region, 0, 8, nla + 4, 0, 0), bad);
    CHECK_EQ(rma2_post_put_qw_direct(a.port, a.self, nla + 1, 8, nla, 0, 0), bad);
    CHECK_EQ(rma2_post_get_qw_direct(a.port, a.self, nla, 7, nla, 0, 0), bad);
    CHECK_EQ(rma2_post_lock(a.port, a.self, 2, 0, 0, 0, 0, 0), bad);
    CHECK_EQ(rma2_post_lock(a.port, a.self, -1, 0, 0, 0, 0, 0), bad);
    CHECK_EQ(rma2_post_lock(a.port, a.self, 0, 4096, 0, 0, 0, 0), bad);
    alone_close(&a);
}

TEST(specs_and_modifiers_that_cannot_be_are_refused)
{
    struct alone a = alone_fresh();
    const RMA2_NLA nla = a.region->nla;
    CHECK_EQ(rma2_post_put_bt(a.port, a.self, a.region, 0, 1, nla, 8, 0), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_post_notification(a.port, a.self, 0, 0, 8, 0), RMA2_ERR_INV_VALUE);
    static const RMA2_Command_Modifier absent[] = {RMA2_CMD_MC, RMA2_CMD_ERA, RMA2_CMD_EWA, 16};
    for (size_t i = 0; i < ARRAY_LEN(absent); i++) {
        CHECK_EQ(rma2_post_put_bt(a.port, a.self, a.region, 0, 1, nla, 0, absent[i]),
                 RMA2_ERR_WRONG_ARG);
        CHECK_EQ(rma2_post_lock(a.port, a.self, 0, 0, 0, 0, 0, absent[i]), RMA2_ERR_WRONG_ARG);
    }
    CHECK_EQ(rma2_post_put_bt(a.port, a.self, a.region, 0, 1, nla, RMA2_REQUESTER, RMA2_CMD_NTR),
             SUCCESS);
    RMA2_Notification note = note_next(a.port);
    CHECK_EQ(note.word1.value >> 55 & 63, RMA2_CMD_NTR);
    alone_close(&a);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

TEST(a_descriptor_has_the_documented_bits)
{
    settings_clear();
    RMA2_Port port = port_opened();
    RMA2_Handle handle;
    RMA2_Descriptor descriptor;
    CHECK_EQ(rma2_connect(port, 0x21, 0x43, RMA2_CONN_DEFAULT, &handle), SUCCESS);
    CHECK_EQ(rma2_desc_set_put_get(&descriptor, handle, RMA2_QW_PUT, 0x123457, 5, RMA2_CMD_NTR,
                                   0x1111, 0x2222),
             SUCCESS);
    CHECK_EQ(descriptor.value[0], UINT64_C(0x123456) << 40 | UINT64_C(2) << 35 | UINT64_C(5) << 32 |
                                      0x21 << 16 | 0x43 << 8 | 3 << 2 | 3);
    CHECK_EQ(descriptor.value[1], 0x1111);
    CHECK_EQ(descriptor.value[2], 0x2222);
    CHECK_EQ(rma2_close(port), SUCCESS);
}

TEST(a_descriptor_is_posted_as_its_call_would_be)
{
    struct alone a = alone_fresh();
    const RMA2_NLA from = a.region->nla, to = from + PAGE;
    RMA2_Descriptor descriptor;
    pattern_fill(memory, 64, 1);
    CHECK_EQ(
        rma2_desc_set_put_get(&descriptor, a.self, RMA2_BT_PUT, 64, RMA2_REQUESTER, 0, from, to),
        SUCCESS);
    CHECK_EQ(rma2_post_descriptor(a.port, a.self, &descriptor), SUCCESS);
    (void)note_next(a.port);
    CHECK(pattern_matches(memory + PAGE, 64, 1));
    CHECK_EQ(rma2_desc_set_put_get(&descriptor, a.self, RMA2_QW_GET, 32, RMA2_COMPLETER, 0, to,
                                   from + 2 * PAGE),
             SUCCESS);
    CHECK_EQ(rma2_post_descriptor(a.port, a.self, &descriptor), SUCCESS);
    RMA2_Notification note = note_next(a.port);
    CHECK_EQ(rma2_noti_get_cmd(&note), RMA2_GET_QW_RSP);
    CHECK(memcmp(memory + 2 * PAGE, memory, 32) == 0 && memory[2 * PAGE + 32] == 0);
    descriptor.value[0] = (descriptor.value[0] & ~(UINT64_C(15) << 2)) | RMA2_IMMEDIATE_PUT << 2;
    descriptor.value[0] = (descriptor.value[0] & ((UINT64_C(1) << 40) - 1)) | UINT64_C(3) << 40;
    descriptor.value[1] = to;
    descriptor.value[2] = 0x44332211;
    CHECK_EQ(rma2_post_descriptor(a.port, a.self, &descriptor), SUCCESS);
    note = note_next(a.port);
    CHECK_EQ(rma2_noti_get_size(&note), 4);
    CHECK(memcmp(memory + PAGE, "\x11\x22\x33\x44", 4) == 0);
    alone_close(&a);
}

TEST(a_descriptor_of_each_command_does_what_its_post_does)
{
    struct alone a = alone_fresh();
    RMA2_Descriptor *descriptor;
    int left = 0;
    CHECK_EQ(rma2_desc_alloc(a.port, &descriptor), SUCCESS);
    CHECK_EQ((uintptr_t)descriptor % 16, 0);
    CHECK_EQ(rma2_desc_query_free(a.port, &left), SUCCESS);
    CHECK(left > 0);
    CHECK_EQ(rma2_desc_set_immediate_put(descriptor, a.self, RMA2_REQUESTER, RMA2_CMD_NTR, 3,
                                         a.region->nla + 8, 0x44332211),
             SUCCESS);
    CHECK_EQ(descriptor->value[1], a.region->nla + 8);
    CHECK_EQ(descriptor->value[2], 0x44332211);
    CHECK_EQ(rma2_post_descriptor(a.port, a.self, descriptor), SUCCESS);
    RMA2_Notification note = note_next(a.port);
    CHECK_EQ(rma2_noti_get_size(&note), 3);
    CHECK_EQ(rma2_noti_get_total_size(a.region->nla + 8, &note), 3);
    CHECK_EQ(rma2_noti_get_mode(&note), RMA2_CMD_NTR);
    CHECK(memcmp(memory + 8, "\x11\x22\x33\x00", 4) == 0);
    CHECK_EQ(rma2_desc_set_noti_put(descriptor, a.self, RMA2_COMPLETER, 0, 0x5a, 0x123456789),
             SUCCESS);
    CHECK_EQ(rma2_post_descriptor(a.port, a.self, descriptor), SUCCESS);
    note = note_next(a.port);
    CHECK_EQ(rma2_noti_get_notiput_class(&note), 0x5a);
    CHECK_EQ(rma2_noti_get_notiput_payload(&note), 0x123456789);
    CHECK_EQ(rma2_desc_free(a.port, descriptor), SUCCESS);
    CHECK_EQ(rma2_desc_free(a.port, NULL), SUCCESS);
    alone_close(&a);
}

TEST(a_descriptor_of_a_notification_takes_another_class_and_word)
{
    struct alone a = alone_fresh();
    RMA2_Descriptor own, *descriptor = &own;
    CHECK_EQ(rma2_desc_set_noti_put(descriptor, a.self, RMA2_COMPLETER, 0, 0x5a, 1), SUCCESS);
    CHECK_EQ(rma2_desc_set_notification_value(NULL, 1, 2), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_desc_set_notification_value(descriptor, 0x42, 0xabcdef), SUCCESS);
    CHECK_EQ(rma2_post_descriptor(a.port, a.self, descriptor), SUCCESS);
    RMA2_Notification note = note_next(a.port);
    CHECK_EQ(rma2_noti_get_notification_type(&note), RMA2_COMPLETER);
    CHECK_EQ(rma2_noti_get_notiput_class(&note), 0x42);
    CHECK_EQ(rma2_noti_get_notiput_payload(&note), 0xabcdef);
    alone_close(&a);
}

TEST(a_descriptor_of_a_lock_adds_if_the_value_is_not_above)
{
    struct alone a = alone_fresh();
    RMA2_Descriptor *descriptor;
    CHECK_EQ(rma2_desc_alloc(a.port, &descriptor), SUCCESS);
    for (int32_t step = 0; step < 2; step++) { /* From 0 to -7; then it is above -9. */
        CHECK_EQ(rma2_desc_set_lock(descriptor, a.self, RMA2_COMPLETER, 0, RMA2_LOCK_RESPONDER,
                                    4095, step ? (uint32_t)-9 : 0, (uint32_t)-7),
                 SUCCESS);
        CHECK_EQ(rma2_post_descriptor(a.port, a.self, descriptor), SUCCESS);
        RMA2_Notification note = note_next(a.port);
        CHECK_EQ(rma2_noti_get_lock_number(&note), 4095);
        CHECK_EQ(rma2_noti_get_lock_value(&note), -7);
        CHECK_EQ(rma2_noti_get_lock_result(&note), step == 0);
    }
    CHECK_EQ(rma2_desc_free(a.port, descriptor), SUCCESS);
    alone_close(&a);
}

TEST(a_descriptor_of_a_command_that_cannot_be_is_refused)
{
    struct alone a = alone_fresh();
    RMA2_Descriptor *descriptor;
    CHECK_EQ(rma2_desc_alloc(a.port, &descriptor), SUCCESS);
    CHECK_EQ(rma2_desc_set_lock(descriptor, a.self, 0, 0, 2, 0, 0, 0), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_desc_set_lock(descriptor, a.self, 0, 0, 0, 4096, 0, 0), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_desc_set_immediate_put(descriptor, a.self, 0, 0, 9, 0, 0), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_desc_set_noti_put(descriptor, NULL, 0, 0, 0, 0), RMA2_ERR_INV_HANDLE);
    CHECK_EQ(rma2_desc_set_noti_put(NULL, a.self, 0, 0, 0, 0), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_desc_alloc(NULL, &descriptor), RMA2_ERR_INV_PORT);
    CHECK_EQ(rma2_desc_free(a.port, descriptor), SUCCESS);
    alone_close(&a);
}

TEST(a_connection_and_a_port_say_where_they_are)
{
    settings_clear();
    RMA2_Port port = port_opened();
    RMA2_Handle handle;
    CHECK_EQ(rma2_connect(port, 0x21, 0x43, RMA2_CONN_DEFAULT, &handle), SUCCESS);
    CHECK_EQ(rma2_handle_get_node(handle), 0x21);
    CHECK_EQ(rma2_handle_get_vpid(handle), 0x43);
    CHECK_EQ(rma2_handle_get_node(NULL), RMA2_NODEID_ANY);
    CHECK_EQ(rma2_handle_get_vpid(NULL), RMA2_VPID_ANY);
    CHECK_EQ(rma2_get_node_num(port), 256);
    CHECK_EQ(rma2_get_proc_num(port), 252);
    CHECK_EQ(rma2_get_node_num(NULL), 0);
    CHECK_EQ(rma2_get_proc_num(NULL), 0);
    CHECK_EQ(rma2_get_queue_segment_size(port), rma2_get_queue_size(port));
    CHECK_EQ(rma2_disconnect(port, handle), SUCCESS);
    CHECK_EQ(rma2_close(port), SUCCESS);
}

TEST(descriptors_that_cannot_be_are_refused)
{
    struct alone a = alone_fresh();
    const RMA2_NLA nla = a.region->nla;
    RMA2_Descriptor good, bad;
    CHECK_EQ(rma2_desc_set_put_get(NULL, a.self, 0, 1, 0, 0, 0, 0), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_desc_set_put_get(&good, a.self, 0, 0, 0, 0, 0, 0), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_desc_set_put_get(&good, a.self, 0, (8 << 20) + 1, 0, 0, 0, 0),
             RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_desc_set_put_get(&good, a.self, 0, 1, 8, 0, 0, 0), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_desc_set_put_get(&good, a.self, 0, 1, 0, 16, 0, 0), RMA2_ERR_WRONG_ARG);
    CHECK_EQ(rma2_desc_set_put_get(&good, a.self, RMA2_NOTIFICATION_PUT, 1, 0, 0, 0, 0),
             RMA2_ERR_WRONG_CMD);
    CHECK_EQ(rma2_desc_set_put_get(&good, a.self, RMA2_BT_PUT, 8 << 20, 7, 0, nla, nla), SUCCESS);
    CHECK_EQ(rma2_post_descriptor(a.port, a.self, NULL), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_post_descriptor(a.port, a.self, &good), RMA2_ERR_ATU); /* Longer than memory. */
    bad = good;
    bad.value[0] &= ~UINT64_C(3);
    CHECK_EQ(rma2_post_descriptor(a.port, a.self, &bad), RMA2_ERR_WRONG_CMD);
    bad = good;
    bad.value[0] ^= UINT64_C(1) << 16;
    CHECK_EQ(rma2_post_descriptor(a.port, a.self, &bad), RMA2_ERR_INV_HANDLE);
    bad = good;
    bad.value[0] |= RMA2_LOCK_RSP << 2;
    CHECK_EQ(rma2_post_descriptor(a.port, a.self, &bad), RMA2_ERR_WRONG_CMD);
    alone_close(&a);
}

/* ---- text ------------------------------------------------------------------------------------ */

TEST(each_result_has_a_name_and_a_meaning)
{
    static const RMA2_ERROR all[] = {
        RMA2_SUCCESS,         RMA2_ERR_ERROR,         RMA2_ERR_INV_HANDLE,
        RMA2_ERR_INV_PORT,    RMA2_ERR_INV_VALUE,     RMA2_ERR_NO_ROUTE,
        RMA2_ERR_PORTS_USED,  RMA2_ERR_NO_MEM,        RMA2_NO_NOTI,
        RMA2_ERR_WRONG_ARG,   RMA2_ERR_POLL_EXCEEDED, RMA2_ERR_NOT_YET,
        RMA2_ERR_NO_DESC_MEM, RMA2_ERR_NO_MATCH,      RMA2_ERR_WRONG_CMD,
        RMA2_ERR_NO_DEVICE,   RMA2_ERR_NO_CONNECT,    RMA2_ERR_INVALID_VERSION,
        RMA2_ERR_IOCTL,       RMA2_ERR_MMAP,          RMA2_ERR_FD,
        RMA2_ERR_MAP,         RMA2_ERR_ATU,           RMA2_ERR_MLOCKLIMIT};
    char text[200], before[200] = "";
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        rma2_serror(all[i], text, sizeof text);
        CHECK(strncmp(text, "RMA2_", 5) == 0 && strstr(text, ": ") && strcmp(text, before) != 0);
        strcpy(before, text);
        rma2_perror(all[i], "a test prints");
    }
    rma2_serror((RMA2_ERROR)-99, text, sizeof text);
    CHECK(strstr(text, "no result") != NULL);
    rma2_serror(RMA2_SUCCESS, text, 6);
    CHECK(strcmp(text, "RMA2_") == 0);
    rma2_serror(RMA2_SUCCESS, NULL, 6);
    rma2_perror(RMA2_SUCCESS, NULL);
}

TEST(constants_have_the_documented_values)
{
    static const long long values[][2] = {{RMA2_ERR_ERROR, -1},
                                          {RMA2_INV_HANDLE, -2},
                                          {RMA2_INV_PORT, -3},
                                          {RMA2_INV_VALUE, -4},
                                          {RMA2_NO_ROUTE, -5},
                                          {RMA2_PORTS_USED, -6},
                                          {RMA2_NO_MEM, -7},
                                          {RMA2_NO_NOTI, -9},
                                          {RMA2_POLL_EXCEEDED, -10},
                                          {RMA2_WRONG_ARG, -11},
                                          {RMA2_NOT_YET, -12},
                                          {RMA2_NO_DESC_MEM, -13},
                                          {RMA2_NO_MATCH, -15},
                                          {RMA2_WRONG_CMD, -16},
                                          {RMA2_NO_DEVICE, -17},
                                          {RMA2_NO_CONNECT, -18},
                                          {RMA2_INVALID_VERSION, -22},
                                          {RMA2_IOCTL, -23},
                                          {RMA2_MMAP, -24},
                                          {RMA2_FD, -25},
                                          {RMA2_MAP, -26},
                                          {RMA2_ATU, 31},
                                          {RMA2_MLOCKLIMIT, 32},
                                          {RMA2_CONN_PHYSICAL, 0},
                                          {RMA2_CONN_TC1, 1},
                                          {RMA2_CONN_TC2, 2},
                                          {RMA2_CONN_TC3, 3},
                                          {RMA2_CONN_RRA, 4},
                                          {RMA2_CONN_IRQ, 8},
                                          {RMA2_CONN_DEFAULT, 16},
                                          {RMA2_CMD_MC, 1},
                                          {RMA2_CMD_NTR, 2},
                                          {RMA2_CMD_ERA, 4},
                                          {RMA2_CMD_EWA, 8},
                                          {RMA2_REQUESTER, 1},
                                          {RMA2_RESPONDER, 2},
                                          {RMA2_COMPLETER, 4},
                                          {RMA2_ALL, 7},
                                          {RMA2_BT_GET, 0},
                                          {RMA2_QW_GET, 1},
                                          {RMA2_BT_PUT, 2},
                                          {RMA2_QW_PUT, 3},
                                          {RMA2_NOTIFICATION_PUT, 5},
                                          {RMA2_IMMEDIATE_PUT, 6},
                                          {RMA2_GET_BT_RSP, 10},
                                          {RMA2_GET_QW_RSP, 11},
                                          {RMA2_LOCK_REQ, 12},
                                          {RMA2_LOCK_RSP, 13}};
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        CHECK_EQ(values[i][0], values[i][1]);
}
