/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file process.h
 * @brief What all copies of the library in one process have in common.
 *
 * A process may hold several copies: a plug-in brings its own, or dlmopen() loads one more. The
 * kernel's record locks, by which others tell who lives, are the whole process's, and closing any
 * descriptor of a file drops all of them. So the copies share one lock, and one list of the segment
 * files that the process has open: a file is opened once, whichever copy asks, and closed when the
 * last one is done with it.
 *
 * The list lives in private memory with a name that /proc/self/maps shows; the first copy makes it,
 * the others find it there. Where there is no /proc each copy has a list of its own.
 */
#ifndef VELO_SHM_PROCESS_H
#define VELO_SHM_PROCESS_H

#include <stdbool.h>
#include <sys/stat.h>

/** One thread at a time, of all copies. True: the first time in this process, and after each fork.
 *  A child owns none of its parent's ports, locks or connections: the caller forgets them. */
bool process_lock(void);
void process_unlock(void);

/* With the lock held: */

/** Share a descriptor of a file that was just created. False: the process has too many. */
bool process_file_add(int fd, const struct stat *st);
/** The descriptor of a file that the process has open; -1: it has not. Not to be closed. */
int process_file_find(const struct stat *st);
/** A descriptor to read and write the file that an O_PATH descriptor names. -1 with errno. */
int process_file_open(int path_fd, const struct stat *st);
/** Done with it. */
void process_file_close(int fd);

#endif
