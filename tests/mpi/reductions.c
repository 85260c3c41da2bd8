/* SPDX-License-Identifier: Apache-2.0 */
/* Reduce and allreduce: every type with every predefined operation, and operations of users. */
#include "comms.h"

#include <stdlib.h>
#include <string.h>

#define COUNT_MAX 4104
#define LENGTHS 6

enum kind { INTEGER = 1, FLOAT = 2, COMPLEX = 4, LOGICAL = 8, BYTES = 16, PAIR = 32 };

static const struct {
    MPI_Op op;
    int kinds;
} operations[] = {
    {MPI_MAX, INTEGER | FLOAT},
    {MPI_MIN, INTEGER | FLOAT},
    {MPI_SUM, INTEGER | FLOAT | COMPLEX},
    {MPI_PROD, INTEGER | FLOAT | COMPLEX},
    {MPI_LAND, INTEGER | LOGICAL},
    {MPI_LOR, INTEGER | LOGICAL},
    {MPI_LXOR, INTEGER | LOGICAL},
    {MPI_BAND, INTEGER | BYTES},
    {MPI_BOR, INTEGER | BYTES},
    {MPI_BXOR, INTEGER | BYTES},
    {MPI_MAXLOC, PAIR},
    {MPI_MINLOC, PAIR},
};

/* What an element consists of: `value` bytes of one kind of number, and for a pair an int behind.
 */
static const struct {
    MPI_Datatype type;
    int kind;
    int value;
} types[] = {
    {MPI_INT8_T, INTEGER, 1},
    {MPI_UINT8_T, INTEGER, 1},
    {MPI_SHORT, INTEGER, 2},
    {MPI_UINT16_T, INTEGER, 2},
    {MPI_INT, INTEGER, 4},
    {MPI_UNSIGNED, INTEGER, 4},
    {MPI_LONG_LONG, INTEGER, 8},
    {MPI_UINT64_T, INTEGER, 8},
    {MPI_AINT, INTEGER, 8},
    {MPI_FLOAT, FLOAT, 4},
    {MPI_DOUBLE, FLOAT, 8},
    {MPI_LONG_DOUBLE, FLOAT, 16},
    {MPI_C_FLOAT_COMPLEX, COMPLEX, 4},
    {MPI_C_DOUBLE_COMPLEX, COMPLEX, 8},
    {MPI_C_LONG_DOUBLE_COMPLEX, COMPLEX, 16},
    {MPI_C_BOOL, LOGICAL, 1},
    {MPI_BYTE, BYTES, 1},
    {MPI_FLOAT_INT, PAIR, 4},
    {MPI_DOUBLE_INT, PAIR, 8},
    {MPI_LONG_INT, PAIR, 8},
    {MPI_SHORT_INT, PAIR, 2},
    {MPI_2INT, PAIR, 4},
    {MPI_LONG_DOUBLE_INT, PAIR, 16},
};

static bool is_whole(MPI_Datatype type)
{
    return type == MPI_LONG_INT || type == MPI_SHORT_INT || type == MPI_2INT;
}

static void put_number(uint8_t *to, int bytes, bool whole, int number)
{
    float single = (float)number;
    double twice = number;
    long double longest = number;
    long long integer = number;
    if (whole)
        memcpy(to, &integer, (size_t)bytes);
    else if (bytes == 4)
        memcpy(to, &single, sizeof single);
    else if (bytes == 8)
        memcpy(to, &twice, sizeof twice);
    else
        memcpy(to, &longest, 10); /* The rest of it means nothing. */
}

/* An element of a rank; small numbers, so that no order of additions rounds. */
static void put_element(uint8_t *to, size_t which, uint32_t chance)
{
    int bytes = types[which].value, number = (int)(chance % 3) - 1;
    switch (types[which].kind) {
    case FLOAT:
        put_number(to, bytes, false, number);
        break;
    case COMPLEX:
        put_number(to, bytes, false, number);
        put_number(to + bytes, bytes, false, (int)(chance / 3 % 3) - 1);
        break;
    case PAIR:
        put_number(to, bytes, is_whole(types[which].type), number);
        MPI_Aint index = bytes == 2 ? 4 : bytes;
        memcpy(to + index, &(int){(int)(chance / 9 % 5)}, sizeof(int));
        break;
    case LOGICAL:
        *to = chance & 1;
        break;
    case INTEGER:
        /* Open MPI's additions of short ones stop at the largest, so that order matters. */
        if (bytes <= 2) {
            *to = (uint8_t)(chance % (bytes == 1 ? 2 : 3));
            break;
        }
        __attribute__((fallthrough));
    default:
        for (int i = 0; i < bytes; i++)
            to[i] = (uint8_t)(chance >> i % 4 * 8);
    }
}

static uint32_t round_number;

static void put_buffer(uint8_t *to, size_t which, size_t stride, int count, int from)
{
    memset(to, 0, stride * (size_t)count);
    for (int i = 0; i < count; i++)
        put_element(to + stride * (size_t)i, which,
                    mixed(round_number, (uint32_t)from, (uint32_t)i));
}

/* What all ranks together give, computed by this one alone. */
static void put_expected(uint8_t *to, uint8_t *other, size_t which, size_t stride, int count,
                         MPI_Op op, int size)
{
    put_buffer(to, which, stride, count, size - 1);
    for (int from = size - 2; from >= 0; from--) {
        put_buffer(other, which, stride, count, from);
        MPI_Reduce_local(other, to, count, types[which].type, op);
    }
}

static uint8_t *expected, *in, *out;

/* The order of multiplications decides about the sign of zero. */
static void forget_sign_of_zero(uint8_t *data, size_t len_bytes, size_t which)
{
    size_t bytes = (size_t)types[which].value, significant = bytes > 10 ? 10 : bytes;
    static const uint8_t zero[16];
    if (types[which].kind != FLOAT && types[which].kind != COMPLEX)
        return;
    for (size_t at = 0; at < len_bytes; at += bytes)
        if (memcmp(data + at, zero, significant - 1) == 0 && data[at + significant - 1] == 0x80)
            data[at + significant - 1] = 0;
}

/* Is a result what it should be? */
static void compare(uint8_t *found, uint8_t *want, size_t len_bytes, size_t which, MPI_Op op,
                    int count)
{
    forget_sign_of_zero(found, len_bytes, which);
    forget_sign_of_zero(want, len_bytes, which);
    if (memcmp(found, want, len_bytes) == 0)
        return;
    int number = 0, len;
    char name[MPI_MAX_OBJECT_NAME];
    while (operations[number].op != op)
        number++;
    MPI_Type_get_name(types[which].type, name, &len);
    mpi_test_fail(__FILE__, __LINE__, "%d elements of %s are wrong after operation %d", count, name,
                  number);
}

static void check_reduction(MPI_Comm comm, int own, int size, size_t which, MPI_Op op, int count)
{
    MPI_Aint low, stride;
    MPI_Type_get_extent(types[which].type, &low, &stride);
    size_t len_bytes = (size_t)stride * (size_t)count;
    round_number++;
    put_expected(expected, in, which, (size_t)stride, count, op, size);
    put_buffer(in, which, (size_t)stride, count, own);
    memset(out, 0, len_bytes);
    MPI_Allreduce(in, out, count, types[which].type, op, comm);
    compare(out, expected, len_bytes, which, op, count);
    memcpy(out, in, len_bytes);
    MPI_Allreduce(MPI_IN_PLACE, out, count, types[which].type, op, comm);
    compare(out, expected, len_bytes, which, op, count);

    int root = (int)(round_number % (uint32_t)size);
    memset(out, 0, len_bytes);
    MPI_Reduce(in, own == root ? out : NULL, count, types[which].type, op, root, comm);
    if (own == root)
        compare(out, expected, len_bytes, which, op, count);
    memcpy(out, in, len_bytes);
    MPI_Reduce(own == root ? MPI_IN_PLACE : out, out, count, types[which].type, op, root, comm);
    compare(out, own == root ? expected : in, len_bytes, which, op, count);
}

static void check_type(MPI_Comm comm, int own, int size, size_t which)
{
    int bytes;
    MPI_Type_size(types[which].type, &bytes);
    const int counts[LENGTHS] = {1, 3, 56 / bytes, 56 / bytes + 1, 4096 / bytes, 4096 / bytes + 1};
    for (size_t i = 0; i < ARRAY_LEN(operations); i++)
        for (int j = 0; j < LENGTHS && (operations[i].kinds & types[which].kind) != 0; j++)
            check_reduction(comm, own, size, which, operations[i].op, counts[j]);
}

static void check_comm(MPI_Comm comm, int own, int size)
{
    expected = must_alloc(COUNT_MAX * 32);
    in = must_alloc(COUNT_MAX * 32);
    out = must_alloc(COUNT_MAX * 32);
    int before = mapped_memories();
    round_number = (uint32_t)size * 100000;
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        check_type(comm, own, size, i);
    CHECK_EQ(mapped_memories(), before + (size > 1));
    free(expected);
    free(in);
    free(out);
}

TEST(all_types_are_reduced_by_all_operations, 8) { each_comm(check_comm); }

/* ---- operations of users --------------------------------------------------------------------- */

/* Matrices of 2 x 2 numbers, multiplied: it matters who comes first. */
struct matrix {
    uint32_t a[4];
};

static void multiply(const uint32_t *left, const uint32_t *right, uint32_t *to)
{
    struct matrix product = {
        {left[0] * right[0] + left[1] * right[2], left[0] * right[1] + left[1] * right[3],
         left[2] * right[0] + left[3] * right[2], left[2] * right[1] + left[3] * right[3]}};
    memcpy(to, product.a, sizeof product);
}

/* It spoils what it should only read: nobody must see that. */
static void multiply_all(void *left, void *right, int *count, MPI_Datatype *type)
{
    (void)type;
    struct matrix *lefts = left, *rights = right;
    for (int i = 0; i < *count; i++) {
        multiply(lefts[i].a, rights[i].a, rights[i].a);
        if (*count <= 256) /* Open MPI's own functions show it. */
            memset(&lefts[i], 0xee, sizeof lefts[i]);
    }
}

#define MATRICES_MAX 257
/* The address that MPI gets lies so far before what it names. */
#define APART (1 << 20)

/* With numbers before, between and behind those that are part of the type. */
struct spread {
    uint32_t before[2];
    uint32_t a[2];
    uint32_t between;
    uint32_t b[2];
    uint32_t behind[2];
};

static void multiply_spread(void *left, void *right, int *count, MPI_Datatype *type)
{
    (void)type;
    struct spread *lefts = (struct spread *)(void *)((char *)left + APART);
    struct spread *rights = (struct spread *)(void *)((char *)right + APART);
    for (int i = 0; i < *count; i++) {
        uint32_t l[4] = {lefts[i].a[0], lefts[i].a[1], lefts[i].b[0], lefts[i].b[1]};
        uint32_t r[4] = {rights[i].a[0], rights[i].a[1], rights[i].b[0], rights[i].b[1]};
        multiply(l, r, r);
        memcpy(rights[i].a, r, sizeof rights[i].a);
        memcpy(rights[i].b, r + 2, sizeof rights[i].b);
    }
}

static struct spread *must_alloc_spread(void)
{
    char *memory = must_alloc(APART + sizeof(struct spread) * MATRICES_MAX);
    return (struct spread *)(void *)(memory + APART);
}

static void free_spread(struct spread *at) { free((char *)at - APART); }

static char *address_of(struct spread *at) { return (char *)at - APART; }

/* The type of struct spread. */
static MPI_Datatype spread_type(void)
{
    MPI_Datatype numbers, type;
    int lengths[2] = {2, 2};
    MPI_Aint at[2] = {APART + 8, APART + 20};
    MPI_Type_create_hindexed(2, lengths, at, MPI_UINT32_T, &numbers);
    MPI_Type_create_resized(numbers, APART, sizeof(struct spread), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&numbers);
    return type;
}

static struct matrix matrix_of(int from, int at)
{
    struct matrix found;
    for (uint32_t i = 0; i < 4; i++)
        found.a[i] = mixed(round_number, (uint32_t)from, (uint32_t)at * 4 + i);
    return found;
}

static struct matrix product_of(int size, int at)
{
    struct matrix found = matrix_of(0, at);
    for (int from = 1; from < size; from++) {
        struct matrix next = matrix_of(from, at);
        multiply(found.a, next.a, found.a);
    }
    return found;
}

static MPI_Op matrix_op, spread_op;
static MPI_Datatype matrix, spread;

static void check_matrices(MPI_Comm comm, int own, int size, int count)
{
    static struct matrix mine[MATRICES_MAX], products[MATRICES_MAX];
    int root = (int)(++round_number % (uint32_t)size);
    for (int i = 0; i < count; i++)
        mine[i] = matrix_of(own, i);
    MPI_Allreduce(mine, products, count, matrix, matrix_op, comm);
    for (int i = 0; i < count; i++) {
        struct matrix wanted = product_of(size, i), unchanged = matrix_of(own, i);
        CHECK(memcmp(&products[i], &wanted, sizeof wanted) == 0);
        CHECK(memcmp(&mine[i], &unchanged, sizeof unchanged) == 0);
    }
    MPI_Reduce(own == root ? MPI_IN_PLACE : mine, own == root ? mine : NULL, count, matrix,
               matrix_op, root, comm);
    for (int i = 0; i < count; i++) {
        struct matrix wanted = own == root ? product_of(size, i) : matrix_of(own, i);
        CHECK(memcmp(&mine[i], &wanted, sizeof wanted) == 0);
    }
}

static void put_spread(struct spread *to, const struct matrix *from)
{
    memcpy(to->a, from->a, sizeof to->a);
    memcpy(to->b, from->a + 2, sizeof to->b);
}

static void check_spread(MPI_Comm comm, int own, int size, int count)
{
    struct spread *mine = must_alloc_spread(), *products = must_alloc_spread();
    struct spread *wanted = must_alloc_spread();
    size_t len_bytes = sizeof(struct spread) * MATRICES_MAX;
    int root = (int)(++round_number % (uint32_t)size);
    memset(mine, 0x11, len_bytes);
    memset(products, 0x22, len_bytes);
    memcpy(wanted, products, len_bytes);
    for (int i = 0; i < count; i++) {
        struct matrix one = matrix_of(own, i), all = product_of(size, i);
        put_spread(&mine[i], &one);
        put_spread(&wanted[i], &all);
    }
    MPI_Allreduce(address_of(mine), address_of(products), count, spread, spread_op, comm);
    CHECK(memcmp(products, wanted, len_bytes) == 0); /* What is no part of the type, too. */
    memset(products, 0x22, len_bytes);
    MPI_Reduce(address_of(mine), own == root ? address_of(products) : NULL, count, spread,
               spread_op, root, comm);
    if (own == root)
        CHECK(memcmp(products, wanted, len_bytes) == 0);
    free_spread(mine);
    free_spread(products);
    free_spread(wanted);
}

static void check_user_operations(MPI_Comm comm, int own, int size)
{
    static const int counts[] = {1, 3, 4, 5, 64, 255, 256, 257};
    round_number = (uint32_t)size * 100000;
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        check_matrices(comm, own, size, counts[i]);
        check_spread(comm, own, size, counts[i]);
    }
}

TEST(operations_of_users_keep_the_order_of_ranks, 8)
{
    MPI_Type_contiguous(4, MPI_UINT32_T, &matrix);
    MPI_Type_commit(&matrix);
    spread = spread_type();
    MPI_Op_create(multiply_all, 0, &matrix_op);
    MPI_Op_create(multiply_spread, 0, &spread_op);
    each_comm(check_user_operations);
    MPI_Op_free(&matrix_op);
    MPI_Op_free(&spread_op);
    MPI_Type_free(&matrix);
    MPI_Type_free(&spread);
}
