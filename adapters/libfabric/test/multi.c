/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers that take several messages (FI_MULTI_RECV). */
#include <string.h>

#include "side.h"

#define GOT (FI_MSG | FI_RECV)

static const struct side_attr multi = {.caps = FI_MSG | FI_TAGGED | FI_MULTI_RECV};
static struct fi_context2 sent, contexts[4];
static unsigned char from[8192], buffers[4][16384];

static void set_least(struct side *side, size_t least)
{
    CHECK_FI(
        fi_setopt(&side->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof(least)));
}

static void post_buffer(struct side *side, int i, size_t len)
{
    struct iovec iov = {buffers[i], len};
    struct fi_msg msg = {&iov, NULL, 1, FI_ADDR_UNSPEC, &contexts[i], 0};

    memset(buffers[i], 0x55, sizeof(buffers[i]));
    CHECK_FI(fi_recvmsg(side->ep, &msg, FI_MULTI_RECV | FI_COMPLETION));
}

static void send_seed(struct pair *pair, size_t len, uint64_t seed)
{
    pattern_fill(from, len, seed);
    POST(fi_send(pair->a.ep, from, len, NULL, pair->to_b, &sent));
    CHECK_EQ(next(&pair->a).error, 0);
}

/* The buffer is over at this completion, or at one of its own. */
static bool is_release(const struct completion *completion)
{
    return completion->entry.flags & FI_MULTI_RECV;
}

TEST(a_buffer_takes_messages_one_behind_the_other)
{
    struct pair pair;
    unsigned char *at = buffers[0];

    pair_open(&pair, &multi);
    set_least(&pair.b, 64);
    post_buffer(&pair.b, 0, 4096);
    for (uint64_t i = 0; i < 20; i++) {
        size_t len = (size_t)(i * 7 % 100);
        struct completion completion;

        send_seed(&pair, len, i);
        completion = next_ok(&pair.b, &contexts[0], GOT);
        CHECK(!is_release(&completion));
        CHECK_EQ(completion.entry.len, len);
        CHECK((unsigned char *)completion.entry.buf >= at);
        CHECK(pattern_matches(completion.entry.buf, len, i));
        at = (unsigned char *)completion.entry.buf + len;
    }
    pair_close(&pair);
}

TEST(a_buffer_is_released_once_when_too_little_room_is_left)
{
    struct pair pair;
    int releases = 0, messages = 0;
    size_t bytes = 0;

    pair_open(&pair, &multi);
    set_least(&pair.b, 1000);
    post_buffer(&pair.b, 0, 4096);
    while (!releases) {
        struct completion completion;

        send_seed(&pair, 500, (uint64_t)messages);
        completion = next_ok(&pair.b, &contexts[0], FI_RECV);
        releases += is_release(&completion);
        if (!completion.entry.buf && is_release(&completion))
            break;
        CHECK(pattern_matches(completion.entry.buf, 500, (uint64_t)messages));
        messages++;
        bytes += 500;
        if (!releases && 4096 - bytes < 1000)
            releases += is_release(&(struct completion[]){next_ok(&pair.b, &contexts[0], 0)}[0]);
    }
    CHECK_EQ(messages, 7);
    nothing_more(&pair.b);
    post_buffer(&pair.b, 1, 4096);
    send_seed(&pair, 100, 3);
    next_ok(&pair.b, &contexts[1], GOT);
    CHECK(pattern_matches(buffers[1], 100, 3));
    pair_close(&pair);
}

TEST(buffers_follow_each_other_and_each_is_released_once)
{
    enum { COUNT = 400 };
    struct pair pair;
    uint64_t seen = 0;
    int releases[2] = {0};

    pair_open(&pair, &multi);
    set_least(&pair.b, 512);
    post_buffer(&pair.b, 0, 8192);
    post_buffer(&pair.b, 1, 8192);
    for (uint64_t i = 0; i < COUNT; i++) {
        size_t len = (size_t)(i * 37 % 513);

        send_seed(&pair, len, i);
        for (bool done = false; !done;) {
            struct completion completion = next(&pair.b);
            ptrdiff_t which = (struct fi_context2 *)completion.entry.op_context - contexts;

            CHECK_EQ(completion.error, 0);
            CHECK(which == 0 || which == 1);
            if (completion.entry.flags & FI_MSG || !is_release(&completion)) {
                CHECK_EQ(completion.entry.len, len);
                CHECK(len == 0 ||
                      ((unsigned char *)completion.entry.buf >= buffers[which] &&
                       (unsigned char *)completion.entry.buf + len <= buffers[which] + 8192));
                CHECK(pattern_matches(completion.entry.buf, len, seen));
                seen++;
                done = true;
            }
            if (is_release(&completion)) {
                releases[which]++;
                post_buffer(&pair.b, (int)which, 8192);
            }
        }
        if (kept(&pair.b)) {
            struct completion completion = next(&pair.b);
            ptrdiff_t which = (struct fi_context2 *)completion.entry.op_context - contexts;
            CHECK(is_release(&completion));
            releases[which]++;
            post_buffer(&pair.b, (int)which, 8192);
        }
    }
    CHECK_EQ(seen, COUNT);
    CHECK(releases[0] >= 4);
    CHECK(releases[1] >= 4);
    pair_close(&pair);
}

TEST(messages_that_wait_fill_a_buffer_too)
{
    enum { COUNT = 30 };
    struct pair pair;

    pair_open(&pair, &multi);
    set_least(&pair.b, 64);
    for (uint64_t i = 0; i < COUNT; i++)
        send_seed(&pair, 100, i);
    sides_settle();
    post_buffer(&pair.b, 0, 8192);
    for (uint64_t i = 0; i < COUNT; i++) {
        struct completion completion = next_ok(&pair.b, &contexts[0], GOT);

        CHECK_EQ(completion.entry.len, 100);
        CHECK(pattern_matches(completion.entry.buf, 100, i));
    }
    nothing_more(&pair.b);
    pair_close(&pair);
}

TEST(large_messages_fill_a_buffer_too)
{
    struct pair pair;

    pair_open(&pair, &multi);
    set_least(&pair.b, 64);
    post_buffer(&pair.b, 0, 16384);
    for (uint64_t i = 0; i < 2; i++) {
        pattern_fill(from, sizeof(from) - 100, i);
        POST(fi_send(pair.a.ep, from, sizeof(from) - 100, NULL, pair.to_b, &sent));
        struct completion completion = next_ok(&pair.b, &contexts[0], GOT);
        CHECK_EQ(completion.entry.len, sizeof(from) - 100);
        CHECK(pattern_matches(completion.entry.buf, sizeof(from) - 100, i));
        CHECK_EQ(next(&pair.a).error, 0);
    }
    pair_close(&pair);
}

TEST(a_buffer_is_cancelled)
{
    struct pair pair;
    struct completion completion;

    pair_open(&pair, &multi);
    set_least(&pair.b, 64);
    post_buffer(&pair.b, 0, 4096);
    send_seed(&pair, 100, 1);
    next_ok(&pair.b, &contexts[0], GOT);
    CHECK_FI(fi_cancel(&pair.b.ep->fid, &contexts[0]));
    completion = next_error(&pair.b, &contexts[0], FI_ECANCELED);
    if (is_velo())
        CHECK_EQ(completion.entry.flags & FI_MULTI_RECV, FI_MULTI_RECV);
    post_buffer(&pair.b, 1, 4096);
    send_seed(&pair, 100, 2);
    next_ok(&pair.b, &contexts[1], GOT);
    CHECK(pattern_matches(buffers[1], 100, 2));
    nothing_more(&pair.b);
    pair_close(&pair);
}

TEST(plain_receives_and_buffers_are_matched_in_their_order)
{
    struct pair pair;
    unsigned char single[100];

    pair_open(&pair, &multi);
    set_least(&pair.b, 64);
    CHECK_FI(fi_recv(pair.b.ep, single, sizeof(single), NULL, FI_ADDR_UNSPEC, &contexts[2]));
    post_buffer(&pair.b, 0, 4096);
    send_seed(&pair, 100, 1);
    next_ok(&pair.b, &contexts[2], GOT);
    CHECK(pattern_matches(single, 100, 1));
    send_seed(&pair, 100, 2);
    next_ok(&pair.b, &contexts[0], GOT);
    CHECK(pattern_matches(buffers[0], 100, 2));
    pair_close(&pair);
}
