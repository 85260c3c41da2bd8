/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segments that dead processes leave in shared memory: the next process that starts removes them,
 * unless a process lives to which their names still say something. Segments of others are never
 * removed.
 */
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <velo/rma.h>

#include "shm/inspect.h"
#include "test.h"

enum { NOBODY = 65534 };
/* A domain has a file by which its processes of one user live. */
enum { LIVES = 1 };

/* ---- a directory of our own ------------------------------------------------------------------ */

static char directory[64];

/* Other programs that start meanwhile sweep, too: not where we look. */
static void directory_begin(void)
{
    snprintf(directory, sizeof(directory), "/dev/shm/velo-leftovers-XXXXXX");
    CHECK(mkdtemp(directory) != NULL);
    CHECK_EQ(chmod(directory, 01777), 0);
    CHECK_EQ(setenv("VELO_SHM_DIR", directory, 1), 0);
}

static unsigned files(const char *domain)
{
    char start[5 + VELO_DOMAIN_NAME_MAX + 1];
    unsigned count = 0;
    DIR *dir = opendir(directory);

    CHECK(dir != NULL);
    snprintf(start, sizeof(start), "velo.%s", domain);
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
        count += strncmp(entry->d_name, start, strlen(start)) == 0;
    closedir(dir);
    return count;
}

static void directory_end(void)
{
    CHECK_EQ(files(""), 0);
    CHECK_EQ(rmdir(directory), 0);
    CHECK_EQ(unsetenv("VELO_SHM_DIR"), 0);
}

/* ---- processes with ports -------------------------------------------------------------------- */

struct owner {
    const char *domain;
    int first, count; /* Vpids. */
    uid_t uid;        /* 0: ours. */
    atomic_int is_held, is_ready;
};

static void become(uid_t uid)
{
    if (uid == 0)
        return;
    CHECK_EQ(setgroups(0, NULL), 0);
    CHECK_EQ(setresgid(uid, uid, uid), 0);
    CHECK_EQ(setresuid(uid, uid, uid), 0);
}

static struct velo_port *open_in(const char *domain, int vpid)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *port = NULL;

    attr.domain = domain;
    attr.vpid = vpid;
    attr.conns_max = 16;
    CHECK_OK(velo_port_open(&attr, &port));
    return port;
}

/* Ports and their RMA units, until killed. */
static void own_ports(void *arg)
{
    struct owner *self = arg;

    become(self->uid);
    while (atomic_load(&self->is_held))
        test_sleep_ns(10 * TEST_US);
    for (int vpid = self->first; vpid < self->first + self->count; vpid++) {
        struct velo_rma *rma = NULL;
        CHECK_OK(velo_rma_open(open_in(self->domain, vpid), NULL, &rma));
    }
    atomic_store(&self->is_ready, 1);
    for (;;)
        pause();
}

static struct owner *owner_new(const char *domain, int first, int count)
{
    struct owner *self = test_shared_alloc(sizeof(*self));

    *self = (struct owner){.domain = domain, .first = first, .count = count};
    return self;
}

static void wait_ready(struct owner *self)
{
    for (int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS; atomic_load(&self->is_ready) == 0;) {
        CHECK(test_now_ns() < end_ns);
        test_sleep_ns(100 * TEST_US);
    }
}

static pid_t owner_start(struct owner *self)
{
    pid_t child = child_start(own_ports, self);

    wait_ready(self);
    return child;
}

/* A process that had `count` ports in a domain, and was killed. */
static void leave(const char *domain, int count, uid_t uid)
{
    struct owner *self = owner_new(domain, 0, count);

    self->uid = uid;
    child_kill(owner_start(self));
}

static void open_and_close(void *arg)
{
    const struct owner *self = arg;

    become(self->uid);
    CHECK_OK(velo_port_close(open_in(self->domain, 50)));
}

/* A process that opens its first port, in a domain, and ends. */
static void start_as(const char *domain, uid_t uid)
{
    struct owner *self = owner_new(domain, 0, 0);

    self->uid = uid;
    child_join(child_start(open_and_close, self));
}

static void start(const char *domain) { start_as(domain, 0); }

/* ---- by hand --------------------------------------------------------------------------------- */

struct found {
    unsigned domains;
    struct velo_domain_view last;
};

static int keep(void *arg, const struct velo_domain_view *view)
{
    struct found *found = arg;

    found->domains++;
    found->last = *view;
    return 0;
}

/* The one domain that there is. */
static struct velo_domain_view clean(const char *domain, bool removes)
{
    struct found found = {0};
    struct velo_clean how = {.domain = domain, .removes = removes};

    CHECK_OK(velo_clean(&how, keep, &found));
    CHECK_EQ(found.domains, 1);
    CHECK_EQ(found.last.failed, 0);
    return found.last;
}

/* ---- tests ----------------------------------------------------------------------------------- */

TEST(what_a_dead_domain_left_goes_with_the_next_start_of_any)
{
    directory_begin();
    leave("left", 4, 0);
    CHECK_EQ(files("left"), 8 + LIVES);
    start("other");
    directory_end();
}

TEST(what_a_domain_of_the_longest_name_left_goes_too)
{
    char name[VELO_DOMAIN_NAME_MAX + 1];

    memset(name, 'n', VELO_DOMAIN_NAME_MAX);
    name[VELO_DOMAIN_NAME_MAX] = '\0';
    directory_begin();
    leave(name, 2, 0);
    CHECK_EQ(files(name), 4 + LIVES);
    start("other");
    directory_end();
}

TEST(a_dead_port_keeps_its_name_while_its_domain_lives)
{
    struct velo_conn *conn = NULL;

    directory_begin();
    pid_t first = owner_start(owner_new("both", 0, 1)); /* Before and behind in any order. */
    struct velo_port *port = open_in("both", 7);
    pid_t last = owner_start(owner_new("both", 9, 1));
    child_kill(first);
    child_kill(last);
    start("other");
    start("both");
    CHECK_STATUS(velo_connect(port, VELO_ID(0, 0), &conn, 0), VELO_ERR_PEER_DEAD);
    CHECK_STATUS(velo_connect(port, VELO_ID(0, 9), &conn, 0), VELO_ERR_PEER_DEAD);
    CHECK_OK(velo_port_close(port));
    start("other");
    directory_end();
}

/* A sender of a dead port, which nobody has asked yet whether it lives; the way in which another
 * process takes the dead one's file away; and what the sender's next calls say. */
static void check_that_senders_hear_of(void (*take_away)(void *arg))
{
    struct velo_conn *conns[2];
    struct velo_rma *rma;
    struct velo_rma_peer *peer;

    directory_begin();
    pid_t dead = owner_start(owner_new("both", 0, 1));
    struct velo_port *port = open_in("both", 7);
    CHECK_OK(velo_rma_open(port, NULL, &rma));
    CHECK_OK(velo_rma_connect(rma, VELO_ID(0, 0), &peer, TEST_PATIENCE_NS));
    for (int i = 0; i < 2; i++) {
        conns[i] = port_connect(port, VELO_ID(0, 0));
        CHECK_OK(velo_try_send(conns[i], "x", 1, 0));
    }
    child_kill(dead);
    child_join(child_start(take_away, NULL));
    for (int i = 0; i < 2; i++)
        CHECK_STATUS(velo_try_send(conns[i], "x", 1, 0), VELO_ERR_PEER_DEAD);
    CHECK_STATUS(velo_rma_peer_status(peer), VELO_ERR_PEER_DEAD);
    CHECK_OK(velo_rma_close(rma));
    CHECK_OK(velo_port_close(port));
    directory_end();
}

static void take_its_id(void *arg)
{
    struct velo_port *port = open_in("both", 0);
    struct velo_rma *rma;

    (void)arg;
    CHECK_OK(velo_rma_open(port, NULL, &rma));
    CHECK_OK(velo_rma_close(rma));
    CHECK_OK(velo_port_close(port));
}

static void clean_its_domain(void *arg)
{
    (void)arg;
    CHECK_EQ(clean("both", true).removed, 2); /* Its unit has one, too. */
}

TEST(senders_hear_of_a_death_from_whoever_has_the_dead_ones_id_next)
{
    check_that_senders_hear_of(take_its_id);
}

TEST(senders_hear_of_a_death_from_who_cleans_up) { check_that_senders_hear_of(clean_its_domain); }

static void remove_files(const char *domain)
{
    DIR *dir = opendir(directory);
    char prefix[64];

    CHECK(dir != NULL);
    snprintf(prefix, sizeof(prefix), "velo.%s", domain);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0)
            CHECK_EQ(unlinkat(dirfd(dir), entry->d_name, 0), 0);
    closedir(dir);
}

/* As an administrator, or the end of a login, may do. */
TEST(a_port_whose_file_was_removed_leaves_the_next_ones_alone)
{
    struct velo_rma *rma;

    directory_begin();
    struct velo_port *old = open_in("removed", 0), *other = open_in("removed", 1);
    CHECK_OK(velo_rma_open(old, NULL, &rma));
    remove_files("removed");
    pid_t next = owner_start(owner_new("removed", 0, 1));
    CHECK_EQ(files("removed"), 2 + LIVES);
    CHECK_OK(velo_rma_close(rma));
    CHECK_OK(velo_port_close(old));
    CHECK_EQ(files("removed"), 2 + LIVES);
    (void)port_connect(other, VELO_ID(0, 0));
    child_kill(next);
    CHECK_OK(velo_port_close(other));
    start("removed");
    start("else");
    directory_end();
}

TEST(a_domain_that_is_opened_again_keeps_its_dead)
{
    struct velo_conn *conn = NULL;

    directory_begin();
    leave("again", 2, 0);
    struct velo_port *port = open_in("again", 1);
    CHECK_STATUS(velo_connect(port, VELO_ID(0, 0), &conn, 0), VELO_ERR_PEER_DEAD);
    CHECK_OK(velo_port_close(port));
    start("other");
    directory_end();
}

TEST(domains_whose_names_begin_alike_are_told_apart)
{
    directory_begin();
    pid_t b = owner_start(owner_new("a-b", 0, 1)), c = owner_start(owner_new("aa", 0, 1));
    leave("a", 2, 0);
    CHECK_EQ(files(""), 8 + 3 * LIVES);
    start("other");
    CHECK_EQ(files("a-b."), 1);
    CHECK_EQ(files("a-b+rma."), 1);
    CHECK_EQ(files("aa"), 2 + LIVES);
    CHECK_EQ(files(""), 4 + 2 * LIVES);
    child_kill(b);
    child_kill(c);
    start("a");
    directory_end();
}

TEST(a_file_that_is_no_segment_stays_and_keeps_nothing)
{
    char path[128];

    directory_begin();
    leave("left", 1, 0);
    snprintf(path, sizeof(path), "%s/velo.left.0.9", directory);
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
    CHECK(fd >= 0);
    CHECK_EQ(write(fd, "mine", 4), 4);
    close(fd);
    start("other");
    CHECK_EQ(files(""), 1);
    CHECK_EQ(unlink(path), 0);
    directory_end();
}

TEST(what_other_users_left_stays)
{
    if (geteuid() != 0)
        test_skip("only root can be several users");
    directory_begin();
    leave("theirs", 1, NOBODY);
    start("other"); /* Root, who could. */
    CHECK_EQ(files("theirs"), 2 + LIVES);
    /* Another user cannot tell whether a port of root's lives. */
    leave("mixed", 1, 0);
    struct owner *self = owner_new("mixed", 3, 1);
    self->uid = NOBODY;
    child_kill(owner_start(self));
    start_as("other", NOBODY);
    CHECK_EQ(files("theirs"), 0);
    CHECK_EQ(files("mixed"), 4 + LIVES); /* Root's. */
    start("other");                      /* Takes its own away, and with them the doubt. */
    CHECK_EQ(files("mixed"), 2);
    start_as("other", NOBODY);
    directory_end();
}

TEST(a_domain_is_cleaned_by_hand_as_far_as_wanted)
{
    directory_begin();
    pid_t living = owner_start(owner_new("both", 9, 1));
    leave("both", 2, 0);
    struct velo_domain_view view = clean(NULL, true);
    CHECK_EQ(view.alive, 2);
    CHECK_EQ(view.dead, 4);
    CHECK_EQ(view.removable, 0);
    CHECK(view.memory_bytes > 0);
    view = clean("both", false);
    CHECK_EQ(view.removable, 4);
    CHECK(view.removable_bytes > 0 && view.removable_bytes < view.memory_bytes);
    CHECK_EQ(view.removed, 0);
    CHECK_EQ(files("both"), 6 + LIVES);
    view = clean("both", true);
    CHECK_EQ(view.removed, 4);
    CHECK_EQ(files("both"), 2 + LIVES);
    child_kill(living);
    CHECK_EQ(clean(NULL, true).removed, 2);
    directory_end();
}

/* The first process of a PID namespace, alive, seen from outside of it. */
static void look_into_namespace(void *arg)
{
    struct owner *self = arg;

    if (!test_unshare(CLONE_NEWPID))
        _exit(77);
    pid_t inside = fork(); /* child_start() compares process ids, which differ inside. */
    CHECK(inside >= 0);
    if (inside == 0) {
        CHECK_EQ(prctl(PR_SET_PDEATHSIG, SIGKILL), 0);
        own_ports(self);
    }
    wait_ready(self);
    CHECK_EQ(clean(NULL, true).alive, 2);
    CHECK_EQ(files("inside"), 2 + LIVES);
    child_kill(inside);
    CHECK_EQ(clean(NULL, true).removed, 2);
}

TEST(a_process_in_another_pid_namespace_counts_as_alive)
{
    directory_begin();
    int status = child_wait(child_start(look_into_namespace, owner_new("inside", 0, 1)));
    directory_end();
    CHECK(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        test_skip("this user may not make a PID namespace");
    CHECK_EQ(WEXITSTATUS(status), 0);
}

/* ---- at the same time ------------------------------------------------------------------------ */

enum { ROUNDS = 50, PORTS = 20, SWEEPERS = 2 };

static void sweep_until(void *arg)
{
    const atomic_int *stop = arg;
    struct velo_clean how = {.domain = "busy", .removes = true};

    while (atomic_load(stop) == 0)
        CHECK_OK(velo_clean(&how, keep, &(struct found){0}));
}

/* Each time sweepers remove the names of a dead owner while the next owner replaces them. A dead
 * port is never said to be alive, and no living one loses its name. */
TEST(sweepers_meet_each_other_and_the_next_owner)
{
    pid_t sweepers[SWEEPERS], before = 0;
    atomic_int *stop = test_shared_alloc(sizeof(*stop));

    directory_begin();
    for (int i = 0; i < SWEEPERS; i++)
        sweepers[i] = child_start(sweep_until, stop);
    for (int round = 0; round < ROUNDS; round++) {
        struct owner *next = owner_new("busy", 0, PORTS);
        atomic_store(&next->is_held, 1);
        pid_t child = child_start(own_ports, next);
        if (before)
            child_kill(before);
        atomic_store(&next->is_held, 0);
        wait_ready(next);
        CHECK_EQ(files("busy"), 2 * PORTS + LIVES);
        before = child;
    }
    child_kill(before);
    atomic_store(stop, 1);
    for (int i = 0; i < SWEEPERS; i++)
        child_join(sweepers[i]);
    start("other");
    directory_end();
}
