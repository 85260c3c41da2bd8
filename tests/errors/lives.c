/* SPDX-License-Identifier: Apache-2.0 */
/* A process knows which of its peers live without a descriptor for each: how many descriptors it
 * has, that it needs none when a peer dies, and the file by which it knows. */
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <velo/bcast.h>
#include <velo/mq.h>
#include <velo/rma.h>

#include "test.h"

enum { PEERS = 40, MEM_BYTES = 64 << 10 };

/* What the owner of the peers has told. */
struct owner {
    int is_open;
    velo_rma_key_t key[PEERS];
};

/* ---- how many -------------------------------------------------------------------------------- */

static int descriptors_open(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;

    CHECK(dir != NULL);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

static void own_peers(void *arg)
{
    struct owner *owner = arg;

    for (int i = 0; i < PEERS; i++) {
        struct velo_bcast_attr ring = VELO_BCAST_ATTR_INIT;
        struct velo_bcast *bcast;
        struct velo_rma_mem *mem;
        struct velo_rma *rma;

        ring.vpid = i;
        CHECK_OK(velo_bcast_open(&ring, &bcast));
        CHECK_OK(velo_rma_open(port_open(i), NULL, &rma));
        CHECK_OK(velo_rma_mem_alloc(rma, MEM_BYTES, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY, &mem));
        memset(velo_rma_mem_addr(mem), i, MEM_BYTES);
        owner->key[i] = velo_rma_mem_key(mem);
    }
    __atomic_store_n(&owner->is_open, 1, __ATOMIC_RELEASE);
    for (;;)
        pause();
}

static pid_t peers_start(struct owner *owner)
{
    pid_t pid = child_start(own_peers, owner);

    while (!__atomic_load_n(&owner->is_open, __ATOMIC_ACQUIRE))
        test_sleep_ns(TEST_MS);
    return pid;
}

/* One more peer in each way. */
static void meet(struct velo_port *port, struct velo_rma *rma, int i, velo_rma_key_t key)
{
    struct velo_bcast_attr ring = VELO_BCAST_ATTR_INIT;
    struct velo_bcast_reader *reader;
    struct velo_rma_peer *peer;
    char got[MEM_BYTES] = {0};

    message_send(port_connect(port, VELO_ID(0, i)), 8, 1);
    CHECK_OK(velo_rma_connect(rma, VELO_ID(0, i), &peer, TEST_PATIENCE_NS));
    CHECK_OK(velo_rma_get(peer, got, sizeof got, (struct velo_rma_place){key, 0}, 0, 0));
    CHECK_OK(velo_rma_flush(peer, TEST_PATIENCE_NS));
    CHECK_EQ(got[MEM_BYTES - 1], i);
    ring.vpid = i;
    CHECK_OK(velo_bcast_join(&ring, &reader, TEST_PATIENCE_NS));
}

static void meet_all(void *arg)
{
    struct velo_port *port = port_open(PEERS);
    struct owner *owner = arg;
    struct velo_rma *rma;

    CHECK_OK(velo_rma_open(port, NULL, &rma));
    meet(port, rma, 0, owner->key[0]);
    int before = descriptors_open();
    for (int i = 1; i < PEERS; i++)
        meet(port, rma, i, owner->key[i]);
    CHECK_EQ(descriptors_open(), before);
    CHECK_OK(velo_rma_close(rma));
    CHECK_OK(velo_port_close(port));
}

TEST(a_peer_more_takes_no_descriptor)
{
    struct owner *owner = test_shared_alloc(sizeof *owner);
    pid_t peers = peers_start(owner);

    child_join(child_start(meet_all, owner));
    child_kill(peers);
    for (int i = 0; i < PEERS; i++) {
        struct velo_bcast_attr ring = VELO_BCAST_ATTR_INIT;
        struct velo_bcast *bcast;
        struct velo_port *port = port_open(i);
        struct velo_rma *rma;

        ring.vpid = i;
        CHECK_OK(velo_rma_open(port, NULL, &rma));
        CHECK_OK(velo_bcast_open(&ring, &bcast));
        CHECK_OK(velo_bcast_close(bcast));
        CHECK_OK(velo_rma_close(rma));
        CHECK_OK(velo_port_close(port));
    }
}

/* ---- deaths ---------------------------------------------------------------------------------- */

static void limit_descriptors(rlim_t limit_files)
{
    struct rlimit limit;

    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit_files;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* A peer that sends to port 1, owns port 2 and the ring 2, and reads the ring 1. */
static void be_a_peer(void *arg)
{
    struct velo_bcast_attr ring = VELO_BCAST_ATTR_INIT;
    struct velo_bcast_reader *reader;
    struct velo_bcast *bcast;

    (void)arg;
    ring.vpid = 2;
    CHECK_OK(velo_bcast_open(&ring, &bcast));
    ring.vpid = 1;
    CHECK_OK(velo_bcast_join(&ring, &reader, TEST_PATIENCE_NS));
    message_send(port_connect(port_open(2), VELO_ID(0, 1)), 8, 1);
    for (;;)
        pause();
}

static void await_dead_reader(struct velo_bcast *bcast)
{
    int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;

    while (velo_bcast_send(bcast, "x", 1, 0, TEST_PATIENCE_NS) == VELO_OK &&
           velo_bcast_readers(bcast) > 0 && test_now_ns() < end_ns)
        ;
    CHECK_EQ(velo_bcast_readers(bcast), 0);
}

static void survive(void *arg)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_bcast_attr ring = VELO_BCAST_ATTR_INIT;
    struct velo_bcast_reader *reader;
    struct velo_bcast *bcast;
    struct velo_port *port;
    struct velo_msg msg;

    attr.vpid = ring.vpid = 1;
    attr.flags = VELO_PORT_DEPARTURES;
    CHECK_OK(velo_port_open(&attr, &port));
    CHECK_OK(velo_bcast_open(&ring, &bcast));
    pid_t peer = child_start(be_a_peer, NULL);
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 2));
    ring.vpid = 2;
    CHECK_OK(velo_bcast_join(&ring, &reader, TEST_PATIENCE_NS));
    message_expect(port, 8, 1, VELO_ID(0, 2));
    CHECK_OK(velo_conn_status(conn));
    if (arg) { /* Their names are taken away, too. */
        char pattern[256];
        glob_t names;

        snprintf(pattern, sizeof pattern, "%s/velo.%s*", test_shm_dir(), test_domain());
        CHECK_EQ(glob(pattern, 0, NULL, &names), 0);
        for (size_t i = 0; i < names.gl_pathc; i++)
            CHECK_EQ(unlink(names.gl_pathv[i]), 0);
        CHECK_OK(velo_conn_status(conn));
    }
    limit_descriptors(0);
    child_kill(peer);
    CHECK_STATUS(velo_conn_status(conn), VELO_ERR_PEER_DEAD);
    CHECK_STATUS(velo_bcast_status(reader), VELO_ERR_PEER_DEAD);
    CHECK_STATUS(velo_recv(port, NULL, 0, &msg, TEST_PATIENCE_NS), VELO_ERR_PEER_DEAD);
    await_dead_reader(bcast);
    limit_descriptors(1024);
    CHECK_OK(velo_bcast_leave(reader));
    CHECK_OK(velo_bcast_close(bcast));
    CHECK_OK(velo_port_close(port));
}

static void take_the_dead_away(void)
{
    struct velo_bcast_attr ring = VELO_BCAST_ATTR_INIT;
    struct velo_bcast *bcast;

    ring.vpid = 2;
    CHECK_OK(velo_bcast_open(&ring, &bcast));
    CHECK_OK(velo_bcast_close(bcast));
    CHECK_OK(velo_port_close(port_open(2)));
}

TEST(a_death_is_noticed_without_a_descriptor)
{
    child_join(child_start(survive, NULL));
    take_the_dead_away();
}

TEST(a_death_is_noticed_though_all_names_are_gone)
{
    static int names_go;

    child_join(child_start(survive, &names_go));
}

/* ---- the file -------------------------------------------------------------------------------- */

static void lives_path(char path[256], const char *domain)
{
    snprintf(path, 256, "%s/velo.%s+lives.%u", test_shm_dir(), domain, (unsigned)geteuid());
}

static void connect_without_the_file(void *arg)
{
    struct velo_port *young = port_open(2); /* With a new file, which is not the old port's. */
    struct velo_conn *conn = NULL;

    (void)arg;
    CHECK_FAILS(velo_connect(young, VELO_ID(0, 1), &conn, 0), VELO_ERR_ACCESS, "has removed");
    CHECK_OK(velo_port_close(young));
}

TEST(a_peer_whose_life_nobody_can_watch_is_refused)
{
    char path[256];
    struct velo_port *old = port_open(1);

    lives_path(path, test_domain());
    CHECK_EQ(unlink(path), 0);
    child_join(child_start(connect_without_the_file, NULL));
    /* A port of the old one's own process has the file. */
    struct velo_port *young = port_open(2);
    message_send(port_connect(young, VELO_ID(0, 1)), 8, 1);
    message_expect(old, 8, 1, VELO_ID(0, 2));
    CHECK_OK(velo_port_close(young));
    CHECK_OK(velo_port_close(old));
}

/* ---- its name -------------------------------------------------------------------------------- */

enum { OTHER_NUMBER = 4321, NOT_PERMITTED = 77, NUMBERS = 64 };

static void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        _exit(NOT_PERMITTED);
    close(fd);
}

/* The same user, who has another number in here. */
static void enter_users_namespace(void *arg)
{
    char user[64], group[64];

    (void)arg;
    snprintf(user, sizeof(user), "%d %u 1", OTHER_NUMBER, (unsigned)geteuid());
    snprintf(group, sizeof(group), "%d %u 1", OTHER_NUMBER, (unsigned)getegid());
    if (unshare(CLONE_NEWUSER) != 0)
        _exit(NOT_PERMITTED);
    write_text("/proc/self/uid_map", user);
    write_text("/proc/self/setgroups", "deny");
    write_text("/proc/self/gid_map", group);
    CHECK_EQ(geteuid(), OTHER_NUMBER);
}

static void meet_from_another_namespace(void *arg)
{
    struct velo_port *port;

    (void)arg;
    enter_users_namespace(NULL);
    port = port_open(2);
    message_send(port_connect(port, VELO_ID(0, 1)), 8, 1);
    message_expect(port, 8, 2, VELO_ID(0, 1));
    for (;;)
        pause();
}

static void find_no_place(void *arg)
{
    struct velo_port *port = port_open(3);
    struct velo_conn *conn = NULL;

    (void)arg;
    CHECK_STATUS(velo_connect(port, VELO_ID(0, 1), &conn, 300 * TEST_MS), VELO_ERR_FULL);
    CHECK_OK(velo_port_close(port));
}

TEST(processes_of_one_user_meet_whatever_number_a_namespace_gives_him)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *port;
    struct velo_msg msg;

    if (child_wait(child_start(enter_users_namespace, NULL)) != 0)
        test_skip("this user may not make a namespace of users");
    attr.vpid = 1;
    attr.conns_max = 1;
    attr.flags = VELO_PORT_DEPARTURES;
    CHECK_OK(velo_port_open(&attr, &port));
    pid_t peer = child_start(meet_from_another_namespace, NULL);
    message_expect(port, 8, 1, VELO_ID(0, 2));
    struct velo_conn *conn = port_connect(port, VELO_ID(0, 2));
    message_send(conn, 8, 2);
    /* The two namespaces have a file each. A third process finds no place in the receiver's table,
     * so that the receiver looks which of its senders are dead: the sender's life has to be in the
     * receiver's file, too. */
    pid_t late = child_start(find_no_place, NULL);
    CHECK_STATUS(velo_recv(port, NULL, 0, &msg, 1000 * TEST_MS), VELO_TIMEOUT);
    child_join(late);
    CHECK_OK(velo_conn_status(conn));
    child_kill(peer);
    CHECK_STATUS(velo_recv(port, NULL, 0, &msg, TEST_PATIENCE_NS), VELO_ERR_PEER_DEAD);
    CHECK_STATUS(velo_conn_status(conn), VELO_ERR_PEER_DEAD);
    CHECK_OK(velo_port_close(port));
    CHECK_OK(velo_port_close(port_open(2))); /* Takes away what the dead one left. */
}

static void block_numbers(const char *domain, unsigned count)
{
    char path[256];

    for (unsigned i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "%s/velo.%s+lives.%u", test_shm_dir(), domain,
                 (unsigned)geteuid() + i);
        CHECK_EQ(symlink("/nowhere", path), 0);
    }
}

static void unblock_numbers(const char *domain, unsigned count)
{
    char path[256];

    for (unsigned i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "%s/velo.%s+lives.%u", test_shm_dir(), domain,
                 (unsigned)geteuid() + i);
        CHECK_EQ(unlink(path), 0);
    }
}

static void greet(void *arg)
{
    struct velo_port *port = port_open(2);

    (void)arg;
    message_send(port_connect(port, VELO_ID(0, 1)), 8, 1);
    CHECK_OK(velo_port_close(port));
}

TEST(names_that_others_have_taken_are_passed_by)
{
    struct velo_port *port = NULL;

    block_numbers(test_domain(), NUMBERS - 1);
    port = port_open(1);
    child_join(child_start(greet, NULL));
    message_expect(port, 8, 1, VELO_ID(0, 2));
    CHECK_OK(velo_port_close(port));
    unblock_numbers(test_domain(), NUMBERS - 1);
    block_numbers(test_domain(), NUMBERS);
    CHECK_FAILS(velo_port_open(NULL, &port), VELO_ERR_ACCESS, "not of this user");
    unblock_numbers(test_domain(), NUMBERS);
}

static void lock_numbers(int fd, off_t from, off_t to)
{
    struct flock numbers = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = from, .l_len = to - from};

    CHECK_EQ(fcntl(fd, F_OFD_SETLK, &numbers), 0);
}

/* All but that of the one who lives. */
static void join_without_a_number(void *arg)
{
    struct flock life = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct velo_bcast_reader *reader = NULL;
    struct velo_bcast_attr ring = VELO_BCAST_ATTR_INIT;
    char path[256];

    (void)arg;
    lives_path(path, test_domain());
    int fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQ(fcntl(fd, F_OFD_GETLK, &life), 0);
    CHECK_EQ(life.l_len, 1);
    lock_numbers(fd, 0, life.l_start);
    lock_numbers(fd, life.l_start + 1, (off_t)1 << 32);
    ring.vpid = 1;
    CHECK_FAILS(velo_bcast_join(&ring, &reader, 0), VELO_ERR_SYSTEM, "numbers drawn");
    CHECK(strstr(velo_last_error(), "locked") != NULL);
}

TEST(a_life_for_which_no_number_is_free_says_so)
{
    struct velo_bcast_attr ring = VELO_BCAST_ATTR_INIT;
    struct velo_bcast *bcast;

    ring.vpid = 1;
    CHECK_OK(velo_bcast_open(&ring, &bcast));
    child_join(child_start(join_without_a_number, NULL));
    CHECK_OK(velo_bcast_close(bcast));
}

/* ---- what is in it --------------------------------------------------------------------------- */

static void greet_and_stay(void *arg)
{
    (void)arg;
    message_send(port_connect(port_open(2), VELO_ID(0, 1)), 8, 1);
    for (;;)
        pause();
}

/* Nobody reads it: who lives stands in the kernel's locks, wherever the file ends. */
TEST(what_somebody_writes_into_the_file_changes_nothing)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *port;
    struct velo_msg msg;
    char path[256];

    attr.vpid = 1;
    attr.flags = VELO_PORT_DEPARTURES;
    CHECK_OK(velo_port_open(&attr, &port));
    lives_path(path, test_domain());
    CHECK_EQ(truncate(path, INT64_C(1) << 40), 0);
    /* A process of its own: who closes the file loses its locks on it. */
    pid_t peer = child_start(greet_and_stay, NULL);
    message_expect(port, 8, 1, VELO_ID(0, 2));
    CHECK_EQ(truncate(path, 0), 0);
    CHECK_STATUS(velo_recv(port, NULL, 0, &msg, 300 * TEST_MS), VELO_TIMEOUT);
    child_kill(peer);
    CHECK_STATUS(velo_recv(port, NULL, 0, &msg, TEST_PATIENCE_NS), VELO_ERR_PEER_DEAD);
    CHECK_OK(velo_port_close(port));
    CHECK_OK(velo_port_close(port_open(2)));
    CHECK_EQ(access(path, F_OK), -1);
}

/* ---- what is left of it ---------------------------------------------------------------------- */

static void die_in_a_domain(void *domain)
{
    setenv("VELO_DOMAIN", domain, 1);
    (void)port_open(1);
    raise(SIGKILL);
}

static void open_and_close(void *arg)
{
    (void)arg;
    CHECK_OK(velo_port_close(port_open(1)));
}

TEST(the_file_of_a_domain_that_has_died_is_swept)
{
    char domain[64], path[256];

    snprintf(domain, sizeof domain, "%s-dead", test_domain());
    lives_path(path, domain);
    (void)child_wait(child_start(die_in_a_domain, domain));
    CHECK_EQ(access(path, F_OK), 0);
    child_join(child_start(open_and_close, NULL));
    CHECK_EQ(access(path, F_OK), -1);
}

/* The last one to leave takes the file away while others come. */
enum { COMERS = 4, ROUNDS = 300 };

static void come_and_go(void *arg)
{
    int vpid = (int)(intptr_t)arg;

    for (uint32_t round = test_rounds(ROUNDS); round > 0; round--) {
        struct velo_port *port = port_open(vpid);
        struct velo_conn *conn = NULL;
        int next = (vpid + 1) % COMERS, status;

        message_send(port_connect(port, VELO_ID(0, vpid)), 8, round);
        message_expect(port, 8, round, VELO_ID(0, vpid));
        status = velo_try_connect(port, VELO_ID(0, next), &conn); /* It may go at any time. */
        if (status != VELO_OK && status != VELO_ERR_NO_PEER && status != VELO_ERR_PEER_CLOSED &&
            status != VELO_AGAIN)
            CHECK_OK(status);
        CHECK_OK(velo_port_close(port));
    }
}

TEST(who_joins_while_the_last_one_leaves_is_found)
{
    pid_t comers[COMERS];

    for (int i = 0; i < COMERS; i++)
        comers[i] = child_start(come_and_go, (void *)(intptr_t)i);
    for (int i = 0; i < COMERS; i++)
        child_join(comers[i]);
}
