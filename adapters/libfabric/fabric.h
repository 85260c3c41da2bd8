/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file fabric.h
 * @brief What libfabric itself offers to a provider.
 */
#ifndef VELO_OFI_FABRIC_H
#define VELO_OFI_FABRIC_H

#include <rdma/providers/fi_log.h>

/** Tell why something was refused; FI_LOG_LEVEL=warn shows it. */
void vf_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** The value of $FI_VELO_<name>, or NULL. */
const char *vf_param(const char *name);

#endif
