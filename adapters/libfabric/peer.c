/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <time.h>

#include "fabric.h"
#include "provider.h"

#define TABLE_MS 500
#define TABLE_NAP_NS 1000000

static int make_room(struct vf_ep *ep, fi_addr_t addr)
{
    if (addr < ep->peers_len)
        return 0;
    size_t len = ep->av->cap > addr ? ep->av->cap : addr + 1;
    struct velo_mq_peer **peers = vf_table_grow(ep->peers, &ep->peers_len, len, sizeof *peers);
    if (!peers)
        return -FI_ENOMEM;
    ep->peers = peers;
    return 0;
}

bool vf_table_may_have_room(int status, int64_t *end_ms)
{
    if (status != VELO_ERR_FULL)
        return false;
    if (*end_ms == 0)
        *end_ms = vf_now_ms() + TABLE_MS;
    (void)nanosleep(&(struct timespec){.tv_nsec = TABLE_NAP_NS}, NULL);
    return vf_now_ms() < *end_ms;
}

int vf_peer_connect(struct vf_ep *ep, fi_addr_t addr, struct velo_mq_peer **peer)
{
    if (!ep->is_enabled)
        return -FI_EOPBADSTATE;
    const struct vf_address *address = vf_av_get(ep->av, addr);
    if (!address)
        return -FI_EINVAL;
    int rc = make_room(ep, addr);
    if (rc)
        return rc;
    int64_t end_ms = 0;
    int status;
    do
        status = velo_mq_connect(ep->mq, address->id, peer, 0);
    while (vf_table_may_have_room(status, &end_ms));
    if (status) {
        vf_log("connect to port %u.%u: %s", VELO_ID_NODE(address->id), VELO_ID_VPID(address->id),
               velo_last_error());
        return status == VELO_ERR_FULL ? -FI_ECONNREFUSED : -vf_error(status);
    }
    if (velo_mq_peer_generation(*peer) != address->generation) {
        /* The port that the address named is gone, and another one has its number. */
        (void)velo_mq_disconnect(*peer);
        return -FI_ECONNREFUSED;
    }
    ep->peers[addr] = *peer;
    return 0;
}

void vf_peer_forget(struct vf_ep *ep, fi_addr_t addr)
{
    vf_rma_forget(ep, addr);
    struct velo_mq_peer *peer = addr < ep->peers_len ? ep->peers[addr] : NULL;
    if (!peer)
        return;
    ep->peers[addr] = NULL;
    for (size_t i = 0; i < ep->peers_len; i++)
        if (ep->peers[i] == peer)
            return; /* The same port was inserted twice. */
    (void)velo_mq_disconnect(peer);
}
