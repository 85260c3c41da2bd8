/* SPDX-License-Identifier: Apache-2.0 */
#include "standard_files.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "../../lib/base/fd.h"

/* Guards the rest. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned holders;
static bool is_ours[FD_STANDARD_MAX + 1];

static bool is_held_now(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_PATH);
}

bool standard_files_hold(void)
{
    bool holds = false;
    (void)pthread_mutex_lock(&lock);
    holders++;
    for (int i = 0; i <= FD_STANDARD_MAX; i++) {
        if (fcntl(i, F_GETFD) < 0) {
            /* The lowest free number: this one, unless another thread was faster. */
            int fd = open("/", O_PATH | O_CLOEXEC);
            if (fd > FD_STANDARD_MAX)
                (void)close(fd);
            else if (fd >= 0)
                is_ours[fd] = true;
        }
        holds |= is_ours[i];
    }
    (void)pthread_mutex_unlock(&lock);
    return holds;
}

void standard_files_release(void)
{
    (void)pthread_mutex_lock(&lock);
    if (--holders == 0) {
        for (int i = 0; i <= FD_STANDARD_MAX; i++) {
            /* The program may have put a file of its own there. */
            if (is_ours[i] && is_held_now(i))
                (void)close(i);
            is_ours[i] = false;
        }
    }
    (void)pthread_mutex_unlock(&lock);
}
