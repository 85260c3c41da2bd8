/* SPDX-License-Identifier: Apache-2.0 */
/* Posted receives with ignore bits: how many are looked at is counted, not timed. */
#include <stdlib.h>

#include "mq/posted.h"
#include "test.h"

#define MANY 10000u
#define IGNORE UINT64_C(0x3000000000000000)

static struct transfer ops[MANY];

static struct space *space_open(void)
{
    struct space *space = calloc(1, sizeof *space);
    CHECK(space && mq_posted_open(space));
    return space;
}

static void space_close(struct space *space)
{
    CHECK(mq_posted_any(space) == NULL);
    mq_posted_close(space);
    free(space);
}

static void add(struct space *space, struct transfer *op, uint64_t match, uint64_t ignore)
{
    static uint64_t sequence;
    *op = (struct transfer){.entry = {.match = match, .source = 1}, .ignore = ignore};
    op->sequence = ++sequence;
    posted_add(space, op);
}

TEST(many_receives_with_the_same_ignore_bits_do_not_stand_in_one_list)
{
    struct space *space = space_open();
    uint64_t most = 0;
    for (uint64_t i = 0; i < MANY; i++)
        add(space, &ops[i], i | IGNORE, IGNORE);
    CHECK_EQ(posted_count(space), MANY);
    CHECK(posted_only(space) != NULL);
    CHECK(space->wild.first == NULL);
    const struct match_table *table = &space->recent->table;
    for (size_t i = 0; i < table_len(table); i++) {
        uint64_t len = 0;
        for (struct link *link = table->lists[i].first; link; link = link->next)
            len++;
        most = len > most ? len : most;
    }
    CHECK(most <= 8);
    for (uint64_t i = MANY; i-- > 0;)
        CHECK(posted_match(space, i | (i % 4) << 60, 1) == &ops[i]);
    CHECK_EQ(posted_count(space), 0);
    space_close(space);
}

TEST(the_earliest_receive_wins_whatever_it_ignores)
{
    /* More kinds of ignore bits than tables. */
    static const uint64_t ignores[] = {0, 1, 2, 4, 8, 16, UINT64_MAX};
    const uint64_t kinds = sizeof ignores / sizeof ignores[0];
    struct space *space = space_open();
    for (uint64_t i = 0; i < 70; i++)
        add(space, &ops[i], 32, ignores[i * 3 % kinds]);
    CHECK_EQ(posted_count(space), 70);
    CHECK(space->wild.first != NULL);
    CHECK(posted_only(space) == NULL);
    for (uint64_t i = 0; i < 70; i++) {
        CHECK(mq_posted_first_for(space, 1) == &ops[i]);
        CHECK(posted_match(space, 32, 2) == NULL);
        CHECK(posted_match(space, 32, 1) == &ops[i]);
    }
    space_close(space);
}

TEST(a_table_that_is_empty_serves_other_ignore_bits)
{
    struct space *space = space_open();
    for (uint64_t ignore = 1; ignore < 100; ignore++) {
        add(space, &ops[0], 0, ignore);
        CHECK(space->wild.first == NULL);
        CHECK(posted_match(space, ignore, 1) == &ops[0]);
    }
    space_close(space);
}

TEST(receives_are_taken_out_from_wherever_they_are)
{
    struct space *space = space_open();
    for (uint64_t i = 0; i < 60; i++)
        add(space, &ops[i], i, i % 6);
    for (uint64_t i = 0; i < 60; i++) {
        CHECK_EQ(posted_count(space), 60 - i);
        posted_remove(space, &ops[i * 7 % 60]);
    }
    space_close(space);
}
