/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file files.h
 * @brief The files of a domain, and their names in its directory. All are called after
 *        seg_acquire(), but for seg_path().
 */
#ifndef VELO_SHM_FILES_H
#define VELO_SHM_FILES_H

#include <sys/stat.h>

#include "layout.h"

/** What every segment's name begins with. */
#define SEG_PREFIX "velo."

/** Write the path of a port's segment. */
void seg_path(char *path, size_t path_bytes, const struct seg_domain *domain, velo_id_t id);
/** Make a file for the users of a domain. It has no name yet; `path` is what it will be. All copies
 * of the library in this process share the descriptor: process_file_close(). VELO_ERR_ACCESS,
 * VELO_ERR_SYSTEM, ... */
int seg_file_make(const struct seg_domain *domain, const char *path, int *fd, struct stat *st);
/** Give it its name. False with errno; EEXIST: it is taken. */
bool seg_file_name(int fd, const char *path);
/** Look at a name without opening the file for real: an O_PATH descriptor can be closed without
 *  losing record locks that this process may hold on it. -1 with errno. */
int seg_path_open(const char *path, struct stat *st);
/** Remove a name, if it still means this file: somebody may have removed it, and another process
 *  have given its name to a new one. VELO_ERR_SYSTEM: the system does not let us. */
int seg_path_remove(const char *path, dev_t dev, ino_t ino);

#endif
