/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open MPI 4.1.1 to 4.1.4 never ends an operation on a dynamic window of another host: osc/rdma
 * waits for a lock that it holds itself (its find_dynamic_region(); mended by pull request 10518).
 * Any network whose BTL has puts, gets and atomics shows that, and so does velo. So such a window
 * does not get osc/rdma. What is left is osc/pt2pt, which goes by messages, or else an error.
 */
#include "common/windows.h"

#include <stdbool.h>
#include <string.h>

#include "ompi_config.h"

#include "ompi/communicator/communicator.h"
#include "ompi/group/group.h"
#include "ompi/mca/osc/base/base.h"
#include "ompi/mca/osc/osc.h"
#include "opal/util/output.h"

#define RELEASE_FIRST 1
#define RELEASE_LAST 4

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

/* What keeps the window from messages, too, and what to do; NULL: nothing does. */
static const char *missing(void)
{
    if (ompi_mpi_thread_multiple)
        return "those by messages (osc/pt2pt) do not go with MPI_THREAD_MULTIPLE: ask for "
               "MPI_THREAD_SERIALIZED or less";
    return find("pt2pt") != NULL ? NULL
                                 : "the component for those by messages (osc/pt2pt) is left out: "
                                   "give mpirun --mca osc ^ucx, as `velo run` does";
}

/* All ranks answer alike: each of them has ranks on other hosts in the group, or none has. */
static int query(struct ompi_win_t *win, void **base, size_t size, int disp_unit,
                 struct ompi_communicator_t *comm, struct opal_info_t *info, int flavor)
{
    const char *why = missing();
    if (flavor != MPI_WIN_FLAVOR_DYNAMIC || !ompi_group_have_remote_peers(comm->c_local_group))
        return own_query(win, base, size, disp_unit, comm, info, flavor);
    if (why != NULL && ompi_comm_rank(comm) == 0)
        opal_output(
            0,
            "velo: no dynamic window over several hosts: its operations by remote memory "
            "(osc/rdma) never end in Open MPI 4.1.%d to 4.1.%d, and %s; or take a window of "
            "fixed memory, or Open MPI 4.1.%d",
            RELEASE_FIRST, RELEASE_LAST, why, RELEASE_LAST + 1);
    return -1;
}

static bool hangs(const mca_base_component_t *component)
{
    return component->mca_component_major_version == 4 &&
           component->mca_component_minor_version == 1 &&
           component->mca_component_release_version >= RELEASE_FIRST &&
           component->mca_component_release_version <= RELEASE_LAST;
}

void velo_ompi_guard_windows(void)
{
    ompi_osc_base_component_t *rdma = find("rdma");
    if (rdma == NULL || own_query != NULL || !hangs(&rdma->osc_version))
        return;
    own_query = rdma->osc_query;
    rdma->osc_query = query;
}
