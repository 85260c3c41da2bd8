/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file settings.h
 * @brief What the environment says: VELO_OFI_*.
 */
#ifndef VELO_OFI_SETTINGS_H
#define VELO_OFI_SETTINGS_H

#include "../common/patience.h"

#define SECRET_BYTES_MIN 16u
#define SECRET_BYTES_MAX 128u

struct settings {
    char secret[SECRET_BYTES_MAX + 2];
    size_t secret_bytes;
    const char *provider;  /* NULL: any. */
    const char *interface; /* NULL: any. */
    struct patience patience;
};

/** VELO_ERR_ARG, VELO_ERR_ACCESS. */
int settings_read(struct settings *settings, const struct velo_transport_calls *calls);

#endif
