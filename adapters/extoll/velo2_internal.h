/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file velo2_internal.h
 * @brief A port of velo2 and its connections, as this process keeps them.
 *
 * A message of type 0 is a message of velo.h. One of another type is longer than any of type 0: its
 * bytes, gap and trailer. So most messages pay nothing for the type.
 */
#ifndef EXTOLL_VELO2_INTERNAL_H
#define EXTOLL_VELO2_INTERNAL_H

#include <stddef.h>

#include "carry_on.h"
#include "place.h"
#include "turn.h"
#include "velo2.h"

#define VELO2_MTU_OLD 64u
#define VELO2_MTT_MAX 3u
/* Messages that a port keeps while one of this process waits for room. */
#define VELO2_KEPT_MAX (1u << 19)

/** The end of a message with a type. */
struct velo2_trailer {
    uint32_t len_bytes;
    uint32_t mtt;
};
#define VELO2_TYPED_BYTES (VELO2_MTU + sizeof(struct velo2_trailer))

/** A message that was taken out of the ring to make room. */
struct velo2_kept {
    struct velo2_kept *next;
    uint32_t len_bytes;
    velo_id_t source;
    uint8_t tag;
    uint8_t mtt;
    unsigned char bytes[VELO2_MTU];
};

/** A port. */
struct velo2_context {
    struct velo_port *port;
    struct turn receive; /* The thread that takes messages out of the ring, or these. */
    struct velo2_kept *kept;
    struct velo2_kept **kept_end;
    uint32_t kept_count;
    unsigned int mtu;
    int64_t wait_ns;
    struct turn links_turn;
    struct velo2_link *links;
    struct velo2_context *next;
};

/** A connection. */
struct velo2_link {
    struct velo_conn *conn; /* NULL: the peer was not there yet. */
    struct turn send;
    unsigned int mtu;
    velo_id_t peer;
    struct velo2_context *context;
    struct velo2_link *next;
};

/** The result that stands for a status of velo.h. */
velo2_ret_t velo2_result(int status);
/** Take what has come for a port out of its ring, and keep it, if nobody else receives. True:
 * nothing more can be kept. */
bool velo2_keep(struct velo2_context *context);
/** The same for all ports of the process, and carry on with those of rma2. The result is that of
 * one of them. */
bool velo2_keep_all(const struct velo2_context *own);
/** Drop what is kept. */
void velo2_forget_kept(struct velo2_context *context);
/** Carry on with the ports of rma2, if this process has any; as carry_on_fn. */
bool velo2_carry_on(void);
/** Would velo2_carry_on() do anything? */
bool velo2_has_others(void);

#endif
