/* SPDX-License-Identifier: Apache-2.0 */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../base/fd.h"
#include "../base/handlers.h"
#include "../base/order.h"
#include "memory.h"

/* The number is that of the layout: copies with different layouts share nothing. */
#define MEMORY_NAME "velo-process-2"
#define MAPS_NAME "/memfd:" MEMORY_NAME " "

#define FILES_MAX (1u << 17)

struct file {
    uint64_t dev;
    uint64_t ino;
    int32_t fd;
    uint32_t refs;
};

struct shared {
    uint64_t id; /* Of the process that this describes; 0: not set up, BUSY: being set up. */
    pthread_mutex_t mutex;
    uint32_t files_len;
    struct file files[FILES_MAX];
};

#define BUSY UINT64_MAX

static struct shared *shared;
static sigset_t handlers_before; /* Of the thread that has the lock; see ../base/handlers.h. */
static uint64_t copy_id;         /* The process that this copy has last seen. */

/* ---- which process --------------------------------------------------------------------------- */

/* A child that is the first of a PID namespace may have its parent's number: the namespace tells
 * them apart. 0: it cannot be known, where /proc is not there, or not any more. */
static uint32_t pid_namespace(void)
{
    struct stat st;
    return stat("/proc/thread-self/ns/pid", &st) == 0 ? (uint32_t)st.st_ino : 0;
}

static uint64_t make_id(void) { return (uint64_t)pid_namespace() << 32 | (uint32_t)getpid(); }

static bool is_same(uint64_t one, uint64_t other)
{
    uint32_t namespaces[] = {(uint32_t)(one >> 32), (uint32_t)(other >> 32)};
    return (uint32_t)one == (uint32_t)other &&
           (namespaces[0] == namespaces[1] || namespaces[0] == 0 || namespaces[1] == 0);
}

/* ---- the memory ------------------------------------------------------------------------------ */

static struct shared *find_memory(FILE *maps)
{
    char line[512];
    while (fgets(line, sizeof line, maps)) {
        if (strstr(line, MAPS_NAME))                         /* The address comes first. */
            return (struct shared *)strtoul(line, NULL, 16); // NOLINT(performance-no-int-to-ptr)
    }
    return NULL;
}

static struct shared *make_memory(void)
{
    /* Private: a child changes only its own copy. */
    const int flags = MAP_PRIVATE | MAP_NORESERVE;
    void *base = MAP_FAILED;
    int fd = fd_above_standard(memfd_create(MEMORY_NAME, MFD_CLOEXEC));
    if (fd >= 0 && seg_may_grow(fd, sizeof(struct shared)) &&
        ftruncate(fd, sizeof(struct shared)) == 0)
        base = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, flags, fd, 0);
    if (fd >= 0)
        close(fd);
    return base == MAP_FAILED ? NULL : base;
}

static void find_or_make_memory(void)
{
    static struct shared own;
    int fd = fd_above_standard(open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC));
    FILE *maps = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (maps) {
        /* Two copies that look at the same time take turns. */
        (void)flock(fileno(maps), LOCK_EX);
        shared = find_memory(maps);
        if (!shared)
            shared = make_memory();
        (void)fclose(maps);
    } else if (fd >= 0) {
        close(fd);
    }
    if (!shared)
        shared = &own;
}

/* ---- the lock -------------------------------------------------------------------------------- */

/* For the first call in a process, or in a child that has its parent's memory. */
static void set_up(uint64_t id)
{
    uint64_t now = order_read_entry(&shared->id);
    while (now == BUSY || !is_same(now, id)) {
        if (now != BUSY && order_claim_entry(&shared->id, now, BUSY)) {
            pthread_mutex_init(&shared->mutex, NULL);
            shared->files_len = 0;
            order_publish_entry(&shared->id, id);
        }
        now = order_read_entry(&shared->id);
    }
}

bool process_lock(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    uint64_t id = make_id();
    pthread_once(&once, find_or_make_memory);
    set_up(id);
    sigset_t before = handlers_later();
    pthread_mutex_lock(&shared->mutex);
    handlers_before = before;
    bool is_new = !is_same(copy_id, id);
    if (is_new)
        copy_id = id;
    return is_new;
}

void process_unlock(void)
{
    sigset_t before = handlers_before;
    pthread_mutex_unlock(&shared->mutex);
    handlers_as_before(&before);
}

/* ---- files ----------------------------------------------------------------------------------- */

bool process_file_add(int fd, const struct stat *st)
{
    if (shared->files_len == FILES_MAX) {
        errno = EMFILE;
        return false;
    }
    shared->files[shared->files_len++] =
        (struct file){.dev = st->st_dev, .ino = st->st_ino, .fd = fd, .refs = 1};
    return true;
}

static struct file *find_file(const struct stat *st)
{
    for (uint32_t i = 0; i < shared->files_len; i++)
        if (shared->files[i].dev == st->st_dev && shared->files[i].ino == st->st_ino)
            return &shared->files[i];
    return NULL;
}

int process_file_find(const struct stat *st)
{
    const struct file *file = find_file(st);
    return file ? file->fd : -1;
}

int process_file_open(int path_fd, const struct stat *st)
{
    struct file *file = find_file(st);
    if (file) {
        file->refs++;
        return file->fd;
    }
    if (shared->files_len == FILES_MAX) {
        errno = EMFILE;
        return -1;
    }
    char name[64];
    (void)snprintf(name, sizeof name, "/proc/thread-self/fd/%d", path_fd);
    int fd = fd_above_standard(open(name, O_RDWR | O_CLOEXEC));
    if (fd >= 0)
        (void)process_file_add(fd, st);
    return fd;
}

unsigned process_file_refs(int fd)
{
    for (uint32_t i = 0; i < shared->files_len; i++)
        if (shared->files[i].fd == fd)
            return shared->files[i].refs;
    return 0;
}

void process_file_close(int fd)
{
    for (uint32_t i = 0; i < shared->files_len; i++) {
        struct file *file = &shared->files[i];
        if (file->fd != fd)
            continue;
        if (--file->refs == 0) {
            *file = shared->files[--shared->files_len];
            close(fd);
        }
        return;
    }
}
