/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file persistent.h
 * @brief Persistent buffered sends (MPI_Bsend_init), which PML cm and PML ob1 get wrong.
 *
 * Both pack the data when such a send starts, and then let the request's convertor stand on the
 * packed copy: the next start sends that copy again, and cm more bytes than there are. PML ob1 is
 * saved by networks that have not yet told it that the copy is sent: then it makes another request.
 */
#ifndef VELO_MPI_COMMON_PERSISTENT_H
#define VELO_MPI_COMMON_PERSISTENT_H

/** From now on each start of a persistent buffered send is a buffered send of its own. Called once
 *  the PML has been selected: from add_procs(). A second call does nothing. */
void velo_ompi_mend_persistent(void);
/** Undo that. */
void velo_ompi_leave_persistent(void);

#endif
