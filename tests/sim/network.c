/* SPDX-License-Identifier: Apache-2.0 */
/* A port has its node for all of its peers, or for none. */
#include <stdlib.h>

#include <velo/velo.h>

#include "test.h"

static int open_with(const char *map, struct velo_port **port)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;

    attr.domain = test_domain();
    CHECK_EQ(map ? setenv("VELO_NETWORK", map, 1) : unsetenv("VELO_NETWORK"), 0);
    return velo_port_open(&attr, port);
}

TEST(a_map_that_leads_only_some_peers_to_the_node_is_refused)
{
    static const char *const maps[] = {"nic", "own=nic", "nic,own=nic,3=shm", "nic,own=nic,7=loop"};
    struct velo_port *port;

    for (size_t i = 0; i < ARRAY_LEN(maps); i++)
        CHECK_FAILS(open_with(maps[i], &port), VELO_ERR_ARG, "all peers of a port");
    CHECK_OK(open_with("nic,own=nic", &port)); /* Nothing is left of them. */
    CHECK_OK(velo_port_close(port));
}

TEST(a_map_that_does_not_lead_to_the_cluster_is_refused)
{
    struct velo_port *port;

    CHECK_FAILS(open_with(NULL, &port), VELO_ERR_STATE, "VELO_NETWORK");
    CHECK_FAILS(open_with("loop", &port), VELO_ERR_STATE, "VELO_NETWORK");
}

TEST(a_port_with_a_node_does_not_reach_one_without)
{
    struct velo_port *with, *without;
    struct velo_conn *conn;

    CHECK_OK(open_with("nic,own=nic", &with));
    CHECK_EQ(unsetenv("VELO_SIM"), 0);
    CHECK_OK(open_with(NULL, &without));
    CHECK_FAILS(velo_connect(with, velo_port_id(without), &conn, 0), VELO_ERR_NO_PEER, "opening");
    CHECK_OK(velo_port_close(without));
    CHECK_OK(velo_port_close(with));
}
