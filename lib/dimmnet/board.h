/* SPDX-License-Identifier: Apache-2.0 */
/** @file board.h @brief What boards and contexts share: a domain of their own. */
#ifndef VELO_DIMMNET_BOARD_H
#define VELO_DIMMNET_BOARD_H

#include "../shm/layout.h"

/** Check attributes that boards and contexts share, and fill in the domain. VELO_ERR_ARG. */
int dimmnet_domain(struct seg_domain *domain, const char *name, const char *group, uint32_t lid);

#endif
