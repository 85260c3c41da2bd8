/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "worker.h"

enum { FILES_MAX = 256, STANDARD_FILES = 3, LOOK_MS = 500 };

static pid_t run_pid;
static unsigned closed;
static int fillers[FILES_MAX];
static uint32_t fillers_len;
static struct rlimit limit_before;
static int64_t files_before;

static int64_t files_open(void)
{
    int64_t count = 0;
    DIR *dir = opendir("/proc/self/fd");

    if (dir == NULL)
        abort();
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

void surroundings_begin(unsigned closed_files)
{
    run_pid = getppid();
    closed = closed_files;
    for (int file = 0; file < STANDARD_FILES; file++)
        if (closed & 1u << file)
            close(file);
    if (getrlimit(RLIMIT_NOFILE, &limit_before) != 0)
        abort();
    files_before = files_open();
}

int surroundings_standard_file(void)
{
    for (int file = 0; file < STANDARD_FILES; file++)
        if ((closed & 1u << file) && fcntl(file, F_GETFD) >= 0)
            return file;
    return -1;
}

void descriptors_end(uint32_t left)
{
    struct rlimit limit = limit_before;
    int fd = 0;

    limit.rlim_cur = FILES_MAX;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        abort();
    /* Not the standard files' numbers: who closes those has closed them. */
    while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0 && fillers_len < FILES_MAX)
        fillers[fillers_len++] = fd;
    for (uint32_t i = 0; i < fillers_len; i++) {
        if (fillers[i] < STANDARD_FILES) {
            close(fillers[i]);
            fillers[i--] = fillers[--fillers_len];
        }
    }
    for (; left > 0 && fillers_len > 0; left--)
        close(fillers[--fillers_len]);
}

void descriptors_come(void)
{
    while (fillers_len > 0)
        close(fillers[--fillers_len]);
    if (setrlimit(RLIMIT_NOFILE, &limit_before) != 0)
        abort();
}

int64_t descriptors_count(void) { return files_open() - files_before; }

int64_t fork_child(enum child_act act, int conductor, int64_t (*body)(enum child_act act))
{
    int status = 0;
    pid_t child = fork();

    if (child < 0)
        abort();
    if (child == 0) {
        /* The conductor sees by its end of this that the parent has died. */
        close(conductor);
        int64_t wrong = body(act);
        if (act == CHILD_EXITS)
            exit(0);
        while (act == CHILD_STAYS && kill(run_pid, 0) == 0)
            (void)poll(NULL, 0, LOOK_MS);
        _exit((int)wrong);
    }
    if (act == CHILD_STAYS)
        return child;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
}
