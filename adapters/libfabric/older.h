/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file older.h
 * @brief What libfabric's headers had up to 1.x and have no more, or deprecate. The provider keeps
 * to it whichever headers it is built with: the programs that load it may be built with others.
 * Values are libfabric's; its ABI keeps them.
 */
#ifndef VELO_OFI_OLDER_H
#define VELO_OFI_OLDER_H

#include <rdma/fabric.h>

/* A flag of an operation. */
#ifndef FI_PRIORITY
#define FI_PRIORITY (1ULL << 22)
#endif
/* A capability. */
#ifndef FI_XPU_TRIGGER
#define FI_XPU_TRIGGER (1ULL << 44)
#endif
/* The highest bit of a protocol or an address format: it is no number of libfabric's. */
#ifndef FI_PROV_SPECIFIC
#define FI_PROV_SPECIFIC (1U << 31)
#endif
/* Modes of registration before 1.5: an enumeration in 1.x, macros that warn in 2.x. */
#define VF_MR_BASIC (1 << 0)
#define VF_MR_SCALABLE (1 << 1)
/* Orders of completions, which 2.x warns about, too. */
#define VF_ORDER_NONE 0u
#define VF_ORDER_STRICT 0x1ffu
/* Types of endpoints. For 2.x the first is another name for "any". */
#define VF_EP_SOCK_STREAM ((enum fi_ep_type)4)
#define VF_EP_SOCK_DGRAM ((enum fi_ep_type)5)
/* A capability, nothing in 2.x. */
#define VF_VARIABLE_MSG (1ULL << 48)

#endif
