/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that are reached, and connections to them. */
#include "btl_velo.h"

#include "common/persistent.h"
#include "common/waits.h"
#include "common/windows.h"

#include "opal/util/output.h"

#include <stdlib.h>

static void endpoint_construct(struct mca_btl_base_endpoint_t *endpoint)
{
    endpoint->proc = NULL;
    endpoint->conn = NULL;
    endpoint->rma = NULL;
    endpoint->has_left = false;
    endpoint->room = NULL;
    endpoint->packed = NULL;
    OBJ_CONSTRUCT(&endpoint->waiting, opal_list_t);
}

static void endpoint_destruct(struct mca_btl_base_endpoint_t *endpoint)
{
    OBJ_DESTRUCT(&endpoint->waiting);
}

OBJ_CLASS_INSTANCE(mca_btl_base_endpoint_t, opal_list_item_t, endpoint_construct,
                   endpoint_destruct);

/* Open MPI would go on without us, and we would not hear the other rank. */
static _Noreturn void give_up_without_memory(opal_proc_t *proc)
{
    opal_output(0, "velo: no memory for a rank of this node");
    btl_velo_give_up(proc);
}

/* A rank announces its port; without velo, or without memory for a port, it announces nothing. Both
 * ends have to choose the same way: if this rank took that one for a peer, its windows would use
 * osc/rdma and wait for a rank that uses another component. What ranks of other jobs and nodes have
 * announced may not be here yet, so they count as peers. */
static bool has_port(opal_proc_t *proc)
{
    void *address = NULL;
    size_t len_bytes = 0;
    if (proc == opal_proc_local_get() || !OPAL_PROC_ON_LOCAL_NODE(proc->proc_flags) ||
        proc->proc_name.jobid != OPAL_PROC_MY_NAME.jobid)
        return true;
    int rc = velo_ompi_receive_now(&mca_btl_velo_component.super.btl_version, &proc->proc_name,
                                   &address, &len_bytes);
    free(address);
    if (rc == OPAL_ERR_OUT_OF_RESOURCE)
        give_up_without_memory(proc);
    return rc == OPAL_SUCCESS;
}

static bool is_reached(const opal_proc_t *proc)
{
    return velo_ompi_reaches(&btl_velo.port, proc->proc_flags) ||
           velo_ompi_meets(&mca_btl_velo_component.super.btl_version, &btl_velo.port,
                           &proc->proc_name);
}

int btl_velo_add_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                       struct mca_btl_base_endpoint_t **endpoints, opal_bitmap_t *reachable)
{
    (void)btl;
    if (btl_velo.port.reaches_others)
        velo_ompi_guard_windows();
    velo_ompi_mend_persistent();
    /* In virtual time a poll of ours would cost other than Open MPI's. */
    if (!mca_btl_velo_component.params.simulated)
        velo_ompi_mend_waits();
    for (size_t i = 0; i < count; i++) {
        endpoints[i] = NULL;
        /* Our own messages are for btl self, here or by its exclusivity. */
        if (!is_reached(procs[i]) ||
            (procs[i] == opal_proc_local_get() && !VELO_OMPI_BTL_REACHES_ITSELF) ||
            !has_port(procs[i]))
            continue;
        struct mca_btl_base_endpoint_t *endpoint = OBJ_NEW(mca_btl_base_endpoint_t);
        if (endpoint == NULL)
            give_up_without_memory(procs[i]);
        endpoint->proc = procs[i];
        OPAL_THREAD_LOCK(&btl_velo.lock);
        opal_list_append(&btl_velo.endpoints, &endpoint->super);
        OPAL_THREAD_UNLOCK(&btl_velo.lock);
        endpoints[i] = endpoint;
        if (reachable != NULL)
            (void)opal_bitmap_set_bit(reachable, (int)i);
    }
    return OPAL_SUCCESS;
}

static void disconnect_endpoint(struct mca_btl_base_endpoint_t *endpoint)
{
    (void)velo_disconnect(endpoint->conn);
    (void)velo_rma_disconnect(endpoint->rma);
    endpoint->conn = NULL;
    endpoint->rma = NULL;
    if (endpoint->packed != NULL)
        endpoint->packed->is_in_ring = false; /* Its process has left: nobody sends it. */
    endpoint->room = NULL;
    endpoint->packed = NULL;
}

/* Open MPI names the endpoint of a process once for each purpose that it has: it stays until the
 * component is closed, and the second time there is nothing left to do. */
int btl_velo_del_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                       struct mca_btl_base_endpoint_t **endpoints)
{
    (void)btl;
    (void)procs;
    OPAL_THREAD_LOCK(&btl_velo.lock);
    for (size_t i = 0; i < count; i++) {
        if (endpoints[i] != NULL)
            disconnect_endpoint(endpoints[i]);
        endpoints[i] = NULL;
    }
    OPAL_THREAD_UNLOCK(&btl_velo.lock);
    return OPAL_SUCCESS;
}

void btl_velo_forget_endpoints(void)
{
    struct mca_btl_base_endpoint_t *endpoint, *next;
    OPAL_LIST_FOREACH_SAFE(endpoint, next, &btl_velo.endpoints, struct mca_btl_base_endpoint_t)
    {
        (void)opal_list_remove_item(&btl_velo.endpoints, &endpoint->super);
        OBJ_RELEASE(endpoint);
    }
}

/* Give back what is mapped of processes that have closed their ports. Open MPI does not tell of
 * spawned ones that were disconnected. The question costs a system call; processes of the own job
 * stay until all of it ends, and are not asked about. */
static void disconnect_left(void)
{
    struct mca_btl_base_endpoint_t *endpoint;
    if (btl_velo.ops_under_way > 0)
        return; /* They may be on memory of such a process: their end tells. */
    OPAL_LIST_FOREACH(endpoint, &btl_velo.endpoints, struct mca_btl_base_endpoint_t)
    {
        if (endpoint->proc->proc_name.jobid == OPAL_PROC_MY_NAME.jobid || endpoint->conn == NULL ||
            opal_list_get_size(&endpoint->waiting) > 0 ||
            velo_conn_status(endpoint->conn) != VELO_ERR_PEER_CLOSED)
            continue;
        disconnect_endpoint(endpoint);
        endpoint->has_left = true;
    }
}

static int find_id(const struct mca_btl_base_endpoint_t *endpoint, velo_id_t *id)
{
    if (endpoint->has_left) {
        opal_output(0, "velo: process %s has left; nothing can be sent to it any more",
                    OPAL_NAME_PRINT(endpoint->proc->proc_name));
        return OPAL_ERR_UNREACH;
    }
    return velo_ompi_find(&mca_btl_velo_component.super.btl_version, &btl_velo.port,
                          &endpoint->proc->proc_name, id);
}

int btl_velo_connect(struct mca_btl_base_endpoint_t *endpoint)
{
    velo_id_t id;
    disconnect_left();
    int rc = find_id(endpoint, &id);
    if (rc != OPAL_SUCCESS)
        return rc;
    int status =
        velo_connect(btl_velo.port.port, id, &endpoint->conn, velo_ompi_connect_ns(&btl_velo.port));
    if (status != VELO_OK)
        velo_ompi_complain("connect to a rank", status);
    else if (velo_conn_max_bytes(endpoint->conn) <
             btl_velo.super.btl_max_send_size + sizeof(struct btl_velo_front)) {
        opal_output(0, "velo: btl_velo_data_bytes differs between ranks; give all the same");
        status = VELO_ERR_ARG;
    }
    return velo_ompi_error(status);
}

int btl_velo_connect_rma(struct mca_btl_base_endpoint_t *endpoint)
{
    velo_id_t id;
    int rc = find_id(endpoint, &id);
    if (rc != OPAL_SUCCESS)
        return rc;
    int status = velo_rma_connect(btl_velo.port.rma, id, &endpoint->rma,
                                  velo_ompi_connect_ns(&btl_velo.port));
    if (status != VELO_OK)
        velo_ompi_complain("reach the memory of a rank", status);
    return velo_ompi_error(status);
}

void btl_velo_check_peers(void)
{
    struct mca_btl_base_endpoint_t *endpoint, *lost = NULL;
    OPAL_THREAD_LOCK(&btl_velo.lock);
    OPAL_LIST_FOREACH(endpoint, &btl_velo.endpoints, struct mca_btl_base_endpoint_t)
    {
        /* A peer that closed its port has left in order. */
        if (endpoint->conn != NULL && velo_conn_status(endpoint->conn) == VELO_ERR_PEER_DEAD)
            lost = endpoint;
    }
    OPAL_THREAD_UNLOCK(&btl_velo.lock);
    if (lost != NULL)
        btl_velo_fail(lost, "go on without a rank", VELO_ERR_PEER_DEAD);
}
