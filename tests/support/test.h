/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by all test programs: self-registering tests, checks that work in any thread and any
 * child process, children that cannot outlive the test, and payloads that tell where they belong.
 *
 * Each program runs in a domain of its own ($VELO_DOMAIN is set to it), so that programs can run at
 * the same time; a test that leaves a file of its domain in the shared-memory directory fails.
 */
#ifndef VELO_TEST_H
#define VELO_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <velo/velo.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Far longer than anything here takes: what needs this long hangs. */
#define TEST_PATIENCE_NS INT64_C(30000000000)
#define TEST_MS INT64_C(1000000)
#define TEST_US INT64_C(1000)

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Define and register a test; the name is a sentence that says what holds. */
#define TEST(name)                                                                                 \
    static void name(void);                                                                        \
    __attribute__((constructor)) static void register_##name(void) { test_register(#name, name); } \
    static void name(void)

void test_register(const char *name, void (*body)(void));

/* The checks end the test in the main thread, and the whole process in any other thread or child:
 * the parent then sees that it did not exit with 0. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            test_fail(__FILE__, __LINE__, "%s does not hold", #condition);                         \
    } while (0)

#define CHECK_EQ(actual, expected)                                                                 \
    do {                                                                                           \
        long long actual_ = (long long)(actual), expected_ = (long long)(expected);                \
        if (actual_ != expected_)                                                                  \
            test_fail(__FILE__, __LINE__, "%s is %lld, expected %s = %lld", #actual, actual_,      \
                      #expected, expected_);                                                       \
    } while (0)

#define CHECK_STATUS(call, expected)                                                               \
    test_check_status(__FILE__, __LINE__, #call, (call), (expected))
#define CHECK_OK(call) CHECK_STATUS(call, VELO_OK)

/* The result of a try, repeated while it says VELO_AGAIN: what was sent, or a credit that was given
 * back, is there at once with one engine and takes a while with another. */
#define SOON(try)                                                                                  \
    __extension__({                                                                                \
        int64_t end_ns_ = test_now_ns() + TEST_PATIENCE_NS;                                        \
        int status_;                                                                               \
        do                                                                                         \
            status_ = (try);                                                                       \
        while (status_ == VELO_AGAIN && test_now_ns() < end_ns_);                                  \
        status_;                                                                                   \
    })

/* A failure whose velo_last_error() names what it is about. */
#define CHECK_FAILS(call, expected, about)                                                         \
    test_check_fails(__FILE__, __LINE__, #call, (call), (expected), (about))

void test_check_fails(const char *file, int line, const char *call, int status, int expected,
                      const char *about);
void test_check_status(const char *file, int line, const char *call, int status, int expected);
__attribute__((noreturn)) void test_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Leave the test without a verdict, because the machine does not allow it. Main thread only. */
__attribute__((noreturn)) void test_skip(const char *reason);

/* Are messages carried as frames, since $VELO_NETWORK names a transport for that? Then some ways
 * are not there. (Over a simulated node, names and connections are in shared memory.) */
bool test_is_carried(void);
/* Leave the test if so. Main thread only. */
void test_needs_shared_memory(void);

/* The domain of this program, and the directory its segments live in. */
const char *test_domain(void);
const char *test_shm_dir(void);

/* Is this the simulated cluster, in virtual time? */
bool is_simulated(void);
/* Do messages and operations go by a node, simulated or a card, as nobody has another's memory? */
bool test_is_by_node(void);
/* Is a node's driver asked for contexts, so in real time? */
bool test_is_by_card(void);

/* Where a message takes a hundred times as long (a guest with a simulated card), $VELO_TEST_ONE_IN
 * makes tests short: of rounds that are all alike there is only one in so many. */
uint32_t test_rounds(uint32_t all);
/* How much of it: natively, and where a byte takes microseconds. */
size_t scaled(size_t native, size_t slow);

int64_t test_now_ns(void);
void test_sleep_ns(int64_t duration_ns);

/* Random numbers that a seed replays. $VELO_TEST_SEED sets the seed of test_seed(). */
struct rng {
    uint64_t state;
};
uint64_t test_seed(void);
uint64_t rng_next(struct rng *rng);
uint32_t rng_below(struct rng *rng, uint32_t bound);

/* Zeroed memory that children share with their parent, for progress and findings. Never freed. */
void *test_shared_alloc(size_t size_bytes);

/* Children die with their parent, and at the end of the test that started them. */
pid_t child_start(void (*body)(void *arg), void *arg);
/* Wait for a child and check that it exited with 0. */
void child_join(pid_t child);
/* Kill a child with SIGKILL and reap it. */
void child_kill(pid_t child);
/* Reap a child however it ends, and return its wait status. */
int child_wait(pid_t child);

/* Put this process, a child, into namespaces of its own (CLONE_NEW...); a user who is not root gets
 * one in which he is. False: the machine permits none. */
bool test_unshare(int namespaces);

/* Payload, tag and mixing of bits that follow from a seed. */
uint64_t test_mix(uint64_t seed);
void pattern_fill(void *buf, size_t len_bytes, uint64_t seed);
bool pattern_matches(const void *buf, size_t len_bytes, uint64_t seed);
uint8_t pattern_tag(uint64_t seed);

/* Open a port of node 0; zeros ask for the defaults. */
struct velo_port *port_open(int vpid);
struct velo_port *port_open_sized(int vpid, uint32_t depth_slots, uint32_t data_bytes,
                                  uint32_t conns_max);
/* Connect, waiting for the peer to open. */
struct velo_conn *port_connect(struct velo_port *port, velo_id_t peer);

/* Send a message made from a seed; receive the next one and check that it is the one. */
void message_send(struct velo_conn *conn, size_t len_bytes, uint64_t seed);
void message_expect(struct velo_port *port, size_t len_bytes, uint64_t seed, velo_id_t source);
/* Check a received message against its seed. */
void message_check(const struct velo_msg *msg, size_t len_bytes, uint64_t seed, velo_id_t source);

#ifdef __cplusplus
}
#endif

#endif
