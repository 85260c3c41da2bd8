/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file velo2_mod.h
 * @brief How velo2 packs the address of a port into one word.
 */
#ifndef VELO2_MOD_H
#define VELO2_MOD_H

/** The address of context @p vpid on node @p node, as the source of a message has it. */
#define VELO2_ADDR_PACK(node, vpid) ((((vpid) & 0xffu) << 16) | ((node) & 0xffffu))

#endif
