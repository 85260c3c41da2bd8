/* SPDX-License-Identifier: Apache-2.0 */
#include "error.h"

#include <stdarg.h>
#include <stdio.h>

#define STRINGIFY_(x) #x
#define STRINGIFY(x) STRINGIFY_(x)

static _Thread_local char last_error[512];

int velo_fail(int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(last_error, sizeof last_error, format, args);
    va_end(args);
    return status;
}

const char *velo_last_error(void) { return last_error; }

const char *velo_version(void) { return VELO_VERSION_TEXT " abi " STRINGIFY(VELO_ABI_VERSION); }

const char *velo_strerror(int status)
{
    switch ((enum velo_status)status) {
    case VELO_OK:
        return "VELO_OK: done";
    case VELO_AGAIN:
        return "VELO_AGAIN: nothing to receive, or no room to send, right now";
    case VELO_TIMEOUT:
        return "VELO_TIMEOUT: the time given ran out";
    case VELO_ERR_ARG:
        return "VELO_ERR_ARG: an argument is outside its range";
    case VELO_ERR_STATE:
        return "VELO_ERR_STATE: the call does not fit what was called before";
    case VELO_ERR_TOO_BIG:
        return "VELO_ERR_TOO_BIG: the message is longer than the ring or the buffer takes";
    case VELO_ERR_NO_PEER:
        return "VELO_ERR_NO_PEER: no port of that id is open in the domain";
    case VELO_ERR_PEER_CLOSED:
        return "VELO_ERR_PEER_CLOSED: the peer closed its port";
    case VELO_ERR_PEER_DEAD:
        return "VELO_ERR_PEER_DEAD: the peer's process has ended";
    case VELO_ERR_IN_USE:
        return "VELO_ERR_IN_USE: a live process has that port open";
    case VELO_ERR_FULL:
        return "VELO_ERR_FULL: the peer's connection table, or the id space, is full";
    case VELO_ERR_ACCESS:
        return "VELO_ERR_ACCESS: not permitted: a file that is not ours to open, or memory that is "
               "not registered for this use";
    case VELO_ERR_NO_SPACE:
        return "VELO_ERR_NO_SPACE: the shared-memory file system is full";
    case VELO_ERR_NO_MEMORY:
        return "VELO_ERR_NO_MEMORY: out of memory or mappings";
    case VELO_ERR_VERSION:
        return "VELO_ERR_VERSION: the peer was built with another segment layout";
    case VELO_ERR_CORRUPT:
        return "VELO_ERR_CORRUPT: shared memory holds what no correct peer writes";
    case VELO_ERR_SYSTEM:
        return "VELO_ERR_SYSTEM: a system call failed";
    case VELO_ERR_INTERRUPTED:
        return "VELO_ERR_INTERRUPTED: a signal handler ran during a wait";
    case VELO_ERR_CANCELLED:
        return "VELO_ERR_CANCELLED: the request was cancelled";
    case VELO_ERR_MISSED:
        return "VELO_ERR_MISSED: messages were overwritten before this reader took them";
    }
    return "unknown status";
}
