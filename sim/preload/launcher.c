/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fence of the job's launcher is not simulated: it takes as long as it takes in real time, and no
 * virtual time. This library takes the place of the calls that begin one, tells the simulator, and
 * passes them on. All ranks of a job call them in the same order, and so count them alike.
 *
 * Open MPI's launcher offers calls (PMIx). To Hydra, the launcher of MPICH and those that come from
 * it, MPI itself writes lines (PMI): their file's number is in the environment. To every other line
 * Hydra answers at once.
 */
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "../client/poll.h"
#include "caller.h"
#include "locality.h"
#include "pipe.h"

/* As in <pmix.h>, which need not be installed: arguments are only passed on. */
#define PMIX_ERR_NOT_SUPPORTED (-47)

typedef int fence(const void *procs, size_t procs_len, const void *info, size_t info_len);
typedef int fence_nb(const void *procs, size_t procs_len, const void *info, size_t info_len,
                     void (*done)(int, void *), void *arg);

SIM_API fence PMIx_Fence;
SIM_API fence_nb PMIx_Fence_nb;

int PMIx_Fence(const void *procs, size_t procs_len, const void *info, size_t info_len)
{
    CALLER_NEXT(PMIx_Fence);
    if (!next)
        return PMIX_ERR_NOT_SUPPORTED;
    sim_poll_go_outside();
    return next(procs, procs_len, info, info_len);
}

int PMIx_Fence_nb(const void *procs, size_t procs_len, const void *info, size_t info_len,
                  void (*done)(int, void *), void *arg)
{
    CALLER_NEXT(PMIx_Fence_nb);
    if (!next)
        return PMIX_ERR_NOT_SUPPORTED;
    sim_poll_go_outside();
    return next(procs, procs_len, info, info_len, done, arg);
}

/* ---- Hydra ----------------------------------------------------------------------------------- */

/* A fence in version 1 of PMI, and in version 2 behind the line's length. */
#define BARRIER "cmd=barrier_in"
#define FENCE "cmd=kvs-fence"
#define LENGTH_DIGITS 6

static bool begins_at(const char *line, size_t len_bytes, size_t at, const char *word)
{
    size_t word_bytes = strlen(word);
    return len_bytes >= at + word_bytes && memcmp(line + at, word, word_bytes) == 0;
}

SIM_API ssize_t write(int file, const void *data, size_t len_bytes)
{
    CALLER_NEXT(write);
    if (!next)
        return -1;
    if ((begins_at(data, len_bytes, 0, BARRIER) ||
         begins_at(data, len_bytes, LENGTH_DIGITS, FENCE)) &&
        file == locality_hydra_file())
        sim_poll_go_outside();
    const void *caller = __builtin_return_address(0);
    return pipe_may_fill(caller, file) ? pipe_write(next, caller, file, data, len_bytes)
                                       : next(file, data, len_bytes);
}
