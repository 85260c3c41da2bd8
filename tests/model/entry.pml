/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life cycle of one connection table entry: senders that want it, and the receiver that admits,
 * refuses, drains and reaps. The word says what the entry is for, and names the life of its sender
 * by a number (lib/shm/lives.h): a record lock of the kernel says whether that life goes on. One
 * life may take the entry several times. Sender 1 may die between any two of its steps; its lock
 * goes with it, and its heir, a later process, may draw the same number. Sender 2 also stands for a
 * connection that the receiver's own process carries from a network, which no life is behind.
 *
 * What must hold: nobody else gets the entry while a live sender believes it to be its own; it is not
 * freed with messages unread; once all have left or died the receiver gets it back.
 *
 * Memory is sequentially consistent here; velo.pml has the orderings. ./run checks the MUTATE_*.
 * TELLS: the receiver's caller asks for the ends of connections. CARRIES: sender 2 is carried, too.
 */

#define FREE     0
#define CLAIMED  1
#define READY    2
#define REFUSED  3
#define ENDED    4
#define GIVEN_UP 5 /* claimed, but there was no memory for the ring */
#define LOST     6 /* its network says that the sender died */
#define WORD(state, number) ((state) + 8 * (number))
#define STATE(word)         ((word) % 8)
#define NUMBER(word)        ((word) / 8)
#define IS_AT_END(word)     (STATE(word) >= ENDED)

#define CARRIED 3 /* stands where the number would be */

#define ABSENT      0 /* the receiver's private view */
#define ADMITTED    1
#define TURNED_DOWN 2
#define DEPARTED    3 /* kept until the caller has heard of the end */

#define SENDERS  2
#define HEIR     3 /* of sender 1 */
#define ATTEMPTS_OF(me) ((me) == HEIR -> 1 : 2)

byte entry;             /* the shared word */
byte life[CARRIED + 1]; /* the sender that has the lock of a number, or 0 */
byte over;              /* senders that have come to their end */
bool dead;              /* sender 1 takes no further step */

/* Known to the check only. */
byte believer;      /* the sender that takes the entry for its own, or 0 */
bool unread;        /* messages lie in the ring */

inline take()
{
    atomic { assert(believer == 0); believer = me }
}

inline let_go()
{
    believer = 0
}

/* Another life may have the number that was drawn: then this one goes no further. */
inline show_life()
{
    if
    :: number == CARRIED
    :: atomic { number != CARRIED && life[number] == 0 -> life[number] = me }
    :: atomic { number != CARRIED && life[number] != 0 && life[number] != me ->
#ifndef MUTATE_SHOWN_BLIND
        goto next
#endif
        }
    :: atomic { number != CARRIED && life[number] == me }
    fi
}

inline end_life()
{
    d_step {
        if
        :: number != CARRIED && life[number] == me -> life[number] = 0
        :: else
        fi
    }
}

proctype sender(byte me)
{
    byte attempts, number;
    {
        do
        :: attempts == ATTEMPTS_OF(me) -> break
        :: attempts < ATTEMPTS_OF(me) ->
            attempts++;
            if
            :: number != 0 /* the life goes on */
            :: atomic { end_life(); number = 1 }
            :: atomic { end_life(); number = 2 }
#ifdef CARRIES
            :: atomic { me == 2 -> end_life(); number = CARRIED }
#endif
            fi;
#ifndef MUTATE_SHOWN_LATE
            show_life();
#endif
            if
            :: atomic { entry == FREE -> entry = WORD(CLAIMED, number); take() }
            :: atomic { entry != FREE -> goto next }
            fi;
#ifdef MUTATE_SHOWN_LATE
            show_life();
#endif
            if
            :: entry = WORD(READY, number);
                unread = true; /* send, then disconnect */
                if
                :: skip
                :: atomic { entry == WORD(READY, number) -> /* there is damage in the ring */
                    entry = WORD(REFUSED, number); unread = false }
                fi;
#ifdef MUTATE_LIFE_ENDS_FIRST
                end_life();
#endif
                if
                :: atomic { entry = WORD(ENDED, number); let_go() }
                :: atomic { number == CARRIED -> entry = WORD(LOST, number); let_go() }
                fi
#ifdef MUTATE_SENDER_FREES
            :: atomic { entry = FREE; let_go() }
#else
            :: atomic { entry = WORD(GIVEN_UP, number); let_go() }
#endif
            fi;
next:
            skip
        od;
        atomic { end_life(); over++ }
    }
    unless {
        atomic { dead && me == 1 ->
            end_life();
            if
            :: believer == me -> believer = 0
            :: else
            fi;
            run sender(HEIR) }
    }
}

proctype reaper()
{
    if
    :: dead = true
    :: skip
    fi
}

/* ---- receiver -------------------------------------------------------------------------------- */

inline rx_free()
{
    atomic { entry = FREE; assert(believer == 0 && !unread) }
}

/* The ring is empty and its sender gone. */
inline rx_retire()
{
    mode = ABSENT;
    ending = false;
    unread = false; /* drained, or refused */
    rx_free()
}

inline rx_retire_refused()
{
    if
    :: is_to_be_told -> mode = DEPARTED
    :: !is_to_be_told -> rx_retire()
    fi
}

#ifdef MUTATE_REFUSED_BLIND
#define MAY_REFUSE (!ending)
#else
#define MAY_REFUSE (!ending && STATE(word) == READY && entry == word)
#endif
/* A sender that has found the damage, too, and lives, is one to keep the entry for. */
#ifdef MUTATE_REFUSED_ENDING_KEPT
#define MUST_KEEP true
#else
#ifdef MUTATE_REFUSED_BY_BOTH_KEPT
#define MUST_KEEP (STATE(word) == REFUSED)
#else
#define MUST_KEEP (STATE(word) == REFUSED && !ending)
#endif
#endif

/* The ring holds nonsense: do not read it again, but keep the entry until its sender is gone. */
inline rx_refuse()
{
    mode = TURNED_DOWN;
    word = entry;
    is_to_be_told = tells;
    if
    :: atomic { MAY_REFUSE -> entry = WORD(REFUSED, NUMBER(word)) }
    :: !MAY_REFUSE ->
#ifndef MUTATE_REFUSED_BY_BOTH_FREED
        word = entry;
#endif
        if
        :: MUST_KEEP
        :: !MUST_KEEP -> rx_retire_refused()
        fi
    fi
}

/* The caller hears of a ring's end. */
inline rx_forget()
{
    is_to_be_told = false;
#ifdef MUTATE_FORGOTTEN_BLIND
    rx_retire()
#else
    if
    :: mode == DEPARTED -> rx_retire()
    :: mode != DEPARTED /* refused, and its sender has not left yet */
    fi
#endif
}

#ifdef MUTATE_LOST_NOT_READ
#define MAY_HAVE_SENT(word) (STATE(word) == READY || STATE(word) == ENDED)
#else
#define MAY_HAVE_SENT(word) (STATE(word) == READY || STATE(word) == ENDED || STATE(word) == LOST)
#endif

/* `word` belongs to a sender that left or died. */
inline rx_end()
{
    if
    :: mode == ABSENT && !MAY_HAVE_SENT(word) -> rx_free()
    :: mode == TURNED_DOWN -> rx_retire_refused()
    :: mode == DEPARTED
    :: else -> mode = ADMITTED; ending = true
    fi
}

/* The ring of a sender that is gone is empty, or there was nonsense in it. */
inline rx_settle()
{
    if
    :: is_to_be_told = tells; mode = DEPARTED;
        if
        :: !tells -> rx_retire()
        :: tells
        fi
    :: rx_refuse()
    fi
}

#ifdef MUTATE_CARRIED_REAPED
#define IS_SENDER_ALIVE(word) (life[NUMBER(word)] != 0)
#else
#define IS_SENDER_ALIVE(word) (NUMBER(word) == CARRIED || life[NUMBER(word)] != 0)
#endif

inline rx_reap()
{
    word = entry;
    if
    :: STATE(word) == FREE || ending
    :: !ending && IS_AT_END(word) -> rx_end()
    :: STATE(word) != FREE && !ending && !IS_AT_END(word) ->
        if
        :: IS_SENDER_ALIVE(word)
        :: !IS_SENDER_ALIVE(word) ->
#ifdef MUTATE_REAP_STALE_WORD
            rx_end()
#else
            /* It may have gone on, and left, between the look at the word and that at the lock. */
            if
            :: atomic { entry == word -> skip }; rx_end()
            :: entry != word
            fi
#endif
        fi
    fi;
    word = 0
}

inline rx_rung()
{
    word = entry;
    if
    :: IS_AT_END(word) && !ending -> rx_end()
    :: STATE(word) == READY && mode == ABSENT -> mode = ADMITTED
    :: STATE(word) == REFUSED && mode == ADMITTED -> rx_refuse() /* Its sender has found damage. */
    :: else
    fi;
    word = 0
}

proctype receiver()
{
    byte mode, word, looks;
    bool ending, is_to_be_told, tells;
#ifdef TELLS
    tells = true;
#endif
    do
    :: over < SENDERS ->
        if
        :: rx_reap()
        :: rx_rung()
        :: mode == ADMITTED && ending -> rx_settle(); word = 0
        :: mode == ADMITTED && !ending -> rx_refuse(); word = 0
        :: is_to_be_told -> rx_forget()
        fi
    :: over == SENDERS -> break
    od;
    do
    :: rx_reap();
        if
        :: mode == ADMITTED && ending -> rx_settle(); word = 0
        :: else
        fi;
        if
        :: is_to_be_told -> rx_forget()
        :: else
        fi;
        if
        :: looks == 2 -> break
        :: else -> looks++
        fi
    od;
    assert(entry == FREE && mode == ABSENT);
    assert(life[1] == 0 && life[2] == 0)
}

init
{
    atomic {
        run sender(1);
        run sender(2);
        run receiver();
        run reaper()
    }
}
