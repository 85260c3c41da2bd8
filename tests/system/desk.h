/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between the conductor and one worker process. The conductor writes a command on the
 * worker's desk and wakes it. The worker carries it out by one call of the library (or a few of the
 * same kind), writes the result, and waits for the next one. In between it does nothing, so the
 * conductor decides everything that happens, and its order.
 */
#ifndef VELO_SYSTEM_DESK_H
#define VELO_SYSTEM_DESK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <velo/mq.h>
#include <velo/rma.h>
#include <velo/velo.h>

enum {
    SEATS = 2,     /* Ports that one process may have open. */
    VPIDS = 4,     /* Ids that all processes share: few, so that they are soon used again. */
    CONNS = 5,     /* Connections of one port. */
    RMA_PEERS = 4, /* RMA connections of one port. */
    MEMS = 5,      /* Registrations of one port. */
    REQUESTS = 32, /* Of one port, under way. */
    PROBED = 4,    /* Messages of one port that a matched probe has taken. */
    BLOCKS = 160,  /* Buffers of one process. */
    EVENTS = 256,  /* That one command may lead to. */
};
#define BLOCK_BYTES ((size_t)64 << 10)
#define ARENA_BYTES (BLOCKS * BLOCK_BYTES)

enum act {
    ACT_PORT_OPEN = 1,
    ACT_PORT_CLOSE,
    ACT_EXIT,

    ACT_CONNECT,
    ACT_DISCONNECT,
    ACT_CONN_STATUS,
    ACT_TRY_SEND,
    ACT_SEND,
    ACT_RESERVE,
    ACT_COMMIT,
    ACT_RECV,
    ACT_RECV_WAIT,
    ACT_RECV_IN_PLACE,
    ACT_DEFER,
    ACT_RESUME,
    ACT_ARM,
    ACT_LOOK,
    ACT_INTERRUPT,
    ACT_DESCRIPTORS_END,
    ACT_DESCRIPTORS_COME,
    ACT_DESCRIPTORS_COUNT,
    ACT_FORK,

    ACT_MQ_CONNECT,
    ACT_MQ_DISCONNECT,
    ACT_MQ_TRY_SEND,
    ACT_MQ_ISEND,
    ACT_MQ_IRECV,
    ACT_MQ_PROBE,
    ACT_MQ_MPROBE,
    ACT_MQ_MRECV,
    ACT_MQ_CANCEL,
    ACT_MQ_PROGRESS,
    ACT_MQ_IDLE,

    ACT_RMA_CONNECT,
    ACT_RMA_DISCONNECT,
    ACT_MEM_ALLOC,
    ACT_MEM_REGISTER,
    ACT_MEM_DEREGISTER,
    ACT_MEM_READ,
    ACT_PUT,
    ACT_PUT_IMMEDIATE,
    ACT_GET,
    ACT_FETCH_ADD,
    ACT_NOTIFY,
    ACT_FENCE,
    ACT_FLUSH,
    ACT_RMA_PROGRESS,
    ACT_RMA_POLL,
    ACT_RMA_WAIT,
    ACTS,
};

/* What the handler of a signal does. */
enum signal_act {
    SIGNAL_NOTHING,
    SIGNAL_INTERRUPT, /* Ends a wait of the port that it interrupts. */
    SIGNAL_SEND       /* By another port. */
};

/* What the child of a fork does. */
enum child_act {
    CHILD_LEAVES, /* By _exit(), */
    CHILD_EXITS,  /* by exit(). */
    CHILD_CLOSES, /* Closes all that its parent has open. */
    CHILD_USES,   /* Calls that refuse it. */
    CHILD_STAYS,  /* Until the run is over. */
    CHILD_ACTS
};

/* How a port and its queues are opened. */
struct shape {
    uint32_t depth_slots;
    uint32_t data_bytes;
    uint32_t conns_max;
    uint32_t eager_bytes;
    uint64_t get_bytes;
    uint64_t unexpected_bytes;
    uint64_t unexpected_limit_bytes;
    int path;
    bool is_mq;
    bool tells_departures;
    bool has_rma;
    bool may_attach;
};

struct command {
    enum act act;
    uint32_t seat;
    uint32_t handle;  /* Of the connection, peer, registration, request or probed message. */
    uint32_t other;   /* A second one. */
    uint32_t die_at;  /* Visit of a hook point at which the process kills itself; 0: it does not. */
    uint32_t stop_at; /* One at which it stops until it is told to go on. */
    struct {
        uint32_t at;    /* Hook points, looks at the clock and sleeps until a signal; 0: none. */
        uint32_t times; /* That it comes, from then on at each of them. */
        enum signal_act act;
        uint32_t seat; /* Of SIGNAL_SEND: a connection, */
        uint32_t handle;
        void *buf; /* and the message. */
        size_t len_bytes;
        uint8_t tag;
    } signal;
    velo_id_t id;
    uint32_t vpid;
    uint32_t count; /* Rounds, or notifications. */
    uint32_t flags;
    int64_t timeout_ns;
    uint64_t match;
    uint64_t ignore;
    uint64_t key;
    uint64_t offset;
    uint64_t cookie;
    uint64_t value;
    size_t len_bytes;
    void *buf;
    uint8_t tag;
    struct shape shape;
};

enum event_kind { EVENT_REQUEST = 1, EVENT_NOTIFICATION };

struct event {
    enum event_kind kind;
    int status;
    uint32_t handle; /* Of a request. */
    velo_id_t source;
    uint64_t match;
    size_t len_bytes;
    size_t total_bytes;
    struct velo_rma_notification notification;
};

struct reply {
    int status;
    bool stopped;    /* At a hook point: the rest is not filled in yet. */
    bool hung;       /* The call did not come to an end. */
    uint32_t visits; /* Hook points that it came by. */
    uint32_t events_len;
    velo_id_t source;    /* Of a message received or probed. */
    uint32_t generation; /* Of the port that was opened, connected to, or received from. */
    uint64_t match;
    size_t len_bytes;
    uint8_t tag;
    uint64_t key;     /* Of a registration, */
    uint64_t address; /* and where it is. */
    struct event events[EVENTS];
    uint32_t signals;  /* Whose handlers have run. */
    int signal_status; /* Of the last one's call. */
    int standard_file; /* One that the process has closed and the library opened; -1: none. */
    int64_t child;     /* Its process id, if it stays; else how many of its calls went wrong. */
    char error[256];
};

/* Shared by the conductor and one worker. */
struct desk {
    struct command command;
    struct reply reply;
};

/* Shared by all: virtual time. */
struct sundial {
    int64_t now_ns;
    uint64_t random; /* State of what getrandom() gives. */
    bool is_full;    /* The file system has no room. */
};

#endif
