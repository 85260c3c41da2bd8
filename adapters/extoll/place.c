/* SPDX-License-Identifier: Apache-2.0 */
#include "place.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "../linger.h"

#define NODES 256
#define RANKS_MAX 1000000
#define TABLE_NS 500000000
#define NAP_NS 20000

bool place_number(const char *name, long min, long max, long unset, long *value)
{
    const char *text = getenv(name);
    char *end;
    *value = unset;
    if (!text || !*text)
        return true;
    errno = 0;
    *value = strtol(text, &end, 10);
    return errno == 0 && *end == '\0' && *value >= min && *value <= max;
}

/* The variables by which a launcher numbers a process: its rank, its rank on its node, and the
 * number of ranks there. */
static const struct launcher {
    const char *rank;
    const char *local_rank;
    const char *local_size;
} launchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMI_RANK", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
};

/* Launchers fill one node after the other, as many ranks on each. 0: this one did not start us. */
static long node_of(const struct launcher *launcher)
{
    long rank;
    long local_rank;
    long local_size;
    if (!place_number(launcher->rank, 0, RANKS_MAX, -1, &rank) ||
        !place_number(launcher->local_rank, 0, RANKS_MAX, -1, &local_rank) ||
        !place_number(launcher->local_size, 1, RANKS_MAX, -1, &local_size) || rank < 0 ||
        local_rank < 0 || local_size < 0)
        return 0;
    return (rank - local_rank) / local_size;
}

bool place_node(int *node)
{
    long value;
    if (!place_number("VELO_NODE", 0, NODES - 1, -1, &value))
        return false;
    if (value < 0 && !place_number("SLURM_NODEID", 0, NODES - 1, -1, &value))
        return false;
    for (size_t i = 0; value < 0 && i < sizeof launchers / sizeof launchers[0]; i++)
        value = node_of(&launchers[i]) > 0 ? node_of(&launchers[i]) : -1;
    *node = value < 0 ? 0 : (int)value;
    return value < NODES;
}

bool place_wait_ns(int64_t *wait_ns)
{
    long ms;
    bool is_valid = place_number("VELO_EXTOLL_WAIT_MS", -1, INT32_MAX, WAIT_MS_DEFAULT, &ms);
    *wait_ns = ms < 0 ? VELO_FOREVER : (int64_t)ms * 1000000;
    return is_valid;
}

int place_open(struct velo_port_attr *attr, struct velo_port **port)
{
    if (!place_node(&attr->node))
        return VELO_ERR_ARG;
    attr->vpid = VELO_VPID_ANY;
    attr->linger_ns = ADAPTER_LINGER_NS;
    int status = velo_port_open(attr, port);
    if (status == VELO_OK && VELO_ID_VPID(velo_port_id(*port)) >= USER_VPIDS) {
        (void)velo_port_close(*port);
        *port = NULL;
        status = VELO_ERR_FULL;
    }
    return status;
}

int64_t place_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

bool place_is_over(int64_t since_ns, int64_t wait_ns)
{
    return wait_ns >= 0 && place_now_ns() - since_ns >= wait_ns;
}

/* Is a peer not there yet, or not there again, or silent? */
static bool place_is_absent(int status)
{
    return status == VELO_ERR_NO_PEER || status == VELO_TIMEOUT || status == VELO_ERR_PEER_DEAD ||
           status == VELO_ERR_PEER_CLOSED;
}

bool place_tries_again(int status, int64_t since_ns, int64_t wait_ns)
{
    if (status == VELO_ERR_FULL)
        wait_ns = wait_ns >= 0 && wait_ns < TABLE_NS ? wait_ns : TABLE_NS;
    else if (!place_is_absent(status))
        return false;
    return !place_is_over(since_ns, wait_ns);
}

void place_nap(void) { (void)nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL); }
