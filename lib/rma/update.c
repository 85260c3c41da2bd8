/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of a word, for a requester that reaches it and for an owner that was asked. */
#include "unit.h"

size_t rma_update_bytes(uint8_t update)
{
    unsigned atomic = update & 15;
    unsigned type = update >> 4;
    bool is_float = type == VELO_RMA_TYPE_FLOAT || type == VELO_RMA_TYPE_DOUBLE;
    bool is_bitwise = atomic >= VELO_RMA_ATOMIC_AND && atomic <= VELO_RMA_ATOMIC_LXOR;
    if (atomic < VELO_RMA_ATOMIC_ADD || atomic > VELO_RMA_ATOMIC_MAX || (is_float && is_bitwise))
        return 0;
    switch (type) {
    case VELO_RMA_TYPE_INT32:
    case VELO_RMA_TYPE_UINT32:
    case VELO_RMA_TYPE_FLOAT:
        return sizeof(uint32_t);
    case VELO_RMA_TYPE_INT64:
    case VELO_RMA_TYPE_UINT64:
    case VELO_RMA_TYPE_DOUBLE:
        return sizeof(uint64_t);
    default:
        return 0;
    }
}

/* Values travel as 64 bits; those of 32 in the lower half. */
static float to_float(uint64_t bits)
{
    uint32_t half = (uint32_t)bits;
    float value;
    memcpy(&value, &half, sizeof value);
    return value;
}

static double to_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t add_words(unsigned type, uint64_t a, uint64_t b)
{
    uint64_t sum = 0;
    if (type == VELO_RMA_TYPE_FLOAT) {
        float value = to_float(a) + to_float(b);
        memcpy(&sum, &value, sizeof value);
    } else if (type == VELO_RMA_TYPE_DOUBLE) {
        double value = to_double(a) + to_double(b);
        memcpy(&sum, &value, sizeof value);
    } else {
        sum = a + b;
    }
    return sum;
}

static bool is_less(unsigned type, uint64_t a, uint64_t b)
{
    switch (type) {
    case VELO_RMA_TYPE_INT32:
        return (int32_t)a < (int32_t)b;
    case VELO_RMA_TYPE_INT64:
        return (int64_t)a < (int64_t)b;
    case VELO_RMA_TYPE_FLOAT:
        return to_float(a) < to_float(b);
    case VELO_RMA_TYPE_DOUBLE:
        return to_double(a) < to_double(b);
    default:
        return a < b;
    }
}

static uint64_t combine_words(uint8_t update, uint64_t old, uint64_t operand)
{
    unsigned type = update >> 4;
    switch (update & 15) {
    case VELO_RMA_ATOMIC_ADD:
        return add_words(type, old, operand);
    case VELO_RMA_ATOMIC_AND:
        return old & operand;
    case VELO_RMA_ATOMIC_OR:
        return old | operand;
    case VELO_RMA_ATOMIC_XOR:
        return old ^ operand;
    case VELO_RMA_ATOMIC_LAND:
        return old && operand;
    case VELO_RMA_ATOMIC_LOR:
        return old || operand;
    case VELO_RMA_ATOMIC_LXOR:
        return !old != !operand;
    case VELO_RMA_ATOMIC_MIN:
        return is_less(type, operand, old) ? operand : old;
    case VELO_RMA_ATOMIC_MAX:
        return is_less(type, old, operand) ? operand : old;
    default:
        return operand;
    }
}

static uint64_t update_64(uint64_t *word, const struct request *request)
{
    uint64_t old = request->word[0];
    if (request->op == VELO_RMA_OPERATION_COMPARE_SWAP) {
        (void)order_replace_64(word, &old, request->word[1]);
        return old;
    }
    old = order_peek_64(word);
    while (!order_replace_64(word, &old, combine_words(request->update, old, request->word[0])))
        ;
    return old;
}

static uint32_t update_32(uint32_t *word, const struct request *request)
{
    uint32_t old = (uint32_t)request->word[0];
    if (request->op == VELO_RMA_OPERATION_COMPARE_SWAP) {
        (void)order_replace_32(word, &old, (uint32_t)request->word[1]);
        return old;
    }
    old = order_peek_32(word);
    while (!order_replace_32(word, &old,
                             (uint32_t)combine_words(request->update, old, request->word[0])))
        ;
    return old;
}

static uint64_t add_at_most(uint64_t *word, const struct request *request)
{
    uint64_t old = order_peek_64(word);
    /* A word that is above is replaced by itself: then it was read at one moment, as in all
     * updates.
     */
    while (!order_replace_64(
        word, &old, (int64_t)old <= (int64_t)request->word[0] ? old + request->word[1] : old))
        ;
    return old;
}

uint64_t rma_update(char *at, const struct request *request)
{
    if (request->op == VELO_RMA_OPERATION_FETCH_COMPARE_ADD)
        return request->how == VELO_RMA_ADD_AT_MOST
                   ? add_at_most((uint64_t *)(void *)at, request)
                   : order_fetch_compare_add((uint64_t *)(void *)at, request->word[0],
                                             request->word[1], request->how != 0);
    if (request->len_bytes == sizeof(uint32_t))
        return update_32((uint32_t *)(void *)at, request);
    return update_64((uint64_t *)(void *)at, request);
}

/* Was the word added to? */
static bool is_added(const struct request *request, uint64_t old)
{
    if (request->how == VELO_RMA_ADD_AT_MOST)
        return (int64_t)old <= (int64_t)request->word[0];
    return request->how == VELO_RMA_ADD_ALWAYS || old == request->word[0];
}

uint64_t rma_update_outcome(const struct request *request, uint64_t old, uint64_t *word)
{
    const bool is_half = request->len_bytes == sizeof(uint32_t);
    const uint64_t mask = is_half ? UINT32_MAX : UINT64_MAX;
    bool is_written = true;
    uint64_t written = 0;
    if (request->op == VELO_RMA_OPERATION_FETCH_COMPARE_ADD) {
        is_written = is_added(request, old);
        written = old + request->word[1];
    } else if (request->op == VELO_RMA_OPERATION_COMPARE_SWAP) {
        is_written = ((old ^ request->word[0]) & mask) == 0;
        written = request->word[1];
    } else {
        written = combine_words(request->update, old, request->word[0]);
    }
    *word = (is_written ? written : old) & mask;
    return is_written ? request->len_bytes : 0;
}
