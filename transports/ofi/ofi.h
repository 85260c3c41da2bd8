/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file ofi.h
 * @brief The structures of the transport, and what its files offer each other.
 *
 * An **endpoint** is a port's: one endpoint of the fabric. It has a **connection** to each peer
 * that either side has dialed; all circuits between the two ports share it. A connection is greeted
 * (greeting.c), carries packets (packet.c) of its circuits (circuits.h), and is lost or closed
 * (conn.c).
 */
#ifndef VELO_OFI_OFI_H
#define VELO_OFI_OFI_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

#include "../common/backoff.h"
#include "../common/circuits.h"
#include "../common/endpoint.h"
#include "../common/fetches.h"
#include "settings.h"
#include "wire.h"

/** Packets of up to this length leave without an outcome, if the fabric can do that. */
#define INJECT_BYTES_MAX 64u
/** Packets that wait for what comes; each of WIRE_PACKET_BYTES. */
#define RX_PACKETS 64u
/** Packets of a connection for what it sends. */
#define TX_PACKETS 8u
/** Reads of a connection from its peer's memory, and the length of each. They end in memory of the
 *  transport: what the fabric still has when a connection is over must not be the program's. */
#define READS 4u
#define READ_BYTES (256u << 10)
/** Most connections of an endpoint; of those, most that others have begun and not proved; and most
 *  that are over while the fabric still has packets of them. */
#define CONNS_MAX 16384u
#define CANDIDATES_MAX 64u
#define OVER_MAX 256u
/** Most that are told at once, and between two ticks, that they have another secret. */
#define REJECTIONS_MAX 32u

struct conn;
struct endpoint;

enum packet_use { PACKET_RX, PACKET_TX, PACKET_ACK, PACKET_GREETING, PACKET_READ };

/** A buffer of the fabric. */
struct packet {
    struct fi_context2 context; /* The fabric's, while it has the packet. First. */
    enum packet_use use;
    struct conn *conn; /* Of what is sent. */
    struct packet *next;
    uint32_t len_bytes;
    void *desc;
    char *data;
};

/** Memory of the fabric, in one piece. */
struct memory {
    char *base;
    size_t len_bytes;
    struct fid_mr *mr;
};

/** A circuit of this transport. */
struct ofi_circuit {
    struct circuit circuit; /* First. */
    /* A CREDIT that tells little more than the peer knows waits here, and grows while it does. */
    bool owes_credit;
    struct ofi_circuit *next_credit; /* Of the connection's that do. */
    uint64_t credit[2];              /* What it is to say, */
    uint64_t credit_told[2];         /* what the last one said, */
    uint64_t urgent[2];              /* and how much more does not wait. */
};

/** Memory that the program fetches from the peer of a connection; see fetch.c. */
struct fetch {
    struct fetch_base base; /* First. */
    struct velo_exposed from;
    char *to;
    size_t done_bytes;
};

/** A part of it. */
struct read {
    struct packet packet; /* First. */
    struct fetch *fetch;
    size_t at_bytes; /* Of the fetch. */
};

enum conn_state {
    CONN_CALLING,   /* HELLO was sent, or is to be. */
    CONN_CANDIDATE, /* REPLY was sent, or is to be: the other side has proved nothing yet. */
    CONN_REJECTING, /* REJECT is to be sent to a port that may have another secret. */
    CONN_OPEN,
    CONN_OVER, /* It has no circuits; the fabric may have packets of it. */
};

struct conn {
    struct circuits circuits; /* First. */
    struct endpoint *endpoint;
    enum conn_state state;
    uint32_t generation; /* Of the peer; 0: not known yet. */
    uint32_t index, peer_index;
    fi_addr_t address;
    struct backoff backoff; /* The fabric has refused what goes to the peer. */
    bool is_self;           /* To the own port: packets do not leave. */
    bool is_redirected;     /* The address is the second one. */
    bool is_yielding;       /* The other side's HELLO goes first. */
    bool is_rejection;      /* It was begun as CONN_REJECTING. */

    /* Greeting. */
    uint32_t owed; /* enum wire_kind: is to be sent; 0: none. */
    int refusal;   /* Of REFUSE. */
    uint8_t nonce_hello[WIRE_NONCE_BYTES], nonce_reply[WIRE_NONCE_BYTES];
    struct packet greeting;
    bool is_greeting_sent; /* The fabric has it. */
    uint32_t greeting_ticks;

    /* Packets. */
    uint64_t token_in, token_out;
    uint32_t sent, acked;       /* Packets. */
    uint32_t taken, taken_told; /* The same of the other side. */
    struct memory memory;
    struct packet *packets, *free, *filling;
    struct packet ack;
    bool is_ack_sent, owes_ack, is_leaving;
    bool is_listed; /* Among those of the endpoint that have a packet being filled, or credits. */
    struct ofi_circuit *credits;
    struct conn *next_listed;
    uint32_t at_fabric; /* Packets that the fabric has. */
    int64_t sent_ns, filling_ns, credits_ns;
    bool is_asked; /* A message of the peer has come since a packet left that had more than credits.
                    */
    struct hearing hearing;
    bool was_busy;
    uint32_t stuck_ticks;

    /* Fetches. */
    struct fetch_base *fetches;
    struct memory read_memory; /* None before the first fetch. */
    struct read *reads;
    struct packet *reads_free;
};

/** What became of the connection that had an index last: its packets may still come. */
struct former_conn {
    uint64_t token;
    uint32_t ticks;
};

struct fabric {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *ep;
    int cq_fd;
    int error;             /* Of the completion queue: nothing comes any more. */
    uint32_t inject_bytes; /* Packets of up to this length leave without an outcome. */
    bool is_local_mr;      /* Buffers have to be registered. */
    bool can_fetch;
    bool is_bare; /* A standard file of the program was closed: see standard_files.h. */
    char name[WIRE_NAME_BYTES];
    size_t name_bytes;
};

struct endpoint {
    struct endpoint_base base; /* First. */
    struct settings settings;
    struct fabric fabric;
    struct memory rx_memory;
    struct packet *rx;
    struct packet *unposted; /* Of rx. */
    struct backoff backoff;  /* The fabric has refused them. */
    struct packet *looped;   /* Packets to the own port, the earliest first. */
    struct conn **conns;     /* By index; NULL: free. */
    struct former_conn *former_conns;
    uint32_t conns_len;
    uint32_t candidates, over_len;
    uint32_t rejections, rejected; /* Connections for that; begun since the last tick. */
    struct conn *over;             /* CONN_OVER, linked by next_listed. */
    struct conn *filled;           /* With a packet being filled, or credits that wait. */
    bool is_broken;                /* The fabric's error has been dealt with. */
    uint64_t refused;              /* Since the last look. */
};

/* ---- fabric.c: libfabric ---- */

int fabric_open(struct endpoint *endpoint);
void fabric_close(struct fabric *fabric);
/** VELO_ERR_NO_MEMORY. */
int fabric_allocate(struct endpoint *endpoint, size_t len_bytes, struct memory *memory);
void fabric_free(struct memory *memory);
/** Take an address into the table. FI_ADDR_UNSPEC: it is none. */
fi_addr_t fabric_insert(struct fabric *fabric, const char *name);
fi_addr_t fabric_insert_host(struct fabric *fabric, const char *host, uint32_t service);
void fabric_remove(struct fabric *fabric, fi_addr_t address);
enum fabric_sent {
    FABRIC_BUSY,    /* There is no room now. */
    FABRIC_REFUSED, /* The fabric lacks something else, or does not reach the peer. */
    FABRIC_HAS,     /* The fabric has it, until its outcome comes. */
    FABRIC_DONE,    /* It has left, or a copy has. */
};
enum fabric_sent fabric_send(struct fabric *fabric, struct packet *packet, fi_addr_t to);
/** Read memory that a peer has exposed. */
enum fabric_sent fabric_read(struct fabric *fabric, struct packet *packet, fi_addr_t peer,
                             const struct velo_exposed *from);
/** Let who knows the key read memory. NULL: no. */
struct fid_mr *fabric_expose(struct fabric *fabric, const void *base, size_t len_bytes);
enum fabric_sent fabric_receive(struct fabric *fabric, struct packet *packet);
/** What became of packets: at most OUTCOMES_MAX of them. Returns how many. */
#define OUTCOMES_MAX 16
struct outcome {
    struct packet *packet; /* NULL: the fabric does not say. */
    size_t len_bytes;
    fi_addr_t from;
    bool is_failed;
};
int fabric_poll(struct fabric *fabric, struct outcome outcomes[OUTCOMES_MAX]);
/** May the descriptor be waited for? Not if there is an error by now. */
bool fabric_may_wait(struct fabric *fabric);

/* ---- names.c: addresses ---- */

int names_learn(struct endpoint *endpoint, velo_id_t peer, const void *text, size_t len_bytes);
size_t names_own(const struct endpoint *endpoint, char *out);
/** Where a peer is. VELO_ERR_NO_PEER: nobody has said so. `generation`: 0, or of the port there. */
int names_resolve(struct endpoint *endpoint, velo_id_t peer, fi_addr_t *out, uint32_t *generation);
/** The child of a fork has copies of the fabric's sockets: close them. */
void names_forget_sockets(const struct endpoint_base *base);

/* ---- offer.c ---- */

/** Hand the fabric a packet for the peer. FABRIC_BUSY: the caller still has the packet, and the
 *  endpoint is owing. After a refusal the fabric is not asked again before a pause is over, and the
 *  caller gets FABRIC_BUSY, never FABRIC_REFUSED. */
enum fabric_sent offer_packet(struct conn *conn, struct packet *packet);
/** The same for a read of the peer's memory. */
enum fabric_sent offer_read(struct conn *conn, struct packet *packet,
                            const struct velo_exposed *from);

/* ---- greeting.c ---- */

/** Begin to call the peer of a new connection. */
int greeting_call(struct conn *conn);
/** Call once more. */
void greeting_again(struct conn *conn);
/** Send what is owed. False: it is still owed. */
bool greeting_push(struct conn *conn);
void greeting_take(struct endpoint *endpoint, const void *data, size_t len_bytes, fi_addr_t from);

/* ---- conn.c ---- */

struct conn *conn_new(struct endpoint *endpoint, velo_id_t peer, enum conn_state state);
/** The connection to a peer that has a state; NULL: there is none. */
struct conn *conn_find(const struct endpoint *endpoint, velo_id_t peer, enum conn_state state);
/** It is greeted: give it packets. VELO_ERR_NO_MEMORY. */
int conn_open(struct conn *conn);
/** It is over; its circuits are lost. */
void conn_end(struct conn *conn, int status);
/** Free those that are over, and that the fabric has nothing of. */
void conns_sweep(struct endpoint *endpoint);
void conn_free(struct conn *conn);

/* ---- packet.c ---- */

/** The own port closes: the last packet says so. */
void packet_leave(struct conn *conn);
extern const struct circuits_use packet_circuits;
/** Put a frame into the packet being filled. VELO_AGAIN: no room. */
int packet_add(struct circuit *circuit, const struct velo_frame *frame);
/** Is there room for a frame of any length? */
bool packet_has_room(const struct conn *conn);
/** Send the packet being filled. False: it did not leave. */
bool packet_flush(struct conn *conn);
/** Send all packets being filled, and credits that have waited for long, or all of them. */
void packets_flush(struct endpoint *endpoint, bool credits_too);
/** After a send: send what is long due. True: something is held back. */
bool packets_hold(struct endpoint *endpoint);
void packet_acknowledge(struct conn *conn);
/** Ask the peer how much it has taken. False: not now. */
bool packet_ask(struct conn *conn);
/** A packet came. */
void packet_take(struct endpoint *endpoint, const char *data, size_t len_bytes, fi_addr_t from);

/* ---- silence.c ---- */

/** Some time has gone by: look who is silent, and keep the others awake. */
void silence_tick(struct endpoint *endpoint);

/* ---- fetch.c ---- */

struct velo_exposed *fetch_expose(const struct circuit *circuit, const void *base,
                                  size_t len_bytes);
void fetch_conceal(struct velo_exposed *shown);
/** VELO_ERR_NO_MEMORY, VELO_ERR_PEER_DEAD. */
int fetch_begin(struct conn *conn, const struct fetch *wanted);
/** Nobody wants it any more. */
void fetch_forget(struct endpoint *endpoint, const int *outcome);
/** Begin the reads for which there is room. */
void fetches_push(struct conn *conn);
/** A read is done. */
void fetch_came(struct packet *packet, bool is_failed);
/** The connection is over. */
void fetches_end(struct conn *conn, int status);
/** And the fabric has nothing of it. */
void fetches_free(struct conn *conn);

#endif
