/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open MPI 4.1's osc/rdma has two faults that show over any network whose BTL has puts, gets and
 * atomics, and so over velo:
 *
 *  - 4.1.1 to 4.1.4 never end an operation on a dynamic window of another host:
 * find_dynamic_region() waits for a lock that it holds itself (mended by pull request 10518);
 *  - up to 4.1.5 at least, if the ranks of a window do not divide by its hosts, it may look a rank
 * up in the table of a wrong host: puts to it go astray, and nobody is told (mended by 11423).
 *
 * Such windows do not get osc/rdma. They get osc/pt2pt, which goes by messages, or an error where
 * that does not serve them.
 */
#include "common/windows.h"

#include <stdbool.h>
#include <string.h>

#include "ompi_config.h"

#include "ompi/communicator/communicator.h"
#include "ompi/group/group.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/osc/base/base.h"
#include "ompi/mca/osc/osc.h"
#include "opal/util/output.h"

#include "common/velo_ompi.h"

#define DYNAMIC_FIRST 1
#define DYNAMIC_LAST 4
#define UNEVEN_LAST 5

static ompi_osc_base_component_t *rdma;
static ompi_osc_base_component_query_fn_t own_query; /* Of osc/rdma. */

static ompi_osc_base_component_t *find(const char *name)
{
    mca_base_component_list_item_t *item;
    OPAL_LIST_FOREACH(item, &ompi_osc_base_framework.framework_components,
                      mca_base_component_list_item_t)
    {
        if (strcmp(item->cli_component->mca_component_name, name) == 0)
            return (ompi_osc_base_component_t *)(uintptr_t)item->cli_component;
    }
    return NULL;
}

/* ---- what goes wrong -------------------------------------------------------------------------- */

static bool is_first_here(ompi_communicator_t *comm)
{
    for (int i = 0; i < ompi_comm_rank(comm); i++)
        if (OPAL_PROC_ON_LOCAL_NODE(ompi_comm_peer_lookup(comm, i)->super.proc_flags))
            return false;
    return true;
}

static int count_hosts(ompi_communicator_t *comm)
{
    int own = is_first_here(comm), hosts = 0;
    int rc = comm->c_coll->coll_allreduce(&own, &hosts, 1, MPI_INT, MPI_SUM, comm,
                                          comm->c_coll->coll_allreduce_module);
    if (rc != OMPI_SUCCESS)
        velo_ompi_give_up(comm, "the hosts of a window cannot be counted");
    return hosts;
}

/* Each host has the places of so many ranks. Does osc/rdma look for them where they are? */
static bool finds_all(int ranks, int hosts)
{
    int ranks_a_host = (ranks + hosts - 1) / hosts;
    for (int rank = 0; rank < ranks; rank++)
        if ((int)((int64_t)rank * hosts / ranks) != rank / ranks_a_host)
            return false;
    return true;
}

/* All ranks see the same fault, or none: each of them has ranks on other hosts in the group, or
 * none has. NULL: there is none. */
static const char *fault_of(ompi_communicator_t *comm, int flavor)
{
    int release = rdma->osc_version.mca_component_release_version;
    if (!ompi_group_have_remote_peers(comm->c_local_group))
        return NULL;
    if (flavor == MPI_WIN_FLAVOR_DYNAMIC && release >= DYNAMIC_FIRST && release <= DYNAMIC_LAST)
        return "operations on a dynamic window never end";
    int hosts = count_hosts(comm);
    return finds_all(ompi_comm_size(comm), hosts)
               ? NULL
               : "operations reach wrong memory where ranks do not divide by hosts";
}

/* ---- what is done about it -------------------------------------------------------------------- */

/* What keeps the window from messages, too, and what to do; NULL: nothing does. */
static const char *missing(void)
{
    if (ompi_mpi_thread_multiple)
        return "osc/pt2pt, which goes by messages, does not take MPI_THREAD_MULTIPLE: ask for "
               "MPI_THREAD_SERIALIZED or less";
    return find("pt2pt") != NULL ? NULL
                                 : "osc/pt2pt, which goes by messages, is left out: give mpirun "
                                   "--mca osc ^ucx, as `velo run` does";
}

static int query(struct ompi_win_t *win, void **base, size_t size, int disp_unit,
                 struct ompi_communicator_t *comm, struct opal_info_t *info, int flavor)
{
    const char *fault = fault_of(comm, flavor);
    if (fault == NULL)
        return own_query(win, base, size, disp_unit, comm, info, flavor);
    const char *why = missing();
    if (why != NULL && ompi_comm_rank(comm) == 0)
        opal_output(0,
                    "velo: no window over these hosts: in osc/rdma of this Open MPI %s, and %s; or "
                    "take Open MPI 4.1.%d",
                    fault, why, UNEVEN_LAST + 1);
    return -1;
}

void velo_ompi_guard_windows(void)
{
    if (own_query != NULL)
        return;
    rdma = find("rdma");
    const mca_base_component_t *version = rdma != NULL ? &rdma->osc_version : NULL;
    if (version == NULL || version->mca_component_major_version != 4 ||
        version->mca_component_minor_version != 1 ||
        version->mca_component_release_version > UNEVEN_LAST)
        return;
    own_query = rdma->osc_query;
    rdma->osc_query = query;
}
