/* SPDX-License-Identifier: Apache-2.0 */
/* The hash of the queues: how many entries are looked at is counted, not timed. */
#include <stdlib.h>

#include "mq/match.h"
#include "test.h"

#define MANY 10000u

/* How match bits of many receives differ in practice. */
static uint64_t match_of(int pattern, uint64_t i)
{
    switch (pattern) {
    case 0:
        return VELO_MQ_MATCH(1, 0, i); /* By tag. */
    case 1:
        return VELO_MQ_MATCH(1, i, 7); /* By rank. */
    case 2:
        return VELO_MQ_MATCH(i, 0, 7); /* By context. */
    case 3:
        return VELO_MQ_MATCH(1, i % 100, i / 100); /* By rank and tag. */
    case 4:
        return VELO_MQ_MATCH(1, 0, i << 16); /* By the upper part of the tag. */
    default:
        return test_mix(i);
    }
}

TEST(few_entries_share_a_list_whatever_match_bits_are_in_use)
{
    static struct entry entries[MANY];

    for (int pattern = 0; pattern <= 5; pattern++) {
        struct match_table table;
        uint64_t looked_at = 0, most = 0;

        CHECK(mq_table_open(&table));
        for (uint64_t i = 0; i < MANY; i++) {
            entries[i] = (struct entry){.match = match_of(pattern, i), .source = 1};
            table_add(&table, &entries[i]);
        }
        CHECK_EQ(table.count, MANY);
        CHECK(table_len(&table) >= MANY);
        for (uint64_t i = 0; i < MANY; i++) {
            uint64_t before = 1;
            struct link *link = table_list(&table, entries[i].match)->first;
            for (; link != &entries[i].link; link = link->next)
                before++;
            looked_at += before;
            most = before > most ? before : most;
            CHECK(table_find(&table, entries[i].match, 1) == &entries[i]);
            CHECK(table_find(&table, entries[i].match, 2) == NULL);
        }
        CHECK(looked_at < 2 * MANY);
        CHECK(most <= 8);
        for (uint64_t i = 0; i < MANY; i++)
            table_remove(&table, &entries[i]);
        CHECK_EQ(table.count, 0);
        CHECK(mq_table_any(&table) == NULL);
        mq_table_close(&table);
    }
}

TEST(equal_entries_stay_in_order_while_the_table_grows)
{
    static struct entry entries[MANY];
    struct match_table table;

    CHECK(mq_table_open(&table));
    for (uint64_t i = 0; i < MANY; i++) {
        entries[i] = (struct entry){.match = i % 100, .source = VELO_MQ_ANY_SOURCE};
        table_add(&table, &entries[i]);
    }
    for (uint64_t i = 0; i < MANY; i++) {
        CHECK(table_find(&table, i % 100, 3) == &entries[i]);
        table_remove(&table, &entries[i]);
    }
    mq_table_close(&table);
}
