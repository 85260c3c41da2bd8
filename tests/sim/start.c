/* SPDX-License-Identifier: Apache-2.0 */
/* A thread or process that is started belongs to the simulated cluster before its first call. */
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

/* In real time; shorter than the simulator waits for somebody who does not call. */
#define BUSY_NS (300 * TEST_MS)

/* The C library's function shows virtual time. */
static int64_t real_now_ns(void)
{
    struct timespec now;

    (void)syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void send_after_a_while(void *arg)
{
    int64_t end_ns = real_now_ns() + BUSY_NS;
    struct velo_port *port;

    (void)arg;
    while (real_now_ns() < end_ns)
        ;
    port = port_open(1);
    message_send(port_connect(port, VELO_ID(0, 0)), 8, 1);
    CHECK_OK(velo_port_close(port));
}

static void *send_from_thread(void *arg)
{
    send_after_a_while(arg);
    return NULL;
}

/* In virtual time: far longer than the message takes, far shorter than its sender needs to begin.
 */
static void expect_soon(struct velo_port *port)
{
    struct velo_msg msg;
    char buf[8];

    CHECK_OK(velo_recv(port, buf, sizeof(buf), &msg, TEST_MS));
    message_check(&msg, 8, 1, VELO_ID(0, 1));
}

TEST(time_waits_for_a_process_that_begins)
{
    struct velo_port *port = port_open(0);
    pid_t child = child_start(send_after_a_while, NULL);

    expect_soon(port);
    child_join(child);
    CHECK_OK(velo_port_close(port));
}

TEST(time_waits_for_a_thread_that_begins)
{
    struct velo_port *port = port_open(0);
    pthread_t thread;

    CHECK_EQ(pthread_create(&thread, NULL, send_from_thread, NULL), 0);
    expect_soon(port);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_OK(velo_port_close(port));
}

static void *nap(void *arg)
{
    const struct timespec nap = {.tv_nsec = 100 * TEST_MS};

    (void)syscall(SYS_nanosleep, &nap, NULL);
    return arg;
}

/* More than there are channels for. */
TEST(threads_that_never_call_leave_nothing_behind)
{
    enum { ROUNDS = 15, THREADS = 100 };
    struct velo_port *port = port_open(0);
    pthread_t threads[THREADS];

    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < THREADS; i++)
            CHECK_EQ(pthread_create(&threads[i], NULL, nap, NULL), 0);
        for (int i = 0; i < THREADS; i++)
            CHECK_EQ(pthread_join(threads[i], NULL), 0);
        /* The simulator sees that a thread has ended when time has to pass. */
        CHECK_STATUS(velo_recv(port, &(char){0}, 1, NULL, 100 * TEST_MS), VELO_TIMEOUT);
    }
    CHECK_EQ(pthread_create(&threads[0], NULL, send_from_thread, NULL), 0);
    expect_soon(port);
    CHECK_EQ(pthread_join(threads[0], NULL), 0);
    CHECK_OK(velo_port_close(port));
}
