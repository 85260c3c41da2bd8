/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file windows.h
 * @brief Local memory of RMA operations in the node's table of pages.
 *
 * Local memory is entered in windows that stay until their places are needed. A card's driver makes
 * one void when memory in it is unmapped, and tells nobody: an operation that is refused drops its
 * windows. For one thread at a time.
 */
#ifndef VELO_NIC_WINDOWS_H
#define VELO_NIC_WINDOWS_H

#include "nic.h"

#define WINDOWS_MAX 32u

struct windows {
    struct {
        uint64_t address;
        uint64_t len_bytes; /* 0: none. */
        uint64_t used;      /* The time of its last use, as a count of uses. */
        uint32_t page;
    } all[WINDOWS_MAX];
    uint64_t uses;
};

/** The window that has this memory; WINDOWS_MAX: none. */
uint32_t windows_find(const struct windows *windows, uint64_t address, uint64_t len_bytes);
/** Make one that has it, in a free place, or in that of the window that was not used for the
 * longest time. `in_use`: windows that must stay, one bit each. WINDOWS_MAX: the node has no room,
 * or all must stay. */
uint32_t windows_make(struct windows *windows, uint32_t in_use, const struct device_port *device,
                      uint64_t address, uint64_t len_bytes);
/** The registered address of memory in a window, which counts as used now. */
uint64_t windows_use(struct windows *windows, uint32_t window, uint64_t address);
/** Withdraw these, one bit each. */
void windows_drop(struct windows *windows, uint32_t which, const struct device_port *device);
/** Withdraw all. */
void windows_close(struct windows *windows, const struct device_port *device);

#endif
