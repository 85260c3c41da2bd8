/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "clock.h"
#include "emit.h"
#include "hop.h"

#include <velo/velo.h>

#include <errno.h>
#include <linux/futex.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define WATCH_S 5
#define STALL_S 60
#define BARRIER_SPINS 20000u

static struct shared *shared;

/* --- inside a rank --------------------------------------------------------------------------- */

void rank_fail(int exit_code, const char *format, ...)
{
    uint32_t nobody = 0;
    if (atomic_compare_exchange_strong(&shared->failed, &nobody, 1)) {
        va_list args;
        va_start(args, format);
        vsnprintf(shared->error, sizeof shared->error, format, args);
        va_end(args);
    }
    _exit(exit_code);
}

static void futex_wait(_Atomic uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

void rank_barrier(struct rank *rank)
{
    struct barrier *barrier = &rank->shared->barrier;
    uint32_t generation = atomic_load(&barrier->generation);
    if (atomic_fetch_add(&barrier->arrived, 1) + 1 == barrier->parties) {
        atomic_store(&barrier->arrived, 0);
        atomic_store(&barrier->generation, generation + 1);
        if (atomic_load(&barrier->sleepers)) {
            syscall(SYS_futex, &barrier->generation, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
        }
        return;
    }
    for (uint32_t i = 0; i < barrier->spins; i++) {
        if (atomic_load(&barrier->generation) != generation) {
            return;
        }
        cpu_pause();
    }
    atomic_fetch_add(&barrier->sleepers, 1);
    while (atomic_load(&barrier->generation) == generation) {
        futex_wait(&barrier->generation, generation);
    }
    atomic_fetch_sub(&barrier->sleepers, 1);
}

void rank_pin(const struct options *options, unsigned index)
{
    unsigned cpu = options->cpus[index % options->cpus_count];
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
        rank_fail(EXIT_FAILED, "cannot run on CPU %u: %s; name allowed CPUs with --cpus", cpu,
                  strerror(errno));
    }
}

/* --- a step ---------------------------------------------------------------------------------- */

bool step_begin(struct rank *rank, const struct step *step)
{
    rank_barrier(rank); /* Orders rank 0's spent_ns before our look at it. */
    rank->step_begin_ns = now_ns();
    return rank->shared->spent_ns[step->point] < rank->options->time_ms * UINT64_C(1000000);
}

static void bracket_add(struct bracket *to, const struct bracket *from, double scale)
{
    to->hop_ns += from->hop_ns * scale;
    to->ring_ns += from->ring_ns * scale;
    to->ring_pause_ns += from->ring_pause_ns * scale;
    to->limit += from->limit * scale;
}

/* Sum or mean over the pairs; false if any pair's cores moved, or pairs differ in class. */
static bool findings_join(const struct rank *rank, const struct report *report,
                          struct finding *total, bool *near)
{
    const struct options *options = rank->options;
    unsigned near_pairs = 0;
    double scale = report->sum ? 1.0 : 1.0 / options->pairs;
    for (unsigned i = 0; i < options->pairs; i++) {
        const struct finding *finding = &rank->shared->finding[i];
        if (!hop_is_steady(finding->before.hop_ns, finding->after.hop_ns, options->near_ns)) {
            return false;
        }
        near_pairs += hop_is_near(finding->before.hop_ns, options->near_ns);
        bracket_add(&total->before, &finding->before, scale);
        bracket_add(&total->after, &finding->after, scale);
        total->value += finding->value * scale;
    }
    *near = near_pairs == options->pairs;
    return *near || near_pairs == 0;
}

static void step_emit(const struct rank *rank, const struct step *step, const struct report *report,
                      const struct finding *total, bool near)
{
    const struct finding *first = &rank->shared->finding[0];
    const struct point *point = &rank->plan->points[step->point];
    struct sample sample = {
        .metric = report->metric,
        .size_bytes = point->size_bytes,
        .senders = rank->options->senders[point->senders_index],
        .batch = step->batch,
        .value = total->value,
        .limit_name = report->limit_name,
        .limit_before = total->before.limit,
        .limit_after = total->after.limit,
        .near = near,
    };
    sample.extra[sample.extra_count++] =
        (struct extra){"hop_ns", (first->before.hop_ns + first->after.hop_ns) / 2};
    if (report->ring) {
        sample.extra[sample.extra_count++] =
            (struct extra){"ring_ns", (total->before.ring_ns + total->after.ring_ns) / 2};
        sample.extra[sample.extra_count++] = (struct extra){
            "ring_pause_ns", (total->before.ring_pause_ns + total->after.ring_pause_ns) / 2};
    }
    emit_sample(rank->options, &sample);
}

double step_end(struct rank *rank, const struct step *step, const struct report *report)
{
    struct finding total = {.value = 0};
    bool near;
    rank_barrier(rank);
    if (rank->index != 0) {
        return NAN;
    }
    bool kept = findings_join(rank, report, &total, &near);
    if (kept) {
        step_emit(rank, step, report, &total, near);
    } else {
        rank->shared->dropped++;
    }
    rank->shared->spent_ns[step->point] += now_ns() - rank->step_begin_ns;
    atomic_fetch_add(&rank->shared->progress, 1);
    return kept ? total.value : NAN;
}

/* --- the parent ------------------------------------------------------------------------------ */

struct children {
    pid_t pid[2 * PAIRS_MAX > PROCS_MAX ? 2 * PAIRS_MAX : PROCS_MAX];
    unsigned count;
    unsigned running;
    int exit_code;
};

static _Noreturn void child_run(const struct options *options, const struct plan *plan,
                                struct limit_area *area, struct limit_futex_box *boxes,
                                unsigned index, void (*body)(struct rank *))
{
    struct rank rank = {.options = options,
                        .plan = plan,
                        .shared = shared,
                        .index = index,
                        .pair = index / 2,
                        .side = index % 2,
                        .futex = {boxes, index, options_ranks(options), 0, 0}};
    rank_pin(options, index);
    limit_attach(&rank.limit, area, rank.side);
    body(&rank);
    exit(EXIT_OK);
}

static void children_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGCHLD);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGHUP);
}

/* Take the parent's place in the child: it dies with the parent, and Ctrl-C is the parent's call.
 */
static void child_enter(pid_t parent, const sigset_t *old_mask)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(EXIT_FAILED);
    }
    signal(SIGINT, SIG_IGN);
    sigprocmask(SIG_SETMASK, old_mask, NULL);
}

static void children_fork(struct children *children, const struct options *options,
                          const struct plan *plan, const sigset_t *old_mask,
                          void (*body)(struct rank *), struct meeting *meeting)
{
    pid_t parent = getpid();
    unsigned ranks = options_ranks(options);
    struct limit_futex_box *boxes = limit_futex_boxes_new(ranks);
    struct limit_area *area = meeting ? meeting_area(meeting) : NULL;
    for (unsigned i = 0; i < ranks && !children->exit_code; i++) {
        if (meeting && i != meeting_rank(meeting)) {
            continue;
        }
        area = i % 2 == 0 && !meeting ? limit_area_new() : area;
        fflush(NULL);
        pid_t pid = area && boxes ? fork() : -1;
        if (pid == 0) {
            child_enter(parent, old_mask);
            child_run(options, plan, area, boxes, i, body);
        }
        if (pid < 0) {
            snprintf(shared->error, sizeof shared->error, "cannot start process %u of %u: %s", i,
                     ranks, strerror(errno));
            children->exit_code = EXIT_FAILED;
            return;
        }
        children->pid[children->count++] = pid;
        children->running++;
    }
}

static void child_ended(struct children *children, pid_t pid, int status)
{
    for (unsigned i = 0; i < children->count; i++) {
        if (children->pid[i] == pid) {
            children->pid[i] = 0;
            children->running--;
        }
    }
    if (status == 0 || children->exit_code) {
        return;
    }
    children->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED;
    if (atomic_load(&shared->failed)) {
        return; /* The rank has printed the reason. */
    }
    if (WIFEXITED(status)) {
        snprintf(shared->error, sizeof shared->error, "a measuring process gave up, exit code %d",
                 WEXITSTATUS(status));
    } else {
        snprintf(shared->error, sizeof shared->error,
                 "a measuring process was ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    }
}

static void children_reap(struct children *children, int flags)
{
    int status;
    pid_t pid;
    while (children->running && (pid = waitpid(-1, &status, flags)) > 0) {
        child_ended(children, pid, status);
    }
}

static void children_kill(struct children *children)
{
    for (unsigned i = 0; i < children->count; i++) {
        if (children->pid[i]) {
            kill(children->pid[i], SIGKILL);
        }
    }
    children_reap(children, 0);
}

/* Sleep until all ranks are done, one fails, the user interrupts, or nothing moves any more. */
static void children_watch(struct children *children, const sigset_t *set,
                           const struct meeting *meeting)
{
    uint64_t progress = 0;
    unsigned still_s = 0;
    while (children->running && !children->exit_code) {
        int signum = sigtimedwait(set, NULL, &(struct timespec){.tv_sec = WATCH_S});
        uint64_t now = atomic_load(&shared->progress);
        still_s = signum < 0 && errno == EAGAIN && now == progress ? still_s + WATCH_S : 0;
        progress = now;
        if (signum == SIGCHLD) {
            children_reap(children, WNOHANG);
        } else if (signum > 0) {
            children->exit_code = EXIT_INTERRUPTED;
            snprintf(shared->error, sizeof shared->error, "interrupted");
        } else if (still_s && meeting && meeting_is_alone(meeting)) {
            children->exit_code = EXIT_FAILED;
            snprintf(shared->error, sizeof shared->error, "the other velo-perf has ended");
        } else if (still_s >= STALL_S) {
            children->exit_code = EXIT_FAILED;
            snprintf(shared->error, sizeof shared->error,
                     "step %llu of %s has not ended for %d s: a process hangs",
                     (unsigned long long)progress, program_invocation_short_name, STALL_S);
        }
    }
}

/* Opening a port removes the segment that a killed rank left under its name. */
static void ports_reclaim(const struct options *options)
{
    for (unsigned node = 0; node < options->senders_count; node++) {
        for (unsigned vpid = 0; vpid < options_ranks(options); vpid++) {
            struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
            struct velo_port *port;
            attr.domain = options->domain;
            attr.node = (int)node;
            attr.vpid = (int)vpid;
            if (velo_port_open(&attr, &port) == VELO_OK) {
                velo_port_close(port);
            }
        }
    }
}

static bool shared_init(const struct options *options, struct meeting *meeting)
{
    shared = meeting ? meeting_shared(meeting)
                     : mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        return false;
    }
    /* In a meeting both write the same. */
    shared->barrier.parties = options_parties(options);
    /* A rank that waits must not keep a core from a rank that works. */
    bool has_cores = meeting || shared->barrier.parties <= options->cpus_count;
    shared->barrier.spins = has_cores ? BARRIER_SPINS : 0;
    return true;
}

int harness_run(const struct options *options, const struct plan *plan,
                void (*body)(struct rank *rank), struct meeting *meeting, unsigned *dropped)
{
    struct children children = {.count = 0};
    sigset_t set, old_mask;
    if (!shared_init(options, meeting)) {
        emit_error("out of memory for the shared block");
        return EXIT_FAILED;
    }
    children_signals(&set);
    sigprocmask(SIG_BLOCK, &set, &old_mask);
    children_fork(&children, options, plan, &old_mask, body, meeting);
    children_watch(&children, &set, meeting);
    if (children.exit_code) {
        children_kill(&children);
        ports_reclaim(options);
        fprintf(stderr, "velo-perf: %s\n", shared->error);
        emit_error(shared->error);
    }
    *dropped = shared->dropped;
    if (meeting) {
        meeting_end(meeting);
    }
    return children.exit_code;
}
