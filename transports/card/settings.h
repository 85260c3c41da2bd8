/* SPDX-License-Identifier: Apache-2.0 */
/** @file settings.h
 *  @brief What the environment says. */
#ifndef VELO_CARD_SETTINGS_H
#define VELO_CARD_SETTINGS_H

#include "../../lib/net/transport.h"

struct settings {
    int64_t timeout_ns; /* A peer that is silent for so long is lost. */
    int64_t tick_ns;    /* Peers are looked after this often. */
};

/** VELO_ERR_ARG, with the variable that is wrong. */
int settings_read(struct settings *settings, const struct velo_transport_calls *calls);

#endif
