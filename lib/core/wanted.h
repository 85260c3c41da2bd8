/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file wanted.h
 * @brief Receiving the one message that a protocol above waits for: the counterpart of
 *        conn_try_send_with().
 *
 * The wanted message goes from its ring to its place at once. It is not held and described first,
 * which takes longer than the message itself. Any other message stays where it is, for
 * velo_try_peek().
 */
#ifndef VELO_CORE_WANTED_H
#define VELO_CORE_WANTED_H

#include "port.h"

/** A message whose payload ends with a word, or with two. */
struct wanted_message {
    uint64_t word;
    uint64_t ignore;  /* Bits of the word that do not matter. */
    velo_id_t source; /* UINT32_MAX: any. */
    uint8_t tag;
    uint8_t tag_of_two; /* Of a short message that has another word before that one. */
    void *buf;
    size_t cap_bytes; /* A longer message is not wanted. */
};

/** The message that came. */
struct wanted_found {
    uint64_t word;
    uint64_t other;   /* The word before it, if there are two. */
    size_t len_bytes; /* Without them. */
    velo_id_t source;
};

/**
 * Wait for the next message for some polls, and take it if it is the wanted one. Only a ring that
 * is the only one to look at is polled more than once.
 *
 * @return The number of its words. 0: there is no message, or it is another one, or it is not as
 *         simple as that. velo_try_peek() says which.
 */
uint32_t port_take_wanted(struct velo_port *port, const struct wanted_message *wanted,
                          struct wanted_found *found, uint32_t polls);

#endif
