/* SPDX-License-Identifier: Apache-2.0 */
#include "carrier.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../base/error.h"
#include "../shm/wait.h"
#include "attend.h"
#include "link.h"
#include "names.h"

/* The longest wait of a port that closes for peers that live to take their last messages. */
#define LINGER_NS (10 * NS_PER_S)
/* A thread that waits for room looks again after this time: another thread may have taken in the
 * credits that it waits for. */
#define ROOM_NAP_MS 1
/* A process that ends waits so long for its last messages to be taken, and for a thread of its own
 * to leave a call: that may be the one that ends it, by exit() in a signal handler. */
#define LAST_NS NS_PER_S
#define SYMBOL "velo_transport"

/* ---- loading --------------------------------------------------------------------------------- */

/* The folder of plug-ins: $VELO_TRANSPORT_PATH, else `velo` beside this library, or beside the
 * program if the library is part of it. */
static void plugin_dir(char *dir, size_t dir_bytes)
{
    static const char anchor;
    Dl_info info;
    const char *set = getenv("VELO_TRANSPORT_PATH");
    if (set && *set) {
        (void)snprintf(dir, dir_bytes, "%s", set);
        return;
    }
    bool is_known = dladdr(&anchor, &info) != 0 && info.dli_fname;
    const char *slash = is_known ? strrchr(info.dli_fname, '/') : NULL;
    int len = slash ? (int)(slash - info.dli_fname) : 1;
    (void)snprintf(dir, dir_bytes, "%.*s/velo", len, slash ? info.dli_fname : ".");
}

static int check(const struct velo_transport *transport, const char *name, const char *path)
{
    if (!transport)
        return velo_fail(VELO_ERR_ARG, "%s is no transport: it has no symbol " SYMBOL, path);
    if (transport->version != VELO_TRANSPORT_VERSION)
        return velo_fail(VELO_ERR_VERSION,
                         "%s is made for version %u of transports, this library has version %u; "
                         "build both from the same release",
                         path, transport->version, VELO_TRANSPORT_VERSION);
    bool is_sized = transport->payload_bytes_max >= VELO_FRAME_BYTES_MIN &&
                    transport->payload_bytes_max <= VELO_FRAME_BYTES_MAX;
    if (strcmp(transport->name, name) != 0 || (!transport->device && !is_sized))
        return velo_fail(VELO_ERR_ARG, "%s says of itself what no transport '%s' may say", path,
                         name);
    return VELO_OK;
}

/* A device works on this library's structures and calls its functions. It must not use those of
 * another copy. */
static int check_device(void *plugin, const char *name)
{
    return dlsym(plugin, "velo_fail") == (void *)(uintptr_t)velo_fail
               ? VELO_OK
               : velo_fail(VELO_ERR_STATE,
                           "transport '%s' needs the library as libvelo.so, and this program has "
                           "it linked in (libvelo.a)",
                           name);
}

/* A plug-in stays loaded: its ports may be of other threads. */
static const struct velo_transport *load(const char *name, int *status)
{
    char path[PATH_MAX];
    char dir[PATH_MAX - 64];
    plugin_dir(dir, sizeof dir);
    (void)snprintf(path, sizeof path, "%s/libvelo-%s.so", dir, name);
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!plugin) {
        *status = velo_fail(VELO_ERR_ARG,
                            "VELO_NETWORK names the transport '%s', which cannot be loaded: %s",
                            name, dlerror());
        return NULL;
    }
    const struct velo_transport *transport = dlsym(plugin, SYMBOL);
    *status = check(transport, name, path);
    if (*status == VELO_OK && transport->device)
        *status = check_device(plugin, name);
    return *status ? NULL : transport;
}

int carriers_find_device(struct velo_port *port)
{
    const struct network *network = &port->network;
    int status = VELO_OK;
    for (uint32_t i = 1; i < network->names_len && status == VELO_OK; i++) {
        const struct velo_transport *transport = load(network->names[i], &status);
        if (transport && transport->device)
            port->device = transport->device;
    }
    if (status == VELO_OK && port->device && !network_is_uniform(network))
        status = velo_fail(VELO_ERR_ARG,
                           "VELO_NETWORK names a transport with a device, which has to reach all "
                           "peers of a port, also those on its own node: give NAME,own=NAME");
    return status;
}

/* ---- opening --------------------------------------------------------------------------------- */

static int open_one(struct velo_port *port, uint32_t index)
{
    const char *name = port->network.names[index];
    struct carrier *carrier = calloc(1, sizeof *carrier);
    if (!carrier)
        return velo_fail(VELO_ERR_NO_MEMORY, "out of memory");
    struct velo_endpoint_attr attr = {.id = port->id,
                                      .generation = port->segment->generation,
                                      .node = network_node(&port->network, port->id),
                                      .dir = port->domain.dir,
                                      .domain = port->domain.name,
                                      .is_shared = port->domain.shared,
                                      .gid = (uint32_t)port->domain.gid,
                                      .owner = carrier};
    int status = VELO_OK;
    carrier->port = port;
    carrier->transport = load(name, &status);
    if (carrier->transport)
        status = port->device ? port->device->open(port)
                              : carrier->transport->open(&attr, &link_calls, &carrier->endpoint);
    if (status) {
        free(carrier);
        return status;
    }
    carrier->index = index;
    pthread_mutex_init(&carrier->lock, NULL);
    carrier->next = port->carriers;
    port->carriers = carrier;
    return VELO_OK;
}

/* A program that was started on the simulated cluster must not run beside it unnoticed. */
static int check_place(const struct velo_port *port)
{
    int status = VELO_OK;
    bool leads_there = port->device || !getenv("VELO_SIM");
    for (uint32_t i = 1; i < port->network.names_len && !leads_there && status == VELO_OK; i++) {
        const struct velo_transport *transport = load(port->network.names[i], &status);
        leads_there = transport && transport->uses_node;
    }
    return status || leads_there
               ? status
               : velo_fail(VELO_ERR_STATE, "VELO_SIM names a simulated cluster, but VELO_NETWORK "
                                           "does not lead there; see `velo sim`");
}

static int open_all(struct velo_port *port)
{
    int status = VELO_OK;
    for (uint32_t i = 1; i < port->network.names_len && status == VELO_OK; i++)
        status = open_one(port, i);
    return status;
}

int carriers_open(struct velo_port *port)
{
    static const uint32_t always = 1;
    int status = check_place(port);
    if (status || port->network.names_len == 1)
        return status;
    port->look = &always;
    if (port->device)
        return open_all(port);
    int wake_fd = wait_doorbell_open(port->segment->generation);
    if (wake_fd < 0)
        return velo_fail(VELO_ERR_SYSTEM, "a socket to be woken by: %s", strerror(errno));
    port->wake_fd = wake_fd;
    status = open_all(port);
    if (status == VELO_OK)
        status = attend_begin(port);
    if (status)
        carriers_close(port);
    else
        names_show(port);
    return status;
}

struct carrier *carrier_to(const struct velo_port *port, velo_id_t peer)
{
    bool has_lines = port->carriers && !port->device;
    uint32_t index = has_lines ? network_route(&port->network, port->id, peer) : NETWORK_SHM;
    struct carrier *carrier = index == NETWORK_SHM ? NULL : port->carriers;
    while (carrier && carrier->index != index)
        carrier = carrier->next;
    return carrier;
}

/* ---- closing --------------------------------------------------------------------------------- */

static bool is_done(struct carrier *carrier)
{
    bool done = true;
    pthread_mutex_lock(&carrier->lock);
    for (const struct velo_link *link = carrier->links; link && done; link = link_next(link))
        done = link_is_done(link);
    pthread_mutex_unlock(&carrier->lock);
    return done;
}

static void linger(struct velo_port *port, int64_t end_ns)
{
    for (struct carrier *carrier = port->carriers; carrier; carrier = carrier->next)
        while (!is_done(carrier) && wait_now_ns() < end_ns)
            if (!carriers_progress(port))
                (void)carriers_nap(port);
}

/* Progress sends what was held back: the thread need not come. */
static void release(struct carrier *carrier)
{
    if (!order_flag(&carrier->held))
        return;
    order_set_flag(&carrier->held, 0);
    attend_later();
}

/* From here on no peer can connect, and connected peers are told. */
static void close_links(struct carrier *carrier)
{
    pthread_mutex_lock(&carrier->lock);
    carrier->is_closing = true;
    for (struct velo_link *link = carrier->links; link; link = link_next(link))
        link_close(link);
    pthread_mutex_unlock(&carrier->lock);
}

void carriers_close(struct velo_port *port)
{
    int64_t end_ns = wait_now_ns() + LINGER_NS;
    if (port->device) {
        free(port->carriers);
        port->carriers = NULL;
    }
    if (port->wake_fd < 0)
        return;
    linger(port, end_ns);
    for (struct carrier *carrier = port->carriers; carrier; carrier = carrier->next)
        close_links(carrier);
    linger(port, end_ns);
    attend_end(port);
    while (port->carriers) {
        struct carrier *carrier = port->carriers;
        port->carriers = carrier->next;
        while (carrier->links)
            link_free(carrier->links);
        release(carrier);
        carrier->transport->close(carrier->endpoint);
        pthread_mutex_destroy(&carrier->lock);
        free(carrier);
    }
    close(port->wake_fd);
    port->wake_fd = -1;
}

/* ---- progress and sleep ---------------------------------------------------------------------- */

void carrier_sent(struct carrier *carrier)
{
    if (!carrier->transport->sent)
        return;
    bool is_held = carrier->transport->sent(carrier->endpoint);
    if (is_held && !order_flag(&carrier->held)) {
        order_set_flag(&carrier->held, 1);
        order_set_flag(&carrier->late, attend_soon());
    } else if (!is_held) {
        release(carrier);
    }
}

static bool push_links(struct carrier *carrier)
{
    bool is_pushed = true;
    for (struct velo_link *link = carrier->links; link; link = link_next(link))
        is_pushed &= link_push(link);
    return is_pushed;
}

/* If another thread of the program has the lock, it does all the work, and we need not wait. If the
 * attending thread has it, we wait: it may have lost the processor, and needs ours. */
static bool progress(struct carrier *carrier)
{
    if (pthread_mutex_trylock(&carrier->lock) != 0) {
        if (!order_flag(&carrier->attended))
            return false;
        pthread_mutex_lock(&carrier->lock);
    }
    release(carrier);
    bool any = carrier->transport->progress(carrier->endpoint);
    order_set_flag(&carrier->pending, !push_links(carrier));
    links_sweep(carrier);
    carrier_sent(carrier);
    pthread_mutex_unlock(&carrier->lock);
    return any;
}

void carriers_attend(struct velo_port *port)
{
    for (struct carrier *carrier = port->carriers; carrier; carrier = carrier->next) {
        order_set_flag(&carrier->attended, 1);
        (void)progress(carrier);
        order_set_flag(&carrier->attended, 0);
    }
}

/* The program may release its frames and hold others meanwhile: then these leave too early. */
bool carriers_attend_held(struct velo_port *port)
{
    bool any_was_late = false;
    for (struct carrier *carrier = port->carriers; carrier; carrier = carrier->next) {
        if (!order_flag(&carrier->held))
            continue;
        if (order_flag(&carrier->late)) {
            (void)progress(carrier);
            any_was_late = true;
        }
        order_set_flag(&carrier->late, 1);
    }
    return any_was_late;
}

bool carriers_arm(struct velo_port *port)
{
    bool is_armed = true;
    for (struct carrier *carrier = port->carriers; carrier; carrier = carrier->next) {
        if (!carrier->transport->arm)
            continue;
        pthread_mutex_lock(&carrier->lock);
        is_armed &= carrier->transport->arm(carrier->endpoint);
        pthread_mutex_unlock(&carrier->lock);
    }
    return is_armed;
}

void carriers_send_last(struct velo_port *port)
{
    int64_t end_ns = wait_now_ns() + LAST_NS;
    for (struct carrier *carrier = port->carriers; carrier; carrier = carrier->next) {
        if (!carrier->transport->finish || !wait_lock(&carrier->lock, LAST_NS))
            continue;
        bool is_sent;
        do {
            is_sent = push_links(carrier);
            carrier->transport->finish(carrier->endpoint);
        } while (!is_sent && wait_now_ns() < end_ns);
        pthread_mutex_unlock(&carrier->lock);
    }
}

bool carriers_progress(struct velo_port *port)
{
    if (port->device)
        return port->device->poll(port);
    order_show(&port->looks, order_counter(&port->looks) + 1);
    bool any = false;
    for (struct carrier *carrier = port->carriers; carrier; carrier = carrier->next)
        any |= progress(carrier);
    return any;
}

static bool sleep_on(struct velo_port *port, nfds_t first, int timeout_ms)
{
    struct pollfd files[NETWORK_TRANSPORTS_MAX];
    nfds_t len = 0;
    bool pending = false;
    files[len++] = (struct pollfd){.fd = port->wake_fd, .events = POLLIN};
    for (struct carrier *carrier = port->carriers; carrier; carrier = carrier->next) {
        files[len++] = (struct pollfd){.fd = carrier->transport->descriptor(carrier->endpoint),
                                       .events = POLLIN};
        pending |= order_flag(&carrier->pending) != 0;
    }
    if (pending && timeout_ms > ROOM_NAP_MS) /* No descriptor tells when there is room again. */
        timeout_ms = ROOM_NAP_MS;
    return poll(files + first, len - first, timeout_ms) < 0 && errno == EINTR;
}

bool carriers_sleep(struct velo_port *port, int64_t timeout_ns)
{
    bool is_interrupted = false;
    if (order_peek_summary(&port->shared->summary) == 0 && carriers_arm(port))
        is_interrupted = sleep_on(port, 0, (int)((timeout_ns + 999999) / 1000000));
    wait_doorbell_drain(port->wake_fd);
    (void)carriers_progress(port);
    return is_interrupted;
}

bool carriers_nap(struct velo_port *port)
{
    return carriers_arm(port) && sleep_on(port, 1, ROOM_NAP_MS);
}
