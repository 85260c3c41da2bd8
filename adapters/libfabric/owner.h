/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file owner.h
 * @brief libfabric's peer interface (fi_peer(3)): what an owner, libfabric's LNX for one, and a
 *        provider that it links know of each other.
 *
 * The declarations are ours, since the headers that this is built against may be older: 1.17 has an
 * early form of them. What changed:
 *
 *   before 2.0  get_msg() and get_tag() take an address and a length or a tag: not served
 *   2.0 to 2.2  they take a structure; an entry begins with two links of the owner's list
 *   from 2.3    an entry has no links
 *
 * So an entry is passed on as it comes, and is read by vf_owner_entry(), which skips the links of
 * the version that is running.
 */
#ifndef VELO_OFI_OWNER_H
#define VELO_OFI_OWNER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

/** A completion queue of the owner. */
struct vf_owner_cq {
    struct fid fid;
    struct {
        size_t size;
        ssize_t (*write)(struct vf_owner_cq *cq, void *context, uint64_t flags, size_t len,
                         void *buf, uint64_t data, uint64_t tag, fi_addr_t src);
        ssize_t (*writeerr)(struct vf_owner_cq *cq, const struct fi_cq_err_entry *entry);
    } *owner_ops;
};

/** The context of fi_cq_open() with FI_PEER. */
struct vf_owner_cq_context {
    size_t size;
    struct vf_owner_cq *cq;
};

/** A receive of the owner, or a message that waits for one; behind the links that it may have. */
struct vf_owner_entry {
    struct vf_owner_srx *srx;
    fi_addr_t addr;
    size_t msg_size;
    uint64_t tag;
    uint64_t cq_data;
    uint64_t flags;
    void *context;
    size_t count;
    void **desc;
    void *peer_context;
    void *owner_context;
    struct iovec *iov;
};

/** What a message is matched by. */
struct vf_owner_match {
    fi_addr_t addr;
    size_t msg_size;
    uint64_t tag;
};

struct vf_owner_ops {
    size_t size;
    int (*get_msg)(struct vf_owner_srx *srx, struct vf_owner_match *match, void **entry);
    int (*get_tag)(struct vf_owner_srx *srx, struct vf_owner_match *match, void **entry);
    int (*queue_msg)(void *entry);
    int (*queue_tag)(void *entry);
    void (*foreach_unspec_addr)(struct vf_owner_srx *srx, fi_addr_t (*get_addr)(void *entry));
    void (*free_entry)(void *entry);
};

struct vf_owner_peer_ops {
    size_t size;
    int (*start_msg)(void *entry);
    int (*start_tag)(void *entry);
    int (*discard_msg)(void *entry);
    int (*discard_tag)(void *entry);
};

/** A shared receive queue of the owner. */
struct vf_owner_srx {
    struct fid_ep fid;
    struct vf_owner_ops *owner_ops;
    struct vf_owner_peer_ops *peer_ops;
};

/** The context of fi_srx_context() with FI_PEER. */
struct vf_owner_srx_context {
    size_t size;
    struct vf_owner_srx *srx;
};

_Static_assert(sizeof(struct fid) == 24, "the interface as of 2.0");
_Static_assert(sizeof(struct fid_ep) == 80, "the interface as of 2.0");
_Static_assert(sizeof(struct vf_owner_entry) == 96, "the interface as of 2.0");
_Static_assert(sizeof(struct vf_owner_ops) == 56, "the interface as of 2.0");
_Static_assert(sizeof(struct vf_owner_peer_ops) == 40, "the interface as of 2.0");
_Static_assert(offsetof(struct vf_owner_srx, owner_ops) == 80, "the interface as of 2.0");
_Static_assert(offsetof(struct vf_owner_cq, owner_ops) == 24, "the interface as of 2.0");

/** The bytes of the links in an entry. */
#define VF_OWNER_LINK_BYTES (2 * sizeof(void *))

#endif
