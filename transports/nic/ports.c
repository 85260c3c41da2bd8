/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This process's ports at its nodes, and their connections. Names, connection tables and the locks
 * that tell who lives are in shared memory, as natively: a node knows nothing of them.
 */
#include <stdlib.h>

#include "../../lib/base/error.h"
#include "../../lib/shm/wait.h"
#include "host_io.h"
#include "nic.h"
#include "remote.h"
#include "wire.h"

/* Nothing stays in the network longer than this, unless something holds it up. */
#define SETTLED_NS INT64_C(1000000)
/* A sleeper looks at its word again after this time at the latest: another thread of the process
 * may have taken in what it waits for, and no back has an event for that. */
#define SLICE_NS INT64_C(1000000)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct device_port *devices;
static uint64_t polls; /* Of this process, to receive. */

/* ---- what comes ------------------------------------------------------------------------------ */

static void take_news(void)
{
    pthread_mutex_lock(&nic_lock);
    for (struct device_port *device = devices; device; device = device->next)
        nic_drain(device);
    pthread_mutex_unlock(&nic_lock);
}

/* Its parent's ports are none of a child: both would take lines out of one ring. Of a card, the
 * child may even have its own ring where the parent has one. */
static void forget_in_child(void)
{
    devices = NULL;
    (void)pthread_mutex_init(&nic_lock, NULL);
}

static void begin_process(void)
{
    (void)pthread_atfork(NULL, NULL, forget_in_child);
    host_fail = velo_fail;
    host_io->on_news(take_news);
}

/* One poll takes in the messages for all ports of the process. Each port may then look once without
 * a poll of its own. So where a program polls two ports in turns, both see a message after the same
 * number of polls, whichever port the program looks at first. */
static bool poll_node(struct velo_port *port)
{
    struct device_port *device = nic_port(port);
    uint64_t poll = order_counter(&polls);
    if (device->poll == poll) {
        order_show(&polls, ++poll);
        host_io->poll();
    }
    device->poll = poll;
    bool is_new = device->news != device->seen;
    device->seen = device->news;
    return is_new;
}

/* Sleep while a word is `expected` and nothing has come. The word may change without a message. */
static bool sleep_on_word(const uint32_t *word, uint32_t expected, int64_t timeout_ns)
{
    int64_t now_ns = wait_now_ns();
    int64_t end_ns = wait_end_ns(now_ns, timeout_ns);
    bool is_interrupted = false;
    while (!is_interrupted && order_flag(word) == expected && now_ns < end_ns) {
        is_interrupted = host_io->wait(end_ns - now_ns < SLICE_NS ? end_ns - now_ns : SLICE_NS);
        now_ns = wait_now_ns();
    }
    return is_interrupted;
}

static bool sleep_port(struct velo_port *port, int64_t timeout_ns)
{
    return sleep_on_word(&port->shared->summary, 0, timeout_ns);
}

static bool sleep_for_room(struct velo_conn *conn, const uint32_t *credits, uint32_t seen,
                           int64_t timeout_ns)
{
    (void)conn;
    return sleep_on_word(credits, seen, timeout_ns);
}

/* The ring needs no look here: polls in vain bring all messages, its own too. But the credits that
 * were just published are to be sent. */
static void ring_paused(struct velo_port *port, const struct ring_rx *rx)
{
    if (rx->published == rx->head)
        nic_credit(port, rx);
}

static bool is_settled(const struct velo_port *port)
{
    struct device_port *device = nic_port(port);
    int64_t now_ns = wait_now_ns();
    bool is_new = device->suspicion_ns == 0 || device->suspicion_news != device->news;
    if (!is_new && now_ns >= device->suspicion_ns + SETTLED_NS) {
        device->suspicion_ns = 0;
        return true;
    }
    if (is_new) {
        device->suspicion_ns = now_ns;
        device->suspicion_news = device->news;
    }
    return false;
}

static int add_descriptors(const struct velo_port *port, int epoll_fd)
{
    (void)port, (void)epoll_fd;
    return velo_fail(VELO_ERR_STATE, "the port's network has no descriptor to wait for; use the "
                                     "calls that wait");
}

static bool arm(struct velo_port *port)
{
    (void)port;
    return true;
}

/* All connections are made in memory: only messages go by the node. */
static bool reaches(const struct velo_port *port, velo_id_t peer)
{
    (void)port, (void)peer;
    return false;
}

/* ---- ports ----------------------------------------------------------------------------------- */

static void place(int *node, uint32_t *first, uint32_t *step) { host_io->place(node, first, step); }

static int open_port(struct velo_port *port)
{
    (void)pthread_once(&once, begin_process);
    struct device_port *device = calloc(1, sizeof *device);
    if (!device)
        return velo_fail(VELO_ERR_NO_MEMORY, "out of memory");
    bool is_unit = (port->flags & SEG_HAS_TAIL) != 0;
    uint32_t node = network_node(port->network, port->id);
    int status = host_io->context_open(node, port->id, is_unit, &device->context);
    if (status) {
        free(device);
        return status;
    }
    device->generation = device->context.opened & WIRE_GENERATION_MASK;
    device->port = port;
    port->net_own = device;
    pthread_mutex_lock(&nic_lock);
    device->next = devices;
    devices = device;
    pthread_mutex_unlock(&nic_lock);
    order_publish_entry(&port->segment->header->device, nic_name(device));
    return VELO_OK;
}

static void close_port(struct velo_port *port)
{
    struct device_port *device = nic_port(port);
    pthread_mutex_lock(&nic_lock);
    struct device_port **link = &devices;
    while (*link != device)
        link = &(*link)->next;
    *link = device->next;
    pthread_mutex_unlock(&nic_lock);
    host_io->context_close(&device->context);
    remote_close(device);
    recombine_close(&device->split);
    free(device);
    port->net_own = NULL;
}

static bool takes_messages(const struct seg_header *peer)
{
    return order_read_entry(&peer->device) != 0;
}

static int join(struct velo_conn *conn)
{
    struct device_port *device = nic_port(conn->port);
    conn->carry = nic_send;
    conn->net_name = order_read_entry(&conn->header->device);
    int status = host_check_grant(&device->context, (uint16_t)nic_name_id(conn->net_name));
    if (status)
        return status;
    order_show(&seg_ring(conn->segment, conn->index)->tx_device, nic_name(device));
    return VELO_OK;
}

/* Until the receiver is told, the entry is no dead one although our life may end. */
static void disconnect_conn(struct velo_conn *conn)
{
    uint64_t line[8] = {0, wire_data(0, nic_name_generation(conn->net_name), conn->index)};
    if (order_read_entry(&conn->header->state) == SEG_OPEN)
        nic_send_line(nic_port(conn->port), conn->net_name, LINE_LEAVE, line, 8);
    order_set_flag(&seg_ring(conn->segment, conn->index)->tx_left, 1);
}

/* ---- the plug-in ----------------------------------------------------------------------------- */

/* The node has all messages that were sent already. */
static void leave(struct velo_port *port) { (void)port; }

/* In virtual time, no time passes while a thread spins on shared memory: see `carries_all`. */
static const struct net_calls device_calls = {
    .carries_all = true,
    .sleeps = SEG_SLEEPS_ON_WORD,
    .place = place,
    .open = open_port,
    .leave = leave,
    .close = close_port,
    .progress = poll_node,
    .ring_paused = ring_paused,
    .sleep = sleep_port,
    .is_settled = is_settled,
    .add_descriptors = add_descriptors,
    .arm = arm,
    .reaches = reaches,
    .sleep_for_room = sleep_for_room,
    .disconnect = disconnect_conn,
    .takes_messages = takes_messages,
    .join = join,
    .offload = &nic_rma,
};

VELO_API extern const struct velo_transport velo_transport;
const struct velo_transport velo_transport = {
    .version = VELO_TRANSPORT_VERSION,
    .name = "nic",
    .uses_node = true,
    .device = &device_calls,
};
