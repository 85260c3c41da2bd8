/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Atomic operations: each valid pair of operation and datatype is held against a reference that is
 * computed here.
 */
#include <complex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "side.h"

#define COUNT 4
#define BYTES_MAX (COUNT * 32)
#define ACCESS (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

static const struct side_attr atomic = {.caps = FI_MSG | FI_ATOMIC};
static const struct side_attr atomic_basic = {
    .caps = FI_MSG | FI_ATOMIC, .mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY};

static struct fi_context2 done;

struct window {
    struct fid_mr *mr;
    uint64_t base, key;
    unsigned char memory[4096] __attribute__((aligned(64)));
};

static struct window window;

static void window_open(struct side *owner, uint64_t access)
{
    int mode = owner->info->domain_attr->mr_mode;

    CHECK_FI(fi_mr_reg(owner->domain, window.memory, sizeof(window.memory), access, 0, 7, 0,
                       &window.mr, NULL));
    window.key = fi_mr_key(window.mr);
    window.base = mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)window.memory : 0;
}

static void open_both(struct pair *pair, const struct side_attr *attr)
{
    needs(attr);
    pair_open(pair, attr);
    window_open(&pair->b, ACCESS);
}

static void close_both(struct pair *pair)
{
    CHECK_FI(fi_close(&window.mr->fid));
    pair_close(pair);
}

/* --- the reference
 * ------------------------------------------------------------------------------*/

static size_t size_of(enum fi_datatype type)
{
    static const size_t sizes[] = {[FI_INT8] = 1,
                                   [FI_UINT8] = 1,
                                   [FI_INT16] = 2,
                                   [FI_UINT16] = 2,
                                   [FI_INT32] = 4,
                                   [FI_UINT32] = 4,
                                   [FI_INT64] = 8,
                                   [FI_UINT64] = 8,
                                   [FI_FLOAT] = sizeof(float),
                                   [FI_DOUBLE] = sizeof(double),
                                   [FI_FLOAT_COMPLEX] = sizeof(float complex),
                                   [FI_DOUBLE_COMPLEX] = sizeof(double complex),
                                   [FI_LONG_DOUBLE] = sizeof(long double),
                                   [FI_LONG_DOUBLE_COMPLEX] = sizeof(long double complex),
                                   [FI_INT128] = 16,
                                   [FI_UINT128] = 16};

    return (unsigned)type < ARRAY_LEN(sizes) ? sizes[type] : 0;
}

/* What each operation makes of a value; false where this type has no such operation. */
#define REAL_OPS(T)                                                                                \
    case FI_MIN:                                                                                   \
        *(T *)to = *(const T *)by < *(T *)to ? *(const T *)by : *(T *)to;                          \
        return true;                                                                               \
    case FI_MAX:                                                                                   \
        *(T *)to = *(const T *)by > *(T *)to ? *(const T *)by : *(T *)to;                          \
        return true;                                                                               \
    case FI_CSWAP_LE:                                                                              \
        if (*(const T *)with <= *(T *)to)                                                          \
            *(T *)to = *(const T *)by;                                                             \
        return true;                                                                               \
    case FI_CSWAP_LT:                                                                              \
        if (*(const T *)with < *(T *)to)                                                           \
            *(T *)to = *(const T *)by;                                                             \
        return true;                                                                               \
    case FI_CSWAP_GE:                                                                              \
        if (*(const T *)with >= *(T *)to)                                                          \
            *(T *)to = *(const T *)by;                                                             \
        return true;                                                                               \
    case FI_CSWAP_GT:                                                                              \
        if (*(const T *)with > *(T *)to)                                                           \
            *(T *)to = *(const T *)by;                                                             \
        return true;

#define COMMON_OPS(T)                                                                              \
    case FI_SUM:                                                                                   \
        *(T *)to = (T)(*(T *)to + *(const T *)by);                                                 \
        return true;                                                                               \
    case FI_PROD:                                                                                  \
        *(T *)to = (T)(*(T *)to * *(const T *)by);                                                 \
        return true;                                                                               \
    case FI_LOR:                                                                                   \
        *(T *)to = (T)(*(T *)to != 0 || *(const T *)by != 0);                                      \
        return true;                                                                               \
    case FI_LAND:                                                                                  \
        *(T *)to = (T)(*(T *)to != 0 && *(const T *)by != 0);                                      \
        return true;                                                                               \
    case FI_LXOR:                                                                                  \
        *(T *)to = (T)((*(T *)to != 0) != (*(const T *)by != 0));                                  \
        return true;                                                                               \
    case FI_ATOMIC_READ:                                                                           \
        return true;                                                                               \
    case FI_ATOMIC_WRITE:                                                                          \
        *(T *)to = *(const T *)by;                                                                 \
        return true;                                                                               \
    case FI_CSWAP:                                                                                 \
        if (*(const T *)with == *(T *)to)                                                          \
            *(T *)to = *(const T *)by;                                                             \
        return true;                                                                               \
    case FI_CSWAP_NE:                                                                              \
        if (*(const T *)with != *(T *)to)                                                          \
            *(T *)to = *(const T *)by;                                                             \
        return true;

#define INTEGER_OPS(T)                                                                             \
    case FI_BOR:                                                                                   \
        *(T *)to = (T)(*(T *)to | *(const T *)by);                                                 \
        return true;                                                                               \
    case FI_BAND:                                                                                  \
        *(T *)to = (T)(*(T *)to & *(const T *)by);                                                 \
        return true;                                                                               \
    case FI_BXOR:                                                                                  \
        *(T *)to = (T)(*(T *)to ^ *(const T *)by);                                                 \
        return true;                                                                               \
    case FI_MSWAP:                                                                                 \
        *(T *)to = (T)((*(const T *)by & *(const T *)with) | (*(T *)to & (T) ~*(const T *)with));  \
        return true;

/* The cases are no expression: nothing to put in parentheses. */
#define REFERENCE(name, T, OPS)                                                                    \
    static bool name(enum fi_op op, void *to, const void *by, const void *with)                    \
    {                                                                                              \
        switch ((int)op) {                                                                         \
            OPS /* NOLINT(bugprone-macro-parentheses) */ default : return false;                   \
        }                                                                                          \
    }

#define INTEGER(T) COMMON_OPS(T) REAL_OPS(T) INTEGER_OPS(T)
#define FLOATING(T) COMMON_OPS(T) REAL_OPS(T)

REFERENCE(of_int8, int8_t, INTEGER(int8_t))
REFERENCE(of_uint8, uint8_t, INTEGER(uint8_t))
REFERENCE(of_int16, int16_t, INTEGER(int16_t))
REFERENCE(of_uint16, uint16_t, INTEGER(uint16_t))
REFERENCE(of_int32, int32_t, INTEGER(int32_t))
REFERENCE(of_uint32, uint32_t, INTEGER(uint32_t))
REFERENCE(of_int64, int64_t, INTEGER(int64_t))
REFERENCE(of_uint64, uint64_t, INTEGER(uint64_t))
REFERENCE(of_int128, __int128, INTEGER(__int128))
REFERENCE(of_uint128, unsigned __int128, INTEGER(unsigned __int128))
REFERENCE(of_float, float, FLOATING(float))
REFERENCE(of_double, double, FLOATING(double))
REFERENCE(of_long_double, long double, FLOATING(long double))
REFERENCE(of_float_complex, float complex, COMMON_OPS(float complex))
REFERENCE(of_double_complex, double complex, COMMON_OPS(double complex))
REFERENCE(of_long_double_complex, long double complex, COMMON_OPS(long double complex))

static bool refer(enum fi_datatype type, enum fi_op op, void *to, const void *by, const void *with)
{
    static bool (*const all[])(enum fi_op, void *, const void *,
                               const void *) = {[FI_INT8] = of_int8,
                                                [FI_UINT8] = of_uint8,
                                                [FI_INT16] = of_int16,
                                                [FI_UINT16] = of_uint16,
                                                [FI_INT32] = of_int32,
                                                [FI_UINT32] = of_uint32,
                                                [FI_INT64] = of_int64,
                                                [FI_UINT64] = of_uint64,
                                                [FI_FLOAT] = of_float,
                                                [FI_DOUBLE] = of_double,
                                                [FI_FLOAT_COMPLEX] = of_float_complex,
                                                [FI_DOUBLE_COMPLEX] = of_double_complex,
                                                [FI_LONG_DOUBLE] = of_long_double,
                                                [FI_LONG_DOUBLE_COMPLEX] = of_long_double_complex,
                                                [FI_INT128] = of_int128,
                                                [FI_UINT128] = of_uint128};

    return all[type](op, to, by, with);
}

/* Values that every type holds exactly, small enough for products; some are equal to others. */
static void value_fill(enum fi_datatype type, unsigned char *buf, struct rng *rng)
{
    for (int i = 0; i < COUNT; i++) {
        int16_t value = (int16_t)((int)rng_below(rng, 5) - (rng_below(rng, 2) ? 2 : 0));
        unsigned char *at = buf + (size_t)i * size_of(type);

        memset(at, 0, size_of(type));
        switch (type) {
        case FI_FLOAT:
            *(float *)(void *)at = (float)value;
            break;
        case FI_DOUBLE:
            *(double *)(void *)at = value;
            break;
        case FI_LONG_DOUBLE:
            *(long double *)(void *)at = value;
            break;
        case FI_FLOAT_COMPLEX:
            ((float *)(void *)at)[0] = value;
            ((float *)(void *)at)[1] = 2;
            break;
        case FI_DOUBLE_COMPLEX:
            ((double *)(void *)at)[0] = value;
            ((double *)(void *)at)[1] = 2;
            break;
        case FI_LONG_DOUBLE_COMPLEX:
            ((long double *)(void *)at)[0] = value;
            ((long double *)(void *)at)[1] = 2;
            break;
        default:
            if (rng_below(rng, 2)) {
                __int128 wide = value;
                memcpy(at, &wide, size_of(type));
            } else {
                for (size_t byte = 0; byte < size_of(type); byte++)
                    at[byte] = (unsigned char)rng_next(rng);
            }
        }
    }
}

/* Floating values by value, since their padding is no part of them. */
static bool values_equal(enum fi_datatype type, const unsigned char *left,
                         const unsigned char *right)
{
    for (int i = 0; i < COUNT; i++) {
        const void *one = left + (size_t)i * size_of(type),
                   *other = right + (size_t)i * size_of(type);

        switch (type) {
#define BY_VALUE(id, T)                                                                            \
    case id:                                                                                       \
        if (*(const T *)one != *(const T *)other)                                                  \
            return false;                                                                          \
        break;
            BY_VALUE(FI_FLOAT, float)
            BY_VALUE(FI_DOUBLE, double)
            BY_VALUE(FI_LONG_DOUBLE, long double)
            BY_VALUE(FI_FLOAT_COMPLEX, float complex)
            BY_VALUE(FI_DOUBLE_COMPLEX, double complex)
            BY_VALUE(FI_LONG_DOUBLE_COMPLEX, long double complex)
        default:
            if (memcmp(one, other, size_of(type)) != 0)
                return false;
        }
    }
    return true;
}

enum kind { BASE, FETCH, COMPARE };

static bool is_valid(struct side *side, enum kind kind, enum fi_datatype type, enum fi_op op,
                     size_t *count)
{
    int status = kind == BASE    ? fi_atomicvalid(side->ep, type, op, count)
                 : kind == FETCH ? fi_fetch_atomicvalid(side->ep, type, op, count)
                                 : fi_compare_atomicvalid(side->ep, type, op, count);

    return status == 0;
}

static ssize_t post(struct pair *pair, enum kind kind, enum fi_datatype type, enum fi_op op,
                    void *by, void *with, void *old, size_t count)
{
    struct fid_ep *ep = pair->a.ep;

    if (kind == BASE)
        return fi_atomic(ep, by, count, NULL, pair->to_b, window.base, window.key, type, op, &done);
    if (kind == FETCH)
        return fi_fetch_atomic(ep, by, count, NULL, old, NULL, pair->to_b, window.base, window.key,
                               type, op, &done);
    return fi_compare_atomic(ep, by, count, NULL, with, NULL, old, NULL, pair->to_b, window.base,
                             window.key, type, op, &done);
}

static void check_pair(struct pair *pair, enum kind kind, enum fi_datatype type, enum fi_op op,
                       size_t count, struct rng *rng)
{
    unsigned char before[BYTES_MAX] __attribute__((aligned(32))) = {0};
    unsigned char after[BYTES_MAX] __attribute__((aligned(32))) = {0};
    unsigned char by[BYTES_MAX] __attribute__((aligned(32))) = {0};
    unsigned char with[BYTES_MAX] __attribute__((aligned(32))) = {0};
    unsigned char old[BYTES_MAX] __attribute__((aligned(32))) = {0};
    size_t size = size_of(type);

    count = count < COUNT ? count : COUNT;
    value_fill(type, before, rng);
    value_fill(type, by, rng);
    value_fill(type, with, rng);
    if (rng_below(rng, 2))
        memcpy(with, before, size * COUNT);
    memcpy(after, before, sizeof(after));
    memcpy(window.memory, before, sizeof(before));
    for (size_t i = 0; i < count; i++)
        CHECK(refer(type, op, after + i * size, by + i * size, with + i * size));
    POST(post(pair, kind, type, op, by, with, old, count));
    next_ok(&pair->a, &done, FI_ATOMIC);
    if (kind != BASE)
        memcpy(old + count * size, before + count * size, (COUNT - count) * size);
    UNTIL(values_equal(type, window.memory, after));
    if (kind != BASE && !values_equal(type, old, before))
        test_fail(__FILE__, __LINE__, "what was there before came back wrong: type %d op %d", type,
                  op);
}

static void checks_all(enum kind kind, const struct side_attr *attr)
{
    static const struct {
        enum fi_op first, last;
    } ops[] = {{FI_MIN, FI_ATOMIC_WRITE}, {FI_MIN, FI_ATOMIC_WRITE}, {FI_CSWAP, FI_MSWAP}};
    struct pair pair;
    struct rng rng = {test_seed()};
    size_t pairs = 0, integers = 0;

    open_both(&pair, attr);
    for (enum fi_datatype type = FI_INT8; type <= FI_UINT128; type++) {
        for (enum fi_op op = ops[kind].first; op <= ops[kind].last; op++) {
            size_t count = 0;

            if (!is_valid(&pair.a, kind, type, op, &count))
                continue;
            CHECK(count > 0);
            for (int i = 0; i < 8; i++)
                check_pair(&pair, kind, type, op, count, &rng);
            pairs++;
            integers += type == FI_UINT64 || type == FI_INT32;
        }
    }
    nothing_more(&pair.a);
    fprintf(stderr, "%zu pairs of datatype and operation\n", pairs);
    CHECK(integers >= 2);
    close_both(&pair);
}

TEST(every_valid_atomic_update_is_as_computed) { checks_all(BASE, &atomic); }
TEST(every_valid_atomic_fetch_is_as_computed) { checks_all(FETCH, &atomic); }
TEST(every_valid_atomic_comparison_is_as_computed) { checks_all(COMPARE, &atomic); }
TEST(atomics_at_virtual_addresses_are_as_computed) { checks_all(FETCH, &atomic_basic); }

TEST(the_updates_that_others_rely_on_are_valid)
{
    static const enum fi_datatype types[] = {FI_INT32, FI_UINT32, FI_INT64, FI_UINT64};
    static const enum fi_op ops[] = {FI_SUM, FI_BOR, FI_BAND,        FI_BXOR,
                                     FI_MIN, FI_MAX, FI_ATOMIC_READ, FI_ATOMIC_WRITE};
    struct pair pair;
    size_t count;

    open_both(&pair, &atomic);
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        for (size_t j = 0; j < ARRAY_LEN(ops); j++) {
            if (ops[j] != FI_ATOMIC_READ)
                CHECK(is_valid(&pair.a, BASE, types[i], ops[j], &count));
            CHECK(is_valid(&pair.a, FETCH, types[i], ops[j], &count));
        }
        CHECK(is_valid(&pair.a, COMPARE, types[i], FI_CSWAP, &count));
    }
    close_both(&pair);
}

TEST(a_pair_that_is_not_valid_is_refused)
{
    struct pair pair;
    char bytes[64] = {0};
    size_t count;

    open_both(&pair, &atomic);
    CHECK(!is_valid(&pair.a, BASE, FI_DOUBLE, FI_BAND, &count));
    CHECK(!is_valid(&pair.a, BASE, FI_UINT64, FI_CSWAP, &count));
    CHECK(!is_valid(&pair.a, COMPARE, FI_UINT64, FI_SUM, &count));
    CHECK(!is_valid(&pair.a, FETCH, (enum fi_datatype)77, FI_SUM, &count));
    CHECK(!is_valid(&pair.a, FETCH, FI_UINT64, (enum fi_op)77, &count));
    CHECK(!is_valid(&pair.a, BASE, FI_DOUBLE_COMPLEX, FI_MIN, &count));
    if (is_velo()) {
        CHECK(post(&pair, BASE, FI_DOUBLE, FI_BAND, bytes, NULL, NULL, 1) < 0);
        CHECK(post(&pair, COMPARE, FI_UINT64, FI_SUM, bytes, bytes, bytes, 1) < 0);
    }
    nothing_more(&pair.a);
    close_both(&pair);
}

TEST(more_values_than_valid_are_refused)
{
    struct pair pair;
    size_t count = 0;
    void *many;

    if (!is_velo())
        test_skip("others abort");
    open_both(&pair, &atomic);
    CHECK(is_valid(&pair.a, BASE, FI_UINT64, FI_SUM, &count));
    if (count > 1 << 20) {
        close_both(&pair);
        test_skip("any number is valid");
    }
    many = calloc(count + 1, 8);
    CHECK(many);
    CHECK(post(&pair, BASE, FI_UINT64, FI_SUM, many, NULL, NULL, count + 1) < 0);
    free(many);
    nothing_more(&pair.a);
    close_both(&pair);
}

/* What the calls that follow take: two is added to, or swapped for, the first word of b. */
static uint64_t one, two = 2, old;
static struct fi_ioc by = {&two, 1}, result = {&old, 1}, compare = {&one, 1};

static struct fi_msg_atomic message_of(struct pair *pair, struct fi_rma_ioc *remote, enum fi_op op)
{
    *remote = (struct fi_rma_ioc){window.base, 1, window.key};
    return (struct fi_msg_atomic){.msg_iov = &by,
                                  .iov_count = 1,
                                  .addr = pair->to_b,
                                  .rma_iov = remote,
                                  .rma_iov_count = 1,
                                  .datatype = FI_UINT64,
                                  .op = op,
                                  .context = &done};
}

TEST(atomic_updates_take_all_forms_of_calls)
{
    struct pair pair;
    struct fi_rma_ioc remote;
    struct fi_msg_atomic msg;
    uint64_t *value = (uint64_t *)(void *)window.memory;

    open_both(&pair, &atomic);
    msg = message_of(&pair, &remote, FI_SUM);
    *value = 10;
    POST(fi_atomicv(pair.a.ep, &by, NULL, 1, pair.to_b, window.base, window.key, FI_UINT64, FI_SUM,
                    &done));
    next_ok(&pair.a, &done, FI_ATOMIC | FI_WRITE);
    UNTIL(*value == 12);
    POST(fi_atomicmsg(pair.a.ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE));
    next_ok(&pair.a, &done, FI_ATOMIC | FI_WRITE);
    CHECK_EQ(*value, 14);
    POST(fi_inject_atomic(pair.a.ep, &two, 1, pair.to_b, window.base, window.key, FI_UINT64,
                          FI_SUM));
    UNTIL(*value == 16);
    nothing_more(&pair.a);
    close_both(&pair);
}

TEST(atomic_fetches_and_comparisons_take_all_forms_of_calls)
{
    struct pair pair;
    struct fi_rma_ioc remote;
    struct fi_msg_atomic msg;
    uint64_t *value = (uint64_t *)(void *)window.memory;

    open_both(&pair, &atomic);
    msg = message_of(&pair, &remote, FI_SUM);
    *value = 16;
    POST(fi_fetch_atomicv(pair.a.ep, &by, NULL, 1, &result, NULL, 1, pair.to_b, window.base,
                          window.key, FI_UINT64, FI_SUM, &done));
    next_ok(&pair.a, &done, FI_ATOMIC | FI_READ);
    CHECK_EQ(old, 16);
    POST(fi_fetch_atomicmsg(pair.a.ep, &msg, &result, NULL, 1, FI_COMPLETION));
    next_ok(&pair.a, &done, FI_ATOMIC | FI_READ);
    CHECK_EQ(old, 18);
    one = 20;
    POST(fi_compare_atomicv(pair.a.ep, &by, NULL, 1, &compare, NULL, 1, &result, NULL, 1, pair.to_b,
                            window.base, window.key, FI_UINT64, FI_CSWAP, &done));
    next_ok(&pair.a, &done, FI_ATOMIC | FI_READ);
    CHECK_EQ(old, 20);
    UNTIL(*value == 2);
    msg.op = FI_CSWAP;
    one = 3;
    POST(fi_compare_atomicmsg(pair.a.ep, &msg, &compare, NULL, 1, &result, NULL, 1, FI_COMPLETION));
    next_ok(&pair.a, &done, FI_ATOMIC | FI_READ);
    CHECK_EQ(old, 2);
    CHECK_EQ(*value, 2);
    nothing_more(&pair.a);
    close_both(&pair);
}

static void fails(struct pair *pair, ssize_t status)
{
    if (status == 0)
        CHECK(next(&pair->a).error != 0);
    else
        CHECK(status != -FI_EAGAIN);
    for (size_t i = 0; i < sizeof(window.memory); i++)
        CHECK_EQ(window.memory[i], 0);
}

TEST(an_atomic_with_a_wrong_key_or_outside_is_refused)
{
    struct pair pair;
    uint64_t add = 1, was = 5;
    ssize_t status;

    open_both(&pair, &atomic);
    memset(window.memory, 0, sizeof(window.memory));
    window.key ^= 2;
    while ((status = post(&pair, BASE, FI_UINT64, FI_SUM, &add, NULL, NULL, 1)) == -FI_EAGAIN)
        sides_progress();
    fails(&pair, status);
    window.key ^= 2;
    window.base += sizeof(window.memory) - 4;
    while ((status = post(&pair, FETCH, FI_UINT64, FI_SUM, &add, NULL, &was, 1)) == -FI_EAGAIN)
        sides_progress();
    fails(&pair, status);
    CHECK_EQ(was, 5);
    window.base -= sizeof(window.memory) - 4;
    CHECK_EQ(fi_atomicvalid(pair.a.ep, FI_UINT64, FI_SUM, &(size_t){0}), 0);
    POST(post(&pair, FETCH, FI_UINT64, FI_SUM, &add, NULL, &was, 1));
    next_ok(&pair.a, &done, FI_ATOMIC);
    CHECK_EQ(was, 0);
    close_both(&pair);
}

TEST(an_atomic_without_the_right_is_refused)
{
    struct pair pair;
    uint64_t add = 1;
    ssize_t status;

    needs(&atomic);
    pair_open(&pair, &atomic);
    memset(window.memory, 0, sizeof(window.memory));
    window_open(&pair.b, FI_REMOTE_READ);
    while ((status = post(&pair, BASE, FI_UINT64, FI_SUM, &add, NULL, NULL, 1)) == -FI_EAGAIN)
        sides_progress();
    fails(&pair, status);
    close_both(&pair);
}

/* All ranks add to a word of rank 0 and see each value before their own add at most once. */
static void adds(struct meeting *meeting, int rank)
{
    enum { ADDS = 2000 };
    struct side side;
    fi_addr_t addrs[3];
    static uint64_t add = 1, was;
    uint64_t last = 0;

    side_open_among(&side, &atomic, meeting, rank, addrs);
    if (rank == 0) {
        window_open(&side, ACCESS);
        meeting->words[0] = window.base;
        meeting->words[1] = window.key;
    }
    meet(meeting);
    for (int i = 0; i < ADDS; i++) {
        POST(fi_fetch_atomic(side.ep, &add, 1, NULL, &was, NULL, addrs[0], meeting->words[0],
                             meeting->words[1], FI_UINT64, FI_SUM, &done));
        next_ok(&side, &done, FI_ATOMIC);
        CHECK(i == 0 || was > last);
        last = was;
    }
    meet(meeting);
    if (rank == 0) {
        CHECK_EQ(*(uint64_t *)(void *)window.memory, 3 * ADDS);
        CHECK_FI(fi_close(&window.mr->fid));
    }
    side_close(&side);
}

TEST(adds_of_several_processes_are_none_lost)
{
    needs(&atomic);
    processes_run(3, adds);
}

/* Ranks take a lock by comparing and swapping, and count under it. */
static void locks(struct meeting *meeting, int rank)
{
    enum { TURNS = 100 };
    struct side side;
    fi_addr_t addrs[2];
    static uint64_t free_word = 0, mine, was;

    mine = (uint64_t)rank + 1;
    side_open_among(&side, &atomic, meeting, rank, addrs);
    if (rank == 0) {
        window_open(&side, ACCESS);
        meeting->words[0] = window.base;
        meeting->words[1] = window.key;
    }
    meet(meeting);
    for (int i = 0; i < TURNS; i++) {
        do {
            POST(fi_compare_atomic(side.ep, &mine, 1, NULL, &free_word, NULL, &was, NULL, addrs[0],
                                   meeting->words[0], meeting->words[1], FI_UINT64, FI_CSWAP,
                                   &done));
            next_ok(&side, &done, FI_ATOMIC);
        } while (was != 0);
        meeting->words[2]++;
        POST(fi_fetch_atomic(side.ep, &free_word, 1, NULL, &was, NULL, addrs[0], meeting->words[0],
                             meeting->words[1], FI_UINT64, FI_ATOMIC_WRITE, &done));
        next_ok(&side, &done, FI_ATOMIC);
        CHECK_EQ(was, mine);
    }
    meet(meeting);
    CHECK_EQ(meeting->words[2], 2 * TURNS);
    if (rank == 0)
        CHECK_FI(fi_close(&window.mr->fid));
    side_close(&side);
}

TEST(a_lock_made_of_compare_and_swap_excludes)
{
    needs(&atomic);
    processes_run(2, locks);
}
