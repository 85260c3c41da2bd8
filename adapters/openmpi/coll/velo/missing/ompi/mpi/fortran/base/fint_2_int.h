/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A header of Open MPI that Debian's package leaves out, though ompi/op/op.h includes it: the
 * conversion of C's int to Fortran's INTEGER, for operations that are Fortran functions.
 */
#ifndef VELO_MPI_COLL_VELO_FINT_2_INT_H
#define VELO_MPI_COLL_VELO_FINT_2_INT_H

#include "ompi_config.h"

#define OMPI_INT_2_FINT(number) ((MPI_Fint)(number))

#endif
