/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers that do not keep to the library: messages that it would never send, and a table full of
 * nonsense. These tests know the inside: they link the static library.
 */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "core/senders.h"
#include "rma/unit.h"
#include "stage.h"

enum { SIZE = 4096, GUARD = 64 };

struct scene {
    struct velo_port *owner_port, *port;
    struct velo_rma *owner, *rma;
    struct velo_rma_peer *peer;
    struct velo_rma_mem *mem;
    unsigned char memory[GUARD + SIZE + GUARD];
};

static void scene_open(struct scene *s, uint32_t rights, velo_id_t grant)
{
    memset(s, 0, sizeof(*s));
    way_set(WAY_ASKED);
    s->owner_port = port_open(OWNER_VPID);
    s->port = port_open(REQUESTER_VPID);
    s->owner = rma_open(s->owner_port);
    s->rma = rma_open(s->port);
    CHECK_OK(velo_rma_connect(s->rma, OWNER_VPID, &s->peer, 0));
    CHECK_OK(velo_rma_mem_register(s->owner, s->memory + GUARD, SIZE, rights, grant, &s->mem));
}

static void scene_close(struct scene *s)
{
    CHECK_OK(velo_rma_close(s->rma));
    CHECK_OK(velo_rma_close(s->owner));
    CHECK_OK(velo_port_close(s->port));
    CHECK_OK(velo_port_close(s->owner_port));
}

/* A request in order, to be spoilt. */
static struct wire_request request(const struct scene *s, enum velo_rma_operation op,
                                   uint64_t offset, uint64_t len)
{
    return (struct wire_request){.op = (uint8_t)op,
                                 .handle = s->peer->handle,
                                 .key = velo_rma_mem_key(s->mem),
                                 .offset = offset,
                                 .len_bytes = len,
                                 .total_bytes = len};
}

/* Send it past the checks of our own library, and leave it there; data_bytes of data follow. */
static void leave_raw(struct scene *s, const struct wire_request *wire, size_t data_bytes)
{
    static unsigned char message[sizeof(*wire) + 16000];

    memset(message, 0xbb, sizeof(message));
    memcpy(message, wire, sizeof(*wire));
    CHECK_OK(
        velo_send(s->peer->conn, message, sizeof(*wire) + data_bytes, WIRE_REQUEST, VELO_FOREVER));
}

/* Have its owner serve it, too. */
static void send_raw(struct scene *s, const struct wire_request *wire, size_t data_bytes)
{
    leave_raw(s, wire, data_bytes);
    while (velo_rma_progress(s->owner) > 0)
        ;
}

/* Take an answer that tells of so many requests, the last of which had this number. */
static void take_answer_of(struct scene *s, uint32_t handle, uint32_t count, uint32_t seq,
                           int status)
{
    struct velo_msg msg;
    struct wire_answer answer;

    CHECK_OK(velo_try_peek(s->rma->port, &msg));
    CHECK_EQ(msg.tag, WIRE_ANSWER);
    memcpy(&answer, msg.data, sizeof(answer));
    CHECK_EQ(answer.handle, handle);
    CHECK_EQ(answer.before + 1, count);
    CHECK_EQ(answer.seq, seq);
    CHECK_STATUS(answer.status, status);
    CHECK_OK(velo_release(s->rma->port));
}

/* Take the answers as they are. */
static unsigned take_answers(struct scene *s, int status)
{
    struct velo_msg msg;
    unsigned answers = 0;

    while (velo_try_peek(s->rma->port, &msg) == VELO_OK) {
        struct wire_answer answer;

        CHECK_EQ(msg.tag, WIRE_ANSWER);
        CHECK(msg.len_bytes >= sizeof(answer));
        memcpy(&answer, msg.data, sizeof(answer));
        CHECK_STATUS(answer.status, status);
        answers++;
        CHECK_OK(velo_release(s->rma->port));
    }
    return answers;
}

static bool is_zero(const struct scene *s)
{
    for (size_t i = 0; i < sizeof(s->memory); i++)
        if (s->memory[i] != 0)
            return false;
    return true;
}

static uint64_t refused_peers(struct velo_rma *rma)
{
    struct velo_rma_counters counters;

    CHECK_OK(velo_rma_counters(rma, &counters, sizeof counters));
    return counters.refused_peers;
}

TEST(an_owner_checks_requests_that_no_library_has_checked)
{
    static const struct {
        uint64_t offset, len;
    } ranges[] = {
        {SIZE, 1},    {SIZE - 7, 8}, {UINT64_MAX, 8}, {UINT64_MAX - 3, 8}, {(uint64_t)0 - GUARD, 8},
        {0, SIZE + 1}};
    struct scene s;
    unsigned expected = 0;

    scene_open(&s, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
    for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
        struct wire_request wire =
            request(&s, VELO_RMA_OPERATION_PUT, ranges[i].offset, ranges[i].len);

        send_raw(&s, &wire, ranges[i].len);
        wire.op = VELO_RMA_OPERATION_GET;
        send_raw(&s, &wire, 0);
        wire.op = VELO_RMA_OPERATION_FETCH_COMPARE_ADD;
        wire.len_bytes = 8;
        wire.how = VELO_RMA_ADD_ALWAYS;
        wire.word[1] = 1;
        wire.offset = ranges[i].len == 1 ? SIZE - 4 : ranges[i].len > 8 ? 4 : ranges[i].offset;
        send_raw(&s, &wire, 0);
        wire.op = VELO_RMA_OPERATION_FETCH_OP;
        wire.update = rma_update_code(VELO_RMA_ATOMIC_SWAP, VELO_RMA_TYPE_INT64);
        wire.word[0] = 1;
        send_raw(&s, &wire, 0);
        wire.op = VELO_RMA_OPERATION_COMPARE_SWAP;
        wire.word[0] = 0;
        send_raw(&s, &wire, 0);
        /* Where a word of 4 bytes would have been permitted. */
        wire.len_bytes = 4;
        wire.offset += wire.offset % 8 == 4 ? 2 : 0;
        send_raw(&s, &wire, 0);
        expected += 6;
    }
    CHECK_EQ(take_answers(&s, VELO_ERR_ACCESS), expected);
    CHECK_EQ(refused_peers(s.owner), expected);
    CHECK(is_zero(&s));
    scene_close(&s);
}

TEST(an_owner_checks_rights_grants_and_keys_again)
{
    static const enum velo_rma_operation ops[] = {
        VELO_RMA_OPERATION_PUT,      VELO_RMA_OPERATION_PUT_IMMEDIATE,
        VELO_RMA_OPERATION_GET,      VELO_RMA_OPERATION_FETCH_COMPARE_ADD,
        VELO_RMA_OPERATION_FETCH_OP, VELO_RMA_OPERATION_COMPARE_SWAP};
    static const uint32_t rights[] = {VELO_RMA_RIGHT_WRITE,  VELO_RMA_RIGHT_WRITE,
                                      VELO_RMA_RIGHT_READ,   VELO_RMA_RIGHT_ATOMIC,
                                      VELO_RMA_RIGHT_ATOMIC, VELO_RMA_RIGHT_ATOMIC};

    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        size_t data = rights[i] == VELO_RMA_RIGHT_WRITE ? 8 : 0;
        struct wire_request wire;
        struct scene s;

        scene_open(&s, VELO_RMA_RIGHT_ALL & ~rights[i], VELO_RMA_PEER_ANY);
        wire = request(&s, ops[i], 0, 8);
        wire.how = VELO_RMA_ADD_ALWAYS;
        wire.update = rma_update_code(VELO_RMA_ATOMIC_OR, VELO_RMA_TYPE_INT64);
        wire.word[0] = ops[i] == VELO_RMA_OPERATION_FETCH_OP;
        wire.word[1] = 1;
        send_raw(&s, &wire, data);
        CHECK_EQ(take_answers(&s, VELO_ERR_ACCESS), 1);
        CHECK(is_zero(&s));
        scene_close(&s);

        scene_open(&s, VELO_RMA_RIGHT_ALL, 77);
        wire.key = velo_rma_mem_key(s.mem);
        send_raw(&s, &wire, data);
        wire.key ^= UINT64_C(1) << 40;
        send_raw(&s, &wire, data);
        wire.key = 0;
        send_raw(&s, &wire, data);
        CHECK_EQ(take_answers(&s, VELO_ERR_ACCESS), 3);
        CHECK_EQ(refused_peers(s.owner), 3);
        CHECK(is_zero(&s));
        scene_close(&s);
    }
}

TEST(an_owner_drops_requests_whose_length_is_not_that_of_their_data)
{
    static const struct {
        enum velo_rma_operation op;
        uint64_t len;
        size_t data;
    } requests[] = {{VELO_RMA_OPERATION_PUT, 4000, 8},
                    {VELO_RMA_OPERATION_PUT, 8, 4000},
                    {VELO_RMA_OPERATION_PUT, 0, 8},
                    {VELO_RMA_OPERATION_PUT_IMMEDIATE, 9, 9},
                    {VELO_RMA_OPERATION_PUT_IMMEDIATE, 0, 0},
                    {VELO_RMA_OPERATION_PUT_IMMEDIATE, 8, 4},
                    {VELO_RMA_OPERATION_GET, 8, 8},
                    {VELO_RMA_OPERATION_FETCH_COMPARE_ADD, 4, 0},
                    {VELO_RMA_OPERATION_FETCH_COMPARE_ADD, 8, 8},
                    {VELO_RMA_OPERATION_FETCH_OP, 4, 0},
                    {VELO_RMA_OPERATION_FETCH_OP, 8, 8},
                    {VELO_RMA_OPERATION_FETCH_OP, 0, 0},
                    {VELO_RMA_OPERATION_COMPARE_SWAP, 0, 0},
                    {VELO_RMA_OPERATION_COMPARE_SWAP, 2, 0},
                    {VELO_RMA_OPERATION_COMPARE_SWAP, 8, 8},
                    {VELO_RMA_OPERATION_NOTIFY, 0, 0},
                    {0, 0, 0},
                    {99, 8, 8}};
    struct scene s;

    scene_open(&s, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        struct wire_request wire = request(&s, requests[i].op, 0, requests[i].len);

        wire.how = VELO_RMA_ADD_ALWAYS;
        wire.word[1] = 1;
        wire.notify = VELO_RMA_NOTIFY_COMPLETER;
        wire.update = rma_update_code(VELO_RMA_ATOMIC_ADD, VELO_RMA_TYPE_INT64);
        send_raw(&s, &wire, requests[i].data);
    }
    CHECK(is_zero(&s));
    CHECK_EQ(take_answers(&s, VELO_OK), 0);
    note_none(s.owner);
    scene_close(&s);
}

/* Each of the 256, with both lengths: the owner carries out what there is, and answers nothing
 * else.
 */
TEST(an_owner_drops_updates_that_do_not_exist)
{
    unsigned expected = 0;
    struct scene s;

    scene_open(&s, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
    for (unsigned update = 0; update < 256; update++) {
        unsigned atomic = update & 15, type = update >> 4;
        bool is_real = type >= VELO_RMA_TYPE_FLOAT;
        bool is_bitwise = atomic >= VELO_RMA_ATOMIC_AND && atomic <= VELO_RMA_ATOMIC_LXOR;
        bool is_narrow = type == VELO_RMA_TYPE_INT32 || type == VELO_RMA_TYPE_UINT32 ||
                         type == VELO_RMA_TYPE_FLOAT;
        bool exists = atomic >= 1 && atomic <= VELO_RMA_ATOMIC_MAX && type >= 1 &&
                      type <= VELO_RMA_TYPE_DOUBLE && !(is_real && is_bitwise);

        for (uint64_t len = 4; len <= 8; len += 4) {
            struct wire_request wire = request(&s, VELO_RMA_OPERATION_FETCH_OP, 8, len);

            wire.update = (uint8_t)update;
            send_raw(&s, &wire, 0);
            expected += exists && is_narrow == (len == 4);
            CHECK_EQ(take_answers(&s, VELO_OK), exists && is_narrow == (len == 4));
        }
    }
    CHECK_EQ(expected, 4 * 10 + 2 * 4);
    CHECK(is_zero(&s));
    scene_close(&s);
}

TEST(messages_that_make_no_sense_are_dropped_and_harm_nobody)
{
    struct rng rng = {test_seed()};
    struct scene s;
    unsigned char byte = 5;

    scene_open(&s, VELO_RMA_RIGHT_READ, VELO_RMA_PEER_ANY);
    for (int i = 0; i < 20000; i++) {
        unsigned char message[200];
        uint32_t len = rng_below(&rng, sizeof(message));
        struct wire_request wire = request(&s, rng_below(&rng, 8), 0, rng_below(&rng, 200));
        struct velo_rma_notification note;

        for (uint32_t b = 0; b < len; b++)
            message[b] = (unsigned char)rng_next(&rng);
        if (rng_below(&rng, 2) && len >= sizeof(wire))
            memcpy(message, &wire, sizeof(wire)); /* Nearly right. */
        /* Requests, answers to nothing, notifications, and what has no name. */
        CHECK_OK(velo_send(s.peer->conn, message, len, (uint8_t)rng_below(&rng, 7), VELO_FOREVER));
        (void)velo_rma_progress(s.owner);
        (void)velo_rma_progress(s.rma);
        while (velo_rma_try_poll(s.owner, &note, 1) == 1)
            CHECK(note.class_ == VELO_RMA_CLASS_COMPLETER ||
                  note.class_ == VELO_RMA_CLASS_RESPONDER);
        note_none(s.rma);
    }
    CHECK(is_zero(&s));
    /* And generation goes on. */
    CHECK_OK(velo_rma_get(s.peer, &byte, 1, velo_rma_place(velo_rma_mem_key(s.mem), 0), 0, 0));
    while (velo_rma_flush(s.peer, 0) == VELO_TIMEOUT)
        (void)velo_rma_progress(s.owner);
    CHECK_EQ(byte, 0);
    scene_close(&s);
}

TEST(answers_that_were_not_asked_for_write_nothing)
{
    static unsigned char local[100];
    struct velo_conn *conn;
    struct scene s;

    scene_open(&s, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
    conn = port_connect(s.owner->port, REQUESTER_VPID); /* As the owner's library does. */
    CHECK_OK(velo_rma_get(s.peer, local, 50, velo_rma_place(velo_rma_mem_key(s.mem), 0), 0, 7));
    struct wire_answer answer = {.handle = s.peer->handle, .seq = s.peer->seq_answered};
    unsigned char message[sizeof(answer) + 100];
    memset(message, 0xbb, sizeof(message));

    /* Of another peer, another piece: as if nothing had come. */
    for (int i = 0; i < 2; i++) {
        struct wire_answer wrong = answer;
        *(i == 0 ? &wrong.handle : &wrong.seq) += PEERS_MAX;
        memcpy(message, &wrong, sizeof(wrong));
        CHECK_OK(velo_send(conn, message, sizeof(wrong) + 50, WIRE_ANSWER, VELO_FOREVER));
        CHECK_EQ(velo_rma_progress(s.rma), 0);
    }
    note_none(s.rma);
    /* Of this one, but too long: the operation fails, and nothing is written. */
    memcpy(message, &answer, sizeof(answer));
    CHECK_OK(velo_send(conn, message, sizeof(message), WIRE_ANSWER, VELO_FOREVER));
    CHECK_EQ(velo_rma_progress(s.rma), 1);
    CHECK_STATUS(note_expect(s.rma).status, VELO_ERR_CORRUPT);
    for (size_t i = 0; i < sizeof(local); i++)
        CHECK_EQ(local[i], 0);
    scene_close(&s);
}

TEST(puts_in_a_row_have_one_answer_and_all_else_has_its_own)
{
    static const struct {
        enum velo_rma_operation op;
        uint32_t handle;
        uint32_t count;
        int status;
    } rows[] = {{VELO_RMA_OPERATION_PUT, 0, 3, VELO_OK},
                {VELO_RMA_OPERATION_GET, 0, 1, VELO_OK},
                {VELO_RMA_OPERATION_PUT_IMMEDIATE, 0, 2, VELO_OK},
                {VELO_RMA_OPERATION_PUT, 0, 1, VELO_ERR_ACCESS},
                {VELO_RMA_OPERATION_PUT, 0, 1, VELO_OK},
                {VELO_RMA_OPERATION_PUT, 1, 1, VELO_OK}};
    struct velo_msg msg;
    struct scene s;
    uint32_t seq = UINT32_MAX - 1; /* It comes round. */

    scene_open(&s, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (uint32_t n = 0; n < rows[i].count; n++) {
            struct wire_request wire =
                request(&s, rows[i].op, rows[i].status ? SIZE : 0, sizeof(uint64_t));
            wire.handle += rows[i].handle;
            wire.seq = seq++;
            leave_raw(&s, &wire, rows[i].op == VELO_RMA_OPERATION_GET ? 0 : sizeof(uint64_t));
        }
    (void)velo_rma_progress(s.owner);
    seq = UINT32_MAX - 1;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        seq += rows[i].count;
        take_answer_of(&s, s.peer->handle + rows[i].handle, rows[i].count, seq - 1, rows[i].status);
    }
    CHECK_STATUS(velo_try_peek(s.rma->port, &msg), VELO_AGAIN);
    scene_close(&s);
}

/* A requester goes on with what it has heard of: it hears in time. */
TEST(a_long_row_of_puts_has_several_answers)
{
    enum { PUTS = 100 };
    struct scene s;

    scene_open(&s, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
    for (uint32_t i = 0; i < PUTS; i++) {
        struct wire_request wire = request(&s, VELO_RMA_OPERATION_PUT, 0, 8);
        wire.seq = i;
        leave_raw(&s, &wire, 8);
    }
    (void)velo_rma_progress(s.owner);
    CHECK_EQ(take_answers(&s, VELO_OK), 4);
    scene_close(&s);
}

TEST(an_answer_to_puts_ends_those_that_wait_and_no_more)
{
    struct velo_conn *conn;
    struct scene s;

    scene_open(&s, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
    conn = port_connect(s.owner->port, REQUESTER_VPID);
    for (uint64_t i = 0; i < 3; i++)
        CHECK_OK(velo_rma_put(s.peer, &i, 8, velo_rma_place(velo_rma_mem_key(s.mem), 0),
                              VELO_RMA_NOTIFY_REQUESTER, i + 1));
    struct wire_answer answer = {
        .handle = s.peer->handle, .before = 1, .seq = s.peer->seq_answered + 1};
    struct wire_answer wrong = answer;
    wrong.before = 2; /* One of them has been answered. */
    CHECK_OK(velo_send(conn, &wrong, sizeof(wrong), WIRE_ANSWER, VELO_FOREVER));
    CHECK_EQ(velo_rma_progress(s.rma), 0);
    CHECK_OK(velo_send(conn, &answer, sizeof(answer), WIRE_ANSWER, VELO_FOREVER));
    CHECK_EQ(velo_rma_progress(s.rma), 2);
    answer.before = UINT32_MAX; /* More than were asked for, from the next one on. */
    CHECK_OK(velo_send(conn, &answer, sizeof(answer), WIRE_ANSWER, VELO_FOREVER));
    CHECK_EQ(velo_rma_progress(s.rma), 1);
    for (uint64_t i = 0; i < 3; i++)
        CHECK_EQ(note_expect(s.rma).cookie, i + 1);
    note_none(s.rma);
    scene_close(&s);
}

TEST(answers_to_a_peer_that_was_given_up_reach_no_other)
{
    struct velo_conn *conn;
    struct wire_answer late;
    uint64_t word = 0;
    struct scene s;

    scene_open(&s, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
    conn = port_connect(s.owner->port, REQUESTER_VPID);
    late = (struct wire_answer){.handle = s.peer->handle};
    unsigned char message[sizeof(late) + 8] = {0};
    CHECK_OK(velo_rma_disconnect(s.peer));
    CHECK_OK(velo_rma_connect(s.rma, OWNER_VPID, &s.peer, 0));
    CHECK_OK(velo_rma_get(s.peer, &word, 8, velo_rma_place(velo_rma_mem_key(s.mem), 0), 0, 0));
    memcpy(message, &late, sizeof(late));
    CHECK_OK(velo_send(conn, message, sizeof(message), WIRE_ANSWER, VELO_FOREVER));
    CHECK_EQ(velo_rma_progress(s.rma), 0);
    CHECK_STATUS(velo_rma_flush(s.peer, 0), VELO_TIMEOUT);
    scene_close(&s);
}

TEST(a_table_full_of_nonsense_leads_nowhere)
{
    struct rng rng = {test_seed()};
    struct velo_rma_mem *allocated;
    struct scene s;

    scene_open(&s, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
    CHECK_OK(velo_rma_mem_alloc(s.owner, SIZE, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY, &allocated));
    velo_rma_key_t key = velo_rma_mem_key(allocated);
    struct table_entry *entry = &s.owner->table.entries[key % VELO_RMA_MEMS_MAX];
    const struct table_entry right = *entry;
    for (int i = 0; i < 3000; i++) {
        uint64_t *fields[] = {&entry->len_bytes, &entry->arena_at, &entry->rights};
        uint64_t word = 1;

        *entry = right;
        s.owner->table.header->backed = rng_next(&rng);
        *fields[i % 3] = rng_next(&rng) >> rng_below(&rng, 64);
        /* It is done, asked for, or refused; the process lives. */
        int status = velo_rma_get(s.peer, &word, 8,
                                  velo_rma_place(key, rng_next(&rng) >> rng_below(&rng, 64)), 0, 0);
        CHECK(status == VELO_OK || status == VELO_ERR_ACCESS);
        while (velo_rma_flush(s.peer, 0) == VELO_TIMEOUT)
            (void)velo_rma_progress(s.owner);
        struct velo_rma_notification note;
        while (velo_rma_try_poll(s.rma, &note, 1) == 1)
            CHECK_STATUS(note.status, VELO_ERR_ACCESS);
    }
    *entry = right;
    scene_close(&s);
}

/* ---- a requester that stays in a registration ------------------------------------------------ */

struct lingerer {
    velo_rma_key_t key;
    atomic_int inside;
};

static void stay_inside(void *arg)
{
    struct lingerer *l = arg;
    struct requester me;

    requester_open(&me, REQUESTER_VPID);
    order_enter(&me.peer->row->active, l->key);
    atomic_store(&l->inside, 1);
    for (;;)
        test_sleep_ns(TEST_MS);
}

static void deregister(void *arg)
{
    struct lingerer *l = test_shared_alloc(sizeof(*l));
    struct velo_port *port = port_open(OWNER_VPID);
    struct velo_rma *rma = rma_open(port);
    static unsigned char memory[64];
    struct velo_rma_mem *mem, *other;
    atomic_int *stage = arg;
    pid_t child;

    CHECK_OK(velo_rma_mem_register(rma, memory, 64, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY, &mem));
    CHECK_OK(velo_rma_mem_register(rma, memory, 64, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY, &other));
    l->key = velo_rma_mem_key(mem);
    child = child_start(stay_inside, l);
    while (!atomic_load(&l->inside))
        test_sleep_ns(TEST_MS);
    CHECK_OK(velo_rma_mem_deregister(other, VELO_FOREVER)); /* Nobody is in that one. */
    atomic_store(stage, child);
    CHECK_OK(velo_rma_mem_deregister(mem, VELO_FOREVER));
    atomic_store(stage + 1, 1);
    child_wait(child);
    CHECK_OK(velo_rma_close(rma));
    CHECK_OK(velo_port_close(port));
}

TEST(deregistering_waits_for_a_requester_that_is_inside_until_it_dies)
{
    atomic_int *stage = test_shared_alloc(2 * sizeof(*stage));
    pid_t owner = child_start(deregister, stage);
    int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;

    while (atomic_load(stage) == 0) {
        CHECK(test_now_ns() < end_ns);
        test_sleep_ns(TEST_MS);
    }
    test_sleep_ns(50 * TEST_MS);
    CHECK_EQ(atomic_load(stage + 1), 0); /* It waits. */
    CHECK_EQ(kill(atomic_load(stage), SIGKILL), 0);
    child_join(owner);
    CHECK_EQ(atomic_load(stage + 1), 1);
    clean_up_after(REQUESTER_VPID);
}

/* ---- what a dead requester leaves ------------------------------------------------------------ */

/* A requester that is killed between the two stores around its access to allocated memory. */
static void die_inside(void *arg)
{
    const velo_rma_key_t *key = arg;
    struct requester me;

    requester_open(&me, REQUESTER_VPID + 1);
    order_enter(&me.peer->row->active, *key);
    (void)kill(getpid(), SIGKILL);
}

/* The owner lets go of its dead sender, and a connection that no line belongs to takes its place.
 */
TEST(deregistering_ends_though_the_place_of_a_dead_requester_is_taken_by_an_answer)
{
    struct velo_rma_mem *mem;
    struct velo_conn *answers;
    struct scene s;
    velo_rma_key_t key;
    uint32_t index;
    pid_t child;

    scene_open(&s, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY);
    CHECK_OK(velo_rma_mem_alloc(s.owner, SIZE, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY, &mem));
    key = velo_rma_mem_key(mem);
    child = child_start(die_inside, &key);
    (void)child_wait(child);
    for (index = 0; s.owner->table.rows[index].active != key; index++)
        CHECK(index < s.owner->port->shape.conns_max);
    rx_reap(s.owner->port);
    CHECK_EQ(velo_rma_progress(s.owner), 0);
    CHECK_OK(velo_connect(s.rma->port, VELO_ID(0, OWNER_VPID), &answers, 0));
    CHECK_EQ(answers->index, index);
    CHECK_OK(velo_rma_mem_deregister(mem, VELO_FOREVER));
    CHECK_OK(velo_disconnect(answers));
    scene_close(&s);
    clean_up_after(REQUESTER_VPID + 1);
}
