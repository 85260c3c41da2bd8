/* SPDX-License-Identifier: Apache-2.0 */
#include "attend.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../base/error.h"
#include "../shm/wait.h"

/* A port that was looked at in this time looks after itself. */
#define AWAY_NS 1000000
#define FILES_MAX 1024
/* At least so often, since nobody says that something found no room. */
#define LOOK_MS 100

/* The first is held to begin and end, the second to look at the list. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct velo_port *attended;
static pthread_t thread;
static int control = -1; /* Rung when the list changes. */

static bool is_away(struct velo_port *port)
{
    uint64_t looks = order_counter(&port->looks);
    bool looked = looks != port->looks_seen;
    port->looks_seen = looks;
    uint32_t sleeping = order_flag(&port->shared->sleeping);
    return looked || (sleeping != SEG_AWAKE && sleeping != SEG_ARMED);
}

/* What to wait for, and whether something waits to be sent. */
static nfds_t collect(struct pollfd *files, bool *pending)
{
    nfds_t len = 0;
    files[len++] = (struct pollfd){.fd = control, .events = POLLIN};
    *pending = false;
    for (struct velo_port *port = attended; port; port = port->next_attended)
        for (struct carrier *carrier = port->carriers; carrier; carrier = carrier->next) {
            if (len < FILES_MAX)
                files[len++] = (struct pollfd){
                    .fd = carrier->transport->descriptor(carrier->endpoint), .events = POLLIN};
            *pending |= order_flag(&carrier->pending) != 0;
        }
    return len;
}

static void *attend(void *arg)
{
    static struct pollfd files[FILES_MAX];
    bool pending;
    (void)arg;
    for (;;) {
        pthread_mutex_lock(&lock);
        nfds_t len = collect(files, &pending);
        bool is_over = !attended;
        pthread_mutex_unlock(&lock);
        if (is_over)
            return NULL;
        (void)poll(files, len, pending ? 1 : LOOK_MS);
        uint64_t rings;
        if (files[0].revents && read(control, &rings, sizeof rings) > 0)
            continue;
        /* Give programs that look by themselves the time to do so. */
        (void)wait_nap(AWAY_NS);
        pthread_mutex_lock(&lock);
        for (struct velo_port *port = attended; port; port = port->next_attended)
            if (!is_away(port))
                carriers_attend(port);
        pthread_mutex_unlock(&lock);
    }
}

static void ring(void)
{
    const uint64_t one = 1;
    (void)!write(control, &one, sizeof one);
}

/* Signals are the program's threads'. */
static int start(void)
{
    sigset_t all, before;
    control = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = control < 0 ? -1 : pthread_create(&thread, NULL, attend, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0)
        return VELO_OK;
    if (control >= 0)
        close(control);
    return velo_fail(VELO_ERR_SYSTEM, "no thread can be started to look after transports");
}

static void forget_parent(void)
{
    (void)pthread_mutex_init(&turn, NULL);
    (void)pthread_mutex_init(&lock, NULL);
    attended = NULL;
}

static void watch_forks(void) { (void)pthread_atfork(NULL, NULL, forget_parent); }

int attend_begin(struct velo_port *port)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int status = VELO_OK;
    (void)pthread_once(&once, watch_forks);
    pthread_mutex_lock(&turn);
    pthread_mutex_lock(&lock);
    bool is_first = !attended;
    port->next_attended = attended;
    attended = port;
    if (is_first)
        status = start();
    if (status)
        attended = NULL;
    else
        ring();
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&turn);
    return status;
}

void attend_end(struct velo_port *port)
{
    pthread_mutex_lock(&turn);
    pthread_mutex_lock(&lock);
    struct velo_port **at = &attended;
    while (*at && *at != port)
        at = &(*at)->next_attended;
    bool was_attended = *at;
    if (*at)
        *at = port->next_attended;
    if (was_attended)
        ring();
    pthread_mutex_unlock(&lock);
    if (was_attended && !attended) {
        (void)pthread_join(thread, NULL);
        close(control);
    }
    pthread_mutex_unlock(&turn);
}
