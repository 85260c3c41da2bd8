/* SPDX-License-Identifier: Apache-2.0 */
#include "doorbell.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "../base/cancel.h"
#include "../base/error.h"
#include "../base/fd.h"
#include "../base/order.h"
#include "memory.h"

/* A socket has its name a moment before it can be reached: a sweep leaves young ones alone. */
#define YOUNG_S 60

struct address {
    struct sockaddr_un name;
    socklen_t len_bytes;
};

/* Of this process; ringer is its number plus one, and 0 if there is none. */
static uint32_t ringer;
static unsigned ringer_users;

static int make_socket(void)
{
    return fd_above_standard(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

/* ---- names ----------------------------------------------------------------------------------- */

static struct address near_address(uint32_t generation)
{
    struct address address = {.name.sun_family = AF_UNIX};
    /* The first byte is 0: an abstract name. */
    int len = snprintf(address.name.sun_path + 1, sizeof address.name.sun_path - 1,
                       "velo-doorbell-%08x", generation);
    address.len_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
    return address;
}

_Static_assert(SEG_DIR_MAX + sizeof "/" DOORBELL_PREFIX "01234567" <=
                   sizeof((struct sockaddr_un *)0)->sun_path,
               "a far socket's name fits beside every segment");

/* Beside the segment at `path`. */
static struct address far_address(const char *path, uint32_t generation)
{
    struct address address = {.name.sun_family = AF_UNIX, .len_bytes = sizeof address.name};
    int dir_bytes = (int)(strrchr(path, '/') - path);
    (void)snprintf(address.name.sun_path, sizeof address.name.sun_path,
                   "%.*s/" DOORBELL_PREFIX "%08x", dir_bytes, path, generation);
    return address;
}

static int send_byte(int fd, const struct address *to)
{
    return (int)sendto(fd, "", 1, MSG_NOSIGNAL, (const struct sockaddr *)&to->name, to->len_bytes);
}

static bool bind_to(int fd, const struct address *address)
{
    return bind(fd, (const struct sockaddr *)&address->name, address->len_bytes) == 0;
}

/* ---- the receiver's -------------------------------------------------------------------------- */

static int open_near(int *fd, uint32_t generation)
{
    struct address address = near_address(generation);
    *fd = make_socket();
    if (*fd >= 0 && bind_to(*fd, &address))
        return VELO_OK;
    return velo_fail(VELO_ERR_SYSTEM, "a socket to be woken by: %s", strerror(errno));
}

/* Those who may write to the segment may ring. */
static bool permit(const char *path, const struct seg_domain *domain)
{
    if (!domain->shared)
        return chmod(path, 0600) == 0;
    return chown(path, (uid_t)-1, domain->gid) == 0 && chmod(path, 0660) == 0;
}

static int open_far(int *fd, const struct seg_domain *domain, const struct segment *segment)
{
    struct address address = far_address(segment->path, segment->generation);
    const char *path = address.name.sun_path;
    *fd = make_socket();
    if (*fd < 0 || !bind_to(*fd, &address))
        return seg_system_failed("make a socket at", path);
    if (permit(path, domain))
        return VELO_OK;
    int status = seg_system_failed("permit others to ring", path);
    (void)unlink(path);
    return status;
}

int doorbell_open(struct doorbell *doorbell, const struct seg_domain *domain,
                  const struct segment *segment)
{
    int status = open_near(&doorbell->near_fd, segment->generation);
    if (status == VELO_OK)
        status = open_far(&doorbell->far_fd, domain, segment);
    if (status)
        doorbell_close(doorbell);
    return status;
}

void doorbell_hide(const struct doorbell *doorbell, const struct segment *segment)
{
    if (doorbell->far_fd >= 0)
        doorbell_forget(segment->path, segment->generation);
}

void doorbell_close(struct doorbell *doorbell)
{
    if (doorbell->near_fd >= 0)
        close(doorbell->near_fd);
    if (doorbell->far_fd >= 0)
        close(doorbell->far_fd);
    *doorbell = (struct doorbell)DOORBELL_NONE;
}

void doorbell_ring_own(const struct doorbell *doorbell, const struct segment *segment)
{
    CANCEL_LATER();
    struct address address = near_address(segment->generation);
    char byte;
    if (recv(doorbell->near_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0)
        (void)send_byte(doorbell->near_fd, &address);
}

static void drain(int fd)
{
    char byte;
    while (fd >= 0 && recv(fd, &byte, 1, MSG_DONTWAIT) >= 0)
        ;
}

void doorbell_drain(const struct doorbell *doorbell)
{
    drain(doorbell->near_fd);
    drain(doorbell->far_fd);
}

void doorbell_forget(const char *path, uint32_t generation)
{
    struct address address = far_address(path, generation);
    (void)unlink(address.name.sun_path);
}

/* ---- the senders' ---------------------------------------------------------------------------- */

bool doorbell_ringer_take(void)
{
    if (ringer_users == 0) {
        int fd = make_socket();
        if (fd < 0)
            return false;
        order_set_flag(&ringer, (uint32_t)fd + 1);
    }
    ringer_users++;
    return true;
}

void doorbell_ringer_drop(void)
{
    if (--ringer_users > 0)
        return;
    int fd = (int)order_flag(&ringer) - 1;
    order_set_flag(&ringer, 0);
    close(fd);
}

/* False: this socket cannot tell whether the doorbell has been rung. A doorbell that takes no more
 * bytes is readable; but bytes that stopped receivers leave unread count against the socket that
 * sent them, too, and that one may send no more to anybody. */
static bool ring_from(int fd, const char *path, uint32_t generation)
{
    struct address address = near_address(generation);
    if (send_byte(fd, &address) >= 0)
        return true;
    if (errno != ECONNREFUSED)
        return false;
    /* Nobody has the near name in our network namespace. */
    address = far_address(path, generation);
    return send_byte(fd, &address) >= 0 || errno == ECONNREFUSED || errno == ENOENT;
}

void doorbell_ring(const char *path, uint32_t generation)
{
    CANCEL_LATER();
    int fd = (int)order_flag(&ringer) - 1;
    if (fd >= 0 && ring_from(fd, path, generation))
        return;
    fd = make_socket();
    if (fd < 0)
        return;
    (void)ring_from(fd, path, generation);
    close(fd);
}

/* ---- the dead -------------------------------------------------------------------------------- */

void doorbell_sweep(const char *path)
{
    struct address address = {.name.sun_family = AF_UNIX, .len_bytes = sizeof address.name};
    struct stat st;
    if (strlen(path) >= sizeof address.name.sun_path || lstat(path, &st) != 0 ||
        !S_ISSOCK(st.st_mode) || st.st_uid != geteuid() || time(NULL) - st.st_ctime < YOUNG_S)
        return;
    memcpy(address.name.sun_path, path, strlen(path) + 1);
    int fd = make_socket();
    if (fd < 0)
        return;
    if (connect(fd, (const struct sockaddr *)&address.name, address.len_bytes) != 0 &&
        errno == ECONNREFUSED)
        (void)unlink(path);
    close(fd);
}
