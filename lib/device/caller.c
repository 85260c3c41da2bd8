/* SPDX-License-Identifier: Apache-2.0 */
#include "caller.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Few places of a program read clocks. */
#define KNOWN_LOG2 6

struct known {
    const void *address;
    enum caller who;
};

static __thread struct known known[1 << KNOWN_LOG2];

/* By the names of files, as they begin. */
static enum caller name_to_caller(const char *name)
{
    static const char *const runtime[] = {
        "libvelo.so", "libc.so", "libpthread", "ld-linux",  "libopen-",  "libmca_",
        "mca_",       "libpmix", "libprrte",   "libprte",   "libevent",  "libhwloc",
        "libfabric",  "libuc",   "libpsm",     "libibverb", "librdmacm", "libnl-",
        "libmunge",   "libnccl", "libze_",     "libcuda",
    };
    if (strncmp(name, "libmpi.so", strlen("libmpi.so")) == 0)
        return CALLER_MPI;
    for (size_t i = 0; i < sizeof runtime / sizeof *runtime; i++)
        if (strncmp(name, runtime[i], strlen(runtime[i])) == 0)
            return CALLER_RUNTIME;
    return CALLER_PROGRAM;
}

static enum caller look_up(const void *address)
{
    Dl_info info;
    if (dladdr(address, &info) == 0)
        return CALLER_PROGRAM; /* Made while it runs, as by a compiler of the program's own. */
    const char *slash = strrchr(info.dli_fname, '/');
    return name_to_caller(slash ? slash + 1 : info.dli_fname);
}

enum caller caller_at(const void *address)
{
    struct known *slot =
        &known[(uintptr_t)address * UINT64_C(0x9E3779B97F4A7C15) >> (64 - KNOWN_LOG2)];
    if (slot->address != address)
        *slot = (struct known){address, look_up(address)};
    return slot->who;
}

struct sim_channel *caller_program_channel(const void *address)
{
    return caller_at(address) == CALLER_PROGRAM ? channel_self() : NULL;
}

struct sim_channel *caller_channel(const void *address)
{
    return caller_at(address) == CALLER_RUNTIME ? NULL : channel_self();
}

void *caller_next(const char *name)
{
    /* Open MPI loads PMIx for itself alone, and so may a program Open MPI: then it is not found by
     * its name only. */
    static const char *const alone[] = {"libmpi.so.40", "libpmix.so.2", "libpmix.so"};
    void *found = dlsym(RTLD_NEXT, name);
    for (size_t i = 0; !found && i < sizeof alone / sizeof *alone; i++) {
        void *library = dlopen(alone[i], RTLD_LAZY | RTLD_NOLOAD);
        found = library ? dlsym(library, name) : NULL;
        if (library)
            (void)dlclose(library); /* Who loaded it keeps it. */
    }
    return found;
}
