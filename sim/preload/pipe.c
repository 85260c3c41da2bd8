/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipes between the processes of a rank. A process that waits at one end has the turn. As long as
 * nobody at the other end waits in the cluster, its wait is real and takes no virtual time. Once
 * somebody does, it naps, so that the other one gets the turn: it then writes, or reads, before it
 * calls again. So how long the wait takes does not depend on real time.
 */
#include "pipe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "caller.h"
#include "nap.h"
#include "real.h"

/* The first nap between two looks, and the longest. */
#define NAP_NS INT64_C(1000)
#define NAP_NS_MAX INT64_C(100000)
/* The first real wait between two looks. Each is twice as long as the one before: one that comes to
 * nothing ends with the simulator's error. */
#define REAL_NS INT64_C(1000000)
#define NS_PER_MS INT64_C(1000000)

struct end {
    struct stat pipe;
    mode_t other; /* Who holds the other end may do this with it. */
};

static bool find_end(int file, short events, struct end *end)
{
    end->other = events & POLLOUT ? S_IRUSR : S_IWUSR;
    return fstat(file, &end->pipe) == 0 && S_ISFIFO(end->pipe.st_mode);
}

/* Does the process hold the other end? */
static bool holds_other(int pid, const void *arg)
{
    const struct end *end = arg;
    char path[40];
    struct stat link, found;
    bool is_held = false;
    (void)snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *files = opendir(path);
    if (!files)
        return false;
    for (struct dirent *entry = readdir(files); entry && !is_held; entry = readdir(files))
        is_held = fstatat(dirfd(files), entry->d_name, &link, AT_SYMLINK_NOFOLLOW) == 0 &&
                  (link.st_mode & end->other) &&
                  fstatat(dirfd(files), entry->d_name, &found, 0) == 0 &&
                  found.st_ino == end->pipe.st_ino && found.st_dev == end->pipe.st_dev;
    (void)closedir(files);
    return is_held;
}

static bool other_end_waits(const struct pollfd *files, nfds_t files_len)
{
    struct end end;
    for (nfds_t i = 0; i < files_len; i++)
        if (find_end(files[i].fd, files[i].events, &end) &&
            sim_channel_any_waits(holds_other, &end))
            return true;
    return false;
}

static int real_poll(struct pollfd *files, nfds_t files_len, int64_t limit_ns)
{
    struct timespec limit = {limit_ns / NS_PER_S, limit_ns % NS_PER_S};
    return (int)syscall(SYS_ppoll, files, files_len, &limit, NULL, 0);
}

static int64_t least_of(int64_t limit_ns, int64_t left_ns)
{
    return left_ns >= 0 && left_ns < limit_ns ? left_ns : limit_ns;
}

int pipe_poll(const void *caller, struct pollfd *files, nfds_t files_len, int64_t left_ns)
{
    int64_t nap_ns = NAP_NS, real_ns = REAL_NS;
    bool is_limited = left_ns >= 0, was_virtual = true;
    for (int ready = real_poll(files, files_len, 0);;) {
        if (ready == 0 && left_ns == 0)
            was_virtual = was_virtual && other_end_waits(files, files_len);
        if (is_limited && !was_virtual && (ready != 0 || left_ns == 0))
            real_report(caller, SIM_CAUSE_WAIT, "poll");
        if (ready != 0 || left_ns == 0)
            return ready;
        int64_t passed_ns;
        if (other_end_waits(files, files_len)) {
            ready = real_poll(files, files_len, 0); /* It may have written before it waited. */
            struct sim_channel *channel = ready == 0 ? caller_program_channel(caller) : NULL;
            passed_ns = least_of(nap_ns, left_ns);
            if (channel)
                nap_for_ns(channel, passed_ns);
            nap_ns = nap_ns < NAP_NS_MAX ? 2 * nap_ns : NAP_NS_MAX;
            ready = ready ? ready : real_poll(files, files_len, 0);
        } else {
            was_virtual = false;
            passed_ns = least_of(real_ns, left_ns);
            ready = real_poll(files, files_len, passed_ns);
            real_ns *= 2;
        }
        left_ns = left_ns < 0 ? left_ns : left_ns - passed_ns;
    }
}

/* Does the program wait where it reads or writes this file, until the other end has done its part?
 */
static bool waits_at(const void *caller, int file)
{
    struct stat found;
    return caller_at(caller) == CALLER_PROGRAM && fstat(file, &found) == 0 &&
           S_ISFIFO(found.st_mode) && (fcntl(file, F_GETFL) & O_NONBLOCK) == 0;
}

bool pipe_await(const void *caller, int file)
{
    struct pollfd wanted = {.fd = file, .events = POLLIN};
    return !waits_at(caller, file) || pipe_poll(caller, &wanted, 1, -1) >= 0;
}

bool pipe_may_fill(const void *caller, int file) { return waits_at(caller, file); }

/* A pipe that takes anything takes PIPE_BUF bytes at once. */
ssize_t pipe_write(ssize_t (*next)(int file, const void *data, size_t len_bytes),
                   const void *caller, int file, const void *data, size_t len_bytes)
{
    size_t done_bytes = 0;
    do {
        struct pollfd wanted = {.fd = file, .events = POLLOUT};
        size_t left_bytes = len_bytes - done_bytes;
        ssize_t written = pipe_poll(caller, &wanted, 1, -1);
        if (written >= 0)
            written = next(file, (const char *)data + done_bytes,
                           left_bytes < PIPE_BUF ? left_bytes : PIPE_BUF);
        if (written < 0)
            return done_bytes > 0 ? (ssize_t)done_bytes : -1;
        done_bytes += (size_t)written;
    } while (done_bytes < len_bytes);
    return (ssize_t)done_bytes;
}
