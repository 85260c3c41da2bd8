/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transport for tests, over another one: it makes that as bad as transport.h allows (settings.h).
 * It stands between the library and the other transport, and is to each of them what the other is:
 * the library's links are circuits to this one's circuits, and those are links to the circuits
 * below. So neither the library nor a transport has anything for tests in it.
 *
 * Each frame that comes passes the queue of its circuit. What goes out is not delayed, but may find
 * no room.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../../lib/base/fd.h"
#include "../../lib/net/transport.h"
#include "queue.h"
#include "settings.h"

#define FRAMES_PER_LOOK 32u

struct circuit {
    struct circuit *next; /* Of the endpoint's. */
    struct endpoint *endpoint;
    struct velo_link *link; /* NULL: the library has hung up, and the circuit is to be freed. */
    void *below;            /* The circuit of the transport below; NULL: it is hung up. */
    int lost;               /* The status with which that was lost; 0: it was not. */
    bool is_full;           /* A send was told that there is no room, although there was. */
    uint32_t sends, frames;
    struct queue queue;
};

struct endpoint {
    const struct velo_transport_calls *calls; /* Of the library. */
    struct velo_transport_calls own_calls;    /* Those of the transport below. */
    void *owner;                              /* Of the library. */
    void *below;                              /* The endpoint of the transport below. */
    int epoll;
    int waiting; /* Readable while there is something to do that the descriptor below does not show.
                  */
    struct circuit *circuits;
};

static struct settings settings;
static const struct velo_transport *below; /* NULL: it cannot be had, */
static char why_not[512];                  /* for this reason. */

/* ---- circuits ----------------------------------------------------------------------------------- */

static struct circuit *circuit_new(struct endpoint *endpoint, struct velo_link *link,
                                   void *circuit_below)
{
    struct circuit *circuit = calloc(1, sizeof *circuit);
    if (!circuit)
        return NULL;
    circuit->endpoint = endpoint;
    circuit->link = link;
    circuit->below = circuit_below;
    circuit->next = endpoint->circuits;
    endpoint->circuits = circuit;
    return circuit;
}

/* Free the circuits that the library has hung up. */
static void sweep_circuits(struct endpoint *endpoint)
{
    struct circuit **at = &endpoint->circuits;
    while (*at) {
        struct circuit *circuit = *at;
        if (circuit->link) {
            at = &circuit->next;
            continue;
        }
        *at = circuit->next;
        queue_clear(&circuit->queue);
        free(circuit);
    }
}

static void hang_up_below(struct circuit *circuit)
{
    if (circuit->below)
        below->hang_up(circuit->below);
    circuit->below = NULL;
}

/* End the next wait. */
static void show_waiting(const struct endpoint *endpoint)
{
    uint64_t one = 1;
    (void)!write(endpoint->waiting, &one, sizeof one);
}

/* ---- what the transport below calls ---------------------------------------------------------- */

/* It was told of circuits as of links. */
static struct circuit *circuit_of(struct velo_link *link) { return (struct circuit *)link; }

static struct velo_link *circuit_rang(void *owner, void *circuit_below)
{
    struct endpoint *endpoint = owner;
    struct circuit *circuit = circuit_new(endpoint, NULL, circuit_below);
    if (circuit)
        circuit->link = endpoint->calls->circuit_rang(endpoint->owner, circuit);
    /* Without a link the next sweep frees it. */
    return circuit && circuit->link ? (struct velo_link *)circuit : NULL;
}

static void lose_circuit(struct circuit *circuit, int status)
{
    circuit->lost = status;
    hang_up_below(circuit);
}

static void frame_came(struct velo_link *link, const struct velo_frame *frame)
{
    struct circuit *circuit = circuit_of(link);
    if (!queue_add(&circuit->queue, &settings, frame))
        lose_circuit(circuit, VELO_ERR_NO_MEMORY);
}

static void room_came(struct velo_link *link)
{
    const struct circuit *circuit = circuit_of(link);
    if (circuit->link)
        circuit->endpoint->calls->room_came(circuit->link);
}

static void circuit_lost(struct velo_link *link, int status)
{
    lose_circuit(circuit_of(link), status);
}

static void count_refused(void *owner, uint64_t count)
{
    const struct endpoint *endpoint = owner;
    endpoint->calls->count_refused(endpoint->owner, count);
}

static const char *host_of(void *owner, velo_id_t id, uint32_t *service)
{
    const struct endpoint *endpoint = owner;
    return endpoint->calls->host_of(endpoint->owner, id, service);
}

static int find_name(void *owner, velo_id_t peer, struct velo_port_shown *shown)
{
    const struct endpoint *endpoint = owner;
    return endpoint->calls->find_name(endpoint->owner, peer, shown);
}

static uint32_t node_of(void *owner, velo_id_t id)
{
    const struct endpoint *endpoint = owner;
    return endpoint->calls->node_of(endpoint->owner, id);
}

/* ---- progress -------------------------------------------------------------------------------- */

/* Hand the frames of a circuit to the library. True: there were any. */
static bool deliver_frames(struct circuit *circuit)
{
    uint32_t most = settings.partial ? settings.partial : FRAMES_PER_LOOK;
    uint32_t taken = 0;
    for (; taken < most && circuit->link; taken++) {
        struct kept *kept = queue_take(&circuit->queue, &settings);
        if (!kept)
            break;
        circuit->endpoint->calls->frame_came(circuit->link, &kept->frame);
        free(kept);
        if (settings.die && ++circuit->frames >= settings.die) {
            lose_circuit(circuit, VELO_ERR_PEER_DEAD);
            queue_clear(&circuit->queue);
        }
    }
    return taken > 0;
}

/* True: there was anything. */
static bool look_at(struct circuit *circuit)
{
    const struct velo_transport_calls *calls = circuit->endpoint->calls;
    bool any = deliver_frames(circuit);
    if (circuit->link && circuit->lost && circuit->queue.len == 0)
        calls->circuit_lost(circuit->link, circuit->lost);
    if (circuit->link && circuit->is_full) {
        circuit->is_full = false;
        calls->room_came(circuit->link);
    }
    return any;
}

static bool faults_progress(void *self)
{
    struct endpoint *endpoint = self;
    uint64_t count;
    bool is_waiting = false;
    (void)!read(endpoint->waiting, &count, sizeof count);
    bool any = below->progress(endpoint->below);
    for (struct circuit *circuit = endpoint->circuits; circuit; circuit = circuit->next)
        any |= look_at(circuit);
    sweep_circuits(endpoint);
    for (const struct circuit *circuit = endpoint->circuits; circuit && !is_waiting;
         circuit = circuit->next)
        is_waiting = circuit->queue.len > 0 || circuit->is_full || circuit->lost;
    if (is_waiting)
        show_waiting(endpoint);
    return any;
}

static int faults_descriptor(void *self) { return ((const struct endpoint *)self)->epoll; }

static bool faults_sent(void *self) { return below->sent(((const struct endpoint *)self)->below); }

static bool faults_arm(void *self) { return below->arm(((const struct endpoint *)self)->below); }

static void faults_finish(void *self) { below->finish(((const struct endpoint *)self)->below); }

/* ---- what the library does with circuits -------------------------------------------------------- */

static int faults_dial(void *self, velo_id_t peer, struct velo_link *link, void **out)
{
    struct endpoint *endpoint = self;
    struct circuit *circuit = circuit_new(endpoint, link, NULL);
    if (!circuit)
        return endpoint->calls->fail(VELO_ERR_NO_MEMORY, "no memory for a circuit");
    int status = below->dial(endpoint->below, peer, (struct velo_link *)circuit, &circuit->below);
    if (status) {
        circuit->link = NULL;
        sweep_circuits(endpoint);
        return status;
    }
    *out = circuit;
    return VELO_OK;
}

static int faults_send(void *self, const struct velo_frame *frame)
{
    struct circuit *circuit = self;
    uint32_t sends = ++circuit->sends;
    if (!circuit->below)
        return VELO_OK; /* The library hears that the circuit is lost. */
    if (sends > settings.full && (!settings.partial || sends % settings.partial != 0))
        return below->send(circuit->below, frame);
    circuit->is_full = true;
    show_waiting(circuit->endpoint);
    return VELO_AGAIN;
}

static void faults_hang_up(void *self)
{
    struct circuit *circuit = self;
    circuit->link = NULL;
    queue_clear(&circuit->queue);
    hang_up_below(circuit);
}

static struct velo_exposed *faults_expose(void *self, const void *memory, size_t len_bytes)
{
    const struct circuit *circuit = self;
    return circuit->below ? below->expose(circuit->below, memory, len_bytes) : NULL;
}

static void faults_conceal(void *self, struct velo_exposed *exposed)
{
    below->conceal(((const struct endpoint *)self)->below, exposed);
}

static int faults_fetch(void *self, void *to, size_t len_bytes, const struct velo_exposed *from,
                        int *outcome)
{
    const struct circuit *circuit = self;
    return circuit->below ? below->fetch(circuit->below, to, len_bytes, from, outcome)
                          : VELO_ERR_PEER_DEAD;
}

static void faults_forget(void *self, const int *outcome)
{
    below->forget(((const struct endpoint *)self)->below, outcome);
}

/* ---- names ----------------------------------------------------------------------------------- */

static size_t faults_own_name(void *self, char name[VELO_PORT_NAME_BYTES_MAX])
{
    return below->own_name(((const struct endpoint *)self)->below, name);
}

static int faults_learn(void *self, velo_id_t peer, const void *name, size_t len_bytes)
{
    return below->learn(((const struct endpoint *)self)->below, peer, name, len_bytes);
}

/* ---- endpoints ------------------------------------------------------------------------------- */

static void faults_close(void *self)
{
    struct endpoint *endpoint = self;
    if (endpoint->below)
        below->close(endpoint->below);
    for (struct circuit *circuit = endpoint->circuits; circuit; circuit = circuit->next)
        circuit->link = NULL;
    sweep_circuits(endpoint);
    if (endpoint->epoll >= 0)
        close(endpoint->epoll);
    if (endpoint->waiting >= 0)
        close(endpoint->waiting);
    free(endpoint);
}

static int open_files(struct endpoint *endpoint)
{
    struct epoll_event event = {.events = EPOLLIN};
    endpoint->epoll = fd_above_standard(epoll_create1(EPOLL_CLOEXEC));
    endpoint->waiting = fd_above_standard(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (endpoint->epoll >= 0 && endpoint->waiting >= 0 &&
        epoll_ctl(endpoint->epoll, EPOLL_CTL_ADD, endpoint->waiting, &event) == 0 &&
        epoll_ctl(endpoint->epoll, EPOLL_CTL_ADD, below->descriptor(endpoint->below), &event) == 0)
        return VELO_OK;
    return endpoint->calls->fail(VELO_ERR_SYSTEM, "transport faults: no descriptor to wait for: %s",
                                 strerror(errno));
}

static int faults_open(const struct velo_endpoint_attr *attr,
                       const struct velo_transport_calls *calls, void **out)
{
    if (!below)
        return calls->fail(VELO_ERR_ARG, "VELO_FAULTS: %s", why_not);
    struct endpoint *endpoint = calloc(1, sizeof *endpoint);
    if (!endpoint)
        return calls->fail(VELO_ERR_NO_MEMORY, "out of memory");
    *endpoint = (struct endpoint){.calls = calls,
                                  .own_calls = {.circuit_rang = circuit_rang,
                                                .frame_came = frame_came,
                                                .room_came = room_came,
                                                .circuit_lost = circuit_lost,
                                                .fail = calls->fail,
                                                .count_refused = count_refused,
                                                .host_of = host_of,
                                                .find_name = find_name,
                                                .node_of = node_of},
                                  .owner = attr->owner,
                                  .epoll = -1,
                                  .waiting = -1};
    struct velo_endpoint_attr ours = *attr;
    ours.owner = endpoint;
    int status = below->open(&ours, &endpoint->own_calls, &endpoint->below);
    if (status == VELO_OK)
        status = open_files(endpoint);
    if (status) {
        faults_close(endpoint);
        return status;
    }
    *out = endpoint;
    return VELO_OK;
}

/* ---- the table ------------------------------------------------------------------------------- */

struct velo_transport velo_transport __attribute__((visibility("default"))) = {
    .version = VELO_TRANSPORT_VERSION,
    .payload_bytes_max = VELO_FRAME_BYTES_MAX,
    .name = "faults",
    .open = faults_open,
    .close = faults_close,
    .dial = faults_dial,
    .send = faults_send,
    .hang_up = faults_hang_up,
    .progress = faults_progress,
    .descriptor = faults_descriptor,
};

/* What the transport below does not have, this one does not have either. */
static void fit_table(void)
{
    struct velo_transport *table = &velo_transport;
    uint32_t payload = settings.payload ? settings.payload : VELO_FRAME_BYTES_MAX;
    if (payload < VELO_FRAME_BYTES_MIN)
        payload = VELO_FRAME_BYTES_MIN;
    table->payload_bytes_max =
        payload < below->payload_bytes_max ? payload : below->payload_bytes_max;
    table->no_access = below->no_access;
    table->uses_node = below->uses_node;
    table->own_name = below->own_name ? faults_own_name : NULL;
    table->learn = below->learn ? faults_learn : NULL;
    table->sent = below->sent ? faults_sent : NULL;
    table->arm = below->arm ? faults_arm : NULL;
    table->finish = below->finish ? faults_finish : NULL;
    table->expose = below->expose ? faults_expose : NULL;
    table->conceal = below->conceal ? faults_conceal : NULL;
    table->fetch = below->fetch ? faults_fetch : NULL;
    table->forget = below->forget ? faults_forget : NULL;
}

/* Load the transport below, which lies beside this one. NULL: `why_not` says why. */
static const struct velo_transport *load_below(void)
{
    Dl_info info;
    char path[PATH_MAX];
    const char *slash = dladdr(&velo_transport, &info) != 0 ? strrchr(info.dli_fname, '/') : NULL;
    (void)snprintf(path, sizeof path, "%.*s/libvelo-%s.so",
                   slash ? (int)(slash - info.dli_fname) : 1, slash ? info.dli_fname : ".",
                   settings.over);
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct velo_transport *found = plugin ? dlsym(plugin, "velo_transport") : NULL;
    if (!found)
        (void)snprintf(why_not, sizeof why_not, "%s", dlerror());
    else if (found == &velo_transport || found->version != VELO_TRANSPORT_VERSION || found->device)
        (void)snprintf(why_not, sizeof why_not, "'%s' does not carry frames of this version",
                       settings.over);
    else
        return found;
    return NULL;
}

/* Runs when the plug-in is loaded, before the library looks at the table. */
__attribute__((constructor)) static void begin(void)
{
    const char *wrong;
    if (!settings_read(&settings, getenv("VELO_FAULTS"), &wrong))
        (void)snprintf(why_not, sizeof why_not,
                       "'%.40s' is no setting; give over=NAME, payload=N, delay_us=N, partial=N, "
                       "full=N, reorder=N, die=N or seed=N",
                       wrong);
    else if (!*settings.over)
        (void)snprintf(why_not, sizeof why_not, "give over=NAME: the transport below");
    else
        below = load_below();
    if (below)
        fit_table();
}
