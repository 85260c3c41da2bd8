/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of the system from one seed: its processes, the ports they open, and what is said of
 * them.
 *
 *   run.c       draws the steps; settles, drains and ends the system
 *   stage.c     processes: start, command, death; their buffers
 *   story.c     what happened, in sentences; how a run fails
 *   messages.c  steps and model of velo.h
 *   queues.c    steps and model of mq.h
 *   memory.c    steps and model of rma.h
 *   edges.c     what happens to processes beside their calls
 *
 * A **generation** is a port from its opening to its end; generations of one id follow each other,
 * and whatever is sent, granted or answered belongs to one of them. The models know of each
 * generation what was sent to it and by which generation, and hold every outcome against that.
 */
#ifndef VELO_SYSTEM_RUN_H
#define VELO_SYSTEM_RUN_H

#include "desk.h"
#include "test.h"

enum { PROCESSES = 5, WITHOUT_MAX = 8, STOPPED_MAX = 2 };
enum family { MESSAGES = 1, QUEUES = 2, MEMORY = 4, EDGES = 8, ALL = 15 };
enum generation_state { LIVES, CLOSED, DIED };

struct options {
    uint64_t seed;
    uint64_t seeds;
    uint32_t steps;
    double seconds; /* 0: no limit; else seeds follow each other until it is over. */
    unsigned families;
    const char *without[WITHOUT_MAX]; /* Names of steps that are left out. */
    uint32_t without_len;
    bool is_calm;  /* No generation ends. */
    bool is_twice; /* Each seed is run twice, to see that it gives the same. */
    bool is_verbose;
};

struct conn;
struct item;
struct sent;
struct recv;
struct mem;
struct op;

/* A port from its opening to its end. */
struct generation {
    uint32_t number;
    uint32_t word; /* As velo_port_generation() gives it. */
    uint32_t vpid;
    enum generation_state state;
    bool is_unclear;        /* It died while it was closed: peers may call it either. */
    bool is_hidden;         /* Its file has been removed. */
    bool is_armed;          /* edges.c: it sleeps on its descriptor, */
    bool is_due;            /* which must be readable, since there is a reason. */
    bool is_interrupted;    /* edges.c: its next wait must end. */
    bool is_blurred;        /* messages.c: nobody knows which connection is deferred. */
    uint64_t replaced_step; /* When its id was opened again after it died; 0: it was not. */
    struct shape shape;
    struct process *process;
    uint64_t opened_step;
    uint64_t ended_step;
    struct conn *conns_in; /* messages.c: connections to it, with what is under way on each. */
    uint32_t conns_count;  /* Ever made to it, as far as we know. */
    struct sent *inbox;    /* queues.c: what was sent to it and not received, in order. */
    struct sent *inbox_last;
    struct recv *recvs; /* queues.c: receives posted, in order. */
    struct recv *recvs_last;
    uint64_t gave_up_step[VPIDS]; /* queues.c: when it last gave up a peer of this id. */
    struct op *told;              /* memory.c: operations that it is to be notified of, */
    struct op *pending;           /* and those that it asked for and that have not ended. */
    struct generation *next;
};

/* One place for a port in a process, as the conductor knows it. */
struct seat {
    struct process *process;
    uint32_t index;
    struct generation *generation; /* NULL: no port is open there. */
    /* By the handles of the worker. */
    struct conn *conns[CONNS];
    struct generation
        *mq_to[VPIDS]; /* The generation that a peer was connected to; NULL: no such peer. */
    struct sent *sends[REQUESTS];
    struct recv *recvs[REQUESTS];
    struct recv *probed[PROBED];
    struct generation *rma_to[RMA_PEERS];
    struct mem *mems[MEMS];
};

struct process {
    uint32_t number;
    pid_t pid;    /* 0: there is none. */
    bool is_busy; /* Stopped in the middle of a call. */
    bool has_few_files;
    unsigned closed_files; /* Standard files that it does without. */
    int fd;
    struct desk *desk;
    char *arena;
    struct seat seats[SEATS];
};

struct run {
    const struct options *options;
    uint64_t seed;
    struct rng rng;
    uint64_t step;
    uint64_t serial; /* Last given to a message or an operation. */
    uint32_t vpids;
    bool is_queue[VPIDS]; /* Ports of an id are for matched queues, or for plain messages. */
    uint32_t generations_count;
    struct generation *generations;    /* All there ever were, the latest first. */
    struct generation *by_vpid[VPIDS]; /* It has the id now. */
    struct process processes[PROCESSES];
    struct sundial *sundial;
    bool is_quiet;  /* Nobody dies now. */
    bool is_calm;   /* No generation ends. */
    bool has_edges; /* What edges.c has happens, */
    bool is_plain;  /* and there are neither queues nor units, which would need more room. */
    uint32_t signal_percent; /* Of calls. */
    uint32_t stopped;        /* Processes that stand in the middle of a call. */
    uint64_t digest;         /* Of everything that happened. */
    uint64_t deaths, messages, receives, operations;
    char shm_dir[64];
};

extern struct run run;

/* ---- chance ---------------------------------------------------------------------------------- */

static inline uint32_t below(uint32_t bound) { return rng_below(&run.rng, bound); }
static inline bool chance(uint32_t percent) { return below(100) < percent; }
/* Mix something that happened into the digest. */
static inline void digest(uint64_t what) { run.digest = test_mix(run.digest ^ what) + what; }

/* ---- story.c --------------------------------------------------------------------------------- */

/* Begin a sentence of this step, about these generations (NULL: nobody). */
void story_step(const struct generation *one, const struct generation *other, const char *format,
                ...) __attribute__((format(printf, 3, 4)));
/* How it came out. */
void story_outcome(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The status it came out with; in quiet times that alone is not worth telling. */
void story_status(int status);
void story_begin(void);
/* The run has failed: say why, what went before with these generations, and how to see it again. */
_Noreturn void fail_run(const struct generation *one, const struct generation *other,
                        const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Name a generation in a sentence; good for a few calls. */
const char *name_of(const struct generation *generation);
const char *status_name(int status);

/* ---- stage.c --------------------------------------------------------------------------------- */

void stage_open(void);
/* Kill what is left, and look what it left behind. */
void stage_close(void);
void stage_abandon(void);
void process_start(struct process *process);
/* Between two commands. */
void process_kill(struct process *process);
/* A port is open in this seat now. */
struct generation *generation_begin(struct seat *seat, uint32_t vpid, const struct shape *shape);
/* The port in this seat is no more. */
void generation_end(struct seat *seat, enum generation_state how);
/* Have a command carried out. False: the process died in it, and the seats know. */
bool tell(struct seat *seat, struct command *command);
static inline const struct reply *reply_of(const struct seat *seat)
{
    return &seat->process->desk->reply;
}
/* Zeroed memory that stays until the run is over. */
void *keep(size_t size_bytes);
/* A buffer of the process; NULL: all are in use. */
void *block_take(struct process *process);
void block_give(struct process *process, void *block);
/* Given back, and nobody may write to it any more: that is looked at from now on. */
void block_freeze(struct process *process, void *block);
void blocks_check(struct process *process);
/* May a port whose generation has ended so, or goes on, give this status? */
bool status_fits(const struct generation *generation, int status);
/* The next seat whose port lives, of a process that is not busy; of NULL the first, after the last
 * NULL. */
struct seat *seat_next(const struct seat *seat);

/* Fill a message that is told from all others by its serial number; is it that one, as far as it
 * reaches? */
void content_fill(void *buf, size_t len_bytes, uint64_t serial);
bool content_is(const void *buf, size_t len_bytes, uint64_t serial);
/* The serial number that it says it has; 0: too short. */
uint64_t content_serial(const void *buf, size_t len_bytes);

/* ---- messages.c, queues.c, memory.c ---------------------------------------------------------- */

/* A step: false if there was nothing to do so. */
typedef bool (*step_fn)(struct seat *seat);
struct action {
    const char *name;
    step_fn step;
    uint32_t weight;
};
/* The last has no name. */
extern const struct action message_actions[], queue_actions[], memory_actions[], edge_actions[];

void memory_begin(void);
/* A seat's port has ended, its process too or not. */
void messages_ended(struct seat *seat);
void queues_ended(struct seat *seat);
void memory_ended(struct seat *seat);
/* Take in what a command led to beside its own outcome. */
void queues_event(struct seat *seat, const struct event *event);
void memory_event(struct seat *seat, const struct event *event);
/* Go on with what is under way; true if anything came of it. Once nothing does: is everything done
 * that needs no help? */
bool queues_settle(struct seat *seat);
void queues_settled(void);
/* Take whatever is still under way; true if there was anything. The last ones look whether all has
 * arrived. */
bool messages_drain(struct seat *seat);
bool queues_drain(struct seat *seat);
bool memory_drain(struct seat *seat);
void queues_stop_receiving(struct seat *seat);
void messages_drained(struct seat *seat);
void queues_drained(struct seat *seat);
void memory_drained(struct seat *seat);
/* Carry out some rounds of progress. */
bool queues_progress(struct seat *seat, uint32_t rounds);
bool memory_progress(struct seat *seat, uint32_t rounds);

/* Is there a message for it that it must be told of? */
bool messages_due(const struct generation *generation);
/* Give a handler a message to send on this connection; NULL: there is no buffer. Then what became
 * of it. */
struct item *messages_prepare(struct seat *seat, struct conn *conn, struct command *command);
void messages_by_handler(const struct seat *seat, struct conn *conn, struct item *item, int status,
                         void *buf);

/* ---- edges.c --------------------------------------------------------------------------------- */

void edges_begin(void);
/* There is a reason for it to wake. */
void edges_rings(struct generation *generation);
/* It receives: it sleeps no more. */
void edges_awake(struct generation *generation);
/* A wait of the seat's port was interrupted, or ran out of time. */
void edges_interrupted(struct seat *seat);
void edges_waited(const struct seat *seat);
/* May the process fail so, for want of descriptors or room? */
bool edges_excuse(const struct seat *seat, int status);
/* A signal may come in this command: the connection on which its handler sends, if it does. */
struct conn *edges_draw_signal(struct seat *seat, struct command *command, struct item **item);
void edges_signalled(struct seat *seat, const struct command *command, struct conn *conn,
                     struct item *item);
/* All that sleep look at their descriptors. */
void edges_finish(void);
/* Room and descriptors come back: all, or now and then. */
void edges_relief(void);
void edges_tick(void);
/* A process without ports: it has no descriptor that it had not at first. */
void edges_count_descriptors(struct process *process);
void edges_end_children(void);
void edges_ended(const struct generation *generation);

/* ---- run.c ----------------------------------------------------------------------------------- */

/* The port's process is killed, and another one opens its id at once. */
void replace_port(struct seat *seat);

/* The hook point, of the next so many, at which a process is to be killed in its call; 0, mostly:
 * it is not. */
uint32_t draw_death(uint32_t percent, uint32_t points);
/* The same for stopping in the middle of this command, while others move. */
uint32_t draw_stop(const struct seat *seat, const struct command *command);
/* Some steps of others. */
void others_move(void);
/* Run the system from a seed; returns only if it held. */
void run_once(const struct options *options, uint64_t seed);

#endif
