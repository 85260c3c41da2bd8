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
    {"over=loop,full=1000000001", "'full=1000000001' is no setting"},
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

/* OPEN, ACCEPT, and a SLOT for each message: the circuit is lost when this side has taken in ten,
 * whatever else has come by then. */
static void lose_after_ten(void *arg)
{
    const char *settings = arg;
    int status = VELO_OK;
    uint64_t received = 0, word;
    CHECK_EQ(setenv("VELO_FAULTS", settings, 1), 0);
    struct velo_port *port = port_open(0);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 0));
    for (uint64_t sent = 0; sent < 50 && status == VELO_OK; sent++)
        status = velo_send(conn, &sent, sizeof sent, 0, TEST_PATIENCE_NS);
    while (velo_recv(port, &word, sizeof word, NULL, 100 * TEST_MS) == VELO_OK)
        CHECK_EQ(word, received++);
    CHECK(received > 0 && received < 10);
    CHECK_STATUS(velo_conn_status(conn), VELO_ERR_PEER_DEAD);
    CHECK_OK(velo_disconnect(conn));
    CHECK_OK(velo_port_close(port));
    _exit(0);
}

TEST(a_line_is_lost_after_so_many_frames)
{
    static char one_by_one[] = "over=loop,die=10", at_once[] = "over=loop,die=10,delay_us=20000";
    CHECK_EQ(child_wait(child_start(lose_after_ten, one_by_one)), 0);
    CHECK_EQ(child_wait(child_start(lose_after_ten, at_once)), 0);
}

/* A message to the own port, with these settings. Its status at the sender; VELO_TIMEOUT: it did
 * not come. `took_ns`: from the connection's beginning to the message's arrival. */
static int send_to_self(const char *settings, size_t len_bytes, int64_t patience_ns,
                        int64_t *took_ns)
{
    static char out[8192], in[sizeof out];
    struct velo_conn *conn;
    CHECK_EQ(setenv("VELO_FAULTS", settings, 1), 0);
    struct velo_port *port = port_open(0);
    int64_t start_ns = test_now_ns();
    int status = velo_connect(port, VELO_ID(0, 0), &conn, patience_ns);
    if (status == VELO_OK)
        status = velo_send(conn, out, len_bytes, 0, patience_ns);
    if (status == VELO_OK)
        status = velo_recv(port, in, sizeof in, NULL, patience_ns);
    *took_ns = test_now_ns() - start_ns;
    CHECK_OK(velo_port_close(port));
    return status;
}

static void be_in_time(void *arg)
{
    int64_t took_ns;
    (void)arg;
    CHECK_OK(send_to_self("over=loop,full=20,partial=2", 8, TEST_PATIENCE_NS, &took_ns));
    _exit(0);
}

/* Not even the question for a connection leaves. */
static void find_no_room(void *arg)
{
    struct velo_conn *conn;
    const char *settings = arg;
    CHECK_EQ(setenv("VELO_FAULTS", settings, 1), 0);
    struct velo_port *port = port_open(0);
    for (int64_t end_ns = test_now_ns() + 50 * TEST_MS; test_now_ns() < end_ns;)
        CHECK_STATUS(velo_try_connect(port, VELO_ID(0, 0), &conn), VELO_AGAIN);
    CHECK_OK(velo_port_close(port));
    _exit(0);
}

TEST(the_first_sends_and_each_nth_find_no_room)
{
    static char first[] = "over=loop,full=1000000000", each[] = "over=loop,partial=1";
    CHECK_EQ(child_wait(child_start(be_in_time, NULL)), 0);
    CHECK_EQ(child_wait(child_start(find_no_room, first)), 0);
    CHECK_EQ(child_wait(child_start(find_no_room, each)), 0);
}

/* OPEN, ACCEPT and the message: each comes so much later. */
TEST(frames_come_as_late_as_they_are_told)
{
    int64_t took_ns;
    CHECK_OK(send_to_self("over=loop,delay_us=20000", 8, TEST_PATIENCE_NS, &took_ns));
    CHECK(took_ns >= 3 * 19 * TEST_MS);
}

static void send_whole(void *arg)
{
    int64_t took_ns;
    (void)arg;
    CHECK_OK(send_to_self("over=loop,die=20", 8000, TEST_PATIENCE_NS, &took_ns));
    _exit(0);
}

static void send_pieces(void *arg)
{
    int64_t took_ns;
    (void)arg;
    CHECK(send_to_self("over=loop,die=20,payload=128", 8000, 50 * TEST_MS, &took_ns) != VELO_OK);
    _exit(0);
}

/* So small that the circuit is lost before the last piece. */
TEST(a_long_message_comes_in_pieces)
{
    CHECK_EQ(child_wait(child_start(send_whole, NULL)), 0);
    CHECK_EQ(child_wait(child_start(send_pieces, NULL)), 0);
}
