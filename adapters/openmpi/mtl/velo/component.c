/* SPDX-License-Identifier: Apache-2.0 */
#include "mtl_velo.h"

#include "common/persistent.h"
#include "common/runtime.h"
#include "common/waits.h"

#include "ompi/mca/bml/base/base.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/base/mca_base_var_enum.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/output.h"

#include <limits.h>

static int component_register(void);
static int component_query(mca_base_module_t **module, int *priority);
static mca_mtl_base_module_t *component_init(VELO_OMPI_MTL_INIT_PARAMS);

struct mtl_velo_component mca_mtl_velo_component = {
    .super =
        {
            .mtl_version =
                {
                    MCA_MTL_BASE_VERSION_2_0_0,
                    .mca_component_name = "velo",
                    MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
                                          OMPI_RELEASE_VERSION),
                    .mca_query_component = component_query,
                    .mca_register_component_params = component_register,
                },
            .mtl_data = {.param_field = MCA_BASE_METADATA_PARAM_NONE},
            .mtl_init = component_init,
        },
    .direct = true,
    .priority = 60, /* Above those of Open MPI 4.1: a user who names our folder wants velo. */
    .params = {.sleep = -1, .sleep_polls = 10000, .sleep_us = 500},
};

struct mtl_velo_module mtl_velo = {
    .super =
        {
            .mtl_max_contextid = UINT16_MAX,
            .mtl_max_tag = INT_MAX,
            .mtl_request_size = sizeof(struct mtl_velo_request) - sizeof(mca_mtl_request_t),
            .mtl_add_procs = mtl_velo_add_procs,
            .mtl_del_procs = mtl_velo_del_procs,
            .mtl_finalize = mtl_velo_finalize,
            .mtl_send = mtl_velo_send,
            .mtl_isend = mtl_velo_isend,
            .mtl_irecv = mtl_velo_irecv,
            .mtl_iprobe = mtl_velo_iprobe,
            .mtl_imrecv = mtl_velo_imrecv,
            .mtl_improbe = mtl_velo_improbe,
            .mtl_cancel = mtl_velo_cancel,
            .mtl_add_comm = mtl_velo_add_comm,
            .mtl_del_comm = mtl_velo_del_comm,
        },
    .lock = OPAL_MUTEX_STATIC_INIT,
    .done_end = &mtl_velo.done,
};

static void register_path(const mca_base_component_t *component)
{
    static const mca_base_var_enum_value_t paths[] = {
        {VELO_MQ_PATH_AUTO, "auto"},
        {VELO_MQ_PATH_COPY, "copy"},
        {VELO_MQ_PATH_GET, "get"},
        {0, NULL},
    };
    mca_base_var_enum_t *values = NULL;
    (void)mca_base_var_enum_create("mtl_velo_path", paths, &values);
    (void)mca_base_component_var_register(
        component, "path",
        "How long messages get across: copy: piece by piece through the ring; get: in one copy by "
        "RMA get where that is permitted; auto: by length and by what is permitted",
        MCA_BASE_VAR_TYPE_INT, values, 0, 0, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_READONLY,
        &mca_mtl_velo_component.path);
    OBJ_RELEASE(values);
}

static int component_register(void)
{
    const mca_base_component_t *component = &mca_mtl_velo_component.super.mtl_version;
    struct mtl_velo_component *own = &mca_mtl_velo_component;
    /* An Open MPI that was built without any MTL has no place for one in its processes. */
    if (!velo_ompi_fits(OBJ_CLASS(ompi_request_t), sizeof(ompi_request_t)) ||
        !velo_ompi_fits(OBJ_CLASS(ompi_proc_t), sizeof(ompi_proc_t)))
        return OMPI_ERR_NOT_AVAILABLE;
    (void)mca_base_component_var_register(component, "priority",
                                          "Priority among MTLs, and of pml cm with this one",
                                          MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_5,
                                          MCA_BASE_VAR_SCOPE_READONLY, &own->priority);
    (void)mca_base_component_var_register(
        component, "eager",
        "Longest message that is sent before its receive is known, in bytes (0: the library's "
        "default)",
        MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, 0, 0, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_READONLY,
        &own->eager_bytes);
    (void)mca_base_component_var_register(
        component, "get",
        "Messages from this many bytes on are fetched in one copy where that is permitted (0: the "
        "library's default)",
        MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL, 0, 0, OPAL_INFO_LVL_4,
        MCA_BASE_VAR_SCOPE_READONLY, &own->get_bytes);
    (void)mca_base_component_var_register(
        component, "unexpected",
        "Bound for messages that came before their receive, in bytes; past it senders are pushed "
        "back (0: the library's default)",
        MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL, 0, 0, OPAL_INFO_LVL_4,
        MCA_BASE_VAR_SCOPE_READONLY, &own->unexpected_bytes);
    (void)mca_base_component_var_register(component, "direct",
                                          "Sends and receives of data in one piece pass pml cm by",
                                          MCA_BASE_VAR_TYPE_BOOL, NULL, 0, 0, OPAL_INFO_LVL_5,
                                          MCA_BASE_VAR_SCOPE_READONLY, &own->direct);
    register_path(component);
    velo_ompi_register(component, &own->params);
    return OMPI_SUCCESS;
}

static int component_query(mca_base_module_t **module, int *priority)
{
    *module = (mca_base_module_t *)&mtl_velo.super;
    *priority = mca_mtl_velo_component.priority;
    return OMPI_SUCCESS;
}

static int reach_all(void)
{
    if (velo_ompi_reached_ranks(&mtl_velo.port) == (int64_t)velo_ompi_ranks())
        return OMPI_SUCCESS;
    opal_output(0,
                "velo: this job has %u ranks of which %d are on this node, and VELO_NETWORK names "
                "no network to the others; start it by `velo run`, which sets VELO_NETWORK=ofi, or "
                "use --mca pml ob1 --mca btl self,velo,tcp",
                (unsigned)velo_ompi_ranks(), velo_ompi_local_ranks());
    velo_ompi_close(&mtl_velo.port);
    return OMPI_ERR_UNREACH;
}

static int open_queues(void)
{
    struct mtl_velo_component *own = &mca_mtl_velo_component;
    if (own->params.data_bytes == 0)
        own->params.data_bytes = velo_mq_ring_bytes(velo_ompi_ranks());
    int rc = velo_ompi_open(&own->super.mtl_version, &own->params, &mtl_velo.port);
    if (rc == OMPI_SUCCESS)
        rc = reach_all();
    if (rc != OMPI_SUCCESS)
        return rc;
    struct velo_mq_attr attr = VELO_MQ_ATTR_INIT;
    attr.eager_bytes = own->eager_bytes;
    attr.get_bytes = own->get_bytes;
    attr.unexpected_bytes = own->unexpected_bytes;
    attr.path = own->path;
    int status = velo_mq_open(mtl_velo.port.port, mtl_velo.port.rma, &attr, &mtl_velo.mq);
    if (status != VELO_OK) {
        velo_ompi_complain("open the matched queues", status);
        velo_ompi_close(&mtl_velo.port);
    }
    return velo_ompi_error(status);
}

static mca_mtl_base_module_t *component_init(VELO_OMPI_MTL_INIT_PARAMS)
{
    (void)progress_threads;
    (void)mpi_threads; /* MPI_THREAD_MULTIPLE is served. */
    VELO_OMPI_NO_ACCELERATOR();
    if (!VELO_OMPI_STARTS_BTLS(progress_threads, mpi_threads) || open_queues() != OMPI_SUCCESS)
        return NULL;
    /* Open MPI then adds all processes at once, and else when it first sends to one. */
    if (mtl_velo_learns_names())
        mtl_velo.super.mtl_flags |= MCA_MTL_BASE_FLAG_REQUIRE_WORLD;
    mtl_velo.packs_whole = mca_mtl_velo_component.params.simulated ||
                           (uint32_t)velo_ompi_local_ranks() != velo_ompi_ranks();
    velo_ompi_idle_init(&mtl_velo.idle, &mca_mtl_velo_component.params);
    (void)opal_progress_register(mtl_velo_progress);
    velo_ompi_hurry_runtime();
    return &mtl_velo.super;
}

int mtl_velo_finalize(mca_mtl_base_module_t *mtl)
{
    (void)mtl;
    mtl_velo_direct_remove();
    velo_ompi_leave_waits();
    velo_ompi_leave_persistent();
    (void)opal_progress_unregister(mtl_velo_progress);
    (void)velo_mq_close(mtl_velo.mq);
    mtl_velo.mq = NULL;
    velo_ompi_close(&mtl_velo.port);
    return OMPI_SUCCESS;
}
