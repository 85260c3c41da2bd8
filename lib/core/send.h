/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file send.h
 * @brief Sending a payload and a word, for a protocol above.
 *
 * The word describes the payload, and needs no buffer of its own. There are two forms. It stands
 * **behind** the payload, and so may two words, the one after the other. Or, beside a long payload,
 * it stands **apart**, in the message's slot: then the tag has the bit CONN_WORD_APART, and
 * port_held_word() reads the word.
 */
#ifndef VELO_CORE_SEND_H
#define VELO_CORE_SEND_H

#include "port.h"

/** The receiver does not poll this ring, or has to be looked at: wake it or send it the message. */
int conn_notify_slow(struct velo_conn *conn);

/** To be called after each publish. */
hot_inline int conn_notify(struct velo_conn *conn)
{
    if (likely(order_read_bell(conn->bell) == BELL_POLLED))
        return VELO_OK;
    return conn_notify_slow(conn);
}

/** A sender that sends again before anything came is not in a ping-pong: ask for lines ahead. */
hot_inline void conn_look_ahead(struct velo_conn *conn)
{
    uint64_t received = order_counter(&conn->port->messages);
    conn->tx.ahead = received == conn->received_before ? CELLS_AHEAD : 0;
    conn->received_before = received;
}

/** Send a payload with words behind it, of any length. Neither @p conn nor @p buf is NULL. */
int conn_try_send_behind(struct velo_conn *conn, const void *buf, size_t len_bytes,
                         const void *words, size_t words_bytes, uint8_t tag);

/** The same at a place that has room for all of it in one line. */
hot_inline int conn_send_behind_at(struct velo_conn *conn, struct ring_place place, const void *buf,
                                   size_t len_bytes, const void *words, size_t words_bytes,
                                   uint8_t tag)
{
    GUARD(conn, "connection");
    conn_look_ahead(conn);
    ring_tx_ask(&conn->tx, place);
    char *to = (char *)(place.cell + 1);
    copy_small_in(to, buf, len_bytes);
    memcpy(to + len_bytes, words, words_bytes);
    VELO_HOOK(HOOK_SEND_PAYLOAD);
    ring_tx_publish(&conn->tx, place, 0, len_bytes + words_bytes, tag);
    return conn_notify(conn);
}

/** conn_try_send_with() of a message that is longer than a line, or for which there is no room
 * now. */
int conn_try_send_with_slow(struct velo_conn *conn, const void *buf, size_t len_bytes,
                            uint64_t word, uint8_t tag);

/** As velo_try_send(); neither @p conn nor @p buf is NULL. */
hot_inline int conn_try_send_with(struct velo_conn *conn, const void *buf, size_t len_bytes,
                                  uint64_t word, uint8_t tag)
{
    if (unlikely(len_bytes > VELO_INLINE_BYTES - sizeof word))
        return conn_try_send_with_slow(conn, buf, len_bytes, word, tag);
    struct ring_place place = ring_tx_place(&conn->tx, ring_cells(len_bytes + sizeof word));
    if (unlikely(place.at >= conn->tx.limit))
        return conn_try_send_with_slow(conn, buf, len_bytes, word, tag);
    return conn_send_behind_at(conn, place, buf, len_bytes, &word, sizeof word, tag);
}

/** The same with two words, which always stand behind the payload. */
static inline int conn_try_send_with_two(struct velo_conn *conn, const void *buf, size_t len_bytes,
                                         uint64_t first, uint64_t second, uint8_t tag)
{
    uint64_t words[2] = {first, second};
    struct ring_place place;
    if (len_bytes > VELO_INLINE_BYTES - sizeof words ||
        (place = ring_tx_place(&conn->tx, ring_cells(len_bytes + sizeof words))).at >=
            conn->tx.limit)
        return conn_try_send_behind(conn, buf, len_bytes, (const uint64_t[]){first, second},
                                    sizeof words, tag);
    return conn_send_behind_at(conn, place, buf, len_bytes, words, sizeof words, tag);
}

#endif
