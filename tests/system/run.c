/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

enum { ACTIONS_MAX = 64, SETTLE_ROUNDS = 14, DRAIN_ROUNDS = 400, QUIET_ROUNDS = 8 };

struct run run;

/* How often what happens in this run: drawn anew for each, so that each leaves other things out. */
static struct {
    struct action actions[ACTIONS_MAX];
    uint32_t actions_len;
    uint32_t weight; /* Of all of them. */
    uint32_t kills;  /* In 1000 steps; */
    uint32_t opens;  /* and so on. */
    uint32_t closes;
    uint32_t rests;
    uint32_t settles;
    uint32_t rma_percent;
    uint32_t attach_percent;
    uint32_t stops;      /* In the middle of calls. */
    uint32_t deadliness; /* Of calls, in which processes are killed. */
} habits;

/* ---- what this run is like ------------------------------------------------------------------- */

static bool is_left_out(const char *name)
{
    for (uint32_t i = 0; i < run.options->without_len; i++)
        if (strcmp(run.options->without[i], name) == 0)
            return true;
    return false;
}

static void adopt(const struct action *actions)
{
    static const uint32_t times[] = {0, 1, 2, 2, 2, 4, 8};

    for (; actions->name != NULL; actions++) {
        struct action *action = &habits.actions[habits.actions_len++];
        *action = *actions;
        /* The most frequent actions are never left out: without them nothing happens. */
        uint32_t factor = times[below(ARRAY_LEN(times))];
        action->weight *= factor == 0 && action->weight >= 30 ? 1 : factor;
        if (is_left_out(action->name))
            action->weight = 0;
        habits.weight += action->weight;
    }
}

static void draw_habits(void)
{
    static const uint32_t kills[] = {2, 5, 15, 30};
    static const char *const spins_ns[] = {"0", "3000", "50000"};
    unsigned families = run.options->families;

    memset(&habits, 0, sizeof habits);
    habits.kills = run.options->is_calm ? 0 : kills[below(ARRAY_LEN(kills))];
    habits.deadliness = run.options->is_calm ? 0 : below(4);
    habits.stops = below(3);
    habits.attach_percent = 40 * below(3);
    habits.opens = 40;
    habits.closes = run.options->is_calm ? 0 : 1 + below(8);
    habits.rests = 5 + below(20);
    habits.settles = 1 + below(8);
    habits.rma_percent = (families & MEMORY) ? 85 : 50;
    if (families & MESSAGES)
        adopt(message_actions);
    if (families & QUEUES)
        adopt(queue_actions);
    if (families & MEMORY)
        adopt(memory_actions);
    if (families & EDGES)
        adopt(edge_actions);
    run.is_calm = run.options->is_calm;
    run.has_edges = families & EDGES;
    run.is_plain = run.has_edges && chance(families == ALL ? 20 : 60);
    run.signal_percent = 3 * below(5);
    if (run.is_plain)
        habits.rma_percent = 0;
    run.vpids = 2 + below(VPIDS - 1);
    for (uint32_t vpid = 0; vpid < run.vpids; vpid++)
        run.is_queue[vpid] = !run.is_plain && (families & QUEUES) &&
                             (!(families & (MESSAGES | EDGES)) || chance(60));
    setenv("VELO_SPIN_NS", spins_ns[below(ARRAY_LEN(spins_ns))], 1);
}

static struct shape draw_shape(uint32_t vpid)
{
    static const uint32_t depths[] = {8, 8, 16, 64};
    static const uint32_t conns[] = {2, 4, 8, 64};
    static const uint32_t eagers[] = {64, 512, 3000, 4064};
    static const uint64_t gets[] = {0, 1, 8192};
    static const uint64_t bounds[] = {8192, 16384, 16384, 65536};
    static const int paths[] = {VELO_MQ_PATH_AUTO, VELO_MQ_PATH_COPY, VELO_MQ_PATH_GET};
    struct shape shape = {
        .depth_slots = depths[below(ARRAY_LEN(depths))],
        .data_bytes = 16384,
        .conns_max = conns[below(ARRAY_LEN(conns))],
        .eager_bytes = eagers[below(ARRAY_LEN(eagers))],
        .get_bytes = gets[below(ARRAY_LEN(gets))],
        .unexpected_bytes = bounds[below(ARRAY_LEN(bounds))],
        .unexpected_limit_bytes = (uint64_t)16 << 20, /* More than is ever under way. */
        .path = paths[below(ARRAY_LEN(paths))],
        .is_mq = run.is_queue[vpid],
        .tells_departures = !run.is_queue[vpid] && chance(50),
        .has_rma = chance(habits.rma_percent),
        .may_attach = chance(habits.attach_percent),
    };

    /* Queues and units make connections of their own, which the model does not count. */
    if (shape.is_mq || shape.has_rma)
        shape.conns_max = 128;
    return shape;
}

uint32_t draw_death(uint32_t percent, uint32_t points)
{
    return !run.is_quiet && chance(percent * habits.deadliness) ? 1 + below(points) : 0;
}

/* A process does not stop where another could have to wait for it: the owner that ends a
 * registration waits for operations on it. It does not stop in a close, either: until that is over
 * the port is neither open nor closed. */
uint32_t draw_stop(const struct seat *seat, const struct command *command)
{
    bool may_stop =
        command->act >= ACT_CONNECT && (command->act <= ACT_ARM || command->act > ACT_FORK) &&
        command->act < (seat->generation->shape.has_rma ? ACT_MQ_CONNECT : ACT_RMA_CONNECT);

    if (!may_stop || run.is_quiet || run.stopped == STOPPED_MAX || !chance(2 * habits.stops))
        return 0;
    return 1 + below(8);
}

/* ---- ports ----------------------------------------------------------------------------------- */

/* A port that opens a dead port's id marks that one dead before it takes its file away, so that the
 * dead port's senders know. */
static void note_replaced(uint32_t vpid)
{
    for (struct generation *old = run.generations; old != NULL; old = old->next)
        if (old->vpid == vpid && old->state == DIED && !old->is_hidden && old->replaced_step == 0)
            old->replaced_step = run.step;
}

static void open_port(struct seat *seat, uint32_t vpid)
{
    struct generation *owner = run.by_vpid[vpid];
    struct command command = {.act = ACT_PORT_OPEN, .vpid = vpid, .shape = draw_shape(vpid)};

    story_step(owner, NULL, "process %u opens id %u (%s%s%s), which %s has", seat->process->number,
               vpid, command.shape.is_mq ? "queues" : "messages",
               command.shape.has_rma ? ", RMA" : "", command.shape.may_attach ? ", attach" : "",
               name_of(owner));
    (void)tell(seat, &command);
    int status = reply_of(seat)->status;
    story_status(status);
    if (edges_excuse(seat, status))
        return;
    if (status != (owner == NULL ? VELO_OK : VELO_ERR_IN_USE))
        fail_run(owner, NULL, "opening a port gave %s: %s", status_name(status),
                 reply_of(seat)->error);
    if (status == VELO_OK) {
        generation_begin(seat, vpid, &command.shape)->word = reply_of(seat)->generation;
        story_outcome(", generation %u", seat->generation->number);
        note_replaced(vpid);
    }
}

static void close_port(struct seat *seat)
{
    struct command command = {.act = ACT_PORT_CLOSE, .die_at = draw_death(10, 25)};

    story_step(seat->generation, NULL, "%s is closed", name_of(seat->generation));
    seat->generation->is_unclear = true;
    if (!tell(seat, &command))
        return;
    if (reply_of(seat)->status != VELO_OK)
        fail_run(seat->generation, NULL, "closing gave %s", status_name(reply_of(seat)->status));
    generation_end(seat, CLOSED);
}

static void kill_process(struct process *process)
{
    story_step(process->seats[0].generation, process->seats[1].generation, "process %u is killed",
               process->number);
    for (uint32_t i = 0; i < SEATS; i++)
        if (process->seats[i].generation != NULL)
            story_outcome(", and %s with it", name_of(process->seats[i].generation));
    process_kill(process);
}

void replace_port(struct seat *seat)
{
    uint32_t vpid = seat->generation->vpid;

    kill_process(seat->process);
    for (int tries = 0; tries < 10; tries++) {
        struct seat *next = &run.processes[below(PROCESSES)].seats[below(SEATS)];
        if (next->process->is_busy || next->generation != NULL)
            continue;
        if (next->process->pid == 0)
            process_start(next->process);
        open_port(next, vpid);
        return;
    }
}

static void rest(int64_t duration_ns)
{
    story_step(NULL, NULL, "%lld ms go by", (long long)(duration_ns / TEST_MS));
    run.sundial->now_ns += duration_ns;
}

/* ---- everybody acts -------------------------------------------------------------------------- */

/* Let everybody do what can be done without the program asking for more; then look. */
static void settle(void)
{
    uint32_t quiet = 0;

    story_step(NULL, NULL, "everybody has time to act");
    run.is_quiet = true;
    for (uint32_t round = 0; round < DRAIN_ROUNDS && quiet < SETTLE_ROUNDS; round++) {
        bool any = false;
        for (struct seat *seat = seat_next(NULL); seat != NULL; seat = seat_next(seat)) {
            if (seat->generation->shape.is_mq)
                any |= queues_settle(seat);
            (void)memory_progress(seat, 4);
        }
        rest(30 * TEST_MS);
        quiet = any ? 0 : quiet + 1;
    }
    queues_settled();
    for (uint32_t i = 0; i < PROCESSES; i++)
        if (run.processes[i].pid != 0)
            blocks_check(&run.processes[i]);
    run.is_quiet = false;
}

/* Everything that was sent must arrive, and everything that was begun must end. */
static void drain(void)
{
    uint32_t quiet = 0;

    story_step(NULL, NULL, "the end: everything is received");
    edges_finish();
    edges_relief();
    run.is_quiet = true;
    for (struct seat *seat = seat_next(NULL); seat != NULL; seat = seat_next(seat))
        queues_stop_receiving(seat);
    for (uint32_t round = 0; round < DRAIN_ROUNDS && quiet < QUIET_ROUNDS; round++) {
        bool any = false;
        for (struct seat *seat = seat_next(NULL); seat != NULL; seat = seat_next(seat)) {
            any |= messages_drain(seat);
            any |= queues_drain(seat);
            any |= memory_drain(seat);
        }
        rest(30 * TEST_MS);
        quiet = any ? 0 : quiet + 1;
    }
    for (struct seat *seat = seat_next(NULL); seat != NULL; seat = seat_next(seat)) {
        messages_drained(seat);
        queues_drained(seat);
        memory_drained(seat);
    }
}

/* The next processes that need a name remove what dead processes left under it. */
static void end(void)
{
    for (struct seat *seat = seat_next(NULL); seat != NULL; seat = seat_next(seat))
        close_port(seat);
    struct process *process = &run.processes[0];
    if (process->pid == 0)
        process_start(process);
    for (uint32_t vpid = 0; vpid < run.vpids; vpid++) {
        habits.rma_percent = 100;
        open_port(&process->seats[0], vpid);
        close_port(&process->seats[0]);
    }
    for (uint32_t i = 0; i < PROCESSES; i++) {
        if (run.processes[i].pid == 0)
            continue;
        blocks_check(&run.processes[i]);
        edges_count_descriptors(&run.processes[i]);
    }
}

/* ---- the run --------------------------------------------------------------------------------- */

static struct seat *some_seat(void) { return &run.processes[below(PROCESSES)].seats[below(SEATS)]; }

static const struct action *some_action(void)
{
    uint32_t at = below(habits.weight);
    const struct action *action = habits.actions;

    while (at >= action->weight)
        at -= action++->weight;
    return action;
}

static void act(void)
{
    for (int tries = 0; tries < 200; tries++) {
        const struct action *action = some_action();
        struct seat *seat = some_seat();
        if (seat->generation != NULL && !seat->process->is_busy && action->step(seat))
            return;
    }
}

/* A port opens, mostly one that nobody has. */
static bool try_open(void)
{
    struct seat *seat = some_seat();
    uint32_t vpid = below(run.vpids);

    if (seat->process->pid == 0)
        process_start(seat->process);
    if (seat->process->is_busy || seat->generation != NULL ||
        (run.by_vpid[vpid] != NULL && chance(95)))
        return false;
    open_port(seat, vpid);
    return true;
}

static bool happens(uint32_t *at, uint32_t weight)
{
    bool does = *at < weight;

    *at -= does ? 0 : weight;
    return does;
}

static void one_step(void)
{
    static const int64_t rests_ms[] = {1, 30, 150, 1200};
    uint32_t at = below(1000);
    edges_tick();
    struct seat *seat = some_seat();
    bool is_there = seat->generation != NULL && !seat->process->is_busy;

    if (happens(&at, habits.kills)) {
        if (is_there)
            kill_process(seat->process);
    } else if (happens(&at, habits.opens)) {
        for (int tries = 0; tries < 10 && !try_open(); tries++)
            ;
    } else if (happens(&at, habits.closes)) {
        if (is_there)
            close_port(seat);
    } else if (happens(&at, habits.rests)) {
        rest(rests_ms[below(ARRAY_LEN(rests_ms))] * TEST_MS);
    } else if (happens(&at, habits.settles)) {
        if (run.stopped == 0)
            settle();
    } else {
        act();
    }
}

void others_move(void)
{
    run.stopped++;
    for (uint32_t left = 1 + below(25); left > 0; left--) {
        run.step++;
        one_step();
    }
    run.stopped--;
}

void run_once(const struct options *options, uint64_t seed)
{
    run.options = options;
    run.seed = seed;
    run.rng = (struct rng){seed};
    run.digest = run.step = run.serial = 0;
    run.stopped = 0;
    run.generations_count = 0;
    run.generations = NULL;
    run.is_quiet = false;
    memset(run.by_vpid, 0, sizeof run.by_vpid);
    memory_begin();
    edges_begin();
    story_begin();
    stage_open();
    draw_habits();
    while (++run.step <= options->steps)
        one_step();
    drain();
    end();
    stage_close();
}
