/* SPDX-License-Identifier: Apache-2.0 */
/* Every documented error of every call that no peer is needed for. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stage.h"

/* A unit that is its own peer. */
struct alone {
    struct velo_port *port;
    struct velo_rma *rma;
    struct velo_rma_peer *self;
    struct velo_rma_mem *mem;
    velo_rma_key_t key;
    uint64_t memory[16];
};

static void alone_open(struct alone *a)
{
    memset(a, 0, sizeof(*a));
    a->port = port_open(VELO_VPID_ANY);
    a->rma = rma_open(a->port);
    CHECK_OK(velo_rma_connect(a->rma, velo_port_id(a->port), &a->self, 0));
    CHECK_OK(velo_rma_mem_register(a->rma, a->memory, sizeof(a->memory), VELO_RMA_RIGHT_ALL,
                                   VELO_RMA_PEER_ANY, &a->mem));
    a->key = velo_rma_mem_key(a->mem);
}

static void alone_close(struct alone *a)
{
    CHECK_OK(velo_rma_close(a->rma));
    CHECK_OK(velo_port_close(a->port));
}

TEST(a_unit_needs_a_port_and_a_place_for_its_pointer)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_rma *rma = NULL;

    CHECK_FAILS(velo_rma_open(NULL, NULL, &rma), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_rma_open(port, NULL, NULL), VELO_ERR_ARG, "NULL");
    CHECK_OK(velo_rma_close(NULL));
    CHECK_OK(velo_port_close(port));
}

TEST(a_port_has_at_most_one_unit)
{
    struct velo_port *port = port_open(VELO_VPID_ANY);
    struct velo_rma *rma = rma_open(port), *second = rma;

    CHECK_FAILS(velo_rma_open(port, NULL, &second), VELO_ERR_STATE, "already");
    CHECK(second == NULL);
    CHECK_OK(velo_rma_close(rma));
    CHECK_OK(velo_rma_close(rma_open(port)));
    CHECK_OK(velo_port_close(port));
}

TEST(a_unit_in_the_longest_domain_works)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_rma_peer *peer;
    struct velo_port *port;
    struct velo_rma *rma;
    char domain[VELO_DOMAIN_NAME_MAX + 1];

    memset(domain, 'x', VELO_DOMAIN_NAME_MAX);
    domain[VELO_DOMAIN_NAME_MAX] = '\0';
    memcpy(domain, test_domain(), strlen(test_domain()));
    attr.domain = domain;
    CHECK_OK(velo_port_open(&attr, &port));
    rma = rma_open(port);
    CHECK_OK(velo_rma_connect(rma, velo_port_id(port), &peer, 0));
    CHECK_OK(velo_rma_close(rma));
    CHECK_OK(velo_port_close(port));
}

TEST(connecting_needs_a_unit_an_id_and_a_place)
{
    struct alone a;
    struct velo_rma_peer *peer = NULL;

    alone_open(&a);
    CHECK_FAILS(velo_rma_connect(NULL, 0, &peer, 0), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_rma_connect(a.rma, 0, NULL, 0), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_rma_connect(a.rma, VELO_ID(VELO_NODES, 0), &peer, 0), VELO_ERR_ARG, "id");
    CHECK_FAILS(velo_rma_connect(a.rma, 0, &peer, -2), VELO_ERR_ARG, "timeout_ns");
    CHECK_FAILS(velo_rma_connect(a.rma, VELO_ID(9, 9), &peer, 0), VELO_ERR_NO_PEER, "not exist");
    CHECK_STATUS(velo_rma_connect(a.rma, VELO_ID(9, 9), &peer, 5 * TEST_MS), VELO_ERR_NO_PEER);
    CHECK(peer == NULL);
    CHECK_OK(velo_rma_disconnect(NULL));
    alone_close(&a);
}

TEST(a_port_without_a_unit_is_no_peer)
{
    struct velo_port *other = port_open(77);
    struct velo_rma_peer *peer;
    struct velo_rma *rma;
    struct alone a;

    alone_open(&a);
    CHECK_STATUS(velo_rma_connect(a.rma, VELO_ID(0, 77), &peer, 0), VELO_ERR_NO_PEER);
    rma = rma_open(other);
    CHECK_OK(velo_rma_connect(a.rma, VELO_ID(0, 77), &peer, 0));
    CHECK_OK(velo_rma_close(rma));
    CHECK_OK(velo_port_close(other));
    alone_close(&a);
}

TEST(registering_checks_its_arguments)
{
    struct velo_rma_mem *mem = NULL;
    struct alone a;
    char byte;

    alone_open(&a);
    CHECK_FAILS(velo_rma_mem_register(NULL, &byte, 1, 1, 0, &mem), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_rma_mem_register(a.rma, NULL, 1, 1, 0, &mem), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_rma_mem_register(a.rma, &byte, 0, 1, 0, &mem), VELO_ERR_ARG, "len_bytes");
    CHECK_FAILS(velo_rma_mem_register(a.rma, &byte, SIZE_MAX, 1, 0, &mem), VELO_ERR_ARG, "beyond");
    CHECK_FAILS(velo_rma_mem_register(a.rma, &byte, 1, 0, 0, &mem), VELO_ERR_ARG, "rights");
    CHECK_FAILS(velo_rma_mem_register(a.rma, &byte, 1, 8, 0, &mem), VELO_ERR_ARG, "rights");
    CHECK_FAILS(velo_rma_mem_register(a.rma, &byte, 1, 1, 65536, &mem), VELO_ERR_ARG, "peer");
    CHECK_FAILS(velo_rma_mem_register(a.rma, &byte, 1, 1, 0, NULL), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_rma_mem_alloc(NULL, 1, 1, 0, &mem), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_rma_mem_alloc(a.rma, 0, 1, 0, &mem), VELO_ERR_ARG, "len_bytes");
    CHECK_FAILS(velo_rma_mem_alloc(a.rma, 1, UINT32_MAX, 0, &mem), VELO_ERR_ARG, "rights");
    CHECK_FAILS(velo_rma_mem_alloc(a.rma, 1, 1, 65536, &mem), VELO_ERR_ARG, "peer");
    CHECK_FAILS(velo_rma_mem_alloc(a.rma, 1, 1, 0, NULL), VELO_ERR_ARG, "NULL");
    CHECK_FAILS(velo_rma_mem_alloc(a.rma, SIZE_MAX, 1, 0, &mem), VELO_ERR_NO_SPACE, "arena");
    CHECK(mem == NULL);
    CHECK_OK(velo_rma_mem_deregister(NULL, VELO_FOREVER));
    alone_close(&a);
}

TEST(operations_check_their_arguments)
{
    static const struct velo_rma_stride stride = {8, 2, 8, 8}, huge = {UINT64_MAX / 2, 3, 8, 8};
    struct velo_rma_piece piece = {NULL, 0, 1};
    uint64_t word = 0;
    struct alone a;

    alone_open(&a);
    struct velo_rma_peer *self = a.self;
    CHECK_STATUS(velo_rma_put(NULL, &word, 8, velo_rma_place(a.key, 0), 0, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_put(self, NULL, 8, velo_rma_place(a.key, 0), 0, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_put(self, &word, 8, velo_rma_place(a.key, 0), 8, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_put(self, &word, 8, velo_rma_place(a.key, 0), UINT32_MAX, 0),
                 VELO_ERR_ARG);
    CHECK_STATUS(
        velo_rma_put(self, &word, 8, velo_rma_place(a.key, 0), VELO_RMA_NOTIFY_RESPONDER, 0),
        VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_get(NULL, &word, 8, velo_rma_place(a.key, 0), 0, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_get(self, NULL, 8, velo_rma_place(a.key, 0), 0, 0), VELO_ERR_ARG);
    CHECK_STATUS(
        velo_rma_get(self, &word, 8, velo_rma_place(a.key, 0), VELO_RMA_NOTIFY_COMPLETER, 0),
        VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_put_immediate(NULL, 1, 8, velo_rma_place(a.key, 0), 0, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_put_immediate(self, 1, 0, velo_rma_place(a.key, 0), 0, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_put_immediate(self, 1, 9, velo_rma_place(a.key, 0), 0, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_notify(NULL, VELO_RMA_NOTIFY_COMPLETER, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_notify(self, VELO_RMA_NOTIFY_REQUESTER, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_notify(self, VELO_RMA_NOTIFY_COMPLETER | VELO_RMA_NOTIFY_RESPONDER, 0),
                 VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_fetch_compare_add(NULL, &word, velo_rma_place(a.key, 0), 0, 0, 0, 0),
                 VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_fetch_compare_add(self, NULL, velo_rma_place(a.key, 0), 0, 0, 0, 0),
                 VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_fetch_compare_add(self, &word, velo_rma_place(a.key, 0), 0, 0,
                                            VELO_RMA_TAIL_LAST, 0),
                 VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_fetch_compare_add(self, &word, velo_rma_place(a.key, 0), 0, 0, 64, 0),
                 VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_put_strided(NULL, &word, &stride, velo_rma_place(a.key, 0), 0, 0),
                 VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_put_strided(self, NULL, &stride, velo_rma_place(a.key, 0), 0, 0),
                 VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_put_strided(self, &word, NULL, velo_rma_place(a.key, 0), 0, 0),
                 VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_get_strided(self, &word, &huge, velo_rma_place(a.key, 0), 0, 0),
                 VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_put_list(NULL, &piece, 1, velo_rma_place(a.key, 0), 0, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_put_list(self, NULL, 1, velo_rma_place(a.key, 0), 0, 0), VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_get_list(self, &piece, 1, velo_rma_place(a.key, 0), 0, 0), VELO_ERR_ARG);
    struct velo_rma_piece too_much[2] = {{&word, 0, UINT64_MAX}, {&word, 0, 2}};
    CHECK_STATUS(velo_rma_get_list(self, too_much, 2, velo_rma_place(a.key, 0), 0, 0),
                 VELO_ERR_ARG);
    for (size_t i = 0; i < ARRAY_LEN(a.memory); i++)
        CHECK_EQ(a.memory[i], 0);
    note_none(a.rma);
    alone_close(&a);
}

static bool is_update(int atomic, int type)
{
    bool is_float = type == VELO_RMA_TYPE_FLOAT || type == VELO_RMA_TYPE_DOUBLE;
    bool is_bitwise = atomic >= VELO_RMA_ATOMIC_AND && atomic <= VELO_RMA_ATOMIC_LXOR;

    return atomic >= VELO_RMA_ATOMIC_ADD && atomic <= VELO_RMA_ATOMIC_MAX &&
           type >= VELO_RMA_TYPE_INT32 && type <= VELO_RMA_TYPE_DOUBLE && !(is_float && is_bitwise);
}

TEST(finding_checks_its_arguments)
{
    const uint64_t at = 4096;
    struct velo_rma_place found;
    struct alone a;

    alone_open(&a);
    CHECK_STATUS(velo_rma_mem_find(NULL, at, 1, VELO_RMA_RIGHT_READ, &found), VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_mem_find(a.self, at, 0, VELO_RMA_RIGHT_READ, &found), VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_mem_find(a.self, at, 1, 0, &found), VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_mem_find(a.self, at, 1, VELO_RMA_RIGHT_ALL + 1, &found), VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_mem_find(a.self, at, 1, UINT32_MAX, &found), VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_mem_find(a.self, at, 1, VELO_RMA_RIGHT_READ, NULL), VELO_ERR_ARG);
    alone_close(&a);
}

TEST(updates_check_their_arguments)
{
    const enum velo_rma_atomic add = VELO_RMA_ATOMIC_ADD;
    const enum velo_rma_type int64 = VELO_RMA_TYPE_INT64;
    uint64_t word = 0;
    struct alone a;

    alone_open(&a);
    CHECK_STATUS(velo_rma_fetch_op(NULL, &word, velo_rma_place(a.key, 0), add, int64, &word, 0, 0),
                 VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_fetch_op(a.self, &word, velo_rma_place(a.key, 0), add, int64, NULL, 0, 0),
                 VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_fetch_op(a.self, &word, velo_rma_place(a.key, 0), add, int64, &word,
                                   VELO_RMA_NOTIFY_COMPLETER, 0),
                 VELO_ERR_ARG);
    for (int atomic = -1; atomic < 40; atomic++)
        for (int type = -1; type < 40; type++)
            if (!is_update(atomic, type))
                CHECK_FAILS(velo_rma_fetch_op(a.self, &word, velo_rma_place(a.key, 0),
                                              (enum velo_rma_atomic)atomic,
                                              (enum velo_rma_type)type, &word, 0, 0),
                            VELO_ERR_ARG, "enum velo_rma_atomic");
    CHECK_STATUS(
        velo_rma_compare_swap(NULL, &word, 8, velo_rma_place(a.key, 0), &word, &word, 0, 0),
        VELO_ERR_ARG);
    CHECK_STATUS(
        velo_rma_compare_swap(a.self, &word, 8, velo_rma_place(a.key, 0), NULL, &word, 0, 0),
        VELO_ERR_ARG);
    CHECK_STATUS(
        velo_rma_compare_swap(a.self, &word, 8, velo_rma_place(a.key, 0), &word, NULL, 0, 0),
        VELO_ERR_ARG);
    for (size_t len = 0; len < 20; len++)
        if (len != 4 && len != 8)
            CHECK_STATUS(velo_rma_compare_swap(a.self, &word, len, velo_rma_place(a.key, 0), &word,
                                               &word, 0, 0),
                         VELO_ERR_ARG);
    for (size_t i = 0; i < ARRAY_LEN(a.memory); i++)
        CHECK_EQ(a.memory[i], 0);
    note_none(a.rma);
    alone_close(&a);
}

TEST(the_other_calls_check_their_arguments)
{
    struct velo_rma_notification note;
    struct velo_rma_counters counters;
    struct alone a;

    alone_open(&a);
    CHECK_FAILS(velo_rma_fence(NULL), VELO_ERR_ARG, "peer is NULL");
    CHECK_STATUS(velo_rma_peer_status(NULL), VELO_ERR_ARG);
    CHECK_FAILS(velo_rma_flush(NULL, 0), VELO_ERR_ARG, "peer is NULL");
    CHECK_FAILS(velo_rma_flush(a.self, -2), VELO_ERR_ARG, "timeout_ns");
    CHECK_FAILS(velo_rma_progress(NULL), VELO_ERR_ARG, "rma is NULL");
    CHECK_FAILS(velo_rma_try_poll(NULL, &note, 1), VELO_ERR_ARG, "notifications is NULL");
    CHECK_FAILS(velo_rma_try_poll(a.rma, NULL, 1), VELO_ERR_ARG, "notifications is NULL");
    CHECK_FAILS(velo_rma_poll(NULL, &note, 1, 0), VELO_ERR_ARG, "notifications is NULL");
    CHECK_STATUS(velo_rma_poll(a.rma, NULL, 1, 0), VELO_ERR_ARG);
    CHECK_FAILS(velo_rma_poll(a.rma, &note, 1, -2), VELO_ERR_ARG, "timeout_ns");
    CHECK_STATUS(velo_rma_counters(NULL, &counters, sizeof counters), VELO_ERR_ARG);
    CHECK_STATUS(velo_rma_counters(a.rma, NULL, sizeof *NULL), VELO_ERR_ARG);
    alone_close(&a);
}

TEST(a_wait_for_a_notification_ends_in_time)
{
    struct velo_rma_notification note;
    struct alone a;
    int64_t start_ns;

    alone_open(&a);
    start_ns = test_now_ns();
    CHECK_STATUS(velo_rma_poll(a.rma, &note, 1, 0), VELO_TIMEOUT);
    CHECK_STATUS(velo_rma_poll(a.rma, &note, 1, 30 * TEST_MS), VELO_TIMEOUT);
    CHECK(test_now_ns() - start_ns >= 30 * TEST_MS);
    CHECK(test_now_ns() - start_ns < 5000 * TEST_MS);
    alone_close(&a);
}

/* ---- a full file system ---------------------------------------------------------------------- */

enum { NOT_PERMITTED = 77 };

static void fill_file_system(void *arg)
{
    const char *small_dir = arg;
    struct velo_rma_mem *mems[64] = {NULL}, *mem;
    struct velo_port *port;
    struct velo_rma *rma;
    size_t n = 0;

    if (!test_unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", small_dir, "tmpfs", 0, "size=2m") != 0)
        _exit(NOT_PERMITTED);
    setenv("VELO_SHM_DIR", small_dir, 1);
    port = port_open(VELO_VPID_ANY);
    rma = rma_open(port);
    CHECK_FAILS(velo_rma_mem_alloc(rma, 4 << 20, 1, VELO_RMA_PEER_ANY, &mem), VELO_ERR_NO_SPACE,
                "no room");
    while (velo_rma_mem_alloc(rma, 1 << 16, 1, VELO_RMA_PEER_ANY, &mem) == VELO_OK) {
        CHECK(n < ARRAY_LEN(mems));
        memset(velo_rma_mem_addr(mem), 1, 1 << 16);
        mems[n++] = mem;
    }
    CHECK(n > 0);
    CHECK_OK(velo_rma_mem_deregister(mems[0], VELO_FOREVER));
    CHECK_OK(velo_rma_mem_alloc(rma, 1 << 16, 1, VELO_RMA_PEER_ANY, &mem));
    CHECK_EQ(*(char *)velo_rma_mem_addr(mem), 0);
    CHECK_OK(velo_rma_close(rma));
    CHECK_OK(velo_port_close(port));
}

TEST(a_full_file_system_is_an_error_and_frees_what_was_taken)
{
    char small_dir[] = "/tmp/velo-rma-small-XXXXXX";

    CHECK(mkdtemp(small_dir) != NULL);
    int status = child_wait(child_start(fill_file_system, small_dir));
    (void)rmdir(small_dir);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_PERMITTED)
        test_skip("mounting a tmpfs is not permitted here");
    CHECK_EQ(status, 0);
}
