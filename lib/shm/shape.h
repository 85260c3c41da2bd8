/* SPDX-License-Identifier: Apache-2.0 */
/** @file shape.h @brief The sizes of a segment, and the check of the sizes that a header claims. */
#ifndef VELO_SHM_SHAPE_H
#define VELO_SHM_SHAPE_H

#include "layout.h"

/** Fill in a shape; VELO_ERR_ARG if a size is out of range. */
VELO_PRIVATE int seg_shape_init(struct seg_shape *shape, uint32_t depth_slots, size_t data_bytes,
                                uint32_t conns_max);
/** Check the sizes in a header against the file's size. */
int seg_header_check(const struct seg_header *header, size_t file_bytes, const char *path,
                     struct seg_shape *shape);

#endif
