/* SPDX-License-Identifier: Apache-2.0 */
#include "meet.h"

#include "emit.h"
#include "fail.h"

#include <velo/velo.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PATH_BYTES 4096u
#define LOOK_NS 1000000
#define CONNECT_S 20

enum stage { MEET_LISTENS = 1, MEET_JOINED = 2, MEET_TOLD = 3 };

/* What stands in the file, before the block that the ranks share. */
struct head {
    char version[64];
    size_t file_bytes; /* Both programs have the same layout only if this fits, too. */
    _Atomic uint32_t stage;
    size_t message_bytes_max;
    struct options options; /* of the one who connects, from MEET_TOLD on */
    struct limit_area area;
};

struct meeting {
    char path[PATH_BYTES];
    int fd;
    unsigned rank;
    struct head *head;
    struct shared *shared;
};

static struct meeting meeting_only;

/* Nobody has come yet. */
static void interrupted(int signum)
{
    unlink(meeting_only.path);
    _exit(128 + signum);
}

static void on_interrupt(void (*handler)(int))
{
    signal(SIGINT, handler);
    signal(SIGTERM, handler);
    signal(SIGHUP, handler);
}

static _Noreturn void give_up(int exit_code, const char *format, ...)
{
    char text[PATH_BYTES + 256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "velo-perf: %s\n", text);
    emit_error(text);
    exit(exit_code);
}

static void nap(void) { nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL); }

static size_t shared_offset(void) { return (sizeof(struct head) + 4095) & ~(size_t)4095; }

static struct meeting *meeting_new(const struct options *options, unsigned rank)
{
    struct meeting *meeting = &meeting_only;
    const char *dir = getenv("VELO_SHM_DIR");
    snprintf(meeting->path, sizeof meeting->path, "%s/velo-perf.%s", dir && *dir ? dir : "/dev/shm",
             options->domain);
    meeting->rank = rank;
    return meeting;
}

/* Each side locks the byte of its rank as long as it lives. Unlike a process id, that means the
 * same in every namespace. */
static bool lock_byte(const struct meeting *meeting, unsigned rank, int command)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)rank, .l_len = 1};
    bool done = fcntl(meeting->fd, command, &lock) == 0;
    return command == F_OFD_GETLK ? done && lock.l_type != F_UNLCK : done;
}

/* The domain may be of several users. */
static void check_owner(const struct meeting *meeting)
{
    struct stat status;
    if (fstat(meeting->fd, &status) != 0 || status.st_uid != geteuid()) {
        give_up(EXIT_FAILED, "%s is another user's", meeting->path);
    }
}

static void map(struct meeting *meeting, size_t shared_bytes)
{
    size_t bytes = shared_offset() + shared_bytes;
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, meeting->fd, 0);
    if (base == MAP_FAILED) {
        give_up(EXIT_FAILED, "cannot map %s: %s", meeting->path, strerror(errno));
    }
    meeting->head = base;
    meeting->shared = (struct shared *)((char *)base + shared_offset());
}

struct meeting *meeting_listen(struct options *options, size_t shared_bytes)
{
    struct meeting *meeting = meeting_new(options, 1);
    size_t bytes = shared_offset() + shared_bytes;
    meeting->fd = open(meeting->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (meeting->fd < 0) {
        give_up(EXIT_FAILED, "cannot create %s: %s", meeting->path, strerror(errno));
    }
    check_owner(meeting);
    if (!lock_byte(meeting, 1, F_OFD_SETLK)) {
        give_up(EXIT_FAILED, "another listens in domain %s; give another --domain",
                options->domain);
    }
    /* What one that was killed left in the file must not be read. */
    if (ftruncate(meeting->fd, 0) != 0 || posix_fallocate(meeting->fd, 0, (off_t)bytes) != 0) {
        unlink(meeting->path);
        give_up(EXIT_FAILED, "no room for %s, %zu bytes", meeting->path, bytes);
    }
    map(meeting, shared_bytes);
    struct head *head = meeting->head;
    snprintf(head->version, sizeof head->version, "%s", velo_version());
    head->file_bytes = bytes;
    atomic_store(&head->stage, MEET_LISTENS);
    fprintf(stderr, "velo-perf: listening in domain %s\n", options->domain);
    on_interrupt(interrupted);
    while (atomic_load(&head->stage) != MEET_TOLD) {
        nap();
    }
    on_interrupt(SIG_DFL);
    struct options ours = *options;
    *options = head->options;
    memcpy(options->cpus, ours.cpus, sizeof ours.cpus);
    options->cpus_count = ours.cpus_count;
    options->is_listening = true;
    return meeting;
}

/* The file is there once it is listened in. */
static bool open_listened(struct meeting *meeting)
{
    if (meeting->fd >= 0) {
        close(meeting->fd);
    }
    meeting->fd = open(meeting->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    return meeting->fd >= 0 && lock_byte(meeting, 1, F_OFD_GETLK);
}

struct meeting *meeting_connect(const struct options *options, size_t shared_bytes,
                                size_t message_bytes_max)
{
    struct meeting *meeting = meeting_new(options, 0);
    size_t bytes = shared_offset() + shared_bytes;
    struct stat status = {0};
    meeting->fd = -1;
    for (time_t end = time(NULL) + CONNECT_S; !open_listened(meeting);) {
        if (time(NULL) > end) {
            give_up(EXIT_FAILED,
                    "nobody listens at %s; start 'velo perf --listen' with the same domain and the "
                    "same folder of segments",
                    meeting->path);
        }
        nap();
    }
    check_owner(meeting);
    while (fstat(meeting->fd, &status) == 0 && status.st_size == 0) {
        nap(); /* It is being made. */
    }
    if ((size_t)status.st_size != bytes) {
        give_up(EXIT_FAILED, "the one who listens at %s is of another build of velo",
                meeting->path);
    }
    map(meeting, shared_bytes);
    struct head *head = meeting->head;
    uint32_t stage;
    while ((stage = atomic_load(&head->stage)) == 0) {
        nap();
    }
    if (strcmp(head->version, velo_version()) != 0) {
        give_up(EXIT_FAILED, "the one who listens has velo %s, we have %s", head->version,
                velo_version());
    }
    if (stage != MEET_LISTENS || !lock_byte(meeting, 0, F_OFD_SETLK) ||
        !atomic_compare_exchange_strong(&head->stage, &stage, MEET_JOINED)) {
        give_up(EXIT_FAILED, "the one who listens in domain %s measures with another already",
                options->domain);
    }
    head->options = *options;
    head->message_bytes_max = message_bytes_max;
    atomic_store(&head->stage, MEET_TOLD);
    return meeting;
}

size_t meeting_message_bytes_max(const struct meeting *meeting)
{
    return meeting->head->message_bytes_max;
}

struct shared *meeting_shared(struct meeting *meeting) { return meeting->shared; }

struct limit_area *meeting_area(struct meeting *meeting) { return &meeting->head->area; }

unsigned meeting_rank(const struct meeting *meeting) { return meeting->rank; }

bool meeting_is_alone(const struct meeting *meeting)
{
    return !lock_byte(meeting, 1 - meeting->rank, F_OFD_GETLK);
}

void meeting_end(struct meeting *meeting)
{
    if (meeting->rank == 1) {
        unlink(meeting->path);
    }
    close(meeting->fd);
}
