/* SPDX-License-Identifier: Apache-2.0 */
/* rma2.h between two processes: what each operation moves, and whom it notifies of what. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <velo2.h>

#include "peer.h"

#define SUCCESS RMA2_SUCCESS
#define PAGE 4096u
#define SIZE (64u << 10)

static unsigned char memory[SIZE] __attribute__((aligned(PAGE)));

/* This process and its peer. */
struct two {
    struct peer *peer;
    RMA2_Port port;
    RMA2_Handle handle;
    RMA2_Region region;
    unsigned notes; /* Of the peer, that were looked at. */
};

static void two_begin_sized(struct two *two, size_t size)
{
    memset(memory, 0, sizeof memory);
    two->peer = peer_start(size);
    two->port = port_opened();
    two->notes = 0;
    CHECK_EQ(rma2_connect(two->port, two->peer->nodeid, two->peer->vpid, RMA2_CONN_DEFAULT,
                          &two->handle),
             SUCCESS);
    CHECK_EQ(rma2_register_nomalloc(two->port, memory, sizeof memory, &two->region), SUCCESS);
}

static struct two two_begin(void)
{
    struct two two;
    two_begin_sized(&two, SIZE);
    return two;
}

static void two_end(struct two *two)
{
    note_none(two->port);
    CHECK_EQ(rma2_disconnect(two->port, two->handle), SUCCESS);
    peer_stop(two->peer);
    CHECK_EQ(two->peer->notes_len, two->notes);
    CHECK_EQ(rma2_close(two->port), SUCCESS);
}

/* Put, and wait until it is done. */
static void put(struct two *two, uint32_t offset, uint32_t size, uint64_t to)
{
    CHECK_EQ(rma2_post_put_bt(two->port, two->handle, &two->region, offset, size,
                              two->peer->nla + to, RMA2_REQUESTER_NOTIFICATION, RMA2_CMD_DEFAULT),
             SUCCESS);
    (void)note_next(two->port);
}

static void get(struct two *two, uint32_t offset, uint32_t size, uint64_t from)
{
    CHECK_EQ(rma2_post_get_bt(two->port, two->handle, &two->region, offset, size,
                              two->peer->nla + from, RMA2_COMPLETER_NOTIFICATION, RMA2_CMD_DEFAULT),
             SUCCESS);
    (void)note_next(two->port);
}

static bool are_all(const unsigned char *bytes, size_t count, unsigned char value)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != value)
            return false;
    return true;
}

static const uint32_t lens[] = {1, 3, 4, 8, 9, 16, 31, 64, 100, 511, 512, 513, 4096, 20001};
static const uint32_t offsets[] = {0, 1, 4, 60};

/* Check the members that all notifications have. */
static void check_note(struct two *two, const RMA2_Notification *note, RMA2_Notification_Spec type,
                       RMA2_Command cmd, bool is_peers)
{
    RMA2_Notification copy = *note;
    CHECK_EQ(rma2_noti_get_notification_type(&copy), type);
    CHECK_EQ(rma2_noti_get_cmd(&copy), cmd);
    CHECK_EQ(rma2_noti_get_error(&copy), 0);
    CHECK_EQ(rma2_noti_get_remote_nodeid(&copy),
             is_peers ? rma2_get_nodeid(two->port) : two->peer->nodeid);
    CHECK_EQ(rma2_noti_get_remote_vpid(&copy),
             is_peers ? rma2_get_vpid(two->port) : two->peer->vpid);
}

static RMA2_Notification peers_next(struct two *two) { return *peer_note(two->peer, two->notes++); }

/* ---- data ------------------------------------------------------------------------------------ */

TEST(a_put_writes_its_bytes_and_no_others)
{
    struct two two = two_begin();
    for (size_t l = 0; l < scaled(ARRAY_LEN(lens), 12); l++) {
        for (size_t o = 0; o < ARRAY_LEN(offsets); o++) {
            memset(two.peer->memory, 0xee, SIZE);
            pattern_fill(memory + o, lens[l], l * 10 + o);
            put(&two, (uint32_t)o, lens[l], offsets[o]);
            CHECK(pattern_matches(two.peer->memory + offsets[o], lens[l], l * 10 + o));
            CHECK(are_all(two.peer->memory, offsets[o], 0xee));
            CHECK(are_all(two.peer->memory + offsets[o] + lens[l], SIZE - offsets[o] - lens[l],
                          0xee));
        }
    }
    two_end(&two);
}

TEST(a_get_reads_its_bytes_and_no_others)
{
    struct two two = two_begin();
    for (size_t l = 0; l < scaled(ARRAY_LEN(lens), 12); l++) {
        for (size_t o = 0; o < ARRAY_LEN(offsets); o++) {
            memset(memory, 0xee, SIZE);
            pattern_fill(two.peer->memory + offsets[o], lens[l], l * 10 + o);
            get(&two, (uint32_t)o, lens[l], offsets[o]);
            CHECK(pattern_matches(memory + o, lens[l], l * 10 + o));
            CHECK(are_all(memory, o, 0xee) && are_all(memory + o + lens[l], 100, 0xee));
        }
    }
    two_end(&two);
}

TEST(words_are_moved_as_bytes_are)
{
    struct two two = two_begin();
    pattern_fill(memory, 800, 1);
    CHECK_EQ(
        rma2_post_put_qw(two.port, two.handle, &two.region, 0, 800, two.peer->nla + 8, RMA2_ALL, 0),
        SUCCESS);
    RMA2_Notification note = note_next(two.port);
    check_note(&two, &note, RMA2_REQUESTER, RMA2_QW_PUT, false);
    note = peers_next(&two);
    check_note(&two, &note, RMA2_COMPLETER, RMA2_QW_PUT, true);
    CHECK(pattern_matches(two.peer->memory + 8, 800, 1));
    CHECK_EQ(rma2_post_get_qw(two.port, two.handle, &two.region, 4096, 800, two.peer->nla + 8,
                              RMA2_COMPLETER, 0),
             SUCCESS);
    note = note_next(two.port);
    check_note(&two, &note, RMA2_COMPLETER, RMA2_GET_QW_RSP, false);
    CHECK(pattern_matches(memory + 4096, 800, 1));
    two_end(&two);
}

TEST(direct_posts_take_addresses)
{
    struct two two = two_begin();
    const RMA2_NLA local = two.region.nla, remote = two.peer->nla;
    pattern_fill(memory, 64, 1);
    CHECK_EQ(
        rma2_post_put_bt_direct(two.port, two.handle, local + 1, 63, remote, RMA2_REQUESTER, 0),
        SUCCESS);
    (void)note_next(two.port);
    CHECK(memcmp(two.peer->memory, memory + 1, 63) == 0);
    CHECK_EQ(
        rma2_post_put_qw_direct(two.port, two.handle, local, 64, remote + 128, RMA2_REQUESTER, 0),
        SUCCESS);
    (void)note_next(two.port);
    CHECK(memcmp(two.peer->memory + 128, memory, 64) == 0);
    CHECK_EQ(
        rma2_post_get_bt_direct(two.port, two.handle, local + 1000, 63, remote, RMA2_COMPLETER, 0),
        SUCCESS);
    (void)note_next(two.port);
    CHECK(memcmp(memory + 1000, memory + 1, 63) == 0);
    CHECK_EQ(rma2_post_get_qw_direct(two.port, two.handle, local + 2000, 64, remote + 128,
                                     RMA2_COMPLETER, 0),
             SUCCESS);
    (void)note_next(two.port);
    CHECK(memcmp(memory + 2000, memory, 64) == 0);
    two_end(&two);
}

TEST(an_immediate_put_writes_the_lowest_bytes_first)
{
    struct two two = two_begin();
    for (uint32_t size = 1; size <= 8; size++) {
        memset(two.peer->memory, 0xee, 16);
        CHECK_EQ(rma2_post_immediate_put(two.port, two.handle, size, UINT64_C(0x8877665544332211),
                                         two.peer->nla + 3, RMA2_ALL, 0),
                 SUCCESS);
        RMA2_Notification note = note_next(two.port);
        check_note(&two, &note, RMA2_REQUESTER, RMA2_IMMEDIATE_PUT, false);
        note = peers_next(&two);
        check_note(&two, &note, RMA2_COMPLETER, RMA2_IMMEDIATE_PUT, true);
        CHECK_EQ(rma2_noti_get_size(&note), size);
        CHECK_EQ(rma2_noti_get_local_address(&note), two.peer->nla + 3);
        CHECK(memcmp(two.peer->memory + 3, "\x11\x22\x33\x44\x55\x66\x77\x88", size) == 0);
        CHECK(are_all(two.peer->memory, 3, 0xee));
        CHECK(are_all(two.peer->memory + 3 + size, 13 - size, 0xee));
    }
    two_end(&two);
}

TEST(the_longest_operation_is_8_mib)
{
    if (is_simulated())
        test_skip("millions of simulated bytes");
    enum { MOST = 8 << 20 };
    struct two two;
    RMA2_Region region;
    unsigned char *local = NULL;
    settings_clear();
    two_begin_sized(&two, MOST);
    CHECK_EQ(posix_memalign((void **)&local, PAGE, MOST), 0);
    pattern_fill(local, MOST, 3);
    CHECK_EQ(rma2_register_nomalloc(two.port, local, MOST, &region), SUCCESS);
    CHECK_EQ(rma2_post_put_bt(two.port, two.handle, &region, 0, MOST, two.peer->nla, RMA2_ALL, 0),
             SUCCESS);
    RMA2_Notification note = note_next(two.port);
    CHECK_EQ(rma2_noti_get_size(&note), MOST);
    note = peers_next(&two);
    CHECK_EQ(rma2_noti_get_size(&note), MOST);
    CHECK(pattern_matches(two.peer->memory, MOST, 3));
    memset(local, 0, MOST);
    CHECK_EQ(
        rma2_post_get_bt(two.port, two.handle, &region, 0, MOST, two.peer->nla, RMA2_COMPLETER, 0),
        SUCCESS);
    note = note_next(two.port);
    CHECK_EQ(rma2_noti_get_size(&note), MOST);
    CHECK(pattern_matches(local, MOST, 3));
    CHECK_EQ(rma2_unregister_nofree(two.port, &region), SUCCESS);
    two_end(&two);
    free(local);
}

/* ---- notifications --------------------------------------------------------------------------- */

TEST(a_put_notifies_the_sides_that_it_names)
{
    struct two two = two_begin();
    for (RMA2_Notification_Spec spec = 0; spec <= RMA2_ALL; spec++) {
        const uint32_t size = 700 + spec; /* More than one packet: still one notification. */
        CHECK_EQ(rma2_post_put_bt(two.port, two.handle, &two.region, spec, size,
                                  two.peer->nla + 16 * spec, spec, 0),
                 SUCCESS);
        if (spec & RMA2_REQUESTER) {
            RMA2_Notification note = note_next(two.port);
            check_note(&two, &note, RMA2_REQUESTER, RMA2_BT_PUT, false);
            CHECK_EQ(rma2_noti_get_size(&note), size);
            CHECK_EQ(rma2_noti_get_local_address(&note), two.region.nla + spec);
        }
        if (spec & RMA2_COMPLETER) {
            RMA2_Notification note = peers_next(&two);
            check_note(&two, &note, RMA2_COMPLETER, RMA2_BT_PUT, true);
            CHECK_EQ(rma2_noti_get_size(&note), size);
            CHECK_EQ(rma2_noti_get_local_address(&note), two.peer->nla + 16 * spec);
        }
    }
    put(&two, 0, 1, 0);
    two_end(&two);
}

TEST(a_get_notifies_the_sides_that_it_names)
{
    struct two two = two_begin();
    for (RMA2_Notification_Spec spec = 0; spec <= RMA2_ALL; spec++) {
        const uint32_t size = 1300 + spec;
        CHECK_EQ(rma2_post_get_bt(two.port, two.handle, &two.region, spec, size,
                                  two.peer->nla + 16 * spec, spec, 0),
                 SUCCESS);
        if (spec & RMA2_REQUESTER) {
            RMA2_Notification note = note_next(two.port);
            check_note(&two, &note, RMA2_REQUESTER, RMA2_BT_GET, false);
        }
        if (spec & RMA2_COMPLETER) {
            RMA2_Notification note = note_next(two.port);
            check_note(&two, &note, RMA2_COMPLETER, RMA2_GET_BT_RSP, false);
            CHECK_EQ(rma2_noti_get_size(&note), size);
            CHECK_EQ(rma2_noti_get_local_address(&note), two.region.nla + spec);
        }
        if (spec & RMA2_RESPONDER) {
            RMA2_Notification note = peers_next(&two);
            check_note(&two, &note, RMA2_RESPONDER, RMA2_BT_GET, true);
            CHECK_EQ(rma2_noti_get_size(&note), size);
            CHECK_EQ(rma2_noti_get_local_address(&note), two.peer->nla + 16 * spec);
        }
    }
    get(&two, 0, 1, 0);
    two_end(&two);
}

TEST(a_notification_brings_its_class_and_word)
{
    struct two two = two_begin();
    for (unsigned class_ = 0; class_ < 256; class_ += (unsigned)scaled(1, 51)) {
        const uint64_t word = test_mix(class_);
        CHECK_EQ(
            rma2_post_notification(two.port, two.handle, (RMA2_Class)class_, word, RMA2_ALL, 0),
            SUCCESS);
        RMA2_Notification note = note_next(two.port);
        check_note(&two, &note, RMA2_REQUESTER, RMA2_NOTIFICATION_PUT, false);
        CHECK_EQ(rma2_noti_get_notiput_class(&note), class_);
        note = peers_next(&two);
        check_note(&two, &note, RMA2_COMPLETER, RMA2_NOTIFICATION_PUT, true);
        CHECK_EQ(rma2_noti_get_notiput_class(&note), class_);
        CHECK(rma2_noti_get_notiput_payload(&note) == word);
    }
    two_end(&two);
}

TEST(a_node_delivers_a_notification_to_a_peer_that_makes_no_calls)
{
    if (!is_simulated())
        test_skip("time is the same in each run only there");
    struct two two = two_begin();
    put(&two, 0, 1, 0);
    peer_order(two.peer, PEER_REST);
    int64_t start_ns = test_now_ns();
    CHECK_EQ(rma2_post_notification(two.port, two.handle, 3, 9, RMA2_ALL, 0), SUCCESS);
    (void)note_next(two.port);
    CHECK(test_now_ns() - start_ns < PEER_REST_NS / 2);
    (void)peers_next(&two);
    two_end(&two);
}

TEST(notifications_of_one_connection_come_in_the_order_of_their_posts)
{
    struct two two = two_begin();
    const uint64_t count = scaled(3000, 60);
    for (uint64_t i = 0; i < count; i++) {
        if (i % 3 == 0)
            CHECK_EQ(rma2_post_notification(two.port, two.handle, 1, i, RMA2_COMPLETER, 0),
                     SUCCESS);
        else if (i % 3 == 1)
            CHECK_EQ(rma2_post_immediate_put(two.port, two.handle, 8, i,
                                             two.peer->nla + i % 512 * 8, RMA2_COMPLETER, 0),
                     SUCCESS);
        else
            CHECK_EQ(rma2_post_put_bt(two.port, two.handle, &two.region, 0,
                                      (uint32_t)(i % 2000 + 1), two.peer->nla + 8192,
                                      RMA2_COMPLETER, 0),
                     SUCCESS);
    }
    for (uint64_t i = 0; i < count; i++) {
        RMA2_Notification note = peers_next(&two);
        if (i % 3 == 0)
            CHECK_EQ(rma2_noti_get_notiput_payload(&note), i);
        else if (i % 3 == 1)
            CHECK_EQ(rma2_noti_get_local_address(&note), two.peer->nla + i % 512 * 8);
        else
            CHECK_EQ(rma2_noti_get_size(&note), i % 2000 + 1);
    }
    two_end(&two);
}

TEST(words_of_a_notification_have_the_documented_bits)
{
    struct two two = two_begin();
    CHECK_EQ(rma2_post_put_bt(two.port, two.handle, &two.region, 0, 77, two.peer->nla + 5,
                              RMA2_COMPLETER, RMA2_CMD_NTR),
             SUCCESS);
    RMA2_Notification note = peers_next(&two);
    CHECK(note.word0.value == two.peer->nla + 5);
    CHECK(note.word1.value == (UINT64_C(76) | (uint64_t)rma2_get_vpid(two.port) << 23 |
                               (uint64_t)rma2_get_nodeid(two.port) << 32 | UINT64_C(4) << 48 |
                               (uint64_t)RMA2_BT_PUT << 51 | UINT64_C(2) << 55));
    char line[512], cut[10], printed[512] = "";
    rma2_noti_sdump(&note, line, sizeof line);
    CHECK(strstr(line, "completer notification of command 2: ") == line);
    rma2_noti_sdump(&note, cut, sizeof cut);
    CHECK(strlen(cut) == sizeof cut - 1 && strncmp(cut, line, sizeof cut - 1) == 0);
    rma2_noti_sdump(&note, NULL, 9);
    FILE *file = tmpfile();
    CHECK(file != NULL);
    rma2_noti_fdump(&note, file);
    CHECK_EQ(fseek(file, 0, SEEK_SET), 0);
    CHECK(fgets(printed, sizeof printed, file) && strcmp(printed, line) == 0);
    (void)fclose(file);
    rma2_noti_dump(&note);
    two_end(&two);
}

/* Take the next notification by a match, and give it back. */
static void freed(RMA2_Port port, RMA2_ERROR error, RMA2_Notification **note)
{
    CHECK_EQ(error, SUCCESS);
    CHECK_EQ(rma2_noti_free(port, *note), SUCCESS);
}

TEST(a_match_takes_the_next_notification_if_it_fits)
{
    struct two two = two_begin();
    RMA2_Port port = two.port;
    RMA2_Nodeid node = two.peer->nodeid;
    RMA2_VPID vpid = two.peer->vpid;
    const RMA2_ERROR other = RMA2_ERR_NO_MATCH;
    const int last = (int)RMA2_MATCH_LAST_NLA_FLAG;
    const RMA2_NLA nla = two.region.nla + 16;
    RMA2_Notification *note;
    CHECK_EQ(rma2_noti_match(port, RMA2_ANY, node, vpid, RMA2_REQUESTER, nla, 0, &note),
             RMA2_NO_NOTI);
    CHECK(note == NULL);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(rma2_post_put_bt(port, two.handle, &two.region, 16, 8, two.peer->nla,
                                  RMA2_REQUESTER, 0),
                 SUCCESS);
    CHECK_EQ(rma2_noti_match_block(port, RMA2_GETS, node, vpid, 1, nla, 0, &note), other);
    CHECK_EQ(rma2_noti_match(port, RMA2_QW_PUT, node, vpid, 1, nla, 0, &note), other);
    CHECK_EQ(rma2_noti_match(port, RMA2_PUTS, node, vpid, RMA2_COMPLETER, nla, 0, &note), other);
    CHECK_EQ(rma2_noti_match(port, RMA2_PUTS, node ^ 1, vpid, 1, nla, 0, &note), other);
    CHECK_EQ(rma2_noti_match(port, RMA2_PUTS, node, vpid ^ 1, 1, nla, 0, &note), other);
    CHECK_EQ(rma2_noti_match(port, RMA2_PUTS, node, vpid, 1, nla + 1, 0, &note), other);
    CHECK_EQ(rma2_noti_match(port, RMA2_PUTS, node, vpid, 1, nla, last, &note), other);
    CHECK_EQ(rma2_noti_noti_match(port, RMA2_CLASS_ANY, node, vpid, &note), other);
    CHECK_EQ(rma2_noti_lock_match(port, 0, node, vpid, &note), other);
    freed(port, rma2_noti_match(port, RMA2_PUTS, node, vpid, 1, nla + 8, last, &note), &note);
    freed(
        port,
        rma2_noti_match(port, RMA2_ANY, RMA2_NODEID_ANY, RMA2_VPID_ANY, 1, RMA2_ANY_NLA, 0, &note),
        &note);
    CHECK_EQ(rma2_noti_match(port, RMA2_ANY, node, vpid, 1, nla, 0, NULL), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_noti_match(NULL, RMA2_ANY, node, vpid, 1, nla, 0, &note), RMA2_ERR_INV_PORT);
    two_end(&two);
}

TEST(a_match_finds_classes_and_locks)
{
    settings_clear();
    RMA2_Port port = port_opened();
    RMA2_Handle self;
    RMA2_Nodeid node = rma2_get_nodeid(port);
    RMA2_VPID vpid = rma2_get_vpid(port);
    RMA2_Notification *note;
    CHECK_EQ(rma2_connect(port, node, vpid, RMA2_CONN_DEFAULT, &self), SUCCESS);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(rma2_post_notification(port, self, 9, 7, RMA2_COMPLETER, 0), SUCCESS);
    CHECK_EQ(rma2_noti_noti_match_block(port, 8, node, vpid, &note), RMA2_ERR_NO_MATCH);
    freed(port, rma2_noti_noti_match(port, 9, node, vpid, &note), &note);
    freed(port, rma2_noti_noti_match_block(port, RMA2_CLASS_ANY, node, vpid, &note), &note);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(rma2_post_lock(port, self, 0, 77, 5, 1, RMA2_RESPONDER, 0), SUCCESS);
    CHECK_EQ(rma2_noti_lock_match_block(port, 78, node, vpid, &note), RMA2_ERR_NO_MATCH);
    freed(port, rma2_noti_lock_match_block(port, 77, node, vpid, &note), &note);
    freed(port, rma2_noti_lock_match_block(port, 77, RMA2_NODEID_ANY, vpid, &note), &note);
    CHECK_EQ(rma2_noti_lock_match(port, 77, node, vpid, &note), RMA2_NO_NOTI);
    CHECK_EQ(rma2_disconnect(port, self), SUCCESS);
    CHECK_EQ(rma2_close(port), SUCCESS);
}

TEST(notifications_are_freed_in_their_order)
{
    struct two two = two_begin();
    RMA2_Notification *notes[3];
    CHECK_EQ(rma2_noti_free(two.port, NULL), RMA2_ERR_INV_VALUE);
    for (uint64_t i = 0; i < 3; i++) {
        CHECK_EQ(
            rma2_post_immediate_put(two.port, two.handle, 8, i, two.peer->nla, RMA2_REQUESTER, 0),
            SUCCESS);
        CHECK_EQ(rma2_noti_get_block(two.port, &notes[i]), SUCCESS);
        CHECK(notes[i]->word1.value != 0);
    }
    RMA2_Notification copy;
    CHECK_EQ(rma2_noti_dup(notes[0], NULL), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_noti_dup(NULL, &copy), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_noti_dup(notes[0], &copy), SUCCESS);
    CHECK(copy.word0.value == notes[0]->word0.value && copy.word1.value == notes[0]->word1.value);
    CHECK_EQ(rma2_noti_free(two.port, &copy), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_noti_free(two.port, notes[1]), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_noti_free(two.port, notes[2]), RMA2_ERR_INV_VALUE);
    for (size_t i = 0; i < 3; i++) {
        CHECK_EQ(rma2_noti_free(two.port, notes[i]), SUCCESS);
        CHECK(notes[i]->word0.value == 0 && notes[i]->word1.value == 0);
        CHECK_EQ(rma2_noti_free(two.port, notes[i]), RMA2_ERR_INV_VALUE);
    }
    CHECK_EQ(rma2_noti_probe(two.port, NULL), RMA2_ERR_INV_VALUE);
    CHECK_EQ(rma2_noti_get_block(two.port, NULL), RMA2_ERR_INV_VALUE);
    two_end(&two);
}

TEST(the_queue_wraps_around)
{
    struct two two = two_begin();
    for (uint64_t i = 0; i < scaled(40000, 100); i++) {
        CHECK_EQ(rma2_post_immediate_put(two.port, two.handle, 8, i, two.peer->nla + i % 100 * 8,
                                         RMA2_REQUESTER, 0),
                 SUCCESS);
        RMA2_Notification note = note_next(two.port);
        check_note(&two, &note, RMA2_REQUESTER, RMA2_IMMEDIATE_PUT, false);
    }
    two_end(&two);
}

TEST(a_queue_that_nobody_empties_pushes_back_and_loses_nothing)
{
    if (is_simulated())
        test_skip("tens of thousands of operations");
    struct two two;
    settings_clear();
    two_begin_sized(&two, SIZE);
    CHECK_EQ(rma2_close(two.port), SUCCESS);
    setenv("VELO_EXTOLL_WAIT_MS", "20", 1);
    two.port = port_opened();
    CHECK_EQ(
        rma2_connect(two.port, two.peer->nodeid, two.peer->vpid, RMA2_CONN_DEFAULT, &two.handle),
        SUCCESS);
    uint64_t posted = 0;
    RMA2_ERROR error;
    do { /* Until it is full, the owner may need any time to take what was posted. */
        error = rma2_post_immediate_put(two.port, two.handle, 8, posted, two.peer->nla,
                                        RMA2_REQUESTER, 0);
        CHECK(error == SUCCESS || error == RMA2_ERR_NO_DESC_MEM);
        posted += error == SUCCESS;
    } while (error == SUCCESS || posted <= 16384);
    CHECK(posted < 16384 + 4096 + 2);
    for (uint64_t i = 0; i < posted; i++)
        (void)note_next(two.port);
    note_none(two.port);
    CHECK_EQ(rma2_post_immediate_put(two.port, two.handle, 8, 1, two.peer->nla, RMA2_REQUESTER, 0),
             SUCCESS);
    (void)note_next(two.port);
    two_end(&two);
}

TEST(who_takes_all_notifications_and_frees_none_gets_an_error)
{
    if (is_simulated())
        test_skip("tens of thousands of operations");
    struct two two = two_begin();
    RMA2_Notification *note;
    RMA2_ERROR error = SUCCESS;
    uint64_t taken = 0;
    while (error == SUCCESS) {
        CHECK_EQ(
            rma2_post_immediate_put(two.port, two.handle, 8, 1, two.peer->nla, RMA2_REQUESTER, 0),
            SUCCESS);
        error = rma2_noti_get_block(two.port, &note);
        taken += error == SUCCESS;
    }
    CHECK_EQ(error, RMA2_ERR_NO_DESC_MEM);
    CHECK(taken >= 16383 && taken <= 16384);
    child_kill(two.peer->pid);
    CHECK_EQ(rma2_close(two.port), SUCCESS);
    for (int i = 0; i < 2; i++) { /* These take the names, and with them what is left. */
        RMA2_Port port = port_opened();
        CHECK_EQ(rma2_close(port), SUCCESS);
    }
}

static void *put_late(void *arg)
{
    struct two *two = arg;
    test_sleep_ns(20 * TEST_MS);
    CHECK_EQ(
        rma2_post_immediate_put(two->port, two->handle, 8, 1, two->peer->nla, RMA2_REQUESTER, 0),
        SUCCESS);
    return NULL;
}

TEST(a_wait_ends_with_its_notification_though_another_thread_posts)
{
    struct two two = two_begin();
    RMA2_Notification *note;
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, put_late, &two), 0);
    CHECK_EQ(rma2_noti_get_block(two.port, &note), SUCCESS);
    CHECK_EQ(rma2_noti_free(two.port, note), SUCCESS);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    two_end(&two);
}

/* ---- order ----------------------------------------------------------------------------------- */

enum { WATCHED = 400, WATCHED_BYTES = 48 << 10 };

/* The other side of it spins, so that it looks while the bytes come. */
static void spin_until(const uint32_t *word, uint32_t value)
{
    for (unsigned looks = 1; __atomic_load_n(word, __ATOMIC_ACQUIRE) != value; looks++)
        if (looks % 100000 == 0)
            sched_yield();
}

static void *watch_tail(void *arg)
{
    struct peer *peer = arg;
    uint32_t *seen = (uint32_t *)(void *)(peer->memory + SIZE - 4);
    for (uint32_t round = 1; round <= WATCHED; round++) {
        spin_until((uint32_t *)(void *)(peer->memory + WATCHED_BYTES - 4), round);
        /* Of the rest the last bytes are those that come latest. */
        CHECK_EQ(peer->memory[WATCHED_BYTES - 5], (unsigned char)round);
        CHECK(are_all(peer->memory, WATCHED_BYTES - 4, (unsigned char)round));
        __atomic_store_n(seen, round, __ATOMIC_RELEASE);
    }
    return NULL;
}

TEST(the_last_bytes_of_a_put_are_visible_last)
{
    if (is_simulated())
        test_skip("who polls memory waits in real time");
    struct two two = two_begin();
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, watch_tail, two.peer), 0);
    for (uint32_t round = 1; round <= WATCHED; round++) {
        memset(memory, (int)round, WATCHED_BYTES - 4);
        memcpy(memory + WATCHED_BYTES - 4, &round, 4);
        CHECK_EQ(rma2_post_put_bt(two.port, two.handle, &two.region, 0, WATCHED_BYTES,
                                  two.peer->nla, RMA2_REQUESTER, 0),
                 SUCCESS);
        (void)note_next(two.port);
        spin_until((uint32_t *)(void *)(two.peer->memory + SIZE - 4), round);
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
    two_end(&two);
}

TEST(data_are_there_before_their_notification)
{
    struct two two = two_begin();
    for (uint32_t round = 1; round <= scaled(500, 20); round++) {
        const uint32_t len = round * 37 % 3000 + 1;
        pattern_fill(memory, len, round);
        CHECK_EQ(rma2_post_put_bt(two.port, two.handle, &two.region, 0, len, two.peer->nla,
                                  RMA2_COMPLETER, 0),
                 SUCCESS);
        (void)peers_next(&two);
        CHECK(pattern_matches(two.peer->memory, len, round));
    }
    two_end(&two);
}

TEST(a_notification_comes_after_the_data_before_it)
{
    struct two two = two_begin();
    for (uint32_t round = 1; round <= scaled(500, 20); round++) {
        const uint32_t len = round * 997 % 16000 + 1;
        pattern_fill(memory, len, round);
        CHECK_EQ(rma2_post_put_bt(two.port, two.handle, &two.region, 0, len, two.peer->nla, 0, 0),
                 SUCCESS);
        CHECK_EQ(rma2_post_notification(two.port, two.handle, 1, round, RMA2_COMPLETER, 0),
                 SUCCESS);
        RMA2_Notification note = peers_next(&two);
        CHECK_EQ(rma2_noti_get_notiput_payload(&note), round);
        CHECK(pattern_matches(two.peer->memory, len, round));
    }
    two_end(&two);
}

TEST(what_is_posted_is_done_when_its_connection_has_ended)
{
    struct two two = two_begin();
    for (uint32_t i = 0; i < 20; i++) {
        memory[i] = (unsigned char)(i + 1);
        CHECK_EQ(rma2_post_put_bt(two.port, two.handle, &two.region, i, 1, two.peer->nla + i, 0, 0),
                 SUCCESS);
    }
    CHECK_EQ(rma2_disconnect(two.port, two.handle), SUCCESS);
    CHECK(memcmp(memory, two.peer->memory, 20) == 0);
    CHECK_EQ(rma2_disconnect(two.port, two.handle), RMA2_ERR_INV_HANDLE);
    CHECK_EQ(
        rma2_connect(two.port, two.peer->nodeid, two.peer->vpid, RMA2_CONN_DEFAULT, &two.handle),
        SUCCESS);
    two_end(&two);
}

/* ---- locks ----------------------------------------------------------------------------------- */

/* Ask for a lock: was it added to, and what is its value now? */
static bool lock(struct two *two, int target, uint32_t number, int32_t cmp, int32_t add,
                 int32_t *value)
{
    CHECK_EQ(rma2_post_lock(two->port, two->handle, target, number, cmp, add, RMA2_COMPLETER, 0),
             SUCCESS);
    RMA2_Notification note = note_next(two->port);
    check_note(two, &note, RMA2_COMPLETER, RMA2_LOCK_RSP, false);
    CHECK_EQ(rma2_noti_get_lock_number(&note), number);
    *value = rma2_noti_get_lock_value(&note);
    return rma2_noti_get_lock_result(&note);
}

TEST(a_lock_is_added_to_if_it_is_not_above)
{
    static const struct {
        int32_t cmp, add;
    } steps[] = {{0, 5},   {4, 1},    {5, 1},   {5, 1},         {100, -20},        {-15, 1},
                 {-14, 1}, {-14, -1}, {0, -50}, {INT32_MAX, 1}, {INT32_MIN, 1000}, {-62, 62}};
    struct two two = two_begin();
    int32_t value = 0, found;
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        const bool adds = value <= steps[i].cmp;
        CHECK_EQ(lock(&two, RMA2_LOCK_COMPLETER, 9, steps[i].cmp, steps[i].add, &found), adds);
        value += adds ? steps[i].add : 0;
        CHECK_EQ(found, value);
    }
    two_end(&two);
}

TEST(each_lock_of_each_target_is_one_of_its_own)
{
    struct two two = two_begin();
    static const uint32_t numbers[] = {0, 1, 2, 511, 4094, 4095};
    int32_t old;
    for (int target = 0; target < 2; target++) {
        for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
            CHECK(lock(&two, target, numbers[i], 0, target * 100 + (int32_t)i + 1, &old));
            CHECK_EQ(old, target * 100 + (int32_t)i + 1);
        }
    }
    for (int target = 0; target < 2; target++) {
        for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
            CHECK(!lock(&two, target, numbers[i], 0, 1, &old));
            CHECK_EQ(old, target * 100 + (int32_t)i + 1);
        }
    }
    two_end(&two);
}

/* What a lock's notification says, beside whom and where. */
static void check_lock(RMA2_Notification note, uint32_t number, int32_t value, int result)
{
    CHECK_EQ(rma2_noti_get_lock_number(&note), number);
    CHECK_EQ(rma2_noti_get_lock_value(&note), value);
    CHECK_EQ(rma2_noti_get_lock_result(&note), result);
    CHECK_EQ(rma2_noti_get_size(&note), 8);
}

TEST(a_lock_notifies_the_sides_that_it_names)
{
    /* Added to, refused, and with nothing to add, which tells who may. */
    static const struct {
        int32_t cmp, add, value;
        int result;
    } steps[] = {{3, -7, -7, 1}, {-8, 5, -7, 0}, {-7, 0, -7, 1}, {-8, 0, -7, 0}};
    struct two two = two_begin();
    for (RMA2_Notification_Spec spec = 0; spec <= RMA2_ALL; spec++) {
        for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
            CHECK_EQ(rma2_post_lock(two.port, two.handle, RMA2_LOCK_RESPONDER, spec, steps[i].cmp,
                                    steps[i].add, spec, 0),
                     SUCCESS);
            if (spec & RMA2_REQUESTER) {
                RMA2_Notification note = note_next(two.port);
                check_note(&two, &note, RMA2_REQUESTER, RMA2_LOCK_REQ, false);
                check_lock(note, spec, steps[i].cmp, 0); /* What is compared with. */
            }
            if (spec & RMA2_COMPLETER) {
                RMA2_Notification note = note_next(two.port);
                check_note(&two, &note, RMA2_COMPLETER, RMA2_LOCK_RSP, false);
                check_lock(note, spec, steps[i].value, steps[i].result);
            }
            if (spec & RMA2_RESPONDER) {
                RMA2_Notification note = peers_next(&two);
                check_note(&two, &note, RMA2_RESPONDER, RMA2_LOCK_REQ, true);
                check_lock(note, spec, steps[i].value, steps[i].result);
            }
        }
    }
    int32_t old;
    for (RMA2_Notification_Spec spec = 0; spec <= RMA2_ALL; spec++) {
        CHECK(!lock(&two, RMA2_LOCK_RESPONDER, spec, -8, 1, &old));
        CHECK_EQ(old, -7);
    }
    two_end(&two);
}

struct contest {
    struct peer *peer;
    unsigned rounds;
};

/* Take the lock, add to the word that it guards, give it back. */
static void contend(void *arg)
{
    struct contest *contest = arg;
    struct two two = {.peer = contest->peer, .port = port_opened()};
    int32_t old;
    CHECK_EQ(
        rma2_connect(two.port, two.peer->nodeid, two.peer->vpid, RMA2_CONN_DEFAULT, &two.handle),
        SUCCESS);
    CHECK_EQ(rma2_register_nomalloc(two.port, memory, sizeof memory, &two.region), SUCCESS);
    for (unsigned i = 0; i < contest->rounds; i++) {
        uint64_t word;
        while (!lock(&two, RMA2_LOCK_RESPONDER, 3, 0, 1, &old))
            sched_yield();
        get(&two, 0, 8, 0);
        memcpy(&word, memory, 8);
        word++;
        memcpy(memory, &word, 8);
        put(&two, 0, 8, 0);
        CHECK(lock(&two, RMA2_LOCK_RESPONDER, 3, 1, -1, &old));
        CHECK_EQ(old, 0);
    }
    CHECK_EQ(rma2_close(two.port), SUCCESS);
}

TEST(a_lock_keeps_processes_apart)
{
    enum { PROCESSES = 3 };
    pid_t children[PROCESSES];
    struct contest contest = {peer_start(SIZE), (unsigned)scaled(200, 5)};
    for (int i = 0; i < PROCESSES; i++)
        children[i] = child_start(contend, &contest);
    for (int i = 0; i < PROCESSES; i++)
        child_join(children[i]);
    uint64_t word;
    memcpy(&word, contest.peer->memory, 8);
    CHECK_EQ(word, PROCESSES * contest.rounds);
    peer_stop(contest.peer);
}

/* ---- threads --------------------------------------------------------------------------------- */

struct part {
    struct two *two;
    uint32_t from;
    uint32_t count;
};

static void *put_part(void *arg)
{
    const struct part *part = arg;
    for (uint32_t i = part->from; i < part->from + part->count; i++)
        CHECK_EQ(rma2_post_immediate_put(part->two->port, part->two->handle, 1,
                                         (unsigned char)(i * 7 + 1), part->two->peer->nla + i,
                                         RMA2_REQUESTER, 0),
                 SUCCESS);
    return NULL;
}

TEST(threads_share_a_port)
{
    enum { THREADS = 4 };
    struct two two = two_begin();
    struct part parts[THREADS];
    pthread_t threads[THREADS];
    const uint32_t count = (uint32_t)scaled(2000, 10);
    for (uint32_t i = 0; i < THREADS; i++) {
        parts[i] = (struct part){&two, i * count, count};
        CHECK_EQ(pthread_create(&threads[i], NULL, put_part, &parts[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS * count; i++)
        (void)note_next(two.port);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    for (uint32_t i = 0; i < THREADS * count; i++)
        CHECK_EQ(two.peer->memory[i], (unsigned char)(i * 7 + 1));
    two_end(&two);
}

/* ---- waits that carry on with other ports ------------------------------------------------------ */

TEST(a_wait_at_one_port_carries_on_with_the_others)
{
    settings_clear();
    memset(memory, 0, sizeof memory);
    RMA2_Port a = port_opened(), b = port_opened();
    RMA2_Region region;
    RMA2_Handle to_b;
    RMA2_Notification *note;
    CHECK_EQ(rma2_register_nomalloc(a, memory, PAGE, &region), SUCCESS);
    CHECK_EQ(rma2_register_nomalloc(b, memory + PAGE, PAGE, &region), SUCCESS);
    CHECK_EQ(rma2_connect(a, rma2_get_nodeid(b), rma2_get_vpid(b), RMA2_CONN_DEFAULT, &to_b),
             SUCCESS);
    memory[5] = 1;
    CHECK_EQ(
        rma2_post_put_bt_direct(a, to_b, (uintptr_t)memory + 5, 1, region.nla, RMA2_REQUESTER, 0),
        SUCCESS);
    CHECK_EQ(rma2_noti_get_block(a, &note), SUCCESS);
    CHECK_EQ(memory[PAGE], 1);
    CHECK_EQ(rma2_noti_free(a, note), SUCCESS);
    CHECK_EQ(rma2_post_lock(a, to_b, RMA2_LOCK_COMPLETER, 0, 0, 1, RMA2_COMPLETER, 0), SUCCESS);
    CHECK_EQ(rma2_noti_get_block(a, &note), SUCCESS);
    CHECK_EQ(rma2_noti_get_lock_result(note), 1);
    CHECK_EQ(rma2_noti_free(a, note), SUCCESS);
    CHECK_EQ(rma2_close(b), SUCCESS);
    CHECK_EQ(rma2_close(a), SUCCESS);
}

static void *receive_one(void *mailbox)
{
    char byte;
    CHECK_EQ(velo2_recv(mailbox, &byte, 1, NULL, NULL, NULL, NULL), VELO2_RET_SUCCESS);
    CHECK_EQ(byte, 'x');
    return NULL;
}

TEST(a_thread_waits_for_messages_while_another_one_posts)
{
    struct two two = two_begin();
    velo2_port_t mailbox;
    velo2_connection_t self;
    pthread_t receiver;
    CHECK_EQ(velo2_open(&mailbox), VELO2_RET_SUCCESS);
    CHECK_EQ(velo2_connect(&mailbox, &self, velo2_get_nodeid(&mailbox), velo2_get_vpid(&mailbox)),
             VELO2_RET_SUCCESS);
    CHECK_EQ(pthread_create(&receiver, NULL, receive_one, &mailbox), 0);
    for (unsigned i = 0; i < scaled(2000, 200); i++)
        put(&two, i % SIZE, 1, i % SIZE);
    CHECK_EQ(velo2_send(&self, "x", 1, 0, 0), VELO2_RET_SUCCESS);
    CHECK_EQ(pthread_join(receiver, NULL), 0);
    CHECK_EQ(velo2_close(&mailbox), VELO2_RET_SUCCESS);
    two_end(&two);
}

/* ---- against a model ------------------------------------------------------------------------- */

TEST(random_operations_do_what_a_simple_model_does)
{
    enum { SPAN = 8192, LOCKS = 4 };
    static unsigned char theirs[SPAN], ours[SPAN];
    struct two two = two_begin();
    struct rng rng = {test_seed()};
    int32_t locks[LOCKS] = {0}, old;
    memset(theirs, 0, SPAN);
    memset(ours, 0, SPAN);
    for (size_t step = 0; step < scaled(20000, 150); step++) {
        const uint32_t len = rng_below(&rng, rng_below(&rng, 4) ? 64 : 2048) + 1;
        const uint32_t here = rng_below(&rng, SPAN - len), there = rng_below(&rng, SPAN - len);
        const uint64_t word = rng_next(&rng);
        const uint32_t bytes = rng_below(&rng, 8) + 1, number = rng_below(&rng, LOCKS);
        const int32_t cmp = (int32_t)rng_below(&rng, 20) - 10,
                      add = (int32_t)rng_below(&rng, 9) - 4;
        switch (rng_below(&rng, 5)) {
        case 0:
            pattern_fill(memory + here, len, word);
            memcpy(ours + here, memory + here, len);
            put(&two, here, len, there);
            memcpy(theirs + there, ours + here, len);
            break;
        case 1:
            get(&two, here, len, there);
            memcpy(ours + here, theirs + there, len);
            break;
        case 2:
            CHECK_EQ(rma2_post_immediate_put(two.port, two.handle, bytes, word,
                                             two.peer->nla + there % (SPAN - 8), RMA2_REQUESTER, 0),
                     SUCCESS);
            (void)note_next(two.port);
            memcpy(theirs + there % (SPAN - 8), &word, bytes);
            break;
        case 3:
            CHECK_EQ(lock(&two, 0, number, cmp, add, &old), locks[number] <= cmp);
            locks[number] += locks[number] <= cmp ? add : 0;
            CHECK_EQ(old, locks[number]);
            break;
        default:
            CHECK_EQ(rma2_post_notification(two.port, two.handle, (RMA2_Class)word, word,
                                            RMA2_COMPLETER, 0),
                     SUCCESS);
            RMA2_Notification note = peers_next(&two);
            CHECK(rma2_noti_get_notiput_payload(&note) == word);
            CHECK_EQ(rma2_noti_get_notiput_class(&note), (RMA2_Class)word);
        }
        if (step % 64 == 0)
            CHECK(memcmp(ours, memory, SPAN) == 0 && memcmp(theirs, two.peer->memory, SPAN) == 0);
    }
    CHECK(memcmp(ours, memory, SPAN) == 0 && memcmp(theirs, two.peer->memory, SPAN) == 0);
    two_end(&two);
}
