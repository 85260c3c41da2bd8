/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of nodes that make no sense, and transports that are not there. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "test.h"

static int open_files(void)
{
    DIR *files = opendir("/proc/self/fd");
    int len = 0;

    CHECK(files != NULL);
    while (readdir(files))
        len++;
    CHECK_EQ(closedir(files), 0);
    return len;
}

static void refuses(const char *map, int expected, const char *about)
{
    struct velo_port *port;
    int before = open_files();

    CHECK_EQ(setenv("VELO_NETWORK", map, 1), 0);
    CHECK_FAILS(velo_port_open(NULL, &port), expected, about);
    CHECK_EQ(open_files(), before);
    CHECK_EQ(unsetenv("VELO_NETWORK"), 0);
    CHECK_OK(velo_port_open(NULL, &port)); /* Nothing is left of it. */
    CHECK_OK(velo_port_close(port));
}

static const char *write_map(const char *text)
{
    static char path[] = "/tmp/velo-map-XXXXXX";
    static int file = -1;

    if (file < 0)
        file = mkstemp(path);
    CHECK(file >= 0 && ftruncate(file, 0) == 0);
    CHECK_EQ(pwrite(file, text, strlen(text), 0), (ssize_t)strlen(text));
    return path;
}

TEST(a_rule_that_is_none_is_named)
{
    static const char *const rules[] = {"loop,",    "0=",         "=loop",     "256=loop",
                                        "3-2=loop", "x=loop",     "spread=x",  "Loop",
                                        "0-=loop",  "spread=257", "3=loop shm"};

    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        refuses(rules[i], VELO_ERR_ARG, "is no rule");
    refuses("a,b,c,d,e,f,g,h", VELO_ERR_ARG, "'h'"); /* One more than there may be. */
}

TEST(a_transport_that_is_not_there_is_named)
{
    const char *path = getenv("VELO_TRANSPORT_PATH");
    char *plugins = path ? strdup(path) : NULL;

    refuses("nowhere", VELO_ERR_ARG, "nowhere");
    refuses("3-5=nowhere", VELO_ERR_ARG, "nowhere");
    CHECK_EQ(setenv("VELO_TRANSPORT_PATH", "/nonexistent", 1), 0);
    refuses("loop", VELO_ERR_ARG, "/nonexistent/libvelo-loop.so");
    CHECK_EQ(plugins ? setenv("VELO_TRANSPORT_PATH", plugins, 1) : unsetenv("VELO_TRANSPORT_PATH"),
             0);
    free(plugins);
}

TEST(a_device_is_refused_to_a_program_that_has_the_library_linked_in)
{
    refuses("nic,own=nic", VELO_ERR_STATE, "libvelo.a");
}

TEST(a_program_of_the_simulated_cluster_needs_a_map_that_leads_there)
{
    static const char *const maps[] = {"", "shm", "loop"};
    struct velo_port *port;

    CHECK_EQ(setenv("VELO_SIM", "/nonexistent", 1), 0);
    for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
        CHECK_EQ(setenv("VELO_NETWORK", maps[i], 1), 0);
        CHECK_FAILS(velo_port_open(NULL, &port), VELO_ERR_STATE, "velo sim");
    }
    CHECK_EQ(unsetenv("VELO_SIM") + unsetenv("VELO_NETWORK"), 0);
}

TEST(a_file_is_read_as_the_rules_are)
{
    struct velo_port *ports[2];
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_conn *conn;
    const char *path =
        write_map("# a map\nown = \"shm\" # here\n\n[nodes]\n1 = \"loop\"\n\"2-9\" = "
                  "\"shm\"\n");

    CHECK_EQ(setenv("VELO_NETWORK", path, 1), 0);
    for (int i = 0; i < 2; i++) {
        attr.node = i;
        CHECK_OK(velo_port_open(&attr, &ports[i]));
    }
    CHECK_OK(velo_connect(ports[0], VELO_ID(1, 0), &conn, TEST_PATIENCE_NS));
    CHECK_OK(velo_send(conn, "x", 1, 7, VELO_FOREVER));
    CHECK_OK(velo_recv(ports[1], NULL, 0, NULL, TEST_PATIENCE_NS) == VELO_ERR_TOO_BIG
                 ? VELO_OK
                 : VELO_ERR_STATE);
    for (int i = 0; i < 2; i++)
        CHECK_OK(velo_port_close(ports[i]));
    CHECK_EQ(unlink(path), 0);
}

TEST(a_line_of_a_file_that_is_none_is_named)
{
    static const char *const lines[] = {
        "own = shm\n",   "1 = \"loop\"\n",    "[nodes]\nown = \"shm\"\n",
        "[other]\n",     "spread = \"2\"\n",  "others\n",
        "own = \"shm\n", "[nodes]\n[nodes]\n"};
    const char *path = NULL;

    refuses("/nonexistent/map.toml", VELO_ERR_ACCESS, "cannot read");
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        path = write_map(lines[i]);
        refuses(path, VELO_ERR_ARG, lines[i][0] == '[' && lines[i][1] == 'n' ? ":2:" : ":1:");
    }
    CHECK_EQ(unlink(path), 0);
}

enum { MANY_PORTS = 1100, MANY_FILES = 8 * MANY_PORTS };

static velo_id_t many_id(int i) { return VELO_ID(1 + i / 200, i % 200); }

static void connect_to_first_and_last(void *arg)
{
    struct velo_port *port = port_open(0);

    (void)arg;
    (void)port_connect(port, many_id(0));
    (void)port_connect(port, many_id(MANY_PORTS - 1));
    CHECK_OK(velo_port_close(port));
}

TEST(over_a_thousand_ports_of_a_process_are_all_attended)
{
    static struct velo_port *ports[MANY_PORTS];
    struct rlimit limit;

#ifdef __SANITIZE_THREAD__
    test_skip("no child of a process with threads may start one under ThreadSanitizer");
#endif
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_max < MANY_FILES)
        test_skip("this user may not have so many files open");
    limit.rlim_cur = MANY_FILES;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    CHECK_EQ(setenv("VELO_NETWORK", "loop,own=loop", 1), 0);
    for (int i = 0; i < MANY_PORTS; i++) {
        struct velo_port_attr attr = VELO_PORT_ATTR_INIT;

        attr.node = (int)VELO_ID_NODE(many_id(i));
        attr.vpid = (int)VELO_ID_VPID(many_id(i));
        CHECK_OK(velo_port_open(&attr, &ports[i]));
    }
    child_join(child_start(connect_to_first_and_last, NULL));
    for (int i = 0; i < MANY_PORTS; i++)
        CHECK_OK(velo_port_close(ports[i]));
    CHECK_EQ(unsetenv("VELO_NETWORK"), 0);
}
