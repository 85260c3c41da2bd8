/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A registration of remote memory (edges 8, 9 and 10 of lib/base/order.h), on a machine with store
 * buffers: its owner publishes it under a key, takes the key back and uses the memory for something
 * else; a requester holds the key that it found while it uses the memory. Then the owner publishes
 * other memory in the same entry, under another key.
 *
 * The memory model is that of velo.pml. Orders that x86 keeps by itself (release, acquire) are
 * weakened by exchanging the two accesses.
 *
 * What can go wrong, and how it is seen:
 *  - a requester takes the fields of one registration for those of another: assert in use();
 *  - it reads or writes memory that its owner uses again: asserts in use() and in flusher.
 *
 * ./run checks that it holds, and the MUTATE_* that must not.
 */

#define KEYS 2 /* registrations, one after the other in the same entry */
#define USES 2 /* what the requester does */

#define REQUESTER 0 /* store buffers */
#define OWNER     1

/* Words of shared memory. */
#define KEY       0 /* of the entry; 0: none */
#define FIELD     1 /* where the memory is: its number, the same as its key's */
#define ACTIVE    2 /* the key that the requester holds */
#define LINES     3 /* 1: the owner has to look at ACTIVE */
#define MEMORY(k) (3 + (k))
#define WORDS     (4 + KEYS)

byte mem[WORDS];
chan sb[2] = [4] of { byte, byte }; /* address, value */

bool again[KEYS + 1]; /* what nobody reads but the asserts: the owner uses the memory again */

#define FENCE(p)       empty(sb[p])
#define STORE(p, a, v) sb[p]!a, v

active proctype flusher()
{
    byte a, v;
end:
    do
    :: atomic { sb[REQUESTER]?a, v ->
        assert(a < MEMORY(1) || !again[a - MEMORY(1) + 1]);
        mem[a] = v; a = 0; v = 0 }
    :: atomic { sb[OWNER]?a, v -> mem[a] = v; a = 0; v = 0 }
    od
}

/* ---- owner ----------------------------------------------------------------------------------- */

inline publish()
{
#ifdef MUTATE_KEY_FIRST
    STORE(OWNER, KEY, k);
    STORE(OWNER, FIELD, k)
#else
    STORE(OWNER, FIELD, k);
    STORE(OWNER, KEY, k)
#endif
}

inline take_back()
{
    STORE(OWNER, KEY, 0);
#ifndef MUTATE_OWNER_NO_FENCE
    FENCE(OWNER);
#endif
#ifdef MUTATE_REUSE_EARLY
    again[k] = true;
#endif
    if
    :: mem[LINES] == 1 -> mem[ACTIVE] != k /* wait for it */
    :: mem[LINES] == 0
    fi;
    again[k] = true
}

active proctype owner()
{
    byte k = 1;
    do
    :: k <= KEYS -> publish(); take_back(); k++
    :: else -> break
    od
}

/* ---- requester ------------------------------------------------------------------------------- */

/* The key is held: read and write the memory. */
inline use()
{
    assert(field == k);
    assert(!again[k]);
    STORE(REQUESTER, MEMORY(k), 1)
}

inline raise_lines() { atomic { FENCE(REQUESTER) -> mem[LINES] = 1 } }

inline enter()
{
    STORE(REQUESTER, ACTIVE, k);
#ifndef MUTATE_ENTER_RELAXED
    FENCE(REQUESTER);
#endif
}

active proctype requester()
{
    byte k, seen, field, uses;
#ifndef MUTATE_LINES_LATE
    raise_lines();
#endif
    do
    :: uses < USES ->
        uses++;
        select(k : 1 .. KEYS);
        enter();
#ifdef MUTATE_FIELD_EARLY
        field = mem[FIELD];
        seen = mem[KEY];
#else
        seen = mem[KEY];
        field = mem[FIELD];
#endif
#ifdef MUTATE_LEAVE_EARLY
        STORE(REQUESTER, ACTIVE, 0);
#endif
        if
        :: seen == k -> use()
        :: else
        fi;
#ifndef MUTATE_LEAVE_EARLY
        STORE(REQUESTER, ACTIVE, 0);
#endif
#ifdef MUTATE_LINES_LATE
        raise_lines();
#endif
        atomic { seen = 0; field = 0; k = 0 }
    :: else -> break
    od
}
