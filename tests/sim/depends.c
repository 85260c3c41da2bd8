/* SPDX-License-Identifier: Apache-2.0 */
/* Two ranks, which do what makes a run depend on real time: one thing for each word. depends.py */
#include <fcntl.h>
#include <mpi.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LONG_BYTES 65536
#define LIMIT_MS 2
#define IN_VAIN 6000

static int rank;

static void read_clock(void)
{
    struct timespec now;
    (void)syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
}

/* Nobody ever writes. */
static int silent_pipe(void)
{
    int ends[2];
    if (pipe(ends) != 0)
        exit(1);
    return ends[0];
}

static void wait_in_select(void)
{
    int file = silent_pipe();
    fd_set files;
    FD_ZERO(&files);
    FD_SET(file, &files);
    struct timeval limit = {.tv_usec = LIMIT_MS * 1000};
    (void)select(file + 1, &files, NULL, NULL, &limit);
}

static void wait_in_poll(void)
{
    struct pollfd file = {.fd = silent_pipe(), .events = POLLIN};
    (void)poll(&file, 1, LIMIT_MS);
}

static void wait_in_epoll(void)
{
    struct epoll_event event = {.events = EPOLLIN};
    int all = epoll_create1(0);
    (void)epoll_ctl(all, EPOLL_CTL_ADD, silent_pipe(), &event);
    (void)epoll_wait(all, &event, 1, LIMIT_MS);
}

static void wait_in_ppoll(void)
{
    struct pollfd file = {.fd = silent_pipe(), .events = POLLIN};
    struct timespec limit = {.tv_nsec = LIMIT_MS * 1000000L};
    (void)ppoll(&file, 1, &limit, NULL);
}

static void wait_in_pselect(void)
{
    struct timespec limit = {.tv_nsec = LIMIT_MS * 1000000L};
    (void)pselect(0, NULL, NULL, NULL, &limit, NULL);
}

static void make_socket(void)
{
    int ends[2];
    (void)socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
}

static void ask_for_numbers(void)
{
    char numbers[8];
    (void)!getrandom(numbers, sizeof numbers, 0);
}

static void open_numbers(void) { (void)open("/dev/urandom", O_RDONLY | O_CLOEXEC); }

static void read_numbers(void)
{
    FILE *file = fopen("/dev/urandom", "re");
    if (file)
        (void)fclose(file);
}

/* It ignores this one. */
static void send_signal(void) { (void)kill(getppid(), SIGURG); }

/* The node reads it from memory. */
static void send_long(void)
{
    static char data[LONG_BYTES];
    if (rank == 0)
        MPI_Send(data, LONG_BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    else
        MPI_Recv(data, LONG_BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void compute(void)
{
    for (volatile long i = 0; i < 1000000000L; i++)
        ;
}

/* Virtual time does not wait for a child that sleeps before its first call. */
static void child_sleeps(void)
{
    struct timespec limit = {.tv_nsec = 200000000L};
    pid_t pid = fork();
    if (pid == 0) {
        (void)syscall(SYS_ppoll, NULL, 0, &limit, NULL, 0);
        (void)usleep(1);
        _exit(0);
    }
    (void)waitpid(pid, NULL, 0);
}

static void stranger_calls(void)
{
    (void)popen("sleep 0.01", "r"); /* Its wait in pclose() would be real, and without an end. */
    compute();
    (void)usleep(LIMIT_MS * 20000);
}

/* The other rank is in MPI_Finalize by then. */
static void probe_in_vain(void)
{
    int is_there = 0;
    for (int i = 0; rank == 1 && i < IN_VAIN; i++)
        MPI_Iprobe(0, 0, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
}

static void one_leaves(void)
{
    if (rank == 0) {
        (void)usleep(LIMIT_MS * 1000);
        compute();
        (void)usleep(LIMIT_MS * 1000);
    }
    _exit(0);
}

/* ---- without MPI ----------------------------------------------------------------------------- */

static pthread_barrier_t barrier;

static void *meet(void *arg)
{
    (void)usleep(1);
    (void)pthread_barrier_wait(&barrier);
    (void)usleep(1);
    return arg;
}

static int sleep_in_kernel(void)
{
    pthread_t thread;
    (void)usleep(1);
    (void)pthread_barrier_init(&barrier, NULL, 2);
    (void)pthread_create(&thread, NULL, meet, NULL);
    (void)usleep(LIMIT_MS * 1000);
    (void)pthread_barrier_wait(&barrier);
    return pthread_join(thread, NULL);
}

static void *nap(void *arg)
{
    (void)usleep(LIMIT_MS * 1000);
    return arg;
}

/* More than the cluster has room for. Virtual time waits for those that a thread starts which is of
 * the cluster itself, so all are there at once. */
static int start_threads(void)
{
    pthread_t threads[20];
    (void)nap(NULL);
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
        if (pthread_create(&threads[i], NULL, nap, NULL) != 0)
            return 1;
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
        (void)pthread_join(threads[i], NULL);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *word;
        void (*call)(void);
    } all[] = {
        {"clock", read_clock},    {"select", wait_in_select},   {"poll", wait_in_poll},
        {"epoll", wait_in_epoll}, {"ppoll", wait_in_ppoll},     {"pselect", wait_in_pselect},
        {"socket", make_socket},  {"random", ask_for_numbers},  {"open", open_numbers},
        {"fopen", read_numbers},  {"signal", send_signal},      {"long", send_long},
        {"late", child_sleeps},   {"stranger", stranger_calls}, {"fence", probe_in_vain},
        {"death", one_leaves},
    };
    if (argc < 2)
        return 2;
    if (strcmp(argv[1], "aside") == 0)
        return sleep_in_kernel();
    if (strcmp(argv[1], "threads") == 0)
        return start_threads();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(argv[1], all[i].word) == 0)
            all[i].call();
    if (strcmp(argv[1], "fence") != 0)
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
