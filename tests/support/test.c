/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define TESTS_MAX 512
#define CHILDREN_MAX 1024
/* What CMake and scripts take for "no verdict": SKIP_RETURN_CODE. */
#define EXIT_SKIPPED 77

static struct CMUnitTest tests[TESTS_MAX];
static size_t tests_len;
static size_t begun, skipped;

static pid_t children[CHILDREN_MAX];
static size_t children_len;

static pid_t main_pid;
static char domain[33];
static bool has_failed;

static void run_body(void **state)
{
    void (*body)(void);

    begun++;
    memcpy(&body, state, sizeof(body));
    body();
}

/* Remove the files of our domain; returns how many there were. */
static size_t remove_files(bool complain)
{
    char pattern[4096];
    glob_t found;
    size_t count = 0;

    snprintf(pattern, sizeof(pattern), "%s/velo.%s*", test_shm_dir(), domain);
    if (glob(pattern, 0, NULL, &found) != 0)
        return 0;
    for (; count < found.gl_pathc; count++) {
        if (complain)
            print_error("left behind: %s\n", found.gl_pathv[count]);
        unlink(found.gl_pathv[count]);
    }
    globfree(&found);
    return count;
}

/* Kill what the test left running, then look for files it left behind. */
static int tear_down(void **state)
{
    bool broke_off = has_failed; /* Then it could not clean up. */

    (void)state;
    has_failed = false;
    while (children_len > 0)
        child_kill(children[children_len - 1]);
    return remove_files(!broke_off) > 0 && !broke_off ? -1 : 0;
}

void test_register(const char *name, void (*body)(void))
{
    void *state;

    if (tests_len == TESTS_MAX)
        abort();
    memcpy(&state, &body, sizeof(state));
    tests[tests_len++] = (struct CMUnitTest){name, run_body, NULL, tear_down, state};
}

static bool in_main_thread(void) { return getpid() == main_pid && gettid() == main_pid; }

void test_fail(const char *file, int line, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(stderr, "%s:%d: %s\n", file, line, text);
    if (in_main_thread()) {
        has_failed = true;
        _fail(file, line);
    }
    if (getpid() == main_pid)
        (void)remove_files(false);
    _exit(1);
}

void test_check_status(const char *file, int line, const char *call, int status, int expected)
{
    if (status == expected)
        return;
    test_fail(file, line, "%s\n  gave     %s\n  expected %s\n  last error: %s", call,
              velo_strerror(status), velo_strerror(expected), velo_last_error());
}

void test_check_fails(const char *file, int line, const char *call, int status, int expected,
                      const char *about)
{
    test_check_status(file, line, call, status, expected);
    if (strstr(velo_last_error(), about) == NULL)
        test_fail(file, line, "the error of %s does not speak of \"%s\": %s", call, about,
                  velo_last_error());
}

static bool write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    bool is_written = fd >= 0 && write(fd, text, strlen(text)) >= 0;

    if (fd >= 0)
        close(fd);
    return is_written;
}

bool test_unshare(int namespaces)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();
    char user[64], group[64];

    if (uid == 0)
        return unshare(namespaces) == 0;
    snprintf(user, sizeof(user), "0 %u 1", uid);
    snprintf(group, sizeof(group), "0 %u 1", gid);
    /* A file gets a user and a group: without both the kernel makes none there. */
    return unshare(namespaces | CLONE_NEWUSER) == 0 && write_file("/proc/self/uid_map", user) &&
           write_file("/proc/self/setgroups", "deny") && write_file("/proc/self/gid_map", group);
}

void test_skip(const char *reason)
{
    print_message("skipped: %s\n", reason);
    skipped++;
    skip();
    abort();
}

bool test_is_carried(void)
{
    const char *network = getenv("VELO_NETWORK");
    return network && *network && strncmp(network, "nic", 3) != 0;
}

void test_needs_shared_memory(void)
{
    if (test_is_carried())
        test_skip("it is about peers that share memory");
}

const char *test_domain(void) { return domain; }

bool is_simulated(void) { return getenv("VELO_SIM") != NULL; }

bool test_is_by_node(void)
{
    const char *network = getenv("VELO_NETWORK");
    return is_simulated() || (network && strncmp(network, "nic", 3) == 0);
}

bool test_is_by_card(void)
{
    const char *network = getenv("VELO_NETWORK");
    return !is_simulated() && (test_is_by_node() || (network && strncmp(network, "card", 4) == 0));
}

static uint32_t one_in(void)
{
    const char *text = getenv("VELO_TEST_ONE_IN");
    uint32_t set = text ? (uint32_t)strtoul(text, NULL, 10) : 1;

    return set > 1 ? set : 1;
}

uint32_t test_rounds(uint32_t all) { return (all + one_in() - 1) / one_in(); }

size_t scaled(size_t native, size_t slow) { return is_simulated() || one_in() > 1 ? slow : native; }

const char *test_shm_dir(void)
{
    const char *dir = getenv("VELO_SHM_DIR");

    return dir != NULL && dir[0] != '\0' ? dir : "/dev/shm";
}

uint64_t test_seed(void)
{
    const char *text = getenv("VELO_TEST_SEED");

    return text != NULL ? strtoull(text, NULL, 0) : 1;
}

void *test_shared_alloc(size_t size_bytes)
{
    void *memory =
        mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(memory != MAP_FAILED);
    return memory;
}

pid_t child_start(void (*body)(void *arg), void *arg)
{
    pid_t parent = getpid();
    pid_t child;

    CHECK(children_len < CHILDREN_MAX);
    fflush(NULL);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        children_len = 0; /* They are our siblings. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        body(arg);
        fflush(NULL);
        _exit(0);
    }
    children[children_len++] = child;
    return child;
}

int child_wait(pid_t child)
{
    int status = 0;

    while (waitpid(child, &status, 0) < 0)
        CHECK_EQ(errno, EINTR);
    for (size_t i = 0; i < children_len; i++) {
        if (children[i] == child) {
            children[i] = children[--children_len];
            break;
        }
    }
    return status;
}

void child_join(pid_t child)
{
    int status = child_wait(child);

    if (WIFSIGNALED(status))
        test_fail(__FILE__, __LINE__, "child %d died of %s", child, strsignal(WTERMSIG(status)));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

void child_kill(pid_t child)
{
    CHECK(child > 0);
    kill(child, SIGKILL);
    child_wait(child);
}

struct velo_port *port_open_sized(int vpid, uint32_t depth_slots, uint32_t data_bytes,
                                  uint32_t conns_max)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *port = NULL;

    attr.vpid = vpid;
    attr.depth_slots = depth_slots;
    attr.data_bytes = data_bytes;
    attr.conns_max = conns_max;
    CHECK_OK(velo_port_open(&attr, &port));
    CHECK(port != NULL);
    return port;
}

struct velo_port *port_open(int vpid) { return port_open_sized(vpid, 0, 0, 0); }

struct velo_conn *port_connect(struct velo_port *port, velo_id_t peer)
{
    struct velo_conn *conn = NULL;

    CHECK_OK(velo_connect(port, peer, &conn, TEST_PATIENCE_NS));
    CHECK(conn != NULL);
    return conn;
}

void message_send(struct velo_conn *conn, size_t len_bytes, uint64_t seed)
{
    unsigned char buf[65536];

    CHECK(len_bytes <= sizeof(buf));
    pattern_fill(buf, len_bytes, seed);
    CHECK_OK(velo_send(conn, buf, len_bytes, pattern_tag(seed), VELO_FOREVER));
}

void message_check(const struct velo_msg *msg, size_t len_bytes, uint64_t seed, velo_id_t source)
{
    CHECK_EQ(msg->len_bytes, len_bytes);
    CHECK_EQ(msg->tag, pattern_tag(seed));
    CHECK_EQ(msg->source, source);
    CHECK(pattern_matches(msg->data, len_bytes, seed));
}

void message_expect(struct velo_port *port, size_t len_bytes, uint64_t seed, velo_id_t source)
{
    unsigned char buf[65536];
    struct velo_msg msg;

    CHECK_OK(velo_recv(port, buf, sizeof(buf), &msg, TEST_PATIENCE_NS));
    CHECK(msg.data == buf);
    message_check(&msg, len_bytes, seed, source);
}

/* Put the test of a name behind the first `chosen_len`, which were chosen before. */
static bool test_choose(const char *name, size_t chosen_len)
{
    for (size_t i = chosen_len; i < tests_len; i++) {
        if (strcmp(tests[i].name, name) != 0)
            continue;
        struct CMUnitTest test = tests[i];
        tests[i] = tests[chosen_len];
        tests[chosen_len] = test;
        return true;
    }
    fprintf(stderr, "no test is called %s, or it is named twice\n", name);
    return false;
}

/* Usage: program [test]... Without a name all tests run, one after the other. The exit status is 0
 * if none has failed, 1 if one has, 77 if none gave a verdict, 2 if there is none to run. */
int main(int argc, char **argv)
{
    int failed;

    main_pid = getpid();
    snprintf(domain, sizeof(domain), "t%d-%08x", main_pid, (unsigned)(test_now_ns() / 1000));
    setenv("VELO_DOMAIN", domain, 1);
    for (int i = 1; i < argc; i++) {
        if (!test_choose(argv[i], (size_t)i - 1))
            return 2;
    }
    size_t chosen_len = argc > 1 ? (size_t)argc - 1 : tests_len;
    failed = _cmocka_run_group_tests(program_invocation_short_name, tests, chosen_len, NULL, NULL);
    if (failed != 0)
        return 1; /* Their number would be cut to eight bits, or be 77. */
    if (begun == 0)
        return 2;
    return skipped == begun ? EXIT_SKIPPED : 0;
}
