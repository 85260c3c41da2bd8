/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <fcntl.h>
#include <glob.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <velo/velo.h>

#include "core/ring.h"

#define DEPTH_SLOTS 8u
#define DATA_BYTES 16384u
#define MAX_BYTES (DATA_BYTES / 4)
#define CONNS_MAX 4u
#define HOSTILES (CONNS_MAX - 1) /* The honest sender has entry 0. */
#define RING_BYTES                                                                                 \
    (sizeof(struct seg_ring) + (size_t)DEPTH_SLOTS * VELO_LINE_BYTES + DATA_BYTES + SEG_ALIGN)
#define PAGE_BYTES 4096u
#define REFUSE_MARK UINT64_C(0xbad5107bad5107ba) /* First word of a slot that must be refused. */
#define WAIT_NS 1000 /* Long enough to go to sleep, and to be back at once. */

enum { VPID_RECEIVER = 0, VPID_HONEST = 1, VPID_HOSTILE = 2 };

struct hostile {
    struct velo_conn *conn;
    struct seg_ring *ring; /* Where its ring lies in `scribble`. */
    uint64_t tail;         /* Its next position, as far as anyone can know. */
    void *room;            /* An open reservation, or NULL. */
    size_t room_bytes;
};

struct world {
    const uint8_t *input;
    size_t left_bytes;
    struct world_tally *tally;

    struct velo_port *receiver;
    struct velo_port *honest_port;
    struct velo_port *hostile_port;
    struct velo_conn *honest;
    struct hostile hostiles[HOSTILES];
    char *scribble; /* The receiver's segment, mapped a second time. */
    size_t segment_bytes;
    int fd;         /* Of the same. */
    char *in_place; /* The same where the library maps it, once a peek has shown it. */
    struct velo_msg held;
    bool holding;
    bool table_harmed; /* Entries or the header page were scribbled over. */
    bool slots_harmed; /* Slots were, so that a forged one may have become a good one. */

    uint64_t secret; /* In each honest message; no operation copies it. */
    uint64_t next_sent;
    uint64_t next_seen;
    uint64_t unsure[64]; /* Messages of which the sender was told an error: index + 1. */
};

struct honest_message {
    uint64_t secret;
    uint64_t number;
    uint64_t filler[500];
};

static char domain[33];
static char *buffer_end; /* The end of a receive buffer, with an unreadable page after it. */

_Noreturn static void __attribute__((format(printf, 1, 2))) fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputc('\n', stderr);
    abort();
}

/* ---- input ----------------------------------------------------------------------------------- */

static uint64_t take(struct world *w, size_t bytes)
{
    uint64_t value = 0;
    for (; bytes > 0 && w->left_bytes > 0; bytes--, w->left_bytes--)
        value = value << 8 | *w->input++;
    return value;
}

/* Values that checks are made of, or any. */
static uint64_t take_word(struct world *w)
{
    static const uint64_t edges[] = {0,
                                     1,
                                     7,
                                     8,
                                     63,
                                     64,
                                     DEPTH_SLOTS * VELO_LINE_BYTES,
                                     MAX_BYTES,
                                     MAX_BYTES + 1,
                                     DATA_BYTES - 64,
                                     DATA_BYTES,
                                     UINT32_MAX,
                                     UINT64_MAX,
                                     UINT64_MAX - 63,
                                     INT64_MAX,
                                     (uint64_t)INT64_MAX + 1};
    uint64_t choice = take(w, 1);
    return choice < 128 ? edges[choice % (sizeof edges / sizeof edges[0])] : take(w, 8);
}

static struct hostile *take_hostile(struct world *w) { return &w->hostiles[take(w, 1) % HOSTILES]; }

/* ---- statuses -------------------------------------------------------------------------------- */

/* Check the status of a send when the receiver's memory lies. */
static void check_sent(struct world *w, const char *call, int status)
{
    switch (status) {
    case VELO_OK:
        return;
    case VELO_AGAIN:
        w->tally->again++;
        return;
    case VELO_ERR_PEER_CLOSED:
    case VELO_ERR_PEER_DEAD:
        w->tally->closed++;
        return;
    case VELO_ERR_CORRUPT:
        w->tally->told++;
        return;
    default:
        fail("%s: %s", call, velo_strerror(status));
    }
}

/* ---- the honest sender ----------------------------------------------------------------------- */

static void honest_send(struct world *w, size_t extra_bytes)
{
    struct honest_message m = {.secret = w->secret, .number = w->next_sent};
    for (size_t i = 0; i < sizeof m.filler / 8; i++)
        m.filler[i] = m.number * 0x9e3779b97f4a7c15u + i;
    size_t len_bytes = offsetof(struct honest_message, filler) + extra_bytes % sizeof m.filler;
    int status = velo_try_send(w->honest, &m, len_bytes, (uint8_t)m.number);
    if (status == VELO_ERR_CORRUPT)
        fail("the honest sender was refused, or its untouched credits were: %s", velo_last_error());
    check_sent(w, "velo_try_send (honest)", status);
    if (status == VELO_AGAIN)
        return;
    /* With an error, the message is either in the ring (the receiver wanted to be rung, and its
     * state said that it is gone) or not (the ring was full). */
    if (status != VELO_OK)
        w->unsure[w->next_sent % 64] = w->next_sent + 1;
    w->next_sent++;
}

static bool is_unsure(const struct world *w, uint64_t number)
{
    return w->unsure[number % 64] == number + 1;
}

static void honest_check(struct world *w, const struct honest_message *m,
                         const struct velo_msg *msg)
{
    while (w->next_seen < m->number && is_unsure(w, w->next_seen))
        w->next_seen++;
    if (m->number != w->next_seen)
        fail("honest message %llu came, %llu was next", (unsigned long long)m->number,
             (unsigned long long)w->next_seen);
    if (msg->tag != (uint8_t)m->number || msg->source != VELO_ID(0, VPID_HONEST))
        fail("honest message %llu has tag %u and source %u", (unsigned long long)m->number,
             msg->tag, msg->source);
    size_t filler_bytes = msg->len_bytes - offsetof(struct honest_message, filler);
    for (size_t i = 0; i < filler_bytes; i++) {
        uint64_t word = m->number * 0x9e3779b97f4a7c15u + i / 8;
        if (((const uint8_t *)m->filler)[i] != ((const uint8_t *)&word)[i % 8])
            fail("honest message %llu is damaged at byte %zu", (unsigned long long)m->number, i);
    }
    w->next_seen++;
    w->tally->honest++;
}

/* ---- receiving ------------------------------------------------------------------------------- */

/* Read all of a message, as an application would. */
static void look_at(struct world *w, const struct velo_msg *msg)
{
    struct honest_message m;
    if (msg->len_bytes > MAX_BYTES)
        fail("a message of %zu bytes, longer than any that can be sent", msg->len_bytes);
    volatile uint8_t sum = 0;
    for (uint32_t i = 0; i < msg->len_bytes; i++)
        sum = (uint8_t)(sum + ((const uint8_t *)msg->data)[i]);
    if (msg->len_bytes < offsetof(struct honest_message, filler)) {
        w->tally->hostile++;
        return;
    }
    memcpy(&m, msg->data, msg->len_bytes < sizeof m ? msg->len_bytes : sizeof m);
    /* A message that is held in place may be written over after it was checked. */
    if (m.secret == REFUSE_MARK && !w->holding && !w->table_harmed && !w->slots_harmed)
        fail("a slot with a wrong source, length or reserved bit was taken for a message");
    if (m.secret == w->secret)
        honest_check(w, &m, msg);
    else
        w->tally->hostile++;
}

static int receive(struct world *w, size_t cap_bytes, int64_t timeout_ns)
{
    struct velo_msg msg;
    void *buf = buffer_end - cap_bytes;
    int nothing = timeout_ns ? VELO_TIMEOUT : VELO_AGAIN;
    int status = timeout_ns ? velo_recv(w->receiver, buf, cap_bytes, &msg, timeout_ns)
                            : velo_try_recv(w->receiver, buf, cap_bytes, &msg);
    if (w->holding) {
        if (status != VELO_ERR_STATE)
            fail("receiving while a message is held: %s", velo_strerror(status));
        return status;
    }
    if (status == VELO_OK) {
        if (msg.data != buf || msg.len_bytes > cap_bytes)
            fail("%zu bytes received into %zu", msg.len_bytes, cap_bytes);
        look_at(w, &msg);
    } else if (status == VELO_ERR_TOO_BIG) {
        if (msg.len_bytes <= cap_bytes || msg.len_bytes > MAX_BYTES)
            fail("VELO_ERR_TOO_BIG: %zu bytes for %zu", msg.len_bytes, cap_bytes);
        w->tally->too_big++;
    } else if (status != nothing) {
        fail("receive: %s", velo_strerror(status));
    }
    return status;
}

/* A message in place must lie wholly inside one ring, or one sender could have us read another's.
 */
static void check_place(const struct world *w, const struct velo_msg *msg)
{
    if (msg->len_bytes == 0)
        return;
    size_t at = (size_t)((const char *)msg->data - w->in_place);
    size_t rings_at = SEG_HEADER_BYTES + PAGE_BYTES;
    if (at < rings_at || at >= rings_at + CONNS_MAX * RING_BYTES)
        fail("a message lies outside of all rings, at %zu", at);
    size_t in_ring = (at - rings_at) % RING_BYTES;
    if (in_ring < sizeof(struct seg_ring) || in_ring + msg->len_bytes > RING_BYTES - SEG_ALIGN)
        fail("a message reaches out of its ring: %zu bytes at %zu", msg->len_bytes, in_ring);
    bool is_in_cells = in_ring < sizeof(struct seg_ring) + DEPTH_SLOTS * VELO_LINE_BYTES;
    if (is_in_cells ? in_ring % CELL_BYTES != VELO_LINE_HEADER_BYTES
                    : in_ring % VELO_LINE_BYTES != 0)
        fail("a message starts within a cell, at %zu", in_ring);
    if (is_in_cells && in_ring % VELO_LINE_BYTES + msg->len_bytes > VELO_LINE_BYTES)
        fail("a message reaches out of its line: %zu bytes at %zu", msg->len_bytes, in_ring);
}

static void peek(struct world *w)
{
    struct velo_msg msg;
    int status = velo_try_peek(w->receiver, &msg);
    if (w->holding) {
        if (status != VELO_ERR_STATE)
            fail("velo_try_peek while a message is held: %s", velo_strerror(status));
        return;
    }
    if (status == VELO_AGAIN)
        return;
    if (status != VELO_OK)
        fail("velo_try_peek: %s", velo_strerror(status));
    check_place(w, &msg);
    w->held = msg;
    w->holding = true;
    w->tally->peeked++;
}

static void release(struct world *w)
{
    if (w->holding)
        look_at(w, &w->held);
    int status = velo_release(w->receiver);
    if (status != (w->holding ? VELO_OK : VELO_ERR_STATE))
        fail("velo_release: %s", velo_strerror(status));
    w->holding = false;
}

/* ---- the hostile sender ---------------------------------------------------------------------- */

static struct seg_header *header_of(const struct world *w)
{
    return (struct seg_header *)w->scribble;
}

static uint64_t *entries_of(const struct world *w)
{
    return (uint64_t *)(w->scribble + SEG_HEADER_BYTES);
}

static struct seg_ring *ring_at(const struct world *w, uint32_t index)
{
    return (struct seg_ring *)(w->scribble + SEG_HEADER_BYTES + PAGE_BYTES + index * RING_BYTES);
}

static void hostile_connect(struct world *w, struct hostile *h)
{
    uint64_t before[CONNS_MAX];
    /* A full table would wait for the receiver, which is us. */
    bool room = false;
    for (uint32_t i = 0; i < CONNS_MAX; i++) {
        before[i] = entries_of(w)[i];
        room |= entry_state(before[i]) == ENTRY_FREE;
    }
    if (h->conn || !room)
        return;
    int status = velo_connect(w->hostile_port, VELO_ID(0, VPID_RECEIVER), &h->conn, 0);
    if (status) {
        if (!w->table_harmed)
            fail("velo_connect: %s: %s", velo_strerror(status), velo_last_error());
        return;
    }
    for (uint32_t i = 0; i < CONNS_MAX; i++)
        if (entry_state(before[i]) == ENTRY_FREE && entry_state(entries_of(w)[i]) == ENTRY_READY)
            h->ring = ring_at(w, i);
    h->tail = h->ring->consumed;
}

static void hostile_disconnect(struct hostile *h)
{
    (void)velo_disconnect(h->conn);
    *h = (struct hostile){0};
}

/* The position behind a message that the library has written. */
static void hostile_step(struct hostile *h, size_t len_bytes)
{
    uint32_t cells = len_bytes <= VELO_INLINE_BYTES ? ring_cells(len_bytes) : EXTERNAL_CELLS;
    if (h->tail % LINE_CELLS + cells > LINE_CELLS)
        h->tail = ring_line_up(h->tail);
    h->tail += cells;
}

static void hostile_send(struct world *w, struct hostile *h, size_t len_bytes, uint8_t tag)
{
    static const char payload[MAX_BYTES];
    if (!h->conn || h->room)
        return;
    len_bytes %= MAX_BYTES + 1;
    int status = velo_try_send(h->conn, payload, len_bytes, tag);
    check_sent(w, "velo_try_send (hostile)", status);
    if (status == VELO_OK)
        hostile_step(h, len_bytes);
}

static void hostile_reserve(struct world *w, struct hostile *h, size_t len_bytes)
{
    if (!h->conn || h->room)
        return;
    len_bytes %= MAX_BYTES + 1;
    int status = velo_try_reserve(h->conn, len_bytes, &h->room);
    check_sent(w, "velo_try_reserve", status);
    if (status == VELO_OK) {
        h->room_bytes = len_bytes;
        memset(h->room, 0x5a, len_bytes);
    } else {
        h->room = NULL;
    }
}

static void hostile_commit(struct world *w, struct hostile *h, size_t len_bytes, uint8_t tag)
{
    if (!h->room)
        return;
    len_bytes %= h->room_bytes + 1;
    int status = velo_commit(h->conn, len_bytes, tag);
    check_sent(w, "velo_commit", status);
    hostile_step(h, h->room_bytes > VELO_INLINE_BYTES ? h->room_bytes : len_bytes);
    h->room = NULL;
}

/* A slot that looks right in most ways, and the doorbell for it. */
static void hostile_forge(struct world *w, struct hostile *h)
{
    uint64_t position = h->tail + take(w, 1) % 6;
    uint64_t len = take(w, 2);
    uint64_t flags = take(w, 1);
    uint64_t word = take_word(w);
    if (!h->conn || h->room)
        return;
    if (!(flags & 0x10))
        len %= flags & 0x20 ? MAX_BYTES + 2 : VELO_LINE_BYTES;
    uint64_t header = VELO_HEADER_VALID_MASK | ring_seq(position) |
                      (uint64_t)VELO_ID(0, VPID_HOSTILE) << VELO_HEADER_SOURCE_LSB |
                      (len << VELO_HEADER_LEN_LSB & VELO_HEADER_LEN_MASK);
    if (flags & 1) {
        header |= VELO_HEADER_EXTERNAL_MASK;
        if (flags & 2) /* somewhere in the lap that the receiver is in */
            word += h->ring->data_consumed & ~(uint64_t)(DATA_BYTES - 1);
    } else if (position % LINE_CELLS + ring_cells(ring_len(header)) > LINE_CELLS) {
        word = REFUSE_MARK;
    }
    if ((flags & 0x0c) == 0x0c) {
        header ^= VELO_HEADER_RESERVED_MASK & -VELO_HEADER_RESERVED_MASK;
        word = REFUSE_MARK;
    }
    if ((flags & 0xc0) == 0xc0) {
        header ^= UINT64_C(1) << VELO_HEADER_SOURCE_LSB;
        word = REFUSE_MARK;
    }
    uint64_t *cell = h->ring->slots + position % ring_at_line(DEPTH_SLOTS) * CELL_WORDS;
    cell[1] = word;
    cell[0] = header;
    header_of(w)->bells[0] |= (UINT64_C(1) << CONNS_MAX) - 1;
    header_of(w)->summary |= 1;
}

/* Anywhere but in what is the honest sender's alone. */
static void scribble(struct world *w, uint8_t where)
{
    uint64_t at = take(w, 2);
    uint64_t value = take_word(w);
    size_t width = where & 0x80 ? 1 : 8;
    char *to;
    if (where % 4 == 0) {
        at %= SEG_HEADER_BYTES / width;
        to = w->scribble + at * width;
        w->table_harmed = true;
    } else if (where % 4 == 1) {
        to = (char *)&entries_of(w)[1] + at % (HOSTILES * 8 / width) * width;
        w->table_harmed = true;
    } else if (where % 4 == 2) { /* the control lines of a hostile ring */
        to = (char *)ring_at(w, 1 + (uint32_t)(at % HOSTILES)) +
             at / HOSTILES % (sizeof(struct seg_ring) / width) * width;
    } else {
        to = (char *)ring_at(w, 1 + (uint32_t)(at % HOSTILES)) +
             at / HOSTILES % (RING_BYTES / width) * width;
        w->slots_harmed = true;
    }
    memcpy(to, &value, width);
}

/* ---- the play -------------------------------------------------------------------------------- */

static void step(struct world *w)
{
    uint8_t op = (uint8_t)take(w, 1);
    uint8_t arg = (uint8_t)take(w, 1);
    struct velo_port_counters counters;
    struct hostile *h;
    switch (op % 16) {
    case 0:
    case 1:
        honest_send(w, op & 0x10 ? take(w, 2) : arg % 32);
        return;
    case 2:
    case 3:
        h = take_hostile(w);
        hostile_send(w, h, op & 0x10 ? take(w, 2) : arg % 64, arg);
        return;
    case 4:
    case 5:
        hostile_forge(w, take_hostile(w));
        return;
    case 6:
    case 7:
        scribble(w, arg);
        return;
    case 8:
    case 9:
        (void)receive(w, op & 0x10 ? MAX_BYTES : arg, 0);
        return;
    case 10:
        (void)receive(w, MAX_BYTES, WAIT_NS);
        return;
    case 11:
        peek(w);
        return;
    case 12:
        release(w);
        return;
    case 13:
        h = take_hostile(w);
        if (h->room)
            hostile_commit(w, h, take(w, 2), arg);
        else
            hostile_reserve(w, h, take(w, 2));
        return;
    case 14:
        h = take_hostile(w);
        if (h->conn && arg % 2)
            hostile_disconnect(h);
        else
            hostile_connect(w, h);
        return;
    default:
        if (velo_port_counters(w->receiver, &counters, sizeof counters) ||
            velo_port_counters(w->hostile_port, &counters, sizeof counters))
            fail("velo_port_counters");
        return;
    }
}

/* Everything that is in the rings. A ring has few slots, so this ends, whatever they hold. */
static void receive_all(struct world *w)
{
    if (w->holding)
        release(w);
    for (unsigned n = 0; receive(w, MAX_BYTES, 0) == VELO_OK; n++)
        if (n > 100 * CONNS_MAX * DEPTH_SLOTS)
            fail("messages without end");
}

static void check_table_comes_back(struct world *w)
{
    for (int i = 0; i < 3; i++)
        while (receive(w, MAX_BYTES, WAIT_NS) == VELO_OK)
            ;
    for (uint32_t i = 1; i < CONNS_MAX; i++)
        if (entry_state(entries_of(w)[i]) != ENTRY_FREE)
            fail("entry %u was never given back: state %d", i, (int)entry_state(entries_of(w)[i]));
    w->tally->reused++;
}

/* Credits that no receiver gives: the sender must say so before it goes over a full ring. */
static void check_bad_credits_are_told(struct world *w, struct hostile *h, bool data)
{
    static const char payload[MAX_BYTES];
    int status = VELO_OK;
    if (h->room)
        hostile_commit(w, h, 0, 0);
    if (data)
        h->ring->data_consumed += UINT64_C(1) << 40;
    else
        h->ring->consumed = h->tail + 1000;
    for (unsigned n = 0; n <= ring_at_line(DEPTH_SLOTS) && status == VELO_OK; n++)
        status = velo_try_send(h->conn, payload, data ? MAX_BYTES : 0, 0);
    check_sent(w, "velo_try_send (bad credits)", status);
    if (status == VELO_OK || status == VELO_AGAIN)
        fail("credits for %s that nobody can have given were taken", data ? "data" : "slots");
}

static void end(struct world *w)
{
    struct velo_port_counters counters;
    receive_all(w);
    /* A hostile peer can wipe a doorbell out. Ring again, as the next message would. */
    header_of(w)->bells[0] |= 1;
    header_of(w)->summary |= 1;
    receive_all(w);
    while (w->next_seen < w->next_sent && is_unsure(w, w->next_seen))
        w->next_seen++;
    if (w->next_seen != w->next_sent)
        fail("honest messages from %llu on never came, %llu were sent",
             (unsigned long long)w->next_seen, (unsigned long long)w->next_sent);
    for (unsigned i = 0; i < HOSTILES; i++) {
        if (!w->hostiles[i].conn)
            continue;
        check_bad_credits_are_told(w, &w->hostiles[i], i % 2);
        hostile_disconnect(&w->hostiles[i]);
    }
    receive_all(w);
    if (w->table_harmed)
        return;
    check_table_comes_back(w);
    if (velo_port_counters(w->receiver, &counters, sizeof counters))
        fail("velo_port_counters");
    w->tally->refused += counters.rx_errors;
}

static struct velo_port *open_port(int vpid)
{
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    struct velo_port *port;
    attr.domain = domain;
    attr.vpid = vpid;
    attr.depth_slots = DEPTH_SLOTS;
    attr.data_bytes = DATA_BYTES;
    attr.conns_max = CONNS_MAX;
    int status = velo_port_open(&attr, &port);
    if (status)
        fail("velo_port_open: %s: %s", velo_strerror(status), velo_last_error());
    return port;
}

/* Where did the library map the receiver's file? */
static char *find_mapping(const struct stat *file, const void *other)
{
    char line[512];
    char *found = NULL;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long start;
        unsigned major, minor;
        unsigned long long inode;
        if (sscanf(line, "%lx-%*x %*s %*x %x:%x %llu", &start, &major, &minor, &inode) == 4 &&
            inode == file->st_ino && makedev(major, minor) == file->st_dev &&
            (const char *)start != other)
            found = (char *)start;
    }
    if (maps)
        (void)fclose(maps);
    if (!found)
        fail("the receiver's segment is not mapped");
    return found;
}

static void map_segment(struct world *w)
{
    const char *dir = getenv("VELO_SHM_DIR");
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/velo.%s.0.%d", dir ? dir : "/dev/shm", domain,
                   VPID_RECEIVER);
    /* Stays open: closing it would drop the record locks that say that this process lives. */
    int fd = w->fd = open(path, O_RDWR | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0 ||
        st.st_size < (off_t)(SEG_HEADER_BYTES + PAGE_BYTES + CONNS_MAX * RING_BYTES))
        fail("cannot open %s, or it is not laid out as segment.h says", path);
    w->segment_bytes = (size_t)st.st_size;
    w->scribble = mmap(NULL, w->segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (w->scribble == MAP_FAILED)
        fail("cannot map %s", path);
    w->in_place = find_mapping(&st, w->scribble);
}

void world_init(void)
{
    (void)snprintf(domain, sizeof domain, "fuzz-%ld", (long)getpid());
    (void)setenv("VELO_SPIN_NS", "100", 1);
    size_t pages_bytes = (MAX_BYTES + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    char *area = mmap(NULL, pages_bytes + PAGE_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED || mprotect(area + pages_bytes, PAGE_BYTES, PROT_NONE) != 0)
        fail("no memory for a receive buffer");
    buffer_end = area + pages_bytes;
}

void world_clean_up_after(long pid)
{
    const char *dir = getenv("VELO_SHM_DIR");
    char pattern[PATH_MAX];
    glob_t found;
    (void)snprintf(pattern, sizeof pattern, "%s/velo.fuzz-%ld.*", dir ? dir : "/dev/shm", pid);
    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        (void)unlink(found.gl_pathv[i]);
    globfree(&found);
}

void world_play(const uint8_t *input, size_t len_bytes, struct world_tally *tally)
{
    struct world w = {.input = input, .left_bytes = len_bytes, .tally = tally};
    w.secret = UINT64_C(0x5ec2e7c0de5ec2e7);
    w.receiver = open_port(VPID_RECEIVER);
    w.honest_port = open_port(VPID_HONEST);
    w.hostile_port = open_port(VPID_HOSTILE);
    map_segment(&w);
    int status = velo_connect(w.honest_port, VELO_ID(0, VPID_RECEIVER), &w.honest, 0);
    if (status)
        fail("velo_connect (honest): %s: %s", velo_strerror(status), velo_last_error());
    if (entry_state(entries_of(&w)[0]) != ENTRY_READY)
        fail("the honest sender does not have entry 0");
    hostile_connect(&w, &w.hostiles[0]);
    while (w.left_bytes > 0)
        step(&w);
    end(&w);
    (void)munmap(w.scribble, w.segment_bytes);
    (void)velo_port_close(w.hostile_port);
    (void)velo_port_close(w.honest_port);
    (void)velo_port_close(w.receiver);
    (void)close(w.fd);
}
