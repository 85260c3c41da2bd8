// SPDX-License-Identifier: Apache-2.0
#include "causes.h"

#include <algorithm>
#include <iterator>

namespace sim
{

namespace
{

// @ stands for who did it, # for what.
struct Cause {
    sim_cause cause;
    const char *sentence;
    const char *remedy; // for the reference
};

constexpr Cause kCauses[] = {
    {SIM_CAUSE_CLOCK, "@ read a real clock, by #",
     "read it by a function of the C library: `clock_gettime()`, `MPI_Wtime()`"},
    {SIM_CAUSE_WAIT, "@ waited for files in real time, in #",
     "wait by `read()`, or by `poll()` of pipes without a limit"},
    {SIM_CAUSE_SOCKET, "@ made a socket, by #: what comes by it comes in real time",
     "let ranks send to each other by MPI"},
    {SIM_CAUSE_RANDOM, "@ asked the kernel for random numbers, by #",
     "give the program a seed; for Python, set `PYTHONHASHSEED`"},
    {SIM_CAUSE_SIGNAL, "@ sent or got a signal, by #, which comes in real time",
     "end processes by messages"},
    {SIM_CAUSE_ADDRESSES,
     "@ registered memory, and addresses are random: the kernel forbids to switch that off, or "
     "the program has switched it on",
     "let the container allow `personality()`"},
    {SIM_CAUSE_COMPUTING, "computing costs its real processor time (--compute #)",
     "`--compute free`, or `call:NS`"},
    {SIM_CAUSE_CARDS, "guests with cards live in real time (--card)", "none"},
    {SIM_CAUSE_LATE, "@ had a thread or process that virtual time no longer waited for, since it #",
     "let it call, or end, within five seconds of its start"},
    {SIM_CAUSE_STRANGER,
     "@ has a thread or process that virtual time was not told of: one of posix_spawn(), popen() "
     "or OpenMP",
     "start it by `pthread_create()`, `fork()` or `system()`; let OpenMP's threads call neither "
     "MPI nor clocks"},
    {SIM_CAUSE_ASIDE, "@ slept in the kernel, in #, and others went on meanwhile",
     "wait by mutexes, conditions, semaphores or messages"},
    {SIM_CAUSE_FENCE, "@ polled in vain while others waited for their launcher",
     "let all ranks call `MPI_Init` and `MPI_Finalize` together"},
    {SIM_CAUSE_DEATH, "@ ended with ports open, and others went on",
     "let each rank call `MPI_Finalize`"},
    {SIM_CAUSE_CUT, "the run was ended by #", "let it end by itself"},
};

std::string filled(const char *sentence, const std::string &who, const std::string &what)
{
    std::string text;
    for (const char *c = sentence; *c; c++)
        if (*c == '@')
            text += who;
        else if (*c == '#')
            text += what;
        else
            text += *c;
    return text;
}

} // namespace

std::string cause_sentence(sim_cause cause, uint32_t rank, const std::string &what)
{
    const Cause &found = *std::find_if(std::begin(kCauses), std::end(kCauses),
                                       [&](const Cause &one) { return one.cause == cause; });
    return filled(found.sentence,
                  rank == UINT32_MAX ? "the program" : "rank " + std::to_string(rank), what);
}

std::string cause_table()
{
    std::string table = "| a run need not repeat itself if | what to do |\n| --- | --- |\n";
    for (const Cause &one : kCauses)
        table += "| " + filled(one.sentence, "a rank", "…") + " | " + one.remedy + " |\n";
    return table;
}

} // namespace sim
