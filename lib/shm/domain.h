/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file domain.h
 * @brief The directory of a domain's segments, and the users who may share them.
 */
#ifndef VELO_SHM_DOMAIN_H
#define VELO_SHM_DOMAIN_H

#include "layout.h"

/** Fill in a domain from its name (NULL: $VELO_DOMAIN, else this user's) and group (NULL: none).
 *  The directory is $VELO_SHM_DIR, else /dev/shm. VELO_ERR_ARG, also if its path is too long. */
VELO_PRIVATE int domain_init(struct seg_domain *domain, const char *name, const char *group);

#endif
