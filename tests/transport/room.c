/* SPDX-License-Identifier: Apache-2.0 */
/* A sender that waits for room sleeps until there is some, and goes on then. Its waits are counted:
 * each ends by an event, or because its time is over. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"
#include "waits.h"

#define DEPTH_SLOTS 8
#define ROUNDS 20
/* A sender sleeps by then. */
#define PAUSE_US 20000

/* The longest sleep is a tenth of a second. So many there are if nobody looks more often: two
 * threads sleep, and each round has some events, among them the signs of life of a network. */
static uint64_t sleeps_in(int64_t duration_ns, uint64_t rounds)
{
    return 2 * (uint64_t)(duration_ns / (50 * TEST_MS)) + 8 * rounds + 20;
}

static void wait_for(const uint64_t *word, uint64_t value)
{
    int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < value) {
        CHECK(test_now_ns() < end_ns);
        usleep(100);
    }
}

/* Shared between the processes. */
struct state {
    uint64_t rounds;  /* The receiver may empty its ring so often, */
    uint64_t emptied; /* and has done so. */
    uint64_t is_over;
};

/* The receiver looks for a message while it waits for the round, too: credits that could not leave
 * at once leave when it looks. */
static bool wait_for_round(struct velo_port *port, const struct state *state, uint64_t round,
                           struct velo_msg *msg)
{
    int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;
    bool is_held = false;
    while (__atomic_load_n(&state->rounds, __ATOMIC_ACQUIRE) < round) {
        CHECK(test_now_ns() < end_ns);
        is_held = is_held || velo_try_peek(port, msg) == VELO_OK;
        usleep(100);
    }
    return is_held;
}

static void receive_in_rounds(void *arg)
{
    struct state *state = arg;
    struct velo_port *port = port_open_sized(1, DEPTH_SLOTS, 0, 0);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct velo_msg msg;
        bool is_held = wait_for_round(port, state, round + 1, &msg);
        for (uint64_t i = 0; i < DEPTH_SLOTS; i++) {
            if (i > 0 || !is_held)
                CHECK_OK(velo_peek(port, &msg, TEST_PATIENCE_NS));
            message_check(&msg, 8, round * DEPTH_SLOTS + i, VELO_ID(0, 0));
            CHECK_OK(velo_release(port));
        }
        __atomic_store_n(&state->emptied, round + 1, __ATOMIC_RELEASE);
    }
    wait_for(&state->is_over, 1);
    CHECK_OK(velo_port_close(port));
    _exit(0);
}

/* A thread that sends as much as the receiver takes in all rounds. */
struct sender {
    struct velo_conn *conn;
    uint64_t sent;
    uint64_t in_vain; /* Its waits that ended because their time was over. */
};

static void *send_all(void *arg)
{
    struct sender *sender = arg;
    uint64_t before = waits_in_vain;
    for (uint64_t i = 0; i < (uint64_t)ROUNDS * DEPTH_SLOTS; i++) {
        message_send(sender->conn, 8, i);
        __atomic_store_n(&sender->sent, i + 1, __ATOMIC_RELEASE);
    }
    sender->in_vain = waits_in_vain - before;
    return NULL;
}

/* Let the receiver empty its ring each time that the sender has filled it and waits. */
static void send_in_rounds(struct sender *sender, struct state *state)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, send_all, sender), 0);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        wait_for(&sender->sent, round * DEPTH_SLOTS);
        usleep(PAUSE_US);
        __atomic_store_n(&state->rounds, round, __ATOMIC_RELEASE);
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
    __atomic_store_n(&state->is_over, 1, __ATOMIC_RELEASE);
}

TEST(a_sender_without_room_sleeps_until_there_is_some)
{
    struct state *state = test_shared_alloc(sizeof *state);
    pid_t peer = child_start(receive_in_rounds, state);
    struct velo_port *port = port_open(0);
    struct sender sender = {.conn = port_connect(port, VELO_ID(0, 1))};
    int64_t start_ns = test_now_ns();
    uint64_t before = waits_so_far();
    send_in_rounds(&sender, state);
    CHECK(waits_so_far() - before <= sleeps_in(test_now_ns() - start_ns, ROUNDS));
    CHECK(sender.in_vain < ROUNDS / 2);
    CHECK_EQ(child_wait(peer), 0);
    CHECK_OK(velo_port_close(port));
}

struct looker {
    struct velo_port *port;
    bool is_over;
};

static void *look(void *arg)
{
    struct looker *looker = arg;
    uint64_t word;
    while (!__atomic_load_n(&looker->is_over, __ATOMIC_ACQUIRE))
        CHECK_STATUS(velo_recv(looker->port, &word, sizeof word, NULL, 0), VELO_TIMEOUT);
    return NULL;
}

static struct state *emptying;
static const struct sender *filling;

/* The sender has seen that there is no room, and is about to sleep: now the receiver empties its
 * ring, and the other thread has the time to take in the credits. If they come late the sender
 * sleeps once more, and has not filled the ring again. */
static void empty_the_ring(void)
{
    uint64_t rounds = emptying->rounds + 1;
    if (rounds > ROUNDS || filling->sent < rounds * DEPTH_SLOTS)
        return;
    __atomic_store_n(&emptying->rounds, rounds, __ATOMIC_RELEASE);
    wait_for(&emptying->emptied, rounds);
    usleep(PAUSE_US);
}

TEST(room_that_another_thread_takes_in_wakes_the_sender)
{
    struct state *state = emptying = test_shared_alloc(sizeof *state);
    pid_t peer = child_start(receive_in_rounds, state);
    struct looker looker = {.port = port_open(0)};
    struct sender sender = {.conn = port_connect(looker.port, VELO_ID(0, 1))};
    pthread_t thread;
    filling = &sender;
    CHECK_EQ(pthread_create(&thread, NULL, look, &looker), 0);
    waits_begin = empty_the_ring;
    (void)send_all(&sender);
    waits_begin = NULL;
    CHECK(state->rounds >= ROUNDS - 1); /* It slept in each round. */
    __atomic_store_n(&state->rounds, ROUNDS, __ATOMIC_RELEASE);
    __atomic_store_n(&state->is_over, 1, __ATOMIC_RELEASE);
    CHECK(sender.in_vain < ROUNDS / 2);
    __atomic_store_n(&looker.is_over, true, __ATOMIC_RELEASE);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(child_wait(peer), 0);
    CHECK_OK(velo_port_close(looker.port));
}

/* ---- frames that find no room ---------------------------------------------------------------- */

#define DATA_BYTES (4u << 20)
#define LONG_BYTES 60000
#define LONGS 60

static char data[LONG_BYTES];

/* Answers once all has come. */
static void receive_all(void *arg)
{
    (void)arg;
    struct velo_port *port = port_open_sized(1, 64, DATA_BYTES, 0);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 0));
    for (uint64_t i = 0; i < LONGS; i++) {
        CHECK_OK(velo_recv(port, data, sizeof data, NULL, TEST_PATIENCE_NS));
        CHECK(pattern_matches(data, sizeof data, i));
    }
    message_send(conn, 8, LONGS);
    message_expect(port, 8, LONGS + 1, VELO_ID(0, 0));
    CHECK_OK(velo_port_close(port));
    _exit(0);
}

/* More than a network takes in while its other end stands still. */
TEST(frames_that_found_no_room_leave_when_there_is_room)
{
    pid_t peer = child_start(receive_all, NULL);
    struct velo_port *port = port_open(0);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 1));
    char word[8];
    int status;
    CHECK_EQ(kill(peer, SIGSTOP), 0);
    CHECK_EQ(waitpid(peer, &status, WUNTRACED), peer);
    for (uint64_t i = 0; i < LONGS; i++) {
        pattern_fill(data, sizeof data, i);
        CHECK_OK(velo_send(conn, data, sizeof data, 0, 0));
    }
    int64_t start_ns = test_now_ns();
    uint64_t before = waits_so_far();
    CHECK_STATUS(velo_recv(port, word, sizeof word, NULL, 500 * TEST_MS), VELO_TIMEOUT);
    CHECK(waits_so_far() - before <= sleeps_in(test_now_ns() - start_ns, 1));
    CHECK_EQ(kill(peer, SIGCONT), 0);
    uint64_t in_vain = waits_in_vain;
    message_expect(port, 8, LONGS, VELO_ID(0, 1));
    CHECK(waits_in_vain - in_vain < 5); /* There is room again and again. */
    message_send(conn, 8, LONGS + 1);
    CHECK_EQ(child_wait(peer), 0);
    CHECK_OK(velo_port_close(port));
}
