/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file placement.h
 * @brief On which NUMA node shared memory lies.
 */
#ifndef VELO_SHM_PLACEMENT_H
#define VELO_SHM_PLACEMENT_H

#include <stddef.h>

#include "../base/compiler.h"

/** Have memory of a shared file allocated on the node where this thread runs, whoever touches it
 *  first. `at` begins a page. A wish: without it, or on a machine of one node, all works the same.
 */
VELO_PRIVATE void placement_here(void *at, size_t len_bytes);

#endif
