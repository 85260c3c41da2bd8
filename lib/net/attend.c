/* SPDX-License-Identifier: Apache-2.0 */
#include "attend.h"

#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../base/error.h"
#include "../base/fd.h"
#include "../shm/wait.h"
#include "held.h"
#include "progress.h"

/* If a program looked at its port within this time, it looks after the port itself. */
#define AWAY_NS 1000000
/* The longest time between two looks; see arm_carriers(). */
#define LOOK_MS 100
/* A process that ends waits so long for the thread to end its look. */
#define LAST_NS NS_PER_S

/* `turn` is held to begin and end, `lock` to look at the list. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct carriers *attended;
static pthread_t thread;
static int files = -1;   /* An epoll of all descriptors to wait for... */
static int control = -1; /* ...this one among them, which is rung when the list changes, */
static int due = -1;     /* and this timer, for transports that hold frames back. */

static bool is_away(struct carriers *carriers)
{
    uint64_t looks = order_counter(&carriers->looks);
    bool looked = looks != carriers->looks_seen;
    carriers->looks_seen = looks;
    uint32_t sleeping = order_flag(&carriers->port->shared->sleeping);
    return looked || order_flag(&carriers->is_closing) ||
           (sleeping != SEG_AWAKE && sleeping != SEG_ARMED);
}

/* If the timer has rung: send the frames that are late. */
static void send_held(void)
{
    bool any_was_late = false;
    if (!held_timer_has_rung())
        return;
    pthread_mutex_lock(&lock);
    for (struct carriers *each = attended; each; each = each->next_attended)
        any_was_late |= carriers_attend_held(each);
    pthread_mutex_unlock(&lock);
    held_timer_set_again(any_was_late);
}

static int watch_file(int file)
{
    struct epoll_event event = {.events = EPOLLIN};
    return epoll_ctl(files, EPOLL_CTL_ADD, file, &event);
}

static int watch_once(int operation, const struct carrier *carrier)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT};
    return epoll_ctl(files, operation, carrier->transport->descriptor(carrier->endpoint), &event);
}

/* Give programs that look by themselves the time to do so. One of them may hold frames back all the
 * time: then another port still gets its turn. */
static void stay_away(void)
{
    struct pollfd timer = {.fd = due, .events = POLLIN};
    const int64_t end_ns = wait_now_ns() + AWAY_NS;
    int64_t left_ns = AWAY_NS;
    while (left_ns > 0) {
        const struct timespec away = {.tv_nsec = left_ns};
        int rung = ppoll(&timer, 1, &away, NULL);
        if (rung < 0) /* There is no memory to wait with. The timer may have rung meanwhile. */
            (void)wait_nap(left_ns);
        if (rung != 0)
            send_held();
        left_ns = end_ns - wait_now_ns();
    }
}

/* The descriptors of transports are watched for one event, and anew before each sleep. So while the
 * thread stays away, messages that the program takes cost no work for this thread's list. */
static void watch_again(const struct carriers *carriers)
{
    for (const struct carrier *carrier = carriers->first; carrier; carrier = carrier->next)
        (void)watch_once(EPOLL_CTL_MOD, carrier);
}

/* Does something wait for room? */
static bool is_pending(const struct carriers *carriers)
{
    bool is_pending = false;
    for (const struct carrier *carrier = carriers->first; carrier; carrier = carrier->next)
        is_pending |= order_flag(&carrier->pending) != 0;
    return is_pending;
}

/* Before a sleep. If a program that looks by itself stops doing so later, its descriptor may show
 * nothing, and the next look comes after LOOK_MS. False: there is something to do. */
static bool arm_carriers(void)
{
    bool is_armed = true;
    for (struct carriers *each = attended; each; each = each->next_attended) {
        is_armed &= (is_away(each) && !is_pending(each)) || carriers_arm(each);
        watch_again(each);
    }
    return is_armed;
}

static void *attend(void *arg)
{
    (void)sem_post(arg);
    for (;;) {
        pthread_mutex_lock(&lock);
        bool is_over = !attended;
        int wait_ms = arm_carriers() ? LOOK_MS : 0;
        pthread_mutex_unlock(&lock);
        if (is_over)
            return NULL;
        struct epoll_event event; /* All ports are looked at, for any event. */
        (void)epoll_wait(files, &event, 1, wait_ms);
        uint64_t rings;
        if (read(control, &rings, sizeof rings) > 0)
            continue;
        stay_away();
        pthread_mutex_lock(&lock);
        for (struct carriers *each = attended; each; each = each->next_attended)
            if (!is_away(each))
                carriers_attend(each);
        pthread_mutex_unlock(&lock);
    }
}

static void ring_thread(void)
{
    const uint64_t one = 1;
    (void)!write(control, &one, sizeof one);
}

static void close_files(void)
{
    if (files >= 0)
        close(files);
    if (control >= 0)
        close(control);
    held_timer_close();
    files = control = due = -1;
}

/* All signals go to the program's own threads. This returns only when the thread has begun: while a
 * thread begins or ends, a sanitizer holds locks that the child of a fork would never get. */
static int start_thread(void)
{
    sigset_t all, before;
    sem_t begun;
    (void)sem_init(&begun, 0, 0);
    files = fd_above_standard(epoll_create1(EPOLL_CLOEXEC));
    control = fd_above_standard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    due = held_timer_open();
    int error = files < 0 || control < 0 || due < 0 ? -1 : watch_file(control) | watch_file(due);
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    if (error == 0)
        error = pthread_create(&thread, NULL, attend, &begun);
    while (error == 0 && sem_wait(&begun) != 0)
        ;
    (void)sem_destroy(&begun);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0)
        return VELO_OK;
    close_files();
    return velo_fail(VELO_ERR_SYSTEM, "no thread can be started to look after transports");
}

static int watch_port(const struct carriers *carriers)
{
    int error = 0;
    for (const struct carrier *carrier = carriers->first; carrier; carrier = carrier->next)
        error |= watch_once(EPOLL_CTL_ADD, carrier);
    return error ? velo_fail(VELO_ERR_SYSTEM, "the descriptor of a transport cannot be watched")
                 : VELO_OK;
}

/* A child that was just forked may have copies of the descriptors: closing ours is not enough. */
static void unwatch_port(const struct carriers *carriers)
{
    for (const struct carrier *carrier = carriers->first; carrier; carrier = carrier->next)
        (void)epoll_ctl(files, EPOLL_CTL_DEL, carrier->transport->descriptor(carrier->endpoint),
                        NULL);
}

/* The thread is not in the middle of anything when a process forks. So the child gets neither half
 * a list nor a lock, for example the allocator's, that is never given back. */
static void before_fork(void)
{
    pthread_mutex_lock(&turn);
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&turn);
}

static void forget_parent(void)
{
    attended = NULL;
    close_files();
    held_forget();
    after_fork(); /* The only thread of the child is a copy of the one that has locked. */
}

/* What a process has sent arrives, even if it ends without closing its ports. */
static void send_last(void)
{
    if (!wait_lock(&lock, LAST_NS))
        return;
    for (struct carriers *each = attended; each; each = each->next_attended)
        carriers_send_last(each);
    pthread_mutex_unlock(&lock);
}

static void watch_process(void)
{
    (void)pthread_atfork(before_fork, after_fork, forget_parent);
    (void)atexit(send_last);
}

int attend_begin(struct carriers *carriers)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch_process);
    pthread_mutex_lock(&turn);
    pthread_mutex_lock(&lock);
    carriers->next_attended = attended;
    int status = attended ? VELO_OK : start_thread();
    if (status == VELO_OK) {
        attended = carriers;
        status = watch_port(carriers);
        ring_thread();
    }
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&turn);
    return status; /* A port that fails to open is closed: see attend_end(). */
}

void attend_end(struct carriers *carriers)
{
    pthread_mutex_lock(&turn);
    pthread_mutex_lock(&lock);
    struct carriers **at = &attended;
    while (*at && *at != carriers)
        at = &(*at)->next_attended;
    bool was_attended = *at;
    if (was_attended) {
        *at = carriers->next_attended;
        unwatch_port(carriers);
        ring_thread();
    }
    pthread_mutex_unlock(&lock);
    if (was_attended && !attended) {
        (void)pthread_join(thread, NULL);
        close_files();
    }
    pthread_mutex_unlock(&turn);
}
