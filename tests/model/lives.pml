/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of those who live (lib/shm/lives.h): processes join it with a number, leave it, and the
 * last one removes it. Process 1 has up to two lives one inside the other, and may die between any
 * two of its steps; its locks go with it. A sweep looks at the same time, and once more at the end.
 * TAKEN_AWAY: somebody removes the file's name, once; the sweep looks at the end only.
 *
 * What must hold: a life has its number to itself, and its lock for as long as it goes on; lives of
 * one user meet in one file, unless its name was taken away; when all have left, no file remains.
 *
 * A record lock is its process's: it excludes other processes, and closing the file, or dropping a
 * range, gives back those of all lives. The lock on all bytes is an open file's, and excludes those
 * of its own process, too. The calls of the kernel are atomic. ./run checks the MUTATE_*.
 */

#define FILES     2 /* that are made in all; who would make another goes no further */
#define NUMBERS   2
#define PROCESSES 2
#define SWEEPER   3
#define TRIES     2
#define LIVES     3 /* two of process 1, one of process 2 */
#define PLACE(file, number) ((file) * (NUMBERS + 1) + (number))

byte name;  /* the file that has the name, or 0 */
byte made;  /* files so far */
byte lock[(FILES + 1) * (NUMBERS + 1)]; /* the process that has the lock of a number, or 0 */
byte all[FILES + 1];                    /* the process that has the lock on all bytes, or 0 */
byte over;
bool dead;

/* Known to the check only. */
byte file_of[LIVES], number_of[LIVES]; /* of those that have joined; 0: has not, or has left */
bool was_taken_away;

#define IS_FREE(file)                                                                              \
    (lock[PLACE(file, 1)] == 0 && lock[PLACE(file, 2)] == 0 && all[file] == 0)

inline drop_all(file)
{
    d_step {
        for (i : 1 .. NUMBERS) {
            if
            :: lock[PLACE(file, i)] == me -> lock[PLACE(file, i)] = 0
            :: else
            fi
        }
        i = 0
    }
}

#ifdef MUTATE_LEFT_BY_EACH
#define MAY_STAY(others) false
#else
#define MAY_STAY(others) (others)
#endif

inline remove_name()
{
    d_step {
        for (i : 0 .. LIVES - 1) { assert(name == 0 || file_of[i] != name) }
        i = 0;
        name = 0
    }
}

/* The last one of a process to close the file also tries to remove it. `others`: of its lives. */
inline leave_file(file, others)
{
    if
    :: MAY_STAY(others)
    :: !MAY_STAY(others) ->
        drop_all(file);
        if
#ifdef MUTATE_REMOVED_UNLOCKED
        :: skip;
#else
        :: atomic { IS_FREE(file) -> all[file] = me };
#endif
            if
#ifdef MUTATE_REMOVED_BLIND
            :: remove_name()
#else
            :: atomic { name == file -> remove_name() }
            :: name != file
#endif
            fi;
            all[file] = 0
        :: !IS_FREE(file)
        fi
    fi
}

/* Open the file that has the name, or make one; 0: others do the same at this time. */
inline open_or_make(file)
{
    if
    :: atomic { name != 0 -> file = name }
    :: atomic { name == 0 && made < FILES -> made++; fresh = made };
        if
        :: atomic { name == 0 -> name = fresh; file = fresh }
        :: name != 0 -> file = 0
        fi;
        fresh = 0
    :: name == 0 && made == FILES -> goto done
    fi
}

inline is_named(file)
{
    if
    :: name == file
    :: name != file -> is_joined = false
    fi
}

inline draw(file)
{
    select(number : 1 .. NUMBERS);
    if
#ifdef MUTATE_NOT_LOOKED
    :: skip;
#else
    :: lock[PLACE(file, number)] == 0 && all[file] == 0;
#endif
        if
        :: atomic { (lock[PLACE(file, number)] == 0 || lock[PLACE(file, number)] == me) &&
                    all[file] == 0 -> lock[PLACE(file, number)] = me }
        :: (lock[PLACE(file, number)] != 0 && lock[PLACE(file, number)] != me) || all[file] != 0 ->
            is_joined = false
        fi
#ifndef MUTATE_NOT_LOOKED
    :: lock[PLACE(file, number)] != 0 || all[file] != 0 -> is_joined = false
#endif
    fi
}

/* It has joined: what it counts on. */
inline meet(life, file)
{
    d_step {
        for (i : 0 .. LIVES - 1) {
            assert(file_of[i] != file || number_of[i] != number);
            assert(file_of[i] == 0 || file_of[i] == file || was_taken_away)
        }
        i = 0;
        file_of[life] = file;
        number_of[life] = number
    }
}

inline join(life, file, others)
{
    do
    :: tries == TRIES -> goto done
    :: tries < TRIES ->
        tries++;
        is_joined = true;
        open_or_make(file);
        if
        :: file == 0
        :: file != 0 ->
#ifdef MUTATE_CHECKED_EARLY
            is_named(file);
#endif
            draw(file);
#if !defined(MUTATE_CHECKED_EARLY) && !defined(MUTATE_NOT_CHECKED)
            if
            :: !is_joined
            :: is_joined ->
                is_named(file);
                if
                :: is_joined
                :: !is_joined -> lock[PLACE(file, number)] = 0
                fi
            fi;
#endif
            if
            :: is_joined -> meet(life, file); break
            :: !is_joined -> leave_file(file, others); file = 0
            fi
        fi
    od;
    is_joined = false;
    tries = 0;
    number = 0
}

inline end_life(life, file, others)
{
    d_step {
        assert(lock[PLACE(file, number_of[life])] == me);
        number = number_of[life];
        file_of[life] = 0;
        number_of[life] = 0
    };
    /* Other lives of the process go on in the file: only this one's lock is dropped. */
    lock[PLACE(file, number)] = 0;
    number = 0;
    leave_file(file, others);
    file = 0
}

proctype process(byte me)
{
    byte outer, inner, number, tries, fresh, i;
    bool is_joined;
    {
        join(2 * (me - 1), outer, false);
        if
        :: me == 1 ->
            join(1, inner, inner == outer);
            end_life(1, inner, inner == outer)
        :: skip
        fi;
        end_life(2 * (me - 1), outer, false);
done:
        /* It went no further: what is left of it ends with the process, or by its close. */
        atomic {
            d_step {
                for (i : 0 .. LIVES - 1) {
                    if
                    :: i / 2 == me - 1 -> file_of[i] = 0; number_of[i] = 0
                    :: else
                    fi
                }
                i = 0
            };
            if
            :: outer != 0 -> leave_file(outer, false)
            :: outer == 0
            fi;
            if
            :: inner != 0 && inner != outer -> leave_file(inner, false)
            :: inner == 0 || inner == outer
            fi;
            outer = 0;
            inner = 0;
            over++
        }
    }
    unless {
        atomic { dead && me == 1 ->
            d_step {
                for (i : 1 .. FILES) {
                    lock[PLACE(i, 1)] = (lock[PLACE(i, 1)] == me -> 0 : lock[PLACE(i, 1)]);
                    lock[PLACE(i, 2)] = (lock[PLACE(i, 2)] == me -> 0 : lock[PLACE(i, 2)]);
                    all[i] = (all[i] == me -> 0 : all[i])
                }
                i = 0;
                file_of[0] = 0;
                file_of[1] = 0;
                number_of[0] = 0;
                number_of[1] = 0
            };
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

proctype remover()
{
    if
#ifdef TAKEN_AWAY
    :: atomic { name != 0 -> name = 0; was_taken_away = true }
#endif
    :: skip
    fi
}

inline sweep()
{
    file = name;
    if
    :: file != 0 -> leave_file(file, false)
    :: file == 0
    fi;
    file = 0
}

proctype sweeper()
{
    byte me = SWEEPER, file, i;
#ifndef TAKEN_AWAY
    sweep();
#endif
    (over == PROCESSES);
    sweep();
    assert(name == 0)
}

/* Without a death nobody needs the sweep. */
proctype referee()
{
    (over == PROCESSES);
    assert(name == 0 || dead || all[name] == SWEEPER)
}

init
{
    atomic {
        run process(1);
        run process(2);
        run reaper();
        run remover();
        run sweeper();
        run referee()
    }
}
