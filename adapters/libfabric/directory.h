/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file directory.h
 * @brief The directory of a domain's registrations, which peers read: a hash table in which a key
 *        stands within a window behind its place, so that one read finds it.
 */
#ifndef VELO_OFI_DIRECTORY_H
#define VELO_OFI_DIRECTORY_H

#include <stdint.h>

#define DIRECTORY_LOG2 14
#define DIRECTORY_WINDOW 32u
#define DIRECTORY_LEN ((1u << DIRECTORY_LOG2) + DIRECTORY_WINDOW)
#define DIRECTORY_MRS_MAX (1u << (DIRECTORY_LOG2 - 1))
#define VF_DIRECTORY_NUMBER 1u /* Its own, in velo_rma_mem_publish(). */

/** Where a key leads to. */
struct vf_mr_entry {
    uint64_t key;     /* As users know it. */
    uint64_t rma_key; /* As rma.h does. */
    uint64_t base;    /* The number of its first byte, as users count. */
    uint64_t check;   /* See vf_directory_check(). */
};

struct vf_directory {
    uint64_t generation; /* Of the port that owns it. */
    uint64_t reserved[3];
    struct vf_mr_entry entries[DIRECTORY_LEN];
};

static inline uint32_t vf_directory_slot(uint64_t key)
{
    return (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - DIRECTORY_LOG2));
}

/** Never that of an entry that is all 0, or that is half written. */
static inline uint64_t vf_directory_check(const struct vf_mr_entry *entry)
{
    uint64_t hash = (entry->key ^ UINT64_C(0x2545f4914f6cdd1d)) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ entry->rma_key) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ (hash >> 29) ^ entry->base) * UINT64_C(0x94d049bb133111eb);
    return hash ^ (hash >> 31);
}

#endif
