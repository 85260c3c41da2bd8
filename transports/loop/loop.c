/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transport for tests, and an example for those who want to write one: it connects ports of one
 * machine by sockets. A circuit is one socket of a connected pair; each frame is one packet of it.
 * An endpoint listens under a name that the kernel keeps as long as its process lives, so nothing
 * is left behind.
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

struct circuit {
    struct circuit *next;
    struct endpoint *endpoint;
    struct velo_link *link;
    int fd;
    bool is_hung_up; /* By the library: the circuit is freed after the look that is under way. */
    bool is_full;    /* The last send found no room. */
};

struct endpoint {
    struct endpoint *next; /* Of this process. */
    const struct velo_transport_calls *calls;
    struct velo_endpoint_attr attr;
    int listener;
    int epoll;
    struct circuit *circuits;
    uint32_t hung_up; /* Circuits that are to be freed. */
    bool is_deaf;     /* No descriptor was left for a circuit that rang. */
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

/* ---- circuits ----------------------------------------------------------------------------------- */

static struct circuit *new_circuit(struct endpoint *endpoint, int fd)
{
    struct circuit *circuit = calloc(1, sizeof *circuit);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = circuit};
    if (!circuit || epoll_ctl(endpoint->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        free(circuit);
        close(fd);
        return NULL;
    }
    circuit->endpoint = endpoint;
    circuit->fd = fd;
    circuit->next = endpoint->circuits;
    endpoint->circuits = circuit;
    return circuit;
}

/* While a circuit is full, its socket also ends a wait when it can be written to. */
static void set_full(struct circuit *circuit, bool is_full)
{
    struct epoll_event event = {.events = is_full ? EPOLLIN | EPOLLOUT : EPOLLIN,
                                .data.ptr = circuit};
    if (circuit->is_full != is_full)
        (void)epoll_ctl(circuit->endpoint->epoll, EPOLL_CTL_MOD, circuit->fd, &event);
    circuit->is_full = is_full;
}

/* A child that was just forked may have the socket, too: epoll would go on reporting it. */
static void close_circuit(struct circuit *circuit)
{
    if (circuit->fd < 0)
        return;
    (void)epoll_ctl(circuit->endpoint->epoll, EPOLL_CTL_DEL, circuit->fd, NULL);
    /* The other end reads what was sent, then the end. */
    (void)shutdown(circuit->fd, SHUT_RDWR);
    close(circuit->fd);
    circuit->fd = -1;
}

static void free_circuit(struct circuit *circuit)
{
    struct circuit **at = &circuit->endpoint->circuits;
    while (*at != circuit)
        at = &(*at)->next;
    *at = circuit->next;
    close_circuit(circuit);
    free(circuit);
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
    struct circuit *circuit = new_circuit(endpoint, fd);
    if (!circuit)
        return endpoint->calls->fail(VELO_ERR_NO_MEMORY, "no memory for a circuit");
    circuit->link = link;
    *out = circuit;
    return VELO_OK;
}

static int loop_send(void *self, const struct velo_frame *frame)
{
    struct circuit *circuit = self;
    struct packet packet = {.kind = frame->kind,
                            .payload_bytes = frame->payload_bytes,
                            .word = {frame->word[0], frame->word[1]}};
    if (frame->payload_bytes)
        memcpy(packet.payload, frame->payload, frame->payload_bytes);
    ssize_t sent = send(circuit->fd, &packet, PACKET_BYTES(frame->payload_bytes), MSG_NOSIGNAL);
    if (sent >= 0)
        return VELO_OK;
    if (errno == EAGAIN) {
        set_full(circuit, true);
        return VELO_AGAIN;
    }
    /* The frame is lost, and so the circuit: the next read of either end finds out. */
    (void)shutdown(circuit->fd, SHUT_RDWR);
    return VELO_OK;
}

static void loop_hang_up(void *self)
{
    struct circuit *circuit = self;
    circuit->is_hung_up = true;
    circuit->endpoint->hung_up++;
    close_circuit(circuit);
}

/* ---- what comes ------------------------------------------------------------------------------ */

/* Where no circuit can be taken, who waits is not woken for it over and over: each look tries
 * again. */
static void set_deaf(struct endpoint *endpoint, bool is_deaf)
{
    struct epoll_event event = {.events = is_deaf ? 0 : EPOLLIN};
    if (endpoint->is_deaf != is_deaf)
        (void)epoll_ctl(endpoint->epoll, EPOLL_CTL_MOD, endpoint->listener, &event);
    endpoint->is_deaf = is_deaf;
}

static void accept_circuits(struct endpoint *endpoint)
{
    for (;;) {
        int fd = fd_above_standard(
            accept4(endpoint->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (fd < 0) {
            set_deaf(endpoint, errno != EAGAIN && errno != EINTR && errno != ECONNABORTED);
            return;
        }
        if (!is_one_of_us(&endpoint->attr, fd)) {
            close(fd);
            continue;
        }
        struct circuit *circuit = new_circuit(endpoint, fd);
        if (!circuit)
            continue;
        circuit->link = endpoint->calls->circuit_rang(endpoint->attr.owner, circuit);
        if (!circuit->link)
            loop_hang_up(circuit);
    }
}

/* The kernel may report the end although a packet came just before it: look once more. */
static ssize_t read_packet(const struct circuit *circuit, struct packet *packet)
{
    ssize_t len = recv(circuit->fd, packet, sizeof *packet, 0);
    return len == 0 ? recv(circuit->fd, packet, sizeof *packet, 0) : len;
}

static void take_in(const struct circuit *circuit, const struct packet *packet)
{
    struct velo_frame frame = {.kind = packet->kind,
                               .payload_bytes = packet->payload_bytes,
                               .word = {packet->word[0], packet->word[1]},
                               .payload = packet->payload};
    circuit->endpoint->calls->frame_came(circuit->link, &frame);
}

/* Take in a packet. VELO_AGAIN: there is none. VELO_ERR_PEER_DEAD: nothing more can be read. */
static int take_packet(struct circuit *circuit)
{
    struct packet packet;
    ssize_t len = read_packet(circuit, &packet);
    if (len >= (ssize_t)PACKET_BYTES(0) && (size_t)len == PACKET_BYTES(packet.payload_bytes)) {
        take_in(circuit, &packet);
        return VELO_OK;
    }
    /* If the other end left without reading all of ours, the kernel reports that once, before the
     * packets that the other end has sent. */
    if (len < 0 && errno == ECONNRESET)
        return VELO_OK;
    return len < 0 && (errno == EAGAIN || errno == EINTR) ? VELO_AGAIN : VELO_ERR_PEER_DEAD;
}

/* True: there was anything. */
static bool look_at_circuit(struct circuit *circuit)
{
    uint32_t taken = 0;
    int status = VELO_OK;
    for (; taken < FRAMES_PER_LOOK && status == VELO_OK && !circuit->is_hung_up; taken++)
        status = take_packet(circuit);
    if (status == VELO_ERR_PEER_DEAD && !circuit->is_hung_up)
        circuit->endpoint->calls->circuit_lost(circuit->link, status);
    return taken > 1 || status == VELO_OK;
}

static void tell_room(struct circuit *circuit)
{
    if (!circuit->is_full || circuit->is_hung_up)
        return;
    set_full(circuit, false);
    circuit->endpoint->calls->room_came(circuit->link);
}

/* Look at the circuits that have something. */
static bool look_at_circuits(struct endpoint *endpoint)
{
    struct epoll_event events[EVENTS_MAX];
    bool any = false;
    int len = epoll_wait(endpoint->epoll, events, EVENTS_MAX, 0);
    for (int i = 0; i < len; i++) {
        struct circuit *circuit = events[i].data.ptr;
        if (!circuit)
            accept_circuits(endpoint);
        else if (!circuit->is_hung_up) {
            any |= look_at_circuit(circuit);
            if (events[i].events & EPOLLOUT)
                tell_room(circuit);
        }
    }
    return any;
}

static bool loop_progress(void *self)
{
    struct endpoint *endpoint = self;
    bool any = look_at_circuits(endpoint);
    struct circuit *next;
    if (endpoint->is_deaf)
        accept_circuits(endpoint);
    for (struct circuit *circuit = endpoint->circuits; circuit && endpoint->hung_up > 0;
         circuit = next) {
        next = circuit->next;
        if (circuit->is_hung_up)
            free_circuit(circuit);
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
        for (const struct circuit *circuit = endpoint->circuits; circuit; circuit = circuit->next)
            close(circuit->fd);
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
    while (endpoint->circuits)
        free_circuit(endpoint->circuits);
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
