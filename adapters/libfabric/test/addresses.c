/* SPDX-License-Identifier: Apache-2.0 */
/* Names of endpoints, and address vectors. */
#include <string.h>

#include "side.h"

static const struct side_attr plain = {0};

TEST(a_name_that_does_not_fit_tells_its_length)
{
    struct side side;
    char name[NAME_MAX_BYTES];
    size_t len = 1;

    side_open(&side, &plain);
    CHECK_REFUSED(fi_getname(&side.ep->fid, name, &len), FI_ETOOSMALL);
    CHECK_EQ(len, side.name_len);
    CHECK_FI(fi_getname(&side.ep->fid, name, &len));
    CHECK_EQ(memcmp(name, side.name, len), 0);
    len = 0;
    CHECK_REFUSED(fi_getname(&side.ep->fid, NULL, &len), FI_ETOOSMALL);
    CHECK_EQ(len, side.name_len);
    side_close(&side);
}

TEST(names_of_endpoints_differ)
{
    struct pair pair;

    pair_open(&pair, &plain);
    CHECK(pair.a.name_len != pair.b.name_len ||
          memcmp(pair.a.name, pair.b.name, pair.a.name_len) != 0);
    pair_close(&pair);
}

static void names_come_back(enum fi_av_type type)
{
    struct side_attr attr = {.av_type = type};
    struct side sides[4];
    char names[4][NAME_MAX_BYTES], packed[4 * NAME_MAX_BYTES];
    fi_addr_t addrs[4];

    for (int i = 0; i < 4; i++) {
        side_open(&sides[i], &attr);
        memcpy(names[i], sides[i].name, sides[i].name_len);
        CHECK_EQ(sides[i].name_len, sides[0].name_len);
        memcpy(packed + (size_t)i * sides[0].name_len, sides[i].name, sides[0].name_len);
    }
    CHECK_EQ(fi_av_insert(sides[0].av, packed, 4, addrs, 0, NULL), 4);
    for (int i = 0; i < 4; i++) {
        char name[NAME_MAX_BYTES];
        size_t len = sizeof(name);

        if (type == FI_AV_TABLE)
            CHECK_EQ(addrs[i], i);
        CHECK_FI(fi_av_lookup(sides[0].av, addrs[i], name, &len));
        CHECK_EQ(len, sides[i].name_len);
        CHECK_EQ(memcmp(name, names[i], len), 0);
    }
    for (int i = 0; i < 4; i++)
        side_close(&sides[i]);
}

TEST(a_map_gives_the_names_back_that_it_was_given)
{
    struct pair pair;

    if (!is_velo())
        test_skip("names of others have several lengths");
    pair_open(&pair, &plain);
    pair_close(&pair);
    names_come_back(FI_AV_MAP);
}

TEST(a_table_counts_its_entries_from_zero)
{
    if (!is_velo())
        test_skip("names of others have several lengths");
    names_come_back(FI_AV_TABLE);
}

TEST(a_table_needs_no_place_for_addresses)
{
    struct side_attr attr = {.av_type = FI_AV_TABLE};
    struct pair pair;
    struct fi_context2 sent, got;
    char text[] = "to the entry 0", found[sizeof(text)];

    side_open(&pair.a, &attr);
    side_open(&pair.b, &attr);
    CHECK_EQ(fi_av_insert(pair.a.av, pair.b.name, 1, NULL, 0, NULL), 1);
    CHECK_EQ(fi_av_insert(pair.b.av, pair.a.name, 1, NULL, 0, NULL), 1);
    CHECK_FI(fi_recv(pair.b.ep, found, sizeof(found), NULL, FI_ADDR_UNSPEC, &got));
    POST(fi_send(pair.a.ep, text, sizeof(text), NULL, 0, &sent));
    next_ok(&pair.b, &got, FI_RECV);
    CHECK_EQ(strcmp(found, text), 0);
    next_ok(&pair.a, &sent, FI_SEND);
    pair_close(&pair);
}

TEST(a_lookup_that_does_not_fit_tells_the_length)
{
    struct pair pair;
    char name[NAME_MAX_BYTES];
    size_t len = 1;

    pair_open(&pair, &plain);
    (void)fi_av_lookup(pair.a.av, pair.to_b, name, &len);
    CHECK_EQ(len, pair.b.name_len);
    side_close(&pair.a);
    side_close(&pair.b);
}

TEST(an_address_that_was_never_inserted_is_refused)
{
    struct side_attr attr = {.av_type = FI_AV_TABLE};
    struct pair pair;
    struct fi_context2 sent;
    char name[NAME_MAX_BYTES], byte = 1;
    size_t len = sizeof(name);

    if (!is_velo())
        test_skip("others do not look");
    pair_open(&pair, &attr);
    CHECK(fi_av_lookup(pair.a.av, 1000, name, &len) < 0);
    CHECK(fi_send(pair.a.ep, &byte, 1, NULL, 1000, &sent) < 0);
    CHECK(fi_tsend(pair.a.ep, &byte, 1, NULL, 1000, 0, &sent) < 0);
    CHECK(fi_inject(pair.a.ep, &byte, 1, 1000) < 0);
    CHECK(fi_send(pair.a.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, &sent) < 0);
    nothing_more(&pair.a);
    pair_close(&pair);
}

TEST(an_address_that_was_removed_is_refused)
{
    struct side_attr attr = {.av_type = FI_AV_TABLE};
    struct pair pair;
    struct fi_context2 sent;
    char byte = 1;

    if (!is_velo())
        test_skip("others do not look");
    pair_open(&pair, &attr);
    CHECK_FI(fi_av_remove(pair.a.av, &pair.to_b, 1, 0));
    CHECK(fi_send(pair.a.ep, &byte, 1, NULL, pair.to_b, &sent) < 0);
    CHECK(fi_av_remove(pair.a.av, &pair.to_b, 1, 0) < 0);
    pair.to_b = side_learn(&pair.a, &pair.b);
    POST(fi_send(pair.a.ep, &byte, 1, NULL, pair.to_b, &sent));
    next_ok(&pair.a, &sent, FI_SEND);
    pair_close(&pair);
}

TEST(names_are_removed_and_inserted_a_thousand_times)
{
    struct pair pair;
    struct fi_context2 sent, got;
    char byte = 1, found = 0;

    pair_open(&pair, &plain);
    for (int i = 0; i < 1000; i++) {
        fi_addr_t addr = side_learn(&pair.b, &pair.a);
        CHECK_FI(fi_av_remove(pair.b.av, &addr, 1, 0));
    }
    CHECK_FI(fi_recv(pair.b.ep, &found, 1, NULL, FI_ADDR_UNSPEC, &got));
    POST(fi_send(pair.a.ep, &byte, 1, NULL, pair.to_b, &sent));
    next_ok(&pair.b, &got, FI_RECV);
    next_ok(&pair.a, &sent, FI_SEND);
    pair_close(&pair);
}

TEST(bytes_that_are_no_name_are_not_inserted)
{
    struct side side;
    char wrong[NAME_MAX_BYTES] = {0};
    fi_addr_t addr = 0;

    if (!is_velo())
        test_skip("others take any bytes");
    side_open(&side, &plain);
    CHECK(fi_av_insert(side.av, wrong, 1, &addr, 0, NULL) != 1);
    CHECK(addr == FI_ADDR_NOTAVAIL);
    addr = 0;
    memset(wrong, 0xff, sizeof(wrong));
    CHECK(fi_av_insert(side.av, wrong, 1, &addr, 0, NULL) != 1);
    CHECK(addr == FI_ADDR_NOTAVAIL);
    side_close(&side);
}

TEST(a_wrong_name_among_right_ones_is_told_apart)
{
    struct pair pair;
    char names[3 * NAME_MAX_BYTES];
    fi_addr_t addrs[3];
    int errors[3] = {0};
    size_t len;

    if (!is_velo())
        test_skip("others take any bytes");
    pair_open(&pair, &plain);
    len = pair.a.name_len;
    memset(names, 0xff, sizeof(names));
    memcpy(names, pair.a.name, len);
    memcpy(names + 2 * len, pair.b.name, len);
    CHECK_EQ(fi_av_insert(pair.a.av, names, 3, addrs, FI_SYNC_ERR, errors), 2);
    CHECK(addrs[0] != FI_ADDR_NOTAVAIL);
    CHECK(addrs[1] == FI_ADDR_NOTAVAIL);
    CHECK(addrs[2] != FI_ADDR_NOTAVAIL);
    CHECK_EQ(errors[0], 0);
    CHECK(errors[1] != 0);
    CHECK_EQ(errors[2], 0);
    pair_close(&pair);
}

TEST(a_name_is_printed)
{
    struct side side;
    char text[256] = "", short_text[4];
    size_t len = sizeof(text), short_len = sizeof(short_text);

    side_open(&side, &plain);
    CHECK(fi_av_straddr(side.av, side.name, text, &len) == text);
    CHECK(strlen(text) > 0);
    CHECK_EQ(len, strlen(text) + 1);
    CHECK(fi_av_straddr(side.av, side.name, short_text, &short_len) == short_text);
    CHECK_EQ(short_len, len);
    CHECK(strlen(short_text) < sizeof(short_text));
    side_close(&side);
}

TEST(vectors_that_are_not_there_are_refused)
{
    struct side side;
    struct fi_av_attr named = {.type = FI_AV_MAP, .name = "velo-shared", .flags = FI_READ};
    struct fi_av_attr unknown = {.type = (enum fi_av_type)99};
    struct fid_av *av = NULL;

    if (!is_velo())
        test_skip("others have them");
    side_open(&side, &plain);
    CHECK(fi_av_open(side.domain, &named, &av, NULL) < 0);
    CHECK(fi_av_open(side.domain, &unknown, &av, NULL) < 0);
    side_close(&side);
}

TEST(a_vector_grows_beyond_its_count)
{
    struct side_attr attr = {.av_type = FI_AV_TABLE};
    struct side side, other;
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE, .count = 1};
    struct fid_av *av;

    side_open(&side, &attr);
    side_open(&other, &attr);
    CHECK_FI(fi_av_open(side.domain, &av_attr, &av, NULL));
    for (int i = 0; i < 300; i++) {
        fi_addr_t addr = FI_ADDR_NOTAVAIL;
        const struct side *named = i % 2 ? &side : &other;
        char name[NAME_MAX_BYTES];
        size_t len = sizeof(name);

        CHECK_EQ(fi_av_insert(av, named->name, 1, &addr, 0, NULL), 1);
        CHECK_FI(fi_av_lookup(av, addr, name, &len));
        CHECK_EQ(memcmp(name, named->name, len), 0);
    }
    CHECK_FI(fi_close(&av->fid));
    side_close(&other);
    side_close(&side);
}

TEST(a_name_of_a_closed_endpoint_leads_to_an_error_and_not_to_a_hang)
{
    struct pair pair;
    struct fi_context2 sent;
    struct completion completion;
    static char large[1 << 20];
    ssize_t status;

    if (!is_velo())
        test_skip("others wait for long");
    pair_open(&pair, &plain);
    side_close(&pair.b);
    do {
        sides_progress();
        status = fi_send(pair.a.ep, large, sizeof(large), NULL, pair.to_b, &sent);
    } while (status == -FI_EAGAIN);
    if (status == 0) {
        completion = next(&pair.a);
        CHECK(completion.error != 0);
        CHECK(completion.entry.op_context == &sent);
    }
    side_close(&pair.a);
}

TEST(a_message_to_an_endpoint_that_is_gone_does_not_reach_its_successor)
{
    struct pair pair;
    struct side successor;
    struct fi_context2 sent, got;
    char byte = 1, room = 0;

    if (!is_velo())
        test_skip("others wait for long");
    pair_open(&pair, &plain);
    side_close(&pair.b);
    side_open(&successor, &plain);
    CHECK_FI(fi_recv(successor.ep, &room, 1, NULL, FI_ADDR_UNSPEC, &got));
    if (fi_send(pair.a.ep, &byte, 1, NULL, pair.to_b, &sent) == 0)
        CHECK(next(&pair.a).error != 0);
    nothing_more(&successor);
    CHECK_EQ(room, 0);
    side_close(&successor);
    side_close(&pair.a);
}

TEST(an_address_that_was_removed_and_taken_again_leads_to_the_new_endpoint)
{
    struct pair pair;
    struct side third;
    struct fi_context2 sent, got;
    uint64_t word = 0, found = 0;

    pair_open(&pair, &plain);
    side_open(&third, &plain);
    for (int i = 0; i < 10; i++) {
        struct side *target = i % 2 ? &third : &pair.b;
        fi_addr_t addr = side_learn(&pair.a, target);

        word++;
        CHECK_FI(fi_recv(target->ep, &found, 8, NULL, FI_ADDR_UNSPEC, &got));
        POST(fi_send(pair.a.ep, &word, 8, NULL, addr, &sent));
        next_ok(target, &got, FI_RECV);
        next_ok(&pair.a, &sent, FI_SEND);
        CHECK_EQ(found, word);
        CHECK_FI(fi_av_remove(pair.a.av, &addr, 1, 0));
    }
    nothing_more(&pair.b);
    nothing_more(&third);
    side_close(&third);
    pair_close(&pair);
}

TEST(a_source_is_known_after_a_second_entry_of_it_was_removed)
{
    struct side_attr attr = {.caps = FI_MSG | FI_SOURCE};
    struct pair pair;
    struct fi_context2 sent, got;
    char byte = 1, room;
    fi_addr_t second;

    pair_open(&pair, &attr);
    second = side_learn(&pair.b, &pair.a);
    if (second != pair.to_a)
        CHECK_FI(fi_av_remove(pair.b.av, &second, 1, 0));
    CHECK_FI(fi_recv(pair.b.ep, &room, 1, NULL, FI_ADDR_UNSPEC, &got));
    POST(fi_send(pair.a.ep, &byte, 1, NULL, pair.to_b, &sent));
    CHECK_EQ(next_ok(&pair.b, &got, FI_RECV).source, pair.to_a);
    next_ok(&pair.a, &sent, FI_SEND);
    pair_close(&pair);
}

TEST(a_source_that_is_not_in_the_vector_is_not_available)
{
    struct side_attr attr = {.caps = FI_MSG | FI_SOURCE};
    struct pair pair;
    struct fi_context2 sent, got;
    char byte = 1, room;

    if (!is_velo())
        test_skip("others answer a message only if they know its source");
    pair_open(&pair, &attr);
    CHECK_FI(fi_av_remove(pair.b.av, &pair.to_a, 1, 0));
    CHECK_FI(fi_recv(pair.b.ep, &room, 1, NULL, FI_ADDR_UNSPEC, &got));
    POST(fi_send(pair.a.ep, &byte, 1, NULL, pair.to_b, &sent));
    CHECK(next_ok(&pair.b, &got, FI_RECV).source == FI_ADDR_NOTAVAIL);
    next_ok(&pair.a, &sent, FI_SEND);
    pair_close(&pair);
}

/* A message from a to b, and its source as b sees it. */
static fi_addr_t source_seen(struct pair *pair)
{
    static struct fi_context2 sent, got;
    char text[8] = "source", room[8];

    POST(fi_trecv(pair->b.ep, room, sizeof(room), NULL, FI_ADDR_UNSPEC, 1, 0, &got));
    POST(fi_tsend(pair->a.ep, text, sizeof(text), NULL, pair->to_b, 1, &sent));
    (void)next_ok(&pair->a, &sent, FI_SEND);
    return next_ok(&pair->b, &got, FI_RECV).source;
}

TEST(a_source_is_seen_under_the_id_that_its_user_gave)
{
    struct side_attr attr = {.caps = FI_TAGGED | FI_SOURCE | FI_AV_USER_ID};
    const fi_addr_t id = UINT64_C(0xabcdef0123456789);
    struct pair pair;
    fi_addr_t addr = id;

    pair_open(&pair, &attr);
    CHECK_EQ(source_seen(&pair), pair.to_a);
    CHECK_EQ(fi_av_insert(pair.b.av, pair.a.name, 1, &addr, FI_AV_USER_ID, NULL), 1);
    CHECK(addr != id && addr != pair.to_a);
    CHECK_EQ(source_seen(&pair), id);
    CHECK_FI(fi_av_remove(pair.b.av, &addr, 1, 0));
    CHECK_EQ(source_seen(&pair), pair.to_a);
    pair_close(&pair);
}

TEST(a_name_that_is_refused_with_an_id_is_an_error)
{
    struct side side;
    fi_addr_t addr = 7;

    side_open(&side, &plain);
    side.name[8] ^= 1;
    CHECK(fi_av_insert(side.av, side.name, 1, &addr, FI_AV_USER_ID, NULL) < 0);
    CHECK_EQ(addr, FI_ADDR_NOTAVAIL);
    CHECK_REFUSED(fi_av_insert(side.av, side.name, 1, NULL, FI_AV_USER_ID, NULL), FI_EINVAL);
    side_close(&side);
}

TEST(an_offer_names_a_source_from_which_any_port_comes)
{
    struct side sides[2];
    struct fi_info *info = NULL;
    fi_addr_t addr;

    CHECK_FI(fi_getinfo(API_VERSION, NULL, NULL, 0, NULL, &info));
    fi_freeinfo(info);
    for (int i = 0; i < 2; i++) {
        side_open(&sides[i], &(struct side_attr){0});
        CHECK(sides[i].info->src_addr != NULL);
        CHECK(sides[i].info->src_addrlen > 0);
    }
    CHECK_EQ(sides[0].info->src_addrlen, sides[1].info->src_addrlen);
    CHECK(sides[0].name_len != sides[1].name_len ||
          memcmp(sides[0].name, sides[1].name, sides[0].name_len) != 0);
    if (is_velo()) {
        /* Both were offered the same, and it is no endpoint's. */
        CHECK_EQ(
            memcmp(sides[0].info->src_addr, sides[1].info->src_addr, sides[0].info->src_addrlen),
            0);
        CHECK_EQ(fi_av_insert(sides[0].av, sides[1].info->src_addr, 1, &addr, 0, NULL), 0);
    }
    side_close(&sides[0]);
    side_close(&sides[1]);
}
