/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file settings.h
 * @brief What goes wrong: $VELO_FAULTS, which holds settings NAME=VALUE, separated by commas.
 *
 *     over=NAME    the transport that carries the frames; this one has to be set
 *     payload=N    most bytes of a frame: long messages come in many pieces
 *     delay_us=N   a frame is taken in so much later
 *     partial=N    a look takes in N frames of a circuit at most; each Nth send finds no room
 *     full=N       the first N sends of a circuit find no room
 *     reorder=N    one of up to N frames that have come goes first, at random, where it may
 *     die=N        a circuit is lost after N frames
 *     seed=N       the seed of all that is random
 */
#ifndef VELO_FAULTS_SETTINGS_H
#define VELO_FAULTS_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

/** Longest name of a transport. */
#define OVER_BYTES_MAX 32u

struct settings {
    char over[OVER_BYTES_MAX];
    uint32_t payload, delay_us, partial, full, reorder, die, seed; /**< 0: this one is not set. */
};

/** Read a text of settings; NULL: none. False: it makes no sense from *wrong on. */
bool settings_read(struct settings *settings, const char *text, const char **wrong);

#endif
