/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that send to one port, two that use registered memory in turn (registrations.c), and
 * three that share a ring with one writer (broadcast.c), and three of which two leave statuses with
 * the third (statuses.c), for ThreadSanitizer to watch. The
 * library's own sources are compiled into this program with -DVELO_MUTATIONS, and its argument is
 * the number of the ordering that is weakened: as shipped (0) the sanitizer must be silent, with an
 * ordering weakened it must report a race. ThreadSanitizer takes an order that is known only at run
 * time as it is; without it a compiler would take the strongest. The rings are short, so that every
 * slot and every byte of the data region is used again and again.
 *
 * Plain memory is what the sanitizer watches: the payload and what a connection sets up. It knows
 * the C memory model, so it sees a missing edge on x86, too, where the processor would not.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "race.h"

#define SENDERS 2
#define ROUNDS 40    /* Connections that each sender makes, one after the other. */
#define MESSAGES 150 /* Messages on each. */
#define LONG_BYTES 4000
#define HEIRS 8 /* Threads that take over one entry, one after the other. */

int order_mutation; /* Set before the first thread starts. */

static velo_id_t target;

/* Peers are processes, which share no mutex: what a mutex orders between these threads must not
 * count, or it would hide a missing edge. (What is private to a process and rightly behind a mutex
 * is listed in suppressions.txt.) */
void AnnotateIgnoreSyncBegin(const char *file, int line);
void AnnotateIgnoreSyncEnd(const char *file, int line);
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
    int error = __real_pthread_mutex_lock(mutex);
    AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
    return error;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
    int error = __real_pthread_mutex_unlock(mutex);
    AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
    return error;
}

void check(int status, const char *what)
{
    if (status == VELO_OK)
        return;
    fprintf(stderr, "%s: %s: %s\n", what, velo_strerror(status), velo_last_error());
    exit(1);
}

static size_t length_of(unsigned message) { return message % 5 == 4 ? LONG_BYTES : message % 57; }

/* ---- all at once ----------------------------------------------------------------------------- */

static void *send_all(void *arg)
{
    struct velo_port *port = arg;
    char payload[LONG_BYTES];
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct velo_conn *conn;
        check(velo_connect(port, target, &conn, VELO_FOREVER), "velo_connect");
        for (unsigned i = 0; i < MESSAGES; i++) {
            size_t len_bytes = length_of(i);
            memset(payload, (int)(i & 0xff), len_bytes);
            if (i % 3) {
                check(velo_send(conn, payload, len_bytes, (uint8_t)i, VELO_FOREVER), "velo_send");
                continue;
            }
            void *room;
            check(velo_reserve(conn, len_bytes, &room, VELO_FOREVER), "velo_reserve");
            memcpy(room, payload, len_bytes);
            check(velo_commit(conn, len_bytes, (uint8_t)i), "velo_commit");
        }
        check(velo_disconnect(conn), "velo_disconnect");
    }
    return NULL;
}

static void receive_one(struct velo_port *port, unsigned n)
{
    char payload[LONG_BYTES];
    struct velo_msg msg;
    if (n % 2) {
        check(velo_recv(port, payload, sizeof payload, &msg, VELO_FOREVER), "velo_recv");
    } else {
        check(velo_peek(port, &msg, VELO_FOREVER), "velo_peek");
        memcpy(payload, msg.data, msg.len_bytes);
        check(velo_release(port), "velo_release");
    }
    for (uint32_t i = 0; i < msg.len_bytes; i++) {
        if ((uint8_t)payload[i] != msg.tag) {
            fprintf(stderr, "message %u is damaged at byte %u\n", n, i);
            exit(1);
        }
    }
}

static void send_at_once(struct velo_port *port, struct velo_port **ports)
{
    pthread_t threads[SENDERS];
    for (int i = 0; i < SENDERS; i++)
        pthread_create(&threads[i], NULL, send_all, ports[i]);
    for (unsigned n = 0; n < SENDERS * ROUNDS * MESSAGES; n++)
        receive_one(port, n);
    for (int i = 0; i < SENDERS; i++)
        pthread_join(threads[i], NULL);
}

/* ---- one entry, handed from thread to thread ------------------------------------------------- */

static int turn; /* Relaxed, so that only the entry itself orders one sender after the other. */

struct heir {
    pthread_t thread;
    struct velo_port *port;
    int turn;
};

static void *send_in_turn(void *arg)
{
    const struct heir *heir = arg;
    struct velo_conn *conn;
    while (__atomic_load_n(&turn, __ATOMIC_RELAXED) != heir->turn)
        usleep(100);
    check(velo_connect(heir->port, target, &conn, VELO_FOREVER), "velo_connect");
    check(velo_send(conn, "\1", 1, 1, VELO_FOREVER), "velo_send");
    check(velo_disconnect(conn), "velo_disconnect");
    return NULL;
}

static void wait_until_freed(struct velo_port *port)
{
    struct velo_port_counters counters;
    do {
        int status = velo_try_recv(port, NULL, 0, NULL);
        if (status != VELO_AGAIN)
            check(status, "velo_try_recv: a message nobody sent");
        check(velo_port_counters(port, &counters, sizeof counters), "velo_port_counters");
    } while (counters.rx_conns > 0);
}

static void hand_over(struct velo_port *port, struct velo_port *sender)
{
    struct heir heirs[HEIRS];
    __atomic_store_n(&turn, -1, __ATOMIC_RELAXED);
    for (int i = 0; i < HEIRS; i++) {
        heirs[i] = (struct heir){.port = sender, .turn = i};
        pthread_create(&heirs[i].thread, NULL, send_in_turn, &heirs[i]);
    }
    for (unsigned i = 0; i < HEIRS; i++) {
        wait_until_freed(port);
        __atomic_store_n(&turn, (int)i, __ATOMIC_RELAXED);
        receive_one(port, i);
    }
    for (int i = 0; i < HEIRS; i++)
        pthread_join(heirs[i].thread, NULL);
    wait_until_freed(port);
}

int main(int argc, char **argv)
{
    char *end = NULL;
    order_mutation = argc == 2 ? (int)strtol(argv[1], &end, 10) : -1;
    if (order_mutation < 0 || *end) {
        fprintf(stderr, "usage: velo-race NUMBER (0, or a number of tests/mutation/README.md)\n");
        return 2;
    }
    char domain[33];
    (void)snprintf(domain, sizeof domain, "mutation-%ld", (long)getpid());
    struct velo_port_attr attr = VELO_PORT_ATTR_INIT;
    attr.domain = domain;
    attr.depth_slots = 8;
    attr.data_bytes = 16384;
    attr.conns_max = SENDERS;

    struct velo_port *port;
    check(velo_port_open(&attr, &port), "velo_port_open");
    target = velo_port_id(port);

    struct velo_port *ports[SENDERS];
    for (int i = 0; i < SENDERS; i++)
        check(velo_port_open(&attr, &ports[i]), "velo_port_open");

    send_at_once(port, ports);
    hand_over(port, ports[0]);
    race_registrations(port, ports[0]);
    race_broadcast(domain);
    race_statuses(domain);

    for (int i = 0; i < SENDERS; i++)
        check(velo_port_close(ports[i]), "velo_port_close");
    check(velo_port_close(port), "velo_port_close");
    return 0;
}
