/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's clocks and naps in virtual time. The library takes the place of the C library's
 * functions, for calls that come from the program itself or from libmpi: what else is loaded (event
 * loops, the launcher's threads) lives in real time. Each reading costs `clock_ps` of virtual time.
 *
 * A nap of libmpi's own is how it waits for its launcher (launcher.c): that one is real.
 */
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <velo/velo.h>

#include "channel.h"
#include "device.h"

#define NS_PER_S INT64_C(1000000000)
/* The day on which every simulation begins: 2026-01-01. */
#define EPOCH_S INT64_C(1767225600)
/* CLOCK_MONOTONIC never reads 0: programs take that for unset. */
#define UPTIME_S INT64_C(1000)
#define RANGES_MAX 16
/* How long who yields lets others go on. */
#define YIELD_NS INT64_C(1000)

enum caller { CALLER_OTHER, CALLER_PROGRAM, CALLER_MPI };

struct range {
    uintptr_t from;
    uintptr_t to;
    enum caller who;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct range ranges[RANGES_MAX];
static size_t ranges_len;

/* ---- who calls ------------------------------------------------------------------------------- */

static int add_ranges(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    const char *base = strrchr(info->dlpi_name, '/');
    base = base ? base + 1 : info->dlpi_name;
    enum caller who = *info->dlpi_name == '\0'             ? CALLER_PROGRAM
                      : strncmp(base, "libmpi.so", 9) == 0 ? CALLER_MPI
                                                           : CALLER_OTHER;
    for (int i = 0; who != CALLER_OTHER && i < info->dlpi_phnum && ranges_len < RANGES_MAX; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_X))
            continue;
        uintptr_t from = info->dlpi_addr + header->p_vaddr;
        ranges[ranges_len++] = (struct range){from, from + header->p_memsz, who};
    }
    return 0;
}

static void find_ranges(void) { (void)dl_iterate_phdr(add_ranges, NULL); }

static enum caller caller_at(const void *address)
{
    (void)pthread_once(&once, find_ranges);
    for (size_t i = 0; i < ranges_len; i++)
        if ((uintptr_t)address >= ranges[i].from && (uintptr_t)address < ranges[i].to)
            return ranges[i].who;
    return CALLER_OTHER;
}

/* The channel of a thread whose clock is virtual for this caller. */
static struct sim_channel *channel_for(const void *address)
{
    return caller_at(address) == CALLER_OTHER ? NULL : channel_self();
}

#define CHANNEL channel_for(__builtin_return_address(0))

/* ---- clocks ---------------------------------------------------------------------------------- */

static int64_t read_clock_ns(struct sim_channel *channel)
{
    channel_catch_up(channel);
    channel_charge(channel, channel_area()->clock_ps);
    return (int64_t)(channel->time_ps / PS_PER_NS);
}

VELO_API int clock_gettime(clockid_t id, struct timespec *now)
{
    struct sim_channel *channel = CHANNEL;
    if (!channel)
        return (int)syscall(SYS_clock_gettime, id, now);
    int64_t ns = read_clock_ns(channel);
    bool is_date = id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE || id == CLOCK_TAI;
    bool is_usage = id == CLOCK_PROCESS_CPUTIME_ID || id == CLOCK_THREAD_CPUTIME_ID;
    now->tv_sec = ns / NS_PER_S + (is_date ? EPOCH_S : is_usage ? 0 : UPTIME_S);
    now->tv_nsec = ns % NS_PER_S;
    return 0;
}

VELO_API int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct sim_channel *channel = CHANNEL;
    if (!channel)
        return (int)syscall(SYS_gettimeofday, now, zone);
    int64_t ns = read_clock_ns(channel);
    now->tv_sec = ns / NS_PER_S + EPOCH_S;
    now->tv_usec = ns % NS_PER_S / 1000;
    return 0;
}

VELO_API time_t time(time_t *now)
{
    struct sim_channel *channel = CHANNEL;
    struct timespec real;
    time_t seconds;
    if (channel) {
        seconds = read_clock_ns(channel) / NS_PER_S + EPOCH_S;
    } else {
        (void)syscall(SYS_clock_gettime, CLOCK_REALTIME, &real);
        seconds = real.tv_sec;
    }
    if (now)
        *now = seconds;
    return seconds;
}

VELO_API int getrusage(int who, struct rusage *usage)
{
    struct sim_channel *channel = CHANNEL;
    int status = (int)syscall(SYS_getrusage, who, usage);
    if (!channel || status != 0)
        return status;
    int64_t ns = read_clock_ns(channel);
    usage->ru_utime.tv_sec = ns / NS_PER_S;
    usage->ru_utime.tv_usec = ns % NS_PER_S / 1000;
    usage->ru_stime = (struct timeval){0};
    return 0;
}

/* ---- naps ------------------------------------------------------------------------------------ */

static void sleep_until_ns(struct sim_channel *channel, int64_t end_ns)
{
    channel->a[0] = end_ns > 0 ? (uint64_t)end_ns * PS_PER_NS : 0;
    (void)channel_call(channel, SIM_SLEEP);
    device_napped();
}

static void sleep_for_ns(struct sim_channel *channel, int64_t nap_ns)
{
    sleep_until_ns(channel, (int64_t)(channel->time_ps / PS_PER_NS) + nap_ns);
}

VELO_API int nanosleep(const struct timespec *nap, struct timespec *left)
{
    struct sim_channel *channel = CHANNEL;
    if (!channel)
        return (int)syscall(SYS_nanosleep, nap, left);
    if (nap->tv_sec < 0 || nap->tv_nsec < 0 || nap->tv_nsec >= NS_PER_S) {
        errno = EINVAL;
        return -1;
    }
    sleep_for_ns(channel, nap->tv_sec * NS_PER_S + nap->tv_nsec);
    return 0;
}

VELO_API int clock_nanosleep(clockid_t id, int flags, const struct timespec *nap,
                             struct timespec *left)
{
    struct sim_channel *channel = CHANNEL;
    if (!channel)
        return syscall(SYS_clock_nanosleep, id, flags, nap, left) == 0 ? 0 : errno;
    int64_t ns = nap->tv_sec * NS_PER_S + nap->tv_nsec;
    if (flags & TIMER_ABSTIME)
        sleep_until_ns(channel, ns - NS_PER_S * (id == CLOCK_REALTIME ? EPOCH_S : UPTIME_S));
    else
        sleep_for_ns(channel, ns);
    return 0;
}

VELO_API int usleep(useconds_t nap_us)
{
    const void *caller = __builtin_return_address(0);
    struct timespec real = {.tv_sec = nap_us / 1000000, .tv_nsec = nap_us % 1000000 * 1000L};
    struct sim_channel *channel = channel_for(caller);
    if (channel && caller_at(caller) == CALLER_PROGRAM) {
        sleep_for_ns(channel, (int64_t)nap_us * 1000);
        return 0;
    }
    if (channel)
        device_nap_outside();
    return (int)syscall(SYS_nanosleep, &real, NULL);
}

VELO_API unsigned sleep(unsigned nap_s)
{
    struct timespec real = {.tv_sec = nap_s};
    struct sim_channel *channel = CHANNEL;
    if (channel)
        sleep_for_ns(channel, nap_s * NS_PER_S);
    else
        (void)syscall(SYS_nanosleep, &real, NULL);
    return 0;
}

/* A program that yields waits for somebody, who does nothing unless time passes. */
VELO_API int sched_yield(void)
{
    const void *caller = __builtin_return_address(0);
    struct sim_channel *channel = caller_at(caller) == CALLER_PROGRAM ? channel_self() : NULL;
    if (!channel)
        return (int)syscall(SYS_sched_yield);
    sleep_for_ns(channel, YIELD_NS);
    return 0;
}
