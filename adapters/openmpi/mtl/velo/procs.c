/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that can be reached, and communicators, with the limits of the match bits. */
#include "mtl_velo.h"

#include "common/persistent.h"
#include "common/waits.h"
#include "common/windows.h"

#include "opal/util/output.h"

#include <stdlib.h>
#include <string.h>

bool mtl_velo_learns_names(void)
{
    const char *network = getenv("VELO_NETWORK");
    return network != NULL && strstr(network, "card") != NULL;
}

static bool is_reached(const ompi_proc_t *proc)
{
    return velo_ompi_reaches(&mtl_velo.port, proc->super.proc_flags) ||
           velo_ompi_shares_memory(&mca_mtl_velo_component.super.mtl_version, &mtl_velo.port,
                                   &proc->super.proc_name);
}

int mtl_velo_add_procs(mca_mtl_base_module_t *mtl, size_t count, ompi_proc_t **procs)
{
    (void)mtl;
    for (size_t i = 0; i < count; i++) {
        if (is_reached(procs[i])) {
            if (mtl_velo_learns_names() && !OPAL_PROC_ON_LOCAL_NODE(procs[i]->super.proc_flags) &&
                mtl_velo_find(procs[i]) == NULL)
                return OMPI_ERR_UNREACH;
            continue;
        }
        opal_output(0,
                    "velo: process %s is on another node, and VELO_NETWORK names no network to it; "
                    "set VELO_NETWORK=ofi, or use --mca pml ob1 --mca btl self,velo,tcp",
                    OPAL_NAME_PRINT(procs[i]->super.proc_name));
        return OMPI_ERR_UNREACH;
    }
    velo_ompi_guard_windows();
    velo_ompi_mend_persistent();
    /* In virtual time a poll of ours would cost other than Open MPI's. */
    if (!mca_mtl_velo_component.params.simulated)
        velo_ompi_mend_waits();
    /* Connections are made by the first send. The PML has been selected by now. */
    return mca_mtl_velo_component.direct ? mtl_velo_direct_install() : OMPI_SUCCESS;
}

int mtl_velo_del_procs(mca_mtl_base_module_t *mtl, size_t count, ompi_proc_t **procs)
{
    (void)mtl;
    mtl_velo_lock();
    for (size_t i = 0; i < count; i++) {
        struct mtl_velo_endpoint *endpoint = mtl_velo_endpoint(procs[i]);
        if (endpoint != NULL && mtl_velo.mq != NULL)
            (void)velo_mq_disconnect(endpoint->peer);
        free(endpoint);
        procs[i]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL] = NULL;
    }
    mtl_velo_unlock();
    return OMPI_SUCCESS;
}

struct mtl_velo_endpoint *mtl_velo_find(ompi_proc_t *proc)
{
    velo_id_t id;
    if (!is_reached(proc) ||
        velo_ompi_find(&mca_mtl_velo_component.super.mtl_version, &mtl_velo.port,
                       &proc->super.proc_name, &id) != OMPI_SUCCESS)
        return NULL;
    mtl_velo_lock();
    struct mtl_velo_endpoint *endpoint = mtl_velo_endpoint(proc);
    if (endpoint == NULL) { /* Another thread may have been faster. */
        endpoint = (struct mtl_velo_endpoint *)calloc(1, sizeof *endpoint);
        if (endpoint != NULL)
            endpoint->id = id;
        proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL] = endpoint;
    }
    mtl_velo_unlock();
    return endpoint;
}

struct velo_mq_peer *mtl_velo_connect(ompi_proc_t *proc)
{
    struct mtl_velo_endpoint *endpoint = mtl_velo_endpoint(proc);
    if (endpoint == NULL)
        endpoint = mtl_velo_find(proc);
    if (endpoint == NULL)
        return NULL;
    struct velo_mq_peer *peer = NULL;
    mtl_velo_lock();
    int status =
        velo_mq_connect(mtl_velo.mq, endpoint->id, &peer, velo_ompi_connect_ns(&mtl_velo.port));
    endpoint->peer = peer;
    mtl_velo_unlock();
    if (status != VELO_OK)
        velo_ompi_complain("connect to a rank", status);
    return peer;
}

int mtl_velo_add_comm(mca_mtl_base_module_t *mtl, ompi_communicator_t *comm)
{
    (void)mtl;
    int ranks = ompi_comm_size(comm);
    if (OMPI_COMM_IS_INTER(comm) && ompi_comm_remote_size(comm) > ranks)
        ranks = ompi_comm_remote_size(comm);
    if (ranks <= UINT16_MAX && VELO_OMPI_CONTEXT(comm) <= UINT16_MAX)
        return OMPI_SUCCESS;
    opal_output(0, "velo: a communicator of %d ranks with context %u does not fit the match bits",
                ranks, (unsigned)VELO_OMPI_CONTEXT(comm));
    return OMPI_ERR_OUT_OF_RESOURCE;
}

int mtl_velo_del_comm(mca_mtl_base_module_t *mtl, ompi_communicator_t *comm)
{
    (void)mtl;
    (void)comm;
    return OMPI_SUCCESS;
}
