/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that looks after a port whose program does something else. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "calls.h"
#include "test.h"

#define ROUNDS 20
/* By then the thread sleeps again: a message that comes before needs no event. */
#define PAUSE_US 5000

/* How long the thread stays away (attend.c). */
#define AWAY_NS 1000000

/* Shared between the processes: how often a wait with a timeout ended by an event; how often the
 * thread stayed away, and how often again before that time was over; and the end. */
struct state {
    uint64_t events;
    uint64_t aways, early;
    uint64_t is_over;
};
static struct state *counted; /* Only in the process that does something else. */

/* In the place of the C library's, for all of this process. Only the thread calls it. */
__attribute__((visibility("default"))) int ppoll(struct pollfd *fds, nfds_t nfds,
                                                 const struct timespec *timeout, const sigset_t *ss)
{
    static int64_t began_ns;
    if (counted && timeout->tv_nsec == AWAY_NS) {
        int64_t now_ns = test_now_ns();
        __atomic_fetch_add(&counted->aways, 1, __ATOMIC_RELAXED);
        if (now_ns - began_ns < AWAY_NS)
            __atomic_fetch_add(&counted->early, 1, __ATOMIC_RELAXED);
        began_ns = now_ns;
    }
    struct timespec left = *timeout; /* The kernel writes to it. */
    return (int)syscall(SYS_ppoll, fds, nfds, &left, ss, (size_t)8);
}

/* Opens a port, and then does something else until the end. */
static void compute(void *arg)
{
    counted = arg;
    calls_events = &counted->events;
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

/* Holds frames of one port back all the time, and never looks at its other port. */
static void stream(void *arg)
{
    counted = arg;
    struct velo_port *port = port_open(1), *other = port_open(2);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 0));
    for (uint64_t i = 0; !__atomic_load_n(&counted->is_over, __ATOMIC_ACQUIRE); i++) {
        message_send(conn, 8, i);
        if (i % 4 == 3)
            usleep(100);
    }
    CHECK_OK(velo_port_close(other));
    CHECK_OK(velo_port_close(port));
    _exit(0);
}

struct drain {
    struct velo_port *port;
    bool is_over;
};

static void *drain(void *arg)
{
    struct drain *job = arg;
    uint64_t word;
    while (!__atomic_load_n(&job->is_over, __ATOMIC_ACQUIRE))
        (void)velo_recv(job->port, &word, sizeof word, NULL, TEST_MS);
    return NULL;
}

TEST(a_port_is_attended_while_another_one_holds_frames_back_all_the_time)
{
    struct state *state = test_shared_alloc(sizeof *state);
    struct drain job = {.port = port_open(0)};
    struct velo_port *port = port_open(3);
    struct velo_conn *conn;
    pthread_t thread;
    pid_t peer = child_start(stream, state);
    CHECK_EQ(pthread_create(&thread, NULL, drain, &job), 0);
    for (int i = 0; i < 5; i++) {
        CHECK_OK(velo_connect(port, VELO_ID(0, 2), &conn, TEST_PATIENCE_NS));
        CHECK_OK(velo_disconnect(conn));
    }
    __atomic_store_n(&state->is_over, 1, __ATOMIC_RELEASE);
    CHECK_EQ(child_wait(peer), 0);
    CHECK(state->aways > 0);
    CHECK_EQ(state->early, 0);
    __atomic_store_n(&job.is_over, true, __ATOMIC_RELEASE);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_OK(velo_port_close(port));
    CHECK_OK(velo_port_close(job.port));
}
