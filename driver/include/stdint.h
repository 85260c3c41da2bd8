/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Stands in for the C library's header, which the generated headers of spec/ include.
 */
#ifndef VELO_STDINT_H
#define VELO_STDINT_H

#include <linux/types.h>

#define UINT64_C(value) value##ULL

#endif
