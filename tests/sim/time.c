/* SPDX-License-Identifier: Apache-2.0 */
/* Every way to read a clock or to wait lives in virtual time; what cannot is refused. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/timeb.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

/* Nobody would wait that long in real time: a test that did would not end. */
#define NAP_S 100000
#define S (1000 * TEST_MS)
/* The time that waiting and reading may cost on top. */
#define SLACK_NS TEST_MS
#define EXIT_CANNOT_GO_ON 70

static int64_t time_to_ns(const struct timespec *time) { return time->tv_sec * S + time->tv_nsec; }

static struct timespec ns_to_time(int64_t ns) { return (struct timespec){ns / S, ns % S}; }

static int64_t clock_ns(clockid_t id)
{
    struct timespec now;
    CHECK_EQ(clock_gettime(id, &now), 0);
    return time_to_ns(&now);
}

/* ---- clocks ---------------------------------------------------------------------------------- */

static int64_t read_monotonic(void) { return clock_ns(CLOCK_MONOTONIC); }
static int64_t read_date(void) { return clock_ns(CLOCK_REALTIME); }
static int64_t read_process(void) { return clock_ns(CLOCK_PROCESS_CPUTIME_ID); }
static int64_t read_time(void) { return time(NULL) * S; }
static int64_t read_clock(void) { return clock() * (S / CLOCKS_PER_SEC); }
static int64_t read_times(void) { return times(NULL) * (S / sysconf(_SC_CLK_TCK)); }

static int64_t read_gettimeofday(void)
{
    struct timeval now;
    CHECK_EQ(gettimeofday(&now, NULL), 0);
    return now.tv_sec * S + now.tv_usec * 1000;
}

static int64_t read_getrusage(void)
{
    struct rusage usage;
    CHECK_EQ(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_utime.tv_sec * S + usage.ru_utime.tv_usec * 1000;
}

static int64_t read_timespec_get(void)
{
    struct timespec now;
    CHECK_EQ(timespec_get(&now, TIME_UTC), TIME_UTC);
    return time_to_ns(&now);
}

static int64_t read_ftime(void)
{
    struct timeb now;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    CHECK_EQ(ftime(&now), 0);
#pragma GCC diagnostic pop
    return now.time * S + now.millitm * TEST_MS;
}

static const struct {
    const char *name;
    int64_t (*read)(void);
    int64_t grain_ns;
} clocks[] = {
    {"CLOCK_MONOTONIC", read_monotonic, 1},
    {"CLOCK_REALTIME", read_date, 1},
    {"CLOCK_PROCESS_CPUTIME_ID", read_process, 1},
    {"time", read_time, S},
    {"clock", read_clock, 1000},
    {"times", read_times, 10 * TEST_MS},
    {"gettimeofday", read_gettimeofday, 1000},
    {"getrusage", read_getrusage, 1000},
    {"timespec_get", read_timespec_get, 1},
    {"ftime", read_ftime, TEST_MS},
};
#define CLOCKS (sizeof clocks / sizeof *clocks)

TEST(every_clock_shows_a_nap_to_the_grain)
{
    struct velo_port *port = port_open(0);
    int64_t before[CLOCKS];

    for (size_t i = 0; i < CLOCKS; i++)
        before[i] = clocks[i].read();
    CHECK_EQ(sleep(NAP_S), 0);
    for (size_t i = 0; i < CLOCKS; i++) {
        int64_t passed_ns = clocks[i].read() - before[i];
        if (passed_ns <= NAP_S * S - clocks[i].grain_ns ||
            passed_ns >= NAP_S * S + clocks[i].grain_ns + SLACK_NS)
            (void)fprintf(stderr, "%s\n", clocks[i].name);
        CHECK(passed_ns > NAP_S * S - clocks[i].grain_ns);
        CHECK(passed_ns < NAP_S * S + clocks[i].grain_ns + SLACK_NS);
    }
    CHECK_OK(velo_port_close(port));
}

/* ---- naps ------------------------------------------------------------------------------------ */

static void nap_sleep(void) { CHECK_EQ(sleep(NAP_S), 0); }
static void nap_poll(void) { CHECK_EQ(poll(NULL, 0, NAP_S * 1000), 0); }

static void nap_usleep(void)
{
    for (int i = 0; i < 100; i++)
        CHECK_EQ(usleep(NAP_S * 10000), 0);
}

static void nap_nanosleep(void)
{
    struct timespec nap = {NAP_S, 0};
    CHECK_EQ(nanosleep(&nap, NULL), 0);
}

static void nap_thrd_sleep(void)
{
    struct timespec nap = {NAP_S, 0};
    CHECK_EQ(thrd_sleep(&nap, NULL), 0);
}

static void nap_clock_nanosleep(void)
{
    struct timespec nap = {NAP_S, 0};
    CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL), 0);
}

static void nap_until_a_date(void)
{
    struct timespec end = ns_to_time(read_date() + NAP_S * S);
    CHECK_EQ(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &end, NULL), 0);
}

static void nap_until_a_time_up(void)
{
    struct timespec end = ns_to_time(read_monotonic() + NAP_S * S);
    CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL), 0);
}

static void nap_select(void)
{
    struct timeval nap = {NAP_S, 0};
    CHECK_EQ(select(0, NULL, NULL, NULL, &nap), 0);
}

TEST(every_nap_takes_its_time)
{
    static void (*const naps[])(void) = {
        nap_sleep,           nap_poll,         nap_usleep,          nap_nanosleep, nap_thrd_sleep,
        nap_clock_nanosleep, nap_until_a_date, nap_until_a_time_up, nap_select};
    struct velo_port *port = port_open(0);

    for (size_t i = 0; i < sizeof naps / sizeof *naps; i++) {
        int64_t before_ns = read_monotonic();
        naps[i]();
        int64_t passed_ns = read_monotonic() - before_ns;
        if (passed_ns < NAP_S * S || passed_ns > NAP_S * S + SLACK_NS)
            (void)fprintf(stderr, "nap %zu\n", i);
        CHECK(passed_ns >= NAP_S * S);
        CHECK(passed_ns <= NAP_S * S + SLACK_NS);
    }
    CHECK_OK(velo_port_close(port));
}

/* ---- waits with a limit ---------------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static bool told;

static int wait_dated_condition(const struct timespec *end)
{
    int status = 0;
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    while (status == 0 && !told)
        status = pthread_cond_timedwait(&cond, &mutex, end);
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
    return status;
}

static int wait_condition(const struct timespec *end)
{
    int status = 0;
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    while (status == 0 && !told)
        status = pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, end);
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
    return status;
}

static int wait_dated_semaphore(const struct timespec *end)
{
    return sem_timedwait(&semaphore, end) == 0 ? 0 : errno;
}

static int wait_semaphore(const struct timespec *end)
{
    return sem_clockwait(&semaphore, CLOCK_MONOTONIC, end) == 0 ? 0 : errno;
}

static pthread_mutex_t taken = PTHREAD_MUTEX_INITIALIZER;

static int wait_dated_mutex(const struct timespec *end)
{
    int status = pthread_mutex_timedlock(&taken, end);
    if (status == 0)
        CHECK_EQ(pthread_mutex_unlock(&taken), 0);
    return status;
}

static int wait_mutex(const struct timespec *end)
{
    int status = pthread_mutex_clocklock(&taken, CLOCK_MONOTONIC, end);
    if (status == 0)
        CHECK_EQ(pthread_mutex_unlock(&taken), 0);
    return status;
}

static const struct {
    int (*wait)(const struct timespec *end);
    clockid_t id;
} waits[] = {
    {wait_dated_condition, CLOCK_REALTIME}, {wait_condition, CLOCK_MONOTONIC},
    {wait_dated_semaphore, CLOCK_REALTIME}, {wait_semaphore, CLOCK_MONOTONIC},
    {wait_dated_mutex, CLOCK_REALTIME},     {wait_mutex, CLOCK_MONOTONIC},
};
#define WAITS (sizeof waits / sizeof *waits)
#define LIMIT_NS (2 * S)
#define TELL_NS S
/* The longest nap between two looks. */
#define LOOK_NS (TEST_MS / 10)

/* Another one waits, and this thread does, or gives way, only when it is over. */
static void *wait_in_vain(void *arg)
{
    const size_t i = *(const size_t *)arg;
    struct timespec end = ns_to_time(clock_ns(waits[i].id) + LIMIT_NS);
    int64_t before_ns = read_monotonic();

    CHECK_EQ(waits[i].wait(&end), ETIMEDOUT);
    int64_t passed_ns = read_monotonic() - before_ns;
    if (passed_ns < LIMIT_NS - SLACK_NS || passed_ns > LIMIT_NS + SLACK_NS)
        (void)fprintf(stderr, "wait %zu\n", i);
    CHECK(passed_ns > LIMIT_NS - SLACK_NS);
    CHECK(passed_ns < LIMIT_NS + SLACK_NS);
    return NULL;
}

static void *wait_and_be_told(void *arg)
{
    const size_t i = *(const size_t *)arg;
    struct timespec end = ns_to_time(clock_ns(waits[i].id) + LIMIT_NS);
    int64_t before_ns = read_monotonic();

    CHECK_EQ(waits[i].wait(&end), 0);
    int64_t passed_ns = read_monotonic() - before_ns;
    CHECK(passed_ns > TELL_NS - SLACK_NS);
    CHECK(passed_ns < TELL_NS + SLACK_NS + LOOK_NS);
    return NULL;
}

/* Sleeps as long, and does something about each wait, or does not. */
static void nap_while(void *(*body)(void *), size_t i, int64_t nap_ns, bool tell)
{
    pthread_t thread;

    told = false;
    CHECK_EQ(sem_init(&semaphore, 0, 0), 0);
    CHECK_EQ(pthread_mutex_lock(&taken), 0);
    CHECK_EQ(pthread_create(&thread, NULL, body, &i), 0);
    test_sleep_ns(nap_ns);
    if (tell) {
        CHECK_EQ(pthread_mutex_lock(&mutex), 0);
        told = true;
        CHECK_EQ(pthread_cond_signal(&cond), 0);
        CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
        CHECK_EQ(sem_post(&semaphore), 0);
    }
    CHECK_EQ(pthread_mutex_unlock(&taken), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

TEST(waits_with_a_limit_end_at_their_limit)
{
    struct velo_port *port = port_open(0);

    for (size_t i = 0; i < WAITS; i++)
        nap_while(wait_in_vain, i, LIMIT_NS + S, false);
    CHECK_OK(velo_port_close(port));
}

TEST(waits_with_a_limit_end_when_they_are_told)
{
    struct velo_port *port = port_open(0);

    for (size_t i = 0; i < WAITS; i++)
        nap_while(wait_and_be_told, i, TELL_NS, true);
    CHECK_OK(velo_port_close(port));
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void set_alarm(void) { (void)alarm(1); }

static void set_itimer(void)
{
    struct itimerval soon = {.it_value.tv_usec = 1000};
    (void)setitimer(ITIMER_REAL, &soon, NULL);
}

static void set_timer(void)
{
    struct itimerspec soon = {.it_value.tv_nsec = 1000};
    timer_t timer;
    CHECK_EQ(timer_create(CLOCK_MONOTONIC, &(struct sigevent){.sigev_notify = SIGEV_NONE}, &timer),
             0);
    (void)timer_settime(timer, 0, &soon, NULL);
}

static void set_timerfd(void)
{
    struct itimerspec soon = {.it_value.tv_nsec = 1000};
    int file = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    CHECK(file >= 0);
    (void)timerfd_settime(file, 0, &soon, NULL);
}

static const struct {
    void (*set)(void);
    const char *name;
} timers[] = {{set_alarm, "alarm()"},
              {set_itimer, "setitimer()"},
              {set_timer, "timer_settime()"},
              {set_timerfd, "timerfd_settime()"}};

static int complaints[2];

static void set_timer_of(void *arg)
{
    CHECK(dup2(complaints[1], STDERR_FILENO) == STDERR_FILENO);
    timers[*(const size_t *)arg].set();
}

TEST(a_timer_of_real_time_ends_the_program_and_is_named)
{
    char said[512];

    for (size_t i = 0; i < sizeof timers / sizeof *timers; i++) {
        CHECK_EQ(pipe(complaints), 0);
        int status = child_wait(child_start(set_timer_of, &i));
        CHECK_EQ(close(complaints[1]), 0);
        ssize_t len = read(complaints[0], said, sizeof said - 1);
        CHECK_EQ(close(complaints[0]), 0);
        CHECK(len > 0);
        said[len] = '\0';
        CHECK(strstr(said, timers[i].name) != NULL);
        CHECK(WIFEXITED(status));
        CHECK_EQ(WEXITSTATUS(status), EXIT_CANNOT_GO_ON);
    }
}

TEST(a_timer_that_is_cleared_is_no_matter)
{
    struct velo_port *port = port_open(0);
    struct itimerval none = {0};

    CHECK_EQ(alarm(0), 0);
    CHECK_EQ(setitimer(ITIMER_REAL, &none, NULL), 0);
    CHECK_OK(velo_port_close(port));
}
