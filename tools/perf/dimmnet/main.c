/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetching words that lie apart: by list and strided gets of velo/dimmnet.h, and in three ways over
 * velo/rma.h. Two processes, each with a CPU of its own. Every round takes all ways in turn.
 */
#include <argp.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <velo/dimmnet.h>
#include <velo/rma.h>

#include "../clock.h"
#include "../fail.h"
#include "../machine.h"
#include "problem.h"

#define OWNER 1u
#define REQUESTER 2u
#define WINDOW_WORDS 256u
#define PATIENCE_NS INT64_C(20000000000)
#define STOP UINT32_MAX

static const char doc[] =
    "Fetch words that lie apart in another process's memory, and use them in a row: what a sparse "
    "matrix needs of a vector, and the transpose of a matrix.\v"
    "  dimmnet    list or strided gets into the Prefetch Windows (velo/dimmnet.h)\n"
    "  rma-apart  velo_rma_get_list() or velo_rma_get_strided()\n"
    "  rma-whole  velo_rma_get() of the whole vector or matrix, gathered by the program\n"
    "  rma-packed the owner packs the words on request and puts them, with a notification\n"
    "\n"
    "Times are for a word: the median over rounds, and quartiles. Every sum is checked. Waits spin "
    "for "
    "10 ms, unless $VELO_SPIN_NS says otherwise. Exit code: 0 done, 1 failed, 2 usage, 3 a sum was "
    "wrong.";

static unsigned cpus[2];
static unsigned rounds = 20;
static char domain[32];

void rank_fail(int exit_code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("velo-dimmnet-perf: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    _exit(exit_code);
}

static void check(int status, const char *call)
{
    if (status < VELO_OK)
        rank_fail(EXIT_FAILED, "%s: %s: %s", call, velo_strerror(status), velo_last_error());
}

/* ---- both ends ------------------------------------------------------------------------------- */

struct end {
    struct velo_dimmnet_board *board;
    struct velo_dimmnet *context;
    struct velo_port *port;
    struct velo_conn *conn; /* For requests to pack. */
    struct velo_rma *rma;
    struct velo_rma_peer *peer;
    struct velo_rma_mem *mem; /* The owner's words; the requester's buffer. */
    struct velo_rma_place place;
    uint64_t *words;
    struct velo_rma_piece *pieces[PROBLEMS];
};

static void open_end(struct end *end, unsigned self)
{
    struct velo_dimmnet_board_attr board_attr = VELO_DIMMNET_BOARD_ATTR_INIT;
    struct velo_dimmnet_attr attr = VELO_DIMMNET_ATTR_INIT;
    struct velo_port_attr port_attr = VELO_PORT_ATTR_INIT;
    const unsigned other = OWNER + REQUESTER - self;
    board_attr.domain = attr.domain = port_attr.domain = domain;
    board_attr.lid = attr.lid = self;
    board_attr.processes = 1;
    port_attr.vpid = (int)self;
    check(velo_dimmnet_board_open(&board_attr, &end->board), "velo_dimmnet_board_open");
    check(velo_dimmnet_board_pid(end->board, other, other, 0), "velo_dimmnet_board_pid");
    check(velo_dimmnet_open(&attr, &end->context, PATIENCE_NS), "velo_dimmnet_open");
    check(velo_port_open(&port_attr, &end->port), "velo_port_open");
    check(velo_rma_open(end->port, NULL, &end->rma), "velo_rma_open");
    check(velo_rma_mem_alloc(end->rma, OWNED_MAX * sizeof(uint64_t), VELO_RMA_RIGHT_ALL,
                             VELO_RMA_PEER_ANY, &end->mem),
          "velo_rma_mem_alloc");
    check(velo_rma_mem_publish(end->mem, 1), "velo_rma_mem_publish");
    end->words = velo_rma_mem_addr(end->mem);
    check(velo_connect(end->port, VELO_ID(0, other), &end->conn, PATIENCE_NS), "velo_connect");
    check(velo_rma_connect(end->rma, VELO_ID(0, other), &end->peer, PATIENCE_NS),
          "velo_rma_connect");
    int status;
    do
        status = velo_rma_mem_lookup(end->peer, 1, VELO_RMA_RIGHT_ALL, &end->place);
    while (status == VELO_AGAIN || status == VELO_ERR_ACCESS || status == VELO_ERR_NO_PEER);
    check(status, "velo_rma_mem_lookup");
}

static void close_end(struct end *end)
{
    check(velo_rma_close(end->rma), "velo_rma_close");
    check(velo_port_close(end->port), "velo_port_close");
    check(velo_dimmnet_close(end->context), "velo_dimmnet_close");
    check(velo_dimmnet_board_close(end->board), "velo_dimmnet_board_close");
}

/* ---- the owner ------------------------------------------------------------------------------- */

static void fill(struct end *end)
{
    for (uint32_t at = 0; at < OWNED_MAX; at += VELO_DIMMNET_WINDOW_WORDS) {
        struct velo_dimmnet_transfer store = {.len_words = VELO_DIMMNET_WINDOW_WORDS,
                                              .local_word = at};
        uint64_t *window = velo_dimmnet_write_window(end->context, 0);
        check(velo_dimmnet_quiet(end->context, PATIENCE_NS), "velo_dimmnet_quiet");
        for (uint32_t i = 0; i < VELO_DIMMNET_WINDOW_WORDS; i++)
            end->words[at + i] = window[i] = owned_word(at + i);
        check(velo_dimmnet_store(end->context, &store), "velo_dimmnet_store");
    }
}

static void own(struct end *end)
{
    uint64_t *packed = malloc(WANTED_MAX * sizeof *packed);
    uint32_t request = 0;
    struct velo_msg msg;
    if (!packed)
        rank_fail(EXIT_FAILED, "out of memory");
    fill(end);
    check(velo_send(end->conn, &request, sizeof request, 0, PATIENCE_NS), "velo_send");
    for (;;) {
        check(velo_recv(end->port, &request, sizeof request, &msg, PATIENCE_NS), "velo_recv");
        if (request == STOP)
            break;
        pack(&problems[request], end->words, packed);
        check(velo_rma_put(end->peer, packed, problems[request].wanted * sizeof *packed, end->place,
                           VELO_RMA_NOTIFY_COMPLETER, 0),
              "velo_rma_put");
        check(velo_rma_flush(end->peer, PATIENCE_NS), "velo_rma_flush");
    }
    free(packed);
}

/* ---- the requester's ways --------------------------------------------------------------------- */

static uint64_t by_dimmnet(struct end *end, unsigned p)
{
    const struct problem *problem = &problems[p];
    const uint64_t *windows = velo_dimmnet_prefetch(end->context);
    uint64_t sum = 0;
    struct velo_dimmnet_transfer get = {
        .pid = OWNER,
        .len_words = WINDOW_WORDS,
        .local_memory = VELO_DIMMNET_PREFETCH,
        .status = 1,
        .remote = {.access = problem->side ? VELO_DIMMNET_STRIDED : VELO_DIMMNET_LIST,
                   .element_words = 1,
                   .step_words = (int32_t)problem->side}};
    for (uint32_t at = 0; at < problem->wanted; at += WINDOW_WORDS) {
        if (problem->side) /* A window is a column. */
            get.remote_word = at / WINDOW_WORDS;
        else
            get.remote.list_word = at / 2;
        check(velo_dimmnet_get(end->context, &get), "velo_dimmnet_get");
        check(velo_dimmnet_wait(end->context, NULL, PATIENCE_NS), "velo_dimmnet_wait");
        check(velo_dimmnet_refresh(end->context, 0, WINDOW_WORDS), "velo_dimmnet_refresh");
        sum += consume(windows, WINDOW_WORDS, at);
    }
    return sum;
}

static uint64_t by_rma_apart(struct end *end, unsigned p)
{
    const struct problem *problem = &problems[p];
    uint64_t sum = 0;
    for (uint32_t at = 0; at < problem->wanted; at += WINDOW_WORDS) {
        struct velo_rma_stride stride = {8, WINDOW_WORDS, 8, problem->side * UINT64_C(8)};
        struct velo_rma_place place = end->place;
        place.offset += at / WINDOW_WORDS * UINT64_C(8);
        if (problem->side)
            check(velo_rma_get_strided(end->peer, end->words, &stride, place, 0, 0),
                  "velo_rma_get_strided");
        else
            check(velo_rma_get_list(end->peer, end->pieces[p] + at, WINDOW_WORDS, end->place, 0, 0),
                  "velo_rma_get_list");
        check(velo_rma_flush(end->peer, PATIENCE_NS), "velo_rma_flush");
        sum += consume(end->words, WINDOW_WORDS, at);
    }
    return sum;
}

static uint64_t by_rma_whole(struct end *end, unsigned p)
{
    const struct problem *problem = &problems[p];
    uint64_t sum = 0;
    check(velo_rma_get(end->peer, end->words, problem->owned * sizeof(uint64_t), end->place, 0, 0),
          "velo_rma_get");
    check(velo_rma_flush(end->peer, PATIENCE_NS), "velo_rma_flush");
    for (uint32_t i = 0; i < problem->wanted; i++)
        sum += end->words[problem->offsets[i]] * (i + 1u);
    return sum;
}

static uint64_t by_rma_packed(struct end *end, unsigned p)
{
    struct velo_rma_notification notification;
    uint32_t request = p;
    int got;
    check(velo_send(end->conn, &request, sizeof request, 0, PATIENCE_NS), "velo_send");
    got = velo_rma_poll(end->rma, &notification, 1, PATIENCE_NS);
    check(got, "velo_rma_poll");
    return consume(end->words, problems[p].wanted, 0);
}

static const struct {
    const char *name;
    uint64_t (*fetch)(struct end *end, unsigned p);
} ways[] = {{"dimmnet", by_dimmnet},
            {"rma-apart", by_rma_apart},
            {"rma-whole", by_rma_whole},
            {"rma-packed", by_rma_packed}};
#define WAYS (sizeof ways / sizeof ways[0])

static double ns[PROBLEMS][WAYS][ROUNDS_MAX];

static void take(struct end *end, unsigned p, unsigned way, unsigned round)
{
    const unsigned times = problems[p].side ? 2 : 8;
    uint64_t begin_ns = now_ns();
    for (unsigned i = 0; i < times; i++)
        if (ways[way].fetch(end, p) != problems[p].sum)
            rank_fail(EXIT_VERIFY, "%s by %s: the words are not those that were wanted",
                      problems[p].name, ways[way].name);
    ns[p][way][round] = (double)(now_ns() - begin_ns) / times / problems[p].wanted;
}

static void request_all(struct end *end)
{
    uint32_t request = STOP;
    struct velo_msg msg;
    check(velo_recv(end->port, &request, sizeof request, &msg, PATIENCE_NS), "velo_recv");
    for (unsigned p = 0; p < PROBLEMS; p++) {
        const struct problem *problem = &problems[p];
        end->pieces[p] = calloc(problem->wanted, sizeof **end->pieces);
        if (!end->pieces[p])
            rank_fail(EXIT_FAILED, "out of memory");
        for (uint32_t i = 0; i < problem->wanted; i++)
            end->pieces[p][i] = (struct velo_rma_piece){end->words + i % WINDOW_WORDS,
                                                        problem->offsets[i] * UINT64_C(8), 8};
        if (!problem->side)
            memcpy(velo_dimmnet_llcm(end->context), problem->offsets,
                   problem->wanted * sizeof *problem->offsets);
        for (unsigned round = 0; round <= rounds; round++) /* The first warms up. */
            for (unsigned turn = 0; turn < WAYS; turn++)
                take(end, p, (turn + round) % WAYS, round ? round - 1 : 0);
        free(end->pieces[p]);
    }
    request = STOP;
    check(velo_send(end->conn, &request, sizeof request, 0, PATIENCE_NS), "velo_send");
    for (unsigned p = 0; p < PROBLEMS; p++)
        for (unsigned way = 0; way < WAYS; way++)
            print_way(&problems[p], ways[way].name, ns[p][way], rounds);
}

/* ---- processes ------------------------------------------------------------------------------- */

static void pin(unsigned cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        rank_fail(EXIT_FAILED, "cannot run on CPU %u: %s; name allowed CPUs with --cpus", cpu,
                  strerror(errno));
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    char *end;
    unsigned long value;
    switch (key) {
    case 'r':
        value = strtoul(arg, &end, 10);
        if (value < 1 || value > ROUNDS_MAX || *end)
            argp_error(state, "'%s' is no number of rounds from 1 to %u", arg, ROUNDS_MAX);
        rounds = (unsigned)value;
        return 0;
    case 'c':
        value = strtoul(arg, &end, 10);
        cpus[0] = (unsigned)value;
        if (end == arg || *end != ',' || value >= CPU_SETSIZE)
            argp_error(state, "'%s' is not two CPUs with a comma between them", arg);
        cpus[1] = (unsigned)strtoul(end + 1, &end, 10);
        if (*end || cpus[1] >= CPU_SETSIZE)
            argp_error(state, "'%s' is not two CPUs with a comma between them", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option argp_options[] = {
    {"cpus", 'c', "A,B", 0, "CPUs of requester and owner (the first two allowed ones)", 0},
    {"rounds", 'r', "N", 0, "Rounds over all ways (20)", 0},
    {0},
};

int main(int argc, char **argv)
{
    static const struct argp argp = {argp_options, parse_option, NULL, doc, NULL, NULL, NULL};
    static struct end end;
    argp_program_version = velo_version();
    argp_err_exit_status = EXIT_USAGE;
    unsigned allowed[2];
    unsigned count = machine_cpus(allowed, 2);
    cpus[0] = allowed[0];
    cpus[1] = allowed[count > 1];
    if (argp_parse(&argp, argc, argv, 0, NULL, NULL) != 0)
        return EXIT_USAGE;
    (void)snprintf(domain, sizeof domain, "dimmnet-perf-%d", (int)getpid());
    (void)setenv("VELO_SPIN_NS", "10000000", 0); /* MPI's ranks spin for ever. */
    problems_init();
    pid_t owner = fork();
    if (owner < 0)
        rank_fail(EXIT_FAILED, "cannot start a process: %s", strerror(errno));
    if (owner == 0)
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin(cpus[owner == 0]);
    open_end(&end, owner == 0 ? OWNER : REQUESTER);
    if (owner == 0)
        own(&end);
    else
        request_all(&end);
    int status = 0;
    if (owner > 0)
        (void)waitpid(owner, &status, 0);
    close_end(&end);
    return status ? EXIT_FAILED : EXIT_OK;
}
