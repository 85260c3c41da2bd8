/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life cycle of one connection table entry: two senders that want it, and the receiver that admits,
 * refuses, drains and reaps. The word says what the entry is for, a record lock of the kernel says
 * who lives. Sender 1 may die between any two of its steps; its lock goes with it. Sender 2 is a
 * thread of the receiver's own process, whose locks the receiver cannot see.
 *
 * What must hold: nobody else gets the entry while a live sender believes it to be its own; it is not
 * freed with messages unread; once all have left or died the receiver gets it back.
 *
 * Memory is sequentially consistent here; velo.pml has the orderings. ./run checks the MUTATE_*.
 */

#define FREE    0
#define CLAIMED 1
#define READY   2
#define REFUSED 3
#define ENDED   4
#define GIVEN_UP 5 /* claimed, but there was no memory for the ring */
#define WORD(state, who) ((state) + 8 * (who))
#define STATE(word)      ((word) % 8)
#define WHO(word)        ((word) / 8)

#define ABSENT 0 /* the receiver's private view */
#define ADMITTED 1
#define TURNED_DOWN 2

#define SENDERS  2
#define OWN      2 /* the sender in the receiver's process */
#define ATTEMPTS 2

byte entry;         /* the shared word */
byte lock;          /* the sender that holds the record lock, or 0 */
byte over;          /* senders that have come to their end */
bool dead;          /* sender 1 takes no further step */

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

proctype sender(byte me)
{
    byte attempts, seen;
    {
        do
        :: attempts == ATTEMPTS -> break
        :: attempts < ATTEMPTS ->
            attempts++;
#ifndef MUTATE_LOCK_LATE
            if
            :: atomic { lock == 0 -> lock = me }
            :: atomic { lock != 0 -> goto next }
            fi;
#endif
            if
            :: atomic { entry == FREE -> entry = WORD(CLAIMED, me); take() }
            :: atomic { entry != FREE ->
                if
                :: lock == me -> lock = 0
                :: else
                fi; goto next }
            fi;
#ifdef MUTATE_LOCK_LATE
            if
            :: atomic { lock == 0 -> lock = me }
            :: atomic { lock != 0 -> let_go(); entry = FREE; goto next }
            fi;
#endif
            if
            :: entry = WORD(READY, me);
                unread = true; /* send, then disconnect */
#ifdef MUTATE_UNLOCK_FIRST
                lock = 0;
#endif
                atomic { entry = WORD(ENDED, me); let_go() }
#ifdef MUTATE_SENDER_FREES
            :: atomic { entry = FREE; let_go() }
#else
            :: atomic { entry = WORD(GIVEN_UP, me); let_go() }
#endif
            fi;
#ifndef MUTATE_UNLOCK_FIRST
            lock = 0;
#else
            atomic {
                if
                :: lock == me -> lock = 0
                :: else
                fi
            };
#endif
next:
            skip
        od;
        over++
    }
    unless {
        atomic { dead && me == 1 ->
            if
            :: lock == me -> lock = 0
            :: else
            fi;
            if
            :: believer == me -> believer = 0
            :: else
            fi;
            over++ }
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

/* The ring holds nonsense: do not read it again, but keep the entry until its sender is gone. */
inline rx_refuse()
{
    mode = TURNED_DOWN;
    word = entry;
#ifdef MUTATE_REFUSED_ENDING_KEPT
    if
    :: STATE(word) == READY -> entry = WORD(REFUSED, WHO(word))
    :: else
    fi
#else
#ifdef MUTATE_REFUSE_BLIND
    if
    :: ending -> rx_retire()
    :: else -> entry = WORD(REFUSED, WHO(word))
    fi
#else
    /* Its sender may have left in the meantime: then there is nobody to keep the entry for. */
    if
    :: atomic { !ending && STATE(word) == READY && entry == word -> entry = WORD(REFUSED, WHO(word)) }
    :: ending || STATE(word) != READY || entry != word -> rx_retire()
    fi
#endif
#endif
}

/* `word` belongs to a sender that left or died. */
inline rx_end()
{
    if
    :: mode == ABSENT && (STATE(word) == CLAIMED || STATE(word) == GIVEN_UP) -> rx_free()
    :: mode == TURNED_DOWN -> rx_retire()
    :: else ->
        mode = ADMITTED;
        ending = true;
        if
        :: rx_retire()
        :: rx_refuse() /* there was nonsense in the ring */
        fi
    fi
}

inline rx_reap()
{
    word = entry;
    if
    :: STATE(word) == FREE || ending
    :: STATE(word) == ENDED || STATE(word) == GIVEN_UP -> rx_end()
    :: else ->
        if
        :: WHO(word) != OWN && lock == 0 ->
#ifdef MUTATE_REAP_STALE_WORD
            rx_end()
#else
            /* It may have gone on, and left, between the look at the word and that at the lock. */
            if
            :: atomic { entry == word -> skip }; rx_end()
            :: entry != word
            fi
#endif
        :: else
        fi
    fi;
    word = 0
}

inline rx_rung()
{
    word = entry;
    if
    :: (STATE(word) == ENDED || STATE(word) == GIVEN_UP) && !ending -> rx_end()
    :: STATE(word) == READY && mode == ABSENT -> mode = ADMITTED
    :: else
    fi;
    word = 0
}

proctype receiver()
{
    byte mode, word;
    bool ending;
    do
    :: over < SENDERS ->
        if
        :: rx_reap()
        :: rx_rung()
        :: mode == ADMITTED && !ending -> rx_refuse(); word = 0
        fi
    :: over == SENDERS -> break
    od;
    rx_reap();
    rx_reap();
    assert(entry == FREE && mode == ABSENT && lock == 0)
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
