/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The node reads memory page by page. How long it takes to read a buffer depends on where the
 * buffer begins in its page, and on what else is in the same pages. Two runs are alike only if that
 * is alike.
 *
 * The stack begins where the environment ends. The length of the environment depends on the
 * launcher: it has process numbers and names of sockets in it. This library takes the place of the
 * function that calls main(), and lets the stack begin at the same address in every run.
 *
 * The heap is jemalloc's, which `velo sim` loads. jemalloc allocates from arenas, each thread from
 * its own. The first arena is the program's, for all of its threads, and takes its memory from one
 * place, the end of the program's data. The launcher's libraries and threads allocate elsewhere. So
 * does the C library for itself, mostly for names.
 */
#include "memory.h"

#include <alloca.h>
#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "caller.h"

/* Longer than the environment, unless the user's own is very long. */
#define STACK_ALIGN_BYTES UINT64_C(0x40000)

/* As in <jemalloc/jemalloc.h>, which need not be installed. NULL if jemalloc is not loaded. */
#define ARENAS_ALL "4096"
#define IN_ARENA(arena) ((int)((arena) + 1) << 20)
#define ZEROED 0x40
__attribute__((weak)) int mallctl(const char *name, void *old, size_t *old_bytes, void *value,
                                  size_t value_bytes);
__attribute__((weak)) void *mallocx(size_t len_bytes, int flags);
__attribute__((weak)) void *rallocx(void *memory, size_t len_bytes, int flags);

/* The C library's own. */
void *__libc_malloc(size_t len_bytes);
void *__libc_calloc(size_t count, size_t len_bytes);
void *__libc_realloc(void *memory, size_t len_bytes);
void *__libc_memalign(size_t align_bytes, size_t len_bytes);

typedef int start_main(int (*body)(int, char **, char **), int argc, char **argv,
                       void (*init)(void), void (*fini)(void), void (*loader_fini)(void),
                       void *stack_end);

/* ---- the heap -------------------------------------------------------------------------------- */

/* The flag of jemalloc's calls that names the launcher's arena; 0: there is none yet. */
static int launchers;

void memory_join(void)
{
    unsigned arena = 0;
    if (mallctl)
        (void)mallctl("thread.arena", NULL, NULL, &arena, sizeof arena);
}

static void part_arenas(void)
{
    if (!mallctl)
        return;
    /* This is for arenas that are made from now on; $MALLOC_CONF has set the first one
     * otherwise. */
    const char *elsewhere = "disabled";
    (void)mallctl("arena." ARENAS_ALL ".dss", NULL, NULL, &elsewhere, sizeof(void *));
    unsigned arena;
    size_t arena_bytes = sizeof arena;
    if (mallctl("arenas.create", &arena, &arena_bytes, NULL, 0) == 0)
        launchers = IN_ARENA(arena);
}

/* The flags to allocate memory for this caller. Memory of a page or more begins at a page:
 * jemalloc would put it at a random place in one. */
static int flags_for(const void *caller, size_t align_bytes, size_t len_bytes)
{
    if (len_bytes >= SIM_PAGE_BYTES && align_bytes < SIM_PAGE_BYTES)
        align_bytes = SIM_PAGE_BYTES;
    int arena = launchers && caller_at(caller) <= CALLER_C ? launchers : 0;
    return arena | __builtin_ctzll(align_bytes);
}

/* These calls of jemalloc do not allow an empty allocation. */
static void *take(size_t len_bytes, int flags)
{
    void *memory = mallocx(len_bytes ? len_bytes : 1, flags);
    if (!memory)
        errno = ENOMEM;
    return memory;
}

static void *take_aligned(const void *caller, size_t align_bytes, size_t len_bytes)
{
    if (!mallocx)
        return __libc_memalign(align_bytes, len_bytes);
    if (align_bytes == 0 || (align_bytes & (align_bytes - 1)) != 0) {
        errno = EINVAL;
        return NULL;
    }
    return take(len_bytes, flags_for(caller, align_bytes, len_bytes));
}

#define CALLER __builtin_return_address(0)

SIM_API void *malloc(size_t len_bytes)
{
    return mallocx ? take(len_bytes, flags_for(CALLER, 1, len_bytes)) : __libc_malloc(len_bytes);
}

SIM_API void *calloc(size_t count, size_t len_bytes)
{
    size_t all_bytes;
    if (!mallocx)
        return __libc_calloc(count, len_bytes);
    if (__builtin_mul_overflow(count, len_bytes, &all_bytes))
        all_bytes = SIZE_MAX; /* More than there is: the call fails. */
    return take(all_bytes, flags_for(CALLER, 1, all_bytes) | ZEROED);
}

SIM_API void *realloc(void *memory, size_t len_bytes)
{
    if (!mallocx)
        return __libc_realloc(memory, len_bytes);
    if (memory && len_bytes == 0) {
        free(memory);
        return NULL;
    }
    int flags = flags_for(CALLER, 1, len_bytes);
    if (!memory)
        return take(len_bytes, flags);
    void *moved = rallocx(memory, len_bytes, flags);
    if (!moved)
        errno = ENOMEM;
    return moved;
}

SIM_API void *memalign(size_t align_bytes, size_t len_bytes)
{
    return take_aligned(CALLER, align_bytes, len_bytes);
}

SIM_API void *aligned_alloc(size_t align_bytes, size_t len_bytes)
{
    return take_aligned(CALLER, align_bytes, len_bytes);
}

SIM_API int posix_memalign(void **memory, size_t align_bytes, size_t len_bytes)
{
    if (align_bytes % sizeof(void *) != 0)
        return EINVAL;
    void *taken = take_aligned(CALLER, align_bytes, len_bytes);
    if (!taken)
        return errno;
    *memory = taken;
    return 0;
}

/* ---- the stack ------------------------------------------------------------------------------- */

static int (*program_main)(int, char **, char **);

static int main_in_place(int argc, char **argv, char **envp)
{
    part_arenas();
    volatile char *room = alloca((uintptr_t)__builtin_frame_address(0) % STACK_ALIGN_BYTES);
    room[0] = 0; /* Without a write the compiler would leave `room` out. */
    return program_main(argc, argv, envp);
}

SIM_API start_main __libc_start_main;

int __libc_start_main(int (*body)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*loader_fini)(void), void *stack_end)
{
    CALLER_NEXT(__libc_start_main);
    if (!next)
        abort(); /* There is no C library. */
    program_main = body;
    return next(main_in_place, argc, argv, init, fini, loader_fini, stack_end);
}
