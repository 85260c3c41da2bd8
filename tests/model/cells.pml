/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several messages in one line (lib/core/ring.h), on a machine with store buffers: one sender, one
 * receiver, lines of two cells. A message takes one cell or two. One that does not fit into the
 * rest of its line goes to the next line, and nothing is written to say so.
 *
 * The memory model is that of velo.pml. Orders that x86 keeps by itself (release, acquire) are
 * weakened by exchanging the two accesses.
 *
 * The payload of a message of two cells covers the place of a header. The sender puts there what
 * would be the most dangerous: the header that a receiver expects there one lap later.
 *
 * What can go wrong, and how it is seen:
 *  - a message torn, invented, repeated, skipped or overtaken: asserts in take();
 *  - a line overwritten before it was read: the same, and the assert in flusher;
 *  - a receiver that waits at the wrong place: `referee`, when nothing can move any more.
 *
 * ./run checks that it holds, and the MUTATE_* that must not.
 */

#ifndef MSGS
#define MSGS 6 /* messages, of any lengths */
#endif
#define LINES 2 /* of the ring */
#define CELLS 2 /* of a line */
#define RING  (LINES * CELLS)

#define TX 0 /* store buffers */
#define RX 1

/* Words of shared memory: each cell's first word, where a header may be, and its second. */
#define HDR(pos) ((pos) % RING)
#define PAY(pos) (RING + (pos) % RING)
#define CONSUMED (2 * RING)
#define WORDS    (2 * RING + 1)

#define LINE(pos)    ((pos) / CELLS)
#define LINE_UP(pos) (((pos) + CELLS - 1) / CELLS * CELLS)
#define IS_FIRST(pos) ((pos) % CELLS == 0)

/* A header names its line and the length of its message. */
#define HEADER(line, cells) (((line) + 1) * 4 + (cells))
#define NAMES(word, line)   ((word) / 4 == (line) + 1)
#define CELLS_OF(word)      ((word) % 4)

byte mem[WORDS];
chan sb[2] = [4] of { byte, byte }; /* address, value */

/* What nobody reads but the asserts. */
byte sent, taken;
byte read_up_to; /* cells that the receiver is done with */
byte written_at; /* the cell that the sender writes in */

#define STORE(p, a, v) sb[p]!a, v

active proctype flusher()
{
    byte a, v;
end:
    do
    :: atomic { sb[TX]?a, v ->
        /* Nothing is written a lap ahead of what is still to be read. */
        assert(a >= CONSUMED || LINE(written_at) - LINE(read_up_to) <= LINES);
        mem[a] = v; a = 0; v = 0 }
    :: atomic { sb[RX]?a, v -> mem[a] = v; a = 0; v = 0 }
    od
}

inline publish_message()
{
#ifdef MUTATE_CELLS_HEADER_FIRST
    STORE(TX, HDR(at), HEADER(LINE(at), cells));
#endif
    STORE(TX, PAY(at), sent + 1);
    if
    :: cells == 2 -> STORE(TX, HDR(at + 1), HEADER(LINE(at) + LINES, 1))
    :: else
    fi;
#ifndef MUTATE_CELLS_NOT_EMPTIED
#ifndef MUTATE_CELLS_EMPTIED_LATE
    if
    :: !IS_FIRST(at + cells) -> STORE(TX, HDR(at + cells), 0)
    :: else
    fi;
#endif
#endif
#ifndef MUTATE_CELLS_HEADER_FIRST
    STORE(TX, HDR(at), HEADER(LINE(at), cells));
#endif
#ifdef MUTATE_CELLS_EMPTIED_LATE
    if
    :: !IS_FIRST(at + cells) -> STORE(TX, HDR(at + cells), 0)
    :: else
    fi;
#endif
    atomic { tail = at + cells; at = 0; cells = 0; sent++ }
}

active proctype sender()
{
    byte tail, at, cells, seen;
end:
    do
    :: sent < MSGS ->
        if
        :: cells = 1
        :: cells = 2
        fi;
        atomic {
            at = tail;
            if
            :: tail % CELLS + cells > CELLS -> at = LINE_UP(tail)
            :: else
            fi
        };
        /* A line is free when all of it is read. */
        do
#ifdef MUTATE_CELLS_LINE_SHARED
        :: at + cells <= seen + RING -> break
#else
        :: LINE(at) < LINE(seen) + LINES -> break
#endif
        :: else -> mem[CONSUMED] != seen; seen = mem[CONSUMED]
        od;
        written_at = at;
        publish_message()
    :: else -> break
    od
}

/* The message whose header was seen at `head`. */
inline take(header)
{
    atomic {
        assert(mem[PAY(head)] == taken + 1);
        assert(CELLS_OF(header) == 1 || CELLS_OF(header) == 2);
        taken++;
        head = head + CELLS_OF(header);
        read_up_to = head;
        header = 0
    };
    STORE(RX, CONSUMED, head)
}

#ifdef MUTATE_CELLS_NO_TURN
#define MAY_TURN(pos) false
#else
#define MAY_TURN(pos) (!IS_FIRST(pos) && NAMES(mem[HDR(LINE_UP(pos))], LINE(pos) + 1))
#endif

/* More looks in vain would change nothing. */
inline await()
{
    NAMES(mem[HDR(head)], LINE(head)) || MAY_TURN(head)
}

active proctype receiver()
{
    byte head, here, next;
end:
    do
    :: taken < MSGS ->
        here = mem[HDR(head)];
        if
        :: NAMES(here, LINE(head)) -> take(here)
        :: !NAMES(here, LINE(head)) && IS_FIRST(head) -> here = 0; await()
        :: !NAMES(here, LINE(head)) && !IS_FIRST(head) ->
            next = mem[HDR(LINE_UP(head))];
            if
            :: MAY_TURN(head) && NAMES(next, LINE(head) + 1) ->
#ifndef MUTATE_CELLS_NO_SECOND_LOOK
                here = mem[HDR(head)];
#endif
                if
                :: NAMES(here, LINE(head)) -> next = 0; take(here)
                :: else -> atomic { head = LINE_UP(head); here = next; next = 0 };
                    take(here)
                fi
            :: else -> atomic { here = 0; next = 0 }; await()
            fi
        fi
    :: else -> break
    od
}

/* When nobody else can move, all has come. */
active proctype referee()
{
    timeout -> assert(sent == MSGS && taken == MSGS)
}
