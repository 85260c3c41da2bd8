/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file endpoint.h
 * @brief What the endpoints of transports between machines have in common: the first member of a
 *        transport's own.
 */
#ifndef VELO_TRANSPORT_ENDPOINT_H
#define VELO_TRANSPORT_ENDPOINT_H

#include "ports.h"
#include "timer.h"

/** A frame that the network did not take is offered again after this time. */
#define OWING_NS (1 * NS_PER_MS)

struct circuits_use;

struct endpoint_base {
    struct port port; /* First. */
    const struct velo_transport_calls *calls;
    struct velo_endpoint_attr attr;
    const struct circuits_use
        *circuit_use; /* What circuits of its connections need of the transport. */
    /* In the child of a fork: close what else the endpoint has. NULL: there is nothing. */
    void (*forget)(const struct endpoint_base *base);
    int epoll;
    struct timer timer;
    int64_t now_ns; /* Of the last look. */
    bool is_owing;  /* The network did not take something. */
};

/** A new endpoint of this size, in which all else is zero. NULL: out of memory, and `fail` has said
 *  so. */
void *endpoint_new(size_t len_bytes, const struct velo_endpoint_attr *attr,
                   const struct velo_transport_calls *calls,
                   const struct circuits_use *circuit_use);
/** Open the epoll that the library waits for: of the timer, and of `file` unless that is -1. */
int endpoint_open_files(struct endpoint_base *base, int file, const char *transport);
void endpoint_close_files(struct endpoint_base *base);
/** The epoll: `descriptor` of the transport. */
int endpoint_descriptor(void *self);
/** Peers reach the endpoint from now on, at this place. `forget`: NULL if there is nothing. */
void endpoint_show(struct endpoint_base *base, const void *place, size_t place_bytes,
                   void (*forget)(const struct endpoint_base *base));
/** Keep the place of a peer, as its name says. VELO_ERR_NO_MEMORY. */
int endpoint_learn(struct endpoint_base *base, velo_id_t peer, const void *place,
                   size_t place_bytes);
/** Something came that no correct peer sends. */
void endpoint_refuse(const struct endpoint_base *base);
/** Sleep until there is something to do. */
void endpoint_wait(struct endpoint_base *base, const struct velo_transport *transport,
                   int64_t end_ns);
/** The endpoint closes: wait for a while until its peers know, and have taken all. `has_left`: they
 *  have; else it tells them. */
void endpoint_leave(struct endpoint_base *base, const struct velo_transport *transport,
                    bool (*has_left)(struct endpoint_base *base));

#endif
