/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's clocks show virtual time; caller.h says which calls are the program's. This library
 * takes the place of the C library's functions. Each reading costs `clock_ps` of virtual time.
 *
 * libvelo reads its clock to limit its waits. That costs nothing: what libvelo does has its own
 * cost in the host model.
 */
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timeb.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#include "caller.h"
#include "epoch.h"
#include "locality.h"

static int64_t read_clock_ns(struct sim_channel *channel)
{
    sim_channel_catch_up(channel);
    sim_channel_charge(channel, sim_channel_area()->clock_ps);
    return (int64_t)(channel->call.time_ps / PS_PER_NS);
}

static struct timespec to_timespec(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
}

/* Since 1970, virtual or real. */
static int64_t date_ns(struct sim_channel *channel)
{
    struct timespec real;
    if (channel)
        return read_clock_ns(channel) + EPOCH_S * NS_PER_S;
    (void)syscall(SYS_clock_gettime, CLOCK_REALTIME, &real);
    return real.tv_sec * NS_PER_S + real.tv_nsec;
}

SIM_API int clock_gettime(clockid_t id, struct timespec *now)
{
    const void *caller = __builtin_return_address(0);
    const struct sim_channel *velo_channel = caller_velo_channel(caller);
    struct sim_channel *channel = caller_channel(caller);
    if (velo_channel) {
        *now = to_timespec((int64_t)(velo_channel->call.time_ps / PS_PER_NS));
        return 0;
    }
    if (!channel)
        return (int)syscall(SYS_clock_gettime, id, now);
    int64_t ns = read_clock_ns(channel);
    bool is_date = id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE || id == CLOCK_TAI;
    bool is_usage = id == CLOCK_PROCESS_CPUTIME_ID || id == CLOCK_THREAD_CPUTIME_ID;
    *now = to_timespec(ns);
    now->tv_sec += is_date ? EPOCH_S : is_usage ? 0 : UPTIME_S;
    return 0;
}

SIM_API int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct sim_channel *channel = locality_hydra_file() >= 0 ? PROGRAM_CHANNEL : CALLER_CHANNEL;
    if (!channel)
        return (int)syscall(SYS_gettimeofday, now, zone);
    int64_t ns = read_clock_ns(channel);
    now->tv_sec = ns / NS_PER_S + EPOCH_S;
    now->tv_usec = ns % NS_PER_S / 1000;
    return 0;
}

SIM_API time_t time(time_t *now)
{
    time_t seconds = date_ns(CALLER_CHANNEL) / NS_PER_S;
    if (now)
        *now = seconds;
    return seconds;
}

SIM_API int getrusage(__rusage_who_t who, struct rusage *usage)
{
    struct sim_channel *channel = CALLER_CHANNEL;
    int status = (int)syscall(SYS_getrusage, who, usage);
    if (!channel || status != 0)
        return status;
    int64_t ns = read_clock_ns(channel);
    usage->ru_utime.tv_sec = ns / NS_PER_S;
    usage->ru_utime.tv_usec = ns % NS_PER_S / 1000;
    usage->ru_stime = (struct timeval){0};
    return 0;
}

/* In virtual time a process of the cluster does nothing but compute, so its clock is its
 * processor time. */
SIM_API clock_t clock(void)
{
    struct sim_channel *channel = CALLER_CHANNEL;
    struct timespec real;
    if (channel)
        return (clock_t)(read_clock_ns(channel) / (NS_PER_S / CLOCKS_PER_SEC));
    (void)syscall(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &real);
    return (clock_t)(real.tv_sec * CLOCKS_PER_SEC + real.tv_nsec / (NS_PER_S / CLOCKS_PER_SEC));
}

SIM_API clock_t times(struct tms *usage)
{
    struct sim_channel *channel = CALLER_CHANNEL;
    if (!channel)
        return (clock_t)syscall(SYS_times, usage);
    clock_t ticks = (clock_t)(read_clock_ns(channel) / (NS_PER_S / sysconf(_SC_CLK_TCK)));
    if (usage)
        *usage = (struct tms){.tms_utime = ticks};
    return ticks;
}

SIM_API int timespec_get(struct timespec *now, int base)
{
    if (base != TIME_UTC)
        return 0;
    int64_t ns = date_ns(CALLER_CHANNEL);
    *now = to_timespec(ns);
    return base;
}

SIM_API int ftime(struct timeb *now)
{
    int64_t ns = date_ns(CALLER_CHANNEL);
    *now =
        (struct timeb){.time = ns / NS_PER_S, .millitm = (unsigned short)(ns % NS_PER_S / 1000000)};
    return 0;
}

/* ---- MPI's clock ----------------------------------------------------------------------------- */

/* Of the MPIs that Hydra starts one reads the processor's counter, which no library can take the
 * place of. The others call the functions above. */

static struct sim_channel *hydra_channel(const void *caller)
{
    return locality_hydra_file() >= 0 ? caller_channel(caller) : NULL;
}

#define CLOCK(name, virtual_s)                                                                     \
    SIM_API double name(void);                                                                     \
    double name(void)                                                                              \
    {                                                                                              \
        struct sim_channel *channel = hydra_channel(__builtin_return_address(0));                  \
        if (channel)                                                                               \
            return virtual_s;                                                                      \
        CALLER_NEXT(name);                                                                         \
        return next ? next() : 0.0;                                                                \
    }

CLOCK(MPI_Wtime, (double)read_clock_ns(channel) / NS_PER_S)
CLOCK(PMPI_Wtime, (double)read_clock_ns(channel) / NS_PER_S)
CLOCK(MPI_Wtick, 1.0 / NS_PER_S)
CLOCK(PMPI_Wtick, 1.0 / NS_PER_S)
