/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which ranks share memory.
 *
 * A rank that decided for itself would hang all the others if it came to another answer. So each
 * announces facts, all compare the same facts, and a communicator has shared memory only if those
 * of all its ranks are equal. A rank without this component announces nothing, and equals nobody.
 */
#include "coll_velo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "../../../../lib/base/fd.h"
#include "common/velo_ompi.h"

/* Changes with the layout of shared memory and with every algorithm. */
#define PROTOCOL 1u
#define BOOT_ID_BYTES 40
#define HOST_BYTES 68
#define STAT_BYTES 1024
/* Of /proc/PID/stat, counted behind the name. */
#define STAT_STARTED 20

/* Ranks on one machine, whose processes can see each other, have the same facts. */
struct facts {
    uint64_t processes; /* Their namespace. */
    uint32_t protocol;
    uint32_t after;
    uint32_t bytes_max;
    uint32_t group;
    uint32_t uid;
    char boot[BOOT_ID_BYTES];
    char host[HOST_BYTES];
};
_Static_assert(sizeof(struct facts) == 28 + BOOT_ID_BYTES + HOST_BYTES, "no gaps to compare");

static struct facts facts;

enum verdict { UNKNOWN, SAME, OTHER };
/* Of the ranks of this job; NULL: not looked at yet. */
static uint8_t *verdicts;

/* The first bytes of a small file as a string; its length, or -1 and errno. */
static ssize_t read_text(const char *path, char *text, size_t cap_bytes)
{
    int fd = fd_above_standard(open(path, O_RDONLY | O_CLOEXEC));
    if (fd < 0)
        return -1;
    ssize_t len = read(fd, text, cap_bytes - 1);
    int error = errno;
    (void)close(fd);
    errno = error;
    text[len > 0 ? len : 0] = '\0';
    return len;
}

int coll_velo_announce(void)
{
    struct utsname host;
    struct stat processes;
    memset(&facts, 0, sizeof facts);
    if (uname(&host) != 0 || stat("/proc/thread-self/ns/pid", &processes) != 0 ||
        read_text("/proc/sys/kernel/random/boot_id", facts.boot, sizeof facts.boot) <= 0)
        return OMPI_ERR_NOT_AVAILABLE;
    facts.protocol = PROTOCOL;
    facts.after = mca_coll_velo_component.after;
    facts.bytes_max = mca_coll_velo_component.bytes_max;
    facts.group = mca_coll_velo_component.group;
    facts.uid = (uint32_t)geteuid();
    facts.processes = processes.st_ino;
    (void)snprintf(facts.host, sizeof facts.host, "%s", host.nodename);
    return velo_ompi_announce(&mca_coll_velo_component.super.collm_version, &facts, sizeof facts);
}

/* All that a rank of this node has announced is with our server: without `immediate` that would
 * wait two seconds for what a rank without the component does not announce, and nobody would be
 * served meanwhile. What a rank of another node has announced need not be there, but equals ours
 * never. */
static bool has_same_facts(ompi_communicator_t *comm, const opal_process_name_t *process)
{
    size_t len_bytes = 0;
    void *found = NULL;
    int rc = velo_ompi_receive_now(&mca_coll_velo_component.super.collm_version, process, &found,
                                   &len_bytes);
    if (rc == OPAL_ERR_OUT_OF_RESOURCE)
        velo_ompi_give_up(comm, "no memory to learn which ranks share memory");
    bool same =
        rc == OPAL_SUCCESS && len_bytes == sizeof facts && memcmp(found, &facts, sizeof facts) == 0;
    free(found);
    return same;
}

/* Two threads may find out the same at once. */
static bool name_matches(ompi_communicator_t *comm, const opal_process_name_t *process)
{
    /* Jobs that meet later may not find each other's facts in the same way on both sides. */
    if (process->jobid != OPAL_PROC_MY_NAME.jobid || process->vpid >= velo_ompi_ranks())
        return false;
    uint8_t *verdict = &verdicts[process->vpid];
    if (*verdict == UNKNOWN)
        *verdict = has_same_facts(comm, process) ? SAME : OTHER;
    return *verdict == SAME;
}

bool coll_velo_peers_match(ompi_communicator_t *comm)
{
    for (int i = 0; i < ompi_comm_size(comm); i++) {
        opal_process_name_t process = ompi_group_get_proc_name(comm->c_local_group, i);
        if (!name_matches(comm, &process))
            return false;
    }
    return true;
}

int coll_velo_peers_init(void)
{
    verdicts = (uint8_t *)calloc(velo_ompi_ranks(), 1);
    return verdicts != NULL ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
}

void coll_velo_peers_close(void)
{
    free(verdicts);
    verdicts = NULL;
}

uint64_t coll_velo_process_started(int64_t pid)
{
    char path[32], text[STAT_BYTES];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (read_text(path, text, sizeof text) <= 0) /* It dies between open and read: ESRCH. */
        return errno == ENOENT || errno == ESRCH ? 0 : COLL_VELO_UNKNOWN;
    const char *at = strrchr(text, ')'); /* The name may hold anything. */
    if (at == NULL || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X')
        return 0;
    for (int field = 0; field < STAT_STARTED && at != NULL; field++)
        at = strchr(at + 1, ' ');
    return at != NULL ? strtoull(at, NULL, 10) : 0;
}
