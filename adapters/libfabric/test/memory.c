/* SPDX-License-Identifier: Apache-2.0 */
/* Remote memory: registered, read, written, and refused. Both modes of registration. */
#include <stdlib.h>
#include <string.h>

#include "side.h"

#define BASIC (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)
#define LEN_MAX (8u << 20)
#define DATA UINT64_C(0x8877665544332211)
#define ACCESS (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

static struct side_attr rma = {.caps = FI_MSG | FI_TAGGED | FI_RMA};
static const size_t lens[] = {1, 8, 63, 64, 65, 4095, 4096, 4097, 16385, 65536, 1 << 20, LEN_MAX};

/* b's memory, as a reaches it. */
struct window {
    struct fid_mr *mr;
    unsigned char *memory;
    uint64_t base; /* What b's first byte is called. */
    uint64_t key;
};

static struct fi_context2 done, got;
static unsigned char *local;

static void window_open(struct pair *pair, struct window *window, uint64_t access)
{
    int mode = pair->b.info->domain_attr->mr_mode;

    window->memory = malloc(LEN_MAX);
    local = malloc(LEN_MAX + 1u); /* For an operation that is too long. */
    CHECK(window->memory && local);
    memset(window->memory, 0x11, LEN_MAX);
    CHECK_FI(
        fi_mr_reg(pair->b.domain, window->memory, LEN_MAX, access, 0, 77, 0, &window->mr, NULL));
    window->key = fi_mr_key(window->mr);
    window->base = mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)window->memory : 0;
    if (!(mode & FI_MR_PROV_KEY))
        CHECK_EQ(window->key, 77);
}

static void window_close(struct window *window)
{
    CHECK_FI(fi_close(&window->mr->fid));
    free(window->memory);
    free(local);
}

static void rma_pair_open(struct pair *pair, struct window *window, int mr_mode)
{
    rma.mr_mode = mr_mode;
    needs(&rma);
    pair_open(pair, &rma);
    window_open(pair, window, ACCESS);
}

static void rma_pair_close(struct pair *pair, struct window *window)
{
    window_close(window);
    pair_close(pair);
}

enum form { PLAIN, VECTOR, MESSAGE, INJECT, WITH_DATA, INJECT_DATA };

static size_t cut(struct iovec *iov, size_t limit, size_t len)
{
    size_t pieces = limit < 3 ? limit : 3, at = 0;

    for (size_t i = 0; i < pieces; i++) {
        size_t piece = i + 1 < pieces ? len * (i + 1) / 10 : len - at;
        iov[i] = (struct iovec){local + at, piece};
        at += piece;
    }
    return pieces;
}

static ssize_t post_write(struct pair *pair, struct window *window, enum form form, size_t at,
                          size_t len)
{
    struct iovec iov[3];
    size_t pieces = cut(iov, pair->a.info->tx_attr->iov_limit, len);
    uint64_t place = window->base + at;
    struct fi_rma_iov remote = {place, len, window->key};
    struct fi_msg_rma msg = {iov, NULL, pieces, pair->to_b, &remote, 1, &done, DATA};
    struct fid_ep *ep = pair->a.ep;

    switch (form) {
    case PLAIN:
        return fi_write(ep, local, len, NULL, pair->to_b, place, window->key, &done);
    case VECTOR:
        return fi_writev(ep, iov, NULL, pieces, pair->to_b, place, window->key, &done);
    case MESSAGE:
        return fi_writemsg(ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE);
    case INJECT:
        return fi_inject_write(ep, local, len, pair->to_b, place, window->key);
    case WITH_DATA:
        return fi_writedata(ep, local, len, NULL, DATA, pair->to_b, place, window->key, &done);
    case INJECT_DATA:
        return fi_inject_writedata(ep, local, len, DATA, pair->to_b, place, window->key);
    }
    return -FI_EINVAL;
}

static ssize_t post_read(struct pair *pair, struct window *window, enum form form, size_t at,
                         size_t len)
{
    struct iovec iov[3];
    size_t pieces = cut(iov, pair->a.info->tx_attr->iov_limit, len);
    uint64_t place = window->base + at;
    struct fi_rma_iov remote = {place, len, window->key};
    struct fi_msg_rma msg = {iov, NULL, pieces, pair->to_b, &remote, 1, &done, 0};

    switch (form) {
    case VECTOR:
        return fi_readv(pair->a.ep, iov, NULL, pieces, pair->to_b, place, window->key, &done);
    case MESSAGE:
        return fi_readmsg(pair->a.ep, &msg, FI_COMPLETION);
    default:
        return fi_read(pair->a.ep, local, len, NULL, pair->to_b, place, window->key, &done);
    }
}

static void writes(enum form form, int mr_mode)
{
    struct pair pair;
    struct window window;
    bool injects = form == INJECT || form == INJECT_DATA;

    rma_pair_open(&pair, &window, mr_mode);
    for (size_t i = 0; i < ARRAY_LEN(lens) && lens[i] <= longest(); i++) {
        size_t len = lens[i], at = LEN_MAX - len;

        if (injects && len > pair.a.info->tx_attr->inject_size)
            continue;
        at = i % 2 ? at : at / 3;
        memset(window.memory, 0x11, LEN_MAX);
        pattern_fill(local, len, i);
        POST(post_write(&pair, &window, form, at, len));
        if (injects)
            memset(local, 0, len);
        else
            next_ok(&pair.a, &done, FI_RMA | FI_WRITE);
        if (form == WITH_DATA || form == INJECT_DATA) {
            struct completion completion = next(&pair.b);
            CHECK_EQ(completion.error, 0);
            CHECK_EQ(completion.entry.flags & FI_REMOTE_CQ_DATA, FI_REMOTE_CQ_DATA);
            CHECK(completion.entry.data == DATA);
        }
        UNTIL(pattern_matches(window.memory + at, len, i));
        CHECK(at == 0 || window.memory[at - 1] == 0x11);
        CHECK(at + len == LEN_MAX || window.memory[at + len] == 0x11);
    }
    nothing_more(&pair.a);
    nothing_more(&pair.b);
    rma_pair_close(&pair, &window);
}

static void reads(enum form form, int mr_mode)
{
    struct pair pair;
    struct window window;

    rma_pair_open(&pair, &window, mr_mode);
    for (size_t i = 0; i < ARRAY_LEN(lens) && lens[i] <= longest(); i++) {
        size_t len = lens[i], at = i % 2 ? LEN_MAX - len : (LEN_MAX - len) / 3;

        pattern_fill(window.memory + at, len, i);
        memset(local, 0x11, LEN_MAX);
        POST(post_read(&pair, &window, form, at, len));
        next_ok(&pair.a, &done, FI_RMA | FI_READ);
        CHECK(pattern_matches(local, len, i));
        CHECK(len == LEN_MAX || local[len] == 0x11);
    }
    nothing_more(&pair.a);
    nothing_more(&pair.b);
    rma_pair_close(&pair, &window);
}

TEST(memory_is_written_by_write) { writes(PLAIN, 0); }
TEST(memory_is_written_by_writev) { writes(VECTOR, 0); }
TEST(memory_is_written_by_writemsg) { writes(MESSAGE, 0); }
TEST(memory_is_written_by_inject_write) { writes(INJECT, 0); }
TEST(memory_is_written_by_writedata_and_its_owner_told) { writes(WITH_DATA, 0); }
TEST(memory_is_written_by_inject_writedata_and_its_owner_told) { writes(INJECT_DATA, 0); }
TEST(memory_is_read_by_read) { reads(PLAIN, 0); }
TEST(memory_is_read_by_readv) { reads(VECTOR, 0); }
TEST(memory_is_read_by_readmsg) { reads(MESSAGE, 0); }
TEST(memory_is_written_at_its_virtual_address) { writes(PLAIN, BASIC); }
TEST(memory_is_written_at_its_virtual_address_by_writemsg) { writes(MESSAGE, BASIC); }
TEST(memory_is_written_at_its_virtual_address_by_inject_writedata) { writes(INJECT_DATA, BASIC); }
TEST(memory_is_read_at_its_virtual_address) { reads(PLAIN, BASIC); }
TEST(memory_is_read_at_its_virtual_address_by_readmsg) { reads(MESSAGE, BASIC); }

TEST(one_operation_reaches_several_places)
{
    struct pair pair;
    struct window window;
    struct iovec iov[2];
    struct fi_rma_iov remote[2];
    struct fi_msg_rma msg = {iov, NULL, 2, 0, remote, 2, &done, 0};

    rma_pair_open(&pair, &window, 0);
    if (pair.a.info->tx_attr->rma_iov_limit < 2 || pair.a.info->tx_attr->iov_limit < 2)
        lacks("several places in one operation");
    msg.addr = pair.to_b;
    pattern_fill(local, 3000, 1);
    iov[0] = (struct iovec){local, 1000};
    iov[1] = (struct iovec){local + 1000, 2000};
    remote[0] = (struct fi_rma_iov){window.base + 5000, 1500, window.key};
    remote[1] = (struct fi_rma_iov){window.base + 9, 1500, window.key};
    POST(fi_writemsg(pair.a.ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE));
    next_ok(&pair.a, &done, FI_RMA | FI_WRITE);
    CHECK_EQ(memcmp(window.memory + 5000, local, 1500), 0);
    CHECK_EQ(memcmp(window.memory + 9, local + 1500, 1500), 0);
    memset(local, 0, 3000);
    POST(fi_readmsg(pair.a.ep, &msg, FI_COMPLETION));
    next_ok(&pair.a, &done, FI_RMA | FI_READ);
    CHECK(pattern_matches(local, 3000, 1));
    rma_pair_close(&pair, &window);
}

TEST(an_operation_of_no_bytes_completes)
{
    struct pair pair;
    struct window window;

    rma_pair_open(&pair, &window, 0);
    POST(fi_write(pair.a.ep, local, 0, NULL, pair.to_b, window.base, window.key, &done));
    next_ok(&pair.a, &done, FI_RMA | FI_WRITE);
    POST(fi_read(pair.a.ep, local, 0, NULL, pair.to_b, window.base, window.key, &done));
    next_ok(&pair.a, &done, FI_RMA | FI_READ);
    CHECK_EQ(window.memory[0], 0x11);
    rma_pair_close(&pair, &window);
}

/* An operation that must not be done fails at once or by its completion, and touches nothing. */
static void fails(struct pair *pair, struct window *window, ssize_t status)
{
    struct completion completion;

    if (status == 0) {
        completion = next(&pair->a);
        CHECK(completion.error != 0);
        CHECK(completion.entry.op_context == &done);
    } else {
        CHECK(status != -FI_EAGAIN);
    }
    for (size_t i = 0; i < LEN_MAX; i += i % 4096 == 4088 ? 1 : 8)
        CHECK_EQ(window->memory[i], 0x11);
}

static void works(struct pair *pair, struct window *window)
{
    pattern_fill(local, 100, 1);
    POST(post_write(pair, window, MESSAGE, 0, 100));
    next_ok(&pair->a, &done, FI_RMA | FI_WRITE);
    CHECK(pattern_matches(window->memory, 100, 1));
}

#define SETTLED(status, call)                                                                      \
    do {                                                                                           \
        while (((status) = (call)) == -FI_EAGAIN)                                                  \
            sides_progress();                                                                      \
    } while (0)

static void refuses_outside(int mr_mode)
{
    static const struct {
        size_t at, len;
    } outside[] = {{LEN_MAX, 1},    {LEN_MAX - 7, 8}, {0, LEN_MAX + 1u},
                   {(size_t)-8, 8}, {(size_t)-8, 64}, {LEN_MAX + 4096, 64}};
    struct pair pair;
    struct window window;
    ssize_t status;

    rma_pair_open(&pair, &window, mr_mode);
    for (size_t i = 0; i < ARRAY_LEN(outside); i++) {
        SETTLED(status, post_write(&pair, &window, PLAIN, outside[i].at, outside[i].len));
        fails(&pair, &window, status);
        SETTLED(status, post_read(&pair, &window, PLAIN, outside[i].at, outside[i].len));
        fails(&pair, &window, status);
    }
    works(&pair, &window);
    rma_pair_close(&pair, &window);
}

TEST(an_operation_outside_of_the_memory_is_refused) { refuses_outside(0); }
TEST(an_operation_outside_of_the_memory_is_refused_at_virtual_addresses) { refuses_outside(BASIC); }

TEST(a_wrong_key_is_refused)
{
    struct pair pair;
    struct window window, wrong;
    ssize_t status;

    rma_pair_open(&pair, &window, 0);
    for (int i = 0; i < 64; i += 7) {
        wrong = window;
        wrong.key = window.key ^ 1ULL << i;
        SETTLED(status, post_write(&pair, &wrong, PLAIN, 0, 8));
        fails(&pair, &window, status);
        SETTLED(status, post_read(&pair, &wrong, PLAIN, 0, 100000));
        fails(&pair, &window, status);
    }
    works(&pair, &window);
    rma_pair_close(&pair, &window);
}

static void refuses_without_right(int mr_mode)
{
    struct pair pair;
    struct window window, read_only;
    ssize_t status;

    rma_pair_open(&pair, &window, mr_mode);
    read_only = window;
    CHECK_FI(fi_mr_reg(pair.b.domain, window.memory, LEN_MAX, FI_REMOTE_READ, 0, 78, 0,
                       &read_only.mr, NULL));
    read_only.key = fi_mr_key(read_only.mr);
    SETTLED(status, post_write(&pair, &read_only, PLAIN, 0, 8));
    fails(&pair, &window, status);
    POST(post_read(&pair, &read_only, PLAIN, 0, 8));
    next_ok(&pair.a, &done, FI_RMA | FI_READ);
    CHECK_FI(fi_close(&read_only.mr->fid));
    CHECK_FI(fi_mr_reg(pair.b.domain, window.memory, LEN_MAX, FI_REMOTE_WRITE, 0, 79, 0,
                       &read_only.mr, NULL));
    read_only.key = fi_mr_key(read_only.mr);
    memset(local, 0x22, 8);
    SETTLED(status, post_read(&pair, &read_only, PLAIN, 0, 8));
    fails(&pair, &window, status);
    CHECK_EQ(local[0], 0x22);
    CHECK_FI(fi_close(&read_only.mr->fid));
    works(&pair, &window);
    rma_pair_close(&pair, &window);
}

TEST(an_access_without_the_right_is_refused) { refuses_without_right(0); }
TEST(an_access_without_the_right_is_refused_at_virtual_addresses) { refuses_without_right(BASIC); }

TEST(memory_that_is_registered_no_more_is_refused)
{
    struct pair pair;
    struct window window, gone;
    ssize_t status;

    rma_pair_open(&pair, &window, 0);
    works(&pair, &window);
    memset(window.memory, 0x11, 100);
    gone = window;
    CHECK_FI(fi_mr_reg(pair.b.domain, window.memory, LEN_MAX, ACCESS, 0, 80, 0, &gone.mr, NULL));
    gone.key = fi_mr_key(gone.mr);
    POST(post_read(&pair, &gone, PLAIN, 0, 8));
    next_ok(&pair.a, &done, FI_RMA | FI_READ);
    CHECK_FI(fi_close(&gone.mr->fid));
    SETTLED(status, post_write(&pair, &gone, PLAIN, 0, 8));
    fails(&pair, &window, status);
    works(&pair, &window);
    rma_pair_close(&pair, &window);
}

TEST(a_key_that_is_taken_is_refused)
{
    struct pair pair;
    struct window window;
    struct fid_mr *mr = NULL;

    rma_pair_open(&pair, &window, 0);
    CHECK_REFUSED(fi_mr_reg(pair.b.domain, local, 100, ACCESS, 0, 77, 0, &mr, NULL), FI_ENOKEY);
    CHECK_FI(fi_mr_reg(pair.b.domain, local, 100, ACCESS, 0, 0, 0, &mr, NULL));
    CHECK_EQ(fi_mr_key(mr), 0);
    CHECK_FI(fi_close(&mr->fid));
    CHECK_FI(fi_mr_reg(pair.b.domain, local, 100, ACCESS, 0, UINT64_C(0xfedcba9876543210), 0, &mr,
                       NULL));
    CHECK(fi_mr_key(mr) == UINT64_C(0xfedcba9876543210));
    CHECK_FI(fi_close(&mr->fid));
    rma_pair_close(&pair, &window);
}

TEST(keys_of_the_provider_differ)
{
    struct pair pair;
    struct window window;
    struct fid_mr *mrs[50];

    rma_pair_open(&pair, &window, BASIC);
    if (!(pair.b.info->domain_attr->mr_mode & FI_MR_PROV_KEY)) {
        rma_pair_close(&pair, &window);
        test_skip("the provider lets applications choose");
    }
    for (int i = 0; i < 50; i++) {
        CHECK_FI(fi_mr_reg(pair.b.domain, local, 100, ACCESS, 0, 5, 0, &mrs[i], NULL));
        CHECK(fi_mr_key(mrs[i]) != FI_KEY_NOTAVAIL);
        for (int j = 0; j < i; j++)
            CHECK(fi_mr_key(mrs[i]) != fi_mr_key(mrs[j]));
    }
    for (int i = 0; i < 50; i++)
        CHECK_FI(fi_close(&mrs[i]->fid));
    rma_pair_close(&pair, &window);
}

TEST(memory_is_registered_by_regv_and_regattr)
{
    struct pair pair;
    struct window window, by_v, by_attr;
    struct iovec iov;
    struct fi_mr_attr attr = {.mr_iov = &iov,
                              .iov_count = 1,
                              .access = ACCESS,
                              .requested_key = 91,
                              .iface = FI_HMEM_SYSTEM};

    rma_pair_open(&pair, &window, 0);
    by_v = by_attr = window;
    iov = (struct iovec){window.memory + 4096, 4096};
    CHECK_FI(fi_mr_regv(pair.b.domain, &iov, 1, ACCESS, 0, 90, 0, &by_v.mr, NULL));
    by_v.key = fi_mr_key(by_v.mr);
    CHECK_FI(fi_mr_regattr(pair.b.domain, &attr, 0, &by_attr.mr));
    by_attr.key = fi_mr_key(by_attr.mr);
    CHECK_EQ(by_v.key, 90);
    CHECK_EQ(by_attr.key, 91);
    pattern_fill(local, 4096, 1);
    POST(post_write(&pair, &by_v, MESSAGE, 0, 4096));
    next_ok(&pair.a, &done, FI_RMA | FI_WRITE);
    CHECK(pattern_matches(window.memory + 4096, 4096, 1));
    memset(local, 0, 4096);
    POST(post_read(&pair, &by_attr, PLAIN, 0, 4096));
    next_ok(&pair.a, &done, FI_RMA | FI_READ);
    CHECK(pattern_matches(local, 4096, 1));
    CHECK_FI(fi_close(&by_v.mr->fid));
    CHECK_FI(fi_close(&by_attr.mr->fid));
    rma_pair_close(&pair, &window);
}

TEST(a_registration_gives_a_descriptor_that_operations_take)
{
    struct pair pair;
    struct window window;
    struct fid_mr *mr;

    rma_pair_open(&pair, &window, 0);
    CHECK_FI(
        fi_mr_reg(pair.a.domain, local, LEN_MAX, ACCESS | FI_SEND | FI_RECV, 0, 5, 0, &mr, NULL));
    pattern_fill(local, 100, 4);
    POST(
        fi_write(pair.a.ep, local, 100, fi_mr_desc(mr), pair.to_b, window.base, window.key, &done));
    next_ok(&pair.a, &done, FI_RMA | FI_WRITE);
    UNTIL(pattern_matches(window.memory, 100, 4));
    CHECK_FI(fi_close(&mr->fid));
    rma_pair_close(&pair, &window);
}

TEST(a_region_without_bytes_or_with_unknown_flags_does_no_harm)
{
    struct pair pair;
    struct window window;
    struct fid_mr *mr = NULL;
    int status;

    rma_pair_open(&pair, &window, 0);
    status = fi_mr_reg(pair.b.domain, local, 0, ACCESS, 0, 123, 0, &mr, NULL);
    if (status == 0)
        CHECK_FI(fi_close(&mr->fid));
    if (is_velo())
        CHECK(fi_mr_reg(pair.b.domain, NULL, 4096, ACCESS, 0, 124, 1ULL << 61, &mr, NULL) < 0);
    works(&pair, &window);
    rma_pair_close(&pair, &window);
}

TEST(a_message_behind_a_write_finds_it_written)
{
    struct pair pair;
    struct window window;
    char byte;

    rma_pair_open(&pair, &window, 0);
    for (uint64_t i = 0; i < 200; i++) {
        size_t len = i % 5 ? 64 : 100000;

        pattern_fill(local, len, i);
        CHECK_FI(fi_recv(pair.b.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, &got));
        POST(post_write(&pair, &window, MESSAGE, 0, len));
        next_ok(&pair.a, &done, FI_RMA | FI_WRITE);
        POST(fi_inject(pair.a.ep, &byte, 1, pair.to_b));
        next_ok(&pair.b, &got, FI_RECV);
        CHECK(pattern_matches(window.memory, len, i));
    }
    rma_pair_close(&pair, &window);
}

TEST(a_read_behind_a_write_sees_it)
{
    struct pair pair;
    struct window window;
    static uint64_t in, out;

    rma_pair_open(&pair, &window, 0);
    for (uint64_t i = 0; i < 300; i++) {
        out = i;
        POST(fi_write(pair.a.ep, &out, 8, NULL, pair.to_b, window.base, window.key, &done));
        next_ok(&pair.a, &done, FI_RMA | FI_WRITE);
        POST(fi_read(pair.a.ep, &in, 8, NULL, pair.to_b, window.base, window.key, &done));
        next_ok(&pair.a, &done, FI_RMA | FI_READ);
        CHECK_EQ(in, i);
    }
    rma_pair_close(&pair, &window);
}

static void writes_thousands(void)
{
    enum { COUNT = 5000 };
    static struct fi_context2 contexts[COUNT];
    bool seen[COUNT] = {false};
    struct pair pair;
    struct window window;

    rma_pair_open(&pair, &window, 0);
    for (uint64_t i = 0; i < COUNT; i++) {
        ((uint64_t *)local)[i] = test_mix(i);
        POST(fi_write(pair.a.ep, (uint64_t *)local + i, 8, NULL, pair.to_b, window.base + 8 * i,
                      window.key, &contexts[i]));
    }
    for (int i = 0; i < COUNT; i++) {
        struct completion completion = next(&pair.a);
        ptrdiff_t which = (struct fi_context2 *)completion.entry.op_context - contexts;

        CHECK_EQ(completion.error, 0);
        CHECK(which >= 0 && which < COUNT && !seen[which]);
        seen[which] = true;
    }
    UNTIL(memcmp(window.memory, local, 8 * COUNT) == 0);
    nothing_more(&pair.a);
    rma_pair_close(&pair, &window);
}

/* Memory whose owner has to do each operation, as where no process may reach into another. Unless
 * velo is tested, it makes no difference. */
static void asked_begin(void) { setenv("VELO_RMA_ATTACH", "0", 1); }

static void asked_end(void) { unsetenv("VELO_RMA_ATTACH"); }

TEST(thousands_of_writes_under_way_all_complete) { writes_thousands(); }

TEST(thousands_of_writes_that_their_owner_does_all_complete)
{
    asked_begin();
    writes_thousands();
    asked_end();
}

/* The owner reads its queue once. Is the write complete after that? */
static bool reads_once(struct pair *pair)
{
    struct fi_cq_tagged_entry entry;

    CHECK_REFUSED(fi_cq_read(pair->b.cq, &entry, 1), FI_EAGAIN);
    return fi_cq_read(pair->a.cq, &entry, 1) == 1;
}

TEST(an_owner_that_was_asked_looks_again_at_its_next_read)
{
    struct pair pair;
    struct window window;

    if (!is_velo())
        test_skip("when others look is theirs");
    asked_begin();
    rma_pair_open(&pair, &window, 0);
    POST(post_write(&pair, &window, PLAIN, 0, 8)); /* Until it is asked it looks seldom. */
    for (int i = 0; !reads_once(&pair); i++)
        CHECK(i < 1000);
    POST(post_write(&pair, &window, PLAIN, 0, 8));
    CHECK(reads_once(&pair));
    rma_pair_close(&pair, &window);
    asked_end();
}

TEST(an_endpoint_reaches_its_own_memory)
{
    struct pair pair;
    struct window window;
    struct fid_mr *mr;
    static unsigned char mine[100000];
    uint64_t base;

    rma_pair_open(&pair, &window, 0);
    CHECK_FI(fi_mr_reg(pair.a.domain, mine, sizeof(mine), ACCESS, 0, 4, 0, &mr, NULL));
    base = pair.a.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)mine : 0;
    pattern_fill(local, sizeof(mine), 1);
    POST(fi_write(pair.a.ep, local, sizeof(mine), NULL, pair.a_to_a, base, fi_mr_key(mr), &done));
    next_ok(&pair.a, &done, FI_RMA | FI_WRITE);
    UNTIL(pattern_matches(mine, sizeof(mine), 1));
    memset(local, 0, sizeof(mine));
    POST(fi_read(pair.a.ep, local, sizeof(mine), NULL, pair.a_to_a, base, fi_mr_key(mr), &done));
    next_ok(&pair.a, &done, FI_RMA | FI_READ);
    CHECK(pattern_matches(local, sizeof(mine), 1));
    CHECK_FI(fi_close(&mr->fid));
    rma_pair_close(&pair, &window);
}

TEST(writes_and_reads_are_counted)
{
    struct pair pair;
    struct window window;

    rma.has_counters = true;
    rma_pair_open(&pair, &window, 0);
    rma.has_counters = false;
    for (uint64_t i = 1; i <= 20; i++) {
        POST(i % 2 ? post_write(&pair, &window, PLAIN, 0, 8)
                   : post_read(&pair, &window, PLAIN, 0, 8));
        next_ok(&pair.a, &done, FI_RMA);
        UNTIL(fi_cntr_read(pair.a.done) == i);
    }
    POST(post_write(&pair, &window, INJECT, 0, 8));
    UNTIL(fi_cntr_read(pair.a.done) == 21);
    rma_pair_close(&pair, &window);
}

/* Each process writes a pattern to its neighbour and reads it back from the next but one. */
static void passes_around(struct meeting *meeting, int rank)
{
    struct side side;
    fi_addr_t addrs[3];
    struct fid_mr *mr;
    unsigned char *memory = malloc(1 << 20), *out = malloc(1 << 20);
    int left = (rank + 2) % 3, right = (rank + 1) % 3;

    side_open_among(&side, &rma, meeting, rank, addrs);
    CHECK(memory && out);
    CHECK_FI(fi_mr_reg(side.domain, memory, 1 << 20, ACCESS, 0, (uint64_t)rank, 0, &mr, NULL));
    meeting->words[rank] =
        side.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)memory : 0;
    meet(meeting);
    for (uint64_t round = 0; round < 20; round++) {
        size_t len = round % 4 ? 1000 * round : 1 << 20;

        pattern_fill(out, len, 100 * round + (uint64_t)rank);
        POST(fi_write(side.ep, out, len, NULL, addrs[right], meeting->words[right], (uint64_t)right,
                      &done));
        next_ok(&side, &done, FI_RMA | FI_WRITE);
        meet(meeting);
        UNTIL(pattern_matches(memory, len, 100 * round + (uint64_t)left));
        meet(meeting);
        POST(fi_read(side.ep, out, len, NULL, addrs[left], meeting->words[left], (uint64_t)left,
                     &done));
        next_ok(&side, &done, FI_RMA | FI_READ);
        CHECK(pattern_matches(out, len, 100 * round + (uint64_t)right));
        meet(meeting);
    }
    CHECK_FI(fi_close(&mr->fid));
    side_close(&side);
    free(memory);
    free(out);
}

TEST(processes_write_and_read_each_others_memory)
{
    rma.mr_mode = 0;
    needs(&rma);
    processes_run(3, passes_around);
}

TEST(a_key_that_is_registered_anew_reaches_the_new_memory)
{
    struct pair pair;
    struct window window, moving;
    static unsigned char places[4][4096];

    rma_pair_open(&pair, &window, 0);
    moving = window;
    for (uint64_t i = 0; i < 8; i++) {
        unsigned char *memory = places[i % 4];

        memset(places, 0, sizeof(places));
        CHECK_FI(fi_mr_reg(pair.b.domain, memory, 4096, ACCESS, 0, 5, 0, &moving.mr, NULL));
        moving.key = fi_mr_key(moving.mr);
        moving.base =
            pair.b.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)memory : 0;
        pattern_fill(local, 4096, i);
        POST(post_write(&pair, &moving, MESSAGE, 0, 4096));
        next_ok(&pair.a, &done, FI_RMA | FI_WRITE);
        CHECK(pattern_matches(memory, 4096, i));
        memset(local, 0, 4096);
        POST(post_read(&pair, &moving, PLAIN, 0, 4096));
        next_ok(&pair.a, &done, FI_RMA | FI_READ);
        CHECK(pattern_matches(local, 4096, i));
        CHECK_FI(fi_close(&moving.mr->fid));
    }
    rma_pair_close(&pair, &window);
}

TEST(an_address_taken_again_leads_to_the_memory_of_the_new_endpoint)
{
    struct pair pair;
    struct window window, of_third;
    struct side third;
    fi_addr_t first = FI_ADDR_NOTAVAIL;

    rma_pair_open(&pair, &window, 0);
    side_open(&third, &rma);
    of_third = window;
    of_third.memory = calloc(1, 4096);
    CHECK(of_third.memory);
    CHECK_FI(fi_mr_reg(third.domain, of_third.memory, 4096, ACCESS, 0, 77, 0, &of_third.mr, NULL));
    of_third.key = fi_mr_key(of_third.mr);
    if (third.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
        of_third.base = (uint64_t)(uintptr_t)of_third.memory;
    for (uint64_t i = 0; i < 6; i++) {
        struct window *target = i % 2 ? &of_third : &window;

        first = pair.to_b;
        pair.to_b = side_learn(&pair.a, i % 2 ? &third : &pair.b);
        pattern_fill(local, 64, i);
        POST(post_write(&pair, target, MESSAGE, 0, 64));
        next_ok(&pair.a, &done, FI_RMA | FI_WRITE);
        CHECK(pattern_matches(target->memory, 64, i));
        CHECK_FI(fi_av_remove(pair.a.av, &pair.to_b, 1, 0));
        pair.to_b = first;
    }
    CHECK_FI(fi_close(&of_third.mr->fid));
    side_close(&third);
    free(of_third.memory);
    rma_pair_close(&pair, &window);
}
