/* SPDX-License-Identifier: Apache-2.0 */
#include "caller.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A program reads clocks in few places; it allocates memory in more. */
#define KNOWN_LOG2 8

struct known {
    const void *address;
    enum caller who;
};

static __thread struct known known[1 << KNOWN_LOG2];

/* How the names of files begin. The first name that fits decides. */
static enum caller name_to_caller(const char *name)
{
    static const struct {
        const char *begin;
        enum caller who;
    } known_names[] = {
        {"libmpi.so", CALLER_MPI},       {"libmpi_abi.so", CALLER_MPI},
        {"libmpich.so", CALLER_MPI},     {"libopen-rte", CALLER_LAUNCHER},
        {"libpmix", CALLER_LAUNCHER},    {"libprrte", CALLER_LAUNCHER},
        {"libprte", CALLER_LAUNCHER},    {"libevent", CALLER_LAUNCHER},
        {"mca_pmix", CALLER_LAUNCHER},   {"mca_ess", CALLER_LAUNCHER},
        {"mca_errmgr", CALLER_LAUNCHER}, {"mca_grpcomm", CALLER_LAUNCHER},
        {"mca_oob", CALLER_LAUNCHER},    {"mca_rml", CALLER_LAUNCHER},
        {"mca_routed", CALLER_LAUNCHER}, {"mca_state", CALLER_LAUNCHER},
        {"libmunge", CALLER_LAUNCHER},   {"libvelo.so", CALLER_VELO},
        {"libvelo-", CALLER_VELO},       {"libc.so", CALLER_C},
        {"libpthread", CALLER_C},        {"ld-linux", CALLER_RUNTIME},
        {"libopen-", CALLER_RUNTIME},    {"libmca_", CALLER_RUNTIME},
        {"mca_", CALLER_RUNTIME},        {"libhwloc", CALLER_RUNTIME},
        {"libfabric", CALLER_RUNTIME},   {"libuc", CALLER_RUNTIME},
        {"libpsm", CALLER_RUNTIME},      {"libinfinipath", CALLER_RUNTIME},
        {"libefa", CALLER_RUNTIME},      {"libibverb", CALLER_RUNTIME},
        {"librdmacm", CALLER_RUNTIME},   {"libnl-", CALLER_RUNTIME},
        {"libudev", CALLER_RUNTIME},     {"libpciaccess", CALLER_RUNTIME},
        {"libX11", CALLER_RUNTIME},      {"libxcb", CALLER_RUNTIME},
        {"libnccl", CALLER_RUNTIME},     {"libze_", CALLER_RUNTIME},
        {"libcuda", CALLER_RUNTIME},     {"libjemalloc", CALLER_RUNTIME},
        {"libgomp", CALLER_OPENMP},      {"libomp.so", CALLER_OPENMP},
        {"libomp-", CALLER_OPENMP},      {"libiomp5", CALLER_OPENMP},
    };
    for (size_t i = 0; i < sizeof known_names / sizeof *known_names; i++)
        if (strncmp(name, known_names[i].begin, strlen(known_names[i].begin)) == 0)
            return known_names[i].who;
    return CALLER_PROGRAM;
}

static enum caller look_up(const void *address)
{
    Dl_info info;
    if (dladdr(address, &info) == 0)
        return CALLER_PROGRAM; /* Code that the program has made at run time, as a just-in-time
                                  compiler does. */
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
    return caller_at(address) >= CALLER_OPENMP ? sim_channel_self() : NULL;
}

struct sim_channel *caller_channel(const void *address)
{
    return caller_at(address) >= CALLER_MPI ? sim_channel_self() : NULL;
}

struct sim_channel *caller_velo_channel(const void *address)
{
    return caller_at(address) == CALLER_VELO ? sim_channel_self() : NULL;
}

void *caller_next(const char *name)
{
    /* Open MPI loads PMIx, and its components load libvelo, so that nobody else sees their names,
     * and a program may load Open MPI so: then RTLD_NEXT does not find them. */
    static const char *const alone[] = {"libmpi.so.40", "libpmix.so.2", "libpmix.so", VELO_SONAME};
    void *found = dlsym(RTLD_NEXT, name);
    for (size_t i = 0; !found && i < sizeof alone / sizeof *alone; i++) {
        void *library = dlopen(alone[i], RTLD_LAZY | RTLD_NOLOAD);
        found = library ? dlsym(library, name) : NULL;
        if (library)
            (void)dlclose(library); /* The part that loaded it still holds it. */
    }
    return found;
}
