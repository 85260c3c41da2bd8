/* SPDX-License-Identifier: Apache-2.0 */
/* What transport faults does with the frames that come: its queue, and the settings of that. */
#include <stdlib.h>
#include <string.h>

#include "../../transports/faults/queue.h"
#include "test.h"

enum { FRAMES = 64 };

static struct settings read_settings(const char *text)
{
    struct settings settings;
    const char *wrong;
    CHECK(settings_read(&settings, text, &wrong));
    return settings;
}

static void add(struct queue *queue, const struct settings *settings, uint32_t kind,
                uint64_t number)
{
    const struct velo_frame frame = {
        .kind = kind, .word = {number}, .payload_bytes = sizeof number, .payload = &number};
    CHECK(queue_add(queue, settings, &frame));
}

/* The number of the frame that is taken in, which its payload has, too. */
static uint64_t take(struct queue *queue, const struct settings *settings)
{
    struct kept *kept = queue_take(queue, settings);
    uint64_t number, copy;
    CHECK(kept);
    number = kept->frame.word[0];
    CHECK_EQ(kept->frame.payload_bytes, sizeof copy);
    memcpy(&copy, kept->frame.payload, sizeof copy);
    CHECK_EQ(copy, number);
    free(kept);
    return number;
}

TEST(each_setting_is_read_into_its_place)
{
    struct settings read = read_settings("over=loop,payload=1,delay_us=2,partial=3,full=4,"
                                         "reorder=5,die=6,seed=7");
    CHECK(strcmp(read.over, "loop") == 0);
    CHECK_EQ(read.payload, 1);
    CHECK_EQ(read.delay_us, 2);
    CHECK_EQ(read.partial, 3);
    CHECK_EQ(read.full, 4);
    CHECK_EQ(read.reorder, 5);
    CHECK_EQ(read.die, 6);
    CHECK_EQ(read.seed, 7);
}

TEST(without_settings_frames_keep_their_order)
{
    struct settings settings = read_settings("");
    struct queue queue = {0};
    CHECK(!queue_take(&queue, &settings));
    for (uint64_t i = 0; i < FRAMES; i++)
        add(&queue, &settings, VELO_FRAME_DATA, i);
    CHECK_EQ(queue.len, FRAMES);
    for (uint64_t i = 0; i < FRAMES; i++)
        CHECK_EQ(take(&queue, &settings), i);
    CHECK_EQ(queue.len, 0);
    CHECK(!queue_take(&queue, &settings));
}

TEST(a_delayed_frame_comes_no_sooner)
{
    struct settings settings = read_settings("delay_us=20000");
    struct queue queue = {0};
    struct kept *kept;
    int64_t start_ns = test_now_ns();
    add(&queue, &settings, VELO_FRAME_DATA, 1);
    while (!(kept = queue_take(&queue, &settings)))
        test_sleep_ns(TEST_MS);
    CHECK(test_now_ns() - start_ns >= 19 * TEST_MS); /* The queue counts whole microseconds. */
    free(kept);
}

/* The order in which as many DATA are taken in. */
static void take_data(const char *text, uint64_t order[FRAMES])
{
    struct settings settings = read_settings(text);
    struct queue queue = {0};
    bool seen[FRAMES] = {false};
    for (uint64_t i = 0; i < FRAMES; i++)
        add(&queue, &settings, VELO_FRAME_DATA, i);
    for (uint64_t i = 0; i < FRAMES; i++) {
        order[i] = take(&queue, &settings);
        CHECK(order[i] < i + 4); /* One of the first four. */
        CHECK(!seen[order[i]]);
        seen[order[i]] = true;
    }
}

TEST(data_overtake_data_as_the_seed_says)
{
    uint64_t order[FRAMES], again[FRAMES], other[FRAMES];
    int passed = 0;
    take_data("reorder=4,seed=1", order);
    take_data("reorder=4,seed=1", again);
    take_data("reorder=4,seed=2", other);
    for (int i = 0; i < FRAMES; i++)
        passed += order[i] != (uint64_t)i;
    CHECK(passed > FRAMES / 4);
    CHECK(memcmp(order, again, sizeof order) == 0);
    CHECK(memcmp(order, other, sizeof order) != 0);
}

/* Take in what was added in this order, with every seed: where does each one come? */
static uint32_t orders_of(const uint32_t *kinds, uint64_t len)
{
    uint32_t orders = 0; /* Bit n: at some seed the last frame was the n-th. */
    for (uint32_t seed = 1; seed < 200; seed++) {
        struct settings settings = {.reorder = 4, .seed = seed};
        struct queue queue = {0};
        for (uint64_t i = 0; i < len; i++)
            add(&queue, &settings, kinds[i], i);
        for (uint64_t i = 0; i < len; i++)
            if (take(&queue, &settings) == len - 1)
                orders |= 1u << i;
    }
    return orders;
}

TEST(a_frame_overtakes_only_what_it_may)
{
    /* DATA passes DATA and SLOT. */
    CHECK_EQ(orders_of((uint32_t[]){VELO_FRAME_DATA, VELO_FRAME_DATA}, 2), 3);
    CHECK_EQ(orders_of((uint32_t[]){VELO_FRAME_SLOT, VELO_FRAME_DATA}, 2), 3);
    /* SLOT passes SLOT, and no DATA. */
    CHECK_EQ(orders_of((uint32_t[]){VELO_FRAME_SLOT, VELO_FRAME_SLOT}, 2), 3);
    CHECK_EQ(orders_of((uint32_t[]){VELO_FRAME_DATA, VELO_FRAME_SLOT}, 2), 2);
    CHECK_EQ(orders_of((uint32_t[]){VELO_FRAME_DATA, VELO_FRAME_SLOT, VELO_FRAME_SLOT}, 3), 6);
    /* All else passes nothing, and nothing passes it. */
    for (uint32_t kind = VELO_FRAME_OPEN; kind <= VELO_FRAME_CLOSE; kind++) {
        if (kind == VELO_FRAME_DATA || kind == VELO_FRAME_SLOT)
            continue;
        CHECK_EQ(orders_of((uint32_t[]){VELO_FRAME_DATA, kind}, 2), 2);
        CHECK_EQ(orders_of((uint32_t[]){kind, VELO_FRAME_DATA}, 2), 2);
        CHECK_EQ(orders_of((uint32_t[]){kind, VELO_FRAME_SLOT}, 2), 2);
    }
}

TEST(a_cleared_queue_is_empty)
{
    struct settings settings = read_settings("");
    struct queue queue = {0};
    for (uint64_t i = 0; i < FRAMES; i++)
        add(&queue, &settings, VELO_FRAME_DATA, i);
    queue_clear(&queue);
    CHECK_EQ(queue.len, 0);
    CHECK(!queue_take(&queue, &settings));
}
