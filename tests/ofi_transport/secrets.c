/* SPDX-License-Identifier: Apache-2.0 */
/* The secret: where it comes from, and what one is worth without it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stranger.h"

static void expect_no_port(int status, const char *about)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *port;
    CHECK_FAILS(velo_port_open(&attr, &port), status, about);
}

TEST(a_port_without_a_secret_does_not_open)
{
    CHECK_EQ(unsetenv("VELO_OFI_SECRET"), 0);
    expect_no_port(VELO_ERR_ARG, "VELO_OFI_SECRET_FILE");
    CHECK_EQ(setenv("VELO_OFI_SECRET", "fifteen letters", 1), 0);
    expect_no_port(VELO_ERR_ARG, "16 to 128");
    CHECK_EQ(setenv("VELO_OFI_SECRET", "sixteen letters!", 1), 0);
    CHECK_OK(velo_port_close(port_open(0)));
}

TEST(a_secret_lies_in_a_file_that_no_other_may_read)
{
    char path[] = "/tmp/velo-secret-XXXXXX";
    int file = mkstemp(path);
    CHECK(file >= 0);
    CHECK_EQ(write(file, "a secret in a file\n", 19), 19);
    CHECK_EQ(unsetenv("VELO_OFI_SECRET"), 0);
    CHECK_EQ(setenv("VELO_OFI_SECRET_FILE", path, 1), 0);
    CHECK_EQ(fchmod(file, 0640), 0);
    expect_no_port(VELO_ERR_ACCESS, "chmod 600");
    CHECK_EQ(fchmod(file, 0600), 0);
    CHECK_OK(velo_port_close(port_open(0)));
    close(file);
    CHECK_EQ(unlink(path), 0);
    expect_no_port(VELO_ERR_ACCESS, "cannot read");
}

TEST(a_time_that_is_none_is_refused)
{
    CHECK_EQ(setenv("VELO_OFI_TIMEOUT_MS", "soon", 1), 0);
    expect_no_port(VELO_ERR_ARG, "VELO_OFI_TIMEOUT_MS");
    CHECK_EQ(setenv("VELO_OFI_TIMEOUT_MS", "99", 1), 0);
    expect_no_port(VELO_ERR_ARG, "VELO_OFI_TIMEOUT_MS");
}

TEST(a_peer_with_another_secret_is_refused_and_counted)
{
    struct velo_port *port = port_open(0);
    struct velo_port_counters counters;
    CHECK_EQ(setenv("VELO_OFI_SECRET", "another secret than that", 1), 0);
    struct velo_port *other = port_open(1);
    struct velo_conn *conn;

    /* It is told: else it would call until its time is over, and not know why. It may have called
     * again before it heard. */
    CHECK_FAILS(velo_connect(other, VELO_ID(0, 0), &conn, 0), VELO_ERR_ACCESS, "VELO_OFI_SECRET");
    CHECK(refused_of(port, 1) > 0);
    CHECK_OK(velo_port_counters(port, &counters, sizeof counters));
    CHECK_EQ(counters.rx_conns, 0);
    CHECK_OK(velo_port_counters(other, &counters, sizeof counters));
    CHECK(counters.rx_errors > 0);
    CHECK_OK(velo_port_close(other));
    CHECK_OK(velo_port_close(port));
}
