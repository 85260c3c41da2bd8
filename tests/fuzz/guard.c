/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Put every file mapping of the library between two unreadable areas (the linker's --wrap leads its
 * mmap() here), so that an access beyond a segment ends the program instead of going unnoticed.
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/types.h>

#define GUARD_BYTES ((size_t)1 << 20)
#define MAPPINGS_MAX 64

void *__real_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
int __real_munmap(void *addr, size_t len);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
int __wrap_munmap(void *addr, size_t len);

static void *guarded[MAPPINGS_MAX];

void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
    size_t i = 0;
    while (i < MAPPINGS_MAX && guarded[i])
        i++;
    if (fd < 0 || addr || i == MAPPINGS_MAX)
        return __real_mmap(addr, len, prot, flags, fd, offset);
    char *area = __real_mmap(NULL, len + 2 * GUARD_BYTES, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (area == MAP_FAILED)
        return MAP_FAILED;
    guarded[i] = __real_mmap(area + GUARD_BYTES, len, prot, flags | MAP_FIXED, fd, offset);
    return guarded[i];
}

int __wrap_munmap(void *addr, size_t len)
{
    for (size_t i = 0; i < MAPPINGS_MAX; i++) {
        if (guarded[i] && guarded[i] == addr) {
            guarded[i] = NULL;
            return __real_munmap((char *)addr - GUARD_BYTES, len + 2 * GUARD_BYTES);
        }
    }
    return __real_munmap(addr, len);
}
