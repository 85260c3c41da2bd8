/* SPDX-License-Identifier: Apache-2.0 */
/** @file pipe.h @brief Pipes between the processes of a rank (pipe.c). */
#ifndef VELO_SIM_PRELOAD_PIPE_H
#define VELO_SIM_PRELOAD_PIPE_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** Before the program reads from a file: if it is a pipe, wait until there is something. False: a
 *  signal came, as errno says. */
bool pipe_await(const void *caller, int file);
/** May the program's write() to this file have to wait for a reader? */
bool pipe_may_fill(const void *caller, int file);
/** Write to such a file. As write(), which is `next`. */
ssize_t pipe_write(ssize_t (*next)(int file, const void *data, size_t len_bytes),
                   const void *caller, int file, const void *data, size_t len_bytes);
/** poll() by the program. `left_ns` < 0: no limit. */
int pipe_poll(const void *caller, struct pollfd *files, nfds_t files_len, int64_t left_ns);

#endif
