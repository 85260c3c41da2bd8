/* SPDX-License-Identifier: Apache-2.0 */
/* What an atomic operation makes of a word. */
#include <complex.h>

#include "provider.h"

typedef float complex float_complex;
typedef double complex double_complex;
typedef long double long_double;
typedef long double complex long_double_complex;

/* Each computes a new word of the old one, the operand and, if there is one, the word to compare.
 * The words may lie anywhere. */
typedef void (*compute_fn)(int op, const void *old, const void *operand, const void *compare,
                           void *result);

#define LOAD(type)                                                                                 \
    type t, x = 0, c = 0, r;                                                                       \
    memcpy(&t, old, sizeof t);                                                                     \
    if (operand)                                                                                   \
        memcpy(&x, operand, sizeof x);                                                             \
    if (compare)                                                                                   \
        memcpy(&c, compare, sizeof c);                                                             \
    r = t;

/* Those that all types have. `wide` is a type that does not overflow into undefined behaviour. */
#define COMMON(type, wide)                                                                         \
    case FI_SUM:                                                                                   \
        r = (type)((wide)t + (wide)x);                                                             \
        break;                                                                                     \
    case FI_PROD:                                                                                  \
        r = (type)((wide)t * (wide)x);                                                             \
        break;                                                                                     \
    case FI_LOR:                                                                                   \
        r = (type)(t != 0 || x != 0);                                                              \
        break;                                                                                     \
    case FI_LAND:                                                                                  \
        r = (type)(t != 0 && x != 0);                                                              \
        break;                                                                                     \
    case FI_LXOR:                                                                                  \
        r = (type)((t != 0) != (x != 0));                                                          \
        break;                                                                                     \
    case FI_ATOMIC_WRITE:                                                                          \
        r = x;                                                                                     \
        break;                                                                                     \
    case FI_CSWAP:                                                                                 \
        if (c == t)                                                                                \
            r = x;                                                                                 \
        break;                                                                                     \
    case FI_CSWAP_NE:                                                                              \
        if (c != t)                                                                                \
            r = x;                                                                                 \
        break;

#define ORDERED                                                                                    \
    case FI_MIN:                                                                                   \
        if (x < t)                                                                                 \
            r = x;                                                                                 \
        break;                                                                                     \
    case FI_MAX:                                                                                   \
        if (x > t)                                                                                 \
            r = x;                                                                                 \
        break;                                                                                     \
    case FI_CSWAP_LE:                                                                              \
        if (c <= t)                                                                                \
            r = x;                                                                                 \
        break;                                                                                     \
    case FI_CSWAP_LT:                                                                              \
        if (c < t)                                                                                 \
            r = x;                                                                                 \
        break;                                                                                     \
    case FI_CSWAP_GE:                                                                              \
        if (c >= t)                                                                                \
            r = x;                                                                                 \
        break;                                                                                     \
    case FI_CSWAP_GT:                                                                              \
        if (c > t)                                                                                 \
            r = x;                                                                                 \
        break;

#define BITWISE(type)                                                                              \
    case FI_BOR:                                                                                   \
        r = (type)(t | x);                                                                         \
        break;                                                                                     \
    case FI_BAND:                                                                                  \
        r = (type)(t & x);                                                                         \
        break;                                                                                     \
    case FI_BXOR:                                                                                  \
        r = (type)(t ^ x);                                                                         \
        break;                                                                                     \
    case FI_MSWAP:                                                                                 \
        r = (type)((x & c) | (t & ~c));                                                            \
        break;

#define COMPUTE(type, ...)                                                                         \
    static void compute_##type(int op, const void *old, const void *operand, const void *compare,  \
                               void *result)                                                       \
    {                                                                                              \
        LOAD(type)                                                                                 \
        switch (op) {                                                                              \
            __VA_ARGS__                                                                            \
        default:                                                                                   \
            break;                                                                                 \
        }                                                                                          \
        memcpy(result, &r, sizeof r);                                                              \
    }

#define INTEGER(type) COMPUTE(type, COMMON(type, uint64_t) ORDERED BITWISE(type))
#define REAL(type) COMPUTE(type, COMMON(type, type) ORDERED)
#define COMPLEX(type) COMPUTE(type, COMMON(type, type))

INTEGER(int8_t)
INTEGER(uint8_t)
INTEGER(int16_t)
INTEGER(uint16_t)
INTEGER(int32_t)
INTEGER(uint32_t)
INTEGER(int64_t)
INTEGER(uint64_t)
REAL(float)
REAL(double)
REAL(long_double)
COMPLEX(float_complex)
COMPLEX(double_complex)
COMPLEX(long_double_complex)

enum family { FAMILY_INTEGER, FAMILY_REAL, FAMILY_COMPLEX };

static const struct {
    compute_fn compute;
    size_t bytes;
    enum family family;
} types[] = {
    [FI_INT8] = {compute_int8_t, 1, FAMILY_INTEGER},
    [FI_UINT8] = {compute_uint8_t, 1, FAMILY_INTEGER},
    [FI_INT16] = {compute_int16_t, 2, FAMILY_INTEGER},
    [FI_UINT16] = {compute_uint16_t, 2, FAMILY_INTEGER},
    [FI_INT32] = {compute_int32_t, 4, FAMILY_INTEGER},
    [FI_UINT32] = {compute_uint32_t, 4, FAMILY_INTEGER},
    [FI_INT64] = {compute_int64_t, 8, FAMILY_INTEGER},
    [FI_UINT64] = {compute_uint64_t, 8, FAMILY_INTEGER},
    [FI_FLOAT] = {compute_float, sizeof(float), FAMILY_REAL},
    [FI_DOUBLE] = {compute_double, sizeof(double), FAMILY_REAL},
    [FI_FLOAT_COMPLEX] = {compute_float_complex, sizeof(float_complex), FAMILY_COMPLEX},
    [FI_DOUBLE_COMPLEX] = {compute_double_complex, sizeof(double_complex), FAMILY_COMPLEX},
    [FI_LONG_DOUBLE] = {compute_long_double, sizeof(long_double), FAMILY_REAL},
    [FI_LONG_DOUBLE_COMPLEX] = {compute_long_double_complex, sizeof(long_double_complex),
                                FAMILY_COMPLEX},
};

#define TYPES ((int)(sizeof types / sizeof types[0]))

size_t vf_datatype_bytes(int datatype)
{
    return datatype >= 0 && datatype < TYPES ? types[datatype].bytes : 0;
}

static bool is_of_family(int op, enum family family)
{
    switch (op) {
    case FI_BOR:
    case FI_BAND:
    case FI_BXOR:
    case FI_MSWAP:
        return family == FAMILY_INTEGER;
    case FI_MIN:
    case FI_MAX:
    case FI_CSWAP_LE:
    case FI_CSWAP_LT:
    case FI_CSWAP_GE:
    case FI_CSWAP_GT:
        return family != FAMILY_COMPLEX;
    default:
        return true;
    }
}

bool vf_compute_is_valid(int datatype, int op, int wants)
{
    if (vf_datatype_bytes(datatype) == 0 || op < 0 || op > FI_MSWAP || wants < VF_WANTS_NOTHING ||
        wants > VF_WANTS_COMPARE || !is_of_family(op, types[datatype].family))
        return false;
    if (op >= FI_CSWAP)
        return wants == VF_WANTS_COMPARE;
    if (op == FI_ATOMIC_READ)
        return wants == VF_WANTS_OLD;
    return wants != VF_WANTS_COMPARE;
}

/* Replace a word atomically to whatever else in this process does to it. All other processes send
 * their operations here. */
#define UPDATE(type)                                                                               \
    do {                                                                                           \
        type before, after;                                                                        \
        before = __atomic_load_n((type *)target, __ATOMIC_RELAXED);                                \
        do                                                                                         \
            compute(op, &before, operand, compare, &after);                                        \
        while (!__atomic_compare_exchange_n((type *)target, &before, after, false,                 \
                                            __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));                  \
        if (old)                                                                                   \
            memcpy(old, &before, sizeof before);                                                   \
    } while (0)

static void update(compute_fn compute, int op, void *target, const void *operand,
                   const void *compare, void *old, size_t bytes)
{
    char old_word[sizeof(long_double_complex)];
    char new_word[sizeof(long_double_complex)];
    bool is_aligned = (uintptr_t)target % bytes == 0;
    if (is_aligned && bytes == 8) {
        UPDATE(uint64_t);
    } else if (is_aligned && bytes == 4) {
        UPDATE(uint32_t);
    } else if (is_aligned && bytes == 2) {
        UPDATE(uint16_t);
    } else if (bytes == 1) {
        UPDATE(uint8_t);
    } else {
        /* No processor has it in one instruction; those that come here take turns all the same. */
        memcpy(old_word, target, bytes);
        compute(op, old_word, operand, compare, new_word);
        memcpy(target, new_word, bytes);
        if (old)
            memcpy(old, old_word, bytes);
    }
}

void vf_compute(int op, int datatype, void *target, const void *operand, const void *compare,
                void *old, size_t count)
{
    size_t bytes = types[datatype].bytes;
    bool has_operand = op != FI_ATOMIC_READ;
    bool has_compare = op >= FI_CSWAP;
    for (size_t i = 0; i < count; i++) {
        size_t at = i * bytes;
        update(types[datatype].compute, op, (char *)target + at,
               has_operand ? (const char *)operand + at : NULL,
               has_compare ? (const char *)compare + at : NULL, old ? (char *)old + at : NULL,
               bytes);
    }
}
