/* SPDX-License-Identifier: Apache-2.0 */
#include "link_connect.h"

#include "../base/error.h"
#include "../shm/wait.h"
#include "link.h"
#include "link_out.h"
#include "links.h"
#include "progress.h"

#define CONNECT_NAP_NS 100000
#define DIAL_NAP_NS 1000000
/* Wait at least this long for the answer, even with a shorter timeout. The matched queues connect
 * back without one, and take a peer for gone that does not answer: on a network that loses the
 * first words, or with a peer that waits for its turn at a core, half a second is not enough. */
#define ANSWER_NS (10 * NS_PER_S)

static int dial_peer(struct carrier *carrier, velo_id_t peer, uint64_t order,
                     struct velo_link **out)
{
    pthread_mutex_lock(&carrier->lock);
    struct velo_link *link = link_new(carrier, NULL);
    int status = link ? carrier->transport->dial(carrier->endpoint, peer, link, &link->circuit)
                      : velo_fail(VELO_ERR_NO_MEMORY, "out of memory");
    if (link && status == VELO_OK) {
        link->is_outgoing = link->is_kept = true;
        link->order = order;
        link->owed = VELO_FRAME_OPEN;
        link_note_pushed(link, link_out_push(link));
    } else if (link) {
        link_free(link);
    }
    pthread_mutex_unlock(&carrier->lock);
    *out = link;
    return status;
}

static enum link_state look_at_link(struct velo_link *link)
{
    pthread_mutex_lock(&link->carrier->lock);
    enum link_state state = link->state;
    pthread_mutex_unlock(&link->carrier->lock);
    return state;
}

static void drop_link(struct velo_link *link)
{
    pthread_mutex_t *lock = &link->carrier->lock;
    pthread_mutex_lock(lock);
    link_free(link);
    pthread_mutex_unlock(lock);
}

#define PORT "port %u.%u"
#define PORT_OF(id) VELO_ID_NODE(id), VELO_ID_VPID(id)

static int explain_end(const struct velo_link *link, velo_id_t peer)
{
    const struct velo_transport *transport = link->carrier->transport;
    if (link->status == VELO_ERR_ACCESS && transport->no_access)
        return velo_fail(link->status, PORT " %s", PORT_OF(peer), transport->no_access);
    if (link->status == VELO_ERR_NO_PEER || link->status == VELO_TIMEOUT)
        return velo_fail(link->status,
                         "nobody answers as " PORT
                         " over transport %s: is its program running, and "
                         "where it is said to be?",
                         PORT_OF(peer), transport->name);
    return velo_fail(link->status, PORT ", or %s, refused the connection: %s", PORT_OF(peer),
                     transport->name, velo_strerror(link->status));
}

/* In both cases the peer may answer later: the caller may try again, as with one that is not there
 * yet. */
static int explain_silence(const struct velo_link *link, velo_id_t peer)
{
    const char *name = link->carrier->transport->name;
    if (link->owed)
        return velo_fail(VELO_TIMEOUT,
                         PORT " has not been reached over transport %s in the time given: is its "
                              "program running, and does the network let it through?",
                         PORT_OF(peer), name);
    return velo_fail(VELO_TIMEOUT,
                     PORT " is there over transport %s, but its process did not answer in the time "
                          "given: it stands still, or waits for a core",
                     PORT_OF(peer), name);
}

/* Wait until the peer has answered. */
static int wait_for_answer(struct velo_link *link, velo_id_t peer, int64_t end_ns)
{
    struct velo_port *port = link->carrier->port;
    for (;;) {
        (void)carriers_progress(port);
        enum link_state state = look_at_link(link);
        if (state == LINK_OPEN)
            return VELO_OK;
        if (state == LINK_OVER)
            return explain_end(link, peer);
        if (wait_now_ns() >= end_ns)
            return explain_silence(link, peer);
        if (wait_nap(CONNECT_NAP_NS))
            return velo_fail(VELO_ERR_INTERRUPTED, "a signal handler ran before the peer answered");
    }
}

/* Show the connection; link_out_carry() shows its counters. */
static int show_conn(struct velo_link *link, velo_id_t peer)
{
    return outgoing_add(link->carrier->port->segment, peer, link->carrier->transport->name,
                        &link->shown);
}

/* The link by which a try has asked this peer; NULL: none has. */
static struct velo_link *take_asked(struct carrier *carrier, velo_id_t peer, uint64_t order)
{
    pthread_mutex_lock(&carrier->lock);
    struct velo_link *link = carrier->links;
    while (link && !(link->is_asked && link->source == peer && link->order == order))
        link = link->next;
    if (link)
        link->is_asked = false;
    pthread_mutex_unlock(&carrier->lock);
    return link;
}

/* Keep it for the next try. It stays until then even if it is over: its status says why. */
static int keep_asked(struct velo_link *link, velo_id_t peer)
{
    pthread_mutex_lock(&link->carrier->lock);
    link->source = peer;
    link->is_asked = true;
    pthread_mutex_unlock(&link->carrier->lock);
    return VELO_TIMEOUT;
}

static void fill_conn(struct velo_conn *conn, struct velo_link *link)
{
    static const uint32_t always_ring = BELL_RING;
    struct segment *segment = link->segment;
    struct seg_ring *ring = link_out_ring(link);
    segment->refs++; /* No other thread knows of it. */
    conn->segment = segment;
    conn->header = segment->header;
    conn->index = 0;
    conn->fenced = true;
    conn->bell = &always_ring;
    conn->stands_in = true;
    conn->net_own = link;
    conn->carry = link_out_carry;
    ring_tx_start(&conn->tx, ring, &segment->shape, conn->port->id, true);
    (void)ring_tx_refresh(&conn->tx, conn->tx.tail);
}

int link_connect(struct velo_conn *conn, velo_id_t peer, int64_t timeout_ns)
{
    struct carrier *carrier = carrier_to(conn->port, peer);
    bool is_try = timeout_ns == NET_TRY;
    int64_t end_ns = is_try ? 0 : wait_end_ns(wait_now_ns(), timeout_ns);
    for (;;) {
        struct velo_link *link = take_asked(carrier, peer, conn->order);
        int64_t answer_ns = is_try ? 0 : wait_now_ns() + ANSWER_NS;
        int status = link ? VELO_OK : dial_peer(carrier, peer, conn->order, &link);
        if (status == VELO_OK) {
            status = wait_for_answer(link, peer, end_ns > answer_ns ? end_ns : answer_ns);
            if (is_try && status == VELO_TIMEOUT && look_at_link(link) != LINK_OVER)
                return keep_asked(link, peer);
            if (status == VELO_OK)
                status = show_conn(link, peer);
            if (status == VELO_OK) {
                fill_conn(conn, link);
                return VELO_OK;
            }
            drop_link(link);
        }
        if (!status_is_absent(status) || wait_now_ns() >= end_ns)
            return status;
        if (wait_nap(DIAL_NAP_NS))
            return velo_fail(VELO_ERR_INTERRUPTED,
                             "a signal handler ran before the peer was there");
    }
}

void link_disconnect(struct velo_conn *conn)
{
    struct velo_link *link = link_of(conn);
    struct carrier *carrier = link->carrier;
    pthread_mutex_lock(&carrier->lock);
    link->ready = ring_line(conn->tx.tail);
    link->is_kept = false;
    if (link->state == LINK_OPEN) {
        link->state = LINK_LEAVING;
        link_note_pushed(link, link_out_push(link));
    }
    links_sweep(carrier);
    pthread_mutex_unlock(&carrier->lock);
}
