/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One to many (lib/bcast): the steps that no data race shows, on a machine with store buffers.
 *
 * A store goes into its process's buffer, and from there to memory at any later time, in order. A
 * load takes the newest buffered store of its own process, else memory. fence() waits until the own
 * buffer is empty, barrier() (membarrier) until every buffer is.
 *
 *   SLEEP  edge 14: a reader falls asleep while the writer publishes. It must not sleep for good.
 *   STUCK  edge 15: the writer falls asleep while a reader takes messages. The same.
 *   JOIN   edge 16: a reader joins while the writer looks for room. The writer must not overwrite
 *          what the reader has joined for.
 *   COPY   edge 13: a reader copies what the writer overwrites. It must take no mixed message. Here
 *          stores leave the buffers in any order, and loads are made in any order, unless fenced.
 */

#define WRITER 0
#define READER 1

/* ---- memory with store buffers: one buffered store a word is enough here ------------------------ */

#define WORDS 4
byte mem[WORDS];
bool buffered[8]; /* [process * WORDS + word] */
byte value[8];
byte age[8]; /* In which order one process's stores leave. */
byte clock_of[2];

inline store(p, w, v)
{
    d_step {
        assert(!buffered[p * WORDS + w]);
        buffered[p * WORDS + w] = true;
        value[p * WORDS + w] = v;
        clock_of[p]++;
        age[p * WORDS + w] = clock_of[p];
    }
}

#define load(p, w) (buffered[(p) * WORDS + (w)] -> value[(p) * WORDS + (w)] : mem[w])
#define is_empty(p)                                                                                \
    (!buffered[(p) * WORDS] && !buffered[(p) * WORDS + 1] && !buffered[(p) * WORDS + 2] &&         \
     !buffered[(p) * WORDS + 3])
#define older(p, w, v)                                                                             \
    (!buffered[(p) * WORDS + (v)] || age[(p) * WORDS + (v)] >= age[(p) * WORDS + (w)])
#ifdef COPY
#define may_leave(p, w) true
#else
#define may_leave(p, w) (older(p, w, 0) && older(p, w, 1) && older(p, w, 2) && older(p, w, 3))
#endif

inline fence(p) { is_empty(p) }
inline barrier() { is_empty(WRITER) && is_empty(READER) }
inline drain(p, w)
{
    atomic {
        buffered[p * WORDS + w] && may_leave(p, w) -> mem[w] = value[p * WORDS + w];
        buffered[p * WORDS + w] = false;
        value[p * WORDS + w] = 0;
    }
}

bool is_over;

active proctype Memory()
{
    do
    :: drain(WRITER, 0)
    :: drain(WRITER, 1)
    :: drain(WRITER, 2)
    :: drain(WRITER, 3)
    :: drain(READER, 0)
    :: drain(READER, 1)
    :: drain(READER, 2)
    :: drain(READER, 3)
    od
}

/* ---- edge 14: readers sleep on a word that they make odd, and the writer even ------------------- */

#ifdef SLEEP
#define COUNT 0
#define WORD 1
#define MSGS 2
#define SLEEPERS 2

bool asleep[SLEEPERS];
bool is_set;

inline wake()
{
    d_step {
        asleep[0] = false;
        asleep[1] = false
    }
}

/* An atomic addition, which empties the buffer. */
inline take()
{
    atomic {
        fence(WRITER);
#ifdef MUTATE_BCAST_FLAG_ALONE
        mem[WORD] = 0
#else
        mem[WORD] = mem[WORD] + 1
#endif
    }
}

active proctype Writer()
{
    byte n = 1;
    do
    :: n > MSGS -> break
    :: else ->
#ifdef MUTATE_BCAST_FLAG_FIRST
        is_set = load(WRITER, WORD) % 2;
#endif
        !buffered[WRITER * WORDS + COUNT];
        store(WRITER, COUNT, n);
#ifndef MUTATE_BCAST_FLAG_FIRST
        is_set = load(WRITER, WORD) % 2;
#endif
        if
        :: is_set ->
#ifdef MUTATE_BCAST_TAKE_AFTER_WAKE
            fence(WRITER);
            wake();
            take()
#else
            take();
            wake()
#endif
        :: else
        fi;
        n++
    od;
    fence(WRITER);
    is_over = true
}

proctype Sleeper(byte me)
{
    byte seen = 0, word = 0;
    do
    :: seen == MSGS -> break
    :: else ->
        if
        :: load(READER, COUNT) > seen -> seen = load(READER, COUNT)
        :: else ->
            /* An atomic or. */
            atomic { word = mem[WORD] | 1; mem[WORD] = word };
#ifndef MUTATE_BCAST_NO_BARRIER
            barrier();
#endif
            if
            :: load(READER, COUNT) > seen
            :: else ->
                atomic { /* The kernel compares and queues in one step. */
                    if
#ifndef MUTATE_BCAST_NO_COMPARE
                    :: mem[WORD] != word
#endif
                    :: mem[WORD] == word -> asleep[me] = true
#ifdef MUTATE_BCAST_NO_COMPARE
                    :: else -> asleep[me] = true
#endif
                    fi
                };
                do
                :: !asleep[me] -> break
                :: is_over && asleep[me] -> assert(false) /* It sleeps for good. */
                od
            fi
        fi
    od
}

init
{
    run Sleeper(0);
    run Sleeper(1)
}
#endif

/* ---- edge 15: the writer sleeps on the reader's count ------------------------------------------- */

#ifdef STUCK
#define COUNT 0
#define FLAG 1
#define MSGS 2

bool asleep, is_set;

active proctype Reader()
{
    byte n = 1;
    do
    :: n > MSGS -> break
    :: else ->
#ifdef MUTATE_BCAST_STUCK_FIRST
        is_set = load(READER, FLAG);
#endif
        !buffered[READER * WORDS + COUNT];
        store(READER, COUNT, n);
#ifndef MUTATE_BCAST_STUCK_FIRST
        is_set = load(READER, FLAG);
#endif
        if
        :: is_set ->
            fence(READER); /* A system call. */
            asleep = false
        :: else
        fi;
        n++
    od;
    fence(READER);
    is_over = true
}

active proctype Writer()
{
    byte seen = 0;
    do
    :: seen == MSGS -> break
    :: else ->
        if
        :: load(WRITER, COUNT) > seen -> seen = load(WRITER, COUNT)
        :: else ->
            mem[FLAG] = 1; /* Sequentially consistent. */
#ifndef MUTATE_BCAST_STUCK_NO_BARRIER
            barrier();
#endif
            atomic { /* The kernel compares and queues in one step. */
                if
#ifdef MUTATE_BCAST_STUCK_NO_COMPARE
                :: true -> asleep = true
#else
                :: mem[COUNT] == seen -> asleep = true
                :: else
#endif
                fi
            };
            do
            :: !asleep -> break
            :: is_over && asleep -> assert(false) /* It sleeps for good. */
            od;
            mem[FLAG] = 0
        fi
    od
}
#endif

/* ---- edge 16: joining --------------------------------------------------------------------------- */

#ifdef JOIN
#define TAIL 0
#define READY 1
#define DEPTH 1
#define MSGS 3

byte start = 255; /* Where the reader starts, once it is told that it has joined. */

active proctype Writer()
{
    byte n = 0, limit = 0;
    do
    :: n == MSGS -> break
    :: else ->
        if
        :: n < limit
        :: else ->
#ifndef MUTATE_BCAST_REFRESH_NO_FENCE
            fence(WRITER);
#endif
            if
            :: load(WRITER, READY) -> break /* It knows the reader: it waits for it from now on. */
            :: else -> limit = n + DEPTH /* Nobody is there. */
            fi
        fi;
        /* Message n goes where n - DEPTH was, and the reader has not taken what is not older. */
        assert(start == 255 || n < start + DEPTH);
        !buffered[WRITER * WORDS + TAIL] -> store(WRITER, TAIL, n + 1);
        n++
    od
}

active proctype Joiner()
{
#ifdef MUTATE_BCAST_TAIL_EARLY
    byte early = load(READER, TAIL);
#endif
    store(READER, READY, 1);
#ifndef MUTATE_BCAST_JOIN_NO_FENCE
    fence(READER);
#endif
#ifdef MUTATE_BCAST_TAIL_EARLY
    start = early
#else
    start = load(READER, TAIL)
#endif
}
#endif

/* ---- edge 13: a copy that is overwritten -------------------------------------------------------- */

#ifdef COPY
#define HEADER 0
#define DATA 1 /* And DATA + 1: both hold the number of their message. */

bool is_ready;

active proctype Overwriter()
{
    is_ready;
#ifndef MUTATE_BCAST_NOT_BEGUN
    store(WRITER, HEADER, 0);
#endif
#ifndef MUTATE_BCAST_BEGIN_NO_FENCE
    fence(WRITER);
#endif
    store(WRITER, DATA, 2);
    store(WRITER, DATA + 1, 2);
    fence(WRITER); /* R11 */
#ifdef MUTATE_BCAST_NOT_BEGUN
    store(WRITER, HEADER, 2)
#else
    !buffered[WRITER * WORDS + HEADER] -> store(WRITER, HEADER, 2)
#endif
}

active proctype Copier()
{
    byte header, first, second, again;
    is_ready;
    header = load(READER, HEADER); /* A11 */
#ifdef MUTATE_BCAST_CHECKED_EARLY
    again = load(READER, HEADER);
#endif
    if
    :: first = load(READER, DATA); second = load(READER, DATA + 1)
    :: second = load(READER, DATA + 1); first = load(READER, DATA)
    fi;
#ifndef MUTATE_BCAST_CHECKED_EARLY
    again = load(READER, HEADER); /* After order_end_copy(). */
#endif
    if
    :: header != 0 && again == header -> assert(first == header && second == header)
    :: else
    fi
}

init
{
    mem[HEADER] = 1;
    mem[DATA] = 1;
    mem[DATA + 1] = 1;
    is_ready = true
}
#endif
