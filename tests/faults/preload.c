/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library to be loaded before a program: one call that velo makes of the system fails, chosen
 * by its name and how many there were before. Calls of others than velo's own libraries are left
 * alone.
 *
 *   FAULT_CALL=name  the call, as in the list at the end
 *   FAULT_AT=n       the n-th of them fails, from 1 on
 *   FAULT_ON=1       and all behind it
 *   FAULT_MOST=n     at the end, a line says so if it was made more often than that
 *   FAULT_COUNTS=f   at the end, a line "name count" for each call goes to the file f
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <link.h>
#include <linux/membarrier.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "preload.h"

/* ---- which call fails ------------------------------------------------------------------------ */

static struct call *calls;
static const char *chosen;
static unsigned long chosen_at;
static bool goes_on;

static __attribute__((constructor(101))) void choose(void)
{
    const char *at = getenv("FAULT_AT");
    chosen = getenv("FAULT_CALL");
    chosen_at = at ? strtoul(at, NULL, 10) : 0;
    goes_on = getenv("FAULT_ON") != NULL;
}

/* Was what fails tried again and again? */
static __attribute__((destructor)) void tell_flood(void)
{
    const char *most = getenv("FAULT_MOST");
    for (const struct call *call = calls; chosen && most && call; call = call->next)
        if (strcmp(chosen, call->name) == 0 && atomic_load(&call->count) > strtoul(most, NULL, 10))
            (void)fprintf(stderr, "flood: %s was called %lu times\n", chosen,
                          atomic_load(&call->count));
}

static __attribute__((destructor)) void tell_counts(void)
{
    const char *path = getenv("FAULT_COUNTS");
    FILE *file = path ? fopen(path, "we") : NULL;
    if (!file)
        return;
    for (const struct call *call = calls; call; call = call->next)
        if (atomic_load(&call->count) > 0)
            (void)fprintf(file, "%s %lu\n", call->name, atomic_load(&call->count));
    (void)fclose(file);
}

void call_list(struct call *call)
{
    call->next = calls;
    calls = call;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* The file that an address lies in; NULL: the program itself, or none. This takes no lock and no
 * memory: an allocation asks. */
static const char *file_of(const void *address)
{
    struct dl_find_object found;
    return _dl_find_object((void *)(uintptr_t)address, &found) == 0 && *found.dlfo_link_map->l_name
               ? found.dlfo_link_map->l_name
               : NULL;
}

/* The library, what stands beside it, Open MPI's components of velo's, the Python binding. */
bool call_is_of_velo(const void *caller)
{
    const char *file = file_of(caller);
    const char *slash = file ? strrchr(file, '/') : NULL;
    const char *name = slash ? slash + 1 : "";
    return begins(name, "libvelo") || begins(name, "librma2") || begins(name, "libdimmnet") ||
           (begins(name, "mca_") && strstr(name, "_velo.")) || begins(name, "_velo.") ||
           begins(name, "_lease.") || begins(name, "_turn.");
}

/* A library that a plug-in brings is behind none. */
void *call_next(const char *name, const void *caller)
{
    void *next = dlsym(RTLD_NEXT, name);
    const char *file = next ? NULL : file_of(caller);
    void *library = file ? dlopen(file, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    return library ? dlsym(library, name) : next;
}

bool call_fails(struct call *call, const void *caller)
{
    if (!call_is_of_velo(caller))
        return false;
    unsigned long number = atomic_fetch_add(&call->count, 1) + 1;
    if (!chosen || strcmp(chosen, call->name) != 0)
        return false;
    return number == chosen_at || (goes_on && number > chosen_at);
}

/* The C library's own, for what the search for a name may call itself. */
extern void *__libc_malloc(size_t len);
extern void *__libc_calloc(size_t count, size_t len);
extern void *__libc_realloc(void *old, size_t len);
extern void *__libc_memalign(size_t alignment, size_t len);

static void *refuse(int error)
{
    errno = error;
    return NULL;
}

CALL(malloc)
SHOWN void *malloc(size_t len) { return FAILS(malloc) ? refuse(ENOMEM) : __libc_malloc(len); }

CALL(calloc)
SHOWN void *calloc(size_t count, size_t len)
{
    return FAILS(calloc) ? refuse(ENOMEM) : __libc_calloc(count, len);
}

CALL(realloc)
SHOWN void *realloc(void *old, size_t len)
{
    return FAILS(realloc) ? refuse(ENOMEM) : __libc_realloc(old, len);
}

CALL(aligned_alloc)
SHOWN void *aligned_alloc(size_t alignment, size_t len)
{
    return FAILS(aligned_alloc) ? refuse(ENOMEM) : __libc_memalign(alignment, len);
}

WRAP(void *, mmap, (void *at, size_t len, int prot, int flags, int fd, off_t offset),
     (at, len, prot, flags, fd, offset), MAP_FAILED, ENOMEM)
WRAP(int, madvise, (void *at, size_t len, int advice), (at, len, advice), -1, EINVAL)
WRAP(int, memfd_create, (const char *name, unsigned flags), (name, flags), -1, EMFILE)
WRAP(int, ftruncate, (int fd, off_t len), (fd, len), -1, ENOSPC)
WRAP(int, fallocate, (int fd, int mode, off_t at, off_t len), (fd, mode, at, len), -1, ENOSPC)
WRAP(int, posix_fallocate, (int fd, off_t at, off_t len), (fd, at, len), ENOSPC, ENOSPC)
WRAP(int, fchmod, (int fd, mode_t mode), (fd, mode), -1, EPERM)
WRAP(int, fchown, (int fd, uid_t user, gid_t group), (fd, user, group), -1, EPERM)
WRAP(int, fstat, (int fd, struct stat *status), (fd, status), -1, EIO)
WRAP(int, stat, (const char *path, struct stat *status), (path, status), -1, ENOMEM)
WRAP(int, access, (const char *path, int mode), (path, mode), -1, EACCES)
WRAP(int, flock, (int fd, int operation), (fd, operation), -1, ENOLCK)
WRAP(int, linkat, (int from_dir, const char *from, int to_dir, const char *to, int flags),
     (from_dir, from, to_dir, to, flags), -1, ENOSPC)
WRAP(int, unlink, (const char *path), (path), -1, EACCES)
WRAP(ssize_t, write, (int fd, const void *from, size_t len), (fd, from, len), -1, EIO)
WRAP(ssize_t, pread, (int fd, void *to, size_t len, off_t at), (fd, to, len, at), -1, EIO)
WRAP(FILE *, fdopen, (int fd, const char *mode), (fd, mode), NULL, ENOMEM)
WRAP(int, socket, (int domain, int type, int protocol), (domain, type, protocol), -1, EMFILE)
WRAP(int, bind, (int fd, const struct sockaddr *to, socklen_t len), (fd, to, len), -1, ENOMEM)
WRAP(ssize_t, sendto,
     (int fd, const void *from, size_t len, int flags, const struct sockaddr *to, socklen_t to_len),
     (fd, from, len, flags, to, to_len), -1, ENOBUFS)
WRAP(ssize_t, recv, (int fd, void *to, size_t len, int flags), (fd, to, len, flags), -1, ENOMEM)
WRAP(int, poll, (struct pollfd * fds, nfds_t count, int timeout_ms), (fds, count, timeout_ms), -1,
     ENOMEM)
WRAP(int, ppoll,
     (struct pollfd * fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask),
     (fds, count, timeout, mask), -1, ENOMEM)
WRAP(int, epoll_create1, (int flags), (flags), -1, EMFILE)
WRAP(int, epoll_ctl, (int set, int op, int fd, struct epoll_event *event), (set, op, fd, event), -1,
     ENOSPC)
WRAP(int, epoll_wait, (int set, struct epoll_event *events, int count, int timeout_ms),
     (set, events, count, timeout_ms), -1, EINTR)
WRAP(int, eventfd, (unsigned value, int flags), (value, flags), -1, EMFILE)
WRAP(int, timerfd_create, (int clock, int flags), (clock, flags), -1, EMFILE)
WRAP(int, timerfd_settime,
     (int fd, int flags, const struct itimerspec *time, struct itimerspec *old),
     (fd, flags, time, old), -1, EINVAL)
WRAP(ssize_t, getrandom, (void *to, size_t len, unsigned flags), (to, len, flags), -1, ENOSYS)
WRAP(ssize_t, process_vm_readv,
     (pid_t pid, const struct iovec *to, unsigned long to_len, const struct iovec *from,
      unsigned long from_len, unsigned long flags),
     (pid, to, to_len, from, from_len, flags), -1, EPERM)
WRAP(ssize_t, process_vm_writev,
     (pid_t pid, const struct iovec *from, unsigned long from_len, const struct iovec *to,
      unsigned long to_len, unsigned long flags),
     (pid, from, from_len, to, to_len, flags), -1, EPERM)
WRAP(int, pthread_create,
     (pthread_t * thread, const pthread_attr_t *attr, void *(*body)(void *), void *arg),
     (thread, attr, body, arg), EAGAIN, EAGAIN)
WRAP(void *, dlopen, (const char *path, int mode), (path, mode), NULL, ENOMEM)
WRAP(int, getgrnam_r,
     (const char *name, struct group *group, char *text, size_t len, struct group **found),
     (name, group, text, len, found), ENOMEM, ENOMEM)

WRAP(ssize_t, send, (int fd, const void *from, size_t len, int flags), (fd, from, len, flags), -1,
     ENOBUFS)
WRAP(int, connect, (int fd, const struct sockaddr *to, socklen_t len), (fd, to, len), -1, ENOBUFS)
WRAP(int, listen, (int fd, int backlog), (fd, backlog), -1, ENOBUFS)
WRAP(int, accept, (int fd, struct sockaddr *from, socklen_t *len), (fd, from, len), -1, EMFILE)
WRAP(int, accept4, (int fd, struct sockaddr *from, socklen_t *len, int flags),
     (fd, from, len, flags), -1, EMFILE)
WRAP(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *len),
     (fd, level, name, value, len), -1, ENOBUFS)
WRAP(int, getsockname, (int fd, struct sockaddr *to, socklen_t *len), (fd, to, len), -1, ENOBUFS)
WRAP(int, getaddrinfo,
     (const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found),
     (node, service, hints, found), EAI_MEMORY, ENOMEM)
WRAP(char *, strdup, (const char *text), (text), NULL, ENOMEM)
WRAP(FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL, EMFILE)
WRAP(DIR *, opendir, (const char *path), (path), NULL, EMFILE)
WRAP(DIR *, fdopendir, (int fd), (fd), NULL, ENOMEM)
WRAP(int, lstat, (const char *path, struct stat *status), (path, status), -1, ENOMEM)
WRAP(int, chmod, (const char *path, mode_t mode), (path, mode), -1, EPERM)
WRAP(int, chown, (const char *path, uid_t user, gid_t group), (path, user, group), -1, EPERM)
WRAP(ssize_t, pwrite, (int fd, const void *from, size_t len, off_t at), (fd, from, len, at), -1,
     ENOSPC)
WRAP(int, setenv, (const char *name, const char *value, int replaces), (name, value, replaces), -1,
     ENOMEM)
WRAP(int, pthread_key_create, (pthread_key_t * key, void (*end)(void *)), (key, end), EAGAIN,
     EAGAIN)
WRAP(int, sched_getaffinity, (pid_t pid, size_t len, cpu_set_t *set), (pid, len, set), -1, EINVAL)
WRAP(int, mincore, (void *at, size_t len, unsigned char *pages), (at, len, pages), -1, EAGAIN)
WRAP(void *, HMAC,
     (const void *digest, const void *key, int key_len, const void *text, size_t len, void *to,
      unsigned *to_len),
     (digest, key, key_len, text, len, to, to_len), NULL, ENOMEM)

/* A counter of eventfd(), or a timer: its read fails only where there is nothing to read. */
static bool is_counter(int fd)
{
    struct stat found;
    return fstat(fd, &found) == 0 && (found.st_mode & S_IFMT) == 0;
}

CALL(read)
SHOWN ssize_t read(int fd, void *to, size_t len)
{
    static ssize_t (*next)(int, void *, size_t);
    if (!next)
        *(void **)&next = call_next("read", __builtin_return_address(0));
    if (call_is_of_velo(__builtin_return_address(0)) && !is_counter(fd) && FAILS(read)) {
        errno = EIO;
        return -1;
    }
    return next(fd, to, len);
}

/* Variadic ones. */

CALL(open)
SHOWN int open(const char *path, int flags, ...)
{
    static int (*next)(const char *, int, ...);
    va_list more;
    va_start(more, flags);
    int mode = va_arg(more, int);
    va_end(more);
    if (!next)
        *(void **)&next = call_next("open", __builtin_return_address(0));
    if (FAILS(open)) {
        errno = EMFILE;
        return -1;
    }
    return next(path, flags, mode);
}

/* Where the kernel has no room for one more lock, it still says who has which. */
static bool takes_lock(int command, const void *value)
{
    return command == F_SETLK && ((const struct flock *)value)->l_type != F_UNLCK;
}

CALL(lock)
CALL(fcntl)
SHOWN int fcntl(int fd, int command, ...)
{
    static int (*next)(int, int, ...);
    va_list more;
    va_start(more, command);
    void *value = va_arg(more, void *);
    va_end(more);
    if (!next)
        *(void **)&next = call_next("fcntl", __builtin_return_address(0));
    if (takes_lock(command, value) ? FAILS(lock) : FAILS(fcntl)) {
        errno = ENOLCK;
        return -1;
    }
    return next(fd, command, value);
}

/* The others do not fail in practice: to wake, and a barrier that was registered. */
static bool may_fail(long number, long command)
{
    return number == SYS_mbind ||
           (number == SYS_membarrier && command == MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
}

CALL(syscall)
SHOWN long syscall(long number, ...)
{
    static long (*next)(long, ...);
    long a[6];
    va_list more;
    va_start(more, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(more, long);
    va_end(more);
    if (!next)
        *(void **)&next = call_next("syscall", __builtin_return_address(0));
    if (may_fail(number, a[0]) && FAILS(syscall)) {
        errno = ENOSYS;
        return -1;
    }
    return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
