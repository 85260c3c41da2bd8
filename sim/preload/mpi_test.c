/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that asks MPI whether something has come goes on if nothing has, and may have more to
 * send: its polls must not be taken for waiting. From within velo MPI_Test and MPI_Wait look the
 * same. So this library takes the place of MPI's functions that test, notes the call and passes it
 * on. It does so under both names, since the functions for Fortran call those for C by the second.
 */
#include <stddef.h>

#include "../client/poll.h"
#include "caller.h"

/* As in <mpi.h>, which need not be installed: arguments are only passed on. */
#define MPI_ERR_INTERN 17

#define TEST_UNDER(name, parameters, arguments)                                                    \
    typedef int name##_call parameters;                                                            \
    SIM_API name##_call name;                                                                      \
    int name parameters                                                                            \
    {                                                                                              \
        CALLER_NEXT(name);                                                                         \
        if (!next)                                                                                 \
            return MPI_ERR_INTERN;                                                                 \
        sim_poll_tested();                                                                         \
        return next arguments;                                                                     \
    }

#define TEST(name, parameters, arguments)                                                          \
    TEST_UNDER(MPI_##name, parameters, arguments)                                                  \
    TEST_UNDER(PMPI_##name, parameters, arguments)

/* One thread at a time makes progress in Open MPI. The others find nothing, and their call takes no
 * time: with the turn, each would go on for ever. So a poll's time passes for them. */
SIM_API void opal_progress(void);
void opal_progress(void)
{
    CALLER_NEXT(opal_progress);
    struct sim_channel *channel = sim_channel_beside();
    uint64_t before_ps = channel ? channel->call.time_ps : 0;
    if (next)
        next();
    if (channel && channel->call.time_ps == before_ps && !sim_poll_is_outside())
        sim_poll_pass(channel);
}

TEST(Test, (void **request, int *done, void *status), (request, done, status))
TEST(Testall, (int len, void **requests, int *done, void *statuses),
     (len, requests, done, statuses))
TEST(Testany, (int len, void **requests, int *index, int *done, void *status),
     (len, requests, index, done, status))
TEST(Testsome, (int len, void **requests, int *done_len, int *indices, void *statuses),
     (len, requests, done_len, indices, statuses))
TEST(Request_get_status, (void *request, int *done, void *status), (request, done, status))
TEST(Iprobe, (int source, int tag, void *comm, int *found_it, void *status),
     (source, tag, comm, found_it, status))
TEST(Improbe, (int source, int tag, void *comm, int *found_it, void **message, void *status),
     (source, tag, comm, found_it, message, status))
