/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file process.h
 * @brief The state that all copies of the library in one process share.
 *
 * A process may hold several copies: a plug-in brings its own, or dlmopen() loads one more. The
 * kernel's record locks, which tell other processes that this one lives, belong to the whole
 * process, and closing any descriptor of a file drops all locks on it. So the copies share one
 * lock, and one list of the segment files that the process has open. A file is opened once,
 * whichever copy asks, and closed when the last copy is done with it.
 *
 * The list is in private memory with a name that /proc/thread-self/maps shows. The first copy makes
 * it, the others find it there. Without /proc each copy has a list of its own.
 */
#ifndef VELO_SHM_PROCESS_H
#define VELO_SHM_PROCESS_H

#include <stdbool.h>
#include <sys/stat.h>

/** Lock: one thread at a time has it, of all copies. True: the first time in this process, and
 * after each fork. A child owns none of its parent's ports, locks or connections: the caller
 * forgets them. */
bool process_lock(void);
void process_unlock(void);

/* With the lock held: */

/** Share a descriptor of a file that was just created. False with errno: the process has too many.
 */
bool process_file_add(int fd, const struct stat *st);
/** The descriptor of a file that the process has open; -1: it is not open. Not to be closed. */
int process_file_find(const struct stat *st);
/** A descriptor to read and write the file that an O_PATH descriptor names. -1 with errno. */
int process_file_open(int path_fd, const struct stat *st);
/** How many times it is open in this process, of all copies. */
unsigned process_file_refs(int fd);
/** The caller is done with a file. */
void process_file_close(int fd);

#endif
