/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transport for tests, and for those who want to write one: ports of one machine, connected by
 * sockets. A line is one socket of a connected pair; each frame is one packet of it. An endpoint
 * listens under a name that the kernel keeps as long as its process lives, so nothing is left
 * behind.
 *
 * $VELO_LOOP makes it as bad as a network may be (transport.h says what that is): settings NAME=N,
 * separated by commas.
 *
 *     payload=N    most bytes of a frame: long messages come in many pieces
 *     delay_us=N   a frame is taken in so much later
 *     partial=N    a look takes in N frames of a line at most; each Nth send finds no room
 *     reorder=N    one of up to N frames that have come goes first, at random, where it may
 *     die=N        a line is lost after N frames
 *     seed=N       the seed of all that is random
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "../../lib/core/transport.h"

#define FRAMES_PER_LOOK 32u
#define HELD_MAX 64u
#define LISTEN_BACKLOG 1024
#define EVENTS_MAX 64

/* What travels: the frame, then its payload. */
struct packet {
    uint32_t kind;
    uint32_t payload_bytes;
    uint64_t word[2];
    char payload[VELO_FRAME_BYTES_MAX];
};
#define PACKET_BYTES(payload_bytes) (offsetof(struct packet, payload) + (payload_bytes))

/* A packet that has come and is not taken in yet. */
struct held {
    int64_t due_us;
    struct packet *packet;
};

struct line {
    struct line *next;
    struct endpoint *endpoint;
    struct velo_link *link;
    int fd;
    bool is_hung_up; /* By the library: freed after the look that is under way. */
    uint32_t sends, frames;
    struct held held[HELD_MAX]; /* The earliest first. */
    uint32_t held_len;
    bool is_lost;
};

struct endpoint {
    struct endpoint *next; /* Of this process. */
    const struct velo_transport_calls *calls;
    struct velo_endpoint_attr attr;
    int listener;
    int epoll;
    int waiting; /* Readable while a frame is held back here. */
    struct line *lines;
    uint32_t hung_up; /* Lines that are to be freed. */
    uint64_t random;
};

static struct endpoint *endpoints;
static pthread_mutex_t endpoints_lock = PTHREAD_MUTEX_INITIALIZER;

/* $VELO_LOOP; 0: without that. */
static struct {
    uint32_t payload, delay_us, partial, reorder, die, seed;
} bad;

static const char *no_setting; /* Where $VELO_LOOP makes no sense; NULL: nowhere. */

extern struct velo_transport velo_transport;

/* ---- settings -------------------------------------------------------------------------------- */

/* When the plug-in is loaded, before any thread can look at them. */
__attribute__((constructor)) static void read_settings(void)
{
    static const char *const names[] = {"payload", "delay_us", "partial", "reorder", "die", "seed"};
    uint32_t *const values[] = {&bad.payload, &bad.delay_us, &bad.partial,
                                &bad.reorder, &bad.die,      &bad.seed};
    const char *text = getenv("VELO_LOOP");
    while (text && *text) {
        size_t i = 0;
        size_t len = strcspn(text, "=");
        while (i < sizeof names / sizeof *names &&
               (strlen(names[i]) != len || strncmp(names[i], text, len) != 0))
            i++;
        char *end = NULL;
        unsigned long value = text[len] ? strtoul(text + len + 1, &end, 10) : 0;
        if (i == sizeof names / sizeof *names || !end || end == text + len + 1 ||
            (*end && *end != ',') || value > 1000000000) {
            no_setting = text;
            return;
        }
        *values[i] = (uint32_t)value;
        text = *end ? end + 1 : end;
    }
    if (bad.payload && bad.payload < VELO_FRAME_BYTES_MIN)
        bad.payload = VELO_FRAME_BYTES_MIN;
    if (bad.payload && bad.payload < VELO_FRAME_BYTES_MAX)
        velo_transport.payload_bytes_max = bad.payload;
    if (bad.reorder > HELD_MAX)
        bad.reorder = HELD_MAX;
}

static uint32_t draw(struct endpoint *endpoint, uint32_t below)
{
    endpoint->random = endpoint->random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(endpoint->random >> 33) % below;
}

static int64_t now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Of a port: an abstract name, with the directory in it as a number, since names are short. */
static socklen_t address_of(const struct velo_endpoint_attr *attr, velo_id_t id,
                            struct sockaddr_un *address)
{
    uint64_t dir = UINT64_C(0xCBF29CE484222325);
    for (const char *c = attr->dir; *c; c++)
        dir = (dir ^ (unsigned char)*c) * UINT64_C(0x100000001B3);
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    int len =
        snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "velo-loop/%016llx/%s/%u.%u",
                 (unsigned long long)dir, attr->domain, VELO_ID_NODE(id), VELO_ID_VPID(id));
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

/* A child that was just forked may have the socket, too, and epoll would go on telling of it. */
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
    for (uint32_t i = 0; i < line->held_len; i++)
        free(line->held[i].packet);
    close_line(line);
    free(line);
}

static int loop_dial(void *self, velo_id_t peer, struct velo_link *link, void **out)
{
    struct endpoint *endpoint = self;
    struct sockaddr_un address;
    socklen_t len = address_of(&endpoint->attr, peer, &address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
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
    if (bad.partial && ++line->sends % bad.partial == 0)
        return VELO_AGAIN;
    if (frame->payload_bytes)
        memcpy(packet.payload, frame->payload, frame->payload_bytes);
    ssize_t sent = send(line->fd, &packet, PACKET_BYTES(frame->payload_bytes), MSG_NOSIGNAL);
    /* A line that is broken is found so when it is read. */
    return sent < 0 && (errno == EAGAIN || errno == ENOBUFS) ? VELO_AGAIN : VELO_OK;
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
        int fd = accept4(endpoint->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            return;
        if (!is_one_of_us(&endpoint->attr, fd)) {
            close(fd);
            continue;
        }
        struct line *line = new_line(endpoint, fd);
        if (!line)
            continue;
        line->link = endpoint->calls->rang(endpoint->attr.owner, line);
        if (!line->link)
            loop_hang_up(line);
    }
}

/* The kernel may find nothing, then the end, though a packet came in between: look once more. */
static ssize_t read_packet(const struct line *line, struct packet *packet)
{
    ssize_t len = recv(line->fd, packet, sizeof *packet, 0);
    return len == 0 ? recv(line->fd, packet, sizeof *packet, 0) : len;
}

/* Read packets until there are as many as may wait here. True: there were any. */
static bool read_packets(struct line *line)
{
    uint32_t room = bad.reorder || bad.delay_us ? HELD_MAX : 1;
    bool any = false;
    while (line->held_len < room && !line->is_lost) {
        struct packet *packet = malloc(sizeof *packet);
        ssize_t len = packet ? read_packet(line, packet) : -1;
        bool is_whole =
            len >= (ssize_t)PACKET_BYTES(0) && (size_t)len == PACKET_BYTES(packet->payload_bytes);
        if (is_whole) {
            line->held[line->held_len++] = (struct held){now_us() + bad.delay_us, packet};
            any = true;
            continue;
        }
        /* Said once, before what was sent, if the other end left without reading all of ours. */
        bool is_reset = packet && len < 0 && errno == ECONNRESET;
        line->is_lost = packet && !is_reset && (len >= 0 || (errno != EAGAIN && errno != EINTR));
        free(packet);
        if (!is_reset)
            break;
    }
    return any;
}

/* May the frame at a place go before all that came before it? DATA may, and a SLOT past what is no
 * DATA of its own: past none, to be safe. */
static bool may_overtake(const struct line *line, uint32_t at)
{
    uint32_t kind = line->held[at].packet->kind;
    if (kind != VELO_FRAME_DATA && kind != VELO_FRAME_SLOT)
        return at == 0;
    for (uint32_t i = 0; i < at; i++) {
        uint32_t before = line->held[i].packet->kind;
        bool is_slot_past_slot = kind == VELO_FRAME_SLOT && before == VELO_FRAME_SLOT;
        if (kind == VELO_FRAME_DATA ? before != VELO_FRAME_DATA && before != VELO_FRAME_SLOT
                                    : !is_slot_past_slot)
            return false;
    }
    return true;
}

/* The next frame to take in; held_len: none is due. */
static uint32_t choose(struct line *line)
{
    if (line->held_len == 0 || line->held[0].due_us > now_us())
        return line->held_len;
    uint32_t at = bad.reorder ? draw(line->endpoint, bad.reorder) : 0;
    return at < line->held_len && may_overtake(line, at) ? at : 0;
}

static void take_in(struct line *line, uint32_t at)
{
    struct packet *packet = line->held[at].packet;
    line->held_len--;
    memmove(line->held + at, line->held + at + 1, (line->held_len - at) * sizeof *line->held);
    struct velo_frame frame = {.kind = packet->kind,
                               .payload_bytes = packet->payload_bytes,
                               .word = {packet->word[0], packet->word[1]},
                               .payload = packet->payload};
    line->endpoint->calls->came(line->link, &frame);
    free(packet);
    if (bad.die && ++line->frames == bad.die)
        line->is_lost = true;
}

static bool look_at_line(struct line *line)
{
    uint32_t most = bad.partial ? bad.partial : FRAMES_PER_LOOK;
    bool any = false;
    for (uint32_t taken = 0; taken < most && !line->is_hung_up; taken++) {
        any |= read_packets(line);
        uint32_t at = choose(line);
        if (at == line->held_len)
            break;
        take_in(line, at);
        any = true;
    }
    bool is_out = bad.die && line->frames >= bad.die;
    if (line->is_lost && (line->held_len == 0 || is_out) && !line->is_hung_up)
        line->endpoint->calls->lost(line->link, VELO_ERR_PEER_DEAD);
    return any;
}

/* Lines that have something, or, where frames are held back here, all. */
static bool look_at_lines(struct endpoint *endpoint)
{
    struct epoll_event events[EVENTS_MAX];
    bool any = false;
    if (bad.delay_us || bad.reorder || bad.partial) {
        accept_lines(endpoint);
        for (struct line *line = endpoint->lines; line; line = line->next)
            any |= !line->is_hung_up && look_at_line(line);
        return any;
    }
    int len = epoll_wait(endpoint->epoll, events, EVENTS_MAX, 0);
    for (int i = 0; i < len; i++) {
        struct line *line = events[i].data.ptr;
        if (!line)
            accept_lines(endpoint);
        else if ((void *)line != endpoint && !line->is_hung_up)
            any |= look_at_line(line);
    }
    return any;
}

/* A frame that is held back was read from its socket, whose descriptor does not show it any more.
 */
static void show_waiting(const struct endpoint *endpoint)
{
    const struct line *line = endpoint->lines;
    uint64_t count = 1;
    while (line && line->held_len == 0)
        line = line->next;
    (void)!(line ? write(endpoint->waiting, &count, sizeof count)
                 : read(endpoint->waiting, &count, sizeof count));
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
    if (bad.delay_us || bad.reorder)
        show_waiting(endpoint);
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
    if (endpoint->waiting >= 0)
        close(endpoint->waiting);
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
    *endpoint = (struct endpoint){
        .calls = calls, .attr = *attr, .listener = -1, .epoll = -1, .waiting = -1};
    int status = VELO_OK;
    if (no_setting)
        status = calls->fail(VELO_ERR_ARG,
                             "VELO_LOOP: '%.40s' is no setting; give payload=N, delay_us=N, "
                             "partial=N, reorder=N, die=N or seed=N",
                             no_setting);
    endpoint->random = bad.seed + attr->id;
    endpoint->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    endpoint->epoll = epoll_create1(EPOLL_CLOEXEC);
    endpoint->waiting = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    struct epoll_event waits = {.events = EPOLLIN, .data.ptr = endpoint};
    if (status == VELO_OK &&
        (endpoint->listener < 0 || endpoint->epoll < 0 || endpoint->waiting < 0 ||
         epoll_ctl(endpoint->epoll, EPOLL_CTL_ADD, endpoint->waiting, &waits) != 0 ||
         bind(endpoint->listener, (const struct sockaddr *)&address, len) != 0 ||
         listen(endpoint->listener, LISTEN_BACKLOG) != 0 ||
         epoll_ctl(endpoint->epoll, EPOLL_CTL_ADD, endpoint->listener, &event) != 0))
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

struct velo_transport velo_transport __attribute__((visibility("default"))) = {
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
