/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <stdlib.h>

#include "test.h"

void settings_clear(void)
{
    static const char *const names[] = {"VELO_NODE",
                                        "SLURM_NODEID",
                                        "OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "OMPI_COMM_WORLD_LOCAL_SIZE",
                                        "PMI_RANK",
                                        "MPI_LOCALRANKID",
                                        "MPI_LOCALNRANKS",
                                        "VELO2_MTU",
                                        "VELO2_QUEUE_SLOTS",
                                        "VELO_EXTOLL_WAIT_MS"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        unsetenv(names[i]);
}
