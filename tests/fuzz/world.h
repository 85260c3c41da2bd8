/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file world.h
 * @brief A small world with a hostile peer, played from a string of bytes.
 *
 * One receiver, one honest sender and one hostile sender live in this process. The bytes are a list
 * of operations: send, receive, peek, connect, disconnect, and scribble over the receiver's
 * segment, wherever a hostile peer could: its own rings, other entries, the header page. The honest
 * sender's ring and entry are spared, so that its messages must arrive whole, in order and exactly
 * once.
 */
#ifndef FUZZ_WORLD_H
#define FUZZ_WORLD_H

#include <stddef.h>
#include <stdint.h>

/** Counts of events so far. They show whether a campaign reaches the cases that it should. */
struct world_tally {
    uint64_t honest;  /* Honest messages that arrived. */
    uint64_t hostile; /* Hostile messages that arrived. */
    uint64_t peeked;  /* Messages looked at in place. */
    uint64_t too_big; /* Messages that did not fit the buffer. */
    uint64_t refused; /* Slots that the receiver refused and counted. */
    uint64_t told;    /* Calls of a sender that said VELO_ERR_CORRUPT. */
    uint64_t closed;  /* Calls of a sender that said VELO_ERR_PEER_CLOSED or _DEAD. */
    uint64_t again;   /* Full rings. */
    uint64_t reused;  /* Times the table came back whole after all that. */
};

/** Choose the domain and where it lives. Once per process. */
void world_init(void);
/** Remove what a crashed process with this id left behind. */
void world_clean_up_after(long pid);
/** Play one input. Prints and aborts when something that must hold does not. */
void world_play(const uint8_t *input, size_t len_bytes, struct world_tally *tally);

#endif
