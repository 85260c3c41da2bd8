/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file absent.h
 * @brief Calls that are not offered. libfabric calls through its tables without a look, so that
 * none may be empty.
 */
#ifndef VELO_OFI_ABSENT_H
#define VELO_OFI_ABSENT_H

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

int vf_no_bind(struct fid *fid, struct fid *other, uint64_t flags);
int vf_no_control(struct fid *fid, int command, void *arg);
int vf_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);

#endif
