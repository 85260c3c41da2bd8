/* SPDX-License-Identifier: Apache-2.0 */
/* Completion queues: formats, reading, errors, selection, waiting. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "side.h"

#define SENT (FI_TAGGED | FI_SEND)
#define GOT (FI_TAGGED | FI_RECV)
#define DATA UINT64_C(0xf123456789abcdef)

static const struct side_attr plain = {0};
static struct fi_context2 sent, got, more[64];
static char text[32], room[32];

static void tsend(struct side *side, fi_addr_t to, void *context)
{
    POST(fi_tsend(side->ep, text, sizeof(text), NULL, to, 5, context));
}

static void trecv(struct side *side, void *context)
{
    POST(fi_trecv(side->ep, room, sizeof(room), NULL, FI_ADDR_UNSPEC, 5, 0, context));
}

/* Read one completion of a queue of any format. */
static void read_one(struct fid_cq *cq, void *entry)
{
    int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;
    ssize_t count;

    while ((count = fi_cq_read(cq, entry, 1)) == -FI_EAGAIN && test_now_ns() < end_ns)
        sides_progress();
    CHECK_EQ(count, 1);
}

static void open_pair_of_format(struct pair *pair, enum fi_cq_format format)
{
    struct side_attr attr = {.format = format, .reads_itself = true};

    side_open(&pair->a, &plain);
    side_open(&pair->b, &attr);
    pair->to_b = side_learn(&pair->a, &pair->b);
    pair->to_a = side_learn(&pair->b, &pair->a);
}

/* A read leaves the memory behind its entry alone. */
static void receives_in_format(enum fi_cq_format format, void *entry, size_t size)
{
    struct pair pair;

    open_pair_of_format(&pair, format);
    memset(entry, 0x77, size + 8);
    CHECK_FI(fi_trecv(pair.b.ep, room, sizeof(room), NULL, FI_ADDR_UNSPEC, 5, 0, &got));
    POST(fi_tsenddata(pair.a.ep, text, sizeof(text), NULL, DATA, pair.to_b, 5, &sent));
    read_one(pair.b.cq, entry);
    CHECK(((struct fi_cq_entry *)entry)->op_context == &got);
    for (size_t i = 0; i < 8; i++)
        CHECK_EQ(((unsigned char *)entry)[size + i], 0x77);
    next_ok(&pair.a, &sent, SENT);
    pair_close(&pair);
}

TEST(a_queue_of_contexts_gives_contexts)
{
    unsigned char entry[sizeof(struct fi_cq_entry) + 8] __attribute__((aligned(8)));

    receives_in_format(FI_CQ_FORMAT_CONTEXT, entry, sizeof(struct fi_cq_entry));
}

TEST(a_queue_of_messages_gives_flags_and_length)
{
    unsigned char entry[sizeof(struct fi_cq_msg_entry) + 8] __attribute__((aligned(8)));
    struct fi_cq_msg_entry *found = (void *)entry;

    receives_in_format(FI_CQ_FORMAT_MSG, entry, sizeof(*found));
    CHECK_EQ(found->flags & GOT, GOT);
    CHECK_EQ(found->len, sizeof(text));
}

TEST(a_queue_of_data_gives_data)
{
    unsigned char entry[sizeof(struct fi_cq_data_entry) + 8] __attribute__((aligned(8)));
    struct fi_cq_data_entry *found = (void *)entry;

    receives_in_format(FI_CQ_FORMAT_DATA, entry, sizeof(*found));
    CHECK_EQ(found->len, sizeof(text));
    CHECK(found->data == DATA);
}

TEST(a_queue_of_tags_gives_tags)
{
    unsigned char entry[sizeof(struct fi_cq_tagged_entry) + 8] __attribute__((aligned(8)));
    struct fi_cq_tagged_entry *found = (void *)entry;

    receives_in_format(FI_CQ_FORMAT_TAGGED, entry, sizeof(*found));
    CHECK(found->data == DATA);
    CHECK_EQ(found->tag, 5);
}

TEST(a_queue_whose_format_is_left_open_tells_its_size)
{
    struct side side;
    struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_UNSPEC};
    struct fid_cq *cq;

    side_open(&side, &plain);
    CHECK_FI(fi_cq_open(side.domain, &attr, &cq, NULL));
    CHECK_FI(fi_close(&cq->fid));
    attr.format = (enum fi_cq_format)99;
    CHECK(fi_cq_open(side.domain, &attr, &cq, NULL) < 0);
    side_close(&side);
}

TEST(several_completions_are_read_at_once)
{
    struct pair pair;
    struct fi_cq_tagged_entry entries[64];
    size_t total = 0;
    ssize_t most = 0;

    open_pair_of_format(&pair, FI_CQ_FORMAT_TAGGED);
    for (int i = 0; i < 64; i++)
        trecv(&pair.b, &more[i]);
    for (int i = 0; i < 64; i++)
        POST(fi_tinject(pair.a.ep, text, 8, pair.to_b, 5));
    sides_settle();
    for (int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS; total < 64;) {
        ssize_t count = fi_cq_read(pair.b.cq, entries, 64 - total);

        CHECK(test_now_ns() < end_ns);
        sides_progress();
        if (count == -FI_EAGAIN)
            continue;
        CHECK(count > 0);
        most = count > most ? count : most;
        for (ssize_t i = 0; i < count; i++)
            CHECK(entries[i].op_context == &more[total++]);
    }
    CHECK(most > 1);
    CHECK_EQ(fi_cq_read(pair.b.cq, entries, 64), -FI_EAGAIN);
    pair_close(&pair);
}

TEST(reading_takes_no_more_than_it_was_told)
{
    struct pair pair;
    struct fi_cq_tagged_entry entries[4] = {{0}};

    open_pair_of_format(&pair, FI_CQ_FORMAT_TAGGED);
    for (int i = 0; i < 8; i++)
        trecv(&pair.b, &more[i]);
    for (int i = 0; i < 8; i++)
        POST(fi_tinject(pair.a.ep, text, 8, pair.to_b, 5));
    sides_settle();
    for (size_t total = 0; total < 8;) {
        ssize_t count = fi_cq_read(pair.b.cq, entries, 2);

        sides_progress();
        if (count == -FI_EAGAIN)
            continue;
        CHECK(count == 1 || count == 2);
        CHECK(entries[2].op_context == NULL);
        total += (size_t)count;
    }
    pair_close(&pair);
}

TEST(an_empty_queue_has_neither_completions_nor_errors)
{
    struct side side;
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error = {0};
    fi_addr_t source;

    side_open(&side, &plain);
    CHECK_EQ(fi_cq_read(side.cq, &entry, 1), -FI_EAGAIN);
    CHECK_EQ(fi_cq_readfrom(side.cq, &entry, 1, &source), -FI_EAGAIN);
    CHECK_EQ(fi_cq_readerr(side.cq, &error, 0), -FI_EAGAIN);
    side_close(&side);
}

TEST(an_error_is_announced_read_once_and_then_gone)
{
    struct side side;
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error = {0};
    char words[128] = "";

    side_open(&side, &plain);
    trecv(&side, &got);
    CHECK_FI(fi_cancel(&side.ep->fid, &got));
    for (int i = 0; i < 10000 && fi_cq_read(side.cq, &entry, 1) != -FI_EAVAIL; i++)
        ;
    CHECK_EQ(fi_cq_read(side.cq, &entry, 1), -FI_EAVAIL);
    CHECK_EQ(fi_cq_readerr(side.cq, &error, 0), 1);
    CHECK_EQ(error.err, FI_ECANCELED);
    CHECK(error.op_context == &got);
    CHECK(fi_cq_strerror(side.cq, error.prov_errno, error.err_data, words, sizeof(words)) != NULL);
    CHECK_EQ(fi_cq_readerr(side.cq, &error, 0), -FI_EAGAIN);
    CHECK_EQ(fi_cq_read(side.cq, &entry, 1), -FI_EAGAIN);
    side_close(&side);
}

TEST(errors_and_successes_are_all_read)
{
    struct side side;
    int errors = 0;

    side_open(&side, &plain);
    fi_addr_t self = side_learn(&side, &side);
    for (int i = 0; i < 60; i++)
        trecv(&side, &more[i]);
    for (int i = 0; i < 60; i += 2)
        CHECK_FI(fi_cancel(&side.ep->fid, &more[i]));
    for (int i = 0; i < 30; i++)
        POST(fi_tinject(side.ep, text, 8, self, 5));
    for (int i = 0; i < 60; i++) {
        struct completion completion = next(&side);
        ptrdiff_t which = (struct fi_context2 *)completion.entry.op_context - more;

        CHECK_EQ(completion.error, which % 2 ? 0 : FI_ECANCELED);
        errors += completion.error != 0;
    }
    CHECK_EQ(errors, 30);
    nothing_more(&side);
    side_close(&side);
}

/* --- selection
 * ----------------------------------------------------------------------------------*/

static const struct side_attr selective = {.bind_flags = FI_SELECTIVE_COMPLETION};

TEST(only_selected_sends_complete)
{
    struct pair pair;
    struct iovec iov = {text, 8};
    struct fi_msg_tagged msg = {&iov, NULL, 1, 0, 5, 0, &sent, 0};

    pair_open(&pair, &selective);
    msg.addr = pair.to_b;
    tsend(&pair.a, pair.to_b, &more[0]);
    POST(fi_tsendmsg(pair.a.ep, &msg, 0));
    POST(fi_tsendmsg(pair.a.ep, &msg, FI_COMPLETION));
    next_ok(&pair.a, &sent, SENT);
    nothing_more(&pair.a);
    pair_close(&pair);
}

TEST(only_selected_receives_complete)
{
    struct pair pair;
    struct iovec iov = {room, sizeof(room)};
    struct fi_msg_tagged msg = {&iov, NULL, 1, FI_ADDR_UNSPEC, 5, 0, &got, 0};

    pair_open(&pair, &selective);
    trecv(&pair.b, &more[0]);
    CHECK_FI(fi_trecvmsg(pair.b.ep, &msg, FI_COMPLETION));
    for (int i = 0; i < 2; i++)
        POST(fi_tinject(pair.a.ep, text, 8, pair.to_b, 5));
    next_ok(&pair.b, &got, GOT);
    nothing_more(&pair.b);
    pair_close(&pair);
}

TEST(an_operation_that_is_not_selected_still_tells_its_error)
{
    struct pair pair;

    pair_open(&pair, &selective);
    POST(fi_trecv(pair.b.ep, room, 4, NULL, FI_ADDR_UNSPEC, 5, 0, &got));
    POST(fi_tinject(pair.a.ep, text, 8, pair.to_b, 5));
    next_error(&pair.b, &got, FI_ETRUNC);
    nothing_more(&pair.b);
    pair_close(&pair);
}

TEST(completions_by_default_select_all)
{
    struct side_attr attr = {.bind_flags = FI_SELECTIVE_COMPLETION,
                             .tx_flags = FI_COMPLETION,
                             .rx_flags = FI_COMPLETION};
    struct pair pair;

    pair_open(&pair, &attr);
    trecv(&pair.b, &got);
    tsend(&pair.a, pair.to_b, &sent);
    next_ok(&pair.a, &sent, SENT);
    next_ok(&pair.b, &got, GOT);
    pair_close(&pair);
}

/* --- queues and endpoints
 * -----------------------------------------------------------------------*/

TEST(sends_and_receives_have_queues_of_their_own)
{
    struct side side;
    struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED};
    struct fid_cq *receives;
    struct fi_cq_tagged_entry entry;
    fi_addr_t self;

    side_open_domain(&side, &plain);
    CHECK_FI(fi_cq_open(side.domain, &attr, &receives, NULL));
    CHECK_FI(fi_endpoint(side.domain, side.info, &side.ep, NULL));
    CHECK_FI(fi_ep_bind(side.ep, &side.av->fid, 0));
    CHECK_FI(fi_ep_bind(side.ep, &side.cq->fid, FI_SEND));
    CHECK_FI(fi_ep_bind(side.ep, &receives->fid, FI_RECV));
    CHECK_FI(fi_enable(side.ep));
    side.name_len = sizeof(side.name);
    CHECK_FI(fi_getname(&side.ep->fid, side.name, &side.name_len));
    self = side_learn(&side, &side);
    trecv(&side, &got);
    POST(fi_tsend(side.ep, text, 8, NULL, self, 5, &sent));
    bool is_sent = false, is_got = false;
    for (int64_t end = test_now_ns() + TEST_PATIENCE_NS; !is_sent || !is_got;) {
        CHECK(test_now_ns() < end);
        if (fi_cq_read(side.cq, &entry, 1) == 1) {
            CHECK(entry.op_context == &sent && !is_sent);
            is_sent = true;
        }
        if (fi_cq_read(receives, &entry, 1) == 1) {
            CHECK(entry.op_context == &got && !is_got);
            is_got = true;
        }
    }
    CHECK_FI(fi_close(&side.ep->fid));
    CHECK_FI(fi_close(&receives->fid));
    CHECK_FI(fi_close(&side.cq->fid));
    CHECK_FI(fi_close(&side.av->fid));
    CHECK_FI(fi_close(&side.domain->fid));
    CHECK_FI(fi_close(&side.fabric->fid));
    fi_freeinfo(side.info);
}

TEST(several_endpoints_share_a_domain_and_a_queue)
{
    enum { COUNT = 6 };
    struct side host, others[COUNT];
    struct side *all[COUNT + 1] = {&host};
    fi_addr_t addrs[COUNT + 1];
    static struct fi_context2 receives[COUNT + 1][COUNT + 1], sends[COUNT + 1][COUNT + 1];
    static uint64_t words[COUNT + 1][COUNT + 1], found[COUNT + 1][COUNT + 1];

    side_open(&host, &plain);
    for (int i = 0; i < COUNT; i++) {
        side_open_beside(&others[i], &host);
        all[i + 1] = &others[i];
    }
    for (int i = 0; i <= COUNT; i++)
        addrs[i] = side_learn(&host, all[i]);
    for (int i = 0; i <= COUNT; i++) {
        for (int j = 0; j <= COUNT; j++) {
            POST(fi_trecv(all[i]->ep, &found[i][j], 8, NULL, FI_ADDR_UNSPEC, (uint64_t)j, 0,
                          &receives[i][j]));
            words[i][j] = 100 * (uint64_t)i + (uint64_t)j;
            POST(fi_tsend(all[i]->ep, &words[i][j], 8, NULL, addrs[j], (uint64_t)i, &sends[i][j]));
        }
    }
    for (int i = 0; i < 2 * (COUNT + 1) * (COUNT + 1); i++)
        CHECK_EQ(next(&host).error, 0);
    for (int i = 0; i <= COUNT; i++)
        for (int j = 0; j <= COUNT; j++)
            CHECK_EQ(found[i][j], 100 * j + i);
    nothing_more(&host);
    for (int i = 0; i < COUNT; i++)
        side_close(&others[i]);
    side_close(&host);
}

TEST(a_small_queue_loses_nothing)
{
    enum { COUNT = 500 };
    static struct fi_context2 receives[COUNT];
    struct side_attr attr = {.cq_size = 4};
    struct pair pair;

    pair_open(&pair, &attr);
    for (int i = 0; i < COUNT; i++)
        trecv(&pair.b, &receives[i]);
    for (int i = 0; i < COUNT; i++)
        POST(fi_tinject(pair.a.ep, text, 8, pair.to_b, 5));
    for (int i = 0; i < COUNT; i++)
        next_ok(&pair.b, &receives[i], GOT);
    nothing_more(&pair.b);
    pair_close(&pair);
}

/* --- waiting
 * ------------------------------------------------------------------------------------*/

static const struct side_attr waiting = {.wait = FI_WAIT_UNSPEC, .threading = FI_THREAD_SAFE};
static const struct side_attr with_fd = {.wait = FI_WAIT_FD};

TEST(a_wait_ends_after_its_time)
{
    struct side side;
    struct fi_cq_tagged_entry entry;
    fi_addr_t source;
    int64_t start_ns;

    side_open(&side, &waiting);
    start_ns = test_now_ns();
    CHECK_EQ(fi_cq_sread(side.cq, &entry, 1, NULL, 20), -FI_EAGAIN);
    CHECK(test_now_ns() - start_ns >= 19 * TEST_MS);
    CHECK_EQ(fi_cq_sread(side.cq, &entry, 1, NULL, 0), -FI_EAGAIN);
    CHECK_EQ(fi_cq_sreadfrom(side.cq, &entry, 1, &source, NULL, 1), -FI_EAGAIN);
    side_close(&side);
}

TEST(a_wait_on_a_queue_without_wait_object_is_refused)
{
    struct side side;
    struct fi_cq_tagged_entry entry;

    if (!is_velo())
        test_skip("others spin");
    side_open(&side, &plain);
    CHECK(fi_cq_sread(side.cq, &entry, 1, NULL, 1) < 0);
    side_close(&side);
}

static void *signal_soon(void *arg)
{
    struct side *side = arg;

    test_sleep_ns(20 * TEST_MS);
    CHECK_FI(fi_cq_signal(side->cq));
    return NULL;
}

TEST(a_signal_ends_a_wait)
{
    struct side side;
    struct fi_cq_tagged_entry entry;
    pthread_t thread;
    ssize_t status;

    needs(&waiting);
    side_open(&side, &waiting);
    CHECK_EQ(pthread_create(&thread, NULL, signal_soon, &side), 0);
    status = fi_cq_sread(side.cq, &entry, 1, NULL, -1);
    CHECK(status == -FI_EAGAIN || status == -FI_ECANCELED);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    side_close(&side);
}

/* Rank 1 answers what rank 0 sends, and both sleep between. */
static void sleeps_in_sread(struct meeting *meeting, int rank)
{
    struct side side;
    fi_addr_t addrs[2];
    struct fi_cq_tagged_entry entry;

    side_open_among(&side, &waiting, meeting, rank, addrs);
    for (uint64_t i = 0; i < 300; i++) {
        uint64_t word = i, found = ~i;
        bool is_sent = false, is_got = false;

        CHECK_FI(fi_trecv(side.ep, &found, 8, NULL, FI_ADDR_UNSPEC, i, 0, &got));
        if (rank == 0)
            POST(fi_tsend(side.ep, &word, 8, NULL, addrs[1], i, &sent));
        while (!is_got || !is_sent) {
            ssize_t count;

            if (kept(&side) > 0) {
                entry = next(&side).entry;
                count = 1;
            } else {
                count = fi_cq_sread(side.cq, &entry, 1, NULL, -1);
            }
            if (count == -FI_EAGAIN || count == -FI_EINTR)
                continue;
            CHECK_EQ(count, 1);
            if (entry.op_context == &sent) {
                is_sent = true;
                continue;
            }
            is_got = true;
            CHECK_EQ(found, i);
            if (rank == 1)
                POST(fi_tsend(side.ep, &word, 8, NULL, addrs[0], i, &sent));
        }
    }
    meet(meeting);
    side_close(&side);
}

TEST(a_sleeper_in_sread_is_woken_by_each_message)
{
    needs(&waiting);
    processes_run(2, sleeps_in_sread);
}

TEST(a_wait_object_is_a_descriptor_if_one_is_asked_for)
{
    struct side side;
    int fd = -1;
    enum fi_wait_obj kind = FI_WAIT_NONE;

    side_open(&side, &with_fd);
    CHECK_FI(fi_control(&side.cq->fid, FI_GETWAIT, &fd));
    CHECK(fd >= 0);
    if (fi_control(&side.cq->fid, FI_GETWAITOBJ, &kind) == 0)
        CHECK_EQ(kind, FI_WAIT_FD);
    side_close(&side);
}

TEST(a_queue_with_completions_is_not_to_be_waited_for)
{
    struct side_attr attr = {.wait = FI_WAIT_FD, .reads_itself = true};
    struct pair pair;
    struct fid *fids[1];
    struct fi_cq_tagged_entry entry;
    int status;

    pair_open(&pair, &attr);
    fids[0] = &pair.b.cq->fid;
    CHECK_FI(fi_trywait(pair.b.fabric, fids, 1));
    CHECK_FI(fi_trecv(pair.b.ep, room, sizeof(room), NULL, FI_ADDR_UNSPEC, 5, 0, &got));
    POST(fi_tinject(pair.a.ep, text, 8, pair.to_b, 5));
    UNTIL((status = fi_trywait(pair.b.fabric, fids, 1)) != 0);
    CHECK_EQ(status, -FI_EAGAIN);
    read_one(pair.b.cq, &entry);
    CHECK(entry.op_context == &got);
    pair_close(&pair);
}

/* Both sleep in poll() without an end: a wake-up that is lost is a hang. */
static void sleeps_in_poll(struct meeting *meeting, int rank)
{
    struct side side;
    fi_addr_t addrs[2];
    struct pollfd pollfd = {.events = POLLIN};
    struct fid *fids[1];
    static unsigned char out[70000], in[70000];

    side_open_among(&side, &with_fd, meeting, rank, addrs);
    CHECK_FI(fi_control(&side.cq->fid, FI_GETWAIT, &pollfd.fd));
    fids[0] = &side.cq->fid;
    for (uint64_t i = 0; i < 300; i++) {
        size_t len = i % 7 == 3 ? sizeof(out) : 8;
        int due = 2;

        pattern_fill(out, len, i);
        CHECK_FI(fi_trecv(side.ep, in, len, NULL, FI_ADDR_UNSPEC, i, 0, &got));
        if (rank == 0)
            POST(fi_tsend(side.ep, out, len, NULL, addrs[1], i, &sent));
        while (due > 0) {
            if (kept(&side) == 0)
                sides_progress();
            if (kept(&side) == 0) {
                if (fi_trywait(side.fabric, fids, 1) == 0)
                    CHECK(poll(&pollfd, 1, -1) >= 0);
                continue;
            }
            due--;
            if (next(&side).entry.op_context == &got) {
                CHECK(pattern_matches(in, len, i));
                if (rank == 1)
                    POST(fi_tsend(side.ep, out, len, NULL, addrs[0], i, &sent));
            }
        }
    }
    meet(meeting);
    side_close(&side);
}

TEST(a_sleeper_in_poll_is_woken_by_each_message)
{
    needs(&with_fd);
    processes_run(2, sleeps_in_poll);
}

TEST(sends_without_room_for_their_completions_are_refused_or_kept)
{
    enum { COUNT = 300 };
    static struct fi_context2 sends[COUNT];
    static bool seen[COUNT];
    struct side_attr attr = {.cq_size = 4};
    struct pair pair;
    struct fi_cq_tagged_entry entry;
    int posted = 0, told = 0;

    pair_open(&pair, &attr);
    for (int64_t end = test_now_ns() + TEST_PATIENCE_NS; told < COUNT;) {
        ssize_t status = 0;

        CHECK(test_now_ns() < end);
        while (posted < COUNT &&
               (status = fi_tsend(pair.a.ep, text, 8, NULL, pair.to_b, 5, &sends[posted])) == 0)
            posted++;
        CHECK(status == 0 || status == -FI_EAGAIN);
        if (fi_cq_read(pair.a.cq, &entry, 1) == 1) {
            ptrdiff_t which = (struct fi_context2 *)entry.op_context - sends;

            CHECK(which >= 0 && which < posted && !seen[which]);
            seen[which] = true;
            told++;
        }
        (void)fi_cq_read(pair.b.cq, &entry, 0);
    }
    nothing_more(&pair.a);
    pair_close(&pair);
}
