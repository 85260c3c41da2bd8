/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cable between network namespaces, with a switch in it: a TAP device in each namespace, and this
 * program, which passes Ethernet frames between them, late, not all of them, and out of order if it
 * is told so.
 *
 *   cable [--delay-us N] [--loss SHARE] [--late SHARE] [--late-us N] [--seed N] NETNS NETNS
 * [NETNS]...
 *
 * NETNS is a file such as /proc/PID/ns/net; its device is named `cable`. Which frames are lost
 * depends on the seed and on the frame's number at its port, and on nothing else.
 *
 * It obeys lines on stdin, and answers each with a line:
 *
 *   cut N     machine N is cut off: no frame from it or to it passes      ok
 *   mend N    it is connected again                                       ok
 *   count     frames: taken, delivered, lost (by chance), cut, dropped    {"taken":...}
 *
 * `dropped`: the queue was full, or the receiver did not take them. It ends when stdin ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <net/if_arp.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PORTS_MAX 8
#define FRAME_BYTES_MAX 2048
/* The most frames under way in all: those of 50 ms at a gigabit a second, and some more. */
#define QUEUE_FRAMES_MAX 16384
#define FRAMES_PER_LOOK 64
/* The last byte of an address is the port's number; the first says that it is no maker's. */
static const unsigned char address_front[5] = {0x02, 'v', 'e', 'l', 'o'};

struct port {
    int fd;
    uint64_t random;
    bool is_cut;
};

struct frame {
    uint64_t due_ns;
    int from;
    unsigned len_bytes;
    unsigned char bytes[FRAME_BYTES_MAX];
};

struct cable {
    int ports_len;
    struct port ports[PORTS_MAX];
    uint64_t delay_ns, late_ns;
    double loss, late;
    /* A heap by time: the least is first. */
    struct frame *queue[QUEUE_FRAMES_MAX];
    size_t queue_len;
    uint64_t taken, delivered, lost, cut, dropped;
};

static void fail(const char *what)
{
    (void)fprintf(stderr, "cable: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* splitmix64, as a number from 0 to 1. */
static double chance(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

/* ---- the queue ------------------------------------------------------------------------------- */

static bool is_before(const struct frame *a, const struct frame *b)
{
    return a->due_ns < b->due_ns;
}

static void push(struct cable *cable, struct frame *frame)
{
    size_t at = cable->queue_len++;
    while (at > 0 && is_before(frame, cable->queue[(at - 1) / 2])) {
        cable->queue[at] = cable->queue[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    cable->queue[at] = frame;
}

static struct frame *pop(struct cable *cable)
{
    struct frame *first = cable->queue[0], *last = cable->queue[--cable->queue_len];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < cable->queue_len; at = child) {
        if (child + 1 < cable->queue_len && is_before(cable->queue[child + 1], cable->queue[child]))
            child++;
        if (!is_before(cable->queue[child], last))
            break;
        cable->queue[at] = cable->queue[child];
    }
    cable->queue[at] = last;
    return first;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void deliver_to(struct cable *cable, const struct frame *frame, int to)
{
    if (cable->ports[frame->from].is_cut || cable->ports[to].is_cut)
        cable->cut++;
    else if (write(cable->ports[to].fd, frame->bytes, frame->len_bytes) ==
             (ssize_t)frame->len_bytes)
        cable->delivered++;
    else
        cable->dropped++;
}

/* To the port that the address names; to all others, if it names none. */
static void deliver(struct cable *cable, const struct frame *frame)
{
    int to = frame->bytes[5];
    bool is_known = memcmp(frame->bytes, address_front, sizeof address_front) == 0;
    for (int i = 0; i < cable->ports_len; i++)
        if (i != frame->from && (!is_known || i == to))
            deliver_to(cable, frame, i);
}

static void deliver_due(struct cable *cable)
{
    while (cable->queue_len > 0 && cable->queue[0]->due_ns <= now_ns()) {
        struct frame *frame = pop(cable);
        deliver(cable, frame);
        free(frame);
    }
}

/* Both chances are drawn for each frame, so that one option does not change what another does. */
static void take(struct cable *cable, int from)
{
    struct port *port = &cable->ports[from];
    for (int i = 0; i < FRAMES_PER_LOOK; i++) {
        struct frame *frame = malloc(sizeof *frame);
        if (!frame)
            fail("malloc");
        ssize_t len = read(port->fd, frame->bytes, sizeof frame->bytes);
        if (len <= 0) {
            free(frame);
            return;
        }
        bool is_lost = chance(&port->random) < cable->loss;
        bool is_late = chance(&port->random) < cable->late;
        cable->lost += is_lost;
        cable->dropped += !is_lost && cable->queue_len == QUEUE_FRAMES_MAX;
        cable->taken++;
        if (is_lost || cable->queue_len == QUEUE_FRAMES_MAX) {
            free(frame);
            continue;
        }
        frame->from = from;
        frame->len_bytes = (unsigned)len;
        frame->due_ns = now_ns() + cable->delay_ns + (is_late ? cable->late_ns : 0);
        push(cable, frame);
    }
}

/* ---- orders ---------------------------------------------------------------------------------- */

static void obey(struct cable *cable, const char *line)
{
    char word[8];
    int machine = 0, words = sscanf(line, "%7s %d", word, &machine);
    bool is_port = words == 2 && machine >= 0 && machine < cable->ports_len;
    if (is_port && (strcmp(word, "cut") == 0 || strcmp(word, "mend") == 0)) {
        cable->ports[machine].is_cut = word[0] == 'c';
        (void)printf("ok\n");
    } else if (words == 1 && strcmp(word, "count") == 0) {
        (void)printf("{\"taken\":%" PRIu64 ",\"delivered\":%" PRIu64 ",\"lost\":%" PRIu64
                     ",\"cut\":%" PRIu64 ",\"dropped\":%" PRIu64 "}\n",
                     cable->taken, cable->delivered, cable->lost, cable->cut, cable->dropped);
    } else {
        (void)printf("what?\n");
    }
    (void)fflush(stdout);
}

/* False: nobody is there any more. Orders are short, and come whole. */
static bool read_orders(struct cable *cable)
{
    char text[256];
    ssize_t len = read(STDIN_FILENO, text, sizeof text - 1);
    if (len <= 0)
        return false;
    text[len] = '\0';
    char *rest = text;
    for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n"))
        if (*line)
            obey(cable, line);
    return true;
}

/* ---- set-up ---------------------------------------------------------------------------------- */

/* A device in a namespace; the program stays there until it opens the next. */
static int open_device(const char *netns, int number)
{
    struct ifreq request = {.ifr_name = "cable", .ifr_flags = IFF_TAP | IFF_NO_PI};
    int ns = open(netns, O_RDONLY | O_CLOEXEC);
    if (ns < 0 || setns(ns, CLONE_NEWNET) != 0)
        fail(netns);
    (void)close(ns);
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || ioctl(fd, TUNSETIFF, &request) != 0)
        fail("/dev/net/tun");
    request.ifr_hwaddr.sa_family = ARPHRD_ETHER;
    memcpy(request.ifr_hwaddr.sa_data, address_front, sizeof address_front);
    request.ifr_hwaddr.sa_data[5] = (char)number;
    if (ioctl(fd, SIOCSIFHWADDR, &request) != 0)
        fail("address of a device");
    return fd;
}

static double number_of(const char *text, double max)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || value < 0 || value > max) {
        (void)fprintf(stderr, "cable: '%s' is no number from 0 to %g\n", text, max);
        exit(2);
    }
    return value;
}

static void set_up(struct cable *cable, int argc, char **argv)
{
    static const struct option options[] = {
        {"delay-us", required_argument, NULL, 'd'}, {"loss", required_argument, NULL, 'l'},
        {"late", required_argument, NULL, 'r'},     {"late-us", required_argument, NULL, 'u'},
        {"seed", required_argument, NULL, 's'},     {NULL, 0, NULL, 0},
    };
    uint64_t seed = 1;
    cable->late_ns = 1000000;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 'd':
            cable->delay_ns = (uint64_t)(number_of(optarg, 1e7) * 1000);
            break;
        case 'l':
            cable->loss = number_of(optarg, 1);
            break;
        case 'r':
            cable->late = number_of(optarg, 1);
            break;
        case 'u':
            cable->late_ns = (uint64_t)(number_of(optarg, 1e7) * 1000);
            break;
        case 's':
            seed = (uint64_t)number_of(optarg, 1e9);
            break;
        default:
            exit(2);
        }
    }
    cable->ports_len = argc - optind;
    if (cable->ports_len < 2 || cable->ports_len > PORTS_MAX) {
        (void)fprintf(stderr, "cable: give 2 to %d namespaces\n", PORTS_MAX);
        exit(2);
    }
    for (int i = 0; i < cable->ports_len; i++) {
        cable->ports[i].fd = open_device(argv[optind + i], i);
        cable->ports[i].random = seed * UINT64_C(1000003) + (uint64_t)i;
    }
}

static void wait_for_work(const struct cable *cable, struct pollfd *polled)
{
    struct timespec wait = {0, 0};
    if (cable->queue_len > 0) {
        uint64_t now = now_ns(), due = cable->queue[0]->due_ns;
        uint64_t ns = due > now ? due - now : 0;
        wait.tv_sec = (time_t)(ns / UINT64_C(1000000000));
        wait.tv_nsec = (long)(ns % UINT64_C(1000000000));
    }
    if (ppoll(polled, (nfds_t)cable->ports_len + 1, cable->queue_len > 0 ? &wait : NULL, NULL) <
            0 &&
        errno != EINTR)
        fail("ppoll");
}

int main(int argc, char **argv)
{
    static struct cable cable;
    struct pollfd polled[PORTS_MAX + 1];
    (void)prctl(PR_SET_TIMERSLACK, 1UL);
    set_up(&cable, argc, argv);
    for (int i = 0; i < cable.ports_len; i++)
        polled[i] = (struct pollfd){.fd = cable.ports[i].fd, .events = POLLIN};
    polled[cable.ports_len] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    (void)printf("ready\n");
    (void)fflush(stdout);
    for (;;) {
        wait_for_work(&cable, polled);
        for (int i = 0; i < cable.ports_len; i++)
            if (polled[i].revents)
                take(&cable, i);
        if (polled[cable.ports_len].revents && !read_orders(&cable))
            return 0;
        deliver_due(&cable);
    }
}
