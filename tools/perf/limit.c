/* SPDX-License-Identifier: Apache-2.0 */
#include "limit.h"

#include "clock.h"
#include "fail.h"
#include "limit_word.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WARM_ROUND_TRIPS 16u
#define COPY_ROUNDS_MAX 64u

const unsigned limit_ring_slots[LIMIT_RINGS] = {64, 8, 1};

static void *map_shared(size_t size_bytes)
{
    void *area = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return area == MAP_FAILED ? NULL : area;
}

struct limit_area *limit_area_new(void) { return map_shared(sizeof(struct limit_area)); }

void limit_attach(struct limit *limit, struct limit_area *area, unsigned side)
{
    *limit = (struct limit){.area = area, .side = side};
    if (side == 0) {
        limit->local = aligned_alloc(4096, LIMIT_COPY_BYTES_MAX);
        if (!limit->local) {
            rank_fail(EXIT_FAILED, "out of memory for the copy reference");
        }
        memset(limit->local, 1, LIMIT_COPY_BYTES_MAX);
    }
}

static void require(bool same, const char *what)
{
    if (!same) {
        rank_fail(EXIT_VERIFY,
                  "the bare %s delivered a wrong word: this machine's memory is broken,"
                  " or velo-perf is",
                  what);
    }
}

/* --- one line -------------------------------------------------------------------------------- */

static inline __attribute__((always_inline)) void
pingpong(_Atomic uint64_t *word, uint64_t *seq, unsigned side, unsigned round_trips, bool pause)
{
    uint64_t at = *seq;
    for (unsigned i = 0; i < round_trips; i++, at += 2) {
        if (side == 0) {
            publish(word, at + 1);
            await(word, at + 2, pause);
        } else {
            await(word, at + 1, pause);
            publish(word, at + 2);
        }
    }
    *seq = at;
}

double limit_pingpong_half_rtt_ns(struct limit *limit, unsigned round_trips, bool pause)
{
    _Atomic uint64_t *word = &limit->area->pingpong.word[0];
    pingpong(word, &limit->pingpong_seq, limit->side, WARM_ROUND_TRIPS, false);
    uint64_t begin = now_ns();
    if (pause) {
        pingpong(word, &limit->pingpong_seq, limit->side, round_trips, true);
    } else {
        pingpong(word, &limit->pingpong_seq, limit->side, round_trips, false);
    }
    return (double)(now_ns() - begin) / 2.0 / round_trips;
}

/* --- a bare ring ----------------------------------------------------------------------------- */

static inline void ring_send(struct line *slots, unsigned mask, uint64_t *pos)
{
    struct line *slot = &slots[*pos & mask];
    /* Relaxed: the release of the sequence word orders it. */
    atomic_store_explicit(&slot->word[1], ~*pos, memory_order_relaxed);
    publish(&slot->word[0], ++*pos);
}

static inline __attribute__((always_inline)) void ring_recv(struct line *slots, unsigned mask,
                                                            uint64_t *pos, bool pause)
{
    struct line *slot = &slots[*pos & mask];
    await(&slot->word[0], *pos + 1, pause);
    /* Relaxed: the acquire of the sequence word orders it. */
    uint64_t payload = atomic_load_explicit(&slot->word[1], memory_order_relaxed);
    require(payload == ~*pos, "ring");
    ++*pos;
}

static inline __attribute__((always_inline)) void
ring_round_trips(struct limit *limit, unsigned ring, unsigned round_trips, bool pause)
{
    unsigned mask = limit_ring_slots[ring] - 1;
    struct line *tx = limit->area->ring[ring][limit->side];
    struct line *rx = limit->area->ring[ring][1 - limit->side];
    for (unsigned i = 0; i < round_trips; i++) {
        if (limit->side == 0) {
            ring_send(tx, mask, &limit->ring_tx[ring]);
            ring_recv(rx, mask, &limit->ring_rx[ring], pause);
        } else {
            ring_recv(rx, mask, &limit->ring_rx[ring], pause);
            ring_send(tx, mask, &limit->ring_tx[ring]);
        }
    }
}

double limit_ring_half_rtt_ns(struct limit *limit, unsigned ring, unsigned round_trips, bool pause)
{
    ring_round_trips(limit, ring, WARM_ROUND_TRIPS, true);
    uint64_t begin = now_ns();
    if (pause) {
        ring_round_trips(limit, ring, round_trips, true);
    } else {
        ring_round_trips(limit, ring, round_trips, false);
    }
    return (double)(now_ns() - begin) / 2.0 / round_trips;
}

/* --- a bare stream --------------------------------------------------------------------------- */

static inline __attribute__((always_inline)) void stream_send(struct limit *limit, unsigned msgs,
                                                              unsigned words)
{
    struct limit_area *area = limit->area;
    uint64_t pos = limit->stream_pos;
    for (uint64_t end = pos + msgs; pos != end; pos++) {
        while (pos - limit->stream_credit >= LIMIT_STREAM_SLOTS) {
            /* Acquire pairs with the publish in stream_recv(): the slot has been read. */
            limit->stream_credit =
                atomic_load_explicit(&area->stream_credit.word[0], memory_order_acquire);
            cpu_pause();
        }
        struct line *slot = &area->stream[pos % LIMIT_STREAM_SLOTS];
        for (unsigned k = 1; k <= words; k++) {
            atomic_store_explicit(&slot->word[k], pos ^ k, memory_order_relaxed);
        }
        publish(&slot->word[0], pos + 1);
    }
    limit->stream_pos = pos;
    await(&area->stream_credit.word[0], pos, true);
    limit->stream_credit = pos;
}

static inline __attribute__((always_inline)) void stream_recv(struct limit *limit, unsigned msgs,
                                                              unsigned words, bool pause)
{
    struct limit_area *area = limit->area;
    uint64_t pos = limit->stream_pos;
    for (uint64_t end = pos + msgs; pos != end;) {
        struct line *slot = &area->stream[pos % LIMIT_STREAM_SLOTS];
        await(&slot->word[0], pos + 1, pause);
        uint64_t wrong = 0;
        for (unsigned k = 1; k <= words; k++) {
            wrong |= atomic_load_explicit(&slot->word[k], memory_order_relaxed) ^ pos ^ k;
        }
        require(!wrong, "stream");
        if (++pos % (LIMIT_STREAM_SLOTS / 4) == 0) {
            publish(&area->stream_credit.word[0], pos);
        }
    }
    publish(&area->stream_credit.word[0], pos);
    limit->stream_pos = pos;
}

/* One copy of the loops for each payload, so that a short one pays for no loop. */
static void stream_words(struct limit *limit, unsigned msgs, unsigned words, bool pause)
{
    if (limit->side == 1) {
        words == 1 ? stream_send(limit, msgs, 1) : stream_send(limit, msgs, 7);
    } else if (pause) {
        words == 1 ? stream_recv(limit, msgs, 1, true) : stream_recv(limit, msgs, 7, true);
    } else {
        words == 1 ? stream_recv(limit, msgs, 1, false) : stream_recv(limit, msgs, 7, false);
    }
}

double limit_stream_msgs_per_s(struct limit *limit, unsigned msgs, unsigned payload_words,
                               bool pause)
{
    pingpong(&limit->area->handover.word[0], &limit->handover_seq, limit->side, 1, true);
    uint64_t begin = now_ns();
    stream_words(limit, msgs, payload_words, pause);
    return msgs * 1e9 / (double)(now_ns() - begin);
}

/* --- a copy from the peer's cache ------------------------------------------------------------ */

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The cost of reading the clock twice; at 4 KB it would be a quarter of the figure. */
static uint64_t clock_cost_ns(void)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 32; i++) {
        uint64_t begin = now_ns();
        uint64_t cost = now_ns() - begin;
        best = cost < best ? cost : best;
    }
    return best;
}

static uint64_t copy_once_ns(struct limit *limit, size_t size_bytes, uint64_t stamp)
{
    const unsigned char *from = limit->area->copy;
    uint64_t begin = now_ns();
    memcpy(limit->local, from, size_bytes);
    uint64_t time_ns = now_ns() - begin;
    for (size_t at = 0; at < size_bytes; at += LINE_BYTES) {
        uint64_t word;
        memcpy(&word, limit->local + at, sizeof word);
        require(word == stamp, "copy");
    }
    return time_ns;
}

static void copy_write(struct limit *limit, size_t size_bytes, uint64_t stamp)
{
    for (size_t at = 0; at < size_bytes; at += sizeof stamp) {
        memcpy(limit->area->copy + at, &stamp, sizeof stamp);
    }
}

double limit_copy_bytes_per_s(struct limit *limit, size_t size_bytes, unsigned rounds)
{
    uint64_t time_ns[COPY_ROUNDS_MAX];
    _Atomic uint64_t *turn = &limit->area->handover.word[0];
    uint64_t cost_ns = clock_cost_ns();
    rounds = rounds < COPY_ROUNDS_MAX ? rounds : COPY_ROUNDS_MAX;
    for (unsigned i = 0; i < rounds; i++) {
        uint64_t at = limit->handover_seq += 2;
        if (limit->side == 1) {
            copy_write(limit, size_bytes, at);
            publish(turn, at - 1);
            await(turn, at, true);
        } else {
            await(turn, at - 1, true);
            time_ns[i] = copy_once_ns(limit, size_bytes, at);
            publish(turn, at);
        }
    }
    if (limit->side == 1) {
        return 0;
    }
    qsort(time_ns, rounds, sizeof time_ns[0], compare_u64);
    uint64_t median_ns = time_ns[rounds / 2];
    return (double)size_bytes * 1e9 / (double)(median_ns > cost_ns ? median_ns - cost_ns : 1);
}

/* --- the ring of processes ------------------------------------------------------------------- */

struct limit_futex_box *limit_futex_boxes_new(unsigned ranks)
{
    return map_shared(ranks * sizeof(struct limit_futex_box));
}

static uint64_t futex_recv(struct limit_futex *futex)
{
    struct limit_futex_box *box = &futex->boxes[futex->rank];
    /* Acquire pairs with the release in futex_send(): the word is in the box. */
    while (atomic_load_explicit(&box->sent, memory_order_acquire) == futex->received) {
        syscall(SYS_futex, &box->sent, FUTEX_WAIT, futex->received, NULL, NULL, 0);
    }
    return box->word[futex->received++ % LIMIT_FUTEX_BOX_WORDS];
}

static void futex_send(struct limit_futex *futex, uint64_t word)
{
    struct limit_futex_box *box = &futex->boxes[(futex->rank + 1) % futex->ranks];
    box->word[futex->sent++ % LIMIT_FUTEX_BOX_WORDS] = word;
    atomic_store_explicit(&box->sent, futex->sent, memory_order_release);
    syscall(SYS_futex, &box->sent, FUTEX_WAKE, 1, NULL, NULL, 0);
}

double limit_futex_ring_hops_per_s(struct limit_futex *futex, unsigned laps, unsigned tokens)
{
    uint64_t begin = now_ns();
    if (futex->rank == 0) {
        for (unsigned t = 0; t < tokens; t++) {
            futex_send(futex, t);
        }
    }
    for (unsigned i = 0; i < laps * tokens; i++) {
        uint64_t word = futex_recv(futex);
        bool last_lap = i >= (laps - 1) * tokens;
        require(word == i % tokens, "futex ring");
        if (futex->rank != 0 || !last_lap) {
            futex_send(futex, word);
        }
    }
    return (double)laps * tokens * futex->ranks * 1e9 / (double)(now_ns() - begin);
}
