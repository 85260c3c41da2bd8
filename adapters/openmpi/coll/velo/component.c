/* SPDX-License-Identifier: Apache-2.0 */
#include "coll_velo.h"

#include "opal/mca/base/mca_base_var.h"

#include "common/velo_ompi.h"

static int component_register(void);
static int component_open(void);
static int component_close(void);
static int component_init(bool progress_threads, bool mpi_threads);
static mca_coll_base_module_t *component_query(ompi_communicator_t *comm, int *priority);

struct coll_velo_component mca_coll_velo_component = {
    .super =
        {
            .collm_version =
                {
                    VELO_OMPI_COLL_VERSION,
                    .mca_component_name = "velo",
                    MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
                                          OMPI_RELEASE_VERSION),
                    .mca_open_component = component_open,
                    .mca_close_component = component_close,
                    .mca_register_component_params = component_register,
                },
            .collm_data = {.param_field = MCA_BASE_METADATA_PARAM_NONE},
            .collm_init_query = component_init,
            .collm_comm_query = component_query,
        },
    .priority = 90, /* Above those of Open MPI 4.1: a user who names our folder wants velo. */
    .after = 16,    /* The memory costs about as much as that many collectives without it. */
    .bytes_max = COLL_VELO_BYTES_MAX,
    .spins = 128, /* Some 2 us. */
};

static void register_unsigned(const char *name, const char *help, unsigned *value)
{
    (void)mca_base_component_var_register(&mca_coll_velo_component.super.collm_version, name, help,
                                          MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, 0, 0,
                                          OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_READONLY, value);
}

static int component_register(void)
{
    struct coll_velo_component *own = &mca_coll_velo_component;
    if (!velo_ompi_fits(OBJ_CLASS(mca_coll_base_module_t), sizeof(mca_coll_base_module_t)))
        return OMPI_ERR_NOT_AVAILABLE;
    (void)mca_base_component_var_register(
        &own->super.collm_version, "priority",
        "Priority among collective components; below 0: velo takes no part", MCA_BASE_VAR_TYPE_INT,
        NULL, 0, 0, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_READONLY, &own->priority);
    register_unsigned("after",
                      "So many collectives of a communicator go to other components before it "
                      "gets shared memory; the same on all ranks",
                      &own->after);
    register_unsigned("max",
                      "Longest contribution of a rank that goes over shared lines, in bytes, at "
                      "most 4096; the same on all ranks",
                      &own->bytes_max);
    register_unsigned("spins",
                      "Looks at a rank's flag before a rank that waits does something else; where "
                      "ranks outnumber cores it is one",
                      &own->spins);
    register_unsigned("group",
                      "Ranks in a group that adds up its contributions before others see them; 1: "
                      "none, 0: by the number of ranks and cores; the same on all ranks",
                      &own->group);
    if (own->bytes_max > COLL_VELO_BYTES_MAX)
        own->bytes_max = COLL_VELO_BYTES_MAX;
    if (own->spins == 0)
        own->spins = 1;
    return OMPI_SUCCESS;
}

/* Open MPI asks components whether they want to work only after the ranks have exchanged what they
 * announce, so that is done here. A rank that has announced itself takes part: the others count on
 * it. So all that this needs is there first. */
static int component_open(void)
{
    if (mca_coll_velo_component.priority < 0)
        return OMPI_ERR_NOT_AVAILABLE;
    int rc = coll_velo_peers_init();
    if (rc == OMPI_SUCCESS)
        rc = coll_velo_announce();
    if (rc != OMPI_SUCCESS)
        coll_velo_peers_close();
    return rc;
}

static int component_close(void)
{
    coll_velo_peers_close();
    return OMPI_SUCCESS;
}

static int component_init(bool progress_threads, bool mpi_threads)
{
    (void)progress_threads;
    (void)mpi_threads; /* MPI_THREAD_MULTIPLE is served. */
    return OMPI_SUCCESS;
}

/* Nothing that ranks could see differently decides here: which ranks share memory is found out by
 * all of them together, at a collective. */
static mca_coll_base_module_t *component_query(ompi_communicator_t *comm, int *priority)
{
    int ranks = ompi_comm_size(comm);
    if (OMPI_COMM_IS_INTER(comm) || ranks < 2 || ranks > COLL_VELO_RANKS_MAX)
        return NULL;
    coll_velo_module_t *module = OBJ_NEW(coll_velo_module_t);
    if (module == NULL)
        velo_ompi_give_up(comm, "no memory for the collectives of a communicator");
    *priority = mca_coll_velo_component.priority;
    return &module->super;
}
