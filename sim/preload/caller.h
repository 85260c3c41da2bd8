/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file caller.h
 * @brief Which part of the process makes a call.
 *
 * The program's clocks and waits are virtual. The program is its executable, its own libraries and
 * those of its language. These are not the program: the parts of Open MPI, what its components
 * load, the C library, and the library that allocates memory. Their event loops live in real time.
 *
 * The libraries that talk to the job's launcher have threads that never call the simulator, so
 * waits for those are real, too. OpenMP's threads compute for the program, and the program waits
 * for them: they are not of the cluster unless they call. Clocks that OpenMP reads are the
 * program's.
 */
#ifndef VELO_SIM_PRELOAD_CALLER_H
#define VELO_SIM_PRELOAD_CALLER_H

#include "../client/channel.h"

enum caller {
    CALLER_LAUNCHER, /**< Talks to mpirun. */
    CALLER_C,        /**< The C library. */
    CALLER_VELO,     /**< libvelo, its plug-ins, and this library. */
    CALLER_RUNTIME,  /**< The rest of Open MPI, and the library that allocates memory. */
    CALLER_MPI,      /**< libmpi. */
    CALLER_OPENMP,
    CALLER_PROGRAM,
};

/** The caller to which a function's return address belongs. */
enum caller caller_at(const void *address);

/** The channel of this thread if the caller is the program (or libmpi, for the second); else NULL.
 */
struct sim_channel *caller_program_channel(const void *address);
struct sim_channel *caller_channel(const void *address);
/** The same if the caller is libvelo. */
struct sim_channel *caller_velo_channel(const void *address);

/** The function of this name that would have been called without us; NULL: there is none. */
void *caller_next(const char *name);

/** To be used in the function that was called. */
#define PROGRAM_CHANNEL caller_program_channel(__builtin_return_address(0))
#define CALLER_CHANNEL caller_channel(__builtin_return_address(0))

/** Declares `next`, the function that caller_next() gives. Each thread looks for it once. */
#define CALLER_NEXT(name)                                                                          \
    static __thread __typeof__(name) *next;                                                        \
    if (!next)                                                                                     \
    *(void **)&next = caller_next(#name)

#endif
