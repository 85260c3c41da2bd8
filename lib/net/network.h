/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file network.h
 * @brief The map of nodes: by which transport a port reaches a peer.
 *
 * $VELO_NETWORK holds rules, separated by commas, or names a TOML file (it then has a `/`):
 *
 *     NAME          peers on all other nodes are reached by transport NAME
 *     3=NAME        peers on node 3
 *     3-7=NAME      peers on nodes 3 to 7; of several rules the last counts
 *     own=NAME      peers on the port's own node, which otherwise share its memory
 *     spread=N      a port is on node (node + vpid) modulo N: for programs that know of one node
 *
 * NAME is `shm` (shared memory) or a plug-in. The same in a file:
 *
 *     own = "shm"
 *     spread = 2
 *     others = "loop"
 *     [nodes]
 *     3 = "loop"
 *     "4-7" = "shm"
 *     [hosts]
 *     0 = "10.1.0.1"
 *     "4-7" = "10.1.0.2:20000"
 *
 * [hosts], which only a file can have, says which machine has a node, for transports that want to
 * know: a host's name or address, and optionally the service number of context 0 of the first of
 * these nodes. Each node has 256 service numbers, one a context; the next node of a range has the
 * next 256.
 *
 * Of TOML, such lines, comments and blank lines are understood; anything else is an error.
 */
#ifndef VELO_NET_NETWORK_H
#define VELO_NET_NETWORK_H

#include <stdbool.h>

#include <velo/velo.h>

#define NETWORK_TRANSPORTS_MAX 8u
#define NETWORK_NAME_MAX 15u
#define NETWORK_SHM 0u

#define NETWORK_HOST_MAX 63u
#define NETWORK_SERVICE 18515u
#define NETWORK_SERVICE_MAX 65535u

/** A machine that has nodes. */
struct network_host {
    char name[NETWORK_HOST_MAX + 1];
    uint8_t first;    /* The first of these nodes... */
    uint32_t service; /* ...and the service number of its context 0. */
};

struct network {
    /* The transports that are named; the first is shared memory. */
    char names[NETWORK_TRANSPORTS_MAX][NETWORK_NAME_MAX + 1];
    uint32_t names_len;
    uint32_t spread; /* 0: not spread. */
    uint8_t own;
    uint8_t nodes[VELO_NODES]; /* An index of names. */
    struct network_host hosts[VELO_NODES];
    uint32_t hosts_len;
    uint16_t host_of[VELO_NODES]; /* An index of hosts, plus 1; 0: not said. */
};

/** Read the map from $VELO_NETWORK; without it, shared memory reaches all peers. VELO_ERR_ARG, with
 *  the wrong rule or line of the file. VELO_ERR_ACCESS: the file cannot be read. */
int network_init(struct network *network);
/** Does one transport reach all peers, also those on a port's own node? */
bool network_is_uniform(const struct network *network);
/** The node that a port counts as on. */
static inline uint32_t network_node(const struct network *network, velo_id_t id)
{
    return network->spread ? (VELO_ID_NODE(id) + VELO_ID_VPID(id)) % network->spread
                           : VELO_ID_NODE(id);
}
/** The machine that has a port's node, and the port's service number there. NULL: not said, or
 * there is no such number. */
const char *network_host(const struct network *network, velo_id_t id, uint32_t *service);
/** The transport, as an index of names, by which a port reaches a peer. */
uint32_t network_route(const struct network *network, velo_id_t port, velo_id_t peer);

#endif
