/* SPDX-License-Identifier: Apache-2.0 */
#include "common/velo_ompi.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ompi_config.h"

#include "ompi/communicator/communicator.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/constants.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/runtime/opal.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"

#include "../../../lib/base/fd.h"
#include "../../linger.h"

/* A sentence on stderr. */
#define COMPLAINT_BYTES 1024
/* The polls of a caller that does nothing else follow each other faster than this. */
#define POLL_GAP_MAX_NS 20000
/* Connections that a rank's port has room for: two each to twice as many ranks as the job has, and
 * those of processes that it spawns or meets. Each takes addresses of all that connect to the port.
 */
#define CONNS_A_RANK 4u
#define CONNS_MORE 512u
/* The bytes of an address that ranks publish. */
#define ADDRESS_BYTES(name_bytes) (offsetof(struct velo_ompi_address, name) + (name_bytes))

static void register_unsigned(const mca_base_component_t *component, const char *name,
                              const char *help, unsigned *value)
{
    (void)mca_base_component_var_register(component, name, help, MCA_BASE_VAR_TYPE_UNSIGNED_INT,
                                          NULL, 0, 0, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_READONLY,
                                          value);
}

/* The part of Open MPI's own memory that components look into has one layout in releases that share
 * two numbers. What the headers that we lack would say of a mutex shows in its size. */
bool velo_ompi_fits(const opal_class_t *known, size_t len_bytes)
{
    char built_for[32];
    (void)snprintf(built_for, sizeof built_for, "%d.%d.", OPAL_MAJOR_VERSION, OPAL_MINOR_VERSION);
    if (strncmp(opal_version_string, built_for, strlen(built_for)) == 0 &&
        opal_mutex_t_class.cls_sizeof == sizeof(opal_mutex_t) && known->cls_sizeof == len_bytes)
        return true;
    opal_output(0,
                "velo: this component is for Open MPI %d.%d.%d, and was loaded by %s, of another "
                "release or built with other parts; build velo against that one, or take its "
                "folder out of mca_base_component_path",
                OPAL_MAJOR_VERSION, OPAL_MINOR_VERSION, OPAL_RELEASE_VERSION, opal_version_string);
    return false;
}

void velo_ompi_register(const mca_base_component_t *component, struct velo_ompi_params *params)
{
    (void)mca_base_component_var_register(
        component, "domain",
        "Domain that the ports of the job are opened in, 1 to 64 of [A-Za-z0-9_-] (default: one "
        "named after the user and the job)",
        MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0, OPAL_INFO_LVL_9, MCA_BASE_VAR_SCOPE_READONLY,
        &params->domain);
    register_unsigned(component, "depth",
                      "Slots in each peer's receive ring, a power of two from 8 to 16384 (0: the "
                      "library's default)",
                      &params->depth_slots);
    register_unsigned(component, "data_bytes",
                      "Bytes for long messages in each peer's receive ring, a power of two from 16 "
                      "KiB to 16 MiB (0: the layer's default)",
                      &params->data_bytes);
    register_unsigned(component, "conns",
                      "Connections that each port has room for, two for a peer; a rank that spawns "
                      "or meets more than 256 processes needs more (0: by the number of ranks)",
                      &params->conns_max);
    (void)mca_base_component_var_register(
        component, "simulated",
        "Do the ranks run in virtual time on the simulated cluster, whose nodes all reach each "
        "other? `velo sim` says so",
        MCA_BASE_VAR_TYPE_BOOL, NULL, 0, 0, OPAL_INFO_LVL_9, MCA_BASE_VAR_SCOPE_READONLY,
        &params->simulated);
    (void)mca_base_component_var_register(
        component, "sleep",
        "Does a waiting rank sleep to let others run? 0: never; 1: always; -1: where the ranks of "
        "the node outnumber its cores, or mpi_yield_when_idle is set",
        MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_READONLY,
        &params->sleep);
    register_unsigned(
        component, "sleep_polls",
        "Times in a row that a waiting rank gives the core away before it sleeps, if it "
        "does",
        &params->sleep_polls);
    register_unsigned(component, "sleep_us",
                      "Longest sleep in microseconds; a message ends it at once, what else a rank "
                      "may wait for is looked at after it",
                      &params->sleep_us);
}

/* Open MPI's collectives may try again until the launcher ends the job: what was said last is not
 * said once more. */
void velo_ompi_complain(const char *what, int status)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char said[COMPLAINT_BYTES];
    char text[COMPLAINT_BYTES];
    const char *reason = velo_last_error();
    (void)snprintf(text, sizeof text, "velo: cannot %s: %s (%s)", what,
                   *reason != '\0' ? reason : "no details", velo_strerror(status));
    (void)pthread_mutex_lock(&lock);
    bool is_new = strcmp(text, said) != 0;
    (void)snprintf(said, sizeof said, "%s", text);
    (void)pthread_mutex_unlock(&lock);
    if (is_new)
        opal_output(0, "%s", text);
}

void velo_ompi_give_up(struct ompi_communicator_t *comm, const char *why)
{
    opal_output(0, "velo: %s; the other ranks of the communicator count on this one", why);
    (void)ompi_mpi_abort(comm, MPI_ERR_INTERN);
    exit(EXIT_FAILURE);
}

int velo_ompi_error(int status)
{
    switch (status) {
    case VELO_OK:
        return OPAL_SUCCESS;
    case VELO_AGAIN:
    case VELO_ERR_FULL:
    case VELO_ERR_NO_SPACE:
    case VELO_ERR_NO_MEMORY:
        return OPAL_ERR_OUT_OF_RESOURCE;
    case VELO_ERR_NO_PEER:
    case VELO_TIMEOUT:
    case VELO_ERR_PEER_CLOSED:
    case VELO_ERR_PEER_DEAD:
    case VELO_ERR_ACCESS:
    case VELO_ERR_VERSION:
        return OPAL_ERR_UNREACH;
    default:
        return OPAL_ERROR;
    }
}

/* Processes that the job spawns share its family, and so its domain. Two jobs that happen to share
 * one do no harm: ports are found by the ids that the ranks publish. */
static int name_domain(const struct velo_ompi_params *params, char *domain)
{
    int n;
    if (params->domain != NULL && *params->domain != '\0')
        n = snprintf(domain, VELO_OMPI_DOMAIN_BYTES, "%s", params->domain);
    else
        n = snprintf(domain, VELO_OMPI_DOMAIN_BYTES, "mpi-%x-%x", (unsigned)geteuid(),
                     (unsigned)velo_ompi_family());
    if (n < VELO_OMPI_DOMAIN_BYTES)
        return OPAL_SUCCESS;
    opal_output(0, "velo: the domain '%s' is longer than %d characters", params->domain,
                VELO_OMPI_DOMAIN_BYTES - 1);
    return OPAL_ERR_BAD_PARAM;
}

/* The number of this host among those of the launcher, the same in jobs that are spawned. False: it
 * does not say. */
static bool find_host(uint32_t *host)
{
    return velo_ompi_number(VELO_OMPI_NODEID, host) && *host < VELO_NODES;
}

/* The first node id of a host. Each host takes the middle of a gap between others, so that each has
 * as many ids to itself as the number of hosts allows: 0, 128, 64, 192, 32... */
static unsigned first_node(uint32_t host)
{
    unsigned first = 0;
    for (unsigned i = 1; i < VELO_NODES; i *= 2, host /= 2)
        first = first * 2 + host % 2;
    return first;
}

/* The node ids that a host has to itself, for its jobs one after the other. */
static unsigned nodes_a_host(void)
{
    unsigned nodes = VELO_NODES;
    for (uint32_t hosts = 1, all = velo_ompi_hosts(); hosts < all && nodes > 1; hosts *= 2)
        nodes /= 2;
    return nodes;
}

/* A port that has a name is reached by other nodes, and reaches them. */
static int name_port(const struct velo_ompi_params *params, struct velo_ompi_port *port)
{
    size_t name_bytes = sizeof port->address.name;
    int status = velo_port_name(port->port, port->address.name, &name_bytes);
    port->address.name_bytes = (uint32_t)name_bytes;
    port->reaches_others = name_bytes > 0 || params->simulated;
    return status;
}

static uint64_t mix(uint64_t sum, const void *data, size_t len_bytes)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < len_bytes; i++)
        sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3); /* FNV-1a. */
    return sum;
}

/* A name of the folder in which ports are: by its machine's boot, device and number. */
static uint64_t name_memory(void)
{
    char boot[64] = "";
    struct stat st;
    const char *folder = getenv("VELO_SHM_DIR");
    int fd = fd_above_standard(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
    if (fd >= 0 && read(fd, boot, sizeof boot) < 0)
        boot[0] = '\0';
    if (fd >= 0)
        (void)close(fd);
    if (stat(folder != NULL && *folder != '\0' ? folder : "/dev/shm", &st) != 0)
        memset(&st, 0, sizeof st);
    uint64_t sum = mix(UINT64_C(0xcbf29ce484222325), boot, sizeof boot);
    sum = mix(sum, &st.st_dev, sizeof st.st_dev);
    return mix(sum, &st.st_ino, sizeof st.st_ino) | 1;
}

static uint32_t conns_max(const struct velo_ompi_params *params)
{
    uint64_t conns = (uint64_t)velo_ompi_ranks() * CONNS_A_RANK + CONNS_MORE;
    if (params->conns_max > 0)
        return params->conns_max;
    return conns < VELO_CONNS_MAX ? (uint32_t)conns : VELO_CONNS_MAX;
}

static int open_port(const struct velo_ompi_params *params, struct velo_ompi_port *port)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    attr.domain = port->address.domain;
    attr.depth_slots = params->depth_slots;
    attr.data_bytes = params->data_bytes;
    attr.conns_max = conns_max(params);
    attr.linger_ns = ADAPTER_LINGER_NS;
    int status = VELO_ERR_FULL;
    /* A job that this one spawns starts at another node id (jobs count from 1), and ranks beyond
     * the vpids of a node take the next: a new port must not have the id of one that is gone, to
     * which others may still be connected. */
    unsigned shift = velo_ompi_job() - 1 + (unsigned)opal_process_info.my_local_rank / VELO_VPIDS;
    uint32_t host;
    bool is_numbered = find_host(&host);
    unsigned first = is_numbered ? first_node(host) : 0;
    unsigned nodes = nodes_a_host();
    for (unsigned i = 0; i < nodes && status == VELO_ERR_FULL; i++) {
        attr.node = (int)(first + (shift + i) % nodes);
        status = velo_port_open(&attr, &port->port);
    }
    if (status == VELO_OK)
        status = name_port(params, port);
    if (status == VELO_OK)
        status = velo_rma_open(port->port, NULL, &port->rma);
    if (status != VELO_OK) {
        velo_ompi_complain("open a port", status);
        return velo_ompi_error(status);
    }
    port->address.id = velo_port_id(port->port);
    port->address.memory = name_memory();
    if (is_numbered || port->address.name_bytes == 0 || velo_ompi_hosts() < 2)
        return OPAL_SUCCESS;
    opal_output(0, "velo: the launcher does not tell ranks the number of their host (pmix.nodeid); "
                   "start the job by `velo run`, or by a launcher with PMIx");
    return OPAL_ERR_NOT_SUPPORTED;
}

int velo_ompi_open(const mca_base_component_t *component, const struct velo_ompi_params *params,
                   struct velo_ompi_port *port)
{
    memset(port, 0, sizeof *port);
    int rc = name_domain(params, port->address.domain);
    if (rc == OPAL_SUCCESS)
        rc = open_port(params, port);
    if (rc == OPAL_SUCCESS)
        rc = velo_ompi_announce(component, &port->address, ADDRESS_BYTES(port->address.name_bytes));
    if (rc != OPAL_SUCCESS)
        velo_ompi_close(port);
    return rc;
}

void velo_ompi_close(struct velo_ompi_port *port)
{
    (void)velo_rma_close(port->rma);
    (void)velo_port_close(port->port);
    memset(port, 0, sizeof *port);
}

static bool is_address(const struct velo_ompi_address *address, size_t len_bytes)
{
    return len_bytes >= ADDRESS_BYTES(0) && address->name_bytes <= sizeof address->name &&
           len_bytes == ADDRESS_BYTES(address->name_bytes);
}

/* Does a process share this one's memory, and, if need be, its domain? */
static bool is_beside(const mca_base_component_t *component, const struct velo_ompi_port *port,
                      const opal_process_name_t *process, bool in_domain)
{
    struct velo_ompi_address *address = NULL;
    size_t len_bytes = 0;
    int rc;
    OPAL_MODEX_RECV(rc, component, process, (void **)&address, &len_bytes);
    bool is =
        rc == OPAL_SUCCESS && is_address(address, len_bytes) &&
        address->memory == port->address.memory &&
        (!in_domain || strncmp(address->domain, port->address.domain, sizeof address->domain) == 0);
    free(address);
    return is;
}

bool velo_ompi_shares_memory(const mca_base_component_t *component,
                             const struct velo_ompi_port *port, const opal_process_name_t *process)
{
    return is_beside(component, port, process, false);
}

bool velo_ompi_meets(const mca_base_component_t *component, const struct velo_ompi_port *port,
                     const opal_process_name_t *process)
{
    return process->jobid != OPAL_PROC_MY_NAME.jobid && is_beside(component, port, process, true);
}

int velo_ompi_find(const mca_base_component_t *component, const struct velo_ompi_port *port,
                   const opal_process_name_t *process, velo_id_t *id)
{
    struct velo_ompi_address *address = NULL;
    size_t len_bytes = 0;
    int rc;
    OPAL_MODEX_RECV(rc, component, process, (void **)&address, &len_bytes);
    if (rc != OPAL_SUCCESS || !is_address(address, len_bytes)) {
        opal_output(0,
                    "velo: process %s has published no velo port of this version; run all ranks "
                    "with the same build",
                    OPAL_NAME_PRINT(*process));
        rc = OPAL_ERR_UNREACH;
    } else if (strncmp(address->domain, port->address.domain, sizeof address->domain) != 0) {
        opal_output(0,
                    "velo: process %s is in domain %.*s, this one in %s; start both from one "
                    "mpirun, by `velo run` with one --ompi-server, or give both the same domain "
                    "parameter",
                    OPAL_NAME_PRINT(*process), VELO_OMPI_DOMAIN_BYTES, address->domain,
                    port->address.domain);
        rc = OPAL_ERR_UNREACH;
    } else {
        *id = address->id;
        rc = velo_ompi_error(
            velo_peer_name(port->port, address->id, address->name, address->name_bytes));
    }
    free(address);
    return rc;
}

int velo_ompi_local_ranks(void) { return (int)velo_ompi_local_peers() + 1; }

int velo_ompi_reached_ranks(const struct velo_ompi_port *port)
{
    return port->reaches_others ? (int)velo_ompi_ranks() : velo_ompi_local_ranks();
}

/* Cores that the ranks of this node share. A rank that was bound by the launcher sees only its own
 * share: then all count. */
static int shared_cores(void)
{
    cpu_set_t allowed;
    if (opal_process_info.cpuset == NULL && sched_getaffinity(0, sizeof allowed, &allowed) == 0)
        return CPU_COUNT(&allowed);
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

int64_t velo_ompi_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void velo_ompi_idle_init(struct velo_ompi_idle *idle, const struct velo_ompi_params *params)
{
    memset(idle, 0, sizeof *idle);
    idle->polls_max = params->sleep_polls;
    idle->sleep_ns = (int64_t)params->sleep_us * 1000;
    idle->automatic = params->sleep < 0;
    idle->oversubscribed =
        idle->automatic ? velo_ompi_local_ranks() > shared_cores() : params->sleep != 0;
}

enum velo_ompi_rest velo_ompi_idle_rest_now(struct velo_ompi_idle *idle)
{
    /* Open MPI yields after each empty poll where ranks outnumber cores. We do it instead, but
     * for threads: only Open MPI sees those that find another one polling. */
    bool theirs = opal_using_threads();
    if (idle->oversubscribed && opal_progress_yield_when_idle != theirs)
        (void)opal_progress_set_yield_when_idle(theirs);
    /* A program that computes between its polls (MPI_Test) must not be put to sleep by them. */
    int64_t now = velo_ompi_now_ns();
    bool at_once = now - idle->polled_ns < POLL_GAP_MAX_NS;
    idle->polled_ns = now;
    idle->polls = at_once ? idle->polls + 1 : 0;
    if (idle->polls > idle->polls_max)
        return VELO_OMPI_SLEEPS;
    /* While others want the core, it is enough to yield it: to sleep and to be woken costs more,
     * for the others too. If no other process wants the core, polls follow each other at once, and
     * end in sleep. */
    return opal_progress_yield_when_idle ? VELO_OMPI_GOES_ON : VELO_OMPI_YIELDS;
}
