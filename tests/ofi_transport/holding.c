/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that are held back for others to travel with: how often the library's timer is set. */
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "../../lib/net/transport.h"
#include "test.h"

#define SETTINGS_MAX 10000
#define ROUNDS 1000
#define BURST 4
#define BUSY_ROUNDS 20

/* Each time that the timer was set, and to what. */
static struct {
    int64_t at_ns, left_ns;
} settings[SETTINGS_MAX];
static uint32_t settings_len;

/* In the place of the C library's, for all of this process. The transport's own timer has longer
 * times. */
__attribute__((visibility("default"))) int
timerfd_settime(int ufd, int flags, const struct itimerspec *utmr, struct itimerspec *otmr)
{
    int64_t left_ns = utmr->it_value.tv_sec * INT64_C(1000000000) + utmr->it_value.tv_nsec;
    if (left_ns > 0 && left_ns <= VELO_HOLD_LONG_NS) {
        uint32_t index = __atomic_fetch_add(&settings_len, 1, __ATOMIC_RELAXED);
        if (index < SETTINGS_MAX) {
            settings[index].at_ns = test_now_ns();
            settings[index].left_ns = left_ns;
        }
    }
    return (int)syscall(SYS_timerfd_settime, ufd, flags, utmr, otmr);
}

static void take(struct velo_port *port, uint64_t count)
{
    uint64_t word;
    for (uint64_t i = 0; i < count; i++)
        CHECK_OK(velo_recv(port, &word, sizeof word, NULL, TEST_PATIENCE_NS));
}

static void answer(void *arg)
{
    struct velo_port *port = port_open(1);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 0));
    (void)arg;
    for (;;) {
        take(port, BURST);
        message_send(conn, 8, 1);
    }
}

/* Each burst holds frames back, and waits at once for the answer, which lets them go. */
TEST(the_timer_of_held_frames_is_not_set_while_it_runs)
{
    pid_t peer = child_start(answer, NULL);
    struct velo_port *port = port_open(0);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 1));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < BURST; i++)
            message_send(conn, 8, 1);
        take(port, 1);
    }
    child_kill(peer);
    uint32_t count = __atomic_load_n(&settings_len, __ATOMIC_RELAXED);
    CHECK(count > 0 && count <= SETTINGS_MAX);
    for (uint32_t i = 0; i + 1 < count; i++)
        CHECK(settings[i + 1].at_ns - settings[i].at_ns >= settings[i].left_ns);
    for (uint32_t i = 0; i < count; i++)
        CHECK(settings[i].left_ns >= VELO_HOLD_NS);
    CHECK_OK(velo_port_close(port));
    CHECK_OK(velo_port_close(port_open(1)));
}

/* A program that only sends, and then does something else: all that it sent arrives. The timer is
 * set for what is held, not again and again: it runs out once, and then the thread sends. */
static void send_and_leave(void *arg)
{
    volatile uint64_t *is_over = arg;
    struct velo_port *port = port_open(1);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 0));
    for (int round = 0; round < BUSY_ROUNDS; round++) {
        for (int i = 0; i < BURST; i++)
            message_send(conn, 8, 1);
        while (*is_over <= (uint64_t)round) /* No call looks at the port. */
            usleep(1000);
    }
    uint32_t count = __atomic_load_n(&settings_len, __ATOMIC_RELAXED);
    CHECK(count > BUSY_ROUNDS / 4 && count <= BUSY_ROUNDS * BURST);
    _exit(0);
}

TEST(held_frames_leave_while_their_program_does_something_else)
{
    volatile uint64_t *is_over = test_shared_alloc(sizeof *is_over);
    struct velo_port *port = port_open(0);
    pid_t peer = child_start(send_and_leave, (void *)(uintptr_t)is_over);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 1));
    for (int round = 0; round < BUSY_ROUNDS; round++) {
        take(port, BURST);
        *is_over += 1;
    }
    CHECK_EQ(child_wait(peer), 0);
    (void)velo_disconnect(conn);
    CHECK_OK(velo_port_close(port));
    CHECK_OK(velo_port_close(port_open(1)));
}
