/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transport for tests, and an example for those who want to write one: it connects ports of one
 * machine by sockets. A line is one socket of a connected pair; each frame is one packet of it. An
 * endpoint listens under a name that the kernel keeps as long as its process lives, so nothing is
 * left behind.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../lib/base/fd.h"
#include "../../lib/net/transport.h"
#include "../common/hash.h"

#define FRAMES_PER_LOOK 32u
#define LISTEN_BACKLOG 1024
#define EVENTS_MAX 64
#define PACKET_BYTES(payload_bytes) (offsetof(struct packet, payload) + (payload_bytes))

/* A packet of the socket: the frame, then its payload. */
struct packet {
    uint32_t kind;
    uint32_t payload_bytes;
    uint64_t word[2];
    char payload[VELO_FRAME_BYTES_MAX];
};

struct line {
    struct line *next;
    struct endpoint *endpoint;
    struct velo_link *link;
    int fd;
    bool is_hung_up; /* By the library: the line is freed after the look that is under way. */
    bool is_full;    /* The last send found no room. */
};

struct endpoint {
    struct endpoint *next; /* Of this process. */
    const struct velo_transport_calls *calls;
    struct velo_endpoint_attr attr;
    int listener;
    int epoll;
    struct line *lines;
    uint32_t hung_up; /* Lines that are to be freed. */
};

static struct endpoint *endpoints;
static pthread_mutex_t endpoints_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- names ----------------------------------------------------------------------------------- */

/* A port's address is an abstract name. The directory is in it as a number, since names are short.
 */
static socklen_t address_of(const struct velo_endpoint_attr *attr, velo_id_t id,
                            struct sockaddr_un *address)
{
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    int len = snprintf(address->sun_path + 1, sizeof address->sun_path - 1,
                       "velo-loop/%016llx/%s/%u.%u", (unsigned long long)hash_text(attr->dir),
                       attr->domain, VELO_ID_NODE(id), VELO_ID_VPID(id));
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

/* May the process at the other end reach this port, or be reached? */
static bool is_one_of_us(const struct velo_endpoint_attr *attr, int fd)
{
    struct ucred peer;
    socklen_t len = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
        return false;
    return peer.uid == geteuid() || (attr->is_shared && peer.gid == attr->gid);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static struct line *new_line(struct endpoint *endpoint, int fd)
{
    struct line *line = calloc(1, sizeof *line);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = line};
    if (!line || epoll_ctl(endpoint->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        free(line);
        close(fd);
        return NULL;
    }
    line->endpoint = endpoint;
    line->fd = fd;
    line->next = endpoint->lines;
    endpoint->lines = line;
    return line;
}

/* While a line is full, its socket also ends a wait when it can be written to. */
static void set_full(struct line *line, bool is_full)
{
    struct epoll_event event = {.events = is_full ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = line};
    if (line->is_full != is_full)
        (void)epoll_ctl(line->endpoint->epoll, EPOLL_CTL_MOD, line->fd, &event);
    line->is_full = is_full;
}

/* A child that was just forked may have the socket, too: epoll would go on reporting it. */
static void close_line(struct line *line)
{
    if (line->fd < 0)
        return;
    (void)epoll_ctl(line->endpoint->epoll, EPOLL_CTL_DEL, line->fd, NULL);
    /* The other end reads what was sent, then the end. */
    (void)shutdown(line->fd, SHUT_RDWR);
    close(line->fd);
    line->fd = -1;
}

static void free_line(struct line *line)
{
    struct line **at = &line->endpoint->lines;
    while (*at != line)
        at = &(*at)->next;
    *at = line->next;
    close_line(line);
    free(line);
}

static int loop_dial(void *self, velo_id_t peer, struct velo_link *link, void **out)
{
    struct endpoint *endpoint = self;
    struct sockaddr_un address;
    socklen_t len = address_of(&endpoint->attr, peer, &address);
    int fd = fd_above_standard(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fd < 0)
        return endpoint->calls->fail(VELO_ERR_SYSTEM, "socket: %s", strerror(errno));
    if (connect(fd, (const struct sockaddr *)&address, len) != 0) {
        int error = errno;
        close(fd);
        if (error == ECONNREFUSED || error == EAGAIN)
            return endpoint->calls->fail(
                VELO_ERR_NO_PEER,
                "port %u.%u does not exist over transport loop: no process has it open",
                VELO_ID_NODE(peer), VELO_ID_VPID(peer));
        return endpoint->calls->fail(VELO_ERR_SYSTEM, "connect: %s", strerror(error));
    }
    if (!is_one_of_us(&endpoint->attr, fd)) {
        close(fd);
        return endpoint->calls->fail(VELO_ERR_ACCESS, "port %u.%u belongs to another user",
                                     VELO_ID_NODE(peer), VELO_ID_VPID(peer));
    }
    struct line *line = new_line(endpoint, fd);
    if (!line)
        return endpoint->calls->fail(VELO_ERR_NO_MEMORY, "no memory for a line");
    line->link = link;
    *out = line;
    return VELO_OK;
}

static int loop_send(void *self, const struct velo_frame *frame)
{
    struct line *line = self;
    struct packet packet = {.kind = frame->kind,
                            .payload_bytes = frame->payload_bytes,
                            .word = {frame->word[0], frame->word[1]}};
    if (frame->payload_bytes)
        memcpy(packet.payload, frame->payload, frame->payload_bytes);
    ssize_t sent = send(line->fd, &packet, PACKET_BYTES(frame->payload_bytes), MSG_NOSIGNAL);
    /* The next read finds out that a line is broken. */
    if (sent >= 0 || (errno != EAGAIN && errno != ENOBUFS))
        return VELO_OK;
    set_full(line, true);
    return VELO_AGAIN;
}

static void loop_hang_up(void *self)
{
    struct line *line = self;
    line->is_hung_up = true;
    line->endpoint->hung_up++;
    close_line(line);
}

/* ---- what comes ------------------------------------------------------------------------------ */

static void accept_lines(struct endpoint *endpoint)
{
    for (;;) {
        int fd = fd_above_standard(
            accept4(endpoint->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (fd < 0)
            return;
        if (!is_one_of_us(&endpoint->attr, fd)) {
            close(fd);
            continue;
        }
        struct line *line = new_line(endpoint, fd);
        if (!line)
            continue;
        line->link = endpoint->calls->line_rang(endpoint->attr.owner, line);
        if (!line->link)
            loop_hang_up(line);
    }
}

/* The kernel may report the end although a packet came just before it: look once more. */
static ssize_t read_packet(const struct line *line, struct packet *packet)
{
    ssize_t len = recv(line->fd, packet, sizeof *packet, 0);
    return len == 0 ? recv(line->fd, packet, sizeof *packet, 0) : len;
}

static void take_in(const struct line *line, const struct packet *packet)
{
    struct velo_frame frame = {.kind = packet->kind,
                               .payload_bytes = packet->payload_bytes,
                               .word = {packet->word[0], packet->word[1]},
                               .payload = packet->payload};
    line->endpoint->calls->frame_came(line->link, &frame);
}

/* Take in a packet. VELO_AGAIN: there is none. VELO_ERR_PEER_DEAD: nothing more can be read. */
static int take_packet(struct line *line)
{
    struct packet packet;
    ssize_t len = read_packet(line, &packet);
    if (len >= (ssize_t)PACKET_BYTES(0) && (size_t)len == PACKET_BYTES(packet.payload_bytes)) {
        take_in(line, &packet);
        return VELO_OK;
    }
    /* If the other end left without reading all of ours, the kernel reports that once, before the
     * packets that the other end has sent. */
    if (len < 0 && errno == ECONNRESET)
        return VELO_OK;
    return len < 0 && (errno == EAGAIN || errno == EINTR) ? VELO_AGAIN : VELO_ERR_PEER_DEAD;
}

/* True: there was anything. */
static bool look_at_line(struct line *line)
{
    uint32_t taken = 0;
    int status = VELO_OK;
    for (; taken < FRAMES_PER_LOOK && status == VELO_OK && !line->is_hung_up; taken++)
        status = take_packet(line);
    if (status == VELO_ERR_PEER_DEAD && !line->is_hung_up)
        line->endpoint->calls->line_lost(line->link, status);
    return taken > 1 || status == VELO_OK;
}

static void tell_room(struct line *line)
{
    if (!line->is_full || line->is_hung_up)
        return;
    set_full(line, false);
    line->endpoint->calls->room_came(line->link);
}

/* Look at the lines that have something. */
static bool look_at_lines(struct endpoint *endpoint)
{
    struct epoll_event events[EVENTS_MAX];
    bool any = false;
    int len = epoll_wait(endpoint->epoll, events, EVENTS_MAX, 0);
    for (int i = 0; i < len; i++) {
        struct line *line = events[i].data.ptr;
        if (!line)
            accept_lines(endpoint);
        else if (!line->is_hung_up) {
            any |= look_at_line(line);
            if (events[i].events & EPOLLOUT)
                tell_room(line);
        }
    }
    return any;
}

static bool loop_progress(void *self)
{
    struct endpoint *endpoint = self;
    bool any = look_at_lines(endpoint);
    struct line *next;
    for (struct line *line = endpoint->lines; line && endpoint->hung_up > 0; line = next) {
        next = line->next;
        if (line->is_hung_up)
            free_line(line);
    }
    endpoint->hung_up = 0;
    return any;
}

/* ---- endpoints ------------------------------------------------------------------------------- */

/* A child has copies of all sockets: the other ends would not see that its parent is gone. */
static void forget_in_child(void)
{
    for (const struct endpoint *endpoint = endpoints; endpoint; endpoint = endpoint->next) {
        close(endpoint->listener);
        for (const struct line *line = endpoint->lines; line; line = line->next)
            close(line->fd);
    }
    endpoints = NULL;
    (void)pthread_mutex_init(&endpoints_lock, NULL);
}

static void watch_forks(void) { (void)pthread_atfork(NULL, NULL, forget_in_child); }

static void loop_close(void *self)
{
    struct endpoint *endpoint = self;
    (void)pthread_mutex_lock(&endpoints_lock);
    struct endpoint **at = &endpoints;
    while (*at && *at != endpoint)
        at = &(*at)->next;
    if (*at)
        *at = endpoint->next;
    (void)pthread_mutex_unlock(&endpoints_lock);
    while (endpoint->lines)
        free_line(endpoint->lines);
    if (endpoint->listener >= 0)
        close(endpoint->listener);
    if (endpoint->epoll >= 0)
        close(endpoint->epoll);
    free(endpoint);
}

static int loop_open(const struct velo_endpoint_attr *attr,
                     const struct velo_transport_calls *calls, void **out)
{
    struct sockaddr_un address;
    socklen_t len = address_of(attr, attr->id, &address);
    struct endpoint *endpoint = calloc(1, sizeof *endpoint);
    if (!endpoint)
        return calls->fail(VELO_ERR_NO_MEMORY, "out of memory");
    struct epoll_event event = {.events = EPOLLIN};
    *endpoint = (struct endpoint){.calls = calls, .attr = *attr, .listener = -1, .epoll = -1};
    int status = VELO_OK;
    endpoint->listener =
        fd_above_standard(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    endpoint->epoll = fd_above_standard(epoll_create1(EPOLL_CLOEXEC));
    if (endpoint->listener < 0 || endpoint->epoll < 0 ||
        bind(endpoint->listener, (const struct sockaddr *)&address, len) != 0 ||
        listen(endpoint->listener, LISTEN_BACKLOG) != 0 ||
        epoll_ctl(endpoint->epoll, EPOLL_CTL_ADD, endpoint->listener, &event) != 0)
        status = calls->fail(errno == EADDRINUSE ? VELO_ERR_IN_USE : VELO_ERR_SYSTEM,
                             "transport loop cannot listen: %s", strerror(errno));
    if (status) {
        loop_close(endpoint);
        return status;
    }
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch_forks);
    (void)pthread_mutex_lock(&endpoints_lock);
    endpoint->next = endpoints;
    endpoints = endpoint;
    (void)pthread_mutex_unlock(&endpoints_lock);
    *out = endpoint;
    return VELO_OK;
}

static int loop_descriptor(void *self) { return ((struct endpoint *)self)->epoll; }

const struct velo_transport velo_transport __attribute__((visibility("default"))) = {
    .version = VELO_TRANSPORT_VERSION,
    .payload_bytes_max = VELO_FRAME_BYTES_MAX,
    .name = "loop",
    .open = loop_open,
    .close = loop_close,
    .dial = loop_dial,
    .send = loop_send,
    .hang_up = loop_hang_up,
    .progress = loop_progress,
    .descriptor = loop_descriptor,
};
