/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hostile process writes all over a segment while its owner receives from it: random words and
 * forged messages, in its own rings, in other entries, in the header page. Only the honest sender's
 * ring and entry are spared, so its messages must arrive whole, in order and exactly once; and
 * every call must return.
 *
 * Usage: velo-fuzz-scribbler [seconds [seed]]
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <velo/velo.h>

#include "core/ring.h"

#define DEPTH_SLOTS 8u
#define DATA_BYTES 16384u
#define MAX_BYTES (DATA_BYTES / 4)
#define CONNS_MAX 4u /* The honest sender has entry 0. */
#define RING_BYTES                                                                                 \
    (sizeof(struct seg_ring) + (size_t)DEPTH_SLOTS * VELO_LINE_BYTES + DATA_BYTES + SEG_ALIGN)
#define PAGE_BYTES 4096u
#define UNSURE_LEN 65536u
#define SECRET UINT64_C(0x5ec2e7c0de5ec2e7)
#define S_NS INT64_C(1000000000)
/* A call that computes for so long is stuck. Time on the core, not on the wall: others run here,
 * too. */
#define STUCK_NS S_NS

enum { VPID_RECEIVER = 0, VPID_HONEST = 1, VPID_HOSTILE = 2 };

/* Between the three processes; nothing to do with velo. */
struct stage {
    bool honest_connected;
    bool stop_hostile;
    bool stop_honest;
    uint64_t sent;
    uint64_t unsure[UNSURE_LEN]; /* Messages of which the sender was told an error: number + 1. */
};

struct honest_message {
    uint64_t secret;
    uint64_t number;
    uint64_t filler[500];
};

static struct stage *stage;
static char domain[33];

static void check(bool holds, const char *what)
{
    if (holds)
        return;
    (void)fprintf(stderr, "%s (last error: %s)\n", what, velo_last_error());
    abort();
}

static int64_t time_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * S_NS + now.tv_nsec;
}

static uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static bool flag(const bool *it) { return __atomic_load_n(it, __ATOMIC_ACQUIRE); }
static void raise_flag(bool *it) { __atomic_store_n(it, true, __ATOMIC_RELEASE); }

static struct velo_port *open_port(int vpid)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *port;
    attr.domain = domain;
    attr.vpid = vpid;
    attr.depth_slots = DEPTH_SLOTS;
    attr.data_bytes = DATA_BYTES;
    attr.conns_max = CONNS_MAX;
    check(velo_port_open(&attr, &port) == VELO_OK, "velo_port_open");
    return port;
}

/* ---- the honest sender ----------------------------------------------------------------------- */

static uint64_t filler(uint64_t number, size_t i) { return number * 0x9e3779b97f4a7c15u + i; }

static void honest_send(struct velo_conn *conn, uint64_t *random)
{
    struct honest_message m = {.secret = SECRET, .number = stage->sent};
    size_t words = random_next(random) % 8 ? random_next(random) % 5 : random_next(random) % 500;
    for (size_t i = 0; i < words; i++)
        m.filler[i] = filler(m.number, i);
    size_t len_bytes = offsetof(struct honest_message, filler) + words * 8;
    int status = velo_try_send(conn, &m, len_bytes, (uint8_t)m.number);
    if (status == VELO_AGAIN) {
        (void)usleep(50);
        return;
    }
    check(status == VELO_OK || status == VELO_ERR_PEER_CLOSED || status == VELO_ERR_PEER_DEAD,
          "the honest sender was told what only its own, untouched ring could have caused");
    if (status != VELO_OK) { /* In the ring or not: see velo_try_send(). */
        __atomic_store_n(&stage->unsure[m.number % UNSURE_LEN], m.number + 1, __ATOMIC_RELAXED);
        (void)usleep(1000);
    }
    __atomic_store_n(&stage->sent, m.number + 1, __ATOMIC_RELEASE);
}

static void honest_process(uint64_t seed)
{
    struct velo_port *port = open_port(VPID_HONEST);
    struct velo_conn *conn;
    uint64_t random = seed;
    check(velo_connect(port, VELO_ID(0, VPID_RECEIVER), &conn, 10 * S_NS) == VELO_OK,
          "velo_connect");
    raise_flag(&stage->honest_connected);
    while (!flag(&stage->stop_honest))
        honest_send(conn, &random);
    /* A wiped-out doorbell does no harm for good: the next message rings again. */
    for (uint64_t last = stage->sent; stage->sent == last;)
        honest_send(conn, &random);
    (void)velo_port_close(port);
}

/* ---- the hostile process --------------------------------------------------------------------- */

static char *map_segment(void)
{
    const char *dir = getenv("VELO_SHM_DIR");
    char path[PATH_MAX];
    struct stat st;
    (void)snprintf(path, sizeof path, "%s/velo.%s.0.%d", dir ? dir : "/dev/shm", domain,
                   VPID_RECEIVER);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    check(fd >= 0 && fstat(fd, &st) == 0 &&
              st.st_size >= (off_t)(SEG_HEADER_BYTES + PAGE_BYTES + CONNS_MAX * RING_BYTES),
          "cannot open the receiver's segment, or it is not laid out as segment.h says");
    void *base = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    check(base != MAP_FAILED, "cannot map the receiver's segment");
    return base; /* The descriptor stays open: closing it would drop our record locks. */
}

static void store(void *to, uint64_t value)
{
    __atomic_store_n((uint64_t *)to, value, __ATOMIC_RELAXED);
}

/* How far the hostile process goes: its own ring, the header page as well, all entries as well. The
 * further, the sooner the receiver is through with it. */
enum boldness { RINGS, HEADER, TABLE };

static enum boldness choose_boldness(uint64_t *random)
{
    uint64_t choice = random_next(random) % 2048;
    return choice == 0 ? TABLE : choice < 400 ? HEADER : RINGS;
}

static void scribble(char *base, uint64_t *random, enum boldness boldness)
{
    uint64_t where = random_next(random);
    uint64_t value = random_next(random) >> random_next(random) % 64;
    char *entries = base + SEG_HEADER_BYTES;
    char *ring = entries + PAGE_BYTES + (1 + where % (CONNS_MAX - 1)) * RING_BYTES;
    uint64_t at = where >> 16;
    unsigned kind = where >> 8 & 7;
    if (kind == 0 && boldness >= HEADER)
        store(base + at % (SEG_HEADER_BYTES / 8) * 8, value);
    else if (kind == 1 && boldness >= TABLE)
        store(entries + (1 + at % (CONNS_MAX - 1)) * 8, value);
    else if (kind == 2)
        store(ring + at % (sizeof(struct seg_ring) / 8) * 8, value);
    else
        store(ring + at % (RING_BYTES / 8) * 8, value);
}

static void forge(char *base, uint64_t *random)
{
    struct seg_header *header = (struct seg_header *)base;
    struct seg_ring *ring = (struct seg_ring *)(base + SEG_HEADER_BYTES + PAGE_BYTES + RING_BYTES);
    uint64_t position =
        __atomic_load_n(&ring->consumed, __ATOMIC_RELAXED) + random_next(random) % 8;
    uint64_t *cell = ring->slots + position % ring_at_line(DEPTH_SLOTS) * CELL_WORDS;
    uint64_t choice = random_next(random);
    store(&cell[1], (ring->data_consumed & ~UINT64_C(63)) + choice % (2 * DATA_BYTES) / 64 * 64);
    store(&cell[0], VELO_HEADER_VALID_MASK | ring_seq(position) |
                        (uint64_t)VELO_ID(0, VPID_HOSTILE) << VELO_HEADER_SOURCE_LSB |
                        (choice >> 32 & 0x1fff) << VELO_HEADER_LEN_LSB |
                        (choice >> 50 & 1 ? VELO_HEADER_EXTERNAL_MASK : 0));
    __atomic_fetch_or(&header->bells[0], 0xf, __ATOMIC_SEQ_CST);
    __atomic_fetch_or(&header->summary, 1, __ATOMIC_SEQ_CST);
}

/* One connection: send, forge, scribble, and leave. */
static void attack(struct velo_port *port, char *base, const char *healthy, uint64_t *random)
{
    static const char payload[MAX_BYTES];
    struct velo_conn *conn;
    enum boldness boldness = choose_boldness(random);
    /* As it must be for connecting. */
    for (size_t at = 0; at < offsetof(struct seg_header, sleeping); at += 8)
        store(base + at, *(const uint64_t *)(healthy + at));
    if (velo_connect(port, VELO_ID(0, VPID_RECEIVER), &conn, 0) != VELO_OK) {
        for (uint64_t i = 1; i < CONNS_MAX; i++) /* Nobody else wants these entries. */
            store(base + SEG_HEADER_BYTES + i * 8, 0);
        return;
    }
    for (uint64_t i = random_next(random) % 30; i > 0; i--)
        (void)velo_try_send(conn, payload, random_next(random) % (MAX_BYTES + 1), 0);
    (void)usleep(100);
    for (uint64_t i = random_next(random) % 50; i > 0; i--)
        forge(base, random);
    for (uint64_t i = random_next(random) % 200; i > 0; i--)
        scribble(base, random, boldness);
    (void)velo_disconnect(conn);
}

static void hostile_process(uint64_t seed)
{
    uint64_t random = seed;
    while (!flag(&stage->honest_connected))
        (void)usleep(1000);
    struct velo_port *port = open_port(VPID_HOSTILE);
    char *base = map_segment();
    _Alignas(8) char healthy[sizeof(struct seg_header)];
    memcpy(healthy, base, sizeof healthy);
    while (!flag(&stage->stop_hostile))
        attack(port, base, healthy, &random);
    (void)velo_port_close(port);
}

/* ---- the receiver ---------------------------------------------------------------------------- */

struct receiver {
    struct velo_port *port;
    uint64_t next;
    uint64_t honest;
    uint64_t hostile;
};

static bool is_unsure(uint64_t number)
{
    return __atomic_load_n(&stage->unsure[number % UNSURE_LEN], __ATOMIC_RELAXED) == number + 1;
}

static void look_at(struct receiver *r, const void *data, const struct velo_msg *msg)
{
    static struct honest_message m; /* A copy: what is in place can change under our eyes. */
    check(msg->len_bytes <= MAX_BYTES, "a message longer than any that can be sent");
    memcpy(&m, data, msg->len_bytes < sizeof m ? msg->len_bytes : sizeof m);
    if (msg->len_bytes < offsetof(struct honest_message, filler) || m.secret != SECRET) {
        r->hostile++;
        return;
    }
    while (r->next < m.number && is_unsure(r->next))
        r->next++;
    if (m.number != r->next)
        (void)fprintf(stderr, "message %llu came, %llu was next\n", (unsigned long long)m.number,
                      (unsigned long long)r->next);
    check(m.number == r->next, "an honest message is missing, or came twice");
    check(msg->tag == (uint8_t)m.number && msg->source == VELO_ID(0, VPID_HONEST),
          "an honest message has a wrong tag or source");
    for (size_t i = 0; i < (msg->len_bytes - offsetof(struct honest_message, filler)) / 8; i++)
        check(m.filler[i] == filler(m.number, i), "an honest message is damaged");
    r->next++;
    r->honest++;
}

/* One call or two; true if a message came. */
static bool receive(struct receiver *r, uint64_t choice)
{
    static char buf[MAX_BYTES];
    struct velo_msg msg;
    int status;
    int64_t start_ns = time_ns(CLOCK_THREAD_CPUTIME_ID);
    if (choice % 3 == 0) {
        status = velo_try_peek(r->port, &msg);
        if (status == VELO_OK) {
            look_at(r, msg.data, &msg);
            check(velo_release(r->port) == VELO_OK, "velo_release");
        }
    } else if (choice % 3 == 1) {
        status = velo_try_recv(r->port, buf, sizeof buf, &msg);
        if (status == VELO_OK)
            look_at(r, buf, &msg);
    } else {
        status = velo_recv(r->port, buf, sizeof buf, &msg, 1000000);
        if (status == VELO_OK)
            look_at(r, buf, &msg);
    }
    check(status == VELO_OK || status == VELO_AGAIN || status == VELO_TIMEOUT,
          velo_strerror(status));
    check(time_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns < STUCK_NS, "a receiving call was stuck");
    return status == VELO_OK;
}

static void receive_for(struct receiver *r, int64_t duration_ns, uint64_t *random)
{
    int64_t end_ns = time_ns(CLOCK_MONOTONIC) + duration_ns;
    while (time_ns(CLOCK_MONOTONIC) < end_ns)
        (void)receive(r, random_next(random));
}

static void receive_rest(struct receiver *r)
{
    for (uint64_t choice = 0, empty = 0; empty < 30; choice++)
        empty = receive(r, choice) ? 0 : empty + 1;
    while (r->next < stage->sent && is_unsure(r->next))
        r->next++;
    check(r->next == stage->sent, "honest messages never arrived");
}

static pid_t start(void (*body)(uint64_t), uint64_t seed)
{
    pid_t child = fork();
    check(child >= 0, "fork");
    if (child > 0)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    body(seed);
    exit(0);
}

static void join(pid_t child, const char *what)
{
    int status;
    check(waitpid(child, &status, 0) == child && status == 0, what);
}

int main(int argc, char **argv)
{
    int seconds = argc > 1 ? atoi(argv[1]) : 10;
    uint64_t random = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    (void)snprintf(domain, sizeof domain, "scribbler-%ld", (long)getpid());
    (void)alarm((unsigned)seconds + 60); /* A call that never returns ends here. */
    stage = mmap(NULL, sizeof *stage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(stage != MAP_FAILED, "mmap");
    pid_t honest = start(honest_process, random_next(&random));
    pid_t hostile = start(hostile_process, random_next(&random));
    struct receiver r = {.port = open_port(VPID_RECEIVER)};

    receive_for(&r, seconds * S_NS, &random);
    raise_flag(&stage->stop_hostile);
    join(hostile, "the hostile process failed");
    raise_flag(&stage->stop_honest);
    receive_for(&r, S_NS / 10, &random);
    join(honest, "the honest process failed");
    receive_rest(&r);
    (void)printf("%llu honest messages sent, %llu arrived; %llu hostile ones\n",
                 (unsigned long long)stage->sent, (unsigned long long)r.honest,
                 (unsigned long long)r.hostile);
    check(r.honest > 0 && r.hostile > 0, "nothing arrived: this run says nothing");
    (void)velo_port_close(r.port);
    return 0;
}
