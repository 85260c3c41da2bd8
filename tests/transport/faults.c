/* SPDX-License-Identifier: Apache-2.0 */
/* The transport that makes another one bad: it does what it is told, and says what it does not
 * understand. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

static const struct {
    const char *settings, *sentence;
} wrong[] = {
    {"", "give over=NAME"},
    {"payload=100", "give over=NAME"},
    {"over=loop,delay=3", "'delay=3' is no setting"},
    {"over=loop,die=", "'die=' is no setting"},
    {"over=loop,die=3x,seed=1", "'die=3x,seed=1' is no setting"},
    {"over=loop,full", "'full' is no setting"},
    {"over=../loop", "'over=../loop' is no setting"},
    {"over=nothing", "libvelo-nothing.so"},
    {"over=faults", "'faults' does not carry frames"},
};

/* Settings are read when the transport is loaded: once in each process. */
static void open_with(void *arg)
{
    struct velo_port *port;
    const char *sentence = arg;
    CHECK_STATUS(velo_port_open(NULL, &port), VELO_ERR_ARG);
    CHECK(strstr(velo_last_error(), sentence));
    _exit(0);
}

TEST(settings_that_make_no_sense_are_refused_with_a_sentence)
{
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_EQ(setenv("VELO_FAULTS", wrong[i].settings, 1), 0);
        CHECK_EQ(child_wait(child_start(open_with, (void *)(uintptr_t)wrong[i].sentence)), 0);
    }
}

/* OPEN, ACCEPT, and a SLOT for each message: the circuit is lost when this side has taken in ten.
 */
TEST(a_line_is_lost_after_so_many_frames)
{
    int status = VELO_OK;
    uint64_t received = 0, word;
    CHECK_EQ(setenv("VELO_FAULTS", "over=loop,die=10", 1), 0);
    struct velo_port *port = port_open(0);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 0));
    for (uint64_t sent = 0; sent < 50 && status == VELO_OK; sent++)
        status = velo_send(conn, &sent, sizeof sent, 0, TEST_PATIENCE_NS);
    while (velo_recv(port, &word, sizeof word, NULL, TEST_MS) == VELO_OK)
        CHECK_EQ(word, received++);
    CHECK(received > 0 && received < 10);
    CHECK_STATUS(velo_conn_status(conn), VELO_ERR_PEER_DEAD);
    CHECK_OK(velo_disconnect(conn));
    CHECK_OK(velo_port_close(port));
}
