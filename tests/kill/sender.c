/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Senders that are killed or stopped between any two stores of connect, send and disconnect.
 *
 * The test process receives. A conductor starts one victim after the other, each of which sends a
 * numbered mix of messages and is struck at a later point than the one before; a bystander streams
 * meanwhile. The receiver must see: of the bystander and the conductor every message, in order
 * and intact; of each victim a gapless beginning, which holds at least what velo_send() said would
 * be delivered and at most the one message more that the victim had under way.
 *
 * In a "quiet" round nobody streams and the receiver always sleeps, in futexes that never time out:
 * a victim that took a wake-up with it to its grave would leave the receiver asleep for ever.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hook.h"
#include "futex_forever.h"
#include "test.h"

enum { RECEIVER = 0, CONDUCTOR = 1, BYSTANDER = 2, VICTIM = 3, SOURCES = 4 };
enum { RUNS_MAX = 100000, POINTS = HOOK_DISCONNECT_RING + 1 };

/* What all processes of a test know of each other. */
struct ledger {
    atomic_uint sent[RUNS_MAX];       /* By the victim of each run, as far as it was told OK. */
    atomic_uint received[RUNS_MAX];   /* Of those. */
    atomic_uint received_of[SOURCES]; /* Of the conductor and the bystander. */
    atomic_uint struck[POINTS];       /* How often the blow fell at each point. */
    atomic_uint strike_point;         /* Where the next victim is struck, */
    atomic_uint strike_visit;         /* and at which of its visits there. */
    atomic_int done;
};

struct plan {
    struct ledger *ledger;
    int signal;      /* SIGKILL or SIGSTOP. */
    bool quiet;      /* No bystander; the receiver sleeps. */
    uint32_t msgs;   /* That a victim sends. 0: without end. */
    uint32_t rounds; /* Random strikes. 0: strike at each point in turn. */
};

struct numbered {
    uint32_t run;
    uint32_t number;
};

static uint32_t from_environment(const char *name, uint32_t otherwise)
{
    const char *text = getenv(name);

    return text != NULL ? (uint32_t)strtoul(text, NULL, 10) : otherwise;
}

static uint64_t seed_of(struct numbered id) { return (uint64_t)id.run << 32 | id.number; }

/* Two short messages for each long one. */
static size_t len_of(struct numbered id)
{
    uint64_t bits = test_mix(seed_of(id) ^ 0x1234);
    size_t max_bytes = bits % 3 == 0 ? 4096 : VELO_INLINE_BYTES;

    return sizeof(id) + (size_t)((bits >> 8) % (max_bytes - sizeof(id) + 1));
}

static void build(void *buf, struct numbered id)
{
    memcpy(buf, &id, sizeof(id));
    pattern_fill((char *)buf + sizeof(id), len_of(id) - sizeof(id), seed_of(id));
}

/* Send one message by one of the three ways. */
static void send_numbered(struct velo_conn *conn, struct numbered id)
{
    uint8_t tag = pattern_tag(seed_of(id));
    size_t len = len_of(id);
    char buf[4096];
    void *place;
    int status;

    switch (id.number % 3) {
    case 0:
        build(buf, id);
        CHECK_OK(velo_send(conn, buf, len, tag, VELO_FOREVER));
        break;
    case 1:
        build(buf, id);
        while ((status = velo_try_send(conn, buf, len, tag)) == VELO_AGAIN)
            ;
        CHECK_OK(status);
        break;
    default: /* Every other time more is reserved than committed. */
        CHECK_OK(velo_reserve(conn, id.number % 2 ? len : 4096, &place, VELO_FOREVER));
        build(place, id);
        CHECK_OK(velo_commit(conn, len, tag));
    }
}

/* ---- the victim ------------------------------------------------------------------------------ */

static struct ledger *hook_ledger;
static uint32_t hook_visits;
static int hook_signal;

static void strike(unsigned point)
{
    if (point != atomic_load(&hook_ledger->strike_point) ||
        ++hook_visits != atomic_load(&hook_ledger->strike_visit))
        return;
    atomic_fetch_add(&hook_ledger->struck[point], 1);
    kill(getpid(), hook_signal);
}

/* The dead still fill the peer's table until it looks for them: then this takes a moment. */
static struct velo_conn *connect_patiently(struct velo_port *port)
{
    int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;
    struct velo_conn *conn = NULL;
    int status;

    do {
        status = velo_connect(port, VELO_ID(0, RECEIVER), &conn, TEST_PATIENCE_NS);
        CHECK(test_now_ns() < end_ns);
    } while (status == VELO_ERR_FULL);
    CHECK_OK(status);
    return conn;
}

static void be_the_victim(const struct plan *plan, uint32_t run)
{
    struct velo_port *port = port_open(VICTIM);

    futex_forever = plan->quiet; /* The receiver must not forget to wake a sender, either. */
    hook_ledger = plan->ledger;
    hook_signal = plan->signal;
    velo_test_hook = plan->rounds == 0 ? strike : NULL;
    struct velo_conn *conn = connect_patiently(port);
    for (uint32_t i = 0; plan->msgs == 0 || i < plan->msgs; i++) {
        send_numbered(conn, (struct numbered){run, i});
        atomic_store(&plan->ledger->sent[run], i + 1);
    }
    CHECK_OK(velo_disconnect(conn));
    velo_test_hook = NULL;
    CHECK_OK(velo_port_close(port));
}

static pid_t victim_start(const struct plan *plan, uint32_t run)
{
    pid_t victim = fork();

    CHECK(victim >= 0);
    if (victim == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* Nobody would continue one that is stopped. */
        be_the_victim(plan, run);
        _exit(0);
    }
    return victim;
}

/* ---- the conductor and the bystander --------------------------------------------------------- */

static void await(const atomic_uint *received, uint32_t least, const char *of, uint32_t run)
{
    for (int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS; atomic_load(received) < least;) {
        if (test_now_ns() > end_ns)
            test_fail(__FILE__, __LINE__, "run %u: of %u messages of the %s only %u arrive", run,
                      least, of, atomic_load(received));
        test_sleep_ns(20 * TEST_US);
    }
}

struct conductor {
    const struct plan *plan;
    struct velo_conn *conn;
    uint32_t sent;
};

/* Others are served: some messages of the conductor and, if it streams, of the bystander. */
static void check_that_others_go_on(struct conductor *self, uint32_t msgs, uint32_t run)
{
    struct ledger *ledger = self->plan->ledger;
    uint32_t bystander = atomic_load(&ledger->received_of[BYSTANDER]);

    for (uint32_t i = 0; i < msgs; i++)
        send_numbered(self->conn, (struct numbered){0, self->sent++});
    await(&ledger->received_of[CONDUCTOR], self->sent, "conductor", run);
    if (!self->plan->quiet)
        await(&ledger->received_of[BYSTANDER], bystander + 20, "bystander", run);
}

/* Wait until a victim has ended, or stopped if asked for. */
static int victim_wait(pid_t victim, int options, uint32_t run)
{
    int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;
    int status;
    pid_t got;

    while ((got = waitpid(victim, &status, options | WNOHANG)) == 0) {
        if (test_now_ns() > end_ns)
            test_fail(__FILE__, __LINE__, "run %u: the victim hangs", run);
        test_sleep_ns(50 * TEST_US);
    }
    CHECK_EQ(got, victim);
    return status;
}

/* Returns whether the victim was struck, and not done before. */
static bool conduct_one(struct conductor *self, pid_t victim, uint32_t run)
{
    struct ledger *ledger = self->plan->ledger;
    int status = victim_wait(victim, WUNTRACED, run);
    bool struck = WIFSTOPPED(status) || WIFSIGNALED(status);

    if (WIFSTOPPED(status)) {
        check_that_others_go_on(self, 30, run);
        kill(victim, SIGCONT);
        status = victim_wait(victim, 0, run);
    }
    if (WIFSIGNALED(status)) {
        CHECK_EQ(WTERMSIG(status), SIGKILL);
    } else {
        CHECK_EQ(status, 0);
        CHECK_EQ(atomic_load(&ledger->sent[run]), self->plan->msgs);
    }
    check_that_others_go_on(self, 1, run);
    await(&ledger->received[run], atomic_load(&ledger->sent[run]), "victim", run);
    return struck;
}

/* Strike at each point, the first time a victim comes there, the second, ... until victims are done
 * before. What a victim meets varies (whether it has to wait for room, say), hence more than one.
 */
static void strike_everywhere(struct conductor *self)
{
    struct ledger *ledger = self->plan->ledger;
    uint32_t run = 0;

    for (unsigned point = 0; point < POINTS; point++) {
        uint32_t done_before = 0;

        atomic_store(&ledger->strike_point, point);
        atomic_store(&ledger->strike_visit, 1);
        while (done_before < 3 || (atomic_load(&ledger->struck[point]) == 0 && done_before < 500)) {
            CHECK(++run < RUNS_MAX);
            if (conduct_one(self, victim_start(self->plan, run), run)) {
                atomic_fetch_add(&ledger->strike_visit, 1);
                done_before = 0;
            } else {
                done_before++;
            }
        }
        if (atomic_load(&ledger->struck[point]) == 0)
            test_fail(__FILE__, __LINE__, "no victim ever came to point %u", point);
    }
}

/* Strike after random times, sometimes more than once. */
static void strike_at_random(struct conductor *self)
{
    struct rng rng = {test_seed()};

    for (uint32_t run = 1; run <= self->plan->rounds; run++) {
        pid_t victim = victim_start(self->plan, run);

        if (rng_below(&rng, 4) != 0) /* Else it is struck wherever it is, even before it opens. */
            await(&self->plan->ledger->sent[run], 1, "victim", run);
        while (rng_below(&rng, 3) == 0) {
            test_sleep_ns(rng_below(&rng, 500000));
            kill(victim, SIGSTOP);
            check_that_others_go_on(self, 1, run);
            kill(victim, SIGCONT);
        }
        test_sleep_ns(rng_below(&rng, 2000000));
        kill(victim, SIGKILL);
        conduct_one(self, victim, run);
    }
}

static void conduct(void *arg)
{
    const struct plan *plan = arg;
    struct velo_port *port = port_open(CONDUCTOR);
    struct conductor self = {plan, connect_patiently(port), 0};

    if (plan->rounds == 0)
        strike_everywhere(&self);
    else
        strike_at_random(&self);
    atomic_store(&plan->ledger->done, 1);
    send_numbered(self.conn, (struct numbered){0, self.sent}); /* Wakes the receiver to see it. */
    CHECK_OK(velo_port_close(port));
}

static void stream(void *arg)
{
    const struct plan *plan = arg;
    struct velo_port *port = port_open(BYSTANDER);
    struct velo_conn *conn = connect_patiently(port);

    for (uint32_t i = 0; atomic_load(&plan->ledger->done) == 0; i++)
        send_numbered(conn, (struct numbered){0, i});
    CHECK_OK(velo_port_close(port));
}

/* ---- the receiver ---------------------------------------------------------------------------- */

static uint32_t check_message(struct ledger *ledger, const struct velo_msg *msg)
{
    struct numbered id;
    uint32_t expected;

    CHECK(msg->len_bytes >= sizeof(id));
    memcpy(&id, msg->data, sizeof(id));
    CHECK_EQ(msg->len_bytes, len_of(id));
    CHECK_EQ(msg->tag, pattern_tag(seed_of(id)));
    CHECK(pattern_matches((const char *)msg->data + sizeof(id), msg->len_bytes - sizeof(id),
                          seed_of(id)));
    CHECK(msg->source >= CONDUCTOR && msg->source <= VICTIM);
    CHECK(msg->source == VICTIM ? id.run >= 1 && id.run < RUNS_MAX : id.run == 0);
    expected = msg->source == VICTIM ? atomic_fetch_add(&ledger->received[id.run], 1)
                                     : atomic_fetch_add(&ledger->received_of[msg->source], 1);
    CHECK_EQ(id.number, expected);
    return id.number;
}

static void check_victims(const struct ledger *ledger)
{
    for (uint32_t run = 0; run < RUNS_MAX; run++) {
        uint32_t sent = atomic_load(&ledger->sent[run]);
        uint32_t received = atomic_load(&ledger->received[run]);

        CHECK(received >= sent);
        CHECK(received <= sent + 1);
    }
}

static bool has_ended(pid_t child, bool *well)
{
    siginfo_t info = {0};

    CHECK_EQ(waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT), 0);
    *well = info.si_status == 0;
    return info.si_pid == child;
}

/* A conductor that has failed sends nothing more: end the test, or the receiver would wait. */
static pid_t conductor;

static void on_child_signal(int signal)
{
    static const char text[] = "the conductor failed; what it said is above\n";
    bool well;

    (void)signal;
    if (has_ended(conductor, &well) && !well) {
        (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
        _exit(1);
    }
}

static void receive_until_the_end(struct velo_port *port, const struct plan *plan, pid_t bystander)
{
    struct ledger *ledger = plan->ledger;
    struct velo_msg msg;
    bool well;

    futex_forever = plan->quiet;
    for (;;) {
        bool done = atomic_load(&ledger->done) != 0; /* One more message comes after that. */
        int status = velo_peek(port, &msg, done ? 50 * TEST_MS : VELO_FOREVER);

        if (status == VELO_TIMEOUT) {
            if (has_ended(conductor, &well) && (plan->quiet || has_ended(bystander, &well)))
                break;
            continue;
        }
        if (status == VELO_ERR_INTERRUPTED)
            continue; /* By on_child_signal(). */
        CHECK_OK(status);
        /* Leave the victim to fill its ring once, and to wait for room. */
        if (check_message(ledger, &msg) == 20 && msg.source == VICTIM)
            test_sleep_ns(TEST_MS);
        CHECK_OK(velo_release(port));
    }
    futex_forever = false;
}

static uint32_t strikes(const struct ledger *ledger)
{
    uint32_t sum = 0;

    for (unsigned point = 0; point < POINTS; point++)
        sum += atomic_load(&ledger->struck[point]);
    return sum;
}

static struct velo_port_counters run_plan(struct plan plan)
{
    struct velo_port_counters counters;
    pid_t bystander = 0;

    plan.ledger = test_shared_alloc(sizeof(*plan.ledger));
    if (plan.quiet)
        setenv("VELO_SPIN_NS", "0", 1);
    /* Room for the conductor, the bystander, a victim, and one that is dead. */
    struct velo_port *port = port_open_sized(RECEIVER, 8, 16384, 4);
    if (plan.quiet)
        unsetenv("VELO_SPIN_NS");

    if (!plan.quiet)
        bystander = child_start(stream, &plan);
    conductor = child_start(conduct, &plan);
    signal(SIGCHLD, on_child_signal);
    on_child_signal(SIGCHLD); /* In case it has ended already. */
    receive_until_the_end(port, &plan, bystander);
    signal(SIGCHLD, SIG_DFL);
    child_join(conductor);
    if (!plan.quiet)
        child_join(bystander);

    check_victims(plan.ledger);
    CHECK_OK(velo_port_counters(port, &counters, sizeof counters));
    CHECK_EQ(counters.rx_errors, 0);
    printf("%u victims were struck, %llu connections reclaimed\n", strikes(plan.ledger),
           (unsigned long long)counters.rx_reclaimed);
    CHECK_OK(velo_port_close(port));
    CHECK_OK(velo_port_close(port_open(VICTIM))); /* The last victim left its segment. */
    return counters;
}

static struct velo_port_counters strike_at_each_point(int signal, bool quiet)
{
    return run_plan((struct plan){
        .signal = signal, .quiet = quiet, .msgs = from_environment("VELO_KILL_MSGS", 100)});
}

TEST(a_sender_killed_at_any_point_harms_no_other)
{
    struct velo_port_counters counters = strike_at_each_point(SIGKILL, false);

    CHECK(counters.rx_reclaimed >= 200);
}

TEST(a_sender_killed_at_any_point_takes_no_wake_up_with_it)
{
    struct velo_port_counters counters = strike_at_each_point(SIGKILL, true);

    CHECK(counters.rx_reclaimed >= 200);
    CHECK(counters.rx_sleeps >= 200);
}

TEST(a_sender_stopped_at_any_point_delays_no_other_and_loses_nothing)
{
    struct velo_port_counters counters = strike_at_each_point(SIGSTOP, false);

    CHECK_EQ(counters.rx_reclaimed, 0);
}

TEST(a_sender_stopped_at_any_point_withholds_no_wake_up)
{
    struct velo_port_counters counters = strike_at_each_point(SIGSTOP, true);

    CHECK_EQ(counters.rx_reclaimed, 0);
    CHECK(counters.rx_sleeps >= 200);
}

TEST(senders_stopped_and_killed_at_random_harm_no_other)
{
    run_plan((struct plan){.signal = SIGKILL, .rounds = from_environment("VELO_KILL_ROUNDS", 300)});
}

TEST(senders_stopped_and_killed_at_random_take_no_wake_up_with_them)
{
    run_plan((struct plan){
        .signal = SIGKILL, .quiet = true, .rounds = from_environment("VELO_KILL_ROUNDS", 300)});
}
