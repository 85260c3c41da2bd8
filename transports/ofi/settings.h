/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file settings.h
 * @brief What the environment says: VELO_OFI_*.
 */
#ifndef VELO_OFI_SETTINGS_H
#define VELO_OFI_SETTINGS_H

#include "../../lib/net/transport.h"

#define SECRET_BYTES_MIN 16u
#define SECRET_BYTES_MAX 128u

struct settings {
    char secret[SECRET_BYTES_MAX + 2];
    size_t secret_bytes;
    const char *provider;  /* NULL: any. */
    const char *interface; /* NULL: any. */
    int64_t timeout_ns;    /* Of silence, after which a peer is lost. */
    int64_t tick_ns;       /* A part of it: so often one looks. */
};

/** VELO_ERR_ARG, VELO_ERR_ACCESS. */
int settings_read(struct settings *settings, const struct velo_transport_calls *calls);

#endif
