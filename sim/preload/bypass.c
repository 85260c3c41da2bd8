/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways from one node to another that are not the simulated hardware's: memory that ranks of several
 * nodes map, or reach in each other's process, and MPI's files. All ranks are really on one host,
 * so these ways work, in no virtual time. A rank that takes one is ended with a message. Ranks of
 * one node may share what they like. MPI itself takes none of these ways, since it knows where each
 * rank is (locality.c); a rank whose MPI did not ask is ended, too.
 *
 * Files, pipes and sockets of the program's own are not checked: nothing of the cluster comes by
 * them.
 */
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "caller.h"
#include "locality.h"

#define ADVICE "ranks of one node may share memory, see MPI_COMM_TYPE_SHARED"

static void complain(const char *what)
{
    (void)fprintf(stderr, "velo: rank %u on node%u %s\n", locality_rank(), locality_node(), what);
}

__attribute__((noreturn, format(printf, 1, 2))) static void refuse(const char *format, ...)
{
    char why[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    complain(why);
    _exit(SIM_EXIT);
}

/* Is the call a rank's, and not one of its launcher's libraries, the C library or libvelo? */
static bool is_of_job(const void *caller)
{
    return locality_ranks_a_node() > 0 && caller_at(caller) >= CALLER_RUNTIME;
}

/* ---- who else is there ----------------------------------------------------------------------- */

/* A word of the environment that a process was started with. */
static bool find_word(const char *words, const char *end, const char *name, const char **value)
{
    size_t len = strlen(name);
    for (*value = NULL; words < end && !*value; words += strlen(words) + 1)
        if (strncmp(words, name, len) == 0 && words[len] == '=')
            *value = words + len + 1;
    return *value != NULL;
}

/* The rank that a process is, of this cluster; -1: none. */
static int64_t rank_of_process(int pid)
{
    char path[40], *words = NULL;
    const char *cluster, *rank, *own = getenv("VELO_SIM");
    size_t room = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/environ", pid);
    FILE *file = fopen(path, "re");
    ssize_t len = file ? getdelim(&words, &room, EOF, file) : -1;
    int64_t found = -1;
    if (len > 0 && own && find_word(words, words + len, "VELO_SIM", &cluster) &&
        strcmp(cluster, own) == 0 && find_word(words, words + len, "VELO_SIM_RANK", &rank))
        found = (int64_t)strtoll(rank, NULL, 10);
    free(words);
    if (file)
        (void)fclose(file);
    return found;
}

static bool is_elsewhere(int64_t rank)
{
    return rank >= 0 && rank / locality_ranks_a_node() != locality_node();
}

/* ---- memory that is mapped ------------------------------------------------------------------- */

struct mapping {
    uintptr_t begin;
    char device[16];
    uint64_t inode; /* Of the file. */
    bool is_shared, is_writable;
    char name[128];
};

/* A line of /proc/PID/maps: range, rights, offset, device, inode, name. */
static bool read_mapping(char *line, struct mapping *mapping)
{
    char *words[5], *rest = line;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        words[i] = strsep(&rest, " ");
        if (!rest)
            return false;
    }
    mapping->begin = strtoul(words[0], NULL, 16);
    mapping->is_writable = strchr(words[1], 'w');
    mapping->is_shared = strchr(words[1], 's');
    mapping->inode = strtoul(words[4], NULL, 10);
    (void)snprintf(mapping->device, sizeof mapping->device, "%s", words[3]);
    (void)snprintf(mapping->name, sizeof mapping->name, "%.*s", (int)strcspn(rest, "\n"), rest);
    return mapping->is_shared;
}

/* Can bytes pass from one to the other? Both map one file, and one of them may write. */
static bool meet(const struct mapping *a, const struct mapping *b)
{
    return a->inode == b->inode && strcmp(a->device, b->device) == 0 &&
           (a->is_writable || b->is_writable);
}

/* Find the mapping of a process that meets `other`; without `other`, the one at an address. */
static bool find_mapping(int pid, const struct mapping *other, const void *address,
                         struct mapping *found)
{
    char line[512];
    (void)snprintf(line, sizeof line, "/proc/%d/maps", pid);
    FILE *file = fopen(line, "re");
    bool is_found = false;
    while (file && !is_found && fgets(line, sizeof line, file))
        is_found = read_mapping(line, found) &&
                   (other ? meet(found, other) : found->begin == (uintptr_t)address);
    if (file)
        (void)fclose(file);
    return is_found;
}

static void check_mapping(const void *memory)
{
    struct mapping own, other;
    DIR *processes = opendir("/proc");
    if (!processes || !find_mapping(getpid(), NULL, memory, &own)) {
        if (processes)
            (void)closedir(processes);
        return;
    }
    for (struct dirent *entry = readdir(processes); entry; entry = readdir(processes)) {
        int pid = (int)strtol(entry->d_name, NULL, 10);
        int64_t rank = pid > 0 ? rank_of_process(pid) : -1;
        if (is_elsewhere(rank) && find_mapping(pid, &own, NULL, &other))
            refuse("maps memory that rank %d on node%d has mapped, too: %s; nothing would go over "
                   "the simulated links (" ADVICE ")",
                   (int)rank, (int)rank / (int)locality_ranks_a_node(),
                   own.name + strspn(own.name, " "));
    }
    (void)closedir(processes);
}

static bool is_file(int file)
{
    struct stat status;
    return fstat(file, &status) == 0 && S_ISREG(status.st_mode);
}

SIM_API void *mmap(void *address, size_t len_bytes, int rights, int flags, int file, off_t at)
{
    void *memory = (void *)syscall(SYS_mmap, address, len_bytes, rights, flags, file, at);
    if (memory != MAP_FAILED && (flags & MAP_SHARED) && file >= 0 &&
        is_of_job(__builtin_return_address(0)) && is_file(file))
        check_mapping(memory);
    return memory;
}

SIM_API void *mmap64(void *address, size_t len_bytes, int rights, int flags, int file, off_t at)
    __attribute__((alias("mmap")));

/* Open MPI tries out at its start whether it can attach such memory at all. To look through all
 * processes then would take each rank as long as there are ranks. */
static bool is_attached_once(int id)
{
    struct shmid_ds status;
    return shmctl(id, IPC_STAT, &status) == 0 && status.shm_nattch == 1;
}

SIM_API void *shmat(int id, const void *address, int flags)
{
    void *memory = (void *)syscall(SYS_shmat, id, address, flags);
    if ((intptr_t)memory != -1 && is_of_job(__builtin_return_address(0)) && !is_attached_once(id))
        check_mapping(memory);
    return memory;
}

/* ---- memory of another process --------------------------------------------------------------- */

static void check_process(const void *caller, int pid, const char *call)
{
    int64_t rank = is_of_job(caller) && pid != getpid() ? rank_of_process(pid) : -1;
    if (is_elsewhere(rank))
        refuse("reaches by %s() into the memory of rank %d on node%d; nothing would go over the "
               "simulated links (" ADVICE ")",
               call, (int)rank, (int)rank / (int)locality_ranks_a_node());
}

SIM_API ssize_t process_vm_readv(pid_t pid, const struct iovec *here, unsigned long here_len,
                                 const struct iovec *there, unsigned long there_len,
                                 unsigned long flags)
{
    check_process(__builtin_return_address(0), pid, "process_vm_readv");
    return syscall(SYS_process_vm_readv, pid, here, here_len, there, there_len, flags);
}

SIM_API ssize_t process_vm_writev(pid_t pid, const struct iovec *here, unsigned long here_len,
                                  const struct iovec *there, unsigned long there_len,
                                  unsigned long flags)
{
    check_process(__builtin_return_address(0), pid, "process_vm_writev");
    return syscall(SYS_process_vm_writev, pid, here, here_len, there, there_len, flags);
}

/* ---- MPI ------------------------------------------------------------------------------------- */

/* As in <mpi.h>, which need not be installed. */
#define MPI_ERR_INTERN 17
#define MPI_VERSION_BYTES 8192
/* MPI_COMM_WORLD is an object in Open MPI, which a program may have a copy of; in MPICH and those
 * that come from it, a number. */
#define OPEN_MPI_WORLD "ompi_mpi_comm_world"
#define FORTRAN_COMM_WORLD 0
#define MPICH_WORLD 0x44000000

typedef int library_version(char *version, int *len);
typedef void *comm_from_number(int fortran);
typedef int comm_size(void *comm, int *len);
typedef int comm_group(void *comm, void **group);
typedef int group_translate(void *group, int len, const int *ranks, void *other, int *others);
typedef int group_free(void **group);

/* The rank in MPI_COMM_WORLD of a communicator's rank. -1: MPI cannot say. */
static int translate_rank(void *comm, void *world, int rank)
{
    comm_group *group_of = (comm_group *)(uintptr_t)caller_next("PMPI_Comm_group");
    group_translate *translate =
        (group_translate *)(uintptr_t)caller_next("PMPI_Group_translate_ranks");
    group_free *give_back = (group_free *)(uintptr_t)caller_next("PMPI_Group_free");
    void *group = NULL, *all = NULL;
    int found = -1;
    if (!group_of || !translate || !give_back)
        return -1;
    if (group_of(comm, &group) != 0 || group_of(world, &all) != 0 ||
        translate(group, 1, &rank, all, &found) != 0)
        found = -1;
    if (group)
        (void)give_back(&group);
    if (all)
        (void)give_back(&all);
    return found;
}

static void *find_world(void)
{
    comm_from_number *from_number = (comm_from_number *)(uintptr_t)caller_next("PMPI_Comm_f2c");
    if (from_number && caller_next(OPEN_MPI_WORLD))
        return from_number(FORTRAN_COMM_WORLD);
    return (void *)(uintptr_t)MPICH_WORLD; /* Only the lower half is looked at. */
}

/* Has the communicator a rank on another node? */
static bool spans_nodes(void *comm)
{
    comm_size *size_of = (comm_size *)(uintptr_t)caller_next("PMPI_Comm_size");
    int len = 0;
    bool is_found = false;
    if (locality_ranks_a_node() == 0 || !size_of || size_of(comm, &len) != 0)
        return false;
    void *world = find_world();
    for (int i = 0; i < len && !is_found; i++)
        is_found = is_elsewhere(translate_rank(comm, world, i));
    return is_found;
}

static void check_file(void *comm, const char *name)
{
    if (spans_nodes(comm))
        refuse("opens the file %s together with ranks of other nodes; MPI's files are not "
               "simulated, and nothing would go over the simulated links (let each node open its "
               "own, or rank 0 read and write for all)",
               name);
}

/* MPI refuses this by itself, but its message does not always reach the user. */
static void explain_shared(void *comm)
{
    if (spans_nodes(comm))
        complain("asks for memory that it would share with ranks of other nodes, and which there "
                 "is not (" ADVICE ")");
}

/* Open MPI 4.1.1 to 4.1.4 waits for a lock that it holds itself, at the first operation on a
 * dynamic window of another node (osc/rdma, find_dynamic_region): it would go on trying for ever.
 */
static void check_dynamic(void *comm)
{
    char version[MPI_VERSION_BYTES] = "";
    int len = 0;
    library_version *version_of =
        (library_version *)(uintptr_t)caller_next("PMPI_Get_library_version");
    if (getenv("OMPI_MCA_osc") || !version_of || version_of(version, &len) != 0)
        return;
    const char *series = strstr(version, "v4.1.");
    long release = series ? strtol(series + strlen("v4.1."), NULL, 10) : 0;
    if (release < 1 || release > 4)
        return;
    if (spans_nodes(comm))
        refuse("makes a dynamic window together with ranks of other nodes; Open MPI 4.1.%ld never "
               "ends operations on it (set OMPI_MCA_osc=pt2pt in the environment, or take Open MPI "
               "4.1.5)",
               release);
}

static int end_start(int status)
{
    if (status == 0 && locality_ranks_a_node() > 0 && !locality_was_told())
        refuse("has an MPI that has not asked libpmix where its ranks are: it would take them to "
               "be on one host, and pass the simulated links by; Open MPI has to be built with an "
               "external PMIx, as Debian's is");
    return status;
}

#define PASS_UNDER(name, parameters, arguments, before, after)                                     \
    typedef int name##_call parameters;                                                            \
    SIM_API name##_call name;                                                                      \
    int name parameters                                                                            \
    {                                                                                              \
        CALLER_NEXT(name);                                                                         \
        if (!next)                                                                                 \
            return MPI_ERR_INTERN;                                                                 \
        before;                                                                                    \
        return after(next arguments);                                                              \
    }

/* The functions for Fortran call those for C by the second name. */
#define PASS(name, parameters, arguments, before, after)                                           \
    PASS_UNDER(MPI_##name, parameters, arguments, before, after)                                   \
    PASS_UNDER(PMPI_##name, parameters, arguments, before, after)

PASS(File_open, (void *comm, const char *name, int mode, void *info, void **file),
     (comm, name, mode, info, file), check_file(comm, name), )
PASS(Win_allocate_shared,
     (intptr_t len_bytes, int unit_bytes, void *info, void *comm, void *base, void **window),
     (len_bytes, unit_bytes, info, comm, base, window), explain_shared(comm), )
PASS(Win_create_dynamic, (void *info, void *comm, void **window), (info, comm, window),
     check_dynamic(comm), )
PASS(Init, (int *argc, char ***argv), (argc, argv), , end_start)
PASS(Init_thread, (int *argc, char ***argv, int required, int *provided),
     (argc, argv, required, provided), , end_start)
