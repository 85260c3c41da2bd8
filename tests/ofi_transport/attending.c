/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that looks after a port whose program does something else. */
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test.h"

#define ROUNDS 20
/* By then the thread sleeps again: a message that comes before needs no event. */
#define PAUSE_US 5000

/* Shared between the processes: how often a wait with a timeout ended by an event, and the end. */
struct state {
    uint64_t events;
    uint64_t is_over;
};
static struct state *counted; /* Only in the process that does something else. */

/* In the place of the C library's, for all of this process. libfabric's own calls do not wait. */
__attribute__((visibility("default"))) int epoll_wait(int epfd, struct epoll_event *events,
                                                      int maxevents, int timeout)
{
    int count = (int)syscall(SYS_epoll_pwait, epfd, events, maxevents, timeout, NULL, (size_t)0);
    if (count > 0 && timeout > 0 && counted)
        __atomic_fetch_add(&counted->events, 1, __ATOMIC_RELAXED);
    return count;
}

/* Opens a port, and then does something else until the end. */
static void compute(void *arg)
{
    counted = arg;
    struct velo_port *port = port_open(1);
    while (!__atomic_load_n(&counted->is_over, __ATOMIC_ACQUIRE))
        usleep(1000);
    for (uint64_t i = 0; i < ROUNDS; i++)
        message_expect(port, 8, i, VELO_ID(0, 0));
    CHECK_OK(velo_port_close(port));
    _exit(0);
}

/* By an event, and not by the end of its longest sleep, which would take much longer. */
TEST(each_message_to_a_program_that_does_something_else_wakes_the_thread)
{
    struct state *state = test_shared_alloc(sizeof *state);
    pid_t peer = child_start(compute, state);
    struct velo_port *port = port_open(0);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 1));
    for (uint64_t i = 0; i < ROUNDS; i++) {
        usleep(PAUSE_US);
        uint64_t before = __atomic_load_n(&state->events, __ATOMIC_RELAXED);
        int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;
        message_send(conn, 8, i);
        while (__atomic_load_n(&state->events, __ATOMIC_RELAXED) == before)
            CHECK(test_now_ns() < end_ns);
    }
    __atomic_store_n(&state->is_over, 1, __ATOMIC_RELEASE);
    CHECK_EQ(child_wait(peer), 0);
    CHECK_OK(velo_port_close(port));
}
