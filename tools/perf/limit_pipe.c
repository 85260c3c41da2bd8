/* SPDX-License-Identifier: Apache-2.0 */
/* The bare pipelined copy: the floor of a long message that is copied in and out. */
#include "fail.h"
#include "limit.h"
#include "limit_word.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* No page of the ring is new to either side any more. */
#define WARM_ROUND_TRIPS LIMIT_PIPE_CHUNKS
/* From this length on longer chunks are better: docs/performance/lessons.md. */
#define LONG_BYTES (128u << 10)
#define CHUNK_BYTES (16u << 10)
/* Neighbouring words differ, and so do those of the two sides and of two calls. */
#define WORD_STEP UINT64_C(0x9E3779B97F4A7C15)

/* Has the processor fast string moves? (The bits erms and fsrm.) */
static bool has_string_moves(void)
{
#if defined(__x86_64__)
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && ((ebx >> 9 & 1) || (edx >> 4 & 1));
#else
    return false;
#endif
}

static void copy(void *to, const void *from, size_t len_bytes, bool is_string_move)
{
#if defined(__x86_64__)
    if (is_string_move) {
        __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(len_bytes)::"memory");
        return;
    }
#endif
    (void)is_string_move;
    memcpy(to, from, len_bytes);
}

static size_t chunk_bytes_of(size_t size_bytes)
{
    return size_bytes < LONG_BYTES ? CHUNK_BYTES : LIMIT_PIPE_CHUNK_BYTES_MAX;
}

static size_t min_bytes(size_t a, size_t b) { return a < b ? a : b; }

static unsigned char *chunk_at(struct limit_pipe *pipe, uint64_t pos, size_t chunk_bytes)
{
    return pipe->chunk + pos % LIMIT_PIPE_CHUNKS * chunk_bytes;
}

static void pipe_send(struct limit *limit, size_t size_bytes)
{
    struct limit_pipe *pipe = &limit->area->pipe[limit->side];
    size_t chunk_bytes = chunk_bytes_of(size_bytes);
    uint64_t pos = limit->pipe_tx;
    for (size_t at = 0; at < size_bytes; at += chunk_bytes, pos++) {
        if (pos >= LIMIT_PIPE_CHUNKS) {
            /* The chunk that lies there has been copied out. */
            await_at_least(&pipe->taken.word[0], pos - LIMIT_PIPE_CHUNKS + 1);
        }
        copy(chunk_at(pipe, pos, chunk_bytes), limit->pipe_out + at,
             min_bytes(chunk_bytes, size_bytes - at), limit->is_string_move);
        publish(&pipe->ready[pos % LIMIT_PIPE_CHUNKS].word[0], pos + 1);
    }
    limit->pipe_tx = pos;
}

static void pipe_recv(struct limit *limit, size_t size_bytes)
{
    struct limit_pipe *pipe = &limit->area->pipe[1 - limit->side];
    size_t chunk_bytes = chunk_bytes_of(size_bytes);
    uint64_t pos = limit->pipe_rx;
    for (size_t at = 0; at < size_bytes; at += chunk_bytes, pos++) {
        await(&pipe->ready[pos % LIMIT_PIPE_CHUNKS].word[0], pos + 1, true);
        copy(limit->pipe_in + at, chunk_at(pipe, pos, chunk_bytes),
             min_bytes(chunk_bytes, size_bytes - at), limit->is_string_move);
        if (limit->pipe_owns) {
            own_lines(chunk_at(pipe, pos, chunk_bytes), min_bytes(chunk_bytes, size_bytes - at));
        }
        publish(&pipe->taken.word[0], pos + 1);
    }
    limit->pipe_rx = pos;
}

static void pipe_round_trips(struct limit *limit, size_t size_bytes, unsigned round_trips)
{
    for (unsigned i = 0; i < round_trips; i++) {
        if (limit->side == 0) {
            pipe_send(limit, size_bytes);
            pipe_recv(limit, size_bytes);
        } else {
            pipe_recv(limit, size_bytes);
            pipe_send(limit, size_bytes);
        }
    }
}

/* What side `side` sends from its position `pos` on. Whole words: the buffers have room. */
static void message_fill(unsigned char *message, size_t size_bytes, unsigned side, uint64_t pos)
{
    uint64_t word = (pos * 2 + side + 1) * WORD_STEP;
    for (size_t at = 0; at < size_bytes; at += sizeof word, word += WORD_STEP) {
        memcpy(message + at, &word, sizeof word);
    }
}

/* A message each way, every byte of which is compared; not in the timed part. */
static void pipe_check(struct limit *limit, size_t size_bytes)
{
    uint64_t rx = limit->pipe_rx;
    message_fill(limit->pipe_out, size_bytes, limit->side, limit->pipe_tx);
    memset(limit->pipe_in, 0, size_bytes);
    pipe_round_trips(limit, size_bytes, 1);
    message_fill(limit->pipe_out, size_bytes, 1 - limit->side, rx);
    if (memcmp(limit->pipe_in, limit->pipe_out, size_bytes) != 0) {
        rank_fail(EXIT_VERIFY, "the bare pipelined copy delivered wrong bytes: this machine's"
                               " memory is broken, or velo-perf is");
    }
}

static unsigned char *buffer_new(void)
{
    unsigned char *buffer = aligned_alloc(4096, LIMIT_PIPE_BYTES_MAX);
    if (!buffer) {
        rank_fail(EXIT_FAILED, "out of memory for the pipelined copy");
    }
    return buffer;
}

/* Few measurements need the buffers, so they are made by the first that does. */
static void pipe_prepare(struct limit *limit)
{
    if (!limit->pipe_out) {
        limit->pipe_out = buffer_new();
        limit->pipe_in = buffer_new();
        limit->is_string_move = has_string_moves();
    }
}

double limit_pipe_half_rtt_ns(struct limit *limit, size_t size_bytes, unsigned round_trips,
                              bool owns)
{
    pipe_prepare(limit);
    limit->pipe_owns = owns;
    pipe_check(limit, size_bytes);
    pipe_round_trips(limit, size_bytes, size_bytes < LONG_BYTES ? WARM_ROUND_TRIPS : 1);
    uint64_t begin = now_ns();
    pipe_round_trips(limit, size_bytes, round_trips);
    double half_rtt_ns = (double)(now_ns() - begin) / 2.0 / round_trips;
    pipe_check(limit, size_bytes);
    return half_rtt_ns;
}
