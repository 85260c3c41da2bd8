/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file fetches.h
 * @brief Fetches of peers' memory. The network carries a fetch in parts, several at a time.
 *
 * A transport's fetch begins with `struct fetch_base`.
 */
#ifndef VELO_TRANSPORT_FETCHES_H
#define VELO_TRANSPORT_FETCHES_H

#include <stddef.h>
#include <stdint.h>

struct fetch_base {
    struct fetch_base *next;       /* The earliest is first. */
    int *outcome;                  /* NULL: it has ended. */
    size_t len_bytes, begun_bytes; /* Of all; in parts that the network has, or had. */
    uint32_t parts;                /* That the network has. */
};

/** Add a fetch. Its outcome is VELO_AGAIN until it ends. */
void fetches_add(struct fetch_base **fetches, struct fetch_base *fetch);
/** A fetch has ended, and who waits for it learns how. One that ended before stays as it is. */
void fetch_settle(struct fetch_base *fetch, int status);
/** Free those that have ended and have no parts. */
void fetches_sweep(struct fetch_base **fetches);

#endif
