/* SPDX-License-Identifier: Apache-2.0 */
/* A port can be reached by its user, by the members of a group if it was opened to one, and by no
 * other user. */
#include <fcntl.h>
#include <grp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

enum { USER_A = 60001, USER_B = 60002, USER_C = 60003 };

static void segment_path(char *path, size_t path_bytes, int vpid)
{
    snprintf(path, path_bytes, "%s/velo.%s.0.%d", test_shm_dir(), test_domain(), vpid);
}

static void need_root(void)
{
    if (geteuid() != 0)
        test_skip("only root can play several users");
}

/* Become another user, with one supplementary group or none. */
static void become(uid_t user, const struct group *group)
{
    CHECK_EQ(setgroups(group != NULL, group != NULL ? &group->gr_gid : NULL), 0);
    CHECK_EQ(setresgid(user, user, user), 0);
    CHECK_EQ(setresuid(user, user, user), 0);
}

/* Any group will do that the users are made members of. */
static const struct group *some_group(void)
{
    const struct group *group;

    setgrent();
    do
        group = getgrent();
    while (group != NULL && group->gr_gid == 0);
    CHECK(group != NULL);
    return group;
}

static struct velo_port *open_to(int vpid, const char *group)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *port = NULL;

    attr.vpid = vpid;
    attr.group = group;
    CHECK_OK(velo_port_open(&attr, &port));
    return port;
}

TEST(a_segment_is_private_to_its_user)
{
    mode_t masks[] = {0, 022, 077};
    char path[4096];
    struct stat st;

    segment_path(path, sizeof(path), 5);
    for (size_t i = 0; i < ARRAY_LEN(masks); i++) {
        mode_t mask = umask(masks[i]);
        struct velo_port *port = port_open(5);

        umask(mask);
        CHECK_EQ(stat(path, &st), 0);
        CHECK_EQ(st.st_mode, S_IFREG | 0600);
        CHECK_EQ(st.st_uid, geteuid());
        CHECK_OK(velo_port_close(port));
        CHECK(stat(path, &st) != 0);
    }
}

TEST(a_segment_opened_to_a_group_is_open_to_that_group_only)
{
    char path[4096];
    struct stat st;

    need_root();
    const struct group *group = some_group();
    mode_t mask = umask(077);
    struct velo_port *port = open_to(5, group->gr_name);
    umask(mask);
    segment_path(path, sizeof(path), 5);
    CHECK_EQ(stat(path, &st), 0);
    CHECK_EQ(st.st_mode, S_IFREG | 0660);
    CHECK_EQ(st.st_gid, group->gr_gid);
    CHECK_OK(velo_port_close(port));
}

/* A party that opens port 5 and holds it until it is told to go. */
struct owner {
    atomic_int ready, leave;
    const struct group *group;
    char group_name[64];
    uint64_t to_receive;
};

static void own_port_5(void *arg)
{
    struct owner *owner = arg;
    struct velo_port *port;

    become(USER_A, owner->group);
    port = open_to(5, owner->group != NULL ? owner->group_name : NULL);
    atomic_store(&owner->ready, 1);
    for (uint64_t i = 0; i < owner->to_receive; i++)
        message_expect(port, i % 5000, i, VELO_ID(0, 6));
    while (atomic_load(&owner->leave) == 0)
        test_sleep_ns(TEST_MS);
    CHECK_OK(velo_port_close(port));
}

static pid_t owner_start(struct owner *owner)
{
    pid_t pid = child_start(own_port_5, owner);

    for (int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS; atomic_load(&owner->ready) == 0;) {
        CHECK(test_now_ns() < end_ns);
        test_sleep_ns(100 * TEST_US);
    }
    return pid;
}

static void be_refused_as_another_user(void *arg)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *port = NULL, *mine;
    struct velo_conn *conn = NULL;
    char path[4096];

    (void)arg;
    become(USER_B, NULL);
    segment_path(path, sizeof(path), 5);
    mine = port_open(6);
    CHECK_FAILS(velo_connect(mine, VELO_ID(0, 5), &conn, 0), VELO_ERR_ACCESS, path);
    attr.vpid = 5;
    CHECK_FAILS(velo_port_open(&attr, &port), VELO_ERR_ACCESS, path);
    CHECK_OK(velo_port_close(mine));
}

TEST(another_users_segment_is_refused)
{
    struct owner *owner = test_shared_alloc(sizeof(*owner));

    need_root();
    pid_t pid = owner_start(owner);
    child_join(child_start(be_refused_as_another_user, NULL));
    atomic_store(&owner->leave, 1);
    child_join(pid);
}

enum { GROUP_MSGS = 5000 };

static void send_as_a_member(void *arg)
{
    const struct owner *owner = arg;
    struct velo_port *port;
    struct velo_conn *conn;

    become(USER_B, owner->group);
    port = open_to(6, owner->group_name);
    conn = port_connect(port, VELO_ID(0, 5));
    for (uint64_t i = 0; i < GROUP_MSGS; i++)
        message_send(conn, i % 5000, i);
    CHECK_OK(velo_port_close(port));
}

static void be_refused_as_a_stranger(void *arg)
{
    const struct owner *owner = arg;
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *port, *second = NULL;
    struct velo_conn *conn = NULL;

    become(USER_C, NULL);
    port = port_open(VELO_VPID_ANY);
    CHECK_FAILS(velo_connect(port, VELO_ID(0, 5), &conn, 0), VELO_ERR_ACCESS, "velo.");
    attr.group = owner->group_name;
    CHECK_FAILS(velo_port_open(&attr, &second), VELO_ERR_ACCESS, "group");
    CHECK_OK(velo_port_close(port));
}

TEST(two_users_of_a_group_exchange_messages_and_a_stranger_is_refused)
{
    struct owner *owner = test_shared_alloc(sizeof(*owner));

    need_root();
    owner->group = some_group();
    snprintf(owner->group_name, sizeof(owner->group_name), "%s", owner->group->gr_name);
    owner->to_receive = GROUP_MSGS;
    pid_t pid = owner_start(owner);
    child_join(child_start(be_refused_as_a_stranger, owner));
    child_join(child_start(send_as_a_member, owner));
    atomic_store(&owner->leave, 1);
    child_join(pid);
}

static void plant_files(void *arg)
{
    char path[4096];
    int fd;

    (void)arg;
    become(USER_A, NULL);
    umask(0);
    segment_path(path, sizeof(path), 7);
    fd = open(path, O_CREAT | O_EXCL | O_RDWR, 0666);
    CHECK(fd >= 0);
    CHECK_EQ(ftruncate(fd, 1 << 20), 0);
    segment_path(path, sizeof(path), 8);
    CHECK_EQ(symlink("/etc/hostname", path), 0);
}

static void meet_planted_files(void *arg)
{
    struct velo_port *port;

    (void)arg;
    become(USER_B, NULL);
    port = port_open(6);
    for (int vpid = 7; vpid <= 8; vpid++) {
        struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
        struct velo_port *second = NULL;
        struct velo_conn *conn = NULL;

        attr.vpid = vpid;
        CHECK_FAILS(velo_connect(port, VELO_ID(0, vpid), &conn, 0), VELO_ERR_ACCESS, "velo.");
        CHECK_FAILS(velo_port_open(&attr, &second), VELO_ERR_ACCESS, "velo.");
    }
    CHECK_OK(velo_port_close(port));
}

TEST(a_file_that_another_user_planted_is_never_used)
{
    char path[4096];

    need_root();
    child_join(child_start(plant_files, NULL));
    child_join(child_start(meet_planted_files, NULL));
    for (int vpid = 7; vpid <= 8; vpid++) {
        segment_path(path, sizeof(path), vpid);
        CHECK_EQ(unlink(path), 0);
    }
}

TEST(without_a_name_the_domain_is_the_users_own)
{
    struct velo_port *port = NULL;
    char path[4096];
    struct stat st;

    unsetenv("VELO_DOMAIN");
    CHECK_OK(velo_port_open(NULL, &port));
    setenv("VELO_DOMAIN", test_domain(), 1);
    snprintf(path, sizeof(path), "%s/velo.u%u.0.%u", test_shm_dir(), geteuid(),
             VELO_ID_VPID(velo_port_id(port)));
    CHECK_EQ(stat(path, &st), 0);
    CHECK_OK(velo_port_close(port));
}
