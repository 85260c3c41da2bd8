/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MPI must see the ranks of one simulated node, and no others, on one host. In truth all ranks are
 * on one host. An MPI that knew this would pass the simulated hardware by, in memory that the ranks
 * share.
 *
 * MPI asks its launcher (PMIx), and may ask for the name of the host. This library takes the place
 * of these calls, passes them on and corrects the answers. $VELO_SIM_RANKS_A_NODE says how many
 * ranks each node has, one after the other. Without it, as for a program that is no MPI program,
 * answers stay as they are.
 */
#include "locality.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "caller.h"
#include "pipe.h"

/* As in <pmix.h>, which need not be installed. */
#define PMIX_ERR_NOT_SUPPORTED (-47)
#define PMIX_JOB_BYTES 256
enum { PMIX_STRING = 3, PMIX_UINT16 = 13, PMIX_UINT32 = 14 };

struct pmix_process {
    char job[PMIX_JOB_BYTES];
    uint32_t rank; /* Or the value that stands for all ranks. */
};

struct pmix_value {
    uint16_t type;
    union {
        char *string;
        uint16_t uint16;
        uint32_t uint32;
    };
};

/* Of a rank. */
struct place {
    uint32_t rank;
    uint32_t node;
    uint32_t nodes;
    uint32_t first; /* Rank of this node... */
    uint32_t end;   /* ...and the one behind its last. */
};

#define NAME_BYTES 16
#define RANK_DIGITS_MAX 11 /* With a comma. */

static bool was_told;

/* MPI below Hydra may not ask: `velo sim` has told it by its own settings. */
bool locality_was_told(void) { return was_told || locality_hydra_file() >= 0; }

int locality_hydra_file(void)
{
    uint64_t file = sim_environment_number("PMI_FD", UINT64_MAX);
    return file <= INT_MAX ? (int)file : -1;
}

uint32_t locality_ranks_a_node(void)
{
    return (uint32_t)sim_environment_number("VELO_SIM_RANKS_A_NODE", 0);
}

uint32_t locality_rank(void) { return (uint32_t)sim_environment_number("VELO_SIM_RANK", 0); }

static uint32_t locality_ranks(void)
{
    return (uint32_t)sim_environment_number("VELO_SIM_RANKS", 1);
}

uint32_t locality_node(void)
{
    uint32_t ranks_a_node = locality_ranks_a_node();
    return ranks_a_node ? locality_rank() / ranks_a_node : 0;
}

static struct place place_of(uint32_t rank, uint32_t ranks_a_node)
{
    uint32_t ranks = locality_ranks();
    struct place place = {.rank = rank < ranks ? rank : locality_rank()};
    place.node = place.rank / ranks_a_node;
    place.nodes = (ranks + ranks_a_node - 1) / ranks_a_node;
    place.first = place.node * ranks_a_node;
    place.end = ranks - place.first < ranks_a_node ? ranks : place.first + ranks_a_node;
    return place;
}

/* ---- what the launcher answers --------------------------------------------------------------- */

static char *name_host(const struct place *place)
{
    char *name = malloc(NAME_BYTES);
    if (name)
        (void)snprintf(name, NAME_BYTES, "node%u", place->node);
    return name;
}

static char *list_peers(const struct place *place)
{
    char *list = malloc((size_t)(place->end - place->first) * RANK_DIGITS_MAX + 1);
    char *end = list;
    for (uint32_t rank = place->first; list && rank < place->end; rank++)
        end += sprintf(end, rank == place->first ? "%u" : ",%u", rank);
    was_told = true;
    return list;
}

static uint32_t local_rank(const struct place *place) { return place->rank - place->first; }
static uint32_t local_size(const struct place *place) { return place->end - place->first; }
static uint32_t node_number(const struct place *place) { return place->node; }
static uint32_t node_count(const struct place *place) { return place->nodes; }

/* The keys that Open MPI 4.1 asks for and whose values depend on where ranks are. */
static const struct answer {
    const char *key;
    uint32_t (*number)(const struct place *place);
    char *(*text)(const struct place *place);
} answers[] = {
    {"pmix.lpeers", NULL, list_peers},     {"pmix.hname", NULL, name_host},
    {"pmix.lrank", local_rank, NULL},      {"pmix.nrank", local_rank, NULL},
    {"pmix.local.size", local_size, NULL}, {"pmix.node.size", local_size, NULL},
    {"pmix.nodeid", node_number, NULL},    {"pmix.num.nodes", node_count, NULL},
};

static void put_right(const struct answer *answer, const struct place *place,
                      struct pmix_value *value)
{
    if (answer->text && value->type == PMIX_STRING) {
        free(value->string);
        value->string = answer->text(place);
    } else if (answer->number && value->type == PMIX_UINT16) {
        value->uint16 = (uint16_t)answer->number(place);
    } else if (answer->number && value->type == PMIX_UINT32) {
        value->uint32 = answer->number(place);
    }
}

typedef int get(const struct pmix_process *process, const char *key, const void *info,
                size_t info_len, struct pmix_value **value);
SIM_API get PMIx_Get;

int PMIx_Get(const struct pmix_process *process, const char *key, const void *info, size_t info_len,
             struct pmix_value **value)
{
    CALLER_NEXT(PMIx_Get);
    if (!next)
        return PMIX_ERR_NOT_SUPPORTED;
    int status = next(process, key, info, info_len, value);
    uint32_t ranks_a_node = locality_ranks_a_node();
    if (status != 0 || !key || ranks_a_node == 0)
        return status;
    struct place place = place_of(process ? process->rank : UINT32_MAX, ranks_a_node);
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        if (strcmp(key, answers[i].key) == 0)
            put_right(&answers[i], &place, *value);
    return status;
}

/* ---- what Hydra answers ---------------------------------------------------------------------- */

/* MPIs that Hydra starts are told that each rank is alone on its node: they would let ranks of one
 * node talk in memory that they share, and who waits for a line of it does not call the simulator.
 * MPI reads such an answer as one line. */
#define MAPPING "value=(vector,"
#define ALONE MAPPING "(0,%u,1))\n"

static ssize_t part_ranks(char *line, size_t len_bytes, size_t room_bytes)
{
    char *value = memmem(line, len_bytes, MAPPING, sizeof MAPPING - 1);
    size_t at = (size_t)(value - line);
    int alone_bytes = snprintf(NULL, 0, ALONE, locality_ranks());
    if (at + (size_t)alone_bytes >= room_bytes)
        return (ssize_t)len_bytes;
    return (ssize_t)at + snprintf(value, room_bytes - at, ALONE, locality_ranks());
}

/* On a busy machine an answer may take longer than the simulator lets a thread sleep that has the
 * turn. One that wakes now and then may sleep on. */
#define LAUNCHER_LOOKS 60
#define LOOK_MS 1000

static void wait_for_launcher(int file)
{
    struct pollfd wanted = {.fd = file, .events = POLLIN};
    for (int i = 0; i < LAUNCHER_LOOKS && syscall(SYS_poll, &wanted, 1, LOOK_MS) == 0; i++)
        ;
}

SIM_API ssize_t read(int file, void *data, size_t room_bytes)
{
    CALLER_NEXT(read);
    if (file == locality_hydra_file() && locality_ranks_a_node())
        wait_for_launcher(file);
    else if (!pipe_await(__builtin_return_address(0), file))
        return -1;
    ssize_t len_bytes = next ? next(file, data, room_bytes) : -1;
    bool is_mapping = len_bytes > 0 &&
                      memmem(data, (size_t)len_bytes, MAPPING, sizeof MAPPING - 1) &&
                      file == locality_hydra_file() && locality_ranks_a_node();
    return is_mapping ? part_ranks(data, (size_t)len_bytes, room_bytes) : len_bytes;
}

/* ---- the name of the host -------------------------------------------------------------------- */

SIM_API int uname(struct utsname *host)
{
    int status = (int)syscall(SYS_uname, host);
    if (status == 0 && locality_ranks_a_node())
        (void)snprintf(host->nodename, sizeof host->nodename, "node%u", locality_node());
    return status;
}

SIM_API int gethostname(char *name, size_t name_bytes)
{
    struct utsname host;
    if (uname(&host) != 0)
        return -1;
    if (snprintf(name, name_bytes, "%s", host.nodename) < (int)name_bytes)
        return 0;
    errno = ENAMETOOLONG;
    return -1;
}
