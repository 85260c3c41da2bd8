/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file wire.h
 * @brief The messages between two queues: one VELO message each, whose tag is its kind.
 *
 * A message is payload, then a trailer. The trailer comes last so that the payload starts at a line
 * of the ring, where copies are fast; the match bits are its last word.
 *
 *   EAGER  payload, match                      the whole message; a long one's match is in the
 *                                              slot, see conn_try_send_with()
 *   SYNC   payload, id, match                  the same; FIN(id) when it was matched
 *   RTS    first payload, id, len, key,        there is a longer one
 *          address, match
 *   CTS    sender's id, receiver's id, end     send the rest of it, up to `end`
 *   DATA   payload, receiver's id, offset      a piece of it
 *   FIN    id, status                          the request `id` is done
 *
 * With MQ_WIRE_COOKIE in the tag, the cookie stands between the payload and what follows it. The
 * tag also has the number of the message's matching space, at MQ_WIRE_SPACE_SHIFT.
 *
 * EAGER, SYNC and RTS go over the peer's message connection, which keeps them in order and which
 * the receiver may defer. The others go over a second connection, which is never deferred: an
 * answer, or a message that is already matched, must not wait behind messages that nobody has asked
 * for.
 */
#ifndef VELO_MQ_WIRE_H
#define VELO_MQ_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "../base/compiler.h"
#include "../core/port.h"

enum mq_wire_kind {
    MQ_WIRE_EAGER = 1,
    MQ_WIRE_SYNC,
    MQ_WIRE_RTS,
    MQ_WIRE_CTS,
    MQ_WIRE_DATA,
    MQ_WIRE_FIN,
    MQ_WIRE_EAGER_APART = MQ_WIRE_EAGER | CONN_WORD_APART,
};

/** The parts of a tag: enum mq_wire_kind, and what only EAGER, SYNC and RTS have. */
#define MQ_WIRE_KIND_MASK (0x07u | CONN_WORD_APART)
#define MQ_WIRE_COOKIE 0x08u
#define MQ_WIRE_SPACE_SHIFT 4
#define MQ_WIRE_SPACE_MASK 0x30u

struct wire_sync {
    uint64_t sender_id;
    uint64_t match;
};

struct wire_rts {
    uint64_t sender_id;
    uint64_t len_bytes;
    uint64_t key;     /* The sender's registration, or what it has exposed; 0: there is none. */
    uint64_t address; /* Of what it has exposed. */
    uint64_t match;
};

struct wire_cts {
    uint64_t sender_id;
    uint64_t receiver_id;
    uint64_t end_bytes; /* Less than the length if the receiver's buffer is shorter. */
};

struct wire_data {
    uint64_t receiver_id;
    uint64_t offset_bytes;
};

struct wire_fin {
    uint64_t id; /* Of the side that gets this FIN, be it the sender or the receiver. */
    int64_t status;
};

_Static_assert(sizeof(struct wire_sync) == 16, "layout");
_Static_assert(sizeof(struct wire_rts) == 40, "layout");
_Static_assert(sizeof(struct wire_cts) == 24, "layout");
_Static_assert(sizeof(struct wire_data) == 16, "layout");
_Static_assert(sizeof(struct wire_fin) == 16, "layout");

/** Read the words behind the payload of an EAGER message: then *len_bytes is the payload's alone.
 *  Each word is read once, since its sender can still write to it. `cookie` changes only if there
 *  is one. False: the message is too short for them. */
hot_inline bool wire_read_eager(const void *data, size_t *len_bytes, bool has_cookie,
                                uint64_t *match, uint64_t *cookie)
{
    size_t words_bytes = sizeof *match + (has_cookie ? sizeof *cookie : 0);
    if (unlikely(*len_bytes < words_bytes))
        return false;
    const char *words = (const char *)data + *len_bytes - words_bytes;
    *len_bytes -= words_bytes;
    if (has_cookie)
        memcpy(cookie, words, sizeof *cookie);
    memcpy(match, words + words_bytes - sizeof *match, sizeof *match);
    return true;
}

/** A connection must have this room beside an eager message of any kind. */
#define WIRE_TRAILER_MAX (sizeof(uint64_t) + sizeof(struct wire_rts))

#endif
