/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file order.h
 * @brief Every atomic access of the native engine, each named after its one use.
 *
 * No other file holds an atomic, a fence or a spin hint. Edges are numbered: R1 pairs with A1.
 * tests/mutation/README.md lists the checks of each edge. A library built with -DVELO_MUTATIONS has
 * its orderings weakened by a number, order_mutation: 10 * edge weakens the first side of an edge,
 * one more its second side, two more a third. So the checks can be seen to fail.
 *
 *   1  R1 order_publish_header   A1 order_read_header    payload before its header
 *   2  R2 order_publish_credit   A2 order_read_credit    slot reads before its reuse
 *   3  R3 order_publish_entry    A3 order_read_entry     ring set-up before its first use, and back
 *   4  order_set_bell + order_all_fence | publish, order_read_bell     parking a ring (Dekker)
 *   5  order_ring | order_take   publish before the bit, the bit before the poll
 *   6  order_set_sleeping, futex compare or order_recheck_summary | order_ring,
 *      order_read_sleeping                                sleeping (Dekker)
 *   7  order_set_waiting, order_recheck_credit | order_publish_credit, order_read_waiting (Dekker)
 *   8  R8 order_publish_key      A8 order_read_key       a registration before its key (lib/rma)
 *   9  order_enter, order_read_key | order_publish_key, order_full_fence, order_read_active
 *      taking back a registration (Dekker)
 *  10  R10 order_leave           A10 order_read_active   a requester's accesses before its leave
 *  11  R11 order_publish_slot    A11 order_read_slot     one to many: payload before its slot
 *  12  R12 order_publish_read    A12 order_read_read     one to many: reads before the reuse
 *  13  order_begin_overwrite     order_end_copy          one to many: overwritten while copied
 *  14  order_set_asleep, barrier | order_publish_tail, order_read_asleep   sleeping readers (Dekker)
 *  15  order_set_stuck, barrier | order_publish_read, order_read_stuck     a full ring (Dekker)
 *  16  order_publish_entry, order_full_fence, order_read_tail | order_publish_tail,
 *      order_full_fence, order_read_entry                joining a ring (Dekker)
 *  17  R17 order_post_status     A17 order_read_status   lib/dimmnet: words before their status
 *
 * Two waits of lib/dimmnet are edges 6 and 7 once more: a process sleeps on the count of statuses,
 * which its senders raise by order_replace_64(), and a sender sleeps on the count of those taken.
 */
#ifndef VELO_BASE_ORDER_H
#define VELO_BASE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The weakened variants exist for tests/mutation only. */
#ifdef VELO_MUTATIONS
extern int order_mutation;
#define ORDER_OF(edge, side, shipped)                                                              \
    (order_mutation == 10 * (edge) + (side) ? __ATOMIC_RELAXED : (shipped))
#else
#define ORDER_OF(edge, side, shipped) (shipped)
#endif
#define ORDER_RELEASE(edge) ORDER_OF(edge, 0, __ATOMIC_RELEASE)
#define ORDER_ACQUIRE(edge) ORDER_OF(edge, 1, __ATOMIC_ACQUIRE)
#define ORDER_SC(edge, side) ORDER_OF(edge, side, __ATOMIC_SEQ_CST)

/** A full barrier of this thread. */
static inline void order_full_fence(void)
{
#if defined(__SANITIZE_THREAD__)
    /* TSan does not know fences; an RMW on a private word is at least as strong. */
    uint32_t word = 0;
    __atomic_fetch_add(&word, 1, __ATOMIC_SEQ_CST);
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/** Tell the core that this is a spin loop. It also keeps the poller from snatching a line between
 *  two stores of its writer, which is worth a third of the latency. */
static inline void order_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

/** Ask for a line that will be written soon. A hint: no order, no effect but on time. */
static inline void order_prefetch_write(const void *line)
{
#if defined(__x86_64__) || defined(__i386__)
    /* The compiler's builtin would ask for a shared copy unless told that the core knows better. */
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
    __builtin_prefetch(line, 1, 3);
#endif
}

/* ---- edge 1: a message ------------------------------------------------------------------------ */

/** Sender: the last store of a message. Release: the payload stores come first. Pairs with A1. */
static inline void order_publish_header(uint64_t *cell, uint64_t header)
{
    __atomic_store_n(cell, header, ORDER_RELEASE(1));
}

/** Sender: no message is in this cell yet. Relaxed: R1 of the message before it comes after, and
 * the receiver looks at the cell only when it has seen that message. */
static inline void order_empty_cell(uint64_t *cell) { __atomic_store_n(cell, 0, __ATOMIC_RELAXED); }

/** Receiver: poll a header. Acquire: payload loads come after. Pairs with R1. */
static inline uint64_t order_read_header(const uint64_t *cell)
{
    return __atomic_load_n(cell, ORDER_ACQUIRE(1));
}

/** The position of a long message. Its store is between those of payload and header, so relaxed is
 *  enough. Atomic, so that the receiver checks the very value that it uses. */
static inline void order_store_position(uint64_t *word, uint64_t position)
{
    __atomic_store_n(word, position, __ATOMIC_RELAXED);
}

static inline uint64_t order_load_position(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

/* ---- edge 2: credits ------------------------------------------------------------------------- */

/** Receiver: slots, or data bytes, before `value` are free. Release: its payload loads are done.
 * Pairs with A2. Each of the two words needs it: a sender may see the newer one of one and the
 * older one of the other. */
static inline void order_publish_credit(uint64_t *consumed, uint64_t value)
{
    __atomic_store_n(consumed, value, ORDER_RELEASE(2));
}

/** Sender: refresh credits. Acquire: stores into freed slots come after. Pairs with R2. */
static inline uint64_t order_read_credit(const uint64_t *consumed)
{
    return __atomic_load_n(consumed, ORDER_ACQUIRE(2));
}

/* ---- edge 3: a connection table entry, and a port's state ------------------------------------ */

/** Hand an entry, or a port's state, to the other side. Pairs with A3. */
static inline void order_publish_entry(uint64_t *entry, uint64_t value)
{
    __atomic_store_n(entry, value, ORDER_RELEASE(3));
}

/** Read an entry or a port's state. Pairs with R3. */
static inline uint64_t order_read_entry(const uint64_t *entry)
{
    return __atomic_load_n(entry, ORDER_ACQUIRE(3));
}

/** Take over an entry that both sides may change: a sender claims a free one, a receiver refuses a
 *  ready one. Acquire on success pairs with the R3 that freed it: the ring is as its receiver left
 * it. */
static inline bool order_claim_entry(uint64_t *entry, uint64_t expected, uint64_t desired)
{
    return __atomic_compare_exchange_n(entry, &expected, desired, false, ORDER_ACQUIRE(3),
                                       __ATOMIC_RELAXED);
}

/* ---- edge 4: does the receiver poll this ring, or must the sender ring? ---------------------- */

/** Sender, after each publish. Relaxed: order_all_fence() of a parking receiver (or the sender's
 * own order_full_fence() where membarrier is missing) supplies the store-load order. */
static inline uint32_t order_read_bell(const uint32_t *bell)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* The compiler must not look before it publishes. */
    return __atomic_load_n(bell, __ATOMIC_RELAXED);
}

/** Receiver. Relaxed: to park, order_all_fence() follows; to poll, a sender that sees it late only
 * rings once in vain. */
static inline void order_set_bell(uint32_t *bell, uint32_t value)
{
    __atomic_store_n(bell, value, __ATOMIC_RELAXED);
}

/* ---- edge 5: the doorbell bits --------------------------------------------------------------- */

/** Sender: set bits. Sequentially consistent: after the publish, and before the look at `sleeping`.
 */
static inline void order_ring(uint64_t *bits, uint64_t mask)
{
    __atomic_fetch_or(bits, mask, ORDER_SC(5, 0));
}

/** The same for the summary word, which is 32 bits wide so that a receiver can sleep on it. */
static inline void order_ring_summary(uint32_t *bits, uint32_t mask)
{
    __atomic_fetch_or(bits, mask, ORDER_SC(5, 0));
}

/** Receiver: take all bits; the polls that follow see all slots that were published before the
 * bits. */
static inline uint64_t order_take(uint64_t *bits)
{
    return __atomic_exchange_n(bits, 0, ORDER_SC(5, 1));
}

static inline uint32_t order_take_summary(uint32_t *bits)
{
    return __atomic_exchange_n(bits, 0, ORDER_SC(5, 1));
}

/** Receiver: is any bit set? Relaxed: a hint; order_take_summary() orders. */
static inline uint32_t order_peek_summary(const uint32_t *bits)
{
    return __atomic_load_n(bits, __ATOMIC_RELAXED);
}

/* ---- edge 6: a sleeping receiver ------------------------------------------------------------- */

/** Receiver: about to sleep. Sequentially consistent, against order_ring_summary() and then
 *  order_read_sleeping() of the sender; the kernel compares the summary word afterwards. */
static inline void order_set_sleeping(uint32_t *sleeping, uint32_t value)
{
    __atomic_store_n(sleeping, value, ORDER_SC(6, 0));
}

/** Receiver, after order_set_sleeping(), where no futex compares: what was set before this? A
 *  relaxed look, order_peek_summary(), may come before the store where the processor keeps only the
 *  order of sequentially consistent accesses (AArch64). */
static inline uint32_t order_recheck_summary(const uint32_t *bits)
{
    return __atomic_load_n(bits, ORDER_SC(6, 2));
}

static inline uint32_t order_read_sleeping(const uint32_t *sleeping)
{
    return __atomic_load_n(sleeping, ORDER_SC(6, 1));
}

/* ---- edge 7: a sender that waits for room ---------------------------------------------------- */

/** Sender: about to sleep. Sequentially consistent, against R2, a full fence and
 *  order_read_waiting() of the receiver; order_recheck_credit() and the kernel compare afterwards.
 */
static inline void order_set_waiting(uint32_t *waiting, uint32_t value)
{
    __atomic_store_n(waiting, value, ORDER_SC(7, 0));
}

/** Receiver, after R2 and a full fence. Relaxed: the fence orders it. */
static inline uint32_t order_read_waiting(const uint32_t *waiting)
{
    return __atomic_load_n(waiting, __ATOMIC_RELAXED);
}

/** Sender, after order_set_waiting(). Also an A2. */
static inline uint64_t order_recheck_credit(const uint64_t *consumed)
{
    return __atomic_load_n(consumed, ORDER_SC(7, 1));
}

/* ---- edge 8: a registration ------------------------------------------------------------------ */

/** Owner: let requesters use the registration, or end that. Release: its fields come first. Pairs
 *  with A8. */
static inline void order_publish_key(uint64_t *key, uint64_t value)
{
    __atomic_store_n(key, value, ORDER_RELEASE(8));
}

/** Requester. Acquire: the fields are read after. Pairs with R8. */
static inline uint64_t order_read_key(const uint64_t *key)
{
    return __atomic_load_n(key, ORDER_ACQUIRE(8));
}

/** A field of a registration, behind its key. Relaxed: A8 orders it. Atomic so that the requester
 *  checks the very value that it uses. */
static inline uint64_t order_read_field(const uint64_t *field)
{
    return __atomic_load_n(field, __ATOMIC_RELAXED);
}

static inline void order_write_field(uint64_t *field, uint64_t value)
{
    __atomic_store_n(field, value, __ATOMIC_RELAXED);
}

/* ---- edges 9 and 10: a requester in a registration ------------------------------------------- */

/** Requester: about to look at a key, and to use what it names. Sequentially consistent, against
 *  the owner's order_publish_key() and full fence; order_read_key() follows. */
static inline void order_enter(uint64_t *active, uint64_t key)
{
    /* An exchange: on x86 a store and a fence in one. */
    (void)__atomic_exchange_n(active, key, ORDER_SC(9, 0));
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
#if !defined(__x86_64__) && !defined(__i386__)
    order_full_fence();
#endif
}

/** Requester: done. Release: its accesses to the memory come first. Pairs with A10. */
static inline void order_leave(uint64_t *active) { __atomic_store_n(active, 0, ORDER_RELEASE(10)); }

/** Owner, after it took the key back and a full fence. Acquire: the memory is its own again. Pairs
 *  with R10. */
static inline uint64_t order_read_active(const uint64_t *active)
{
    return __atomic_load_n(active, ORDER_ACQUIRE(10));
}

/** Make a shared word at least `value`. Sequentially consistent: a requester raises the bound up to
 *  which the owner looks for active words before it enters for the first time. */
static inline void order_raise(uint64_t *word, uint64_t value)
{
    uint64_t now = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    while (now < value && !__atomic_compare_exchange_n(word, &now, value, false, __ATOMIC_SEQ_CST,
                                                       __ATOMIC_SEQ_CST))
        ;
}

/* ---- remote memory, on behalf of the user ---------------------------------------------------- */

/** Fetch a word; add to it if it is as compared, or always. Sequentially consistent, as users of
 *  locks and counters expect; it pairs with itself. */
static inline uint64_t order_fetch_compare_add(uint64_t *word, uint64_t compare, uint64_t add,
                                               bool always)
{
    if (always)
        return __atomic_fetch_add(word, add, __ATOMIC_SEQ_CST);
    (void)__atomic_compare_exchange_n(word, &compare, compare + add, false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_SEQ_CST);
    return compare;
}

/** The present value of a word for order_replace_64() or _32(). Relaxed: they check it. */
static inline uint64_t order_peek_64(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static inline uint32_t order_peek_32(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

/** Replace a word if it is as expected; else read its value into `expected`. Sequentially
 *  consistent: see order_fetch_compare_add(). */
static inline bool order_replace_64(uint64_t *word, uint64_t *expected, uint64_t desired)
{
    return __atomic_compare_exchange_n(word, expected, desired, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

static inline bool order_replace_32(uint32_t *word, uint32_t *expected, uint32_t desired)
{
    return __atomic_compare_exchange_n(word, expected, desired, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

/** Store 1, 2, 4 or 8 aligned bytes in one piece. Release: a thread that polls such a word finds
 * all that was written before it. Pairs with the user's own read. */
static inline void order_store_piece(void *to, uint64_t value, size_t len_bytes)
{
    switch (len_bytes) {
    case 1:
        __atomic_store_n((uint8_t *)to, (uint8_t)value, __ATOMIC_RELEASE);
        break;
    case 2:
        __atomic_store_n((uint16_t *)to, (uint16_t)value, __ATOMIC_RELEASE);
        break;
    case 4:
        __atomic_store_n((uint32_t *)to, (uint32_t)value, __ATOMIC_RELEASE);
        break;
    default:
        __atomic_store_n((uint64_t *)to, value, __ATOMIC_RELEASE);
    }
}

/* ---- edges 11 to 16: one writer, many readers (lib/bcast) ------------------------------------- */

/** Writer: the last store of a message to its slot. Release: the payload comes first. Pairs with
 *  A11. */
static inline void order_publish_slot(uint64_t *header, uint64_t value)
{
    __atomic_store_n(header, value, ORDER_RELEASE(11));
}

/** Reader: poll a slot. Acquire: payload loads come after. Pairs with R11. */
static inline uint64_t order_read_slot(const uint64_t *header)
{
    return __atomic_load_n(header, ORDER_ACQUIRE(11));
}

/** Reader: messages before `value` may be overwritten. Release: its payload loads are done. Pairs
 *  with A12. */
static inline void order_publish_read(uint64_t *consumed, uint64_t value)
{
    __atomic_store_n(consumed, value, ORDER_RELEASE(12));
}

/** Writer. Acquire: stores into slots that were read come after. Pairs with R12. */
static inline uint64_t order_read_read(const uint64_t *consumed)
{
    return __atomic_load_n(consumed, ORDER_ACQUIRE(12));
}

/** Writer, about to overwrite what a slow reader may be copying: data before `data_end`, and the
 *  slot. A release fence: a reader that copied one byte of the new payload sees these two
 *  after order_end_copy(). */
static inline void order_begin_overwrite(uint64_t *overwritten, uint64_t data_end, uint64_t *header)
{
    __atomic_store_n(overwritten, data_end, __ATOMIC_RELAXED);
    __atomic_store_n(header, 0, __ATOMIC_RELAXED);
#if defined(__SANITIZE_THREAD__)
    order_full_fence();
#else
    __atomic_thread_fence(__ATOMIC_RELEASE);
#endif
}

/** Reader, after a copy: order_read_slot() and order_read_overwritten() that follow tell whether
 * the copy is whole. An acquire fence, against order_begin_overwrite(). */
static inline void order_end_copy(void)
{
#if defined(__SANITIZE_THREAD__)
    order_full_fence();
#else
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
}

/** Relaxed: order_end_copy() orders it. */
static inline uint64_t order_read_overwritten(const uint64_t *overwritten)
{
    return __atomic_load_n(overwritten, __ATOMIC_RELAXED);
}

/** Copy into, or out of, memory that is overwritten at the same time. Word by word; relaxed, since
 *  the reader throws away what order_end_copy() shows to be mixed. */
static inline void order_copy_racing_in(uint64_t *to, const void *from, size_t len_bytes)
{
    size_t at = 0;
    for (; at + 8 <= len_bytes; at += 8) {
        uint64_t word;
        __builtin_memcpy(&word, (const char *)from + at, 8);
        __atomic_store_n(to++, word, __ATOMIC_RELAXED);
    }
    if (at < len_bytes) {
        uint64_t word = 0;
        __builtin_memcpy(&word, (const char *)from + at, len_bytes - at);
        __atomic_store_n(to, word, __ATOMIC_RELAXED);
    }
}

static inline void order_copy_racing_out(void *to, const uint64_t *from, size_t len_bytes)
{
    size_t at = 0;
    for (; at + 8 <= len_bytes; at += 8) {
        uint64_t word = __atomic_load_n(from++, __ATOMIC_RELAXED);
        __builtin_memcpy((char *)to + at, &word, 8);
    }
    if (at < len_bytes) {
        uint64_t word = __atomic_load_n(from, __ATOMIC_RELAXED);
        __builtin_memcpy((char *)to + at, &word, len_bytes - at);
    }
}

/** Writer: so many messages were published. Release, and readers acquire: a reader that sees the
 *  count sees the slots. */
static inline void order_publish_tail(uint64_t *tail, uint64_t value)
{
    __atomic_store_n(tail, value, __ATOMIC_RELEASE);
}

static inline uint64_t order_read_tail(const uint64_t *tail)
{
    return __atomic_load_n(tail, __ATOMIC_ACQUIRE);
}

/** Reader: about to sleep, on the value returned. A barrier of all processes follows, then
 *  order_read_tail(), and then the kernel compares. The word is odd while any reader sleeps on it.
 */
static inline uint32_t order_set_asleep(uint32_t *asleep)
{
    return __atomic_fetch_or(asleep, 1, __ATOMIC_SEQ_CST) | 1;
}

/** Writer, after order_publish_tail(): is it odd? Relaxed: the readers' barrier orders it, or the
 *  writer's own fence. */
static inline uint32_t order_read_asleep(const uint32_t *asleep)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* The compiler must not look before it publishes. */
    return __atomic_load_n(asleep, __ATOMIC_RELAXED) & 1;
}

/** Writer, where it is odd, before it wakes all. It gets a value that it did not have before: a
 *  reader that is about to sleep on an old one does not. */
static inline void order_take_asleep(uint32_t *asleep)
{
    (void)__atomic_fetch_add(asleep, 1, __ATOMIC_SEQ_CST);
}

/** Writer: it sleeps on this reader's count, or not any more. A barrier of all processes follows,
 *  then order_read_read(), and then the kernel compares. */
static inline void order_set_stuck(uint32_t *stuck, uint32_t value)
{
    __atomic_store_n(stuck, value, __ATOMIC_SEQ_CST);
}

/** Reader, after order_publish_read(). Relaxed: the writer's barrier orders it, or the reader's own
 *  fence. */
static inline uint32_t order_read_stuck(const uint32_t *stuck)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* The compiler must not look before it publishes. */
    return __atomic_load_n(stuck, __ATOMIC_RELAXED);
}

/* ---- edge 17: statuses of many senders (lib/dimmnet) ------------------------------------------ */

/** Sender: take an entry of the ring that is empty, by putting the status there. Release: the words
 *  that it tells of come first. Pairs with A17. */
static inline bool order_post_status(uint64_t *entry, uint64_t empty, uint64_t status)
{
    return __atomic_compare_exchange_n(entry, &empty, status, false, ORDER_RELEASE(17),
                                       __ATOMIC_RELAXED);
}

/** The process that the ring belongs to, and senders that find it full. Acquire: loads of the words
 *  come after. Pairs with R17. */
static inline uint64_t order_read_status(const uint64_t *entry)
{
    return __atomic_load_n(entry, ORDER_ACQUIRE(17));
}

/** The process: an entry is empty again. Relaxed: a status is one word, and nothing else is reused
 *  with its entry. */
static inline void order_empty_status(uint64_t *entry, uint64_t empty)
{
    __atomic_store_n(entry, empty, __ATOMIC_RELAXED);
}

/** Half a word that others may change at any time. Relaxed: it is checked before it is used, and
 *  orders nothing. */
static inline uint32_t order_read_half(const void *half)
{
    typedef uint32_t __attribute__((may_alias)) aliased;
    return __atomic_load_n((const aliased *)half, __ATOMIC_RELAXED);
}

/* ---- no edge --------------------------------------------------------------------------------- */

/** Add to a counter that only this thread writes. Relaxed, and no RMW: readers want a value that is
 *  not torn, nothing more. */
static inline void order_count(uint64_t *counter, uint64_t add)
{
    __atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + add, __ATOMIC_RELAXED);
}

/** Add to a counter that others write, too. Relaxed: see order_count(). */
static inline void order_count_shared(uint64_t *counter, uint64_t add)
{
    __atomic_fetch_add(counter, add, __ATOMIC_RELAXED);
}

/** Set a word that only this thread writes and others may look at. Relaxed: see order_count(). */
static inline void order_show(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

/** Read a counter that another thread writes. Relaxed: see order_count(). */
static inline uint64_t order_counter(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/** A setting of the process, in one word. Relaxed: any thread may set it at any time, and those
 * that act by it are right with the one before, too. */
static inline void order_set(uint64_t *setting, uint64_t value)
{
    __atomic_store_n(setting, value, __ATOMIC_RELAXED);
}

static inline uint64_t order_setting(const uint64_t *setting)
{
    return __atomic_load_n(setting, __ATOMIC_RELAXED);
}

/** A request flag from a sender to the receiver, read now and then. Relaxed: nothing depends on its
 *  order. */
static inline void order_set_flag(uint32_t *flag, uint32_t value)
{
    __atomic_store_n(flag, value, __ATOMIC_RELAXED);
}

static inline uint32_t order_flag(const uint32_t *flag)
{
    return __atomic_load_n(flag, __ATOMIC_RELAXED);
}

/** Was it set? Then it is no more: an interrupt ends one wait. Two threads that take it at once may
 *  both find it set; only the one thread that waits on an object does. */
static inline bool order_take_flag(uint32_t *flag)
{
    if (__builtin_expect(!order_flag(flag), 1))
        return false;
    order_set_flag(flag, 0);
    return true;
}

/** Is this flag set, or the one behind it? The first one lies at a multiple of 8 bytes. Relaxed, as
 *  order_flag(), and only a reason to look at each. */
static inline bool order_either_flag(const uint32_t *flags)
{
    typedef uint64_t __attribute__((may_alias)) both_flags;
    return __atomic_load_n((const both_flags *)flags, __ATOMIC_RELAXED) != 0;
}

/** Is there anything in a list that handlers of this thread put things into? Relaxed: the processor
 *  keeps the order within a thread, and order_take() and order_claim_entry() that of the compiler.
 */
static inline uint64_t order_listed(const uint64_t *list)
{
    return __atomic_load_n(list, __ATOMIC_RELAXED);
}

/** Is this the only call on an object (debug builds), or in the network of a thread and its
 *  handlers? Relaxed: it only counts, and orders nothing. */
static inline bool order_use_alone(uint32_t *in_use)
{
    return __atomic_exchange_n(in_use, 1, __ATOMIC_RELAXED) == 0;
}

/* ---- string moves ---------------------------------------------------------------------------- */

/** Does this processor have string moves, fast or not? A sanitizer does not see what they touch. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define ORDER_HAS_STRING_MOVES 1

/** Copy by string moves. Their stores become visible in any order, but all of them before every
 * later store: also before the header that publishes the message. */
static inline void order_move_string(void *to, const void *from, size_t len_bytes)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(len_bytes) : : "memory");
}
#else
#define ORDER_HAS_STRING_MOVES 0
static inline void order_move_string(void *to, const void *from, size_t len_bytes)
{
    (void)to;
    (void)from;
    (void)len_bytes;
    __builtin_trap(); /* Nobody chooses them. */
}
#endif

/** Store a word's own value. Relaxed: its sender writes there only once it has read the credit that
 *  the receiver publishes after this (edge 2). */
static inline void order_store_again(uint64_t *word)
{
    __atomic_store_n(word, __atomic_load_n(word, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

#endif
