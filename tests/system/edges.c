/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens to processes beside their calls: signals whose handlers use the library, descriptors
 * that run out, forks, event loops, files that somebody removes, a file system that is full,
 * receivers that are replaced the moment they are killed. None of it may lose a message, a wake-up
 * or a descriptor, or reach another port.
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "run.h"

/* STANDS_STEPS: longer than a call stands still. */
enum { CHILDREN_MAX = 16, POINTS = 12, STORM = 40, STANDS_STEPS = 64 };

static int64_t children[CHILDREN_MAX]; /* Those that stay. */
static uint32_t children_len;
static uint64_t room_came_step;

/* ---- event loops ----------------------------------------------------------------------------- */

/* Is a message there that the port must tell of? */
static bool has_message(const struct generation *generation) { return messages_due(generation); }

void edges_rings(struct generation *generation) { generation->is_due |= generation->is_armed; }

void edges_awake(struct generation *generation)
{
    generation->is_armed = generation->is_due = false;
}

/* The descriptor of an armed port must be readable once there is a reason. */
static bool look(struct seat *seat)
{
    struct command command = {.act = ACT_LOOK};
    struct generation *generation = seat->generation;

    if (!generation->is_armed)
        return false;
    story_step(generation, NULL, "%s looks at its descriptor", name_of(generation));
    (void)tell(seat, &command);
    story_status(reply_of(seat)->status);
    if (generation->is_due && reply_of(seat)->status != VELO_OK)
        fail_run(generation, NULL,
                 "%s sleeps on its descriptor, which does not become readable, though a message "
                 "or an interrupt has come since",
                 name_of(generation));
    return true;
}

void edges_begin(void) { room_came_step = 0; }

static bool step_look(struct seat *seat) { return look(seat); }

static bool step_arm(struct seat *seat)
{
    struct command command = {.act = ACT_ARM, .die_at = draw_death(2, 4)};
    struct generation *generation = seat->generation;

    if (generation->shape.is_mq)
        return false;
    story_step(generation, NULL, "%s arms its descriptor", name_of(generation));
    edges_awake(generation);
    if (!tell(seat, &command))
        return true;
    int status = reply_of(seat)->status;
    story_status(status);
    if (status == VELO_OK) {
        generation->is_armed = true;
        generation->is_due = generation->is_interrupted || has_message(generation);
        return !generation->is_due || look(seat);
    }
    if (status == VELO_ERR_INTERRUPTED)
        edges_interrupted(seat);
    else if (status != VELO_AGAIN && !edges_excuse(seat, status))
        fail_run(generation, NULL, "velo_port_arm gave %s", status_name(status));
    return true;
}

void edges_finish(void)
{
    for (struct seat *seat = seat_next(NULL); seat != NULL; seat = seat_next(seat))
        (void)look(seat);
}

/* ---- interrupts ------------------------------------------------------------------------------ */

/* An interrupt also ends waits of a port's unit and queues, which the models do not expect. */
static bool may_be_interrupted(const struct seat *seat)
{
    return seat->generation != NULL && !seat->generation->shape.is_mq &&
           !seat->generation->shape.has_rma;
}

static bool step_interrupt(struct seat *seat)
{
    struct command command = {.act = ACT_INTERRUPT};
    struct generation *generation = seat->generation;

    if (!may_be_interrupted(seat))
        return false;
    story_step(generation, NULL, "%s is interrupted", name_of(generation));
    (void)tell(seat, &command);
    generation->is_interrupted = true;
    edges_rings(generation);
    return true;
}

void edges_interrupted(struct seat *seat)
{
    if (!seat->generation->is_interrupted && reply_of(seat)->signals == 0)
        fail_run(seat->generation, NULL, "a wait of %s was interrupted by nobody",
                 name_of(seat->generation));
    seat->generation->is_interrupted = false;
}

void edges_waited(const struct seat *seat)
{
    if (seat->generation->is_interrupted)
        fail_run(seat->generation, NULL, "the interrupt of %s is lost: its wait ran out of time",
                 name_of(seat->generation));
}

/* ---- signals --------------------------------------------------------------------------------- */

/* The other port of the process, with a connection: what the handler may use. */
static struct conn *draw_conn(struct seat *seat, struct command *command)
{
    struct seat *other = &seat->process->seats[(seat->index + 1) % SEATS];
    uint32_t handle = below(CONNS);

    if (other->generation == NULL || other->generation->shape.is_mq || other->conns[handle] == NULL)
        return NULL;
    command->signal.seat = other->index;
    command->signal.handle = handle;
    return other->conns[handle];
}

struct conn *edges_draw_signal(struct seat *seat, struct command *command, struct item **item)
{
    bool may_come = run.has_edges && !run.is_quiet && command->act >= ACT_CONNECT &&
                    command->act <= ACT_ARM && command->die_at == 0 && command->stop_at == 0;

    if (!may_come || !chance(run.signal_percent))
        return NULL;
    command->signal.at = 1 + below(POINTS);
    command->signal.times = chance(30) ? STORM : 1;
    struct conn *conn = chance(50) ? draw_conn(seat, command) : NULL;
    command->signal.act = conn != NULL && (*item = messages_prepare(seat, conn, command)) != NULL
                              ? SIGNAL_SEND
                          : may_be_interrupted(seat) ? SIGNAL_INTERRUPT
                                                     : SIGNAL_NOTHING;
    story_outcome(" (%s %u signal%s, %s)", command->signal.times > 1 ? "a storm of" : "with",
                  command->signal.times, command->signal.times > 1 ? "s" : "",
                  command->signal.act == SIGNAL_SEND        ? "whose handler sends"
                  : command->signal.act == SIGNAL_INTERRUPT ? "whose handler interrupts"
                                                            : "whose handler does nothing");
    return command->signal.act == SIGNAL_SEND ? conn : NULL;
}

void edges_signalled(struct seat *seat, const struct command *command, struct conn *conn,
                     struct item *item)
{
    const struct reply *reply = reply_of(seat);

    if (command->signal.at == 0)
        return;
    if (reply->signals > 0 && command->signal.act == SIGNAL_INTERRUPT)
        seat->generation->is_interrupted = true;
    if (command->signal.act == SIGNAL_SEND)
        messages_by_handler(&seat->process->seats[command->signal.seat], conn, item,
                            reply->signals > 0 ? reply->signal_status : VELO_AGAIN,
                            command->signal.buf);
}

/* ---- what a process has ---------------------------------------------------------------------- */

bool edges_excuse(const struct seat *seat, int status)
{
    return (seat->process->has_few_files && status == VELO_ERR_SYSTEM) ||
           (status == VELO_ERR_NO_SPACE &&
            (run.sundial->is_full ||
             (room_came_step > 0 && run.step < room_came_step + STANDS_STEPS)));
}

static bool step_descriptors(struct seat *seat)
{
    struct process *process = seat->process;
    struct command command = {.act = ACT_DESCRIPTORS_END, .count = below(4)};

    if (!run.is_plain || process->has_few_files)
        return false;
    story_step(NULL, NULL, "process %u has %u descriptors left", process->number, command.count);
    (void)tell(seat, &command);
    process->has_few_files = true;
    return true;
}

static bool step_room(struct seat *seat)
{
    (void)seat;
    if (!run.is_plain)
        return false;
    run.sundial->is_full = !run.sundial->is_full;
    room_came_step = run.step;
    story_step(NULL, NULL, "the file system %s", run.sundial->is_full ? "is full" : "has room");
    return true;
}

static void relieve(struct process *process)
{
    struct command command = {.act = ACT_DESCRIPTORS_COME};

    if (process->pid == 0 || !process->has_few_files || process->is_busy)
        return;
    story_step(NULL, NULL, "process %u has descriptors again", process->number);
    (void)tell(&process->seats[0], &command);
    process->has_few_files = false;
}

void edges_relief(void)
{
    run.sundial->is_full = false;
    for (uint32_t i = 0; i < PROCESSES; i++)
        relieve(&run.processes[i]);
}

void edges_tick(void)
{
    if (!run.is_plain || !chance(2))
        return;
    if (run.sundial->is_full)
        (void)step_room(NULL);
    relieve(&run.processes[below(PROCESSES)]);
}

void edges_count_descriptors(struct process *process)
{
    struct command command = {.act = ACT_DESCRIPTORS_COUNT};

    story_step(NULL, NULL, "process %u counts its descriptors", process->number);
    (void)tell(&process->seats[0], &command);
    int64_t count = process->desk->reply.child;
    if (count != 0)
        fail_run(NULL, NULL, "process %u has no port, but %lld descriptors more than it began with",
                 process->number, (long long)count);
}

/* ---- forks ----------------------------------------------------------------------------------- */

static bool step_fork(struct seat *seat)
{
    static const char *const what[] = {"leaves at once", "exits", "closes all that is its parent's",
                                       "uses what is its parent's", "stays"};
    struct command command = {.act = ACT_FORK, .count = below(CHILD_ACTS)};

    if (command.count == CHILD_STAYS && children_len == CHILDREN_MAX)
        return false;
    story_step(seat->generation, seat->process->seats[(seat->index + 1) % SEATS].generation,
               "process %u forks, and its child %s", seat->process->number, what[command.count]);
    (void)tell(seat, &command);
    int64_t child = reply_of(seat)->child;
    if (command.count == CHILD_STAYS)
        children[children_len++] = child;
    else if (child != 0)
        fail_run(seat->generation, NULL,
                 "%lld calls of a child about what is its parent's did not do as they should",
                 (long long)child);
    return true;
}

void edges_end_children(void)
{
    while (children_len > 0)
        (void)kill((pid_t)children[--children_len], SIGKILL);
}

/* ---- files and receivers --------------------------------------------------------------------- */

static void remove_doorbell(const struct generation *generation)
{
    char path[128];

    (void)snprintf(path, sizeof path, "%s/velo+bell.%08x", run.shm_dir, generation->word);
    (void)unlink(path);
}

/* As at a logout, or by somebody who cleans up: the port lives on for those that know it. */
static bool step_files(struct seat *seat)
{
    struct generation *generation = seat->generation;
    char path[128];

    if (!run.is_plain || generation->is_hidden)
        return false;
    story_step(generation, NULL, "the files of %s are removed", name_of(generation));
    (void)snprintf(path, sizeof path, "%s/velo.system.0.%u", run.shm_dir, generation->vpid);
    if (unlink(path) != 0)
        fail_run(generation, NULL, "the file of %s is not there", name_of(generation));
    remove_doorbell(generation);
    generation->is_hidden = true;
    run.by_vpid[generation->vpid] = NULL;
    return true;
}

/* The next that opens the id of a dead port takes away what is left of it, if there is its file. */
void edges_ended(const struct generation *generation)
{
    if (generation->is_hidden && generation->state == DIED)
        remove_doorbell(generation);
}

static bool step_replace(struct seat *seat)
{
    struct generation *generation = seat->generation;

    if (run.is_calm || generation->is_hidden)
        return false;
    replace_port(seat);
    return true;
}

const struct action edge_actions[] = {
    {"arm", step_arm, 40},    {"look", step_look, 20},
    {"fork", step_fork, 6},   {"interrupt", step_interrupt, 12},
    {"files", step_files, 3}, {"descriptors", step_descriptors, 8},
    {"room", step_room, 6},   {"replace", step_replace, 3},
    {NULL, NULL, 0},
};
