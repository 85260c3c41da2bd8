/* SPDX-License-Identifier: Apache-2.0 */
/* velo-mpi-perf: measure the MPI that it is compiled with. See --help; `velo bench` runs it. */
#include "session.h"

int main(int argc, char **argv)
{
    static struct session session;
    session_begin(&session, argc, argv);
    session.options.mode->run(&session);
    session_end(&session);
    return 0;
}
