/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank does to its connection to the launcher. */
#include "mpi_test.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define DESCRIPTORS 256

/* The port in PMIX_SERVER_URI2=job.rank;tcp4://127.0.0.1:4711; every launcher since PMIx 2 sets it.
 */
static in_port_t port_of_launcher(void)
{
    const char *uri = getenv("PMIX_SERVER_URI2");
    const char *colon = uri ? strrchr(uri, ':') : NULL;
    return colon ? htons((uint16_t)atoi(colon + 1)) : 0;
}

/* Otherwise a job ends 40 ms later than it has to. */
TEST(what_a_rank_says_to_its_launcher_is_not_held_back, 2)
{
    in_port_t port = port_of_launcher();
    int found = 0;
    CHECK(port != 0);
    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        struct sockaddr_in peer = {0};
        int at_once = 0;
        if (getpeername(fd, (struct sockaddr *)&peer, &(socklen_t){sizeof peer}) != 0 ||
            peer.sin_family != AF_INET || peer.sin_port != port)
            continue;
        CHECK_EQ(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &at_once, &(socklen_t){sizeof(int)}), 0);
        CHECK(at_once);
        found++;
    }
    CHECK_EQ(found, 1);
}
