/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The native engine's protocol (publish, credits, doorbells, parking, sleeping, reclaiming) on a
 * machine with store buffers: two senders, each with its own ring, and the receiver.
 *
 * Memory model: x86-TSO. Every process owns a first-in first-out store buffer; `flusher` moves
 * entries to memory at any time. A load reads memory (no process loads what it has buffered). An
 * atomic read-modify-write, a fence and a seq_cst store wait until their own buffer is empty.
 * membarrier waits until the caller's and then each sender's buffer has been empty once.
 * Each memory access is one step; only private bookkeeping is folded into it.
 *
 * What can go wrong, and how it is seen:
 *  - a message torn, invented, repeated or skipped: asserts in rx_drain();
 *  - a slot overwritten before it was consumed: assert in flusher;
 *  - a sleeper that nobody wakes: when nothing can move any more, `referee` looks at who still waits.
 *    The receiver may choose to sleep whenever it finds nothing, so a message lost while it spins is
 *    lost when it sleeps, too;
 *  - an entry that never comes back, or comes back with a message in it: `referee`, rx_retire().
 *
 * Time slices are left out on purpose: they would heal every lost wake-up, and hide it. Only when
 * everybody waits rightly does the referee let a slice end, once, to have dead senders found.
 *
 * ./run checks the configurations that must hold and the MUTATE_* that must not.
 */

#ifndef DEPTH
#define DEPTH 2 /* slots of a ring */
#endif
#ifndef BATCH
#define BATCH 2 /* consumed slots that are given back at once; "a quarter ring" in the library */
#endif
#ifndef MSGS0
#define MSGS0 3 /* messages of sender 0 */
#endif
#ifndef MSGS1
#define MSGS1 1 /* messages of sender 1 */
#endif
#ifndef MSGS_NEXT
#define MSGS_NEXT 1 /* messages of the sender that takes over the entry of a dead sender 0 */
#endif

#define SENDERS 2
#define RX 2 /* the receiver's store buffer; senders use theirs, 0 and 1 */

/* Words of shared memory. */
#define HDR(s, pos)  ((s)*DEPTH + (pos) % DEPTH)
#define PAY(s, pos)  (SENDERS * DEPTH + (s)*DEPTH + (pos) % DEPTH)
#define WORDS0       (2 * SENDERS * DEPTH)
#define CONSUMED(s)  (WORDS0 + (s))
#define BELL(s)      (WORDS0 + 2 + (s))
#define TX_WAIT(s)   (WORDS0 + 4 + (s))
#define STATE(s)     (WORDS0 + 6 + (s))
#define DOORBELL     (WORDS0 + 8)
#define SUMMARY      (WORDS0 + 9)
#define SLEEPING     (WORDS0 + 10)
#define WORDS        (WORDS0 + 11)

#define RING   0 /* values of a bell word */
#define POLLED 1
#define READY 0 /* values of a state word, the connection table's entry */
#define ENDED 1
#define FREE  2

#define AWAKE  0 /* values of the sleeping word */
#define ASLEEP 1

#define ALIVE   0 /* values of gone[] */
#define KILLED  1 /* the kernel tells whoever asks */
#define STOPPED 2 /* nobody can tell */
#define LEFT    3 /* disconnected in good order */

byte mem[WORDS];
chan sb[3] = [3] of { byte, byte }; /* store buffers: address, value */

bool rx_in_futex;          /* the receiver lies in futex_wait(summary) */
bool tx_in_futex[SENDERS]; /* a sender lies in futex_wait(consumed) */
bool slice;                /* the receiver's time slice ended */

/* The referee's own knowledge; the protocol never reads these. */
byte head[SENDERS];      /* messages consumed; private to the receiver */
byte published[SENDERS]; /* messages whose header has reached memory */
byte returned[SENDERS];  /* messages whose send has returned */
byte gone[SENDERS];
bool struck; /* sender 0 takes no further step */
bool done[SENDERS];
bool reclaimed;

#define FENCE(p)       empty(sb[p])
#define STORE(p, a, v) sb[p]!a, v

/* A header names its position, so that the last lap's is not taken for this lap's. */
#ifdef MUTATE_NO_SEQ
#define HEADER(pos) 1
#else
#define HEADER(pos) ((pos) + 1)
#endif

active proctype flusher()
{
    byte a, v;
end:
    do
    :: atomic { sb[0]?a, v -> mem[a] = v;
        if
        :: a < WORDS0 -> assert(v <= head[0] + DEPTH) /* the slot was free */
        :: else
        fi;
        if
        :: a < SENDERS * DEPTH -> published[0]++
        :: else
        fi; a = 0; v = 0 }
    :: atomic { sb[1]?a, v -> mem[a] = v;
        if
        :: a < WORDS0 -> assert(v <= head[1] + DEPTH)
        :: else
        fi;
        if
        :: a < SENDERS * DEPTH -> published[1]++
        :: else
        fi; a = 0; v = 0 }
    :: atomic { sb[RX]?a, v -> mem[a] = v; a = 0; v = 0 }
    od
}

/* ---- sender ---------------------------------------------------------------------------------- */

/* Set the bits that lead the receiver to this ring. */
inline tx_ring_bits()
{
#ifdef MUTATE_SUMMARY_FIRST
    atomic { FENCE(s) -> mem[SUMMARY] = 1 };
#endif
#ifdef MUTATE_RING_RELAXED
    /* A relaxed RMW of a weaker machine: what was stored before may still be on its way. */
    atomic { x = mem[DOORBELL]; mem[DOORBELL] = mem[DOORBELL] | (1 << s) };
#else
    atomic { FENCE(s) -> x = mem[DOORBELL]; mem[DOORBELL] = mem[DOORBELL] | (1 << s) };
#endif
#ifdef MUTATE_SUMMARY_SKIPPED
    /* "who set the first bit of this word sets the summary, too" - if he lives */
    if
    :: x == 0 -> atomic { FENCE(s) -> mem[SUMMARY] = 1 }
    :: else
    fi;
    x = 0
#else
#ifdef MUTATE_RING_RELAXED
    atomic { x = 0; mem[SUMMARY] = 1 }
#else
#ifdef MUTATE_SUMMARY_FIRST
    x = 0
#else
    atomic { FENCE(s) -> x = 0; mem[SUMMARY] = 1 }
#endif
#endif
#endif
}

inline tx_ring()
{
#ifdef MUTATE_SLEEPING_CHECKED_EARLY
    y = mem[SLEEPING];
    tx_ring_bits();
#else
    tx_ring_bits();
#ifdef MUTATE_WAKE_CLEARS
    /* Only the sender that clears the word wakes. If it stops here, no sender wakes. */
    atomic { FENCE(s) -> y = mem[SLEEPING]; mem[SLEEPING] = AWAKE };
#else
    y = mem[SLEEPING];
#endif
#endif
    if
    :: atomic { y == ASLEEP -> y = 0 }; rx_in_futex = false /* futex_wake */
    :: atomic { else -> y = 0 }
    fi
}

inline tx_wait_for_room()
{
    do
    :: seen = mem[CONSUMED(s)];
        if
        :: tail - seen < DEPTH -> break
        :: else
        fi;
#ifdef MUTATE_TX_WAIT_RELAXED
        STORE(s, TX_WAIT(s), 1);
#else
        atomic { FENCE(s) -> mem[TX_WAIT(s)] = 1 };
#endif
#ifndef RECHECK_EARLY /* The kernel compares once more, so this one may be anywhere: see ./run. */
        seen = mem[CONSUMED(s)];
#endif
        if
        :: tail - seen < DEPTH
        :: else ->
            /* futex_wait compares and goes to sleep in one step. That its code fences is not used. */
#ifdef MUTATE_TX_WAIT_NO_COMPARE
            tx_in_futex[s] = true;
#else
            tx_in_futex[s] = (mem[CONSUMED(s)] == seen);
#endif
            !tx_in_futex[s]
        fi;
        atomic { FENCE(s) -> mem[TX_WAIT(s)] = 0 }
    od
}

inline tx_send()
{
#ifndef MUTATE_NO_CREDIT_CHECK
    if
    :: tail - seen >= DEPTH -> tx_wait_for_room()
    :: else
    fi;
#endif
#ifdef MUTATE_BELL_FIRST
    y = mem[BELL(s)];
#endif
#ifdef MUTATE_HEADER_FIRST
    STORE(s, HDR(s, tail), HEADER(tail));
    STORE(s, PAY(s, tail), tail + 1);
#else
    STORE(s, PAY(s, tail), tail + 1);
    STORE(s, HDR(s, tail), HEADER(tail));
#endif
#if defined(SENDER_FENCES) && !defined(MUTATE_SENDER_NO_FENCE)
    FENCE(s);
#endif
#ifndef MUTATE_BELL_FIRST
    y = mem[BELL(s)];
#endif
    if
    :: atomic { y == RING -> y = 0 }; tx_ring()
    :: atomic { else -> y = 0 }
    fi;
    atomic { tail++; returned[s]++ }
}

proctype sender(byte s; byte msgs)
{
    byte tail, seen, x, y;
    {
        do
        :: tail < msgs -> tx_send()
        :: else -> break
        od;
        done[s] = true;
#ifdef LEAVE
        if
        :: s == 0 -> atomic { STORE(s, STATE(s), ENDED) -> gone[s] = LEFT }; tx_ring_bits()
        :: else
        fi;
#endif
        atomic { tail = 0; seen = 0 }
    }
    unless { struck && s == 0 }
}

/* Takes over entry 0 once the receiver has given it back. */
proctype successor()
{
    byte s, tail, seen, x, y, last;
end:
    atomic { mem[STATE(0)] == FREE -> mem[STATE(0)] = READY; done[0] = false; gone[0] = ALIVE };
    atomic { tail = mem[CONSUMED(0)]; seen = tail; last = tail + MSGS_NEXT; returned[0] = tail };
    do
    :: tail < last -> tx_send()
    :: else -> break
    od;
    atomic { done[0] = true; tail = 0; seen = 0; last = 0 }
}

/* Ends sender 0 between any two of its steps. Its CPU's store buffer drains all the same. */
proctype reaper()
{
    if
#ifdef KILL
    :: atomic { !done[0] -> gone[0] = KILLED; struck = true }
#endif
#ifdef STOP
    :: atomic { !done[0] -> gone[0] = STOPPED; struck = true }
#endif
    :: skip
    fi
}

/* ---- receiver -------------------------------------------------------------------------------- */

inline rx_give_credits(c)
{
    atomic {
        owed[c]++;
        if
        :: owed[c] >= BATCH -> owed[c] = 0; x = 1
        :: else
        fi
    };
    if
    :: atomic { x == 1 -> x = 0 };
        STORE(RX, CONSUMED(c), head[c]);
#ifndef MUTATE_CREDIT_NO_FENCE
        FENCE(RX);
#endif
        x = mem[TX_WAIT(c)];
        if
        :: atomic { x == 1 -> x = 0 }; tx_in_futex[c] = false /* futex_wake */
        :: else
        fi
    :: else
    fi
}

/* Consume what lies in ring c; `got` tells whether anything did. */
inline rx_drain(c)
{
    got = false;
    do
    :: atomic { mem[HDR(c, head[c])] == HEADER(head[c]) -> got = true };
#ifdef MUTATE_CREDIT_EARLY
        STORE(RX, CONSUMED(c), head[c] + 1);
#endif
        atomic { assert(mem[PAY(c, head[c])] == head[c] + 1); head[c]++;
            assert(head[c] <= published[c]) };
        rx_give_credits(c)
    :: atomic { mem[HDR(c, head[c])] != HEADER(head[c]) -> break }
    od
}

/* Every sender's CPU, and this one, has executed a full fence. */
inline membarrier()
{
    FENCE(RX);
#if !defined(SENDER_FENCES) && !defined(MUTATE_MEMBARRIER_LOCAL)
    FENCE(0);
    FENCE(1);
    FENCE(RX)
#endif
}

inline rx_ask_to_ring(c)
{
    if
    :: polled[c] -> STORE(RX, BELL(c), RING)
    :: else
    fi
}

inline rx_drain_parked(c)
{
    if
    :: polled[c] ->
#ifndef MUTATE_PARK_NO_POLL
        rx_drain(c);
#endif
        atomic { polled[c] = false; got = false }
    :: else
    fi
}

/* Stop looking at the polled rings: from their next message on, their senders ring. */
inline rx_park_all()
{
#ifdef MUTATE_PARK_BELL_LATE
    membarrier();
#endif
    rx_ask_to_ring(0);
    rx_ask_to_ring(1);
#ifdef MUTATE_PARK_POLL_EARLY
    rx_drain_parked(0);
    rx_drain_parked(1);
#endif
#if !defined(MUTATE_PARK_NO_BARRIER) && !defined(MUTATE_PARK_BELL_LATE)
    membarrier();
#endif
    rx_drain_parked(0);
    rx_drain_parked(1)
}

inline rx_promote(c)
{
    STORE(RX, BELL(c), POLLED);
#ifndef MUTATE_PROMOTE_NOT_POLLED
    polled[c] = true
#endif
}

/* The ring is empty and its sender gone: hand the entry over, to go on from here. */
inline rx_retire(c)
{
    atomic { assert(head[c] == published[c]); polled[c] = false; got = false; owed[c] = 0;
        reclaimed = true };
#ifdef MUTATE_RECLAIM_FREE_FIRST
    STORE(RX, STATE(c), FREE);
#endif
#ifndef MUTATE_RECLAIM_BELL_KEPT
    STORE(RX, BELL(c), RING);
#endif
#ifndef MUTATE_RECLAIM_OLD_TAIL
    STORE(RX, CONSUMED(c), head[c]);
#endif
#ifndef MUTATE_RECLAIM_FREE_FIRST
    STORE(RX, STATE(c), FREE)
#endif
}

/* Give the entry of a dead sender back: first be sure that it is dead, then drain, then free. */
inline rx_reap(c)
{
#ifdef MUTATE_RECLAIM_POLL_EARLY
    rx_drain(c);
#endif
    /* The kernel reports a death only after the process has left its CPU, its buffer drained. */
    atomic { x = (gone[c] == KILLED && FENCE(c) && !reclaimed) };
    if
    :: atomic { x == 1 -> x = 0 };
#if !defined(MUTATE_RECLAIM_UNDRAINED) && !defined(MUTATE_RECLAIM_POLL_EARLY)
        rx_drain(c);
#endif
        rx_retire(c)
    :: else
    fi
}

/* Poll a ring that a doorbell named, and perhaps look at it without doorbells from now on. */
inline rx_serve_ring(c)
{
#ifdef LEAVE
#ifdef MUTATE_END_SEEN_LATE
    rx_drain(c);
    ending = (mem[STATE(c)] == ENDED);
#else
    ending = (mem[STATE(c)] == ENDED);
    rx_drain(c);
#endif
#else
    rx_drain(c);
#endif
    if
    :: atomic { ending -> ending = false }; rx_retire(c)
    :: atomic { !ending && got && !polled[c] && !spent[c] -> spent[c] = true; got = false };
        rx_promote(c)
    :: atomic { !ending -> got = false }
    fi
}

inline rx_serve()
{
#ifdef MUTATE_DOORBELL_TAKEN_FIRST
    atomic { FENCE(RX) -> db = mem[DOORBELL]; mem[DOORBELL] = 0 };
    atomic { FENCE(RX) -> mem[SUMMARY] = 0 };
#else
#ifdef MUTATE_DOORBELL_TAKEN_LATE
    atomic { FENCE(RX) -> mem[SUMMARY] = 0 };
    db = mem[DOORBELL];
#else
    atomic { FENCE(RX) -> mem[SUMMARY] = 0 };
    atomic { FENCE(RX) -> db = mem[DOORBELL]; mem[DOORBELL] = 0 };
#endif
#endif
    if
    :: db & 1 -> rx_serve_ring(0)
    :: else
    fi;
    if
    :: db & 2 -> rx_serve_ring(1)
    :: else
    fi;
#ifdef MUTATE_DOORBELL_TAKEN_LATE
    atomic { FENCE(RX) -> mem[DOORBELL] = 0 };
#endif
    db = 0
}

inline rx_sleep()
{
    rx_park_all();
#ifdef ARM
    /* It sleeps on a descriptor: a ring is kept there from the moment at which senders ring. */
#ifdef MUTATE_ARM_CHECKED_EARLY
    x = mem[SUMMARY];
    atomic { FENCE(RX) -> mem[SLEEPING] = ASLEEP; rx_in_futex = true };
#else
    atomic { FENCE(RX) -> mem[SLEEPING] = ASLEEP; rx_in_futex = true };
    x = mem[SUMMARY];
#endif
    if
    :: x != 0 -> rx_in_futex = false
    :: else
    fi;
#else
#ifdef MUTATE_SLEEPING_RELAXED
    STORE(RX, SLEEPING, ASLEEP);
#else
    atomic { FENCE(RX) -> mem[SLEEPING] = ASLEEP };
#endif
    /* futex_wait compares and goes to sleep in one step. That its code fences is not used. */
#ifdef MUTATE_SLEEP_NO_COMPARE
    rx_in_futex = true;
#else
#ifdef MUTATE_WAKE_CLEARS
    rx_in_futex = (mem[SUMMARY] == 0 && mem[SLEEPING] == ASLEEP);
#else
    rx_in_futex = (mem[SUMMARY] == 0);
#endif
#endif
#endif
    atomic { !rx_in_futex || slice -> rx_in_futex = false };
    atomic { FENCE(RX) -> mem[SLEEPING] = AWAKE };
    if
    :: atomic { slice -> slice = false }; rx_reap(0)
    :: else
    fi
}

proctype receiver()
{
    bool polled[SENDERS], spent[SENDERS], got, ending;
    byte owed[SENDERS], x, db;
end:
    do
    :: polled[0] -> rx_drain(0); got = false
    :: polled[1] -> rx_drain(1); got = false
    :: mem[SUMMARY] != 0 -> rx_serve()
    :: polled[0] || polled[1] -> rx_park_all()
#ifdef KILL
    :: gone[0] == KILLED && !reclaimed -> rx_reap(0)
#endif
    :: rx_sleep()
    od
}

/* ---- referee --------------------------------------------------------------------------------- */

/* Runs only when nobody else can move. */
proctype referee()
{
    do
    :: timeout ->
        atomic {
            /* Each sender that lives and runs has sent all, and all that was sent has come. */
            assert(gone[0] != ALIVE || (done[0] && head[0] == published[0]));
            assert(done[1] && head[1] == published[1]);
            assert(head[0] >= returned[0]);
            if
            :: (gone[0] == KILLED || gone[0] == LEFT) && !reclaimed && rx_in_futex -> slice = true
            :: else -> assert(gone[0] == ALIVE || gone[0] == STOPPED); break
            fi
        }
    od
}

init
{
    atomic {
        run sender(0, MSGS0);
        run sender(1, MSGS1);
        run receiver();
        run referee();
#if defined(KILL) || defined(STOP)
        run reaper();
#endif
#if defined(KILL) || defined(LEAVE)
        run successor();
#endif
    }
}
