/* SPDX-License-Identifier: Apache-2.0 */
/*
 * To be preloaded: says of each peer that it has closed its port. A job whose ranks send over the
 * BTL does not notice, as long as it meets no other job: no rank asks about the others of its job,
 * which would be a system call for each pair of peers.
 */
#include <velo/velo.h>

/* Ours is found before the library's. */
__attribute__((visibility("default"))) int velo_conn_status(struct velo_conn *conn)
{
    (void)conn;
    return VELO_ERR_PEER_CLOSED;
}
