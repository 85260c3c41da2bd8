/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of one process wait for each other in virtual time, and go on at the time of who tells.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "test.h"

#define TELL_NS (10 * TEST_MS)
/* Some readings of a clock; far less than a nap between two looks. */
#define SLACK_NS 500

static int64_t now_ns(void)
{
    struct timespec now;
    CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t taken = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static bool told;
static int64_t told_ns;

/* ---- one waits, one tells -------------------------------------------------------------------- */

static void wait_condition(void)
{
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    while (!told)
        CHECK_EQ(pthread_cond_wait(&cond, &mutex), 0);
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
}

static void tell(int (*wake)(pthread_cond_t *))
{
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    told = true;
    told_ns = now_ns();
    CHECK_EQ(wake(&cond), 0);
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
}

static void tell_one(void) { tell(pthread_cond_signal); }
static void tell_all(void) { tell(pthread_cond_broadcast); }

static void wait_semaphore(void) { CHECK_EQ(sem_wait(&semaphore), 0); }

static void post(void)
{
    told_ns = now_ns();
    CHECK_EQ(sem_post(&semaphore), 0);
}

static void wait_mutex(void)
{
    CHECK_EQ(pthread_mutex_lock(&taken), 0);
    CHECK_EQ(pthread_mutex_unlock(&taken), 0);
}

static void release(void)
{
    told_ns = now_ns();
    CHECK_EQ(pthread_mutex_unlock(&taken), 0);
}

static const struct {
    void (*wait)(void);
    void (*tell)(void);
} waits[] = {{wait_condition, tell_one},
             {wait_condition, tell_all},
             {wait_semaphore, post},
             {wait_mutex, release}};

static void *wait_and_look(void *arg)
{
    waits[*(const size_t *)arg].wait();
    CHECK(now_ns() >= told_ns);
    CHECK(now_ns() < told_ns + SLACK_NS);
    return arg;
}

TEST(who_waits_for_a_thread_goes_on_when_it_is_told)
{
    struct velo_port *port = port_open(0);

    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        pthread_t thread;
        told = false;
        CHECK_EQ(sem_init(&semaphore, 0, 0), 0);
        CHECK_EQ(pthread_mutex_lock(&taken), 0);
        CHECK_EQ(pthread_create(&thread, NULL, wait_and_look, &i), 0);
        test_sleep_ns(TELL_NS);
        waits[i].tell();
        if (waits[i].tell != release)
            CHECK_EQ(pthread_mutex_unlock(&taken), 0);
        void *value = NULL;
        CHECK_EQ(pthread_join(thread, &value), 0);
        CHECK(value == &i);
    }
    CHECK_OK(velo_port_close(port));
}

static void *release_after_a_while(void *arg)
{
    CHECK_EQ(pthread_mutex_lock(&taken), 0);
    told = true;
    test_sleep_ns(TEST_MS);
    release();
    return arg;
}

/* Nothing but calls that do not wait. */
TEST(who_tries_a_mutex_again_and_again_gets_it)
{
    struct velo_port *port = port_open(0);
    pthread_t thread;

    told = false;
    CHECK_EQ(pthread_create(&thread, NULL, release_after_a_while, NULL), 0);
    test_sleep_ns(TEST_MS / 2);
    CHECK(told);
    while (pthread_mutex_trylock(&taken) != 0)
        ;
    CHECK(now_ns() >= told_ns);
    CHECK(now_ns() < told_ns + SLACK_NS);
    CHECK_EQ(pthread_mutex_unlock(&taken), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_OK(velo_port_close(port));
}

/* ---- many ------------------------------------------------------------------------------------ */

#define MANY 6

static int order[MANY], taken_by;

static void *take_in_turn(void *arg)
{
    int number = *(const int *)arg;

    /* The last one begun comes first. */
    test_sleep_ns((MANY - number) * TEST_MS / 4);
    CHECK_EQ(pthread_mutex_lock(&taken), 0);
    order[taken_by++] = number;
    test_sleep_ns(TEST_MS);
    CHECK_EQ(pthread_mutex_unlock(&taken), 0);
    return NULL;
}

TEST(a_mutex_goes_to_who_has_waited_longest)
{
    struct velo_port *port = port_open(0);
    pthread_t threads[MANY];
    int numbers[MANY];

    taken_by = 0;
    CHECK_EQ(pthread_mutex_lock(&taken), 0);
    for (int i = 0; i < MANY; i++) {
        numbers[i] = i;
        CHECK_EQ(pthread_create(&threads[i], NULL, take_in_turn, &numbers[i]), 0);
    }
    test_sleep_ns(TELL_NS);
    CHECK_EQ(pthread_mutex_unlock(&taken), 0);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(order[i], MANY - 1 - i);
    CHECK_OK(velo_port_close(port));
}

static int lock_patiently(pthread_mutex_t *mutex_)
{
    int status;
    do
        status = pthread_mutex_trylock(mutex_);
    while (status == EBUSY);
    return status;
}

static void *take_once(void *arg)
{
    CHECK_EQ(pthread_mutex_lock(&taken), 0);
    told = true;
    CHECK_EQ(pthread_mutex_unlock(&taken), 0);
    return arg;
}

/* Time passes only while it has it. */
TEST(who_takes_a_mutex_again_at_once_lets_those_who_wait_have_it_first)
{
    static int (*const takes[])(pthread_mutex_t *) = {pthread_mutex_lock, lock_patiently};
    struct velo_port *port = port_open(0);

    for (size_t i = 0; i < sizeof takes / sizeof *takes; i++) {
        pthread_t thread;
        told = false;
        CHECK_EQ(pthread_create(&thread, NULL, take_once, NULL), 0);
        for (int rounds = 0; rounds < MANY; rounds++) {
            CHECK_EQ(takes[i](&taken), 0);
            test_sleep_ns(TEST_MS);
            CHECK_EQ(pthread_mutex_unlock(&taken), 0);
        }
        CHECK(told);
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
    CHECK_OK(velo_port_close(port));
}

static void *wait_told(void *arg)
{
    wait_condition();
    CHECK(now_ns() >= told_ns);
    CHECK(now_ns() < told_ns + MANY * SLACK_NS);
    return arg;
}

TEST(a_broadcast_reaches_all_who_wait)
{
    struct velo_port *port = port_open(0);
    pthread_t threads[MANY];

    told = false;
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, wait_told, NULL), 0);
    test_sleep_ns(TELL_NS);
    tell_all();
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_OK(velo_port_close(port));
}

/* ---- the end of a thread --------------------------------------------------------------------- */

static void *sleep_and_leave(void *arg)
{
    test_sleep_ns(TELL_NS);
    told_ns = now_ns();
    if (arg)
        pthread_exit(&told_ns);
    return &told_ns;
}

TEST(a_thread_is_joined_when_it_ends)
{
    struct velo_port *port = port_open(0);

    for (int exits = 0; exits < 2; exits++) {
        pthread_t thread;
        void *value = NULL;
        int64_t begun_ns = now_ns();
        CHECK_EQ(pthread_create(&thread, NULL, sleep_and_leave, exits ? &exits : NULL), 0);
        CHECK_EQ(pthread_join(thread, &value), 0);
        CHECK(value == &told_ns);
        CHECK(told_ns >= begun_ns + TELL_NS);
        CHECK(now_ns() < told_ns + SLACK_NS);
    }
    CHECK_OK(velo_port_close(port));
}

/* It has ended long before anybody asks, and its channel may be another's. */
TEST(a_thread_that_has_ended_is_joined_at_once)
{
    struct velo_port *port = port_open(0);
    pthread_t first, second;

    CHECK_EQ(pthread_create(&first, NULL, sleep_and_leave, NULL), 0);
    test_sleep_ns(2 * TELL_NS);
    int64_t before_second_ns = now_ns(); // It may be asleep before its creator goes on.
    CHECK_EQ(pthread_create(&second, NULL, sleep_and_leave, NULL), 0);
    int64_t before_ns = now_ns();
    CHECK_EQ(pthread_join(first, NULL), 0);
    CHECK(now_ns() < before_ns + SLACK_NS);
    CHECK_EQ(pthread_join(second, NULL), 0);
    CHECK(now_ns() >= before_second_ns + TELL_NS);
    CHECK_OK(velo_port_close(port));
}
