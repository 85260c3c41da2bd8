/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"
#include "worker.h"

/* Real time that no command takes. */
#define PATIENCE_MS 20000

enum use { FREE, TAKEN, FROZEN };

struct block {
    enum use use;
    uint64_t since; /* Step of the last change. */
    uint64_t hash;
};

static struct block blocks[PROCESSES][BLOCKS];

/* ---- memory ---------------------------------------------------------------------------------- */

struct kept {
    struct kept *next;
    max_align_t memory[];
};

static struct kept *kept;

void *keep(size_t size_bytes)
{
    struct kept *one = calloc(1, sizeof *one + size_bytes);

    if (one == NULL)
        abort();
    one->next = kept;
    kept = one;
    return one->memory;
}

static void forget_all(void)
{
    while (kept != NULL) {
        struct kept *one = kept;
        kept = one->next;
        free(one);
    }
}

static void *shared(size_t size_bytes)
{
    void *memory = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED) {
        perror("velo-system: mmap");
        exit(2);
    }
    return memory;
}

static uint64_t hash_of(const void *block)
{
    const uint64_t *words = block;
    uint64_t hash = 0;

    for (size_t i = 0; i < BLOCK_BYTES / 8; i++)
        hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return hash;
}

static char *address_of(const struct process *process, uint32_t index)
{
    return process->arena + index * BLOCK_BYTES;
}

static uint32_t index_of(const struct process *process, const void *block)
{
    return (uint32_t)(((const char *)block - process->arena) / (ptrdiff_t)BLOCK_BYTES);
}

static void check_frozen(const struct process *process, uint32_t index)
{
    const struct block *block = &blocks[process->number][index];

    if (block->use == FROZEN && hash_of(address_of(process, index)) != block->hash)
        fail_run(NULL, NULL,
                 "process %u: a buffer that was given back at step %llu (a receive that had ended, "
                 "or memory that was deregistered) was written to since",
                 process->number, (unsigned long long)block->since);
}

void blocks_check(struct process *process)
{
    for (uint32_t i = 0; i < BLOCKS; i++)
        check_frozen(process, i);
}

/* Free ones first; of those that are watched the one that was for longest. */
static bool is_better(const struct block *one, const struct block *other)
{
    if (one->use != other->use)
        return one->use == FREE;
    return one->use == FROZEN && one->since < other->since;
}

void *block_take(struct process *process)
{
    struct block *best = NULL;

    for (uint32_t i = 0; i < BLOCKS; i++) {
        struct block *block = &blocks[process->number][i];
        if (block->use != TAKEN && (best == NULL || is_better(block, best)))
            best = block;
    }
    if (best == NULL)
        return NULL;
    uint32_t index = (uint32_t)(best - blocks[process->number]);
    check_frozen(process, index);
    *best = (struct block){.use = TAKEN, .since = run.step};
    return address_of(process, index);
}

void block_give(struct process *process, void *block)
{
    if (block != NULL)
        blocks[process->number][index_of(process, block)].use = FREE;
}

void block_freeze(struct process *process, void *block)
{
    if (block != NULL)
        blocks[process->number][index_of(process, block)] =
            (struct block){.use = FROZEN, .since = run.step, .hash = hash_of(block)};
}

/* ---- content --------------------------------------------------------------------------------- */

void content_fill(void *buf, size_t len_bytes, uint64_t serial)
{
    if (len_bytes == 0)
        return;
    pattern_fill(buf, len_bytes, serial);
    if (len_bytes >= sizeof serial)
        memcpy(buf, &serial, sizeof serial);
}

bool content_is(const void *buf, size_t len_bytes, uint64_t serial)
{
    static char expected[BLOCK_BYTES];

    content_fill(expected, len_bytes, serial);
    return len_bytes == 0 || memcmp(buf, expected, len_bytes) == 0;
}

uint64_t content_serial(const void *buf, size_t len_bytes)
{
    uint64_t serial = 0;

    if (len_bytes >= sizeof serial)
        memcpy(&serial, buf, sizeof serial);
    return serial;
}

/* ---- generations
 * ----------------------------------------------------------------------------------- */

struct generation *generation_begin(struct seat *seat, uint32_t vpid, const struct shape *shape)
{
    struct generation *generation = keep(sizeof *generation);

    generation->number = ++run.generations_count;
    generation->vpid = vpid;
    generation->shape = *shape;
    generation->process = seat->process;
    generation->opened_step = run.step;
    generation->next = run.generations;
    run.generations = generation;
    run.by_vpid[vpid] = generation;
    seat->generation = generation;
    return generation;
}

void generation_end(struct seat *seat, enum generation_state how)
{
    struct generation *generation = seat->generation;

    if (generation == NULL)
        return;
    generation->state = how;
    generation->ended_step = run.step;
    if (run.by_vpid[generation->vpid] == generation)
        run.by_vpid[generation->vpid] = NULL;
    edges_ended(generation);
    messages_ended(seat);
    queues_ended(seat);
    memory_ended(seat);
    *seat = (struct seat){.process = seat->process, .index = seat->index};
}

bool status_fits(const struct generation *generation, int status)
{
    if (generation->state == LIVES)
        return status == VELO_OK || status == VELO_AGAIN;
    if (status == VELO_ERR_PEER_DEAD)
        return generation->state == DIED;
    return status == VELO_ERR_PEER_CLOSED &&
           (generation->state == CLOSED || generation->is_unclear);
}

struct seat *seat_next(const struct seat *seat)
{
    uint32_t at = seat ? seat->process->number * SEATS + seat->index + 1 : 0;

    for (; at < PROCESSES * SEATS; at++) {
        struct seat *next = &run.processes[at / SEATS].seats[at % SEATS];
        if (next->generation != NULL && !next->process->is_busy)
            return next;
    }
    return NULL;
}

/* ---- processes ------------------------------------------------------------------------------- */

/* It has ended, in whatever way: take its ports for dead. */
static int bury(struct process *process)
{
    int status = 0;

    while (waitpid(process->pid, &status, 0) < 0 && errno == EINTR)
        ;
    close(process->fd);
    process->pid = 0;
    process->is_busy = process->has_few_files = false;
    for (uint32_t i = 0; i < SEATS; i++)
        generation_end(&process->seats[i], DIED);
    for (uint32_t i = 0; i < BLOCKS; i++)
        blocks[process->number][i].use = FREE;
    return status;
}

void process_start(struct process *process)
{
    pid_t parent = getpid();
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0) {
        perror("velo-system: socketpair");
        exit(2);
    }
    process->closed_files = run.has_edges && chance(50) ? below(8) : 0;
    fflush(NULL);
    process->pid = fork();
    if (process->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        close(fds[0]);
        /* Memory of others is not ours: whoever reaches for the wrong process finds nothing. */
        for (uint32_t i = 0; i < PROCESSES; i++)
            if (i != process->number)
                munmap(run.processes[i].arena, ARENA_BYTES);
        worker_run(fds[1], process->desk, run.sundial, process->closed_files);
    }
    close(fds[1]);
    process->fd = fds[0];
    if (process->pid < 0) {
        perror("velo-system: fork");
        exit(2);
    }
}

void process_kill(struct process *process)
{
    kill(process->pid, SIGKILL);
    (void)bury(process);
    run.deaths++;
}

/* Wait for the answer. False: there will be none. */
static bool await_answer(const struct process *process, const struct generation *generation)
{
    struct pollfd ready = {.fd = process->fd, .events = POLLIN};
    char byte;
    int found;

    do
        found = poll(&ready, 1, PATIENCE_MS);
    while (found < 0 && errno == EINTR);
    if (found == 0)
        fail_run(generation, NULL,
                 "process %u hangs: the call of this step has not returned in %d s",
                 process->number, PATIENCE_MS / 1000);
    return read(process->fd, &byte, 1) == 1;
}

static void take_events(struct seat *seat)
{
    static struct event events[EVENTS];
    const struct reply *reply = reply_of(seat);
    uint32_t len = reply->events_len;

    memcpy(events, reply->events, len * sizeof *events);
    for (uint32_t i = 0; i < len; i++) {
        if (events[i].kind == EVENT_REQUEST)
            queues_event(seat, &events[i]);
        else
            memory_event(seat, &events[i]);
    }
}

static void check_death(struct process *process, const struct generation *generation,
                        uint32_t die_at)
{
    pid_t pid = process->pid;
    int status = bury(process);

    run.deaths++;
    story_outcome(" - is killed in it, at a hook point");
    digest(die_at);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL || die_at == 0)
        fail_run(generation, NULL, "process %u (pid %d) ended by itself: %s %d", process->number,
                 (int)pid, WIFSIGNALED(status) ? "signal" : "exit code",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

/* It stands in the middle of its call: others move, then it goes on, or dies there. */
static void let_stand(struct process *process, const struct generation *generation)
{
    story_outcome(" - stops in the middle of it");
    process->is_busy = true;
    others_move();
    process->is_busy = false;
    bool dies = draw_death(20, 1) != 0;
    story_step(generation, NULL, "%s %s", name_of(generation),
               dies ? "is killed where it stands" : "goes on");
    if (dies)
        kill(process->pid, SIGKILL);
    else if (write(process->fd, "", 1) != 1)
        fail_run(generation, NULL, "process %u is gone", process->number);
    process->desk->command.die_at += dies;
}

/* Wait until it is carried out. False: the process died. */
static bool await(struct process *process, const struct generation *generation)
{
    bool lives = await_answer(process, generation);

    while (lives && process->desk->reply.stopped) {
        let_stand(process, generation);
        lives = await_answer(process, generation);
    }
    return lives;
}

bool tell(struct seat *seat, struct command *command)
{
    struct process *process = seat->process;
    const struct generation *generation = seat->generation;

    command->seat = seat->index;
    command->stop_at = draw_stop(seat, command);
    struct item *item = NULL;
    struct conn *conn = edges_draw_signal(seat, command, &item);
    process->desk->command = *command;
    if (write(process->fd, "", 1) != 1 || !await(process, generation)) {
        check_death(process, generation, process->desk->command.die_at);
        return false;
    }
    const struct reply *reply = reply_of(seat);
    if (reply->hung)
        fail_run(generation, NULL, "process %u hangs: the call of this step sleeps without end",
                 process->number);
    if (reply->standard_file >= 0)
        fail_run(generation, NULL, "process %u had closed descriptor %d, and the library opened it",
                 process->number, reply->standard_file);
    edges_signalled(seat, command, conn, item);
    digest((uint64_t)reply->status << 32 ^ command->act);
    digest(reply->events_len);
    take_events(seat);
    return true;
}

/* ---- the whole ------------------------------------------------------------------------------- */

void stage_open(void)
{
    if (run.sundial == NULL) {
        run.sundial = shared(sizeof *run.sundial);
        for (uint32_t i = 0; i < PROCESSES; i++) {
            run.processes[i].number = i;
            run.processes[i].desk = shared(sizeof(struct desk));
            run.processes[i].arena = shared(ARENA_BYTES);
            for (uint32_t seat = 0; seat < SEATS; seat++)
                run.processes[i].seats[seat] =
                    (struct seat){.process = &run.processes[i], .index = seat};
        }
    }
    *run.sundial =
        (struct sundial){.now_ns = INT64_C(1000000000000), .random = run.seed, .is_full = false};
    memset(blocks, 0, sizeof blocks);
    (void)snprintf(run.shm_dir, sizeof run.shm_dir, "/dev/shm/velo-system-XXXXXX");
    if (mkdtemp(run.shm_dir) == NULL) {
        perror("velo-system: /dev/shm");
        exit(2);
    }
    setenv("VELO_SHM_DIR", run.shm_dir, 1);
    setenv("VELO_DOMAIN", "system", 1);
}

static size_t remove_files(bool complain)
{
    char pattern[128];
    glob_t found;
    size_t count = 0;

    (void)snprintf(pattern, sizeof pattern, "%s/*", run.shm_dir);
    if (glob(pattern, 0, NULL, &found) != 0)
        return 0;
    for (; count < found.gl_pathc; count++) {
        if (complain)
            fprintf(stderr, "left behind: %s\n", found.gl_pathv[count]);
        unlink(found.gl_pathv[count]);
    }
    globfree(&found);
    return count;
}

void stage_close(void)
{
    edges_end_children();
    for (uint32_t i = 0; i < PROCESSES; i++)
        if (run.processes[i].pid != 0)
            process_kill(&run.processes[i]);
    if (remove_files(true) > 0)
        fail_run(NULL, NULL, "files were left behind though every id was used and closed again");
    rmdir(run.shm_dir);
    forget_all();
}

void stage_abandon(void)
{
    edges_end_children();
    for (uint32_t i = 0; i < PROCESSES; i++)
        if (run.processes[i].pid != 0)
            kill(run.processes[i].pid, SIGKILL);
    (void)remove_files(false);
    rmdir(run.shm_dir);
}
