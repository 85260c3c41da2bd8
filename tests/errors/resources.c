/* SPDX-License-Identifier: Apache-2.0 */
/* The machine refuses something: room in shared memory, address space, descriptors, directories. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <velo/bcast.h>
#include <velo/rma.h>

#include "test.h"

enum { NOT_PERMITTED = 77 };

static char temp_dir[] = "/tmp/velo-test-XXXXXX";

/* Enter a mount namespace of our own, and mount a tmpfs there that nobody else sees. */
static void mount_tmpfs(const char *options)
{
    if (!test_unshare(CLONE_NEWNS))
        _exit(NOT_PERMITTED);
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("velo-test", temp_dir, "tmpfs", 0, options) != 0)
        _exit(NOT_PERMITTED);
    setenv("VELO_SHM_DIR", temp_dir, 1);
}

static void run_with_tmpfs(void (*body)(void *))
{
    strcpy(temp_dir + strlen(temp_dir) - 6, "XXXXXX");
    CHECK(mkdtemp(temp_dir) != NULL);
    int status = child_wait(child_start(body, NULL));
    rmdir(temp_dir);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_PERMITTED)
        test_skip("this user may not mount a tmpfs in a namespace of its own");
    CHECK_EQ(status, 0);
}

static void open_without_room(void *arg)
{
    struct velo_port *port = NULL;

    (void)arg;
    mount_tmpfs("size=4k");
    CHECK_FAILS(velo_port_open(NULL, &port), VELO_ERR_NO_SPACE, temp_dir);
}

TEST(no_room_for_a_segment_is_reported) { run_with_tmpfs(open_without_room); }

static void open_without_inodes(void *arg)
{
    struct velo_port *port = NULL;

    (void)arg;
    mount_tmpfs("size=1m,nr_inodes=1");
    CHECK_FAILS(velo_port_open(NULL, &port), VELO_ERR_NO_SPACE, temp_dir);
}

static void open_with_one_inode(void *arg)
{
    struct velo_port *port = NULL;

    (void)arg;
    mount_tmpfs("size=1m,nr_inodes=2"); /* The folder has one. */
    CHECK_FAILS(velo_port_open(NULL, &port), VELO_ERR_NO_SPACE, temp_dir);
}

TEST(no_room_for_another_file_is_reported)
{
    run_with_tmpfs(open_without_inodes);
    run_with_tmpfs(open_with_one_inode);
}

/* Without a name beside the segment, senders of other network namespaces could not wake the port.
 */
static void ask_for_a_descriptor_without_inodes(void *arg)
{
    struct velo_port *port;
    char path[128];
    uint32_t count = 0;
    int fd, file;

    (void)arg;
    mount_tmpfs("size=4m,nr_inodes=16");
    port = port_open(0);
    do {
        snprintf(path, sizeof path, "%s/%u", temp_dir, count++);
        file = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
        if (file >= 0)
            close(file);
    } while (file >= 0);
    CHECK_EQ(errno, ENOSPC);
    for (int i = 0; i < 2; i++)
        CHECK_FAILS(velo_port_fd(port, &fd), VELO_ERR_NO_SPACE, temp_dir);
    snprintf(path, sizeof path, "%s/0", temp_dir);
    CHECK_EQ(unlink(path), 0);
    CHECK_OK(velo_port_fd(port, &fd));
    CHECK_OK(velo_port_close(port));
}

TEST(no_room_for_the_name_of_a_doorbell_is_reported)
{
    run_with_tmpfs(ask_for_a_descriptor_without_inodes);
}

/* Memory that is short must show in velo_connect(), never as a SIGBUS while messages pass. */
static void connect_until_full(void *arg)
{
    struct velo_conn *conns[16];
    struct velo_port *port;
    struct velo_msg msg;
    uint32_t count = 0;
    int status;

    (void)arg;
    mount_tmpfs("size=512k");
    port = port_open_sized(0, 64, 65536, 0);
    while ((status = velo_connect(port, VELO_ID(0, 0), &conns[count], 0)) == VELO_OK)
        CHECK(++count < 16);
    CHECK_FAILS(status, VELO_ERR_NO_SPACE, temp_dir);
    CHECK(count >= 2);

    for (uint32_t round = 0; round < 100; round++) {
        for (uint32_t i = 0; i < count; i++)
            message_send(conns[i], 16384 - round, i);
        for (uint32_t i = 0; i < count; i++) {
            CHECK_OK(velo_try_peek(port, &msg));
            CHECK_EQ(msg.len_bytes, 16384 - round);
            CHECK_OK(velo_release(port));
        }
        CHECK_STATUS(velo_recv(port, NULL, 0, &msg, 1000), VELO_TIMEOUT);
    }

    /* The memory of a connection that ends is given back to the file system. */
    CHECK_OK(velo_disconnect(conns[0]));
    status = VELO_ERR_NO_SPACE;
    for (int i = 0; i < 1000 && status != VELO_OK; i++) {
        CHECK_STATUS(velo_recv(port, NULL, 0, &msg, TEST_MS), VELO_TIMEOUT);
        status = velo_connect(port, VELO_ID(0, 0), &conns[0], 0);
    }
    CHECK_OK(status);
    message_send(conns[0], 16384, 7);
    message_expect(port, 16384, 7, VELO_ID(0, 0));
    CHECK_OK(velo_port_close(port));
}

TEST(no_room_for_a_ring_is_reported_and_harms_no_open_connection)
{
    run_with_tmpfs(connect_until_full);
}

static void connect_without_address_space(void *arg)
{
    struct velo_port *port = port_open(0), *second = NULL;
    struct velo_conn *conn = NULL;
    struct rlimit limit = {1 << 20, 1 << 20}; /* Less than is in use: no new mapping at all. */

    (void)arg;
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    /* The heap or a mapping fails first: both are right. */
    CHECK_FAILS(velo_port_open(NULL, &second), VELO_ERR_NO_MEMORY, "m");
    CHECK_FAILS(velo_connect(port, VELO_ID(0, 5), &conn, 0), VELO_ERR_NO_MEMORY, "m");
    CHECK_OK(velo_port_close(port));
}

TEST(no_address_space_is_reported)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    test_skip("a sanitizer needs address space of its own");
#endif
    struct velo_port *peer = port_open(5);

    child_join(child_start(connect_without_address_space, NULL));
    CHECK_OK(velo_port_close(peer));
}

static void open_without_proc(void *arg)
{
    struct velo_port *port = NULL;

    (void)arg;
    mount_tmpfs("size=100m");
    if (mount("velo-test", "/proc", "tmpfs", 0, "size=4k") != 0)
        _exit(NOT_PERMITTED);
    CHECK_FAILS(velo_port_open(NULL, &port), VELO_ERR_ACCESS, "/proc");
}

TEST(a_root_without_proc_is_reported) { run_with_tmpfs(open_without_proc); }

static void limit_file_size(rlim_t limit_bytes)
{
    struct rlimit limit;

    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = limit_bytes;
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* The kernel kills a process by SIGXFSZ if it makes a file larger than RLIMIT_FSIZE allows. These
 * are the first calls in this process, so they also make the memory that belongs to the process. */
static void open_with_small_files(void *arg)
{
    struct velo_bcast_attr ring = VELO_BCAST_ATTR_INIT;
    struct velo_bcast *bcast = NULL;
    struct velo_rma *rma = NULL;
    struct velo_rma_mem *mem = NULL;
    struct velo_port *port = NULL;

    (void)arg;
    limit_file_size(512 << 10);
    CHECK_FAILS(velo_port_open(NULL, &port), VELO_ERR_NO_SPACE, "ulimit -f");
    port = port_open_sized(1, 8, 16384, 1);
    CHECK_FAILS(velo_rma_open(port, NULL, &rma), VELO_ERR_NO_SPACE, "ulimit -f");
    CHECK_FAILS(velo_bcast_open(&ring, &bcast), VELO_ERR_NO_SPACE, "ulimit -f");
    /* The file is the peer's, and has its size already. */
    limit_file_size(64 << 10);
    message_send(port_connect(port, VELO_ID(0, 5)), 1000, 1);
    CHECK_OK(velo_port_close(port));
    /* Later. */
    limit_file_size(RLIM_INFINITY);
    port = port_open(1);
    CHECK_OK(velo_rma_open(port, NULL, &rma));
    limit_file_size(512 << 10);
    CHECK_FAILS(velo_rma_mem_alloc(rma, 1 << 20, VELO_RMA_RIGHT_ALL, VELO_RMA_PEER_ANY, &mem),
                VELO_ERR_NO_SPACE, "ulimit -f");
    CHECK_OK(velo_rma_close(rma));
    CHECK_OK(velo_port_close(port));
}

static void own_port_5(void *arg)
{
    (void)arg;
    (void)port_open(5);
    for (;;)
        pause();
}

TEST(a_limit_on_the_size_of_files_is_reported)
{
    pid_t peer = child_start(own_port_5, NULL);

    child_join(child_start(open_with_small_files, NULL));
    child_kill(peer);
    CHECK_OK(velo_port_close(port_open(5)));
}

static void open_without_descriptors(void *arg)
{
    struct velo_port *port = port_open(0), *second = NULL;
    struct velo_conn *conn = NULL;
    struct rlimit limit;

    (void)arg;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 0;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    CHECK_FAILS(velo_port_open(NULL, &second), VELO_ERR_SYSTEM, strerror(EMFILE));
    CHECK_FAILS(velo_connect(port, VELO_ID(0, 5), &conn, 0), VELO_ERR_SYSTEM, strerror(EMFILE));
    limit.rlim_cur = limit.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    CHECK_OK(velo_connect(port, VELO_ID(0, 5), &conn, 0));
    CHECK_OK(velo_port_close(port));
}

TEST(no_descriptors_are_reported)
{
    struct velo_port *peer = port_open(5);

    child_join(child_start(open_without_descriptors, NULL));
    CHECK_OK(velo_port_close(peer));
}

static void open_in_a_missing_directory(void *arg)
{
    struct velo_port *port = NULL;

    (void)arg;
    setenv("VELO_SHM_DIR", "/nonexistent/velo", 1);
    CHECK_FAILS(velo_port_open(NULL, &port), VELO_ERR_ACCESS, "/nonexistent/velo");
}

TEST(a_missing_directory_is_reported)
{
    child_join(child_start(open_in_a_missing_directory, NULL));
}

static void open_in_an_unwritable_directory(void *arg)
{
    struct velo_port *port = NULL;

    (void)arg;
    if (geteuid() == 0)
        CHECK_EQ(setresuid(60001, 60001, 60001), 0);
    setenv("VELO_SHM_DIR", temp_dir, 1);
    CHECK_FAILS(velo_port_open(NULL, &port), VELO_ERR_ACCESS, temp_dir);
}

TEST(an_unwritable_directory_is_reported)
{
    strcpy(temp_dir + strlen(temp_dir) - 6, "XXXXXX");
    CHECK(mkdtemp(temp_dir) != NULL);
    CHECK_EQ(chmod(temp_dir, 0555), 0);
    child_join(child_start(open_in_an_unwritable_directory, NULL));
    CHECK_EQ(rmdir(temp_dir), 0);
}

static void open_beside_a_limit(void *arg)
{
    enum { DIR_MAX = 88 };
    char path[128];
    struct velo_port *port = NULL;
    size_t len = strlen(temp_dir);
    glob_t found;
    int fd;

    (void)arg;
    memset(path, 'd', sizeof path);
    memcpy(path, temp_dir, len);
    path[len] = '/';
    path[DIR_MAX + 1] = '\0';
    CHECK_EQ(mkdir(path, 0700), 0);
    setenv("VELO_SHM_DIR", path, 1);
    CHECK_FAILS(velo_port_open(NULL, &port), VELO_ERR_ARG, "VELO_SHM_DIR has 89 bytes");
    CHECK_EQ(rmdir(path), 0);
    path[DIR_MAX] = '\0';
    CHECK_EQ(mkdir(path, 0700), 0);
    setenv("VELO_SHM_DIR", path, 1);
    port = port_open(0);
    CHECK_OK(velo_port_fd(port, &fd));
    snprintf(path + DIR_MAX, sizeof path - DIR_MAX, "/velo+bell.????????");
    CHECK_EQ(glob(path, 0, NULL, &found), 0);
    globfree(&found);
    CHECK_OK(velo_port_close(port));
    path[DIR_MAX] = '\0';
    CHECK_EQ(rmdir(path), 0);
}

TEST(a_directory_in_whose_path_no_doorbell_fits_is_reported)
{
    strcpy(temp_dir + strlen(temp_dir) - 6, "XXXXXX");
    CHECK(mkdtemp(temp_dir) != NULL);
    child_join(child_start(open_beside_a_limit, NULL));
    CHECK_EQ(rmdir(temp_dir), 0);
}

TEST(the_segment_lives_in_the_directory_of_the_environment)
{
    char path[128];
    struct stat st;

    strcpy(temp_dir + strlen(temp_dir) - 6, "XXXXXX");
    CHECK(mkdtemp(temp_dir) != NULL);
    setenv("VELO_SHM_DIR", temp_dir, 1);
    struct velo_port *port = port_open(5);
    unsetenv("VELO_SHM_DIR");
    snprintf(path, sizeof(path), "%s/velo.%s.0.5", temp_dir, test_domain());
    CHECK_EQ(stat(path, &st), 0);
    CHECK_OK(velo_port_close(port));
    CHECK_EQ(rmdir(temp_dir), 0);
}
