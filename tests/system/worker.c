/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process of the system: does what it is told, and knows nothing of what is right. Its buffers
 * are the conductor's, who looks at them.
 */
#include "worker.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"

struct seat {
    struct velo_port *port;
    struct velo_rma *rma;
    struct velo_mq *mq;
    struct velo_conn *conns[CONNS];
    void *reserved[CONNS];
    struct velo_mq_peer *mq_peers[VPIDS];
    struct velo_mq_message *probed[PROBED];
    struct velo_mq_request requests[REQUESTS];
    struct velo_rma_peer *rma_peers[RMA_PEERS];
    struct velo_rma_mem *mems[MEMS];
};

static struct seat seats[SEATS];
static struct desk *desk;
static int conductor;

/* ---- what came of it ------------------------------------------------------------------------- */

static struct event *add_event(enum event_kind kind)
{
    struct reply *reply = &desk->reply;

    if (reply->events_len == EVENTS)
        abort();
    struct event *event = &reply->events[reply->events_len++];
    *event = (struct event){.kind = kind};
    return event;
}

static void request_done(struct velo_mq_request *request)
{
    struct event *event = add_event(EVENT_REQUEST);

    event->handle = (uint32_t)(uintptr_t)request->user;
    event->status = request->status;
    event->source = request->source;
    event->match = request->match;
    event->len_bytes = request->len_bytes;
    event->total_bytes = request->total_bytes;
}

static void answer(void)
{
    struct reply *reply = &desk->reply;

    reply->visits = clock_visits();
    reply->standard_file = surroundings_standard_file();
    (void)snprintf(reply->error, sizeof reply->error, "%s", velo_last_error());
    if (write(conductor, "", 1) != 1)
        _exit(1);
}

/* In the middle of a call: others move, until we are told to go on. */
static void stopped(void)
{
    char byte;

    desk->reply.stopped = true;
    if (write(conductor, "", 1) != 1 || read(conductor, &byte, 1) != 1)
        _exit(1);
    desk->reply.stopped = false;
}

static void hung(void)
{
    desk->reply.hung = true;
    answer();
    _exit(0);
}

static void on_signal(int number)
{
    const struct command *command = &desk->command;

    (void)number;
    desk->reply.signals++;
    if (command->signal.act == SIGNAL_INTERRUPT) {
        velo_port_interrupt(seats[command->seat].port);
    } else if (command->signal.act == SIGNAL_SEND && desk->reply.signals == 1) {
        desk->reply.signal_status =
            velo_try_send(seats[command->signal.seat].conns[command->signal.handle],
                          command->signal.buf, command->signal.len_bytes, command->signal.tag);
    }
}

/* ---- ports ----------------------------------------------------------------------------------- */

static int port_open(struct seat *seat, const struct command *command)
{
    const struct shape *shape = &command->shape;
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_mq_attr mq_attr = VELO_MQ_ATTR_INIT;

    attr.vpid = (int)command->vpid;
    attr.depth_slots = shape->depth_slots;
    attr.data_bytes = shape->data_bytes;
    attr.conns_max = shape->conns_max;
    attr.flags = shape->tells_departures ? VELO_PORT_DEPARTURES : 0;
    setenv("VELO_RMA_ATTACH", shape->may_attach ? "1" : "0", 1);
    int status = velo_port_open(&attr, &seat->port);
    if (status == VELO_OK)
        desk->reply.generation = velo_port_generation(seat->port);
    if (status == VELO_OK && shape->has_rma)
        status = velo_rma_open(seat->port, NULL, &seat->rma);
    if (status == VELO_OK && shape->is_mq) {
        mq_attr.eager_bytes = shape->eager_bytes;
        mq_attr.get_bytes = shape->get_bytes;
        mq_attr.unexpected_bytes = shape->unexpected_bytes;
        mq_attr.unexpected_limit_bytes = shape->unexpected_limit_bytes;
        mq_attr.path = shape->path;
        status = velo_mq_open(seat->port, seat->rma, &mq_attr, &seat->mq);
    }
    return status;
}

static int port_close(struct seat *seat)
{
    int status = velo_mq_close(seat->mq);

    if (status == VELO_OK)
        status = velo_rma_close(seat->rma);
    if (status == VELO_OK)
        status = velo_port_close(seat->port);
    memset(seat, 0, sizeof *seat);
    return status;
}

static int do_port(struct seat *seat, const struct command *command)
{
    switch (command->act) {
    case ACT_PORT_OPEN:
        return port_open(seat, command);
    case ACT_PORT_CLOSE:
        return port_close(seat);
    default:
        _exit(0);
    }
}

/* ---- messages -------------------------------------------------------------------------------- */

static int disconnect(struct seat *seat, uint32_t handle)
{
    int status = velo_disconnect(seat->conns[handle]);

    seat->conns[handle] = NULL;
    seat->reserved[handle] = NULL;
    return status;
}

static int commit(struct seat *seat, const struct command *command)
{
    if (seat->reserved[command->handle] != NULL && command->len_bytes > 0)
        memcpy(seat->reserved[command->handle], command->buf, command->len_bytes);
    return velo_commit(seat->conns[command->handle], command->len_bytes, command->tag);
}

static void describe(const struct velo_msg *msg)
{
    desk->reply.source = msg->source;
    desk->reply.len_bytes = msg->len_bytes;
    desk->reply.tag = msg->tag;
    desk->reply.generation = msg->generation;
}

static int recv_in_place(struct seat *seat, const struct command *command)
{
    struct velo_msg msg = {0};
    int status = velo_try_peek(seat->port, &msg);

    describe(&msg);
    if (status != VELO_OK)
        return status;
    if (command->act == ACT_DEFER)
        return velo_defer(seat->port);
    if (msg.len_bytes > 0)
        memcpy(command->buf, msg.data, msg.len_bytes);
    return velo_release(seat->port);
}

static int recv_copy(struct seat *seat, const struct command *command)
{
    struct velo_msg msg = {0};
    int status =
        command->act == ACT_RECV
            ? velo_try_recv(seat->port, command->buf, command->len_bytes, &msg)
            : velo_recv(seat->port, command->buf, command->len_bytes, &msg, command->timeout_ns);

    describe(&msg);
    return status;
}

/* As a loop does that sleeps on the descriptor. */
static int arm(struct seat *seat)
{
    int fd = -1;
    int status = velo_port_fd(seat->port, &fd);

    return status == VELO_OK ? velo_port_arm(seat->port) : status;
}

static int look(struct seat *seat)
{
    struct pollfd file = {.fd = -1, .events = POLLIN};
    int status = velo_port_fd(seat->port, &file.fd);

    return status == VELO_OK && poll(&file, 1, 0) == 0 ? VELO_AGAIN : status;
}

/* All that the parent has open; none of these calls does anything here. */
static int64_t close_all(void)
{
    int64_t wrong = 0;

    for (struct seat *seat = seats; seat < seats + SEATS; seat++) {
        for (uint32_t i = 0; i < CONNS; i++)
            wrong += velo_disconnect(seat->conns[i]) != VELO_OK;
        for (uint32_t i = 0; i < VPIDS; i++)
            wrong += velo_mq_disconnect(seat->mq_peers[i]) != VELO_OK;
        for (uint32_t i = 0; i < RMA_PEERS; i++)
            wrong += velo_rma_disconnect(seat->rma_peers[i]) != VELO_OK;
        for (uint32_t i = 0; i < MEMS; i++)
            wrong += velo_rma_mem_deregister(seat->mems[i], 0) != VELO_OK;
        wrong += velo_mq_close(seat->mq) != VELO_OK;
        wrong += velo_rma_close(seat->rma) != VELO_OK;
        wrong += velo_port_close(seat->port) != VELO_OK;
    }
    return wrong;
}

/* Calls that tell a child that these are its parent's. */
static int64_t use_all(void)
{
    int64_t wrong = 0;

    for (struct seat *seat = seats; seat < seats + SEATS; seat++) {
        struct velo_conn *conn;
        struct velo_rma_peer *rma_peer;
        struct velo_mq_peer *mq_peer;
        int fd;
        if (seat->port == NULL)
            continue;
        wrong += velo_connect(seat->port, VELO_ID(0, 0), &conn, 0) != VELO_ERR_STATE;
        wrong += velo_port_fd(seat->port, &fd) != VELO_ERR_STATE;
        if (seat->rma != NULL)
            wrong += velo_rma_connect(seat->rma, VELO_ID(0, 0), &rma_peer, 0) != VELO_ERR_STATE;
        if (seat->mq != NULL)
            wrong += velo_mq_connect(seat->mq, VELO_ID(0, 0), &mq_peer, 0) != VELO_ERR_STATE;
    }
    return wrong;
}

static int64_t child_body(enum child_act act)
{
    return act == CHILD_CLOSES ? close_all() : act == CHILD_USES ? use_all() : 0;
}

static int do_edges(struct seat *seat, const struct command *command)
{
    switch (command->act) {
    case ACT_ARM:
        return arm(seat);
    case ACT_LOOK:
        return look(seat);
    case ACT_INTERRUPT:
        velo_port_interrupt(seat->port);
        return VELO_OK;
    case ACT_DESCRIPTORS_END:
        descriptors_end(command->count);
        return VELO_OK;
    case ACT_DESCRIPTORS_COME:
        descriptors_come();
        return VELO_OK;
    case ACT_DESCRIPTORS_COUNT:
        desk->reply.child = descriptors_count();
        return VELO_OK;
    default:
        desk->reply.child = fork_child((enum child_act)command->count, conductor, child_body);
        return VELO_OK;
    }
}

static int do_messages(struct seat *seat, const struct command *command)
{
    struct velo_conn **conn = &seat->conns[command->handle];
    int status = VELO_OK;

    switch (command->act) {
    case ACT_CONNECT:
        status = velo_connect(seat->port, command->id, conn, command->timeout_ns);
        desk->reply.generation = status == VELO_OK ? velo_conn_generation(*conn) : 0;
        return status;
    case ACT_DISCONNECT:
        return disconnect(seat, command->handle);
    case ACT_CONN_STATUS:
        return velo_conn_status(*conn);
    case ACT_TRY_SEND:
        return velo_try_send(*conn, command->buf, command->len_bytes, command->tag);
    case ACT_SEND:
        return velo_send(*conn, command->buf, command->len_bytes, command->tag, VELO_FOREVER);
    case ACT_RESERVE:
        return velo_try_reserve(*conn, command->len_bytes, &seat->reserved[command->handle]);
    case ACT_COMMIT:
        return commit(seat, command);
    case ACT_RECV:
    case ACT_RECV_WAIT:
        return recv_copy(seat, command);
    case ACT_RECV_IN_PLACE:
    case ACT_DEFER:
        return recv_in_place(seat, command);
    default:
        return velo_resume(seat->port);
    }
}

/* ---- matched queues -------------------------------------------------------------------------- */

static struct velo_mq_request *fresh_request(struct seat *seat, uint32_t handle)
{
    struct velo_mq_request *request = &seat->requests[handle];

    memset(request, 0x5a, sizeof *request);
    request->done = request_done;
    request->user = (void *)(uintptr_t)handle;
    return request;
}

static int probe(struct seat *seat, const struct command *command)
{
    struct velo_mq_info info = {0};
    int status =
        command->act == ACT_MQ_PROBE
            ? velo_mq_try_probe(seat->mq, command->id, command->match, command->ignore, &info)
            : velo_mq_try_mprobe(seat->mq, command->id, command->match, command->ignore,
                                 &seat->probed[command->handle], &info);

    desk->reply.source = info.source;
    desk->reply.match = info.match;
    desk->reply.len_bytes = info.len_bytes;
    return status;
}

static int do_mq(struct seat *seat, const struct command *command)
{
    struct velo_mq_peer **peer = &seat->mq_peers[command->vpid];
    int status = VELO_OK;

    switch (command->act) {
    case ACT_MQ_CONNECT:
        return velo_mq_connect(seat->mq, command->id, peer, command->timeout_ns);
    case ACT_MQ_DISCONNECT:
        status = velo_mq_disconnect(*peer);
        *peer = NULL;
        return status;
    case ACT_MQ_TRY_SEND:
        return velo_mq_try_send(*peer, command->buf, command->len_bytes, command->match);
    case ACT_MQ_ISEND:
        return velo_mq_isend(*peer, command->buf, command->len_bytes, command->match,
                             command->flags, fresh_request(seat, command->handle));
    case ACT_MQ_IRECV:
        return velo_mq_irecv(seat->mq, command->id, command->match, command->ignore, command->buf,
                             command->len_bytes, fresh_request(seat, command->handle));
    case ACT_MQ_PROBE:
    case ACT_MQ_MPROBE:
        return probe(seat, command);
    case ACT_MQ_MRECV:
        return velo_mq_mrecv(seat->mq, seat->probed[command->other], command->buf,
                             command->len_bytes, fresh_request(seat, command->handle));
    case ACT_MQ_CANCEL:
        return velo_mq_cancel(seat->mq, &seat->requests[command->handle]);
    case ACT_MQ_PROGRESS:
        for (uint32_t i = 0; i < command->count; i++)
            (void)velo_mq_progress(seat->mq);
        return VELO_OK;
    default:
        return velo_mq_idle(seat->mq, command->timeout_ns);
    }
}

/* ---- remote memory --------------------------------------------------------------------------- */

static int make_mem(struct seat *seat, const struct command *command)
{
    struct velo_rma_mem **mem = &seat->mems[command->handle];
    int status =
        command->act == ACT_MEM_ALLOC
            ? velo_rma_mem_alloc(seat->rma, command->len_bytes, command->flags, command->id, mem)
            : velo_rma_mem_register(seat->rma, command->buf, command->len_bytes, command->flags,
                                    command->id, mem);

    if (status == VELO_OK) {
        desk->reply.key = velo_rma_mem_key(*mem);
        desk->reply.address = (uint64_t)(uintptr_t)velo_rma_mem_addr(*mem);
    }
    return status;
}

static int take_notifications(struct seat *seat, const struct command *command)
{
    struct velo_rma_notification notification;

    for (uint32_t i = 0; i < command->count; i++) {
        int status = command->act == ACT_RMA_POLL
                         ? velo_rma_try_poll(seat->rma, &notification, 1)
                         : velo_rma_poll(seat->rma, &notification, 1, command->timeout_ns);
        if (status != 1)
            return status == 0 ? VELO_AGAIN : status;
        add_event(EVENT_NOTIFICATION)->notification = notification;
    }
    return VELO_OK;
}

static int do_operation(struct velo_rma_peer *peer, const struct command *command)
{
    switch (command->act) {
    case ACT_PUT:
        return velo_rma_put(peer, command->buf, command->len_bytes,
                            velo_rma_place(command->key, command->offset), command->flags,
                            command->cookie);
    case ACT_PUT_IMMEDIATE:
        return velo_rma_put_immediate(peer, command->value, command->len_bytes,
                                      velo_rma_place(command->key, command->offset), command->flags,
                                      command->cookie);
    case ACT_GET:
        return velo_rma_get(peer, command->buf, command->len_bytes,
                            velo_rma_place(command->key, command->offset), command->flags,
                            command->cookie);
    case ACT_FETCH_ADD:
        return velo_rma_fetch_compare_add(peer, command->buf,
                                          velo_rma_place(command->key, command->offset), 0, 1,
                                          VELO_RMA_ADD_ALWAYS | command->flags, command->cookie);
    case ACT_NOTIFY:
        return velo_rma_notify(peer, command->flags, command->cookie);
    case ACT_FENCE:
        return velo_rma_fence(peer);
    default:
        return velo_rma_flush(peer, command->timeout_ns);
    }
}

static int do_rma(struct seat *seat, const struct command *command)
{
    int status = VELO_OK;

    switch (command->act) {
    case ACT_RMA_CONNECT:
        return velo_rma_connect(seat->rma, command->id, &seat->rma_peers[command->handle],
                                command->timeout_ns);
    case ACT_RMA_DISCONNECT:
        status = velo_rma_disconnect(seat->rma_peers[command->handle]);
        seat->rma_peers[command->handle] = NULL;
        return status;
    case ACT_MEM_ALLOC:
    case ACT_MEM_REGISTER:
        return make_mem(seat, command);
    case ACT_MEM_DEREGISTER:
        status = velo_rma_mem_deregister(seat->mems[command->handle], VELO_FOREVER);
        seat->mems[command->handle] = NULL;
        return status;
    case ACT_MEM_READ:
        memcpy(command->buf, velo_rma_mem_addr(seat->mems[command->handle]), command->len_bytes);
        return VELO_OK;
    case ACT_RMA_PROGRESS:
        for (uint32_t i = 0; i < command->count; i++)
            (void)velo_rma_progress(seat->rma);
        return VELO_OK;
    case ACT_RMA_POLL:
    case ACT_RMA_WAIT:
        return take_notifications(seat, command);
    default:
        return do_operation(seat->rma_peers[command->handle], command);
    }
}

/* ---- commands -------------------------------------------------------------------------------- */

static int obey(const struct command *command)
{
    struct seat *seat = &seats[command->seat];

    if (command->act < ACT_CONNECT)
        return do_port(seat, command);
    if (command->act < ACT_ARM)
        return do_messages(seat, command);
    if (command->act < ACT_MQ_CONNECT)
        return do_edges(seat, command);
    if (command->act < ACT_RMA_CONNECT)
        return do_mq(seat, command);
    return do_rma(seat, command);
}

void worker_run(int fd, struct desk *my_desk, struct sundial *sundial, unsigned closed_files)
{
    struct sigaction action = {.sa_handler = on_signal};
    char byte;

    desk = my_desk;
    conductor = fd;
    clock_use(sundial, hung, stopped);
    (void)sigaction(SIGUSR1, &action, NULL);
    surroundings_begin(closed_files);
    while (read(conductor, &byte, 1) == 1) {
        struct command command = desk->command;

        desk->reply.status = 0;
        desk->reply.stopped = false;
        desk->reply.hung = false;
        desk->reply.events_len = 0;
        desk->reply.signals = 0;
        desk->reply.signal_status = VELO_OK;
        clock_start(command.die_at, command.stop_at, command.signal.at, command.signal.times);
        desk->reply.status = obey(&command);
        answer();
    }
    _exit(0);
}
